# SPDX-License-Identifier: Apache-2.0
"""Walk over all operators with hostile values: a sample that is the same in every run. ``make hostile`` runs more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stoker.frontends.registry import names
from tests.complete import COMPLETE
from tests.hostile.cases import targets
from tests.hostile.planted import PLANTED
from tests.hostile.walk import LOST, ROOT, Limits, Walk, is_lost_for_want_of_memory, write_files
from tests.idle_clock import HANG_S

CALLS, PARTS = (8000, 4) if COMPLETE else (3000, 2)


@pytest.mark.parametrize("part", range(PARTS))
def test_only_stoker_errors(part: int, tmp_path: Path) -> None:
    first = part * CALLS // PARTS
    walk = Walk(0, first, first + CALLS // PARTS, write_files(tmp_path))
    found = list(walk.faults())
    assert walk.calls == CALLS // PARTS
    assert not found, "\n".join(map(str, found))


def test_every_operator_is_walked(tmp_path: Path) -> None:
    walked = " ".join(target.name for target in targets(write_files(tmp_path)))
    assert [name for name in names() if not name.startswith("_") and f".{name}" not in walked] == []


def test_planted_faults_are_found(tmp_path: Path) -> None:
    limits = Limits(cpu_s=2.0, hang_s=5.0)
    walk = Walk(0, 0, len(PLANTED), write_files(tmp_path), limits, "tests.hostile.planted:targets")
    found = {fault.call: fault for fault in walk.faults()}
    assert walk.calls == len(PLANTED)
    assert set(found) == set(PLANTED) - {"refuses", "returns"}
    assert found["python"].kind.startswith("TypeError")
    assert found["numpy"].kind.startswith("ValueError")
    assert found["memory"].kind.startswith("MemoryError")
    if Limits().memory_gib:
        assert found["loses an exception"].kind == LOST
    assert found["aborts"].kind == "crash: the process ended with -6"
    assert found["ends"].kind == "crash: the process ended with 0"
    assert found["reads nowhere"].kind == "crash: the process ended with -11"
    assert found["sleeps"].kind.startswith("hang")
    assert found["spins"].kind.startswith("endless")
    assert "planted.py" in found["python"].text


def test_an_error_is_the_librarys_below_the_limit_of_memory() -> None:
    assert not is_lost_for_want_of_memory(SystemError("error return without exception set"))


def test_a_case_is_the_same_in_every_process(tmp_path: Path) -> None:
    from tests.hostile.cases import draw

    found = targets(write_files(tmp_path))
    texts = [draw(found, 5, number).text for number in range(50)]
    assert texts == [draw(found, 5, number).text for number in range(50)]
    assert len(set(texts)) == 50


def test_several_walks_at_the_same_time() -> None:
    command = [sys.executable, "-m", "tests.hostile.walk", "--jobs", "2", "--seed", "5", "--last", "2"]
    planted = [*command, "--targets", "tests.hostile.planted:harmless"]
    done = subprocess.run(planted, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 calls in " in done.stdout and "seeds 5 to 6" in done.stdout
    faulty = [*command, "--targets", "tests.hostile.planted:faulty"]
    done = subprocess.run(faulty, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 1 and "4 faults of 1 kinds" in done.stdout, done.stdout + done.stderr
