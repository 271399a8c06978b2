# SPDX-License-Identifier: Apache-2.0
"""PNG decoder by kind of file, on one core: channels, bits per channel, palettes, compression and sizes.

The files are the photographs, encoded again by Pillow, which chooses filters as most encoders do. Every file is decoded
before one is decoded again.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import MS_PER_IMAGE, Bar, Case, Contender, Loop
from benchmarks.data import Data

ORDER = 32
_TIMES, _GOAL = 1.5, 2.0  # of OpenCV's rate
_FILES, _LARGE_FILES = 32, 4
_LARGE = (2000, 1500)

Decode = Callable[[bytes], np.ndarray]


def decode_kind(data: Data, *, library: str, kind: str) -> Loop:
    """Decode files of one kind, one after the other, to their own channels and bits."""
    contents = _encoded(data, kind)
    decode = _DECODERS[library](16 if kind.endswith("-16") else 8)
    position = 0

    def step() -> tuple[int, float]:
        nonlocal position
        pixels = decode(contents[position % len(contents)])
        position += 1
        return 1, float(pixels[::37, ::41].sum())

    return Loop(step, warm=1)


def _encoded(data: Data, kind: str) -> list[bytes]:
    from PIL import Image

    count = _LARGE_FILES if kind == "large" else _FILES
    out = []
    for path in data.files[:count]:
        with Image.open(path) as opened:
            image = opened.convert("RGB")
        if kind == "large":
            image = image.resize(_LARGE, Image.Resampling.LANCZOS)
        if kind == "rgb-16":
            out.append(_png_of_16_bits(np.asarray(image, np.float64)))
            continue
        file = io.BytesIO()
        _FORMS[kind](image).save(file, "PNG", compress_level=9 if kind == "rgb-9" else 6)
        out.append(file.getvalue())
    return out


def _with_alpha(image: Any) -> Any:
    """Return the image with its lightness as its alpha channel, which compresses as photographs do."""
    image = image.copy()
    image.putalpha(image.convert("L"))
    return image


def _with_16_bits(image: Any) -> Any:
    """Return a gray image of 16 bits: a weighted sum of the channels, in full precision."""
    from PIL import Image

    gray = np.asarray(image, np.float64) @ [0.299, 0.587, 0.114]
    return Image.fromarray(np.rint(gray * 257).astype(np.uint16))


def _png_of_16_bits(colours: np.ndarray) -> bytes:
    """Return a file of the colours with 16 bits, which Pillow does not write: means of neighbours, in full precision.

    Rows have the filter with the smallest sum, as libpng's encoder chooses it (PNG specification, section 12.8).
    """
    means = (2 * colours + np.roll(colours, 1, 0) + np.roll(colours, 1, 1)) / 4
    height, width, _ = colours.shape
    rows = np.rint(means * 257).astype(">u2").reshape(height, -1).view(np.uint8).astype(np.int16)
    left, up = np.zeros_like(rows), np.zeros_like(rows)
    left[:, 6:], up[1:] = rows[:, :-6], rows[:-1]
    corner = np.zeros_like(rows)
    corner[1:, 6:] = rows[:-1, :-6]
    to_left, to_up, to_corner = (abs(left + up - corner - x) for x in (left, up, corner))
    near = np.where(to_up <= to_corner, up, corner)
    paeth = np.where((to_left <= to_up) & (to_left <= to_corner), left, near)
    filtered = np.stack([(rows - x).astype(np.uint8) for x in (0 * rows, left, up, (left + up) // 2, paeth)])
    chosen = np.argmin(abs(filtered.view(np.int8).astype(np.int64)).sum(2), axis=0)
    lines = np.concatenate([chosen[:, None].astype(np.uint8), filtered[chosen, np.arange(height)]], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    )


_FORMS: dict[str, Callable[[Any], Any]] = {
    "rgb": lambda image: image,
    "rgb-9": lambda image: image,
    "large": lambda image: image,
    "rgba": _with_alpha,
    "gray": lambda image: image.convert("L"),
    "gray-16": _with_16_bits,
    "palette": lambda image: image.quantize(256),
}


def _stoker(bits: int) -> Decode:
    from stoker import eager, types

    dtype = types.UINT16 if bits == 16 else types.UINT8

    def decode(content: bytes) -> np.ndarray:
        file = np.frombuffer(content, np.uint8)
        return np.asarray(eager.decoders.image(file, output_type=types.ANY_DATA, dtype=dtype))

    return decode


def _opencv(bits: int) -> Decode:
    import cv2

    cv2.setNumThreads(1)
    return lambda content: cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)


def _pillow(bits: int) -> Decode:
    from PIL import Image

    def decode(content: bytes) -> np.ndarray:
        with Image.open(io.BytesIO(content)) as image:
            return np.asarray(image.convert("RGB") if image.mode == "P" else image)

    return decode


_DECODERS: dict[str, Callable[[int], Decode]] = {"stoker": _stoker, "OpenCV": _opencv, "Pillow": _pillow}


def _case(kind: str, title: str, note: str = "") -> Case:
    contenders = tuple(
        Contender(
            name, "decode_kind", {"library": name, "kind": kind}, "stoker" if name == "stoker" else "peers", cores=1
        )
        for name in _DECODERS
    )
    bar = Bar(
        f"at most {1 / _TIMES:.2f} of OpenCV's time ({_TIMES:g}x)", "stoker", ("OpenCV",), at_most=1 / _TIMES,
        goal=1 / _GOAL,
    )  # fmt: skip
    return Case(f"png-{kind}", f"PNG decoding, {title}, one core", MS_PER_IMAGE, contenders, (bar,), note, seconds=0.5)


CASES = (
    _case("rgb", "RGB"),
    _case("rgb-9", "RGB, strongest compression"),
    _case("rgba", "RGBA", "The alpha channel is the photograph's lightness."),
    _case("gray", "gray"),
    _case("gray-16", "gray, 16 bits"),
    _case("rgb-16", "RGB, 16 bits", "Pillow gives 8 bits of them."),
    _case("palette", "256 colours of a palette", "OpenCV's and Stoker's results are RGB; Pillow converts to it."),
    _case("large", "3 megapixels"),
)
