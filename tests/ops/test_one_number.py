# SPDX-License-Identifier: Apache-2.0
"""One number, from a node whose length only the run shows, for operators that read one number for each axis."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

from stoker import DataError, eager, fn, pipeline_def

IMAGE = np.random.default_rng(3).integers(0, 256, (14, 17, 3), np.uint8)
# Name: operator, argument, two lists that mean the same, and a list that means something else.
CALLS: dict[str, tuple[str, str, list[Any]]] = {
    "gaussian_blur, sigma": ("gaussian_blur", "sigma", [[1.5], [1.5, 1.5], [1.5, 0.5]]),
    "gaussian_blur, window_size": ("gaussian_blur", "window_size", [[5], [5, 5], [5, 3]]),
    "laplacian": ("laplacian", "window_size", [[5], [5, 5], [5, 3]]),
    "dilate": ("experimental.dilate", "mask_size", [[3], [3, 3], [3, 1]]),
    "median_blur": ("experimental.median_blur", "window_size", [[3], [3, 3], [5, 3]]),
    "resize": ("resize", "size", [[6], [6, 6], [6, 9]]),
}


def outputs(rows: list[Any], name: str, argument: str) -> list[Any]:
    """Return the operator's output for each row of numbers, all in one batch."""

    @pipeline_def(batch_size=len(rows), num_threads=1)
    def pipeline() -> Any:
        x = fn.external_source(source=lambda info: IMAGE, batch=False)
        numbers = fn.external_source(source=lambda info: rows[info.idx_in_batch], batch=False)
        return operator.attrgetter(name)(fn)(x, **{argument: numbers})

    with pipeline() as pipe:
        return [np.array(x) for x in pipe.run()[0]]


@pytest.mark.parametrize("case", CALLS)
def test_one_number_is_for_all_axes(case: str) -> None:
    """Every row of a batch has a length of its own, in any order."""
    name, argument, numbers = CALLS[case]
    rows = [np.array(x, np.float32 if argument == "sigma" else np.int32) for x in numbers]
    want = [np.asarray(operator.attrgetter(name)(eager)(IMAGE, **{argument: x.tolist()})) for x in rows]
    for order in ([0, 1, 2], [2, 1, 0]):
        for k, got in zip(order, outputs([rows[k] for k in order], name, argument), strict=True):
            np.testing.assert_array_equal(got, want[k])
    assert want[0].shape == want[1].shape and (want[0] == want[1]).all()
    assert want[0].shape != want[2].shape or (want[0] != want[2]).any()


def test_no_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="fewer elements than are used"):
        outputs([np.zeros(0, np.int32)], "resize", "size")
    with pytest.raises(DataError, match="one number as `sigma`, or one for each of 2 axes, got 3"):
        outputs([np.ones(3, np.float32)], "gaussian_blur", "sigma")
