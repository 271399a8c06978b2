# SPDX-License-Identifier: Apache-2.0
"""Graph to plan: passes, then segments, memory and native code. Pure: a plan is frozen data and starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..contract.expr import Compiler, Expr, is_static, leaves
from ..contract.operator import Operator, Spec
from ..contract.pixel import compile_program, load
from ..contract.step import VIEW_KINDS, Native, PyCall, Stage, Step, StepList, Value, View, ViewOp
from ..contract.types import DType
from ..native import _native
from .lower import lower, prune, reads
from .node import Graph
from .passes.common import merge_common
from .passes.decode_window import push_windows
from .passes.fusion import fuse
from .passes.memory import last_uses, share_buffers
from .passes.placement import place
from .verify import verify_graph, verify_steps

STEP_PASSES: tuple[tuple[str, Callable[[StepList], StepList]], ...] = (
    ("common", merge_common),
    ("decode_window", push_windows),
    ("fusion", fuse),
)
PASSES = (*(name for name, _ in STEP_PASSES), "memory")
_WHERE = {"scratch": 0, "batch": 1, "output": 2, "input": 3, "alias": 4, "upload": 5, "device": 6}
_SAMPLERS = {"resample": 1, "affine": 2}
_OP_CODES: dict[str, int] = {}


@dataclass(frozen=True)
class PlannedOutput:
    """One output: type, layout, and the shape of a row (None if it differs from row to row)."""

    dtype: DType
    layout: str
    shape: tuple[int, ...] | None
    rank: int


@dataclass(frozen=True)
class Plan:
    """Everything the executor needs.

    Attributes:
        native: the frozen native plan.
        steps: the steps by number, as in the native plan.
        segments: (is Python, step numbers).
        messages: texts of the checks, and the graph nodes that demand them.
        fed: (graph node, output) -> value, for what the caller supplies.
        readers: graph nodes in the order of the index columns.
    """

    native: Any
    steps: tuple[Step, ...]
    segments: tuple[tuple[bool, tuple[int, ...]], ...]
    values: Mapping[int, Value]
    messages: tuple[tuple[str, int], ...]
    outputs: tuple[PlannedOutput, ...]
    fed: Mapping[tuple[int, int], int]
    readers: tuple[int, ...]


def transform(graph: Graph, find: Callable[[str], type[Operator]], discovered: Mapping[int, tuple[Spec, ...]],
              passes: frozenset[str], sources: Mapping[int, Any]) -> StepList:  # fmt: skip
    """The steps after all passes named in ``passes``."""
    verify_graph(graph)
    place(graph)
    steps = lower(graph, find, discovered, sources)
    for name, step_pass in STEP_PASSES:
        if name in passes:
            verify_steps(steps)
            steps = prune(step_pass(steps))
    verify_steps(steps)
    return steps


def make_plan(
    graph: Graph,
    find: Callable[[str], type[Operator]],
    discovered: Mapping[int, tuple[Spec, ...]] | None = None,
    passes: frozenset[str] = frozenset(PASSES),
    sources: Mapping[int, Any] | None = None,
) -> Plan:
    """Plan ``graph``. Raises what lowering raises; ``Undeclared`` if a Python node's types must be found first."""
    steps = _end_in_stores(transform(graph, find, discovered or {}, passes, sources or {}))
    return _Emitter(steps, "memory" in passes).plan()


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
            result.append(Step(body, (v,), (copy.id,), step.node if step else -1, guards=guards))
            v = copy.id
        outputs.append(v)
    return StepList(result, values, outputs, steps.fed, steps.readers)


def _aliases(step: Step) -> bool:
    return isinstance(step.body, View) or (isinstance(step.body, Native) and step.body.aliases)


def _other_rows(step: Step) -> tuple[int, ...]:
    """The value that a row selection takes from other rows."""
    return (step.body.attrs[0],) if isinstance(step.body, Native) and step.body.kernel == "other_row" else ()


class _Emitter:
    def __init__(self, steps: StepList, share: bool) -> None:
        self.steps = steps
        self.share = share
        self.values = steps.values
        self.messages: list[tuple[str, int]] = []
        self.segment_of: dict[int, int] = {}  # value -> segment
        self.native = _native.Plan()
        if not _OP_CODES:
            _OP_CODES.update(_native.pixel_ops())

    def plan(self) -> Plan:
        segments = self._segments()
        order = [i for _, members in segments for i in members]
        number = {i: n for n, i in enumerate(order)}
        used = self._used_values()
        index = {v: n for n, v in enumerate(used)}
        buffers, where = self._memory(segments)
        for v in used:
            kind, slot = where[v]
            self.native.add_value(int(self.values[v].dtype), self.values[v].rank, _WHERE[kind], slot)
        for i in order:
            self._emit_step(self.steps.steps[i], index)
        opens: dict[int, list[int]] = {}
        planned = []
        for slot, v in enumerate(self.steps.outputs):
            opens.setdefault(self.segment_of[v], []).append(slot)
            planned.append(self._emit_output(v, index))
        for n, (python, members) in enumerate(segments):
            self.native.add_segment(int(python), [number[i] for i in members], opens.get(n, []))
        self.native.finish(buffers, len(self.steps.readers))
        kept = tuple(self._renumber(self.steps.steps[i], index) for i in order)
        return Plan(
            self.native, kept, tuple((p, tuple(number[i] for i in m)) for p, m in segments),
            {index[v]: self.values[v] for v in used}, tuple(self.messages), tuple(planned),
            {key: index[v] for key, v in self.steps.fed.items() if v in index}, tuple(self.steps.readers),
        )  # fmt: skip

    @staticmethod
    def _renumber(step: Step, index: Mapping[int, int]) -> Step:
        return replace(step, inputs=tuple(index[v] for v in step.inputs), outputs=tuple(index[v] for v in step.outputs))

    # ---- segments ----

    def _segments(self) -> list[tuple[bool, list[int]]]:
        """Runs of rows without a barrier. Even levels are native, odd ones Python's; fed values come before all."""
        level: dict[int, int] = dict.fromkeys(self.steps.fed.values(), -1)
        members: dict[int, list[int]] = {}
        last_impure = 1
        for i, step in enumerate(self.steps.steps):
            inputs = [level[v] for v in reads(step, self.steps) if v in level]
            if isinstance(step.body, PyCall):
                at = _above(max(inputs, default=-1), parity=1)
                if not step.body.pure:  # effects happen in the order of definition
                    at = last_impure = max(at, last_impure)
            elif isinstance(step.body, Native) and step.body.batch_scope:
                at = _above(max(inputs, default=-1), parity=0)
            else:
                at = max(inputs, default=0)
                at = max(0, at + at % 2)
            at = max(at, self._output_level(step, level))
            members.setdefault(at, []).append(i)
            level.update(dict.fromkeys(step.outputs, at))
        compact = {lv: n for n, lv in enumerate(sorted(members))}
        self.segment_of = {v: compact.get(lv, -1) for v, lv in level.items()}
        return [(lv % 2 == 1, members[lv]) for lv in sorted(members)]

    def _output_level(self, step: Step, level: Mapping[int, int]) -> int:
        """The sizes of outputs must be known when their segment starts, so what they depend on comes before."""
        needs: set[int] = set()
        for v in set(self.steps.outputs).intersection(step.outputs):
            for extent in self.values[v].shape:
                leaves(extent, needs)
        return _above(max(level[n] for n in needs), parity=0) if needs else 0

    # ---- memory ----

    def _used_values(self) -> list[int]:
        used = set(self.steps.fed.values()) | set(self.steps.outputs)
        for step in self.steps.steps:
            used |= {*step.inputs, *step.outputs, *reads(step, self.steps)}
        return sorted(used)

    def _memory(self, segments: list[tuple[bool, list[int]]]) -> tuple[int, dict[int, tuple[str, int]]]:
        where: dict[int, tuple[str, int]] = dict.fromkeys(self.steps.fed.values(), ("input", 0))
        roots = self._alias_roots()
        crossing = self._crossing(segments, roots)
        slots = {v: slot for slot, v in enumerate(self.steps.outputs)}
        most = 0
        for python, members in segments:
            order = [(tuple(reads(self.steps.steps[i], self.steps)), self.steps.steps[i].outputs) for i in members]
            lives = last_uses(order, roots)
            scratch = {}
            for i in members:
                step = self.steps.steps[i]
                for v in step.outputs:
                    copies = isinstance(step.body, View) and step.body.may_copy
                    if v in slots:
                        where[v] = ("output", slots[v])
                    elif _aliases(step) and not copies:
                        where[v] = ("alias", 0)
                    elif python or v in crossing:
                        where[v] = ("batch", 0)
                    else:
                        scratch[v] = lives[v]
            buffers, count = share_buffers(scratch, self.share)
            where.update({v: ("scratch", b) for v, b in buffers.items()})
            most = max(most, count)
        return most, where

    def _alias_roots(self) -> dict[int, tuple[int, ...]]:
        """What each view (or row selection) shows."""
        roots: dict[int, tuple[int, ...]] = {}
        for step in self.steps.steps:
            if _aliases(step):
                for v in step.outputs:
                    roots[v] = step.inputs + _other_rows(step)
        return roots

    def _crossing(self, segments: list[tuple[bool, list[int]]], roots: Mapping[int, tuple[int, ...]]) -> set[int]:
        """Values that a later segment reads, directly or through a view."""
        todo: list[int] = []
        for n, (_, members) in enumerate(segments):
            for i in members:
                step = self.steps.steps[i]
                todo += [v for v in reads(step, self.steps) if self.segment_of.get(v, n) < n]
                todo += _other_rows(step)
        for v in self.steps.outputs:
            needs: set[int] = set()
            for extent in self.values[v].shape:
                leaves(extent, needs)
            todo += [need for need in needs if self.segment_of.get(need, 0) < self.segment_of[v]]
        found: set[int] = set()
        while todo:
            v = todo.pop()
            if v not in found:
                found.add(v)
                todo += roots.get(v, ())
        return found

    # ---- native code ----

    def _emit_step(self, step: Step, index: Mapping[int, int]) -> None:
        code = Compiler(lambda v: index[v])
        checks = []
        for check in step.checks:
            self.messages.append((check.text, check.node))
            checks.append(
                (code.register(check.condition), len(self.messages) - 1, [code.register(v) for v in check.values])
            )
        params = _Params(code)
        kernel = None if isinstance(step.body, PyCall) else self._kernel(step, params, index)
        extents = [[code.register(e) if not _own_dim(e, v) else -1 for e in self.values[v].shape] for v in step.outputs]
        own = isinstance(step.body, PyCall) or _aliases(step) or (isinstance(step.body, Native) and step.body.allocates)
        if own:
            extents = [[] for _ in step.outputs]
        frames = -1 if step.frames is None else code.register(step.frames)
        guards = [(index[v], wanted) for v, wanted in step.guards]
        ordered = isinstance(step.body, PyCall) and not step.body.pure
        self.native.add_step(
            kernel, [index[v] for v in step.inputs], [index[v] for v in step.outputs], code.code, code.consts,
            params.registers, extents, checks, guards, frames, [int(f) for f in step.framed], ordered,
        )  # fmt: skip

    def _kernel(self, step: Step, params: _Params, index: Mapping[int, int]) -> Any:
        body = step.body
        kernels = _native.kernels
        if isinstance(body, View):
            return kernels.view(_chain(body.ops, params), body.may_copy)
        if isinstance(body, Native):
            for p in body.params:
                params.add(p)
            attrs = tuple(index[a] for a in body.attrs) if body.kernel == "other_row" else body.attrs
            return getattr(kernels, body.kernel)(*attrs)
        assert isinstance(body, Stage)
        sampler = [params.add(p) for p in body.sampler.params] if body.sampler else []
        compiled = compile_program(body.program, _OP_CODES)
        uniforms = [params.add(u) for u in compiled.uniforms]
        code, in_types = compiled.code, [int(self.values[v].dtype) for v in step.inputs]
        return kernels.stage(
            _SAMPLERS[body.sampler.kind] if body.sampler else 0, sampler, code, body.channels, in_types,
            [int(self.values[v].dtype) for v in step.outputs], uniforms,
            [_chain(ops, params) for ops in body.pre], [_chain(ops, params) for ops in body.post],
        )  # fmt: skip

    def _emit_output(self, v: int, index: Mapping[int, int]) -> PlannedOutput:
        value = self.values[v]
        fixed = all(is_static(e) for e in value.shape)
        code = Compiler(lambda leaf: index[leaf])
        extents = [] if fixed else [code.register(e) for e in value.shape]
        shape = [int(e) for e in value.shape] if fixed else []  # type: ignore[arg-type]
        self.native.add_output(index[v], fixed, False, shape, code.code, code.consts, extents)
        return PlannedOutput(value.dtype, value.layout, tuple(shape) if fixed else None, value.rank)


def _above(level: int, parity: int) -> int:
    """The smallest level of a parity that is above ``level``."""
    return level + 1 if (level + 1) % 2 == parity else level + 2


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
