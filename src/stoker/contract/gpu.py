# SPDX-License-Identifier: Apache-2.0
"""GPU in planning: the facts that decide a plan, and the interface that makes the plan's kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .step import Native, Stage
from .types import DType


@dataclass(frozen=True)
class Target:
    """Facts about the machine that a plan depends on.

    Attributes:
        has_gpu: kernels can be created for a GPU. Without one, a graph that places nodes on a GPU is refused.
        has_cpu_fallback: nodes that are placed on a GPU run on the CPU if there is no GPU.
        indexed_codecs: codecs that keep an index of files, so that these files can be read in parts.
    """

    has_gpu: bool = False
    has_cpu_fallback: bool = False
    indexed_codecs: frozenset[str] = frozenset()

    @property
    def places_steps(self) -> bool:
        """Return whether steps are placed on a GPU.

        True also without a GPU unless there is a CPU fallback, so that the error can name the first node on a GPU.
        """
        return self.has_gpu or not self.has_cpu_fallback


@dataclass(frozen=True)
class StageRows:
    """Facts about the rows of a stage that choose between forms of its kernel. All forms compute all rows.

    Attributes:
        planar: rows of the first input may be in component planes.
        few_lanes: rows have at most `FEW_LANES` elements, so that threads need not compute several together.
        one_axis: rows have no axis of pixels inside another one.
    """

    planar: bool = False
    few_lanes: bool = False
    one_axis: bool = False


FEW_LANES = 256  # one for each thread of a block


class KernelsOnGpu(Protocol):
    """Source of a plan's GPU kernels (``device/``).

    Every method begins to compile a kernel and does not wait, so that kernels are compiled in parallel. It returns a
    function that waits for the kernel.
    """

    def stage(self, body: Stage, arguments: tuple[Any, ...], rows: StageRows) -> Callable[[], Any]:
        """Begin to make the kernel of a stage; ``arguments`` are those of ``kernels.stage``."""

    def native(
        self, body: Native, in_types: Sequence[DType], out_types: Sequence[DType], program: tuple[Any, ...] = ()
    ) -> Callable[[], Any]:
        """Begin to make the kernel of a step with a form for GPUs (``Native.gpu``) and no codec.

        ``program`` has the arguments of the program in ``Native.inlined``: the parameters with its extents, then those
        of ``kernels.stage`` without an interpolator.
        """
