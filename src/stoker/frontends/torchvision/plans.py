# SPDX-License-Identifier: Apache-2.0
"""Recipes as plans: files are decoded on a GPU, and everything that is recorded about their images is done there.

All recipes go the same way, whatever they say: the window that is wanted of a file is decoded, then the recipe is done
(by the operator `_recipe`, where every row has steps of its own). A *form* is what the rows of a pipeline must
have in common all the same: channels of what is decoded, and how many bytes come out.
"""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...contract.types import DType, ImageType
from ...executor.flight import Supply
from .. import fn
from ..pipeline import Pipeline
from .grouping import Files, Recipes

_KEPT_FORMS = 8
LINES = 3  # jobs at a time: some are read and described while the GPU works on others
GPU_LOAD = 1.0  # the part of the rows that the GPU decodes: the cores are the recording workers'


class Form(NamedTuple):
    """What the rows of a pipeline have in common."""

    channels: int  # of what is decoded; 0: pixels that are there already
    told: bool  # files are read by the plan
    sizes: tuple[int, ...]  # bytes of a row's outputs


class Job:
    """Files of one form on their way; :meth:`wait` gives what has become of them.

    Args:
        files: what tells of them, their bytes, or their pixels.
        recipes: what is done with each.
        outputs: memory for each of the form's outputs.
    """

    def __init__(self, form: Form, files: Files, recipes: Recipes, outputs: Sequence[Supply]) -> None:
        self.form = form
        self.count = len(recipes.blob)
        self.error: Exception | None = None
        self.skipped: tuple[int, ...] = ()  # files that could not be made; the rows of the others are closed up
        self._fed: dict[str, Any] = {"files": files.given(), "recipes": recipes.each(), "tables": recipes.tables()}
        if form.channels:
            self._fed["windows"] = recipes.windows
        self._outputs = outputs
        self._done = threading.Event()

    def run(self, pipeline: Pipeline) -> None:
        """Make the rows."""
        try:
            for name, data in self._fed.items():
                pipeline.feed_input(name, data)
            delivered = pipeline.next("go_on", lambda output, planned, rows: self._outputs[output])
            self.skipped = () if delivered is None else delivered.skipped
        except Exception as error:  # noqa: BLE001 - told to who waits
            self.error = error
        finally:
            self._done.set()

    def fail(self, error: Exception) -> None:
        """It will not be run."""
        self.error = error
        self._done.set()

    @property
    def done(self) -> bool:
        """Whether it has run."""
        return self._done.is_set()

    def wait(self) -> Exception | None:
        """Wait until it has run; what went wrong, if anything has."""
        self._done.wait()
        return self.error


class Plans:
    """Pipelines of a device, by form; the least recently used are closed.

    Args:
        device: the number of the GPU; None runs on the CPU what is placed on one.
        threads: worker threads of each pipeline.
        batch_size: the most rows of a job.
    """

    def __init__(self, device: int | None, threads: int, batch_size: int) -> None:
        self._device = device
        self._threads = threads
        self.batch_size = batch_size
        self._known: OrderedDict[Form, list[Pipeline]] = OrderedDict()
        self._free: dict[Form, list[Pipeline]] = {}
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._workers = [threading.Thread(target=self._work, name="stoker-plan", daemon=True) for _ in range(LINES)]
        for worker in self._workers:
            worker.start()

    def submit(self, job: Job) -> None:
        """Begin a job."""
        self._jobs.put(job)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                pipeline = self._take(job.form)
            except Exception as error:  # noqa: BLE001 - told to who waits
                job.fail(error)
                continue
            job.run(pipeline)
            self._give(job.form, pipeline)

    def _take(self, form: Form) -> Pipeline:
        with self._lock:
            free = self._free.setdefault(form, [])
            if form in self._known:
                self._known.move_to_end(form)
            if free:
                return free.pop()
            pipeline = _pipeline(form, self._device, self._threads, self.batch_size)
            self._known.setdefault(form, []).append(pipeline)
            return pipeline

    def _give(self, form: Form, pipeline: Pipeline) -> None:
        closed: list[Pipeline] = []
        with self._lock:
            self._free[form].append(pipeline)
            while len(self._known) > _KEPT_FORMS:
                oldest = next(iter(self._known))
                if len(self._free[oldest]) < len(self._known[oldest]):
                    break  # one of them is at work
                closed += self._known.pop(oldest)
                del self._free[oldest]
        for pipe in closed:
            pipe.close()

    def close(self) -> None:
        """End the threads, after what they are at."""
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
    """Files, windows, recipes and their tables in, the bytes that the recipes store out."""
    settings: dict[str, Any] = {"without_gpu": "cpu", "device_id": None} if device is None else {"device_id": device}
    settings |= {"prefetch_queue_depth": 1, "gpu_decoder_load": GPU_LOAD, "on_error": "skip"}
    pipeline = Pipeline(batch_size, threads, seed=0, **settings)
    with pipeline:
        x = fn.external_source(
            name="files", dtype=DType.UINT8, ndim=1, no_copy=True, device="cpu" if form.channels or form.told else "gpu"
        )
        if form.told:
            x = x.builder.call("_told_file", [x], {})
        if form.channels:
            window = fn.external_source(name="windows", dtype=DType.INT32, ndim=1, no_copy=True)
            model = ImageType.RGB if form.channels == 3 else ImageType.GRAY
            x = fn.decoders.image(x, device="mixed", output_type=model, adjust_orientation=False)
            x = fn.slice(x, start=window[0:2], end=window[2:4], axes=(0, 1))
        recipes = fn.external_source(name="recipes", dtype=DType.FLOAT64, ndim=1, no_copy=True)
        tables = fn.external_source(name="tables", dtype=DType.UINT8, ndim=1, no_copy=True)
        pipeline.set_outputs(*x.builder.call("_recipe", [x, recipes, tables], {"sizes": form.sizes}))
    return pipeline
