# SPDX-License-Identifier: Apache-2.0
"""Analysis of a graph: lowering to steps, passes over the steps, and a separate store step for every output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ..contract.errors import UnsupportedError, message
from ..contract.expr import Expr, is_static
from ..contract.gpu import Target
from ..contract.operator import Operator, Spec
from ..contract.pixel import load
from ..contract.step import Native, Stage, Step, StepList, Value, View, ViewOp, counts_of
from .lower import lower, prune, reads
from .node import Graph
from .passes.decode_window import push_windows
from .passes.equal_steps import merge_equal_steps
from .passes.fusion import fuse
from .passes.inlining import inline_programs
from .passes.joints import join_launches
from .passes.partial_reads import read_parts
from .passes.placement import place, place_steps
from .passes.tiles import join_tiles
from .verify import verify_graph, verify_steps

STEP_PASSES: tuple[tuple[str, Callable[[StepList], StepList]], ...] = (
    ("equal_steps", merge_equal_steps),
    ("decode_window", push_windows),
    ("fusion", fuse),
    ("tiles", join_tiles),
    ("joints", join_launches),
    ("inlining", inline_programs),
)
PARTS = "partial_reads"
PLANES = "planes"
MEMORY = "memory"
PASSES = (*(name for name, _ in STEP_PASSES), PARTS, PLANES, MEMORY)


def transform(
    graph: Graph,
    find: Callable[[str], type[Operator]],
    discovered: Mapping[int, tuple[Spec, ...]] | None = None,
    passes: frozenset[str] = frozenset(PASSES),
    sources: Mapping[int, Any] | None = None,
    target: Target = Target(),  # noqa: B008 - it is frozen
    *,
    outputs_on_cpu: bool = False,
) -> StepList:
    """Return the steps of ``graph`` after all passes named in ``passes``; ``outputs_on_cpu`` as in ``make_plan``.

    Steps are placed on a GPU even if the machine has none, so that every machine refuses a graph for the same reasons.
    """
    steps = lower_and_place(graph, find, discovered, sources, target, outputs_on_cpu=outputs_on_cpu)
    return apply_passes(steps, passes, target)


def lower_and_place(
    graph: Graph,
    find: Callable[[str], type[Operator]],
    discovered: Mapping[int, tuple[Spec, ...]] | None,
    sources: Mapping[int, Any] | None,
    target: Target,
    *,
    outputs_on_cpu: bool,
) -> StepList:
    """Return the steps of ``graph`` with their devices. Arguments as in :func:`transform`."""
    verify_graph(graph)
    steps = lower(graph, find, discovered or {}, sources or {})
    placed = place_steps(steps, graph, place(graph), outputs_on_cpu=outputs_on_cpu)
    return placed if target.places_steps else steps


def apply_passes(steps: StepList, passes: frozenset[str], target: Target) -> StepList:
    """Return placed steps after all passes named in ``passes``."""
    checked: dict[int, Step] = {}
    verify_steps(steps, checked)
    changes = [(step_pass, True) for name, step_pass in STEP_PASSES if name in passes]
    if target.indexed_codecs and PARTS in passes:
        changes.append((partial(read_parts, indexed_codecs=target.indexed_codecs), False))
    for change, leaves_unused in changes:
        changed = change(steps)
        if not _are_same(changed, steps):
            steps = prune(changed) if leaves_unused else changed
            verify_steps(steps, checked)
    return steps


def _are_same(a: StepList, b: StepList) -> bool:
    """Return whether a pass has changed nothing, so that what was pruned and verified before still is."""
    return a is b or (
        len(a.steps) == len(b.steps)
        and all(x is y for x, y in zip(a.steps, b.steps, strict=True))
        and a.outputs == b.outputs
        and (a.values is b.values or a.values == b.values)
        and (a.fed, a.readers, a.placed) == (b.fed, b.readers, b.placed)
    )


def require_gpu(graph: Graph, steps: StepList) -> None:
    """Raise UnsupportedError if a step is placed on a GPU. The text names its node."""
    step = next((s for s in steps.steps if s.on_gpu), None)
    if step is None:
        return
    node = graph.nodes[step.node] if step.node >= 0 else None
    raise UnsupportedError(
        message(
            node.operator.name if node else "pipeline",
            "it is placed on a GPU, and the pipeline has none",
            source=node.source_line if node else None,
            hint='Give the pipeline `device_id=0` (or another GPU\'s number), or `without_gpu="cpu"`, which runs it on '
            "the CPU with the same results",
        )
    )


def end_in_stores(steps: StepList) -> StepList:
    """Give every output a store step of its own: views, fed values and values with readers are copied.

    Outputs that are parts of what a kernel allocates, such as the bytes of a record, need none: the kernel may allocate
    in the output's memory. On a GPU the store reads through the views that only it reads: their extents are then known
    before the device's part begins, which is one segment less.
    """
    makers = {v: s for s in steps.steps for v in s.outputs}
    is_on_host = not any(s.on_gpu for s in steps.steps)
    placed: dict[int, int] = {}
    values, result, outputs = dict(steps.values), list(steps.steps), []
    readers = Counter(steps.outputs)
    if any(s.on_gpu and isinstance(s.body, View) for s in steps.steps):
        readers.update(v for s in steps.steps for v in reads(s, steps))
    seen_through: set[int] = set()  # outputs of views that only a store reads
    for v in steps.outputs:
        step = makers.get(v)
        root = _allocated_root(v, makers) if is_on_host and v not in outputs else None
        if root is not None:
            placed[v] = root
        elif v in outputs or not _stores(step, v, values):
            source = values[v]
            shape = tuple(e if is_static(e) else Expr("dim", v, i) for i, e in enumerate(source.shape))
            # On a GPU all that is reserved is copied: how much of it is there, the loop learns at the batch's end.
            counted = source.counted if step and step.on_gpu else None
            copy = Value(len(values), source.dtype, shape, source.layout, counted=counted)
            values[copy.id] = copy
            # Rows that a condition excludes have nothing to copy, and no step reads their outputs.
            guards = step.guards if step else ()
            node, on_gpu = (step.node, step.on_gpu) if step else (-1, False)
            read, ops, gone = _through_views(v, makers, readers) if counted is None else (v, (), set())
            if gone:
                values[copy.id] = replace(copy, shape=source.shape)
                seen_through |= gone
            body = Stage(((load(source.dtype),),), (ops,), ((),))
            result.append(Step(body, (read,), (copy.id,), node, guards=guards, on_gpu=on_gpu))
            v = copy.id
        outputs.append(v)
    result = [s for s in result if seen_through.isdisjoint(s.outputs)]
    return StepList(result, values, outputs, steps.fed, steps.readers, placed)


def _through_views(
    v: int, makers: Mapping[int, Step], readers: Mapping[int, int]
) -> tuple[int, tuple[ViewOp, ...], set[int]]:
    """Return the value of which ``v`` is a view on a GPU, the view's operations, and the values of views in between.

    A view with other readers ends the chain. So does one with checks: they must hold before an output of its extents
    is allocated.
    """
    ops: tuple[ViewOp, ...] = ()
    gone: set[int] = set()
    while (step := makers.get(v)) is not None and isinstance(step.body, View) and step.on_gpu:
        if readers[v] != 1 or step.body.may_copy or step.checks or step.guards or step.frames is not None:
            break
        ops = step.body.ops + ops
        gone.add(v)
        v = step.inputs[0]
    return v, ops, gone


def _allocated_root(v: int, makers: Mapping[int, Step]) -> int | None:
    """Return the value that a kernel allocates and ``v`` is a view of, or ``v`` itself; None if there is none."""
    step = makers.get(v)
    if step is None or step.guards or step.frames is not None:
        return None
    body = step.body
    if isinstance(body, Native) and (body.memory.passes_on or body.other_rows_of is not None):
        return None
    if isinstance(body, Native) and body.memory.allocates:
        return v if v == step.outputs[0] else None
    is_view = isinstance(body, View) or (isinstance(body, Native) and body.memory.aliases)
    return _allocated_root(step.inputs[0], makers) if is_view and step.inputs else None


def _stores(step: Step | None, v: int, values: Mapping[int, Value]) -> bool:
    """Return whether ``step`` can write value ``v`` directly to an output's memory."""
    if step is None or step.guards or not isinstance(step.body, (Stage, Native)):
        return False
    if isinstance(step.body, Native) and (step.body.memory.aliases or step.body.memory.allocates):
        return False
    if step.on_gpu and v in counts_of(step, values):
        return False  # it has memory that comes back to the host
    return not any(isinstance(e, Expr) and e.reads.intersection(step.outputs) for e in values[v].reserved)
