# SPDX-License-Identifier: Apache-2.0
"""Motion blur: the line of an impulse, its weights, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, eager, fn

IMPULSE = np.zeros((15, 15, 1), np.float32)
IMPULSE[7, 7] = 1


def line(**arguments: Any) -> Any:
    return np.asarray(eager.motion_blur(IMPULSE, **arguments))[..., 0]


def test_a_horizontal_line_is_a_mean() -> None:
    want = np.zeros((15, 15), np.float32)
    want[7, 5:10] = 0.2
    np.testing.assert_allclose(line(size=5), want, atol=1e-7)
    np.testing.assert_allclose(line(size=5, angle=90.0), want.T, atol=1e-7)
    np.testing.assert_array_equal(line(size=1, angle=33.0), IMPULSE[..., 0])


def test_angles_are_counterclockwise() -> None:
    found = line(size=9, angle=45.0)
    assert found[4, 10] > 0.05 and found[10, 4] > 0.05 and found[4, 4] == found[10, 10] == 0
    for angle in (0.0, 17.0, 45.0, 110.0):
        np.testing.assert_allclose(line(size=9, angle=angle), line(size=9, angle=angle + 180), atol=1e-6)
        assert line(size=9, angle=angle).sum() == pytest.approx(1, abs=1e-5)


def test_a_direction_is_a_slope() -> None:
    """The window is a correlation: weights that rise to the right move an impulse to the left."""
    weights = line(size=5, direction=1.0)[7, 5:10]
    np.testing.assert_allclose(weights, [0.4, 0.3, 0.2, 0.1, 0.0], atol=1e-6)
    np.testing.assert_allclose(line(size=5, direction=-1.0)[7, 5:10], weights[::-1], atol=1e-6)


def test_arguments_per_row() -> None:
    x, angles = np.random.default_rng(2).integers(0, 256, (20, 24, 3), np.uint8), (0.0, 30.0, -75.0)
    pipe = Pipeline(batch_size=3, num_threads=2)
    with pipe:
        image = fn.external_source(source=lambda: x, batch=False, dtype="uint8", ndim=3, layout="HWC")
        angle = fn.external_source(
            source=lambda info: np.float32(angles[info.idx_in_batch]), batch=False, dtype="float32", ndim=0
        )
        size = fn.external_source(
            source=lambda info: np.int32(2 * info.idx_in_batch + 1), batch=False, dtype="int32", ndim=0
        )
        pipe.set_outputs(fn.motion_blur(image, size=size, angle=angle))
    with pipe:
        (found,) = pipe.run()
        for k, angle in enumerate(angles):
            np.testing.assert_array_equal(np.asarray(found[k]), eager.motion_blur(x, size=2 * k + 1, angle=angle))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"size": 4}, "odd `size`"),
        ({"size": 257}, "odd `size`"),
        ({"angle": np.inf}, "finite `angle`"),
        ({"direction": 1.5}, "`direction` from -1 to 1"),
    ],
)
def test_invalid_arguments_are_refused(arguments: Any, text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        line(**arguments)
