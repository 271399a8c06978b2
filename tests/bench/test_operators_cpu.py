# SPDX-License-Identifier: Apache-2.0
"""The table of single operators: a real process measures, and the line of a case has the ratio and the bar."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import operators_cpu
from benchmarks.cases import operators
from benchmarks.process import ContenderFailed


def test_a_process_measures_and_says_what_failed(jpegs: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (own,) = (c for c in operators.CASES[0].contenders if c.name == "stoker")
    with operators_cpu.Server("stoker", Path(sys.executable), jpegs) as server:
        server.wait()
        found = server.measure(own, 0.01)
        assert found is not None and 0 < found < 1000
        assert server.measure(replace(own, options={"operator": "unknown"}), 0.01) is None
        assert "stoker" in capfd.readouterr().err
        server._popen.kill()
        with pytest.raises(ContenderFailed, match="stoker: its process ended"):
            server.measure(own, 0.01)


def test_a_line_compares_with_the_fastest_library() -> None:
    case = operators.CASES[0]
    line = operators_cpu.row(case, {"stoker": [2.0, 9.0, 2.2], "a": [1.0, 3.0, 2.0], "b": [8.0, 8.0, 8.0]})
    assert line.endswith("| 2.2 | a 2 | 1.10 | met |")
    assert "missed" in operators_cpu.row(case, {"stoker": [3.0], "a": [2.0]})
    assert "not measured" in operators_cpu.row(case, {"a": [2.0]})
