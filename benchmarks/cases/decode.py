# SPDX-License-Identifier: Apache-2.0
"""JPEG files in memory to RGB pixels, one core: the whole image, and the window of a random resized crop."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.case import MS_PER_IMAGE, Bar, Case, Contender, Loop
from benchmarks.data import Data, Window, random_window

ORDER = 30
_PORTION = 16

Decode = Callable[[bytes], np.ndarray]
DecodeWindow = Callable[[bytes, Window], np.ndarray]


def decode_files(data: Data, *, library: str) -> Loop:
    """Decode whole images, one after the other."""
    contents, decode = data.read(), _DECODERS[library]()
    return _loop([(content,) for content in contents], decode)


def decode_windows(data: Data, *, library: str) -> Loop:
    """Decode one random window of each image; the windows are the same for all."""
    contents, decode = data.read(), _WINDOW_DECODERS[library]()
    windows = [random_window(random.Random(index), *_size(content)) for index, content in enumerate(contents)]
    return _loop(list(zip(contents, windows, strict=True)), decode)


def _loop(inputs: Sequence[tuple[Any, ...]], decode: Callable[..., np.ndarray]) -> Loop:
    position = 0

    def step() -> tuple[int, float]:
        nonlocal position
        total = 0.0
        for index in range(position, position + _PORTION):
            total += float(decode(*inputs[index % len(inputs)])[::37, ::41].sum())
        position += _PORTION
        return _PORTION, total

    return Loop(step, warm=0)


def _size(content: bytes) -> tuple[int, int]:
    from PIL import Image

    with Image.open(io.BytesIO(content)) as image:
        return image.size


def _stoker() -> Decode:
    from stoker import eager

    return lambda content: np.asarray(eager.decoders.image(content))


def _stoker_window() -> DecodeWindow:
    from stoker import eager

    def decode(content: bytes, window: Window) -> np.ndarray:
        x0, y0, x1, y1 = window
        return np.asarray(eager.decoders.image_slice(content, start=[y0, x0], end=[y1, x1], axes=[0, 1]))

    return decode


def _simplejpeg() -> Decode:
    import simplejpeg

    return lambda content: simplejpeg.decode_jpeg(content, colorspace="RGB", fastdct=False, fastupsample=False)


def _simplejpeg_window() -> DecodeWindow:
    whole = _simplejpeg()
    return lambda content, window: whole(content)[window[1] : window[3], window[0] : window[2]]


def _pillow() -> Decode:
    from PIL import Image

    def decode(content: bytes) -> np.ndarray:
        with Image.open(io.BytesIO(content)) as image:
            return np.asarray(image.convert("RGB"))

    return decode


def _pillow_window() -> DecodeWindow:
    from PIL import Image

    def decode(content: bytes, window: Window) -> np.ndarray:
        with Image.open(io.BytesIO(content)) as image:
            return np.asarray(image.crop(window).convert("RGB"))

    return decode


_DECODERS: dict[str, Callable[[], Decode]] = {"stoker": _stoker, "simplejpeg": _simplejpeg, "Pillow": _pillow}
_WINDOW_DECODERS: dict[str, Callable[[], DecodeWindow]] = {
    "stoker": _stoker_window,
    "simplejpeg": _simplejpeg_window,
    "Pillow": _pillow_window,
}


def _contenders(function: str) -> tuple[Contender, ...]:
    return tuple(
        Contender(name, function, {"library": name}, "stoker" if name == "stoker" else "peers", cores=1)
        for name in _DECODERS
    )


CASES = (
    Case(
        "decode-whole",
        "JPEG decoding, whole image, one core",
        MS_PER_IMAGE,
        _contenders("decode_files"),
        (Bar("at most 0.8 of simplejpeg's time (1.25x)", "stoker", ("simplejpeg",), at_most=0.8, goal=1 / 1.6),),
        note="To RGB, exact: simplejpeg with `fastdct=False, fastupsample=False`. Files in memory, one call per image.",
    ),
    Case(
        "decode-window",
        "JPEG decoding, window of a random resized crop, one core",
        MS_PER_IMAGE,
        _contenders("decode_windows"),
        (
            Bar(
                "a window takes at most 0.56 of simplejpeg's time for the whole (1.8x)",
                "stoker",
                ("simplejpeg",),
                at_most=1 / 1.8,
                goal=1 / 2.5,
            ),
        ),
        note="One random window per image (scale 0.08 to 1, ratio 3/4 to 4/3), the same for all. The peers decode the "
        "whole image and cut the window out.",
    ),
)
