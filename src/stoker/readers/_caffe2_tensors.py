# SPDX-License-Identifier: Apache-2.0
"""Tensors in records of Caffe2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.argument import arg
from ..contract.columns import Column
from ..contract.errors import ArgumentError, DataError
from ..contract.lowering import Lowering
from ..contract.operator import Operator, RowContext, Spec
from ..contract.step import Value
from ..contract.storage import Bools, Storage
from ..contract.types import DType
from ._example import varints, wire_fields

SINGLE, SPARSE, DENSE, WEIGHTED, NONE = range(5)  # DALI's label types
_KIND = "a TensorProtos record of Caffe2"
#: Types of tensors by their number, with the field that has the numbers.
_TYPES = {1: (DType.FLOAT, 3), 2: (DType.INT32, 4), 3: (DType.UINT8, 5), 10: (DType.INT64, 10), 13: (DType.FLOAT64, 9)}
_STRING = 4


class TensorForm:
    """Choice of a tensor in a record, and its form.

    Args:
        kind: "image", "label", "tensor" or "box".
        number: number of the tensor in the record.
        label_type: form of a label, see the reader.
        num_labels: number of classes.
    """

    def __init__(self, kind: str, number: int, label_type: int, num_labels: int) -> None:
        self._kind, self._number, self._label_type, self._num_labels = kind, number, label_type, num_labels

    def facts(self) -> tuple[Any, ...]:
        """Return everything that decides the form."""
        return self._kind, self._number, self._label_type, self._num_labels

    def read(self, record: bytes) -> npt.NDArray[Any]:
        """Return the tensor of a record.

        Raises:
            DataError: the record is damaged or has another tensor.
        """
        protos = [content for field, wire, content in wire_fields(record, _KIND) if field == 1 and wire == 2]
        wanted = 2 if self._kind == "label" and self._label_type == WEIGHTED else 1
        if len(protos) < self._number + wanted:
            raise DataError(f"expected at least {self._number + wanted} tensors in a record, got {len(protos)}")
        found = read_tensor(protos[self._number])
        if self._kind == "image":
            return _as_image(found)
        if self._kind == "box":
            return _of_count(found, 4, "a box").astype(np.int32)
        if self._kind == "tensor" or self._label_type == DENSE:
            return found
        if self._label_type == SINGLE:
            return _of_count(found, 1, "one label")
        indices = found.reshape(-1).astype(np.int64)
        if ((indices < 0) | (indices >= self._num_labels)).any():
            raise DataError(f"expected indices of {self._num_labels} labels, got {indices.tolist()[:9]}")
        weighted = self._label_type == WEIGHTED
        weights = read_tensor(protos[self._number + 1]).reshape(-1) if weighted else np.ones(len(indices))
        out = np.zeros(self._num_labels, np.float32 if weighted else found.dtype)
        out[indices] = _of_count(weights, len(indices), "a weight for each label")
        return out


def _of_count(values: npt.NDArray[Any], count: int, what: str) -> npt.NDArray[Any]:
    if values.size != count:
        raise DataError(f"expected {what}, got {values.size} numbers")
    return values.reshape(count)


def _as_image(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if values.dtype != np.uint8:
        raise DataError(f"expected an image of bytes, got {values.dtype}")
    return values[:, :, None] if values.ndim == 2 else values


def read_tensor(message: bytes) -> npt.NDArray[Any]:
    """Return the values of a TensorProto: a tensor, or the first string as uint8 ``(N,)``.

    Raises:
        DataError: the message is damaged, has a type without values, or not as many values as its extents say.
    """
    dims: list[int] = []
    kind, parts = 0, dict[int, list[Any]]()
    for field, wire, content in wire_fields(message, _KIND):
        if field == 1:
            dims += [content] if wire == 0 else varints(content)
        elif field == 2 and wire == 0:
            kind = content
        else:
            parts.setdefault(field, []).append(content)
    if kind == _STRING:
        if not parts.get(6):
            raise DataError("expected a string in a tensor of strings, got none")
        return np.frombuffer(bytes(parts[6][0]), np.uint8) if parts[6][0] else np.empty(0, np.uint8)
    if kind not in _TYPES:
        raise DataError(f"expected a tensor of the types {sorted([*_TYPES, _STRING])}, got the type {kind}")
    dtype, field = _TYPES[kind]
    values = _numbers(dtype, parts.get(field, []))
    extents = np.asarray(dims or [len(values)], float)
    if any(not 0 <= n < 1 << 48 for n in dims) or float(np.prod(extents)) != len(values):
        raise DataError(f"expected values for the extents {dims[:8]}, got {len(values)}")
    return values.reshape(dims) if dims else values


def _numbers(dtype: DType, parts: Sequence[Any]) -> npt.NDArray[Any]:
    """Return the numbers of a repeated field, packed or not."""
    if dtype in (DType.INT32, DType.INT64):
        numbers = [n for p in parts for n in ([p] if isinstance(p, int) else varints(p))]
        return np.asarray(numbers, np.uint64).astype(np.int64).astype(dtype.numpy)
    if any(isinstance(p, int) for p in parts):
        raise DataError(f"expected numbers of {dtype}, got varints")
    content = b"".join(parts if dtype != DType.UINT8 else parts[-1:])
    if len(content) % dtype.size:
        raise DataError(f"expected a multiple of {dtype.size} bytes, got {len(content)}")
    return np.frombuffer(content, dtype.numpy) if content else np.empty(0, dtype.numpy)


class TensorColumn(Column):
    """Tensors of the records in a storage. Columns over one storage read a record once."""

    layout = ""
    optional = False

    def __init__(self, name: str, storage: Storage, form: TensorForm, dtype: DType, rank: int) -> None:
        self.name, self._storage, self._form, self.dtype, self.rank = name, storage, form, dtype, rank

    def __len__(self) -> int:
        return len(self._storage)

    @property
    def storage(self) -> Storage:
        return self._storage

    def absent(self) -> Bools | None:
        return None

    def lower(self, c: Lowering, reader: int) -> Value:
        record = self._storage.lower(c, reader, DType.UINT8, (), "")
        found: Value = c.apply("_tensor_of_record", record, form=self._form, spec=self._spec())
        return found

    def _spec(self) -> Spec:
        return Spec(self.dtype, (None,) * self.rank)

    def row(self, index: int) -> npt.NDArray[Any]:
        return checked(self._form.read(self._storage.content(index)), self._spec())

    def joined(self, others: Sequence[Column]) -> TensorColumn:
        own = (self._form.facts(), self.dtype, self.rank)
        same = [o for o in others if isinstance(o, TensorColumn) and (o._form.facts(), o.dtype, o.rank) == own]
        if len(same) < len(others):
            raise ArgumentError("expected parts with the same columns, got readers of different kinds")
        return TensorColumn(
            self.name, self._storage.joined([o.storage for o in same]), self._form, self.dtype, self.rank
        )


def checked(value: npt.NDArray[Any], spec: Spec) -> npt.NDArray[Any]:
    """Return a tensor if it has the type and the axes of the first record's one; raise DataError otherwise."""
    if value.dtype != spec.dtype.numpy or value.ndim != len(spec.shape):
        raise DataError(
            f"expected {spec.dtype} with {len(spec.shape)} axes, as in the first record, got {value.dtype} with "
            f"{value.ndim}"
        )
    return value


class TensorOfRecord(Operator, name="_tensor_of_record"):
    """Return a tensor of a record of Caffe2. Input: the record, uint8 ``(N,)``."""

    hidden = True
    devices = ("cpu",)
    form = arg("object", doc="The tensor to take.")
    spec = arg("object", doc="Its type and axes.")

    def infer(self, c: Any, record: Any) -> Spec:
        found: Spec = c.const("spec")
        return found

    def reference(self, row: RowContext, record: Any) -> Any:
        return checked(row["form"].read(bytes(record)), row["spec"])
