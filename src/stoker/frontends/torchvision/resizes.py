# SPDX-License-Identifier: Apache-2.0
"""Other sizes of lazy tensors: torch's ``interpolate``, and the first generation's way of calling it, by way of floats.

They are recorded as far as torch's bits are known. The second generation calls torch's function on bytes as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import floats, recipe, views
from .interpolation import APART, CUBIC, LINEAR, ROUNDED, SMOOTH, TOGETHER, is_torchs
from .recipe import Node
from .tensor import RECORDED, LazyTensor, is_lazy, like_memory
from .trial import is_equal

_FILTERS = {"bilinear": 0, "bicubic": 1, "lanczos": 2}  # of bytes; the numbers are native code's
_KINDS = {"bilinear": LINEAR, "bicubic": CUBIC}
# Up to such a sum of its sides, torch makes a result without `antialias` in another way.
_SMALL = 128
# What is tried. torch adds up few values in one way, many in another.
_SMOOTH_TRIALS = ((11, 19), (21, 90), (61, 8), (30, 20), (37, 90), (50, 47))
_SMALL_TRIALS = ((11, 19), (61, 8), (64, 64))
_LARGE_TRIALS = ((65, 64), (21, 150), (140, 30))


def first_resize(
    original: Callable[..., Any], x: LazyTensor, size: Any, interpolation: str = "bilinear", antialias: Any = True
) -> LazyTensor | None:
    """The first generation's ``resize``, linear and cubic; it goes by way of floats."""
    sides = list(size) if isinstance(size, (list, tuple)) else []
    if len(sides) != 2 or not all(type(n) is int and n > 0 for n in sides):
        return None
    return by_floats(x, sides, interpolation, antialias)


def by_floats(x: LazyTensor, sides: Sequence[int], interpolation: str, antialias: Any) -> LazyTensor | None:
    """torch's ``interpolate`` of floats; bytes are rounded at last. ``sides``: (height, width)."""
    if interpolation not in _KINDS:
        return None
    if antialias and sides[1] == 1:  # torch adds up single columns in another way
        return None
    kind, (height, width) = _KINDS[interpolation], sides
    way = _way(kind, bool(antialias), x._rows[0].node.channels, sides)
    if way is None:
        return None
    params = (height, width, kind, way)

    def step(node: Node) -> Node:
        return node.then(recipe.TORCH_RESIZE_FLOATS, params, (width, height))

    return views.stepped(x, step) if x.dtype == torch.uint8 else floats.stepped(x, step)


def _way(kind: int, antialias: bool, channels: int, sides: Sequence[int]) -> int | None:
    """The way that torch resizes such an image to such a size; None if it is not known."""
    if antialias:
        ways: tuple[int, ...] = (SMOOTH,)
        trials: tuple[tuple[int, int], ...] = _SMOOTH_TRIALS
    else:
        ways = (APART, ROUNDED) if kind == CUBIC else (TOGETHER, APART, ROUNDED)
        trials = _SMALL_TRIALS if sum(sides) <= _SMALL else _LARGE_TRIALS
    return next((way for way in ways if is_torchs(kind, way, channels, trials)), None)


def _interpolate(func: Any, args: Any, kwargs: Any) -> Any:
    defaults = {
        "input": None, "size": None, "scale_factor": None, "mode": "nearest", "align_corners": None,
        "recompute_scale_factor": None, "antialias": False,
    }  # fmt: skip
    x, size, factor, mode, corners, recompute, smooth = views.arguments_of(args, kwargs, defaults)
    if not is_lazy(x) or factor is not None or recompute or corners or x.ndim != 4:
        return NotImplemented
    if not isinstance(size, (list, tuple)) or len(size) != 2 or not all(type(n) is int and n > 0 for n in size):
        return NotImplemented
    height, width = size
    made: LazyTensor | None = None
    if mode in ("nearest", "nearest-exact") and not smooth:
        pick = (height, width, int(mode == "nearest-exact"))
        made = views.moved(x, lambda node: node.then(recipe.TORCH_PICK, pick, (width, height)))
    elif x.dtype == torch.float32:
        made = by_floats(x, (height, width), mode, smooth)
    elif x.dtype == torch.uint8:
        made = _by_bytes(x, (height, width), mode, bool(smooth))
    if made is None:
        return NotImplemented
    if not x._is_cut:  # torch lays it out as its operand, but if that is a window, or turned
        like_memory(x, made)._turned = False
    return made


def _by_bytes(x: LazyTensor, sides: tuple[int, int], mode: str, smooth: bool) -> LazyTensor | None:
    """torch's ``interpolate`` of bytes. ``sides``: (height, width)."""
    if mode not in _FILTERS or (mode == "lanczos" and not smooth):
        return None
    (height, width), params = sides, (_FILTERS[mode], int(smooth))

    def step(node: Node) -> Node:
        return node.then(recipe.TORCH_RESIZE, (height, width, *params), (width, height))

    def original(values: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.interpolate(values[None], size=[19, 61], mode=mode, antialias=smooth)[0]

    def tried(node: Node) -> Node:
        return node.then(recipe.TORCH_RESIZE, (19, 61, *params), (61, 19))

    if not is_equal(("interpolate", *params), x._rows[0].node.channels, tried, original):
        return None
    return views.stepped(x, step)


RECORDED[torch.nn.functional.interpolate] = _interpolate
