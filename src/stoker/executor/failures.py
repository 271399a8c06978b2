# SPDX-License-Identifier: Apache-2.0
"""What becomes of rows that fail: raised, replaced by others, or left out; and the list of them.

A batch is made as if all its rows were good. Those that failed are looked at when it is delivered, in order, on the
consumer's side: a substitute is another row of the same epoch's order, run there and then through the same plan, while
the threads go on with later batches. So nothing here depends on threads, prefetching or the size of batches.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..contract.errors import ArgumentError, DataError, StokerError, UnsupportedError
from ..contract.failure import Action, BadSample
from ..contract.reader import OpenSource
from ..graph.node import Graph
from .flight import Failure, InFlight
from .outputs import Outputs, rows_of
from .run import Run
from .schedule import Rows, Schedule

_ATTEMPTS = 16
_FEW_ROWS = 1000  # a stream without epochs is judged by no fewer
_MOST_LISTED = 100_000
DEFAULT_LIMIT = 0.01


@dataclass(frozen=True)
class OnError:
    """What becomes of rows that fail where no node says otherwise.

    Attributes:
        action: raise, replace or skip.
        limit: share of an epoch's rows that may be replaced or left out; None: 1 % for replace, all for skip.
        uneven_ranks: whether skip may leave pipelines of several shards with unequal numbers of rows.
    """

    action: Action = "raise"
    limit: float | None = None
    uneven_ranks: bool = False


@dataclass(slots=True)
class Made:
    """A batch after its bad rows have been dealt with; ``skipped`` are the numbers that left-out rows had."""

    outputs: list[Any]
    rows: Rows
    skipped: tuple[int, ...] = ()


class Failures:
    """Deals with the bad rows of one execution.

    Raises:
        ArgumentError, UnsupportedError: what is asked for cannot be done for this graph.
    """

    def __init__(
        self, graph: Graph, on_error: OnError, schedule: Schedule, sources: Mapping[int, OpenSource], fed: bool
    ) -> None:
        self.listed: list[BadSample] = []
        self.count: tuple[int, int] = (0, 0)  # epoch, and how many rows of it were replaced or left out
        self._seen: set[tuple[str, int | None, str]] = set()
        self._graph = graph
        self._on_error = on_error
        self._schedule = schedule
        self._sources = tuple(sources.values())
        needed = [graph.nodes[n] for n in sorted(graph.needed())]
        self._batch_scope = any(n.operator.scope == "batch" for n in needed)
        actions = {self.action(n.id) for n in needed}
        if "replace" in actions:
            self._require_substitutes(fed, [n.operator.name for n in needed if n.operator.stateful])
        ranks = max((s.shards.number for s in self._sources), default=1)
        if "skip" in actions and ranks > 1 and not on_error.uneven_ranks:
            raise ArgumentError(
                f'`on_error`: expected "replace" or "raise" where {ranks} shards run beside each other, got "skip": '
                "the ranks' batches would have unequal numbers of rows. If your training copes with that (it weighs by "
                "rows, or joins uneven inputs), say uneven_ranks=True"
            )

    def _require_substitutes(self, fed: bool, stateful: list[str]) -> None:
        main = self._sources[0].sampler if self._sources else None
        if fed or main is None or main.size is None or main.forward_only:
            why = "data that the caller gives" if fed or main is None else main.forward_only or "an endless order"
            raise UnsupportedError(
                '`on_error`: expected "skip" or "raise" for a source whose other samples cannot be asked for, got '
                f'"replace" with {why}'
            )
        if stateful:
            raise UnsupportedError(
                f'`on_error`: expected "skip" or "raise" with the stateful operator `{stateful[0]}`, got "replace": a '
                "substitute would meet the state of another time"
            )

    def action(self, node: int) -> Action:
        """What becomes of a row that fails at a node of the graph."""
        own: Action | None = self._graph.nodes[node].args.get("on_error") if node >= 0 else None
        return own or self._on_error.action

    def require_tolerable(self, failed: list[Failure]) -> None:
        """Raise the first error that is neither replaced nor left out."""
        raised = next((f for f in failed if self.action(f.node) == "raise"), None)
        if raised is not None:
            raise raised.error

    def judge(self, rows: Rows, failed: list[Failure]) -> StokerError | None:
        """The error to raise: a row's that is neither replaced nor left out, or that there are too many bad ones."""
        for f in failed:
            if self.action(f.node) == "raise":
                self._note(rows, f, "raised")
                return f.error
        return self._count(rows, failed)

    def resolve(self, run: Run, rows: Rows, outputs: list[Any], failed: list[Failure], flight: InFlight | None) -> Made:
        """A batch without bad rows, after :meth:`judge` had nothing to raise.

        Raises:
            DataError: no substitute was good.
        """
        actions: list[Action] = [self.action(f.node) for f in failed]
        replaced = [f for f, a in zip(failed, actions, strict=True) if a == "replace"]
        skipped = [f for f, a in zip(failed, actions, strict=True) if a == "skip"]
        batch = Outputs(run, outputs, flight)
        if replaced and self._batch_scope:
            skipped = self._replace_in_batch(run, rows, failed, batch)
        elif replaced:
            self._replace(run, rows, replaced, batch)
        left_out = tuple(f.row for f in skipped)
        for f in skipped:
            self._note(rows, f, "skipped")
        if not left_out:
            return Made(batch.finish(), rows)
        keep = [r for r in range(len(rows)) if r not in set(left_out)]
        batch.keep(keep)
        indices = tuple(i[keep] for i in rows.indices)
        rest = Rows(rows.keys[keep], rows.epochs[keep], indices, rows.epoch, rows.position)
        return Made(batch.finish(), rest, left_out)

    # ---- the limit and the list ----

    def _count(self, rows: Rows, failed: Sequence[Failure]) -> DataError | None:
        for f in failed:
            epoch = int(rows.epochs[f.row])
            bad = self.count[1] + 1 if self.count[0] == epoch else 1
            self.count = (epoch, bad)
            limit = self._on_error.limit
            if limit is None:
                limit = DEFAULT_LIMIT if self.action(f.node) == "replace" else 1.0
            size = self._schedule.epoch_size or max(_FEW_ROWS, rows.position)
            if bad > math.ceil(limit * size):
                self._note(rows, f, "raised")
                error = DataError(
                    f"`on_error`: expected at most {limit:.3g} of the rows to fail, got {bad} bad ones of the {size} "
                    f"rows of epoch {epoch}, the last of them: {f.error}. `stoker check` lists a folder's bad files; "
                    "`error_limit` allows more",
                    row=f.row, sample=f.sample,
                )  # fmt: skip
                error.__cause__ = f.error
                return error
        return None

    def _note(self, rows: Rows, failure: Failure, action: str, substitute: int | None = None) -> None:
        index, path, begin = None, "", 0
        if self._sources:
            index = int(rows.indices[0][failure.row])
            path, begin = self._sources[0].place(index)
        key = (path, index, action)
        if (index is not None and key in self._seen) or len(self.listed) >= _MOST_LISTED:
            return
        self._seen.add(key)
        epoch, row_key = int(rows.epochs[failure.row]), int(rows.keys[failure.row])
        offset = self._damage(failure, path, begin)
        self.listed.append(BadSample(path, index, offset, failure.reason, action, epoch, row_key, substitute))

    def _damage(self, failure: Failure, path: str, begin: int) -> int | None:
        """At which byte of its file a sample is damaged; the file is read once more for it."""
        if not failure.in_data or failure.node < 0 or not path:
            return None
        found = self._graph.nodes[failure.node].operator.damage_offset(lambda: _content(path, begin))
        return None if found is None else begin + found

    # ---- substitutes ----

    def _replace(self, run: Run, rows: Rows, bad: list[Failure], batch: Outputs) -> None:
        todo = bad
        for attempt in range(_ATTEMPTS):
            others = self._schedule.substitutes(rows, [f.row for f in todo], attempt)
            again: list[Failure] = []
            made = run.run_here(others, {}, failed=again)
            failing = {f.row for f in again}
            columns = [rows_of(column) for column in made]
            for j, f in enumerate(todo):
                if j not in failing:
                    batch.put(f.row, [column[j] for column in columns])
                    self._note(rows, f, "replaced", int(others.indices[0][j]))
            todo = [f for j, f in enumerate(todo) if j in failing]
            if not todo:
                return
        self._give_up(todo[0], again[0])

    def _replace_in_batch(self, run: Run, rows: Rows, failed: list[Failure], batch: Outputs) -> list[Failure]:
        """Where rows depend on each other, the whole batch is made again with the substitutes in their places.

        Returns:
            The rows that are still to be left out.
        """
        indices = tuple(i.copy() for i in rows.indices)
        attempts: dict[int, int] = {}
        first: dict[int, Failure] = {}
        now = failed
        while True:
            bad = self._own_fault(now)
            if not bad:
                break
            for f in bad:
                attempt = attempts[f.row] = attempts.get(f.row, -1) + 1
                if attempt == _ATTEMPTS:
                    self._give_up(f, f)
                other = self._schedule.substitutes(rows, [f.row], attempt)
                for mine, its in zip(indices, other.indices, strict=True):
                    mine[f.row] = its[0]
                first.setdefault(f.row, f)
            now = []
            made = run.run_here(Rows(rows.keys, rows.epochs, indices, rows.epoch, rows.position), {}, failed=now)
            self.require_tolerable(now)
        for f in first.values():
            self._note(rows, f, "replaced", int(indices[0][f.row]))
        for r, values in enumerate(zip(*map(rows_of, made), strict=True)):
            batch.put(r, values)
        return now

    def _own_fault(self, failed: list[Failure]) -> list[Failure]:
        """Of the rows to replace, those that did not fail because another one did; if there are none, all."""
        bad = [f for f in failed if self.action(f.node) == "replace"]
        own = [f for f in bad if f.node < 0 or self._graph.nodes[f.node].operator.scope != "batch"]
        return own or bad

    def _give_up(self, failure: Failure, last: Failure) -> None:
        error = DataError(
            f"{failure.error}. {_ATTEMPTS} substitutes for it failed too, the last because of: {last.reason}",
            row=failure.row, sample=failure.sample,
        )  # fmt: skip
        raise error from failure.error


def _content(path: str, begin: int) -> bytes:
    """What a file holds now from a byte on; nothing if it is none any more."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # it may have become a pipe
    except OSError:
        return b""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return b""
        with open(descriptor, "rb", closefd=False) as file:
            file.seek(begin)
            return file.read()
    except OSError:
        return b""
    finally:
        os.close(descriptor)
