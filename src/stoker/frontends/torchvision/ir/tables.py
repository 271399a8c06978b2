# SPDX-License-Identifier: Apache-2.0
"""Lookup tables of 256 values per channel: the results of pointwise operations on 8-bit values.

A table is computed by torch's own operations on ``arange(256)``, so its values equal torch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .recipe import Node

VALUES = 256
_MAX_TABLES = 4096


class Table:
    """Results for the 256 values of each channel: a plain tensor ``(channels, 1, 256)``."""

    __slots__ = ("__weakref__", "_memory", "values")

    def __init__(self, values: torch.Tensor) -> None:
        self.values = values.contiguous()
        self._memory: tuple[Any, int] | None = None

    def memory(self) -> tuple[Any, int]:
        """Return the table's bytes, and the size of a value in bytes."""
        if self._memory is None:
            self._memory = self.values.view(torch.uint8).numpy().reshape(-1), self.values.element_size()
        return self._memory

    def __reduce__(self) -> tuple[Any, ...]:
        # Through NumPy: a tensor would be sent in a shared-memory file of its own.
        return _unpickle_table, (self.values.view(torch.uint8).numpy(), self.values.dtype)


def _unpickle_table(array: Any, dtype: torch.dtype) -> Table:
    return Table(torch.from_numpy(array.copy()).view(dtype))


_identity_tables: dict[int, Table] = {}
_tables: dict[Any, Table | None] = {}


def identity_table(channels: int) -> Table:
    """Return the table that maps every value to itself."""
    if channels not in _identity_tables:
        _identity_tables[channels] = Table(torch.arange(VALUES, dtype=torch.uint8).expand(channels, 1, VALUES))
    return _identity_tables[channels]


def storage_table(node: Node, table: Table) -> Table | None:
    """Return the table through which an image is stored; None stores its values unchanged."""
    return None if node.is_float or table is _identity_tables.get(node.channels) else table


def map_table(table: Table, key: Any, function: Callable[[torch.Tensor], Any]) -> Table | None:
    """Return ``table`` after ``function``, which ``key`` identifies; None if the function is not pointwise."""
    key = (id(table), key, torch.get_default_dtype())
    if key not in _tables:
        if len(_tables) >= _MAX_TABLES:
            _tables.clear()
            _owners.clear()
        values = function(table.values.clone())
        fits = isinstance(values, torch.Tensor) and values.shape == table.values.shape
        _tables[key] = Table(values) if fits else None
        _owners.append(table)
    return _tables[key]


_owners: list[Table] = []  # keeps the ids unique: Python reuses the id of an object that is gone
