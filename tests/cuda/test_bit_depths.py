# SPDX-License-Identifier: Apache-2.0
"""Values of more than 8 bits in GPU memory: the CPU decodes such files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from png_writer import png
from tiff_writer import LZW, RGB, tiff

from stoker import fn, pipeline_def, types


def test_values_of_16_bits_arrive_on_the_gpu(emulated_gpu: None, tmp_path: Path) -> None:
    depths = np.arange(63, dtype=np.uint16).reshape(7, 9) * 1000
    Image.fromarray(depths).save(tmp_path / "0.png")
    Image.fromarray((depths >> 8).astype(np.uint8)).save(tmp_path / "1.jpg")
    colours = np.stack([depths, depths + 1, 65535 - depths], axis=2)
    (tmp_path / "2.png").write_bytes(png(colours, 2, 16))
    (tmp_path / "3.tif").write_bytes(tiff(colours, RGB, big=True, compression=LZW, predictor=2, tile=(16, 16)))
    files = [str(tmp_path / name) for name in ("0.png", "1.jpg", "2.png", "3.tif")]

    @pipeline_def(batch_size=4, num_threads=1, seed=1)
    def decoding(device: str) -> Any:
        data, _ = fn.readers.file(files=files)
        return fn.decoders.image(data, device=device, output_type=types.ANY_DATA, dtype=types.UINT16)

    with decoding("mixed", device_id=0) as on_gpu, decoding("cpu") as on_cpu:
        got, expected = on_gpu.run()[0], on_cpu.run()[0]
        assert got.device == "gpu"
        for row, reference in zip(got.as_cpu(), expected, strict=True):
            np.testing.assert_array_equal(row, reference)
        np.testing.assert_array_equal(np.asarray(expected[0])[..., 0], depths)
        for row in (2, 3):
            np.testing.assert_array_equal(np.asarray(expected[row]), colours)
