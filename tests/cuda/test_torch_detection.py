# SPDX-License-Identifier: Apache-2.0
"""Operators of ``stoker.torch.ops`` on CUDA tensors: bits of the CPU.

Without a GPU the kernels run on emulated threads, on tensors in host memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest
import torch
from kept_reports import report_of

from stoker import ArgumentError
from stoker.frameworks import _torch_ops_cuda as on_gpu
from stoker.torch import ops


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)])
def device(request: pytest.FixtureRequest, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the device of the tensors. On the CPU, the emulated GPU reads them."""
    if request.param == "cuda":
        return "cuda"
    emulated = on_gpu.Kernels(emulated_stages.EmulatedGpu(folder))
    monkeypatch.setattr(on_gpu, "kernels", lambda device: emulated)
    return "cpu"


def same(x: Any, expected: Any) -> bool:
    """Return whether tensors are equal bit by bit; all NaN are equal."""
    x, expected = x.cpu(), expected.cpu()
    return x.dtype == expected.dtype and np.array_equal(x.numpy(), expected.numpy(), equal_nan=x.is_floating_point())


def boxes_of(count: int, dtype: Any, device: str) -> tuple[Any, Any, Any]:
    """Return boxes, many of which overlap, scores with equal ones and NaN, and labels."""
    rng = np.random.default_rng(count)
    corner = rng.uniform(0, 60, (count, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(-2, 40, (count, 2))], 1)
    scores = rng.integers(0, 40, count) / 40
    scores[: count // 9] = np.nan
    found = torch.from_numpy(boxes).to(dtype), torch.from_numpy(scores).to(dtype)
    return (*(x.to(device) for x in found), torch.from_numpy(rng.integers(-1, 3, count)).to(device))


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 300])
def test_nms(count: int, device: str) -> None:
    boxes, scores, labels = boxes_of(count, torch.float32, device)
    for threshold in (0.0, 0.3, 0.5, -1.0, float("nan")):
        expected = ops.nms(boxes.cpu(), scores.cpu(), threshold)
        assert same(on_gpu.nms(boxes, scores, None, threshold, False), expected), threshold
    expected = ops.batched_nms(boxes.cpu(), scores.cpu(), labels.cpu(), 0.3)
    assert same(on_gpu.nms(boxes, scores, labels, 0.3, False), expected)


@pytest.mark.parametrize("count", [1, 130])
def test_nms_of_rotated_boxes(count: int, device: str) -> None:
    boxes, scores, labels = boxes_of(count, torch.float32, device)
    turned = torch.cat([boxes, boxes[:, :1] * 7], 1)
    turned[:, 2:4] = turned[:, 2:4].abs() / 2
    expected = ops.nms_rotated(turned.cpu(), scores.cpu(), 0.2, labels.cpu())
    assert same(on_gpu.nms(turned, scores, labels, 0.2, True), expected)


@pytest.mark.parametrize("method", ["linear", "gaussian"])
@pytest.mark.parametrize("count", [0, 1, 150])
def test_soft_nms(count: int, method: str, device: str) -> None:
    boxes, scores, labels = boxes_of(count, torch.float64, device)
    for groups in (None, labels):
        expected = ops.soft_nms(
            boxes.cpu(), scores.cpu(), None if groups is None else groups.cpu(), method=method, iou_threshold=0.3,
            min_score=0.05,
        )  # fmt: skip
        found = on_gpu.soft_nms(boxes, scores, groups, method == "gaussian", 0.3, 0.5, 0.05)
        assert same(found[0], expected[0]) and same(found[1], expected[1])


def regions_of(dtype: Any, device: str, *, last: bool) -> tuple[Any, Any]:
    """Return features, and regions: inside, across the border, outside, without an extent, turned round."""
    rng = np.random.default_rng(5)
    features = torch.from_numpy(rng.normal(size=(2, 5, 9, 11))).to(dtype)
    features[0, 1, 3, 3] = float("nan")
    corner = rng.uniform(-3, 18, (12, 2))
    regions = np.concatenate([np.arange(12)[:, None] % 2, corner, corner + rng.uniform(-4, 14, (12, 2))], 1)
    regions[0], regions[1], regions[2] = (0, 0, 0, 22, 18), (1, 30, 30, 40, 40), (1, 20, 16, 20, 16)
    form = torch.channels_last if last else torch.contiguous_format
    found = features.contiguous(memory_format=form), torch.from_numpy(regions).to(dtype)
    return found[0].to(device), found[1].to(device)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("samples", [0, 2])
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("name", ["float32", "float64"])
def test_roi_align_and_its_gradient(name: str, samples: int, aligned: bool, last: bool, device: str) -> None:
    features, regions = regions_of(getattr(torch, name), device, last=last)
    call = (0.5, 3, 4, samples, aligned)
    plain = torch.ops.stoker
    x, rois = features.cpu(), regions.cpu()
    pooled = on_gpu.roi_align(features, regions, *call)
    assert same(pooled, plain.roi_align(x, rois, *call))
    largest, chosen = on_gpu.roi_align_max(features, regions, *call)
    expected, numbers = plain.roi_align_max(x, rois, *call)
    assert same(largest, expected) and same(chosen, numbers)
    grad = torch.randn(pooled.shape, generator=torch.Generator().manual_seed(1), dtype=pooled.dtype)
    for which in (None, chosen):
        arguments = (0.5, samples, aligned, tuple(features.shape))
        found = on_gpu.roi_align_backward(grad.to(device), regions, which, *arguments)
        assert same(found, plain.roi_align_backward(grad, rois, None if which is None else numbers, *arguments))


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_roi_pool_and_its_gradient(name: str, device: str) -> None:
    features, regions = regions_of(getattr(torch, name), device, last=False)
    plain = torch.ops.stoker
    pooled, chosen = on_gpu.roi_pool(features, regions, 0.5, 3, 4)
    expected, numbers = plain.roi_pool(features.cpu(), regions.cpu(), 0.5, 3, 4)
    assert same(pooled, expected) and same(chosen, numbers)
    grad = torch.randn(pooled.shape, generator=torch.Generator().manual_seed(1), dtype=pooled.dtype)
    found = on_gpu.roi_pool_backward(grad.to(device), regions, chosen, 0.5, tuple(features.shape))
    assert same(found, plain.roi_pool_backward(grad, regions.cpu(), numbers, 0.5, tuple(features.shape)))


def test_channels_of_several_blocks(device: str) -> None:
    features = torch.randn(1, 300, 3, 4, generator=torch.Generator().manual_seed(2)).to(device)
    regions = torch.tensor([[0.0, 0.0, 0.0, 3.0, 2.0], [0.0, 1.0, 0.5, 2.0, 3.0]], device=device)
    pooled = on_gpu.roi_align(features, regions, 1.0, 2, 2, 2, True)
    found = on_gpu.roi_align_backward(pooled, regions, None, 1.0, 2, True, tuple(features.shape))
    expected = torch.ops.stoker.roi_align_backward(pooled.cpu(), regions.cpu(), None, 1.0, 2, True, features.shape)
    assert same(found, expected)


@pytest.mark.parametrize("last", [False, True])
def test_more_bins_samples_and_channels_than_a_block_keeps(last: bool, device: str) -> None:
    features = torch.randn(1, 35, 6, 7, generator=torch.Generator().manual_seed(2))
    features = features.contiguous(memory_format=torch.channels_last if last else torch.contiguous_format)
    regions = torch.tensor([[0.0, 0.5, -1.0, 5.0, 6.5], [0.0, 1.0, 0.5, 2.0, 3.0]])
    for samples in (2, 40):
        call = (1.0, 9, 8, samples, False)
        found = on_gpu.roi_align(features.to(device), regions.to(device), *call)
        assert same(found, torch.ops.stoker.roi_align(features, regions, *call)), samples
        pairs = zip(
            on_gpu.roi_align_max(features.to(device), regions.to(device), *call),
            torch.ops.stoker.roi_align_max(features, regions, *call), strict=True,
        )  # fmt: skip
        assert all(same(found, expected) for found, expected in pairs), samples


def test_regions_that_the_cpu_refuses_are_nan_and_add_nothing(device: str) -> None:
    features, regions = regions_of(torch.float32, device, last=False)
    good = on_gpu.roi_align(features, regions, 0.5, 3, 4, 2, True)
    grad = torch.ones_like(good)
    gradient = on_gpu.roi_align_backward(grad[3:], regions[3:], None, 0.5, 2, True, tuple(features.shape))
    bad = regions.clone()
    bad[0, 0], bad[1, 2], bad[2, 0] = 2, float("inf"), float("nan")
    for pooled in (on_gpu.roi_align(features, bad, 0.5, 3, 4, 2, True), on_gpu.roi_pool(features, bad, 0.5, 3, 4)[0]):
        assert pooled[:3].isnan().all()
    assert same(on_gpu.roi_align(features, bad, 0.5, 3, 4, 2, True)[3:], good[3:])
    assert same(on_gpu.roi_align_backward(grad, bad, None, 0.5, 2, True, tuple(features.shape)), gradient)
    many = on_gpu.roi_align(features, regions, 0.5, 3, 4, 1 << 20, True)
    assert many.isnan().all()


def test_empty_tensors(device: str) -> None:
    features, regions = regions_of(torch.float32, device, last=False)
    assert on_gpu.roi_align(features, regions[:0], 0.5, 3, 4, 2, True).shape == (0, 5, 3, 4)
    none = torch.zeros(0, 5, 3, 4, device=device)
    gradient = on_gpu.roi_align_backward(none, regions[:0], None, 0.5, 2, True, tuple(features.shape))
    assert same(gradient, torch.zeros(features.shape))
    with pytest.raises(ArgumentError, match="features with pixels, got 0 x 11"):
        on_gpu.roi_align(features[:, :, :0], regions, 0.5, 3, 4, 2, True)


WARPS = {  # for images of 23 x 31 pixels: matrices that nearest sampling walks in different ways
    "scale": (0.7, 0.0, -1.25, 0.0, 1.3, 2.5),
    "fixed": (0.9, 0.31, -4.0, -0.27, 1.1, 3.125),
    "steps": (0.9, 3000.0, -9000.0, 0.1, 0.5, 1.0),
    "constant": (0.0, 0.0, 5.25, 0.0, 0.0, 7.75),
}


@pytest.mark.parametrize("name", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("linear", [False, True])
def test_warp_affine(name: str, linear: bool, device: str) -> None:
    rng = np.random.default_rng(7)
    matrices = torch.tensor(list(WARPS.values()), dtype=torch.float64).view(-1, 2, 3)
    for channels in (3, 4, 1):
        plain = rng.integers(0, 256, (len(WARPS), channels, 23, 31))
        images = torch.from_numpy(plain * 1.37 if name == "float32" else plain).to(getattr(torch, name))
        for form in (torch.contiguous_format, torch.channels_last):
            x = images.contiguous(memory_format=form)
            for fill in ([], [7.0], [float(c) * 2.5 for c in range(channels)]):
                for size in ((23, 31), (5, 300)) if channels == 3 else ((9, 8),):
                    expected = torch.ops.stoker.warp_affine(x, matrices, *size, linear, fill)
                    found = on_gpu.warp_affine(x.to(device), matrices.to(device), *size, linear, fill)
                    assert found.stride() == expected.stride()
                    assert same(found, expected), (channels, form, fill, size)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("filled", [False, True])
def test_the_gradient_of_warp_affine(linear: bool, filled: bool, device: str) -> None:
    matrices = torch.tensor(list(WARPS.values()), dtype=torch.float64).view(-1, 2, 3)
    grad = torch.randn(len(WARPS), 3, 19, 27, generator=torch.Generator().manual_seed(3))
    shape = (len(WARPS), 3, 23, 31)
    expected = torch.ops.stoker.warp_affine_backward(grad, matrices, linear, filled, shape)
    assert expected.abs().sum() > 0
    found = on_gpu.warp_affine_backward(grad.to(device), matrices.to(device), linear, filled, shape)
    assert same(found, expected)


def test_warps_without_pixels_and_by_impossible_matrices(device: str) -> None:
    images = torch.full((3, 2, 4, 5), 9, dtype=torch.uint8, device=device)
    matrices = torch.tensor([[[1.0, 0, 0], [0, 1, 0]]] * 3, device=device)
    matrices[1, 0, 2], matrices[2, 1, 1] = float("nan"), float("inf")
    for linear in (False, True):
        for fill, value in (([3.0], 3), ([], 0)):
            found = on_gpu.warp_affine(images, matrices, 4, 5, linear, fill)
            assert (found[0] == 9).all() and (found[1:] == value).all()
            empty = on_gpu.warp_affine(images[:, :, :0], matrices[:1].expand(3, 2, 3), 2, 3, linear, fill)
            assert empty.shape == (3, 2, 2, 3) and (empty == value).all()
    assert on_gpu.warp_affine(images[:0], matrices[:0], 4, 5, True, []).shape == (0, 2, 4, 5)


SOURCES = {
    "nms": (on_gpu.nms_source("float"), on_gpu.NMS),
    "rotated": (on_gpu.nms_source("double", rotated=True), on_gpu.NMS),
    "soft": (on_gpu.soft_nms_source("double"), on_gpu.SOFT_NMS),
    "regions": (on_gpu.roi_source("float"), on_gpu.ROI),
    "warps": (on_gpu.warp_source(torch.uint8), on_gpu.WARP),
    "sums": (on_gpu.ADD_SOURCE, on_gpu.ADD),
}


@pytest.mark.parametrize("name", SOURCES)
def test_the_kernels_compile_for_gpus(name: str) -> None:
    source, names = SOURCES[name]
    assert emulated_stages.entries_of(source) == names
    assert "0 bytes spill stores" in report_of(source, 90)


@pytest.mark.leaks("torch keeps threads for the gradients of each device")
@emulated_stages.NEEDS_GPU
def test_operators_on_cuda_tensors() -> None:
    boxes, scores, labels = boxes_of(2000, torch.float32, "cuda")
    assert same(ops.nms(boxes, scores, 0.4), ops.nms(boxes.cpu(), scores.cpu(), 0.4))
    assert same(
        ops.batched_nms(boxes, scores, labels, 0.4), ops.batched_nms(boxes.cpu(), scores.cpu(), labels.cpu(), 0.4)
    )
    features = torch.randn(2, 64, 25, 30, device="cuda", requires_grad=True)
    regions = torch.cat([labels[:200, None].clamp(0, 1).float(), boxes[:200].abs()], 1)
    on_cpu = features.detach().cpu().requires_grad_()
    for x, rois in ((features, regions), (on_cpu, regions.cpu())):
        ops.roi_align(x, rois, 7, 0.4, 2, True).square().sum().backward()
        ops.roi_pool(x, rois, 3, 0.4).sum().backward()
    assert same(features.grad, on_cpu.grad)
    again = torch.autograd.grad(ops.roi_align(features, regions, 7, 0.4, 2, True).square().sum(), features)[0]
    twice = torch.autograd.grad(ops.roi_align(features, regions, 7, 0.4, 2, True).square().sum(), features)[0]
    assert same(again, twice)
    with pytest.raises(ArgumentError, match="tensors on one device"):
        ops.nms(boxes, scores.cpu(), 0.4)
    images = torch.rand(2, 3, 40, 50, device="cuda", requires_grad=True)
    matrices = torch.tensor([[[0.9, 0.2, -3.0], [-0.1, 1.1, 2.0]]] * 2, device="cuda")
    warped = ops.warp_affine(images, matrices, (30, 60))
    assert same(warped.detach(), ops.warp_affine(images.detach().cpu(), matrices.cpu(), (30, 60)))
    once, twice = (torch.autograd.grad(warped.sum(), images, retain_graph=True)[0] for _ in range(2))
    assert once.abs().sum() > 0 and same(once, twice)
