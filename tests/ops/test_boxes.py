# SPDX-License-Identifier: Apache-2.0
"""Boxes, objects and polygons: what DALI's values do not show, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, UnsupportedError, eager
from stoker.contract.operator import Operator, Spec
from stoker.frontends.registry import find
from stoker.native import _native

BOXES = np.array([[0.1, 0.2, 0.4, 0.5], [0.5, 0.5, 0.9, 0.8], [0.05, 0.6, 0.2, 0.9]], np.float32)
LABELS = np.array([1, 2, 3], np.int32)
ANCHORS = [0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0]
POLYGONS = np.array([[0, 0, 3], [1, 3, 6], [1, 6, 9]], np.int32)
VERTICES = np.arange(18, dtype=np.float32).reshape(9, 2)
FREE = {"scaling": (0.3, 1.0), "aspect_ratio": (0.5, 2.0), "num_attempts": 50}


def test_one_aspect_ratio_stays_within_the_image() -> None:
    """DALI proposes windows of up to 1.8 times the image."""
    for seed in range(60):
        anchor, shape, *_ = eager.random_bbox_crop(
            BOXES, scaling=(0.3, 1.0), aspect_ratio=(0.6, 0.6), input_shape=(100, 80), allow_no_crop=False, seed=seed
        )
        assert (anchor >= 0).all() and (anchor + shape <= 1 + 1e-6).all()
        assert abs(shape[0] * 100 / (shape[1] * 80) - 0.6) < 1e-5


def test_boxes_of_volumes() -> None:
    boxes = np.concatenate([BOXES[:, :2], BOXES[:, :1], BOXES[:, 2:], BOXES[:, 2:3]], 1)
    anchor, shape, kept, names = eager.random_bbox_crop(
        boxes, LABELS, bbox_layout="xyzXYZ", allow_no_crop=False, seed=2, **FREE
    )
    assert anchor.shape == shape.shape == (3,) and kept.shape == (len(names), 6) and len(names) > 0
    ratios = shape[[0, 0, 1]] / shape[[1, 2, 2]]
    assert (ratios >= 0.5).all() and (ratios <= 2).all()
    _, shape, *_ = eager.random_bbox_crop(
        boxes,
        bbox_layout="xyzXYZ",
        scaling=(0.3, 0.5),
        aspect_ratio=(0.5, 0.5, 0.5, 2.0, 0.2, 9.0),
        num_attempts=50,
        seed=1,
    )
    with pytest.raises(DataError, match=r"expected boxes of 4 numbers, got 6. Boxes of volumes need `bbox_layout`"):
        eager.random_bbox_crop(boxes)
    assert (shape == 1).all() or abs(shape[0] / shape[1] - 0.5) < 1e-6


def test_a_window_is_drawn_without_boxes() -> None:
    _, shape, kept, names = eager.random_bbox_crop(BOXES[:0], LABELS[:0], allow_no_crop=False, seed=1, **FREE)
    assert kept.shape == (0, 4) and names.shape == (0,) and (shape < 1).any()


@pytest.mark.parametrize(
    ("x", "arguments", "text"),
    [
        (BOXES, {"thresholds": (0.99,), "allow_no_crop": False, **FREE}, "satisfies `thresholds`.*10000 attempts"),
        (
            BOXES,
            {"aspect_ratio": (50.0, 60.0), "allow_no_crop": False},
            "aspect ratio within `aspect_ratio`, found none",
        ),
        (BOXES, {"aspect_ratio": (50.0, 60.0), "allow_no_crop": False, "total_num_attempts": 9}, "found none in 9"),
        (BOXES + np.float32(0.2), {}, r"expected boxes within \[0, 1\]"),
        (BOXES[:, ::-1], {}, "end not below the start"),
        (np.full((1, 4), np.nan, np.float32), {}, r"expected boxes within \[0, 1\]"),
        (BOXES.astype(np.float64), {}, "expected boxes of float32 with two axes, got float64"),
        (BOXES[0], {}, "with two axes, got float32 with 1"),
        (BOXES[:, :3], {}, "expected boxes of 4 numbers, got 3"),
        (BOXES, {"crop_shape": (20, 20)}, "`crop_shape` needs `input_shape`"),
        (
            BOXES,
            {"crop_shape": (2, 2), "input_shape": (9, 9), "scaling": (0.1, 1.0)},
            "or `scaling` and `aspect_ratio`",
        ),
        (BOXES, {"crop_shape": (2, 0), "input_shape": (9, 9)}, "expected whole numbers from 1"),
        (BOXES, {"scaling": (0.5, 1.5)}, "expected `scaling` as a range within"),
        (BOXES, {"aspect_ratio": (2.0, 1.0)}, "expected `aspect_ratio` as one or three ranges"),
        (BOXES, {"thresholds": ()}, "expected at least one number as `thresholds`"),
        (BOXES, {"bbox_layout": "xyXH"}, "expected `bbox_layout` such as xyXY"),
        (BOXES, {"num_attempts": 0}, "expected `num_attempts` from 1"),
    ],
)
def test_windows_that_are_refused(x: Any, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        eager.random_bbox_crop(x, seed=1, **arguments)


@pytest.mark.parametrize(
    ("boxes", "labels", "arguments", "text"),
    [
        (BOXES, LABELS, {"anchors": []}, "at least one .*got 0 numbers"),
        (BOXES, LABELS, {"anchors": ANCHORS[:6]}, "of four numbers each"),
        (BOXES, LABELS, {"anchors": [0.5, 0.5, 0.4, 0.9]}, "whose ends lie above their starts"),
        (BOXES, LABELS[:2], {}, "expected a label for each of 3 boxes, got 2"),
        (BOXES, LABELS.astype(np.int64), {}, "expected labels of int32.*Cast them"),
        (BOXES, LABELS, {"stds": (1.0, 0.0, 1.0, 1.0)}, "expected `stds` other than 0"),
        (BOXES, LABELS, {"means": (1.0,)}, "expected four numbers of float32 as `means`"),
        (BOXES, LABELS, {"criteria": 1.5}, "expected `criteria` from 0 to 1"),
        (BOXES, LABELS, {"scale": 0.0}, "expected a finite `scale` above 0"),
    ],
)
def test_targets_that_are_refused(boxes: Any, labels: Any, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        eager.box_encoder(boxes, labels, **{"anchors": ANCHORS, **arguments})


@pytest.mark.parametrize("count", [1, 7, 8, 16, 203])
@pytest.mark.parametrize("offset", [False, True])
def test_every_instruction_set_makes_the_same_targets(count: int, offset: bool) -> None:
    """Also equal anchors, equal boxes, boxes without area, inverted boxes, and NaN."""
    rng = np.random.default_rng(count)
    low = rng.uniform(0, 0.6, (count, 2))
    anchors = np.concatenate([low, low + rng.uniform(0.05, 0.4, (count, 2))], 1).astype(np.float32)
    anchors[count // 2] = anchors[-1]
    rows = [anchors[rng.integers(0, count, n)] + rng.normal(0, 0.03, (n, 4)).astype(np.float32) for n in (0, 1, 5, 30)]
    rows.append(np.repeat(anchors[:2], 3, 0))
    rows.append(np.array([[2, 2, 3, 3], [0.5, 0.5, 0.5, 0.9], [np.nan] * 4, [-0.0, -0.0, 0.4, 0.4]], np.float32))
    rows.append(np.concatenate([rows[3], rows[3][:, [2, 3, 0, 1]], [[0.4, 0.3, np.inf, 0.1], [0.3, 0.3, 0.2, 9]]]))
    arguments = {"anchors": anchors.ravel().tolist(), "offset": offset, "criteria": 0.3, "scale": 300.0}
    before = _native.get_isa()
    for boxes in rows:
        found = {}
        for isa in _native.instruction_sets():
            _native.set_isa(isa)
            labels = np.arange(1, len(boxes) + 1, dtype=np.int32)
            found[isa] = eager.box_encoder(boxes.astype(np.float32), labels, **arguments)
        _native.set_isa(before)
        for other in found.values():
            for got, want in zip(other, found["plain"], strict=True):
                np.testing.assert_array_equal(got.view(np.int32), want.view(np.int32))


def test_masks_keep_all_their_polygons() -> None:
    """DALI keeps the last polygon of a mask."""
    kept, points = eager.segmentation.select_masks(np.array([1], np.int32), POLYGONS, VERTICES)
    assert kept.tolist() == [[1, 0, 3], [1, 3, 6]]
    np.testing.assert_array_equal(points, VERTICES[3:])


@pytest.mark.parametrize(
    ("ids", "polygons", "text"),
    [
        ([5], POLYGONS, "expected `mask_ids` of masks that have polygons, got 5"),
        ([1, 1], POLYGONS, "expected each of `mask_ids` once, got 1 twice"),
        ([0], POLYGONS + np.array([0, 0, 9], np.int32), "expected polygons with vertices from 0 to 9, got 0 to 12"),
        ([0], POLYGONS - np.array([0, 1, 0], np.int32), "got -1 to 3 in polygon 0"),
        ([0, 1], np.array([[0, 0, 9], [1, 0, 9]], np.int32), "expected polygons that share no vertices, got 18 of 9"),
        ([0], POLYGONS[:, :2], "expected polygons of 3 numbers, got 2"),
    ],
)
def test_polygons_that_are_refused(ids: Any, polygons: Any, text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        eager.segmentation.select_masks(np.array(ids, np.int32), polygons, VERTICES)


def test_masks_cover_the_polygons_of_their_objects() -> None:
    image = np.zeros((40, 50, 3), np.uint8)
    vertices = np.array(
        [(5, 5), (25, 5), (25, 15), (5, 15), (30, 20), (45, 20), (30, 35), (-9, 30), (9, 30), (0, 60)], np.float32
    )
    polygons = np.array([[2, 0, 4], [0, 4, 7], [2, 7, 10]], np.int32)
    masks = eager.segmentation.polygon_masks(polygons, vertices, np.zeros(3), image)
    assert masks.shape == (3, 40, 50) and masks.dtype == np.uint8 and not masks[1].any()
    box = np.zeros((40, 50), np.uint8)
    box[5:15, 5:25] = 1
    np.testing.assert_array_equal(masks[2, :20], box[:20])
    assert masks[2, 30:, :8].any() and masks[2, :, 10:].sum() == 150, "the polygon beyond the image is cut"
    assert 90 <= masks[0].sum() <= 135 and masks[0, 20:35, 30:45].sum() == masks[0].sum()
    assert eager.segmentation.polygon_masks(polygons[:0], vertices, LABELS[:0], image).shape == (0, 40, 50)


@pytest.mark.parametrize(
    ("polygons", "vertices", "text"),
    [
        (POLYGONS + np.array([2, 0, 0], np.int32), VERTICES, "expected polygons of objects from 0 to 2, got 3"),
        (POLYGONS - np.array([1, 0, 0], np.int32), VERTICES, "got -1 in polygon 0"),
        (
            POLYGONS + np.array([0, 0, 9], np.int32),
            VERTICES,
            "expected polygons with vertices from 0 to 9, got 0 to 12",
        ),
        (np.array([[0, 0, 9], [1, 0, 9]], np.int32), VERTICES, "expected polygons that share no vertices"),
        (
            POLYGONS,
            np.full((9, 2), np.inf, np.float32),
            r"expected vertices from -2\*\*20 to 2\*\*20, got others in polygon 0",
        ),
        (POLYGONS[:, :2], VERTICES, "expected polygons of 3 numbers, got 2"),
        (POLYGONS.astype(np.int64), VERTICES, "expected polygons of int32"),
        (POLYGONS, VERTICES.astype(np.float64), "expected vertices of float32"),
        (POLYGONS, np.zeros((9, 3), np.float32), "expected vertices of 2 numbers, got 3"),
    ],
)
def test_polygons_that_are_not_painted(polygons: Any, vertices: Any, text: str) -> None:
    image = np.zeros((20, 20, 3), np.uint8)
    with pytest.raises((ArgumentError, DataError), match=text):
        eager.segmentation.polygon_masks(polygons, vertices, np.zeros(3), image)


def test_objects_are_joined_through_faces() -> None:
    labels = np.array([[1, 0, 0, 2], [0, 1, 0, 2], [2, 0, 0, 2]], np.int32)
    found = {tuple(eager.segmentation.random_object_bbox(labels, format="box", seed=i).tolist()) for i in range(60)}
    assert found == {(0, 0, 1, 1), (1, 1, 2, 2), (0, 3, 3, 4), (2, 0, 3, 1)}
    largest = {
        tuple(eager.segmentation.random_object_bbox(labels, format="box", k_largest=1, ignore_class=True, seed=i))
        for i in range(20)
    }
    assert largest == {(0, 3, 3, 4)}
    *whole, label = eager.segmentation.random_object_bbox(labels, threshold=4, output_class=True, background=9)
    assert [x.tolist() for x in whole] == [[0, 0], [3, 4]] and label == 9
    _, _, label = eager.segmentation.random_object_bbox(labels, classes=[0, 7], foreground_prob=0.0, output_class=True)
    assert label == 1  # the least number that is no class


def test_objects_that_are_refused() -> None:
    labels = np.ones((3, 3), np.uint8)
    for arguments, text in (
        ({"ignore_class": True, "classes": [1]}, "expected `ignore_class` without"),
        ({"class_weights": [1.0, -1.0]}, "expected finite `class_weights` of at least 0"),
        ({"classes": [1, 2], "class_weights": [1.0]}, r"as many `class_weights` as `classes` \(2\), got 1"),
        ({"classes": [1, 2], "background": 2}, r"expected `background` \(2\) not to be one of"),
        ({"foreground_prob": 1.5}, "expected `foreground_prob` from 0 to 1"),
        ({"threshold": [1, 2, 3]}, "one for each of 2 axes, got 3"),
        ({"k_largest": 0}, "expected `k_largest` of at least 1"),
    ):
        with pytest.raises((ArgumentError, DataError), match=text):
            eager.segmentation.random_object_bbox(labels, **arguments)
    with pytest.raises(UnsupportedError, match=r"expected labels of type .*got int64. Cast them first"):
        eager.segmentation.random_object_bbox(labels.astype(np.int64))


def test_pixels_of_masks() -> None:
    mask = np.zeros((4, 6), np.float32)
    mask[1, 2] = mask[3, 5] = 0.5
    drawn = {tuple(eager.segmentation.random_mask_pixel(mask, foreground=1, seed=i).tolist()) for i in range(30)}
    assert drawn == {(1, 2), (3, 5)}
    drawn = {tuple(eager.segmentation.random_mask_pixel(mask * 0, foreground=1, seed=i).tolist()) for i in range(90)}
    assert len(drawn) > 18
    with pytest.raises(DataError, match="expected a mask with pixels, got none"):
        eager.segmentation.random_mask_pixel(mask[:0])
    with pytest.raises(ArgumentError, match="expected `threshold` or `value`, got both"):
        eager.segmentation.random_mask_pixel(mask, threshold=1.0, value=1)


def test_random_crops_contain_the_region() -> None:
    starts = {int(eager.roi_random_crop(crop_shape=[6], roi_start=[2], roi_end=[4], seed=i)[0]) for i in range(90)}
    assert starts == {-2, -1, 0, 1, 2}
    starts = {
        int(eager.roi_random_crop(crop_shape=[6], roi_start=[2], roi_shape=[2], in_shape=[7], seed=i)[0])
        for i in range(90)
    }
    assert starts == {0, 1}
    for arguments, text in (
        ({"roi_end": [9]}, "expected a region within the data"),
        ({"roi_end": [4], "crop_shape": [8]}, "expected a window of at most 7 elements"),
        ({"roi_end": [1]}, "whose end is not below its start"),
        ({"roi_end": [4], "roi_shape": [4]}, "expected `roi_end` or `roi_shape`"),
        ({}, "expected `roi_end` or `roi_shape`"),
        ({"roi_end": [4, 4]}, "expected 1 numbers as `roi_end`, got 2"),
    ):
        with pytest.raises((ArgumentError, DataError), match=text):
            eager.roi_random_crop(**{"crop_shape": [6], "roi_start": [2], "in_shape": [7], **arguments})


def test_gathered_elements() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    for axis in (-3, 1, 2):
        for at in (np.int64(1), np.array([[0, -1], [1, 1]], np.int16)):
            np.testing.assert_array_equal(eager.gather(x, at, axis=axis), np.take(x, at, axis))
    for at, text in ((3, "numbers below 3, the number of elements, got 3"), (-4, "got -4")):
        with pytest.raises(DataError, match=text):
            eager.gather(x, np.array([0, at]), axis=1)
    with pytest.raises(ArgumentError, match="expected whole numbers as indices"):
        eager.gather(x, np.array([0.5]))
    long = np.random.default_rng(1).integers(0, 2, 3000)
    np.testing.assert_array_equal(eager.sequence_rearrange(x, new_order=long), x[long])


@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.3), (2.0, 5.0), (1.0, 1.0), (1e-30, 1e-30), (1e12, 2e12)])
def test_beta_has_its_mean_and_deviation(alpha: float, beta: float) -> None:
    drawn = eager.random.beta(alpha=alpha, beta=beta, shape=[20_000], dtype="float64", seed=3)
    mean = alpha / (alpha + beta)
    deviation = (mean * (1 - mean) / (alpha + beta + 1)) ** 0.5
    assert abs(drawn.mean() - mean) < 4 * deviation / 140 + 1e-12
    assert abs(drawn.std() - deviation) < 0.03 * deviation + 1e-9
    assert drawn.min() >= 0 and drawn.max() <= 1


def test_beta_that_is_refused() -> None:
    for arguments in ({"alpha": 0.0}, {"beta": -1.0}, {"alpha": np.nan}, {"dtype": "int32"}):
        with pytest.raises((ArgumentError, DataError), match="expected a "):
            eager.random.beta(**arguments)


def test_operators_of_whole_batches_need_no_reference() -> None:
    class Highest(Operator, name="highest_of_batch"):
        """Return the largest number of the batch."""

        scope = "batch"

        def infer(self, c: Any, x: Any) -> Spec:
            return Spec(x.dtype, x.shape)

        def run_rows(self, rows: Any, inputs: Any) -> Any:
            return [max(x for (x,) in inputs)] * len(rows)

    assert not Highest._overrides("reference")
    for name in ("permute_batch", "_pooled", "_largest_extents"):
        assert not find(name)._overrides("reference")
