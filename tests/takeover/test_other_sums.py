# SPDX-License-Identifier: Apache-2.0
"""Processors on which torch adds in other orders: unknown orders are left to torch, and every bit is torch's.

Environment variables select kernels for other processors, so that torch and MKL use other orders on this machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.idle_clock import HANG_S

ROOT = Path(__file__).resolve().parents[2]
SUMS = [
    "tests/takeover/test_floats.py::test_small_windows_of_one_channel_are_torchs",
    "tests/takeover/test_floats.py::test_the_twin_of_products_of_matrices_is_torch",
    "tests/takeover/test_interpolation.py::test_another_order_is_detected",
    "tests/takeover/test_interpolation.py::test_points_are_sent_where_torchs_products_differ",
]


@pytest.mark.parametrize("kernels", ["COMPATIBLE", "AVX2"])
def test_sums_are_torchs_with_other_kernels_of_mkl(kernels: str) -> None:
    """torch's sums are repeated for AMD processors, and for those without AVX-512."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SUMS]
    done = run(command, {"MKL_CBWR": kernels})
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout + done.stderr


def run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=os.environ | environment, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S
    )


COLORS = """
import sys
sys.path[:0] = ["tests"]
from tests.takeover import table, transforms
rows = [name for name in transforms.IMAGES if name.startswith(("ColorJitter", "Grayscale", "RandAugment"))]
assert len(rows) > 5
for name in rows:
    for column in table._OF_IMAGES:
        print(table.cell(column.after_steps(transforms.IMAGES[name]), column.library), name, column.title)
"""


def test_bytes_are_torchs_without_fused_multiply_adds() -> None:
    """Trials compare floats, because bytes alone show too little of an order."""
    done = run([sys.executable, "-c", COLORS], {"ATEN_CPU_CAPABILITY": "default"})
    assert done.returncode == 0, done.stderr
    assert "covered" in done.stdout and "differs by" not in done.stdout, done.stdout
