# SPDX-License-Identifier: Apache-2.0
"""Fusion: chains of stages and the views between them become one stage, so that pixels stay in registers and cache.

Two rewrites, until nothing changes; both ask only what a step's body is:

* **absorb**: a stage, then a view that loses nothing (flip, transpose): the stage stores through the view's inverse;
* **join**: a stage, then (through such views) a pointwise stage that is its only reader: the second program is put in
  place of the first one's store. The joined stage runs in the first one's iteration space, so the second one's other
  ports are turned by the inverse of the views between.

Rounding is part of the programs (casts), so a value that was rounded between two operators still is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ...contract.expr import Scalar, identity, same
from ...contract.pixel import Px, channel_count, rewrite, size, visit
from ...contract.step import Stage, Step, StepList, View, ViewOp
from ..lower import number_sources

MAX_PROGRAM = 256  # operations of a joined program; past that, registers no longer fit the first-level cache
MAX_PORTS = 8


def fuse(steps: StepList) -> StepList:
    """Fuse all chains."""
    work = _Work(steps)
    for i in range(len(work.steps)):
        # What a step takes over brings its own inputs along. Steps before it stay as they are: nothing new reads them.
        while work.absorb(i) or work.join(i):
            pass
    return StepList([s for s in work.steps if s is not None], steps.values, steps.outputs, steps.fed, steps.readers)


class _Work:
    def __init__(self, steps: StepList) -> None:
        self.list = steps
        self.steps: list[Step | None] = list(steps.steps)
        # What leaves the pipeline, and what numbers (windows, uniforms) are read from, must stay in memory.
        self.kept = set(steps.outputs)
        self.maker: dict[int, int] = {}
        self.users: Counter[int] = Counter()  # a step that takes another one over reads what that one read
        for i, step in enumerate(steps.steps):
            self.kept |= number_sources(step, steps)
            self.maker.update(dict.fromkeys(step.outputs, i))
            self.users.update((*step.inputs, *(v for v, _ in step.guards)))

    def _sole_stage(self, value: int, reader: Step) -> int | None:
        """The single-output stage that makes ``value`` for ``reader`` alone."""
        if value in self.kept or self.users[value] != 1:
            return None
        i = self.maker.get(value)
        step = self.steps[i] if i is not None else None
        if step is None or not isinstance(step.body, Stage) or len(step.outputs) != 1:
            return None
        return i if step.guards == reader.guards and step.on_gpu == reader.on_gpu else None

    def absorb(self, i: int) -> bool:
        """Step ``i``, a view of a stage's output, becomes that stage's way to store."""
        view = self.steps[i]
        if view is None or not isinstance(view.body, View) or view.body.may_copy:
            return False
        m = self._sole_stage(view.inputs[0], view)
        back = _inverse(view.body.ops)
        if m is None or back is None:
            return False
        stage = self.steps[m]
        assert stage is not None and isinstance(stage.body, Stage)
        if stage.frames is not None:
            shifted = _without_frame_axis(back)
            if shifted is None:
                return False
            back = shifted
        body = replace(stage.body, post=(back + stage.body.post[0],))
        self._put(i, m, replace(stage, body=body, outputs=view.outputs, checks=stage.checks + view.checks))
        return True

    def join(self, i: int) -> bool:
        """Step ``i``, a pointwise stage, takes over the stage that makes one of its inputs."""
        second = self.steps[i]
        if second is None or not isinstance(second.body, Stage) or second.body.sampler is not None:
            return False
        for port, value in enumerate(second.inputs):
            m = self._sole_stage(value, second)
            first = self.steps[m] if m is not None else None
            joined = self._joined(first, second, port) if first is not None else None
            if m is not None and joined is not None:
                self._put(i, m, joined)
                return True
        return False

    def _put(self, i: int, taken: int, step: Step) -> None:
        """``step`` stands at ``i`` for itself and for the one at ``taken``."""
        gone = self.steps[taken]
        assert gone is not None
        self.users.subtract(v for v, _ in gone.guards)  # those of the two are the same
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
        # From the first one's iteration space to the second one's.
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
        program, channels = _compose(a, b, port, len(first.inputs))
        if program is None or size([x for p in program for x in p]) > MAX_PROGRAM:
            return None
        others = [k for k in range(len(second.inputs)) if k != port]
        if len(first.inputs) + len(others) > MAX_PORTS:
            return None
        body = Stage(
            program,
            # A scalar has no axes to turn.
            a.pre + tuple(b.pre[k] + (turn if self.list.values[second.inputs[k]].rank else ()) for k in others),
            tuple(p + turn for p in b.post),
            channels,
            a.sampler,
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
        """Both stages frame by frame if one is; None if that cannot be."""
        frames = first.frames if first.frames is not None else second.frames
        if frames is None:
            return first, second
        a, b = self._by_frame(first, frames), self._by_frame(second, frames)
        return None if a is None or b is None else (a, b)

    def _by_frame(self, step: Step, frames: Scalar) -> Step | None:
        """The same stage frame by frame, if its views leave the first axis alone."""
        if step.frames is not None:
            return step if same(step.frames, frames) else None
        body = step.body
        assert isinstance(body, Stage)
        outs = [self.list.values[v] for v in step.outputs]
        rank = outs[0].rank + _rank_change(body.post[0])
        post = [_without_frame_axis(ops) for ops in body.post]
        pre, framed = [], []
        for v, ops in zip(step.inputs, body.pre, strict=True):
            x = self.list.values[v]
            framed.append(x.rank + _rank_change(ops) == rank)
            if framed[-1] and not same(x.shape[0], frames):
                return None
            pre.append(_without_frame_axis(ops) if framed[-1] else ops)
        if None in (*pre, *post) or not all(same(o.shape[0], frames) for o in outs):
            return None
        cut = replace(body, pre=tuple(pre), post=tuple(post))  # type: ignore[arg-type]
        return replace(step, body=cut, frames=frames, framed=tuple(framed))

    def _same_space(self, first: Step, second: Step, port: int) -> bool:
        """Whether the second stage runs over just the elements that the first one makes."""
        if first.frames is not None and not second.framed[port]:
            return False
        assert isinstance(second.body, Stage)
        made = self.list.values[second.inputs[port]]
        stored = [self.list.values[v] for v in second.outputs]
        # A broadcast input would be computed once per element of the larger shape, or from too few.
        return all(_same_extents(made.shape, out.shape, bool(second.body.channels)) for out in stored)

    def _full_rank(self, step: Step, port: int) -> bool:
        own = self.list.values[step.inputs[port]]
        others = [self.list.values[v] for k, v in enumerate(step.inputs) if k != port]
        return all(o.rank == 0 or list(map(identity, o.shape)) == list(map(identity, own.shape)) for o in others)


def _same_extents(made: Sequence[Scalar], out: Sequence[Scalar], may_recount: bool) -> bool:
    """Equal extents in any order (a transposition may lie between), or all but the number of channels."""
    a, b = list(map(identity, made)), list(map(identity, out))
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
    """Without neighbouring transpositions that cancel."""
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
    """Whether the last axis stays the last one, untouched."""
    at = rank - 1
    for op in ops:
        if op.kind == "permute":
            at = op.list.index(at)
        elif op.axis == at:
            return False
    return at == rank - 1


def _rank_change(ops: Sequence[ViewOp]) -> int:
    return sum({"insert": 1, "drop": -1}.get(op.kind, 0) for op in ops)


def _without_frame_axis(ops: Sequence[ViewOp]) -> tuple[ViewOp, ...] | None:
    """The same views for one frame, if they leave axis 0 alone."""
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


def _compose(a: Stage, b: Stage, port: int, first_inputs: int) -> tuple[tuple[tuple[Px, ...], ...] | None, int]:
    """The second program with the first one's expressions for its loads of ``port``; None if they do not fit."""
    made = a.program[0]
    memos: dict[int, dict[int, Px]] = {}

    def renumber(k: int) -> int:
        return first_inputs + (k if k < port else k - 1)

    def put(x: Px, channel: int) -> Px:
        def leaf(n: Px) -> Px | None:
            if n.op != "load":
                return None
            at = n.channel if n.channel >= 0 else channel
            if n.port != port:
                return replace(n, port=renumber(n.port), channel=at)
            if a.channels:
                return made[at]
            return made[0] if at < 0 else _on_channel(made[0], at, memos)

        return rewrite(x, leaf, {})

    if not a.channels and not b.channels:
        return tuple((put(p[0], -1),) for p in b.program), 0
    if b.channels:
        reads = [n for p in b.program for x in p for n in _loads(x) if n.port == port]
        if a.channels and any(n.channel >= len(made) for n in reads):
            return None, 0
        program = tuple(tuple(put(x, c) for c, x in enumerate(p)) for p in b.program)
    else:
        program = tuple(tuple(put(p[0], c) for c in range(len(made))) for p in b.program)
    return program, max(map(channel_count, program))


def _on_channel(x: Px, channel: int, memos: dict[int, dict[int, Px]]) -> Px:
    """A flat expression for one channel."""
    memo = memos.setdefault(channel, {})
    return rewrite(x, lambda n: replace(n, channel=channel) if n.op == "load" else None, memo)


def _loads(x: Px) -> list[Px]:
    found: list[Px] = []
    visit(x, lambda n: found.append(n) if n.op == "load" else None)
    return found
