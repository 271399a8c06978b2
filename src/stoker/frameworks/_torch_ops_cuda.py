# SPDX-License-Identifier: Apache-2.0
"""Kernels of the operators for detection on CUDA tensors (``_torch_ops.py`` registers them).

The results have the bits of the kernels for the CPU, and gradients are gathered in their order. NVRTC compiles the
kernels when an operator is called for the first time on a device. They run after the work of PyTorch's current stream,
whose later work waits for them.
"""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from typing import Any

import torch

from ..contract.errors import ArgumentError
from ..device.gpu import Gpu
from ._torch_ops_warp import empty_images, warp_gradient

Tensor = torch.Tensor
_WORD = 64  # boxes that one word of a mask has bits for
_GROUP = 32  # channels of a block of roi_align
_SOFT_THREADS = _KEEP_THREADS = _THREADS = 256
_MOST_BLOCKS = 2**31 - 1
_LARGEST = 2**31 - 1  # number that half a parameter of a kernel takes

NMS = ("stoker_nms_mask", "stoker_nms_keep")
SOFT_NMS = ("stoker_soft_nms",)
WARP, ADD = ("stoker_warp_rows",), ("stoker_add_in_order",)
_WARP_TYPES = {
    torch.uint8: "uint8_t", torch.uint16: "uint16_t", torch.int16: "int16_t", torch.int32: "int32_t",
    torch.float32: "float",
}  # fmt: skip
_LINEAR, _CLAMP, _FROM_LAST, _TO_LAST = 1, 2, 4, 8
ROI = ("stoker_roi_align", "stoker_roi_align_backward", "stoker_roi_pool", "stoker_roi_pool_backward")


def nms_source(kind: str, *, rotated: bool = False) -> str:
    """Return the CUDA source of the kernels ``NMS`` for boxes of type "float" or "double"; rotated ones are double."""
    box = "stoker::detect::TurnedBox" if rotated else f"stoker::detect::PlainBox<{kind}>"
    return f'#include "device/nms.cuh"\nSTOKER_NMS({box}, {kind})\n'


def soft_nms_source(kind: str) -> str:
    """Return the CUDA source of the kernel ``SOFT_NMS``."""
    return f'#include "device/nms.cuh"\nSTOKER_SOFT_NMS({kind})\n'


def roi_source(kind: str) -> str:
    """Return the CUDA source of the kernels ``ROI``."""
    return f'#include "device/roi.cuh"\nSTOKER_ROI({kind})\n'


def warp_source(dtype: torch.dtype) -> str:
    """Return the CUDA source of the kernel ``WARP`` for images of a type."""
    return f'#include "device/warp_tensor.cuh"\nSTOKER_WARP_ROWS({_WARP_TYPES[dtype]})\n'


ADD_SOURCE = '#include "device/warp_tensor.cuh"\nSTOKER_ADD_IN_ORDER\n'  # of the kernel `ADD`


class Kernels:
    """Compiled kernels on one device.

    Args:
        gpu: the open device.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._lock = threading.Lock()
        self._functions: dict[str, dict[str, Any]] = {}

    def run(self, source: str, names: Sequence[str], work: Sequence[tuple[str, int, int, Sequence[int]]],
            stream: int | None) -> None:  # fmt: skip
        """Run kernels in order.

        Args:
            source: their CUDA source.
            names: all kernels of the source.
            work: name, blocks, threads of a block, and parameters of each.
            stream: the caller's stream; None: wait for the kernels.
        """
        with self._lock:
            known = self._functions.get(source)
            if known is None:
                loaded = self._gpu.functions([(name, source) for name in names])()
                known = self._functions[source] = dict(zip(names, loaded, strict=True))
        self._gpu.device.run([(known[name], *launch) for name, *launch in work], stream)


_opened: dict[int, Kernels] = {}
_OPENING = threading.Lock()


def kernels(device: torch.device) -> Kernels:
    """Return the kernels on a CUDA device.

    Raises:
        DeviceError: the device cannot be used.
        UnsupportedError: NVRTC is not installed.
    """
    number = device.index if device.index is not None else torch.cuda.current_device()
    with _OPENING:
        if number not in _opened:
            _opened[number] = Kernels(Gpu.open(number))
        return _opened[number]


def _run(x: Tensor, source: str, names: Sequence[str], work: Sequence[tuple[str, int, int, Sequence[int]]]) -> None:
    for name, blocks, _, _ in work:
        if blocks > _MOST_BLOCKS:
            raise ArgumentError(
                f"`{name}`: expected work for at most {_MOST_BLOCKS} blocks of a GPU, got {blocks}. Divide the tensors"
            )
    stream = torch.cuda.current_stream(x.device).cuda_stream if x.device.type == "cuda" else None
    kernels(x.device).run(source, names, work, stream)


def _kind(x: Tensor) -> str:
    return "double" if x.dtype is torch.float64 else "float"


def _bits(number: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", number))[0])


def _address(x: Tensor | None) -> int:
    return 0 if x is None else x.data_ptr()


# ---- boxes ----


def nms(boxes: Tensor, scores: Tensor, labels: Tensor | None, iou_threshold: float, rotated: bool) -> Tensor:
    """Return the numbers of the kept boxes by descending score."""
    count = boxes.shape[0]
    order = torch.sort(scores.detach(), descending=True, stable=True)[1]  # NaN first
    if count == 0:
        return order
    own = boxes.detach()[order]
    own = (own.double() if rotated else own).contiguous()
    groups = None if labels is None else labels[order].contiguous()
    columns = -(-count // _WORD)
    words = own.new_empty(count * columns, dtype=torch.int64)
    dead, kept = own.new_empty(columns, dtype=torch.int64), own.new_empty(count, dtype=torch.uint8)
    compared = [_address(own), _address(groups), count, _bits(iou_threshold), _address(words)]
    visited = [_address(words), count, _address(dead), _address(kept)]
    work = [(NMS[0], columns * columns, _WORD, compared), (NMS[1], 1, _KEEP_THREADS, visited)]
    _run(own, nms_source(_kind(own), rotated=rotated), NMS, work)
    return order[kept.view(torch.bool)]


def soft_nms(
    boxes: Tensor, scores: Tensor, labels: Tensor | None, gaussian: bool, threshold: float, sigma: float, least: float
) -> tuple[Tensor, Tensor]:
    """Return the numbers of the boxes in the order of their selection, and their decayed scores."""
    count = boxes.shape[0]
    own, given = boxes.detach().contiguous(), scores.detach().contiguous()
    groups = None if labels is None else labels.contiguous()
    order, decayed = own.new_empty(count, dtype=torch.int64), torch.empty_like(given)
    if count == 0:
        return order, decayed
    room = own.new_empty(count * (given.element_size() + 1), dtype=torch.uint8)
    chosen = own.new_empty(1, dtype=torch.int64)
    parameters = [_address(own), _address(given), _address(groups), count, int(gaussian)]
    parameters += [_bits(threshold), _bits(sigma), _bits(least), *map(_address, (room, order, decayed, chosen))]
    _run(own, soft_nms_source(_kind(own)), SOFT_NMS, [(SOFT_NMS[0], 1, _SOFT_THREADS, parameters)])
    selected = int(chosen.item())
    return order[:selected].clone(), decayed[:selected].clone()


# ---- regions ----


def _features(x: Tensor) -> tuple[Tensor, bool]:
    """Return features in memory that the kernels read, and whether a pixel's channels are neighbours."""
    x = x.detach()
    last = x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous()
    return (x if last else x.contiguous()), last


def _numbers(
    count: int, shape: Sequence[int], bins: tuple[int, int], samples: int, flags: int, scale: float
) -> list[int]:
    """Return the parameters that describe a call."""
    maps, channels, height, width = (int(n) for n in shape)
    if max(maps, channels, height, width) > _LARGEST:
        raise ArgumentError(f"expected features with extents below 2**31, got {tuple(shape)}")
    pairs = ((maps, channels), (height, width), bins, (min(samples, _LARGEST), flags))
    return [count, *(a << 32 | b for a, b in pairs), _bits(scale)]


def _require_pixels(rois: Tensor, shape: Sequence[int]) -> None:
    if rois.shape[0] and not (shape[2] and shape[3]):
        raise ArgumentError(f"expected features with pixels, got {shape[2]} x {shape[3]}")


def _forward(
    name: str, x: Tensor, rois: Tensor, bins: tuple[int, int], samples: int, flags: int, scale: float, *, chooses: bool
) -> tuple[Tensor, Tensor | None]:
    _require_pixels(rois, x.shape)
    features, last = _features(x)
    shape = (rois.shape[0], x.shape[1], *bins)
    out = features.new_empty(shape)
    chosen = features.new_empty(shape, dtype=torch.int32) if chooses else None
    if out.numel():
        regions = rois.detach().contiguous()
        numbers = _numbers(rois.shape[0], x.shape, bins, samples, flags | (2 if last else 0), scale)
        parameters = [_address(features), _address(regions), *numbers, _address(out), _address(chosen)]
        blocks = shape[0] * -(-shape[1] // _GROUP) if name == ROI[0] else -(-out.numel() // _THREADS)
        _run(features, roi_source(_kind(features)), ROI, [(name, blocks, _THREADS, parameters)])
    return out, chosen


def _backward(
    name: str, grad: Tensor, rois: Tensor, chosen: Tensor | None, samples: int, flags: int, scale: float,
    shape: Sequence[int],
) -> Tensor:  # fmt: skip
    _require_pixels(rois, shape)
    maps, channels, height, width = (int(n) for n in shape)
    result = grad.new_empty((maps, height, width, channels))
    if result.numel():
        given = grad.detach().permute(0, 2, 3, 1).contiguous()
        numbers_chosen = None if chosen is None else chosen.permute(0, 2, 3, 1).contiguous()
        regions = rois.detach().contiguous()
        bins = (int(grad.shape[2]), int(grad.shape[3]))
        threads = min(_THREADS, -(-channels // 32) * 32)
        parameters = [_address(given), _address(regions), *_numbers(rois.shape[0], shape, bins, samples, flags, scale)]
        parameters += [_address(result), _address(numbers_chosen)]
        blocks = maps * height * width * -(-channels // threads)
        _run(given, roi_source(_kind(given)), ROI, [(name, blocks, threads, parameters)])
    return result.permute(0, 3, 1, 2).contiguous()


def roi_align(x: Tensor, rois: Tensor, scale: float, height: int, width: int, samples: int, aligned: bool) -> Tensor:
    """Return the means of the samples of each bin."""
    return _forward(ROI[0], x, rois, (height, width), samples, int(aligned), scale, chooses=False)[0]


def roi_align_max(
    x: Tensor, rois: Tensor, scale: float, height: int, width: int, samples: int, aligned: bool
) -> tuple[Tensor, Tensor]:
    """Return the maxima of the samples of each bin, and their numbers."""
    out, chosen = _forward(ROI[0], x, rois, (height, width), samples, int(aligned), scale, chooses=True)
    assert chosen is not None
    return out, chosen


def roi_align_backward(
    grad: Tensor, rois: Tensor, argmax: Tensor | None, scale: float, samples: int, aligned: bool, shape: Sequence[int]
) -> Tensor:
    """Return the gradient of the features."""
    return _backward(ROI[1], grad, rois, argmax, samples, int(aligned), scale, shape)


def roi_pool(x: Tensor, rois: Tensor, scale: float, height: int, width: int) -> tuple[Tensor, Tensor]:
    """Return the maxima of the pixels of each bin, and their numbers."""
    out, chosen = _forward(ROI[2], x, rois, (height, width), 0, 0, scale, chooses=True)
    assert chosen is not None
    return out, chosen


def roi_pool_backward(grad: Tensor, rois: Tensor, argmax: Tensor, scale: float, shape: Sequence[int]) -> Tensor:
    """Return the gradient of the features."""
    return _backward(ROI[3], grad, rois, argmax, 0, 0, scale, shape)


# ---- warps ----


def warp_affine(
    images: Tensor, matrices: Tensor, height: int, width: int, linear: bool, fill: Sequence[float]
) -> Tensor:
    """Return the warped images."""
    own, from_last = _features(images)
    out = empty_images(own, height, width)
    to_last = from_last and not out.is_contiguous()
    channels, from_height, from_width = (int(n) for n in images.shape[1:])
    if max(channels, from_height, from_width, height, width) > _LARGEST:
        raise ArgumentError(f"expected images with extents below 2**31, got {tuple(images.shape)}")
    if out.numel():
        numbers = matrices.detach().to(torch.float64).contiguous()
        fills = torch.tensor(list(fill), dtype=torch.float64, device=own.device) if len(fill) > 1 else None
        chosen = (_LINEAR, linear), (_CLAMP, not fill), (_FROM_LAST, from_last), (_TO_LAST, to_last)
        flags = sum(flag for flag, holds in chosen if holds)
        parameters = [*map(_address, (own, out, numbers, fills)), _bits(fill[0] if fill else 0.0)]
        parameters += [from_height << 32 | from_width, height << 32 | width, channels << 32 | flags]
        threads = min(_THREADS, max(-(-width // 32) * 32, 64))
        _run(own, warp_source(own.dtype), WARP, [(WARP[0], images.shape[0] * height, threads, parameters)])
    return out


def warp_affine_backward(grad: Tensor, matrices: Tensor, linear: bool, filled: bool, shape: Sequence[int]) -> Tensor:
    """Return the gradient of the images."""
    return warp_gradient(grad, matrices, linear, filled, shape, _add_in_order)


def _add_in_order(sums: Tensor, places: Tensor, values: Tensor) -> None:
    """Add columns in their order without atomics: those of one place are brought together."""
    channels, pixels = (int(n) for n in sums.shape)
    placed, order = torch.sort(places, stable=True)
    starts = torch.searchsorted(placed, torch.arange(pixels + 1, device=sums.device))
    added = values.contiguous()
    parameters = [*map(_address, (added, order, starts)), channels, added.shape[1], pixels, _address(sums)]
    _run(sums, ADD_SOURCE, ADD, [(ADD[0], -(-channels * pixels // _THREADS), _THREADS, parameters)])
