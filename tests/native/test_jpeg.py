# SPDX-License-Identifier: Apache-2.0
"""The JPEG decoder against Pillow (libjpeg-turbo), bit for bit."""

from __future__ import annotations

import io
import os
from pathlib import Path

import jpeg_writer as jw
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageFile

from stoker.native import _native

info, decode = _native.jpeg.jpeg_info, _native.jpeg.jpeg_decode
ISAS = tuple(_native.instruction_sets())


@pytest.fixture(params=ISAS, autouse=True)
def isa(request):
    before = _native.get_isa()
    _native.set_isa(request.param)
    yield request.param
    _native.set_isa(before)


def pillow(data: bytes, mode: str = "RGB") -> np.ndarray:
    image = Image.open(io.BytesIO(data))
    if mode == "YCbCr" and image.mode == "RGB":
        image.draft("YCbCr", None)
    out = np.asarray(image if mode == "YCbCr" else image.convert(mode))
    return out if out.ndim == 3 else out[:, :, None]


def picture(rng: np.random.Generator, width: int, height: int, channels: int = 3) -> Image.Image:
    """Return smooth shapes plus noise, so that blocks of every kind occur."""
    y, x = np.mgrid[:height, :width]
    planes = [
        128 + 100 * np.sin(x / rng.uniform(3, 40) + y / rng.uniform(3, 40)) + rng.normal(0, 20, x.shape) * (x > y)
        for _ in range(channels)
    ]
    pixels = np.stack(planes, -1).clip(0, 255).astype(np.uint8)
    return Image.fromarray(pixels if channels == 3 else pixels[:, :, 0])


def encode(image: Image.Image, **options) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", **options)
    return out.getvalue()


def check(data: bytes, mode: str = "RGB", wanted: str = "RGB") -> np.ndarray:
    pixels, status = decode(data, format=wanted)
    expected = pillow(data, mode)
    assert status == "ok"
    np.testing.assert_array_equal(pixels, expected)
    return expected


def check_windows(data: bytes, rng: np.random.Generator, count: int = 8, format: str = "RGB") -> None:
    whole, status = decode(data, format=format)
    height, width = whole.shape[:2]
    for _ in range(count):
        x0, y0 = int(rng.integers(width)), int(rng.integers(height))
        x1, y1 = int(rng.integers(x0, width)) + 1, int(rng.integers(y0, height)) + 1
        pixels, part = decode(data, window=(x0, y0, x1, y1), format=format)
        assert part == status
        np.testing.assert_array_equal(pixels, whole[y0:y1, x0:x1], err_msg=f"window {(x0, y0, x1, y1)}")


SIZES = [(1, 1), (1, 40), (40, 1), (2, 3), (3, 2), (5, 5), (7, 9), (8, 8), (16, 16), (17, 33), (65, 31), (130, 67)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("quality", [5, 50, 95])
def test_equals_pillow(size, subsampling, quality):
    rng = np.random.default_rng([*size, subsampling, quality])
    data = encode(picture(rng, *size), subsampling=subsampling, quality=quality)
    check(data)
    check(data, "YCbCr", "YCbCr")
    check_windows(data, rng)


@pytest.mark.parametrize("quality", [*range(5, 100, 10), 100])
@pytest.mark.parametrize("optimize", [False, True])
def test_qualities(quality, optimize):
    rng = np.random.default_rng(quality)
    for subsampling in (0, 2):
        check(encode(picture(rng, 203, 117), quality=quality, optimize=optimize, subsampling=subsampling))


@pytest.mark.parametrize("size", SIZES)
def test_grayscale(size):
    rng = np.random.default_rng(size)
    data = encode(picture(rng, *size, 1), quality=80)
    check(data)
    check(data, "L", "GRAY")
    check(data, "L", "ANY")
    ycc, _ = decode(data, format="YCbCr")
    np.testing.assert_array_equal(ycc[:, :, 0], pillow(data, "L")[:, :, 0])
    assert (ycc[:, :, 1:] == 128).all()
    check_windows(data, rng)


@pytest.mark.parametrize("subsampling", [0, 1, 2])
def test_formats(subsampling):
    rng = np.random.default_rng(1)
    data = encode(picture(rng, 61, 43), subsampling=subsampling)
    rgb, _ = decode(data)
    np.testing.assert_array_equal(decode(data, format="BGR")[0], rgb[:, :, ::-1])
    np.testing.assert_array_equal(decode(data, format="ANY")[0], rgb)
    np.testing.assert_array_equal(decode(data, format="GRAY")[0][:, :, 0], pillow(data, "YCbCr")[:, :, 0])
    for format in ("BGR", "GRAY", "YCbCr"):
        check_windows(data, rng, format=format)


RESTARTS = [{"restart_marker_blocks": 1}, {"restart_marker_blocks": 5}, {"restart_marker_rows": 1}]


@pytest.mark.parametrize("restart", RESTARTS, ids=str)
@pytest.mark.parametrize("subsampling", [0, 2])
def test_restart_markers(restart, subsampling):
    rng = np.random.default_rng(2)
    data = encode(picture(rng, 130, 70), subsampling=subsampling, **restart)
    check(data)
    check_windows(data, rng)


FACTORS = [
    [(4, 1), (1, 1), (1, 1)],
    [(4, 2), (1, 1), (1, 1)],
    [(1, 2), (1, 1), (1, 1)],
    [(3, 1), (1, 1), (1, 1)],
    [(1, 3), (1, 1), (1, 1)],
    [(2, 2), (2, 1), (1, 2)],
    [(2, 2), (1, 2), (1, 2)],
    [(1, 1), (2, 2), (2, 1)],
    [(1, 4), (1, 2), (1, 1)],
    [(2, 1), (2, 1), (1, 1)],
    [(1, 1), (1, 1), (1, 1)],
    [(2, 2), (1, 1), (1, 1)],
]


@pytest.mark.parametrize("factors", FACTORS, ids=str)
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (33, 9), (70, 75)])
def test_odd_sampling(factors, size):
    rng = np.random.default_rng(size)
    data = jw.random_file(rng, *size, factors)
    check(data)
    check_windows(data, rng)


@pytest.mark.parametrize("factors", [FACTORS[-1], FACTORS[-2], FACTORS[5]], ids=str)
@pytest.mark.parametrize("scans", [[[0], [1], [2]], [[0], [1, 2]], [[0, 1], [2]], [[2], [1], [0]]], ids=str)
@pytest.mark.parametrize("restart", [0, 3])
def test_several_scans(factors, scans, restart):
    rng = np.random.default_rng(3)
    data = jw.random_file(rng, 83, 61, factors, scans=scans, restart=restart)
    check(data)
    check_windows(data, rng)
    gray, status = decode(data, format="GRAY")
    assert status == "ok"
    np.testing.assert_array_equal(gray[:, :, 0], decode(data, format="YCbCr")[0][:, :, 0])


def test_gray_file_with_sampling_factors():
    rng = np.random.default_rng(4)
    check(jw.random_file(rng, 50, 37, [(2, 2)]))


@pytest.mark.parametrize("size", [1, 40, 2000])
def test_wide_quantisers_and_overflow(size):
    """For values far outside an encoder's range, results wrap and saturate as in libjpeg-turbo's x86 code."""
    rng = np.random.default_rng(size)
    for limit in (300, 5000, 65535):
        quantisers = {0: rng.integers(1, limit, (8, 8))}
        for keep in (0.02, 0.3, 1.0):
            data = jw.random_file(
                rng, 64, 48, FACTORS[-2], quantisers=quantisers, wide=True, size=size, keep=keep, sof=0xC1
            )
            check(data)


def beyond_16_bits(rng: np.random.Generator, factors, **options) -> bytes:
    """Return a file whose coefficients exceed 16 bits in the passes of a transform.

    It has blocks with only DC (some with codes for zeros), with one row, with one row and the fourth, and with
    coefficients that become zero only by dequantization.
    """
    quantisers = {0: np.where(rng.random((8, 8)) < 0.2, 32768, rng.integers(1, 3000, (8, 8)))}
    quantisers[0][0, 0] = rng.integers(8, 60)
    components, layout = jw.random_components(
        rng, 64, 48, factors, quantisers=quantisers, wide=True, sof=0xC1, size=600, **options
    )
    for c in components:
        kinds = rng.integers(0, 5, c.blocks.shape[:2])
        c.blocks[kinds == 0] = 0
        c.blocks[kinds == 1, 1:] = 0
        c.blocks[kinds == 2, 1:4] = c.blocks[kinds == 2, 5:] = 0
        c.blocks[kinds == 3] &= -2
        c.blocks[:, :, 0, 0] = rng.integers(-1000, 1000, c.blocks.shape[:2])
    return jw.write(components, layout)


@pytest.mark.parametrize("scale", [1, 2, 4, 8])
@pytest.mark.parametrize("idle_runs", [False, True])
def test_overflow_at_smaller_scales(scale, idle_runs):
    """Overflow follows libjpeg-turbo's x86 code as in full size: 16 bits in some operations, 32 bits in others."""
    rng = np.random.default_rng(scale)
    for factors in ([(1, 1)], [(1, 1)] * 3, [(2, 2), (1, 1), (1, 1)]):
        for _ in range(8):
            data = beyond_16_bits(rng, factors, idle_runs=idle_runs)
            image = Image.open(io.BytesIO(data))
            image.draft(None, (64 // scale, 48 // scale))
            pixels, status = decode(data, format="ANY", scale=scale)
            assert status == "ok"
            np.testing.assert_array_equal(pixels, np.asarray(image).reshape(pixels.shape))


@pytest.mark.parametrize(
    ("ids", "app"), [((82, 71, 66), b""), ((1, 2, 3), jw.adobe(0)), ((1, 2, 3), jw.adobe(1)), ((5, 6, 7), b"")]
)
def test_colour_decision(ids, app):
    rng = np.random.default_rng(5)
    data = jw.random_file(rng, 40, 40, FACTORS[-2], ids=ids, app=app)
    check(data)
    for format in ("GRAY", "BGR", "YCbCr"):
        check_windows(data, rng, format=format)


def test_equal_component_ids():
    check(jw.random_file(np.random.default_rng(6), 40, 40, FACTORS[-1], ids=(0, 0, 0)))


def test_standard_tables_are_supplied():
    data = encode(picture(np.random.default_rng(7), 64, 64, 3))
    at = 2
    out = data[:2]
    while data[at + 1] != 0xDA:
        length = 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at + 1] != 0xC4:
            out += data[at : at + length]
        at += length
    assert len(out) + len(data) - at < len(data)
    np.testing.assert_array_equal(decode(out + data[at:])[0], decode(data)[0])


@pytest.mark.parametrize("swapped", [(0, 0), (0, 1), (2, 80), (160, 161)])
@pytest.mark.parametrize("component", [0, 1])
def test_codes_of_the_standard_and_similar_ones(component, swapped):
    """A code with the standard's counts and other symbols, which must not get the standard's table."""
    written = encode(picture(np.random.default_rng(7), 64, 64))
    tables = {number: jw.Table(list(counts), list(symbols)) for number, counts, symbols in ac_tables(written)}
    symbols = tables[component].symbols
    assert len(symbols) == 162
    first, second = swapped
    symbols[first], symbols[second] = symbols[second], symbols[first]
    check(jw.random_file(np.random.default_rng(8), 130, 90, [(1, 1)] * 3, ac=tables[component]))


def ac_tables(data: bytes):
    """Yield number, counts and symbols of each AC table of a JPEG file."""
    at = 2
    while data[at + 1] != 0xDA:
        length = int.from_bytes(data[at + 2 : at + 4], "big")
        rest = data[at + 4 : at + 2 + length] if data[at + 1] == 0xC4 else b""
        while rest:
            counts = rest[1:17]
            end = 17 + sum(counts)
            if rest[0] >> 4:
                yield rest[0] & 15, counts, rest[17:end]
            rest = rest[end:]
        at += 2 + length


@pytest.mark.parametrize("order", ["little", "big"])
def test_orientation(order):
    rng = np.random.default_rng(8)
    for value in range(10):
        data = jw.random_file(rng, 8, 8, [(1, 1)], app=jw.exif(value, order))
        assert info(data)["orientation"] == (value if 1 <= value <= 8 else 1)


def test_info_and_refusals():
    image = picture(np.random.default_rng(9), 30, 20)
    assert info(encode(image)) | {"reason": ""} == {
        "width": 30, "height": 20, "components": 3, "orientation": 1, "support": "native", "reason": "",
        "sampling": (2, 2),
    }  # fmt: skip
    assert info(encode(image, progressive=True))["support"] == "native"
    assert info(encode(image.convert("CMYK")))["components"] == 4
    arithmetic = info(encode(image).replace(b"\xff\xc0", b"\xff\xc9"))
    assert (arithmetic["support"], arithmetic["reason"][-17:]) == ("handover", "arithmetic coding")
    for data in (b"", b"\xff\xd8", b"GIF89a" + bytes(50), encode(image)[:100]):
        assert info(data)["support"] == "broken"
        with pytest.raises(ValueError, match=r"JPEG|end"):
            decode(data)
    for window in ((0, 0, 31, 20), (-1, 0, 5, 5), (5, 5, 5, 9), (9, 5, 5, 9)):
        with pytest.raises(ValueError, match="window"):
            decode(encode(image), window=window)


def lenient(data: bytes) -> np.ndarray | None:
    """Return Pillow's pixels of a damaged file, or None if Pillow gives up."""
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        return pillow(data)
    except (OSError, SyntaxError, ValueError, IndexError, TypeError, ZeroDivisionError, Image.DecompressionBombError):
        return None
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False


def scan_start(data: bytes) -> int:
    at = data.index(b"\xff\xda")
    return at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")


DAMAGE = [
    {"subsampling": 0}, {"subsampling": 1}, {"subsampling": 2}, {"subsampling": 2, "restart_marker_blocks": 3},
    {"subsampling": 0, "restart_marker_rows": 1}, {"subsampling": 2, "quality": 98, "optimize": True},
]  # fmt: skip


@pytest.mark.parametrize("options", DAMAGE, ids=str)
def test_truncated_scans(options):
    data = encode(picture(np.random.default_rng(10), 61, 45), **options)
    for end in range(scan_start(data) + 1, len(data), 37):
        pixels, status = decode(data[:end])
        assert status == "truncated"
        expected = lenient(data[:end])
        if expected is not None:
            np.testing.assert_array_equal(pixels, expected, err_msg=f"cut at {end}")


@pytest.mark.parametrize("options", DAMAGE, ids=str)
def test_damaged_scans(options):
    rng = np.random.default_rng(11)
    data = encode(picture(rng, 61, 45), **options)
    start = scan_start(data)
    for _ in range(150):
        damaged = bytearray(data)
        for _ in range(rng.integers(1, 6)):
            damaged[rng.integers(start, len(data) - 2)] = rng.integers(256)
        expected = lenient(bytes(damaged))
        pixels, _ = decode(bytes(damaged))
        if expected is not None and expected.shape == pixels.shape:
            np.testing.assert_array_equal(pixels, expected)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_bytes_are_safe(data):
    base = bytearray(encode(picture(np.random.default_rng(12), 33, 17), subsampling=2, restart_marker_blocks=2))
    for _ in range(data.draw(st.integers(1, 8))):
        base[data.draw(st.integers(2, len(base) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(base[: data.draw(st.integers(0, len(base)))])
    header = info(cut)
    if header["support"] == "native" and header["width"] * header["height"] < 1 << 22:
        pixels, status = decode(cut)
        assert pixels.shape == (header["height"], header["width"], 3)
        assert status in ("ok", "truncated", "corrupt", "unsupported")


def test_instruction_sets_agree():
    rng = np.random.default_rng(13)
    files = [encode(picture(rng, 211, 97), subsampling=s, quality=q) for s in (0, 1, 2) for q in (10, 90)]
    results = []
    for name in ISAS:
        _native.set_isa(name)
        results.append([decode(data)[0].tobytes() for data in files])
    assert all(one == results[0] for one in results)


@pytest.mark.skipif("STOKER_DATA" not in os.environ, reason="STOKER_DATA: a folder of JPEG files")
def test_photographs():
    rng = np.random.default_rng(14)
    for path in sorted(Path(os.environ["STOKER_DATA"]).rglob("*")):
        data = path.read_bytes() if path.suffix.lower() in (".jpg", ".jpeg") else b""
        if info(data)["support"] == "native":
            check(data)
            check_windows(data, rng, 3)
