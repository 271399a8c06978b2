# SPDX-License-Identifier: Apache-2.0
"""Virtual environment of the peers, which the Makefile's rules for environments make."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from benchmarks.machine import ROOT

FOLDER = ROOT / ".venv-bench"  # the dependency group "bench" of pyproject.toml


class PeersUnavailable(RuntimeError):
    """Installing the peers failed. Contenders of the other environments can still be measured."""


def ensure() -> Path:
    """Make the environment if it is missing or older than its requirements, and return its interpreter.

    Raises:
        PeersUnavailable: make failed; the text has its last lines.
    """
    command = ["make", "--silent", "--directory", str(ROOT), f"{FOLDER.name}/.bench-needs"]
    command.append(f"PYTHON={sys.executable}")  # the peers have the Python of Stoker
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise PeersUnavailable(f"`{' '.join(command)}` failed: {' / '.join(lines[-2:])}")
    return FOLDER / "bin" / "python"
