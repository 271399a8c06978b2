# SPDX-License-Identifier: Apache-2.0
"""Emission: steps become segments, memory, scalar code and register programs, which are the data of a plan."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from ..contract.errors import GraphError, UnsupportedError
from ..contract.expr import Expr, is_static, leaves
from ..contract.gpu import FEW_LANES, StageRows
from ..contract.pixel import compile_program
from ..contract.step import (
    VIEW_KINDS,
    CalledOnHost,
    Check,
    InlinedProgram,
    Native,
    OwnKernel,
    PyCall,
    Stage,
    Step,
    StepList,
    View,
    ViewOp,
    counts_of,
)  # fmt: skip
from ..contract.text import brief
from ..native import _native
from .passes.placement import read_by_the_loop
from .plan import (
    HostKernel,
    Kernel,
    NativeCode,
    Plan,
    PlannedCodecKernel,
    PlannedGpuKernel,
    PlannedGpuStage,
    PlannedOutput,
)
from .rows import along_rows
from .scalar_code import Compiler
from .segments import SegmentKind, Segments, cut
from .storage import aliases, assign_memory, images_in_planes, used_values

_PLACES = ("scratch", "batch", "output", "input", "alias", "upload", "device", "words", "planes", "count")
_WHERE = {name: number for number, name in enumerate(_PLACES)}
_INTERPOLATORS = {"resample": 1, "affine": 2, "project_nearest": 3, "project_linear": 4, "project_cubic": 5}


@cache
def _op_codes() -> dict[str, int]:
    """Return the numbers of the pixel operations, by name."""
    return dict(_native.pixel_ops())


def emit(
    steps: StepList, *, share: bool, planes: bool, has_gpu: bool, host_outputs: Collection[int],
    on_cpu: Mapping[int, set[int]],
) -> Plan:  # fmt: skip
    """Return the plan of ``steps``. Every output must end in a step that stores it.

    Args:
        share: values may reuse the buffers of values that no later step reads.
        planes: images that only one resampling reads may stay in component planes.
        has_gpu: values may be fed from a GPU's memory.
        host_outputs: numbers of outputs that are delivered in host memory. Those that a GPU computes are copied.
        on_cpu: as in :class:`.plan.Plan`.
    """
    segments = cut(steps)
    order = [i for _, members in segments.members for i in members]
    number = {i: n for n, i in enumerate(order)}
    used = used_values(steps)
    index = {v: n for n, v in enumerate(used)}
    in_planes = images_in_planes(steps) if planes else frozenset()
    buffers, where = assign_memory(steps, segments, share=share, in_planes=in_planes)
    emitter = _Emitter(steps, index, in_planes)
    moved = _in_order_of_nodes(steps, segments)
    ordered = [moved.get(i, steps.steps[i]) for i in order]
    emitted = [emitter.emit_step(step) for step in ordered]
    outputs = [emitter.emit_output(v, to_host=i in host_outputs) for i, v in enumerate(steps.outputs)]
    opens = _opened_outputs(steps, segments)
    members = tuple((runs, tuple(number[i] for i in own)) for runs, own in segments.members)
    code = NativeCode(
        values=tuple(
            (int(steps.values[v].dtype), steps.values[v].rank, _WHERE[where[v][0]], where[v][1]) for v in used
        ),
        kernels=tuple(kernel for kernel, _ in emitted),
        steps=tuple(step for _, step in emitted),
        outputs=tuple(output for _, output in outputs),
        segments=tuple((int(runs), own, opens.get(n, ())) for n, (runs, own) in enumerate(members)),
        scratch_buffers=buffers,
        index_columns=len(steps.readers),
    )
    made = {v for s in steps.steps if isinstance(s.body, PyCall) and s.body.operator.writes_to_gpu for v in s.outputs}
    fed_on_gpu = _read_on_gpu(steps, set(steps.fed.values())) if has_gpu else set()
    put_on_gpu = _read_on_gpu(steps, made) if has_gpu else set()
    return Plan(
        code,
        steps=tuple(_renumber(step, index) for step in ordered),
        segments=members,
        values={index[v]: steps.values[v] for v in used},
        messages=tuple(emitter.messages),
        outputs=tuple(planned for planned, _ in outputs),
        fed={key: index[v] for key, v in steps.fed.items() if v in index},
        readers=tuple(steps.readers),
        fed_on_gpu=frozenset(index[v] for v in fed_on_gpu if v in index),
        put_on_gpu=frozenset(index[v] for v in put_on_gpu if v in index),
        in_planes=frozenset(index[v] for v in in_planes if v in index),
        on_cpu=on_cpu,
    )


def _in_order_of_nodes(steps: StepList, segments: Segments) -> dict[int, Step]:
    """Return the steps whose checks move, so that the checks of a segment run in the order of the graph's nodes.

    A pass that joins two steps moves the first one's checks down, past steps of nodes between the two. A row fails with
    its first error, which must not depend on that. So a check moves up again: before the first step of a later node
    that runs under the same conditions, but after all steps that compute a value that the check reads.
    """
    checks: dict[int, list[Check]] = {}
    for runs, members in segments.members:
        if runs == SegmentKind.PYTHON:
            continue
        latest = -1  # node so far
        for at, i in enumerate(members):
            step = steps.steps[i]
            for check in step.checks:
                place = _first_place(check, steps, members[: at + 1]) if latest > check.node else i
                if place != i:
                    checks.setdefault(i, list(step.checks))
                    checks[i] = [other for other in checks[i] if other is not check]
                    checks.setdefault(place, list(steps.steps[place].checks)).append(check)
            latest = max(latest, step.node)
    return {
        i: replace(steps.steps[i], checks=tuple(sorted(own, key=lambda check: check.node))) for i, own in checks.items()
    }


def _first_place(check: Check, steps: StepList, members: Sequence[int]) -> int:
    """Return the step at which a check of the last of ``members`` runs."""
    needs: set[int] = set()
    for number in (check.condition, *check.values):
        leaves(number, needs)
    own = members[-1]
    place = own
    for i in reversed(members[:-1]):
        step = steps.steps[i]
        if not needs.isdisjoint(step.outputs):
            break
        if step.node > check.node and step.guards == steps.steps[own].guards:
            place = i
    return place


def _opened_outputs(steps: StepList, segments: Segments) -> dict[int, tuple[int, ...]]:
    """Return the outputs whose memory each segment opens."""
    opens: dict[int, tuple[int, ...]] = {}
    for slot, v in enumerate(steps.outputs):
        opens[segments.of[v]] = (*opens.get(segments.of[v], ()), slot)
    return opens


def _read_on_gpu(steps: StepList, candidates: set[int]) -> set[int]:
    """Return the values whose elements only GPU steps read."""
    values = candidates - read_by_the_loop(steps) - set(steps.outputs)
    for step in steps.steps:
        if not step.on_gpu:
            values.difference_update(step.inputs)
    return values


def _renumber(step: Step, index: Mapping[int, int]) -> Step:
    return replace(step, inputs=tuple(index[v] for v in step.inputs), outputs=tuple(index[v] for v in step.outputs))


class _Emitter:
    """Code of steps and outputs.

    Args:
        index: native number of every value.
        in_planes: images that may be in component planes.

    Attributes:
        messages: texts of the checks so far, and the graph nodes that demand them.
    """

    def __init__(self, steps: StepList, index: Mapping[int, int], in_planes: frozenset[int]) -> None:
        self.messages: list[tuple[str, int]] = []
        self._values = steps.values
        self._placed = steps.placed
        self._index = index
        self._in_planes = in_planes
        self._on_gpu = {v for s in steps.steps if s.on_gpu for v in s.outputs}

    def emit_step(self, step: Step) -> tuple[Kernel | None, tuple[Any, ...]]:
        """Return a step's kernel and the other arguments of ``_native.Plan.add_step``."""
        index = self._index
        code = Compiler(lambda v: index[v])
        checks = []
        for check in step.checks:
            self.messages.append((check.text, check.node))
            values = [code.register(v) for v in check.values]
            checks.append((code.register(check.condition), len(self.messages) - 1, values))
        params = _Params(code)
        kernel = None if isinstance(step.body, PyCall) else self._kernel(step, params)
        extents = [
            [code.register(e) if not _own_dim(e, v) else -1 for e in self._values[v].reserved] for v in step.outputs
        ]
        if isinstance(step.body, PyCall) or aliases(step):
            extents = [[] for _ in step.outputs]
        elif isinstance(step.body, Native) and step.body.memory.allocates:
            extents[0] = []  # extents known only at run time
        counted, count = self._count(step)
        frames = -1 if step.frames is None else code.register(step.frames)
        guards = [(index[v], wanted) for v, wanted in step.guards]
        ordered = isinstance(step.body, PyCall) and not step.body.pure
        return kernel, (
            [index[v] for v in step.inputs], [index[v] for v in step.outputs], code.code, code.consts,
            params.registers, extents, checks, guards, frames, [int(f) for f in step.framed], ordered, counted, count,
        )  # fmt: skip

    def _count(self, step: Step) -> tuple[list[int], int]:
        """Return the counted outputs of ``step``, and the number of the output with the count, or -1."""
        counts = counts_of(step, self._values)
        if not counts:
            return [], -1
        counted = [o for o, v in enumerate(step.outputs) if self._values[v].counted is not None]
        return counted, step.outputs.index(min(counts))

    def _kernel(self, step: Step, params: _Params) -> Kernel:
        body = step.body
        if isinstance(body, View):
            return HostKernel("view", (_chain(body.ops, params), body.may_copy))
        if isinstance(body, Native):
            for p in body.params:
                params.add(p)
            program = self._program_arguments(step, body.inlined, params) if body.inlined else ()
            return self._native_kernel(step, body, program)
        assert isinstance(body, Stage)
        if not step.on_gpu and step.frames is None:
            body = along_rows(body, [self._values[v] for v in (*step.inputs, *step.outputs)])
        arguments = self._stage_arguments(step, body, params)
        if step.on_gpu:
            return PlannedGpuStage(body, arguments, self._rows(step, body))
        return HostKernel("stage", arguments)

    def _rows(self, step: Step, body: Stage) -> StageRows:
        """Return the facts about a stage's rows that choose the form of its kernel."""
        shapes = [self._values[v].shape for v in (*step.inputs, *step.outputs)]
        return StageRows(
            planar=not self._in_planes.isdisjoint(step.inputs[:1]),
            few_lanes=all(all(map(is_static, s)) and math.prod(s) <= FEW_LANES for s in shapes[len(step.inputs) :]),
            one_axis=all(len(s) <= 1 for s in shapes) and step.frames is None and not body.reshapes,
        )

    def _program_arguments(self, step: Step, inlined: InlinedProgram, params: _Params) -> tuple[Any, ...]:
        """Return the arguments of a native kernel's program; see ``KernelsOnGpu.native``."""
        extents = [params.add(e) for e in inlined.shape]
        compiled = compile_program(inlined.program, _op_codes(), len(inlined.pre))
        uniforms = [params.add(u) for u in compiled.uniforms]
        in_types = [int(self._values[v].dtype) for v in step.inputs[len(step.inputs) - len(inlined.pre) :]]
        out_types = [int(x.dtype) for (x,) in inlined.program]
        return (
            extents, compiled.code, 0, in_types, out_types, uniforms, [_chain(ops, params) for ops in inlined.pre],
            [[] for _ in out_types], compiled.coordinates,
        )  # fmt: skip

    def _native_kernel(self, step: Step, body: Native, program: tuple[Any, ...]) -> Kernel:
        in_types, out_types = (tuple(self._values[v].dtype for v in some) for some in (step.inputs, step.outputs))
        if body.codec:
            return PlannedCodecKernel(body, in_types, out_types, step.on_gpu)
        if step.on_gpu and not body.memory.aliases:
            if body.gpu is not None and isinstance(body.gpu.kernel, OwnKernel):
                # Checked against the CPU kernel, because the GPU kernel does not receive them.
                _check_constants(body, body.attrs)
            return PlannedGpuKernel(body, in_types, out_types, program)
        if body.gpu is not None and isinstance(body.gpu.kernel, CalledOnHost):
            raise UnsupportedError(
                f"`{body.kernel}`: expected an input in a GPU's memory, got one in host memory. Give it `x.gpu()`, "
                "in a pipeline with a GPU (`device_id`)"
            )
        constants = body.attrs
        if body.other_rows_of is not None and body.memory.aliases:
            constants = (*constants, self._index[step.inputs[body.other_rows_of]])
        _check_constants(body, constants)
        return HostKernel(body.kernel, constants)

    def _stage_arguments(self, step: Step, body: Stage, params: _Params) -> tuple[Any, ...]:
        """Return the arguments of ``kernels.stage``."""
        interpolator = [params.add(p) for p in body.interpolator.params] if body.interpolator else []
        compiled = compile_program(body.program, _op_codes(), len(step.inputs))
        uniforms = [params.add(u) for u in compiled.uniforms]
        in_types, out_types = ([int(self._values[v].dtype) for v in some] for some in (step.inputs, step.outputs))
        return (
            _INTERPOLATORS[body.interpolator.kind] if body.interpolator else 0, interpolator, compiled.code,
            body.channels, in_types,
            out_types, uniforms, [_chain(ops, params) for ops in body.pre], [_chain(ops, params) for ops in body.post],
            compiled.coordinates,
        )  # fmt: skip

    def emit_output(self, v: int, *, to_host: bool) -> tuple[PlannedOutput, tuple[Any, ...]]:
        """Return an output and the arguments of ``_native.Plan.add_output``."""
        value = self._values[v]
        if v in self._placed:
            planned = PlannedOutput(value.dtype, value.layout, None, value.rank)
            return planned, (self._index[v], False, False, [], [], [], [], -1, self._index[self._placed[v]])
        fixed = all(is_static(e) for e in value.shape)
        code = Compiler(lambda leaf: self._index[leaf])
        extents = [] if fixed else [code.register(e) for e in value.reserved]
        shape = [int(e) for e in value.shape] if fixed else []  # type: ignore[arg-type]
        on_gpu = v in self._on_gpu
        counted = value.counted is not None
        planned = PlannedOutput(
            value.dtype,
            value.layout,
            tuple(shape) if fixed else None,
            value.rank,
            on_gpu=on_gpu and not to_host,
            counted=counted,
            returns=on_gpu and to_host,
        )
        count = -1 if value.counted is None else self._index[value.counted.count]
        return planned, (self._index[v], fixed, on_gpu, shape, code.code, code.consts, extents, count)


def _check_constants(body: Native, constants: tuple[Any, ...]) -> None:
    """Raise GraphError unless the constructor that the kernel registered takes ``constants``."""
    try:
        _native.kernels.check_constants(body.kernel, constants)
    except (TypeError, OverflowError) as error:  # the latter: a number beyond the constructor's type
        raise GraphError(f"step {brief(body, 200)}: {error}") from None


class _Params:
    """Positional numbers of a kernel."""

    def __init__(self, code: Compiler) -> None:
        self.code = code
        self.registers: list[int] = []

    def add(self, x: Any) -> int:
        self.registers.append(self.code.register(x))
        return len(self.registers) - 1


def _own_dim(extent: Any, value: int) -> bool:
    return isinstance(extent, Expr) and extent.op == "dim" and extent.args[0] == value


def _chain(ops: tuple[ViewOp, ...], params: _Params) -> list[tuple[int, int, int, int, int, list[int]]]:
    chain = []
    for op in ops:
        start, step, extent, values = 0, 0, 0, list(op.list)
        if op.kind == "slice":
            start, step, extent = params.add(op.start), params.add(op.step), params.add(op.extent)
        elif op.kind == "reshape":
            values = [params.add(x) for x in op.list]
        chain.append((VIEW_KINDS[op.kind], op.axis, start, step, extent, values))
    return chain
