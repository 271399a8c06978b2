# SPDX-License-Identifier: Apache-2.0
"""``coord_transform``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import Px, load, uniform
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array

_MOST = 6  # components of a point, as in DALI


class CoordTransform(Operator, name="coord_transform"):
    """Apply a linear transformation to points: ``M * x + T``. Input: points with their components along the last axis,
    at most six, for example (N, 2). Output: one component for each row of ``M``.

    ``M`` is a matrix, row by row. A single number is a factor of all components; DALI multiplies by a whole diagonal
    matrix, so that infinite components make others NaN. Without ``M``, points are only moved. The number of columns is
    that of the input's components, in the first batch if they are unknown before it. Where no batch has run (an eager
    call), a ``T`` of several numbers determines the number of rows, and else the matrix is square, or one row with a
    single ``T``. Other matrices need an input of known extents: ``fn.reshape(points, shape=[-1, 3])``.

    Products are added from left to right, then ``T``, in float32, or in float64 if the input has 32-bit integers or
    wider numbers. Integers are rounded half to even and saturate; DALI's CPU form rounds halves away from zero.
    """

    gives_bfloat16 = takes_bfloat16 = True
    M = arg("float", None, many=True, per_row=True, doc="Matrix, row by row, or one factor for all components.")
    T = arg("float", None, many=True, per_row=True, doc="Translation: a number for each row of `M`, or one for all.")
    MT = arg(
        "float",
        None,
        many=True,
        per_row=True,
        doc="Matrix with the translation as last column, row by row; or a factor.",
    )
    dtype = arg("dtype", DType.FLOAT, doc="Element type of the output.")
    cases = (
        {"M": (0.5, -2.0, 3.0, 0.25)},
        {"M": (1.0, 2.0), "T": (3.0,)},
        {"M": 1.5, "T": (10.0, -20.0), "dtype": "uint8"},
        {"MT": (0.8, -0.6, 5.0, 0.6, 0.8, 7.0), "dtype": "int16"},
        {"T": 2.5},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.each(*(samples.noise(i, (n, 2), "float32") for i, n in enumerate((5, 0, 40))))

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(x.rank > 0, "expected points with their components along the last axis, got a single number")
        c.expect(not (c.given("MT") and (c.given("M") or c.given("T"))), "expected `MT`, or `M` and `T`, got both")
        wide = DType.FLOAT if x.dtype.size <= 2 or x.dtype == DType.FLOAT else DType.FLOAT64
        dtype = c.const("dtype")
        matrix = "MT" if c.given("MT") else "M"
        length = _length(c, matrix)
        moves = _length(c, "T")
        if length <= 1 and moves <= 1:
            value = load(x.dtype).cast(wide)
            value = value * uniform(c.scalar(matrix), wide) if length else value
            value = value + uniform(c.scalar("T"), wide) if moves else value
            _per_point(c, x, matrix, "T")
            return c.pointwise([x], value.cast(dtype))
        rows, columns = _shape(c, x, matrix, length, moves)
        text = f"expected points with {columns} components for these arguments, got {{0}}"
        c.require(ex.equal(x.shape[-1], columns), text, x.shape[-1])
        _per_point(c, x, matrix, "T")
        parts = [load(x.dtype, channel=k).cast(wide) for k in range(columns)]
        program = []
        for i in range(rows):
            value = _row_of(c, matrix, length, parts, i, wide)
            if length > 1 and matrix == "MT":
                value = value + uniform(c.scalar("MT", i * (columns + 1) + columns), wide)
            value = value + uniform(c.scalar("T", i), wide) if moves else value
            program.append(value.cast(dtype))
        return c.channelled(x, program, x.rank - 1)

    def reference(self, row: RowContext, x: Any) -> Any:
        x = np.asarray(x)
        wide: Any = np.float32 if x.dtype.itemsize <= 2 or x.dtype == np.float32 else np.float64
        name = "M" if row["MT"] is None else "MT"
        matrix, move = (None if row[k] is None else np.asarray(row[k]).reshape(-1).astype(wide) for k in (name, "T"))
        with np.errstate(all="ignore"):
            out = x.astype(wide)
            if matrix is not None and matrix.size > 1:
                table = matrix.reshape(-1, x.shape[-1] + (name == "MT"))
                sums = []
                for line in table:
                    total = out[..., 0] * line[0]
                    for k in range(1, x.shape[-1]):
                        total = total + out[..., k] * line[k]
                    sums.append(total + line[-1] if name == "MT" else total)
                out = np.stack(sums, -1)
            elif matrix is not None:
                out = out * matrix[0]
            return cast_array(out if move is None else out + move, row["dtype"])


def _length(c: Lowering, name: str) -> int:
    """Return how many numbers an argument has; 0: it is not given."""
    if not c.given(name):
        return 0
    count = c.fixed_length(name)
    c.expect(count > 0, f"expected numbers as `{name}`, got an empty list")
    return count


def _shape(c: Lowering, x: Value, matrix: str, length: int, moves: int) -> tuple[int, int]:
    """Return the rows and columns of the matrix, without the column of the translation."""
    extra = 1 if matrix == "MT" else 0
    given = x.shape[-1]
    known = c.likely_extent(x, x.rank - 1, 0) or None
    c.expect(not ex.is_static(given) or known is not None, "expected points with at least one component, got none")
    if length <= 1:  # a factor, or only a translation
        rows = columns = moves
    elif known is not None:
        rows, columns = length // (known + extra), known
    elif moves > 1:
        rows, columns = moves, length // moves
    else:
        rows = math.isqrt(length)
        if moves and rows * (rows + extra) != length:
            rows = 1
        columns = length // rows - extra
        c.expect(
            rows * (columns + extra) == length and (columns == rows or moves > 0),
            f"expected a square matrix, got {{0}} numbers in `{matrix}`. Use another one on points whose number of "
            "components is known when the pipeline is built: `fn.reshape(points, shape=[-1, 3])`",
            length,
        )
    if length > 1:
        text = "expected {0} numbers in a row of the matrix, one for each component of the points, got {1} in all"
        text = text if not extra else text.replace("points,", "points and the translation,")
        c.expect(rows > 0 and rows * (columns + extra) == length, text, columns + extra, length)
    c.expect(moves in (0, 1, rows), "expected {0} numbers in `T`, one for each row of the matrix, got {1}", rows, moves)
    c.expect(
        max(rows, columns) <= _MOST, "expected points of at most {0} components, got {1}", _MOST, max(rows, columns)
    )
    return rows, columns


def _row_of(c: Lowering, matrix: str, length: int, parts: list[Px], i: int, wide: DType) -> Px:
    """Return the product of row ``i`` of the matrix and the point."""
    if length == 0:
        return parts[i]
    if length == 1:
        return parts[i] * uniform(c.scalar(matrix), wide)
    columns = len(parts)
    stride = columns + (matrix == "MT")
    total = parts[0] * uniform(c.scalar(matrix, i * stride), wide)
    for k in range(1, columns):
        total = total + parts[k] * uniform(c.scalar(matrix, i * stride + k), wide)
    return total


def _per_point(c: Lowering, x: Value, *names: str) -> None:
    """Refuse arguments per frame for an input that has only one point."""
    numbers: list[Scalar] = [c.scalar(name) for name in names if c.given(name)]
    whole = x.rank > 1 or not any(map(c.differs_by_frame, numbers))
    c.expect(whole, "expected arguments for the whole point, got one per frame")
