# SPDX-License-Identifier: Apache-2.0
"""Recorded steps computed by torch and torchvision, on tensors of bytes or floats."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch

from ..ir import steps

_BORDERS: dict[int, Any] = {0: "reflect", 1: "symmetric", 2: "wrap", 3: "edge"}  # native/shared/border.hpp


class HasGeneration(Protocol):
    """Step whose result depends on torchvision's generation of transforms."""

    @property
    def generation(self) -> int: ...


def functions_for(p: HasGeneration) -> Any:
    """Return torchvision's tensor functions of the step's generation."""
    import torchvision.transforms._functional_tensor as first
    from torchvision.transforms.v2 import functional as second

    return first if p.generation == 1 else second


def filter_window(x: torch.Tensor, p: steps.Correlate | steps.TorchProducts) -> torch.Tensor:
    """Return floats, correlated with a window; edges are reflected."""
    height, width = p.height, p.width
    weights = (
        torch.tensor(p.weights, dtype=torch.float32).view(1, 1, height, width).expand(x.shape[0], 1, height, width)
    )
    padded = torch.nn.functional.pad(x[None], [width // 2] * 2 + [height // 2] * 2, mode="reflect")
    return torch.nn.functional.conv2d(padded, weights, groups=x.shape[0])[0]


def resize(x: torch.Tensor, p: steps.TorchResizeFloats) -> torch.Tensor:
    """Return floats, resized."""
    mode = ("bilinear", "bicubic")[p.filter]
    return torch.nn.functional.interpolate(x[None], size=[p.height, p.width], mode=mode, antialias=p.way == 0)[0]


def pick_nearest(x: torch.Tensor, p: steps.TorchPick) -> torch.Tensor:
    """Return the nearest values in another size."""
    mode = "nearest-exact" if p.exact else "nearest"
    return torch.nn.functional.interpolate(x[None], size=[p.height, p.width], mode=mode)[0]


def pad_edges(array: Any, p: steps.PadEdges, height_axis: int) -> Any:
    """Return an array with padded edges in an image's height and width."""
    left, top, height, width, border = p
    sides = [(0, 0)] * array.ndim
    sides[height_axis] = (top, height - array.shape[height_axis] - top)
    sides[height_axis + 1] = (left, width - array.shape[height_axis + 1] - left)
    return np.pad(array, sides, mode=_BORDERS[border])


def grid_points(numbers: Any, projective: bool, width: int, height: int) -> torch.Tensor:
    """Return the points of a grid, ``(1, height, width, 2)``, by torch's matrix products like torchvision."""
    first = (0.5, 0.5) if projective else ((1.0 - width) * 0.5, (1.0 - height) * 0.5)
    base = torch.empty(1, height, width, 3)
    base[..., 0] = torch.arange(width) + first[0]
    base[..., 1] = (torch.arange(height) + first[1])[:, None]
    base[..., 2] = 1
    base = base.view(1, height * width, 3)
    result = base.bmm(torch.tensor(numbers[:6], dtype=torch.float32).view(1, 2, 3).transpose(1, 2))
    if projective:
        below = torch.tensor([*numbers[6:8], 1.0], dtype=torch.float32).expand(1, 2, 3).transpose(1, 2)
        result = result.div_(base.bmm(below)).sub_(1.0)
    return result.view(1, height, width, 2)


def warp(x: torch.Tensor, p: steps.TorchWarp) -> torch.Tensor:
    """Return the values at the points of a grid that is given by a matrix."""
    return _sample_points(x, grid_points(p.grid, bool(p.projective), p.width, p.height), p)


def sample_grid(x: torch.Tensor, p: steps.TorchGrid) -> torch.Tensor:
    """Return the values at the points that the step contains."""
    height, width = p.height, p.width
    grid = torch.from_numpy(p.table[: height * width * 8].copy()).view(torch.float32).view(1, height, width, 2)
    return _sample_points(x, grid, p)


def _sample_points(x: torch.Tensor, grid: torch.Tensor, p: steps.TorchWarp | steps.TorchGrid) -> torch.Tensor:
    import torchvision.transforms._functional_tensor as first
    from torchvision.transforms.v2.functional import _geometry as second

    color = list(p.fill[: x.shape[0]]) if p.fills else None
    generation = first if p.fills == 2 else second
    result: torch.Tensor = generation._apply_grid_transform(x[None], grid, "bilinear" if p.linear else "nearest", color)
    return result[0]
