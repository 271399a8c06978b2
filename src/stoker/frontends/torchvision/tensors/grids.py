# SPDX-License-Identifier: Apache-2.0
"""Rotations, shears, perspective and elastic transforms of tensors: torchvision's grids, recorded as numbers.

torchvision's kernels compute a grid of points and sample the image there. They run unchanged on lazy tensors. The
functions below replace these two parts, so that a grid stays a few numbers until its points are needed.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from ..ir import steps
from ..ir.recipe import Node
from ..materialize.trial import is_equal, is_equal_in_floats
from ..reference.by_torch import grid_points
from ..reference.sampling import has_equal_points, has_equal_samples
from . import floats, views
from .tensor import LazyTensor, is_lazy

# torch multiplies the matrices of smaller grids in another way.
_MIN_POINTS = 128
_SECOND, _FIRST = (
    1.0,
    2.0,
)  # how a generation blends image and fill (native/shared/recipe_ops.hpp)
_recording = threading.local()


class Grid(NamedTuple):
    """A grid whose points are not computed yet; ``numbers`` as in ``native/torch/warp.hpp``."""

    numbers: tuple[float, ...]
    projective: bool
    size: tuple[int, int]  # (width, height)
    make: Callable[[], torch.Tensor]


def run_kernel(original: Callable[..., Any], x: LazyTensor, *args: Any, **kwargs: Any) -> Any:
    """Run a torchvision kernel that computes a grid on a lazy tensor."""
    if not floats.are_floats(x) and (x.dtype != torch.uint8 or any(views.byte_node(row) is None for row in x._rows)):
        return None
    with _grids_as_numbers():
        result = original(x.as_subclass(torch.Tensor), *args, **kwargs)
    return result.as_subclass(getattr(type(x), "represented_class", torch.Tensor))


@contextlib.contextmanager
def _grids_as_numbers() -> Iterator[None]:
    was = getattr(_recording, "on", False)
    _recording.on = True
    try:
        yield
    finally:
        _recording.on = was


def affine_grid(original: Callable[..., Any], theta: Any, w: int, h: int, ow: int, oh: int) -> Any:
    """Replace torchvision's ``_affine_grid``."""
    if not getattr(_recording, "on", False) or theta.dtype != torch.float32 or ow * oh < _MIN_POINTS:
        return original(theta, w=w, h=h, ow=ow, oh=oh)
    kept = theta.clone()
    scaled = _scale(theta[0], w, h)
    return Grid((*scaled, 0.0, 0.0), False, (ow, oh), lambda: original(kept, w=w, h=h, ow=ow, oh=oh))


def perspective_grid(original: Callable[..., Any], coeffs: Any, ow: int, oh: int, dtype: Any, device: Any) -> Any:
    """Replace torchvision's ``_perspective_grid``."""
    if not getattr(_recording, "on", False) or dtype != torch.float32 or ow * oh < _MIN_POINTS:
        return original(coeffs, ow=ow, oh=oh, dtype=dtype, device=device)
    numbers = torch.tensor(coeffs, dtype=torch.float32)
    scaled = _scale(numbers[:6].view(2, 3), ow, oh)
    below = (float(numbers[6]), float(numbers[7]))
    return Grid((*scaled, *below), True, (ow, oh), lambda: original(coeffs, ow=ow, oh=oh, dtype=dtype, device=device))


def _scale(theta: torch.Tensor, width: int, height: int) -> list[float]:
    """Return a matrix in units of half the image's size, divided like torchvision."""
    return [float(v) for v in (theta / torch.tensor([[0.5 * width], [0.5 * height]], dtype=theta.dtype)).reshape(-1)]


def apply_grid_v1(original: Callable[..., Any], img: Any, grid: Any, mode: str, fill: Any) -> Any:
    """Replace the first generation's ``_apply_grid_transform``, which blends an interpolated edge differently."""
    return _apply(original, img, grid, mode, fill, _FIRST)


def apply_grid(original: Callable[..., Any], img: Any, grid: Any, mode: str, fill: Any) -> Any:
    """Replace torchvision's ``_apply_grid_transform``."""
    return _apply(original, img, grid, mode, fill, _SECOND)


def _apply(original: Callable[..., Any], img: Any, grid: Any, mode: str, fill: Any, mixing: float) -> Any:
    result = _record_sampling(original, img, grid, mode, fill, mixing) if is_lazy(img) else None
    if result is not None:
        return result
    return original(img, grid.make() if isinstance(grid, Grid) else grid, mode, fill)


def _record_sampling(
    original: Callable[..., Any], x: LazyTensor, grid: Any, mode: str, fill: Any, mixing: float
) -> LazyTensor | None:
    channels = x._rows[0].node.channels
    in_floats = x.dtype == torch.float32
    color = _fill(fill, channels, mixing, in_floats)
    if color is None or mode not in ("nearest", "bilinear") or not has_equal_samples():
        return None
    if x.dtype not in (torch.uint8, torch.float32):
        return None
    linear = int(mode == "bilinear")
    alike = is_equal_in_floats if in_floats else is_equal
    if not alike(
        ("grid", mode, color[0], has_equal_points()), channels, *_make_trial(original, mode, fill, linear, color)
    ):
        return None
    stepped = floats.add_step if in_floats else views.add_step
    if isinstance(grid, Grid) and not has_equal_points():
        grid = grid.make()  # torch's own points become part of the step
    if isinstance(grid, Grid):
        width, height = grid.size
        params = (height, width, *grid.numbers, int(grid.projective), linear, *color)
        return stepped(x, lambda node: node.then(steps.TorchWarp._make(params), (width, height)))
    if grid.dtype != torch.float32 or grid.shape[0] != 1:
        return None
    return stepped(x, grid_step(grid, linear, color))


def grid_step(grid: torch.Tensor, linear: int, color: tuple[float, ...]) -> Callable[[Node], Node]:
    """Return a step that samples at given points ``(1, height, width, 2)``."""
    height, width = grid.shape[1:3]
    points = grid.detach().contiguous().numpy().reshape(-1).view(np.uint8)
    memory = np.zeros(-(-points.size // 1024) * 1024, np.uint8)  # the granularity of tables
    memory[: points.size] = points
    return lambda node: node.then(steps.TorchGrid._make((height, width, linear, *color, memory)), (width, height))


def _fill(fill: Any, channels: int, mixing: float, in_floats: bool = False) -> tuple[float, ...] | None:
    """Return (blending mode or 0 for no fill, three values); None if the fill is not recorded."""
    if fill is None:
        return (0.0, 0.0, 0.0, 0.0)
    values = list(fill) if isinstance(fill, (list, tuple)) else [fill]
    fits = math.isfinite if in_floats else (lambda v: 0 <= v <= 255)
    if len(values) not in (1, channels) or not all(type(v) in (int, float) and fits(v) for v in values):
        return None
    return (mixing, *(float(v) for v in (values * 3)[:3]))


def _make_trial(original: Callable[..., Any], mode: str, fill: Any, linear: int, color: Any) -> tuple[Any, Any]:
    """Return a step and its function for a trial: an affine grid, then a perspective one."""
    width, height = 47, 37
    theta = torch.tensor([[0.9, 0.2, 3.1], [-0.15, 1.1, -2.3]])
    numbers = (*_scale(theta, width, height), 0.001, -0.002)

    def given(node: Node) -> Node:
        for projective in (False, True):
            node = grid_step(grid_points(numbers, projective, width, height), linear, color)(node)
        return node

    def step(node: Node) -> Node:
        first = node.then(steps.TorchWarp._make((height, width, *numbers[:6], 0.0, 0.0, 0, linear, *color)))
        return first.then(steps.TorchWarp._make((height, width, *numbers, 1, linear, *color)))

    def function(image: torch.Tensor) -> torch.Tensor:
        for projective in (False, True):
            grid = grid_points(numbers, projective, width, height)
            image = original(image, grid, mode, fill)
        return image

    return step if has_equal_points() else given, function


def elastic_step(
    original: Callable[..., Any], channels: int, grid: torch.Tensor, mode: str, fill: Any, is_first: bool
) -> Any:
    """Return the step of an elastic transform of a Pillow image; None if it is not recorded.

    ``is_first``: by the first generation of torchvision's transforms.
    """
    color = _fill(fill, channels, _FIRST if is_first else _SECOND)
    if color is None or mode not in ("nearest", "bilinear") or grid.dtype != torch.float32 or grid.shape[0] != 1:
        return None
    linear = int(mode == "bilinear")
    trial = _make_trial(original, mode, fill, linear, color)
    if not has_equal_samples() or not is_equal(("grid", mode, color[0], has_equal_points()), channels, *trial):
        return None
    return grid_step(grid, linear, color)
