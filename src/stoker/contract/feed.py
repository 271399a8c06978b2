# SPDX-License-Identifier: Apache-2.0
"""Callbacks that produce data: the information they receive, and the conversion of their results to arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import ResourceError, SourceLine, StateError
from .operator import Spec
from .text import brief, reason_of
from .types import DType
from .workers import WorkerPool as WorkerPool


@dataclass(frozen=True)
class SampleInfo:
    """Information that a per-sample source receives.

    Attributes:
        idx_in_epoch: number of the sample in the epoch, from 0.
        idx_in_batch: number of the sample in its batch, from 0.
        iteration: number of the batch in the epoch, from 0.
        epoch_idx: number of the epoch, from 0.
    """

    idx_in_epoch: int
    idx_in_batch: int
    iteration: int
    epoch_idx: int


@dataclass(frozen=True)
class BatchInfo:
    """Information that a per-batch source receives (``batch_info=True``).

    Attributes:
        iteration: number of the batch in the epoch, from 0.
        epoch_idx: number of the epoch, from 0.
    """

    iteration: int
    epoch_idx: int


@dataclass(frozen=True, slots=True)
class GpuArray:
    """Array in a GPU's memory, as a run reads it.

    Attributes:
        address: address of the first element.
        shape, strides: per axis, in elements and bytes.
        owner: object that keeps the memory alive.
        stream: CUDA stream of the producer; the run's work waits for it. None: the data are complete.
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


_WIDEST = 8  # bytes of an element: there is no longdouble


class Feeder(ABC):
    """Source of the caller's data: Python code that gives one batch after the other.

    The execution opens the feeder with the pipeline, gives it worker processes (:meth:`use`) and requests batches in
    order.

    Attributes:
        parallel: whether the feeder needs worker processes.
        device: the run's GPU (native); the execution sets it.
        fed_by_hand: whether the caller feeds the data, because the source has none of its own.
    """

    parallel: bool = False
    device: Any = None
    fed_by_hand: bool = False  # the data come from calls of `feed` or `convert`

    def use_gpu(self, gpu: Any) -> None:  # noqa: B027 - most have nothing to do
        """Take the open GPU of runs whose GPU steps alone read the outputs, which may be a :class:`GpuArray` then.

        Args:
            gpu: the GPU (``contract.gpu.KernelsOnGpu``).
        """

    def use(self, workers: WorkerPool) -> None:  # noqa: B027 - most have nothing to do
        """Run the source in these worker processes."""

    @property
    @abstractmethod
    def specs(self) -> tuple[Spec, ...]:
        """Return the types of the outputs; None before the first batch if they are not declared."""

    @property
    def ready(self) -> bool:
        """Return whether :meth:`pull` returns (or ends, or fails) without waiting."""
        return True

    def wait(self, source: SourceLine | None) -> None:  # noqa: B027 - most have nothing to do
        """Wait until the feeder is ready, or for a short time, so that the caller can check whether the pipeline was
        closed.
        """

    @property
    def position(self) -> Any:
        """Return the position for :meth:`seek`; it must be JSON-able."""
        return None

    @abstractmethod
    def pull(self, count: int, epoch: int) -> tuple[Any, ...]:
        """Return the next batch of at most ``count`` rows: one column per output.

        A column is an array with the rows on its first axis, or a list with an array per row.

        Raises:
            StopIteration: the epoch has ended.
        """

    def reset(self) -> None:  # noqa: B027 - most have nothing to do
        """Begin an epoch."""

    def seek(self, position: Any) -> None:
        """Continue from ``position``."""
        raise StateError("this source cannot be resumed")

    @abstractmethod
    def require_resumable(self, source: SourceLine | None) -> None:
        """Raise StateError if the source cannot go on from a position."""

    def discard(self) -> None:  # noqa: B027 - most have nothing to do
        """Forget the batches that were fed by hand and not pulled."""

    def convert(self, data: Any) -> tuple[Any, ...]:
        """Return a batch that is fed by hand as columns, without queueing it. Any thread may call it.

        Raises:
            DataError: the data are not of the declared types.
            StateError: the source has data of its own.
        """
        raise StateError("expected a source without data of its own")

    @abstractmethod
    def feed(self, data: Any, limit: int, layout: str | None) -> None:
        """Take a batch of at most ``limit`` rows that is fed by hand.

        Raises:
            StateError: the source has data of its own.
        """


def is_capsule(data: Any) -> bool:
    """Return whether an object is a DLPack capsule, the result of an object's ``__dlpack__``."""
    return type(data).__name__ == "PyCapsule"


def is_contiguous(shape: Sequence[int], strides: Sequence[int], size: int) -> bool:
    """Return whether elements follow each other in the order of the axes, without gaps.

    Args:
        shape, strides: per axis, in elements and bytes.
        size: bytes of an element.
    """
    step = size
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent > 1 and stride != step:
            return 0 in shape
        step *= extent
    return True


class _CapsuleOwner:
    """Object whose ``__dlpack__`` returns a given capsule of host memory.

    NumPy refuses a capsule of other memory.
    """

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def to_array(data: Any) -> npt.NDArray[Any]:
    """Convert an array, DLPack tensor or capsule, number or bytes to a contiguous NumPy array in native byte order.

    Raises:
        TypeError: the data are none of these, or not numeric.
        ResourceError: there is no memory for a contiguous copy.
    """
    array = data if isinstance(data, np.ndarray) else _read(data)
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > _WIDEST:
        what = f"an array of {array.dtype}" if isinstance(data, np.ndarray) else repr(type(data).__name__)
        raise TypeError(f"expected an array of numbers, a number or bytes, got {what}")
    try:
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        if not array.flags.aligned:
            return array.copy()
        return np.ascontiguousarray(array) if array.ndim else array
    except (MemoryError, ValueError):  # NumPy's ValueError: more bytes than an address has
        text = f"expected an array that fits into memory, got {array.dtype} of shape {array.shape}"
        raise ResourceError(f"{text}, without memory for a contiguous copy") from None


def _read(data: Any) -> npt.NDArray[Any]:
    """Return the array of an object that is none, without a copy if possible."""
    try:
        if isinstance(data, (bytes, bytearray, memoryview)):
            return np.frombuffer(data, np.uint8)
        if hasattr(data, "__dlpack__"):
            return np.from_dlpack(data)
        if is_capsule(data):
            return np.from_dlpack(_CapsuleOwner(data))
        return np.asarray(data)
    except MemoryError:
        raise
    except Exception as error:  # a foreign `__dlpack__` or `__array__` may raise anything
        raise TypeError(
            f"expected an array of numbers, a number or bytes, got {brief(data)}: {reason_of(error)}"
        ) from error
