# SPDX-License-Identifier: Apache-2.0
"""A batch: what a run delivers for one output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import ArgumentError
from .types import DType


class Batch:
    """Rows of one type and rank, of one shape (dense) or of several.

    Attributes:
        dtype: element type.
        layout: axis names of one row, "" if they have none.
        keys: uint64, one per row: what the row's random numbers follow from.
        epochs: int64, one per row.
        device: "cpu".
        read_only: whether the memory may be written by whoever takes it.
    """

    __slots__ = ("_dense", "_rows", "device", "dtype", "epochs", "keys", "layout", "read_only")

    def __init__(
        self,
        data: npt.NDArray[Any] | list[npt.NDArray[Any]],
        dtype: DType,
        layout: str = "",
        keys: npt.NDArray[np.uint64] | None = None,
        epochs: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self._dense = data if not isinstance(data, list) else None
        self._rows = data if isinstance(data, list) else None
        self.dtype = dtype
        self.layout = layout
        self.keys = keys
        self.epochs = epochs
        self.device = "cpu"
        self.read_only = False

    def __len__(self) -> int:
        rows: Any = self._dense if self._dense is not None else self._rows
        return len(rows)

    def __getitem__(self, row: int) -> npt.NDArray[Any]:
        """One row, without a copy."""
        if self._dense is not None:
            return self._dense[row]  # type: ignore[no-any-return]
        assert self._rows is not None
        return self._rows[row]

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        return (self[i] for i in range(len(self)))

    def at(self, row: int) -> npt.NDArray[Any]:
        """One row, without a copy (DALI's name)."""
        return self[row]

    @property
    def is_dense(self) -> bool:
        """Whether all rows have one shape."""
        return self._dense is not None

    def is_dense_tensor(self) -> bool:
        return self.is_dense

    @property
    def shapes(self) -> npt.NDArray[np.int64]:
        """int64 ``[rows, rank]``."""
        if self._dense is not None:
            return np.tile(np.asarray(self._dense.shape[1:], np.int64), (len(self), 1))
        return np.asarray([r.shape for r in self], np.int64)

    def shape(self) -> list[tuple[int, ...]]:
        """One tuple per row (DALI's form)."""
        return [tuple(r.shape) for r in self]

    def as_array(self) -> npt.NDArray[Any]:
        """All rows as one array ``[rows, ...]``, without a copy; ArgumentError if their shapes differ."""
        if self._dense is None:
            shapes = sorted({r.shape for r in self})
            raise ArgumentError(
                f"expected rows of one shape, got {len(shapes)} different ones such as {shapes[0]} and {shapes[-1]}. "
                "Take them row by row (`batch[i]`), or resize, crop or pad them in the pipeline."
            )
        return self._dense

    def as_cpu(self) -> Batch:
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.as_array(), dtype=dtype, copy=copy)

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.as_array().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __repr__(self) -> str:
        shape = f"{len(self)} x {self._dense.shape[1:]}" if self._dense is not None else f"{len(self)} rows, ragged"
        return f"Batch({shape}, {self.dtype}{', ' + self.layout if self.layout else ''})"
