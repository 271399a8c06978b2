# SPDX-License-Identifier: Apache-2.0
"""Python side of a run: submits batches, runs Python segments, and collects the native loop's outputs."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from ..contract.codec import CodecGpu
from ..contract.errors import ArgumentError, DataError, DeviceError, ResourceError, StateError, message
from ..contract.feed import GpuArray
from ..contract.gpu import KernelsOnGpu
from ..contract.live_objects import LiveObjects
from ..contract.step import PyCall
from ..contract.types import MAX_RANK
from ..contract.warning import warn
from ..graph.load import LoadedPlan
from ..graph.node import Graph
from ..graph.plan import PlannedOutput
from ..native import _native
from .batch_limits import NO_LIMITS, BatchLimits
from .device_copies import copy_out, copy_to_host
from .flight import Feeds, InFlight, Replay, RowFailure, SuppliedMemory
from .python_work import PythonWork
from .row_errors import Samples, failures
from .schedule import Rows

_DONE, _PYTHON, _TIMEOUT, _CLOSED = range(4)
_POLL_S = 0.1  # longest delay of Ctrl-C while a batch is awaited
_CLOSE_S = 5.0  # longest wait of `close` for the user's code in the pipeline
_EXIT_S = 1.0  # the same at the end of the process


class OpenGpu(KernelsOnGpu, CodecGpu, Protocol):
    """Interface of a GPU that plans are built for and run on."""

    @property
    def device(self) -> _native.gpu.Device:
        """Return the device, as the run loop uses it."""

    @property
    def quota(self) -> _native.gpu.MemoryQuota:
        """Return the accounting of device memory: bytes in use and the limit."""

    @property
    def file_reads(self) -> _native.gpu.FileReads:
        """Return the reads of large files into the device's memory."""


_live: LiveObjects[Run] = LiveObjects()


class Run:
    """Execution of one plan. Rows go in with :meth:`prepare` and :meth:`start`, outputs come out of :meth:`collect`.

    Args:
        sources: opened sources by node, for messages and for the plan's columns of ``Rows.indices``.
        limits: limits on the memory of a batch.
    """

    def __init__(
        self, loaded: LoadedPlan, graph: Graph, threads: int, seed: int, sources: Mapping[int, Any],
        gpu: OpenGpu | None = None, limits: BatchLimits = NO_LIMITS,
    ) -> None:  # fmt: skip
        self.plan = plan = loaded.plan
        self.graph = graph
        self.seed = seed
        self.limits = limits
        self._samples = Samples(plan, sources)
        on_gpu = any(s.on_gpu for s in plan.steps)
        self.engine = (
            _native.Engine(loaded.native, threads, gpu.device, gpu.quota, *limits, gpu.file_reads)
            if on_gpu and gpu is not None
            else _native.Engine(loaded.native, threads, max_batch_bytes=limits.host)
        )
        self._in_flight: dict[int, InFlight] = {}
        self.python = PythonWork(
            loaded, graph, self.engine, self._samples, self._in_flight, gpu if on_gpu else None
        )  # fmt: skip
        self._pid = os.getpid()
        self._gpu = gpu
        self._has_unfinished = any(o.returns or (o.counted and o.on_gpu) for o in plan.outputs)
        # True if no row needs Python.
        self.calls_python = any(isinstance(s.body, PyCall) for s in plan.steps)  # functions of users, in Python
        self.is_native = not loaded.twins and not self.calls_python
        self.may_run_inline = self.is_native and not on_gpu  # the caller's thread can do all of the work
        _live.add(self)

    # ---- batches ----

    def prepare(self, rows: Rows, feeds: Feeds, supply: Mapping[int, SuppliedMemory],
                replay: Replay | None = None, *, held: bool = False) -> InFlight:  # fmt: skip
        """Prepare a batch for the worker threads; :meth:`start` starts it.

        Args:
            supply: memory for outputs, by number.
            held: keep the batch off the GPU, and its memory unallocated there, until :meth:`admit`.
        """
        self.check_usable()
        flight = self._prepare(rows, feeds, supply, replay, self.seed)
        if held:
            flight.held = True
            flight.job.hold()
        return flight

    def admit(self, flight: InFlight, supply: Mapping[int, SuppliedMemory]) -> None:
        """Let a held batch go to the GPU. ``supply``: memory for outputs on the GPU."""
        self._supply(flight, supply)
        flight.held = False
        self.engine.admit(flight.job)

    def start(self, flight: InFlight) -> None:
        """Queue a batch for the worker threads. After Ctrl-C or an error it may be called again.

        Raises:
            ResourceError: a thread cannot start. No other new thread remains.
        """
        if flight.started:
            return
        try:
            self.engine.submit(flight.job)
        except _native.ThreadStartFailed as failure:
            raise ResourceError(str(failure)) from failure
        flight.started = True

    def _prepare(
        self, rows: Rows, feeds: Feeds, supply: Mapping[int, SuppliedMemory], replay: Replay | None, seed: int
    ) -> InFlight:
        try:
            job = self.engine.acquire(rows.keys, rows.epochs, seed, self._samples.indices(rows))
        except _native.gpu.DeviceFailure as failure:
            raise DeviceError(f"the GPU cannot take another batch: {failure}") from failure
        flight = InFlight(job, rows, [], {}, {} if replay is None else replay, seed)
        self._in_flight[job.id] = flight
        if feeds:
            try:
                self._feed(flight, feeds)
            except BaseException:
                self._forget(flight)
                raise
        if supply:
            self._supply(flight, supply)
        return flight

    def _supply(self, flight: InFlight, supply: Mapping[int, SuppliedMemory]) -> None:
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
            flight.keep_alive.append(data)
            if value not in self.plan.fed_on_gpu:
                data = self._in_host_memory(key[0], data)
                flight.keep_alive.append(data)
            if isinstance(data, np.ndarray) and data.ndim <= MAX_RANK:  # others are fed row by row
                job.feed_rows(value, data)
                continue
            if isinstance(data, GpuArray):
                _feed_at(job, value, -1, data)
                continue
            fed = job.feed_list(value, data) if isinstance(data, list) else 0
            for r, row in enumerate(data[fed:], fed):
                if isinstance(row, GpuArray):
                    _feed_at(job, value, r, row)
                else:
                    job.feed(value, r, row)

    def _in_host_memory(self, number: int, data: Any) -> Any:
        """Return fed data with copies of what is in a GPU's memory, for steps on the CPU."""
        device = self._gpu.device if self._gpu is not None else None
        if device is None:
            return data  # sources accept arrays in a GPU's memory only from runs with a GPU
        try:
            if isinstance(data, GpuArray):
                return copy_to_host(data, device)
            if isinstance(data, list) and any(isinstance(row, GpuArray) for row in data):
                return [copy_to_host(row, device) if isinstance(row, GpuArray) else row for row in data]
        except ArgumentError as error:
            node = self.graph.nodes[number]
            raise DataError(message(node.operator.name, str(error), source=node.source_line)) from None
        return data

    def collect(self, flight: InFlight, failed: list[RowFailure] | None = None) -> list[Any]:
        """Wait for a batch and return its outputs: supplied owners, arrays (dense), or lists of arrays (ragged).

        Failed rows are appended to ``failed``, and the outputs' contents at these rows are undefined. Without
        ``failed`` the first row's error is raised. After Ctrl-C it may be called again.

        Raises:
            DeviceError: the GPU failed.
            DataError: the batch exceeds a limit of memory.
            ResourceError: the system has no memory for the batch.
        """
        if os.getpid() != self._pid:
            raise _in_other_process()
        if not flight.started:
            self.start(flight)
        if flight.held:
            self.admit(flight, {})
        while not flight.done:
            state = self.engine.wait(flight.job, _POLL_S)
            if state == _DONE:
                self._take_outputs(flight)
            elif state == _CLOSED:
                _park_daemon_thread_at_exit()
                raise StateError("the pipeline was closed while a batch was awaited")
            elif state == _PYTHON:
                self.python.serve(weakref.ref(self), _POLL_S)
        self._forget(flight)
        if not flight.failed:
            return self._outputs(flight)
        return self._outputs_or_raise(flight, failed)

    def _outputs_or_raise(self, flight: InFlight, failed: list[RowFailure] | None) -> list[Any]:
        """Append the failed rows to ``failed`` and return the outputs. Without ``failed``, raise the first error."""
        fatal = next((f for f in flight.failed if f.fatal), None)
        if failed is not None and fatal is None:
            failed += flight.failed
            return self._outputs(flight)
        try:
            raise (fatal or flight.failed[0]).error
        finally:
            del flight, fatal  # the error's traceback must not keep the batch

    def run_inline(self, rows: Rows, feeds: Feeds, replay: Replay | None = None, *, record: bool = False,
                 seed: int | None = None, failed: list[RowFailure] | None = None) -> list[Any]:  # fmt: skip
        """Run one batch on the caller's thread, without a queue or another thread.

        ``record`` stores the results of Python nodes in ``replay``; ``seed`` replaces the run's seed; ``failed`` as in
        :meth:`collect`.
        """
        if os.getpid() != self._pid:
            raise _in_other_process()
        if self.is_native and not feeds:
            own = self.seed if seed is None else seed
            outputs = self.engine.run_rows(rows.keys, rows.epochs, own, self._samples.indices(rows))
            if outputs is not None:
                return self._finished_outputs(outputs) if self._has_unfinished else outputs
            # A row failed. The slow path runs the batch again and records the row and the reason.
        flight = self._prepare(rows, feeds, {}, replay, self.seed if seed is None else seed)
        flight.record = record
        try:
            self.engine.begin(flight.job)
            while (work := self.engine.advance(flight.job)) is not None:
                self.python.do(work)
            self._take_outputs(flight)
        finally:
            self._forget(flight)
        return self._outputs_or_raise(flight, failed) if flight.failed else self._outputs(flight)

    def _take_outputs(self, flight: InFlight) -> None:
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
            return self._finished_outputs(flight.taken) if self._has_unfinished else flight.taken
        taken = iter(flight.taken)
        return self._finished_outputs(
            [flight.supplied[i] if i in flight.supplied else next(taken) for i in range(len(self.plan.outputs))]
        )

    def _finished_outputs(self, outputs: list[Any]) -> list[Any]:
        """Return ``outputs`` with rows of one shape as one array, also where a GPU counted them in memory for more, and
        copies in host memory of those that belong there.
        """
        return [self._finish(out, planned) for out, planned in zip(outputs, self.plan.outputs, strict=True)]

    def _finish(self, out: Any, planned: PlannedOutput) -> Any:
        is_stackable = planned.counted and planned.is_uniform(out)
        if planned.returns:
            out = [copy_out(row) for row in out] if isinstance(out, list) else copy_out(out)
            return np.stack(out) if is_stackable else out
        return self.stack_on_gpu(out) if is_stackable and planned.on_gpu else out

    def _forget(self, flight: InFlight) -> None:
        if self._in_flight.get(flight.job.id) is flight:  # the job may already serve another batch
            del self._in_flight[flight.job.id]
            self.engine.release(flight.job)

    @property
    def finished(self) -> int:
        """Return the number of finished batches that are not collected yet."""
        return int(self.engine.finished)

    # ---- outputs on a GPU ----

    def move_on_gpu(self, moves: list[tuple[int, int, int]]) -> None:
        """Copy (to, from, bytes) within the GPU's memory, in order. The copies are complete on return.

        Raises:
            DeviceError: the GPU failed.
        """
        try:
            self.engine.move_on_device(moves)
        except _native.gpu.DeviceFailure as failure:
            raise DeviceError(f"rows cannot be moved in the GPU's memory: {failure}") from failure

    def stack_on_gpu(self, rows: list[Any]) -> Any:
        """Stack rows of one shape in the GPU's memory into one array. Raise the same errors as :meth:`move_on_gpu`."""
        try:
            return self.engine.stack_on_device(rows)
        except (_native.gpu.DeviceFailure, MemoryError) as failure:
            raise DeviceError(f"rows cannot be put together in the GPU's memory: {failure}") from failure

    # ---- end ----

    def check_usable(self) -> None:
        """Raise StateError if the run is closed or belongs to another process."""
        if self.engine.closed:
            _park_daemon_thread_at_exit()
            raise StateError("the pipeline is closed")
        if os.getpid() != self._pid:
            raise _in_other_process()

    def close(self) -> None:
        """Stop all threads; idempotent. Rows in flight are finished first, queued ones dropped."""
        again = self.closed
        if not self.stop(0 if again else _CLOSE_S) and not again:
            warn(
                f"a function of the pipeline has not returned for {_CLOSE_S:g} s after `close`; its thread and what it "
                "works on stay until it does",
                stacklevel=3,
            )

    def stop(self, wait_s: float) -> bool:
        """Stop all threads. Return False if the user's code still runs after ``wait_s``."""
        if os.getpid() != self._pid:
            return True
        self.engine.close()
        if not self.python.join(wait_s):
            return False
        self.python.end_isolated()
        self.python.close_shared()
        self._in_flight.clear()
        _live.discard(self)
        return True

    @property
    def closed(self) -> bool:
        return bool(self.engine.closed)

    def step_times(self) -> list[int]:
        """Return nanoseconds per native step, over all threads."""
        return list(self.engine.step_times())

    def disk_waits(self) -> list[int]:
        """Return the part of :meth:`step_times` in which threads waited for a disk."""
        return list(self.engine.disk_waits())

    def device_times(self) -> tuple[int, list[float]]:
        """Return the number of rows in the measured batches, and the GPU's nanoseconds per native step for them."""
        rows, times = self.engine.device_times()
        return rows, list(times)

    @property
    def device_bytes(self) -> int:
        """Return the GPU memory in use, in bytes."""
        return self.engine.device_bytes

    @property
    def pinned_bytes(self) -> int:
        """Return the bytes of page-locked staging memory for files, used or pooled."""
        return self.engine.pinned_bytes

    @property
    def scratch_bytes(self) -> int:
        return int(self.engine.scratch_bytes)


def _feed_at(job: _native.Job, value: int, row: int, array: GpuArray) -> None:
    """Feed a row, or all rows (-1), in a GPU's memory."""
    job.feed_at(value, row, array.address, array.shape, array.strides, int(array.dtype), array.stream)


def _in_other_process() -> StateError:
    return StateError(
        "this pipeline was started in another process: threads do not survive a fork. Build it in the process "
        'that uses it, or use the "spawn" start method'
    )


_exiting = threading.Event()


def _park_daemon_thread_at_exit() -> None:
    """Block a daemon thread at interpreter exit, so that it does not report "the pipeline is closed" to the user."""
    if _exiting.is_set() and threading.current_thread() is not threading.main_thread():
        threading.Event().wait()


@atexit.register
def _close_all() -> None:
    _exiting.set()
    for run in _live.list():
        run.stop(_EXIT_S)
