# SPDX-License-Identifier: Apache-2.0
"""Tests by several processes: those that are to be alone are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = """
import os, time
import pytest
alone = pytest.mark.alone("why")

@pytest.mark.parametrize("number", [0, 1, pytest.param(2, marks=alone), pytest.param(3, marks=alone), 4, 5])
def test(number):
    out = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    told = f" {'alone' if number in (2, 3) else 'beside'} {os.getpid()}\\n"
    os.write(out, ("begins" + told).encode())
    time.sleep(0.02)
    os.write(out, ("ends" + told).encode())
    os.close(out)
"""


def test_a_test_that_is_to_be_alone_is(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from sharing import share as pytest_configure\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = alone(reason)\n")
    for name in ("test_a.py", "test_b.py"):
        (tmp_path / name).write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "--basetemp", str(tmp_path / "base")]
    path = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(
        command, cwd=tmp_path, env={**environment, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 and "12 passed" in done.stdout, done.stdout + done.stderr
    inside: dict[str, str] = {}
    processes = set()
    for line in (tmp_path / "log").read_text().splitlines():
        what, how, process = line.split()
        processes.add(process)
        if what == "begins":
            inside[process] = how
        assert len(inside) == 1 or "alone" not in inside.values(), "another one runs"
        if what == "ends":
            del inside[process]
    assert len(processes) == 2
