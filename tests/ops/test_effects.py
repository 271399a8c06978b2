# SPDX-License-Identifier: Apache-2.0
"""Effects on single pixels, regions and channels: values of other libraries, and numbers that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

from stoker import ArgumentError, DataError, Pipeline, UnsupportedError, eager, fn, types

REFUSED = (ArgumentError, DataError, UnsupportedError)
IMAGE = np.random.default_rng(3).integers(0, 256, (37, 53, 3), dtype=np.uint8)


@pytest.mark.parametrize("bits", range(1, 9))
def test_posterize_is_pillows(bits: int) -> None:
    want = np.asarray(ImageOps.posterize(Image.fromarray(IMAGE), bits))
    np.testing.assert_array_equal(np.asarray(eager.posterize(IMAGE, bits=bits)), want)


@pytest.mark.parametrize("threshold", [0, 1, 100, 128, 255])
def test_solarize_is_pillows(threshold: int) -> None:
    got = np.asarray(eager.solarize(IMAGE, threshold=threshold))
    np.testing.assert_array_equal(got, np.asarray(ImageOps.solarize(Image.fromarray(IMAGE), threshold)))


def region(x: Any, **arguments: Any) -> Any:
    """Return the first and last element along each axis that `erase` fills, or None."""
    where = np.argwhere(np.asarray(eager.erase(np.ones(x, np.uint8), **arguments)) == 0)
    return None if not len(where) else (where.min(0).tolist(), where.max(0).tolist())


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ({"anchor": [2.0], "shape": [3.0], "axes": [0], "centered_anchor": True}, ([0, 0], [2, 99])),
        ({"anchor": [0.29], "shape": [0.3], "axes": [1], "normalized": True}, ([0, 29], [5, 58])),
        ({"anchor": [0.29], "shape": [30.0], "axes": [1], "normalized_anchor": True}, ([0, 29], [5, 58])),
        ({"shape": [1.0, 2.0]}, ([0, 0], [0, 1])),
        ({"anchor": [-1.0, -2.0], "shape": [3.0, 3.0]}, ([0, 0], [1, 0])),
        ({"anchor": [1.0, 1.0], "shape": [2.0, 3.0], "axis_names": "WH"}, ([1, 1], [3, 2])),
        ({"anchor": [1.0, 2.0], "shape": [-2.0, 2.0]}, None),
        ({"anchor": [1e30, 2.0], "shape": [3.0, 2.0]}, None),
        ({"anchor": [-1e30, 2.0], "shape": [2e30, 2.0]}, ([0, 2], [5, 3])),
        ({}, None),
    ],
)
def test_regions_are_dalis(arguments: dict[str, Any], want: Any) -> None:
    """Values as DALI 2.4 gives them on the CPU."""
    assert region((6, 100), **arguments) == want


def test_erase_of_a_video_covers_frames_by_default() -> None:
    video = np.ones((4, 6, 6, 1), np.uint8)
    where = np.argwhere(np.asarray(eager.erase(video, anchor=[1, 1, 2], shape=[2, 3, 1])) == 0)
    assert where[0].tolist() == [1, 1, 2, 0] and where[-1].tolist() == [2, 3, 2, 0]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: eager.erase(np.zeros(9, np.uint8), anchor=[1], shape=[1]), "expected `axes` for a tensor whose axes"),
        (lambda: eager.erase(IMAGE, anchor=[1, 2, 3], shape=[1, 2, 3]), "a number for each of 2 axes"),
        (lambda: eager.erase(IMAGE, anchor=[1, 2]), "got 2 and 0"),
        (lambda: eager.erase(IMAGE, anchor=[1, 2], shape=[1, 2], fill_value=[1, 2]), "each of 3 channels, got 2"),
        (lambda: eager.erase(IMAGE, anchor=[float("nan"), 2], shape=[1, 2]), "finite numbers as `anchor`"),
        (lambda: eager.erase(IMAGE, anchor=[1], shape=[1], axes=[3]), r"axes in \[-3, 3\), got 3"),
        (lambda: eager.erase(IMAGE, anchor=[1, 1], shape=[1, 1], axes=[0, -3]), "each axis once"),
        (lambda: eager.grid_mask(IMAGE, tile=0), "at least 1 pixel"),
        (lambda: eager.grid_mask(IMAGE, ratio=1.5), "from 0 to 1"),
        (lambda: eager.grid_mask(IMAGE, angle=float("inf")), "finite `angle`"),
        (lambda: eager.posterize(IMAGE, bits=9), "from 0 to 8"),
        (lambda: eager.posterize(IMAGE.astype(np.int16), bits=3), "expected uint8"),
        (lambda: eager.solarize(IMAGE.astype(np.int16)), "expected uint8, uint16 or floats"),
        (lambda: eager.sharpness(IMAGE, factor=-1.0), "at least 0"),
        (lambda: eager.noise.salt_and_pepper(IMAGE, prob=1.5, seed=7), "from 0 to 1"),
        (lambda: eager.lookup_table(IMAGE, keys=[1, 2], values=[3]), "a value for each of 2 keys"),
        (lambda: eager.lookup_table(IMAGE, keys=[70000], values=[3]), "from 0 to 65535"),
        (lambda: eager.lookup_table(IMAGE.astype(np.float32), keys=[1], values=[3]), "expected integers"),
        (lambda: eager.coarse_dropout(IMAGE, holes=[3, 1], seed=7), "as `holes`"),
        (lambda: eager.coarse_dropout(IMAGE, height=[0.5, 1.5], seed=7), "as `height`"),
    ],
)  # fmt: skip
def test_refused(call: Callable[[], Any], why: str) -> None:
    with pytest.raises(REFUSED, match=why):
        call()


def test_values_saturate_where_dali_wraps() -> None:
    one = {"anchor": [0, 0], "shape": [1, 1]}
    filled = [np.asarray(eager.erase(IMAGE, **one, fill_value=v))[0, 0].tolist() for v in (300, -3, 2.5, 3.5)]
    assert filled == [[255] * 3, [0] * 3, [2] * 3, [4] * 3]
    pepper = eager.noise.salt_and_pepper(IMAGE, prob=1.0, salt_vs_pepper=0.0, pepper_val=-9.0, seed=7)
    assert not np.asarray(pepper).any()


def test_a_grid_has_its_squares() -> None:
    x = np.ones((20, 30), np.uint8)
    y = np.asarray(eager.grid_mask(x, tile=10, ratio=0.3))
    rows, columns = (np.arange(n, dtype=np.float32) * np.float32(0.1) for n in x.shape)
    down, across = (place - np.floor(place) >= np.float32(0.3) for place in (rows, columns))
    np.testing.assert_array_equal(y, down[:, None] | across)
    assert y[:10, :10].sum() == 91


def test_a_grid_follows_the_layout() -> None:
    """DALI masks rows and columns of axes 0 and 1, also in CHW."""
    planar = np.ascontiguousarray(IMAGE.transpose(2, 0, 1))
    pipe = Pipeline(batch_size=1, num_threads=1)
    with pipe:
        x = fn.external_source(source=lambda info: planar, batch=False, dtype="uint8", ndim=3, layout="CHW")
        pipe.set_outputs(fn.grid_mask(x, tile=9, angle=0.4))
    with pipe:
        (batch,) = pipe.run()
        want = np.asarray(eager.grid_mask(IMAGE, tile=9, angle=0.4)).transpose(2, 0, 1)
        np.testing.assert_array_equal(np.asarray(batch[0]), want)


def test_a_grid_removes_nan() -> None:
    x = np.full((10, 10), np.nan, np.float32)
    y = np.asarray(eager.grid_mask(x, tile=10))
    assert (y[:5, :5] == 0).all() and np.isnan(y[5:]).all()


def test_salt_and_pepper_have_their_shares() -> None:
    x = np.full((300, 200, 3), 100, np.uint8)
    y = np.asarray(eager.noise.salt_and_pepper(x, prob=0.2, salt_vs_pepper=0.25, seed=7))
    assert abs((y == 255).mean() - 0.05) < 0.006 and abs((y == 0).mean() - 0.15) < 0.01
    assert (np.ptp(y, axis=-1) == 0).all()
    each = np.asarray(eager.noise.salt_and_pepper(x, prob=0.2, per_channel=True, seed=7))
    assert abs((each != 100).mean() - 0.2) < 0.01 and (np.ptp(each, axis=-1) > 0).any()


def test_an_image_without_channels_gets_single_pixels() -> None:
    """DALI replaces whole rows of it."""
    y = np.asarray(eager.noise.salt_and_pepper(np.full((100, 100), 9, np.uint8), prob=0.3, seed=7))
    assert ((y != 9).any(1) & (y == 9).any(1)).all()


def test_channels_are_shuffled() -> None:
    orders = set()
    x = np.arange(3, dtype=np.uint8).reshape(1, 1, 3)
    for seed in range(60):
        orders.add(tuple(np.asarray(eager.channel_shuffle(x, seed=seed)).reshape(-1).tolist()))
    assert len(orders) == 6 and all(sorted(order) == [0, 1, 2] for order in orders)


def test_dropped_rectangles() -> None:
    x = np.ones((40, 50, 3), np.uint8)
    for seed in range(40):
        y = np.asarray(eager.coarse_dropout(x, holes=1, height=0.25, width=0.5, seed=seed))
        where = np.argwhere(y[..., 0] == 0)
        (top, left), (bottom, right) = where.min(0), where.max(0)
        assert (bottom - top + 1, right - left + 1) == (10, 25) and len(where) == 250
        assert (y[..., 0] == y[..., 2]).all()


def test_hundreds_of_regions_are_erased() -> None:
    """More than one pixel program holds."""
    x = np.full((40, 50, 3), 7, np.uint8)
    anchors = np.random.default_rng(5).integers(0, 40, (150, 2))
    want = x.copy()
    for i, j in anchors:
        want[i : i + 2, j : j + 3] = 0
    found = eager.erase(x, anchor=anchors.reshape(-1).tolist(), shape=[2, 3] * len(anchors))
    assert np.array_equal(found, want)


def arrays(define: Callable[..., Any], *rows: Any, regions: Any = None) -> list[np.ndarray]:
    """Run a definition of one input, or of the input and of its regions, on rows."""
    with Pipeline(len(rows), 1, None) as pipe:
        x = fn.external_source(lambda: list(rows))
        more = [] if regions is None else [fn.external_source(lambda: list(regions))]
        pipe.set_outputs(define(x, *more))
    with pipe:
        return [np.array(row) for row in pipe.run()[0]]


@pytest.mark.parametrize(("layout", "channels"), [("HWC", 3), ("CHW", 3), ("HWC", 40), ("WCH", 5), ("HW", 1)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64])
def test_thousands_of_regions_are_erased(layout: str, channels: int, dtype: Any) -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 99, [{"H": 40, "W": 50, "C": channels}[name] for name in layout]).astype(dtype)
    fills = rng.integers(100, 120, channels)
    anchors, shapes = rng.integers(-3, 60, (4096, 2)), rng.integers(-1, 4, (4096, 2))
    want = x.copy()
    in_order = want.transpose([layout.index(name) for name in "HWC"[: len(layout)]])
    for (i, j), (h, w) in zip(anchors, shapes, strict=True):
        in_order[max(i, 0) : max(i + h, 0), max(j, 0) : max(j + w, 0)] = fills if "C" in layout else fills[0]
    numbers = {"anchor": anchors.ravel().tolist(), "shape": shapes.ravel().tolist(), "fill_value": fills.tolist()}
    (found,) = arrays(lambda y: fn.erase(fn.reinterpret(y, layout=layout), axis_names="HW", **numbers), x)
    np.testing.assert_array_equal(found, want)


def test_a_plan_does_not_grow_with_the_number_of_regions() -> None:
    def plan(count: int) -> str:
        with Pipeline(1, 1, None) as pipe:
            x = fn.external_source(lambda: [IMAGE], dtype=types.UINT8, ndim=3)
            pipe.set_outputs(fn.erase(x, anchor=[3, 4] * count, shape=[5, 6] * count))
        with pipe:
            pipe.build()
            return str(pipe.show())

    assert plan(1).count("\n") == plan(4096).count("\n") > 3


def test_rows_have_their_own_number_of_regions() -> None:
    regions = [np.array([1, 2, 3, 4], np.float32), np.zeros(0, np.float32), np.array([5, 6], np.float32)]
    found = arrays(lambda x, at: fn.erase(x, anchor=at, shape=at * 0 + 2), IMAGE, IMAGE, IMAGE, regions=regions)
    for at, y in zip(regions, found, strict=True):
        want = IMAGE.copy()
        for i, j in at.reshape(-1, 2).astype(int):
            want[i : i + 2, j : j + 2] = 0
        np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize(
    ("define", "values", "text"),
    [
        (
            lambda x, v: fn.erase(x, anchor=v, shape=v),
            np.ones(3),
            "axes and each region in `anchor` and `shape`, got 3",
        ),
        (lambda x, v: fn.erase(x, anchor=v, shape=[1, 1]), np.ones(4), "got 4 and 2"),
        (lambda x, v: fn.erase(x, shape=v), np.full(2, np.nan), "finite numbers as `shape`, got nan"),
        (lambda x, v: fn.erase(x, shape=[1, 1], fill_value=v), np.ones(2), "one for each of 3 channels, got 2"),
        (lambda x, v: fn.erase(x, shape=[1, 1], fill_value=v), np.ones(0), "one for each of 3 channels, got 0"),
    ],
)
def test_wrong_regions_of_a_row_are_refused(define: Any, values: Any, text: str) -> None:
    with pytest.raises(DataError, match=text):
        arrays(define, IMAGE, regions=[values.astype(np.float32)])


@pytest.mark.parametrize("what", ["anchor", "shape", "fill_value"])
def test_frames_have_their_own_regions(what: str) -> None:
    video = np.random.default_rng(6).integers(0, 256, (3, 9, 8, 3), dtype=np.uint8)
    values = np.array([[1, 2], [4, 0], [7, 7]] if what != "fill_value" else [[1], [2], [3]], np.float32)
    numbers: dict[str, Any] = {"anchor": [1, 2], "shape": [3, 4], "fill_value": 9}

    def define(x: Any, v: Any) -> Any:
        own = {**numbers, what: fn.per_frame(v)}
        return fn.erase(fn.reinterpret(x, layout="FHWC"), axis_names="HW", **own)

    (found,) = arrays(define, video, regions=[values])
    for frame, source, own in zip(found, video, values, strict=True):
        want = np.asarray(eager.erase(source, **{**numbers, what: own.tolist()}))
        np.testing.assert_array_equal(frame, want)
