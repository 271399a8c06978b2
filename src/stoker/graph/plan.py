# SPDX-License-Identifier: Apache-2.0
"""Graph to plan: passes, then segments, memory and native code. Pure: a plan is frozen data and starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol

from ..contract.errors import UnsupportedError, message
from ..contract.expr import Expr, is_static
from ..contract.operator import Operator, Spec
from ..contract.pixel import compile_program, load
from ..contract.step import VIEW_KINDS, Native, PyCall, Stage, Step, StepList, Value, View, ViewOp
from ..contract.types import DType
from ..native import _native
from .lower import lower, prune
from .node import Graph
from .passes.decode_window import push_windows
from .passes.equal_steps import merge_equal_steps
from .passes.fusion import fuse
from .passes.partial_reads import read_parts
from .passes.placement import place, place_steps, read_by_the_loop
from .scalar_code import Compiler
from .segments import Runs, cut
from .storage import aliases, images_in_planes, place_values, used_values
from .verify import verify_graph, verify_steps

STEP_PASSES: tuple[tuple[str, Callable[[StepList], StepList]], ...] = (
    ("equal_steps", merge_equal_steps),
    ("decode_window", push_windows),
    ("fusion", fuse),
)
PARTS = "partial_reads"
PLANES = "planes"
PASSES = (*(name for name, _ in STEP_PASSES), PARTS, PLANES, "memory")
_PLACES = ("scratch", "batch", "output", "input", "alias", "upload", "device", "words", "planes")
_WHERE = {name: number for number, name in enumerate(_PLACES)}
_SAMPLERS = {"resample": 1, "affine": 2, "project_nearest": 3, "project_linear": 4, "project_cubic": 5}
_OP_CODES: dict[str, int] = {}


class KernelsOnGpu(Protocol):
    """Where a plan's kernels for a GPU come from (``device/``).

    They are begun when they are asked for, beside each other; calling what was returned waits for one and gives it.

    Attributes:
        knows_files: whether its decoders keep what they find out about files, which then can be read in parts.
    """

    @property
    def knows_files(self) -> bool: ...

    def stage(self, body: Stage, arguments: tuple[Any, ...], *, planar: bool) -> Callable[[], Any]:
        """The kernel of a stage; ``arguments`` are those of ``kernels.stage``.

        Args:
            planar: rows of its first input may be in component planes.
        """

    def native(self, body: Native, in_types: Sequence[DType], out_types: Sequence[DType]) -> Callable[[], Any]:
        """The kernel of a step whose ``gpu`` trait is set."""

    def beside(self, body: Native) -> Callable[[], Any]:
        """The kernel of a step whose ``beside_gpu`` trait is set."""


@dataclass(frozen=True)
class PlannedOutput:
    """One output: type, layout, the shape of a row (None if it differs from row to row), and where it is."""

    dtype: DType
    layout: str
    shape: tuple[int, ...] | None
    rank: int
    on_gpu: bool = False


@dataclass(frozen=True)
class Plan:
    """Everything the executor needs.

    Attributes:
        native: the frozen native plan.
        steps: the steps by number, as in the native plan.
        segments: (what runs it, step numbers).
        messages: texts of the checks, and the graph nodes that demand them.
        fed: (graph node, output) -> value, for what the caller supplies.
        readers: graph nodes in the order of the index columns.
        fed_on_gpu: values that may be fed from the GPU's memory: only steps there read their elements.
        in_planes: images that may be in component planes in the GPU's memory, and never as pixels.
    """

    native: Any
    steps: tuple[Step, ...]
    segments: tuple[tuple[Runs, tuple[int, ...]], ...]
    values: Mapping[int, Value]
    messages: tuple[tuple[str, int], ...]
    outputs: tuple[PlannedOutput, ...]
    fed: Mapping[tuple[int, int], int]
    readers: tuple[int, ...]
    fed_on_gpu: frozenset[int] = frozenset()
    in_planes: frozenset[int] = frozenset()


def transform(graph: Graph, find: Callable[[str], type[Operator]], discovered: Mapping[int, tuple[Spec, ...]],
              passes: frozenset[str], sources: Mapping[int, Any], *, gpu: bool = True, parts: bool = False,
              ) -> StepList:  # fmt: skip
    """The steps after all passes named in ``passes``; without ``gpu`` all of them on the CPU.

    What a GPU would be refused is refused without one, too, so that what runs on a machine without runs on one with it.

    Args:
        parts: the GPU's decoders know files, and can do with parts of them.
    """
    verify_graph(graph)
    steps = lower(graph, find, discovered, sources)
    placed = place_steps(steps, graph, place(graph))
    steps = placed if gpu else steps
    for name, step_pass in STEP_PASSES:
        if name in passes:
            verify_steps(steps)
            steps = prune(step_pass(steps))
    if parts and PARTS in passes:
        verify_steps(steps)
        steps = read_parts(steps)
    verify_steps(steps)
    return steps


def make_plan(
    graph: Graph,
    find: Callable[[str], type[Operator]],
    discovered: Mapping[int, tuple[Spec, ...]] | None = None,
    passes: frozenset[str] = frozenset(PASSES),
    sources: Mapping[int, Any] | None = None,
    gpu: KernelsOnGpu | Literal[False] | None = None,
) -> Plan:
    """Plan ``graph``.

    Args:
        gpu: makes the kernels of what is placed on a GPU; None: nothing may be; False: all runs on the CPU instead.

    Raises:
        Undeclared: a Python node's types must be found first.
        ArgumentError, UnsupportedError: what lowering raises, or for a GPU where there is none.
    """
    knows = gpu.knows_files if gpu else False
    steps = transform(graph, find, discovered or {}, passes, sources or {}, gpu=gpu is not False, parts=knows)
    placed = next((s for s in steps.steps if s.on_gpu), None)
    if placed is not None and gpu is None:
        raise _without_gpu(graph, placed)
    return _Emitter(_end_in_stores(steps), "memory" in passes, PLANES in passes, gpu or None).plan()


def _without_gpu(graph: Graph, step: Step) -> UnsupportedError:
    node = graph.nodes[step.node] if step.node >= 0 else None
    return UnsupportedError(
        message(
            node.operator.name if node else "pipeline",
            "it is placed on a GPU, and the pipeline has none",
            source=node.source if node else None,
            hint='Give the pipeline `device_id=0` (or another GPU\'s number), or `without_gpu="cpu"`, which runs it on '
            "the CPU with the same results",
        )
    )


def _end_in_stores(steps: StepList) -> StepList:
    """Every output is written by a step of its own: views, fed values and values with readers are copied out."""
    makers = {v: s for s in steps.steps for v in s.outputs}
    values, result, outputs = dict(steps.values), list(steps.steps), []
    for v in steps.outputs:
        step = makers.get(v)
        stores = (
            step is not None
            and isinstance(step.body, (Stage, Native))
            and not (isinstance(step.body, Native) and (step.body.aliases or step.body.allocates))
            and not step.guards
            and v not in outputs
            and not any(isinstance(x, Expr) and x.reads.intersection(step.outputs) for x in values[v].shape)
        )
        if not stores:
            source = values[v]
            shape = tuple(e if is_static(e) else Expr("dim", v, i) for i, e in enumerate(source.shape))
            copy = Value(len(values), source.dtype, shape, source.layout)
            values[copy.id] = copy
            body = Stage(((load(source.dtype),),), ((),), ((),))
            # Rows that a condition leaves out have nothing to copy (and nobody reads their outputs).
            guards = step.guards if step else ()
            node, on_gpu = (step.node, step.on_gpu) if step else (-1, False)
            result.append(Step(body, (v,), (copy.id,), node, guards=guards, on_gpu=on_gpu))
            v = copy.id
        outputs.append(v)
    return StepList(result, values, outputs, steps.fed, steps.readers)


class _Emitter:
    def __init__(self, steps: StepList, share: bool, planes: bool, gpu: KernelsOnGpu | None) -> None:
        self.steps = steps
        self.share = share
        self.in_planes = images_in_planes(steps) if planes else frozenset()
        self.gpu = gpu
        self.on_gpu = {v for s in steps.steps if s.on_gpu for v in s.outputs}
        self.values = steps.values
        self.messages: list[tuple[str, int]] = []
        self.native = _native.Plan()
        if not _OP_CODES:
            _OP_CODES.update(_native.pixel_ops())

    def plan(self) -> Plan:
        segments = cut(self.steps)
        order = [i for _, members in segments.members for i in members]
        number = {i: n for n, i in enumerate(order)}
        used = used_values(self.steps)
        index = {v: n for n, v in enumerate(used)}
        buffers, where = place_values(self.steps, segments, share=self.share, in_planes=self.in_planes)
        for v in used:
            kind, slot = where[v]
            self.native.add_value(int(self.values[v].dtype), self.values[v].rank, _WHERE[kind], slot)
        for add in [self._emit_step(self.steps.steps[i], index) for i in order]:
            add()
        opens: dict[int, list[int]] = {}
        planned = []
        for slot, v in enumerate(self.steps.outputs):
            opens.setdefault(segments.of[v], []).append(slot)
            planned.append(self._emit_output(v, index))
        for n, (runs, members) in enumerate(segments.members):
            self.native.add_segment(int(runs), [number[i] for i in members], opens.get(n, []))
        self.native.finish(buffers, len(self.steps.readers))
        kept = tuple(self._renumber(self.steps.steps[i], index) for i in order)
        return Plan(
            self.native, kept, tuple((r, tuple(number[i] for i in m)) for r, m in segments.members),
            {index[v]: self.values[v] for v in used}, tuple(self.messages), tuple(planned),
            {key: index[v] for key, v in self.steps.fed.items() if v in index}, tuple(self.steps.readers),
            frozenset(index[v] for v in self._fed_on_gpu() if v in index),
            frozenset(index[v] for v in self.in_planes if v in index),
        )  # fmt: skip

    def _fed_on_gpu(self) -> set[int]:
        found = set(self.steps.fed.values()) - read_by_the_loop(self.steps)
        for step in self.steps.steps:
            if not step.on_gpu:
                found.difference_update(step.inputs)
        return found if self.gpu is not None else set()

    @staticmethod
    def _renumber(step: Step, index: Mapping[int, int]) -> Step:
        return replace(step, inputs=tuple(index[v] for v in step.inputs), outputs=tuple(index[v] for v in step.outputs))

    # ---- native code ----

    def _emit_step(self, step: Step, index: Mapping[int, int]) -> Callable[[], None]:
        """Begin to make a step's kernel; what is returned waits for it and adds the step."""
        code = Compiler(lambda v: index[v])
        checks = []
        for check in step.checks:
            self.messages.append((check.text, check.node))
            checks.append(
                (code.register(check.condition), len(self.messages) - 1, [code.register(v) for v in check.values])
            )
        params = _Params(code)
        kernel = (lambda: None) if isinstance(step.body, PyCall) else self._kernel(step, params, index)
        extents = [[code.register(e) if not _own_dim(e, v) else -1 for e in self.values[v].shape] for v in step.outputs]
        if isinstance(step.body, PyCall) or aliases(step):
            extents = [[] for _ in step.outputs]
        elif isinstance(step.body, Native) and step.body.allocates:
            extents[0] = []  # as it turns out
        frames = -1 if step.frames is None else code.register(step.frames)
        guards = [(index[v], wanted) for v, wanted in step.guards]
        ordered = isinstance(step.body, PyCall) and not step.body.pure
        told = (
            [index[v] for v in step.inputs], [index[v] for v in step.outputs], code.code, code.consts,
            params.registers, extents, checks, guards, frames, [int(f) for f in step.framed], ordered,
        )  # fmt: skip
        return lambda: self.native.add_step(kernel(), *told)

    def _kernel(self, step: Step, params: _Params, index: Mapping[int, int]) -> Callable[[], Any]:
        body = step.body
        kernels = _native.kernels
        if isinstance(body, View):
            return partial(kernels.view, _chain(body.ops, params), body.may_copy)
        if isinstance(body, Native):
            for p in body.params:
                params.add(p)
            if step.on_gpu and not body.aliases:
                assert self.gpu is not None
                types = ([self.values[v].dtype for v in some] for some in (step.inputs, step.outputs))
                return self.gpu.native(body, *types)
            if body.beside_gpu:
                assert self.gpu is not None
                return self.gpu.beside(body)
            rows_of = () if body.rows_of is None else (index[step.inputs[body.rows_of]],)
            return partial(getattr(kernels, body.kernel), *body.attrs, *rows_of)
        assert isinstance(body, Stage)
        sampler = [params.add(p) for p in body.sampler.params] if body.sampler else []
        compiled = compile_program(body.program, _OP_CODES)
        uniforms = [params.add(u) for u in compiled.uniforms]
        code, in_types = compiled.code, [int(self.values[v].dtype) for v in step.inputs]
        arguments = (
            _SAMPLERS[body.sampler.kind] if body.sampler else 0, sampler, code, body.channels, in_types,
            [int(self.values[v].dtype) for v in step.outputs], uniforms,
            [_chain(ops, params) for ops in body.pre], [_chain(ops, params) for ops in body.post],
        )  # fmt: skip
        if step.on_gpu:
            assert self.gpu is not None
            return self.gpu.stage(body, arguments, planar=not self.in_planes.isdisjoint(step.inputs[:1]))
        return partial(kernels.stage, *arguments)

    def _emit_output(self, v: int, index: Mapping[int, int]) -> PlannedOutput:
        value = self.values[v]
        fixed = all(is_static(e) for e in value.shape)
        code = Compiler(lambda leaf: index[leaf])
        extents = [] if fixed else [code.register(e) for e in value.shape]
        shape = [int(e) for e in value.shape] if fixed else []  # type: ignore[arg-type]
        on_gpu = v in self.on_gpu
        self.native.add_output(index[v], fixed, on_gpu, shape, code.code, code.consts, extents)
        return PlannedOutput(value.dtype, value.layout, tuple(shape) if fixed else None, value.rank, on_gpu)


class _Params:
    """The numbers a kernel gets, by position."""

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
