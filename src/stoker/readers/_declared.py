# SPDX-License-Identifier: Apache-2.0
"""Types of a source's data: from its arguments, then from its first batch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError, DataError
from ..contract.operator import Spec
from ..contract.text import brief
from ..contract.types import MAX_RANK, DType


@dataclass
class Declared:
    """Type, number of axes and layout of each output. The first batch fills in values that are None."""

    outputs: Sequence[list[Any]]  # dtype, ndim, layout
    seen: dict[int, tuple[int | None, ...]] = field(default_factory=dict)  # extents of the first batch, by output
    settled: bool = False  # the extents of later batches do not matter

    @staticmethod
    def of(count: int, dtype: Any, ndim: Any, layout: Any) -> Declared:
        """Create from the arguments, each of which is one value or one per output."""
        types = _per_output("dtype", dtype, count, DType.of)
        ranks = _per_output("ndim", ndim, count, _rank)
        names = _per_output("layout", layout, count, _layout)
        outputs = []
        for i in range(count):
            if ranks[i] is None and names[i]:
                ranks[i] = len(names[i])
            if names[i] and len(names[i]) != ranks[i]:
                raise ArgumentError(f"expected a `layout` of {ranks[i]} axes as in `ndim`, got {names[i]!r}")
            outputs.append([types[i], ranks[i], names[i] or ""])
        return Declared(outputs)

    def specs(self) -> tuple[Spec, ...] | None:
        """Return the types of all outputs; None until they are known."""
        if any(d is None or n is None for d, n, _ in self.outputs):
            return None
        self.settled = self.settled or bool(self.seen)
        return tuple(Spec(d, (None,) * n, x, self.seen.get(i, ())) for i, (d, n, x) in enumerate(self.outputs))

    def take_layout(self, output: int, data: Any) -> None:
        """Take the axis names of the data, a tensor or a list of them, unless they are declared or known."""
        wanted = self.outputs[output]
        if wanted[1] is not None:
            return
        first = data[0] if isinstance(data, list) and data else data
        layout = getattr(first, "layout", "")
        layout = layout() if inspect.ismethod(layout) else layout
        if isinstance(layout, str) and layout:
            wanted[1], wanted[2] = len(layout), layout

    def has(self, output: int, rows: Sequence[Any]) -> bool:
        """Return whether all rows are arrays of the declared type that the native code can read as they are.

        Rows for which this returns False may become such arrays by a conversion. It returns False until the types of
        later batches are fixed, since :meth:`check` takes them from the first ones.
        """
        dtype, rank, _ = self.outputs[output]
        if not self.settled or dtype is None or dtype == DType.BFLOAT16:
            return False
        wanted = dtype.numpy
        for x in rows:
            if type(x) is not np.ndarray or x.dtype is not wanted or x.ndim != rank:
                return False
            flags = x.flags
            if not (flags.c_contiguous and flags.aligned):
                return False
        return True

    def check(self, output: int, array: Any, axes: int, where: str) -> None:
        """Check ``array`` against the declared type, or declare its type.

        The first ``axes`` axes do not belong to a row.
        """
        try:
            dtype = DType.of(array.dtype)
        except TypeError:
            raise DataError(f"expected numbers, got an array of {array.dtype}{where}") from None
        rank = array.ndim - axes
        wanted = self.outputs[output]
        if wanted[0] == DType.BFLOAT16 and dtype == DType.UINT16:
            dtype = DType.BFLOAT16  # NumPy has no bfloat16; the array holds its bits
        if wanted[0] is None:
            wanted[0] = dtype
        if wanted[1] is None:
            wanted[1] = rank
        if dtype != wanted[0] or rank != wanted[1]:
            raise DataError(f"expected {wanted[0]} with {wanted[1]} axes per row, got {dtype} with {rank}{where}")
        if not self.settled:
            shape = tuple(array.shape[axes:])
            before = self.seen.get(output, shape)
            if len(before) == len(shape):
                self.seen[output] = tuple(a if a == b else None for a, b in zip(before, shape, strict=True))


def _per_output(name: str, value: Any, count: int, convert: Callable[[Any], Any]) -> list[Any]:
    if value is None:
        return [None] * count
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        raise ArgumentError(f"expected one `{name}` for all or one for each of {count} outputs, got {len(values)}")
    try:
        return [None if v is None else convert(v) for v in values]
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"argument `{name}`: {error}") from None


def _layout(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected the names of axes as text, got {brief(value)}")
    return value


def _rank(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise ValueError(f"expected a number of axes >= 0, got {brief(value)}")
    if value > MAX_RANK:
        raise ValueError(f"expected at most {MAX_RANK} axes, got {brief(value)}")
    return int(value)
