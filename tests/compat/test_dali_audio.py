# SPDX-License-Identifier: Apache-2.0
"""Audio operators of ``stoker.dali`` against values of NVIDIA DALI, which ``tools/dali_audio.py`` recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dali_audio import CASES, RECORD, arguments_of, run_case
from stoker import types
from tests.containers import dali_records


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    return dict(np.load(RECORD))


def rows_of(recorded: dict[str, Any], key: str) -> list[Any]:
    found = {int(k.rpartition(":")[2]): x for k, x in recorded.items() if k.rpartition(":")[0] == key}
    return [found[i] for i in range(len(found))]


@pytest.mark.parametrize("name", CASES)
def test_values_are_dalis(name: str, recorded: dict[str, Any]) -> None:
    case = CASES[name]
    inputs = {key: rows_of(recorded, f"in:{key}") for key in case.inputs.split()}
    for k, rows in enumerate(run_case("stoker.dali", name, inputs)):
        want = rows_of(recorded, f"out:{name}:{k}")
        assert len(rows) == len(want) > 0
        for got, row in zip(rows, want, strict=True):
            compare(got, row, case.tolerance)
    assert not rows_of(recorded, f"out:{name}:{k + 1}")


def compare(got: Any, want: Any, tolerance: float) -> None:
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    largest = np.abs(want.astype(np.float64)).max(initial=0)
    assert np.abs(got.astype(np.float64) - want).max(initial=0) <= tolerance * largest
    if want.ndim and (np.roll(want, 1, axis=0) != want).any():
        wrong = np.roll(want, 1, axis=0).astype(np.float64)  # the tolerance detects a shift by one
        assert np.abs(got - wrong).max() > tolerance * largest


def test_every_argument_has_a_case(recorded: dict[str, Any]) -> None:
    """Every argument of DALI's audio operators is given in a case, also by row, where DALI takes it by row."""
    given = set[str]().union(*(arguments_of(case) for case in CASES.values()))
    manifests = [arguments for _, reader, arguments in dali_records.cases(types) if reader == "nemo_asr"]
    given |= {f"readers.nemo_asr {name}" for arguments in manifests for name in arguments}
    wanted = set(recorded["arguments"].tolist())
    assert len(wanted) > 90
    assert not wanted - given
