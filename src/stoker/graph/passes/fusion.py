# SPDX-License-Identifier: Apache-2.0
"""Fusion: chains of stages and the views between them become one stage, so that pixels stay in registers and cache.

The pass repeats two rewrites until nothing changes. Both depend only on the steps' bodies:

* **absorb**: a stage is followed by a view that loses no element (flip, transpose; on a GPU also a reshape). The stage
  stores through the view's inverse.
* **join**: a stage is followed, possibly through such views, by a pointwise stage that is its only reader. The second
  program replaces the first one's store. The joined stage runs in the first one's iteration space. The second one's
  other ports are transformed by the inverse of the views, and its coordinates are computed from the first one's.

Rounding is part of the programs (casts), so a value that was rounded between two operators still is.

An error of a kernel belongs to the node of its step, which is that of the last stage that was joined. So a stage whose
program may fail, by a division of integers, is only ever the last one. Checks have nodes of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...contract.expr import Expr, Scalar, identity, is_static, same
from ...contract.pixel import (
    Px,
    channel_count,
    coordinate,
    coordinates_of,
    on_axes,
    rewrite,
    size,
    tables_of,
    uniform,
    visit,
)
from ...contract.step import MAX_PORTS, Stage, Step, StepList, View, ViewOp
from ...contract.types import DType
from ..lower import number_sources

MAX_PROGRAM = 256  # operations of a joined program; registers of larger ones do not fit the first-level cache


def fuse(steps: StepList) -> StepList:
    """Fuse all chains of stages."""
    if sum(isinstance(step.body, (Stage, View)) for step in steps.steps) < 2:
        return steps
    work = _Work(steps)
    for i in range(len(work.steps)):
        # A step that absorbs another one also gets its inputs. Earlier steps are unaffected: they gain no readers.
        while work.absorb(i) or work.join(i):
            pass
    return StepList([s for s in work.steps if s is not None], steps.values, steps.outputs, steps.fed, steps.readers)


class _Work:
    def __init__(self, steps: StepList) -> None:
        self.list = steps
        self.steps: list[Step | None] = list(steps.steps)
        # Outputs of the pipeline and values that numbers (windows, uniforms) are read from must stay in memory.
        self.kept = set(steps.outputs)
        self.maker: dict[int, int] = {}
        self.users: Counter[int] = Counter()  # a step that absorbs another one reads that one's inputs
        for i, step in enumerate(steps.steps):
            self.kept |= number_sources(step, steps)
            self.maker.update(dict.fromkeys(step.outputs, i))
            self.users.update((*step.inputs, *(v for v, _ in step.guards)))

    def _sole_stage(self, value: int, reader: Step) -> int | None:
        """Return the single-output stage that makes ``value`` if ``reader`` is its only reader; else None."""
        if value in self.kept or self.users[value] != 1:
            return None
        i = self.maker.get(value)
        step = self.steps[i] if i is not None else None
        if step is None or not isinstance(step.body, Stage) or len(step.outputs) != 1 or may_divide_by_zero(step.body):
            return None
        return i if step.guards == reader.guards and step.on_gpu == reader.on_gpu else None

    def absorb(self, i: int) -> bool:
        """Absorb step ``i``, a view of a stage's output, into that stage's store."""
        view = self.steps[i]
        if view is None or not isinstance(view.body, View) or view.body.may_copy:
            return False
        m = self._sole_stage(view.inputs[0], view)
        back = _inverse(view.body.ops)
        if back is None:
            back = self._reshaped_back(view)
        if m is None or back is None:
            return False
        stage = self.steps[m]
        assert stage is not None and isinstance(stage.body, Stage)
        if stage.body.reshapes and any(op.kind != "reshape" for op in back):
            return False  # the store's reshape needs a contiguous output
        if stage.frames is not None:
            shifted = _without_frame_axis(back)
            if shifted is None:
                return False
            back = shifted
        body = replace(stage.body, post=(back + stage.body.post[0],))
        self._put(i, m, replace(stage, body=body, outputs=view.outputs, checks=stage.checks + view.checks))
        return True

    def _reshaped_back(self, view: Step) -> tuple[ViewOp, ...] | None:
        """Return the inverse of a reshape on a GPU, where a stage's output is contiguous; None for other views.

        On the CPU a reshape copies only what is not contiguous. A reshape with checks stays: they must hold before an
        output of its extents is allocated.
        """
        assert isinstance(view.body, View)
        source = self.list.values[view.inputs[0]]
        if not view.on_gpu or view.checks or [op.kind for op in view.body.ops] != ["reshape"] or source.counted:
            return None
        return (ViewOp("reshape", list=tuple(source.shape)),)

    def join(self, i: int) -> bool:
        """Join step ``i``, a pointwise stage, with the stage that makes one of its inputs."""
        second = self.steps[i]
        if second is None or not isinstance(second.body, Stage) or second.body.interpolator is not None:
            return False
        tables = _tables(second.body)
        for port, value in enumerate(second.inputs):
            m = None if port in tables else self._sole_stage(value, second)
            first = self.steps[m] if m is not None else None
            joined = self._joined(first, second, port) if first is not None else None
            if m is not None and joined is not None:
                self._put(i, m, joined)
                return True
        return False

    def _put(self, i: int, taken: int, step: Step) -> None:
        """Put ``step`` at ``i`` in place of the steps at ``i`` and ``taken``."""
        gone = self.steps[taken]
        assert gone is not None
        self.users.subtract(v for v, _ in gone.guards)  # both steps have the same guards
        self.steps[i], self.steps[taken] = step, None

    def _joined(self, first: Step, second: Step, port: int) -> Step | None:
        pair = self._framed_alike(first, second)
        if pair is None:
            return None
        first, second = pair
        a, b = first.body, second.body
        assert isinstance(a, Stage) and isinstance(b, Stage)
        if not self._same_space(first, second, port):
            return None
        # Views from the first stage's iteration space to the second one's.
        back = _inverse(a.post[0])
        if back is None:
            return None
        forth = _simplify(back + b.pre[port])
        turn = _inverse(forth)
        if turn is None:
            return None
        rank = self.list.values[first.outputs[0]].rank - (1 if first.frames is not None else 0)
        rank += _rank_change(a.post[0])
        if (a.channels or b.channels) and not _keeps_last(forth, rank):
            return None
        if turn and not self._full_rank(second, port):
            return None
        tables = _tables(b)
        b = _in_space(b, _coordinates_after(forth, rank))
        program, channels = _compose(a, b, port, len(first.inputs), rank)
        if program is None or size([x for p in program for x in p]) > MAX_PROGRAM:
            return None
        others = [k for k in range(len(second.inputs)) if k != port]
        axes = coordinates_of([x for p in program for x in p])
        if len(first.inputs) + len(others) + len(axes) > MAX_PORTS:
            return None
        body = Stage(
            program,
            # A scalar and a table have no axes to transform.
            a.pre
            + tuple(
                b.pre[k] + (turn if self.list.values[second.inputs[k]].rank and k not in tables else ()) for k in others
            ),
            tuple(p + turn for p in b.post),
            channels,
            a.interpolator,
        )
        framed = first.framed + tuple(second.framed[k] for k in others) if first.frames is not None else ()
        return replace(
            second,
            body=body,
            inputs=first.inputs + tuple(second.inputs[k] for k in others),
            checks=first.checks + second.checks,
            frames=first.frames,
            framed=framed,
        )

    def _framed_alike(self, first: Step, second: Step) -> tuple[Step, Step] | None:
        """Make both stages run frame by frame if one does. Return None if that is impossible."""
        frames = first.frames if first.frames is not None else second.frames
        if frames is None:
            return first, second
        a, b = self._by_frame(first, frames), self._by_frame(second, frames)
        return None if a is None or b is None else (a, b)

    def _by_frame(self, step: Step, frames: Scalar) -> Step | None:
        """Return the stage in its frame-by-frame form; None if its views change the first axis."""
        if step.frames is not None:
            return step if same(step.frames, frames) else None
        body = step.body
        assert isinstance(body, Stage)
        outs = [self.list.values[v] for v in step.outputs]
        rank = outs[0].rank + _rank_change(body.post[0])
        post = [_without_frame_axis(ops) for ops in body.post]
        pre, framed, tables = [], [], _tables(body)
        for port, (v, ops) in enumerate(zip(step.inputs, body.pre, strict=True)):
            x = self.list.values[v]
            framed.append(port not in tables and x.rank + _rank_change(ops) == rank)
            if framed[-1] and not same(x.shape[0], frames):
                return None
            pre.append(_without_frame_axis(ops) if framed[-1] else ops)
        if None in (*pre, *post) or not all(same(o.shape[0], frames) for o in outs):
            return None
        axes = [uniform(Expr("frame"), DType.INT32), *map(coordinate, range(rank - 1))]
        cut = replace(_in_space(body, axes), pre=tuple(pre), post=tuple(post))  # type: ignore[arg-type]
        return replace(step, body=cut, frames=frames, framed=tuple(framed))

    def _same_space(self, first: Step, second: Step, port: int) -> bool:
        """Return whether the second stage runs over exactly the elements that the first one computes."""
        if first.frames is not None and not second.framed[port]:
            return False
        assert isinstance(second.body, Stage)
        value = self.list.values[second.inputs[port]]
        stored = [self.list.values[v] for v in second.outputs]
        # A broadcast input would be computed once per element of the larger shape, or from too few elements.
        return all(_same_extents(value.shape, out.shape, bool(second.body.channels)) for out in stored)

    def _full_rank(self, step: Step, port: int) -> bool:
        assert isinstance(step.body, Stage)
        own, tables = self.list.values[step.inputs[port]], _tables(step.body)
        others = [self.list.values[v] for k, v in enumerate(step.inputs) if k != port and k not in tables]
        return all(o.rank == 0 or list(map(identity, o.shape)) == list(map(identity, own.shape)) for o in others)


def _tables(body: Stage) -> set[int]:
    """Return the inputs that a stage looks elements up in."""
    return tables_of([x for port in body.program for x in port])


def may_divide_by_zero(body: Stage) -> bool:
    """Return whether a program divides integers by anything but a constant other than zero."""
    found: list[Px] = []
    for port in body.program:
        for x in port:
            visit(x, lambda n: found.append(n) if n.op in ("idiv", "mod") else None, set())
    return any(not _is_nonzero(n.args[1]) for n in found)


def _is_nonzero(x: Px) -> bool:
    if x.op != "uniform" or not is_static(x.value):
        return False
    limits = np.iinfo(x.dtype.numpy)
    return limits.min <= x.value <= limits.max and int(x.value) != 0


def _same_extents(first: Sequence[Scalar], out: Sequence[Scalar], may_recount: bool) -> bool:
    """Return whether the extents are equal in any order (for a transposition), ignoring the number of channels on
    request.
    """
    a, b = list(map(identity, first)), list(map(identity, out))
    if sorted(a) == sorted(b):
        return True
    return may_recount and len(a) == len(b) and sum(x != y for x, y in zip(a, b, strict=True)) == 1


def _inverse(ops: Sequence[ViewOp]) -> tuple[ViewOp, ...] | None:
    undone = []
    for op in reversed(ops):
        back = op.inverse()
        if back is None:
            return None
        undone.append(back)
    return tuple(undone)


def _simplify(ops: Sequence[ViewOp]) -> tuple[ViewOp, ...]:
    """Remove neighbouring transpositions that cancel each other."""
    kept: list[ViewOp] = []
    for op in ops:
        if op.kind == "permute" and kept and kept[-1].kind == "permute":
            order = tuple(kept[-1].list[j] for j in op.list)
            kept.pop()
            if order != tuple(range(len(order))):
                kept.append(ViewOp("permute", list=order))
        elif not (op.kind == "permute" and op.list == tuple(range(len(op.list)))):
            kept.append(op)
    return tuple(kept)


def _keeps_last(ops: Sequence[ViewOp], rank: int) -> bool:
    """Return whether the last axis stays last and unchanged."""
    at = rank - 1
    for op in ops:
        if op.kind == "permute":
            at = op.list.index(at)
        elif op.axis == at:
            return False
    return at == rank - 1


def _rank_change(ops: Sequence[ViewOp]) -> int:
    return sum({"insert": 1, "drop": -1}.get(op.kind, 0) for op in ops)


def _coordinates_after(ops: Sequence[ViewOp], rank: int) -> list[Px]:
    """Return the coordinates of the space after ``ops`` in terms of those before. The operations lose no element."""
    axes = [coordinate(k) for k in range(rank)]
    for op in ops:
        if op.kind == "permute":
            axes = [axes[k] for k in op.list]
        else:  # a slice that keeps every element has a step of 1 or -1
            start, step = uniform(op.start, DType.INT32), uniform(op.step, DType.INT32)
            axes[op.axis] = (axes[op.axis] - start) * step
    return axes


def _in_space(body: Stage, axes: Sequence[Px]) -> Stage:
    """Return a stage whose program uses the coordinates of another iteration space."""
    if not coordinates_of([x for port in body.program for x in port]):
        return body
    memo: dict[int, Px] = {}
    return replace(body, program=tuple(tuple(on_axes(x, axes, memo) for x in port) for port in body.program))


def _without_frame_axis(ops: Sequence[ViewOp]) -> tuple[ViewOp, ...] | None:
    """Return the views for one frame; None if they change axis 0."""
    shifted = []
    for op in ops:
        if op.kind == "permute":
            if op.list[0] != 0:
                return None
            shifted.append(ViewOp("permute", list=tuple(j - 1 for j in op.list[1:])))
        elif op.axis == 0:
            return None
        else:
            shifted.append(replace(op, axis=op.axis - 1))
    return tuple(shifted)


def _compose(
    a: Stage, b: Stage, port: int, first_inputs: int, rank: int
) -> tuple[tuple[tuple[Px, ...], ...] | None, int]:
    """Return the second program with its loads of ``port`` replaced by the first one's expressions; None if they do not
    fit.

    ``rank`` is that of the iteration space. Its last axis holds the channels, if there are any.
    """
    first_program = a.program[0]
    memos: dict[int, dict[int, Px]] = {}

    def renumber(k: int) -> int:
        return first_inputs + (k if k < port else k - 1)

    def put(x: Px, channel: int) -> Px:
        def leaf(n: Px) -> Px | None:
            if n.op not in ("load", "table"):
                return None
            at = n.channel if n.channel >= 0 or n.op == "table" else channel
            if n.port != port:
                return replace(n, port=renumber(n.port), channel=at)
            if a.channels:
                return first_program[at]
            return first_program[0] if at < 0 else _on_channel(first_program[0], at, rank, memos)

        return rewrite(x, leaf, {})

    if not a.channels and not b.channels:
        return tuple((put(p[0], -1),) for p in b.program), 0
    if b.channels:
        reads = [n for p in b.program for x in p for n in _loads(x) if n.port == port]
        if a.channels and any(n.channel >= len(first_program) for n in reads):
            return None, 0
        program = tuple(tuple(put(x, c) for c, x in enumerate(p)) for p in b.program)
    else:
        program = tuple(tuple(put(_at_channel(p[0], c, rank), c) for c in range(len(first_program))) for p in b.program)
    return program, max(map(channel_count, program))


def _on_channel(x: Px, channel: int, rank: int, memos: dict[int, dict[int, Px]]) -> Px:
    """Return a flat expression applied to one channel."""
    memo = memos.setdefault(channel, {})
    loaded = rewrite(x, lambda n: replace(n, channel=channel) if n.op == "load" else None, memo)
    return _at_channel(loaded, channel, rank)


def _at_channel(x: Px, channel: int, rank: int) -> Px:
    """Return a flat expression with a constant for the coordinate of the last axis, which becomes the channel axis."""
    if rank - 1 not in coordinates_of([x]):
        return x
    return on_axes(x, [*map(coordinate, range(rank - 1)), uniform(channel, DType.INT32)])


def _loads(x: Px) -> list[Px]:
    found: list[Px] = []
    visit(x, lambda n: found.append(n) if n.op == "load" else None)
    return found
