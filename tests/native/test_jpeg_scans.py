# SPDX-License-Identifier: Apache-2.0
"""Progressive files, CMYK, several scans of a component, and smaller scales, against Pillow and TurboJPEG."""

from __future__ import annotations

import io

import jpeg_progressive_writer as pw
import jpeg_writer as jw
import numpy as np
import pytest
import simplejpeg
from PIL import Image
from test_jpeg import (
    FACTORS,
    SIZES,
    check,
    check_windows,
    decode,
    encode,
    info,
    isa,
    lenient,
    picture,
    pillow,
    scan_start,
)

__all__ = ["isa"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("quality", [5, 50, 95])
def test_progressive(size, subsampling, quality):
    rng = np.random.default_rng([*size, subsampling, quality])
    data = encode(picture(rng, *size), subsampling=subsampling, quality=quality, progressive=True)
    check(data)
    check(data, "YCbCr", "YCbCr")
    check_windows(data, rng)


@pytest.mark.parametrize("restart", [{"restart_marker_blocks": 1}, {"restart_marker_rows": 1}], ids=str)
def test_progressive_restarts(restart):
    rng = np.random.default_rng(1)
    data = encode(picture(rng, 130, 70), subsampling=2, progressive=True, **restart)
    check(data)
    check_windows(data, rng)


@pytest.mark.parametrize("factors", [*FACTORS, [(1, 1)], [(1, 1)] * 4, [(2, 2), (1, 1), (1, 1), (2, 2)]], ids=str)
@pytest.mark.parametrize("restart", [0, 3])
def test_random_scripts(factors, restart):
    rng = np.random.default_rng([len(factors), restart])
    for size in [(1, 1), (33, 9), (70, 75)]:
        for keep in (0.02, 0.3, 1.0):
            data = pw.random_file(rng, *size, factors, restart=restart, keep=keep, size=int(rng.choice([3, 40, 300])))
            check(data)
            check_windows(data, rng, 4)


def test_one_coefficient_per_scan():
    """The number of scans is the largest that a color file can sensibly have, one below the limit for the fallback."""
    rng = np.random.default_rng(2)
    script = [(range(3), 0, 0, 0, 0)] + [((c,), k, k, 0, 0) for k in range(1, 64) for c in range(3)]
    check(pw.random_file(rng, 40, 30, FACTORS[-1], script))
    many = [*script, *[((0,), 1, 1, 0, 0)] * 20]
    assert decode(pw.random_file(rng, 40, 30, FACTORS[-1], many))[1] == "unsupported"


@pytest.mark.parametrize("drop", range(1, 12))
def test_incomplete_scripts(drop):
    """Files that libjpeg would smooth fall back to Pillow. For the others, the pixels are equal."""
    rng = np.random.default_rng(drop)
    script = pw.full_script(3)
    data = pw.random_file(rng, 60, 44, FACTORS[-1], script[:-drop])
    pixels, status = decode(data)
    if drop < 3:
        assert status == "unsupported"
    if status != "unsupported":
        np.testing.assert_array_equal(pixels, pillow(data))
    only_low = [s for s in script if s[2] <= 5 or s[1] == 0]
    complete_low = [*only_low, *[((c,), 1, 9, 0, 0) for c in range(3)]]
    check(pw.random_file(rng, 60, 44, FACTORS[-1], complete_low))


def test_scans_against_the_rules():
    """Bands coded twice, refined without a first scan, in the wrong order: libjpeg only warns."""
    rng = np.random.default_rng(3)
    dc, band, rest = (range(3), 0, 0, 0, 0), (0, 1, 20, 0, 0), [((c,), 1, 63, 0, 0) for c in range(3)]
    twice = [dc, *rest, ((0,), *band[1:]), dc]
    refined = [dc, ((0,), 1, 63, 1, 0), *rest, ((1,), 1, 63, 1, 0), ((1,), 5, 63, 2, 1), ((1,), 1, 63, 1, 0)]
    shifted = [dc, *[((c,), 1, 63, 0, 13) for c in range(3)], *rest, ((2,), 1, 63, 14, 13), ((2,), 1, 63, 1, 0)]
    for script in (twice, refined, shifted, [*rest, dc]):
        for size in (4, 4000):
            data = pw.random_file(rng, 60, 44, FACTORS[-1], script, size=size)
            expected = pillow(data)
            np.testing.assert_array_equal(decode(data)[0], expected)
            np.testing.assert_array_equal(decode(data, window=(13, 10, 47, 44))[0], expected[10:44, 13:47])


# (component indices, first, last, before, shift)
IMPOSSIBLE = [
    ((0,), 0, 5, 0, 0), ((0,), 9, 4, 0, 0), ((0, 1), 1, 5, 0, 0),
    ((0,), 1, 5, 3, 1), ((0,), 1, 5, 0, 14), ((0,), 1, 64, 0, 0),
]  # fmt: skip


@pytest.mark.parametrize("scan", IMPOSSIBLE, ids=str)
def test_impossible_progressions(scan):
    data = bytearray(pw.random_file(np.random.default_rng(4), 20, 20, FACTORS[-1], [((0, 1, 2), 0, 0, 0, 0)]))
    indices, first, last, before, shift = scan
    head = bytes([len(indices)]) + b"".join(bytes([1 + i, 0]) for i in indices)
    at = data.rindex(b"\xff\xda")
    data[at : scan_start(bytes(data))] = jw.segment(0xDA, head + bytes([first, last, before << 4 | shift]))
    assert info(bytes(data))["support"] == "broken"
    with pytest.raises(OSError, match="broken"):
        pillow(bytes(data))


@pytest.mark.parametrize("restart", [0, 3])
@pytest.mark.parametrize("scans", [[[0], [0], [1], [2]], [[1], [0, 1, 2]], [[1], [0, 2], [0, 1]]], ids=str)
def test_sequential_scans_of_one_component_again(scans, restart):
    """A later scan overwrites the coefficients that it contains and keeps those that it leaves at zero."""
    rng = np.random.default_rng(5)
    for factors in (FACTORS[-1], FACTORS[-2]):
        components, layout = jw.random_components(rng, 70, 45, factors, scans=scans, restart=restart, keep=0.2)
        others, _ = jw.random_components(rng, 70, 45, factors, keep=0.05)
        first, second = (jw.write(c, layout) for c in (components, others))
        starts = [[i for i in range(len(d)) if d[i : i + 2] == b"\xff\xda"] for d in (first, second)]
        data = first[: starts[0][-1]] + second[starts[1][-1] :]
        check(data)
        check_windows(data, rng)
        check(first)


@pytest.mark.parametrize(
    "factors", [[(1, 1)] * 4, [(2, 2), (1, 1), (1, 1), (2, 2)], [(2, 1), (1, 1), (1, 1), (1, 1)]], ids=str
)
@pytest.mark.parametrize("app", [b"", jw.adobe(0), jw.adobe(2), jw.adobe(1)], ids=["none", "0", "2", "1"])
def test_inks(factors, app):
    rng = np.random.default_rng(6)
    data = jw.random_file(rng, 60, 43, factors, app=app, size=150)
    expected = check(data)
    check(data, wanted="ANY")
    np.testing.assert_array_equal(decode(data, format="BGR")[0], expected[:, :, ::-1])
    gray = np.asarray(Image.open(io.BytesIO(data)).convert("RGB").convert("L"))
    np.testing.assert_array_equal(decode(data, format="GRAY")[0][:, :, 0], gray)
    assert decode(data, format="YCbCr")[1] == "unsupported"
    for format in ("RGB", "GRAY"):
        check_windows(data, rng, format=format)


@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_pillows_inks(subsampling):
    image = picture(np.random.default_rng(7), 70, 51).convert("CMYK")
    for progressive in (False, True):
        check(encode(image, subsampling=subsampling, progressive=progressive))


def turbo(data: bytes, scale: int, *, strict: bool = True) -> np.ndarray:
    height, width = simplejpeg.decode_jpeg_header(data)[:2]
    least = {"min_height": -(-height // scale), "min_width": -(-width // scale), "min_factor": 1}
    return simplejpeg.decode_jpeg(data, "RGB", fastdct=False, fastupsample=False, strict=strict, **least)


@pytest.mark.parametrize("scale", [2, 4, 8])
@pytest.mark.parametrize("size", [(16, 16), (17, 33), (65, 31), (130, 67), (211, 97)])
def test_scales(scale, size):
    rng = np.random.default_rng([scale, *size])
    for options in (
        {"subsampling": 0},
        {"subsampling": 1},
        {"subsampling": 2},
        {"subsampling": 2, "progressive": True},
    ):
        for quality in (5, 50, 95):
            data = encode(picture(rng, *size), quality=quality, **options)
            whole, status = decode(data, scale=scale)
            assert status == "ok"
            np.testing.assert_array_equal(whole, turbo(data, scale))
            check_scaled_windows(data, whole, scale, rng)


@pytest.mark.parametrize("factors", FACTORS, ids=str)
@pytest.mark.parametrize("scale", [2, 4, 8])
def test_scales_of_odd_sampling(factors, scale):
    rng = np.random.default_rng(scale)
    data = jw.random_file(rng, 90, 75, factors, size=20)
    whole, status = decode(data, scale=scale)
    assert status == "ok"
    if max(h * v for h, v in factors) <= 4 and factors in TURBO_FACTORS:
        np.testing.assert_array_equal(whole, turbo(data, scale))
    check_scaled_windows(data, whole, scale, rng)


# scales that TurboJPEG's own interface accepts
TURBO_FACTORS = [[(4, 1), (1, 1), (1, 1)], [(1, 2), (1, 1), (1, 1)], FACTORS[-1], FACTORS[-2]]


def check_scaled_windows(data: bytes, whole: np.ndarray, scale: int, rng: np.random.Generator) -> None:
    height, width = whole.shape[:2]
    for _ in range(4):
        x0, y0 = int(rng.integers(width)), int(rng.integers(height))
        x1, y1 = int(rng.integers(x0, width)) + 1, int(rng.integers(y0, height)) + 1
        np.testing.assert_array_equal(decode(data, window=(x0, y0, x1, y1), scale=scale)[0], whole[y0:y1, x0:x1])


@pytest.mark.parametrize("options", [{}, {"restart_marker_blocks": 3}], ids=str)
def test_damaged_progressive(options):
    rng = np.random.default_rng(8)
    data = encode(picture(rng, 61, 45), subsampling=2, progressive=True, **options)
    start, compared = scan_start(data), 0
    for _ in range(200):
        damaged = bytearray(data)
        for _ in range(rng.integers(1, 4)):
            damaged[rng.integers(start, len(data) - 2)] = rng.integers(256)
        expected = lenient(bytes(damaged))
        try:
            pixels, status = decode(bytes(damaged))
        except ValueError:
            assert expected is None
            continue
        if expected is None or expected.shape != pixels.shape or status in ("unsupported", "truncated"):
            continue
        np.testing.assert_array_equal(pixels, expected)
        compared += 1
    assert compared > 100
