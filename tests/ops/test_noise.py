# SPDX-License-Identifier: Apache-2.0
"""Noise: distributions, determinism, and the borders of types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, UnsupportedError, eager, fn

GRAY = np.full((200, 150, 3), 128, np.uint8)


def rows_of(define: Any, batch_size: int, count: int = 6, **options: Any) -> list[Any]:
    """Return the first rows of a pipeline over gray images."""
    options = {"num_threads": 2, "seed": 9, **options}
    pipe = Pipeline(batch_size=batch_size, **options)
    with pipe:
        x = fn.external_source(source=lambda info: GRAY[:20, :30], batch=False, dtype="uint8", ndim=3, layout="HWC")
        pipe.set_outputs(define(x))
    rows: list[Any] = []
    with pipe:
        while len(rows) < count:
            (batch,) = pipe.run()
            rows += [np.array(x) for x in batch]
    return rows[:count]


def noisy(x: Any) -> Any:
    return fn.noise.gaussian(x, stddev=20.0)


def test_gaussian_noise_has_its_mean_and_deviation() -> None:
    noise = np.asarray(eager.noise.gaussian(GRAY.astype(np.float32), mean=5.0, stddev=20.0, seed=7)) - 128
    assert abs(noise.mean() - 5) < 0.3 and abs(noise.std() - 20) < 0.3
    normal = (noise - 5) / 20
    for limit, share in ((0.0, 0.5), (1.0, 0.8413), (2.0, 0.9772), (3.0, 0.99865)):
        assert abs((normal < limit).mean() - share) < 0.006
    assert abs((normal**3).mean()) < 0.05 and abs((normal**4).mean() - 3) < 0.1
    assert np.abs(normal).max() <= 5.78


def test_noise_depends_on_the_sample_and_not_on_the_batch() -> None:
    rows = rows_of(noisy, 3)
    assert len({row.tobytes() for row in rows}) == len(rows)
    for options in ({"batch_size": 1}, {"batch_size": 6, "num_threads": 1}):
        for a, b in zip(rows, rows_of(noisy, **options), strict=True):
            np.testing.assert_array_equal(a, b)
    assert (rows_of(noisy, 3, seed=10)[0] != rows[0]).mean() > 0.9


def test_two_calls_draw_independently() -> None:
    both = rows_of(lambda x: fn.cat(noisy(x), noisy(x), axis=0), 2)
    for row in both:
        a, b = np.split(row.astype(np.float64) - 128, 2)
        assert abs((a * b).mean()) / 400 < 0.1


def test_noise_saturates() -> None:
    x = np.array([[0, 255]] * 500, np.uint8)
    y = np.asarray(eager.noise.gaussian(x, stddev=50.0, seed=7)).astype(int)
    assert (y[:, 0] == 0).mean() > 0.4 and (y[:, 1] == 255).mean() > 0.4
    wide = np.array([2**31 - 1, -(2**31)], np.int32)
    assert np.asarray(eager.noise.gaussian(wide, mean=1e9, stddev=0.0, seed=7)).tolist() == [
        2**31 - 1,
        -(2**31) + 10**9,
    ]


def test_no_deviation_changes_nothing() -> None:
    for dtype in (np.uint8, np.int16, np.float32, np.float64, np.int64):
        x = np.arange(100).astype(dtype)
        np.testing.assert_array_equal(np.asarray(eager.noise.gaussian(x, stddev=0.0, seed=7)), x)


def test_empty_images_and_single_numbers() -> None:
    assert np.asarray(eager.noise.gaussian(np.zeros((0, 5, 3), np.uint8), seed=7)).shape == (0, 5, 3)
    assert np.asarray(eager.noise.gaussian(np.float32(3), seed=7)).shape == ()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [({"stddev": -1.0}, "at least 0"), ({"stddev": float("nan")}, "finite"), ({"mean": float("inf")}, "finite")],
)
def test_numbers_that_are_refused(arguments: dict[str, float], why: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=why):
        eager.noise.gaussian(GRAY, **arguments, seed=7)


def test_truth_values_are_refused() -> None:
    with pytest.raises(ArgumentError, match="expected numbers, got bool"):
        eager.noise.gaussian(GRAY > 3, seed=7)


@pytest.mark.parametrize("mean", [0.3, 3.0, 9.9, 10.1, 40.0, 3000.0])
def test_shot_noise_is_a_number_of_events(mean: float) -> None:
    x = np.full((150, 200), mean * 0.5, np.float64)
    counts = np.asarray(eager.noise.shot(x, factor=0.5, seed=7)) / 0.5
    assert (counts == np.rint(counts)).all() and counts.min() >= 0
    deviation = np.sqrt(mean)
    assert abs(counts.mean() - mean) < 5 * deviation / np.sqrt(x.size) and abs(counts.std() / deviation - 1) < 0.02
    skew = (((counts - mean) / deviation) ** 3).mean()
    assert abs(skew - 1 / deviation) < 0.1


def test_shot_noise_at_the_limits() -> None:
    x = np.array([-5, 0, 100, np.inf, 1e38], np.float32)
    y = np.asarray(eager.noise.shot(x, seed=7)).astype(np.float64)
    assert y[0] == y[1] == 0 and y[3] == np.inf and abs(y[4] / 1e38 - 1) < 1e-6
    assert np.isnan(np.asarray(eager.noise.shot(np.float32(np.nan), seed=7)))
    # DALI makes zeros of a factor of 0, and uses 12 if none is given.
    np.testing.assert_array_equal(np.asarray(eager.noise.shot(GRAY, factor=0.0, seed=7)), GRAY)
    assert abs(np.asarray(eager.noise.shot(GRAY, seed=7)).std() - np.sqrt(128 * 20)) < 3
    with pytest.raises((ArgumentError, DataError), match="at least 0"):
        eager.noise.shot(GRAY, factor=-1.0, seed=7)
    with pytest.raises(UnsupportedError, match="got int64"):
        eager.noise.shot(GRAY.astype(np.int64), seed=7)
