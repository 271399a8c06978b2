# SPDX-License-Identifier: Apache-2.0
"""Element types, colour models and interpolation kinds, under NVIDIA DALI's names."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from .text import brief

MAX_RANK = 8  # as kMaxRank in native/base/tensor.hpp; a batch of rows with eight axes is a list


class DType(enum.IntEnum):
    """Element type of a tensor. The values are the native side's contract (``native/base/tensor.hpp``)."""

    BOOL = 0
    UINT8 = 1
    UINT16 = 2
    UINT32 = 3
    UINT64 = 4
    INT8 = 5
    INT16 = 6
    INT32 = 7
    INT64 = 8
    FLOAT16 = 9
    FLOAT = 10
    FLOAT64 = 11
    BFLOAT16 = 12  # the upper half of a float32

    @property
    def numpy(self) -> np.dtype[Any]:
        """Return the type of arrays in host memory. NumPy has no bfloat16: such arrays hold the bits as uint16."""
        return _NUMPY[self]

    @property
    def is_float(self) -> bool:
        """Return whether the type is a floating type."""
        return self >= DType.FLOAT16

    @property
    def is_signed(self) -> bool:
        """Return whether the type has negative values."""
        return self >= DType.INT8

    @property
    def size(self) -> int:
        """Return the number of bytes of an element."""
        return _NUMPY[self].itemsize

    @property
    def positive_range(self) -> float:
        """Return the value of full intensity: the largest value of an integer type, 1 for floats."""
        if self.is_float or self == DType.BOOL:
            return 1.0
        return float(2 ** (8 * self.size - self.is_signed) - 1)

    def __str__(self) -> str:
        return _NAMES[self]

    @staticmethod
    def of(value: Any) -> DType:
        """Return the DType for a NumPy, framework or Python type, a type name or a DType.

        Args:
            value: the type, or its name.

        Raises:
            TypeError: there is no such type.
        """
        if isinstance(value, np.dtype) and value in _OF_NUMPY:  # first, because every fed array takes this path
            return _OF_NUMPY[value]
        if isinstance(value, DType):
            return value
        if isinstance(value, enum.Enum) and value.name in DType.__members__:  # another library's (DALIDataType)
            return DType[value.name]
        if value is float:
            return DType.FLOAT
        if value is int:
            return DType.INT32
        try:
            name = str(value)
            if name == "bfloat16" or name == "torch.bfloat16":  # also types that other libraries register with NumPy
                return DType.BFLOAT16
            if value is None or isinstance(value, enum.Enum):
                raise TypeError("NumPy takes None as float64")
            return _OF_NUMPY[np.dtype(name[6:] if name.startswith("torch.") else value)]
        except Exception:  # noqa: BLE001 - NumPy and a user's `__str__` may raise anything
            known = ", ".join(f"types.{t.name}" for t in DType)
            raise TypeError(f"no element type for {brief(value)}; there are {known}, and NumPy's and torch's") from None


_NUMPY = {
    DType.BOOL: np.dtype(np.bool_),
    DType.UINT8: np.dtype(np.uint8),
    DType.UINT16: np.dtype(np.uint16),
    DType.UINT32: np.dtype(np.uint32),
    DType.UINT64: np.dtype(np.uint64),
    DType.INT8: np.dtype(np.int8),
    DType.INT16: np.dtype(np.int16),
    DType.INT32: np.dtype(np.int32),
    DType.INT64: np.dtype(np.int64),
    DType.FLOAT16: np.dtype(np.float16),
    DType.FLOAT: np.dtype(np.float32),
    DType.FLOAT64: np.dtype(np.float64),
    DType.BFLOAT16: np.dtype(np.uint16),
}
# NumPy computes a name at each use.
_NAMES = {k: "bfloat16" if k == DType.BFLOAT16 else v.name for k, v in _NUMPY.items()}
_OF_NUMPY = {v: k for k, v in _NUMPY.items() if k != DType.BFLOAT16}


class ImageType(enum.IntEnum):
    """Colour model of a decoded image."""

    RGB = 0
    BGR = 1
    GRAY = 2
    YCbCr = 3
    ANY_DATA = 4


class InterpType(enum.IntEnum):
    """Interpolation kind. NN to GAUSSIAN are DALI's, BOX and HAMMING come from Pillow."""

    INTERP_NN = 0
    INTERP_LINEAR = 1
    INTERP_CUBIC = 2
    INTERP_LANCZOS3 = 3
    INTERP_TRIANGULAR = 4
    INTERP_GAUSSIAN = 5
    INTERP_BOX = 6
    INTERP_HAMMING = 7


def promote(a: DType, b: DType) -> DType:
    """Return the common type of two types by DALI's rules.

    A float type wins over integers. Integers widen until both fit; mixed signs go one size up (at most int64).
    bfloat16, which DALI lacks, promotes as in torch: float32 holds bfloat16 together with float16.

    >>> promote(DType.UINT8, DType.INT32).name, promote(DType.UINT32, DType.INT8).name
    ('INT32', 'INT64')
    """
    if a == b:
        return a
    if a.is_float or b.is_float:
        floats = [t for t in (a, b) if t.is_float]
        if DType.BFLOAT16 in floats and len(floats) == 2:
            return max(DType.FLOAT, min(floats))
        return max(floats)
    if DType.BOOL in (a, b):
        return b if a == DType.BOOL else a
    if a.is_signed == b.is_signed:
        return a if a.size >= b.size else b
    signed, unsigned = (a, b) if a.is_signed else (b, a)
    if unsigned.size < signed.size:
        return signed
    return {1: DType.INT16, 2: DType.INT32}.get(unsigned.size, DType.INT64)
