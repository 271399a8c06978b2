# SPDX-License-Identifier: Apache-2.0
"""A recipe's steps on floats by torch: the plain twin of ``native/recipe_floats.cpp``, for files that it leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from . import recipe
from .interpolation import F, fused
from .recipe import Node
from .replay import points, replay
from .sums import Order, share_of, total_of_floats
from .tables import VALUES

# Operations on single values; the numbers are native code's (native/recipe_floats.cpp).
ADD, SUBTRACT, SUBTRACT_FROM, MULTIPLY, DIVIDE, AT_LEAST, AT_MOST, FLOOR, SOLARIZE = range(9)


def replay_floats(node: Node) -> torch.Tensor:
    """The image of a node of floats, ``(channels, height, width)``.

    Raises:
        OSError: the file cannot be decoded.
    """
    assert node.parent is not None
    if node.op == recipe.FLOATS:
        planes = np.atleast_3d(np.asarray(replay(node.parent))).transpose(2, 0, 1)
        values = node.params[0].values.view(-1, VALUES)
        indices = torch.from_numpy(planes.astype(np.int64))
        return torch.stack([values[min(c, len(values) - 1)][x] for c, x in enumerate(indices)])
    return _STEPS[node.op](replay_floats(node.parent), node.params).contiguous()


def _transpose(x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    """Pillow's transpositions, by their numbers."""
    if p[0] in (2, 3, 4):
        return x.rot90(p[0] - 1, (-2, -1))
    if p[0] in (5, 6):
        turned = x.transpose(-2, -1)
        return turned if p[0] == 5 else turned.flip((-2, -1))
    return x.flip(-1 if p[0] == 0 else -2)


def _pointwise(x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    for at in range(1, p[0], 4):
        x = _OPERATIONS[int(p[at])](
            x, torch.tensor(p[at + 1 : at + 1 + x.shape[0]], dtype=torch.float32).view(-1, 1, 1)
        )
    return x


_OPERATIONS: dict[int, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    ADD: torch.add,
    SUBTRACT: torch.sub,
    SUBTRACT_FROM: lambda x, c: c - x,
    MULTIPLY: torch.mul,
    DIVIDE: torch.div,
    AT_LEAST: lambda x, c: torch.clamp(x, min=c),
    AT_MOST: lambda x, c: torch.clamp(x, max=c),
    FLOOR: lambda x, c: torch.floor(x),
    SOLARIZE: lambda x, c: torch.where(x >= c, 1.0 - x, x),
}


def _pad(x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    left, top, height, width = p[:4]
    made = torch.empty(x.shape[0], height, width)
    made[...] = torch.tensor(p[4 : 4 + x.shape[0]], dtype=torch.float32).view(-1, 1, 1)
    made[:, top : top + x.shape[1], left : left + x.shape[2]] = x
    return made


def _pad_edges(x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    left, top, height, width, border = p
    sides = [(0, 0), (top, height - x.shape[1] - top), (left, width - x.shape[2] - left)]
    modes: dict[int, Any] = {0: "reflect", 1: "symmetric", 2: "wrap", 3: "edge"}
    return torch.from_numpy(np.pad(x.numpy(), sides, mode=modes[border]))


def _resize(x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    mode = ("bilinear", "bicubic")[p[2]]
    return torch.nn.functional.interpolate(x[None], size=list(p[:2]), mode=mode, antialias=p[3] == 0)[0]


def _pick(x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    mode = "nearest-exact" if p[2] else "nearest"
    return torch.nn.functional.interpolate(x[None], size=list(p[:2]), mode=mode)[0]


def _warp(x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    return _at_points(x, points(p[2:10], bool(p[10]), p[1], p[0]), p[11], p[12:])


def _grid(x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    height, width = p[:2]
    grid = torch.from_numpy(p[7][: height * width * 8].copy()).view(torch.float32).view(1, height, width, 2)
    return _at_points(x, grid, p[2], p[3:7])


def _at_points(x: torch.Tensor, grid: torch.Tensor, linear: Any, fill: Any) -> torch.Tensor:
    import torchvision.transforms._functional_tensor as first
    from torchvision.transforms.v2.functional import _geometry as second

    color = list(fill[1 : 1 + x.shape[0]]) if fill[0] else None
    if fill[0] == 2:
        made: torch.Tensor = first._apply_grid_transform(x[None], grid, "bilinear" if linear else "nearest", color)
    else:
        made = second._apply_grid_transform(x[None], grid, "bilinear" if linear else "nearest", color)
    return made[0]


def _correlate(x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    height, width = p[1:3]
    weights = torch.tensor(p[3:], dtype=torch.float32).view(1, 1, height, width).expand(x.shape[0], 1, height, width)
    padded = torch.nn.functional.pad(x[None], [width // 2] * 2 + [height // 2] * 2, mode="reflect")
    return torch.nn.functional.conv2d(padded, weights, groups=x.shape[0])[0]


def _functions(p: tuple[Any, ...]) -> Any:
    """torchvision's functions for tensors, of the generation that the step is of."""
    import torchvision.transforms._functional_tensor as first
    from torchvision.transforms.v2 import functional as second

    return first if p[0] == 1 else second


def _contrast(x: torch.Tensor, p: tuple[Any, ...]) -> torch.Tensor:
    """With the sum that the recording process would have had, however many threads there are here."""
    first, factor, order = p[0] == 1, p[1], Order(*p[2:4])
    grey = _functions(p).rgb_to_grayscale(x) if x.shape[0] == 3 else x
    pixels = grey.numel()
    mean = F(total_of_floats(grey.contiguous().numpy().reshape(-1), *order)) / F(pixels)
    ratio, rest = F(factor), F(1.0 - factor)
    if first:
        made = x.numpy() * ratio + mean * rest
        return torch.from_numpy(made).clamp(0, 1)
    values = (x.movedim(0, -1) if p[5] else x).contiguous().numpy()
    flat = values.reshape(-1) * ratio
    made = fused(mean, rest, flat)
    share = share_of(flat.size, order.threads)
    for begin in range(0, flat.size, share):
        end = min(begin + share, flat.size)
        left = (end - begin) % p[4]
        rounded = slice(end - left + 1, end - left + 1 + (left - 1) // 4 * 4)
        made[rounded] = flat[rounded] + mean * rest
    image = torch.from_numpy(made.reshape(values.shape)).clamp(0, 1)
    return image.movedim(-1, 0) if p[5] else image


_STEPS: dict[int, Callable[[torch.Tensor, tuple[Any, ...]], torch.Tensor]] = {
    recipe.CROP: lambda x, p: x[:, p[1] : p[3], p[0] : p[2]],
    recipe.TRANSPOSE: _transpose,
    recipe.POINTWISE: _pointwise,
    recipe.FLOAT_PAD: _pad,
    recipe.PAD_EDGES: _pad_edges,
    recipe.SPREAD: lambda x, p: x.expand(3, *x.shape[1:]),
    recipe.CHANNELS: lambda x, p: x[list(p)],
    **dict.fromkeys((recipe.CORRELATE, recipe.TORCH_PRODUCTS), _correlate),
    recipe.TORCH_RESIZE_FLOATS: _resize,
    recipe.TORCH_PICK: _pick,
    recipe.TORCH_WARP: _warp,
    recipe.TORCH_GRID: _grid,
    recipe.TORCH_LUMA: lambda x, p: _functions(p).rgb_to_grayscale(x),
    recipe.TORCH_SATURATE: lambda x, p: _functions(p).adjust_saturation(x, p[1]),
    recipe.FLOAT_CONTRAST: _contrast,
    recipe.TORCH_HUE: lambda x, p: _functions(p).adjust_hue(x, p[1]),
    recipe.TORCH_AUTOCONTRAST: lambda x, p: _functions(p).autocontrast(x),
    **dict.fromkeys(
        (recipe.TORCH_SHARPEN, recipe.TORCH_SHARPEN_PRODUCTS), lambda x, p: _functions(p).adjust_sharpness(x, p[1])
    ),
}
