# SPDX-License-Identifier: Apache-2.0
"""Batches of any structure: find their lazy parts, and replace these by plain tensors."""

from __future__ import annotations

import weakref
from collections import UserDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import torch

from ..tensors.tensor import LazyTensor, materialize
from .deferred import DeferredTensor
from .program import Program

_MAPPINGS = (dict, UserDict)  # transformers' batches are of the second class


def find_lazy(data: Any) -> list[LazyTensor]:
    """Return all lazy tensors of a batch, including the leaves of its programs."""
    found: dict[int, LazyTensor] = {}
    for x in iterate_lazy(data):
        if issubclass(type(x), LazyTensor):
            if x._materialized is None:
                found[id(x)] = x
        else:
            found |= {id(leaf): leaf for leaf in x._program.leaves.values()}
    return list(found.values())


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
    """Yield the lazy and the deferred tensors of a batch."""
    if issubclass(type(data), (LazyTensor, DeferredTensor)):
        yield data
    elif isinstance(data, (*_MAPPINGS, list, tuple)):
        for value in data.values() if isinstance(data, _MAPPINGS) else data:
            yield from iterate_lazy(value)


def _same(x: torch.Tensor) -> torch.Tensor:
    return x


def to_plain(data: Any, place: Callable[[torch.Tensor], torch.Tensor] = _same) -> Any:
    """Return the batch with plain tensors in place of lazy ones; containers keep their types.

    Args:
        data: the batch.
        place: returns a computed tensor where it is delivered.
    """
    if issubclass(type(data), LazyTensor):
        kind = type(data).represented_class
        values = place(materialize(data))
        return values if kind is torch.Tensor else values.as_subclass(kind)
    if issubclass(type(data), DeferredTensor):
        lazy = data.as_lazy()
        return place(data.materialize() if lazy is None else materialize(lazy))
    if isinstance(data, _MAPPINGS):
        for key, value in data.items():
            result = to_plain(value, place)
            if result is not value:
                data[key] = result
        return data
    if isinstance(data, list):
        data[:] = [to_plain(value, place) for value in data]
        return data
    if isinstance(data, tuple):
        result = [to_plain(value, place) for value in data]
        if all(a is b for a, b in zip(result, data, strict=True)):
            return data
        return type(data)(*result) if hasattr(data, "_fields") else type(data)(result)
    return data
