# SPDX-License-Identifier: Apache-2.0
"""JPEG decoder by kind of file, on one core: samplings, progressive files, sizes, scale 1/8, and cycles per stage.

The files are the photographs, encoded again, so that kinds differ in nothing else. Every file is decoded before one is
decoded again.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import MS_PER_IMAGE, Bar, Case, Contender, Loop, Sample, Unit
from benchmarks.data import Data

ORDER = 31
_PORTION = 4
_LARGE, _SMALL = (4000, 3000), (800, 600)
_TILES, _TILED_FILES = 8, 8
_TILE_SIDE = 200
NS_PER_PIXEL = Unit("ns/pixel", lambda seconds: 1e9 * seconds)
CYCLES_PER_SYMBOL, CYCLES_PER_PIXEL = Unit("cycles/symbol"), Unit("cycles/pixel")

Decode = Callable[[bytes], np.ndarray]


def decode_kind(data: Data, *, library: str, kind: str) -> Loop:
    """Decode files of one kind, one after the other."""
    return _loop(_encoded(data, kind), _DECODERS[library]("eighth" if kind == "eighth" else "whole"), per_pixel=False)


def decode_size(data: Data, *, kind: str) -> Loop:
    """Decode files of one size; items are pixels."""
    return _loop(_encoded(data, kind), _stoker("whole"), per_pixel=True)


def count_ticks(data: Data, *, stage: str, per: str) -> Sample:
    """Return the cycles (of the time-stamp counter) of one stage of decoding, or of all, over all files once."""
    from stoker.native import _native

    contents = [content for content in data.read() if _native.jpeg.jpeg_info(content)["support"] == "native"]

    def read() -> float:
        ticks = [_native.jpeg.jpeg_ticks(content) for content in contents]
        stages = [stage] if stage != "all" else list(_STAGES)
        counted = [one for one in ticks if one["symbols"]]  # not counted for progressive files
        return sum(one[name] for one in counted for name in stages) / sum(one[per] for one in counted)

    return Sample(read)


def _loop(contents: list[bytes], decode: Decode, *, per_pixel: bool) -> Loop:
    position = 0

    def step() -> tuple[int, float]:
        nonlocal position
        total, items = 0.0, 0
        for index in range(position, position + _PORTION):
            pixels = decode(contents[index % len(contents)])
            total += float(pixels[::37, ::41].sum())
            items += pixels.shape[0] * pixels.shape[1] if per_pixel else 1
        position += _PORTION
        return items, total

    return Loop(step, warm=0)


def _encoded(data: Data, kind: str) -> list[bytes]:
    from PIL import Image

    images = [Image.open(io.BytesIO(content)).convert(_MODES.get(kind, "RGB")) for content in data.read()]
    if kind in _SIZES:
        groups = range(0, min(_TILES * _TILED_FILES, len(images)), _TILES)
        images = [_tiled(images[first : first + _TILES], _SIZES[kind]) for first in groups]
    out = []
    for image in images:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=90, **_ENCODINGS[kind])
        out.append(file.getvalue())
    return out


def _tiled(images: list[Any], size: tuple[int, int]) -> Any:
    """Return one image of repeated tiles, so that the work per pixel does not depend on the size."""
    from PIL import Image

    out = Image.new("RGB", size)
    tiles = [image.resize((_TILE_SIDE, _TILE_SIDE)) for image in images]
    columns = size[0] // _TILE_SIDE
    for index in range(columns * (size[1] // _TILE_SIDE)):
        out.paste(tiles[index % len(tiles)], (index % columns * _TILE_SIDE, index // columns * _TILE_SIDE))
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


def _pillow(size: str) -> Decode:
    from PIL import Image

    def decode(content: bytes) -> np.ndarray:
        with Image.open(io.BytesIO(content)) as image:
            if size == "eighth":
                image.draft("RGB", (-(-image.width // 8), -(-image.height // 8)))
            return np.asarray(image.convert("RGB"))

    return decode


_DECODERS: dict[str, Callable[[str], Decode]] = {"stoker": _stoker, "simplejpeg": _simplejpeg, "Pillow": _pillow}
_MODES = {"gray": "L"}
_SIZES = {"large": _LARGE, "small": _SMALL}
_ENCODINGS: dict[str, dict[str, Any]] = {
    "444": {"subsampling": 0},
    "422": {"subsampling": 1},
    "420": {"subsampling": 2},
    "gray": {},
    "progressive": {"subsampling": 2, "progressive": True},
    "large": {"subsampling": 2},
    "small": {"subsampling": 2},
    "eighth": {"subsampling": 2},
}
_STAGES = ("tables", "entropy", "transform", "rows")


def _case(kind: str, title: str, times: float, goal: float | None = None, note: str = "") -> Case:
    """Return a case whose bar is this multiple of simplejpeg's speed."""
    contenders = tuple(
        Contender(
            name, "decode_kind", {"library": name, "kind": kind}, "stoker" if name == "stoker" else "peers", cores=1
        )
        for name in _DECODERS
    )
    bar = Bar(
        f"at most {1 / times:.2f} of simplejpeg's time ({times:g}x)",
        "stoker",
        ("simplejpeg",),
        at_most=1 / times,
        goal=1 / goal if goal else None,
    )
    return Case(f"jpeg-{kind}", f"JPEG decoding, {title}, one core", MS_PER_IMAGE, contenders, (bar,), note)


def _ticks(name: str, stage: str, per: str) -> Contender:
    return Contender(name, "count_ticks", {"stage": stage, "per": per}, cores=1)


CASES = (
    _case("444", "chroma in full", 1.25, 1.6),
    _case("422", "chroma at half the width", 1.25, 1.6),
    _case("420", "chroma at half the width and height", 1.25, 1.6),
    _case("gray", "gray", 1.25, 1.6),
    _case("progressive", "progressive", 1.2),
    _case(
        "large", "12 megapixels", 1.25, 1.6, "Tiles of the photographs; the output is a new array, like simplejpeg's."
    ),
    _case(
        "eighth",
        "an eighth of the width and height",
        1.4,
        None,
        "Exact, like TurboJPEG's scaling; Pillow uses draft mode.",
    ),
    Case(
        "jpeg-size",
        "JPEG decoding, large against small, one core",
        NS_PER_PIXEL,
        (
            Contender("12 megapixels", "decode_size", {"kind": "large"}, cores=1),
            Contender("0.5 megapixel", "decode_size", {"kind": "small"}, cores=1),
        ),
        (Bar("a pixel of 12 megapixels takes no longer", "12 megapixels", ("0.5 megapixel",), at_most=1.0),),
        note="Both of the same tiles, each photograph's at 200 x 200.",
    ),
    Case(
        "jpeg-symbols",
        "JPEG decoding, cycles for a Huffman symbol, one core",
        CYCLES_PER_SYMBOL,
        (_ticks("entropy decoding", "entropy", "symbols"), _ticks("all", "all", "symbols")),
        (Bar("no worse than the first table decoder", "entropy decoding", at_most=13, goal=7.5),),
        note="Of the time-stamp counter, at the nominal clock; a symbol is a Huffman code with its value bits.",
    ),
    Case(
        "jpeg-pixels",
        "JPEG decoding, cycles for a pixel by stage, one core",
        CYCLES_PER_PIXEL,
        tuple(_ticks(name, name, "pixels") for name in ("all", *_STAGES)),
        note="tables: header, Huffman tables, unstuffing; rows: upsampling, colour, storing.",
    ),
)
