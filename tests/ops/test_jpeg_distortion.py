# SPDX-License-Identifier: Apache-2.0
"""JPEG distortion: Pillow's bytes for all sizes and qualities, and what is refused."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import ArgumentError, DataError, Pipeline, UnsupportedError, eager, fn
from stoker.native import _native

RNG = np.random.default_rng(6)


def saved(x: Any, quality: int) -> Any:
    file = io.BytesIO()
    Image.fromarray(x).save(file, "JPEG", quality=quality, subsampling="4:2:0")
    return np.asarray(Image.open(file))


def picture(height: int, width: int, noise: float) -> Any:
    ramp = np.indices((height, width)).sum(0)[..., None] * np.array([2, 3, 5])
    return np.clip(ramp % 256 + RNG.normal(0, noise, (height, width, 3)), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("isa", _native.instruction_sets())
@pytest.mark.parametrize("size", [(1, 1), (2, 2), (1, 9), (7, 5), (16, 16), (17, 33), (64, 63), (100, 133), (15, 2)])
def test_bytes_are_pillows(size: tuple[int, int], isa: str) -> None:
    before = _native.get_isa()
    _native.set_isa(isa)
    try:
        for quality in (1, 10, 49, 50, 75, 95, 100):
            for noise in (0.0, 6.0, 400.0):
                x = picture(*size, noise)
                found = np.asarray(eager.jpeg_compression_distortion(x, quality=quality))
                np.testing.assert_array_equal(found, saved(x, quality))
    finally:
        _native.set_isa(before)


def test_qualities_beyond_the_scale_are_clamped() -> None:
    x = picture(20, 30, 9.0)
    for quality, used in ((-3, 1), (0, 1), (101, 100)):
        np.testing.assert_array_equal(eager.jpeg_compression_distortion(x, quality=quality), saved(x, used))


def test_videos_views_and_a_quality_per_row() -> None:
    frames, qualities = np.stack([picture(20, 30, 9.0) for _ in range(2)]), (5, 90)
    pipe = Pipeline(batch_size=2, num_threads=2)
    with pipe:
        x = fn.external_source(source=lambda: frames, batch=False, dtype="uint8", ndim=4, layout="FHWC")
        quality = fn.external_source(
            source=lambda info: np.int32(qualities[info.idx_in_batch]), batch=False, dtype="int32", ndim=0
        )
        turned = fn.transpose(fn.flip(x, horizontal=1), perm=[0, 3, 1, 2])
        pipe.set_outputs(fn.jpeg_compression_distortion(turned, quality=quality))
    with pipe:
        (found,) = pipe.run()
        for row, q in zip(found, qualities, strict=True):
            want = np.stack([saved(np.ascontiguousarray(frame[:, ::-1]), q) for frame in frames])
            np.testing.assert_array_equal(np.asarray(row), want.transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: eager.jpeg_compression_distortion(x[..., 0]), (ArgumentError, DataError), "3 channels"),
        (lambda x: eager.jpeg_compression_distortion(x[:0]), (ArgumentError, DataError), "pixels on a side"),
        (lambda x: eager.jpeg_compression_distortion(x.astype(np.float32)), UnsupportedError, "Cast it first"),
        (
            lambda x: eager.jpeg_compression_distortion(np.broadcast_to(x[:1, :1], (1, 65501, 3))),
            (ArgumentError, DataError),
            "65500 pixels",
        ),
    ],
)
def test_invalid_inputs_are_refused(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(picture(8, 8, 1.0))
