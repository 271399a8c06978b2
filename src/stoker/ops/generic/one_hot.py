# SPDX-License-Identifier: Apache-2.0
"""``one_hot``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import Px, binary, coordinate, load, select, unary, uniform
from ...contract.step import Value, ViewOp
from ...contract.types import DType
from .cast import cast_array, number_in

_NARROW = (DType.BOOL, DType.UINT8, DType.INT8, DType.UINT16, DType.INT16, DType.INT32)


class OneHot(Operator, name="one_hot"):
    """Encode class numbers as vectors: a new axis of ``num_classes`` elements, with ``on_value`` at the number of the
    class and ``off_value`` elsewhere. Input: numbers, any shape.

    Fractions are cut off. A number outside the classes, or NaN, gives ``off_value`` only. The two values are converted
    to ``dtype`` as `cast` does: they saturate, where DALI wraps. Without ``axis``, a tensor of one element counts as a
    scalar, as in DALI; unknown extents are those of the first batch. Without ``num_classes`` DALI makes empty vectors;
    here it is required.
    """

    gives_bfloat16 = takes_bfloat16 = True
    num_classes = arg("int", 0, doc="Number of classes, at least 1.")
    axis = arg("int", None, doc="The new axis; by default the last one.")
    on_value = arg("float", 1.0, doc="Value at the number of the class.")
    off_value = arg("float", 0.0, doc="Value at other numbers.")
    dtype = arg("dtype", DType.FLOAT, doc="Element type of the output.")
    axis_name = arg("str", None, doc="Name of the new axis; without it the output's axes have no names.")
    cases = (
        {"num_classes": 5},
        {"num_classes": 3, "axis": 0, "dtype": "uint8", "on_value": 255, "off_value": 7},
        {"num_classes": 4, "axis": 1, "dtype": "bool"},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rng = np.random.default_rng(3)
        return samples.each(*(rng.integers(-1, 7, (n, 3), np.int32) for n in (6, 0, 11)))

    def lower(self, c: Lowering, x: Value) -> Value:
        classes, axis, name = c.const("num_classes"), c.const("axis"), c.const("axis_name")
        c.expect(0 < classes < 1 << 31, "expected `num_classes` from 1 to 2147483647, got {0}", classes)
        c.expect(name is None or len(name) == 1, f"expected one letter as `axis_name`, got {name!r}")
        if axis is None and _is_single(c, x):
            x = c.view(x, [ViewOp("drop", a) for a in reversed(range(x.rank))], "")
        rank = x.rank
        c.expect(
            axis is None or -rank - 1 <= axis <= rank, "expected an axis in [-{0}, {0}), got {1}", rank + 1, axis or 0
        )
        at = rank if axis is None else axis % (rank + 1)
        layout = ""
        if name is not None:
            c.expect(bool(x.layout) or rank == 0, "expected an input with named axes with `axis_name`")
            layout = f"{x.layout[:at]}{name}{x.layout[at:]}"
        dtype = c.const("dtype")
        on, off = (uniform(number_in(c.const(key), dtype), dtype) for key in ("on_value", "off_value"))
        shape = (*x.shape[:at], classes, *x.shape[at:])
        program = select(self._is_class(load(x.dtype), coordinate(at)), on, off)
        out = c.pointwise([c.view(x, [ViewOp("insert", at)])], program, shape, layout)
        return c.with_properties(out, per_frame=True) if x.per_frame and at > 0 else out

    @staticmethod
    def _is_class(number: Px, place: Px) -> Px:
        if number.dtype.is_float:
            return binary("eq", unary("trunc", number.cast(DType.FLOAT64)), place.cast(DType.FLOAT64))
        wide = DType.INT32 if number.dtype in _NARROW else DType.INT64
        return binary("eq", number.cast(wide), place.cast(wide))

    def reference(self, row: RowContext, x: Any) -> Any:
        x, axis = np.asarray(x), row["axis"]
        if axis is None and x.size == 1:
            x = x.reshape(())
        at = x.ndim if axis is None else axis % (x.ndim + 1)
        number = np.trunc(x) if x.dtype.kind == "f" else x
        place = np.arange(row["num_classes"]).reshape([-1 if i == at else 1 for i in range(x.ndim + 1)])
        on, off = (cast_array(np.float64(row[key]), row["dtype"]) for key in ("on_value", "off_value"))
        return np.where(np.expand_dims(number, at) == place, on, off)


def _is_single(c: Lowering, x: Value) -> bool:
    """Return whether all rows have one element, as far as is known: those of the first batch, and then all."""
    known = ex.product(x.shape)
    if known is not None:
        return known == 1
    if any(c.likely_extent(x, axis, 0) != 1 for axis in range(x.rank)):
        return False
    for axis in range(x.rank):
        text = "expected one element in every row, as in the first batch, got {0} in an axis. Give `axis` for others"
        c.require(ex.equal(x.shape[axis], 1), text, x.shape[axis])
    return True
