# SPDX-License-Identifier: Apache-2.0
"""``geometry``: annotations follow their image, against drawings and each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image, ImageDraw

from stoker import ArgumentError, DataError, Pipeline, eager, fn, types

Array = npt.NDArray[Any]
IMAGE = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
BOXES = np.array([[10, 5, 30, 25], [40, 20, 79, 59], [0, 50, 6, 60]], np.float32)
LABELS = np.array([3, 1, 2])
MIRROR = np.array([[-1, 0, 80], [0, 1, 0]], np.float32)


def turned(angle: float) -> Array:
    return np.asarray(eager.transforms.rotation(angle=angle, center=(40.0, 30.0)))


def drawn(polygon: Any, size: tuple[int, int] = (60, 80)) -> Array:
    """Return a mask of a polygon whose pixels count if their centres lie inside."""
    canvas = Image.new("L", (size[1] * 8, size[0] * 8))
    ImageDraw.Draw(canvas).polygon([(8 * x, 8 * y) for x, y in polygon], fill=1)
    return np.asarray(canvas)[4::8, 4::8].copy()


def test_a_mirror_is_exact() -> None:
    points = np.array([[[12.0, 6, 2], [28, 20, 2]]] * 3, np.float32)
    masks = np.stack([drawn([(x0, y0), (x1, y0), (x1, y1), (x0, y1)]) for x0, y0, x1, y1 in BOXES])
    image, boxes, moved, keypoints, labels = eager.geometry(
        IMAGE, boxes=BOXES, masks=masks, keypoints=points, labels=LABELS, ops=[MIRROR], mask_layout="NHW"
    )
    np.testing.assert_array_equal(boxes, np.stack([80 - BOXES[:, 2], BOXES[:, 1], 80 - BOXES[:, 0], BOXES[:, 3]], 1))
    np.testing.assert_array_equal(image, IMAGE[:, ::-1])
    np.testing.assert_array_equal(moved, masks[:, :, ::-1])
    np.testing.assert_array_equal(keypoints[0], [[68, 6, 2], [52, 20, 2]])
    np.testing.assert_array_equal(labels, LABELS)


def test_mirrored_points_are_exchanged() -> None:
    points = np.array([[[12.0, 6, 2], [28, 20, 1], [3, 3, 0]]], np.float32)
    order = {"boxes": BOXES[:1], "keypoints": points, "keypoint_flip_order": (1, 0, 2)}
    assert eager.geometry(IMAGE, ops=[MIRROR], **order)[2].tolist() == [[[52, 20, 1], [68, 6, 2], [0, 0, 0]]]
    still = eager.geometry(IMAGE, ops=[np.eye(2, 3, dtype=np.float32)], **order)[2]
    np.testing.assert_array_equal(still, points * (points[..., 2:] > 0))


@pytest.mark.parametrize("angle", [0.0, 17.0, 90.0, -130.0])
def test_boxes_enclose_what_is_left_of_the_masks(angle: float) -> None:
    polygon = np.array([[20, 10], [60, 15], [55, 45], [30, 40]], np.float32)
    mask = drawn(polygon)
    box = np.array([[20, 10, 60, 45]], np.float32)
    matrices = [turned(angle), np.asarray(eager.transforms.scale(scale=(1.5, 1.2), center=(40.0, 30.0)))]
    _, boxes, moved, polygons, vertices = eager.geometry(
        IMAGE, boxes=box, masks=mask, polygons=np.array([[0, 0, 4]], np.int32), vertices=polygon, ops=matrices
    )
    rows, columns = np.nonzero(moved)
    x0, y0, x1, y1 = boxes[0]
    assert x0 <= columns.min() + 1 and y0 <= rows.min() + 1 and x1 >= columns.max() and y1 >= rows.max()
    assert polygons.tolist() == [[0, 0, len(vertices)]]
    assert (vertices >= 0).all() and (vertices <= [80, 60]).all()
    difference = drawn(vertices) != moved
    assert difference.mean() < 0.02, "the clipped polygon covers the pixels of the warped mask"


@pytest.mark.parametrize("angle", [0.0, 25.0, -80.0, 170.0])
def test_rotated_boxes_turn_by_the_angle(angle: float) -> None:
    own = np.array([[40, 30, 20, 10, 15], [35, 33, 4, 12, -60]], np.float32)
    moved = eager.geometry(IMAGE, rotated_boxes=own, ops=[turned(angle)])[1]
    np.testing.assert_allclose(moved[:, 2:4], own[:, 2:4], rtol=1e-5)
    np.testing.assert_allclose((moved[:, 4] - own[:, 4] - angle + 180) % 360, 180, atol=1e-3)
    assert eager.box_iou(moved[:, :0].reshape(-1, 4), moved[:, :0].reshape(-1, 4)).shape == (0, 0)


def test_rotated_boxes_enclose_a_sheared_object_tightly() -> None:
    own = np.array([[40, 30, 20, 10, 30]], np.float32)
    shear = np.array([[1, 0.4, -5], [0.1, 1.2, -8]], np.float32)
    cx, cy, width, height, angle = eager.geometry(IMAGE, rotated_boxes=own, ops=[shear])[1][0].astype(float)
    radians = math.radians(30)
    axes = np.array([[math.cos(radians), math.sin(radians)], [-math.sin(radians), math.cos(radians)]])
    corners = [own[0, :2] + s * 10 * axes[0] + t * 5 * axes[1] for s in (-1, 1) for t in (-1, 1)]
    moved = np.array([shear[:, :2] @ p + shear[:, 2] for p in corners]) - [cx, cy]
    turn = math.radians(angle)
    local = moved @ np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
    np.testing.assert_allclose(np.ptp(local, 0), [width, height], rtol=1e-5)
    areas = []
    for degrees in np.arange(0, 90, 0.05):
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        areas.append(np.prod(np.ptp(moved @ np.array([[c, -s], [s, c]]), 0)))
    assert width * height <= min(areas) * (1 + 1e-5)


def test_objects_are_dropped_together() -> None:
    zoom = np.array([[2, 0, -40], [0, 2, -20]], np.float32)  # the canvas shows x from 20 to 60, y from 10 to 40
    arguments: dict[str, Any] = {
        "boxes": BOXES, "labels": LABELS, "ops": [zoom], "output_indices": True,
        "polygons": np.array([[0, 0, 3], [1, 3, 6], [2, 6, 9]], np.int32),
        "vertices": np.array([[25, 15], [30, 15], [28, 20], [45, 25], [55, 25], [50, 30], [0, 50], [5, 50], [3, 55]],
                             np.float32),
    }  # fmt: skip
    _, boxes, polygons, _, labels, index = eager.geometry(IMAGE, **arguments)
    np.testing.assert_array_equal(boxes, [[0, 0, 20, 30], [40, 20, 80, 60]])
    assert labels.tolist() == [3, 1] and index.tolist() == [0, 1] and polygons[:, 0].tolist() == [0, 1]
    _, boxes, polygons, vertices, labels, index = eager.geometry(IMAGE, **arguments, min_visibility=0.3)
    # Of box 0 three eighths are left, of box 1 a quarter and a bit.
    assert labels.tolist() == [3] and index.tolist() == [0] and polygons.tolist() == [[0, 0, len(vertices)]]
    assert eager.geometry(IMAGE, **arguments, min_area=700.0)[4].tolist() == [1]


def test_relative_boxes_and_another_canvas() -> None:
    relative = BOXES / np.array([80, 60, 80, 60], np.float32)
    half = np.array([[0.5, 0, 0], [0, 0.5, 0]], np.float32)
    image, boxes = eager.geometry(IMAGE, boxes=relative, ops=[half], normalized=True, size=(30, 40))
    assert image.shape == (30, 40, 3)
    np.testing.assert_allclose(boxes, relative, rtol=1e-6)


def test_a_pipeline_and_batches_give_the_same() -> None:
    rows = [BOXES, BOXES[:0], BOXES[1:]]
    pipe = Pipeline(batch_size=3, num_threads=2, seed=3, prefetch_queue_depth=1)
    with pipe:
        boxes, labels = fn.external_source(
            lambda: (rows, [LABELS[: len(r)] for r in rows]), num_outputs=2, dtype=[types.FLOAT, types.INT64],
            ndim=[2, 1],
        )  # fmt: skip
        angle = fn.random.uniform(range=(-40, 40))
        ops = [fn.transforms.rotation(angle=angle, center=(40.0, 30.0)), fn.transforms.translation(offset=(5.0, 2.0))]
        pipe.set_outputs(*fn.geometry(IMAGE, boxes=boxes, labels=labels, ops=ops), angle)
    with pipe:
        images, moved, names, angles = pipe.run()
    for i, own in enumerate(rows):
        matrices = [turned(float(np.asarray(angles[i]))), np.array([[1, 0, 5], [0, 1, 2]], np.float32)]
        want = eager.geometry(IMAGE, boxes=own, labels=LABELS[: len(own)], ops=matrices)
        for got, expected in zip((images[i], moved[i], names[i]), want, strict=True):
            np.testing.assert_array_equal(np.asarray(got), expected)
    many = eager.geometry([IMAGE] * 3, boxes=rows, ops=[MIRROR])
    for i, own in enumerate(rows):
        np.testing.assert_array_equal(np.asarray(many[1][i]), eager.geometry(IMAGE, boxes=own, ops=[MIRROR])[1])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "expected 2 to 72 inputs, got 1"),
        ({"boxes": BOXES}, "expected at least one matrix in `ops`"),
        ({"boxes": BOXES, "ops": MIRROR}, "expected a list as `ops`, got ndarray"),
        ({"labels": LABELS, "ops": [MIRROR]}, "`labels` need `boxes` or `rotated_boxes`"),
        ({"polygons": np.zeros((1, 3), np.int32), "ops": [MIRROR]}, "expected `polygons` and `vertices`, got one"),
        ({"boxes": BOXES[:, :3], "ops": [MIRROR]}, "expected boxes of 4 numbers, got 3"),
        ({"boxes": BOXES[:, ::-1], "ops": [MIRROR]}, "expected finite boxes whose ends are not below their starts"),
        ({"boxes": np.full((1, 4), np.nan, np.float32), "ops": [MIRROR]}, "expected finite boxes"),
        ({"boxes": BOXES, "ops": [MIRROR * np.float32(np.nan)]}, "expected a finite matrix"),
        ({"boxes": BOXES, "ops": [MIRROR * 0]}, "expected a matrix that can be inverted"),
        ({"boxes": BOXES, "ops": [np.eye(3, 4, dtype=np.float32)]}, "expected a matrix"),
        ({"boxes": BOXES, "labels": LABELS[:2], "ops": [MIRROR]}, "of `labels` for each of 3 objects, got 2"),
        ({"boxes": BOXES, "ops": [MIRROR], "min_visibility": 1.5}, "expected `min_visibility` from 0 to 1"),
        ({"rotated_boxes": BOXES, "ops": [MIRROR]}, "expected rotated boxes of 5 numbers, got 4"),
        (
            {"boxes": BOXES, "polygons": np.array([[0, 0, 9]], np.int32), "vertices": BOXES[:, :2], "ops": [MIRROR]},
            "expected polygons with vertices from 0 to 3, got 0 to 9",
        ),
        ({"keypoints": np.zeros((2, 4), np.float32), "ops": [MIRROR]}, "expected key points of 2 or 3 numbers, got 4"),
    ],
)
def test_inputs_that_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        eager.geometry(IMAGE, **arguments)
