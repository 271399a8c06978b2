# SPDX-License-Identifier: Apache-2.0
"""The JPEG decoder by kind of file, one core: samplings, progressive files, 12 megapixels, and an eighth of the size.

The files are the photographs, encoded anew, so that the kinds differ in nothing else.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import MS_PER_IMAGE, Bar, Case, Contender, Loop
from benchmarks.data import Data

ORDER = 31
_FILES = 32
_PORTION = 4
_LARGE = (4000, 3000)

Decode = Callable[[bytes], np.ndarray]


def decode_kind(data: Data, *, library: str, kind: str) -> Loop:
    """Decode files of one kind, one after the other."""
    contents, decode = _encoded(data, kind), _DECODERS[library]("eighth" if kind == "eighth" else "whole")
    position = 0

    def step() -> tuple[int, float]:
        nonlocal position
        total = 0.0
        for index in range(position, position + _PORTION):
            total += float(decode(contents[index % len(contents)])[::37, ::41].sum())
        position += _PORTION
        return _PORTION, total

    return Loop(step, warm=0)


def _encoded(data: Data, kind: str) -> list[bytes]:
    from PIL import Image

    images = [Image.open(io.BytesIO(content)).convert("RGB") for content in data.read()[:_FILES]]
    if kind == "large":
        images = [_tiled(images[first : first + 8]) for first in range(0, 16, 8)]
    out = []
    for image in images:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=90, **_ENCODINGS[kind])
        out.append(file.getvalue())
    return out


def _tiled(images: list[Any]) -> Any:
    """One large image of many small ones."""
    from PIL import Image

    side = 400
    out = Image.new("RGB", _LARGE)
    tiles = [image.resize((side, side)) for image in images]
    columns = _LARGE[0] // side
    for index in range(columns * -(-_LARGE[1] // side)):
        out.paste(tiles[index % len(tiles)], (index % columns * side, index // columns * side))
    return out


def _stoker(size: str) -> Decode:
    from stoker.native import _native

    scale = 8 if size == "eighth" else 1
    return lambda content: _native.jpeg.jpeg_decode(content, scale=scale)[0]


def _simplejpeg(size: str) -> Decode:
    import simplejpeg

    def decode(content: bytes) -> np.ndarray:
        least = {}
        if size == "eighth":
            height, width = simplejpeg.decode_jpeg_header(content)[:2]
            least = {"min_height": -(-height // 8), "min_width": -(-width // 8), "min_factor": 1}
        pixels: np.ndarray = simplejpeg.decode_jpeg(content, "RGB", fastdct=False, fastupsample=False, **least)
        return pixels

    return decode


_DECODERS: dict[str, Callable[[str], Decode]] = {"stoker": _stoker, "simplejpeg": _simplejpeg}
_ENCODINGS: dict[str, dict[str, Any]] = {
    "444": {"subsampling": 0},
    "422": {"subsampling": 1},
    "420": {"subsampling": 2},
    "progressive": {"subsampling": 2, "progressive": True},
    "large": {"subsampling": 2},
    "eighth": {"subsampling": 2},
}
# What is demanded of simplejpeg's time.
_SHARES = {"444": 0.8, "422": 0.8, "420": 0.8, "progressive": 1 / 1.2, "large": 0.8, "eighth": 1 / 1.4}


def _case(kind: str, title: str, note: str = "") -> Case:
    contenders = tuple(
        Contender(
            name, "decode_kind", {"library": name, "kind": kind}, "stoker" if name == "stoker" else "peers", cores=1
        )
        for name in _DECODERS
    )
    share = _SHARES[kind]
    bar = Bar(f"at most {share:.2f} of simplejpeg's time", "stoker", ("simplejpeg",), at_most=share)
    return Case(f"jpeg-{kind}", f"JPEG decoding, {title}, one core", MS_PER_IMAGE, contenders, (bar,), note)


CASES = (
    _case("444", "chroma in full"),
    _case("422", "chroma at half the width"),
    _case("420", "chroma at half the width and height"),
    _case("progressive", "progressive"),
    _case(
        "large", "12 megapixels", "Tiles of the photographs; the output is a fresh array each time, as with simplejpeg."
    ),
    _case("eighth", "an eighth of the width and height", "Exact as TurboJPEG scales."),
)
