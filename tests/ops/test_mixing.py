# SPDX-License-Identifier: Apache-2.0
"""mixup, cutmix and multi_paste: what their references do not show, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, eager, fn

WHITE, BLACK = np.full((40, 60, 3), 200, np.uint8), np.zeros((40, 60, 3), np.uint8)
ONE, TWO = np.array([1], np.int32), np.array([2], np.int32)


def test_mixup_mixes_images_and_labels() -> None:
    image, label = eager.mixup(WHITE, BLACK, ONE, TWO, weight=0.25, num_classes=4)
    assert (image == 50).all() and image.dtype == np.uint8
    np.testing.assert_array_equal(label, np.array([0, 0.25, 0.75, 0], np.float32))
    _, same = eager.mixup(WHITE, BLACK, ONE, ONE, weight=0.25, num_classes=2)
    np.testing.assert_array_equal(same, np.array([0, 1], np.float32))
    _, again = eager.mixup(image, BLACK, label, label[::-1].copy(), weight=0.5)
    np.testing.assert_array_equal(again, np.array([0, 0.5, 0.5, 0], np.float32))


def test_cutmix_mixes_labels_by_the_pixels() -> None:
    shares = set()
    for seed in range(30):
        image, label = eager.cutmix(WHITE, BLACK, ONE, TWO, weight=0.4, num_classes=3, seed=seed)
        share = (image == 200).mean()
        assert abs(label[1] - share) < 1e-6 and abs(label.sum() - 1) < 1e-6
        rows, columns = (np.flatnonzero((image == 0).any((axis, 2))) for axis in (1, 0))
        assert (image[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] == 0).all(), "one rectangle"
        shares.add(share)
    assert min(shares) >= 0.4 and len(shares) > 5
    image, _ = eager.cutmix(WHITE, BLACK, ONE, TWO, weight=1.0, num_classes=3)
    assert (image == 200).all()


@pytest.mark.parametrize("name", ["mixup", "cutmix"])
@pytest.mark.parametrize(
    ("inputs", "arguments", "text"),
    [
        ((WHITE, BLACK[:30]), {}, "expected two images of one shape, got 40 and 30 elements along axis 0"),
        ((WHITE, BLACK.astype(np.float32)), {}, "expected two images of one type"),
        ((WHITE, BLACK), {"weight": 1.5}, "expected `weight` from 0 to 1, got 1.5"),
        ((WHITE, BLACK), {"weight": np.nan}, "expected `weight` from 0 to 1"),
        ((WHITE, BLACK, ONE), {}, "expected the labels of both images, got one label"),
        ((WHITE, BLACK, ONE, TWO), {}, "expected `num_classes` from 1"),
        ((WHITE, BLACK, ONE, TWO), {"num_classes": 2}, r"expected labels below `num_classes` \(2\), got 2"),
        ((WHITE, BLACK, -ONE, TWO), {"num_classes": 9}, r"expected labels below `num_classes` \(9\), got -1"),
        ((WHITE, BLACK, np.arange(2), TWO), {"num_classes": 9}, "expected one number as label, got 2"),
        ((WHITE, BLACK, np.zeros(3, np.float32), np.zeros(4, np.float32)), {}, "of one length, got 3 and 4"),
    ],
)
def test_pairs_that_are_refused(name: str, inputs: Any, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        getattr(eager, name)(*inputs, **{"weight": 0.5, **arguments})


def test_later_regions_cover_earlier_ones() -> None:
    out = eager.multi_paste(WHITE, BLACK + 7, shapes=(9, 9, 5, 5), out_anchors=(0, 0, 2, 3), output_size=(12, 12))
    want = np.zeros((12, 12, 3), np.uint8)
    want[:9, :9], want[2:7, 3:8] = 200, 7
    np.testing.assert_array_equal(out, want)
    np.testing.assert_array_equal(eager.multi_paste(WHITE), WHITE)


def test_regions_of_other_rows() -> None:
    pipe = Pipeline(batch_size=3, num_threads=2)
    with pipe:
        x = fn.external_source(
            source=lambda info: np.full((4, 6, 1), 10 * (info.idx_in_batch + 1), np.uint8), batch=False, layout="HWC"
        )
        pipe.set_outputs(fn.multi_paste(x, in_ids=[2, 0], shapes=(4, 3, 4, 3), out_anchors=(0, 0, 0, 3)))
    with pipe:
        for row in pipe.run()[0]:
            assert (row[:, :3] == 30).all() and (row[:, 3:] == 10).all()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"in_anchors": (0, 0, 35, 0), "shapes": (4, 4, 6, 4)},
            r"its image along H \(0 to 40\), got 35 to 41",
        ),
        (
            {"shapes": (4, 4, 6, 4), "out_anchors": (0, 0, 0, 57)},
            r"the canvas along W \(0 to 60\), got 57 to 61",
        ),
        ({"in_anchors": (0, -1, 0, 0)}, "region 0 within its image along W"),
        ({"shapes": (4, 4)}, "expected a pair of numbers for each of 2 regions as `shapes`, got 2"),
        ({"shapes": (4, 4, 4, 4), "shapes_rel": (1.0,) * 4}, "expected `shapes` or `shapes_rel`, got both"),
        ({"output_size": (4,)}, r"expected `output_size` as \(height, width\), got 1 numbers"),
        ({"in_ids": (0,)}, "expected one input with `in_ids`, got 2"),
    ],
)
def test_regions_that_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        eager.multi_paste(WHITE, BLACK, **arguments)


def test_images_without_a_canvas_are_refused() -> None:
    with pytest.raises((ArgumentError, DataError), match="expected `output_size` for images of different sizes"):
        eager.multi_paste(WHITE, BLACK[:20])


@pytest.mark.parametrize("shape", [(4, 0, 3), (0, 5, 3), (4, 5, 0)])
def test_images_without_elements_leave_the_canvas_as_it_is(shape: tuple[int, ...]) -> None:
    image = np.zeros(shape, np.uint8)  # sanitizers report a copy from its address, which may be null
    assert eager.multi_paste(image).shape == shape
    out = eager.multi_paste(image, output_size=(6, 7))
    np.testing.assert_array_equal(out, np.zeros((6, 7, shape[2]), np.uint8))
