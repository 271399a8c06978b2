# SPDX-License-Identifier: Apache-2.0
"""A recipe's steps on Pillow: the plain twin of the native interpreter, for damaged files and for tests."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image, ImageEnhance, ImageOps
from PIL.JpegImagePlugin import JpegImageFile

from . import recipe
from .recipe import Node

# Pillow's filters by the number that native code has for them (native/resample.hpp).
FILTERS = {
    0: Image.Resampling.NEAREST,
    1: Image.Resampling.BILINEAR,
    2: Image.Resampling.BICUBIC,
    3: Image.Resampling.LANCZOS,
    6: Image.Resampling.BOX,
    7: Image.Resampling.HAMMING,
}


def replay(node: Node) -> Image.Image:
    """The image of a node, made by Pillow alone.

    Raises:
        OSError: the file cannot be decoded.
    """
    if node.op == recipe.PIXELS:
        shape = (node.channels, node.size[1], node.size[0])
        data = node.source.data
        array = data.reshape(shape).transpose(1, 2, 0) if node.params[5] else data.reshape(*shape[1:], shape[0])
        return Image.fromarray(np.ascontiguousarray(array if node.channels > 1 else array[..., 0]))
    if node.parent is None:
        image = JpegImageFile(io.BytesIO(node.source.data.tobytes()))
        if node.channels == 1:
            image.draft("L", image.size)  # the luma as it is in the file
        image.load()
        return image
    return _STEPS[node.op](replay(node.parent), node.params, node)


def _resize(image: Image.Image, p: tuple[Any, ...], node: Node) -> Image.Image:
    return image.resize(node.size, FILTERS[p[6]], box=(p[4], p[2], p[5], p[3]))


def _affine(image: Image.Image, p: tuple[Any, ...], node: Node) -> Image.Image:
    linear = Image.Resampling.BILINEAR if p[8] else Image.Resampling.NEAREST
    fill: Any = p[9] if node.channels == 1 else tuple(p[9:12])
    return image.transform(node.size, Image.Transform.AFFINE, p[2:8], linear, fillcolor=fill)


def _pad(image: Image.Image, p: tuple[Any, ...], node: Node) -> Image.Image:
    fill: Any = p[4] if node.channels == 1 else tuple(p[4:7])
    framed = Image.new(image.mode, node.size, fill)
    framed.paste(image, (p[0], p[1]))
    return framed


def _hue(image: Image.Image, p: tuple[Any, ...], node: Node) -> Image.Image:
    hue, saturation, value = image.convert("HSV").split()
    turned = Image.fromarray(np.asarray(hue) + np.uint8(p[0]))
    return Image.merge("HSV", (turned, saturation, value)).convert("RGB")


def _map(image: Image.Image, p: tuple[Any, ...], node: Node) -> Image.Image:
    values = np.resize(p[0], 256 * node.channels)
    return image.point(values.tolist())


_STEPS: dict[int, Callable[[Image.Image, tuple[Any, ...], Node], Image.Image]] = {
    recipe.CROP: lambda image, p, node: image.crop(p),
    recipe.RESIZE: _resize,
    recipe.TRANSPOSE: lambda image, p, node: image.transpose(Image.Transpose(p[0])),
    recipe.AFFINE: _affine,
    recipe.PAD: _pad,
    recipe.MAP: _map,
    recipe.LUMA: lambda image, p, node: image.convert("L"),
    recipe.SPREAD: lambda image, p, node: image.convert("RGB"),
    recipe.CONTRAST: lambda image, p, node: ImageEnhance.Contrast(image).enhance(p[0]),
    recipe.HUE: _hue,
    recipe.AUTOCONTRAST: lambda image, p, node: ImageOps.autocontrast(image),
    recipe.EQUALIZE: lambda image, p, node: ImageOps.equalize(image),
    recipe.SHARPEN: lambda image, p, node: ImageEnhance.Sharpness(image).enhance(p[0]),
    recipe.SATURATE: lambda image, p, node: ImageEnhance.Color(image).enhance(p[0]),
}
