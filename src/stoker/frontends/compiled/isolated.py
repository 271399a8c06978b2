# SPDX-License-Identifier: Apache-2.0
"""Rows of operators in C++ in a process of their own, called through the C interface (``stoker/op.h``)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.errors import DataError
from ...contract.operator import RowContext
from ...contract.types import DType
from .declaration import Declaration, DeclaredOutput, evaluate

_MOST_RANK = 8  # native/shared/stoker/op.h: ST_MAX_RANK
_AREAS = 4  # of scratch memory, as for rows in this process


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * _MOST_RANK), ("stride", ctypes.c_int64 * _MOST_RANK),
    )  # fmt: skip


_DRAW = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_void_p)
_SCRATCH = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
_FAIL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p)
_SET_COUNT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)


class _Row(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_uint32), ("inputs", ctypes.c_int32), ("outputs", ctypes.c_int32),
        ("arguments", ctypes.c_int32), ("in_", ctypes.POINTER(_Tensor)), ("out", ctypes.POINTER(_Tensor)),
        ("args", ctypes.POINTER(ctypes.c_double)), ("key", ctypes.c_uint64), ("epoch", ctypes.c_int64),
        ("draw", _DRAW), ("scratch", _SCRATCH), ("fail", _FAIL), ("set_count", _SET_COUNT), ("host", ctypes.c_void_p),
    )  # fmt: skip


@dataclass(frozen=True)
class IsolatedLibrary:
    """Rows of a compiled library.

    Attributes:
        library: path of the library.
        declaration: its declaration.
        constants: arguments that are the same for all rows.
    """

    library: bytes
    declaration: Declaration
    constants: Mapping[str, Any]

    def __call__(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Return the outputs of each row."""
        run = ctypes.CDLL(os.fsdecode(self.library)).st_run
        run.argtypes, run.restype = [ctypes.POINTER(_Row)], None
        for row in rows:
            row.args = {**self.constants, **row.args}
        return [self._row(run, row, own) for row, own in zip(rows, inputs, strict=True)]

    def _row(self, run: Callable[[Any], None], row: RowContext, inputs: Sequence[Any]) -> list[Any]:
        d = self.declaration
        numbers = argument_values(d, row)
        names = _extents(d, inputs)
        names.update(zip(d.arguments, numbers, strict=True))
        for condition, text in d.checks:
            if not evaluate(condition, names):
                raise DataError(text)
        outputs = [_memory(o, inputs, names) for o in d.outputs]
        called = _Called(row, inputs, outputs, numbers)
        run(ctypes.byref(called.row))
        if called.failed is not None:
            raise DataError(called.failed)
        if not d.outputs[0].counted:
            return outputs
        if not 0 <= called.count <= len(outputs[0]):
            raise DataError(f"expected a count from 0 to {len(outputs[0])}, got {called.count}")
        return [x[: called.count] for x in outputs]


def _extents(d: Declaration, inputs: Sequence[Any]) -> dict[str, Any]:
    """Check the extents of the inputs, and return them by name."""
    names: dict[str, Any] = {}
    for declared, x in zip(d.inputs, inputs, strict=True):
        for axis, extent in enumerate(declared.extents or ()):
            wanted = int(extent) if extent.isdigit() else names.setdefault(extent, x.shape[axis])
            if wanted != x.shape[axis]:
                axes = ", ".join(declared.extents or ())
                raise DataError(
                    f"expected `{declared.name}` ({axes}) with {wanted} elements along axis {axis}, got {x.shape[axis]}"
                )
    return names


def argument_values(d: Declaration, row: RowContext) -> list[float]:
    """Return the numbers of a row in the order of the declaration."""
    found = ((row.number(key), argument.kind) for key, argument in d.arguments.items())
    return [float(v if kind == "float" else ex.trunc(v)) for v, kind in found]


def _memory(o: DeclaredOutput, inputs: Sequence[Any], names: Mapping[str, Any]) -> Any:
    like = inputs[max(o.like, 0)]
    dtype = like.dtype if o.dtype is None else o.dtype.numpy
    shape = like.shape if o.extents is None else [int(evaluate(extent, names)) for extent in o.extents]
    short = next((n for n in shape if n < 0), 0)
    if short:
        raise DataError(f"expected an output of at least 0 elements along an axis, got {short}")
    return np.zeros(shape, dtype)


class _Called:
    """One call of a library: the structure that it gets, and what it answered."""

    def __init__(
        self, row: RowContext, inputs: Sequence[Any], outputs: Sequence[Any], numbers: Sequence[float]
    ) -> None:
        self.failed: str | None = None
        self.count = 0
        self._context = row
        self._areas: list[Any] = []
        self._alive = (inputs, outputs)
        self.row = _Row(
            size=ctypes.sizeof(_Row), inputs=len(inputs), outputs=len(outputs), arguments=len(numbers),
            in_=_tensors(inputs), out=_tensors(outputs), args=(ctypes.c_double * (len(numbers) + 1))(*numbers),
            key=row.key, epoch=row.epoch, draw=_DRAW(self._draw), scratch=_SCRATCH(self._scratch),
            fail=_FAIL(self._fail), set_count=_SET_COUNT(self._set_count),
        )  # fmt: skip

    def _draw(self, _row: Any) -> int:
        return self._context.stream.word()

    def _scratch(self, _row: Any, size: int) -> int | None:
        if size < 0 or len(self._areas) == _AREAS:
            return None
        try:
            self._areas.append(np.empty(size + 64, np.uint8))
        except MemoryError:
            return None
        address = int(self._areas[-1].ctypes.data)
        return address + -address % 64

    def _fail(self, _row: Any, text: bytes | None) -> None:
        self.failed = (text or b"the operator failed").decode("utf-8", "replace")

    def _set_count(self, _row: Any, count: int) -> None:
        self.count = int(count)


def _tensors(arrays: Sequence[Any]) -> Any:
    found = (_Tensor * max(len(arrays), 1))()
    for t, x in zip(found, arrays, strict=False):
        t.data, t.dtype, t.rank = x.ctypes.data, int(DType.of(x.dtype)), x.ndim
        t.shape[: x.ndim], t.stride[: x.ndim] = x.shape, x.strides
    return found
