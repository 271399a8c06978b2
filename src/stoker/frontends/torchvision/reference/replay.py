# SPDX-License-Identifier: Apache-2.0
"""Recorded steps computed by Pillow or torch: the plain twin of the native interpreter, for damaged files and tests."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from PIL.JpegImagePlugin import JpegImageFile

from ..ir import steps
from ..ir.recipe import PLANAR, Node
from ..transport.segment import Bytes
from . import by_torch
from .by_torch import functions_for

# Pillow's filters by their native numbers (native/resample/resample.hpp).
FILTERS = {
    0: Image.Resampling.NEAREST,
    1: Image.Resampling.BILINEAR,
    2: Image.Resampling.BICUBIC,
    3: Image.Resampling.LANCZOS,
    6: Image.Resampling.BOX,
    7: Image.Resampling.HAMMING,
}


def plain_image(array: Any) -> Image.Image:
    """Return a Pillow image of ``(height, width)`` or ``(height, width, 3)`` bytes that does not record."""
    size = (array.shape[1], array.shape[0])
    return Image.frombytes("L" if array.ndim == 2 else "RGB", size, np.ascontiguousarray(array).tobytes())


def replay(node: Node) -> Image.Image:
    """Return the image of a node, computed by Pillow.

    Raises:
        OSError: the file cannot be decoded.
    """
    if isinstance(node.step, steps.Pixels):
        array = _pixels_of(node.source.data, node.step.planar, (node.size[1], node.size[0]), node.channels)
        return plain_image(array if node.channels > 1 else array[..., 0])
    if node.parent is None:
        return _decode(node)
    return _STEPS[node.op](replay(node.parent), node.step, node)


def _pixels_of(data: Bytes, layout: int, sides: tuple[int, int], channels: int) -> Any:
    """Return existing bytes as ``(height, width, channels)``."""
    if layout == PLANAR:
        return data.reshape(channels, *sides).transpose(1, 2, 0)
    return data.reshape(*sides, -1)[..., :channels]


def _decode(node: Node) -> Image.Image:
    assert isinstance(node.step, steps.Decode)
    file = io.BytesIO(node.source.data.tobytes())
    image = LenientJpegFile(file) if node.step.is_lenient else JpegImageFile(file)
    if node.channels == 1:
        image.draft("L", image.size)  # the file's luma, unconverted
    image.load()
    return image


class LenientJpegFile(JpegImageFile):
    """JPEG file that is decoded as with ``LOAD_TRUNCATED_IMAGES``, which is a setting of the whole process."""

    def load_read(self, read_bytes: int) -> bytes:
        """Read more of the file; an end marker follows the data."""
        assert self.fp is not None
        data = self.fp.read(read_bytes)
        if not data and not hasattr(self, "_ended"):
            self._ended = True
            return b"\xff\xd9"
        return data

    def load(self) -> Any:
        """Decode as much of the image as the data have."""
        with contextlib.suppress(OSError):
            super().load()
        self.tile = []
        return super().load()


def _resize(image: Image.Image, p: steps.Resize, node: Node) -> Image.Image:
    return image.resize(node.size, FILTERS[p.filter], box=(p.left, p.top, p.right, p.bottom))


def _affine(image: Image.Image, p: steps.Affine, node: Node) -> Image.Image:
    linear = Image.Resampling.BILINEAR if p.linear else Image.Resampling.NEAREST
    fill: Any = p.fill[0] if node.channels == 1 else p.fill
    return image.transform(node.size, Image.Transform.AFFINE, p.matrix, linear, fillcolor=fill)


def _pad(image: Image.Image, p: steps.Pad, node: Node) -> Image.Image:
    fill: Any = p.fill[0] if node.channels == 1 else p.fill
    framed = Image.new(image.mode, node.size, fill)
    framed.paste(image, (p.left, p.top))
    return framed


def _hue(image: Image.Image, p: steps.Hue, node: Node) -> Image.Image:
    hue, saturation, value = image.convert("HSV").split()
    turned = plain_image(np.asarray(hue) + np.uint8(p.turn))
    return Image.merge("HSV", (turned, saturation, value)).convert("RGB")


def _map(image: Image.Image, p: steps.Map, node: Node) -> Image.Image:
    values = np.resize(p.table, 256 * node.channels)
    return image.point(values.tolist())


def _project(image: Image.Image, p: steps.Project, node: Node) -> Image.Image:
    sampling = (Image.Resampling.NEAREST, Image.Resampling.BILINEAR, Image.Resampling.BICUBIC)[p.sampling]
    fill: Any = p.fill[0] if node.channels == 1 else p.fill
    if p.projective:
        return image.transform(node.size, Image.Transform.PERSPECTIVE, p.matrix, sampling, fillcolor=fill)
    return image.transform(node.size, Image.Transform.AFFINE, p.matrix[:6], sampling, fillcolor=fill)


def _by_torch(function: Callable[[Any, torch.Tensor, Any], torch.Tensor]) -> Any:
    """Return a step that torchvision computes on tensors."""

    def step(image: Image.Image, p: Any, node: Node) -> Image.Image:
        from torchvision.transforms.v2 import functional

        array = np.array(image)
        tensor = torch.from_numpy(np.atleast_3d(array)).permute(2, 0, 1)
        result = function(functional, tensor, p).permute(1, 2, 0).numpy()
        return plain_image(result if node.channels > 1 else result[..., 0])

    return step


def _torch_resize(_: Any, x: torch.Tensor, p: steps.TorchResize) -> torch.Tensor:
    mode = ("bilinear", "bicubic", "lanczos")[p.filter]
    return torch.nn.functional.interpolate(x[None], size=[p.height, p.width], mode=mode, antialias=bool(p.smooth))[0]


def _torch_resize_floats(_: Any, x: torch.Tensor, p: steps.TorchResizeFloats) -> torch.Tensor:
    return by_torch.resize(x.float(), p).clamp(min=0, max=255).round().to(torch.uint8)


def _correlate(_: Any, x: torch.Tensor, p: steps.Correlate | steps.TorchProducts) -> torch.Tensor:
    return by_torch.filter_window(x.float(), p).round_().to(torch.uint8)


def _mix(image: Image.Image, p: steps.Mix, node: Node) -> Image.Image:
    total: Any = None
    for part, table in [(image, p.table), *((replay(other), table) for other, table in p.others)]:
        planes = np.atleast_3d(np.asarray(part)).transpose(2, 0, 1)
        values = table.values.view(-1, 256)
        term = torch.stack(
            [values[min(c, len(values) - 1)][torch.from_numpy(x.astype(np.int64))] for c, x in enumerate(planes)]
        )
        total = term if total is None else total + term
    result = total.to(torch.uint8).permute(1, 2, 0).numpy()
    return plain_image(result if node.channels > 1 else result[..., 0])


def _blend(image: Image.Image, p: steps.Blend, node: Node) -> Image.Image:
    return Image.blend(image, replay(p.image), p.factor)


def _blur(image: Image.Image, p: steps.Blur, node: Node) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(p.radii) if p.are_bells else ImageFilter.BoxBlur(p.radii))


_STEPS: dict[int, Callable[[Image.Image, Any, Node], Image.Image]] = {
    steps.CROP: lambda image, p, node: image.crop(p),
    steps.RESIZE: _resize,
    steps.TRANSPOSE: lambda image, p, node: image.transpose(Image.Transpose(p.method)),
    steps.AFFINE: _affine,
    steps.PAD: _pad,
    steps.MAP: _map,
    steps.LUMA: lambda image, p, node: image.convert("L"),
    steps.SPREAD: lambda image, p, node: image.convert("RGB"),
    steps.CONTRAST: lambda image, p, node: ImageEnhance.Contrast(image).enhance(p.factor),
    steps.HUE: _hue,
    steps.AUTOCONTRAST: lambda image, p, node: ImageOps.autocontrast(image),
    steps.EQUALIZE: lambda image, p, node: ImageOps.equalize(image),
    steps.SHARPEN: lambda image, p, node: ImageEnhance.Sharpness(image).enhance(p.factor),
    steps.BLUR: _blur,
    steps.MIX: _mix,
    steps.BLEND: _blend,
    steps.CHANNELS: lambda image, p, node: Image.merge("RGB", [image.split()[c] for c in p]),
    steps.PROJECT: _project,
    steps.PAD_EDGES: lambda image, p, node: plain_image(by_torch.pad_edges(np.asarray(image), p, 0)),
    **dict.fromkeys((steps.CORRELATE, steps.TORCH_PRODUCTS), _by_torch(_correlate)),
    steps.TORCH_RESIZE: _by_torch(_torch_resize),
    steps.TORCH_RESIZE_FLOATS: _by_torch(_torch_resize_floats),
    steps.TORCH_PICK: _by_torch(lambda f, x, p: by_torch.pick_nearest(x, p)),
    steps.TORCH_WARP: _by_torch(lambda f, x, p: by_torch.warp(x, p)),
    steps.TORCH_GRID: _by_torch(lambda f, x, p: by_torch.sample_grid(x, p)),
    steps.TORCH_LUMA: _by_torch(lambda f, x, p: functions_for(p).rgb_to_grayscale(x)),
    steps.TORCH_CONTRAST: _by_torch(lambda f, x, p: functions_for(p).adjust_contrast(x, p.factor)),
    steps.TORCH_SATURATE: _by_torch(lambda f, x, p: functions_for(p).adjust_saturation(x, p.factor)),
    steps.TORCH_HUE: _by_torch(lambda f, x, p: functions_for(p).adjust_hue(x, p.turn)),
    **dict.fromkeys(
        (steps.TORCH_SHARPEN, steps.TORCH_SHARPEN_PRODUCTS),
        _by_torch(lambda f, x, p: functions_for(p).adjust_sharpness(x, p.factor)),
    ),
    steps.TORCH_AUTOCONTRAST: _by_torch(lambda f, x, p: functions_for(p).autocontrast(x)),
    steps.TORCH_EQUALIZE: _by_torch(lambda f, x, p: f.equalize(x)),
    steps.SATURATE: lambda image, p, node: ImageEnhance.Color(image).enhance(p.factor),
}
