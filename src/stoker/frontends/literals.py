# SPDX-License-Identifier: Apache-2.0
"""Numbers and arrays in a pipeline's definition, converted to arrays of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError, ResourceError, UnsupportedError
from ..contract.text import brief, reason_of
from ..contract.types import DType

_INT32 = np.iinfo(np.int32)
_INT64 = np.iinfo(np.int64)


def as_array(value: Any, subject: str) -> npt.NDArray[Any]:
    """Return a copy: integers as INT32, or INT64 if needed, other numbers as FLOAT, as in DALI. Arrays keep their type.

    Raises:
        ArgumentError: the value is not a rectangular numeric array, or an integer exceeds 64 bits.
    """
    array = _read(value, subject)
    if isinstance(value, (np.ndarray, np.generic)) or _is_foreign(value) or array.dtype.kind == "b":
        return array
    return (
        _floats(array, np.dtype(np.float32), subject)
        if array.dtype.kind == "f"
        else array.astype(_whole(array, subject))
    )


def of_type(value: Any, dtype: DType, subject: str) -> npt.NDArray[Any]:
    """Return a copy of the given type. Integer types round fractions to the nearest even number.

    Raises:
        ArgumentError: a number is out of range, or the value is not a rectangular numeric array.
        UnsupportedError: bfloat16, for which NumPy has no arrays.
    """
    if dtype == DType.BFLOAT16:
        raise UnsupportedError(f"`{subject}`: expected a type that NumPy has, got bfloat16; cast it with `fn.cast`")
    array, target = _read(value, subject), dtype.numpy
    if target.kind == "f":
        return _floats(array, target, subject)
    if target.kind not in "iu":
        return array.astype(target)
    rounded = np.rint(array) if array.dtype.kind == "f" else array
    limits = np.iinfo(target)
    # Python's numbers, because NumPy does not compare numbers of two types exactly.
    wrong = next((x for x in rounded.reshape(-1).tolist() if not limits.min <= x <= limits.max), None)
    if wrong is not None:
        raise ArgumentError(f"`{subject}`: expected numbers from {limits.min} to {limits.max} as {dtype}, got {wrong}")
    return rounded.astype(target)


def _read(value: Any, subject: str) -> npt.NDArray[Any]:
    try:
        array = np.array(np.from_dlpack(value) if _is_foreign(value) else value)
    except MemoryError:
        raise ResourceError(f"`{subject}`: expected an array that fits into memory, got {brief(value)}") from None
    except Exception as error:  # a foreign `__dlpack__` or `__array__` may raise anything
        raise ArgumentError(
            f"`{subject}`: expected numbers or an array, got {brief(value)}: {reason_of(error)}"
        ) from error
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        what = f"{array.dtype}, " if isinstance(value, (np.ndarray, np.generic)) else ""
        raise ArgumentError(f"`{subject}`: expected numbers or an array of numbers, got {what}{brief(value)}")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _floats(array: npt.NDArray[Any], target: np.dtype[Any], subject: str) -> npt.NDArray[Any]:
    """Return the array as floats of a type that holds every finite number."""
    with np.errstate(over="ignore"):
        floats = array.astype(target)
    lost = np.isinf(floats) & np.isfinite(array)
    if lost.any():
        wrong = array[lost].reshape(-1)[0]
        raise ArgumentError(
            f"`{subject}`: expected numbers up to {np.finfo(target).max} as {target}, got {wrong}; give a "
            "NumPy array of float64"
        )
    return floats


def _is_foreign(value: Any) -> bool:
    """Return whether the value is another library's tensor."""
    return hasattr(value, "__dlpack__") and not isinstance(value, (np.ndarray, np.generic))


def _whole(array: npt.NDArray[Any], subject: str) -> Any:
    if not array.size:
        return np.int32
    low, high = int(array.min()), int(array.max())
    if high > _INT64.max:
        raise ArgumentError(
            f"`{subject}`: expected whole numbers up to {_INT64.max}, got {high}; give an array of uint64"
        )
    return np.int32 if _INT32.min <= low and high <= _INT32.max else np.int64
