# SPDX-License-Identifier: Apache-2.0
"""Values of more than 8 bits in GPU memory: a GPU widens the bytes of JPEG files, the CPU decodes other files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
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


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Write photographs of several kinds, and files of 16 bits."""
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(8)
    turned = Image.Exif()
    turned[0x0112] = 6
    for number, options in enumerate(({"subsampling": 0}, {"subsampling": 2}, {"progressive": True}, {"exif": turned})):
        pixels = rng.integers(0, 256, (30, 41 + number, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.jpg", **options)
    Image.fromarray(rng.integers(0, 256, (35, 29), np.uint8)).save(folder / "4.jpg")
    Image.fromarray(rng.integers(0, 256, (35, 29, 4), np.uint8), "CMYK").save(folder / "5.jpg")
    depths = rng.integers(0, 1 << 16, (31, 33, 3)).astype(np.uint16)
    (folder / "6.png").write_bytes(png(depths, 2, 16))
    (folder / "7.tif").write_bytes(tiff(depths, RGB, big=False))
    Image.fromarray(depths[..., 0]).save(folder / "8.png")
    Image.fromarray(depths.astype(np.uint8)).save(folder / "9.png")
    return sorted(map(str, folder.iterdir()))


@pytest.mark.parametrize("output_type", ["RGB", "BGR", "GRAY", "ANY_DATA", "YCbCr"])
@pytest.mark.parametrize("dtype", ["UINT16", "FLOAT", "FLOAT16", "INT32"])
def test_a_gpu_has_the_values_of_the_cpu(emulated_gpu: None, files: list[str], dtype: str, output_type: str) -> None:
    @pipeline_def(batch_size=len(files), num_threads=2, seed=1)
    def decoding(device: str) -> Any:
        data, _ = fn.readers.file(files=files)
        x = fn.decoders.image(data, device=device, output_type=getattr(types, output_type), dtype=getattr(types, dtype))
        return x, fn.crop(x, crop=(13, 18), crop_pos_x=0.8)

    @pipeline_def(batch_size=len(files), num_threads=2, seed=1)
    def cropping(device: str) -> Any:
        data, _ = fn.readers.file(files=files)
        return fn.decoders.image_crop(
            data, device=device, output_type=getattr(types, output_type), dtype=getattr(types, dtype), crop=(13, 18),
            crop_pos_x=0.8,
        )  # fmt: skip

    for load in (0.0, 0.5):  # the CPU's share of the rows
        with decoding("mixed", device_id=0, gpu_decoder_load=1 - load) as on_gpu, decoding("cpu") as on_cpu:
            (images, crops), (expected, windows) = on_gpu.run(), on_cpu.run()
            decoded = on_gpu.report().decoding
        with cropping("mixed", device_id=0, gpu_decoder_load=1 - load) as on_gpu:
            (again,) = on_gpu.run()
        if not load:
            assert decoded.rows_on_gpu == decoded.rows_on_cpu > 0  # five of the ten files
        for got, want in ((images, expected), (crops, windows), (again, windows)):
            for row, reference in zip(got.as_cpu(), want, strict=True):
                np.testing.assert_array_equal(row, reference)


def test_floats_of_files_of_16_bits_have_16_bits(emulated_gpu: None, files: list[str]) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def decoding() -> Any:
        data, _ = fn.readers.file(files=[files[6]])
        return fn.decoders.image(data, device="mixed", dtype=types.FLOAT)

    with decoding() as pipe:
        pixels = np.asarray(pipe.run()[0].as_cpu()[0])
    assert len(np.unique(np.rint(pixels.astype(np.float64) * 65535))) > 2000
