# SPDX-License-Identifier: Apache-2.0
"""What pointwise operations make of 8-bit values: tables of 256 values per channel.

A table is made by running torch's own operations on ``arange(256)``, so that its values are torch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .recipe import Node

VALUES = 256
_KEPT_TABLES = 4096


class Table:
    """What the 256 values of each channel become: a real tensor ``(channels, 1, 256)``."""

    __slots__ = ("__weakref__", "_memory", "values")

    def __init__(self, values: torch.Tensor) -> None:
        self.values = values.contiguous()
        self._memory: tuple[Any, int] | None = None

    def memory(self) -> tuple[Any, int]:
        """Its bytes, and the bytes of a value."""
        if self._memory is None:
            self._memory = self.values.view(torch.uint8).numpy().reshape(-1), self.values.element_size()
        return self._memory

    def __reduce__(self) -> tuple[Any, ...]:
        # Through NumPy: a tensor would travel in a shared memory file of its own.
        return _table, (self.values.view(torch.uint8).numpy(), self.values.dtype)


def _table(array: Any, dtype: torch.dtype) -> Table:
    return Table(torch.from_numpy(array.copy()).view(dtype))


_first: dict[int, Table] = {}
_tables: dict[Any, Table | None] = {}


def first_table(channels: int) -> Table:
    """Every value as it is."""
    if channels not in _first:
        _first[channels] = Table(torch.arange(VALUES, dtype=torch.uint8).expand(channels, 1, VALUES))
    return _first[channels]


def stored_table(node: Node, table: Table) -> Table | None:
    """The table that an image is stored through; None: its values themselves."""
    return None if node.floats or table is _first.get(node.channels) else table


def mapped(table: Table, key: Any, function: Callable[[torch.Tensor], Any]) -> Table | None:
    """The table after ``function``, which ``key`` names; None if that is not the same for all pixels of a channel."""
    key = (id(table), key)
    if key not in _tables:
        if len(_tables) >= _KEPT_TABLES:
            _tables.clear()
            _kept.clear()
        values = function(table.values.clone())
        fits = isinstance(values, torch.Tensor) and values.shape == table.values.shape
        _tables[key] = Table(values) if fits else None
        _kept.append(table)
    return _tables[key]


_kept: list[Table] = []  # a table's id is its own only while it lives
