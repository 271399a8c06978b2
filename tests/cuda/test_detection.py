# SPDX-License-Identifier: Apache-2.0
"""Operators on boxes and regions inside pipelines on a GPU: the CPU's bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_own_kernels import compare_rows, gpu  # noqa: F401

from stoker import DataError, UnsupportedError, fn, pipeline_def, types
from stoker.ops.detection._boxes import boxes_in, scores_of
from stoker.ops.detection._rotated import rotated_in

COUNTS = (9, 0, 1, 64, 200)  # of boxes: none, one word of a mask, several blocks
BOTH = pytest.mark.parametrize("dtype", ["float32", "float64"])


def scored(make: Any, dtype: str, counts: tuple[int, ...] = COUNTS) -> tuple[list[Any], list[Any], list[Any]]:
    """Return boxes, scores with equal ones and NaN, and labels of rows."""
    rng = np.random.default_rng(3)
    boxes = [make(i, n).astype(dtype) for i, n in enumerate(counts)]
    scores = [scores_of(i, n, dtype) for i, n in enumerate(counts)]
    for x in scores:
        x[rng.random(len(x)) < 0.05] = rng.choice([np.nan, -0.0, np.inf])
    return boxes, scores, [rng.integers(-2, 2, n) for n in counts]


@BOTH
def test_nms(dtype: str) -> None:
    boxes, scores, labels = scored(boxes_in, dtype)
    boxes[4][7] = np.nan

    def make(x: Any, s: Any, names: Any) -> Any:
        flipped = fn.flip(x, vertical=1, horizontal=0), fn.flip(s, vertical=0, horizontal=0)
        return (
            fn.nms(x, s, iou_threshold=0.3), fn.nms(x, s, labels=names, iou_threshold=0.1, max_outputs=7),
            fn.batched_nms(x, s, names), fn.nms(flipped[0], s, iou_threshold=0.2),
        )  # fmt: skip

    kept = compare_rows([boxes, scores, labels], ["", "", ""], make)
    assert 1 < len(kept[0][4]) < 200 and max(len(x) for x in kept[1]) == 7 and len(kept[0][1]) == 0


def test_a_threshold_for_each_row() -> None:
    boxes, scores, _ = scored(boxes_in, "float32", (80, 80, 80))
    limits = [np.float32(t) for t in (0.0, 0.5, 1.0)]
    (kept,) = compare_rows([boxes, scores, limits], ["", "", ""], lambda x, s, t: (fn.nms(x, s, iou_threshold=t),))
    assert len(kept[0]) < len(kept[1]) < len(kept[2]) == 80


def test_nms_rotated() -> None:
    boxes, scores, labels = scored(rotated_in, "float32", (9, 0, 90))

    def make(x: Any, s: Any, names: Any) -> Any:
        return (
            fn.nms_rotated(x, s, iou_threshold=0.2), fn.nms_rotated(x, s, labels=names, iou_threshold=0.1),
            fn.box_iou(x, x, rotated=True),
        )  # fmt: skip

    kept = compare_rows([boxes, scores, labels], ["", "", ""], make)
    assert 1 < len(kept[0][2]) < len(kept[1][2]) < 90


def test_kept_boxes_are_gathered() -> None:
    """Also those of rows without boxes, results of operators on their elements, and data with more elements."""
    boxes, scores, labels = scored(boxes_in, "float32")
    masks = [np.random.default_rng(i).integers(0, 256, (n + 3, 4, 5), np.uint8) for i, n in enumerate(COUNTS)]

    def make(x: Any, s: Any, names: Any, mask: Any) -> Any:
        kept = fn.batched_nms(x, s, names, iou_threshold=0.2)
        few = fn.nms(x, s, iou_threshold=0.4, max_outputs=6)
        soft, decayed = fn.soft_nms(x, s, iou_threshold=0.2, min_score=0.1)
        return (
            kept, fn.gather(x, kept), fn.gather(names, kept), fn.gather(s, kept) * 2 + fn.gather(names, kept),
            fn.gather(mask, few), fn.gather(fn.flip(x, vertical=1, horizontal=0), few), fn.gather(x, soft) * 3, decayed,
        )  # fmt: skip

    found = compare_rows([boxes, scores, labels, masks], ["", "", "", "FHW"], make)
    for kept, own, x in zip(found[0], found[1], boxes, strict=True):
        np.testing.assert_array_equal(own, x[kept])
    assert [len(x) for x in found[4]] == [6, 0, 1, 6, 6] and len(found[6][4]) > 20


def test_overlaps_of_kept_boxes() -> None:
    """Also of rows that keep none, and with further operators on single elements."""
    boxes, scores, _ = scored(boxes_in, "float32")
    truth = [boxes_in(70 + i, m) for i, m in enumerate((3, 5, 2, 0, 40))]
    assert len(truth) == len(boxes)

    def make(x: Any, s: Any, true: Any) -> Any:
        kept = fn.gather(x, fn.nms(x, s, iou_threshold=0.4))
        return kept, fn.box_iou(kept, true), fn.box_iou(kept * 2, true, kind="giou") * 3, fn.box_iou(kept, x)

    found = compare_rows([boxes, scores, truth], ["", "", ""], make)
    for kept, overlaps, every, x, true in zip(found[0], found[1], found[3], boxes, truth, strict=True):
        assert overlaps.shape == (len(kept), len(true)) and every.shape == (len(kept), len(x))
        assert (every.max(axis=1, initial=0) == 1).all(), "each kept box is one of the boxes"
    assert [len(x) for x in found[0]][1] == 0


def test_rotated_overlaps_of_kept_boxes() -> None:
    boxes, scores, _ = scored(rotated_in, "float64")

    def make(x: Any, s: Any) -> Any:
        return (fn.box_iou(fn.gather(x, fn.nms_rotated(x, s, iou_threshold=0.3)), x, rotated=True),)

    (found,) = compare_rows([boxes, scores], ["", ""], make)
    assert [x.shape[1] for x in found] == [len(x) for x in boxes]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_regions_of_kept_boxes(dtype: str) -> None:
    """Also of rows that keep none, with any number of samples, and after further operators on single elements."""
    boxes, scores, _ = scored(boxes_in, dtype)
    images = [np.random.default_rng(i).random((3, 9 + i, 14), dtype) for i in range(len(boxes))]

    def make(x: Any, s: Any, image: Any) -> Any:
        kept = fn.gather(x, fn.nms(x, s, iou_threshold=0.4))
        soft = fn.gather(x, fn.soft_nms(x, s, min_score=0.3)[0])
        return (
            kept, fn.roi_align(image, kept, output_size=2, spatial_scale=0.1) * 2,
            *fn.roi_align(image, soft / 4, output_size=(2, 3), mode="max", argmax=True, sampling_ratio=2),
            fn.roi_pool(image, kept, output_size=2, spatial_scale=0.1),
        )  # fmt: skip

    kept, aligned, largest, numbers, pooled = compare_rows([boxes, scores, images], ["", "", "CHW"], make)
    for n, row in enumerate(kept):
        assert aligned[n].shape == pooled[n].shape == (len(row), 3, 2, 2)
        assert largest[n].shape == numbers[n].shape == (len(largest[n]), 3, 2, 3)
    assert len(kept[1]) == 0 and len(kept[4]) > 10 and len(largest[4]) > 10


def test_kept_boxes_are_refused_as_second_boxes() -> None:
    boxes, scores, _ = scored(boxes_in, "float32")

    def make(x: Any, s: Any) -> Any:
        return (fn.box_iou(x, fn.gather(x, fn.nms(x, s))),)

    with pytest.raises(UnsupportedError, match="known when the batch is done"):
        compare_rows([boxes, scores], ["", ""], make)


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_data_with_too_few_elements_are_refused(device: str) -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipe() -> Any:
        boxes, scores, labels = (
            fn.external_source(source=lambda x=x: [x]) for x in (boxes_in(0, 9), scores_of(0, 9), np.arange(8))
        )
        kept = fn.nms(*((x.gpu() for x in (boxes, scores)) if device == "gpu" else (boxes, scores)))
        return fn.gather(labels, kept)

    with (
        pipe() as running,
        pytest.raises(DataError, match="expected data with at least 9 elements, one for each box, got 8"),
    ):
        running.run()


# Each type compiles the same code again, which takes most of the time of these tests.
@pytest.mark.parametrize(("method", "dtype"), [("linear", "float64"), ("gaussian", "float32")])
def test_soft_nms(method: str, dtype: str) -> None:
    boxes, scores, labels = scored(boxes_in, dtype, (9, 0, 1, 300))

    def make(x: Any, s: Any, names: Any) -> Any:
        rule = {"method": method, "iou_threshold": 0.2}
        return *fn.soft_nms(x, s, **rule), *fn.soft_nms(x, s, labels=names, min_score=0.2, max_outputs=40, **rule)

    kept = compare_rows([boxes, scores, labels], ["", "", ""], make)
    assert len(kept[0][3]) > 40 and len(kept[2][3]) == 40


@pytest.mark.parametrize(("dtype", "kinds"), [("float32", ("iou", "ciou")), ("float64", ("giou", "diou"))])
def test_box_iou(dtype: str, kinds: tuple[str, ...]) -> None:
    a = [boxes_in(i, n).astype(dtype) for i, n in enumerate((9, 0, 1, 70))]
    b = [boxes_in(i + 9, n).astype(dtype) for i, n in enumerate((4, 3, 30, 21))]
    a[3][0], a[3][1], a[3][2], b[3][0] = np.nan, 5, b[3][4], 5
    found = compare_rows([a, b], ["", ""], lambda x, y: tuple(fn.box_iou(x, y, kind=kind) for kind in kinds))
    assert [x.shape for x in found[1]] == [(9, 4), (0, 3), (1, 30), (70, 21)] and found[0][3][2, 4] > 0.9


@pytest.mark.parametrize(("layout", "dtype"), [("HWC", "float32"), ("CHW", "float64")])
def test_regions(layout: str, dtype: str) -> None:
    """Pixels with few and many channels, also as views, regions in and around the image, and none."""
    rng = np.random.default_rng(4)
    shapes = ((13, 17, 3), (9, 11, 40), (6, 5, 1))
    images = [rng.normal(0, 9, s).astype(dtype).transpose((0, 1, 2) if layout == "HWC" else (2, 0, 1)) for s in shapes]
    boxes = [boxes_in(i, n, 20.0).astype(dtype) - 4 for i, n in enumerate((4, 3, 0))]

    def make(x: Any, at: Any) -> Any:
        turned = fn.transpose(x, perm=(2, 0, 1) if layout == "HWC" else (1, 2, 0), output_layout="CHW"
                              if layout == "HWC" else "HWC")  # fmt: skip
        maxima = fn.roi_align(turned, at, output_size=2, mode="max", argmax=True, sampling_ratio=3)
        means = fn.roi_align(fn.flip(x, vertical=1), at, output_size=(9, 8), aligned=True, spatial_scale=0.5)
        return means, *maxima, fn.roi_pool(x, at, output_size=(3, 2))

    found = compare_rows([images, boxes], [layout, ""], make)
    assert found[0][0].shape == ((4, 9, 8, 3) if layout == "HWC" else (4, 3, 9, 8)) and found[0][1].any()


def test_regions_that_the_cpu_refuses_are_nan() -> None:
    @pipeline_def(batch_size=1, num_threads=1, device_id=0)
    def pipe() -> Any:
        image, boxes = np.ones((5, 6, 2), np.float32), np.array([[0, 0, 3, 3], [0, np.nan, 3, 3]], np.float32)
        x, at = (fn.external_source(source=lambda v=v: [v]) for v in (image, boxes))
        return fn.roi_align(fn.reinterpret(x, layout="HWC").gpu(), at, output_size=2)

    with pipe() as running:
        (pooled,) = running.run()
    values = np.array(next(iter(pooled.as_cpu())))
    assert pooled.device == "gpu" and np.isfinite(values[0]).all() and np.isnan(values[1]).all()


def test_types_are_checked_as_on_the_cpu() -> None:
    with pytest.raises(Exception, match="expected boxes of type float32 or float64, got int32"):
        compare_rows([[np.zeros((3, 4), np.int32)], [np.zeros(3, np.float32)]], ["", ""],
                     lambda x, s: (fn.nms(fn.cast(x, dtype=types.INT32), s),))  # fmt: skip


def test_mixtures_of_samples_with_boxes() -> None:
    """The image is mixed on the GPU; boxes, masks and labels come from the CPU."""
    rng, counts = np.random.default_rng(4), (2, 0, 3)
    images = [rng.integers(0, 256, (20, 30, 3), np.uint8) for _ in counts]
    boxes = [boxes_in(i, n) for i, n in enumerate(counts)]
    masks = [rng.integers(0, 2, (n, 20, 30), np.uint8) for n in counts]
    labels = [np.arange(n, dtype=np.int32) for n in counts]

    def make(x: Any, own: Any, shown: Any, names: Any) -> Any:
        more = own + 1
        return fn.mixup(x, fn.flip(x), boxes=[own, more], masks=[shown, shown], labels=[names, names], weight=0.3)

    _, both, painted, named = compare_rows([images, boxes, masks, labels], ["HWC", "", "", ""], make)
    assert [len(x) for x in both] == [2 * n for n in counts] == [len(x) for x in painted] == [len(x) for x in named]
