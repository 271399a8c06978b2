# SPDX-License-Identifier: Apache-2.0
"""Recipes as plans: a GPU decodes files and runs all recorded steps on their images.

All recipes run by the same kind of plan: it decodes the requested window of a file, then runs the recipe (operator
`_recipe`, in which every row has steps of its own). The rows of a pipeline must only agree in their *form*: channels of
the decoded image, and sizes of the outputs.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ....contract.types import DType, ImageType
from ....executor.flight import SuppliedMemory
from ... import fn
from ...pipeline import Pipeline
from .grouping import Files, Recipes

_MAX_FORMS = 8
JOBS_IN_FLIGHT = 3  # some jobs are read and described while the GPU works on others
GPU_LOAD = 1.0  # the fraction of rows that the GPU decodes: the cores belong to the recording workers


class Form(NamedTuple):
    """Common properties of the rows of a pipeline."""

    channels: int  # of the decoded image; 0 for existing pixels
    has_refs: bool  # the plan reads the files
    sizes: tuple[int, ...]  # bytes of a row's outputs


class Job:
    """Files of one form in flight; :meth:`wait` returns the outcome.

    Args:
        files: references to the files, their bytes, or their pixels.
        recipes: the steps for each.
        outputs: memory for each of the form's outputs.
    """

    def __init__(self, form: Form, files: Files, recipes: Recipes, outputs: Sequence[SuppliedMemory]) -> None:
        self.form = form
        self.count = len(recipes.blob)
        self.error: Exception | None = None
        self.skipped: tuple[int, ...] = ()  # files that could not be decoded; the other rows have closed the gaps
        self._fed: dict[str, Any] = {"files": files.as_input(), "recipes": recipes.each(), "tables": recipes.tables()}
        if form.channels:
            self._fed["windows"] = recipes.windows
        self._outputs = outputs
        self._done = threading.Event()
        self.taken_s = 0.0  # by its run

    def run(self, pipeline: Pipeline) -> None:
        """Run the job on a pipeline of its form."""
        begin = time.monotonic()
        try:
            for name, data in self._fed.items():
                pipeline.feed_input(name, data)
            delivered = pipeline.next("go_on", lambda output, planned, rows: self._outputs[output])
            self.skipped = () if delivered is None else delivered.skipped
        except Exception as error:  # noqa: BLE001 - raised in the thread that waits
            self.error = error
        finally:
            self.taken_s = time.monotonic() - begin
            self._done.set()

    def fail(self, error: Exception) -> None:
        """End the job with an error instead of running it."""
        self.error = error
        self._done.set()

    @property
    def is_done(self) -> bool:
        """Return whether the job has ended."""
        return self._done.is_set()

    def wait(self) -> Exception | None:
        """Wait for the end of the job; return its error, if there is one."""
        self._done.wait()
        return self.error


class Plans:
    """Pipelines of a device, by form; the least recently used ones are closed.

    Args:
        device: the number of the GPU; None runs GPU nodes on the CPU.
        threads: worker threads of each pipeline.
        batch_size: the largest number of rows of a job.
    """

    def __init__(self, device: int | None, threads: int, batch_size: int) -> None:
        self._device = device
        self._threads = threads
        self.batch_size = batch_size
        self._known: OrderedDict[Form, list[Pipeline]] = OrderedDict()
        self._free: dict[Form, list[Pipeline]] = {}
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._active: dict[int, int] = {}  # jobs at a time, by the number of a loader's scheduler
        self._running = 0
        self._room = threading.Condition()
        self._workers = [
            threading.Thread(target=self._work, name="stoker-plan", daemon=True) for _ in range(JOBS_IN_FLIGHT)
        ]
        for worker in self._workers:
            worker.start()

    def submit(self, job: Job) -> None:
        """Start a job."""
        self._jobs.put(job)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            with self._turn():
                try:
                    pipeline = self._acquire(job.form)
                except Exception as error:  # noqa: BLE001 - raised in the thread that waits
                    job.fail(error)
                    continue
                job.run(pipeline)
                self._release(job.form, pipeline)

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait until fewer jobs run than may."""
        with self._room:
            self._room.wait_for(lambda: self._running < max(self._active.values(), default=JOBS_IN_FLIGHT))
            self._running += 1
        try:
            yield
        finally:
            with self._room:
                self._running -= 1
                self._room.notify()

    def set_active(self, scheduler: object, jobs: int | None) -> None:
        """Set the number of jobs that run at a time for a loader's scheduler; None: it has ended."""
        with self._room:
            if jobs is None:
                self._active.pop(id(scheduler), None)
            else:
                self._active[id(scheduler)] = jobs
            self._room.notify_all()

    def _acquire(self, form: Form) -> Pipeline:
        with self._lock:
            free = self._free.setdefault(form, [])
            if form in self._known:
                self._known.move_to_end(form)
            if free:
                return free.pop()
            pipeline = _pipeline(form, self._device, self._threads, self.batch_size)
            self._known.setdefault(form, []).append(pipeline)
            return pipeline

    def _release(self, form: Form, pipeline: Pipeline) -> None:
        closed: list[Pipeline] = []
        with self._lock:
            self._free[form].append(pipeline)
            while len(self._known) > _MAX_FORMS:
                oldest = next(iter(self._known))
                if len(self._free[oldest]) < len(self._known[oldest]):
                    break  # one of them is in use
                closed += self._known.pop(oldest)
                del self._free[oldest]
        for pipe in closed:
            pipe.close()

    def close(self) -> None:
        """End the threads after their current jobs."""
        for _ in self._workers:
            self._jobs.put(None)
        for worker in self._workers:
            worker.join()
        for pipelines in self._known.values():
            for pipeline in pipelines:
                pipeline.close()
        self._known.clear()
        self._free.clear()


def _pipeline(form: Form, device: int | None, threads: int, batch_size: int) -> Pipeline:
    """Return a pipeline from files, windows, recipes and their tables to the bytes that the recipes store."""
    settings: dict[str, Any] = {"without_gpu": "cpu", "device_id": None} if device is None else {"device_id": device}
    settings |= {"prefetch_queue_depth": 1, "gpu_decoder_load": GPU_LOAD, "on_error": "skip"}
    settings |= {"max_batch_bytes": 0}  # a batch takes as much as without Stoker
    pipeline = Pipeline(batch_size, threads, seed=0, **settings)
    with pipeline:
        x = fn.external_source(
            name="files",
            dtype=DType.UINT8,
            ndim=1,
            no_copy=True,
            device="cpu" if form.channels or form.has_refs else "gpu",
        )
        if form.has_refs:
            x = x.builder.call("_read_file_ref", [x], {})
        if form.channels:
            window = fn.external_source(name="windows", dtype=DType.INT32, ndim=1, no_copy=True)
            model = ImageType.RGB if form.channels == 3 else ImageType.GRAY
            x = fn.decoders.image(x, device="mixed", output_type=model, adjust_orientation=False)
            x = fn.slice(x, start=window[0:2], end=window[2:4], axes=(0, 1))
        recipes = fn.external_source(name="recipes", dtype=DType.FLOAT64, ndim=1, no_copy=True)
        tables = fn.external_source(name="tables", dtype=DType.UINT8, ndim=1, no_copy=True)
        pipeline.set_outputs(*x.builder.call("_recipe", [x, recipes, tables], {"sizes": form.sizes}))
    return pipeline
