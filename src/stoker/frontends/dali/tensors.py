# SPDX-License-Identifier: Apache-2.0
"""DALI's return types of pipelines: a list of tensors per output."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ...contract.batch import Batch
from ...contract.errors import ArgumentError, UnsupportedError
from ...contract.feed import to_array
from ...contract.text import brief
from ...contract.types import DType
from .catalogue import refuse
from .errors import error_class, raises_as_dali
from .gpu_memory import copy_to_device, read_device_array, stack, upload
from .source_info import SourceInfo, unknown
from .tensor_text import list_text, tensor_text
from .type_names import NO_TYPE, DALIDataType


class _Tensor(ABC):
    """Base class of single tensors, independent of the device."""

    dtype: DALIDataType
    _layout: str
    _source_info: str = ""

    def source_info(self) -> str:
        """Return the location of the sample that the tensor is computed from, such as the path of its file.

        It is empty for data of no reader, for outputs without files such as labels, and for tensors of other origin
        than a pipeline's `run`.
        """
        return self._source_info

    @abstractmethod
    def shape(self) -> list[int]:
        """Return the extents of the axes."""

    def layout(self) -> str:
        """Return the names of the axes."""
        return self._layout

    @raises_as_dali
    def set_layout(self, layout: str) -> None:
        """Name the axes.

        Args:
            layout: one letter per axis, or an empty text.
        """
        self._layout = require_layout(layout, len(self.shape()))

    def get_property(self, name: str) -> Any:
        """Return a property as text; None if there is none of this name.

        Args:
            name: "layout" or "source_info", or the name of another property, which tensors do not have here.
        """
        known = {"layout": self.layout, "source_info": self.source_info}
        return known[name]() if name in known else None

    def _text(self, array: Any) -> str:
        return tensor_text(type(self).__name__, array, self.dtype, self._layout, self.shape())

    def __repr__(self) -> str:
        return self._text(None)


class TensorCPU(_Tensor):
    """One tensor in host memory. It shares the memory of the object that it was created from.

    Args:
        object: an array, or an object with DLPack.
        layout: axis names.
        is_pinned: accepted without effect.
    """

    @raises_as_dali
    def __init__(self, object: Any, layout: str | None = None, is_pinned: bool = False) -> None:
        known = object._layout if isinstance(object, TensorCPU) else ""
        self._array: npt.NDArray[Any] = object._array if isinstance(object, TensorCPU) else to_array(object)
        self._layout = known if layout is None else require_layout(layout, self._array.ndim)

    def __getattr__(self, name: str) -> NoReturn:
        refuse("Tensor", name)

    def shape(self) -> list[int]:
        """Return the extents of the axes."""
        return list(self._array.shape)

    @property
    def dtype(self) -> DALIDataType:  # type: ignore[override]
        """Return the element type."""
        return DALIDataType.of(self._array.dtype)

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return int(self._array.ndim)

    def as_cpu(self) -> TensorCPU:
        """Return the object itself."""
        return self

    @raises_as_dali
    def _as_gpu(self) -> TensorGPU:
        """Return a copy in the memory of GPU 0."""
        copied = TensorGPU(upload(self._array, DType.of(self.dtype)), self._layout)
        copied._source_info = self._source_info
        return copied

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return int(self._array.ctypes.data)

    @raises_as_dali
    def squeeze(self, dim: int | None = None) -> bool:
        """Remove axes of size one in place. Return whether there were any.

        Args:
            dim: the axis to remove if its size is one; None: all of size one.
        """
        drop = squeezed_axes(self._array.shape, dim)
        self._array = self._array.squeeze(drop)
        self._layout = "".join(name for i, name in enumerate(self._layout) if i not in drop)
        return bool(drop)

    def reinterpret(self, dtype: Any) -> None:
        """Read the same bytes as elements of another type of the same size.

        Args:
            dtype: the element type.
        """
        self._array = reinterpreted(self._array, dtype)

    def copy_to_external(self, ptr: Any, *_: Any, **__: Any) -> None:
        """Copy the elements to memory at an address.

        Args:
            ptr: address of the first byte, as a number or a `ctypes.c_void_p`. The memory must have room for all
                elements.
        """
        copy_to_address([self._array], ptr)

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

    def __str__(self) -> str:
        return self._text(self._array)


def require_layout(layout: str, rank: int) -> str:
    """Return the axis names of a tensor; ArgumentError if they do not fit its number of axes."""
    if not isinstance(layout, str) or len(layout) not in (0, rank):
        raise ArgumentError(f"`layout`: expected the names of {rank} axes, got {brief(layout)}")
    return layout


def squeezed_axes(shape: Sequence[int], dim: int | None) -> tuple[int, ...]:
    """Return the axes of size one, or the given axis if its size is one."""
    if dim is not None and not -len(shape) <= dim < len(shape):
        raise ArgumentError(f"`squeeze`: expected an axis of a tensor with {len(shape)} axes, got {dim}")
    wanted = range(len(shape)) if dim is None else (dim % len(shape),)
    return tuple(i for i in wanted if shape[i] == 1)


def reinterpreted(array: npt.NDArray[Any], dtype: Any) -> npt.NDArray[Any]:
    """Return the same bytes as elements of another type of the same size."""
    own = DType.of(dtype).numpy
    _require_size(array.itemsize, DType.of(dtype))
    return array.view(own)


def reinterpreted_on_gpu(array: Any, dtype: Any) -> Any:
    """Return the same bytes of a GPU's memory as elements of another type of the same size."""
    own = DType.of(dtype)
    _require_size(DType(array.dtype).size, own)
    return array.view(int(own), list(array.shape))


def _require_size(size: int, dtype: DType) -> None:
    if dtype.size != size:
        text = f"`reinterpret`: expected a type of {size} bytes, got {dtype} of {dtype.size}"
        raise error_class(ArgumentError)(text)


def copy_to_address(arrays: Sequence[npt.NDArray[Any]], address: Any) -> None:
    """Copy arrays, one after the other, to memory at an address (a number, or a `ctypes.c_void_p`)."""
    import ctypes

    at = int(getattr(address, "value", address) or 0)
    for array in map(np.ascontiguousarray, arrays):
        ctypes.memmove(at, array.ctypes.data, array.nbytes)
        at += array.nbytes


def _as_html(kind: str, array: Any, dtype: DALIDataType, layout: str) -> str:
    """Return a tensor for notebooks: a picture if it is an image, else its values or statistics."""
    from ...display.rows import tensor_as_html

    own = DType.of(dtype)
    (row,) = Batch([array], own, layout).host_rows(1)
    return tensor_as_html(f"{kind}({own} {tuple(array.shape)}{f' {layout}' if layout else ''})", row, layout)


class _TensorList(ABC):
    """Base class of lists of tensors, independent of the device."""

    _batch: Batch
    _has_type = True  # a list that was made of no rows, or reset, has none
    _source_info: SourceInfo = staticmethod(unknown)

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

    @abstractmethod
    def _without_rows(self, layout: str) -> Batch:
        """Return a batch of no rows on the list's device, whose rows would have the named axes."""

    def _remove_rows(self, layout: str = "") -> None:
        self._batch, self._has_type = self._without_rows(layout), False

    def reset(self) -> None:
        """Remove all rows, the element type and the axis names. Tensors that were taken from the list stay valid."""
        self._remove_rows()
        self._source_info = unknown

    def shape(self) -> list[tuple[int, ...]]:
        """Return one tuple per row."""
        return self._batch.shape()

    @property
    def dtype(self) -> DALIDataType:
        """Return the element type; ``types.NO_TYPE`` of a list that was made of no rows, or reset."""
        return DALIDataType.of(self._batch.dtype) if self._has_type else NO_TYPE

    @property
    def ndim(self) -> int:
        """Return the number of axes of a row."""
        batch = self._batch
        return len(batch.whole.shape) - 1 if batch.is_dense else len(batch[0].shape)

    def _require_type(self, what: str) -> None:
        if not self._has_type:
            raise ArgumentError(f"`{what}`: expected rows, or an element type, got an empty list without a type")

    def _first(self) -> Any:
        """Return the first row; all rows if there is none."""
        return self._batch[0] if len(self) else self._batch.whole

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

    @raises_as_dali
    def set_layout(self, layout: str) -> None:
        """Name the axes of a row.

        Args:
            layout: one letter per axis, or an empty text.
        """
        batch = self._batch
        if not self._has_type:
            self._remove_rows(require_layout(layout, len(layout)))
            return
        rows = batch.whole if batch.is_dense else list(batch)
        self._batch = Batch(rows, batch.dtype, require_layout(layout, self.ndim), device=batch.device)

    def get_property(self, name: str) -> list[Any]:
        """Return a property of every row.

        Args:
            name: name of the property, as for a tensor.
        """
        if name == "source_info":
            return [self._source_info(row) for row in range(len(self))]
        return [self.layout() if name == "layout" else None] * len(self)

    def _row_source_info(self, row: int) -> str:
        return self._source_info(row % len(self))

    def _text(self, rows: list[Any] | None) -> str:
        return list_text(type(self).__name__, rows, self.dtype, self.layout(), self.shape())

    def __repr__(self) -> str:
        return self._text(None)


class TensorListCPU(_TensorList):
    """Rows of one output in host memory.

    Args:
        source: a batch, an array with the rows on its first axis, or a sequence of arrays. A list of no rows has the
            element type ``types.NO_TYPE``.
        layout: axis names of a row.
        is_pinned: accepted, without effect.
    """

    @raises_as_dali
    def __init__(self, source: Any, layout: str | None = None, is_pinned: bool = False) -> None:
        if isinstance(source, Batch):
            self._batch = source.as_cpu()
            return
        if isinstance(source, TensorListCPU):
            self._batch, self._has_type = source._batch, source._has_type
            if layout is not None:
                self.set_layout(layout)
            return
        if isinstance(source, Sequence) and not len(source):
            self._remove_rows(require_layout(layout or "", len(layout or "")))
            return
        if isinstance(source, Sequence) and layout is None:
            layout = next((x.layout() for x in source if isinstance(x, _Tensor)), None)
        rows: Any = [to_array(x) for x in source] if isinstance(source, Sequence) else to_array(source)
        if not np.ndim(rows[0:1] if isinstance(rows, list) else rows):
            raise ArgumentError("`TensorListCPU`: expected an array with the rows on its first axis, got one number")
        if not len(rows):
            self._batch = Batch(rows, DType.of(rows.dtype), require_layout(layout or "", rows.ndim - 1))
            return
        kinds = {(r.dtype, r.ndim) for r in rows}
        if len(kinds) > 1:
            raise ArgumentError(f"`TensorListCPU`: expected rows of one type and rank, got {len(kinds)} kinds")
        if isinstance(rows, list) and len({r.shape for r in rows}) == 1:
            rows = np.stack(rows)
        self._batch = Batch(rows, DType.of(rows[0].dtype), require_layout(layout or "", rows[0].ndim))

    def _without_rows(self, layout: str) -> Batch:
        return Batch(np.zeros((0,) * (1 + len(layout)), np.float32), DType.FLOAT, layout)

    @staticmethod
    def broadcast(sample: TensorCPU, num_samples: int) -> TensorListCPU:
        """Return a list with one tensor as every row.

        Args:
            sample: the tensor.
            num_samples: number of rows.
        """
        return TensorListCPU([sample] * num_samples)

    @staticmethod
    @raises_as_dali
    def from_dlpack_list(list: Sequence[Any], layout: str | None = None) -> TensorListCPU:
        """Return a list of tensors that share memory with objects that support DLPack.

        Args:
            list: one object per row.
            layout: axis names of a row.
        """
        if not all(hasattr(x, "__dlpack__") for x in list):
            raise ArgumentError("`from_dlpack_list`: expected objects with `__dlpack__`, got others")
        return TensorListCPU(list, layout)

    def data_ptr(self) -> int:
        """Return the address of the first element of the first row; 0 for a list without a type."""
        return int(np.asarray(self._first()).ctypes.data) if self._has_type else 0

    @raises_as_dali
    def reinterpret(self, dtype: Any) -> None:
        """Read the same bytes as elements of another type of the same size.

        Args:
            dtype: the element type.
        """
        self._require_type("reinterpret")
        batch = self._batch
        data = reinterpreted(batch.whole, dtype) if batch.is_dense else [reinterpreted(x, dtype) for x in batch]
        self._batch = Batch(data, DType.of(dtype), self.layout())

    def copy_to_external(self, ptr: Any, *_: Any, **__: Any) -> None:
        """Copy the elements of all rows, one row after the other, to memory at an address.

        Args:
            ptr: address of the first byte, as a number or a `ctypes.c_void_p`. The memory must have room for all rows.
        """
        copy_to_address(list(self._batch), ptr)

    def __getitem__(self, row: int) -> TensorCPU:
        tensor = TensorCPU(self._row(row), self._batch.layout)
        tensor._source_info = self._row_source_info(row)
        return tensor

    def __iter__(self) -> Iterator[TensorCPU]:
        return (self[i] for i in range(len(self)))

    def at(self, row: int) -> Any:
        """Return one row as an array, without a copy.

        Args:
            row: number of the row; negative numbers count from the end.
        """
        if not -len(self) <= row < len(self):
            text = f"`at`: expected a row from {-len(self)} to {len(self) - 1}, got {row}"
            raise error_class(ArgumentError)(text)
        return self._row(row)

    @raises_as_dali
    def as_array(self) -> npt.NDArray[Any]:
        """Return all rows as one array, without a copy.

        Raises:
            ArgumentError: the shapes differ.
        """
        return self._batch.as_array()

    @raises_as_dali
    def as_tensor(self) -> TensorCPU:
        """Return all rows as one tensor.

        Raises:
            ArgumentError: the shapes differ.
        """
        self._require_type("as_tensor")
        layout = self._batch.layout
        return TensorCPU(self._batch.as_array(), f"N{layout}" if layout else "")

    @raises_as_dali
    def as_reshaped_tensor(self, shape: Sequence[int]) -> TensorCPU:
        """Return all rows as one tensor of the given shape.

        Args:
            shape: extents of all axes, that of the rows included.
        """
        array = self._batch.as_array()
        if math.prod(shape) != array.size:
            raise ArgumentError(f"`as_reshaped_tensor`: expected a shape of {array.size} elements, got {brief(shape)}")
        layout = self.layout()
        whole = f"N{layout}" if layout else ""
        return TensorCPU(array.reshape(shape), whole if len(shape) == len(whole) else None)

    def as_cpu(self) -> TensorListCPU:
        """Return the object itself."""
        return self

    @raises_as_dali
    def _as_gpu(self) -> TensorListGPU:
        """Return a copy in the memory of GPU 0."""
        batch = self._batch
        data: Any = upload(batch.whole, batch.dtype) if batch.is_dense else [upload(x, batch.dtype) for x in batch]
        copied = TensorListGPU(Batch(data, batch.dtype, batch.layout, device="gpu"))
        copied._has_type = self._has_type
        copied._source_info = self._source_info
        return copied

    def __str__(self) -> str:
        return self._text(list(self._batch))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.as_array(), dtype=dtype, copy=copy)


class TensorGPU(_Tensor):
    """One tensor in a GPU's memory, with DLPack and CUDA's array interface. It shares the memory of the object that it
    was created from, whose elements are contiguous.

    Args:
        object: a DLPack capsule, or an object with DLPack or CUDA's array interface, such as a tensor of torch or CuPy.
        layout: axis names.
        device_id: number of the GPU, for an object that does not report it.
        stream: accepted without effect; the tensor is complete when it is made.
    """

    @raises_as_dali
    def __init__(self, object: Any, layout: str | None = None, device_id: int = -1, *, stream: Any = None) -> None:
        known = object._layout if isinstance(object, TensorGPU) else ""
        self._data: Any = object._data if isinstance(object, TensorGPU) else read_device_array(object, device_id)
        self._layout = known if layout is None else require_layout(layout, len(self._data.shape))

    def __getattr__(self, name: str) -> NoReturn:
        refuse("Tensor", name)

    def shape(self) -> list[int]:
        """Return the extents of the axes."""
        return list(self._data.shape)

    @property
    def dtype(self) -> DALIDataType:  # type: ignore[override]
        """Return the element type."""
        return DALIDataType.of(DType(self._data.dtype))

    @property
    def ndim(self) -> int:
        """Return the number of axes."""
        return len(self._data.shape)

    @property
    def stream(self) -> None:
        """Return None: the elements are complete, so no stream has work on them."""
        return

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        return int(self._data.pointer)

    def device_id(self) -> int:
        """Return the number of the GPU."""
        return int(self._data.device_id)

    @raises_as_dali
    def squeeze(self, dim: int | None = None) -> bool:
        """Remove axes of size one in place. Return whether there were any.

        Args:
            dim: the axis to remove if its size is one; None: all of size one.
        """
        shape = self.shape()
        drop = squeezed_axes(shape, dim)
        self._data = self._data.view(self._data.dtype, [n for i, n in enumerate(shape) if i not in drop])
        self._layout = "".join(name for i, name in enumerate(self._layout) if i not in drop)
        return bool(drop)

    def reinterpret(self, dtype: Any) -> None:
        """Read the same bytes as elements of another type of the same size.

        Args:
            dtype: the element type.
        """
        self._data = reinterpreted_on_gpu(self._data, dtype)

    def copy_to_external(
        self, ptr: Any, cuda_stream: Any = None, non_blocking: bool = False, use_copy_kernel: bool = False
    ) -> None:
        """Copy the elements to memory of the GPU at an address.

        Args:
            ptr: address of the first byte, as a number or a `ctypes.c_void_p`. The memory must have room for all
                elements.
            cuda_stream: CUDA stream of the copy: it comes after the stream's work so far, and before its later work.
                None: the copy is done on return.
            non_blocking: return before the copy is done, if there is a stream.
            use_copy_kernel: accepted without effect.
        """
        copy_to_device([self._data], ptr, cuda_stream, wait=not non_blocking)

    def as_cpu(self) -> TensorCPU:
        """Return a copy in host memory."""
        array = np.frombuffer(self._data.to_host(), self.dtype.numpy).reshape(self._data.shape)
        copied = TensorCPU(array.copy(), self._layout)
        copied._source_info = self._source_info
        return copied

    def _repr_html_(self) -> str:
        """Return a picture or statistics of a copy in host memory, for notebooks."""
        return _as_html("TensorGPU", self.as_cpu()._array, self.dtype, self._layout)

    def __str__(self) -> str:
        return self._text(self.as_cpu()._array)

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
        source: a batch in a GPU's memory; a list of tensors; or an object or capsule as of :class:`TensorGPU` with the
            rows on its first axis. Rows of one shape in a list are copied to one piece of memory.
        layout: axis names of a row.
        contiguous: accepted without effect.
        device_id: number of the GPU, for objects that do not report it.
        stream: accepted without effect.
    """

    _device: int | None = None  # of a list that was made of no rows

    @raises_as_dali
    def __init__(
        self, source: Any, layout: str | None = None, contiguous: bool = True, *, device_id: int = -1,
        stream: Any = None,
    ) -> None:  # fmt: skip
        if isinstance(source, Batch):
            if source.device != "gpu":
                text = "`TensorListGPU`: expected an output of a pipeline that is on a GPU, got one in host memory"
                raise UnsupportedError(text)
            self._batch = source
            return
        if isinstance(source, TensorListGPU):
            self._batch, self._has_type = source._batch, source._has_type
            if layout is not None:
                self.set_layout(layout)
            return
        if isinstance(source, (list, tuple)) and not source:
            self._device = max(device_id, 0)
            self._remove_rows(require_layout(layout or "", len(layout or "")))
            return
        if isinstance(source, (list, tuple)):
            rows = [x if isinstance(x, TensorGPU) else TensorGPU(x, device_id=device_id) for x in source]
            kinds = {(x.dtype, x.ndim, x.device_id()) for x in rows}
            if len(kinds) > 1:
                text = f"expected rows of one type and rank on one GPU, got {len(kinds)} kinds"
                raise ArgumentError(f"`TensorListGPU`: {text}")
            data: Any = stack([x._data for x in rows])
            layout = next((x.layout() for x in rows if x.layout()), "") if layout is None else layout
        else:
            data = TensorGPU(source, device_id=device_id)._data
            if not data.shape:
                text = "expected an array with the rows on its first axis, got one number"
                raise ArgumentError(f"`TensorListGPU`: {text}")
        self._batch = Batch(data, DType((data[0] if isinstance(data, list) else data).dtype), device="gpu")
        self.set_layout(layout or "")

    def _without_rows(self, layout: str) -> Batch:
        whole = upload(np.zeros((0,) * (1 + len(layout)), np.float32), DType.FLOAT, self.device_id())
        return Batch(whole, DType.FLOAT, layout, device="gpu")

    @staticmethod
    def broadcast(sample: TensorGPU, num_samples: int) -> TensorListGPU:
        """Return a list with one tensor as every row.

        Args:
            sample: the tensor.
            num_samples: number of rows.
        """
        return TensorListGPU([sample] * num_samples)

    @staticmethod
    @raises_as_dali
    def from_dlpack_list(
        list_of_objects: Sequence[Any], layout: str | None = None, stream: Any = None, contiguous: bool = False
    ) -> TensorListGPU:
        """Return a list of the tensors of objects that support DLPack. Rows of different shapes share the objects'
        memory; rows of one shape are copied.

        Args:
            list_of_objects: one object per row.
            layout: axis names of a row.
            stream: accepted without effect.
            contiguous: accepted without effect.
        """
        if not all(hasattr(x, "__dlpack__") for x in list_of_objects):
            raise ArgumentError("`from_dlpack_list`: expected objects with `__dlpack__`, got others")
        return TensorListGPU(list_of_objects, layout)

    def __getitem__(self, row: int) -> TensorGPU:
        """Return one row, without a copy.

        Args:
            row: number of the row; negative numbers count from the end.
        """
        tensor = TensorGPU(self._row(row), self._batch.layout)
        tensor._source_info = self._row_source_info(row)
        return tensor

    at = __getitem__

    @property
    def stream(self) -> None:
        """Return None: the elements are complete, so no stream has work on them."""
        return

    @raises_as_dali
    def reinterpret(self, dtype: Any) -> None:
        """Read the same bytes as elements of another type of the same size.

        Args:
            dtype: the element type.
        """
        self._require_type("reinterpret")
        batch = self._batch
        data = batch.whole if batch.is_dense else list(batch)
        changed = [reinterpreted_on_gpu(x, dtype) for x in (data if isinstance(data, list) else [data])]
        self._batch = Batch(
            changed if isinstance(data, list) else changed[0], DType.of(dtype), batch.layout, device="gpu"
        )

    def copy_to_external(
        self, ptr: Any, cuda_stream: Any = None, non_blocking: bool = False, use_copy_kernel: bool = False
    ) -> None:
        """Copy the elements of all rows, one row after the other, to memory of the GPU at an address.

        Args:
            ptr: address of the first byte, as a number or a `ctypes.c_void_p`. The memory must have room for all rows.
            cuda_stream: CUDA stream of the copies, as of :meth:`TensorGPU.copy_to_external`.
            non_blocking: return before the copies are done, if there is a stream.
            use_copy_kernel: accepted without effect.
        """
        batch = self._batch
        copy_to_device([batch.whole] if batch.is_dense else list(batch), ptr, cuda_stream, wait=not non_blocking)

    @raises_as_dali
    def as_tensor(self) -> TensorGPU:
        """Return all rows as one tensor.

        Raises:
            ArgumentError: the shapes differ.
        """
        self._require_type("as_tensor")
        return TensorGPU(self._batch.whole, f"N{self._batch.layout}" if self._batch.layout else "")

    @raises_as_dali
    def as_reshaped_tensor(self, shape: Sequence[int]) -> TensorGPU:
        """Return all rows as one tensor of the given shape, without a copy.

        Args:
            shape: extents of all axes, that of the rows included.

        Raises:
            ArgumentError: the shapes of the rows differ, or the shape has another number of elements.
        """
        whole = self._batch.whole
        if math.prod(shape) != math.prod(whole.shape) or any(n < 0 for n in shape):
            count = math.prod(whole.shape)
            raise ArgumentError(f"`as_reshaped_tensor`: expected a shape of {count} elements, got {brief(shape)}")
        names = f"N{self.layout()}" if self.layout() else ""
        return TensorGPU(whole.view(whole.dtype, list(shape)), names if len(shape) == len(names) else None)

    def as_cpu(self) -> TensorListCPU:
        """Return a copy in host memory."""
        copied = TensorListCPU(self._batch.as_cpu())
        copied._has_type = self._has_type
        copied._source_info = self._source_info
        return copied

    def data_ptr(self) -> int:
        """Return the address of the first element of the first row; 0 for a list without a type."""
        return int(self._first().pointer) if self._has_type else 0

    def device_id(self) -> int:
        """Return the number of the GPU."""
        return self._device if self._device is not None else int(self._first().device_id)

    def __str__(self) -> str:
        return self._text(list(self._batch.as_cpu()))


def tensor_list(batch: Batch, source_info: SourceInfo) -> TensorListCPU | TensorListGPU:
    """Convert a pipeline's output to DALI's type.

    Args:
        batch: the output.
        source_info: function of a row's number that returns the location of its sample.
    """
    made = TensorListGPU(batch) if batch.device == "gpu" else TensorListCPU(batch)
    made._source_info = source_info
    return made
