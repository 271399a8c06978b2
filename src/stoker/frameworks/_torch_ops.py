# SPDX-License-Identifier: Apache-2.0
"""Operators for detection on PyTorch tensors, registered with ``torch.library`` in the namespace ``stoker``.

Each operator has a kernel for the CPU, one for CUDA (``_torch_ops_cuda.py``), a form for fake
tensors (``torch.compile``, ``torch.export``) and, if it is differentiable, a gradient. Kernels are native code that
runs without the GIL. Sums of gradients have one order, so that gradients are repeatable bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import torch

from ..contract.errors import ArgumentError, UnsupportedError
from ..native import _native
from . import _torch_ops_cuda
from ._torch_ops_warp import empty_images, warp_gradient

Tensor = torch.Tensor
_detect = _native.detect
_LIBRARY: Any = torch.library.Library("stoker", "DEF")  # type: ignore[no-untyped-call]
_BOXES = "Tensor boxes, Tensor scores, Tensor? labels"
_BINS = "float spatial_scale, int pooled_height, int pooled_width"
_SAMPLES = "int sampling_ratio, bool aligned"
_GRADIENT = "Tensor grad, Tensor rois"
for _schema in (
    f"nms({_BOXES}, float iou_threshold, bool rotated) -> Tensor",
    f"soft_nms({_BOXES}, bool gaussian, float iou_threshold, float sigma, float min_score) -> (Tensor, Tensor)",
    f"roi_align(Tensor input, Tensor rois, {_BINS}, {_SAMPLES}) -> Tensor",
    f"roi_align_max(Tensor input, Tensor rois, {_BINS}, {_SAMPLES}) -> (Tensor, Tensor)",
    f"roi_align_backward({_GRADIENT}, Tensor? argmax, float spatial_scale, {_SAMPLES}, SymInt[] shape) -> Tensor",
    f"roi_pool(Tensor input, Tensor rois, {_BINS}) -> (Tensor, Tensor)",
    f"roi_pool_backward({_GRADIENT}, Tensor argmax, float spatial_scale, SymInt[] shape) -> Tensor",
    "warp_affine(Tensor images, Tensor matrices, int height, int width, bool linear, float[] fill) -> Tensor",
    "warp_affine_backward(Tensor grad, Tensor matrices, bool linear, bool filled, SymInt[] shape) -> Tensor",
):
    _LIBRARY.define(_schema)
_ops = torch.ops.stoker


def _array(x: Tensor) -> Any:
    return x.detach().numpy()


def _given(x: Tensor | None) -> Any:
    return None if x is None else x.detach().numpy()


# ---- kernels on the CPU ----

_LARGE = 1 << 22  # bytes


def _in_large_pages(x: Tensor) -> Tensor:
    """Ask the system for large pages if new memory that will be written as a whole is large: clearing small ones one by
    one takes as long as pooling does.
    """
    if x.nbytes >= _LARGE and x.is_contiguous():
        _native.recipe.advise_large_pages(x.view(-1).view(torch.uint8).numpy())
    return x


def _nms_cpu(boxes: Tensor, scores: Tensor, labels: Tensor | None, iou_threshold: float, rotated: bool) -> Tensor:
    kept = _detect.nms(_array(boxes), _array(scores), _given(labels), iou_threshold, rotated)
    return torch.from_numpy(kept)


def _soft_nms_cpu(
    boxes: Tensor, scores: Tensor, labels: Tensor | None, gaussian: bool, threshold: float, sigma: float, least: float
) -> tuple[Tensor, Tensor]:
    arrays = (_array(boxes), _array(scores), _given(labels))
    kept, decayed = _detect.soft_nms(*arrays, gaussian, threshold, sigma, least)
    return torch.from_numpy(kept), torch.from_numpy(decayed)


def _pooled(x: Tensor, rois: Tensor, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return memory for pooled regions, and for a number of each element."""
    shape = (rois.shape[0], x.shape[1], height, width)
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int32)


def _roi_align_cpu(
    x: Tensor, rois: Tensor, scale: float, height: int, width: int, samples: int, aligned: bool
) -> Tensor:
    out = _in_large_pages(x.new_empty((rois.shape[0], x.shape[1], height, width)))
    _detect.roi_align(_array(x), _array(rois), scale, samples, aligned, out.numpy(), None)
    return out


def _roi_align_max_cpu(
    x: Tensor, rois: Tensor, scale: float, height: int, width: int, samples: int, aligned: bool
) -> tuple[Tensor, Tensor]:
    out, chosen = map(_in_large_pages, _pooled(x, rois, height, width))
    _detect.roi_align(_array(x), _array(rois), scale, samples, aligned, out.numpy(), chosen.numpy())
    return out, chosen


def _roi_align_backward_cpu(
    grad: Tensor, rois: Tensor, argmax: Tensor | None, scale: float, samples: int, aligned: bool, shape: Sequence[int]
) -> Tensor:
    out = _in_large_pages(grad.new_empty(tuple(shape)))
    _detect.roi_align_backward(_array(grad), _array(rois), _given(argmax), scale, samples, aligned, out.numpy())
    return out


def _roi_pool_cpu(x: Tensor, rois: Tensor, scale: float, height: int, width: int) -> tuple[Tensor, Tensor]:
    out, chosen = map(_in_large_pages, _pooled(x, rois, height, width))
    _detect.roi_pool(_array(x), _array(rois), scale, out.numpy(), chosen.numpy())
    return out, chosen


def _roi_pool_backward_cpu(grad: Tensor, rois: Tensor, argmax: Tensor, scale: float, shape: Sequence[int]) -> Tensor:
    out = _in_large_pages(grad.new_empty(tuple(shape)))
    _detect.roi_pool_backward(_array(grad), _array(rois), _array(argmax), out.numpy())
    return out


def _warp_affine_cpu(
    images: Tensor, matrices: Tensor, height: int, width: int, linear: bool, fill: Sequence[float]
) -> Tensor:
    out = empty_images(images, height, width)
    numbers = matrices.detach().to(torch.float64).contiguous().numpy()
    _detect.warp_images(_array(images), numbers, linear, list(fill), out.numpy())
    return out


def _warp_affine_backward_cpu(
    grad: Tensor, matrices: Tensor, linear: bool, filled: bool, shape: Sequence[int]
) -> Tensor:
    return warp_gradient(grad, matrices, linear, filled, shape, _add_in_order)


def _add_in_order(sums: Tensor, places: Tensor, values: Tensor) -> None:
    sums.index_add_(1, places, values)


# ---- results without elements, for fake tensors ----


def _nms_fake(boxes: Tensor, scores: Tensor, labels: Tensor | None, iou_threshold: float, rotated: bool) -> Tensor:
    return boxes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


def _soft_nms_fake(boxes: Tensor, scores: Tensor, *_: Any) -> tuple[Tensor, Tensor]:
    size = torch.library.get_ctx().new_dynamic_size()
    return boxes.new_empty(size, dtype=torch.int64), boxes.new_empty(size)


def _roi_align_fake(x: Tensor, rois: Tensor, scale: float, height: int, width: int, *_: Any) -> Tensor:
    return x.new_empty((rois.shape[0], x.shape[1], height, width))


def _pooled_fake(x: Tensor, rois: Tensor, scale: float, height: int, width: int, *_: Any) -> tuple[Tensor, Tensor]:
    return _pooled(x, rois, height, width)


def _roi_align_backward_fake(
    grad: Tensor, rois: Tensor, argmax: Tensor | None, scale: float, samples: int, aligned: bool, shape: Sequence[int]
) -> Tensor:
    return grad.new_empty(tuple(shape))


def _roi_pool_backward_fake(grad: Tensor, rois: Tensor, argmax: Tensor, scale: float, shape: Sequence[int]) -> Tensor:
    return grad.new_empty(tuple(shape))


def _warp_affine_backward_fake(
    grad: Tensor, matrices: Tensor, linear: bool, filled: bool, shape: Sequence[int]
) -> Tensor:
    return grad.new_empty(tuple(shape))


def _warp_affine_fake(images: Tensor, matrices: Tensor, height: int, width: int, *_: Any) -> Tensor:
    return empty_images(images, height, width)


# ---- gradients ----


def _keep_align(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, rois, scale, _, _, samples, aligned = inputs
    argmax = output[1] if isinstance(output, tuple) else None
    if argmax is not None:
        ctx.mark_non_differentiable(argmax)
    ctx.save_for_backward(rois, *(() if argmax is None else (argmax,)))
    ctx.numbers = (scale, samples, aligned, x.shape)


def _align_gradient(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
    rois, *argmax = ctx.saved_tensors
    result = _ops.roi_align_backward(grad, rois, argmax[0] if argmax else None, *ctx.numbers)
    return (result, *(None,) * 6)


def _keep_pool(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.mark_non_differentiable(output[1])
    ctx.save_for_backward(inputs[1], output[1])
    ctx.scale, ctx.shape = inputs[2], inputs[0].shape


def _pool_gradient(ctx: Any, grad: Tensor, *_: Any) -> tuple[Any, ...]:
    return (_ops.roi_pool_backward(grad, *ctx.saved_tensors, ctx.scale, ctx.shape), *(None,) * 4)


def _keep_warp(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    images, matrices, _, _, linear, fill = inputs
    ctx.save_for_backward(matrices)
    ctx.arguments = (linear, len(fill) > 0, images.shape)


def _warp_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    if ctx.needs_input_grad[1]:
        raise UnsupportedError(
            "`stoker.torch.ops.warp_affine`: there is a gradient of the images only; give it matrices that need none "
            "(`matrices.detach()`)"
        )
    return (_ops.warp_affine_backward(grad, *ctx.saved_tensors, *ctx.arguments), *(None,) * 5)


def _register() -> None:
    kernels: dict[str, tuple[Any, Any]] = {
        "nms": (_nms_cpu, _nms_fake),
        "soft_nms": (_soft_nms_cpu, _soft_nms_fake),
        "roi_align": (_roi_align_cpu, _roi_align_fake),
        "roi_align_max": (_roi_align_max_cpu, _pooled_fake),
        "roi_align_backward": (_roi_align_backward_cpu, _roi_align_backward_fake),
        "roi_pool": (_roi_pool_cpu, _pooled_fake),
        "roi_pool_backward": (_roi_pool_backward_cpu, _roi_pool_backward_fake),
        "warp_affine": (_warp_affine_cpu, _warp_affine_fake),
        "warp_affine_backward": (_warp_affine_backward_cpu, _warp_affine_backward_fake),
    }
    for name, (kernel, fake) in kernels.items():
        _LIBRARY.impl(name, kernel, "CPU")
        torch.library.register_fake(f"stoker::{name}", fake, lib=_LIBRARY)
        on_cuda = getattr(_torch_ops_cuda, name, None)
        if on_cuda is not None:
            _LIBRARY.impl(name, on_cuda, "CUDA")
    gradients = {
        "roi_align": (_align_gradient, _keep_align),
        "roi_align_max": (_align_gradient, _keep_align),
        "roi_pool": (_pool_gradient, _keep_pool),
        "warp_affine": (_warp_gradient, _keep_warp),
    }
    for name, (gradient, keep) in gradients.items():
        torch.library.register_autograd(f"stoker::{name}", gradient, setup_context=keep, lib=_LIBRARY)


_register()


# ---- functions ----


def _require(holds: bool, name: str, text: str) -> None:
    if not holds:
        _refuse(name, text)


def _refuse(name: str, text: str) -> NoReturn:
    raise ArgumentError(f"`stoker.torch.ops.{name}`: {text}")


# Calls with few boxes take microseconds, so these checks make a text only when they fail.


def _on_one_device(name: str, *tensors: Tensor) -> None:
    first = None
    for x in tensors:
        if not isinstance(x, Tensor):
            _refuse(name, f"expected a tensor, got {type(x).__name__}")
        device = x.device
        if device == first:
            continue
        if device.type not in ("cpu", "cuda", "meta"):
            raise UnsupportedError(
                f"`stoker.torch.ops.{name}`: expected tensors on the CPU or a CUDA device, got one on {device}; copy "
                "it with `.cpu()`"
            )
        if first is not None:
            _refuse(name, f"expected tensors on one device, got some on {first} and {device}")
        first = device


def _expect_floats(name: str, first: Tensor, second: Tensor) -> None:
    dtype = first.dtype
    if dtype is not second.dtype or dtype not in (torch.float32, torch.float64):
        shown = ", ".join(sorted({str(t).removeprefix("torch.") for t in (dtype, second.dtype)}))
        _refuse(name, f"expected tensors of one type, float32 or float64, got {shown}")


def _check_boxes(name: str, boxes: Tensor, scores: Tensor, labels: Tensor | None, columns: int) -> Tensor | None:
    _on_one_device(name, *((boxes, scores) if labels is None else (boxes, scores, labels)))
    _expect_floats(name, boxes, scores)
    if boxes.ndim != 2 or boxes.shape[1] != columns:
        _refuse(name, f"expected boxes of shape (N, {columns}), got {tuple(boxes.shape)}")
    count = boxes.shape[0]
    if scores.ndim != 1 or scores.shape[0] != count:
        _refuse(name, f"expected scores of shape ({count},), got {tuple(scores.shape)}")
    if labels is None:
        return None
    if labels.ndim != 1 or labels.shape[0] != count:
        _refuse(name, f"expected labels of shape ({count},), got {tuple(labels.shape)}")
    if labels.is_floating_point():
        _refuse(name, f"expected labels of an integer type, got {labels.dtype}")
    return labels.to(torch.int64)


def nms(boxes: Tensor, scores: Tensor, iou_threshold: float) -> Tensor:
    """Return the numbers of the boxes that no box with a higher score overlaps too much, by descending score.

    The result is that of ``torchvision.ops.nms`` on the CPU, also for CUDA tensors.

    Args:
        boxes: (N, 4), ``x0, y0, x1, y1``.
        scores: (N,).
        iou_threshold: overlap above which the box with the lower score is suppressed.
    """
    _check_boxes("nms", boxes, scores, None, 4)
    return _ops.nms(boxes, scores, None, float(iou_threshold), False)  # type: ignore[no-any-return]


def batched_nms(boxes: Tensor, scores: Tensor, idxs: Tensor, iou_threshold: float) -> Tensor:
    """Return the numbers of the boxes that no better box of the same category overlaps too much, by descending score.

    The result is that of ``torchvision.ops.nms`` on each category. torchvision's own ``batched_nms`` shifts categories
    apart by coordinates if there are few boxes, whose rounding may keep other boxes.

    Args:
        boxes: (N, 4), ``x0, y0, x1, y1``.
        scores: (N,).
        idxs: categories (N,), whole numbers.
        iou_threshold: overlap above which the box with the lower score is suppressed.
    """
    labels = _check_boxes("batched_nms", boxes, scores, idxs, 4)
    return _ops.nms(boxes, scores, labels, float(iou_threshold), False)  # type: ignore[no-any-return]


def nms_rotated(boxes: Tensor, scores: Tensor, iou_threshold: float, idxs: Tensor | None = None) -> Tensor:
    """Return the numbers of the rotated boxes that no better box overlaps too much, by descending score.

    Args:
        boxes: (N, 5): centre x, centre y, width, height, degrees (torchvision's format CXCYWHR).
        scores: (N,).
        iou_threshold: overlap above which the box with the lower score is suppressed.
        idxs: categories (N,); boxes of different ones are not compared.
    """
    labels = _check_boxes("nms_rotated", boxes, scores, idxs, 5)
    return _ops.nms(boxes, scores, labels, float(iou_threshold), True)  # type: ignore[no-any-return]


def soft_nms(
    boxes: Tensor,
    scores: Tensor,
    idxs: Tensor | None = None,
    *,
    method: str = "gaussian",
    iou_threshold: float = 0.5,
    sigma: float = 0.5,
    min_score: float = 0.001,
) -> tuple[Tensor, Tensor]:
    """Return the numbers of the boxes in the order of their selection, and their decayed scores (Soft-NMS).

    Args:
        boxes: (N, 4), ``x0, y0, x1, y1``.
        scores: (N,).
        idxs: categories (N,); boxes of different ones are not compared.
        method: "linear": overlaps above ``iou_threshold`` multiply the score by ``1 - IoU``. "gaussian": each overlap
            multiplies it by ``exp(-IoU**2 / sigma)``.
        iou_threshold: threshold of "linear".
        sigma: width of "gaussian".
        min_score: boxes with lower scores are dropped.
    """
    labels = _check_boxes("soft_nms", boxes, scores, idxs, 4)
    _require(method in ("linear", "gaussian"), "soft_nms", f'expected "linear" or "gaussian", got {method!r}')
    _require(sigma > 0, "soft_nms", f"expected `sigma` above 0, got {sigma}")
    arguments = (method == "gaussian", float(iou_threshold), float(sigma), float(min_score))
    return _ops.soft_nms(boxes, scores, labels, *arguments)  # type: ignore[no-any-return]


def _regions(name: str, x: Tensor, boxes: Tensor | Sequence[Tensor]) -> Tensor:
    """Return regions (K, 5): the number of the image and the box."""
    if not isinstance(boxes, Tensor):
        for b in boxes:
            _require(b.ndim == 2 and b.shape[1] == 4, name, f"expected boxes of shape (N, 4), got {tuple(b.shape)}")
        _require(len(boxes) > 0, name, "expected a tensor of boxes for each image, got an empty list")
        boxes = torch.cat([torch.cat([b.new_full((len(b), 1), i), b], 1) for i, b in enumerate(boxes)])
    _on_one_device(name, x, boxes)
    _expect_floats(name, x, boxes)
    _require(x.ndim == 4, name, f"expected an input of shape (N, C, H, W), got {tuple(x.shape)}")
    text = f"expected boxes of shape (K, 5), or a list of (N, 4) for each image, got {tuple(boxes.shape)}"
    _require(boxes.ndim == 2 and boxes.shape[1] == 5, name, text)
    return boxes


def _size(name: str, size: int | Sequence[int]) -> tuple[int, int]:
    sizes = (size, size) if isinstance(size, int) else tuple(size)
    ok = len(sizes) == 2 and all(1 <= n <= 1 << 15 for n in sizes)
    _require(ok, name, f"expected an `output_size` of one or two numbers from 1 to 2**15, got {size}")
    return int(sizes[0]), int(sizes[1])


def roi_align(
    input: Tensor,
    boxes: Tensor | Sequence[Tensor],
    output_size: int | Sequence[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
    mode: str = "avg",
) -> Tensor:
    """Pool regions into bins, with linear interpolation: ``torchvision.ops.roi_align`` with its bits on the CPU.

    CUDA tensors give the same bits. Regions that the CPU refuses (a feature map that does not exist, coordinates that
    are not finite, too many samples) become NaN there: an error would have to wait for the GPU.

    Returns:
        The pooled regions (K, C, height, width). Gradients reach ``input``, not the boxes, and are repeatable.

    Args:
        input: (N, C, H, W); channels_last is the fastest.
        boxes: (K, 5), the number of the image and ``x0, y0, x1, y1``; or a list of (L, 4), one for each image.
        output_size: bins: (height, width), or one number for both.
        spatial_scale: factor from the boxes' coordinates to pixels of the input.
        sampling_ratio: samples of a bin along each axis; 0 or less: the size of the bin in pixels, rounded up.
        aligned: shift the samples by half a pixel.
        mode: "avg", or "max": the maximum of a bin's samples.
    """
    rois = _regions("roi_align", input, boxes)
    _require(mode in ("avg", "max"), "roi_align", f'expected `mode` "avg" or "max", got {mode!r}')
    numbers = (float(spatial_scale), *_size("roi_align", output_size), max(int(sampling_ratio), 0), bool(aligned))
    if mode == "max":
        return _ops.roi_align_max(input, rois, *numbers)[0]  # type: ignore[no-any-return]
    return _ops.roi_align(input, rois, *numbers)  # type: ignore[no-any-return]


def roi_pool(
    input: Tensor, boxes: Tensor | Sequence[Tensor], output_size: int | Sequence[int], spatial_scale: float = 1.0
) -> Tensor:
    """Take the maximum of the pixels in each bin of regions: ``torchvision.ops.roi_pool`` with its bits on the CPU.

    CUDA tensors give the same bits; regions that the CPU refuses become NaN there.

    Returns:
        The pooled regions (K, C, height, width). Gradients reach ``input`` and are repeatable.

    Args:
        input: (N, C, H, W).
        boxes: (K, 5), the number of the image and ``x0, y0, x1, y1``; or a list of (L, 4), one for each image.
        output_size: bins: (height, width), or one number for both.
        spatial_scale: factor from the boxes' coordinates to pixels of the input.
    """
    rois = _regions("roi_pool", input, boxes)
    return _ops.roi_pool(input, rois, float(spatial_scale), *_size("roi_pool", output_size))[0]  # type: ignore[no-any-return]


_IMAGE_TYPES = (torch.uint8, torch.uint16, torch.int16, torch.int32, torch.float32)


def warp_affine(
    images: Tensor,
    matrices: Tensor,
    size: int | Sequence[int] | None = None,
    *,
    interpolation: str = "linear",
    fill: float | Sequence[float] | None = 0.0,
) -> Tensor:
    """Warp each image of a batch by a matrix of its own.

    The pixels are those of ``fn.warp_affine``: equal to Pillow's ``Image.transform``. float32 images have a gradient,
    which is repeatable bit for bit; matrices have none. CUDA tensors give the same bits. An image whose matrix is not
    finite, which the CPU refuses, is all ``fill`` there (0 for None): an error would have to wait for the GPU.

    Args:
        images: (N, C, H, W), uint8, uint16, int16, int32 or float32; channels_last, which the result then is too, is
            the fastest.
        matrices: (N, 2, 3) floating-point numbers: the source point of the output pixel with centre (x + 0.5, y + 0.5).
        size: (height, width) of the output; by default that of the images.
        interpolation: "linear" or "nearest".
        fill: value of points outside the image, or one for each channel; None: the nearest pixel of the border.
    """
    _on_one_device("warp_affine", images, matrices)
    _require(images.ndim == 4, "warp_affine", f"expected images of shape (N, C, H, W), got {tuple(images.shape)}")
    names = ", ".join(str(t).removeprefix("torch.") for t in _IMAGE_TYPES)
    _require(images.dtype in _IMAGE_TYPES, "warp_affine", f"expected images of type {names}, got {images.dtype}")
    ok = matrices.shape == (images.shape[0], 2, 3) and matrices.is_floating_point()
    text = f"expected floating-point matrices of shape ({images.shape[0]}, 2, 3), got {tuple(matrices.shape)}"
    _require(ok, "warp_affine", text)
    text = f'expected `interpolation` "linear" or "nearest", got {interpolation!r}'
    _require(interpolation in ("linear", "nearest"), "warp_affine", text)
    fills = [] if fill is None else [float(fill)] if isinstance(fill, (int, float)) else [float(f) for f in fill]
    ok = len(fills) in (0, 1, images.shape[1])
    _require(ok, "warp_affine", f"expected one `fill`, or one for each of {images.shape[1]} channels, got {len(fills)}")
    height, width = tuple(images.shape[2:]) if size is None else _size("warp_affine", size)
    return _ops.warp_affine(images, matrices, height, width, interpolation == "linear", fills)  # type: ignore[no-any-return]
