# SPDX-License-Identifier: Apache-2.0
"""The example of videos learns their motion."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", exc_type=ModuleNotFoundError)
pytest.importorskip("av", reason="PyAV is not installed")
TRAIN = Path(__file__).resolve().parents[2] / "examples" / "video" / "train.py"


def test_the_example_learns(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(TRAIN), "--fast", "--folder", str(tmp_path)], capture_output=True, text=True, check=False,
        timeout=280, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(x) for x in re.findall(r"loss ([0-9.]+)", done.stdout)]
    assert len(losses) == 3 and losses[-1] < 0.5 * losses[0]
    (still,) = re.findall(r"still pictures: ([0-9.]+)%", done.stdout)
    assert float(still) < 45  # without motion the classes are alike
    assert len(list((tmp_path / "train").glob("*/*.mp4"))) == 80
