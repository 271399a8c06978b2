# SPDX-License-Identifier: Apache-2.0
"""The Python side of a run: it submits batches, runs Python segments, and hands over what the native loop made."""

from __future__ import annotations

import atexit
import os
import threading
import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..contract.errors import DataError, DeviceError, StateError, message
from ..contract.feed import OnGpu
from ..contract.step import Native, PyCall
from ..graph.node import Graph
from ..graph.plan import KernelsOnGpu, Plan
from ..native import _native
from .decoding import OnEngines
from .flight import Failure, Feeds, InFlight, Replay, Supply
from .python_work import PythonWork
from .row_errors import Samples, failures
from .schedule import Rows
from .split import Decoder

_DONE, _PYTHON, _TIMEOUT, _CLOSED = range(4)
_POLL_S = 0.1  # how long Ctrl-C may go unnoticed while a batch is awaited
_CLOSE_S = 5.0  # how long `close` waits for the user's code that runs in a pipeline
_EXIT_S = 1.0  # the same at the end of the process


class OpenGpu(KernelsOnGpu, Protocol):
    """A GPU that plans are made for and run on."""

    @property
    def device(self) -> _native.gpu.Device:
        """The device, as the run loop uses it."""

    @property
    def account(self) -> _native.gpu.Account:
        """What has been taken of its memory, and the most that may be."""

    @property
    def decoders(self) -> Sequence[Decoder]:
        """Those of the plans made for it."""

    @property
    def on_engines(self) -> Sequence[OnEngines]:
        """Those that give rows to its JPEG engines."""

    @property
    def engines_memory(self) -> tuple[int, int]:
        """Bytes that their library has asked for, and that the driver has taken for it."""

    @property
    def jpeg_index(self) -> _native.gpu.JpegIndex | None:
        """What they keep about files that may come again."""

    def save_jpeg_index(self) -> None:
        """Write that to its folder, if it has one."""


_live: weakref.WeakSet[Run] = weakref.WeakSet()


class Run:
    """Executes one plan. Rows go in with :meth:`prepare` and :meth:`start`, outputs come out of :meth:`collect`.

    Args:
        sources: opened sources by node, for messages and for what of ``Rows.indices`` the plan reads.
    """

    def __init__(
        self, plan: Plan, graph: Graph, threads: int, seed: int, sources: Mapping[int, Any], gpu: OpenGpu | None = None
    ) -> None:
        self.plan = plan
        self.graph = graph
        self.seed = seed
        self._samples = Samples(plan, sources)
        on_gpu = any(s.on_gpu for s in plan.steps)
        self.engine = (
            _native.Engine(plan.native, threads, gpu.device, gpu.account)
            if on_gpu and gpu is not None
            else _native.Engine(plan.native, threads)
        )
        self._flying: dict[int, InFlight] = {}
        self.python = PythonWork(plan, graph, self.engine, self._samples, self._flying)
        self._pid = os.getpid()
        self.is_native = not any(  # no row can need Python
            isinstance(s.body, PyCall) or (isinstance(s.body, Native) and s.body.twin is not None) for s in plan.steps
        )
        self.is_light = self.is_native and not on_gpu  # the caller's thread does all of the work itself
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
        self.engine.admit(flight.job)

    def start(self, flight: InFlight) -> None:
        """Queue a batch for the worker threads. After Ctrl-C it may be called again."""
        if not flight.started:
            self.engine.submit(flight.job)
            flight.started = True

    def _prepare(
        self, rows: Rows, feeds: Feeds, supply: Mapping[int, Supply], replay: Replay | None, seed: int
    ) -> InFlight:
        try:
            job = self.engine.acquire(rows.keys, rows.epochs, seed, self._samples.indices(rows))
        except _native.gpu.DeviceFailure as failure:
            raise DeviceError(f"the GPU cannot take another batch: {failure}") from failure
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

        Raises:
            DeviceError: the GPU failed.
            DataError: there is not enough memory for the batch.
        """
        self._check_process()
        self.start(flight)
        if flight.held:
            self.admit(flight, {})
        while not flight.done:
            state = self.engine.wait(flight.job, _POLL_S)
            if state == _DONE:
                self._take(flight)
            elif state == _CLOSED:
                _rest_at_exit()
                raise StateError("the pipeline was closed while a batch was awaited")
            elif state == _PYTHON:
                self.python.serve(weakref.ref(self), _POLL_S)
        self._forget(flight)
        if not flight.failed:
            return self._outputs(flight)
        return self._tell(flight, failed)

    def _tell(self, flight: InFlight, failed: list[Failure] | None) -> list[Any]:
        """The outputs of a batch with failed rows, which are added to ``failed``, or the first one is raised."""
        fatal = next((f for f in flight.failed if f.fatal), None)
        if failed is not None and fatal is None:
            failed += flight.failed
            return self._outputs(flight)
        try:
            raise (fatal or flight.failed[0]).error
        finally:
            del flight, fatal  # the error's traceback must not keep the batch

    def run_here(self, rows: Rows, feeds: Feeds, replay: Replay | None = None, *, record: bool = False,
                 seed: int | None = None, failed: list[Failure] | None = None) -> list[Any]:  # fmt: skip
        """Run one batch on the caller's thread, without a queue or another thread.

        ``record`` puts what Python nodes give into ``replay``; ``seed`` stands for the run's own; ``failed`` as for
        :meth:`collect`.
        """
        self._check_process()
        if self.is_native and not feeds:
            own = self.seed if seed is None else seed
            outputs = self.engine.run_rows(rows.keys, rows.epochs, own, self._samples.indices(rows))
            if outputs is not None:
                return outputs
            # A row failed; done once more, the long way tells which and why.
        flight = self._prepare(rows, feeds, {}, replay, self.seed if seed is None else seed)
        flight.record = record
        try:
            self.engine.begin(flight.job)
            while (work := self.engine.advance(flight.job)) is not None:
                self.python.do(work)
            self._take(flight)
        finally:
            self._forget(flight)
        return self._tell(flight, failed) if flight.failed else self._outputs(flight)

    def _take(self, flight: InFlight) -> None:
        if flight.job.has_errors and not flight.failed:
            flight.failed = failures(flight, self.plan, self.graph, self._samples)
        if not flight.failed or not any(f.fatal for f in flight.failed):
            own: Sequence[int] = range(len(self.plan.outputs))
            if flight.supplied:
                own = [i for i in own if i not in flight.supplied]
            # `extend` and `map` are one call: no signal handler runs between taking an output and keeping it.
            flight.taken.extend(map(flight.job.take_output, own[len(flight.taken) :]))
        flight.done = True

    def _outputs(self, flight: InFlight) -> list[Any]:
        if not flight.supplied:
            return flight.taken
        taken = iter(flight.taken)
        return [flight.supplied[i] if i in flight.supplied else next(taken) for i in range(len(self.plan.outputs))]

    def _forget(self, flight: InFlight) -> None:
        if self._flying.get(flight.job.id) is flight:  # the job may serve another batch by now
            del self._flying[flight.job.id]
            self.engine.release(flight.job)

    @property
    def finished(self) -> int:
        """How many batches wait to be collected."""
        return int(self.engine.finished)

    # ---- outputs on a GPU ----

    def move_on_gpu(self, moves: list[tuple[int, int, int]]) -> None:
        """Copy (to, from, bytes) within the GPU's memory, in order; done when it returns.

        Raises:
            DeviceError: the GPU does not.
        """
        try:
            self.engine.move_on_device(moves)
        except _native.gpu.DeviceFailure as failure:
            raise DeviceError(f"rows cannot be moved in the GPU's memory: {failure}") from failure

    def stack_on_gpu(self, rows: list[Any]) -> Any:
        """One array out of rows of one shape in the GPU's memory; raises as :meth:`move_on_gpu`."""
        try:
            return self.engine.stack_on_device(rows)
        except (_native.gpu.DeviceFailure, MemoryError) as failure:
            raise DeviceError(f"rows cannot be put together in the GPU's memory: {failure}") from failure

    # ---- end ----

    def check_usable(self) -> None:
        """StateError if the run is closed or belongs to another process."""
        if self.engine.closed:
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
        self.engine.close()
        if not self.python.join(wait_s):
            return False
        self._flying.clear()
        _live.discard(self)
        return True

    @property
    def closed(self) -> bool:
        return bool(self.engine.closed)

    def step_times(self) -> list[int]:
        """Nanoseconds per native step, over all threads."""
        return list(self.engine.step_times())

    def device_times(self) -> tuple[int, list[float]]:
        """Nanoseconds of the GPU per native step in the batches that were measured, and how many rows these had."""
        rows, times = self.engine.device_times()
        return rows, list(times)

    @property
    def device_bytes(self) -> int:
        """Of the GPU's memory, taken at this moment."""
        return self.engine.device_bytes

    @property
    def locked_bytes(self) -> int:
        """Page-locked memory that files are read into on their way to the GPU, in use or waiting to be."""
        return self.engine.locked_bytes

    @property
    def scratch_bytes(self) -> int:
        return int(self.engine.scratch_bytes)


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
