# SPDX-License-Identifier: Apache-2.0
"""Batches of any structure: what in them is lazy, and the same with plain tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .later import Later
from .program import Program
from .tensor import LazyTensor, real


def find(data: Any) -> list[LazyTensor]:
    """All lazy tensors in a batch, and those that its programs work on."""
    found: dict[int, LazyTensor] = {}
    for x in parts(data):
        if isinstance(x, LazyTensor):
            if x._real is None:
                found[id(x)] = x
        else:
            found |= {id(leaf): leaf for leaf in x._program.leaves.values()}
    return list(found.values())


def programs(data: Any) -> list[Program]:
    """The programs of a batch that are still to be run."""
    waiting = (x for x in parts(data) if isinstance(x, Later) and x._real is None and x.as_lazy() is None)
    return list({id(x._program): x._program for x in waiting}.values())


def arrived(data: Any) -> tuple[list[LazyTensor], list[Program]]:
    """:func:`find` and :func:`programs` of a batch that has come from a worker."""
    own = {id(x) for x in parts(data) if isinstance(x, LazyTensor)}
    for program in programs(data):
        program.only_here = {slot for slot, leaf in program.leaves.items() if id(leaf) not in own}
    return find(data), programs(data)


def parts(data: Any) -> Iterator[Any]:
    """The tensors of a batch that are not torch's own."""
    if isinstance(data, (LazyTensor, Later)):
        yield data
    elif isinstance(data, (dict, list, tuple)):
        for value in data.values() if isinstance(data, dict) else data:
            yield from parts(value)


def plain(data: Any) -> Any:
    """The batch with real tensors for its lazy ones; containers keep their types."""
    if isinstance(data, LazyTensor):
        return real(data)
    if isinstance(data, Later):
        lazy = data.as_lazy()
        return data.as_made() if lazy is None else real(lazy)
    if isinstance(data, dict):
        for key, value in data.items():
            made = plain(value)
            if made is not value:
                data[key] = made
        return data
    if isinstance(data, list):
        data[:] = [plain(value) for value in data]
        return data
    if isinstance(data, tuple):
        made = [plain(value) for value in data]
        if all(a is b for a, b in zip(made, data, strict=True)):
            return data
        return type(data)(*made) if hasattr(data, "_fields") else type(data)(made)
    return data
