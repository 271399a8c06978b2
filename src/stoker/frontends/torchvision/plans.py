# SPDX-License-Identifier: Apache-2.0
"""Recipes as plans: rows whose steps are of the same kinds run together, as one pipeline of Stoker's own operators.

A recipe's *form* is what it does but for its numbers: whether it resizes, by which filter, and the size that comes out.
What a form's rows differ in (windows, sizes, mirroring) is fed beside their files. Decoding and all further steps are
done on a GPU, with the same bits as the interpreter of recipes, which does all rows that have no form.
"""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...contract.types import DType, ImageType, InterpType
from ...executor.run import Supply
from ...native import _native
from .. import fn
from ..pipeline import Pipeline
from . import recipe
from .recipe import Node

_KEPT_FORMS = 8
LINES = 2  # batches of a form at a time: one is read and described while the GPU works on the other
GPU_LOAD = 1.0  # the part of the rows that the GPU decodes: the cores are the recording workers'
_MIRRORS = {0: (1, 0), 1: (0, 1), 3: (1, 1)}  # Pillow's Transpose → mirror columns, rows

# What the GPU's form of recipes knows (native/recipe_described.cpp).
_NAMES = (
    "Decode Pixels Crop Resize Transpose Affine Pad Map Luma Spread Contrast Saturate Hue Autocontrast Equalize "
    "Sharpen Project PadEdges Correlate TorchResize TorchPick TorchLuma TorchContrast TorchSaturate TorchHue "
    "TorchSharpen TorchAutocontrast TorchEqualize TorchWarp TorchGrid Channels Blur Mix Store Patch"
)
FORMS = frozenset(number for number, (name, _) in enumerate(_native.recipe.OPS) if name in _NAMES.split())

Integers = npt.NDArray[np.int32]


class Form(NamedTuple):
    """What the rows of a pipeline have in common. Sizes are (height, width)."""

    channels: int
    size: tuple[int, int]
    filter: int | None  # resampling, or none
    cut: bool  # whether a window is cut out of the resized image
    rows_first: bool = False  # an older Pillow resamples rows before columns, whatever the shape


class Values(NamedTuple):
    """What a row of a form has for itself."""

    window: tuple[int, int, int, int]  # y0, x0, y1, x1 of the decoded image
    resized: tuple[int, int]
    corner: tuple[int, int]  # of the window of the resized image
    mirror: tuple[int, int]


def read(node: Node) -> tuple[Form, Values] | None:
    """The form of a recipe, and its values; None if it does something else."""
    chain = []
    step: Node | None = node
    while step is not None:
        chain.append(step)
        step = step.parent
    root = chain.pop()
    if root.op != recipe.DECODE or (root.channels == 1 and root.params[5]):  # the luma alone of a colour file
        return None
    channels = root.channels
    if chain and chain[-1].op == recipe.SPREAD:
        channels = chain.pop().channels
    x0, y0, x1, y1 = (0, 0, *root.size)
    if chain and chain[-1].op == recipe.CROP:
        x0, y0, x1, y1 = chain.pop().params
    height, width, number, corner, cut, rows_first = y1 - y0, x1 - x0, None, (0, 0), False, False
    if chain and chain[-1].op == recipe.RESIZE:
        p = chain.pop().params
        if p[2:6] != (0.0, height, 0.0, width):
            return None  # a region
        height, width, number, rows_first = p[0], p[1], p[6], bool(p[7])
        if chain and chain[-1].op == recipe.CROP:
            q = chain.pop().params
            corner, cut = (q[1], q[0]), True
    columns = rows = 0
    while chain and chain[-1].op == recipe.TRANSPOSE and chain[-1].params[0] in _MIRRORS:
        mirror = _MIRRORS[chain.pop().params[0]]
        columns, rows = columns ^ mirror[0], rows ^ mirror[1]
    if chain:
        return None
    form = Form(channels, node.size[::-1], number, cut, rows_first)
    return form, Values((y0, x0, y1, x1), (height, width), corner, (columns, rows))


def _numbers(v: Values) -> tuple[int, ...]:
    """As they are fed; at last the size after only the rows have been resampled."""
    return (*v.window, *v.resized, *v.corner, *v.mirror, v.window[2] - v.window[0], v.resized[1])


class Job:
    """Rows of one form on their way; :meth:`wait` gives what has become of them."""

    def __init__(self, form: Form, files: list[Any], values: Sequence[Values], memory: Supply) -> None:
        self.form = form
        self.files = files
        self.values: Integers = np.array([_numbers(v) for v in values], np.int32)
        self.memory = memory
        self.error: Exception | None = None
        self._done = threading.Event()

    def run(self, pipeline: Pipeline) -> None:
        """Make the rows."""
        try:
            pipeline.feed_input("files", self.files)
            pipeline.feed_input("values", self.values)
            pipeline.next("go_on", lambda output, planned, rows: self.memory)
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
    """Files and values in, uint8 ``(channels, height, width)`` out."""
    settings: dict[str, Any] = {"without_gpu": "cpu"} if device is None else {"device_id": device}
    pipeline = Pipeline(batch_size, threads, seed=0, prefetch_queue_depth=1, gpu_decoder_load=GPU_LOAD, **settings)
    model = ImageType.RGB if form.channels == 3 else ImageType.GRAY
    with pipeline:
        files = fn.external_source(name="files", dtype=DType.UINT8, ndim=1, no_copy=True)
        values = fn.external_source(name="values", dtype=DType.INT32, ndim=1, no_copy=True)
        x = fn.decoders.image(files, device="mixed", output_type=model, adjust_orientation=False)
        x = fn.slice(x, start=values[0:2], end=values[2:4], axes=(0, 1))
        if form.filter is not None:
            interpolation = InterpType(form.filter)
            if form.rows_first:  # two steps, rounded between, as such a Pillow's
                x = fn.resize(x, size=values[10:12], interp_type=interpolation)
            size: Any = values[4:6] if form.cut else form.size
            x = fn.resize(x, size=size, interp_type=interpolation)
        if form.cut or form.filter is None:
            x = fn.slice(x, start=values[6:8], shape=form.size, axes=(0, 1))
        x = fn.flip(x, horizontal=values[8], vertical=values[9])
        pipeline.set_outputs(fn.transpose(x, perm=[2, 0, 1]))
    return pipeline
