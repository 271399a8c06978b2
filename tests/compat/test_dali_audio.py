# SPDX-License-Identifier: Apache-2.0
"""Audio operators of ``stoker.dali`` against values of NVIDIA DALI, which ``tools/dali_audio.py`` recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dali_audio import CASES, RECORD, run_case


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    return dict(np.load(RECORD))


@pytest.mark.parametrize("name", CASES)
def test_values_are_dalis(name: str, recorded: dict[str, Any]) -> None:
    inputs = {key[3:]: value for key, value in recorded.items() if key.startswith("in:")}
    got, want, tolerance = run_case("stoker.dali", name, inputs), recorded[f"out:{name}"], CASES[name][2]
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    largest = np.abs(want.astype(np.float64)).max()
    assert np.abs(got.astype(np.float64) - want).max() <= tolerance * largest
    wrong = np.roll(want, 1, axis=0).astype(np.float64)  # the tolerance detects a shift by one
    assert len(want) < 2 or np.abs(got - wrong).max() > tolerance * largest
