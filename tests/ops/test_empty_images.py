# SPDX-License-Identifier: Apache-2.0
"""Images without pixels, reductions of no elements, and tensors of eight axes. Shapes and values are those of DALI 2.4,
except that it computes another canvas of `rotate`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, eager, fn, types

SHAPES = [(0, 5, 3), (5, 0, 3), (0, 0, 3)]


def resized(rows: list[Any], layout: str = "HWC", allow_empty: bool = True, **arguments: Any) -> list[Any]:
    """Return rows resized in a pipeline, which knows neither their extents nor their number of channels."""
    pipe = Pipeline(batch_size=len(rows), num_threads=2)
    with pipe:
        source = fn.external_source(source=lambda: rows, layout=layout)
        pipe.set_outputs(fn.resize(source, allow_empty=allow_empty, **arguments))
    with pipe:
        batch = pipe.run()[0]
        return [np.asarray(batch[i]) for i in range(len(rows))]


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ({"size": (4, 6)}, [(0, 6), (4, 0), (0, 0)]),
        ({"size": (0, 6)}, [(0, 6), (5, 0), (0, 0)]),
        ({"resize_y": 6}, [(0, 5), (6, 0), (0, 0)]),
        ({"resize_shorter": 5}, [(0, 5), (5, 0), (0, 0)]),
        ({"resize_longer": 10, "interp_type": "INTERP_NN"}, [(0, 10), (10, 0), (0, 0)]),
        ({"size": (4, 6), "mode": "not_larger", "subpixel_scale": True}, [(0, 6), (4, 0), (0, 0)]),
        ({"size": (4, 6), "dtype": "float32", "antialias": False}, [(0, 6), (4, 0), (0, 0)]),
    ],
)
def test_an_axis_without_pixels_stays_so(arguments: dict[str, Any], want: list[tuple[int, int]]) -> None:
    full = (np.arange(72) % 251).astype(np.uint8).reshape(4, 6, 3)
    rows = resized([full, *(np.zeros(shape, np.uint8) for shape in SHAPES)], **arguments)
    assert [row.shape for row in rows[1:]] == [(*extents, 3) for extents in want]
    np.testing.assert_array_equal(rows[0], eager.resize(full, **arguments))


def test_sizes_that_are_known_before_the_run_need_pixels() -> None:
    with pytest.raises(DataError, match=r"region .* with at least one pixel"):
        resized([np.zeros((5, 5, 3), np.uint8)], size=(4, 4), roi_start=(2, 2), roi_end=(2, 4))
    with pytest.raises(DataError, match=r"region .* with at least one pixel, got an extent of 0"):
        resized([np.zeros((0, 5), np.uint8)], layout="HW", size=(4, 4))
    with pytest.raises(DataError, match=r"region .* with at least one pixel, got an extent of 0"):
        resized([np.zeros((0, 5, 5, 3), np.uint8)], layout="DHWC", size=(4, 4, 4))
    with pytest.raises(DataError, match=r"region .* with at least one pixel, got an extent of 0"):
        eager.resize(np.zeros((0, 5, 3), np.uint8), size=(4, 4))
    with pytest.raises(DataError, match=r"region .* with at least one pixel, got an extent of 0"):
        resized([np.zeros((0, 5, 3), np.uint8)], allow_empty=False, size=(4, 4))


def test_an_eager_call_keeps_an_axis_without_pixels_if_it_may() -> None:
    assert eager.resize(np.zeros((0, 5, 3), np.uint8), size=(4, 4), allow_empty=True).shape == (0, 4, 3)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
@pytest.mark.parametrize("interp", ["INTERP_NN", "INTERP_LINEAR"])
@pytest.mark.parametrize("fill", [9.0, None])
def test_every_point_of_an_image_without_pixels_is_outside(dtype: Any, interp: str, fill: float | None) -> None:
    settings = {"interp_type": interp, "fill_value": fill}
    for shape in SHAPES:
        image = np.zeros(shape, dtype)
        assert eager.warp_affine(image, matrix=(1.0, 0, 0, 0, 1.0, 0), **settings).shape == shape
        assert eager.rotate(image, angle=30.0, keep_size=True, **settings).shape == shape
        for made in (
            eager.warp_affine(image, matrix=(0.5, 0.1, 0, 0.2, 1.0, 0), size=(4, 6), **settings),
            eager.warp_affine(image, matrix=(2.0, 0, 0, 0, 2.0, 0), size=(4, 6), **settings),
            eager.rotate(image, angle=30.0, size=(4, 6), **settings),
        ):
            assert made.shape == (4, 6, 3) and (made == (fill or 0)).all()
    with pytest.raises(DataError, match="image with pixels"):
        eager.rotate(np.zeros((0, 5, 3), np.uint8), angle=3.0, interp_type="INTERP_CUBIC")


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float16, np.float32, np.float64])
def test_extremes_of_no_elements_are_those_of_the_type(dtype: Any) -> None:
    low, high = (-np.inf, np.inf) if np.dtype(dtype).kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    image = np.zeros((0, 5, 3), dtype)
    for call, want in ((eager.reductions.max, low), (eager.reductions.min, high)):
        assert call(image) == want and call(image).dtype == dtype
        assert (call(image, axes=[0]) == np.full((5, 3), want, dtype)).all()
        assert call(image, axes=[1]).shape == (0, 3)
    assert eager.autocontrast(np.zeros((0, 5, 3), np.uint8)).shape == (0, 5, 3)


def test_tensors_of_eight_axes() -> None:
    x = np.arange(3 * 2**7, dtype=np.int32).reshape(3, *(2,) * 7)
    perm = [7, 2, 5, 0, 3, 6, 1, 4]
    np.testing.assert_array_equal(eager.transpose(x, perm=perm), x.transpose(perm))
    rows = eager.transpose([x, x + 1], perm=perm)
    np.testing.assert_array_equal(rows[1], (x + 1).transpose(perm))
    pipe = Pipeline(batch_size=2, num_threads=2)
    with pipe:
        source = fn.external_source(source=lambda: [x, x + 1])
        pipe.set_outputs(fn.transpose(source, perm=perm), fn.cast(source, dtype=types.FLOAT), source + 1)
    with pipe:
        moved, cast, more = pipe.run()
        assert moved.shape() == [(2, 2, 2, 3, 2, 2, 2, 2)] * 2
        for i in range(2):
            np.testing.assert_array_equal(moved[i], (x + i).transpose(perm))
            np.testing.assert_array_equal(cast[i], (x + i).astype(np.float32))
            np.testing.assert_array_equal(more[i], x + i + 1)
    dense = Pipeline(batch_size=2, num_threads=1)
    with dense:
        dense.set_outputs(fn.transpose(fn.external_source(source=lambda: np.stack([x, x + 1])), perm=perm))
    with dense:
        np.testing.assert_array_equal(dense.run()[0][1], (x + 1).transpose(perm))


@pytest.mark.parametrize("value", [[1, 2], np.array([True, False]), "yes", 2.5])
def test_other_values_of_allow_empty_are_refused(value: Any) -> None:
    with pytest.raises(ArgumentError, match="allow_empty"):
        eager.resize(np.zeros((3, 5, 3), np.uint8), size=(4, 4), allow_empty=value)


def test_noise_takes_seven_axes() -> None:
    """A number is drawn for each position, and a stage has eight inputs and coordinates."""
    noisy = eager.noise.gaussian(np.zeros((2, 1, 1, 1, 1, 1, 3), np.float32), stddev=2.0)
    assert len(np.unique(noisy)) == 6
    with pytest.raises(ArgumentError, match=r"at most 8 inputs and axes whose positions .* got 9; join axes"):
        eager.noise.gaussian(np.zeros((2, 1, 1, 1, 1, 1, 1, 3), np.float32))
