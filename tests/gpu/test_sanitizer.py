# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer over generated kernels: stages, samplers, weights, operators' own kernels, videos, whole chains.

``make test-gpu-sanitizer`` runs them, for minutes. ``tests/gpu/test_gpu_jpeg.py`` has the decoder's. Each tool must see
a fault that is planted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ("memcheck", "racecheck", "synccheck")
# A representative part: every kind of kernel, types of one to eight bytes, all filters, views and faults.
TESTS = (
    "tests/cuda/test_stages.py", "tests/cuda/test_pipelines.py", "tests/cuda/test_own_kernels.py",
    "tests/cuda/test_frames.py", "tests/cuda/test_planes.py",
)  # fmt: skip
PARTS = 4  # of each file, beside each other with pytest-xdist
CHOSEN = "not null and not every_operation"  # on the GPU alone

pytestmark = pytest.mark.skipif("STOKER_SANITIZER" not in os.environ, reason="takes minutes: `make test-gpu-sanitizer`")


def watch(tool: str, *program: str) -> subprocess.CompletedProcess[str]:
    """A program under a tool; it ends with 9 where that has something to say."""
    sanitizer = shutil.which("compute-sanitizer")
    if sanitizer is None:
        pytest.skip("compute-sanitizer is not installed")
    command = [sanitizer, "--tool", tool, "--error-exitcode", "9", sys.executable, *program]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # without pytest's word to its workers, of which this test's process may be one
    own = {name: told for name, told in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        command, cwd=ROOT, env={**own, "PYTHONPATH": path}, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=600,
    )  # fmt: skip


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("tests", TESTS)
@pytest.mark.parametrize("tool", TOOLS)
def test_generated_kernels(tool: str, tests: str, part: int) -> None:
    options = ("-q", "-p", "tests.gpu.watched", "-p", "no:cacheprovider", "-k", CHOSEN, "--part", f"{part}/{PARTS}")
    done = watch(tool, "-m", "pytest", *options, tests)
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-6000:]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_planted_fault_is_seen(tool: str) -> None:
    done = watch(tool, "-m", "tests.gpu.planted", tool)
    assert done.returncode == 9, done.stdout[-3000:]
