# SPDX-License-Identifier: Apache-2.0
"""Operators that have OpenCV's bits, against checksums that ``tools/opencv_values.py`` recorded."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest

import opencv_values
from stoker import eager
from stoker.native import _native

RECORDED = json.loads(opencv_values.RECORD.read_text(encoding="utf-8"))


def test_every_case_is_recorded() -> None:
    assert list(RECORDED) == list(opencv_values.CASES)


@pytest.fixture(params=_native.instruction_sets())
def isa(request: pytest.FixtureRequest) -> Iterator[None]:
    before = _native.get_isa()
    _native.set_isa(request.param)
    yield
    _native.set_isa(before)


@pytest.mark.usefixtures("isa")
@pytest.mark.parametrize("name", opencv_values.CASES)
def test_bits_are_opencvs(name: str) -> None:
    kind, _, ours = opencv_values.CASES[name]
    assert opencv_values.checksums(kind, lambda x: np.asarray(ours(eager, x))) == RECORDED[name]


def test_a_different_result_is_found() -> None:
    kind, _, ours = opencv_values.CASES["laplacian 3"]
    found = opencv_values.checksums(kind, lambda x: np.asarray(ours(eager, x)) ^ np.uint8(1))
    assert not set(found) & set(RECORDED["laplacian 3"])
