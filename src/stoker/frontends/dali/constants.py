# SPDX-License-Identifier: Apache-2.0
"""DALI's constants: a number is a wrapper for arithmetic, and everything else a node."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.types import DType
from ..constants import Constant as _Constant
from ..constants import as_type
from ..data_node import DataNode
from ..definition import current
from .errors import raises_as_dali
from .nodes import NodeBuilder, narrowed
from .type_names import DALIDataType


class ScalarConstant(_Constant):
    """Number with a type, as an operand of arithmetic with nodes.

    Args:
        value: bool, int or float, or an array with one number and no axes.
        dtype: element type; by default BOOL, INT32 (or INT64 if needed) or FLOAT. Integer types drop fractions, as in
            DALI.

    Attributes:
        value: the number.
        dtype: the element type.
        shape: an empty list.
    """

    @raises_as_dali
    def __init__(self, value: Any, dtype: Any = None) -> None:
        super().__init__(_whole(narrowed(value), dtype), dtype)
        self.dtype = DALIDataType.of(self.value.dtype)
        self._array, self.value = self.value, self.value.item()
        self.shape: list[int] = []

    def __stoker_constant__(self, builder: Any) -> Any:
        return builder.call("_constant", (), {"value": self._array, "layout": ""})

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self._array, dtype=dtype)

    def __eq__(self, other: object) -> Any:
        if isinstance(other, ScalarConstant):
            return self.value == other.value and self.dtype == other.dtype
        return NotImplemented

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return bool(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __repr__(self) -> str:
        return repr(self.value)

    def bool(self) -> ScalarConstant:
        """Return the number as BOOL."""
        return ScalarConstant(self.value, DType.BOOL)

    def int8(self) -> ScalarConstant:
        """Return the number as INT8."""
        return ScalarConstant(self.value, DType.INT8)

    def int16(self) -> ScalarConstant:
        """Return the number as INT16."""
        return ScalarConstant(self.value, DType.INT16)

    def int32(self) -> ScalarConstant:
        """Return the number as INT32."""
        return ScalarConstant(self.value, DType.INT32)

    def int64(self) -> ScalarConstant:
        """Return the number as INT64."""
        return ScalarConstant(self.value, DType.INT64)

    def uint8(self) -> ScalarConstant:
        """Return the number as UINT8."""
        return ScalarConstant(self.value, DType.UINT8)

    def uint16(self) -> ScalarConstant:
        """Return the number as UINT16."""
        return ScalarConstant(self.value, DType.UINT16)

    def uint32(self) -> ScalarConstant:
        """Return the number as UINT32."""
        return ScalarConstant(self.value, DType.UINT32)

    def uint64(self) -> ScalarConstant:
        """Return the number as UINT64."""
        return ScalarConstant(self.value, DType.UINT64)

    def float16(self) -> ScalarConstant:
        """Return the number as FLOAT16."""
        return ScalarConstant(self.value, DType.FLOAT16)

    def float32(self) -> ScalarConstant:
        """Return the number as FLOAT."""
        return ScalarConstant(self.value, DType.FLOAT)

    def float64(self) -> ScalarConstant:
        """Return the number as FLOAT64."""
        return ScalarConstant(self.value, DType.FLOAT64)


@raises_as_dali
def Constant(
    value: Any, dtype: Any = None, shape: Any = None, layout: str | None = None, device: str | None = None, **more: Any
) -> Any:
    """Return a constant: a :class:`ScalarConstant` for one number, else a node.

    Args:
        value: number, list or array.
        dtype: element type; by default INT32 (or INT64 if needed) for whole numbers and FLOAT for floats, as in DALI
            also for arrays of 64 bits.
        shape: shape of the constant; a single value is repeated.
        layout: names of the axes.
        device: "cpu" or "gpu". If given, the constant is a node.
        **more: arguments of DALI's operator `Constant`, such as `name`, without effect. If given, the constant is a
            node.
    """
    is_number = isinstance(value, (bool, int, float, np.generic)) or getattr(value, "ndim", None) == 0
    if is_number and device is None and shape in (None, (), []) and not layout and not more:
        return ScalarConstant(value, dtype)
    return ConstantNode(device, value, dtype, shape, layout, **more)


@raises_as_dali
def ConstantNode(device: str | None, value: Any, dtype: Any, shape: Any, layout: str | None, **more: Any) -> DataNode:
    """Return a node that gives every row the same tensor.

    Args:
        device: "cpu" or "gpu".
        value: number, list or array.
        dtype: element type.
        shape: shape of the constant; a single value is repeated.
        layout: names of the axes.
        **more: arguments of DALI's operator `Constant`, without effect.
    """
    on_gpu = isinstance(device, str) and device == "gpu"
    made = _Constant(_whole(narrowed(value), dtype), dtype, shape, layout, None if on_gpu else device)
    node: DataNode = made.__stoker_constant__(current() or NodeBuilder())
    return node.gpu() if on_gpu else node


def _whole(value: Any, dtype: Any) -> Any:
    """Return the value without fractions if the type has none: DALI drops them."""
    if dtype is None or isinstance(value, str) or as_type(dtype).is_float or as_type(dtype) == DType.BOOL:
        return value
    array = np.asarray(value)
    return np.trunc(array) if array.dtype.kind == "f" else value
