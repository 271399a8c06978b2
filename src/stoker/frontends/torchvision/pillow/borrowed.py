# SPDX-License-Identifier: Apache-2.0
"""Pixels in Pillow's own memory, read in place."""

from __future__ import annotations

from PIL import Image

from ....native import _native
from ..ir import recipe
from ..ir.recipe import Node
from ..transport.segment import Bytes
from .image import CHANNELS


def borrow_bytes(image: Image.Image) -> Bytes | None:
    """Return the bytes of a decoded image of mode L or RGB in Pillow's memory; None for images in several blocks.

    A pixel is one byte, or four of which the last is unused. The memory must not change while the bytes are used.
    """
    export = getattr(image.im, "__arrow_c_array__", None)
    if export is None:
        return None
    try:
        data: Bytes | None = _native.recipe.bytes_of_arrow(image.im.__arrow_c_schema__(), export())
    except ValueError:  # a large image in several pieces of memory
        return None
    is_whole = data is not None and data.size == image.size[0] * image.size[1] * (1 if image.mode == "L" else 4)
    return data if is_whole else None


def layout_of(channels: int) -> int:
    """Return the layout of :func:`borrow_bytes`."""
    return recipe.PACKED if channels == 1 else recipe.OF_FOUR_BYTES


def borrow_pixels(image: Image.Image) -> Node | None:
    """Return a node for Pillow's own memory, which must not change before the call ends; None for images in blocks."""
    data = borrow_bytes(image)
    channels = CHANNELS[image.mode]
    return None if data is None else Node.pixels(data, image.size, channels, layout_of(channels))
