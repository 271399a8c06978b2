# SPDX-License-Identifier: Apache-2.0
"""Truncated files have the pixels of Pillow with ``LOAD_TRUNCATED_IMAGES``, wherever they end."""

from __future__ import annotations

from typing import Any

import jpeg_progressive_writer as pw
import jpeg_writer as jw
import numpy as np
import pytest
from test_jpeg import FACTORS, decode, encode, info, isa, lenient, picture, scan_start
from test_jpeg_scans import turbo

__all__ = ["isa"]


def _ends(data: bytes, step: int = 1) -> range:
    return range(scan_start(data), len(data) - 1, step)


def _check(data: bytes, rng: np.random.Generator, step: int = 1) -> int:
    """Compare all truncated forms; return the number of those whose pixels are not the whole file's."""
    whole, differ = decode(data)[0], 0
    for end in _ends(data, step):
        cut = data[:end]
        expected = lenient(cut)
        assert expected is not None
        pixels, status = decode(cut)
        assert status in ("truncated", "corrupt"), end
        np.testing.assert_array_equal(pixels, expected, err_msg=f"{end} of {len(data)} bytes")
        differ += not np.array_equal(pixels, whole)
        if end % 16 == 0:
            height, width = pixels.shape[:2]
            x0, y0 = int(rng.integers(width)), int(rng.integers(height))
            x1, y1 = int(rng.integers(x0, width)) + 1, int(rng.integers(y0, height)) + 1
            part, _ = decode(cut, window=(x0, y0, x1, y1))
            np.testing.assert_array_equal(part, expected[y0:y1, x0:x1], err_msg=f"{end}: {(x0, y0, x1, y1)}")
    return differ


OPTIONS: list[dict[str, Any]] = [{}, {"restart_marker_blocks": 2}, {"restart_marker_rows": 1}]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_every_byte_of_a_file(subsampling: int, progressive: bool, options: dict[str, Any]) -> None:
    rng = np.random.default_rng([subsampling, progressive])
    size = (49, 34) if progressive else (37, 43)
    data = encode(picture(rng, *size), subsampling=subsampling, progressive=progressive, quality=70, **options)
    assert _check(data, rng) > 100


@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("kind", ["L", "CMYK"])
def test_every_byte_of_gray_and_of_inks(kind: str, progressive: bool) -> None:
    rng = np.random.default_rng(3)
    data = encode(picture(rng, 40, 33).convert(kind), progressive=progressive)
    for end in _ends(data):
        expected = lenient(data[:end])
        assert expected is not None
        pixels, status = decode(data[:end])
        assert status in ("truncated", "corrupt")
        if expected.any() and pixels.any():  # Pillow: zeros, which are white in CMYK
            np.testing.assert_array_equal(pixels, expected, err_msg=str(end))


@pytest.mark.parametrize("factors", FACTORS, ids=str)
@pytest.mark.parametrize("restart", [0, 3])
def test_odd_sampling(factors: list[tuple[int, int]], restart: int) -> None:
    """Heights and widths that leave whole blocks of the last MCUs outside of the image."""
    rng = np.random.default_rng([len(factors), restart])
    for size in [(1, 1), (9, 40), (70, 41)]:
        for writer in (pw.random_file, jw.random_file):
            data = writer(rng, *size, factors, restart=restart, keep=0.3, size=40)
            _check(data, rng, 1 + (len(data) - scan_start(data)) // 60)


@pytest.mark.parametrize("size", [(1, 1), (8, 8), (9, 9), (24, 17), (33, 90)])
def test_scripts_that_add_precision(size: tuple[int, int]) -> None:
    """Estimates depend on the precision of all scans so far, and on the last row with data."""
    rng = np.random.default_rng(size)
    for factors in (FACTORS[-1], [(1, 1)], [(1, 1)] * 3):
        script = pw.full_script(len(factors))
        data = pw.random_file(rng, *size, factors, script, size=30)
        _check(data, rng, 1 + (len(data) - scan_start(data)) // 200)


@pytest.mark.parametrize("scans", [[[0], [1], [2]], [[1], [0, 2], [0, 1]]], ids=str)
def test_sequential_files_of_several_scans(scans: list[list[int]]) -> None:
    rng = np.random.default_rng(5)
    data = jw.random_file(rng, 40, 33, FACTORS[-1], scans=scans, size=60)
    _check(data, rng, 3)


@pytest.mark.parametrize("scale", [2, 4, 8])
def test_smaller_scales(scale: int) -> None:
    rng = np.random.default_rng(scale)
    data = encode(picture(rng, 97, 66), progressive=True, subsampling=2)
    compared = 0
    for end in _ends(data, 23):
        cut = data[:end]
        pixels, status = decode(cut, scale=scale)
        whole = lenient(cut)
        assert status == "truncated" and whole is not None
        if whole.any():  # TurboJPEG never waits for the rest of a marker segment
            np.testing.assert_array_equal(pixels, turbo(cut, scale, strict=False), err_msg=str(end))
            compared += 1
    assert compared > 30


def test_luma_alone_is_smoothed_as_in_colours() -> None:
    rng = np.random.default_rng(7)
    data = encode(picture(rng, 60, 50), progressive=True, subsampling=2)
    for end in _ends(data, 11):
        gray, _ = decode(data[:end], format="GRAY")
        np.testing.assert_array_equal(gray[..., 0], decode(data[:end], format="YCbCr")[0][..., 0], err_msg=str(end))


def test_a_script_that_ends_early_is_smoothed_only_in_truncated_files() -> None:
    """Other libjpegs smooth less, so whole files that need it stay with the other decoder."""
    rng = np.random.default_rng(8)
    data = pw.random_file(rng, 60, 44, FACTORS[-1], pw.full_script(3)[:-1])
    assert info(data)["support"] == "native"
    assert decode(data)[1] == "unsupported"
    cut = data[:-2]
    pixels, status = decode(cut)
    assert status == "truncated"
    np.testing.assert_array_equal(pixels, lenient(cut))
