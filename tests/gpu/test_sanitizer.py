# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer on generated kernels.

The programs are stages, interpolators, weights, custom kernels, videos, recipes, whole chains, and images in planes.
``make test-gpu-sanitizer`` runs them, and the decoder's of ``test_gpu_jpeg.py``. Each tool must find a planted fault.
docs/internals/reliability.md lists faults that the tools cannot find.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("racecheck", "memcheck", "synccheck", "initcheck")
CHOSEN = "[cuda"  # the GPU variants of tests that also have the null device
FILES = {
    "planes": ("test_planes.py",),
    "stages": ("test_stages.py",),
    "own": ("test_own_kernels.py",),
    "chains": ("test_pipelines.py",),
    "others": ("test_frames.py", "test_perspective.py", "test_pairs.py", "test_recipes.py", "test_shifts.py"),
}
# initcheck leaves out the others, which read uninitialised bytes on purpose: the fourth byte of pixels that are words,
# and pixels of a damaged file, which are resampled before the damage is known and then computed again.
INITIALISED = ("own", "others")
PARTS = {("racecheck", "planes"): 4, ("racecheck", "own"): 4}  # number of processes that share slow tests
# For host backtraces the tool would take the GIL inside the driver, while the GIL's owner waits for the driver's lock.
OPTIONS = ("--error-exitcode", "9", "--show-backtrace", "device", "--target-processes", "application-only")
# The tool loses a kernel's launch now and then when many processes run, and counts that as a fault of the program.
FAILURE_OF_TOOL, ATTEMPTS = "Internal Sanitizer Error: Detected a failure to track a kernel launch", 4
# A test may read more of an output than a kernel writes.
OF_TOOLS = {"initcheck": ("--check-api-memory-access", "no")}

pytestmark = pytest.mark.skipif("STOKER_SANITIZER" not in os.environ, reason="takes minutes: `make test-gpu-sanitizer`")


def watch(tool: str, *program: str) -> subprocess.CompletedProcess[str]:
    """Run a program under a tool, again if the tool failed. Its exit status is 9 if the tool reports a fault."""
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not installed")
    command = [sanitizer, "--tool", tool, *OPTIONS, *OF_TOOLS.get(tool, ()), sys.executable, *program]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # without pytest's settings for its workers, of which this process may be one
    own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    for _ in range(ATTEMPTS):
        done = subprocess.run(
            command, cwd=ROOT, env={**own, "PYTHONPATH": path}, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=600,
        )  # fmt: skip
        if FAILURE_OF_TOOL not in done.stdout:
            break
    return done


def jobs() -> Iterator[Any]:
    for tool in TOOLS:
        for files in INITIALISED if tool == "initcheck" else FILES:
            parts = PARTS.get((tool, files), 1)
            for part in range(parts):
                yield pytest.param(tool, files, f"{part}/{parts}", id=f"{tool}-{files}-{part}")


@pytest.mark.parametrize(("tool", "files", "part"), list(jobs()))
def test_generated_kernels(tool: str, files: str, part: str) -> None:
    options = ("-q", "-p", "tests.gpu.watched", "-p", "no:cacheprovider", "-k", CHOSEN, "--part", part)
    done = watch(tool, "-m", "pytest", *options, *(f"tests/cuda/{name}" for name in FILES[files]))
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-6000:]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_planted_fault_is_reported(tool: str) -> None:
    plain, faulty = (watch(tool, "-m", "tests.gpu.planted", fault) for fault in ("nothing", tool))
    assert plain.returncode == 0, plain.stdout[-3000:]
    assert faulty.returncode == 9, faulty.stdout[-3000:]
