# SPDX-License-Identifier: Apache-2.0
"""Calls of public functions have the same outcome for lazy objects; `make sweep` runs the whole sweep."""

from __future__ import annotations

import pytest

from tests.complete import COMPLETE
from tests.takeover import sweep

PARTS = 40


@pytest.mark.filterwarnings("ignore")
def test_uses_of_images() -> None:
    assert len(list(sweep.image_calls())) > 90
    assert not list(sweep.differences("images"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", [3, 19] if COMPLETE else [3])
def test_uses_of_tensors(part: int) -> None:
    assert len(list(sweep.tensor_functions())) > 1000
    assert not list(sweep.differences("tensors", part, PARTS, "floats,bytes,image"))


@pytest.mark.filterwarnings("ignore")
def test_uses_of_masks() -> None:
    assert not list(sweep.differences("tensors", 7, 8 * PARTS, "mask,window,numbers"))


@pytest.mark.skipif("points" not in sweep.TENSORS, reason="this release of torchvision has no key points")
@pytest.mark.filterwarnings("ignore")
def test_uses_of_key_points() -> None:
    assert not list(sweep.differences("tensors", 9, 8 * PARTS, "points,whole points,pure points"))
