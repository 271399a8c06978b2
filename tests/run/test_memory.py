# SPDX-License-Identifier: Apache-2.0
"""Memory: the steady state allocates nothing, the total is bounded, and released memory is reused."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stoker import Pipeline
from stoker.native import _native
from tests.idle_clock import HANG_S
from tests.run.pipelines import baseline_of, decoding, environment, files_of, training

MIB = 1 << 20


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return baseline_of(jpegs)


def test_the_counter_counts(files: list[str]) -> None:
    before = _native.allocations()
    with training(files) as pipe:
        pipe.run()
    assert _native.allocations() > before


def test_the_steady_state_takes_no_memory(files: list[str]) -> None:
    with training(files, batch_size=8, num_threads=1) as pipe:
        for _ in range(10):
            pipe.run()
        before = _native.allocations()
        for _ in range(100):
            pipe.run()
        assert _native.allocations() == before


@pytest.mark.parametrize("threads", [2, 4])
@pytest.mark.parametrize("define", [training, decoding])
def test_several_threads_reach_a_steady_state(files: list[str], define: Callable[..., Pipeline], threads: int) -> None:
    """The memory of a thread grows until it has processed the largest image. This takes long on a busy machine."""
    with define(files, batch_size=8, num_threads=threads) as pipe:
        counts = []
        for _ in range(6):
            for _ in range(60):
                pipe.run()
            counts.append(_native.allocations())
        assert min(b - a for a, b in itertools.pairwise(counts)) == 0
        assert counts[-1] - counts[1] < 20


PEAK = """
import json, sys
import numpy as np
from tests.run.pipelines import training
def status(key):
    return next(int(l.split()[1]) * 1024 for l in open("/proc/self/status") if l.startswith(key))
depth, *files = sys.argv[1:]
small = training(files[:3], batch_size=2)  # imports and allocations that happen once
small.run(); small.close()
before = status("VmRSS:")
pipe = training(files, size=224, batch_size=64, prefetch_queue_depth=int(depth))
for _ in range(12):
    x, y = pipe.run()
print(json.dumps([status("VmHWM:") - before, x.as_array().nbytes, pipe.execution.run.scratch_bytes]))
"""


@pytest.mark.parametrize("depth", [1, 3])
def test_the_peak_is_some_batches_and_the_arenas(files: list[str], depth: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(depth), *files],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    peak, batch, arenas = json.loads(done.stdout)
    assert batch == 64 * 3 * 224 * 224 * 4
    assert peak <= (depth + 2) * batch + arenas + 24 * MIB, (peak / MIB, batch / MIB, arenas / MIB)


def test_flat_memory(files: list[str], jpegs: Path) -> None:
    """Run the soak for some seconds. `python -m tests.run.soak` runs it for any time."""
    for workload in ("training", "decoding", "loader", "python"):
        command = [sys.executable, "-m", "tests.run.soak", "--seconds", "2", "--workload", workload, *files_of(jpegs)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False, timeout=HANG_S)
        assert done.returncode == 0, done.stdout + done.stderr
