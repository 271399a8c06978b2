# SPDX-License-Identifier: Apache-2.0
"""Affine matrices ``(n, n + 1)``: the linear part, then the translation. Computed in double, stored as float32."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.expr import Expr
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import uniform
from ...contract.step import Value, ViewOp
from ...contract.sums import sum_in_order
from ...contract.types import DType

MOST_NUMBERS = 32  # axes; the matrix has the square of it
Rows = list[list[Any]]  # numbers or expressions


class Transform(Operator, ABC):
    """Base class of transforms, optionally applied after a given one."""

    devices = ("cpu",)
    inputs = (0, 1)
    reverse_order = arg("bool", False, doc="Apply this transform before the input's, not after it.")

    @abstractmethod
    def matrix(self, take: TransformArguments) -> Rows:
        """Return the transform's own matrix."""

    def lower(self, c: Lowering, previous: Value | None = None) -> Value:
        own = self.matrix(TransformArguments(c, None))
        if previous is not None:
            other = read_matrix(c, previous)
            c.expect(len(other) == len(own), "expected a matrix of {0} rows, got {1}", len(own), len(other))
            own = compose_matrices(other, own) if c.const("reverse_order") else compose_matrices(own, other)
        return store_matrix(c, own, [] if previous is None else [previous])

    def reference(self, row: RowContext, previous: Any = None) -> Any:
        own = np.asarray(self.matrix(TransformArguments(None, row)), np.float64)
        if previous is not None:
            other = np.asarray(previous, np.float64)
            first, second = (own, other) if row["reverse_order"] else (other, own)
            square = second[:, :-1]
            own = np.hstack([square @ first[:, :-1], square @ first[:, -1:] + second[:, -1:]])
        return own.astype(np.float32)


class TransformArguments:
    """Arguments of a transform: expressions at plan time, or the numbers of one row."""

    def __init__(self, c: Lowering | None, row: RowContext | None) -> None:
        self._c = c
        self._row = row

    def given(self, name: str) -> bool:
        """Return whether the argument has a value."""
        if self._c is not None:
            return self._c.given(name)
        assert self._row is not None
        return self._row[name] is not None

    def length(self, name: str) -> int:
        """Return the number of elements of the argument."""
        if self._c is None:
            assert self._row is not None
            return int(np.asarray(self._row[name]).size)
        count = self._c.fixed_length(name)
        if count > MOST_NUMBERS:
            raise ArgumentError(
                f"`{self._c.scope.operator.name}`: expected at most {MOST_NUMBERS} numbers as `{name}`, got {count}"
            )
        return count

    def vector(self, name: str, size: int, default: float | None = None) -> list[Any]:
        """Return an argument as ``size`` numbers. A single number is repeated."""
        if default is not None and not self.given(name):
            return [default] * size
        have = self.length(name)
        if have not in (1, size):
            raise ArgumentError(f"expected {size} numbers as `{name}`, got {have}")
        return [self.number(name, i) for i in range(size)]

    def number(self, name: str, index: int = 0) -> Any:
        """Return one number of an argument."""
        if self._c is not None:
            return self._c.scalar(name, index)
        assert self._row is not None
        return self._row.number(name, index)

    def flag(self, name: str) -> bool:
        """Return a boolean constant."""
        if self._c is not None:
            return bool(self._c.const(name))
        assert self._row is not None
        return bool(self._row[name])

    def cos_sin(self, degrees: Any) -> tuple[Any, Any]:
        """Return cosine and sine of an angle in degrees."""
        theta = degrees * (math.pi / 180)
        return (ex.cos(theta), ex.sin(theta)) if self._c is not None else (math.cos(theta), math.sin(theta))

    def require(self, condition: Any, text: str, *values: Any) -> None:
        """Require a condition at plan time."""
        if self._c is not None:
            self._c.require(condition, text, *values)


def read_matrix(c: Lowering, value: Value) -> Rows:
    """Return the elements of a matrix that is a node's output."""
    first = 1 if value.per_frame else 0
    shape = value.shape[first:]
    if len(shape) == 2 and any(isinstance(n, Expr) for n in shape):
        # A size known only at run time is that of the first batch, and else 2 x 3, the size for images.
        likely = (c.likely_extent(value, first, 2), c.likely_extent(value, first + 1, 3))
        fits = ex.both(ex.equal(shape[0], likely[0]), ex.equal(shape[1], likely[1]))
        text = "expected a matrix {2} x {3}, got {0} x {1}; make others with `transforms`"
        c.require(fits, text, *shape, *likely)
        shape = likely
    if len(shape) != 2 or any(isinstance(n, Expr) for n in shape) or shape[1] != shape[0] + 1:
        raise ArgumentError(
            f"`{c.scope.operator.name}`: expected a matrix (n, n + 1) from an operator of `transforms`, got {shape}"
        )
    rows, columns = int(shape[0]), int(shape[1])  # type: ignore[arg-type]
    return [[c.element(value, i * columns + j) for j in range(columns)] for i in range(rows)]


def store_matrix(c: Lowering, matrix: Rows, inputs: Sequence[Value] = ()) -> Value:
    """Return the matrix as a value; one per frame if a number differs by frame."""
    numbers, shape = [n for row in matrix for n in row], (len(matrix), len(matrix) + 1)
    if not any(c.differs_by_frame(n) for n in numbers):
        return c.numbers(numbers, DType.FLOAT, shape)
    counts = [x.shape[0] for x in (*inputs, *c.scope.edges.values()) if x.per_frame]
    frames = counts[0]
    for count in counts[1:]:
        c.require(ex.equal(count, frames), "expected values for {1} frames in all arguments, got {0}", count, frames)
    program = [uniform(n, DType.FLOAT64).cast(DType.FLOAT) for n in numbers]
    spread = c.stage(
        [], [(DType.FLOAT, (frames, 1, len(numbers)), "")], [program], channels=len(numbers), frames=frames
    )
    matrices = c.view(spread[0], [ViewOp("reshape", list=(frames, *shape))], "", may_copy=True)
    return c.with_properties(matrices, per_frame=True)


def compose_matrices(second: Rows, first: Rows) -> Rows:
    """Return the matrix of ``first`` followed by ``second``."""
    size = len(first)
    return [
        [
            sum_in_order((row[k] * first[k][j] for k in range(1, size)), row[0] * first[0][j])
            + (row[size] if j == size else 0)
            for j in range(size + 1)
        ]
        for row in second
    ]


def linear(square: Rows, center: list[Any] | None = None) -> Rows:
    """Return the matrix of a linear map that leaves ``center`` fixed."""
    if center is None:
        return [[*row, 0.0] for row in square]
    rows = []
    for i, row in enumerate(square):
        moved = row[0] * center[0]
        for m, x in zip(row[1:], center[1:], strict=True):
            moved = moved + m * x
        rows.append([*row, center[i] - moved])
    return rows
