# SPDX-License-Identifier: Apache-2.0
"""Worker pool of recipes when the system refuses to start a thread."""

from __future__ import annotations

from pathlib import Path

from tests.forked import ForkServer

# A limit of address space refuses stacks of 8 MiB, which native threads have, and allows Python's small ones.
LIMITED = """
import os, resource, sys, threading
import numpy as np
sys.path.append("tests")  # modules that tests share
from started_threads import StartedThreads
from stoker.native import _native

threading.stack_size(256 << 10)
THREADS = 4

def limit(more):
    pages = int(open("/proc/self/statm").read().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + more if more else resource.RLIM_INFINITY
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
"""

FAILING_POOL = (
    LIMITED
    + """
from stoker.frontends.torchvision.ir import recipe, steps

def order(value):
    output = np.zeros(64, np.uint8)
    pixels = np.full(48, value, np.uint8)
    numbers = [steps.PIXELS, -1, 4, 4, 3, 0, 0, 0, 4, 4, steps.STORE_PIXELS, 0, 0, 0]
    job = _native.recipe.make_batch(np.array(numbers, np.float64), np.array([0, len(numbers)]), [pixels], [], [output])
    return job, output, pixels

pool = _native.recipe.WorkerPool(THREADS)
started = StartedThreads()
refused, untouched, _ = order(1)
for more in (4 << 20, 20 << 20):  # for none of the threads, for some
    limit(more)
    try:
        pool.submit(refused)
    except RuntimeError as error:
        print("refused:", error)
    limit(0)
accepted, output, _keep = order(2)
pool.submit(accepted)
assert pool.wait(accepted, 60.0) and not accepted.failures and (output[:48] == 2).all()
assert started.count() == THREADS, started.count()
assert not pool.wait(refused, 0.5) and not untouched.any(), "a refused order has run"
pool.close()
"""
)

FAILING_SCHEDULER = (
    LIMITED
    + """
import io
from PIL import Image
from stoker.frontends.torchvision.loader.scheduler import BatchScheduler
from tests.takeover.test_scheduler import a_batch
from pathlib import Path

file = Path(sys.argv[1])
scheduler = BatchScheduler(THREADS)
batches = [a_batch(file) for _ in range(3)]
warm = a_batch(file)
limit(4 << 20)
scheduler.arrive(0, [batches[0]])
for _ in range(2):  # the first request, and the next one
    try:
        scheduler.finish([batches[0]])
        print("materialized")
    except RuntimeError as error:
        print("refused:", error)
limit(0)
scheduler.arrive(1, [batches[1]])
scheduler.finish([batches[1]])
scheduler.finish([batches[0]])
assert batches[0]._materialized.equal(batches[1]._materialized)
scheduler.close()
"""
)


def run(forked: ForkServer, program: str, *arguments: str | Path) -> list[str]:
    done = forked.run("-c", program, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_refused_order_does_not_run(forked: ForkServer) -> None:
    """The caller may free the memory of a refused order; missing threads start with the next order."""
    lines = run(forked, FAILING_POOL)
    assert [line.partition(":")[0] for line in lines] == ["refused", "refused"]


def test_the_consumer_gets_an_error_if_no_thread_starts(files: Path, forked: ForkServer) -> None:
    """The consumer gets an error. Later batches are materialized, and so is this one on its next request."""
    lines = run(forked, FAILING_SCHEDULER, files / "bee" / "3.jpg")
    assert [line.partition(":")[0] for line in lines] == ["refused", "refused"]
