# SPDX-License-Identifier: Apache-2.0
"""The Python side of a run: it submits batches, runs Python segments, and hands over what the native loop made."""

from __future__ import annotations

import atexit
import copy
import os
import threading
import time
import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..contract.errors import DataError, DeviceError, StateError, message
from ..contract.expr import is_static
from ..contract.feed import OnGpu, to_array
from ..contract.lowering import show_number
from ..contract.operator import RowContext, Spec
from ..contract.random import Stream
from ..contract.step import Native, PyCall
from ..contract.types import DType
from ..graph.node import Graph
from ..graph.plan import KernelsOnGpu, Plan
from ..native import _native
from .report import HandOver, OnEngines
from .schedule import Rows
from .split import Decoder

_DONE, _PYTHON, _TIMEOUT, _CLOSED = range(4)
_FATAL = -2  # stands for a check's number in errors that no row is to blame for
_POLL_S = 0.1  # how long Ctrl-C may go unnoticed while a batch is awaited
_CLOSE_S = 5.0  # how long `close` waits for the user's code that runs in a pipeline
_EXIT_S = 1.0  # the same at the end of the process

Replay = dict[int, dict[int, Any]]  # node -> row -> outputs, made while types were being found


class OpenGpu(KernelsOnGpu, Protocol):
    """A GPU that plans are made for and run on."""

    @property
    def device(self) -> _native.gpu.Device:
        """The device, as the run loop uses it."""

    @property
    def memory_limit(self) -> int:
        """The most bytes of its memory that a run may take."""

    @property
    def decoders(self) -> Sequence[Decoder]:
        """Those of the plans made for it."""

    @property
    def on_engines(self) -> Sequence[OnEngines]:
        """Those that give rows to its JPEG engines."""

    @property
    def jpeg_index(self) -> _native.gpu.JpegIndex | None:
        """What they keep about files that may come again."""

    def save_jpeg_index(self) -> None:
        """Write that to its folder, if it has one."""


class Supply(NamedTuple):
    """Memory of a consumer for an output.

    Attributes:
        address: of contiguous memory for all rows, where the output is planned to be.
        owner: what is handed over as the output; it keeps the memory.
        stream: for a GPU's memory, the consumer's stream, which may still work there: the run's work follows it.
    """

    address: int
    owner: Any
    stream: int | None = None


Feeds = Mapping[tuple[int, int], Any]  # (node, output) -> an array with one element per row, or a list of arrays


@dataclass(frozen=True, slots=True)
class Failure:
    """A row that failed.

    Attributes:
        row: its number in the batch.
        node: the graph's node at which it failed; -1 if it is none's.
        reason: why, without sample and place.
        error: the whole message.
        fatal: it is not the row's fault, and another one in its place would fail too.
        in_data: the operator failed at what it was given, rather than at its arguments or shapes.
    """

    row: int
    node: int
    reason: str
    error: DataError
    fatal: bool = False
    in_data: bool = False


@dataclass(eq=False, slots=True)
class InFlight:
    """A batch on its way. ``kept`` are the caller's arrays that the native side reads or writes.

    ``taken`` are the outputs that have been handed over: Ctrl-C may come between any two of them. ``addresses`` is
    where the consumer's memory for outputs is.
    """

    job: Any
    rows: Rows
    kept: list[Any]
    supplied: dict[int, Any]
    replay: Replay
    seed: int
    record: bool = False
    failures: dict[int, BaseException] = field(default_factory=dict)
    handed_over: set[tuple[int, int, str]] = field(default_factory=set)  # (row, node, reason)
    states: dict[int, Any] = field(default_factory=dict)
    taken: list[Any] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    addresses: dict[int, int] = field(default_factory=dict)
    started: bool = False
    done: bool = False
    held: bool = False


_live: weakref.WeakSet[Run] = weakref.WeakSet()


class Run:
    """Executes one plan. Rows go in with :meth:`prepare` and :meth:`start`, outputs come out of :meth:`collect`.

    Args:
        describe: gives a text for a reader's sample (reader number, index), for messages.
    """

    def __init__(
        self, plan: Plan, graph: Graph, threads: int, seed: int, sources: Mapping[int, Any], gpu: OpenGpu | None = None
    ) -> None:
        self.plan = plan
        self.graph = graph
        self.seed = seed
        self._sources = [sources[r] for r in plan.readers]
        order = list(sources)  # that of the columns of ``Rows.indices``; the plan of a part may not need all of them
        self._columns = [order.index(r) for r in plan.readers]
        on_gpu = any(s.on_gpu for s in plan.steps)
        self._engine = (
            _native.Engine(plan.native, threads, gpu.device, gpu.memory_limit)
            if on_gpu and gpu is not None
            else _native.Engine(plan.native, threads)
        )
        self._flying: dict[int, InFlight] = {}
        self._server: threading.Thread | None = None
        self._place = threading.Lock()  # held by the server for as long as it lives
        self._served = threading.Event()
        self.python_ns: dict[int, int] = {}  # time in Python code, by node
        self._python = threading.RLock()  # one piece of the user's code at a time
        self._pid = os.getpid()
        self.is_native = not any(  # no row can need Python
            isinstance(s.body, PyCall) or (isinstance(s.body, Native) and s.body.twin is not None) for s in plan.steps
        )
        self.is_light = self.is_native and not on_gpu  # the caller's thread does all of the work itself
        self.states: dict[int, Any] = {}  # of stateful operators, by node
        self._handed_over: dict[tuple[int, str], HandOver] = {}  # by node and reason
        for step in plan.steps:
            if isinstance(step.body, PyCall) and step.body.operator.stateful:
                self.states[step.node] = step.body.operator.init()
        _live.add(self)

    # ---- batches ----

    def prepare(self, rows: Rows, feeds: Feeds, supply: Mapping[int, Supply],
                replay: Replay | None = None, *, held: bool = False) -> InFlight:  # fmt: skip
        """A batch for the worker threads, which :meth:`start` gives them.

        Args:
            supply: memory for outputs, by number.
            held: whether it waits for :meth:`admit` before it takes memory of the GPU and goes there.
        """
        self.check_usable()
        flight = self._prepare(rows, feeds, supply, replay, self.seed)
        if held:
            flight.held = True
            flight.job.hold()
        return flight

    def admit(self, flight: InFlight, supply: Mapping[int, Supply]) -> None:
        """Let a batch that is held go to the GPU. ``supply``: memory for outputs that are there."""
        self._supply(flight, supply)
        flight.held = False
        self._engine.admit(flight.job)

    def start(self, flight: InFlight) -> None:
        """Queue a batch for the worker threads. After Ctrl-C it may be called again."""
        if not flight.started:
            self._engine.submit(flight.job)
            flight.started = True

    def _indices(self, rows: Rows) -> tuple[npt.NDArray[np.int64], ...]:
        return tuple(rows.indices[i] for i in self._columns)

    def _prepare(
        self, rows: Rows, feeds: Feeds, supply: Mapping[int, Supply], replay: Replay | None, seed: int
    ) -> InFlight:
        job = self._engine.acquire(rows.keys, rows.epochs, seed, self._indices(rows))
        flight = InFlight(job, rows, [], {}, {} if replay is None else replay, seed)
        self._flying[job.id] = flight
        try:
            self._feed(flight, feeds)
        except BaseException:
            self._forget(flight)
            raise
        self._supply(flight, supply)
        return flight

    def _supply(self, flight: InFlight, supply: Mapping[int, Supply]) -> None:
        for output, memory in supply.items():
            flight.job.supply(output, memory.address, memory.stream)
            flight.addresses[output] = memory.address
            flight.supplied[output] = memory.owner

    def _feed(self, flight: InFlight, feeds: Feeds) -> None:
        job = flight.job
        for key, data in feeds.items():
            value = self.plan.fed.get(key)
            if value is None:
                continue
            flight.kept.append(data)
            if isinstance(data, np.ndarray):
                job.feed_rows(value, data)
                continue
            for r, row in ((-1, data),) if isinstance(data, OnGpu) else enumerate(data):
                if isinstance(row, OnGpu):
                    self._require_on_gpu(key[0], value)
                    job.feed_at(value, r, row.address, row.shape, row.strides, int(row.dtype), row.stream)
                else:
                    job.feed(value, r, row)

    def _require_on_gpu(self, number: int, value: int) -> None:
        if value not in self.plan.fed_on_gpu:
            node = self.graph.nodes[number]
            text = "its data are in a GPU's memory, and something that runs on the CPU reads them"
            hint = 'Set `device="gpu"` for it and for what reads it, or give it data in host memory'
            raise DataError(message(node.operator.name, text, source=node.source, hint=hint))

    def collect(self, flight: InFlight, failed: list[Failure] | None = None) -> list[Any]:
        """Wait for a batch; its outputs: supplied owners, arrays (dense), or lists of arrays (ragged).

        Rows that failed are added to ``failed``, and what the outputs hold in their places is arbitrary; without it,
        the first one's error is raised. After Ctrl-C it may be called again.
        """
        self._check_process()
        self.start(flight)
        if flight.held:
            self.admit(flight, {})
        while not flight.done:
            state = self._engine.wait(flight.job, _POLL_S)
            if state == _DONE:
                self._take(flight)
            elif state == _CLOSED:
                _rest_at_exit()
                raise StateError("the pipeline was closed while a batch was awaited")
            elif state == _PYTHON:
                self._serve_python()
        self._forget(flight)
        if not flight.failed:
            return self._outputs(flight)
        return self._tell(flight, failed)

    def _tell(self, flight: InFlight, failed: list[Failure] | None) -> list[Any]:
        """The outputs of a batch with failed rows, which are added to ``failed``, or the first one is raised."""
        fatal = any(f.fatal for f in flight.failed)
        if failed is not None and not fatal:
            failed += flight.failed
            return self._outputs(flight)
        try:
            raise flight.failed[0].error
        finally:
            del flight  # the error's traceback must not keep the batch

    def run_here(self, rows: Rows, feeds: Feeds, replay: Replay | None = None, *, record: bool = False,
                 seed: int | None = None, failed: list[Failure] | None = None) -> list[Any]:  # fmt: skip
        """Run one batch on the caller's thread, without a queue or another thread.

        ``record`` puts what Python nodes give into ``replay``; ``seed`` stands for the run's own; ``failed`` as for
        :meth:`collect`.
        """
        self._check_process()
        if self.is_native and not feeds:
            own = self.seed if seed is None else seed
            outputs = self._engine.run_rows(rows.keys, rows.epochs, own, self._indices(rows))
            if outputs is not None:
                return outputs
            # A row failed; done once more, the long way tells which and why.
        flight = self._prepare(rows, feeds, {}, replay, self.seed if seed is None else seed)
        flight.record = record
        try:
            self._engine.begin(flight.job)
            while (work := self._engine.advance(flight.job)) is not None:
                self._do(work)
            self._take(flight)
        finally:
            self._forget(flight)
        return self._tell(flight, failed) if flight.failed else self._outputs(flight)

    def _take(self, flight: InFlight) -> None:
        if flight.job.has_errors and not flight.failed:
            flight.failed = self._failures(flight)
        if not any(f.fatal for f in flight.failed):
            own = [i for i in range(len(self.plan.outputs)) if i not in flight.supplied]
            # `extend` and `map` are one call: no signal handler runs between taking an output and keeping it.
            flight.taken.extend(map(flight.job.take_output, own[len(flight.taken) :]))
        flight.done = True

    def _outputs(self, flight: InFlight) -> list[Any]:
        taken = iter(flight.taken)
        return [flight.supplied[i] if i in flight.supplied else next(taken) for i in range(len(self.plan.outputs))]

    def _forget(self, flight: InFlight) -> None:
        if self._flying.get(flight.job.id) is flight:  # the job may serve another batch by now
            del self._flying[flight.job.id]
            self._engine.release(flight.job)

    # ---- outputs on a GPU ----

    def move_on_gpu(self, moves: list[tuple[int, int, int]]) -> None:
        """Copy (to, from, bytes) within the GPU's memory, in order; done when it returns.

        Raises:
            DeviceError: the GPU does not.
        """
        try:
            self._engine.move_on_device(moves)
        except _native.gpu.DeviceFailure as failure:
            raise DeviceError(f"rows cannot be moved in the GPU's memory: {failure}") from failure

    def stack_on_gpu(self, rows: list[Any]) -> Any:
        """One array out of rows of one shape in the GPU's memory; raises as :meth:`move_on_gpu`."""
        try:
            return self._engine.stack_on_device(rows)
        except (_native.gpu.DeviceFailure, MemoryError) as failure:
            raise DeviceError(f"rows cannot be put together in the GPU's memory: {failure}") from failure

    # ---- Python work ----

    def _serve_python(self) -> None:
        """Start the thread that runs Python segments and handed-over rows."""
        if not self._served.is_set():
            # Ctrl-C may leave a thread here that starts nevertheless: the first to take the place serves.
            place = (self._engine, weakref.ref(self))
            threading.Thread(target=_serve, args=place, name="stoker-python", daemon=True).start()
            self._served.wait(_POLL_S)

    def _do(self, work: Any) -> None:
        """One piece of Python work. Whatever happens, the batch goes on."""
        try:
            with self._python:  # a substitute may be made here while the serving thread is at a later batch
                if work.row >= 0:
                    self._hand_over(work)
                else:
                    self._python_segment(work.job)
        except BaseException as error:
            # Rows that nothing was made for must not go on. Only the caller's own thread is interrupted.
            self._fail_work(work, error)
            if threading.current_thread() is not self._server:
                raise
        finally:
            self._engine.finish_python(work)

    def _fail_work(self, work: Any, error: BaseException) -> None:
        job = work.job
        if work.row >= 0:
            self._fail(job, work.row, work.step, error)
            return
        number = self.plan.segments[job.segment][1][0]
        for row in range(job.rows):
            self._fail(job, row, number, error)

    def _hand_over(self, work: Any) -> None:
        step = self.plan.steps[work.step]
        assert isinstance(step.body, Native) and step.body.twin is not None
        job, row, reason = work.job, work.row, work.reason
        if reason:
            self._note(self._flying[job.id], row, step.node, reason)
        inputs = [job.array(row, v) for v in step.inputs]
        began = time.perf_counter_ns()
        try:
            step.body.twin(inputs, work.params, work.outputs())
        except Exception as error:  # noqa: BLE001 - whatever a codec raises fails its row alone
            self._fail(job, row, work.step, error, f" (handed over by the native kernel: {reason})" if reason else "")
        self._count_python(step.node, began)

    def _count_python(self, node: int, began: int) -> None:
        self.python_ns[node] = self.python_ns.get(node, 0) + time.perf_counter_ns() - began

    def is_finished(self, flight: InFlight) -> bool:
        """Whether a batch waits to be collected."""
        return flight.started and bool(self._engine.done(flight.job))

    def _note(self, flight: InFlight, row: int, node: int, reason: str) -> None:
        """Record that a row was handed over; once, even if several steps of the node do it."""
        if (row, node, reason) in flight.handed_over:
            return
        flight.handed_over.add((row, node, reason))
        one = self._handed_over.get((node, reason))
        if one is None:
            made = self.graph.nodes[node]
            one = HandOver(made.operator.name, f"{made.source}" if made.source else "", reason)
            self._handed_over[node, reason] = one
        one.count(self._sample(flight.rows, row)[1])

    def handed_over(self) -> tuple[HandOver, ...]:
        """What native kernels left to their Python twins so far, the most frequent first."""
        return tuple(sorted(map(copy.copy, list(self._handed_over.values())), key=lambda one: -one.rows))

    def _sample(self, rows: Rows, row: int) -> tuple[int | None, str]:
        """A row's sample, and its name in messages."""
        if not self._sources:
            return None, f"row {row}"
        sample = int(self._indices(rows)[0][row])
        return sample, f"sample {sample} ({self._sources[0].describe(sample)})"

    def _python_segment(self, job: Any) -> None:
        _, members = self.plan.segments[job.segment]
        flight = self._flying[job.id]
        for number in members:
            step = self.plan.steps[number]
            assert isinstance(step.body, PyCall)
            began = time.perf_counter_ns()
            rows = [r for r in range(job.rows) if job.active(r, number)]
            # Copies: the user's code may keep what it is given, or change it.
            inputs = [[job.array(r, v).copy() for v in step.inputs] for r in rows]
            made = flight.replay.get(step.node)
            if made is None:
                made = dict(zip(rows, self.call(step.body, rows, inputs, flight.rows, flight.seed), strict=True))
                if flight.record:
                    flight.replay[step.node] = made
            # Of what was made while types were found, rows that have failed meanwhile are not wanted any more.
            for r in rows:
                result = made[r]
                if isinstance(result, BaseException):
                    self._fail(job, r, number, result)
                else:
                    self._put(job, r, number, result)
            if step.body.operator.stateful:
                # A copy: the next batch may change the state before this one is delivered.
                flight.states[step.node] = copy.deepcopy(step.body.operator.get_state(self.states[step.node]))
            self._count_python(step.node, began)

    def _context(self, body: PyCall, row: int, inputs: Sequence[Any], rows: Rows, run_seed: int) -> RowContext:
        edges = dict(zip(body.edges, inputs[len(inputs) - len(body.edges) :], strict=True))
        seed = body.args.get("seed")
        stream = None
        if body.operator.draws:
            own = seed if seed is not None and seed >= 0 else run_seed
            stream = Stream(own, int(rows.epochs[row]), int(rows.keys[row]), body.draw)
        return RowContext(
            {**body.args, **edges}, layouts=body.layouts, stream=stream, state=self.states.get(body.node),
            place=(row, len(rows)),
        )  # fmt: skip

    def call(self, body: PyCall, active: list[int], values: list[list[Any]], rows: Rows, seed: int) -> list[Any]:
        """Run Python code for the active rows of a batch.

        Args:
            values: per active row, the inputs and then the per-row arguments.

        Returns:
            Per active row a tuple of outputs, or the exception that it raised.
        """
        operator = body.operator
        contexts = [self._context(body, r, x, rows, seed) for r, x in zip(active, values, strict=True)]
        inputs = [tuple(x[: len(x) - len(body.edges)]) for x in values]
        if operator.runs_batches(body.args):
            try:
                made = [x if isinstance(x, Exception) else _as_tuple(x) for x in operator.run_rows(contexts, inputs)]
                if len(made) != len(active):
                    raise ValueError(f"expected one result for each of {len(active)} rows, got {len(made)}")
                return made
            except Exception as error:  # noqa: BLE001 - a user's code may raise anything; its rows carry it
                return [error] * len(active)
        results: list[Any] = []
        for row, x in zip(contexts, inputs, strict=True):
            if self._engine.closed:
                results.append(StateError("the pipeline is closed"))
                continue
            try:
                results.append(_as_tuple(operator.reference(row, *x)))
            except Exception as error:  # noqa: BLE001 - a user's code may raise anything; its row carries it
                results.append(error)
        return results

    def _put(self, job: Any, row: int, number: int, outputs: tuple[Any, ...]) -> None:
        step = self.plan.steps[number]
        try:
            if len(outputs) != len(step.outputs):
                raise ValueError(f"expected {len(step.outputs)} outputs, got {len(outputs)}")
            for v, data in zip(step.outputs, outputs, strict=True):
                planned = self.plan.values[v]
                array = to_array(data)
                if array.dtype != planned.dtype.numpy or array.ndim != planned.rank:
                    raise ValueError(
                        f"expected {planned.dtype} with {planned.rank} axes as for the first row, "
                        f"got {array.dtype} with {array.ndim}"
                    )
                if any(is_static(e) and e != n for e, n in zip(planned.shape, array.shape, strict=True)):
                    wanted = ", ".join("any" if not is_static(e) else show_number(e) for e in planned.shape)
                    raise ValueError(f"expected the shape ({wanted}) that is declared, got {array.shape}")
                job.put(row, v, array)
        except Exception as error:  # noqa: BLE001 - what a user's code gave may fail anywhere; its row carries it
            self._fail(job, row, number, error)

    def _fail(self, job: Any, row: int, number: int, error: BaseException, hint: str = "") -> None:
        flight = self._flying.get(job.id)
        if flight is not None:
            flight.failures[row] = error
        job.fail(row, number, (str(error) or type(error).__name__) + hint)

    # ---- errors ----

    def _failures(self, flight: InFlight) -> list[Failure]:
        """Every failed row with its first error."""
        first: dict[int, Any] = {}
        for entry in sorted(flight.job.errors):
            first.setdefault(entry[0], entry)
        return [self._failure(flight, entry) for entry in first.values()]

    def _failure(self, flight: InFlight, entry: Any) -> Failure:
        row, number, check, values, text = entry
        maker = self.plan.steps[number].node
        reason = text.decode(errors="replace")
        cause = flight.failures.get(row)
        if check >= 0:
            reason, maker = self.plan.messages[check]
            reason = reason.format(*map(show_number, values))
        elif cause is not None and not isinstance(cause, DataError):
            reason = f"{type(cause).__name__}: {reason}"
        node = self.graph.nodes[maker] if maker >= 0 else None
        sample, name = self._sample(flight.rows, row)
        subject = node.operator.subject(node.args) if node else "output"
        text = message(subject, reason, sample=name, source=node.source if node else None)
        error = DataError(text, row=row, sample=sample)
        error.__cause__ = cause
        return Failure(row, maker, reason, error, check == _FATAL, check == -1)

    # ---- end ----

    def check_usable(self) -> None:
        """StateError if the run is closed or belongs to another process."""
        if self._engine.closed:
            _rest_at_exit()
            raise StateError("the pipeline is closed")
        self._check_process()

    def _check_process(self) -> None:
        if os.getpid() != self._pid:
            raise StateError(
                "this pipeline was started in another process: threads do not survive a fork. Build it in the process "
                'that uses it, or use the "spawn" start method'
            )

    def close(self) -> None:
        """Stop all threads; idempotent. Rows in flight are finished first, queued ones dropped."""
        again = self.closed
        if not self.stop(0 if again else _CLOSE_S) and not again:
            warnings.warn(
                f"a function of the pipeline has not returned for {_CLOSE_S:g} s after `close`; its thread and what it "
                "works on stay until it does",
                RuntimeWarning,
                stacklevel=3,
            )

    def stop(self, wait_s: float) -> bool:
        """Stop all threads. False if the user's code still runs after ``wait_s``."""
        if os.getpid() != self._pid:
            return True
        self._engine.close()
        server = self._server
        if server is not None and server is not threading.current_thread():
            server.join(wait_s)
            if server.is_alive():
                return False
        self._server = None
        self._flying.clear()
        _live.discard(self)
        return True

    @property
    def closed(self) -> bool:
        return bool(self._engine.closed)

    def step_times(self) -> list[int]:
        """Nanoseconds per native step, over all threads."""
        return list(self._engine.step_times())

    def device_times(self) -> tuple[int, list[float]]:
        """Nanoseconds of the GPU per native step in the batches that were measured, and how many rows these had."""
        rows, times = self._engine.device_times()
        return rows, list(times)

    @property
    def device_bytes(self) -> int:
        """Of the GPU's memory, taken at this moment."""
        return self._engine.device_bytes

    @property
    def scratch_bytes(self) -> int:
        return int(self._engine.scratch_bytes)


def _serve(engine: Any, owner: weakref.ref[Run]) -> None:
    """The Python thread: it must not keep the run alive, so that a forgotten pipeline still ends."""
    run = owner()
    if run is None or not run._place.acquire(blocking=False):
        return
    run._server = threading.current_thread()
    run._served.set()
    del run
    while True:
        work = engine.next_python(1.0)
        if work is False:
            return
        if work is True:
            if owner() is None:
                return
            continue
        run = owner()
        if run is None:  # nobody will ask for the batch, which must not go on without what Python would have made
            return
        run._do(work)
        del run, work


_exiting = threading.Event()


def _rest_at_exit() -> None:
    """Keep a thread that the process does not wait for from telling its user that the end has closed its pipeline."""
    if _exiting.is_set() and threading.current_thread() is not threading.main_thread():
        threading.Event().wait()


@atexit.register
def _close_all() -> None:
    _exiting.set()
    for run in list(_live):
        run.stop(_EXIT_S)


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def specs_of(outputs: tuple[Any, ...], layouts: Sequence[str]) -> tuple[Spec, ...]:
    """Types of a Python node's outputs, from one row of them."""
    arrays = [to_array(x) for x in outputs]
    names = list(layouts) + [""] * len(arrays)
    return tuple(
        Spec(DType.of(a.dtype), (None,) * a.ndim, n if len(n) == a.ndim else "")
        for a, n in zip(arrays, names, strict=False)
    )
