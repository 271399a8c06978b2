# SPDX-License-Identifier: Apache-2.0
"""Threads that the operating system refuses: all start or none, the error says so, and the next try works."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from idle_clock import HANG_S
from started_threads import StartedThreads

from stoker import ResourceError
from stoker.native import _native
from tests.run.pipelines import environment, files_of, rows_of, training

THREADS = 5


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:9]


@pytest.fixture(autouse=True)
def _no_limit_afterwards() -> Iterator[None]:
    yield
    _native.fail_thread_starts(-1)


@pytest.mark.parametrize("started", range(THREADS))
def test_all_threads_start_or_none(files: list[str], started: int) -> None:
    with training(files) as pipe:
        expected = [rows_of(pipe.run()) for _ in range(3)]
    running = StartedThreads()
    with training(files, num_threads=THREADS) as pipe:
        for _ in range(2):
            _native.fail_thread_starts(started)
            with pytest.raises(ResourceError, match=rf"expected to start {THREADS} threads, got {started} before"):
                pipe.run()
            assert running.end(), "those that have started end"
        _native.fail_thread_starts(-1)
        assert rows_of(pipe.run()) == expected[0], "no batch is lost"
        assert running.count() == THREADS
        assert [rows_of(pipe.run()) for _ in range(2)] == expected[1:]


def test_a_pipeline_whose_threads_never_started_closes(files: list[str]) -> None:
    pipe = training(files, num_threads=THREADS)
    _native.fail_thread_starts(2)
    with pytest.raises(ResourceError):
        pipe.run()
    pipe.close()


def order_of_one(data: np.ndarray) -> _native.recipe.RecipeBatch:
    """Decode one file."""
    decode = [name for name, *_ in _native.recipe.OPS].index("Decode")
    numbers = np.array([decode, -1, 3, 0, 0, 8, 8, 0], np.float64)
    return _native.recipe.make_batch(numbers, np.array([0, len(numbers)]), [data], [], [])


@pytest.mark.parametrize("started", range(3))
def test_a_worker_pool_starts_all_threads_or_none(started: int) -> None:
    """A refused order never runs: its memory may be released."""
    running = StartedThreads()
    pool = _native.recipe.WorkerPool(3)
    refused, accepted = (order_of_one(np.zeros(100, np.uint8)) for _ in range(2))
    _native.fail_thread_starts(started)
    with pytest.raises(RuntimeError, match=rf"`num_threads`: expected to start 3 threads, got {started} before"):
        pool.submit(refused)
    assert running.end()
    _native.fail_thread_starts(-1)
    pool.submit(accepted)
    assert running.count() == 3
    assert pool.wait(accepted, HANG_S) and accepted.done
    assert not refused.done
    pool.close()


UNDER_A_LIMIT = """
import resource, sys
sys.path.append("tests")  # modules that tests share
from started_threads import StartedThreads
from stoker import ResourceError
from tests.run.pipelines import rows_of, training

files = sys.argv[1:]
with training(files) as pipe:
    expected = [rows_of(pipe.run()) for _ in range(2)]
running = StartedThreads()
size = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmSize:"))
soft, hard = resource.getrlimit(resource.RLIMIT_AS)
with training(files, num_threads=400) as pipe:
    resource.setrlimit(resource.RLIMIT_AS, (size + (400 << 20), hard))
    try:
        pipe.run()
    except ResourceError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    assert [rows_of(pipe.run()) for _ in range(2)] == expected
    assert running.count() == 400
"""


def test_a_limit_of_address_space(files: list[str]) -> None:
    """400 threads request 8 MiB each for their stacks, which 400 MiB of additional address space do not hold."""
    done = subprocess.run(
        [sys.executable, "-c", UNDER_A_LIMIT, *files],
        capture_output=True, text=True, env=environment(), check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "`num_threads`: expected to start 400 threads, got " in done.stdout
    assert "none of them runs. Lower `num_threads`" in done.stdout
