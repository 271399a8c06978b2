# SPDX-License-Identifier: Apache-2.0
"""Constants and callback arguments of pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contract.errors import ArgumentError
from ..contract.feed import BatchInfo as BatchInfo
from ..contract.feed import SampleInfo as SampleInfo
from ..contract.types import DType
from .data_node import Builder
from .literals import as_array, of_type


class Constant:
    """Constant with a type, shape or layout of its own, as an input of operators and arithmetic.

    Args:
        value: number, list or array.
        dtype: element type; by default INT32 (or INT64 if needed) for ints and FLOAT for floats. An integer type rounds
            fractions to the nearest even number.
        shape: shape of the constant; a single value is repeated.
        layout: names of the axes.

    Raises:
        ArgumentError: a number is out of its type's range, or the value is not a numeric array.
    """

    def __init__(
        self, value: Any, dtype: Any = None, shape: Any = None, layout: str | None = None, device: str | None = None
    ):
        if device not in (None, "cpu"):
            raise ArgumentError(f'`Constant`: expected device="cpu", got {device!r}')
        array = as_array(value, "Constant") if dtype is None else of_type(value, DType.of(dtype), "Constant")
        if shape is not None:
            array = np.broadcast_to(array, shape) if array.size == 1 else array.reshape(shape)
        self.value = array
        self.layout = layout or ""

    def __stoker_constant__(self, builder: Builder) -> Any:
        return builder.call("_constant", (), {"value": self.value, "layout": self.layout})

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.value, dtype=dtype, copy=copy)
