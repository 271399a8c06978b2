# SPDX-License-Identifier: Apache-2.0
"""JPEG decoders of a pipeline on the null device, with kernels on the emulation of threads: several epochs of the same
files, with and without what is kept about them."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from stoker import ArgumentError, Pipeline, fn, pipeline_def

FILES = 4
ENTRY_BYTES = 6176


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(2)
    paths = []
    for i in range(FILES):
        out = io.BytesIO()
        pixels = rng.integers(0, 256, (12, 12 + i, 3), np.uint8).repeat(3, 0).repeat(3, 1)
        Image.fromarray(pixels).save(out, "JPEG", quality=90, subsampling=2 * (i % 2), progressive=i == 3)
        paths.append(str(place / f"{i}.jpg"))
        with open(paths[-1], "wb") as file:
            file.write(out.getvalue())
    return paths


@pipeline_def(batch_size=2, num_threads=2, seed=3, gpu_decoder_load=1.0)
def cropping(files, device):
    data, _ = fn.readers.file(files=files, random_shuffle=True)
    x = fn.decoders.image_random_crop(data, device=device, random_area=(0.1, 0.5))
    return fn.cast(x, dtype=np.int16)


def same(pipe, plain, batches):
    for _ in range(batches):
        for got, want in zip(pipe.run()[0].as_cpu(), plain.run()[0], strict=True):
            np.testing.assert_array_equal(got, want)
    return pipe.report().decoding


def test_later_epochs_know_the_files(emulated_gpu, files):
    options = {"device_id": 0, "gpu_jpeg_index": 64 * ENTRY_BYTES, "gpu_memory_limit": 1 << 29}
    with cropping(files, "mixed", **options) as pipe, cropping(files, "cpu") as plain:
        decoded = same(pipe, plain, 3 * FILES // 2)
    assert decoded.rows_on_cpu == 0
    # One is progressive. Batches that are made ahead do not know yet what those before them find.
    assert decoded.known.files == FILES - 1 and decoded.known.wrong == 0
    assert decoded.known.rows >= FILES - 1 and decoded.known.bytes == 64 * ENTRY_BYTES
    assert f"rows of known files ({FILES - 1} known" in str(decoded)


def test_nothing_is_kept_unless_asked_for(emulated_gpu, files):
    with cropping(files[:2], "mixed", device_id=0) as pipe, cropping(files[:2], "cpu") as plain:
        assert same(pipe, plain, 2).known is None


@pytest.mark.parametrize("options", [{"gpu_jpeg_index": -1}, {"gpu_jpeg_index": True}, {"gpu_jpeg_index": 1.5},
                                     {"gpu_jpeg_index": 10, "gpu_memory_limit": 10}], ids=str)  # fmt: skip
def test_impossible_bounds_are_refused(options):
    with pytest.raises(ArgumentError, match="gpu_jpeg_index"):
        Pipeline(**options)
