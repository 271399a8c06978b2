# SPDX-License-Identifier: Apache-2.0
"""Planes of bytes with an image: masks and videos, whose windows, mirrors, frames and nearest sizes are recorded.

The planes are copied when the recording begins, because their memory is the script's. These steps only choose values,
so every result is exact. A function that is not recorded materializes the planes.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch

from .. import counts, recording
from ..ir import steps
from ..ir.recipe import Node, Size
from ..ir.rows import LazyRow
from ..ir.tables import Table, identity_table, map_table
from ..materialize.materialization import Materialization
from ..proxy_names import named_after
from ..transport.source import Source
from .lazy_base import LazyBase, become_plain, call_materialized, protect
from .tensor import QUERIES, query, refuse_index

BYTES = (torch.uint8, torch.bool)
_SMALL = 1 << 14  # bytes; fewer are computed immediately, which costs less than recording them
MIRROR_ROWS, MIRROR_COLUMNS = 0, 1  # methods of `Transpose`: left and right, top and bottom are exchanged
Window = tuple[int, int, int, int]  # (x0, y0, x1, y1)


class _Memory:
    """Memory of planes as torch would have it, and the lazy tensors that show windows of it."""

    def __init__(self, rows: Sequence[LazyRow], shape: Sequence[int], dtype: torch.dtype) -> None:
        self.rows = rows
        self.shape = tuple(shape)
        self.dtype = dtype
        self.members: list[tuple[weakref.ref[Any], int, int]] = []  # with their left and top edges

    def materialize_members(self, x: Any) -> bool:
        """Materialize the whole memory if others than ``x`` are in use or ``x`` is a window; return whether it did."""
        alive: list[tuple[Any, int, int]] = []
        for reference, left, top in self.members:
            member = reference()
            if are_lazy(member):
                alive.append((member, left, top))
        if tuple(x.shape) == self.shape and all(member is x for member, *_ in alive):
            return False
        whole = _new(LazyPlanes, self.rows, self.shape, self.dtype)
        Materialization([whole]).run()
        for member, left, top in alive:
            member._materialized = _cut(whole._materialized, left, top, member.shape)
        return True


@named_after(torch.Tensor)
class LazyPlanes(LazyBase):
    """Planes that are not materialized yet, ``(..., height, width)``; ``_rows`` has one row for each plane."""

    _rows: Sequence[LazyRow]
    _memory: _Memory
    _place: tuple[int, int]  # left and top edge in the memory
    _is_view_in_torch: bool
    _materialized: torch.Tensor | None
    is_counted = False  # the report counts images
    own_attributes = ("_rows", "_memory", "_place", "_is_view_in_torch", "_materialized")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Answer a query, record a conversion, or materialize the tensors and run ``func``."""
        kwargs = kwargs or {}
        if func in QUERIES:
            return query(func, args, kwargs)
        if func is torch.Tensor.to and len(args) == 2 and not kwargs and are_lazy(args[0]):
            converted = _convert(args[0], args[1])
            if converted is not None:
                return converted
        if func is torch.Tensor.__index__ and are_lazy(args[0]):
            refuse_index(args[0])
        counts.add(counts.TORCH)
        return call_materialized(func, args, kwargs)

    def materialize(self) -> torch.Tensor:
        """Return the plain tensor, with torch's memory layout, on which sums depend."""
        if self._materialized is None and not self._memory.materialize_members(self):
            self._materialized = _compute(self)
        assert self._materialized is not None
        return self._materialized

    def as_subclass(self, cls: Any) -> Any:
        """Change the class like torch; changes between tensors, masks and videos are recorded."""
        lazy = LazyPlanes if cls is torch.Tensor else LAZY_CLASSES.get(cls)
        if self._materialized is not None or lazy is None:
            return become_plain(self).as_subclass(cls)
        return _alias(self, lazy)


def _compute(x: Any) -> torch.Tensor:
    Materialization([x]).run()
    values: torch.Tensor = x._materialized
    return values.view_as(values) if x._is_view_in_torch else values


def _cut(x: torch.Tensor, left: int, top: int, shape: Sequence[int]) -> torch.Tensor:
    return x[..., top : top + shape[-2], left : left + shape[-1]]


def _new(
    kind: Any,
    rows: Sequence[LazyRow],
    shape: Sequence[int],
    dtype: torch.dtype,
    within: tuple[Any, int, int] | None = None,
) -> Any:
    """Return lazy planes: with memory of their own, or ``within`` some memory from a left and a top edge on."""
    memory, left, top = within or (_Memory(rows, shape, dtype), 0, 0)
    width = memory.shape[-1]
    strides = [1]
    for extent in reversed(memory.shape[1:]):
        strides.append(strides[-1] * extent)
    result: Any = torch.Tensor._make_wrapper_subclass(
        kind, tuple(shape), strides=tuple(reversed(strides)), storage_offset=top * width + left, dtype=dtype
    )
    protect(result)
    result._rows, result._memory, result._place = rows, memory, (left, top)
    result._is_view_in_torch, result._materialized = within is not None, None
    memory.members.append((weakref.ref(result), left, top))
    recording.track(result)
    return result


def _window(x: Any, rows: Sequence[LazyRow], window: Window, kind: Any = None) -> Any:
    """Return planes that show a window of the memory of ``x``."""
    (left, top), (x0, y0, x1, y1) = x._place, window
    shape = (*x.shape[:-2], y1 - y0, x1 - x0)
    return _new(kind or type(x), rows, shape, x.dtype, (x._memory, left + x0, top + y0))


def _alias(x: Any, kind: Any) -> Any:
    """Return an alias of ``x`` in another class, as ``as_subclass`` does."""
    return _window(x, x._rows, (0, 0, *x._rows[0].node.size), kind)


def are_lazy(x: Any) -> bool:
    """Return whether ``x`` are planes that are not materialized."""
    return issubclass(type(x), LazyPlanes) and x._materialized is None


def state_of(x: Any) -> tuple[Any, ...]:
    """Return the arguments of :func:`with_state` for lazy planes."""
    kind = None if type(x) is LazyPlanes else type(x).represented_class
    return kind, x._rows, tuple(x.shape), x.dtype


def with_state(kind: Any, rows: list[LazyRow], shape: tuple[int, ...], dtype: torch.dtype) -> Any:
    """Return lazy planes of the state, with memory of their own."""
    return _new(LazyPlanes if kind is None else lazy_class(kind), rows, shape, dtype)


# ---- recording ----

LAZY_CLASSES: dict[Any, Any] = {}  # lazy classes of masks and videos, by the represented class


def lazy_class(kind: Any) -> Any:
    """Return the lazy subclass of ``torchvision.tv_tensors.Mask`` or ``Video``."""
    if kind not in LAZY_CLASSES:

        @named_after(kind)
        class LazyBeside(LazyPlanes, kind):  # type: ignore[misc]
            represented_class = kind

        LAZY_CLASSES[kind] = LazyBeside
    return LAZY_CLASSES[kind]


def copy_planes(x: torch.Tensor, which: Sequence[int] | None = None) -> Any:
    """Return a recorded copy of bytes ``(..., height, width)``; None for other tensors, and for small ones.

    Args:
        x: the bytes.
        which: the elements of the first axis that are copied; None for all.
    """
    usual = type(x) is torch.Tensor and x.dtype in BYTES and x.device.type == "cpu" and x.layout == torch.strided
    if not usual or x.ndim < 2 or x.numel() < _SMALL or x.is_neg():
        return None
    height, width = x.shape[-2:]
    table = identity_table(1)
    rows = []
    whole = x.view(torch.uint8)
    parts = [whole] if which is None else [whole[at] for at in which]
    for plane in (plane for part in parts for plane in part.reshape(-1, height, width)):
        step = steps.Pixels(height, width, 1, 0, 0, 0, width, height)
        source = Source.from_array(plane.contiguous().view(-1).numpy())
        rows.append(LazyRow(Node(step, None, (width, height), 1, source), table))
    return _new(LazyPlanes, rows, x.shape if which is None else (len(which), *x.shape[1:]), x.dtype)


def mirror(x: Any, method: int) -> Any:
    """Record planes whose rows or columns are mirrored."""
    return _change(x, lambda node: _mirrored(node, method))


def cut(x: Any, window: Window) -> Any:
    """Record a window, which shares the memory of ``x``."""
    return _window(x, [row._replace(node=_cropped(row.node, window)) for row in x._rows], window)


def frame(x: Any, sides: tuple[int, int, int, int], fill: int) -> Any:
    """Record planes with a frame of one value, given its left, top, right and bottom width; None if not recorded."""
    if any(row.table is not identity_table(1) for row in x._rows):
        return None
    left, top, right, bottom = sides
    width, height = x._rows[0].node.size
    size = (left + width + right, top + height + bottom)
    return _change(x, lambda node: _framed(node, left, top, size, fill))


def resize_nearest(x: Any, height: int, width: int, *, exact: bool) -> Any:
    """Record planes in another size; `exact` as torch's mode "nearest-exact"."""
    if (width, height) == x._rows[0].node.size:
        return _window(x, x._rows, (0, 0, width, height))
    return _change(x, lambda node: node.then(steps.TorchPick(height, width, int(exact)), (width, height)))


def choose(x: Any, which: Sequence[int]) -> Any:
    """Record a copy of the elements ``which`` of the first axis."""
    count = len(x._rows) // x.shape[0]
    rows = [row for at in which for row in x._rows[at * count : (at + 1) * count]]
    return _new(type(x), rows, (len(which), *x.shape[1:]), x.dtype)


def stack_planes(tensors: Any) -> Any:
    """Return planes stacked along a new first axis, if at least one is lazy and all are alike; otherwise None."""
    if not isinstance(tensors, (list, tuple)):
        return None
    first = next((x for x in tensors if are_lazy(x)), None)
    if first is None or any(x.shape != first.shape or x.dtype != first.dtype for x in tensors):
        return None
    rows: list[LazyRow] = []
    for x in tensors:
        more = x if are_lazy(x) else copy_planes(x.as_subclass(torch.Tensor) if type(x) in LAZY_CLASSES else x)
        if more is None:
            return None
        rows += more._rows
    return _new(LazyPlanes, rows, (len(tensors), *first.shape), first.dtype)


def _change(x: Any, step: Callable[[Node], Node]) -> Any:
    """Return the planes after a step, with memory of their own."""
    rows = [row._replace(node=step(row.node)) for row in x._rows]
    width, height = rows[0].node.size
    return _new(type(x), rows, (*x.shape[:-2], height, width), x.dtype)


def _convert(x: Any, dtype: Any) -> Any:
    """Record the conversion of bytes to another type; None if it is not recorded."""
    if dtype == x.dtype:
        return x
    if x.dtype != torch.uint8 or type(dtype) is not torch.dtype:
        return None
    table = _conversion(dtype)
    if table is None:
        return None
    converted = _new(LazyPlanes, [row._replace(table=table) for row in x._rows], x.shape, dtype)
    return converted if type(x) is LazyPlanes else _alias(converted, type(x))  # torchvision wraps the tensor


@functools.cache
def _conversion(dtype: torch.dtype) -> Table | None:
    if dtype.is_complex or dtype.itemsize > 8 or dtype not in _CONVERTED:
        return None
    return map_table(identity_table(1), ("planes", dtype), lambda values: values.to(dtype))


_CONVERTED = (torch.int64, torch.int32, torch.int16, torch.float32, torch.float64)


# ---- steps, in the order in which they cost least: a frame comes last, a window first ----


def _cropped(node: Node, window: Window) -> Node:
    x0, y0, x1, y1 = window
    size = (x1 - x0, y1 - y0)
    step, parent = node.step, node.parent
    if size == node.size:
        return node
    if parent is not None and isinstance(step, steps.Crop):
        return _cropped(parent, (x0 + step.x0, y0 + step.y0, x1 + step.x0, y1 + step.y0))
    if parent is not None and isinstance(step, steps.Transpose):
        width, height = node.size
        by_rows, by_columns = (width - x1, y0, width - x0, y1), (x0, height - y1, x1, height - y0)
        return _mirrored(_cropped(parent, by_rows if step.method == MIRROR_ROWS else by_columns), step.method)
    if parent is not None and isinstance(step, steps.Pad):
        inner = (
            max(x0 - step.left, 0),
            max(y0 - step.top, 0),
            min(x1 - step.left, parent.size[0]),
            min(y1 - step.top, parent.size[1]),
        )
        if inner[0] < inner[2] and inner[1] < inner[3]:
            left, top = inner[0] + step.left - x0, inner[1] + step.top - y0
            return _framed(_cropped(parent, inner), left, top, size, step.fill[0])
    return node.then(steps.Crop(*window), size)


def _mirrored(node: Node, method: int) -> Node:
    step, parent = node.step, node.parent
    if parent is not None and isinstance(step, steps.Transpose) and step.method == method:
        return parent
    if parent is not None and isinstance(step, steps.Pad):
        left = node.size[0] - parent.size[0] - step.left if method == MIRROR_ROWS else step.left
        top = node.size[1] - parent.size[1] - step.top if method == MIRROR_COLUMNS else step.top
        return _framed(_mirrored(parent, method), left, top, node.size, step.fill[0])
    return node.then(steps.Transpose(method))


def _framed(node: Node, left: int, top: int, size: Size, fill: int) -> Node:
    step, parent = node.step, node.parent
    if size == node.size:
        return node
    if parent is not None and isinstance(step, steps.Pad) and step.fill[0] == fill:
        return _framed(parent, left + step.left, top + step.top, size, fill)
    return node.then(steps.Pad(left, top, size[1], size[0], fill, fill, fill), size)
