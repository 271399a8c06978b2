# SPDX-License-Identifier: Apache-2.0
"""Resizing of lazy tensors: torch's ``interpolate``, and the first generation's calls of it by way of floats.

A resize is recorded where torch's bits are known. The second generation passes bytes to torch's function directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..ir import steps
from ..ir.recipe import Node
from ..materialize.trial import is_equal
from ..reference.interpolation import APART, CUBIC, LINEAR, ROUNDED, SMOOTH, TOGETHER, find_torch_way
from . import floats, views
from .tensor import LazyTensor, Recorders, copy_layout, is_lazy

_FILTERS = {"bilinear": 0, "bicubic": 1, "lanczos": 2}  # filters of bytes, by their native numbers
_KINDS = {"bilinear": LINEAR, "bicubic": CUBIC}
# torch computes a result without `antialias` in another way if the sum of its sides is at most this.
_SMALL = 128
# Sizes of trials: torch adds few values in one way, many in another.
_SMOOTH_TRIALS = ((11, 19), (21, 90), (61, 8), (30, 20), (37, 90), (50, 47))
_SMALL_TRIALS = ((11, 19), (61, 8), (64, 64))
_LARGE_TRIALS = ((65, 64), (21, 150), (140, 30))


def resize_v1(
    original: Callable[..., Any], x: LazyTensor, size: Any, interpolation: str = "bilinear", antialias: Any = True
) -> LazyTensor | None:
    """Record the first generation's ``resize``, bilinear and bicubic, by way of floats."""
    sides = list(size) if isinstance(size, (list, tuple)) else []
    if len(sides) != 2 or not all(type(n) is int and n > 0 for n in sides):
        return None
    return resize_floats(x, sides, interpolation, antialias)


def resize_floats(x: LazyTensor, sides: Sequence[int], interpolation: str, antialias: Any) -> LazyTensor | None:
    """Record torch's ``interpolate`` of floats; bytes are rounded at the end. ``sides``: (height, width)."""
    if interpolation not in _KINDS:
        return None
    if antialias and sides[1] == 1:  # torch adds single columns in another way
        return None
    kind, (height, width) = _KINDS[interpolation], sides
    way = _find_way(kind, bool(antialias), x._rows[0].node.channels, sides)
    if way is None:
        return None
    params = (height, width, kind, way)

    def step(node: Node) -> Node:
        return node.then(steps.TorchResizeFloats(*params), (width, height))

    return views.add_step(x, step) if x.dtype == torch.uint8 else floats.add_step(x, step)


def _find_way(kind: int, antialias: bool, channels: int, sides: Sequence[int]) -> int | None:
    """Return the way in which torch resizes such an image to this size; None if unknown."""
    if antialias:
        ways: tuple[int, ...] = (SMOOTH,)
        trials: tuple[tuple[int, int], ...] = _SMOOTH_TRIALS
    else:
        ways = (APART, ROUNDED) if kind == CUBIC else (TOGETHER, APART, ROUNDED)
        trials = _SMALL_TRIALS if sum(sides) <= _SMALL else _LARGE_TRIALS
    return find_torch_way(kind, ways, channels, trials)


def _interpolate(func: Any, args: Any, kwargs: Any) -> Any:
    defaults = {
        "input": None, "size": None, "scale_factor": None, "mode": "nearest", "align_corners": None,
        "recompute_scale_factor": None, "antialias": False,
    }  # fmt: skip
    x, size, factor, mode, corners, recompute, smooth = views.bind_arguments(args, kwargs, defaults)
    if not is_lazy(x) or factor is not None or recompute or corners or x.ndim != 4:
        return NotImplemented
    if not isinstance(size, (list, tuple)) or len(size) != 2 or not all(type(n) is int and n > 0 for n in size):
        return NotImplemented
    height, width = size
    result: LazyTensor | None = None
    if mode in ("nearest", "nearest-exact") and not smooth:
        pick = (height, width, int(mode == "nearest-exact"))
        result = views.move_pixels(x, lambda node: node.then(steps.TorchPick(*pick), (width, height)))
    elif x.dtype == torch.float32:
        result = resize_floats(x, (height, width), mode, smooth)
    elif x.dtype == torch.uint8:
        result = _resize_bytes(x, (height, width), mode, bool(smooth))
    if result is None:
        return NotImplemented
    if not x._is_cut:  # torch uses its operand's layout, unless that is a window or transposed
        copy_layout(x, result)._is_turned = False
    return result


def _resize_bytes(x: LazyTensor, sides: tuple[int, int], mode: str, smooth: bool) -> LazyTensor | None:
    """Record torch's ``interpolate`` of bytes. ``sides``: (height, width)."""
    if mode not in _FILTERS or (mode == "lanczos" and not smooth):
        return None
    (height, width), params = sides, (_FILTERS[mode], int(smooth))

    def step(node: Node) -> Node:
        return node.then(steps.TorchResize(height, width, *params), (width, height))

    def original(values: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(values[None], size=[19, 61], mode=mode, antialias=smooth)[0]

    def tried(node: Node) -> Node:
        return node.then(steps.TorchResize(19, 61, *params), (61, 19))

    if not is_equal(("interpolate", *params), x._rows[0].node.channels, tried, original):
        return None
    return views.add_step(x, step)


FUNCTIONS: Recorders = {torch.nn.functional.interpolate: _interpolate}
