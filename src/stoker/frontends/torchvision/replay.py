# SPDX-License-Identifier: Apache-2.0
"""A recipe's steps on Pillow, or torch: the plain twin of the native interpreter, for damaged files and for tests."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
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


def image_of(array: Any) -> Image.Image:
    """A Pillow image of ``(height, width)`` or ``(height, width, 3)`` bytes, that records nothing."""
    size = (array.shape[1], array.shape[0])
    return Image.frombytes("L" if array.ndim == 2 else "RGB", size, np.ascontiguousarray(array).tobytes())


def replay(node: Node) -> Image.Image:
    """The image of a node, made by Pillow alone.

    Raises:
        OSError: the file cannot be decoded.
    """
    if node.op == recipe.PIXELS:
        shape = (node.channels, node.size[1], node.size[0])
        data = node.source.data
        array = data.reshape(shape).transpose(1, 2, 0) if node.params[5] else data.reshape(*shape[1:], shape[0])
        return image_of(array if node.channels > 1 else array[..., 0])
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
    turned = image_of(np.asarray(hue) + np.uint8(p[0]))
    return Image.merge("HSV", (turned, saturation, value)).convert("RGB")


def _map(image: Image.Image, p: tuple[Any, ...], node: Node) -> Image.Image:
    values = np.resize(p[0], 256 * node.channels)
    return image.point(values.tolist())


def _project(image: Image.Image, p: tuple[Any, ...], node: Node) -> Image.Image:
    sampling = (Image.Resampling.NEAREST, Image.Resampling.BILINEAR, Image.Resampling.BICUBIC)[p[11]]
    fill: Any = p[12] if node.channels == 1 else tuple(p[12:15])
    if p[10]:
        return image.transform(node.size, Image.Transform.PERSPECTIVE, p[2:10], sampling, fillcolor=fill)
    return image.transform(node.size, Image.Transform.AFFINE, p[2:8], sampling, fillcolor=fill)


def _pad_edges(image: Image.Image, p: tuple[Any, ...], node: Node) -> Image.Image:
    left, top, height, width, border = p
    array = np.asarray(image)
    sides = [(top, height - array.shape[0] - top), (left, width - array.shape[1] - left), (0, 0)]
    modes: dict[int, Any] = {0: "reflect", 1: "symmetric", 2: "wrap", 3: "edge"}
    return image_of(np.pad(array, sides[: array.ndim], mode=modes[border]))


def _by_torch(function: Callable[[Any, torch.Tensor, tuple[Any, ...]], torch.Tensor]) -> Any:
    """A step that torchvision makes with tensors."""

    def step(image: Image.Image, p: tuple[Any, ...], node: Node) -> Image.Image:
        from torchvision.transforms.v2 import functional

        array = np.array(image)
        tensor = torch.from_numpy(np.atleast_3d(array)).permute(2, 0, 1)
        made = function(functional, tensor, p).permute(1, 2, 0).numpy()
        return image_of(made if node.channels > 1 else made[..., 0])

    return step


def _generation(second: Any, p: tuple[Any, ...]) -> Any:
    """torchvision's functions for tensors, of the generation that the step is of."""
    import torchvision.transforms._functional_tensor as first

    return first if p[0] == 1 else second


def _correlate(_: Any, x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    height, width = p[1:3]
    weights = torch.tensor(p[3:], dtype=torch.float32).view(1, 1, height, width).expand(x.shape[0], 1, height, width)
    sides = [width // 2, width // 2, height // 2, height // 2]
    padded = torch.nn.functional.pad(x[None].float(), sides, mode="reflect")
    return torch.nn.functional.conv2d(padded, weights, groups=x.shape[0])[0].round_().to(torch.uint8)


def _torch_resize(_: Any, x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    mode = ("bilinear", "bicubic", "lanczos")[p[2]]
    return torch.nn.functional.interpolate(x[None], size=list(p[:2]), mode=mode, antialias=bool(p[3]))[0]


def _torch_resize_floats(_: Any, x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    mode = ("bilinear", "bicubic")[p[2]]
    made = torch.nn.functional.interpolate(x[None].float(), size=list(p[:2]), mode=mode, antialias=p[3] == 0)[0]
    return made.clamp(min=0, max=255).round().to(torch.uint8)


def _torch_pick(_: Any, x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    mode = "nearest-exact" if p[2] else "nearest"
    return torch.nn.functional.interpolate(x[None], size=list(p[:2]), mode=mode)[0]


def points(numbers: Any, projective: bool, width: int, height: int) -> torch.Tensor:
    """The points of a grid, ``(1, height, width, 2)``, by torch's matrix products, as torchvision makes them."""
    first = (0.5, 0.5) if projective else ((1.0 - width) * 0.5, (1.0 - height) * 0.5)
    base = torch.empty(1, height, width, 3)
    base[..., 0] = torch.arange(width) + first[0]
    base[..., 1] = (torch.arange(height) + first[1])[:, None]
    base[..., 2] = 1
    base = base.view(1, height * width, 3)
    made = base.bmm(torch.tensor(numbers[:6], dtype=torch.float32).view(1, 2, 3).transpose(1, 2))
    if projective:
        below = torch.tensor([*numbers[6:8], 1.0], dtype=torch.float32).expand(1, 2, 3).transpose(1, 2)
        made = made.div_(base.bmm(below)).sub_(1.0)
    return made.view(1, height, width, 2)


def _torch_warp(_: Any, x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    return _at_points(x, points(p[2:10], bool(p[10]), p[1], p[0]), p[11], p[12:])


def _torch_grid(_: Any, x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    height, width = p[:2]
    grid = torch.from_numpy(p[7][: height * width * 8].copy()).view(torch.float32).view(1, height, width, 2)
    return _at_points(x, grid, p[2], p[3:7])


def _at_points(x: torch.Tensor, grid: torch.Tensor, linear: Any, fill: Any) -> torch.Tensor:
    import torchvision.transforms._functional_tensor as first
    from torchvision.transforms.v2.functional import _geometry as second

    mode = "bilinear" if linear else "nearest"
    made: torch.Tensor = (first if fill[0] == 2 else second)._apply_grid_transform(
        x, grid, mode, fill=list(fill[1 : 1 + x.shape[0]]) if fill[0] else None
    )
    return made


def _mix(image: Image.Image, p: tuple[Any, ...], node: Node) -> Image.Image:
    tables, others = p
    total: Any = None
    for table, part in zip(tables, [image, *(replay(other) for other in others)], strict=True):
        planes = np.atleast_3d(np.asarray(part)).transpose(2, 0, 1)
        values = table.values.view(-1, 256)
        term = torch.stack(
            [values[min(c, len(values) - 1)][torch.from_numpy(x.astype(np.int64))] for c, x in enumerate(planes)]
        )
        total = term if total is None else total + term
    made = total.to(torch.uint8).permute(1, 2, 0).numpy()
    return image_of(made if node.channels > 1 else made[..., 0])


def _blend(image: Image.Image, p: tuple[Any, ...], node: Node) -> Image.Image:
    return Image.blend(image, replay(p[0]), p[1])


def _blur(image: Image.Image, p: tuple[Any, ...], node: Node) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(p[:2]) if p[3] else ImageFilter.BoxBlur(p[:2]))


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
    recipe.BLUR: _blur,
    recipe.MIX: _mix,
    recipe.BLEND: _blend,
    recipe.CHANNELS: lambda image, p, node: Image.merge("RGB", [image.split()[c] for c in p]),
    recipe.PROJECT: _project,
    recipe.PAD_EDGES: _pad_edges,
    **dict.fromkeys((recipe.CORRELATE, recipe.TORCH_PRODUCTS), _by_torch(_correlate)),
    recipe.TORCH_RESIZE: _by_torch(_torch_resize),
    recipe.TORCH_RESIZE_FLOATS: _by_torch(_torch_resize_floats),
    recipe.TORCH_PICK: _by_torch(_torch_pick),
    recipe.TORCH_WARP: _by_torch(_torch_warp),
    recipe.TORCH_GRID: _by_torch(_torch_grid),
    recipe.TORCH_LUMA: _by_torch(lambda f, x, p: _generation(f, p).rgb_to_grayscale(x)),
    recipe.TORCH_CONTRAST: _by_torch(lambda f, x, p: _generation(f, p).adjust_contrast(x, p[1])),
    recipe.TORCH_SATURATE: _by_torch(lambda f, x, p: _generation(f, p).adjust_saturation(x, p[1])),
    recipe.TORCH_HUE: _by_torch(lambda f, x, p: _generation(f, p).adjust_hue(x, p[1])),
    **dict.fromkeys(
        (recipe.TORCH_SHARPEN, recipe.TORCH_SHARPEN_PRODUCTS),
        _by_torch(lambda f, x, p: _generation(f, p).adjust_sharpness(x, p[1])),
    ),
    recipe.TORCH_AUTOCONTRAST: _by_torch(lambda f, x, p: _generation(f, p).autocontrast(x)),
    recipe.TORCH_EQUALIZE: _by_torch(lambda f, x, p: f.equalize(x)),
    recipe.SATURATE: lambda image, p, node: ImageEnhance.Color(image).enhance(p[0]),
}
