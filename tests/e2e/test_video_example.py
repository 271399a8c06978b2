# SPDX-License-Identifier: Apache-2.0
"""The example of videos learns their motion."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.forked import ForkServer
from tests.idle_clock import HANG_S

pytest.importorskip("torch", exc_type=ModuleNotFoundError)
pytest.importorskip("av", reason="PyAV is not installed")
TRAIN = Path(__file__).resolve().parents[2] / "examples" / "video" / "train.py"


def test_the_example_learns(tmp_path: Path, forked: ForkServer) -> None:
    done = forked.run(TRAIN, "--fast", "--folder", tmp_path, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(x) for x in re.findall(r"loss ([0-9.]+)", done.stdout)]
    assert len(losses) == 3 and losses[-1] < 0.5 * losses[0]
    (still,) = re.findall(r"still pictures: ([0-9.]+)%", done.stdout)
    assert float(still) < 45  # without motion the classes are alike
    assert len(list((tmp_path / "train").glob("*/*.mp4"))) == 80
