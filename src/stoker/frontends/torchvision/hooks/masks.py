# SPDX-License-Identifier: Apache-2.0
"""Masks and videos of transforms v2: their mirrors, windows, frames and nearest sizes are recorded.

They are computed with their batch (`tensors/planes.py`). If a GPU computes the batch, they stay with the other targets
in host memory, so they are computed immediately: torch's nearest resize of bytes and frames, faster than torch's.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import torch

from ....native import _native
from .. import recording
from ..loader import loader
from ..materialize.materialization import is_large
from ..tensors import planes, views


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _recorded(x: Any) -> Any:
    """Return lazy planes, which may be a recorded copy of bytes; None if they are not recorded."""
    if planes.are_lazy(x):
        return x
    return planes.copy_planes(x) if recording.is_on() and not loader.is_on_gpu() else None


def mirror_rows(original: Callable[..., Any], x: Any) -> Any:
    """Record the horizontal flip of masks or of a video."""
    recorded = _recorded(x)
    return original(x) if recorded is None else planes.mirror(recorded, planes.MIRROR_ROWS)


def mirror_columns(original: Callable[..., Any], x: Any) -> Any:
    """Record the vertical flip of masks or of a video."""
    recorded = _recorded(x)
    return original(x) if recorded is None else planes.mirror(recorded, planes.MIRROR_COLUMNS)


def crop(original: Callable[..., Any], x: Any, top: Any, left: Any, height: Any, width: Any) -> Any:
    """Record a window of lazy planes; that of plain ones is a view, which costs nothing."""
    if not planes.are_lazy(x) or not all(type(n) is int for n in (top, left, height, width)):
        return original(x, top, left, height, width)
    full_height, full_width = x.shape[-2:]
    right, bottom = left + width, top + height
    if 0 <= left < right <= full_width and 0 <= top < bottom <= full_height:
        return planes.cut(x, (left, top, right, bottom))
    return original(x, top, left, height, width)


def resize_mask(original: Callable[..., Any], mask: Any, *args: Any, **kwargs: Any) -> Any:
    """Record or replace the resize of masks ``(..., height, width)``."""
    are_lazy = planes.are_lazy(mask)
    if not recording.is_on() or not 2 <= mask.ndim <= 3 or not (are_lazy or _is_usual(mask)):
        return original(mask, *args, **kwargs)
    try:
        (height, width), exact = _target(original, mask, args, kwargs)
    except (TypeError, ValueError):  # torchvision raises its own error
        return original(mask, *args, **kwargs)
    sides = height, width
    if not all(type(n) is int and n > 0 for n in sides) or (sides == tuple(mask.shape[-2:]) and not are_lazy):
        return original(mask, *args, **kwargs)
    recorded = _recorded(mask)
    if recorded is not None:
        return planes.resize_nearest(recorded, height, width, exact=exact)
    result = _new((*mask.shape[:-2], height, width), mask.dtype)
    three = (-1, *mask.shape[-2:]), (-1, height, width)
    values, values_of_result = (x.view(torch.uint8).view(shape) for x, shape in zip((mask, result), three, strict=True))
    _native.recipe.pick_nearest(values.numpy(), values_of_result.numpy(), exact)
    return result


def _is_usual(mask: Any) -> bool:
    """Return whether a mask is bytes in the memory of the CPU, without gaps."""
    usual = type(mask) is torch.Tensor and mask.dtype in planes.BYTES and mask.device.type == "cpu"
    return usual and mask.numel() > 0 and mask.is_contiguous()


def pad(original: Callable[..., Any], mask: Any, *args: Any, **kwargs: Any) -> Any:
    """Record or replace the frame of one value around masks ``(..., height, width)``, or around a video."""
    are_lazy = planes.are_lazy(mask)
    are_bytes = type(mask) is torch.Tensor and mask.dtype in planes.BYTES and mask.device.type == "cpu"
    if not recording.is_on() or not (are_lazy or are_bytes):
        return original(mask, *args, **kwargs)
    try:
        bound = _signature(original).bind(mask, *args, **kwargs).arguments
    except TypeError:  # torchvision raises its own error
        return original(mask, *args, **kwargs)
    sides, fill = views.parse_padding(bound.get("padding")), bound.get("fill")
    usual = bound.get("padding_mode", "constant") == "constant" and (fill is None or _is_byte(fill))
    if sides is None or not usual or mask.ndim < 2 or not mask.numel():
        return original(mask, *args, **kwargs)
    recorded = _recorded(mask)
    framed = None if recorded is None else planes.frame(recorded, sides, int(fill or 0))
    if framed is not None or planes.are_lazy(mask):
        return original(mask, *args, **kwargs) if framed is None else framed
    if mask.ndim > 3:
        return original(mask, *args, **kwargs)
    left, top, right, bottom = sides
    height, width = mask.shape[-2:]
    shape = (*mask.shape[:-2], top + height + bottom, left + width + right)
    if not is_large(math.prod(shape)):
        return original(mask, *args, **kwargs)
    result = _new(shape, mask.dtype).fill_(fill or 0)
    result[..., top : top + height, left : left + width] = mask
    return result


def sanitize(original: Callable[..., Any], transform: Any, inpt: Any, params: Any) -> Any:
    """Replace the choice of masks by ``SanitizeBoundingBoxes``: whole masks are copied, instead of single values."""
    from torchvision import tv_tensors

    is_mask = type(inpt) in (tv_tensors.Mask, planes.LAZY_CLASSES.get(tv_tensors.Mask))
    if not recording.is_on() or not is_mask or not _is_usual_choice(inpt, params):
        return original(transform, inpt, params)
    masks = inpt.as_subclass(torch.Tensor)
    which = params["valid"].nonzero()[:, 0]
    chosen = _chosen(masks, which.tolist())
    if chosen is not None:
        return chosen.as_subclass(tv_tensors.Mask)
    if planes.are_lazy(masks) or not masks.is_contiguous():
        return original(transform, inpt, params)
    result = _new((len(which), *masks.shape[1:]), masks.dtype)
    torch.index_select(masks, 0, which, out=result)
    return tv_tensors.wrap(result, like=inpt)


def _chosen(masks: Any, which: list[int]) -> Any:
    """Record some of the masks; None if they are not recorded. Those of plain masks alone are copied."""
    if not which or masks.ndim < 3:
        return None
    if planes.are_lazy(masks):
        return planes.choose(masks, which)
    return None if loader.is_on_gpu() else planes.copy_planes(masks, which)


def _is_usual_choice(masks: torch.Tensor, params: Any) -> bool:
    """Return whether ``masks[params["valid"]]`` is a copy of whole masks."""
    valid = params.get("valid")
    if type(valid) is not torch.Tensor or valid.dtype != torch.bool or valid.device.type != "cpu" or valid.ndim != 1:
        return False
    plain = masks.device.type == "cpu" and masks.layout == torch.strided and not masks.requires_grad
    return plain and masks.ndim > 1 and masks.numel() > 0 and len(masks) == len(valid)


def _is_byte(x: Any) -> bool:
    return type(x) in (int, float) and 0 <= x <= 255 and x == int(x)


def _new(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return an uninitialized tensor, in large pages if it is large: their first use costs less."""
    result = torch.empty(shape, dtype=dtype)
    if is_large(result.numel()):
        _native.recipe.advise_large_pages(result.view(torch.uint8).view(-1).numpy())
    return result


def _target(original: Callable[..., Any], mask: torch.Tensor, args: Any, kwargs: Any) -> tuple[list[int], bool]:
    """Return the height and the width of the result, and whether the mode is "nearest-exact"."""
    from torchvision.transforms.v2.functional import _geometry

    bound = _signature(original).bind(mask, *args, **kwargs).arguments
    height, width = mask.shape[-2:]
    size = _geometry._compute_resized_output_size((height, width), size=bound["size"], max_size=bound.get("max_size"))
    # older releases have no such argument; the newer ones' default is "nearest" too, whatever the signature says
    given = _geometry._check_interpolation(bound["interpolation"]).value if "interpolation" in bound else "nearest"
    return size, given == "nearest-exact"


# Hooks by the names of torchvision's kernels.
HOOKS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(["horizontal_flip_mask", "horizontal_flip_video"], mirror_rows),
    **dict.fromkeys(["vertical_flip_mask", "vertical_flip_video"], mirror_columns),
    **dict.fromkeys(["crop_mask", "crop_video"], crop),
    **dict.fromkeys(["pad_mask", "pad_video"], pad),
}
