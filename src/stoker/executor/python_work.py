# SPDX-License-Identifier: Apache-2.0
"""Python code in a run: Python segments, and rows that native kernels hand over to their Python twins."""

from __future__ import annotations

import copy
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

from ..contract.errors import ResourceError, StateError, UnreadableFile, show_number
from ..contract.expr import is_static
from ..contract.feed import GpuArray, to_array
from ..contract.operator import Isolation, RowContext, Spec
from ..contract.random import Stream
from ..contract.step import PyCall
from ..contract.text import reason_of
from ..contract.thread_start import start_thread
from ..contract.types import DType
from ..graph.load import LoadedPlan
from ..graph.node import Graph
from ..native import _native
from .flight import InFlight
from .isolation import IsolatedOperators
from .report import HandOver
from .row_errors import Samples
from .schedule import Rows


class PythonWork:
    """Python segments and parked rows of a run.

    A thread that runs a batch itself also does the batch's Python work. Otherwise a dedicated thread does it, which
    starts with the first such batch. The first parked row starts more threads, up to the run's number, which take
    parked rows alone: their code is Stoker's, and most of its libraries release Python's lock.

    Args:
        flights: the run's batches in flight, by job number.
        gpu: the run's open GPU, to which operators may write their outputs.
    """

    def __init__(
        self, loaded: LoadedPlan, graph: Graph, engine: _native.Engine, samples: Samples,
        flights: dict[int, InFlight], gpu: Any = None,
    ) -> None:  # fmt: skip
        self._plan = loaded.plan
        self._twins = loaded.twins
        self._graph = graph
        self._engine = engine
        self._samples = samples
        self._flights = flights
        self.states: dict[int, Any] = {}  # states of stateful operators, by node
        self.ns: dict[int, int] = {}  # time spent, by node
        self._handed_over: dict[tuple[int, str], HandOver] = {}  # key: (node, reason)
        self._isolated, self._owns_isolated = IsolatedOperators(), True
        self._lock = threading.RLock()  # the user's code never runs concurrently
        self._counting = threading.Lock()  # of times and of rows that are handed over
        self._thread: threading.Thread | None = None
        self._helpers: list[threading.Thread] = []
        self._has_helpers = False
        self._serving = threading.Lock()  # held by the serving thread until it ends
        self._served = threading.Event()
        self._gpu = gpu
        self._on_gpu: set[int] = set()  # bodies whose outputs only the GPU reads, by identity
        for step in self._plan.steps:
            if not isinstance(step.body, PyCall):
                continue
            if step.body.operator.stateful:
                self.states[step.node] = step.body.operator.init()
            if gpu is not None and self._plan.put_on_gpu.issuperset(step.outputs):
                step.body.operator.use_gpu(step.body.args, gpu)
                self._on_gpu.add(id(step.body))

    def serve(self, owner: weakref.ref[PythonWorkOwner], wait_s: float) -> None:
        """Ensure that a serving thread exists for the life of the run. Wait up to ``wait_s`` for it to begin."""
        if not self._served.is_set():
            # After Ctrl-C an extra thread may still start: the first one to take the lock serves.
            arguments = (self._engine, owner)
            start_thread(threading.Thread(target=_serve, args=arguments, name="stoker-python", daemon=True))
            self._served.wait(wait_s)

    def start_helpers(self, owner: weakref.ref[PythonWorkOwner]) -> None:
        """Start the threads for parked rows, once. The serving thread calls it."""
        if self._has_helpers:
            return
        self._has_helpers = True
        for i in range(1, self._engine.threads):
            arguments = (self._engine, owner)
            thread = threading.Thread(target=_help, args=arguments, name=f"stoker-python-{i}", daemon=True)
            try:
                start_thread(thread)
            except ResourceError:  # the system has no more threads: those that run do all of the work
                return
            self._helpers.append(thread)

    def begin(self) -> bool:
        """Become the serving thread. Return False if there is one already."""
        if not self._serving.acquire(blocking=False):
            return False
        self._thread = threading.current_thread()
        self._served.set()
        return True

    def join(self, wait_s: float) -> bool:
        """Wait for the threads to end after the engine was closed. Return False if the user's code still runs.

        Args:
            wait_s: seconds, without those in which the process is stopped.
        """
        left = _Seconds(wait_s)
        # The serving thread first: it may still start others.
        if self._thread is not None and not left.join(self._thread):
            return False
        if not all(left.join(thread) for thread in self._helpers):
            return False
        self._thread = None
        self._helpers.clear()
        return True

    def share_isolated(self, isolated: IsolatedOperators) -> None:
        """Use processes of isolated operators that the caller ends."""
        self._isolated, self._owns_isolated = isolated, False

    def close_shared(self) -> None:
        """Close what the operators share on the GPU, after the call in flight."""
        if self._on_gpu:
            with self._lock:
                self._gpu.close_shared()

    def end_isolated(self) -> None:
        """End the run's own processes of isolated operators, after the call in flight; the next call starts others."""
        if self._owns_isolated:
            with self._lock:
                self._isolated.close()

    def do(self, work: Any, *, raises: bool = True) -> None:
        """Do one piece of Python work. The batch continues even if the work fails.

        ``raises``: the thread is one of the caller's, which Ctrl-C interrupts.
        """
        try:
            if work.row >= 0:
                self._hand_over(work)
            else:
                with self._lock:  # this thread may compute a substitute while the serving thread has a later batch
                    self._python_segment(work.job)
        except BaseException as error:
            # Rows without results must not continue.
            self._fail_work(work, error)
            if raises:
                raise
        finally:
            self._engine.finish_python(work)

    def _fail_work(self, work: Any, error: BaseException) -> None:
        job = work.job
        if work.row >= 0:
            self._fail(job, work.row, work.step, error)
            return
        number = self._plan.segments[job.segment][1][0]
        for row in range(job.rows):
            self._fail(job, row, number, error)

    def _hand_over(self, work: Any) -> None:
        step = self._plan.steps[work.step]
        job, row, reason = work.job, work.row, work.reason
        if reason:
            self._note(self._flights[job.id], row, step.node, reason)
        inputs = [job.array(row, v) for v in step.inputs]
        began = time.perf_counter_ns()
        try:
            self._twins[work.step](inputs, work.params, work.outputs())
        except Exception as error:  # noqa: BLE001 - whatever a codec raises fails its row alone
            says_why = bool(reason) and not isinstance(error, UnreadableFile)
            self._fail(job, row, work.step, error, f" (handed over by the native kernel: {reason})" if says_why else "")
        self._count_python(step.node, began)

    def _count_python(self, node: int, began: int) -> None:
        with self._counting:
            self.ns[node] = self.ns.get(node, 0) + time.perf_counter_ns() - began

    def _note(self, flight: InFlight, row: int, node: int, reason: str) -> None:
        """Record a row's hand-over once, even if several steps of the node hand it over."""
        with self._counting:
            if (row, node, reason) in flight.handed_over:
                return
            flight.handed_over.add((row, node, reason))
            one = self._handed_over.get((node, reason))
            if one is None:
                source_node = self._graph.nodes[node]
                one = HandOver(
                    source_node.operator.name, f"{source_node.source_line}" if source_node.source_line else "", reason
                )
                self._handed_over[node, reason] = one
            one.count(self._samples.of(flight.rows, row)[1])

    def handed_over(self) -> tuple[HandOver, ...]:
        """Return the rows that native kernels have handed over to Python twins, most frequent reason first."""
        return tuple(sorted(map(copy.copy, list(self._handed_over.values())), key=lambda one: -one.rows))

    def _python_segment(self, job: Any) -> None:
        _, members = self._plan.segments[job.segment]
        flight = self._flights[job.id]
        for number in members:
            step = self._plan.steps[number]
            assert isinstance(step.body, PyCall)
            began = time.perf_counter_ns()
            rows = [r for r in range(job.rows) if job.active(r, number)]
            # Copies, because the user's code may keep or change its inputs.
            inputs = [[job.array(r, v).copy() for v in step.inputs] for r in rows]
            results = flight.replay.get(step.node)
            if results is None:
                results = dict(zip(rows, self.call(step.body, rows, inputs, flight.rows, flight.seed), strict=True))
                if flight.record:
                    flight.replay[step.node] = results
            # Rows that failed after type discovery do not use its results.
            for r in rows:
                result = results[r]
                if isinstance(result, BaseException):
                    self._fail(job, r, number, result)
                else:
                    self._put(flight, r, number, result)
            if step.body.operator.stateful:
                # A copy, because the next batch may change the state before this batch is delivered.
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
            batch_position=(row, len(rows)), key=int(rows.keys[row]), epoch=int(rows.epochs[row]),
            gpu=self._gpu if id(body) in self._on_gpu else None, threads=self._engine.threads,
        )  # fmt: skip

    def call(self, body: PyCall, active: list[int], values: list[list[Any]], rows: Rows, seed: int) -> list[Any]:
        """Run Python code for the active rows of a batch.

        Args:
            values: for each active row, the inputs and then the per-row arguments.

        Returns:
            For each active row a tuple of outputs, or the exception that the code raised.
        """
        operator = body.operator
        contexts = [self._context(body, r, x, rows, seed) for r, x in zip(active, values, strict=True)]
        inputs = [tuple(x[: len(x) - len(body.edges)]) for x in values]
        isolation = operator.isolation(body.args)
        if operator.runs_batches(body.args):
            try:
                found = (
                    operator.run_rows(contexts, inputs)
                    if isolation is None
                    else self._isolated.call(body, isolation, contexts, inputs, self._is_closed)
                )
                from_batch = [x if isinstance(x, Exception) else _as_tuple(x) for x in found]
                if len(from_batch) != len(active):
                    raise ValueError(f"expected one result for each of {len(active)} rows, got {len(from_batch)}")
                return from_batch
            except Exception as error:  # noqa: BLE001 - a user's code may raise anything; its rows carry it
                return [error] * len(active)
        results: list[Any] = []
        for row, x in zip(contexts, inputs, strict=True):
            if self._engine.closed:
                results.append(StateError("the pipeline is closed"))
                continue
            try:
                results.append(self._call_row(body, isolation, row, x))
            except Exception as error:  # noqa: BLE001 - a user's code may raise anything; its row carries it
                results.append(error)
        return results

    def _call_row(
        self, body: PyCall, isolation: Isolation | None, row: RowContext, inputs: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        if isolation is None:
            return _as_tuple(body.operator.reference(row, *inputs))
        return _as_tuple(self._isolated.call(body, isolation, [row], [inputs], self._is_closed)[0])

    def _is_closed(self) -> bool:
        return bool(self._engine.closed)

    def _put(self, flight: InFlight, row: int, number: int, outputs: tuple[Any, ...]) -> None:
        step, job = self._plan.steps[number], flight.job
        try:
            if len(outputs) != len(step.outputs):
                raise ValueError(f"expected {len(step.outputs)} outputs, got {len(outputs)}")
            for v, data in zip(step.outputs, outputs, strict=True):
                planned = self._plan.values[v]
                array = data if isinstance(data, GpuArray) else to_array(data)
                wanted_type = planned.dtype if isinstance(array, GpuArray) else planned.dtype.numpy
                if array.dtype != wanted_type or array.ndim != planned.rank:
                    raise ValueError(
                        f"expected {planned.dtype} with {planned.rank} axes as for the first row, "
                        f"got {array.dtype} with {array.ndim}"
                    )
                if any(is_static(e) and e != n for e, n in zip(planned.shape, array.shape, strict=True)):
                    wanted = ", ".join("any" if not is_static(e) else show_number(e) for e in planned.shape)
                    raise ValueError(f"expected the shape ({wanted}) that is declared, got {array.shape}")
                if isinstance(array, GpuArray):
                    flight.keep_alive.append(array)
                    job.put_at(row, v, array.address, array.shape, int(array.dtype))
                else:
                    job.put(row, v, array)
        except Exception as error:  # noqa: BLE001 - a user's result may fail anywhere; its row carries the error
            self._fail(job, row, number, error)

    def _fail(self, job: Any, row: int, number: int, error: BaseException, hint: str = "") -> None:
        flight = self._flights.get(job.id)
        if flight is not None:
            flight.failures[row] = error
        job.fail(row, number, reason_of(error) + hint)


class PythonWorkOwner(Protocol):
    """Interface of a run with Python work."""

    python: PythonWork


def _serve(engine: Any, owner: weakref.ref[PythonWorkOwner]) -> None:
    """Serve Python work on a thread. The thread holds no reference to the run, so that a forgotten pipeline can end."""
    run = owner()
    if run is None or not run.python.begin():
        return
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
        if run is None:  # no caller will collect this batch, and it must not continue without Python's results
            return
        if work.row >= 0:
            run.python.start_helpers(owner)
        run.python.do(work, raises=False)
        del run, work


def _help(engine: Any, owner: weakref.ref[PythonWorkOwner]) -> None:
    """Compute parked rows on a thread, like :func:`_serve`."""
    while True:
        work = engine.next_python(1.0, rows_only=True)
        if work is False:
            return
        run = owner()
        if run is None:
            return
        if work is not True:
            run.python.do(work, raises=False)
        del run, work


_SLICE_S = 0.05


class _Seconds:
    """Seconds that are left for waiting. Those in which the process is stopped do not count: the clock goes on then,
    and the threads do not.
    """

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    def join(self, thread: threading.Thread) -> bool:
        """Wait for a thread, unless it is the caller's own. Return False if it still runs when no time is left."""
        if thread is threading.current_thread():
            return True
        while self._left > 0 and thread.is_alive():
            began = time.monotonic()
            thread.join(min(self._left, _SLICE_S))
            # Much longer than a slice: the process was stopped, or got no processor.
            self._left -= min(time.monotonic() - began, 2 * _SLICE_S)
        return not thread.is_alive()


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def specs_of(outputs: tuple[Any, ...], layouts: Sequence[str]) -> tuple[Spec, ...]:
    """Return the types of a Python node's outputs, from one row of them."""
    arrays = [to_array(x) for x in outputs]
    names = list(layouts) + [""] * len(arrays)
    return tuple(
        Spec(DType.of(a.dtype), (None,) * a.ndim, n if len(n) == a.ndim else "", a.shape)
        for a, n in zip(arrays, names, strict=False)
    )
