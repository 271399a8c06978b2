# SPDX-License-Identifier: Apache-2.0
"""Tensors and batches of the imperative mode, with arithmetic, and the call of operators on them."""

from __future__ import annotations

import functools
import importlib
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ....contract.batch import Batch as Rows
from ....contract.errors import ArgumentError, UnsupportedError
from ....contract.feed import to_array
from ....contract.text import brief
from ....contract.types import DType as TypeId
from ... import eager
from ...constants import Constant
from ...literals import as_array
from ...registry import find
from ..errors import error_class, raises_as_dali, raising_as_dali
from ..tensor_text import list_text, tensor_text
from ..tensors import TensorGPU, TensorListGPU
from .context import EvalContext
from .devices import CPU, Device, device
from .devices import device as as_device
from .element_types import DType, dtype, stored_type
from .storage import (
    DeviceArray,
    find_device,
    has_steps_of_rows,
    index_arguments,
    layout_of,
    move,
    move_rows,
    named,
    stack_rows,
    subscript,
    take,
    to_host,
)

Array = npt.NDArray[Any]


def call(
    name: str, inputs: Sequence[Any], arguments: dict[str, Any], batch_size: int | None = None, place: Any = None
) -> Any:
    """Call an operator on tensors, batches, and what `as_tensor` takes; return tensors, or batches if any is given.

    Args:
        name: name of the operator.
        inputs: the inputs.
        arguments: arguments by name; batches have one element per row.
        batch_size: number of rows, if no batch is given; then tensors serve all rows.
        place: device; by default the GPU of the inputs, or the CPU.
    """
    with raising_as_dali():
        sizes = {x.batch_size for x in (*inputs, *arguments.values()) if isinstance(x, Batch)}
        sizes |= set() if batch_size is None else {batch_size}
        if len(sizes) > 1:
            raise ArgumentError(f"`{name}`: expected batches of one size, got {sorted(sizes)}")
        rows = next(iter(sizes), None)
        taken = [x if isinstance(x, Batch) else as_tensor(x) for x in inputs]
        where = _place(name, taken, device(place))
        given = {key: _argument(value) for key, value in arguments.items() if value is not None}
        context = EvalContext.current()
        if where == CPU:
            columns = [_column(x.cpu()) for x in taken]
        else:
            columns = [_column(x) for x in taken]
            given |= {"device": "gpu", "device_id": where.device_id}
            _wait_for_stream(context, where, taken)
        count = 1 if rows is None else rows
        outputs = eager.batches_of(name, columns, given, count, context.thread_pool.rows)
        results = tuple(Batch._of(x, where) if rows is not None else Batch._of(x, where).select(0) for x in outputs)
    return results[0] if len(results) == 1 else results


def _place(name: str, inputs: Sequence[Any], asked: Device | None) -> Device:
    """Return the device of a call: as asked, or the GPU of the inputs if the operator runs there."""
    gpus = {x.device for x in inputs} - {CPU}
    if asked is None and gpus and "gpu" not in find(name).devices:
        return CPU
    if len(gpus) > 1 and asked != CPU:
        text = f"expected inputs on one GPU, got some on {' and '.join(sorted(map(str, gpus)))}"
        raise ArgumentError(f"`{name}`: {text}")
    if asked is None:
        return gpus.pop() if gpus else CPU
    if asked != CPU and gpus - {asked}:
        raise ArgumentError(f"`{name}`: expected inputs on {asked} or in host memory, got one on {gpus.pop()}")
    return asked


def _wait_for_stream(context: EvalContext, where: Device, inputs: Sequence[Any]) -> None:
    """Wait for the work that other libraries have issued to the context's stream, because it may write the inputs."""
    stream = context.stream_to_follow
    if stream is not None and stream.device_id == where.device_id and any(x.device != CPU for x in inputs):
        stream.synchronize()


def _column(x: Any) -> Any:
    return x._rows if isinstance(x, Batch) else _Shown(x)


class _Shown(Constant):
    """Tensor as an input of eager calls, without a copy."""

    def __init__(self, x: Tensor) -> None:
        self.value, self.layout = x._array, x._layout


def _argument(x: Any) -> Any:
    if isinstance(x, Batch):
        return x.cpu()._rows
    if isinstance(x, Tensor):
        return x.cpu()._array
    if isinstance(x, DType):
        return x.type_id
    return [_argument(v) for v in x] if isinstance(x, list) else x


class _Arithmetic:
    """Operators of Python on tensors and batches, element by element, with DALI's promotion."""

    __slots__ = ()
    __array_priority__ = 1000  # so that an array of NumPy leaves arithmetic to the other operand

    def __pos__(self) -> Any:
        return self

    def _apply(self, op: str, *operands: Any) -> Any:
        return arithmetic(op, *operands)


def arithmetic(op: str, *operands: Any) -> Any:
    """Apply an elementwise function. Numbers are int32 or float32, as in pipelines. All tensors are on one device."""
    places = {as_tensor(x).device if not isinstance(x, Batch) else x.device for x in operands if not _is_number(x)}
    if len(places) > 1:
        text = f"expected operands on one device, got some on {' and '.join(sorted(map(str, places)))}"
        raise error_class(ArgumentError)(f"`{op}`: {text}")
    return call("_arithmetic", operands, {"op": op})


def _is_number(x: Any) -> bool:
    return isinstance(x, (numbers.Real, list, tuple))


def _binary(op: str, *, swap: bool = False) -> Callable[[Any, Any], Any]:
    def operate(self: Any, other: Any) -> Any:
        if other is None or isinstance(other, (str, dict, set)):
            return NotImplemented
        return self._apply(op, other, self) if swap else self._apply(op, self, other)

    return operate


def _unary(op: str) -> Callable[[Any], Any]:
    return lambda self: self._apply(op, self)


_BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "idiv", "mod": "mod", "pow": "pow",
    "and": "and", "or": "or", "xor": "xor", "lshift": "shl", "rshift": "shr",
}  # fmt: skip
for _name, _op in _BINARY.items():
    setattr(_Arithmetic, f"__{_name}__", _binary(_op))
    setattr(_Arithmetic, f"__r{_name}__", _binary(_op, swap=True))
for _op in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(_Arithmetic, f"__{_op}__", _binary(_op))
for _name, _op in {"neg": "neg", "abs": "abs", "invert": "not"}.items():
    setattr(_Arithmetic, f"__{_name}__", _unary(_op))
_Arithmetic.__hash__ = None  # type: ignore[assignment]


class Tensor(_Arithmetic):
    """Array with an element type and names of its axes. ``tensor`` and ``as_tensor`` make tensors.

    Attributes:
        shape: extents.
        ndim: number of axes.
        dtype: element type.
        layout: names of the axes, or None.
        device: the CPU, or a GPU.
        size, itemsize, nbytes: number of elements, bytes of one, bytes of all.
    """

    __slots__ = ("_array", "_device", "_layout", "_type")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, data: Any = None, dtype: Any = None, device: Any = None, layout: str | None = None, copy: bool = False
    ) -> None:
        """Take data; use `tensor` or `as_tensor`.

        Args:
            data: a tensor, an array, a tensor of a framework, a number or a nested list.
            dtype: element type; by default that of the data, int32 for ints and float32 for floats.
            device: device or its name; by default that of the data.
            layout: names of the axes; by default those of the data.
            copy: copy the data in any case.
        """
        with raising_as_dali():
            asked = as_device(device)
            array, own, names, place = _taken(data)
            if dtype is not None and stored_type(dtype) != own:
                target = stored_type(dtype)
                converted = call("cast", [Tensor._of(array, own, "", place)], {"dtype": target}, None, place)
                array, own, copy = converted._array, target, False
            if asked is not None and asked != place:
                array, place, copy = move(array, own, asked), asked, False
        self._array: Any = move(array, own, place) if copy else array
        self._type = own
        self._layout = named(layout, names, len(array.shape))
        self._device = place

    @classmethod
    def _of(cls, array: Any, type_id: TypeId, layout: str, place: Device = CPU) -> Tensor:
        made = cls.__new__(cls)
        made._array = array if isinstance(array, DeviceArray) else np.asarray(array)
        made._type, made._layout = type_id, layout
        made._device = place if isinstance(array, DeviceArray) else CPU
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._array.shape)

    @property
    def ndim(self) -> int:
        return len(self._array.shape)

    @property
    def dtype(self) -> DType:
        return dtype(self._type)

    @property
    def layout(self) -> str | None:
        return self._layout or None

    @property
    def device(self) -> Device:
        return self._device

    @property
    def size(self) -> int:
        return math.prod(self._array.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.bytes

    @property
    def nbytes(self) -> int:
        return self.size * self.itemsize

    def item(self) -> Any:
        """Return the only element as a number of Python's."""
        if self.size != 1:
            raise error_class(ArgumentError)(f"`Tensor.item`: expected one element, got {self.size}")
        return to_host(self._array).item()

    def cpu(self) -> Tensor:
        """Return the tensor in host memory: the tensor itself, or a copy."""
        return self.to_device(CPU)

    def gpu(self, index: int | None = None) -> Tensor:
        """Return the tensor in a GPU's memory: the tensor itself, or a copy.

        Args:
            index: number of the GPU; by default the current one.
        """
        return self.to_device(Device("gpu", index))

    @raises_as_dali
    def to_device(self, device: Any, force_copy: bool = False) -> Tensor:
        """Return the tensor on a device: the tensor itself, or a copy.

        Args:
            device: the device or its name.
            force_copy: copy in any case.
        """
        to = as_device(device)
        if to == self._device and not force_copy:
            return self
        return Tensor._of(move(self._array, self._type, to), self._type, self._layout, to)

    def evaluate(self) -> Tensor:
        """Return the tensor itself: it has been computed."""
        return self

    def torch(self, copy: bool = False) -> Any:
        """Return a tensor of PyTorch's.

        Args:
            copy: copy the data; else memory is shared.
        """
        torch = importlib.import_module("torch")  # only for its users
        if self._device != CPU:
            shared = torch.from_dlpack(self._array)
            return shared.clone() if copy else shared
        return torch.from_dlpack(self._array.copy() if copy or not self._array.flags.writeable else self._array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self._device != CPU:
            raise TypeError(f"expected a tensor in host memory, got one on {self._device}. Copy it with `cpu()`")
        return np.array(self._array, dtype=dtype) if copy else np.asarray(self._array, dtype=dtype)

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> Any:
        """Return CUDA's array interface of a tensor on a GPU."""
        if self._device == CPU:
            raise AttributeError("a tensor in host memory has no CUDA array interface")
        return self._array.__cuda_array_interface__

    def __bool__(self) -> bool:
        if self.size != 1:
            text = f"expected one element as a condition, got {self.size}. Reduce it first"
            raise error_class(ArgumentError)(f"`Tensor`: {text}")
        return bool(self.item())

    def __index__(self) -> int:
        if self.ndim or self._type.numpy.kind not in "iu":
            raise TypeError(f"expected a whole number, got a tensor of {self.dtype} with {self.ndim} axes")
        return int(self.item())

    @raises_as_dali
    def __getitem__(self, ranges: Any) -> Tensor:
        """Return elements by numbers and slices; numbers may be tensors."""
        parts = ranges if isinstance(ranges, tuple) else (ranges,)
        if self._device != CPU:
            spec, given = index_arguments([_plain(r) for r in parts], self.ndim)
            return call("_index", [self, *given], {"spec": spec})  # type: ignore[no-any-return]
        found, names = _subscript(self._array, self._layout, parts)
        return Tensor._of(found, self._type, names)

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("a tensor without axes has no rows")
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self) -> str:
        text = tensor_text(
            "Tensor", to_host(self._array), self._type, self._layout, self.shape, self._device.device_type
        )
        return text.replace(f"dtype=DALIDataType.{self._type.name}", f"dtype={self.dtype}")


@raises_as_dali
def _taken(data: Any) -> tuple[Any, TypeId, str, Device]:
    """Return data as an array, with element type, names of the axes, and device."""
    if isinstance(data, Tensor):
        return data._array, data._type, data._layout, data._device
    if isinstance(data, TensorGPU):
        return _taken_on_gpu(data._data, data.layout(), Device("gpu", max(data.device_id(), 0)))
    if isinstance(data, Batch):
        raise ArgumentError("expected data of one tensor, got a batch. `as_tensor` stacks its rows")
    if isinstance(data, np.generic):
        data = np.asarray(data)
    if isinstance(data, (list, tuple)) and any(hasattr(x, "__array__") or hasattr(x, "__dlpack__") for x in data):
        return _stacked_parts([Tensor(x) for x in data])
    if isinstance(data, (bool, int, float, list, tuple)):
        data = as_array(data, "tensor")
    if data is None or isinstance(data, (str, dict, set)):
        raise ArgumentError(f"expected the data of a tensor, got {brief(data)}")
    place = find_device(data)
    if place is not None:
        return _taken_on_gpu(data, getattr(data, "layout", ""), place)
    try:
        array = to_array(data)
    except TypeError as error:
        raise ArgumentError(f"expected the data of a tensor: {error}") from error
    layout = getattr(data, "layout", "")
    return array, TypeId.of(array.dtype), layout_of(layout, array.ndim), CPU


def _taken_on_gpu(data: Any, layout: Any, place: Device) -> tuple[Any, TypeId, str, Device]:
    array = take(data, place)
    return array, TypeId(array.dtype), layout_of(layout, len(array.shape)), place


def _stacked_parts(parts: list[Tensor]) -> tuple[Any, TypeId, str, Device]:
    if all(x._device == CPU for x in parts):
        return _taken(np.stack([x._array for x in parts]))
    kinds = {(x.device, x.shape, x._type) for x in parts}
    if len(kinds) > 1:
        raise ArgumentError(f"expected tensors of one device, shape and type, got {len(kinds)} kinds")
    return stack_rows([x._array for x in parts]), parts[0]._type, "", parts[0]._device


def _subscript(array: Array, layout: str, ranges: tuple[Any, ...]) -> tuple[Any, str]:
    """Return elements, and the names of the axes that stay."""
    plain = [_plain(r) for r in ranges]
    return subscript(array, layout, plain)


def _plain(r: Any) -> Any:
    """Return a subscript of a tensor with Python's numbers."""
    if isinstance(r, Batch):
        raise ArgumentError("expected numbers and slices as subscripts, got a batch. Use `batch.slice[...]`")
    return slice(*map(_index, (r.start, r.stop, r.step))) if isinstance(r, slice) else _subscripted(r)


def _subscripted(r: Any) -> Any:
    if r is ...:
        return r
    if r is None:
        raise UnsupportedError("expected numbers and slices as subscripts, got None. `expand_dims` inserts axes")
    return _index(r)


def _index(r: Any) -> int | None:
    if r is None:
        return None
    r = r.item() if isinstance(r, Tensor) else r
    r = np.asarray(r).item() if np.ndim(r) == 0 and not isinstance(r, (str, bytes)) else r
    if isinstance(r, bool) or not isinstance(r, int):
        raise ArgumentError(f"expected a whole number as subscript, got {brief(r)}")
    return r


class _Tensors(Sequence[Tensor]):
    """Tensors of a batch."""

    def __init__(self, batch: Batch, which: Sequence[int]) -> None:
        self._batch, self._which = batch, which

    def __len__(self) -> int:
        return len(self._which)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, (slice, list)):
            return self.select(i)
        return self._batch._tensor(self._which[_index(i)])  # type: ignore[index]

    def select(self, which: Any) -> _Tensors:
        """Return some of the tensors."""
        chosen = self._which[which] if isinstance(which, slice) else [self._which[i] for i in which]
        return _Tensors(self._batch, chosen)

    def tolist(self) -> list[Tensor]:
        """Return a list."""
        return list(self)

    def as_batch(self, copy: bool = False) -> Batch:
        """Return the tensors as a batch."""
        return Batch(list(self), copy=copy)


class _Slices:
    """``batch.slice[...]``: subscripts of every row, which may be batches."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch

    @raises_as_dali
    def __getitem__(self, ranges: Any) -> Batch:
        parts = ranges if isinstance(ranges, tuple) else (ranges,)
        if self._batch.device != CPU:
            if has_steps_of_rows(parts):
                raise UnsupportedError("expected numbers as steps on a GPU, got a batch. Copy the batch with `cpu()`")
            spec, given = index_arguments([_of_rows(r) for r in parts], self._batch.ndim)
            return call("_index", [self._batch, *given], {"spec": spec})  # type: ignore[no-any-return]
        rows, names = [], ""
        for i, row in enumerate(self._batch.tensors):
            found, names = _subscript(row._array, row._layout, tuple(_of_row(r, i) for r in parts))
            rows.append(np.asarray(found))
        return Batch._of(Rows(rows, self._batch._rows.dtype, names))


def _of_rows(r: Any) -> Any:
    """Return a subscript of all rows, whose numbers may be batches."""
    if isinstance(r, slice):
        return slice(*(x if x is None or isinstance(x, Batch) else _index(x) for x in (r.start, r.stop, r.step)))
    return r if isinstance(r, Batch) else _subscripted(r)


def _of_row(r: Any, i: int) -> Any:
    if isinstance(r, slice):
        return slice(*(_of_row(x, i) for x in (r.start, r.stop, r.step)))
    return r.select(i) if isinstance(r, Batch) else r


class Batch(_Arithmetic):
    """Tensors of one element type, layout and number of axes. ``batch`` and ``as_batch`` make batches.

    Attributes:
        batch_size: number of tensors.
        shape: list of their shapes.
        ndim: number of axes of each.
        dtype: element type.
        layout: names of the axes of each, or None.
        device: the CPU, or a GPU.
        tensors: the tensors, as a sequence.
        slice: subscripts of every tensor; they may be batches.
    """

    __slots__ = ("_device", "_rows")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, tensors: Any = None, dtype: Any = None, device: Any = None, layout: str | None = None, copy: bool = False
    ) -> None:
        """Take tensors; use `batch` or `as_batch`.

        Args:
            tensors: a list of what `Tensor` takes, an array whose first axis is the batch, or a batch.
            dtype: element type; by default that of the data.
            device: device or its name; by default that of the data.
            layout: names of the axes of each tensor.
            copy: copy the data in any case.
        """
        with raising_as_dali():
            asked = as_device(device)
            whole = _rows_of(tensors) if asked is None and dtype is None and not copy else None
            rows = [] if whole else [Tensor(x, dtype, asked, layout, copy) for x in _tensors_of(tensors)]
            if whole is not None:
                self._rows, self._device = _renamed(whole, layout) if layout is not None else whole, _device_of(whole)
                return
            if not rows and dtype is None:
                raise ArgumentError("expected tensors, or a `dtype` for an empty batch")
            rows = [x if x._type == rows[0]._type else Tensor(x, rows[0].dtype) for x in rows]
            kinds = {(x._type, x.ndim, x._layout, str(x._device)) for x in rows}
            if len(kinds) > 1:
                found = " and ".join(sorted(f"{t} {n} {names!r} on {where}" for t, n, names, where in kinds))
                raise ArgumentError(f"expected tensors of one type, number of axes, layout and device, got {found}")
            own = rows[0]._type if rows else stored_type(dtype)
            names = rows[0]._layout if rows else layout or ""
            self._device = rows[0]._device if rows else asked or CPU
            if rows or self._device == CPU:
                self._rows = Rows([x._array for x in rows], own, names, device=self._device.device_type)
            else:
                self._rows = move_rows(Rows(np.zeros((0, 0), own.numpy), own, names), self._device)

    @classmethod
    def _of(cls, rows: Rows, place: Device = CPU) -> Batch:
        made = cls.__new__(cls)
        made._rows, made._device = rows, place if rows.device == "gpu" else CPU
        return made

    def _tensor(self, i: int) -> Tensor:
        return Tensor._of(self._rows[i], self._rows.dtype, self._rows.layout, self._device)

    @staticmethod
    def broadcast(sample: Any, batch_size: int, device: Any = None, dtype: Any = None) -> Batch:
        """Return a batch that has one tensor several times.

        Args:
            sample: the tensor.
            batch_size: number of times.
            device: device or its name; by default that of the data.
            dtype: element type.
        """
        one = Tensor(sample, dtype, device)
        rows = Rows([one._array] * batch_size, one._type, one._layout, device=one._device.device_type)
        return Batch._of(rows, one._device)

    @property
    def batch_size(self) -> int:
        return len(self._rows)

    @property
    def shape(self) -> list[tuple[int, ...]]:
        return self._rows.shape()

    @property
    def ndim(self) -> int:
        return len(self._rows[0].shape) if len(self._rows) else 0

    @property
    def dtype(self) -> DType:
        return dtype(self._rows.dtype)

    @property
    def layout(self) -> str | None:
        return self._rows.layout or None

    @property
    def device(self) -> Device:
        return self._device

    @property
    def tensors(self) -> _Tensors:
        return _Tensors(self, range(len(self._rows)))

    @property
    def slice(self) -> _Slices:
        return _Slices(self)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    def select(self, sample_range: Any) -> Any:
        """Return one tensor by number, or a batch of some by a slice or list.

        Args:
            sample_range: the number, slice or list.
        """
        if sample_range is ...:
            return self
        if isinstance(sample_range, (slice, list)):
            chosen = self.tensors.select(sample_range)
            rows = [x._array for x in chosen]
            if not rows and self._device != CPU:
                return Batch([], self.dtype, self._device, self.layout)
            return Batch._of(Rows(rows, self._rows.dtype, self._rows.layout, device=self._rows.device), self._device)
        return self.tensors[sample_range]

    def cpu(self) -> Batch:
        """Return the batch in host memory: the batch itself, or a copy."""
        return self.to_device(CPU)

    def gpu(self, index: int | None = None) -> Batch:
        """Return the batch in a GPU's memory: the batch itself, or a copy.

        Args:
            index: number of the GPU; by default the current one.
        """
        return self.to_device(Device("gpu", index))

    @raises_as_dali
    def to_device(self, device: Any, force_copy: bool = False) -> Batch:
        """Return the batch on a device: the batch itself, or a copy.

        Args:
            device: the device or its name.
            force_copy: copy in any case.
        """
        to = as_device(device)
        if to == self._device and not force_copy:
            return self
        return Batch._of(move_rows(self._rows, to), to)

    def evaluate(self) -> Batch:
        """Return the batch itself: it has been computed."""
        return self

    def torch(self, copy: bool | None = None, pad: bool = False) -> Any:
        """Return a tensor of PyTorch's with all rows.

        Args:
            copy: copy the data.
            pad: fill smaller rows with zeros.
        """
        return as_tensor(self, pad=pad).torch(bool(copy))

    def __getitem__(self, i: Any) -> Any:
        raise TypeError(
            "a batch has no subscripts: `batch.tensors[i]` is a tensor, `batch.slice[...]` cuts every tensor"
        )

    def __repr__(self) -> str:
        rows = [np.asarray(to_host(x)) for x in self._rows]
        place = self._device.device_type
        text = list_text("Batch", rows, self._rows.dtype, self._rows.layout, self.shape, place)
        return text.replace(f"dtype=DALIDataType.{self._rows.dtype.name}", f"dtype={self.dtype}")


def _rows_of(data: Any) -> Rows | None:
    """Return the rows of a batch of any kind; None for other data."""
    if isinstance(data, Batch):
        return data._rows
    if isinstance(data, TensorListGPU):
        return data._batch if len(data) else None
    return data if isinstance(data, Rows) and len(data) else None


def _device_of(rows: Rows) -> Device:
    return Device("gpu", max(int(rows[0].device_id), 0)) if rows.device == "gpu" and len(rows) else CPU


def _renamed(rows: Rows, layout: str) -> Rows:
    names = named(layout, rows.layout, len(rows[0].shape))
    return Rows(rows.whole if rows.is_dense else list(rows), rows.dtype, names, device=rows.device)


def _tensors_of(data: Any) -> Iterable[Any]:
    """Return the tensors of a batch's data."""
    rows = _rows_of(data)
    if rows is not None:
        place = data._device if isinstance(data, Batch) else _device_of(rows)
        return [Tensor._of(x, rows.dtype, rows.layout, place) for x in rows]
    if isinstance(data, (list, tuple, range)) or (isinstance(data, Iterator) and not hasattr(data, "__array__")):
        return data
    if data is None or isinstance(data, (str, bytes, dict, set)):
        raise ArgumentError(f"expected the tensors of a batch, got {brief(data)}")
    whole = as_tensor(data)
    if not whole.ndim:
        raise ArgumentError("expected the tensors of a batch, got one number")
    return list(whole)


def _stacked(data: Batch, pad: bool) -> Tensor:
    """Return the rows of a batch as one tensor."""
    shapes = set(data.shape)
    names = "N" + data._rows.layout if data._rows.layout else ""
    if len(shapes) > 1:
        if not pad:
            text = f"expected tensors of one shape, got {sorted(shapes)[:3]}. Pass `pad=True` to fill with zeros"
            raise ArgumentError(f"`as_tensor`: {text}")
        if data._device == CPU:
            rows = [np.asarray(x) for x in data._rows]
            extents = np.max([x.shape for x in rows], axis=0)
            rows = [np.pad(x, [(0, n - k) for n, k in zip(extents, x.shape, strict=True)]) for x in rows]
        else:
            extents = np.max([list(shape) for shape in shapes], axis=0)
            axes = list(range(data.ndim))
            rows = list(call("pad", [data], {"axes": axes, "shape": [int(n) for n in extents]})._rows)
        return Tensor._of(stack_rows(rows), data._rows.dtype, names, data._device)
    if data._rows.is_dense:
        return Tensor._of(data._rows.whole, data._rows.dtype, names, data._device)
    whole = stack_rows(list(data._rows)) if shapes else np.zeros((0,), data._rows.dtype.numpy)
    return Tensor._of(whole, data._rows.dtype, names, data._device)


@raises_as_dali
def tensor(data: Any, dtype: Any = None, device: Any = None, layout: str | None = None, pad: bool = False) -> Tensor:
    """Copy data into a tensor.

    Args:
        data: a tensor, an array, a tensor of a framework, a number, a nested list, or a batch, whose rows are stacked.
        dtype: element type; by default that of the data, int32 for ints and float32 for floats.
        device: device or its name; by default that of the data.
        layout: names of the axes.
        pad: fill smaller rows of a batch with zeros.
    """
    if isinstance(data, Batch):
        data = _stacked(data, pad)
    return Tensor(data, dtype, device, layout, copy=True)


@raises_as_dali
def as_tensor(data: Any, dtype: Any = None, device: Any = None, layout: str | None = None, pad: bool = False) -> Tensor:
    """Return data as a tensor, without a copy where possible.

    Args:
        data: as for `tensor`.
        dtype: element type; by default that of the data.
        device: device or its name; by default that of the data.
        layout: names of the axes.
        pad: fill smaller rows of a batch with zeros.
    """
    if isinstance(data, Tensor) and dtype is None and device is None and layout is None:
        return data
    if isinstance(data, Batch):
        data = _stacked(data, pad)
    return Tensor(data, dtype, device, layout)


DType.make_tensor = staticmethod(tensor)


def batch(tensors: Any, dtype: Any = None, device: Any = None, layout: str | None = None) -> Batch:
    """Copy tensors into a batch.

    Args:
        tensors: a list of what `tensor` takes, an array whose first axis is the batch, or a batch.
        dtype: element type.
        device: device or its name; by default that of the data.
        layout: names of the axes of each tensor.
    """
    return Batch(tensors, dtype, device, layout, copy=True)


def as_batch(tensors: Any, dtype: Any = None, device: Any = None, layout: str | None = None) -> Batch:
    """Return tensors as a batch, without a copy where possible.

    Args:
        tensors: as for `batch`.
        dtype: element type.
        device: device or its name; by default that of the data.
        layout: names of the axes of each tensor.
    """
    if isinstance(tensors, Batch) and dtype is None and device is None and layout is None:
        return tensors
    return Batch(tensors, dtype, device, layout)


def elementwise(op: str, doc: str, *names: str) -> Callable[..., Any]:
    """Return a function of ``math`` on tensors, batches and numbers."""

    @functools.wraps(arithmetic, assigned=())
    def function(*operands: Any) -> Any:
        if len(operands) != len(names):
            raise error_class(ArgumentError)(f"`math.{op}`: expected {', '.join(names)}, got {len(operands)} operands")
        return arithmetic(op, *operands)

    function.__name__ = function.__qualname__ = op
    function.__doc__ = doc
    return function
