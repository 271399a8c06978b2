# SPDX-License-Identifier: Apache-2.0
"""The runner of torchvision's own tests finds those that pass untouched and fail taken over."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

from tests.idle_clock import HANG_S
from tests.takeover.torchvision_tests import Outcome, combine, compare, summary

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import io
import unittest

import numpy as np
from PIL import Image
from torchvision import tv_tensors

def test_equal():
    file = io.BytesIO()
    Image.new("RGB", (80, 90), (9, 8, 7)).save(file, "JPEG")
    assert tv_tensors.Image(np.asarray(Image.open(file))).shape == (90, 80, 3)

def test_exact_types():
    image = Image.new("RGB", (80, 90))
    file = io.BytesIO()
    image.save(file, "JPEG")
    assert type(Image.open(file).convert("L")) is type(image)

def test_different():
    import stoker.torchvision
    assert not stoker.torchvision.is_enabled()

def test_always_fails():
    raise ValueError

class TestParts(unittest.TestCase):
    def test_last_part_is_different(self):
        import stoker.torchvision
        for part in range(3):
            with self.subTest(part=part):
                if part == 0:
                    self.skipTest("not this one")
                assert part == 1 or not stoker.torchvision.is_enabled()
"""


def test_only_faults_of_the_take_over_are_counted(tmp_path: Path) -> None:
    (tmp_path / "test_tv_tensors.py").write_text(TESTS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    command = [
        sys.executable,
        "-m",
        "tests.takeover.torchvision_tests",
        str(tmp_path),
        "--modes",
        "fetching",
        "--quick",
    ]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "fetching: 5 tests, 3 failed, 2 passed"
    differences = [line for line in lines if line.endswith(": passed -> failed")]
    assert [line.split("::")[-1] for line in differences] == [
        "test_last_part_is_different: passed -> failed",
        "test_different: passed -> failed",
    ]
    assert lines[-1] == "2 tests pass untouched and fail taken over"


def test_differences(capsys: object) -> None:
    passed, failed, skipped = Outcome("passed", ""), Outcome("failed", "why"), Outcome("skipped", "")
    untouched = {"a": passed, "b": failed, "c": passed, "d": skipped}
    taken_over = {"a": failed, "b": passed, "d": skipped}
    assert compare(untouched, taken_over, "fetching") == 2, "a fails, c is missing"
    assert summary(untouched) == "4 tests, 1 failed, 2 passed, 1 skipped"


def test_outcomes_of_parts_in_any_order() -> None:
    passed, failed, skipped = ("a", "passed", ""), ("a", "failed", "why"), ("a", "skipped", "")
    for records in itertools.permutations((passed, failed, skipped)):
        assert combine(records) == {"a": Outcome("failed", "why")}
    assert combine([skipped, passed]) == combine([passed, skipped]) == {"a": Outcome("passed", "")}


def test_a_folder_without_tests_is_refused(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])}
    command = [sys.executable, "-m", "tests.takeover.torchvision_tests", str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 1 and "expected torchvision's tests in" in done.stderr
