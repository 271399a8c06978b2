# SPDX-License-Identifier: Apache-2.0
"""A graph that runs: sources opened, plan made, batches prefetched and delivered in order with their state tokens."""

from __future__ import annotations

import contextlib
import copy
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from ..contract.batch import Batch
from ..contract.errors import StateError, StokerError
from ..contract.failure import BadSample
from ..contract.operator import Operator
from ..contract.reader import OpenSource, Shards
from ..graph.node import Graph
from ..graph.plan import Plan, PlannedOutput
from ..settings import default_threads
from .decoding import Decoding, Engines, KnownFiles
from .delivery import Delivered, Mark, Queued
from .exclusive import Exclusive, alone
from .failures import Failures, Made
from .flight import Failure, Feeds, Supply
from .meter import Meter
from .opening import open_sources, open_workers
from .planning import Planning
from .pulling import Pulling
from .report import Place, Report
from .run import Run
from .schedule import AtEnd, Rows, Schedule
from .settings import Settings
from .split import Sharing, Split
from .stage_times import stage_times
from .state import facts, own_shard, require_resumable, require_same, restored_states, saved_states
from .tiny import Tiny

Allocate = Callable[[int, PlannedOutput, int], Supply | None]


class Execution(Exclusive):
    """Runs ``graph``. Nothing starts before the first batch is asked for."""

    def __init__(self, graph: Graph, find: Callable[[str], type[Operator]], settings: Settings) -> None:
        super().__init__()
        self.graph = graph
        self.settings = settings
        opened = open_sources(graph)
        self._feeders = {k: v for k, v in opened.items() if hasattr(v, "pull")}
        for feeder in self._feeders.values():
            feeder.device = settings.gpu.device if settings.gpu else None
        self._workers = open_workers(graph, self._feeders, settings.workers)
        self.sources: dict[int, OpenSource] = {k: v for k, v in opened.items() if isinstance(v, OpenSource)}
        self.schedule = Schedule(self.sources, tuple(self.sources), settings.seed)
        self._pulling = Pulling(graph, self._feeders, self.schedule, bool(self.sources))
        self._failures = Failures(graph, settings.on_error, self.schedule, self.sources, bool(self._feeders))
        self._planning = Planning(graph, find, settings, self.sources, self._feeders, self._failures)
        self._run: Run | None = None
        self._queue: deque[Queued] = deque()
        self._meter = Meter()
        self._sharing: Sharing | None = None
        self._tiny = Tiny()
        self.mark = self._mark()

    def worker_memory(self) -> list[int]:
        """Bytes of every block of memory that is shared with worker processes."""
        return self._workers.memory() if self._workers is not None else []

    @alone
    def start_workers(self) -> None:
        """Start the worker processes now, if a source needs any."""
        if self._workers is not None:
            self._workers.start()

    def _start(self, rows: Rows, feeds: Feeds) -> Run:
        if self.plan is None:
            self._planning.discover(rows, feeds)
        assert self.plan is not None
        settings = self.settings
        self._run = Run(self.plan, self.graph, settings.threads, settings.seed, self.sources, settings.gpu or None)
        self._run.python.states.update(self._planning.states)
        if self._planning.decoders:
            # One core is the consumer's, whose launches the GPU waits for.
            threads = min(settings.threads, max(1, default_threads() - 1))
            split = Split(threads, settings.gpu_load, settings.gpu_utilization)
            self._sharing = Sharing(split, self._planning.decoders, self.plan.steps, settings.depth)
        return self._run

    @property
    def plan(self) -> Plan | None:
        """None until the first batch where only that tells a Python node's types."""
        return self._planning.plan

    # ---- batches ----

    @alone
    def next(self, at_end: AtEnd = "stop", allocate: Allocate | None = None) -> Delivered | None:
        """The next batch, or None at the end of the data, and at that of an epoch unless ``at_end`` is "go_on".

        Raises:
            DataError: a row of this batch failed, or there is no memory for it; the next call gives the next batch.
            DeviceError: the GPU failed.
            StateError: the pipeline is closed.
        """
        asked = time.perf_counter()
        under_way, finished = len(self._queue), self._run.finished if self._run is not None else 0
        self._fill(max(1, self._depth), at_end, allocate)
        if not self._queue:
            return None
        self._admit(allocate)
        item = self._queue[0]
        item.mark.states = self.mark.states
        try:
            made = self._finish(item)
        except Exception:
            self._pass(item)
            raise
        # Up to here (and in the next lines) Ctrl-C leaves the batch in the queue, to be delivered by the next call.
        assert item.rows is not None
        given = time.perf_counter()
        self._meter.delivered(len(made.rows), asked, given, under_way, finished)
        if self._sharing is not None and self._run is not None:
            self._sharing.delivered(self._run, self._meter, under_way, finished)
        if self.settings.depth:
            self._tiny.settle(given - asked, self._run, self._meter.batches, reads_files=bool(self.sources))
        if self._depth:
            self._fill(self._depth + 1, at_end, allocate)
        self._pass(item)
        self._admit(allocate)
        self._meter.inside_s += time.perf_counter() - asked
        return Delivered(made.outputs, made.rows, self.mark, len(item.rows), made.skipped)

    @property
    def _depth(self) -> int:
        """How many batches are made ahead now."""
        return 0 if self._tiny.found else self.settings.depth

    def _pass(self, item: Queued) -> None:
        """The batch at the head of the queue has had its turn."""
        self.mark = item.mark
        item.flight = None
        if self._queue:  # a thread that closes the pipeline may have been here
            self._queue.popleft()

    def _admit(self, allocate: Allocate | None) -> None:
        """Let the next batches go to the GPU, as many as may be there."""
        run = self._run
        if run is None or self.settings.gpu_depth is None:
            return
        for item in islice(self._queue, self.settings.gpu_depth):
            if item.flight is None or item.rows is None or not item.flight.held:
                continue
            try:
                supply = self._supply(item.rows, allocate, on_gpu=(True,))
            except Exception as error:  # noqa: BLE001 - a framework may have no memory: that batch's error
                item.error = error
                supply = {}
            run.admit(item.flight, supply)

    def _check_usable(self) -> None:
        super()._check_usable()
        if self._run is not None:
            self._run.check_usable()

    def _finish(self, item: Queued) -> Made:
        """The batch, its bad rows dealt with. Stateful operators have seen it also if a row of it fails."""
        run = self._run
        if item.error is not None:
            if item.flight is not None and run is not None:
                with contextlib.suppress(StokerError):
                    run.collect(item.flight)
            raise item.error
        assert run is not None and item.rows is not None
        failed: list[Failure] = []
        outputs = self._collect(run, item, item.rows, failed)
        if not failed:
            return Made(outputs, item.rows)
        error = self._failures.judge(item.rows, failed)
        item.mark.bad = self._failures.count
        if error is None:
            return self._failures.resolve(run, item.rows, outputs, failed, item.flight)
        try:
            raise error
        finally:
            del error, failed, outputs  # the error's traceback must not keep the batch

    def _collect(self, run: Run, item: Queued, rows: Rows, failed: list[Failure]) -> list[Any]:
        item.mark.bad = self._failures.count
        if item.flight is not None:
            try:
                return run.collect(item.flight, failed)
            finally:
                item.mark.states = item.flight.states or item.mark.states
        replay = self._planning.take_replay()
        try:
            return run.run_here(rows, item.feeds or {}, replay, failed=failed)
        finally:
            if run.python.states:
                item.mark.states = saved_states(self.graph, run.python.states)

    def _restore(self, states: Mapping[int, Any]) -> None:
        """Give every stateful operator its saved state, or the one it starts with."""
        kept = self._run.python.states if self._run is not None else self._planning.states
        kept.update(restored_states(self.graph, {*self._planning.states, *kept, *states}, states))

    def _fill(self, depth: int, at_end: AtEnd, allocate: Allocate | None) -> None:
        self._start_last()
        while len(self._queue) < depth:
            if self._queue and self._queue[-1].error is not None:
                return
            before = self._queue[-1].mark if self._queue else self.mark
            item: Queued | None = None
            try:
                item = self._prepare_next(at_end, allocate)
                if item is None:
                    return
                self._queue.append(item)
            except Exception as error:  # noqa: BLE001 - a user's source may raise anything; its batch does
                # In order: batches before it are delivered first.
                self._queue.append(Queued(self._mark(), error=error))
            except BaseException:
                if not (item and self._queue and self._queue[-1] is item):  # Ctrl-C came before it was queued
                    self._take_back(before)
                raise
            self._start_last()

    def _start_last(self) -> None:
        """Let the threads have the newest batch; after Ctrl-C, one may have been queued here without."""
        flight = self._queue[-1].flight if self._queue else None
        if flight is not None and not flight.started and self._run is not None:
            self._run.start(flight)

    def _take_back(self, mark: Mark) -> None:
        """As if nothing had been taken since; a source that only runs forward has lost what it gave."""
        self.schedule.seek(mark.epoch, mark.consumed)
        for feeder, position in zip(self._feeders.values(), mark.sources, strict=True):
            with contextlib.suppress(StateError):
                feeder.seek(position)

    def _prepare_next(self, at_end: AtEnd, allocate: Allocate | None) -> Queued | None:
        rows, feeds = self._pull(at_end)
        if rows is None:
            return None
        run = self._run or self._start(rows, feeds)
        mark = self._mark()
        if not self._depth:
            return Queued(mark, rows, feeds=feeds)
        replay = self._planning.take_replay()
        most = self.settings.gpu_depth
        held = most is not None and len(self._queue) >= most
        supply = self._supply(rows, allocate, on_gpu=(False,) if held else (False, True))
        return Queued(mark, rows, run.prepare(rows, feeds, supply, replay, held=held))

    def _pull(self, at_end: AtEnd) -> tuple[Rows | None, Feeds]:
        """Rows and what the caller's sources give for them; without a batch under way, waiting is the only choice."""
        if not self._pulling.ready(wait=not self._queue, closed=lambda: self._closed):
            return None, {}
        return self._pulling.next(self.settings.batch_size, at_end)

    def feed(self, node: int, data: Any, layout: str | None = None) -> None:
        """Give a batch to a source that is fed by hand."""
        self._feeders[node].feed(data, self.settings.batch_size, layout)

    def _supply(self, rows: Rows, allocate: Allocate | None, on_gpu: Collection[bool]) -> dict[int, Supply]:
        assert self.plan is not None
        if allocate is None:
            return {}
        wanted = ((i, o) for i, o in enumerate(self.plan.outputs) if o.shape is not None and o.on_gpu in on_gpu)
        found = ((i, allocate(i, o, len(rows))) for i, o in wanted)
        return {i: memory for i, memory in found if memory is not None}

    def run_rows(self, rows: Rows, feeds: Feeds) -> list[Any]:
        """Run given rows at once, on the caller's thread, beside the queue (inference, eager, substitutes)."""
        self._check_usable()
        run = self._run or self._start(rows, feeds)
        replay = self._planning.take_replay()
        return run.run_here(rows, feeds, replay)

    def batches(self, delivered: Delivered) -> tuple[Batch, ...]:
        """The outputs as batches."""
        assert self.plan is not None
        return delivered.batches(self.plan.outputs)

    def report(self) -> Report:
        """What has run and what limits it."""
        times = stage_times(self.graph, self.plan, self._run, self._meter.rows, self._pulling.source_ns)
        handed_over = self._run.python.handed_over() if self._run is not None else ()
        settings, mark = self.settings, self.mark
        told = self._meter.report(
            times, settings.seed, settings.threads, handed_over, depth=self._depth,
            place=(mark.epoch, mark.position, self.schedule.epoch_size),
            split=self._decoding(),
        )  # fmt: skip
        shards = next((s.shards for s in self.sources.values()), Shards())
        gpu = settings.gpu.device.number if settings.gpu else None
        return replace(told, place=Place(shards.id, shards.number, gpu, tuple(sorted(settings.launcher))))

    def _decoding(self) -> Decoding | None:
        if self._sharing is None:
            return None
        gpu, used = self.settings.gpu, self._planning.on_engines
        known = KnownFiles.of(gpu.jpeg_index) if gpu and gpu.jpeg_index else None
        engines = Engines.of(used, gpu.engines_memory) if used and gpu else None
        return replace(self._sharing.report(), known=known, engines=engines)

    # ---- state ----

    def _mark(self) -> Mark:
        sources = tuple(f.position for f in self._feeders.values()) if self._feeders else ()
        position = self.schedule.position
        bad = self._failures.count
        return Mark(self.schedule.epoch, position, self.schedule.consumed(position), sources, bad=bad)

    @property
    def errors(self) -> list[BadSample]:
        """The bad samples met so far."""
        return self._failures.listed

    def get_state(self, *, elastic: bool = False) -> dict[str, Any]:
        """The token of the last delivered batch; StateError if a source cannot be taken up again.

        ``elastic`` insists on one that serves another number of shards too.
        """
        for node, feeder in self._feeders.items():
            feeder.require_resumable(self.graph.nodes[node].source)
        require_resumable(self.graph, self.sources, elastic=elastic)
        return {
            **facts(self.graph, self.sources, self.settings.seed),
            "epoch": self.mark.epoch,
            "consumed": self.mark.consumed,
            "bad": list(self.mark.bad),
            "sources": {str(k): p for k, p in zip(self._feeders, self.mark.sources, strict=True)},
            "states": {str(k): copy.deepcopy(v) for k, v in self.mark.states.items()},
        }

    @property
    def own_shard(self) -> tuple[int, int] | None:
        """The shard (number, of how many) that the state serves alone; None if it serves any."""
        return own_shard(self.graph, self.sources)

    @alone
    def set_state(self, token: Mapping[str, Any]) -> None:
        """Go on after the batch whose token this is."""
        require_same(token, self.graph, self.sources, self.settings.seed)
        self._drop()
        self.schedule.seek(int(token["epoch"]), int(token["consumed"]))
        for key, position in token["sources"].items():
            self._feeders[int(key)].seek(position)
        states = {int(k): copy.deepcopy(v) for k, v in token["states"].items()}
        self._restore(states)
        epoch, bad = token["bad"]
        self._failures.count = (int(epoch), int(bad))
        self.mark = replace(self._mark(), states=states)

    @alone
    def start_epoch(self, epoch: int) -> None:
        """Forget what is queued and begin an epoch."""
        self._drop()
        self._restore(self.mark.states)  # what was made ahead and dropped has not happened
        self.schedule.start_epoch(epoch)
        for feeder in self._feeders.values():
            feeder.reset()
        self.mark = replace(self._mark(), states=self.mark.states)

    def _drop(self) -> None:
        """Wait for what is under way and throw it away."""
        while self._queue:
            flight = self._queue[0].flight
            if flight is not None and self._run is not None:
                with contextlib.suppress(StokerError):
                    self._run.collect(flight)
            self._queue.popleft()

    def close(self) -> None:
        """Stop; idempotent. May be called from any thread, also from the user's code that a pipeline runs."""
        first, self._closed = not self._closed, True
        if self._workers is not None:
            self._workers.close()
        if self._run is not None:
            self._run.close()
            if first and self.settings.gpu:
                self.settings.gpu.save_jpeg_index()
        self._forget_if_idle()  # after the threads that write into its memory have ended

    def _forget(self) -> None:
        self._queue.clear()

    @property
    def run(self) -> Run | None:
        """The running plan, once started."""
        return self._run
