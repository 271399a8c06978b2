# SPDX-License-Identifier: Apache-2.0
"""DALI's names that describe no element of a tensor: other data types, streams of CUDA, interfaces of pipelines."""

from __future__ import annotations

from enum import Enum


class OtherDataType(Enum):
    """Data types of DALI's that tensors here never have. The values are DALI's.

    ``NO_TYPE`` is the type of a list without rows (``TensorListCPU([])``), and as the argument ``dtype`` of an operator
    it means that no type is given. The others describe arguments (``STRING``, ``IMAGE_TYPE``, ...), descriptions of
    TFRecord's features (``FEATURE``) and objects (``PYTHON_OBJECT``). They exist to be compared with; an operator that
    is given one as ``dtype`` refuses it, as DALI's operators do.
    """

    NO_TYPE = -1
    STRING = 12
    FEATURE = 17
    IMAGE_TYPE = 20
    DATA_TYPE = 21
    INTERP_TYPE = 22
    TENSOR_LAYOUT = 23
    PYTHON_OBJECT = 24

    def __repr__(self) -> str:
        return f"<DALIDataType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"DALIDataType.{self.name}"


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


NO_TYPE = OtherDataType.NO_TYPE
