# SPDX-License-Identifier: Apache-2.0
"""Policies for rows that fail (raise, replace, skip), and the list of failures.

A batch is computed as if all its rows were good. The consumer's thread handles failed rows when the batch is delivered,
in order. A substitute is another row of the same epoch's order. It runs immediately through the same plan while the
worker threads continue with later batches. The outcome is therefore independent of threads, prefetching and batch size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..contract.config import OnError
from ..contract.errors import ArgumentError, DataError, StokerError, UnsupportedError
from ..contract.failure import Action, BadSample
from ..contract.reader import OpenSource
from ..contract.storage import RecordLocation, Storage
from ..graph.node import Graph
from .flight import InFlight, RowFailure
from .outputs import Outputs, rows_of
from .run import Run
from .schedule import Rows, Schedule

_ATTEMPTS = 16
_DEAD_DISK = 3  # samples in a row with an input/output error, after which the disk or the mount is to blame
_FEW_ROWS = 1000  # minimum number of rows for the error rate of a stream without epochs
_MAX_LISTED = 100_000
# Shares of an epoch's rows. A substitute changes a training more than a missing row does. A data set that cannot be
# read exceeds both.
DEFAULT_LIMITS: Mapping[Action, float] = {"replace": 0.01, "skip": 0.1}
_FEW_SKIPPED = 16  # may always be left out, unless they are more than half of the epoch


@dataclass(slots=True)
class ResolvedBatch:
    """Batch after the policies for its bad rows. ``skipped`` lists the positions of rows that were left out."""

    outputs: list[Any]
    rows: Rows
    skipped: tuple[int, ...] = ()


class Failures:
    """Policies for bad rows, applied to the batches of one execution.

    Raises:
        ArgumentError, UnsupportedError: a policy does not work with this graph.
    """

    def __init__(
        self, graph: Graph, on_error: OnError, schedule: Schedule, sources: Mapping[int, OpenSource], fed: bool
    ) -> None:
        self.listed: list[BadSample] = []
        self.count: tuple[int, int] = (0, 0)  # epoch, and how many rows of it were replaced or left out
        self._unreadable = 0  # samples in a row with an input/output error
        self._seen: set[tuple[str, int | None, str]] = set()
        self._graph = graph
        self._on_error = on_error
        self._schedule = schedule
        self._readers, self._sources = tuple(sources), tuple(sources.values())
        needed = [graph.nodes[n] for n in sorted(graph.needed())]
        self._batch_scope = any(n.operator.depends_on_batch(n.args) for n in needed)
        actions = {self.action(n.id) for n in needed}
        if "replace" in actions:
            self._require_substitutes(fed, [n.operator.name for n in needed if n.operator.stateful])
        ranks = max((s.shards.number for s in self._sources), default=1)
        if "skip" in actions and ranks > 1 and not on_error.uneven_ranks:
            raise ArgumentError(
                f'`on_error`: expected "replace" or "raise" where {ranks} shards run at the same time, got "skip": '
                "the ranks' batches would have unequal numbers of rows. If your training copes with that (it weighs by "
                "rows, or joins uneven inputs), set uneven_ranks=True"
            )

    def _require_substitutes(self, fed: bool, stateful: list[str]) -> None:
        main = self._sources[0].sampler if self._sources else None
        if fed or main is None or main.size is None or main.forward_only:
            why = "data that the caller gives" if fed or main is None else main.forward_only or "an endless order"
            raise UnsupportedError(
                '`on_error`: expected "skip" or "raise" for a source whose other samples cannot be requested, got '
                f'"replace" with {why}'
            )
        if stateful:
            raise UnsupportedError(
                f'`on_error`: expected "skip" or "raise" with the stateful operator `{stateful[0]}`, got "replace": a '
                "substitute would run with the state of another row"
            )

    def action(self, node: int) -> Action:
        """Return the policy for a row that fails at a node of the graph."""
        own: Action | None = self._graph.nodes[node].args.get("on_error") if node >= 0 else None
        return own or self._on_error.action

    def require_tolerable(self, failed: list[RowFailure]) -> None:
        """Raise the first error whose row the policy neither replaces nor skips."""
        raised = next((f for f in failed if self.action(f.node) == "raise"), None)
        if raised is not None:
            raise raised.error

    def judge(self, rows: Rows, failed: list[RowFailure]) -> StokerError | None:
        """Return the error to raise, if any: that of a row with policy "raise", or that the limit of bad rows is
        exceeded.
        """
        for f in failed:
            if self.action(f.node) == "raise":
                self._note(rows, f, "raised")
                return f.error
        return self._require_disk(rows, failed) or self._count(rows, failed)

    def note_good_batch(self) -> None:
        """Note a batch without failed rows: the disk can be read."""
        self._unreadable = 0

    def _require_disk(self, rows: Rows, failed: Sequence[RowFailure]) -> DataError | None:
        """Return the error of a dead disk if several samples in a row have an input/output error."""
        by_row = {f.row: f for f in failed}
        for row in range(len(rows)):
            failure = by_row.get(row)
            if failure is None or not failure.unreadable:
                self._unreadable = 0
                continue
            self._unreadable += 1
            if self._unreadable >= _DEAD_DISK:
                self._note(rows, failure, "raised")
                error = DataError(
                    f"expected a disk that can be read, got input/output errors for {self._unreadable} samples in a "
                    f"row, the last of them: {failure.error}. A single such file would be a bad sample",
                    row=row, sample=failure.sample,
                )  # fmt: skip
                error.__cause__ = failure.error
                return error
        return None

    def resolve(
        self, run: Run, rows: Rows, outputs: list[Any], failed: list[RowFailure], flight: InFlight | None
    ) -> ResolvedBatch:
        """Return the batch without bad rows, after :meth:`judge` returned None.

        Raises:
            DataError: every substitute failed as well.
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
            return ResolvedBatch(batch.finish(), rows)
        keep = [r for r in range(len(rows)) if r not in set(left_out)]
        batch.keep(keep)
        indices = tuple(i[keep] for i in rows.indices)
        rest = Rows(rows.keys[keep], rows.epochs[keep], indices, rows.epoch, rows.position)
        return ResolvedBatch(batch.finish(), rest, left_out)

    # ---- the limit and the list ----

    def _count(self, rows: Rows, failed: Sequence[RowFailure]) -> DataError | None:
        for f in failed:
            epoch = int(rows.epochs[f.row])
            bad = self.count[1] + 1 if self.count[0] == epoch else 1
            self.count = (epoch, bad)
            size = self._schedule.epoch_size or max(_FEW_ROWS, rows.position)
            limit, tolerated = self._tolerated(self.action(f.node), size)
            if bad > tolerated:
                self._note(rows, f, "raised")
                error = DataError(
                    f"`on_error`: expected at most {limit:.3g} of the rows to fail, got {bad} bad ones of the {size} "
                    f"rows of epoch {epoch}, the last of them: {f.error}. `stoker check` lists a folder's bad images; "
                    "`error_limit` allows more",
                    row=f.row, sample=f.sample,
                )  # fmt: skip
                error.__cause__ = f.error
                return error
        return None

    def _tolerated(self, action: Action, size: int) -> tuple[float, int]:
        """Return the share of an epoch's rows that may be bad, and their count."""
        limit = self._on_error.limit
        if limit is not None:
            return limit, math.ceil(limit * size)
        limit = DEFAULT_LIMITS[action]
        few = min(_FEW_SKIPPED, math.ceil(size / 2)) if action == "skip" else 0
        return limit, max(math.ceil(limit * size), few)

    def _note(self, rows: Rows, failure: RowFailure, action: str, substitute: int | None = None) -> None:
        index, storage, place = None, None, RecordLocation()
        if self._sources:
            source, output = self._read_from(failure.node)
            index = int(rows.indices[source][failure.row])
            storage, place = self._sources[source].storage(output), self._sources[source].locate(index, output)
        path = place.path
        key = (path, index, action)
        if (index is not None and key in self._seen) or len(self.listed) >= _MAX_LISTED:
            return
        self._seen.add(key)
        epoch, row_key = int(rows.epochs[failure.row]), int(rows.keys[failure.row])
        offset = self._damage(failure, storage, place, index)
        self.listed.append(BadSample(path, index, offset, failure.reason, action, epoch, row_key, substitute))

    def _read_from(self, node: int) -> tuple[int, int | None]:
        """Return the position of the source, and its output, that a node's first input comes from."""
        readers = {number: at for at, number in enumerate(self._readers)}
        output = None
        while node >= 0 and node not in readers and self._graph.nodes[node].inputs:
            edge = self._graph.nodes[node].inputs[0]
            node, output = edge.node, edge.output
        return (readers[node], output) if node in readers else (0, None)

    def _damage(
        self, failure: RowFailure, storage: Storage | None, place: RecordLocation, index: int | None
    ) -> int | None:
        """Return the byte of the file at which a sample is damaged; the record's first byte if that is unknown.

        Reads the record again.
        """
        begin = None if place.length is None else place.offset
        if not failure.in_data or failure.node < 0 or not place.path or storage is None or index is None:
            return begin
        node = self._graph.nodes[failure.node]
        offset = node.operator.damage_offset(node.args, lambda: _content(storage, index))
        return begin if offset is None else place.offset + offset

    # ---- substitutes ----

    def _replace(self, run: Run, rows: Rows, bad: list[RowFailure], batch: Outputs) -> None:
        todo = bad
        for attempt in range(_ATTEMPTS):
            others = self._schedule.substitutes(rows, [f.row for f in todo], attempt)
            again: list[RowFailure] = []
            substitutes = run.run_inline(others, {}, failed=again)
            failing = {f.row for f in again}
            columns = [rows_of(column) for column in substitutes]
            for j, f in enumerate(todo):
                if j not in failing:
                    batch.put(f.row, [column[j] for column in columns])
                    self._note(rows, f, "replaced", int(others.indices[0][j]))
            todo = [f for j, f in enumerate(todo) if j in failing]
            if not todo:
                return
        self._give_up(todo[0], again[0])

    def _replace_in_batch(self, run: Run, rows: Rows, failed: list[RowFailure], batch: Outputs) -> list[RowFailure]:
        """Compute the whole batch again with substitutes for failed rows, because its rows depend on each other.

        Returns:
            The rows that are still to be left out.
        """
        indices = tuple(i.copy() for i in rows.indices)
        attempts: dict[int, int] = {}
        first: dict[int, RowFailure] = {}
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
            changed = Rows(rows.keys, rows.epochs, indices, rows.epoch, rows.position)
            computed = run.run_inline(changed, {}, failed=now)
            self.require_tolerable(now)
        for f in first.values():
            self._note(rows, f, "replaced", int(indices[0][f.row]))
        for r, values in enumerate(zip(*map(rows_of, computed), strict=True)):
            batch.put(r, values)
        return now

    def _own_fault(self, failed: list[RowFailure]) -> list[RowFailure]:
        """Return the failed rows that did not fail because of another row; all of them if there is no such row."""
        bad = [f for f in failed if self.action(f.node) == "replace"]
        nodes = self._graph.nodes
        own = [f for f in bad if f.node < 0 or not nodes[f.node].operator.depends_on_batch(nodes[f.node].args)]
        return own or bad

    def _give_up(self, failure: RowFailure, last: RowFailure) -> None:
        error = DataError(
            f"{failure.error}. {_ATTEMPTS} substitutes for it failed too, the last because of: {last.reason}",
            row=failure.row, sample=failure.sample,
        )  # fmt: skip
        raise error from failure.error


def _content(storage: Storage, record: int) -> bytes:
    """Return a record's current content; no bytes if it can no longer be read."""
    try:
        return storage.content(record)
    except OSError:
        return b""
