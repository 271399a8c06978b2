# SPDX-License-Identifier: Apache-2.0
"""Constants and callback arguments of pipelines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError
from ..contract.feed import BatchInfo as BatchInfo
from ..contract.feed import SampleInfo as SampleInfo
from ..contract.text import brief
from ..contract.types import DType
from ..contract.whole_number import as_whole_number
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
        device: accepted: "cpu" or None. The constant is copied to where it is used.

    Raises:
        ArgumentError: a number is out of its type's range, or the value is not a numeric array.
    """

    def __init__(
        self, value: Any, dtype: Any = None, shape: Any = None, layout: str | None = None, device: str | None = None
    ):
        if device is not None and not (isinstance(device, str) and device == "cpu"):
            raise ArgumentError(f'`Constant`: expected device="cpu", got {brief(device)}')
        array = as_array(value, "Constant") if dtype is None else of_type(value, as_type(dtype), "Constant")
        self.value = array if shape is None else _shaped(array, shape)
        if layout is not None and not isinstance(layout, str):
            raise ArgumentError(f"`Constant`: expected the names of the axes as `layout`, got {brief(layout)}")
        self.layout = layout or ""

    def __stoker_constant__(self, builder: Builder) -> Any:
        return builder.call("_constant", (), {"value": self.value, "layout": self.layout})

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.value, dtype=dtype, copy=copy)


def as_type(dtype: Any) -> DType:
    """Return the element type of a constant; ArgumentError if there is none."""
    try:
        return DType.of(dtype)
    except TypeError as error:
        raise ArgumentError(f"`Constant`: argument `dtype`: {error}") from None


def _shaped(array: npt.NDArray[Any], shape: Any) -> npt.NDArray[Any]:
    """Return the array in a shape; a single value is repeated."""
    is_list = isinstance(shape, (list, tuple)) or (isinstance(shape, np.ndarray) and shape.ndim == 1)
    given = shape if is_list else (shape,)
    extents = [as_whole_number(n) for n in given]
    if any(n is None or not -1 <= n < 1 << 63 for n in extents) or len(extents) > 32:
        raise ArgumentError(f"`Constant`: expected whole numbers as `shape`, got {brief(shape)}")
    try:
        return np.broadcast_to(array, extents) if array.size == 1 else array.reshape(extents)  # type: ignore[arg-type]
    except (ValueError, MemoryError):
        raise ArgumentError(f"`Constant`: expected a `shape` for {array.size} elements, got {brief(shape)}") from None
