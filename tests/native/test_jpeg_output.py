# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of the JPEG decoder: memory of callers, planes, headers, wide and multi-picture files."""

from __future__ import annotations

import io

import jpeg_progressive_writer as pw
import jpeg_writer as jw
import numpy as np
import pytest
from PIL import Image
from test_jpeg import FACTORS, check, check_windows, decode, encode, info, picture, pillow

from stoker.native import _native

decode_into = _native.jpeg.jpeg_decode_into
FORMATS = {"RGB": 3, "BGR": 3, "GRAY": 1, "YCbCr": 3, "ANY": 3}


@pytest.mark.parametrize("scale", [1, 2, 8])
@pytest.mark.parametrize("format", FORMATS)
def test_the_callers_rows_may_lie_apart(format, scale):
    data = encode(picture(np.random.default_rng(0), 61, 43), subsampling=2)
    whole, _ = decode(data, format=format, scale=scale)
    height, width, channels = whole.shape
    memory = np.full((height + 2, (width + 5) * channels), 7, np.uint8)
    out = memory[1:-1, : width * channels].reshape(height, width, channels, copy=False)
    assert np.shares_memory(out, memory)
    assert decode_into(data, out, format=format, scale=scale) == "ok"
    np.testing.assert_array_equal(out, whole)
    out[:] = 7
    assert (memory == 7).all()  # no other byte changed


def test_a_window_into_the_callers_memory():
    data = encode(picture(np.random.default_rng(1), 61, 43), subsampling=1)
    whole, _ = decode(data)
    memory = np.zeros((43, 61, 3), np.uint8)
    assert decode_into(data, memory[5:20, 7:33], window=(7, 5, 33, 20)) == "ok"
    expected = np.zeros_like(whole)
    expected[5:20, 7:33] = whole[5:20, 7:33]
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize(
    "out",
    [np.zeros((43, 61, 1), np.uint8), np.zeros((42, 61, 3), np.uint8), np.zeros((43, 122, 3), np.uint8)[:, ::2],
     np.zeros((43, 61, 6), np.uint8)[..., ::2], np.zeros((43, 61, 3), np.uint8)[::-1]],
)  # fmt: skip
def test_memory_that_does_not_fit_is_refused(out):
    with pytest.raises(ValueError, match="expected `out`"):
        decode_into(encode(picture(np.random.default_rng(2), 61, 43)), out)


@pytest.mark.parametrize("name", ["444", "420", "gray", "rgb", "progressive", "scans"])
@pytest.mark.parametrize("scale", [1, 4])
def test_planes_are_those_of_ycbcr(name, scale):
    rng = np.random.default_rng(3)
    data = {
        "444": lambda: jw.random_file(rng, 37, 29, FACTORS[-2]),
        "420": lambda: jw.random_file(rng, 37, 29, FACTORS[-1]),
        "gray": lambda: jw.random_file(rng, 37, 29, [(1, 1)]),
        "rgb": lambda: jw.random_file(rng, 37, 29, FACTORS[-2], app=jw.adobe(0)),
        "progressive": lambda: pw.random_file(rng, 37, 29, FACTORS[-1]),
        "scans": lambda: jw.random_file(rng, 37, 29, FACTORS[-1], scans=[[0], [1], [2]]),
    }[name]()
    pixels, _ = decode(data, format="YCbCr", scale=scale)
    planes, status = decode(data, format="PLANES", scale=scale)
    assert status == "ok"
    np.testing.assert_array_equal(planes, pixels.transpose(2, 0, 1))
    x1, y1 = pixels.shape[1], pixels.shape[0]
    part, _ = decode(data, window=(2, 3, x1, y1 - 1), format="PLANES", scale=scale)
    np.testing.assert_array_equal(part, planes[:, 3 : y1 - 1, 2:])
    out = np.zeros_like(planes)
    assert decode_into(data, out, format="PLANES", scale=scale) == "ok"
    np.testing.assert_array_equal(out, planes)
    with pytest.raises(ValueError, match="planes without gaps"):
        decode_into(data, np.zeros((3, y1 + 1, x1), np.uint8)[:, 1:], format="PLANES", scale=scale)


def test_inks_have_no_planes():
    data = jw.random_file(np.random.default_rng(4), 20, 20, [(1, 1)] * 4)
    for format in ("YCbCr", "PLANES"):
        assert decode(data, format=format)[1] == "unsupported"


@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_the_largest_width_and_height(subsampling, progressive):
    rng = np.random.default_rng(5)
    for size in ((65500, 9), (9, 65500)):
        data = encode(picture(rng, *size), subsampling=subsampling, progressive=progressive)
        check(data)
        check_windows(data, rng, 3)
        pixels, _ = decode(data, scale=8)
        assert pixels.shape[:2] == (-(-size[1] // 8), -(-size[0] // 8))


def test_wider_files_fall_back():
    data = bytearray(encode(picture(np.random.default_rng(6), 20, 20)))
    at = data.index(b"\xff\xc0")
    data[at + 7 : at + 9] = (65501).to_bytes(2, "big")
    assert info(bytes(data))["support"] == "handover"
    assert "65500" in info(bytes(data))["reason"]


def test_the_first_of_several_pictures():
    rng = np.random.default_rng(7)
    pictures = [picture(rng, 50, 40), picture(rng, 33, 70), picture(rng, 20, 20)]
    file = io.BytesIO()
    pictures[0].save(file, "MPO", save_all=True, append_images=pictures[1:])
    data = file.getvalue()
    image = Image.open(io.BytesIO(data))
    assert (image.format, image.n_frames) == ("MPO", 3)
    check(data)
    check_windows(data, rng)
    assert (info(data)["width"], info(data)["height"]) == (50, 40)
    # Data after the end of the first image do not matter, in any combination.
    np.testing.assert_array_equal(decode(encode(pictures[0]) + encode(pictures[1]))[0], pillow(encode(pictures[0])))


def skippable(data: bytes) -> tuple[int, list[tuple[int, int]]]:
    """Return the offset of the first scan's data, and the payloads before it that the header does not depend on."""
    spans, at = [], 2
    while True:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if marker == 0xDA:
            return at + 2 + length, spans
        if marker in (0xE2, 0xED, 0xFE):
            spans.append((at + 4, at + 2 + length))
        if marker == 0xDB:
            spans += [(k + 1, k + 65) for k in range(at + 4, at + 2 + length, 65)]
        if marker == 0xC4:
            k = at + 4
            while k < at + 2 + length:
                symbols = sum(data[k + 1 : k + 17])
                spans.append((k + 17, k + 17 + symbols))
                k += 17 + symbols
        at += 2 + length


def test_a_header_takes_a_few_hundred_bytes():
    """The header reader depends on no profile, thumbnail, table, or pixel."""
    rng = np.random.default_rng(8)
    exif = Image.Exif()
    exif[0x0112] = 6
    profile = rng.integers(0, 256, 45_000, np.uint8).tobytes()
    data = encode(picture(rng, 300, 200), exif=exif, icc_profile=profile, comment=b"c" * 5000)
    start, spans = skippable(data)
    needed = start - sum(end - begin for begin, end in spans)
    assert start > 50_000
    assert needed < 500
    header = info(data)
    assert (header["width"], header["height"], header["components"], header["orientation"]) == (300, 200, 3, 6)
    damaged = bytearray(data[:start])  # no entropy-coded byte
    for begin, end in spans:
        damaged[begin:end] = rng.integers(0, 256, end - begin, np.uint8).tobytes()
    assert info(bytes(damaged)) == header
