# SPDX-License-Identifier: Apache-2.0
"""``lookup_table``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import binary, load, lookup, select, uniform
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array, number_in

_LARGEST_KEY = 65535


class LookupTable(Operator, name="lookup_table"):
    """Replace integers by values from a table. Input: integers, any shape. Output: the same shape in ``dtype``.

    A number without a key, also a negative one, becomes ``default_value``. Of equal keys the last one counts. Values
    are converted to ``dtype`` as `cast` does: integers are rounded half to even and saturate.
    """

    gives_bfloat16 = True
    keys = arg("int", (), many=True, doc="Numbers that are replaced, from 0 to 65535.")
    values = arg("float", (), many=True, doc="Their replacements, one for each key.")
    default_value = arg("float", 0.0, doc="Replacement of all other numbers.")
    dtype = arg("dtype", DType.FLOAT, doc="Element type of the output.")
    output_dtype = arg("dtype", None, doc="Former name of `dtype`.")
    cases = (
        {"keys": (0, 7, 200, 255), "values": (1.5, -3.0, 1e6, 9.0), "default_value": 0.25},
        {"keys": tuple(range(256)), "values": tuple(255.0 - i for i in range(256)), "dtype": "uint8"},
        {"keys": (3, 9), "values": (700.0, -2.0), "default_value": 77.0, "dtype": "int8"},
    )

    def validate(self, args: Mapping[str, Any]) -> None:
        keys, values = args["keys"], args["values"]
        if len(keys) != len(values):
            raise ArgumentError(f"`lookup_table`: expected a value for each of {len(keys)} keys, got {len(values)}")
        wrong = next((k for k in keys if not 0 <= k <= _LARGEST_KEY), None)
        if wrong is not None:
            raise ArgumentError(f"`lookup_table`: expected keys from 0 to {_LARGEST_KEY}, got {wrong}")

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(not x.dtype.is_float and x.dtype != DType.BOOL, f"expected integers, got {x.dtype}; cast them first")
        dtype, default = self._type(c.scope.args), c.const("default_value")
        table = self._table(c.const("keys"), c.const("values"), default, 256 if x.dtype == DType.UINT8 else 0)
        index = load(x.dtype).cast(DType.INT32)
        # A constant is an array of NumPy, which has no bfloat16. Its numbers are converted once.
        numbers = table.astype(np.float32) if dtype == DType.BFLOAT16 else cast_array(table, dtype)
        entry = lookup(DType.of(numbers.dtype), 1, index, len(numbers)).cast(dtype)
        if x.dtype != DType.UINT8:
            known = binary("and", binary("ge", index, 0), binary("lt", index, len(numbers)))
            entry = select(known, entry, uniform(number_in(default, dtype), dtype))
        return c.pointwise([x, c.constant(numbers)], entry)

    @staticmethod
    def _type(args: Mapping[str, Any]) -> DType:
        former = args["output_dtype"]
        return DType(args["dtype"] if former is None else former)

    @staticmethod
    def _table(keys: tuple[int, ...], values: tuple[float, ...], default: float, least: int) -> npt.NDArray[np.float64]:
        table = np.full(max([least, 1, *(k + 1 for k in keys)]), default, np.float64)
        for key, value in zip(keys, values, strict=True):
            table[key] = value
        return table

    def reference(self, row: RowContext, x: Any) -> Any:
        table = dict(zip(row["keys"], row["values"], strict=True))
        found = [table.get(int(i), row["default_value"]) for i in np.asarray(x).reshape(-1)]
        return cast_array(np.array(found, np.float64), self._type(row.args)).reshape(x.shape)
