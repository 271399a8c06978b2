# SPDX-License-Identifier: Apache-2.0
"""Decoded images as outputs: the (emulated) GPU, the CPU and Pillow write them directly into the delivered memory."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from stoker import fn, pipeline_def

OPTIONS = ({"quality": 90}, {"progressive": True}, {"format": "PNG"}, {"quality": 50, "subsampling": 2})


def files_in(place, sizes):
    rng = np.random.default_rng(6)
    paths = []
    for i, (height, width) in enumerate(sizes):
        pixels = rng.integers(0, 256, (height, width, 3), np.uint8)
        options = {"format": "JPEG", **OPTIONS[i % len(OPTIONS)]}
        paths.append(str(place / f"{i}.jpg"))
        Image.fromarray(pixels).save(paths[-1], **options)
    return paths


@pipeline_def(batch_size=4, num_threads=2, seed=5)
def decoding(files, device, read_as_well):
    data, _ = fn.readers.file(files=files, random_shuffle=True)
    x = fn.decoders.image(data, device=device)
    return (x, fn.cast(x, dtype=np.int16), x) if read_as_well else x


@pytest.mark.parametrize("load", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("read_as_well", [False, True])
@pytest.mark.parametrize("sizes", [[(17, 23)] * 8, [(9 + 5 * i, 33 - 3 * i) for i in range(8)]], ids=["even", "ragged"])
def test_rows_of_all_decoders_are_handed_over(emulated_gpu, tmp_path, sizes, read_as_well, load):
    files = files_in(tmp_path, sizes)
    with (
        decoding(files, "mixed", read_as_well, device_id=0, gpu_decoder_load=load) as pipe,
        decoding(files, "cpu", read_as_well) as plain,
    ):
        stages = [node for step in pipe.build().execution.plan.steps if step.on_gpu for node in [step.node]]
        assert len(stages) == (3 if read_as_well else 1), "only an image that is read and delivered is copied"
        for _ in range(4):
            for got, want in zip(pipe.run(), plain.run(), strict=True):
                for a, b in zip(got.as_cpu(), want, strict=True):
                    np.testing.assert_array_equal(a, b)
        decoded = pipe.report().decoding
    assert decoded.rows_on_cpu > 0 and (decoded.rows_on_gpu > 0) == (load > 0)
