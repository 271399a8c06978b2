# SPDX-License-Identifier: Apache-2.0
"""Codecs: code that decodes bytes of one kind (JPEG files, audio, video).

An operator names its codec in its steps (``contract.step.Native.codec``). A run finds the codec by that name
(``codecs.registry``) and opens one instance per pipeline. The instance makes the kernels of these steps, writes a
section of the run report, and saves its index of files at the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from .errors import UnsupportedError
from .step import Native, Sources, Twin
from .types import DType


class CodecGpu(Protocol):
    """Interface of a GPU for codecs (:class:`~stoker.device.gpu.Gpu`)."""

    @property
    def device(self) -> Any:
        """Return the native device."""

    @property
    def quota(self) -> Any:
        """Return the accounting of the GPU's memory: the limit and the bytes in use.

        A codec counts its own memory here.
        """

    def functions(self, kernels: Sources, shared_bytes: Sequence[int] | None = None) -> Callable[[], list[Any]]:
        """Begin to compile kernels.

        Args:
            shared_bytes: maximum of dynamic shared memory that each kernel is launched with; by default none.

        Returns:
            A function that waits for the kernels and returns them in the given order.
        """


class BalancedKernel(Protocol):
    """GPU kernel that leaves a share of the rows to the CPU, with the same results.

    The run sets the share by measured rates (``executor.split``). An example is
    ``native/gpu_kernels/gpu_with_cpu_fallback.hpp``.
    """

    cpu_share: float

    @property
    def rows_on_gpu(self) -> int:
        """Return the number of rows that the GPU computed."""

    @property
    def rows_on_cpu(self) -> int:
        """Return the number of rows that the CPU computed."""

    @property
    def cpu_ns(self) -> int:
        """Return the threads' time for the CPU's rows in nanoseconds."""

    @property
    def reasons(self) -> Mapping[str, int]:
        """Return the reasons why the CPU computed rows, with the count of each, as one snapshot.

        Each row has one reason: the counts add up to :attr:`rows_on_cpu`, unless rows were counted between both reads.
        """


@dataclass(frozen=True)
class CodecKernel:
    """Kernel of a codec.

    Attributes:
        codec: the codec's name.
        kernel: the native kernel, as a native plan takes it.
        balanced: the part of the kernel that shares rows between CPU and GPU; None if all rows run where the step is
            placed.
        twin: Python implementation for rows that the kernel hands over. It replaces the step's own ``Native.twin``.
    """

    codec: str
    kernel: Any
    balanced: BalancedKernel | None = None
    twin: Twin | None = None


class Codec(ABC):
    """Base class of codecs. Subclass with ``class Flac(Codec, name="flac")``; an instance serves one pipeline.

    Args:
        gpu: the pipeline's GPU; None if the pipeline runs on the CPU alone.
        options: the pipeline's options for this codec.

    Raises:
        ArgumentError: the codec cannot meet an option.
    """

    name: ClassVar[str] = ""

    def __init_subclass__(cls, *, name: str = "", **others: Any) -> None:
        super().__init_subclass__(**others)
        if name:
            cls.name = name

    def __init__(self, gpu: CodecGpu | None, options: Mapping[str, Any]) -> None:
        self.gpu = gpu
        self.options = options

    @property
    def keeps_index(self) -> bool:
        """Return whether the codec keeps an index of files.

        Such files can be read in parts (``FileAccess.in_parts``).
        """
        return False

    @abstractmethod
    def host_kernel(self, body: Native) -> CodecKernel:
        """Make the CPU kernel of a step."""

    def gpu_kernel(
        self, body: Native, in_types: Sequence[DType], out_types: Sequence[DType]
    ) -> Callable[[], CodecKernel]:
        """Begin to make the GPU kernel of a step that has a form for GPUs.

        Returns:
            A function that waits for the kernel.

        Raises:
            DeviceError: this machine lacks something that the kernel needs.
        """
        raise UnsupportedError(f"the codec `{self.name}` has no `{body.kernel}` for GPUs")

    def report(self, kernels: Sequence[CodecKernel]) -> Any:
        """Return this codec's section of the run report.

        Args:
            kernels: this codec's kernels of the running plan.

        Returns:
            A dataclass. Its text is a part of a line, or empty.
        """
        return None

    def close(self) -> None:  # noqa: B027 - not every codec has something to save
        """Save the index of files after the run has ended; idempotent."""
