# SPDX-License-Identifier: Apache-2.0
"""Loading of a plan: makes its kernels (in parallel for a GPU) and hands them to the native plan that runs them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..contract.codec import BalancedKernel, Codec, CodecKernel
from ..contract.gpu import KernelsOnGpu
from ..contract.step import Native, Twin
from ..native import _native
from .plan import HostKernel, Kernel, Plan, PlannedCodecKernel, PlannedGpuKernel, PlannedGpuStage


@dataclass(frozen=True)
class LoadedPlan:
    """Plan with its kernels.

    Attributes:
        plan: the plan.
        native: the frozen native plan.
        by_codecs: the codecs' kernels, by step number.
        twins: Python code for rows that native kernels hand over, by step number.
    """

    plan: Plan
    native: _native.Plan
    by_codecs: dict[int, CodecKernel]
    twins: dict[int, Twin]

    @property
    def decoders(self) -> tuple[BalancedKernel, ...]:
        """Return this plan's decoders that share rows between the GPU and the CPU."""
        return tuple(kernel.balanced for kernel in self.by_codecs.values() if kernel.balanced is not None)


def load(plan: Plan, gpu: KernelsOnGpu | None = None, codecs: Callable[[str], Codec] | None = None) -> LoadedPlan:
    """Create the kernels of ``plan`` and wait for them.

    Args:
        gpu: factory of the plan's GPU kernels.
        codecs: function that returns a codec by name.

    Raises:
        DeviceError: a kernel cannot be created.
    """
    code = plan.code
    begun = [_begin(kernel, gpu, codecs) for kernel in code.kernels]
    native = _native.Plan()
    by_codecs: dict[int, CodecKernel] = {}
    for value in code.values:
        native.add_value(*value)
    for number, (begin, step) in enumerate(zip(begun, code.steps, strict=True)):
        kernel = begin()
        if isinstance(kernel, CodecKernel):
            by_codecs[number] = kernel
            kernel = kernel.kernel
        native.add_step(kernel, *step)
    for output in code.outputs:
        native.add_output(*output)
    for segment in code.segments:
        native.add_segment(*segment)
    native.finish(code.scratch_buffers, code.index_columns)
    own = {n: s.body.twin for n, s in enumerate(plan.steps) if isinstance(s.body, Native)}
    twins = {**own, **{n: kernel.twin for n, kernel in by_codecs.items() if kernel.twin is not None}}
    return LoadedPlan(plan, native, by_codecs, {n: twin for n, twin in twins.items() if twin is not None})


def _begin(kernel: Kernel | None, gpu: KernelsOnGpu | None, codecs: Callable[[str], Codec] | None) -> Callable[[], Any]:
    """Begin to make a kernel. Return a function that waits for it."""
    if kernel is None:
        return lambda: None
    if isinstance(kernel, HostKernel):
        return lambda: getattr(_native.kernels, kernel.name)(*kernel.arguments)
    if isinstance(kernel, PlannedCodecKernel):
        if codecs is None:
            raise ValueError(f"expected codecs for a plan with steps of theirs, got none: {kernel.body!r}")
        return _begin_by_codec(kernel, codecs(kernel.body.codec))
    if gpu is None:
        raise ValueError(f"expected a GPU for a plan with kernels on one, got none: {kernel.body!r}")
    if isinstance(kernel, PlannedGpuStage):
        return gpu.stage(kernel.body, kernel.arguments, kernel.rows)
    assert isinstance(kernel, PlannedGpuKernel)
    return gpu.native(kernel.body, kernel.in_types, kernel.out_types, kernel.program)


def _begin_by_codec(kernel: PlannedCodecKernel, codec: Codec) -> Callable[[], CodecKernel]:
    if kernel.on_gpu:
        return codec.gpu_kernel(kernel.body, kernel.in_types, kernel.out_types)
    return lambda: codec.host_kernel(kernel.body)
