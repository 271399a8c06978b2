# SPDX-License-Identifier: Apache-2.0
"""Values of Stoker against values of NVIDIA DALI, which ``tools/dali_values.py`` recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dali_cases
import dali_policies
from dali_values import POLICIES, RECORD, compare, make_inputs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "migrating_from_dali.md"


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    return dict(np.load(RECORD))


@pytest.mark.parametrize("name", dali_cases.CASES)
def test_the_page_has_the_measured_values(name: str, recorded: dict[str, Any]) -> None:
    """The values in the table for a case equal the values measured now."""
    inputs = {k[3:]: v for k, v in recorded.items() if k.startswith("in:")}
    theirs = {k[4:]: v for k, v in recorded.items() if k.startswith(f"out:{name}|")}
    try:
        ours: dict[str, Any] = {
            f"{name}|{i}": x for i, x in enumerate(dali_cases.run_case("stoker.dali", name, inputs))
        }
    except Exception as error:  # as in the tool
        ours = {f"{name}|error": np.array(dali_cases.refusal(error))}
    found = compare(theirs, ours, name)
    (line,) = [x for x in PAGE.read_text(encoding="utf-8").splitlines() if x.startswith(f"| {name} |")]
    cells = [c.strip() for c in line.split("|")[2:-1]]
    if "verdict" in found:
        assert cells[1] == found["verdict"].replace("|", "/")
    elif not found["largest"]:
        assert cells[1] == "none"
    else:
        assert cells == [found["dtype"], f"{found['share']:.2%}", f"{found['mean']:.3g}", f"{found['largest']:.3g}"]


def test_the_tables_of_automatic_augmentations_are_dalis() -> None:
    recorded = json.loads(POLICIES.read_text(encoding="utf-8"))
    found = json.loads(json.dumps(dali_policies.tables("stoker.dali")))
    assert list(found) == list(recorded)
    assert sum(len(found[name]) for name in found if "policy" in name) == 7 * 25
    for name, want in recorded.items():
        assert found[name] == want, name


def test_the_comparison_detects_a_difference(recorded: dict[str, Any]) -> None:
    name = "flip"
    theirs = {k[4:]: v for k, v in recorded.items() if k.startswith(f"out:{name}|")}
    ours = {k: v.copy() for k, v in theirs.items()}
    assert compare(theirs, ours, name)["largest"] == 0
    ours["flip|0"][0, 0, 0] ^= 1
    assert compare(theirs, ours, name)["largest"] == 1
    assert compare(theirs, {k: v.astype(np.int16) for k, v in ours.items()}, name)["verdict"].startswith("types differ")
    assert compare(theirs, {"flip|error": np.array("no")}, name)["verdict"] == "Stoker refuses: no"


def test_the_recorded_inputs_equal_the_tools(recorded: dict[str, Any]) -> None:
    inputs = make_inputs()
    assert set(inputs) == {k[3:] for k in recorded if k.startswith("in:")}
    assert all((recorded[f"in:{k}"] == v).all() for k, v in inputs.items() if k.startswith("image"))
