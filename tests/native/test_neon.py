# SPDX-License-Identifier: Apache-2.0
"""NEON kernels against plain code on an emulated machine: the short form of ``make test-neon``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.idle_clock import HANG_S

ROOT = Path(__file__).parents[2]


def test_neon_kernels_have_the_plain_kernels_bits() -> None:
    """Without a cross compiler or an emulator, the script prints SKIPPED and succeeds."""
    command = ["sh", "tests/native/neon.sh", "0", "build/neon-short"]
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SKIPPED" in done.stdout or "image kernels, neon against plain" in done.stdout, done.stdout
