# SPDX-License-Identifier: Apache-2.0
"""Values of lazy tensors in another order: patches, and masks that are filled window by window.

An image processor divides images into patches by a reshape, a permutation, and a reshape that copies; then it
concatenates the images of a batch. Each view is recorded as a view (:class:`LazyView`), and each copy as the steps of a
:class:`RearrangedTensor`. So the values are written once, into the last of these tensors.

Shapes, strides and errors of views are torch's own, on tensors of the meta device.
"""

from __future__ import annotations

import contextlib
import math
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from .. import counts, recording
from ..ir import steps
from ..ir.recipe import Node
from ..ir.rows import LazyRow
from ..materialize.materialization import Materialization, allocate
from ..proxy_names import named_after
from . import floats, views
from .lazy_base import LazyBase, call_materialized, materialize_nested, protect
from .tensor import QUERIES, LazyTensor, Recorders, is_lazy, query, query_layout

_META = torch.device("meta")
Layout = tuple[tuple[int, ...], tuple[int, ...], int]  # sizes, strides and first value of a view


class Fill(NamedTuple):
    """One value everywhere, and windows that are set to values afterwards, in order."""

    values: int  # their number
    value: float
    windows: tuple[tuple[Layout, float], ...] = ()


class _ThreadState(threading.local):
    created: list[weakref.ref[Any]] | None = None  # None: nothing is recorded


_thread = _ThreadState()


@contextlib.contextmanager
def rearranging() -> Iterator[list[weakref.ref[Any]]]:
    """Return a context manager in which views and copies are recorded; it gives the tensors that were created."""
    before, _thread.created = _thread.created, []
    try:
        yield _thread.created
    finally:
        _thread.created = before


class _Unmaterialized(LazyBase):
    """Base class of the tensors of this module."""

    _meta: torch.Tensor
    _materialized: torch.Tensor | None = None

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record ``func``, or materialize its tensors and run it."""
        kwargs = kwargs or {}
        if func in QUERIES:
            return query(func, args, kwargs)
        result = _record(func, args, kwargs)
        if result is not NotImplemented:
            return result
        counts.add(counts.TORCH)
        return call_materialized(func, args, kwargs)


@named_after(torch.Tensor)
class LazyView(_Unmaterialized):
    """View of a lazy tensor whose own memory is contiguous."""

    _base_tensor: Any
    own_attributes = ("_base_tensor", "_meta", "_materialized")

    def materialize(self) -> torch.Tensor:
        """Return the plain view."""
        if self._materialized is None:
            values = materialize_nested(self._base_tensor)
            first = values.storage_offset() + self._meta.storage_offset()
            self._materialized = values.as_strided(self._meta.shape, self._meta.stride(), first)
        return self._materialized


@named_after(torch.Tensor)
class RearrangedTensor(_Unmaterialized):
    """Contiguous tensor of images in another order, or of constants; ``_rows`` or ``_fills`` are empty."""

    _rows: Sequence[LazyRow]
    _fills: Sequence[Fill]
    is_counted = True
    own_attributes = ("_rows", "_fills", "_meta", "_materialized")

    def materialize(self) -> torch.Tensor:
        """Return the plain tensor."""
        if self._materialized is None:
            materialize_together([self])
        assert self._materialized is not None
        return self._materialized


def _new(kind: type, meta: torch.Tensor, **fields: Any) -> Any:
    result: Any = torch.Tensor._make_wrapper_subclass(
        kind, meta.shape, strides=meta.stride(), storage_offset=meta.storage_offset(), dtype=meta.dtype
    )
    protect(result)
    result._meta, result._materialized = meta, None
    vars(result).update(fields)
    recording.track(result)
    assert _thread.created is not None
    _thread.created.append(weakref.ref(result))
    return result


def filled(shape: Sequence[int], dtype: torch.dtype, value: float) -> torch.Tensor | None:
    """Return a tensor of one value that is not materialized yet; None if nothing is recorded."""
    if _thread.created is None:
        return None
    meta = torch.empty(tuple(shape), dtype=dtype, device=_META)
    result: torch.Tensor = _new(RearrangedTensor, meta, _rows=(), _fills=[Fill(meta.numel(), value)])
    return result


def arranged(rows: Sequence[LazyRow], shape: Sequence[int]) -> torch.Tensor | None:
    """Return the contiguous float32 tensor of all ``rows``, which are arranged images; None if nothing is recorded."""
    if _thread.created is None:
        return None
    meta = torch.empty(tuple(shape), dtype=torch.float32, device=_META)
    result: torch.Tensor = _new(RearrangedTensor, meta, _rows=rows, _fills=())
    return result


def is_waiting(x: Any) -> bool:
    """Return whether ``x`` is a tensor of this module that is not materialized."""
    return issubclass(type(x), _Unmaterialized) and x._materialized is None


# ---- materialization ----


def materialize_together(tensors: Sequence[Any], take: Callable[[int], torch.Tensor] = allocate) -> None:
    """Materialize rearranged tensors.

    Args:
        tensors: the tensors; those of other classes are ignored.
        take: allocates this many bytes.
    """
    waiting = [x for x in tensors if type(x) is RearrangedTensor and x._materialized is None]
    images = [x for x in waiting if x._rows]
    if images:
        Materialization(images, take).run()
    for x in waiting:
        if not x._rows:
            _fill_values(x, take)


def _fill_values(x: Any, take: Callable[[int], torch.Tensor]) -> None:
    memory = take(x.numel() * x.element_size()).view(x.dtype)
    first = 0
    for fill in x._fills:
        _fill_part(memory[first : first + fill.values], fill)
        first += fill.values
    x._materialized = torch.empty(0, dtype=x.dtype).set_(
        memory.untyped_storage(), memory.storage_offset(), x.shape, x._meta.stride()
    )


def _fill_part(memory: torch.Tensor, fill: Fill) -> None:
    begin = memory.storage_offset()
    windows = [(memory.as_strided(sizes, strides, begin + at), value) for (sizes, strides, at), value in fill.windows]
    if not _fill_around(memory, fill):
        memory.fill_(fill.value)
    for window, value in windows:
        window[...] = value


def _fill_around(memory: torch.Tensor, fill: Fill) -> bool:
    """Fill the values outside of a single window at the beginning of an image's rows; return whether there is one."""
    if len(fill.windows) != 1:
        return False
    (sizes, strides, first), _ = fill.windows[0]
    if first or len(sizes) < 2 or math.prod(sizes) != sizes[-1] * sizes[-2] or strides[-1] != 1:
        return False
    (height, width), pitch = sizes[-2:], strides[-2]
    if width > pitch or fill.values % pitch:
        return False
    rows = memory.view(-1, pitch)
    rows[height:] = fill.value
    rows[:height, width:] = fill.value
    return True


# ---- recording ----


def begin_view(func: Any, args: Any, kwargs: Any) -> Any:
    """Record a view of a lazy tensor; NotImplemented if that is not possible."""
    x = args[0]
    if _thread.created is None or not is_lazy(x) or x._is_by_pixel or x._is_turned or x._is_cut or x._is_unordered:
        return NotImplemented
    layout = query_layout(x)
    return _record_view(x, layout, func, args, kwargs) if layout.is_contiguous() else NotImplemented


def _record(func: Any, args: Any, kwargs: Any) -> Any:
    if _thread.created is None:
        return NotImplemented
    if func in _JOINS:
        return _join(func, args, kwargs)
    x: Any = args[0] if args else None
    if not is_waiting(x):
        return NotImplemented
    if func is torch.Tensor.__setitem__:
        return _set_window(x, args, kwargs)
    if func in _VIEWS:
        base = x._base_tensor if type(x) is LazyView else x
        return _record_view(base, x._meta, func, args, kwargs)
    return NotImplemented


def _record_view(base: Any, meta: torch.Tensor, func: Any, args: Any, kwargs: Any) -> Any:
    if not _are_plain((args[1:], kwargs)):
        return NotImplemented
    try:
        result = func(meta, *args[1:], **kwargs)
    except (RuntimeError, IndexError, TypeError, ValueError):  # the plain tensor raises the error
        return NotImplemented
    if not isinstance(result, torch.Tensor):
        return NotImplemented
    if result.untyped_storage()._cdata == meta.untyped_storage()._cdata:
        return _new(LazyView, result, _base_tensor=base)
    return _copy(base, meta, result) if func in _COPYING and is_lazy(base) else NotImplemented


_CLOSED = (int, float, bool, str, slice, type(None), type(Ellipsis), torch.dtype)


def _are_plain(x: Any) -> bool:
    """Return whether arguments have no tensors."""
    if type(x) in (tuple, list, torch.Size):
        return all(map(_are_plain, x))
    if type(x) is dict:
        return all(map(_are_plain, x.values()))
    return type(x) in _CLOSED


def _copy(base: LazyTensor, view: torch.Tensor, result: torch.Tensor) -> Any:
    """Record a contiguous copy of a view of images."""
    node = base._rows[0].node
    found = _axes(view, len(base._rows), node)
    if found is None or base.dtype != torch.float32:
        return NotImplemented
    axes, copies = found
    rows = []
    for row in base._rows:
        image = floats.float_node(row)
        if image is None:
            return NotImplemented
        width, height = image.size
        arranged = image.then(steps.Arrange(axes), (width * image.channels * copies, height), 1)
        rows.append(floats.float_row(arranged))
    return _new(RearrangedTensor, result, _rows=rows, _fills=())


def _axes(view: torch.Tensor, count: int, image: Node) -> tuple[tuple[int, ...], int] | None:
    """Return the axes of a view of ``count`` images as `Arrange` has them, and the number of copies.

    None if the view does not show each value of each image in each copy, or mixes images.
    """
    width, height = image.size
    units = (width * height, width, 1)  # values between neighbours along channels, rows and columns
    whole = width * height * image.channels
    axes: list[tuple[int, int, int]] = []
    images = 1
    for extent, stride in zip(view.shape, view.stride(), strict=True):
        if extent == 1:
            continue
        if stride and stride % whole == 0:
            if axes or stride != count // (images * extent) * whole:
                return None
            images *= extent
            continue
        parts = _split(extent, stride, (whole, *units))
        if parts is None:
            return None
        axes += parts
    sides = (image.channels, height, width)
    if view.storage_offset() or images != count or not all(_covers(axes, *side) for side in enumerate(sides)):
        return None
    copies = math.prod(extent for axis, extent, _ in axes if axis == _COPIES)
    return tuple(number for axis in axes for number in axis), copies


def _covers(axes: Sequence[tuple[int, int, int]], of: int, side: int) -> bool:
    """Return whether the axes that count the image's axis ``of`` show each of its ``side`` places once."""
    covered = 1
    for unit, extent in sorted((unit, extent) for axis, extent, unit in axes if axis == of):
        if unit != covered:
            return False
        covered *= extent
    return covered == side


_COPIES = 3  # the axis of copies


def _split(extent: int, stride: int, units: Sequence[int]) -> list[tuple[int, int, int]] | None:
    """Return an axis of a view as axes of channels, rows and columns; None if it does not follow them."""
    if stride == 0:
        return [(_COPIES, extent, 0)]
    parts: list[tuple[int, int, int]] = []
    for of in (2, 1, 0):  # columns first: the innermost
        limit, unit = units[of], units[of + 1]
        if extent == 1 or stride >= limit:
            continue
        inside = min(extent, limit // stride)
        if stride % unit or limit % stride or extent % inside or (inside < extent and inside * stride != limit):
            return None
        parts.insert(0, (of, inside, stride // unit))
        extent, stride = extent // inside, stride * inside
    return parts if extent == 1 else None


def _join(func: Any, args: Any, kwargs: Any) -> Any:
    """Record ``cat`` and ``stack`` along the first axis."""
    tensors = args[0] if len(args) == 1 else None
    if not isinstance(tensors, (list, tuple)) or kwargs not in ({}, {"dim": 0}):
        return NotImplemented
    rows: list[LazyRow] = []
    fills: list[Fill] = []
    for x in tensors:
        base = whole_base(x)
        if base is None:
            return NotImplemented
        rows += base._rows
        fills += base._fills
    if len({x.dtype for x in tensors}) > 1 or (rows and fills):
        return NotImplemented
    try:
        meta = func([x._meta for x in tensors], **kwargs)
    except (RuntimeError, IndexError, TypeError):  # the plain tensors raise the error
        return NotImplemented
    return _new(RearrangedTensor, meta, _rows=rows, _fills=fills)


def whole_base(x: Any) -> Any:
    """Return the rearranged tensor all of whose values ``x`` shows in order; None if there is none."""
    if not is_waiting(x) or not x._meta.is_contiguous():
        return None
    base = x._base_tensor if type(x) is LazyView else x
    return base if type(base) is RearrangedTensor and is_waiting(base) and base.numel() == x.numel() else None


def _set_window(x: Any, args: Any, kwargs: Any) -> Any:
    """Record a number that is set in a window of constants."""
    base = x._base_tensor if type(x) is LazyView else x
    if type(base) is not RearrangedTensor or not is_waiting(base) or len(base._fills) != 1 or kwargs:
        return NotImplemented
    _, index, value = args
    if type(value) not in (int, float, bool) or not _is_window(index):
        return NotImplemented
    window = x._meta[index]  # raises torch's error
    layout = tuple(window.shape), window.stride(), window.storage_offset()
    (fill,) = base._fills
    base._fills = [fill._replace(windows=(*fill.windows, (layout, value)))]
    return None


def _is_window(index: Any) -> bool:
    parts = index if type(index) is tuple else (index,)
    return all(type(part) in (int, slice, type(Ellipsis)) for part in parts)


def _reshape(func: Any, args: Any, kwargs: Any) -> Any:
    result = views.reshape(func, args, kwargs)
    return begin_view(func, args, kwargs) if result is NotImplemented else result


def _functions(names: str) -> list[Any]:
    owners = (torch.Tensor, torch)
    return [getattr(owner, name) for owner in owners for name in names.split() if hasattr(owner, name)]


_RESHAPES = _functions("reshape view")
_COPYING = frozenset(_functions("reshape flatten contiguous"))
_VIEWS = frozenset(
    _functions(
        "reshape view flatten unflatten contiguous permute transpose swapaxes swapdims movedim moveaxis unsqueeze "
        "squeeze expand unfold select narrow __getitem__"
    )
)
_JOINS = frozenset((torch.cat, torch.concat, torch.concatenate, torch.stack))
FUNCTIONS: Recorders = {
    **dict.fromkeys(_RESHAPES, _reshape),
    **dict.fromkeys(_functions("flatten unflatten permute transpose swapaxes movedim moveaxis unfold"), begin_view),
}
