# SPDX-License-Identifier: Apache-2.0
"""Float steps of a recipe, computed by torch: the plain twin of ``native/recipe/floats.cpp``, and its fallback."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..ir import steps
from ..ir.recipe import Node
from ..ir.tables import VALUES
from . import by_torch
from .by_torch import functions_for
from .interpolation import F, fused_multiply_add
from .replay import replay
from .sums import Order, sum_floats, values_per_thread

# Operations on single values; the numbers are native code's (native/recipe/floats.cpp).
ADD, SUBTRACT, SUBTRACT_FROM, MULTIPLY, DIVIDE, AT_LEAST, AT_MOST, FLOOR, SOLARIZE = range(9)


def replay_floats(node: Node) -> torch.Tensor:
    """Return the image of a node of floats, ``(channels, height, width)``.

    Raises:
        OSError: the file cannot be decoded.
    """
    assert node.parent is not None
    if isinstance(node.step, steps.Floats):
        planes = np.atleast_3d(np.asarray(replay(node.parent))).transpose(2, 0, 1)
        values = node.step.table.values.view(-1, VALUES)
        indices = torch.from_numpy(planes.astype(np.int64))
        return torch.stack([values[min(c, len(values) - 1)][x] for c, x in enumerate(indices)])
    return _STEPS[node.op](replay_floats(node.parent), node.step).contiguous()


def _transpose(x: torch.Tensor, p: steps.Transpose) -> torch.Tensor:
    """Return the image after Pillow's transposition number ``p.method``."""
    if p.method in (2, 3, 4):
        return x.rot90(p.method - 1, (-2, -1))
    if p.method in (5, 6):
        turned = x.transpose(-2, -1)
        return turned if p.method == 5 else turned.flip((-2, -1))
    return x.flip(-1 if p.method == 0 else -2)


def _pointwise(x: torch.Tensor, p: steps.Pointwise) -> torch.Tensor:
    for at in range(0, len(p.operations), 4):
        kind, *numbers = p.operations[at : at + 4]
        x = _OPERATIONS[int(kind)](x, torch.tensor(numbers[: x.shape[0]], dtype=torch.float32).view(-1, 1, 1))
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


def _pad(x: torch.Tensor, p: steps.FloatPad) -> torch.Tensor:
    left, top = p.left, p.top
    result = torch.empty(x.shape[0], p.height, p.width)
    result[...] = torch.tensor(p.fill[: x.shape[0]], dtype=torch.float32).view(-1, 1, 1)
    result[:, top : top + x.shape[1], left : left + x.shape[2]] = x
    return result


def _arrange(x: torch.Tensor, p: steps.Arrange) -> torch.Tensor:
    """Return the values in another order, as one channel."""
    x = x.contiguous()
    strides = (*x.stride(), 0)  # of channels, rows, columns, copies
    axes = [p.axes[at : at + 3] for at in range(0, len(p.axes), 3)]
    order = [extent for _, extent, _ in axes], [unit * strides[of] for of, _, unit in axes]
    return x.as_strided(*order).reshape(1, x.shape[1], -1)


def _contrast(x: torch.Tensor, p: steps.FloatContrast) -> torch.Tensor:
    """Adjust the contrast with the mean that the recording process would have computed with its number of threads."""
    first, factor, order = p.generation == 1, p.factor, Order(p.lanes, p.threads)
    grey = functions_for(p).rgb_to_grayscale(x) if x.shape[0] == 3 else x
    pixels = grey.numel()
    mean = F(sum_floats(grey.contiguous().numpy().reshape(-1), *order)) / F(pixels)
    ratio, rest = F(factor), F(1.0 - factor)
    if first:
        result = x.numpy() * ratio + mean * rest
        return torch.from_numpy(result).clamp(0, 1)
    values = (x.movedim(0, -1) if p.by_pixel else x).contiguous().numpy()
    flat = values.reshape(-1) * ratio
    result = fused_multiply_add(mean, rest, flat)
    share = values_per_thread(flat.size, order.threads)
    for begin in range(0, flat.size, share):
        end = min(begin + share, flat.size)
        left = (end - begin) % p.blocks
        rounded = slice(end - left + 1, end - left + 1 + (left - 1) // 4 * 4)
        result[rounded] = flat[rounded] + mean * rest
    image = torch.from_numpy(result.reshape(values.shape)).clamp(0, 1)
    return image.movedim(-1, 0) if p.by_pixel else image


_STEPS: dict[int, Callable[[torch.Tensor, Any], torch.Tensor]] = {
    steps.CROP: lambda x, p: x[:, p.y0 : p.y1, p.x0 : p.x1],
    steps.TRANSPOSE: _transpose,
    steps.POINTWISE: _pointwise,
    steps.FLOAT_PAD: _pad,
    steps.ARRANGE: _arrange,
    steps.PAD_EDGES: lambda x, p: torch.from_numpy(by_torch.pad_edges(x.numpy(), p, 1)),
    steps.SPREAD: lambda x, p: x.expand(3, *x.shape[1:]),
    steps.CHANNELS: lambda x, p: x[list(p)],
    **dict.fromkeys((steps.CORRELATE, steps.TORCH_PRODUCTS), by_torch.filter_window),
    steps.TORCH_RESIZE_FLOATS: by_torch.resize,
    steps.TORCH_PICK: by_torch.pick_nearest,
    steps.TORCH_WARP: by_torch.warp,
    steps.TORCH_GRID: by_torch.sample_grid,
    steps.TORCH_LUMA: lambda x, p: functions_for(p).rgb_to_grayscale(x),
    steps.TORCH_SATURATE: lambda x, p: functions_for(p).adjust_saturation(x, p.factor),
    steps.FLOAT_CONTRAST: _contrast,
    steps.TORCH_HUE: lambda x, p: functions_for(p).adjust_hue(x, p.turn),
    steps.TORCH_AUTOCONTRAST: lambda x, p: functions_for(p).autocontrast(x),
    **dict.fromkeys(
        (steps.TORCH_SHARPEN, steps.TORCH_SHARPEN_PRODUCTS),
        lambda x, p: functions_for(p).adjust_sharpness(x, p.factor),
    ),
}
