# SPDX-License-Identifier: Apache-2.0
"""Tensors and batches of the imperative mode, with arithmetic, and the call of operators on them."""

from __future__ import annotations

import functools
import importlib
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
from ..errors import error_class, raises_as_dali, raising_as_dali
from ..tensor_text import list_text, tensor_text
from .context import CPU, Device, device
from .element_types import DType, dtype, type_id

Array = npt.NDArray[Any]


def call(name: str, inputs: Sequence[Any], arguments: dict[str, Any], batch_size: int | None = None) -> Any:
    """Call an operator on tensors, batches, and what `as_tensor` takes; return tensors, or batches if any is given.

    Args:
        name: name of the operator.
        inputs: the inputs.
        arguments: arguments by name; batches have one element per row.
        batch_size: number of rows, if no batch is given; then tensors serve all rows.
    """
    with raising_as_dali():
        sizes = {x.batch_size for x in (*inputs, *arguments.values()) if isinstance(x, Batch)}
        sizes |= set() if batch_size is None else {batch_size}
        if len(sizes) > 1:
            raise ArgumentError(f"`{name}`: expected batches of one size, got {sorted(sizes)}")
        rows = next(iter(sizes), None)
        columns = [_column(x) for x in inputs]
        given = {key: _argument(value) for key, value in arguments.items() if value is not None}
        outputs = eager.batches_of(name, columns, given, 1 if rows is None else rows)
        results = tuple(Batch._of(x) if rows is not None else Batch._of(x).select(0) for x in outputs)
    return results[0] if len(results) == 1 else results


def _column(x: Any) -> Any:
    if isinstance(x, Batch):
        return x._rows
    x = as_tensor(x)
    return _Shown(x)


class _Shown(Constant):
    """Tensor as an input of eager calls, without a copy."""

    def __init__(self, x: Tensor) -> None:
        self.value, self.layout = x._array, x._layout


def _argument(x: Any) -> Any:
    if isinstance(x, Batch):
        return x._rows
    if isinstance(x, Tensor):
        return x._array
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
    """Apply an elementwise function. Numbers are int32 or float32, as in pipelines."""
    return call("_arithmetic", operands, {"op": op})


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
        device: the CPU.
        size, itemsize, nbytes: number of elements, bytes of one, bytes of all.
    """

    __slots__ = ("_array", "_layout", "_type")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, data: Any = None, dtype: Any = None, device: Any = None, layout: str | None = None, copy: bool = False
    ) -> None:
        """Take data; use `tensor` or `as_tensor`.

        Args:
            data: a tensor, an array, a tensor of a framework, a number or a nested list.
            dtype: element type; by default that of the data, int32 for ints and float32 for floats.
            device: "cpu".
            layout: names of the axes; by default those of the data.
            copy: copy the data in any case.
        """
        _require_cpu(device)
        array, own, names = _taken(data)
        if dtype is not None and type_id(dtype) != own:
            target = type_id(dtype)
            (converted,) = eager.batches_of("cast", [_constant(array, "")], {"dtype": target}, 1)
            array, own, copy = np.asarray(converted[0]), target, False
        self._array: Array = array.copy() if copy else array
        self._type = own
        self._layout = _named(layout, names, array.ndim)

    @classmethod
    def _of(cls, array: Any, type_id: TypeId, layout: str) -> Tensor:
        made = cls.__new__(cls)
        made._array, made._type, made._layout = np.asarray(array), type_id, layout
        return made

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._array.shape)

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def dtype(self) -> DType:
        return dtype(self._type)

    @property
    def layout(self) -> str | None:
        return self._layout or None

    @property
    def device(self) -> Device:
        return CPU

    @property
    def size(self) -> int:
        return self._array.size

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
        return self._array.item()

    def cpu(self) -> Tensor:
        """Return the tensor itself."""
        return self

    def gpu(self, index: int | None = None) -> Tensor:
        """Refuse: the imperative mode computes on the CPU."""
        device("gpu", index)
        return self

    def to_device(self, device: Any, force_copy: bool = False) -> Tensor:
        """Return the tensor, or a copy.

        Args:
            device: "cpu".
            force_copy: copy in any case.
        """
        _require_cpu(device)
        return Tensor(self, copy=True) if force_copy else self

    def evaluate(self) -> Tensor:
        """Return the tensor itself: it has been computed."""
        return self

    def torch(self, copy: bool = False) -> Any:
        """Return a tensor of PyTorch's.

        Args:
            copy: copy the data; else memory is shared.
        """
        torch = importlib.import_module("torch")  # only for its users
        return torch.from_dlpack(self._array.copy() if copy or not self._array.flags.writeable else self._array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._array, dtype=dtype) if copy else np.asarray(self._array, dtype=dtype)

    def __dlpack__(self, **arguments: Any) -> Any:
        return self._array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()

    def __bool__(self) -> bool:
        if self.size != 1:
            text = f"expected one element as a condition, got {self.size}. Reduce it first"
            raise error_class(ArgumentError)(f"`Tensor`: {text}")
        return bool(self._array.reshape(()))

    def __index__(self) -> int:
        if self._array.ndim or self._array.dtype.kind not in "iu":
            raise TypeError(f"expected a whole number, got a tensor of {self.dtype} with {self.ndim} axes")
        return int(self._array)

    @raises_as_dali
    def __getitem__(self, ranges: Any) -> Tensor:
        """Return elements by numbers and slices; numbers may be tensors."""
        found, names = _subscript(self._array, self._layout, ranges if isinstance(ranges, tuple) else (ranges,))
        return Tensor._of(found, self._type, names)

    def __iter__(self) -> Iterator[Tensor]:
        if not self.ndim:
            raise TypeError("a tensor without axes has no rows")
        return (self[i] for i in range(self.shape[0]))

    def __repr__(self) -> str:
        text = tensor_text("Tensor", self._array, self._type, self._layout, self.shape)
        return text.replace(f"dtype=DALIDataType.{self._type.name}", f"dtype={self.dtype}")


def _require_cpu(given: Any) -> None:
    if given is not None:
        device(given)


def _constant(array: Array, layout: str) -> Any:
    return _Shown(Tensor._of(array, TypeId.of(array.dtype), layout))


def _named(asked: str | None, own: str, rank: int) -> str:
    if asked is not None and not isinstance(asked, str):
        raise error_class(ArgumentError)(f"expected the names of the axes as `layout`, got {brief(asked)}")
    names = own if asked is None else asked
    if names and len(names) != rank:
        raise error_class(ArgumentError)(f"expected a `layout` of {rank} axes, got {brief(names)}")
    return names


@raises_as_dali
def _taken(data: Any) -> tuple[Array, TypeId, str]:
    """Return data as an array, with element type and names of the axes."""
    if isinstance(data, Tensor):
        return data._array, data._type, data._layout
    if isinstance(data, Batch):
        raise ArgumentError("expected data of one tensor, got a batch. `as_tensor` stacks its rows")
    if isinstance(data, np.generic):
        data = np.asarray(data)
    if isinstance(data, (list, tuple)) and any(hasattr(x, "__array__") or hasattr(x, "__dlpack__") for x in data):
        data = np.stack([_taken(x)[0] for x in data])
    if isinstance(data, (bool, int, float, list, tuple)):
        data = as_array(data, "tensor")
    if data is None or isinstance(data, (str, dict, set)):
        raise ArgumentError(f"expected the data of a tensor, got {brief(data)}")
    try:
        array = to_array(data)
    except TypeError as error:
        raise ArgumentError(f"expected the data of a tensor: {error}") from error
    layout = getattr(data, "layout", "")
    return array, TypeId.of(array.dtype), _layout_of(layout, array.ndim)


def _layout_of(layout: Any, rank: int) -> str:
    """Return the names of axes that an object of ``stoker.dali`` has."""
    names = layout() if callable(layout) else layout
    return names if isinstance(names, str) and len(names) == rank else ""


def _subscript(array: Array, layout: str, ranges: tuple[Any, ...]) -> tuple[Any, str]:
    """Return elements, and the names of the axes that stay."""
    plain: list[Any] = []
    for r in ranges:
        if isinstance(r, Batch):
            raise ArgumentError("expected numbers and slices as subscripts, got a batch. Use `batch.slice[...]`")
        plain.append(slice(*map(_index, (r.start, r.stop, r.step))) if isinstance(r, slice) else _subscripted(r))
    if sum(r is ... for r in plain) > 1:
        raise ArgumentError("expected one ellipsis at most in subscripts")
    given = len(plain) - sum(r is ... for r in plain)
    if given > array.ndim:
        raise ArgumentError(f"expected at most {array.ndim} subscripts, got {given}")
    at = next((i for i, r in enumerate(plain) if r is ...), len(plain))
    full = [*plain[:at], *[slice(None)] * (array.ndim - given), *plain[at + 1 :]]
    try:
        found = array[tuple(full)]
    except IndexError as error:
        raise ArgumentError(f"expected subscripts inside of {array.shape}: {error}") from error
    names = "".join(name for name, r in zip(layout, full, strict=True) if isinstance(r, slice)) if layout else ""
    return found, names


def _subscripted(r: Any) -> Any:
    if r is ...:
        return r
    if r is None:
        raise UnsupportedError("expected numbers and slices as subscripts, got None. `expand_dims` inserts axes")
    return _index(r)


def _index(r: Any) -> int | None:
    if r is None:
        return None
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
        rows, names = [], ""
        for i, row in enumerate(self._batch.tensors):
            found, names = _subscript(row._array, row._layout, tuple(_of_row(r, i) for r in parts))
            rows.append(np.asarray(found))
        return Batch._of(Rows(rows, self._batch._rows.dtype, names))


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
        device: the CPU.
        tensors: the tensors, as a sequence.
        slice: subscripts of every tensor; they may be batches.
    """

    __slots__ = ("_rows",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, tensors: Any = None, dtype: Any = None, device: Any = None, layout: str | None = None, copy: bool = False
    ) -> None:
        """Take tensors; use `batch` or `as_batch`.

        Args:
            tensors: a list of what `Tensor` takes, an array whose first axis is the batch, or a batch.
            dtype: element type; by default that of the data.
            device: "cpu".
            layout: names of the axes of each tensor.
            copy: copy the data in any case.
        """
        with raising_as_dali():
            _require_cpu(device)
            rows = [Tensor(x, dtype, None, layout, copy) for x in _tensors_of(tensors)]
            if not rows and dtype is None:
                raise ArgumentError("expected tensors, or a `dtype` for an empty batch")
            kinds = {(x._type, x.ndim, x._layout) for x in rows}
            if len(kinds) > 1:
                text = "expected tensors of one type, number of axes and layout, got"
                raise ArgumentError(f"{text} {' and '.join(sorted(f'{t} {n} {names!r}' for t, n, names in kinds))}")
            own = rows[0]._type if rows else type_id(dtype)
            names = rows[0]._layout if rows else layout or ""
            self._rows = Rows([x._array for x in rows], own, names)

    @classmethod
    def _of(cls, rows: Rows) -> Batch:
        made = cls.__new__(cls)
        made._rows = rows
        return made

    def _tensor(self, i: int) -> Tensor:
        return Tensor._of(self._rows[i], self._rows.dtype, self._rows.layout)

    @staticmethod
    def broadcast(sample: Any, batch_size: int, device: Any = None, dtype: Any = None) -> Batch:
        """Return a batch that has one tensor several times.

        Args:
            sample: the tensor.
            batch_size: number of times.
            device: "cpu".
            dtype: element type.
        """
        one = Tensor(sample, dtype, device)
        return Batch._of(Rows([one._array] * batch_size, one._type, one._layout))

    @property
    def batch_size(self) -> int:
        return len(self._rows)

    @property
    def shape(self) -> list[tuple[int, ...]]:
        return [tuple(np.shape(x)) for x in self._rows]

    @property
    def ndim(self) -> int:
        return np.ndim(self._rows[0]) if len(self._rows) else 0

    @property
    def dtype(self) -> DType:
        return dtype(self._rows.dtype)

    @property
    def layout(self) -> str | None:
        return self._rows.layout or None

    @property
    def device(self) -> Device:
        return CPU

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
            return Batch._of(Rows([x._array for x in chosen], self._rows.dtype, self._rows.layout))
        return self.tensors[sample_range]

    def cpu(self) -> Batch:
        """Return the batch itself."""
        return self

    def gpu(self, index: int | None = None) -> Batch:
        """Refuse: the imperative mode computes on the CPU."""
        device("gpu", index)
        return self

    def to_device(self, device: Any, force_copy: bool = False) -> Batch:
        """Return the batch, or a copy.

        Args:
            device: "cpu".
            force_copy: copy in any case.
        """
        _require_cpu(device)
        return Batch(self, copy=True) if force_copy else self

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
        rows = [np.asarray(x) for x in self._rows]
        text = list_text("Batch", rows, self._rows.dtype, self._rows.layout, self.shape)
        return text.replace(f"dtype=DALIDataType.{self._rows.dtype.name}", f"dtype={self.dtype}")


def _tensors_of(data: Any) -> Iterable[Any]:
    """Return the tensors of a batch's data."""
    if isinstance(data, (Batch, Rows)):
        layout = data._rows.layout if isinstance(data, Batch) else data.layout
        rows = data._rows if isinstance(data, Batch) else data
        return [Tensor._of(x, rows.dtype, layout) for x in rows]
    if isinstance(data, (list, tuple, range)) or (isinstance(data, Iterator) and not hasattr(data, "__array__")):
        return data
    if data is None or isinstance(data, (str, bytes, dict, set)):
        raise ArgumentError(f"expected the tensors of a batch, got {brief(data)}")
    whole = as_tensor(data)
    if not whole.ndim:
        raise ArgumentError("expected the tensors of a batch, got one number")
    return list(whole)


def _stacked(data: Batch, pad: bool) -> tuple[Array, str]:
    shapes = set(data.shape)
    rows = [np.asarray(x) for x in data._rows]
    if len(shapes) > 1:
        if not pad:
            text = f"expected tensors of one shape, got {sorted(shapes)[:3]}. Pass `pad=True` to fill with zeros"
            raise ArgumentError(f"`as_tensor`: {text}")
        extents = np.max([x.shape for x in rows], axis=0)
        rows = [np.pad(x, [(0, n - k) for n, k in zip(extents, x.shape, strict=True)]) for x in rows]
    layout = data._rows.layout
    return np.stack(rows) if rows else np.zeros((0,)), "N" + layout if layout else ""


@raises_as_dali
def tensor(data: Any, dtype: Any = None, device: Any = None, layout: str | None = None, pad: bool = False) -> Tensor:
    """Copy data into a tensor.

    Args:
        data: a tensor, an array, a tensor of a framework, a number, a nested list, or a batch, whose rows are stacked.
        dtype: element type; by default that of the data, int32 for ints and float32 for floats.
        device: "cpu".
        layout: names of the axes.
        pad: fill smaller rows of a batch with zeros.
    """
    if isinstance(data, Batch):
        array, names = _stacked(data, pad)
        data = Tensor._of(array, data._rows.dtype, names)
    return Tensor(data, dtype, device, layout, copy=True)


@raises_as_dali
def as_tensor(data: Any, dtype: Any = None, device: Any = None, layout: str | None = None, pad: bool = False) -> Tensor:
    """Return data as a tensor, without a copy where possible.

    Args:
        data: as for `tensor`.
        dtype: element type; by default that of the data.
        device: "cpu".
        layout: names of the axes.
        pad: fill smaller rows of a batch with zeros.
    """
    if isinstance(data, Tensor) and dtype is None and device is None and layout is None:
        return data
    if isinstance(data, Batch):
        array, names = _stacked(data, pad)
        data = Tensor._of(array, data._rows.dtype, names)
    return Tensor(data, dtype, device, layout)


DType.make_tensor = staticmethod(tensor)


def batch(tensors: Any, dtype: Any = None, device: Any = None, layout: str | None = None) -> Batch:
    """Copy tensors into a batch.

    Args:
        tensors: a list of what `tensor` takes, an array whose first axis is the batch, or a batch.
        dtype: element type.
        device: "cpu".
        layout: names of the axes of each tensor.
    """
    return Batch(tensors, dtype, device, layout, copy=True)


def as_batch(tensors: Any, dtype: Any = None, device: Any = None, layout: str | None = None) -> Batch:
    """Return tensors as a batch, without a copy where possible.

    Args:
        tensors: as for `batch`.
        dtype: element type.
        device: "cpu".
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
