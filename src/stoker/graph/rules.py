# SPDX-License-Identifier: Apache-2.0
"""Rules of the four bodies of steps: ports, element types, ranks and extents.

A broken rule raises :class:`RuleViolation`, whose text says what was expected. Two extents are compared only if both
are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..contract.expr import Expr, Scalar, is_static
from ..contract.pixel import Px, coordinates_of, tables_of, visit
from ..contract.step import (
    Interpolator,
    Native,
    OutputMemory,
    OwnKernel,
    PyCall,
    Stage,
    Step,
    Value,
    View,
    ViewOp,
    counts_of,
)  # fmt: skip
from ..contract.types import DType

Shape = tuple[Scalar, ...]
_INTERPOLATOR_NUMBERS = {"resample": 7, "affine": 9, "project_nearest": 12, "project_linear": 12, "project_cubic": 12}
_SAMPLED_RANK = 3


class RuleViolation(Exception):
    """A step breaks a rule of its body."""


def check_step(step: Step, values: Mapping[int, Value]) -> None:
    """Raise RuleViolation unless the step keeps the rules of its body."""
    for v in (*step.inputs, *step.outputs):
        _require(v in values, f"%{v} is no value")
    inputs, outputs = ([values[v] for v in some] for some in (step.inputs, step.outputs))
    for x in outputs:
        _check_value(x)
        _check_count(step, x, values)
    # Python code may run only for its effect.
    _require(bool(outputs) or isinstance(step.body, PyCall), "expected at least one output")
    _RULES[type(step.body)](step, step.body, inputs, outputs)


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise RuleViolation(text)


def _check_value(x: Value) -> None:
    if x.layout and len(x.layout) != x.rank:
        raise RuleViolation(f"layout {x.layout!r} does not name {x.rank} axes")
    if not all(isinstance(e, Expr) or (is_static(e) and e >= 0 and float(e).is_integer()) for e in x.shape):
        raise RuleViolation(f"expected extents that are whole numbers, got {x.shape}")


def _check_count(step: Step, x: Value, values: Mapping[int, Value]) -> None:
    """Check that a counted extent has a bound, and a count that is an output of the kernel that computes it."""
    if x.counted is None:
        return
    count, bound = values.get(x.counted.count), x.counted.max_output
    good = count is not None and count.dtype == DType.INT32 and count.rank == 0
    _require(good and x.rank > 0, f"expected an axis of %{x.id} and a count of type int32 without axes")
    whole = isinstance(bound, Expr) or (is_static(bound) and bound >= 0 and float(bound).is_integer())
    _require(whole, f"expected max_output to be a whole number, got {bound!r}")
    if x.counted.count not in step.outputs:
        _require(
            step.on_gpu, f"expected %{x.id} to have its own first extent on the CPU, got the count of another step"
        )
        return
    body = step.body
    _require(isinstance(body, Native), "expected a native kernel that writes the count")
    assert isinstance(body, Native)
    _require(len(counts_of(step, values)) == 1, "expected one count of a kernel")
    plain = body.memory == OutputMemory() and body.window is None and body.twin is None and step.frames is None
    _require(plain, "expected a kernel with a count to write whole rows into memory reserved for it, without a twin")
    own = body.gpu is None or isinstance(body.gpu.kernel, OwnKernel)
    _require(own and not body.codec, "expected a kernel with a count to have a form of its own for GPUs, or none")


# ---- views ----


def _check_view(step: Step, body: View, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    _require(len(inputs) == len(outputs) == 1, "expected one input and one output of a view")
    (x,), (out,) = inputs, outputs
    _require(x.dtype == out.dtype, f"expected a view of {x.dtype}, got one as {out.dtype}")
    _require(step.frames is None, "expected a view of all frames together")
    _require_alike(_viewed(x.shape, body.ops), out.shape, "the view gives")


def _viewed(shape: Shape, ops: Sequence[ViewOp]) -> Shape:
    """Return the shape after view operations."""
    for op in ops:
        _require(op.kind in _VIEWS, f"{op!r} is no view operation")
        shape = _VIEWS[op.kind](shape, op)
    return shape


def _sliced(shape: Shape, op: ViewOp) -> Shape:
    _require_axis(op, len(shape))
    n, (start, step, extent) = shape[op.axis], (op.start, op.step, op.extent)
    if all(map(is_static, (n, start, step, extent))) and extent > 0:
        last = start + step * (extent - 1)
        _require(0 <= start < n and 0 <= last < n, f"{op!r} leaves an axis of {n} elements")
    if op.bijective and is_static(n) and is_static(extent):
        _require(n == extent, f"{op!r} says that it keeps all of {n} elements")
    return (*shape[: op.axis], extent, *shape[op.axis + 1 :])


def _permuted(shape: Shape, op: ViewOp) -> Shape:
    _require(sorted(op.list) == list(range(len(shape))), f"{op!r} is no order of {len(shape)} axes")
    return tuple(shape[i] for i in op.list)


def _inserted(shape: Shape, op: ViewOp) -> Shape:
    _require_axis(op, len(shape) + 1)
    return (*shape[: op.axis], 1, *shape[op.axis :])


def _dropped(shape: Shape, op: ViewOp) -> Shape:
    _require_axis(op, len(shape))
    n = shape[op.axis]
    _require(not is_static(n) or n == 1, f"{op!r} drops an axis of {n} elements")
    return (*shape[: op.axis], *shape[op.axis + 1 :])


def _reshaped(shape: Shape, op: ViewOp) -> Shape:
    if all(map(is_static, (*shape, *op.list))):
        had, has = _count(shape), _count(op.list)
        _require(had == has, f"{op!r} makes {has} elements of {had}")
    return tuple(op.list)


_VIEWS: dict[str, Callable[[Shape, ViewOp], Shape]] = {
    "slice": _sliced, "permute": _permuted, "insert": _inserted, "drop": _dropped, "reshape": _reshaped,
}  # fmt: skip


def _require_axis(op: ViewOp, rank: int) -> None:
    _require(0 <= op.axis < rank, f"{op!r} names none of {rank} axes")


def _count(shape: Sequence[Any]) -> int:
    count = 1
    for n in shape:
        count *= int(n)
    return count


def _require_alike(found: Shape, wanted: Shape, what: str) -> None:
    """Require equal ranks, and equal extents where both are numbers."""
    alike = len(found) == len(wanted)
    alike = alike and all(a == b for a, b in zip(found, wanted, strict=True) if is_static(a) and is_static(b))
    if not alike:
        raise RuleViolation(f"{what} {list(found)}, its value has {list(wanted)}")


# ---- stages ----


def _check_stage(step: Step, body: Stage, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    _require(len(body.pre) == len(inputs), f"expected views for {len(inputs)} inputs, got {len(body.pre)}")
    _require(
        len(body.post) == len(body.program) == len(outputs),
        f"expected views and programs for {len(outputs)} outputs, got {len(body.post)} and {len(body.program)}",
    )
    framed = (False,) * len(inputs)
    if step.frames is not None:
        _require(len(step.framed) == len(inputs), f"expected {len(inputs)} marks of framed inputs, got {step.framed}")
        framed = step.framed
    spaces = [_viewed(_shape_of(x, f), ops) for x, f, ops in zip(inputs, framed, body.pre, strict=True)]
    stored = [_viewed(_shape_of(x, step.frames is not None), ops) for x, ops in zip(outputs, body.post, strict=True)]
    _check_space(body, spaces, stored)
    if body.interpolator is not None:
        _check_interpolator(body.interpolator, spaces, stored)
    for port, out in zip(body.program, outputs, strict=True):
        _check_program(body, port, inputs, out, len(stored[0]))


def _shape_of(x: Value, framed: bool) -> Shape:
    """Return the shape that a stage sees: that of a frame if the stage runs frame by frame."""
    _require(not framed or x.rank > 0, f"%{x.id} has no axis of frames")
    return x.shape[1:] if framed else x.shape


def _check_space(body: Stage, spaces: Sequence[Shape], stored: Sequence[Shape]) -> None:
    """Require that all outputs have one iteration space and inputs broadcast to it.

    Programs may change the channel count.
    """
    end = -1 if body.channels else None
    _require(not body.channels or bool(stored[0]), "expected an axis of channels")
    for shape in stored[1:]:
        _require_alike(shape[:end], stored[0][:end], "an output stores")
    tables = tables_of([x for port in body.program for x in port])
    for i, shape in enumerate(spaces):
        if i in tables:
            _require(len(shape) == 1, f"input {i} is a table of {len(shape)} axes, expected 1")
            _require(i > 0 or body.interpolator is None, "expected an image to sample, got a table")
        if i in tables or (i == 0 and body.interpolator is not None):
            continue
        _require(len(shape) <= len(stored[0]), f"input {i} has {len(shape)} axes in a space of {len(stored[0])}")
        for d in range(1 if body.channels else 0, len(shape)):
            a, b = shape[-1 - d], stored[0][-1 - d]
            spreads = not (is_static(a) and is_static(b)) or a in (1, b)
            if not spreads:
                raise RuleViolation(f"input {i} of {list(shape)} does not spread over {list(stored[0])}")


def _check_interpolator(interpolator: Interpolator, spaces: Sequence[Shape], stored: Sequence[Shape]) -> None:
    wanted = _INTERPOLATOR_NUMBERS.get(interpolator.kind)
    _require(wanted is not None, f"{interpolator.kind!r} is no interpolator")
    _require(
        len(interpolator.params) == wanted,
        f"expected {wanted} numbers of {interpolator.kind}, got {len(interpolator.params)}",
    )
    _require(bool(spaces), "expected an input that is sampled")
    ranks = [len(spaces[0]), *map(len, stored)]
    _require(set(ranks) == {_SAMPLED_RANK}, f"expected height, width and channels where {interpolator.kind} samples")


def _check_program(body: Stage, port: Sequence[Px], inputs: Sequence[Value], out: Value, rank: int) -> None:
    most = max(body.channels, 1)
    flat = body.channels == 0
    good = len(port) == 1 if flat else 1 <= len(port) <= most
    _require(good, f"expected {'one expression' if flat else f'1 to {most} expressions'} per output, got {len(port)}")
    loads: list[Px] = []
    seen: set[int] = set()
    for x in port:
        _require(x.dtype == out.dtype, f"expected a program of {out.dtype}, got {x.dtype}")
        visit(x, lambda n: loads.append(n) if n.op in ("load", "table") else None, seen)
    tables = tables_of(port)
    for n in loads:
        _require(n.port < len(inputs), f"the program loads from input {n.port} of {len(inputs)}")
        own = inputs[n.port].dtype
        _require(n.dtype == own, f"the program loads {n.dtype} from input {n.port} of {own}")
        if n.op == "table":
            continue
        _require(n.port not in tables, f"input {n.port} is a table and an image")
        fits = n.channel == -1 if flat else 0 <= n.channel < most
        _require(fits, f"the program loads channel {n.channel}, of {body.channels} channels")
    axes = coordinates_of(port)
    _require(max(axes, default=-1) < (rank if flat else rank - 1), f"coordinates of {sorted(axes)} in {rank} axes")


# ---- kernels ----


def _check_native(step: Step, body: Native, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    if body.window is not None:
        _require(outputs[0].rank >= 2, "expected a window in the first two axes of the output")
        _require(all(0 <= i < len(body.params) for i in body.window), f"window {body.window} names no numbers")
    if body.other_rows_of is not None:
        _require(0 <= body.other_rows_of < len(inputs), f"expected an input for other rows, got {body.other_rows_of}")
    memory = body.memory
    _require(not (memory.aliases and memory.allocates), "its output is either an input's memory or memory of its own")
    if inputs and (memory.aliases or memory.passes_on):
        known = {x.dtype for x in inputs}
        _require(outputs[0].dtype in known, f"expected an output that shows one of {known}, got {outputs[0].dtype}")
    _require(inputs != [] or not memory.passes_on, "expected an input to pass on")
    if body.file.gives_file:
        _require(outputs[0].rank == 1, f"expected the bytes of a file, got {outputs[0].rank} axes")
    if step.on_gpu:
        there = body.gpu is not None or memory.aliases or bool(body.codec)
        _require(there, "expected a kernel with a form for GPUs")
    form = body.gpu.kernel if body.gpu else None
    if isinstance(form, OwnKernel):
        least = len(form.passes) + sum(p.max_shared_bytes > 0 for p in form.passes) + 1
        _require(len(body.params) >= least, f"expected {least} numbers for passes and memory, got {len(body.params)}")


def _check_python(step: Step, body: PyCall, inputs: Sequence[Value], outputs: Sequence[Value]) -> None:
    wanted = len(body.layouts) + len(body.edges)
    _require(len(inputs) == wanted, f"expected {wanted} inputs of a Python operator, got {len(inputs)}")
    _require(not step.on_gpu and step.frames is None, "expected Python on the CPU, with whole rows")
    for x, layout in zip(inputs, body.layouts, strict=False):
        _require(not layout or len(layout) == x.rank, f"layout {layout!r} does not name the {x.rank} axes of %{x.id}")


_RULES: dict[type, Callable[[Step, Any, Sequence[Value], Sequence[Value]], None]] = {
    View: _check_view, Stage: _check_stage, Native: _check_native, PyCall: _check_python,
}  # fmt: skip
