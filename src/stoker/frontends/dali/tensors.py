# SPDX-License-Identifier: Apache-2.0
"""DALI's return types of pipelines: a list of tensors per output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ...contract.batch import Batch
from ...contract.errors import ArgumentError, UnsupportedError
from ...contract.feed import to_array
from ...contract.types import DType
from .catalogue import refuse


class TensorCPU:
    """One tensor in host memory. It shares the memory of the object that it was created from.

    Args:
        object: an array, or an object with DLPack.
        layout: axis names.
        is_pinned: accepted without effect.
    """

    def __init__(self, object: Any, layout: str = "", is_pinned: bool = False) -> None:
        self._array = to_array(object)
        self._layout = layout or ""

    def __getattr__(self, name: str) -> NoReturn:
        refuse("Tensor", name)

    def shape(self) -> list[int]:
        """Return the extents of the axes."""
        return list(self._array.shape)

    @property
    def dtype(self) -> DType:
        """Return the element type."""
        return DType.of(self._array.dtype)

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return self._array.ndim

    def layout(self) -> str:
        """Return the names of the axes."""
        return self._layout

    def as_cpu(self) -> TensorCPU:
        """Return the object itself."""
        return self

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return int(self._array.ctypes.data)

    def squeeze(self, dim: int | None = None) -> bool:
        """Remove axes of size one in place. Return whether there were any.

        Args:
            dim: the axis to remove; None: all of size one.
        """
        before = self._array.ndim
        self._array = self._array.squeeze() if dim is None else self._array.squeeze(dim)
        return self._array.ndim != before

    def copy_to_external(self, address: int, *_: Any, **__: Any) -> None:
        """Copy the elements to memory at an address.

        Args:
            address: address of the first byte. The memory must have room for all elements.
        """
        import ctypes

        array = np.ascontiguousarray(self._array)
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self._array, dtype=dtype, copy=copy)

    @property
    def __array_interface__(self) -> Any:
        return self._array.__array_interface__

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def _repr_html_(self) -> str:
        """Return a picture or statistics, for notebooks."""
        return _as_html("TensorCPU", self._array, self.dtype, self._layout)

    def __repr__(self) -> str:
        return f"TensorCPU(\n{self._array},\ndtype={self.dtype!r}, layout={self._layout!r}, shape={self.shape()})"


def _as_html(kind: str, array: Any, dtype: DType, layout: str) -> str:
    """Return a tensor for notebooks: a picture if it is an image, else its values or statistics."""
    from ...display.rows import tensor_as_html

    (row,) = Batch([array], dtype, layout).host_rows(1)
    return tensor_as_html(f"{kind}({dtype} {tuple(array.shape)}{f' {layout}' if layout else ''})", row, layout)


class _TensorList:
    """Base class of lists of tensors, independent of the device."""

    _batch: Batch

    def __getattr__(self, name: str) -> NoReturn:
        refuse("TensorList", name)

    @property
    def batch(self) -> Batch:
        """Return the same rows as a :class:`stoker.Batch`."""
        return self._batch

    def __len__(self) -> int:
        return len(self._batch)

    def _row(self, row: int) -> Any:
        if not -len(self) <= row < len(self):
            raise IndexError(f"expected a row from {-len(self)} to {len(self) - 1}, got {row}")
        return self._batch[row % len(self)]

    def shape(self) -> list[tuple[int, ...]]:
        """Return one tuple per row."""
        return self._batch.shape()

    @property
    def dtype(self) -> DType:
        """Return the element type."""
        return self._batch.dtype

    @property
    def ndim(self) -> int:
        """Return the number of axes of a row."""
        return len(self._batch[0].shape) if len(self) else 0

    def layout(self) -> str:
        """Return the axis names of a row."""
        return self._batch.layout

    def is_dense_tensor(self) -> bool:
        """Return whether all rows have one shape."""
        return self._batch.is_dense

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._batch.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._batch.__dlpack_device__()

    def _repr_html_(self) -> str:
        """Return a bounded number of rows, for notebooks."""
        return self._batch._repr_html_()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._batch!r})"


class TensorListCPU(_TensorList):
    """Rows of one output in host memory.

    Args:
        source: a batch, an array with the rows on its first axis, or a sequence of arrays.
        layout: axis names of a row.
        is_pinned: accepted, without effect.
    """

    def __init__(self, source: Any, layout: str | None = None, is_pinned: bool = False) -> None:
        if isinstance(source, Batch):
            self._batch = source.as_cpu()
            return
        if isinstance(source, TensorListCPU):
            source = list(source._batch)
        rows: Any = [to_array(x) for x in source] if isinstance(source, Sequence) else to_array(source)
        if not len(rows):
            raise ArgumentError("`TensorListCPU`: expected at least one row, got none")
        kinds = {(r.dtype, r.ndim) for r in rows}
        if len(kinds) > 1:
            raise ArgumentError(f"`TensorListCPU`: expected rows of one type and rank, got {len(kinds)} kinds")
        if isinstance(rows, list) and len({r.shape for r in rows}) == 1:
            rows = np.stack(rows)
        self._batch = Batch(rows, DType.of(rows[0].dtype), layout or "")

    def __getitem__(self, row: int) -> TensorCPU:
        return TensorCPU(self._row(row), self._batch.layout)

    def __iter__(self) -> Iterator[TensorCPU]:
        return (self[i] for i in range(len(self)))

    def at(self, row: int) -> Any:
        """Return one row as an array, without a copy.

        Args:
            row: number of the row; negative numbers count from the end.
        """
        return self._row(row)

    def as_array(self) -> npt.NDArray[Any]:
        """Return all rows as one array, without a copy.

        Raises:
            ArgumentError: the shapes differ.
        """
        return self._batch.as_array()

    def as_tensor(self) -> TensorCPU:
        """Return all rows as one tensor.

        Raises:
            ArgumentError: the shapes differ.
        """
        layout = self._batch.layout
        return TensorCPU(self._batch.as_array(), f"N{layout}" if layout else "")

    def as_reshaped_tensor(self, shape: Sequence[int]) -> TensorCPU:
        """Return all rows as one tensor of the given shape.

        Args:
            shape: extents of all axes, that of the rows included.
        """
        return TensorCPU(self._batch.as_array().reshape(shape))

    def as_cpu(self) -> TensorListCPU:
        """Return the object itself."""
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.as_array(), dtype=dtype, copy=copy)


class TensorGPU:
    """One tensor in a GPU's memory, with DLPack and CUDA's array interface.

    Args:
        data: array in a GPU's memory.
        dtype: element type.
        layout: axis names.
    """

    def __init__(self, data: Any, dtype: DType, layout: str = "") -> None:
        self._data, self.dtype, self._layout = data, dtype, layout

    def __getattr__(self, name: str) -> NoReturn:
        refuse("Tensor", name)

    def shape(self) -> list[int]:
        """Return the extents of the axes."""
        return list(self._data.shape)

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self._data.shape)

    def layout(self) -> str:
        """Return the names of the axes."""
        return self._layout

    def as_cpu(self) -> TensorCPU:
        """Return a copy in host memory."""
        array = np.frombuffer(self._data.to_host(), self.dtype.numpy).reshape(self._data.shape)
        return TensorCPU(array.copy(), self._layout)

    def _repr_html_(self) -> str:
        """Return a picture or statistics of a copy in host memory, for notebooks."""
        return _as_html("TensorGPU", self.as_cpu()._array, self.dtype, self._layout)

    def __repr__(self) -> str:
        return f"TensorGPU({self.dtype}, layout={self._layout!r}, shape={self.shape()})"

    @property
    def __cuda_array_interface__(self) -> Any:
        return self._data.__cuda_array_interface__

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._data.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self._data.__dlpack_device__()


class TensorListGPU(_TensorList):
    """Rows of one output in a GPU's memory.

    Args:
        source: a batch in a GPU's memory.
        layout: axis names of a row.
    """

    def __init__(self, source: Any, layout: str | None = None) -> None:
        if not isinstance(source, Batch) or source.device != "gpu":
            raise UnsupportedError(
                f"`TensorListGPU`: expected an output of a pipeline that is on a GPU, got {type(source).__name__}"
            )
        self._batch = source

    def __getitem__(self, row: int) -> TensorGPU:
        """Return one row, without a copy.

        Args:
            row: number of the row; negative numbers count from the end.
        """
        return TensorGPU(self._row(row), self.dtype, self._batch.layout)

    at = __getitem__

    def as_tensor(self) -> TensorGPU:
        """Return all rows as one tensor.

        Raises:
            ArgumentError: the shapes differ.
        """
        return TensorGPU(self._batch._one(), self.dtype, f"N{self._batch.layout}" if self._batch.layout else "")

    def as_cpu(self) -> TensorListCPU:
        """Return a copy in host memory."""
        return TensorListCPU(self._batch.as_cpu())


def tensor_list(batch: Batch) -> TensorListCPU | TensorListGPU:
    """Convert a pipeline's output to DALI's type."""
    return TensorListGPU(batch) if batch.device == "gpu" else TensorListCPU(batch)
