# SPDX-License-Identifier: Apache-2.0
"""Axis names of outputs whose input has none, on the null device: those of NVIDIA DALI, as on the CPU."""

from __future__ import annotations

import json
from typing import Any

import emulated_stages
import pytest

from dali_layouts import CASES, RECORD, run_case
from stoker.device.gpu import Gpu
from stoker.frontends.dali import gpu_memory
from stoker.frontends.registry import find, names
from stoker.native import _native

FACTS = json.loads(RECORD.read_text(encoding="utf-8"))
NAMED = [x for x in names() if find(x).default_layouts and not x.startswith("_")]
ANSWERED = [
    (name, int(rank))
    for name, answers in FACTS["cases"].items()
    for rank, answer in answers.items()
    if isinstance(answer, list) and CASES[name][0] in NAMED and (name, rank) != ("crop, volume", "3")
]


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], autouse=True)
def gpu(request: pytest.FixtureRequest, folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the null device as GPU 0, unless there is a GPU."""
    if request.param == "null":
        monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: emulated_stages.EmulatedGpu(folder)))
        null = _native.gpu.open_null()
        monkeypatch.setattr(gpu_memory, "open_device", lambda number: null)


@pytest.mark.parametrize(("name", "rank"), ANSWERED)
def test_axis_names_are_dalis(name: str, rank: int) -> None:
    want, extents = FACTS["cases"][name][str(rank)]
    found = run_case("stoker.dali", name, rank, device_id=0)
    assert found == (want, extents or found[1])


def test_cases_of_all_operators_with_default_names() -> None:
    """Operators that DALI has are in the record."""
    assert len(ANSWERED) > 70
    assert set(NAMED) - {operator for operator, _ in CASES.values()} == {
        "elastic", "geometry", "lens_distortion", "optical_distortion"
    }  # fmt: skip
