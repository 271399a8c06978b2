# SPDX-License-Identifier: Apache-2.0
"""Image decoders by format, on one core: BMP, PNM, TIFF, WebP, JPEG 2000 and GIF. PNG has a file of its own.

The files are the photographs, encoded again by Pillow. Every file is decoded before one is decoded again.
"""

from __future__ import annotations

import io
from typing import Any

from benchmarks.case import MS_PER_IMAGE, Bar, Case, Contender, Loop
from benchmarks.cases.png import _DECODERS
from benchmarks.data import Data

ORDER = 33
_FILES = 32
_KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bmp": ("BMP", "BMP", {}),
    "pnm": ("PPM", "PNM", {}),
    "tiff": ("TIFF", "TIFF without compression", {}),
    "tiff-lzw": ("TIFF", "TIFF, LZW", {"compression": "tiff_lzw"}),
    "tiff-deflate": ("TIFF", "TIFF, Deflate", {"compression": "tiff_adobe_deflate"}),
    "tiff-packbits": ("TIFF", "TIFF, PackBits", {"compression": "packbits"}),
    "webp": ("WEBP", "WebP, quality 80", {"quality": 80}),
    "webp-lossless": ("WEBP", "WebP without loss", {"lossless": True}),
    "jpeg2000": (
        "JPEG2000", "JPEG 2000, 1 to 10", {"irreversible": True, "quality_mode": "rates", "quality_layers": [10]}
    ),
    "jpeg2000-lossless": ("JPEG2000", "JPEG 2000 without loss", {}),
    "gif": ("GIF", "GIF", {}),
    "gif-interlaced": ("GIF", "interlaced GIF", {"interlace": 1}),
}  # fmt: skip


def decode_format(data: Data, *, library: str, kind: str) -> Loop:
    """Decode files of one format, one after the other."""
    contents = _encoded(data, kind)
    decode = _DECODERS[library](8)
    position = 0

    def step() -> tuple[int, float]:
        nonlocal position
        pixels = decode(contents[position % len(contents)])
        position += 1
        return 1, float(pixels[::37, ::41].sum())

    return Loop(step, warm=1)


def _encoded(data: Data, kind: str) -> list[bytes]:
    from PIL import Image

    name, _, options = _KINDS[kind]
    out = []
    for path in data.files[:_FILES]:
        file = io.BytesIO()
        with Image.open(path) as opened:
            opened.convert("RGB").save(file, name, **options)
        out.append(file.getvalue())
    return out


def _case(kind: str) -> Case:
    contenders = tuple(
        Contender(
            name, "decode_format", {"library": name, "kind": kind}, "stoker" if name == "stoker" else "peers", cores=1
        )
        for name in _DECODERS
    )
    bar = Bar("time of the fastest library's", "stoker", ("OpenCV", "Pillow"), at_most=1.1, goal=1.0)
    return Case(
        f"format-{kind}", f"Decoding {_KINDS[kind][1]}, one core", MS_PER_IMAGE, contenders, (bar,), seconds=0.4
    )


CASES = tuple(map(_case, _KINDS))
