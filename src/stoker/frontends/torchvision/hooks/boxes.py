# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of transforms v2 on a few boxes, in NumPy instead of torch.

``RandomIoUCrop`` tries up to 40 windows per image. Each try calls about 30 torch functions on a handful of boxes, which
takes longer than decoding the image. NumPy gives the same bits in a fifth of the time, because every operation is a
single rounding of float32. torch still draws the random numbers, in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from .. import recording

Floats = npt.NDArray[np.float32]
_EXACT = 1 << 24  # float32 rounds larger integers


def _corners(boxes: Any, box_format: Any) -> Floats | None:
    """Return boxes as x0, y0, x1, y1; None if they are unusual, so that torchvision computes."""
    from torchvision.transforms.v2.functional import convert_bounding_box_format
    from torchvision.tv_tensors import BoundingBoxFormat

    known = (BoundingBoxFormat.XYXY, BoundingBoxFormat.XYWH, BoundingBoxFormat.CXCYWH)
    plain = boxes.dtype == torch.float32 and boxes.device.type == "cpu" and boxes.ndim == 2
    if not plain or boxes.requires_grad or box_format not in known or not len(boxes):
        return None
    values = boxes.as_subclass(torch.Tensor)
    if box_format is not BoundingBoxFormat.XYXY:
        values = convert_bounding_box_format(values, box_format, BoundingBoxFormat.XYXY)
    return values.numpy()  # type: ignore[no-any-return]


def _is_number(x: Any) -> bool:
    return type(x) in (int, float)


def iou_crop_params(original: Callable[[Any, Any], Any], transform: Any, flat_inputs: Any) -> Any:
    """Replace the drawing of ``RandomIoUCrop``'s window."""
    from torchvision import tv_tensors
    from torchvision.transforms.v2 import _utils

    boxes = next((x for x in flat_inputs if isinstance(x, tv_tensors.BoundingBoxes)), None)
    numbers = (transform.min_scale, transform.max_scale, *transform.options)
    usual = torch.get_default_dtype() == torch.float32 and torch.get_default_device().type == "cpu"
    if not recording.is_on() or boxes is None or not usual or not all(map(_is_number, numbers)):
        return original(transform, flat_inputs)
    height, width = _utils.query_size(flat_inputs)
    corners = _corners(boxes, boxes.format)
    if corners is None or max(height, width) > _EXACT:
        return original(transform, flat_inputs)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # torch gives no warnings
        return _draw(transform, corners, height, width)


def _draw(transform: Any, corners: Floats, height: int, width: int) -> dict[str, Any]:
    """Return the parameters of the window that torchvision's method would draw."""
    scale, spread = np.float32(transform.min_scale), np.float32(transform.max_scale - transform.min_scale)
    sides = np.array([width, height], np.float32)
    centres = np.float32(0.5) * (corners[:, :2] + corners[:, 2:])
    areas = (corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1])
    while True:
        wanted = transform.options[int(torch.randint(low=0, high=len(transform.options), size=(1,)))]
        if wanted >= 1.0:  # the whole image
            return {}
        for _ in range(transform.trials):
            new = (sides * (scale + spread * torch.rand(2).numpy())).astype(np.int64)
            new_width, new_height = new.tolist()
            if not transform.min_aspect_ratio <= new_width / new_height <= transform.max_aspect_ratio:
                continue
            first = ((sides - new.astype(np.float32)) * torch.rand(2).numpy()).astype(np.int64)
            left, top = first.tolist()
            if not new_width or not new_height:
                continue
            after = first + new
            within = ((first < centres) & (centres < after)).all(1)
            if not within.any():
                continue
            window = np.concatenate((first, after)).astype(np.float32)
            if _largest_overlap(corners[within], areas[within], window) < np.float32(wanted):
                continue
            return {
                "top": top,
                "left": left,
                "height": new_height,
                "width": new_width,
                "is_within_crop_area": torch.from_numpy(within),
            }


def _largest_overlap(corners: Floats, areas: Floats, window: Floats) -> Any:
    """Return the largest intersection over union of boxes with a window."""
    area = (window[2] - window[0]) * (window[3] - window[1])
    inner = np.maximum(np.minimum(corners[:, 2:], window[2:]) - np.maximum(corners[:, :2], window[:2]), np.float32(0))
    shared = inner[:, 0] * inner[:, 1]
    return (shared / (areas + area - shared)).max()


def valid_boxes(
    original: Callable[..., Any], bounding_boxes: Any, format: Any, canvas_size: Any, min_size: Any, min_area: Any
) -> Any:
    """Replace ``SanitizeBoundingBoxes``'s test of each box."""
    small = isinstance(canvas_size, tuple) and max(canvas_size) <= _EXACT
    corners = None
    if recording.is_on() and small and _is_number(min_size) and _is_number(min_area):
        corners = _corners(bounding_boxes, format)
    if corners is None:
        return original(bounding_boxes, format, canvas_size, min_size, min_area)
    height, width = canvas_size
    with np.errstate(invalid="ignore", over="ignore"):
        sides = corners[:, 2:] - corners[:, :2]
        valid = (sides >= np.float32(min_size)).all(1) & (corners >= 0).all(1)
        valid &= sides[:, 0] * sides[:, 1] >= np.float32(min_area)
        valid &= (corners <= np.array([width, height, width, height], np.float32)).all(1)
    return torch.from_numpy(valid)
