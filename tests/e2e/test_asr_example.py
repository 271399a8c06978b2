# SPDX-License-Identifier: Apache-2.0
"""The example of speech recognition learns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.forked import ForkServer
from tests.idle_clock import HANG_S

pytest.importorskip("torch", exc_type=ModuleNotFoundError)
TRAIN = Path(__file__).resolve().parents[2] / "examples" / "asr" / "train.py"


def test_the_example_learns(tmp_path: Path, forked: ForkServer) -> None:
    done = forked.run(TRAIN, "--fast", "--folder", tmp_path, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(x) for x in re.findall(r"loss ([0-9.]+)", done.stdout)]
    assert len(losses) == 5 and losses[-1] < 0.2 * losses[0]
    assert len(list((tmp_path / "train").glob("*.wav"))) == 240
