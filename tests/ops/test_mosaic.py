# SPDX-License-Identifier: Apache-2.0
"""``mosaic``, ``copy_paste``, ``mixup``: what is seen of images, boxes and masks, and partners by the epoch's order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import ArgumentError, DataError, eager, fn, pipeline_def

PLAIN = [np.full((40, 60, 3), 10 * (i + 1), np.uint8) for i in range(4)]
WHOLE = np.array([[0, 0, 60, 40]], np.float32)


@pytest.mark.parametrize("center", [(0.5, 0.5), (0.25, 0.8), (0.0, 1.0)])
def test_each_part_shows_its_image(center: tuple[float, float]) -> None:
    image, boxes, labels = eager.mosaic(
        *PLAIN, boxes=[WHOLE] * 4, labels=[np.array([i]) for i in range(4)], size=(40, 60), center=center
    )
    y, x = round(40 * center[0]), round(60 * center[1])
    want = np.full((40, 60, 3), 10, np.uint8)
    want[:y, x:], want[y:, :x], want[y:, x:] = 20, 30, 40
    np.testing.assert_array_equal(image, want)
    parts = [(0, 0, x, y), (x, 0, 60, y), (0, y, x, 40), (x, y, 60, 40)]
    seen = [i for i, (x0, y0, x1, y1) in enumerate(parts) if x1 > x0 and y1 > y0]
    assert labels.tolist() == seen and boxes.tolist() == [list(map(float, parts[i])) for i in seen]


def test_boxes_enclose_their_masks() -> None:
    masks, boxes = [], []
    for k in range(4):
        own = np.zeros((2, 50 + 10 * k, 70), np.uint8)
        own[0, 10:30, 5:25], own[1, 20:45, 30:65] = 1, 1
        masks.append(own)
        boxes.append(np.array([[5, 10, 25, 30], [30, 20, 65, 45]], np.float32))
    images = [np.zeros((*m.shape[1:], 3), np.uint8) for m in masks]
    _, moved, shown = eager.mosaic(
        *images, boxes=boxes, masks=masks, size=(90, 80), center=(0.4, 0.6), mask_layout="NHW", min_area=9.0
    )
    assert 2 < len(moved) == len(shown) and shown.shape[1:] == (90, 80)
    for (x0, y0, x1, y1), mask in zip(moved, shown, strict=True):
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        got = np.array([columns[0], rows[0], columns[-1] + 1, rows[-1] + 1])
        assert np.abs(got - [x0, y0, x1, y1]).max() <= 1
    one = eager.mosaic(*images, masks=[m.max(0) for m in masks], size=(90, 80), center=(0.4, 0.6))[1]
    np.testing.assert_array_equal(one > 0, shown.max(0) > 0)


def test_pasted_objects_cover_own_ones() -> None:
    image, other = PLAIN[0], PLAIN[1]
    own, pasted = np.zeros((2, 40, 60), bool), np.zeros((3, 40, 60), bool)
    own[0, 5:15, 5:25], own[1, 20:30, 40:50] = True, True
    pasted[0, 5:15, 5:20], pasted[1, 18:32, 38:52] = True, True
    found, boxes, masks, labels = eager.copy_paste(
        image, other, masks=[own, pasted], labels=[np.array([1, 2]), np.array([3, 4, 5])], probability=1.0
    )
    assert labels.tolist() == [1, 3, 4], "own object 1 is hidden, pasted object 2 is empty"
    assert boxes.tolist() == [[20, 5, 25, 15], [5, 5, 20, 15], [38, 18, 52, 32]]
    np.testing.assert_array_equal(masks[0], own[0] & ~pasted[0])
    np.testing.assert_array_equal(found, np.where(pasted.any(0)[..., None], other, image))
    kept = eager.copy_paste(image, other, masks=[own, pasted], probability=1.0, min_visibility=0.3)
    assert len(kept[1]) == 2, "a quarter of own object 0 is left"
    untouched = eager.copy_paste(image, other, masks=[own, pasted], probability=0.0)
    np.testing.assert_array_equal(untouched[0], image)
    np.testing.assert_array_equal(untouched[2], own)


def test_a_mixture_has_the_objects_of_both_images() -> None:
    x, other = PLAIN[0], PLAIN[3]
    boxes = [np.array([[1, 2, 3, 4], [5, 6, 7, 8]], np.float32), np.array([[9, 10, 11, 12]], np.float32)]
    masks = [np.full((n, 40, 60), 7 + n, np.uint8) for n in (2, 1)]
    labels = [np.array([1, 2]), np.array([3])]
    image, found, shown, names = eager.mixup(x, other, boxes=boxes, masks=masks, labels=labels, weight=0.25)
    np.testing.assert_array_equal(image, eager.mixup(x, other, weight=0.25))
    np.testing.assert_array_equal(found, np.concatenate(boxes))
    np.testing.assert_array_equal(shown, np.concatenate(masks))
    assert names.tolist() == [1, 2, 3] and found.dtype == np.float32 and shown.dtype == np.uint8
    nothing = np.zeros((0, 4), np.float32)
    _, left = eager.mixup(x, other, boxes=[nothing, nothing], weight=0.5)
    assert left.shape == (0, 4)
    _, left, named = eager.mixup(x, other, boxes=[nothing, boxes[1]], labels=[labels[0][:0], labels[1]], weight=0.5)
    assert left.tolist() == boxes[1].tolist() and named.tolist() == [3]


def test_partners_do_not_depend_on_the_batch(tmp_path: Path) -> None:
    files = []
    for i in range(10):
        files.append(str(tmp_path / f"{i}.png"))
        Image.fromarray(np.full((20, 30, 3), 20 * i, np.uint8)).save(files[-1])

    def epoch(batch_size: int) -> list[Any]:
        @pipeline_def(batch_size=batch_size, num_threads=2, seed=5)
        def joined() -> Any:
            images, names = fn.readers.file(files=files, labels=list(range(10)), random_shuffle=True, name="files")
            pairs = [(images, names), *(fn.readers.partner(images, number=k) for k in range(3))]
            box = np.array([[0, 0, 30, 20]], np.float32)
            labels = [fn.reshape(label, shape=[1]) for _, label in pairs]
            pictures = [fn.decoders.image(x) for x, _ in pairs]
            center = fn.random.uniform(range=(0.3, 0.7), shape=2)
            mixed, _, which = fn.mosaic(*pictures, boxes=[box] * 4, labels=labels, size=(16, 24), center=center)
            masks = fn.cast(mixed[:, :, 0] > 100, dtype="uint8")
            masks = fn.reshape(masks, src_dims=[-1, 0, 1], layout="CHW")
            found = fn.copy_paste(mixed, fn.flip(mixed), masks=[masks, fn.flip(masks)])
            blend, both = fn.mixup(
                found[0], fn.resize(pictures[3], size=(16, 24)), labels=[which, labels[3]],
                weight=fn.random.beta(alpha=2.0, beta=2.0),
            )  # fmt: skip
            return blend, both, names

        with joined() as pipe:
            rows = []
            for _ in range(12 // batch_size):
                found, which, names = pipe.run()
                columns = [[np.asarray(x) for x in column] for column in (names, which, found)]
                rows += [(int(n.item()), w.ravel().tolist(), f) for n, w, f in zip(*columns, strict=True)]
            return rows[:10]

    few, many = epoch(2), epoch(6)
    assert any(len(set(which[:-1])) == 4 for _, which, _ in few), "partners are other samples"
    for a, b in zip(few, many, strict=True):
        assert a[0] == b[0] == a[1][0] and a[1] == b[1]
        np.testing.assert_array_equal(a[2], b[2])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"boxes": [WHOLE] * 3}, "expected four `boxes`, four `masks` and four `labels`, or none"),
        ({"boxes": WHOLE}, "expected a list as `boxes`"),
        ({"labels": [np.array([1])] * 4}, "`labels` and masks of objects need `boxes`"),
        ({"center": (0.5, 1.5)}, "expected `center` from 0 to 1, got 1.5"),
        ({"size": (0, 5)}, "expected a `size` of 1"),
        ({"boxes": [WHOLE] * 4, "labels": [np.array([1, 2])] * 4}, "`labels` for each of 1 boxes, got 2"),
        ({"masks": [np.zeros((4, 5), np.uint8)] * 4}, "expected masks of the image's size, 40 along H, got 4"),
    ],
)
def test_mosaics_that_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        eager.mosaic(*PLAIN, **{"size": (40, 60), **arguments})


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "expected a pair of `masks`|expected 4 to 6 inputs"),
        ({"masks": [np.zeros((1, 40, 60), np.uint8)] * 3}, "expected a pair of `masks`"),
        ({"masks": [np.zeros((1, 40, 59), np.uint8)] * 2}, "expected masks of the image's size, 40 x 60, got 40 x 59"),
        ({"masks": [np.zeros((1, 40, 60), np.int32)] * 2}, "of bool, uint8 or int8, got int32"),
        ({"masks": [np.zeros((1, 40, 60), np.uint8)] * 2, "probability": 2.0}, "expected `probability` from 0 to 1"),
        (
            {"masks": [np.zeros((1, 40, 60), np.uint8)] * 2, "labels": [np.array([1, 2])] * 2},
            "expected a label for each of 1 objects of image 0, got 2",
        ),
    ],
)
def test_pastes_that_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        eager.copy_paste(PLAIN[0], PLAIN[1], **arguments)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"boxes": [WHOLE] * 3}, "expected a pair of `boxes`"),
        ({"boxes": WHOLE}, "expected a list as `boxes`"),
        ({"boxes": [WHOLE[:, :3]] * 2}, "expected boxes of 4 numbers, got 3"),
        ({"boxes": [WHOLE[0]] * 2}, "expected `boxes` with 2 axes, got 1"),
        ({"boxes": [WHOLE, WHOLE.astype(np.float64)]}, "expected `boxes` of one type"),
        ({"masks": [np.zeros((1, 40, 59), np.uint8)] * 2}, "masks of the image's size, 40 x 60, got 40 x 59"),
        ({"boxes": [WHOLE] * 2, "masks": [np.zeros((2, 40, 60), bool)] * 2}, "1 objects of image 0.*got 2"),
        ({"boxes": [WHOLE] * 2, "labels": [np.array([1]), np.array([1, 2])]}, "1 objects of image 1.*got 2"),
        ({"labels": [np.int32(1)] * 2}, "expected `labels` with some axes, got 0"),
        ({"boxes": [WHOLE] * 2, "num_classes": 3}, "`num_classes` is for soft labels"),
    ],
)
def test_mixtures_that_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        eager.mixup(PLAIN[0], PLAIN[1], **{"weight": 0.5, **arguments})
    if "boxes" in arguments:
        with pytest.raises(ArgumentError, match="expected two images, and their labels or none, got 6 inputs"):
            eager.mixup(PLAIN[0], PLAIN[1], np.int32(1), np.int32(2), boxes=[WHOLE] * 2, weight=0.5)
