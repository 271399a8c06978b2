# SPDX-License-Identifier: Apache-2.0
"""Operators of boxes of ``stoker.dali`` against values of NVIDIA DALI, which ``tools/dali_boxes.py`` recorded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dali_boxes import CASES, CROPS, RECORD, run_case, run_crops
from stoker.contract.operator import RowContext
from stoker.ops.geometry import random_bbox_crop


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    return dict(np.load(RECORD))


@pytest.fixture(scope="module")
def inputs(recorded: dict[str, Any]) -> dict[str, Any]:
    return {key[3:]: value for key, value in recorded.items() if key.startswith("in:")}


@pytest.mark.parametrize("name", CASES)
def test_values_are_dalis(name: str, recorded: dict[str, Any], inputs: dict[str, Any]) -> None:
    for i, got in enumerate(run_case("stoker.dali", name, inputs)):
        want = recorded[f"out:{name}:{i}"]
        assert got.dtype == want.dtype and got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=CASES[name][1], atol=CASES[name][1])


@pytest.mark.parametrize("name", CROPS)
def test_boxes_in_dalis_windows(
    name: str, recorded: dict[str, Any], inputs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Give the reference the windows that DALI drew: the same boxes are left, with the same numbers."""
    key, arguments = CROPS[name]
    boxes, operator = inputs[key], random_bbox_crop.RandomBBoxCrop
    args = operator.fill_defaults(operator.bind({**arguments, "output_bbox_indices": True}), {})
    counts = recorded[f"crop:{name}:counts"]
    ends = np.cumsum(counts)
    differences = []
    for row, (anchor, shape) in enumerate(
        zip(recorded[f"crop:{name}:anchors"], recorded[f"crop:{name}:shapes"], strict=True)
    ):
        extent = np.array(arguments.get("input_shape", (1, 1)) if "crop_shape" in arguments else (1, 1), np.float32)
        corners = (anchor / extent, (anchor + shape) / extent)
        whole = "crop_shape" not in arguments and (shape == 1).all()
        window = (anchor, shape, None if whole else corners)
        monkeypatch.setattr(random_bbox_crop._Search, "window", lambda self, window=window: window)
        _, _, kept, numbers = operator().reference(RowContext(args), boxes)
        own = slice(ends[row] - counts[row], ends[row])
        np.testing.assert_array_equal(numbers, recorded[f"crop:{name}:numbers"][own])
        differences.append(np.abs(kept - recorded[f"crop:{name}:boxes"][own]).max())
    assert max(differences) <= 3e-7


@pytest.mark.parametrize("name", CROPS)
def test_windows_are_distributed_like_dalis(name: str, recorded: dict[str, Any], inputs: dict[str, Any]) -> None:
    """Means of anchors, shapes and numbers of boxes, within four standard errors of the difference."""
    anchors, shapes, boxes, _ = run_crops("stoker.dali", name, inputs)
    got = np.concatenate([np.stack(anchors), np.stack(shapes), np.array([[len(x)] for x in boxes])], 1)
    want = np.concatenate(
        [recorded[f"crop:{name}:anchors"], recorded[f"crop:{name}:shapes"], recorded[f"crop:{name}:counts"][:, None]], 1
    )
    error = np.sqrt((got.var(0) + want.var(0)) / len(got)) + 1e-6
    assert (np.abs(got.mean(0) - want.mean(0)) <= 4 * error).all(), (got.mean(0), want.mean(0), error)
