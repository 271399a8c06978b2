# SPDX-License-Identifier: Apache-2.0
"""CLAHE: colours, layouts, and what is refused. OpenCV's bits are in tests/compat."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, UnsupportedError, eager
from stoker.ops.image._lab import lab_table, to_lab, to_rgb

TILES = {"tiles_x": 4, "tiles_y": 3, "clip_limit": 2.0}


def picture(shape: tuple[int, ...] = (30, 41, 3)) -> Any:
    return np.clip(np.random.default_rng(3).normal(90, 30, shape), 0, 255).astype(np.uint8)


def test_the_table_of_colours() -> None:
    """All 2**24 colours were compared with OpenCV's, both ways, with the table of this checksum."""
    assert zlib.crc32(lab_table().tobytes()) == 2460657721
    gray = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 3, 1)
    assert (to_lab(gray)[:, 1:] == 128).all() and (np.diff(to_lab(gray)[:, 0].astype(int)) >= 0).all()
    assert np.abs(to_rgb(to_lab(gray)).astype(int) - gray).max() <= 1


def test_channels_by_themselves() -> None:
    x = picture((30, 41, 4))
    found = np.asarray(eager.clahe(x, luma_only=False, **TILES))
    for k in range(4):
        np.testing.assert_array_equal(found[..., k], eager.clahe(np.ascontiguousarray(x[..., k]), **TILES))


def test_bins_have_no_effect() -> None:
    x = picture()
    np.testing.assert_array_equal(eager.clahe(x, bins=64, **TILES), eager.clahe(x, **TILES))


def test_a_plain_image_without_a_limit_is_white() -> None:
    """The table of a tile with one value maps it to 255, as in OpenCV."""
    plain = np.full((12, 12), 50, np.uint8)
    assert (np.asarray(eager.clahe(plain, tiles_x=2, tiles_y=2, clip_limit=0.0)) == 255).all()
    limited = np.asarray(eager.clahe(plain, tiles_x=2, tiles_y=2, clip_limit=1.0))
    assert (limited == 64).all()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: eager.clahe(x, tiles_x=0, tiles_y=2, clip_limit=1.0), ArgumentError, "1 to 256 as `tiles_x`"),
        (lambda x: eager.clahe(x, tiles_x=2, tiles_y=300, clip_limit=1.0), ArgumentError, "1 to 256 as `tiles_y`"),
        (lambda x: eager.clahe(x, tiles_x=2, tiles_y=2, clip_limit=-1.0), ArgumentError, "`clip_limit`"),
        (lambda x: eager.clahe(x, bins=100, **TILES), ArgumentError, "power of 2"),
        (lambda x: eager.clahe(x[..., :2], **TILES), (ArgumentError, DataError), "1 channel, or 3 of RGB"),
        (lambda x: eager.clahe(x[:0], **TILES), (ArgumentError, DataError), "image with pixels"),
        (lambda x: eager.clahe(x.astype(np.uint16), **TILES), UnsupportedError, "Cast it first"),
    ],
)
def test_invalid_arguments_are_refused(call: Any, error: Any, text: str) -> None:
    """DALI's process ends with no tiles, and does not return for an image without pixels."""
    with pytest.raises(error, match=text):
        call(picture())
