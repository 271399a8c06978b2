# SPDX-License-Identifier: Apache-2.0
"""What Python code that makes data is told, and how what it gives becomes an array."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from .types import DType


@dataclass(frozen=True)
class SampleInfo:
    """What a per-sample source is told."""

    idx_in_epoch: int
    idx_in_batch: int
    iteration: int
    epoch_idx: int


@dataclass(frozen=True)
class BatchInfo:
    """What a per-batch source is told (``batch_info=True``)."""

    iteration: int
    epoch_idx: int


@dataclass(frozen=True, slots=True)
class OnGpu:
    """An array in a GPU's memory, as a run reads it.

    Attributes:
        address: of the first element.
        shape, strides: per axis, elements and bytes.
        owner: keeps the memory.
        stream: work that reads it waits for this stream's; None: what makes it is done.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    owner: Any
    stream: int | None

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]


class Workers(Protocol):
    """Processes that Python code runs in beside this one."""

    @property
    def count(self) -> int:
        """How many."""
        ...

    def add(self, producer: Callable[[Any], Any], *, stateful: bool) -> int:
        """Make a producer known, before the start; its number. A stateful one stays in one process."""
        ...

    def submit(self, producer: int, request: Any) -> Any:
        """Ask a producer for something; what :meth:`result` takes."""
        ...

    def result(self, task: Any) -> Any:
        """Wait for what was asked for."""
        ...

    def ready(self, task: Any) -> bool:
        """Whether :meth:`result` would not have to wait."""
        ...

    def wait(self) -> None:
        """Wait until something has come, or for a moment."""
        ...

    def drop(self, task: Any) -> None:
        """Its result is not, or no longer, wanted."""
        ...


def to_array(data: Any) -> npt.NDArray[Any]:
    """Any array, DLPack tensor, number or bytes as a contiguous NumPy array in native byte order.

    Raises:
        TypeError: it is none of these, or not of numbers.
    """
    if isinstance(data, np.ndarray):
        array = data
    elif isinstance(data, (bytes, bytearray, memoryview)):
        array = np.frombuffer(data, np.uint8)
    elif hasattr(data, "__dlpack__"):
        array = np.from_dlpack(data)
    else:
        array = np.asarray(data)
    if array.dtype.kind not in "biuf":
        what = f"an array of {array.dtype}" if isinstance(data, np.ndarray) else repr(type(data).__name__)
        raise TypeError(f"expected an array of numbers, a number or bytes, got {what}")
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.ascontiguousarray(array) if array.ndim else array.copy() if not array.flags.aligned else array
