# SPDX-License-Identifier: Apache-2.0
"""Cost of sample orders, saved states and bad files, which should be negligible."""

from __future__ import annotations

import atexit
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.case import IMAGES_PER_S, MIB, MS, Bar, Case, Contender, Loop, Sample
from benchmarks.cases.training_chain import MEAN, STD
from benchmarks.data import Data
from benchmarks.library import STOKER, consume, load

ORDER = 45
BATCH = 64
_IMAGENET = 1_200_000
_MILLION = 1_000_000
_BAD_EVERY = 100


def _pipeline(files: list[str], *, threads: int = 2, reader: dict[str, Any] | None = None, **settings: Any) -> Any:
    library = load(STOKER)
    fn = library.fn

    @library.pipeline_def(batch_size=BATCH, num_threads=threads, seed=7, **settings)
    def training() -> Any:
        jpegs, labels = fn.readers.file(files=files, **(reader or {}))
        images = fn.resize(fn.decoders.image_random_crop(jpegs), resize_x=224, resize_y=224)
        mirror = fn.random.coin_flip()
        return fn.crop_mirror_normalize(images, output_layout="CHW", mean=MEAN, std=STD, mirror=mirror), labels

    return training().build()


def _loop(pipeline: Any, *, save: bool = False) -> Loop:
    def step() -> tuple[int, float]:
        outputs = pipeline.run()
        saved = len(json.dumps(pipeline.get_state())) if save else 0
        return len(outputs[1]), consume(outputs) + (saved > 0)

    return Loop(step)


def run_plain(data: Data) -> Loop:
    """Run in order, with one shard and without saved states."""
    return _loop(_pipeline(data.files))


def run_sampled(data: Data) -> Loop:
    """Run one of two shards, shuffled, and save the state after every batch."""
    reader = {"random_shuffle": True, "num_shards": 2, "shard_id": 1}
    return _loop(_pipeline(data.files, reader=reader), save=True)


def run_good(data: Data) -> Loop:
    """Run good files only, shuffled."""
    return _loop(_pipeline(_many(data), reader={"random_shuffle": True}))


def run_replacing(data: Data) -> Loop:
    """Run with every hundredth file cut off, and `on_error="replace"`."""
    folder = tempfile.mkdtemp(prefix="stoker-bench-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    files = _many(data)
    for n in range(0, len(files), _BAD_EVERY):
        cut = Path(folder) / f"{n}.jpg"
        content = Path(files[n]).read_bytes()
        cut.write_bytes(content[: len(content) // 2])
        files[n] = str(cut)
    return _loop(_pipeline(files, reader={"random_shuffle": True}, on_error="replace", error_limit=0.02))


def _many(data: Data) -> list[str]:
    """Return enough files for at least ten bad ones."""
    return data.files * -(-10 * _BAD_EVERY // len(data.files))


def time_restore(data: Data) -> Sample:
    """Return the milliseconds of `set_state` in the middle of an epoch of 1.2 million samples."""
    files = (data.files * -(-_IMAGENET // len(data.files)))[:_IMAGENET]
    # not run before: a new process has no batches in flight
    pipeline = _pipeline(files, reader={"random_shuffle": True})
    state = {**pipeline.get_state(), "consumed": _IMAGENET // 2}

    def read() -> float:
        start = time.perf_counter()
        pipeline.set_state(json.loads(json.dumps(state)))
        return 1e3 * (time.perf_counter() - start)

    return Sample(read)


_START = """
import sys, time
from pathlib import Path
from stoker import fn, pipeline_def
import stoker.executor.execution
count = int(sys.argv[1])
names = [f"n{i // 1300:08}/n{i // 1300:08}_{i}.JPEG" for i in range(count)]

@pipeline_def(batch_size=4, num_threads=1, seed=1)
def pipe():
    return fn.readers.file(file_root="/nowhere", files=names, labels=range(count), random_shuffle=True)

def used(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024

before, start = used("VmRSS"), time.perf_counter()
pipe().build()
print(1e3 * (time.perf_counter() - start), used("VmHWM") - before)
"""


def _start(which: int) -> float:
    command = [sys.executable, "-c", _START, str(_MILLION)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[which])


def time_start(data: Data) -> Sample:
    """Return the milliseconds to build a pipeline over a list of a million files."""
    return Sample(lambda: _start(0))


def memory_of_start(data: Data) -> Sample:
    """Return the peak memory of that build, without the caller's list."""
    return Sample(lambda: _start(1))


CASES = (
    Case(
        "sampling-cost",
        "Shuffling, shards and states",
        IMAGES_PER_S,
        (Contender("in order", "run_plain"), Contender("shuffled, sharded, saved", "run_sampled")),
        (Bar("rate over that in order", "shuffled, sharded, saved", ("in order",), at_least=0.99),),
        note="The training chain with 2 threads; shuffled, one of two shards, and the state written as JSON after "
        "every batch, against files in order.",
    ),
    Case(
        "replace-cost",
        "One bad file in a hundred, replaced",
        IMAGES_PER_S,
        (Contender("good files", "run_good"), Contender("1 % bad", "run_replacing")),
        (Bar("rate over that of good files", "1 % bad", ("good files",), at_least=0.97),),
        note='The training chain with 2 threads; every hundredth file is cut off in the middle, on_error="replace".',
    ),
    Case(
        "restore",
        "Restoring in the middle of 1.2 million samples",
        MS,
        (Contender("stoker", "time_restore"),),
        (Bar("time to restore", "stoker", at_most=200),),
        note="`set_state` from its JSON text, without the first batch.",
    ),
    Case(
        "million-files",
        "Starting with a million files",
        MS,
        (Contender("stoker", "time_start"),),
        (Bar("time to build", "stoker", at_most=2000),),
        note="The caller owns the list of names and labels.",
    ),
    Case(
        "million-files-memory",
        "Memory for a million files",
        MIB,
        (Contender("stoker", "memory_of_start"),),
        (Bar("memory in addition to the caller's list", "stoker", at_most=200),),
    ),
)
