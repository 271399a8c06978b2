# SPDX-License-Identifier: Apache-2.0
"""Rotations, shears, perspective and elastic changes of tensors: torchvision's grids, recorded as numbers.

torchvision's kernels make a grid of points and sample the image there. They run as they are, on tensors that record;
the functions below stand in for those two parts, so that a grid is a few numbers until somebody needs its points.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from . import floats, recipe, views
from .recipe import Node
from .replay import points
from .sampling import finds_torchs_points, samples_as_torch
from .tensor import LazyTensor, is_lazy
from .trial import is_equal, is_equal_in_floats

# Below this torch multiplies the grid's matrices in another way.
_FEWEST_POINTS = 128
_SECOND, _FIRST = 1.0, 2.0  # how a generation mixes what is inside of the image with its fill (native/recipe_ops.hpp)
_recording = threading.local()


class Grid(NamedTuple):
    """A grid that is not made yet; ``numbers`` as in ``native/torch_warp.hpp``."""

    numbers: tuple[float, ...]
    projective: bool
    size: tuple[int, int]  # (width, height)
    make: Callable[[], torch.Tensor]


def kernel(original: Callable[..., Any], x: LazyTensor, *args: Any, **kwargs: Any) -> Any:
    """A kernel of torchvision's that makes a grid, on a tensor that records."""
    if not floats.are_floats(x) and (x.dtype != torch.uint8 or any(views.bytes_of(row) is None for row in x._rows)):
        return None
    with _grids_as_numbers():
        result = original(x.as_subclass(torch.Tensor), *args, **kwargs)
    return result.as_subclass(getattr(type(x), "stands_for", torch.Tensor))


@contextlib.contextmanager
def _grids_as_numbers() -> Iterator[None]:
    was = getattr(_recording, "on", False)
    _recording.on = True
    try:
        yield
    finally:
        _recording.on = was


def affine_grid(original: Callable[..., Any], theta: Any, w: int, h: int, ow: int, oh: int) -> Any:
    """torchvision's ``_affine_grid``."""
    if not getattr(_recording, "on", False) or theta.dtype != torch.float32 or ow * oh < _FEWEST_POINTS:
        return original(theta, w=w, h=h, ow=ow, oh=oh)
    kept = theta.clone()
    scaled = _scaled(theta[0], w, h)
    return Grid((*scaled, 0.0, 0.0), False, (ow, oh), lambda: original(kept, w=w, h=h, ow=ow, oh=oh))


def perspective_grid(original: Callable[..., Any], coeffs: Any, ow: int, oh: int, dtype: Any, device: Any) -> Any:
    """torchvision's ``_perspective_grid``."""
    if not getattr(_recording, "on", False) or dtype != torch.float32 or ow * oh < _FEWEST_POINTS:
        return original(coeffs, ow=ow, oh=oh, dtype=dtype, device=device)
    numbers = torch.tensor(coeffs, dtype=torch.float32)
    scaled = _scaled(numbers[:6].view(2, 3), ow, oh)
    below = (float(numbers[6]), float(numbers[7]))
    return Grid((*scaled, *below), True, (ow, oh), lambda: original(coeffs, ow=ow, oh=oh, dtype=dtype, device=device))


def _scaled(theta: torch.Tensor, width: int, height: int) -> list[float]:
    """A matrix in units of half the image's size, divided as torchvision does."""
    return [float(v) for v in (theta / torch.tensor([[0.5 * width], [0.5 * height]], dtype=theta.dtype)).reshape(-1)]


def apply_first_grid(original: Callable[..., Any], img: Any, grid: Any, mode: str, fill: Any) -> Any:
    """The same of torchvision's first generation, which mixes an interpolated edge with its fill in another way."""
    return _applied(original, img, grid, mode, fill, _FIRST)


def apply_grid(original: Callable[..., Any], img: Any, grid: Any, mode: str, fill: Any) -> Any:
    """torchvision's ``_apply_grid_transform``."""
    return _applied(original, img, grid, mode, fill, _SECOND)


def _applied(original: Callable[..., Any], img: Any, grid: Any, mode: str, fill: Any, mixing: float) -> Any:
    made = _sampled(original, img, grid, mode, fill, mixing) if is_lazy(img) else None
    if made is not None:
        return made
    return original(img, grid.make() if isinstance(grid, Grid) else grid, mode, fill)


def _sampled(
    original: Callable[..., Any], x: LazyTensor, grid: Any, mode: str, fill: Any, mixing: float
) -> LazyTensor | None:
    channels = x._rows[0].node.channels
    in_floats = x.dtype == torch.float32
    color = _fill(fill, channels, mixing, in_floats)
    if color is None or mode not in ("nearest", "bilinear") or not samples_as_torch():
        return None
    if x.dtype not in (torch.uint8, torch.float32):
        return None
    linear = int(mode == "bilinear")
    alike = is_equal_in_floats if in_floats else is_equal
    if not alike(
        ("grid", mode, color[0], finds_torchs_points()), channels, *_trial_of(original, mode, fill, linear, color)
    ):
        return None
    stepped = floats.stepped if in_floats else views.stepped
    if isinstance(grid, Grid) and not finds_torchs_points():
        grid = grid.make()  # torch's own points travel with the step
    if isinstance(grid, Grid):
        width, height = grid.size
        params = (height, width, *grid.numbers, int(grid.projective), linear, *color)
        return stepped(x, lambda node: node.then(recipe.TORCH_WARP, params, (width, height)))
    if grid.dtype != torch.float32 or grid.shape[0] != 1:
        return None
    return stepped(x, given_step(grid, linear, color))


def given_step(grid: torch.Tensor, linear: int, color: tuple[float, ...]) -> Callable[[Node], Node]:
    """A step that samples at points ``(1, height, width, 2)``, which travel with it."""
    height, width = grid.shape[1:3]
    points = grid.detach().contiguous().numpy().reshape(-1).view(np.uint8)
    memory = np.zeros(-(-points.size // 1024) * 1024, np.uint8)  # as tables are
    memory[: points.size] = points
    return lambda node: node.then(recipe.TORCH_GRID, (height, width, linear, *color, memory), (width, height))


def _fill(fill: Any, channels: int, mixing: float, in_floats: bool = False) -> tuple[float, ...] | None:
    """(whether there is one, and how it is mixed; three values); None if it is another."""
    if fill is None:
        return (0.0, 0.0, 0.0, 0.0)
    values = list(fill) if isinstance(fill, (list, tuple)) else [fill]
    fits = math.isfinite if in_floats else (lambda v: 0 <= v <= 255)
    if len(values) not in (1, channels) or not all(type(v) in (int, float) and fits(v) for v in values):
        return None
    return (mixing, *(float(v) for v in (values * 3)[:3]))


def _trial_of(original: Callable[..., Any], mode: str, fill: Any, linear: int, color: Any) -> tuple[Any, Any]:
    """A step and its function for a trial, with a matrix and with perspective."""
    width, height = 47, 37
    theta = torch.tensor([[0.9, 0.2, 3.1], [-0.15, 1.1, -2.3]])
    numbers = (*_scaled(theta, width, height), 0.001, -0.002)

    def given(node: Node) -> Node:
        for projective in (False, True):
            node = given_step(points(numbers, projective, width, height), linear, color)(node)
        return node

    def step(node: Node) -> Node:
        first = node.then(recipe.TORCH_WARP, (height, width, *numbers[:6], 0.0, 0.0, 0, linear, *color))
        return first.then(recipe.TORCH_WARP, (height, width, *numbers, 1, linear, *color))

    def function(image: torch.Tensor) -> torch.Tensor:
        for projective in (False, True):
            grid = points(numbers, projective, width, height)
            image = original(image, grid, mode, fill)
        return image

    return step if finds_torchs_points() else given, function


def elastic_step(
    original: Callable[..., Any], channels: int, grid: torch.Tensor, mode: str, fill: Any, is_first: bool
) -> Any:
    """The step of an elastic change of a Pillow image, by the first generation or the second; None if it is not
    recorded."""
    color = _fill(fill, channels, _FIRST if is_first else _SECOND)
    if color is None or mode not in ("nearest", "bilinear") or grid.dtype != torch.float32 or grid.shape[0] != 1:
        return None
    linear = int(mode == "bilinear")
    trial = _trial_of(original, mode, fill, linear, color)
    if not samples_as_torch() or not is_equal(("grid", mode, color[0], finds_torchs_points()), channels, *trial):
        return None
    return given_step(grid, linear, color)
