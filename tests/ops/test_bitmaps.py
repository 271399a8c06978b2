# SPDX-License-Identifier: Apache-2.0
"""BMP and PNM files are decoded natively, with the pixels of the Pillow twin."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import pytest
from PIL import Image
from test_png import ANY, BGR, GRAY, RGB, YCBCR, decoded

from stoker import eager
from stoker.contract.errors import DataError
from stoker.contract.types import DType, ImageType
from stoker.native import _native
from stoker.ops.image._pillow_decoding import pillow_decode
from stoker.testing.tolerances import assert_exact

RANDOM = np.random.default_rng(5)
COLOURS = RANDOM.integers(0, 256, (13, 19, 3), np.uint8)


def saved(mode: str, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(COLOURS).convert(mode).save(out, kind, **options)
    return out.getvalue()


def bmp(
    bits: int,
    *,
    masks: tuple[int, ...] = (),
    top_down: bool = False,
    palette: bytes = b"",
    colours: int = 0,
    width: int = 5,
) -> bytes:
    height = 7
    header_bytes = 124 if masks else 40
    pitch = (width * bits + 31) // 32 * 4
    pixels = RANDOM.integers(0, 256, pitch * height, np.uint8).tobytes()
    body = struct.pack(
        "<IiiHHIIiiII", header_bytes, width, -height if top_down else height, 1, bits, 3 if masks else 0,
        len(pixels), 0, 0, colours, 0,
    )  # fmt: skip
    body += b"".join(struct.pack("<I", mask) for mask in masks)
    body = body.ljust(header_bytes, b"\0") + palette
    return b"BM" + struct.pack("<IHHI", 14 + len(body) + len(pixels), 0, 0, 14 + len(body)) + body + pixels


GRAY_PALETTE = bytes(x for i in range(256) for x in (i, i, i, 0))
FILES = {
    "bmp of colours": saved("RGB", "BMP"), "gray bmp": saved("L", "BMP"), "bmp with a palette": saved("P", "BMP"),
    "bmp with alpha": saved("RGBA", "BMP"), "bmp 24": bmp(24), "bmp 24 top down": bmp(24, top_down=True),
    "bmp 32": bmp(32), "bmp 32 with masks": bmp(32, masks=(0xFF0000, 0xFF00, 0xFF, 0)),
    "bmp 32 with alpha": bmp(32, masks=(0xFF0000, 0xFF00, 0xFF, 0xFF000000)),
    "bmp 8 gray": bmp(8, palette=GRAY_PALETTE), "bmp 8": bmp(8, palette=GRAY_PALETTE[::-1], top_down=True),
    "bmp 8 short": bmp(8, palette=bytes(range(40)), colours=10),
    "bmp 8 short gray": bmp(8, palette=GRAY_PALETTE[:40], colours=10),
    "pgm": saved("L", "PPM"), "ppm": saved("RGB", "PPM"),
    "pgm 16": b"P5\n# a comment\n19 13 65535\n" + RANDOM.integers(0, 256, 13 * 19 * 2, np.uint8).tobytes(),
    "ppm with comments": b"P6 # one\r19\t#two\n13 #\n255\n" + COLOURS.tobytes(),
}  # fmt: skip
FILES |= {
    f"{kind}, {largest}":
        f"{kind} 19 13 {largest}\n".encode() + RANDOM.bytes(13 * 19 * channels * (2 if largest > 255 else 1))
    for kind, channels in (("P5", 1), ("P6", 3)) for largest in (1, 7, 100, 254, 256, 1023, 4095, 40000, 65534, 65535)
}  # fmt: skip
COLOURS_16 = {name: data for name, data in FILES.items() if name.startswith("P6") and int(name[4:]) > 255}
UNUSUAL = {
    "bmp of one bit": saved("1", "BMP"), "bitmap": saved("1", "PPM"), "bmp 16": bmp(16),
    "other masks": bmp(32, masks=(0xFF, 0xFF00, 0xFF0000, 0xFF000000)),
    "plain": b"P2 2 1 255 7 9", "largest value of 17 bits": b"P5 3 2 65536\n" + bytes(12),
}  # fmt: skip


@pytest.mark.parametrize("output_type", [RGB, BGR, GRAY, ANY])
@pytest.mark.parametrize("scale", [1, 4])
def test_pixels_equal_pillows(output_type: ImageType, scale: int) -> None:
    got = decoded([*FILES.values()], output_type=output_type, scale_denom=scale)
    for pixels, (name, data) in zip(got, FILES.items(), strict=True):
        want = pillow_decode(np.frombuffer(data, np.uint8), output_type, True, scale)
        np.testing.assert_array_equal(pixels, want, name, strict=True)


@pytest.mark.parametrize("isa", _native.instruction_sets())
def test_colours_in_another_order_have_pillows_pixels_in_every_width(isa: str) -> None:
    """Colours are exchanged some at a time. Pixels of neighbouring images and rows are not written over."""
    files = [
        bmp(bits, width=width, top_down=top_down)
        for bits in (24, 32) for width in range(1, 24) for top_down in (False, True)
    ]  # fmt: skip
    before = _native.get_isa()
    _native.set_isa(isa)
    try:
        for output_type in (RGB, BGR):
            for pixels, data in zip(decoded(files, output_type=output_type), files, strict=True):
                want = pillow_decode(np.frombuffer(data, np.uint8), output_type, True)
                np.testing.assert_array_equal(pixels, want, strict=True)
    finally:
        _native.set_isa(before)


@pytest.mark.parametrize("dtype", [DType.UINT16, DType.FLOAT])
def test_wide_types_and_indices(dtype: DType) -> None:
    kept = [data for name, data in FILES.items() if name not in COLOURS_16]
    for pixels, data in zip(decoded(kept, output_type=ANY, dtype=dtype), kept, strict=True):
        assert_exact(pixels, pillow_decode(np.frombuffer(data, np.uint8), ANY, True, dtype=dtype))
    for pixels, data in zip(
        decoded([*FILES.values()], output_type=ANY, palette_indices=True), FILES.values(), strict=True
    ):
        assert_exact(pixels, pillow_decode(np.frombuffer(data, np.uint8), ANY, True, indices=True))


@pytest.mark.parametrize("name", COLOURS_16)
def test_colours_of_16_bits(name: str) -> None:
    """Compared with gray files of the same values: Pillow has 8 bits of colours."""
    colours = COLOURS_16[name]
    gray = colours.replace(b"P6 19", b"P5 57")
    for dtype in (DType.UINT16, DType.FLOAT):
        want = pillow_decode(np.frombuffer(gray, np.uint8), ANY, True, dtype=dtype).reshape(13, 19, 3)
        assert_exact(decoded([colours], output_type=ANY, dtype=dtype)[0], want)
        cut = eager.decoders.image_slice(colours, start=(1, 2), shape=(3, 4), output_type=ANY, dtype=dtype)
        assert_exact(cut, want[2:6, 1:4])


def test_unusual_files_are_left_to_pillow() -> None:
    for name, data in UNUSUAL.items():
        if "17 bits" in name:  # Pillow refuses it
            with pytest.raises(DataError):
                eager.decoders.image(data)
        else:
            assert_exact(decoded([data], natively=False)[0], pillow_decode(np.frombuffer(data, np.uint8), RGB, True))
    colours = [FILES["ppm"], FILES["bmp 24"]]
    for pixels, data in zip(decoded(colours, natively=False, output_type=YCBCR), colours, strict=True):
        assert_exact(pixels, pillow_decode(np.frombuffer(data, np.uint8), YCBCR, True))


@pytest.mark.parametrize("name", FILES)
def test_windows_truncation_and_limits(name: str) -> None:
    data = FILES[name]
    whole = eager.decoders.image(data)
    assert_exact(eager.decoders.image_slice(data, start=(1, 2), shape=(3, 4)), whole[2:6, 1:4])
    for size in range(len(data) - 40, len(data) - 3):
        with pytest.raises(DataError, match="data of the image end before it is complete"):
            eager.decoders.image(data[:size])
    for size in range(3, 60):
        with pytest.raises(DataError):
            eager.decoders.image(data[:size])
    pixels = whole.shape[0] * whole.shape[1]
    with pytest.raises(DataError, match=f"at most {pixels - 1} pixels"):
        eager.decoders.image(data, max_pixels=pixels - 1)
