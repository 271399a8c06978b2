# SPDX-License-Identifier: Apache-2.0
"""Batches of any structure: find their lazy parts, and replace these by plain tensors."""

from __future__ import annotations

import weakref
from collections import UserDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from ..tensors import points
from ..tensors.lazy_base import LazyBase, become_plain
from ..tensors.planes import LazyPlanes, are_lazy
from ..tensors.points import LazyPoints
from ..tensors.rearranged import LazyView, RearrangedTensor
from ..tensors.tensor import LazyTensor, materialize
from .deferred import DeferredTensor
from .program import Program

_MAPPINGS = (dict, UserDict)  # transformers' batches are of the second class
_LEAVES = frozenset({str, bytes, int, float, bool, type(None), torch.Tensor, np.ndarray})  # classes of plain values


def has_lazy(data: Any) -> bool:
    """Return whether a batch contains anything lazy, materialized or not."""
    return any(True for _ in _iterate(data, (LazyBase,)))


def find_lazy(data: Any) -> list[Any]:
    """Return all lazy tensors and planes of a batch, including the leaves of its programs."""
    found: dict[int, Any] = {}
    for x in iterate_lazy(data):
        if issubclass(type(x), DeferredTensor):
            found |= {id(leaf): leaf for leaf in x._program.leaves.values()}
        elif x._materialized is None:
            found[id(x)] = x
    return list(found.values())


def find_images(data: Any) -> list[LazyTensor]:
    """Return :func:`find_lazy` without planes, of which a collation records nothing."""
    return [x for x in find_lazy(data) if not are_lazy(x)]


def compute_points(data: Any) -> Any:
    """Return the batch with plain key points in place of lazy ones; nothing else changes."""
    return to_plain(data, kinds=(LazyPoints,))


def find_rearranged(data: Any) -> list[RearrangedTensor]:
    """Return all rearranged tensors of a batch that are not materialized, including those of which it has views."""
    found = (x._base_tensor if type(x) is LazyView else x for x in _iterate(data, (RearrangedTensor, LazyView)))
    return list({id(x): x for x in found if type(x) is RearrangedTensor and x._materialized is None}.values())


def find_programs(data: Any) -> list[Program]:
    """Return the programs of a batch that have not run yet."""
    waiting = (
        x
        for x in iterate_lazy(data)
        if issubclass(type(x), DeferredTensor) and x._materialized is None and x.as_lazy() is None
    )
    return list({id(x._program): x._program for x in waiting}.values())


def receive(data: Any, created: Iterable[weakref.ref[Any]]) -> tuple[list[LazyTensor], list[Program], list[Any]]:
    """Return :func:`find_lazy` and :func:`find_programs` of a batch that has come from a worker, and hidden tensors.

    Hidden tensors are those of ``created``, the unpickled ones, in objects whose structure is unknown.
    """
    if not _is_open(data):
        own = {id(x) for x in iterate_lazy(data) if issubclass(type(x), LazyTensor)}
        for program in find_programs(data):
            program.private_leaves = {slot for slot, leaf in program.leaves.items() if id(leaf) not in own}
        return find_lazy(data), find_programs(data), []
    seen = {id(x) for x in iterate_lazy(data)}
    hidden = [x for reference in created if (x := reference()) is not None and id(x) not in seen]
    return find_lazy([data, hidden]), find_programs([data, hidden]), hidden


_CLOSED = (str, bytes, int, float, bool, type(None), torch.Tensor, np.ndarray, np.generic)


def _is_open(data: Any) -> bool:
    """Return whether a batch contains objects of other classes, which may hold tensors."""
    if isinstance(data, (*_MAPPINGS, list, tuple)):
        return any(map(_is_open, data.values() if isinstance(data, _MAPPINGS) else data))
    return not isinstance(data, _CLOSED)


def iterate_lazy(data: Any) -> Iterator[Any]:
    """Yield the lazy tensors and planes, and the deferred tensors of a batch."""
    return _iterate(data, (LazyTensor, LazyPlanes, DeferredTensor))


def _iterate(data: Any, kinds: tuple[type, ...]) -> Iterator[Any]:
    if type(data) in _LEAVES:  # faster than the checks of mappings, one of which is an abstract class
        return
    if issubclass(type(data), kinds):
        yield data
    elif isinstance(data, (*_MAPPINGS, list, tuple)):
        for value in data.values() if isinstance(data, _MAPPINGS) else data:
            yield from _iterate(value, kinds)


def _same(x: torch.Tensor) -> torch.Tensor:
    return x


def _plain_tensor(x: Any, place: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    if issubclass(type(x), LazyTensor):
        kind = type(x).represented_class
        values = place(materialize(x))
        return values if kind is torch.Tensor else values.as_subclass(kind)
    if issubclass(type(x), LazyPlanes):  # targets stay in host memory
        return become_plain(x)
    if issubclass(type(x), LazyPoints):
        return points.plain(x)
    lazy = x.as_lazy() if issubclass(type(x), DeferredTensor) else None
    return place(x.materialize() if lazy is None else materialize(lazy))


def to_plain(
    data: Any, place: Callable[[torch.Tensor], torch.Tensor] = _same, kinds: tuple[type, ...] = (LazyBase,)
) -> Any:
    """Return the batch with plain tensors in place of lazy ones; containers keep their types.

    Args:
        data: the batch.
        place: returns a computed tensor where it is delivered.
        kinds: classes of lazy tensors; those of other classes stay lazy.
    """
    if issubclass(type(data), LazyBase):
        return _plain_tensor(data, place) if issubclass(type(data), kinds) else data
    if isinstance(data, _MAPPINGS):
        for key, value in data.items():
            result = to_plain(value, place, kinds)
            if result is not value:
                data[key] = result
        return data
    if isinstance(data, list):
        data[:] = [to_plain(value, place, kinds) for value in data]
        return data
    if isinstance(data, tuple):
        result = [to_plain(value, place, kinds) for value in data]
        if all(a is b for a, b in zip(result, data, strict=True)):
            return data
        return type(data)(*result) if hasattr(data, "_fields") else type(data)(result)
    return data
