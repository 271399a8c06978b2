# SPDX-License-Identifier: Apache-2.0
"""The peers' virtual environment: made once, in the project's root, from the package index that pip is set up for."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from benchmarks.machine import ROOT

FOLDER = ROOT / ".venv-bench"
REQUIREMENTS = ("nvidia-dali-cuda130==2.4.0", "torch==2.13.0", "numpy", "pillow", "simplejpeg")
# torchvision asks for a torch of its own build; its transforms on Pillow images need none of its native operators.
WITHOUT_DEPENDENCIES = ("torchvision==0.28.0",)

_STAMP = "stoker-peers"


class PeersUnavailable(RuntimeError):
    """The peers could not be installed; what can be measured without them still is."""


def ensure(folder: Path = FOLDER) -> Path:
    """Make the environment if it is not there or was made for other versions; returns its interpreter.

    Raises:
        PeersUnavailable: pip could not install them; the text is pip's last line.
    """
    python = folder / "bin" / "python"
    wanted = hashlib.sha256(repr((REQUIREMENTS, WITHOUT_DEPENDENCIES)).encode()).hexdigest()
    stamp = folder / _STAMP
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    _call(sys.executable, "-m", "venv", str(folder))
    _call(str(python), "-m", "pip", "install", "--quiet", *REQUIREMENTS)
    _call(str(python), "-m", "pip", "install", "--quiet", "--no-deps", *WITHOUT_DEPENDENCIES)
    stamp.write_text(wanted)
    return python


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise PeersUnavailable(f"`{' '.join(command[1:4])} ...` failed: {lines[-1]}")
