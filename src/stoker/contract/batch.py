# SPDX-License-Identifier: Apache-2.0
"""Batches: the rows that a run delivers for one output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import ArgumentError
from .types import DType

_MOST_SHOWN = 16  # rows in a notebook


class Batch:
    """Rows of one element type and rank, of equal shapes (dense) or different ones.

    Attributes:
        dtype: element type.
        layout: axis names of one row; "" if the axes have no names.
        keys: the row keys that decide the rows' random numbers, uint64 ``[rows]``.
        epochs: epoch of each row, int64 ``[rows]``.
        skipped: positions of the rows that failed and were left out (``on_error="skip"``), counted before the removal.
        device: "cpu" or "gpu".

    Args:
        data: all rows as one array ``[rows, ...]``, or a list with one array per row.
        dtype: element type.
        layout: axis names of one row, such as "HWC"; "" if the axes have no names.
        keys: row keys, uint64 ``[rows]``, or None.
        epochs: epoch of each row, int64 ``[rows]``, or None.
        device: "cpu" or "gpu".
        skipped: positions of rows that were left out.
    """

    __slots__ = ("_dense", "_rows", "device", "dtype", "epochs", "keys", "layout", "skipped")

    def __init__(
        self,
        data: Any,
        dtype: DType,
        layout: str = "",
        keys: npt.NDArray[np.uint64] | None = None,
        epochs: npt.NDArray[np.int64] | None = None,
        device: str = "cpu",
        skipped: tuple[int, ...] = (),
    ) -> None:
        self._dense: Any = data if not isinstance(data, list) else None
        self._rows: list[Any] | None = data if isinstance(data, list) else None
        self.dtype = dtype
        self.layout = layout
        self.keys = keys
        self.epochs = epochs
        self.device = device
        self.skipped = skipped

    def __len__(self) -> int:
        return len(self._rows) if self._rows is not None else int(self._dense.shape[0])

    def __getitem__(self, row: int) -> Any:
        """Return one row without a copy.

        Returns:
            A NumPy array, or for a batch on a GPU an object with DLPack and CUDA's array interface.
        """
        if self._rows is not None:
            return self._rows[row]
        return self._dense.row(row) if self.device == "gpu" else self._dense[row]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def at(self, row: int) -> Any:
        """Return one row, without a copy (DALI's name).

        Args:
            row: number of the row; negative numbers count from the end.
        """
        return self[row]

    @property
    def is_dense(self) -> bool:
        """Return whether all rows have one shape."""
        return self._dense is not None

    def is_dense_tensor(self) -> bool:
        """Return whether all rows have one shape (DALI's name)."""
        return self.is_dense

    @property
    def shapes(self) -> npt.NDArray[np.int64]:
        """Return the shape of each row, int64 ``[rows, rank]``."""
        if self._dense is not None:
            return np.tile(np.asarray(self._dense.shape[1:], np.int64), (len(self), 1))
        return np.asarray([r.shape for r in self], np.int64)

    def shape(self) -> list[tuple[int, ...]]:
        """Return one tuple per row (DALI's form)."""
        if self._dense is not None:
            return [tuple(self._dense.shape[1:])] * len(self)
        return [tuple(r.shape) for r in self]

    def as_array(self) -> npt.NDArray[Any]:
        """Return all rows as one array ``[rows, ...]`` in host memory, without a copy. bfloat16 is returned as uint16
        bits.

        Raises:
            ArgumentError: the rows' shapes differ, or the rows are on a GPU (see :meth:`as_cpu`).
        """
        if self.device == "gpu":
            raise ArgumentError(
                "expected a batch in host memory, got one on a GPU. Copy it with `as_cpu()`, or hand it over without a "
                "copy, as in `torch.from_dlpack(batch)`."
            )
        return self._one()  # type: ignore[no-any-return]

    @property
    def whole(self) -> Any:
        """Return all rows as one array on the batch's device.

        Returns:
            A NumPy array, or for a batch on a GPU an object with DLPack and CUDA's array interface.

        Raises:
            ArgumentError: the rows' shapes differ.
        """
        return self._one()

    def _one(self) -> Any:
        if self._dense is None:
            shapes = sorted({tuple(r.shape) for r in self})
            raise ArgumentError(
                f"expected rows of one shape, got {len(shapes)} different ones such as {shapes[0]} and {shapes[-1]}. "
                "Take them row by row (`batch[i]`), or resize, crop or pad them in the pipeline."
            )
        return self._dense

    def head(self, rows: int) -> Batch:
        """Return the first rows, without a copy.

        Args:
            rows: number of rows; all if there are fewer.
        """
        if self._rows is not None:
            data: Any = self._rows[:rows]
        else:
            data = self._dense.first(rows) if self.device == "gpu" else self._dense[:rows]
        keys = None if self.keys is None else self.keys[:rows]
        epochs = None if self.epochs is None else self.epochs[:rows]
        return Batch(data, self.dtype, self.layout, keys, epochs, self.device, self.skipped)

    def as_cpu(self) -> Batch:
        """Return the batch in host memory: the batch itself, or a copy of a batch on a GPU."""
        if self.device == "cpu":
            return self
        data: Any = [self._to_host(r) for r in self._rows] if self._rows is not None else self._to_host(self._dense)
        return Batch(data, self.dtype, self.layout, self.keys, self.epochs, skipped=self.skipped)

    def _to_host(self, data: Any) -> npt.NDArray[Any]:
        return np.frombuffer(data.to_host(), self.dtype.numpy).reshape(data.shape).copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.as_array(), dtype=dtype, copy=copy)

    def __dlpack__(self, **kwargs: Any) -> Any:
        if self.dtype == DType.BFLOAT16 and self.device == "cpu":
            raise BufferError(
                "a batch of bfloat16 in host memory has NumPy arrays of its bits; see stoker.torch.to_torch"
            )
        return self._one().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        device = self._one().__dlpack_device__()
        return int(device[0]), int(device[1])

    @property
    def __cuda_array_interface__(self) -> Any:
        """Return CUDA's array interface of a dense batch on a GPU (CuPy, Numba, JAX)."""
        if self.device != "gpu":
            raise AttributeError("a batch in host memory has no CUDA array interface")
        return self._one().__cuda_array_interface__

    def host_rows(self, count: int) -> list[npt.NDArray[Any]]:
        """Return the first ``count`` rows as arrays in host memory. bfloat16 is returned as float32."""
        rows = list(self.head(count).as_cpu())
        if self.dtype != DType.BFLOAT16:
            return rows
        return [(row.astype(np.uint32) << 16).view(np.float32) for row in rows]

    def _repr_html_(self) -> str:
        """Return a bounded number of rows for notebooks: pictures of images, else values."""
        from ..display.rows import rows_as_html

        rows = self.host_rows(_MOST_SHOWN)
        names = [str(i) if self.keys is None else f"{i}, key {self.keys[i]}" for i in range(len(rows))]
        return rows_as_html(repr(self), rows, names, self.layout, len(self) - len(rows))

    def __repr__(self) -> str:
        shape = f"{len(self)} x {tuple(self._dense.shape[1:])}" if self.is_dense else f"{len(self)} rows, ragged"
        place = ", gpu" if self.device == "gpu" else ""
        return f"Batch({shape}, {self.dtype}{', ' + self.layout if self.layout else ''}{place})"
