# SPDX-License-Identifier: Apache-2.0
"""Key points with an image: their mirrors, windows, frames, sizes and limits are recorded.

A few numbers are smaller than a recipe. So recorded points are computed at the end of their fetch, in the process that
fetches, and other processes receive numbers. Each step is one rounding per coordinate, as in torchvision, so NumPy
gives the same bits. A function that is not recorded computes the points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from .. import counts, recording
from ..proxy_names import named_after
from .lazy_base import LazyBase, become_plain, call_materialized, protect
from .tensor import QUERIES, query, refuse_index

Values = npt.NDArray[Any]
TYPES: dict[torch.dtype, np.dtype[Any]] = {
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
    torch.int64: np.dtype(np.int64),
}
CanvasSize = tuple[int, int]  # (height, width)


class Flip(NamedTuple):
    """Mirror of one axis (0: x, 1: y), given its last coordinate."""

    axis: int
    last: int

    def __call__(self, *axes: Values) -> None:
        """Mirror the points."""
        along = axes[self.axis]
        np.subtract(along, self.last, out=along)
        np.negative(along, out=along)


class Subtract(NamedTuple):
    """Subtraction of an offset."""

    x: int
    y: int

    def __call__(self, *axes: Values) -> None:
        """Move the points."""
        for along, offset in zip(axes, self, strict=True):
            np.subtract(along, offset, out=along)


class Add(NamedTuple):
    """Addition of an offset. It differs from :class:`Subtract` in the sign of zeros."""

    x: int
    y: int

    def __call__(self, *axes: Values) -> None:
        """Move the points."""
        for along, offset in zip(axes, self, strict=True):
            np.add(along, offset, out=along)


class Scale(NamedTuple):
    """Product with a ratio per axis, which torch rounds to float32; integers are truncated afterwards."""

    x: float
    y: float

    def __call__(self, *axes: Values) -> None:
        """Scale the points."""
        for along, ratio in zip(axes, self, strict=True):
            if along.dtype.kind == "f":
                np.multiply(along, np.float32(ratio), out=along)
            else:
                along[:] = along.astype(np.float32) * np.float32(ratio)


class Clamp(NamedTuple):
    """Limits of the coordinates: from zero to the last one. Integers go through float32."""

    last_x: int
    last_y: int

    def __call__(self, *axes: Values) -> None:
        """Limit the points."""
        for along, last in zip(axes, self, strict=True):
            floats = along if along.dtype.kind == "f" else along.astype(np.float32)
            np.copyto(floats, 0, where=floats < 0)  # keeps negative zeros, as torch does and `np.clip` does not
            np.copyto(floats, last, where=floats > last)
            along[:] = floats


Step = Flip | Subtract | Add | Scale | Clamp


class _Memory:
    """Memory of points as torch would have it, computed once; aliases in other classes share it."""

    def __init__(self, origin: Values, steps: tuple[Step, ...]) -> None:
        self.origin = origin
        self.steps = steps
        self._values: torch.Tensor | None = None

    @property
    def is_computed(self) -> bool:
        """Return whether there are values, which their owners may have changed."""
        return self._values is not None

    def values(self) -> torch.Tensor:
        """Return the memory as a tensor."""
        if self._values is None:
            self._values = torch.from_numpy(replay(self.origin, self.steps))
        return self._values


def replay(origin: Values, steps: Sequence[Step]) -> Values:
    """Return a copy of points ``(..., 2)`` after all ``steps``."""
    points = origin.copy()
    axes = points.reshape(-1, 2).T
    with np.errstate(invalid="ignore", over="ignore"):  # torch gives no warnings
        for step in steps:
            step(*axes)
    return points


@named_after(torch.Tensor)
class LazyPoints(LazyBase):
    """Points ``(..., 2)`` that are not computed yet."""

    _memory: _Memory
    _materialized: torch.Tensor | None
    _plain: torch.Tensor | None
    own_attributes = ("_memory", "_materialized", "_plain")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Answer a query, or compute the points and run ``func``."""
        kwargs = kwargs or {}
        if func in QUERIES:
            return query(func, args, kwargs)
        if func is torch.Tensor.__index__ and are_lazy(args[0]):
            refuse_index(args[0])
        counts.add(counts.TORCH)
        return call_materialized(func, args, kwargs)

    def materialize(self) -> torch.Tensor:
        """Return the plain tensor. It is a view, as the result of torch's ``as_subclass`` is."""
        if self._materialized is None:
            self._materialized = self._memory.values().as_subclass(torch.Tensor)
        return self._materialized

    def as_subclass(self, cls: Any) -> Any:
        """Change the class like torch; changes between tensors and key points are recorded."""
        lazy = LazyPoints if cls is torch.Tensor else LAZY_CLASSES.get(cls)
        if not are_lazy(self) or lazy is None:
            return become_plain(self).as_subclass(cls)
        return _new(lazy, self._memory)


LAZY_CLASSES: dict[Any, Any] = {}  # the lazy class of key points, by the represented class


def lazy_class(kind: Any) -> Any:
    """Return the lazy subclass of ``torchvision.tv_tensors.KeyPoints``."""
    if kind not in LAZY_CLASSES:

        @named_after(kind)
        class LazyKeyPoints(LazyPoints, kind):  # type: ignore[misc]
            represented_class = kind

        LAZY_CLASSES[kind] = LazyKeyPoints
    return LAZY_CLASSES[kind]


def are_lazy(x: Any) -> bool:
    """Return whether ``x`` are points without values."""
    return issubclass(type(x), LazyPoints) and not x._memory.is_computed


def _new(kind: Any, memory: _Memory) -> Any:
    dtype = _TORCH_TYPES[memory.origin.dtype]
    result: Any = torch.Tensor._make_wrapper_subclass(kind, memory.origin.shape, dtype=dtype)
    protect(result)
    result._memory, result._materialized, result._plain = memory, None, None
    recording.track(result)
    return result


_TORCH_TYPES = {kind: dtype for dtype, kind in TYPES.items()}


def plain(x: LazyPoints) -> torch.Tensor:
    """Return plain points with the memory of ``x``, the same object each time.

    It takes a third of the time of a change in place (:func:`~.lazy_base.become_plain`).
    """
    if x._plain is None:
        x._plain = x._memory.values().as_subclass(x.represented_class)
        for name, value in vars(x).items():
            if name not in x.own_attributes:
                setattr(x._plain, name, value)
    return x._plain


def copy_points(x: torch.Tensor) -> Values | None:
    """Return a copy of the values of plain points ``(..., 2)``; None if they are not recorded."""
    usual = x.dtype in TYPES and x.device.type == "cpu" and x.layout == torch.strided and not x.requires_grad
    if not usual or x.ndim < 2 or x.shape[-1] != 2 or not x.numel() or not x.is_contiguous() or x.is_neg():
        return None
    return x.numpy().copy()


def first_steps(x: torch.Tensor, canvas_size: CanvasSize, steps: tuple[Step, ...]) -> Any:
    """Return plain key points after their first ``steps``, in an image of this size; None if they are not recorded."""
    with torch._C.DisableTorchFunctionSubclass():
        origin = copy_points(x.as_subclass(torch.Tensor))
    return None if origin is None else _in_image(lazy_class(type(x)), _Memory(origin, steps), canvas_size)


def more_steps(x: Any, canvas_size: CanvasSize, steps: tuple[Step, ...]) -> Any:
    """Return lazy key points after more ``steps``, in an image of this size."""
    memory = x._memory
    return _in_image(type(x), _Memory(memory.origin, memory.steps + steps), canvas_size)


def _in_image(kind: Any, memory: _Memory, canvas_size: CanvasSize) -> Any:
    result = _new(kind, memory)
    result.canvas_size = canvas_size
    return result


def add_step(x: LazyPoints, step: Step) -> Any:
    """Return lazy points without a size of the image after one more step."""
    return _new(type(x), _Memory(x._memory.origin, (*x._memory.steps, step)))


def dtype_of(x: LazyPoints) -> torch.dtype:
    """Return the type of the coordinates, without torch's dispatch."""
    return _TORCH_TYPES[x._memory.origin.dtype]
