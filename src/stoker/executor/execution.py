# SPDX-License-Identifier: Apache-2.0
"""Execution of a graph: opens sources, makes the plan, prefetches batches, delivers them in order with their state
tokens.
"""

from __future__ import annotations

import contextlib
import copy
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from ..codecs.open_codecs import OpenCodecs
from ..contract.batch import Batch
from ..contract.codec import BalancedKernel
from ..contract.config import PipelineConfig
from ..contract.errors import ResourceError, StateError, StokerError
from ..contract.failure import BadSample
from ..contract.feed import Feeder
from ..contract.operator import Operator
from ..contract.reader import OpenSource, Shards
from ..contract.thread_start import close_dropped
from ..graph.node import Graph
from ..graph.plan import Plan, PlannedOutput
from ..graph.show import show
from ..settings import available_memory, default_threads
from .batch_limits import batch_limits
from .cufile_watch import CuFileWatch
from .delivery import Delivered, Mark, Queued, Taken
from .exclusive import Exclusive, exclusive_method
from .failures import Failures, ResolvedBatch
from .flight import Feeds, RowFailure, SuppliedMemory
from .inline_heuristic import InlineHeuristic
from .meter import Meter
from .opening import offer_workers, open_sources, open_workers
from .planning import Planning
from .read_ahead import ReadAhead
from .record_prefetch import RecordPrefetcher
from .report import Assignment, Report, file_reads_report
from .run import OpenGpu, Run
from .schedule import AtEnd, Rows, Schedule
from .source_puller import SourcePuller
from .split import Split, SplitController
from .stage_times import stage_times
from .state import own_shard, require_resumable, require_same, restored_states, saved_states, state_facts

Allocate = Callable[[int, PlannedOutput, int], SuppliedMemory | None]

# A batch of more rows is compared with the available memory before its rows are numbered.
_MANY_ROWS = 1 << 20
_BYTES_PER_ROW = 24  # least: the key, the epoch, and the sample of one reader
_NO_KEYS, _NO_EPOCHS = np.empty(0, np.uint64), np.empty(0, np.int64)


class Execution(Exclusive):
    """Execution of ``graph``. Nothing starts before the first batch is requested.

    Args:
        gpu: the GPU that the graph runs on; None if it needs none, or if the CPU takes over its work.
        launcher: those of "shard" and "gpu" that the launcher's environment decided.

    Attributes:
        config: the pipeline's options.
        gpu: the GPU, if one is used.
        threads: number of worker threads.
        ahead: number of prefetched batches.
        mark: position after the last delivered batch.
        course: number of changes of the position other than by a delivery, and of calls of `close`.
    """

    def __init__(
        self, graph: Graph, find: Callable[[str], type[Operator]], config: PipelineConfig,
        gpu: OpenGpu | None = None, launcher: frozenset[str] = frozenset(),
    ) -> None:  # fmt: skip
        super().__init__()
        self.graph = graph
        self.config = config
        self.gpu = gpu
        has_gpu = gpu is not None
        self.threads, self.ahead = config.count_threads(has_gpu=has_gpu), config.count_prefetched(has_gpu=has_gpu)
        self._depth = self.ahead  # the current number of prefetched batches
        self._max_on_gpu = config.count_on_gpu(has_gpu=has_gpu)
        self._launcher = launcher
        opened = open_sources(graph)
        self._feeders = {k: v for k, v in opened.items() if isinstance(v, Feeder)}
        for feeder in self._feeders.values():
            feeder.device = gpu.device if gpu is not None else None
        self._workers = open_workers(graph, self._feeders, config.workers)
        readers = {k: v for k, v in opened.items() if isinstance(v, OpenSource)}
        offer_workers(graph, readers, config.workers)
        for storage in dict.fromkeys(s for reader in readers.values() for s in reader.storages()):
            storage.use_threads(self.threads)
        # The schedule takes the first reader's epochs.
        first = [k for k in readers if config.epoch_reader is not None and graph.nodes[k].name == config.epoch_reader]
        self.sources: dict[int, OpenSource] = {k: readers[k] for k in dict.fromkeys([*first, *readers])}
        self.schedule = Schedule(self.sources, tuple(self.sources), config.seed)
        self._record_prefetcher = RecordPrefetcher(graph, self.sources, self.schedule, config.batch_size)
        self._read_ahead = ReadAhead(graph, self.sources, self.schedule, config.batch_size)
        self._puller = SourcePuller(graph, self._feeders, self.schedule, bool(self.sources))
        self.codecs = OpenCodecs(gpu, config.codec_options)
        self._failures = Failures(graph, config.on_error, self.schedule, self.sources, bool(self._feeders))
        self._planning = Planning(graph, find, config, gpu, self.codecs, self.sources, self._feeders, self._failures)
        self._offer_gpu()
        self._run: Run | None = None
        self._began_closed = False  # the run began after a call of `close`
        self._queue: deque[Queued] = deque()
        self._meter = Meter()
        self._split_controller: SplitController | None = None
        self._inline = InlineHeuristic()
        self._cufile_watch = CuFileWatch(gpu.file_reads if gpu is not None else None)
        self._serving = threading.Lock()
        self.mark = self._head = self._mark()  # the head is the position after the last batch that was taken
        self.course = 0

    def worker_memory(self) -> list[int]:
        """Return the sizes in bytes of all memory blocks that are shared with worker processes."""
        return self._workers.memory() if self._workers is not None else []

    @exclusive_method
    def start_workers(self) -> None:
        """Start the worker processes now if a source needs them."""
        if self._workers is not None:
            self._workers.start()

    def _offer_gpu(self) -> None:
        """Give the open GPU to the sources whose outputs only steps on the GPU read, once these are known."""
        plan = self.plan
        if plan is None or self.gpu is None:
            return
        for node, feeder in self._feeders.items():
            values = [value for (own, _), value in plan.fed.items() if own == node]
            if values and plan.fed_on_gpu.issuperset(values):
                feeder.use_gpu(self.gpu)

    def _start(self, rows: Rows, feeds: Feeds) -> Run:
        if self.plan is None:
            self._planning.discover(rows, feeds)
            self._offer_gpu()
        loaded, config = self._planning.loaded, self.config
        assert loaded is not None
        limits = batch_limits(config, self.ahead, self.gpu.device if self.gpu is not None else None)
        run = Run(loaded, self.graph, self.threads, config.seed, self.sources, self.gpu, limits)
        with self._closing:
            self._run, self._began_closed = run, self._closed
        run.python.states.update(self._planning.states)
        run.python.share_isolated(self._planning.isolated)
        if loaded.decoders:
            # One core is left to the consumer: the GPU waits for its launches.
            threads = min(self.threads, max(1, default_threads() - 1))
            split = Split(threads, config.gpu_load, config.gpu_utilization)
            self._split_controller = SplitController(split, loaded.decoders, loaded.plan.steps, self.ahead)
        return run

    @property
    def plan(self) -> Plan | None:
        """Return the plan; None before the first batch if only that batch reveals a Python node's types."""
        return self._planning.plan

    def show(self, form: str) -> str:
        """Return the graph and its plan as text."""
        planning = self._planning
        return show(self.graph, planning.find, form, self.sources, planning.passes, planning.target)

    @property
    def decoders(self) -> tuple[BalancedKernel, ...]:
        """Return the plan's decoders that share rows between the GPU and the CPU."""
        return self._planning.loaded.decoders if self._planning.loaded is not None else ()

    # ---- batches ----

    @exclusive_method
    def next(self, at_end: AtEnd = "stop", allocate: Allocate | None = None) -> Delivered | None:
        """Return the next batch; None at the end of the data, and at the end of an epoch unless ``at_end`` is "go_on".

        Raises:
            DataError: a row of this batch failed, or it exceeds a limit of memory; the next call returns the next
                batch.
            ResourceError: the system has no memory for the batch; the next call returns the next batch.
            DeviceError: the GPU failed.
            StateError: the pipeline is closed.
        """
        if self._head is not self.mark:  # a loop that took batches ahead was left
            self._rewind_to_mark()
        try:
            return self._take(at_end, allocate)
        finally:
            self.mark = self._head

    @exclusive_method
    def take(self, course: int, at_end: AtEnd, allocate: Allocate | None) -> Taken:
        """Take the next batch as :meth:`next` does, but ahead of its delivery: the position does not change.

        Args:
            course: :attr:`course` at the beginning of the loop.

        Raises:
            StateError: the pipeline is closed, or its position has been changed.
        """
        self.require_course(course)
        delivered: Delivered | None = None
        error: Exception | None = None
        try:
            delivered = self._take(at_end, allocate, is_ahead=True)
        except Exception as failure:  # noqa: BLE001 - the consumer raises it, at its batch
            error = failure
        return Taken(delivered, error, self._head, course)

    def deliver(self, taken: Taken) -> None:
        """Continue the position after a batch that was taken ahead.

        Raises:
            StateError: the pipeline is closed, or its position has been changed.
        """
        self.require_course(taken.course)
        self.mark = taken.mark

    def require_course(self, course: int) -> None:
        """Raise StateError if the pipeline is closed, or its position has been changed."""
        self._check_usable()
        if course != self.course:
            raise StateError(
                "the position of the pipeline has been changed during a loop that takes its batches ahead: begin "
                "another loop over the Loader"
            )

    @property
    def may_take_ahead(self) -> bool:
        """Return whether a loop may take batches on a thread of its own although its caller has not asked for that.

        Functions of the caller may depend on their thread, a GPU's memory on the thread's stream, and an order without
        random access cannot return to the last delivered batch.
        """
        run = self._run
        if run is None or self.gpu is not None or self._feeders or run.calls_python:
            return False
        return not any(source.sampler.forward_only for source in self.sources.values())

    @property
    def ready_batches(self) -> int:
        """Return the number of requests at which a finished batch waited."""
        return self._meter.ready

    def waited(self, seconds: float) -> None:
        """Record the time for which the consumer waited for a batch that was taken ahead."""
        self._meter.waited_s += seconds
        self._meter.inside_s += seconds

    def _take(self, at_end: AtEnd, allocate: Allocate | None, *, is_ahead: bool = False) -> Delivered | None:
        """Return the next batch, and move the head after it."""
        asked = time.perf_counter()
        in_flight, finished = len(self._queue), self._run.finished if self._run is not None else 0
        self._fill(max(1, self._depth), at_end, allocate)
        if not self._queue:
            return None
        if self._max_on_gpu is not None:
            self._admit(allocate)
        item = self._queue[0]
        item.mark.states = self._head.states
        try:
            finished_batch = self._finish(item)
        except Exception:
            self._dequeue(item)
            raise
        # Ctrl-C before or during the next lines leaves the batch in the queue, and the next call delivers it.
        assert item.rows is not None
        delivered = time.perf_counter()
        rows = len(finished_batch.rows)
        self._meter.delivered(rows, asked, delivered, in_flight, finished, is_ahead=is_ahead)
        self._cufile_watch.check()
        if self._split_controller is not None and self._run is not None:
            self._split_controller.delivered(self._run, self._meter, in_flight, finished)
        if self.ahead:
            self._inline.observe(delivered - asked, self._run, self._meter.batches, reads_files=bool(self.sources))
            self._depth = 0 if self._inline.is_inline else self.ahead
        # A batch that is taken ahead of its delivery is one of the prefetched ones. On a GPU, the balance of decoders
        # counts the batches in flight.
        if self._depth and not (is_ahead and self.gpu is None):
            self._fill(self._depth + 1, at_end, allocate)
        self._dequeue(item)
        if self._max_on_gpu is not None:
            self._admit(allocate)
        if not is_ahead:
            self._meter.inside_s += time.perf_counter() - asked
        return Delivered(finished_batch.outputs, finished_batch.rows, item.mark, len(item.rows), finished_batch.skipped)

    def _dequeue(self, item: Queued) -> None:
        """Remove the batch at the head of the queue after its delivery or failure."""
        item.mark.listed = len(self._failures.listed)
        self._head = item.mark
        item.flight = None
        if self._queue:  # another thread may have closed the pipeline and emptied the queue
            self._queue.popleft()

    def _admit(self, allocate: Allocate | None) -> None:
        """Admit as many of the next batches to the GPU as its limit allows."""
        run = self._run
        if run is None or self._max_on_gpu is None:
            return
        for item in islice(self._queue, self._max_on_gpu):
            if item.flight is None or item.rows is None or not item.flight.held:
                continue
            try:
                supply = self._supply(item.rows, allocate, on_gpu=(True,)) if allocate is not None else {}
            except Exception as error:  # noqa: BLE001 - a framework may have no memory: that batch's error
                item.error = error
                supply = {}
            run.admit(item.flight, supply)

    def _check_usable(self) -> None:
        if self._closed or self._run is None:
            super()._check_usable()
        else:
            self._run.check_usable()

    def _finish(self, item: Queued) -> ResolvedBatch:
        """Return the batch after the policies for bad rows.

        Stateful operators have processed all its rows, even if one fails.
        """
        run = self._run
        if item.error is not None:
            if item.flight is not None and run is not None:
                with contextlib.suppress(StokerError):
                    run.collect(item.flight)
            raise item.error
        assert run is not None and item.rows is not None
        failed: list[RowFailure] = []
        outputs = self._collect(run, item, item.rows, failed)
        if not failed:
            self._failures.note_good_batch()
            return ResolvedBatch(outputs, item.rows)
        error = self._failures.judge(item.rows, failed)
        item.mark.bad = self._failures.count
        if error is None:
            return self._failures.resolve(run, item.rows, outputs, failed, item.flight)
        try:
            raise error
        finally:
            del error, failed, outputs  # the error's traceback would keep the batch alive

    def _collect(self, run: Run, item: Queued, rows: Rows, failed: list[RowFailure]) -> list[Any]:
        item.mark.bad = self._failures.count
        if item.flight is not None:
            try:
                return run.collect(item.flight, failed)
            finally:
                item.mark.states = item.flight.states or item.mark.states
        replay = self._planning.take_replay()
        try:
            return run.run_inline(rows, item.feeds or {}, replay, failed=failed)
        finally:
            if run.python.states:
                item.mark.states = saved_states(self.graph, run.python.states)

    def _restore(self, states: Mapping[int, Any]) -> None:
        """Set every stateful operator to its saved state, or to its initial one."""
        states_by_node = self._run.python.states if self._run is not None else self._planning.states
        states_by_node.update(restored_states(self.graph, {*self._planning.states, *states_by_node, *states}, states))

    def _fill(self, depth: int, at_end: AtEnd, allocate: Allocate | None) -> None:
        last = self._queue[-1].flight if self._queue else None
        if last is not None and not last.started:
            self._start_last()
        while len(self._queue) < depth:
            if self._queue and self._queue[-1].error is not None:
                return
            before = self._queue[-1].mark if self._queue else self._head
            item: Queued | None = None
            try:
                item = self._prepare_next(at_end, allocate)
                if item is None:
                    if self._depth and not self._feeders:  # then it is the end of the epoch
                        self._record_prefetcher.request_next_epoch(depth - len(self._queue), self._depth + 2, at_end)
                    return
                self._queue.append(item)
            except Exception as error:  # noqa: BLE001 - a user's source may raise anything; its batch does
                # The error is queued, so that batches before it are delivered first.
                self._queue.append(Queued(self._mark(), error=error))
            except BaseException:
                if not (item and self._queue and self._queue[-1] is item):  # Ctrl-C came before the batch was queued
                    self._rewind(before)
                raise
            self._start_last()

    def _start_last(self) -> None:
        """Start the newest batch on the worker threads. Ctrl-C may have left it queued but not started."""
        flight = self._queue[-1].flight if self._queue else None
        if flight is not None and not flight.started and self._run is not None:
            self._run.start(flight)

    def _rewind(self, mark: Mark) -> None:
        """Restore the position before the last batch. Rows of a source without random access are lost."""
        self._record_prefetcher.drop()
        self._read_ahead.drop()
        self.schedule.seek(mark.epoch, mark.consumed)
        for feeder, position in zip(self._feeders.values(), mark.sources, strict=True):
            with contextlib.suppress(StateError):
                feeder.seek(position)

    def _prepare_next(self, at_end: AtEnd, allocate: Allocate | None) -> Queued | None:
        rows, feeds = self._pull(at_end)
        if rows is None:
            return None
        self._record_prefetcher.request(rows, self._depth + 2)
        run = self._run or self._start(rows, feeds)
        self._read_ahead.pulled(len(rows), self._count_queued, run)
        mark = self._mark()
        if not self._depth:
            return Queued(mark, rows, feeds=feeds)
        replay = self._planning.take_replay()
        limit = self._max_on_gpu
        held = limit is not None and len(self._queue) >= limit
        on_gpu = (False,) if held else (False, True)
        supply = self._supply(rows, allocate, on_gpu) if allocate is not None else {}
        return Queued(mark, rows, run.prepare(rows, feeds, supply, replay, held=held))

    def _count_queued(self) -> int:
        """Return the number of rows that are in flight."""
        return sum(len(i.rows) for i in self._queue if i.rows is not None)

    def _pull(self, at_end: AtEnd) -> tuple[Rows | None, Feeds]:
        """Return the next rows and the data of the caller's sources for them.

        Waits only if no batch is in flight.
        """
        if not self._puller.ready(wait=not self._queue, closed=lambda: self._closed):
            return None, {}
        count = self.config.batch_size
        if count > _MANY_ROWS:
            available = available_memory()
            if available is not None and count * _BYTES_PER_ROW > available:
                raise ResourceError(
                    f"the numbers of {count} rows take at least {count * _BYTES_PER_ROW} bytes, and {available} bytes "
                    "of memory are available: use a smaller `batch_size`"
                )
        try:
            return self._puller.next(count, at_end)
        except MemoryError as error:
            raise ResourceError(f"no memory is left to number {count} rows or to read their sources") from error

    def feed(self, node: int, data: Any, layout: str | None = None) -> None:
        """Pass a batch to a source that is fed by hand."""
        self._feeders[node].feed(data, self.config.batch_size, layout)

    @property
    def has_feeders(self) -> bool:
        """Return whether a source has data of the caller."""
        return bool(self._feeders)

    @exclusive_method
    def expect_rows(self, at_end: AtEnd) -> tuple[dict[str, Any], Rows, Mark] | None:
        """Return the next batch's position, rows and mark, for a batch that other processes compute; None at the end.

        The position is a token (see :meth:`get_state`). :meth:`delivered_elsewhere` takes the mark at the delivery.
        """
        schedule = self.schedule
        before = {"epoch": schedule.epoch, "consumed": schedule.consumed(schedule.position)}
        rows = schedule.next(self.config.batch_size, at_end)
        return None if rows is None else ({**self.get_state(), **before}, rows, self._mark())

    def delivered_elsewhere(
        self, mark: Mark, rows: int, bad: tuple[int, int], asked: float, in_flight: int, finished: int
    ) -> None:
        """Record the delivery of a batch that other processes have computed.

        Args:
            mark: the position after it.
            rows: number of its rows.
            bad: the last epoch of its rows that were replaced or skipped, and their number in that epoch.
            asked: time of the request.
            in_flight: number of batches that had been asked for at that time.
            finished: number of those that were finished.
        """
        epoch, count = self.mark.bad
        mark.bad = (bad[0], bad[1] + (count if epoch == bad[0] else 0)) if bad[1] else self.mark.bad
        self.mark = self._head = mark
        self._meter.delivered(rows, asked, time.perf_counter(), in_flight, finished)

    @exclusive_method
    def rewind(self) -> None:
        """Forget rows that were expected, or batches that were taken, and not delivered."""
        self._rewind_to_mark()

    def _rewind_to_mark(self) -> None:
        self._drop()
        self.schedule.seek(self.mark.epoch, self.mark.consumed)
        self._restore(self.mark.states)
        self._failures.count = self.mark.bad
        self._move_to(self.mark)

    def _move_to(self, mark: Mark) -> None:
        """Set the position to ``mark``, from which the schedule continues."""
        self.mark = self._head = mark
        self.course += 1

    @exclusive_method
    def discard_fed(self) -> None:
        """Forget the batches that were fed by hand and not run."""
        for feeder in self.fed.values():
            feeder.discard()

    def _supply(self, rows: Rows, allocate: Allocate, on_gpu: Collection[bool]) -> dict[int, SuppliedMemory]:
        assert self.plan is not None
        wanted = (
            (i, o)
            for i, o in enumerate(self.plan.outputs)
            if o.shape is not None and not o.returns and o.on_gpu in on_gpu
        )
        supplied = ((i, allocate(i, o, len(rows))) for i, o in wanted)
        return {i: memory for i, memory in supplied if memory is not None}

    def run_rows(self, rows: Rows, feeds: Feeds) -> list[Any]:
        """Run the given rows immediately on the caller's thread, bypassing the queue (inference, eager calls,
        substitutes).
        """
        self._check_usable()
        run = self._run or self._start(rows, feeds)
        replay = self._planning.take_replay()
        return run.run_inline(rows, feeds, replay)

    def compute(self, rows: Rows, feeds: Feeds, allocate: Allocate | None) -> list[Any]:
        """Run the given rows on the worker threads, bypassing the queue.

        Raises:
            StokerError: a row failed.
        """
        self._check_usable()
        run = self._run or self._start(rows, feeds)
        supply = {} if allocate is None else self._supply(rows, allocate, on_gpu=(False, True))
        return run.collect(run.prepare(rows, feeds, supply))

    @exclusive_method
    def start(self) -> Run:
        """Create the run of a plan whose types are known, for :meth:`serve`."""
        assert self.plan is not None
        return self._run or self._start(Rows(_NO_KEYS, _NO_EPOCHS, (), 0, 0), {})

    @property
    def fed(self) -> dict[int, Feeder]:
        """Return the sources that the caller feeds, by node."""
        return {node: feeder for node, feeder in self._feeders.items() if feeder.fed_by_hand}

    def serve(self, feeds: Feeds, count: int) -> tuple[list[Any], dict[int, StokerError]]:
        """Run requests as one batch, bypassing the queue. Any thread may call it, several at the same time.

        Every request draws the random numbers of row key 0 in epoch 0, so no result depends on other requests. Users'
        functions in Python run for one batch at a time.

        Returns:
            The outputs, and the errors of failed rows by their number. Outputs of failed rows are undefined.
        """
        self._check_usable()
        run = self._run or self.start()
        rows = Rows(np.zeros(count, np.uint64), np.zeros(count, np.int64), (), 0, 0)
        failed: list[RowFailure] = []
        with self._serving if run.calls_python else contextlib.nullcontext():
            if count == 1:
                outputs = run.run_inline(rows, feeds, failed=failed)
            else:
                outputs = run.collect(run.prepare(rows, feeds, {}), failed)
        return outputs, {f.row: f.error for f in reversed(failed)}

    def batches(self, delivered: Delivered) -> tuple[Batch, ...]:
        """Return the outputs as batches."""
        plan = self._planning.plan
        assert plan is not None
        return delivered.batches(plan.outputs)

    def report(self) -> Report:
        """Return run statistics and the bottleneck."""
        times = stage_times(self.graph, self.plan, self._run, self._meter.rows, self._puller.source_ns, self.sources)
        handed_over = self._run.python.handed_over() if self._run is not None else ()
        mark = self.mark
        report = self._meter.report(
            times, self.config.seed, self.threads, handed_over, depth=self._depth,
            place=(mark.epoch, mark.position, self.schedule.epoch_size),
            split=self._split_controller.report() if self._split_controller is not None else None,
        )  # fmt: skip
        shards = next((s.shards for s in self.sources.values()), Shards())
        gpu = self.gpu.device.number if self.gpu is not None else None
        assignment = Assignment(shards.id, shards.number, gpu, tuple(sorted(self._launcher)))
        return replace(
            report, assignment=assignment, codecs=self._report_of_codecs(), read_ahead=self._read_ahead.report(),
            file_reads=file_reads_report(self.gpu.file_reads.report()) if self.gpu is not None else None,
        )  # fmt: skip

    def _report_of_codecs(self) -> dict[str, Any]:
        loaded = self._planning.loaded
        if self._run is None or loaded is None:
            return {}
        return self.codecs.report(tuple(loaded.by_codecs.values()))

    # ---- state ----

    def _mark(self) -> Mark:
        sources = tuple(f.position for f in self._feeders.values()) if self._feeders else ()
        position = self.schedule.position
        bad, listed = self._failures.count, len(self._failures.listed)
        return Mark(self.schedule.epoch, position, self.schedule.consumed(position), sources, bad=bad, listed=listed)

    @property
    def errors(self) -> list[BadSample]:
        """Return the bad samples found so far, without those of batches that a loop has taken ahead."""
        listed = self._failures.listed
        return listed if self._head is self.mark else listed[: self.mark.listed]

    def get_state(self, *, elastic: bool = False) -> dict[str, Any]:
        """Return the token of the last delivered batch.

        Args:
            elastic: require a token that works with another number of shards too.

        Raises:
            StateError: a source cannot resume from a state.
        """
        self.require_resumable(elastic=elastic)
        return {
            **state_facts(self.graph, self.sources, self.config.seed),
            "epoch": self.mark.epoch,
            "consumed": self.mark.consumed,
            "bad": list(self.mark.bad),
            "sources": {str(k): p for k, p in zip(self._feeders, self.mark.sources, strict=True)},
            "states": {str(k): copy.deepcopy(v) for k, v in self.mark.states.items()},
        }

    def require_resumable(self, *, elastic: bool = False, fed: Collection[int] = ()) -> None:
        """Raise StateError if a source or sampler cannot resume from a state.

        Args:
            elastic: require a state that restores with another number of shards too.
            fed: sources whose data the caller feeds again.
        """
        for node, feeder in self._feeders.items():
            if node not in fed:
                feeder.require_resumable(self.graph.nodes[node].source_line)
        require_resumable(self.graph, self.sources, elastic=elastic)

    @property
    def own_shard(self) -> tuple[int, int] | None:
        """Return the only shard (number, count) that the state can serve; None if it serves any shard."""
        return own_shard(self.graph, self.sources)

    @exclusive_method
    def set_state(self, token: Mapping[str, Any]) -> None:
        """Continue after the batch that the token belongs to."""
        require_same(token, self.graph, self.sources, self.config.seed)
        self._drop()
        self.schedule.seek(int(token["epoch"]), int(token["consumed"]))
        for key, position in token["sources"].items():
            self._feeders[int(key)].seek(position)
        states = {int(k): copy.deepcopy(v) for k, v in token["states"].items()}
        self._restore(states)
        epoch, bad = token["bad"]
        self._failures.count = (int(epoch), int(bad))
        self._move_to(replace(self._mark(), states=states))

    @exclusive_method
    def start_epoch(self, epoch: int) -> None:
        """Drop queued batches and begin an epoch."""
        self._drop(epoch)
        self._restore(self.mark.states)  # undoes the effect of prefetched batches that are dropped
        self.schedule.start_epoch(epoch)
        for feeder in self._feeders.values():
            feeder.reset()
        self._move_to(replace(self._mark(), states=self.mark.states))

    def _drop(self, epoch: int | None = None) -> None:
        """Wait for all batches in flight and discard them.

        Args:
            epoch: the epoch that begins next. Its first records may have been requested.
        """
        is_at_end = not self._queue  # after the last batch; a loop that was left early discards what was requested
        while self._queue:
            flight = self._queue[0].flight
            if flight is not None and self._run is not None:
                with contextlib.suppress(StokerError):
                    self._run.collect(flight)
            self._queue.popleft()
        self._record_prefetcher.drop(epoch if is_at_end else None)
        self._read_ahead.drop()

    def close(self) -> None:
        """Stop all threads and release resources; idempotent.

        Any thread may call it, even the user's code inside the pipeline.
        """
        first = self._mark_closed()
        self.course += 1  # what was taken ahead is not delivered
        for source in self.sources.values():
            source.cancel()
        if self._workers is not None:
            self._workers.close()
        if self._run is not None:
            self._run.close()
            if first:
                self.codecs.close()
        self._planning.isolated.close()
        self._read_ahead.close()
        for source in self.sources.values():
            source.close()
        self._forget_if_idle()  # after the end of the threads that write to its memory

    def abandon(self) -> None:
        """Close this, which nothing refers to any more; see :func:`.close_dropped`."""
        if not self._closed:
            close_dropped(self.close)

    def _forget(self) -> None:
        self._queue.clear()
        # The caller of `close` closes a run that it finds. Closing it here, too, would let the consumer wait for the
        # functions of the pipeline.
        if self._run is not None and self._began_closed and not self._run.closed:
            self._run.close()
            self.codecs.close()

    @property
    def run(self) -> Run | None:
        """Return the running plan; it exists after the start."""
        return self._run
