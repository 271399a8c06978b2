# SPDX-License-Identifier: Apache-2.0
"""DALI's names of data types with its integers, of streams of CUDA, and of interfaces of pipelines."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np

from ...contract.types import DType


class DALIDataType(Enum):
    """Data type, with DALI's integers (``int(types.FLOAT)`` is 9).

    The types up to ``BOOL`` are those of tensors, as is ``BFLOAT16``, which DALI lacks and whose integer is none of
    DALI's. A member equals the ``stoker.types.DType`` of its name. ``DType`` has other integers, those of the native
    side, so code below the front end converts by ``DType.of``.

    Tensors never have the other types. ``NO_TYPE`` is the type of a list without rows (``TensorListCPU([])``), and as
    the argument ``dtype`` of an operator it means that no type is given. The others describe arguments (``STRING``,
    ``IMAGE_TYPE``, ...), descriptions of TFRecord's features (``FEATURE``) and objects (``PYTHON_OBJECT``). They exist
    to be compared with; an operator that is given one as ``dtype`` refuses it, as DALI's operators do.
    """

    NO_TYPE = -1
    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    UINT64 = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    FLOAT16 = 8
    FLOAT = 9
    FLOAT64 = 10
    BOOL = 11
    STRING = 12
    FEATURE = 17
    IMAGE_TYPE = 20
    DATA_TYPE = 21
    INTERP_TYPE = 22
    TENSOR_LAYOUT = 23
    PYTHON_OBJECT = 24
    BFLOAT16 = 1000

    @classmethod
    def of(cls, value: Any) -> DALIDataType:
        """Return the member for an element type.

        Args:
            value: the type, as `DType.of` takes it.

        Raises:
            TypeError: there is no such element type.
        """
        return value if isinstance(value, cls) else _MEMBERS[DType.of(value).name]

    @property
    def numpy(self) -> np.dtype[Any]:
        """Return the type of arrays in host memory, as ``DType.numpy``; TypeError for a type that no tensor has."""
        return DType.of(self).numpy

    @property
    def is_float(self) -> bool:
        """Return whether the type is a floating type; TypeError for a type that no tensor has."""
        return DType.of(self).is_float

    @property
    def is_signed(self) -> bool:
        """Return whether the type has negative values; TypeError for a type that no tensor has."""
        return DType.of(self).is_signed

    @property
    def size(self) -> int:
        """Return the number of bytes of an element; TypeError for a type that no tensor has."""
        return DType.of(self).size

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.name == other.name
        return self is other if isinstance(other, DALIDataType) else NotImplemented

    def __hash__(self) -> int:
        """Return the hash of the equal ``DType``, so that either finds entries of a dictionary."""
        equal = DType.__members__.get(self.name)
        return hash(self.name if equal is None else equal)

    def __int__(self) -> int:
        return self.value

    def __index__(self) -> int:
        return self.value

    def __repr__(self) -> str:
        return f"<DALIDataType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"DALIDataType.{self.name}"


_MEMBERS = DALIDataType.__members__


class PipelineAPIType(Enum):
    """Way in which a program takes a pipeline's outputs. Pipelines here allow the program to mix the ways."""

    BASIC = 0
    """``Pipeline.run``."""
    ITERATOR = 1
    """An iterator of ``stoker.dali.plugin``."""
    SCHEDULED = 2
    """``schedule_run``, ``share_outputs`` and ``release_outputs``."""


class CUDAStream:
    """Number of a CUDA stream, for the arguments ``cuda_stream`` of tensors.

    Attributes:
        ptr: the number, which is the address of CUDA's object; 0 is CUDA's default stream.
    """

    def __init__(self, ptr: int = 0) -> None:
        """Take the number.

        Args:
            ptr: the number.
        """
        self._ptr = ptr

    @property
    def ptr(self) -> int:
        """Return the number."""
        return self._ptr


NO_TYPE = DALIDataType.NO_TYPE
BY_INTEGER = {int(x): x for x in DALIDataType}
