# SPDX-License-Identifier: Apache-2.0
"""Columns: bytes of a storage, tables in memory, ragged lists, strings, and presence of a component."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.columns import Column
from ..contract.errors import ArgumentError, DataError
from ..contract.lowering import Lowering
from ..contract.step import Value
from ..contract.storage import Bools, Storage
from ..contract.text import brief
from ..contract.types import DType
from ._storages import MemoryStorage


class Bytes(Column):
    """Bytes of a storage, raw or as elements of a type: rows of any length.

    A row's value has axes ``(N, *item)``. A record that does not hold whole items is an error of its sample.

    Args:
        name: name in messages.
        storage: storage whose record ``i`` belongs to sample ``i``.
        dtype: type of the elements, little-endian as stored.
        item: extents of one item.
        layout: names of the axes.
        optional: samples may lack the component; their value has no items.
    """

    def __init__(
        self, name: str, storage: Storage, dtype: Any = DType.UINT8, item: Sequence[int] = (), *, layout: str = "",
        optional: bool = False,
    ) -> None:  # fmt: skip
        self.name, self.dtype, self.optional = name, DType.of(dtype), optional
        self.item = tuple(int(n) for n in item)
        if any(n < 1 for n in self.item):
            raise ArgumentError(f"expected extents >= 1 of an item of {brief(name)}, got {self.item}")
        self.rank, self.layout = 1 + len(self.item), _checked(layout, 1 + len(self.item), name)
        self._storage = storage

    def __len__(self) -> int:
        return len(self._storage)

    @property
    def storage(self) -> Storage:
        return self._storage

    def lower(self, c: Lowering, reader: int) -> Value:
        return self._storage.lower(c, reader, self.dtype, self.item, self.layout)

    def row(self, index: int) -> npt.NDArray[Any]:
        content = self._storage.content(index)
        size = self.dtype.size * int(np.prod(self.item, dtype=np.int64))
        if len(content) % size:
            raise DataError(f"expected a multiple of {size} bytes, got {len(content)}", sample=index)
        return np.frombuffer(content, self.dtype.numpy).reshape(-1, *self.item)

    def absent(self) -> Bools | None:
        return self._storage.absent()

    def joined(self, others: Sequence[Column]) -> Bytes:
        same = [
            o for o in others if isinstance(o, Bytes) and o.item == self.item and type(o.storage) is type(self.storage)
        ]
        _require_same(self, others, [(*_types(o), o.item) for o in same], (*_types(self), self.item))
        storage = self._storage.joined([o.storage for o in same])
        optional = self.optional or any(o.optional for o in others)
        return Bytes(self.name, storage, self.dtype, self.item, layout=self.layout, optional=optional)


class Values(Column):
    """Values in memory, of one type and extent for all samples: labels, boxes, embeddings.

    Args:
        name: name in messages.
        array: values; the samples lie along the first axis, and a row's value has the other axes.
        layout: names of a row's axes.
        absent: mask of samples that lack the component. Their value has extent 0 on its first axis, so it needs one.
        optional: samples may lack the component.
    """

    def __init__(
        self, name: str, array: npt.ArrayLike, *, layout: str = "", absent: npt.ArrayLike | None = None,
        optional: bool = False,
    ) -> None:  # fmt: skip
        table = np.ascontiguousarray(array)
        try:
            self.dtype = DType.of(table.dtype)
        except TypeError:
            raise ArgumentError(f"expected numbers in the column {brief(name)}, got {table.dtype}") from None
        if np.ndim(array) < 1:
            raise ArgumentError(f"expected the samples of {brief(name)} along the first axis, got a single number")
        self.name, self.optional = name, optional
        self.rank, self.layout = table.ndim - 1, _checked(layout, table.ndim - 1, name)
        self._table = table if table.dtype.isnative else table.astype(table.dtype.newbyteorder("="))
        self._absent = None if absent is None or not np.any(absent) else np.asarray(absent, bool)
        if self._absent is not None and self._absent.shape != (len(table),):
            raise ArgumentError(f"expected one bool per sample of {brief(name)} as `absent`, got {self._absent.shape}")
        if optional and self.rank < 1:
            raise ArgumentError(
                f"expected at least one axis in an optional column, got single numbers in {brief(name)}"
            )

    def __len__(self) -> int:
        return len(self._table)

    @property
    def values(self) -> npt.NDArray[Any]:
        return self._table

    def lower(self, c: Lowering, reader: int) -> Value:
        shape = self._table.shape[1:]
        if not self.optional:
            attrs = (self._table.reshape(-1), len(self._table), reader)
            return c.native("lookup", [], [(self.dtype, shape, self.layout)], attrs=attrs)[0]
        count, size = len(self._table), self._table.itemsize * int(np.prod(shape, dtype=np.int64))
        storage = MemoryStorage(
            [self._table.reshape(-1).view(np.uint8)], np.zeros(count, np.int64), np.arange(count) * size,
            np.full(count, size), self._absent,
        )  # fmt: skip
        return storage.lower(c, reader, self.dtype, shape[1:], self.layout)

    def row(self, index: int) -> npt.NDArray[Any]:
        gone = self._absent is not None and bool(self._absent[index])
        return self._table[index, :0] if gone else np.asarray(self._table[index])

    def absent(self) -> Bools | None:
        return self._absent

    def joined(self, others: Sequence[Column]) -> Values:
        same = [o for o in others if isinstance(o, Values)]
        own = (*_types(self), self._table.shape[1:])
        _require_same(self, others, [(*_types(o), o.values.shape[1:]) for o in same], own)
        parts = (self, *same)
        gone = [np.zeros(len(p), bool) if p._absent is None else p._absent for p in parts]
        return Values(
            self.name, np.concatenate([p.values for p in parts]), layout=self.layout, absent=np.concatenate(gone),
            optional=any(p.optional for p in parts),
        )  # fmt: skip


def ragged(
    name: str, values: npt.ArrayLike, ends: npt.ArrayLike, *, layout: str = "", absent: npt.ArrayLike | None = None,
    optional: bool = False,
) -> Bytes:  # fmt: skip
    """Return a column of lists in memory whose lengths differ from sample to sample: boxes, polygons, tokens.

    Args:
        name: name in messages.
        values: items of all samples, concatenated along the first axis.
        ends: end of each sample's items: ``np.cumsum`` of the numbers of items.
        layout: names of a row's axes.
        absent: mask of samples that lack a list, as distinct from an empty list.
        optional: samples may lack the component.

    Raises:
        ArgumentError: the ends do not rise to the number of items.
    """
    items = np.ascontiguousarray(values)
    last = np.asarray(ends, np.int64)
    first = np.concatenate([np.zeros(1, np.int64), last[:-1]]) if last.size else last
    if last.ndim != 1 or (last < first).any() or (last[-1] if last.size else 0) != len(items):
        raise ArgumentError(
            f"expected ends that rise to {len(items)}, the number of items of {brief(name)}, got {last}"
        )
    try:
        dtype = DType.of(items.dtype)
    except TypeError:
        raise ArgumentError(f"expected numbers in the column {brief(name)}, got {items.dtype}") from None
    size = items.itemsize * int(np.prod(items.shape[1:], dtype=np.int64))
    storage = MemoryStorage(
        [items.reshape(-1).view(np.uint8)], np.zeros(len(last), np.int64), first * size, (last - first) * size, absent,
        name=name,
    )  # fmt: skip
    return Bytes(name, storage, dtype, items.shape[1:], layout=layout, optional=optional)


def strings(name: str, texts: Iterable[str | None], *, optional: bool = False) -> Bytes:
    """Return a column of texts as UTF-8 bytes, uint8 ``(N,)``.

    Args:
        name: name in messages.
        texts: one per sample; None: the sample lacks one.
        optional: samples may lack a text.
    """
    coded = [None if t is None else t.encode("utf-8", "surrogateescape") for t in texts]
    data = b"".join(t for t in coded if t is not None)
    lengths = np.asarray([0 if t is None else len(t) for t in coded], np.int64)
    offsets = np.cumsum(lengths) - lengths
    absent = [t is None for t in coded]
    storage = MemoryStorage([data], np.zeros(len(coded), np.int64), offsets, lengths, absent, name=name)
    return Bytes(name, storage, optional=optional)


def presence(column: Column, name: str | None = None) -> Values:
    """Return a column that says which samples have a component: bool, without axes.

    Args:
        column: the component.
        name: name of the new column; by default derived from that of the component.
    """
    absent = column.absent()
    has = np.ones(len(column), bool) if absent is None else ~absent
    return Values(f"{column.name}_present" if name is None else name, has)


def fingerprint(*parts: bytes | str | npt.NDArray[Any]) -> str:
    """Return the digest of the facts that decide a data set, for :class:`~stoker.contract.columns.DataSet`.

    Args:
        *parts: names in order, offsets, sizes, labels. Leave out the location of the files, since they may move.
    """
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        content = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else bytes(part)
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.hexdigest()


def _checked(layout: str, rank: int, name: str) -> str:
    if layout and len(layout) != rank:
        raise ArgumentError(f"expected a layout of {rank} axes in the column {brief(name)}, got {brief(layout)}")
    return layout


def _types(column: Column) -> tuple[Any, ...]:
    return column.name, column.dtype, column.rank, column.layout


def _require_same(own: Column, others: Sequence[Column], found: Sequence[Any], wanted: Any) -> None:
    """Raise ArgumentError if a column cannot be joined with others."""
    if len(found) < len(others) or any(f != wanted for f in found):
        kinds = [type(o).__name__ if o.storage is None else type(o.storage).__name__ for o in (own, *others)]
        names = [f"{o.name!r} of {o.dtype}, {o.rank} axes ({k})" for o, k in zip((own, *others), kinds, strict=True)]
        raise ArgumentError(f"expected parts with the same columns, got {', '.join(names)}")
