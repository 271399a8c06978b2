# SPDX-License-Identifier: Apache-2.0
"""Memory after outliers: a few huge images must not make every thread and every batch keep large buffers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stoker.native import _native
from tests.run.pipelines import environment

MIB = 1 << 20
HUGE, SMALL = (3000, 4000), (32, 48)  # height, width
BATCH = 8

PROGRAM = """
import gc, json, sys, time
import numpy as np
from stoker import fn, pipeline_def
from stoker.native import _native

huge, small, batches, threads, kind = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:5]), sys.argv[5]
BATCH, DEPTH = 8, 2
WINDOWS = 1 if threads == 1 else 12

def status(key):
    return next(int(l.split()[1]) << 10 for l in open("/proc/self/status") if l.startswith(key))

def through_python(image):
    return np.ascontiguousarray(image[:16, :16])

@pipeline_def(batch_size=BATCH, num_threads=threads, seed=7, prefetch_queue_depth=DEPTH)
def pipe():
    files, _ = fn.readers.file(files=[huge] * 2 * BATCH + [small] * BATCH * (batches + 100 * WINDOWS))
    images = fn.decoders.image(files)
    if kind == "decoded":
        return images
    if kind == "across segments":  # the decoded image crosses from a native segment to a Python one
        return fn.python_function(images, function=through_python)
    return fn.resize(images, size=(16, 16))

with pipe() as p:
    run = p.run()
    del run
    p.run()
    after_huge = p.execution.run.scratch_bytes, status("VmRSS:")
    for _ in range(batches - 110):
        p.run()
    # As many outputs as there ever are: one is the consumer's, and all prefetched batches are finished.
    kept = p.run()
    while p.execution.run.finished < DEPTH:
        time.sleep(0.001)
    del kept
    # A thread that slept until now takes its memory when it wakes, once: then another hundred batches count.
    for _ in range(WINDOWS):
        before = _native.allocations()
        for _ in range(100):
            p.run()
        allocated = _native.allocations() - before
        if not allocated:
            break
    after_small = p.execution.run.scratch_bytes, status("VmRSS:")
print(json.dumps([*after_huge, *after_small, allocated]))
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Write a huge progressive file, whose decoder keeps all coefficients, and a small one."""
    folder = tmp_path_factory.mktemp("outliers")
    for name, (height, width) in (("huge", HUGE), ("small", SMALL)):
        columns = np.linspace(0, 255, width).astype(np.uint8)
        pixels = np.broadcast_to(columns[None, :, None], (height, width, 3))
        Image.fromarray(np.ascontiguousarray(pixels)).save(folder / f"{name}.jpg", progressive=True, quality=80)
    return str(folder / "huge.jpg"), str(folder / "small.jpg")


def measured(files: tuple[str, str], threads: int, kind: str, batches: int = 500) -> list[int]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *files, str(batches), str(threads), kind],
        capture_output=True, text=True, env=environment(), check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[int] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("threads", [1, 4])  # of four threads, some sleep while the images are small
@pytest.mark.parametrize("kind", ["resized", "across segments", "decoded"])
def test_memory_comes_down_after_huge_images(files: tuple[str, str], threads: int, kind: str) -> None:
    pixels = HUGE[0] * HUGE[1]
    scratch_then, resident_then, scratch, resident, allocations = measured(files, threads, kind)
    assert scratch_then > pixels // 4, "memory of threads that are at work counts too"
    assert scratch < 4 * MIB, "each area may keep up to 1 MiB"
    assert resident_then - resident > 2 * pixels, (resident_then / MIB, resident / MIB)
    assert allocations == 0, "the steady state allocates nothing"


POOL = """
import json
from stoker.native import _native

def resident():
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS:"))

before = resident()
pool = _native.recipe.block_pool(1)
pool.take(200 << 20)[:] = 1
after_huge = resident() - before
for _ in range(80):
    pool.take(1000)[:] = 1
after_small = resident() - before
allocations = _native.allocations()
for _ in range(80):
    pool.take(5000)[:] = 1
print(json.dumps([after_huge, after_small, _native.allocations() - allocations]))
"""


def test_a_pool_of_outputs_releases_a_huge_block() -> None:
    """A pool must release a huge block that no recent request fits, because it keeps small blocks from being reused.

    The test runs in a separate process, where memory of other tests does not count.
    """
    done = subprocess.run(
        [sys.executable, "-c", POOL], capture_output=True, text=True, env=environment(), check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    after_huge, after_small, allocations = json.loads(done.stdout)
    assert after_huge > 190 * MIB
    assert after_small < 20 * MIB
    assert allocations <= 1


def test_calls_release_the_memory_of_a_huge_call(files: tuple[str, str]) -> None:
    """`jpeg_decode_into` keeps the scratch memory of a thread from call to call only while calls need it."""
    huge, small = (Path(name).read_bytes() for name in files)
    outputs = {huge: np.empty((*HUGE, 3), np.uint8), small: np.empty((*SMALL, 3), np.uint8)}

    def allocations(data: bytes, calls: int = 1) -> int:
        before = _native.allocations()
        for _ in range(calls):
            _native.jpeg.jpeg_decode_into(data, outputs[data])
        return _native.allocations() - before

    assert allocations(huge) == 1
    assert allocations(huge, 100) == 0
    assert allocations(small, 200) <= 1
    assert allocations(huge) == 1, "the memory had been released"
