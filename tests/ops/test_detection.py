# SPDX-License-Identifier: Apache-2.0
"""Suppression, overlaps and pooling of regions: borders, hostile boxes, and torchvision's bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional

from stoker import eager, fn, pipeline_def
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError
from stoker.native import _native
from stoker.ops.detection._boxes import boxes_in, order_of, scores_of
from stoker.torch import ops
from tests.takeover import native_torchvision

NATIVE = native_torchvision.load()
needs_torchvision = pytest.mark.skipif(not NATIVE, reason="torchvision's native library cannot be loaded")
THRESHOLDS = (0.1, 0.2, 0.3, 0.5, 0.6, 0.0, -1.0, 1.0)
TYPES = (torch.float32, torch.float64)


@pytest.fixture(params=_native.instruction_sets())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run the test once for each instruction set."""
    before = _native.get_isa()
    _native.set_isa(request.param)
    yield request.param
    _native.set_isa(before)


def peer() -> Any:
    import torchvision

    return torchvision.ops


def hostile_boxes(count: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Return boxes of which some are inverted, empty, infinite or NaN, with equal and unusual scores."""
    boxes = torch.from_numpy(boxes_in(count, count)).to(dtype)
    scores = torch.from_numpy(scores_of(count, count)).to(dtype)
    if count >= 8:
        boxes[0] = boxes[0, [2, 3, 0, 1]]
        boxes[1, 2:] = boxes[1, :2]
        boxes[2, 0], boxes[3, 1], boxes[4] = float("inf"), float("nan"), 0.0
        scores[1], scores[2], scores[3], scores[5] = float("nan"), float("inf"), -0.0, 0.0
    return boxes, scores


# ---- nms ----


@needs_torchvision
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scale", [1.0, 3e-20, 1e17])
def test_nms_of_overlaps_next_to_the_threshold(isa: str, scale: float, dtype: torch.dtype) -> None:
    """Boxes of whole numbers, so that many overlaps are the threshold itself; also with areas that are not normal."""
    rng = np.random.default_rng(8)
    corner = rng.integers(0, 20, (600, 2))
    boxes = torch.from_numpy(np.concatenate([corner, corner + rng.integers(1, 7, (600, 2))], 1) * scale).to(dtype)
    scores = torch.from_numpy(scores_of(8, 600)).to(dtype)
    for share in (1 / 3, 0.5, 0.25, 2 / 3, 0.2, 1e-3, 1.0):
        for near in (np.float32(share), np.nextafter(np.float32(share), 0), np.nextafter(np.float32(share), 2), share):
            want = peer().nms(boxes, scores, float(near))
            assert torch.equal(ops.nms(boxes, scores, float(near)), want), (share, near)


@needs_torchvision
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 31, 33, 100, 300, 1000])
def test_nms_keeps_the_boxes_that_torchvision_keeps(isa: str, count: int, dtype: torch.dtype) -> None:
    boxes, scores = hostile_boxes(count, dtype)
    for threshold in THRESHOLDS:
        want = peer().nms(boxes, scores, threshold)
        assert ops.nms(boxes, scores, threshold).tolist() == want.tolist(), threshold
        assert eager.nms(boxes.numpy(), scores.numpy(), iou_threshold=threshold).tolist() == want.tolist(), threshold


@needs_torchvision
@pytest.mark.parametrize("dtype", TYPES)
def test_an_overlap_equal_to_the_threshold_is_compared_in_double(dtype: torch.dtype) -> None:
    for tenth in range(1, 10):  # the overlap of the two boxes is tenth / 10
        boxes = torch.tensor([[0, 0, 10, 1], [0, 0, tenth, 1]], dtype=dtype)
        scores = torch.tensor([0.9, 0.8], dtype=dtype)
        assert ops.nms(boxes, scores, tenth / 10).tolist() == peer().nms(boxes, scores, tenth / 10).tolist()


@needs_torchvision
@pytest.mark.parametrize("labels", ["few", "many", "apart"])
def test_batched_nms_is_nms_of_each_label(isa: str, labels: str) -> None:
    boxes, scores = hostile_boxes(600, torch.float32)
    numbers = torch.from_numpy(np.random.default_rng(3).integers(0, {"few": 4, "many": 200, "apart": 30}[labels], 600))
    numbers = numbers * (1 << 57) - 5 if labels == "apart" else numbers
    got = ops.batched_nms(boxes, scores, numbers, 0.3)
    kept = torch.zeros(600, dtype=torch.bool)
    for label in numbers.unique():
        own = torch.where(numbers == label)[0]
        kept[own[peer().nms(boxes[own], scores[own], 0.3)]] = True
    want = [i for i in order_of(scores.numpy()) if kept[i]]
    assert got.tolist() == want
    assert eager.batched_nms(boxes.numpy(), scores.numpy(), numbers.numpy(), iou_threshold=0.3).tolist() == want


def test_negative_coordinates_never_suppress_across_labels() -> None:
    # torchvision's batched_nms shifts labels by the largest coordinate, which is too little for these boxes.
    boxes = torch.tensor([[-120.0, -120.0, -20.0, -20.0], [-119.0, -119.0, -19.0, -19.0], [-20.0, -20.0, -10.0, -10.0]])
    scores, labels = torch.tensor([0.9, 0.8, 0.7]), torch.tensor([0, 1, 0])
    assert ops.batched_nms(boxes, scores, labels, 0.5).tolist() == [0, 1, 2]


def test_labels_that_int64_does_not_hold() -> None:
    boxes, scores = np.array([[0, 0, 9, 9], [0, 0, 9, 9]], np.float32), np.array([0.9, 0.8], np.float32)
    far = np.array([2**63, 2**64 - 1], np.uint64)  # different labels stay different
    assert eager.batched_nms(boxes, scores, far).tolist() == [0, 1]
    assert eager.batched_nms(boxes, scores, far[[0, 0]]).tolist() == [0]

    @pipeline_def(batch_size=1)
    def graph() -> Any:
        x = fn.external_source(lambda: boxes[None], dtype="float32", ndim=2)
        y = fn.external_source(lambda: scores[None], dtype="float32", ndim=1)
        return fn.nms(x, y, labels=[2**63, 1])

    with pytest.raises(ArgumentError, match=r"labels that int64 holds, got 9223372036854775808"):
        graph().build()


def test_max_outputs_takes_the_best() -> None:
    boxes, scores = boxes_in(5, 200), scores_of(5, 200)
    everything = eager.nms(boxes, scores, iou_threshold=0.3)
    for most in (1, 3, len(everything), 500):
        assert eager.nms(boxes, scores, iou_threshold=0.3, max_outputs=most).tolist() == everything[:most].tolist()


def test_boxes_of_any_strides() -> None:
    boxes, scores = boxes_in(6, 90), scores_of(6, 90)
    want = eager.nms(boxes, scores)
    assert eager.nms(np.asfortranarray(boxes), scores[::-1][::-1]).tolist() == want.tolist()
    assert ops.nms(torch.from_numpy(boxes.T.copy()).T, torch.from_numpy(scores), 0.5).tolist() == want.tolist()


def test_nms_in_a_pipeline_takes_thresholds_and_labels_per_row() -> None:
    rows = [(boxes_in(i, n), scores_of(i, n)) for i, n in enumerate((30, 0, 12, 50))]
    marks = [np.arange(len(s)) % 3 for _, s in rows]
    thresholds = np.array([0.1, 0.3, 0.5, 0.7], np.float32)

    @pipeline_def(batch_size=4, num_threads=2)
    def graph() -> Any:
        boxes = fn.external_source(lambda: [b for b, _ in rows], dtype="float32", ndim=2)
        scores = fn.external_source(lambda: [s for _, s in rows], dtype="float32", ndim=1)
        labels = fn.external_source(lambda: marks, dtype="int64", ndim=1)
        threshold = fn.external_source(lambda: thresholds, dtype="float32", ndim=0)
        kept = fn.nms(boxes, scores, labels=labels, iou_threshold=threshold)
        soft, decayed = fn.soft_nms(boxes, scores, labels=labels)
        return kept, fn.batched_nms(boxes, scores, labels, iou_threshold=threshold), soft, decayed

    pipe = graph()
    with pipe:
        kept, batched, soft, decayed = pipe.run()
        for i, (boxes, scores) in enumerate(rows):
            want = eager.batched_nms(boxes, scores, marks[i], iou_threshold=float(thresholds[i]))
            assert np.asarray(kept[i]).tolist() == np.asarray(batched[i]).tolist() == want.tolist()
            again = eager.soft_nms(boxes, scores, labels=marks[i].tolist())
            assert np.asarray(soft[i]).tolist() == again[0].tolist()
            assert np.asarray(decayed[i]).tobytes() == again[1].tobytes()


@pytest.mark.parametrize(
    ("boxes", "scores", "arguments", "text"),
    [
        (np.zeros((3, 5), np.float32), np.zeros(3, np.float32), {}, r"shape \(N, 4\), got 5"),
        (np.zeros((3, 4), np.float32), np.zeros(2, np.float32), {}, "one score for each of 3 boxes, got 2"),
        (np.zeros((3, 4), np.float32), np.zeros(3), {}, "scores of the boxes' type"),
        (np.zeros((3, 4), np.int64), np.zeros(3, np.float32), {}, "float32 or float64, got int64"),
        (np.zeros(4, np.float32), np.zeros(3, np.float32), {}, "boxes with 2 axes, got 1"),
        (np.zeros((3, 4), np.float32), np.zeros(3, np.float32), {"max_outputs": -1}, "`max_outputs` >= 0"),
        (np.zeros((3, 4), np.float32), np.zeros(3, np.float32), {"labels": [1, 2]}, "one label for each of 3 boxes"),
    ],
)
def test_nms_refuses_other_inputs(boxes: Any, scores: Any, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        eager.nms(boxes, scores, **arguments)


# ---- soft_nms, nms_rotated, box_iou ----


def test_soft_nms_decays_as_the_formulas_say() -> None:
    boxes = np.array([[0, 0, 10, 10], [0, 0, 10, 5], [20, 0, 30, 10]], np.float32)
    scores = np.array([0.9, 0.8, 0.3], np.float32)
    kept, decayed = eager.soft_nms(boxes, scores, method="linear", iou_threshold=0.4)
    assert kept.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(decayed, np.float32([0.9, np.float32(0.8) * np.float32(0.5), 0.3]))
    kept, decayed = eager.soft_nms(boxes, scores, method="linear", iou_threshold=0.5)  # not above the threshold
    assert decayed.tolist() == scores.tolist()
    kept, decayed = eager.soft_nms(boxes, scores, sigma=0.25)
    assert kept.tolist() == [0, 2, 1]
    np.testing.assert_allclose(decayed, [0.9, 0.3, 0.8 * np.exp(-1)], rtol=1e-7)
    kept, _ = eager.soft_nms(boxes, scores, sigma=0.25, min_score=0.301)
    assert kept.tolist() == [0]
    with pytest.raises((ArgumentError, DataError), match="`sigma` above 0"):
        eager.soft_nms(boxes, scores, sigma=0.0)


def test_soft_nms_drops_scores_that_are_not_numbers() -> None:
    boxes, scores = hostile_boxes(64, torch.float32)
    kept, decayed = ops.soft_nms(boxes, scores)
    assert 1 not in kept and not decayed.isnan().any()
    assert (decayed[:-1] >= decayed[1:]).all()


@pytest.mark.parametrize("angle", [0.0, 30.0, 90.0, -45.0, 720.0])
def test_rotated_overlaps_of_known_boxes(angle: float) -> None:
    a = np.array([[5, 7, 10, 4, angle], [5, 7, 10, 4, angle + 90], [100, 7, 10, 4, angle]], np.float64)
    got = eager.box_iou(a, a, rotated=True)
    cross = 16 / (80 - 16)  # a cross of two bars of 10 x 4
    np.testing.assert_allclose(got, [[1, cross, 0], [cross, 1, 0], [0, 0, 1]], atol=1e-12)
    octagon = 200 * (np.sqrt(2) - 1)  # two squares of side 10, one turned by 45 degrees
    squares = np.array([[0, 0, 10, 10, angle], [0, 0, 10, 10, angle + 45]], np.float64)
    got = eager.box_iou(squares[:1], squares[1:], rotated=True)
    np.testing.assert_allclose(got, [[octagon / (200 - octagon)]], atol=1e-12)


def test_rotated_boxes_without_an_angle_are_kept_like_boxes() -> None:
    boxes, scores = boxes_in(8, 80, dtype="float64"), scores_of(8, 80, "float64")
    turned = np.concatenate([(boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2], np.zeros((80, 1))], 1)
    for threshold in (0.15, 0.45):
        want = eager.nms(boxes, scores, iou_threshold=threshold).tolist()
        assert eager.nms_rotated(turned, scores, iou_threshold=threshold).tolist() == want
        got = ops.nms_rotated(torch.from_numpy(turned), torch.from_numpy(scores), threshold)
        assert got.tolist() == want


@needs_torchvision
@pytest.mark.parametrize("dtype", TYPES)
def test_overlaps_have_the_bits_of_torchvision(dtype: torch.dtype) -> None:
    a, _ = hostile_boxes(40, dtype)
    b = torch.from_numpy(boxes_in(3, 30)).to(dtype)
    peers = {"iou": peer().box_iou, "giou": peer().generalized_box_iou, "diou": peer().distance_box_iou}
    for kind, function in peers.items():
        left = a if kind == "iou" else a[8:]  # torchvision refuses inverted boxes elsewhere
        got = eager.box_iou(left.numpy(), b.numpy(), kind=kind)
        np.testing.assert_array_equal(got, function(left, b).numpy(), kind)
    got = eager.box_iou(a[8:].numpy(), b.numpy(), kind="ciou")
    np.testing.assert_allclose(got, peer().complete_box_iou(a[8:], b).numpy(), atol=1e-6, rtol=1e-5)


# ---- roi_align, roi_pool ----


def regions(count: int, maps: int, dtype: torch.dtype, side: float = 60.0) -> torch.Tensor:
    boxes = torch.from_numpy(boxes_in(count, count, side) - np.float32(8))
    if count > 4:
        boxes[0] = boxes[0, [2, 3, 0, 1]]
        boxes[1, 2:] = boxes[1, :2]
        boxes[2] += 500
    numbers = torch.arange(count).remainder(maps)[:, None]
    return torch.cat([numbers.to(boxes.dtype), boxes], 1).to(dtype)


CONFIGURATIONS = [
    (size, samples, aligned, scale)
    for size in ((7, 7), (1, 1), (2, 5))
    for samples in (0, 1, 2, 3)
    for aligned in (False, True)
    for scale in (1.0, 0.3)
]


@needs_torchvision
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(2, 5, 13, 17), (1, 33, 1, 1), (3, 1, 2, 40)])
def test_roi_align_and_its_gradient_have_the_bits_of_torchvision(isa: str, shape: Any, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    rois = regions(9, shape[0], dtype)
    for k, (size, samples, aligned, scale) in enumerate(CONFIGURATIONS):
        x = torch.rand(shape, generator=generator, dtype=dtype)
        x = x.contiguous(memory_format=torch.channels_last) if k % 3 == 1 else x
        mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
        got = ops.roi_align(mine, rois, size, scale, samples, aligned)
        want = peer().roi_align(other, rois, size, scale, samples, aligned)
        assert torch.equal(got, want), (size, samples, aligned, scale)
        gradient = torch.rand(want.shape, generator=generator, dtype=dtype)
        got.backward(gradient)
        want.backward(gradient)
        assert mine.grad is not None and other.grad is not None
        assert torch.equal(mine.grad, other.grad), (size, samples, aligned, scale)


@needs_torchvision
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("samples", [2, 3, 4])
def test_small_gradients_of_roi_align_have_the_bits_of_torchvision(isa: str, samples: int, dtype: torch.dtype) -> None:
    """Weights are divided by the number of samples ahead only where no product is below the least normal number."""
    least = torch.finfo(dtype).tiny
    x = torch.zeros(2, 45, 13, 17, dtype=dtype)
    rois = regions(9, 2, dtype)
    generator = torch.Generator().manual_seed(5)
    for factor in (1e-2, 1.0, 3.0, 40.0, 1e3, 1e6, 1e9):
        gradient = factor * least * torch.rand(9, 45, 3, 3, generator=generator, dtype=dtype)
        gradient[:, ::7] = 0
        gradient[0, 0, 0] = torch.tensor([float("inf"), float("nan"), -1.0], dtype=dtype)
        for scale in (0.1, 0.25, 1.0):
            mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
            ops.roi_align(mine, rois, 3, scale, samples, True).backward(gradient)
            peer().roi_align(other, rois, 3, scale, samples, True).backward(gradient)
            assert mine.grad is not None and other.grad is not None
            np.testing.assert_array_equal(mine.grad.numpy(), other.grad.numpy(), f"{factor} {scale}")


@needs_torchvision
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(2, 5, 13, 17), (1, 33, 1, 1)])
def test_roi_pool_and_its_gradient_have_the_bits_of_torchvision(isa: str, shape: Any, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(4)
    rois = regions(9, shape[0], dtype)
    for size, scale in (((3, 4), 1.0), ((1, 1), 0.3), ((7, 7), 0.25)):
        x = torch.rand(shape, generator=generator, dtype=dtype)
        mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
        got, want = ops.roi_pool(mine, rois, size, scale), peer().roi_pool(other, rois, size, scale)
        assert torch.equal(got, want)
        gradient = torch.rand(want.shape, generator=generator, dtype=dtype)
        got.backward(gradient)
        want.backward(gradient)
        assert mine.grad is not None and other.grad is not None
        assert torch.equal(mine.grad, other.grad)


def test_roi_align_takes_a_list_of_boxes() -> None:
    x = torch.rand(2, 3, 9, 9)
    boxes = [torch.tensor([[0.0, 0, 5, 5], [1, 1, 8, 4]]), torch.tensor([[2.0, 2, 6, 6]])]
    stacked = torch.cat([torch.cat([torch.full((len(b), 1), float(i)), b], 1) for i, b in enumerate(boxes)])
    for function in (ops.roi_align, ops.roi_pool):
        assert torch.equal(function(x, boxes, 3), function(x, stacked, 3))


def test_gradients_of_roi_align() -> None:
    rois = torch.tensor([[0, 0.3, 0.2, 4.1, 5.7], [1, 1.0, 1.0, 3.0, 2.0]], dtype=torch.float64)
    x = torch.rand(2, 2, 6, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    for mode in ("avg", "max"):
        assert torch.autograd.gradcheck(lambda v, m=mode: ops.roi_align(v, rois, 2, 1.0, 2, True, mode=m), [x])


def test_the_maximum_of_samples_and_its_number() -> None:
    x, boxes = np.arange(48, dtype=np.float32).reshape(6, 8, 1) % 7, np.array([[1.0, 1, 6, 5]], np.float32)
    values, chosen = eager.roi_align(x, boxes, output_size=2, sampling_ratio=2, mode="max", argmax=True)
    averaged = eager.roi_align(x, boxes, output_size=4, sampling_ratio=1)  # the same 16 samples, one for each bin
    grid = averaged.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3).reshape(2, 2, 4)
    np.testing.assert_array_equal(values[0, ..., 0], grid.max(-1))
    np.testing.assert_array_equal(chosen[0, ..., 0], grid.argmax(-1))
    planes = torch.from_numpy(x.transpose(2, 0, 1)[None].copy())
    got = ops.roi_align(planes, [torch.from_numpy(boxes)], 2, sampling_ratio=2, mode="max")
    np.testing.assert_array_equal(got[0, 0], values[0, ..., 0])


@pytest.mark.parametrize(
    ("rois", "text"),
    [
        ([[2.0, 0, 0, 1, 1]], "number of one of the 2 feature maps"),
        ([[-1.0, 0, 0, 1, 1]], "number of one of the 2 feature maps"),
        ([[float("nan"), 0, 0, 1, 1]], "number of one of the 2 feature maps"),
        ([[0.0, 0, float("inf"), 1, 1]], "coordinates"),
        ([[0.0, 0, 0, 1e30, 1e30]], "2\\*\\*"),
    ],
)
def test_regions_that_cannot_be_pooled_are_refused(rois: Any, text: str) -> None:
    for function in (ops.roi_align, ops.roi_pool):
        with pytest.raises(ValueError, match=text):
            function(torch.rand(2, 3, 9, 9), torch.tensor(rois), 3)
    if rois[0][0] == 0:
        for function in (eager.roi_align, eager.roi_pool):
            with pytest.raises(DataError, match=text):
                function(np.zeros((9, 9, 3), np.float32), np.float32([r[1:] for r in rois]), output_size=3)


# ---- torch.library ----


def sample_calls() -> dict[str, tuple[Any, ...]]:
    boxes, scores = torch.from_numpy(boxes_in(2, 20)), torch.from_numpy(scores_of(2, 20))
    turned = torch.cat([boxes, boxes[:, :1]], 1)
    x = torch.rand(2, 3, 9, 9, generator=torch.Generator().manual_seed(1), requires_grad=True)
    rois = regions(4, 2, torch.float32, 12.0)
    images = torch.randint(0, 255, (2, 3, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(2))
    matrices = torch.tensor([[[1.0, 0.1, 0], [0, 1, 0]], [[0.5, 0, 1], [0.2, 1, 0]]])
    return {
        "nms": (boxes, scores, None, 0.5, False),
        "nms, rotated": (turned, scores, torch.arange(20), 0.5, True),
        "soft_nms": (boxes, scores, None, True, 0.5, 0.5, 0.01),
        "roi_align": (x, rois, 0.5, 2, 3, 0, True),
        "roi_align_max": (x, rois, 0.5, 2, 3, 2, True),
        "roi_pool": (x, rois, 0.5, 2, 3),
        "warp_affine": (images, matrices, 5, 6, True, [0.0]),
    }


@pytest.mark.parametrize("name", sample_calls())
def test_operators_of_torch_library(name: str) -> None:
    operator = getattr(torch.ops.stoker, name.partition(",")[0]).default
    torch.library.opcheck(operator, sample_calls()[name], test_utils=("test_schema", "test_autograd_registration",
                                                                     "test_faketensor"))  # fmt: skip


def test_tensors_on_other_devices_are_refused_by_name() -> None:
    class Elsewhere:
        type = "xpu"

        def __str__(self) -> str:
            return "xpu:0"

    class Far(torch.Tensor):
        device = Elsewhere()  # type: ignore[assignment]

    far = torch.zeros(3, 4).as_subclass(Far)
    with pytest.raises(UnsupportedError, match=r"`stoker.torch.ops.nms`.*xpu:0.*cpu\(\)"):
        ops.nms(far, torch.zeros(3), 0.5)
    with pytest.raises(ArgumentError, match="tensors on one device, got some on cpu and meta"):
        ops.nms(torch.zeros(1, 4), torch.zeros(1, device="meta"), 0.5)


def test_native_code_checks_what_it_is_given() -> None:
    boxes, scores, rois = np.zeros((3, 4), np.float32), np.zeros(3, np.float32), np.zeros((1, 5), np.float32)
    detect = _native.detect
    with pytest.raises(ValueError, match=r"shape \(N, 5\)"):
        detect.nms(boxes, scores, None, 0.5, True)
    with pytest.raises(ValueError, match="as many scores"):
        detect.nms(boxes, scores[:2], None, 0.5, False)
    with pytest.raises(ValueError, match="label"):
        detect.nms(boxes, scores, np.zeros(3, np.int32), 0.5, False)
    x = np.zeros((1, 2, 4, 4), np.float32)
    with pytest.raises(ValueError, match="extents"):
        detect.roi_align(x, rois, 1.0, 0, False, np.zeros((2, 2, 3, 3), np.float32), None)
    with pytest.raises(ValueError, match="extents"):
        detect.roi_align_backward(np.zeros((1, 2, 3, 3), np.float32), rois, None, 1.0, 0, False, x[:, :1])
    with pytest.raises(ValueError, match="number for each"):
        detect.roi_pool_backward(np.zeros((1, 2, 3, 3), np.float32), rois, np.zeros((1, 2, 3), np.int32), x)
    wrong = np.full((1, 2, 3, 3), 1 << 20, np.int32)  # pixels that do not exist receive nothing
    detect.roi_pool_backward(np.ones((1, 2, 3, 3), np.float32), rois, wrong, x)
    assert not x.any()


def test_large_outputs_have_the_bits_of_small_ones() -> None:
    """Large outputs are in large pages, where the system has them."""
    x = torch.rand(1, 64, 12, 12, generator=torch.Generator().manual_seed(7))
    rois = regions(400, 1, torch.float32, 12.0)
    for pool in (ops.roi_align, ops.roi_pool):
        large = pool(x, rois, 7)
        assert large.nbytes > 1 << 22
        assert torch.equal(large, torch.cat([pool(x, part, 7) for part in rois.split(20)]))


# ---- warp_affine ----


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
def test_each_image_is_warped_by_its_own_matrix(dtype: str, interpolation: str) -> None:
    from stoker import types

    rng = np.random.default_rng(1)
    images = rng.integers(0, 255, (3, 20, 30, 3)).astype(dtype)
    matrices = rng.normal(0, 0.3, (3, 2, 3)) + np.array([[1, 0, 2], [0, 1, 3]])
    planes = torch.from_numpy(images).permute(0, 3, 1, 2)
    got = ops.warp_affine(planes, torch.from_numpy(matrices), (11, 17), interpolation=interpolation, fill=(1, 2, 3))
    again = ops.warp_affine(planes.contiguous(), torch.from_numpy(matrices), (11, 17), interpolation=interpolation,
                            fill=(1, 2, 3))  # fmt: skip
    assert torch.equal(got, again)
    assert got.is_contiguous(memory_format=torch.channels_last) and again.is_contiguous()
    kind = types.INTERP_LINEAR if interpolation == "linear" else types.INTERP_NN
    for k in range(3):
        want = eager.warp_affine(images[k], matrix=matrices[k].ravel().tolist(), size=(11, 17), fill_value=2,
                                 interp_type=kind)  # fmt: skip
        np.testing.assert_array_equal(got[k, 1].numpy(), want[..., 1])  # the channel that is filled with 2


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_planes_and_pixels_are_warped_alike(dtype: str, channels: int) -> None:
    rng = np.random.default_rng(channels)
    images = torch.from_numpy(rng.integers(0, 255, (2, channels, 13, 19)).astype(dtype))
    matrices = torch.from_numpy(rng.normal(0, 0.4, (2, 2, 3)) + np.array([[1, 0, 2], [0, 1, 3]]))
    fill = [float(k) for k in range(channels)]
    for interpolation in ("linear", "nearest"):
        for border in (fill, None):
            own = {"interpolation": interpolation, "fill": border}
            whole = ops.warp_affine(images, matrices, (9, 70), **own)
            pixels = ops.warp_affine(images.contiguous(memory_format=torch.channels_last), matrices, (9, 70), **own)
            strided = ops.warp_affine(images.transpose(2, 3).contiguous().transpose(2, 3), matrices, (9, 70), **own)
            assert torch.equal(whole, pixels) and torch.equal(whole, strided)
            for k in range(channels):
                alone = ops.warp_affine(images[:, k : k + 1], matrices, (9, 70), interpolation=interpolation,
                                        fill=None if border is None else fill[k])  # fmt: skip
                assert torch.equal(alone, whole[:, k : k + 1])


def test_warp_affine_refuses_what_it_cannot_do() -> None:
    images, eye = torch.zeros(2, 3, 4, 4), torch.eye(2, 3).repeat(2, 1, 1)
    for change, text in (
        ({"images": images.double()}, "images of type uint8"),
        ({"matrices": eye[:1]}, r"shape \(2, 2, 3\), got \(1, 2, 3\)"),
        ({"fill": [1.0, 2.0]}, "one for each of 3 channels"),
        ({"interpolation": "cubic"}, '"linear" or "nearest"'),
        ({"size": 0}, "from 1"),
    ):
        with pytest.raises(ArgumentError, match=text):
            ops.warp_affine(**{"images": images, "matrices": eye, **change})
    with pytest.raises(ValueError, match="finite"):
        ops.warp_affine(images, eye * float("nan"))
    with pytest.raises(UnsupportedError, match="a gradient of the images only"):
        ops.warp_affine(images, eye.requires_grad_()).sum().backward()


@pytest.mark.parametrize("fill", [None, 0.0])
@pytest.mark.parametrize("interpolation", ["linear", "nearest"])
def test_the_gradient_of_warp_affine_is_its_transpose(interpolation: str, fill: float | None) -> None:
    make = torch.Generator().manual_seed(3)
    images = torch.rand(2, 3, 9, 12, generator=make, requires_grad=True)
    matrices = torch.tensor([[[0.9, 0.3, -1.0], [-0.2, 1.1, 0.7]], [[-1.0, 0.0, 12.0], [0.0, 0.5, 2.0]]])

    def warped(x: torch.Tensor) -> torch.Tensor:
        return ops.warp_affine(x, matrices, (8, 11), interpolation=interpolation, fill=fill)

    grad = torch.rand(2, 3, 8, 11, generator=make)
    warped(images).backward(grad)
    assert images.grad is not None
    first = images.grad.clone()
    for other in torch.rand(5, *images.shape, generator=make):
        pairs = (grad.double() * warped(other).double()).sum(), (first.double() * other.double()).sum()
        torch.testing.assert_close(*pairs, rtol=1e-5, atol=1e-5)
    images.grad = None
    warped(images).backward(grad.contiguous(memory_format=torch.channels_last))
    assert torch.equal(images.grad, first), "repeatable"
    arguments = (grad, matrices, interpolation == "linear", fill is not None, list(images.shape))
    torch.library.opcheck(torch.ops.stoker.warp_affine_backward.default, arguments)


def test_the_gradient_of_warp_affine_equals_that_of_grid_sample() -> None:
    make = torch.Generator().manual_seed(4)
    images = torch.rand(1, 2, 10, 14, generator=make, requires_grad=True)
    matrix = torch.tensor([[[0.8, 0.3, 0.5], [-0.25, 0.9, 1.5]]], dtype=torch.float64)
    y, x = torch.meshgrid(torch.arange(10) + 0.5, torch.arange(14) + 0.5, indexing="ij")
    places = torch.stack([x, y, torch.ones_like(x)], -1).double() @ matrix[0].T
    grid = (places / torch.tensor([14.0, 10.0]) * 2 - 1).float()[None]
    found = []
    for out in (
        torch.nn.functional.grid_sample(images, grid, padding_mode="border", align_corners=False),
        ops.warp_affine(images, matrix, fill=None),
    ):
        images.grad = None
        (out * torch.arange(out.numel()).view_as(out)).sum().backward()
        assert images.grad is not None
        found.append((out.detach(), images.grad.clone()))
    torch.testing.assert_close(found[0][0], found[1][0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-3, atol=0.05)
