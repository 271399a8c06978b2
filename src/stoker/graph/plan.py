# SPDX-License-Identifier: Apache-2.0
"""Plans: frozen data that describe a whole program and name the kernels it needs. Nothing here runs or compiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..contract.gpu import StageRows
from ..contract.step import Native, Stage, Step, Value
from ..contract.types import DType
from .segments import SegmentKind

_MAX_AXES = 8  # of an array, as in native/base/tensor.hpp


@dataclass(frozen=True)
class HostKernel:
    """CPU kernel: a constructor in ``_native.kernels`` and its arguments."""

    name: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True)
class PlannedGpuStage:
    """Stage on a GPU; ``arguments`` are those of ``kernels.stage``."""

    body: Stage
    arguments: tuple[Any, ...]
    rows: StageRows


@dataclass(frozen=True)
class PlannedGpuKernel:
    """Native kernel on a GPU, for inputs and outputs of these types; ``program`` as in ``KernelsOnGpu.native``."""

    body: Native
    in_types: tuple[DType, ...]
    out_types: tuple[DType, ...]
    program: tuple[Any, ...] = ()


@dataclass(frozen=True)
class PlannedCodecKernel:
    """Kernel that the step's codec makes, for the CPU or a GPU, for inputs and outputs of these types."""

    body: Native
    in_types: tuple[DType, ...]
    out_types: tuple[DType, ...]
    on_gpu: bool


Kernel = HostKernel | PlannedGpuStage | PlannedGpuKernel | PlannedCodecKernel


@dataclass(frozen=True)
class PlannedOutput:
    """Output of a plan: type, layout, the shape of a row (None if it differs from row to row), and device.

    Attributes:
        on_gpu: the output is delivered in a GPU's memory.
        counted: memory is reserved for an upper bound of a row's first extent, and rows may be shorter.
        returns: a GPU computes the output, and the run copies it to host memory when the batch is done.
    """

    dtype: DType
    layout: str
    shape: tuple[int, ...] | None
    rank: int
    on_gpu: bool = False
    counted: bool = False
    returns: bool = False

    def is_uniform(self, rows: Any) -> bool:
        """Whether ``rows`` is a list of arrays of one shape, which one array can hold."""
        return isinstance(rows, list) and len({tuple(x.shape) for x in rows}) == 1 and self.rank < _MAX_AXES


@dataclass(frozen=True)
class NativeCode:
    """Program for the run loop: a kernel per step (None: Python), and the arguments of ``_native.Plan``'s methods.

    Attributes:
        values: arguments of ``add_value``, by value.
        kernels: by step.
        steps: arguments of ``add_step`` after the kernel.
        outputs: arguments of ``add_output``.
        segments: arguments of ``add_segment``.
        scratch_buffers: number of scratch buffers of a thread.
        index_columns: number of index columns, one per reader.
    """

    values: tuple[tuple[int, int, int, int], ...]
    kernels: tuple[Kernel | None, ...]
    steps: tuple[tuple[Any, ...], ...]
    outputs: tuple[tuple[Any, ...], ...]
    segments: tuple[tuple[int, Sequence[int], Sequence[int]], ...]
    scratch_buffers: int
    index_columns: int


@dataclass(frozen=True)
class Plan:
    """Complete plan of a run.

    Attributes:
        code: the program for the run loop.
        steps: the steps by number, as in the code.
        segments: (kind, step numbers).
        messages: texts of the checks, and the graph nodes that demand them.
        fed: (graph node, output) -> value, for data that the caller supplies.
        readers: graph nodes in the order of the index columns.
        fed_on_gpu: values that may be fed from the GPU's memory, because only GPU steps read their elements.
        put_on_gpu: outputs of Python steps that may be in the GPU's memory, for the same reason.
        in_planes: images that may be in component planes in the GPU's memory, and never exist as pixels.
        on_cpu: for each node on the CPU, the nodes placed on a GPU that the CPU computes because that node reads them.
    """

    code: NativeCode
    steps: tuple[Step, ...]
    segments: tuple[tuple[SegmentKind, tuple[int, ...]], ...]
    values: Mapping[int, Value]
    messages: tuple[tuple[str, int], ...]
    outputs: tuple[PlannedOutput, ...]
    fed: Mapping[tuple[int, int], int]
    readers: tuple[int, ...]
    fed_on_gpu: frozenset[int] = frozenset()
    put_on_gpu: frozenset[int] = frozenset()
    in_planes: frozenset[int] = frozenset()
    on_cpu: Mapping[int, set[int]] = field(default_factory=dict)
