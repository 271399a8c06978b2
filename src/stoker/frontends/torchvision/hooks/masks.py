# SPDX-License-Identifier: Apache-2.0
"""Masks of transforms v2: torch's nearest resize of bytes, frames, and the choice of some masks, faster than torch's.

Masks are memory of the script, which may change it at any time, so they are computed immediately.
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
from ..materialize.materialization import is_large
from ..tensors import views

_BYTES = (torch.uint8, torch.bool)


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def resize_mask(original: Callable[..., Any], mask: Any, *args: Any, **kwargs: Any) -> Any:
    """Replace the resize of masks ``(..., height, width)``."""
    usual = type(mask) is torch.Tensor and mask.dtype in _BYTES and mask.device.type == "cpu"
    if not recording.is_on() or not usual or not 2 <= mask.ndim <= 3 or not mask.numel() or not mask.is_contiguous():
        return original(mask, *args, **kwargs)
    try:
        (height, width), exact = _target(original, mask, args, kwargs)
    except (TypeError, ValueError):  # torchvision raises its own error
        return original(mask, *args, **kwargs)
    sides = height, width
    if sides == tuple(mask.shape[-2:]) or not all(type(n) is int and n > 0 for n in sides):
        return original(mask, *args, **kwargs)
    result = _new((*mask.shape[:-2], height, width), mask.dtype)
    three = (-1, *mask.shape[-2:]), (-1, height, width)
    values, values_of_result = (x.view(torch.uint8).view(shape) for x, shape in zip((mask, result), three, strict=True))
    _native.recipe.pick_nearest(values.numpy(), values_of_result.numpy(), exact)
    return result


def pad_mask(original: Callable[..., Any], mask: Any, *args: Any, **kwargs: Any) -> Any:
    """Replace the frame of one value around masks ``(..., height, width)``, if the result is large."""
    if not recording.is_on() or type(mask) is not torch.Tensor or mask.dtype not in _BYTES or mask.device.type != "cpu":
        return original(mask, *args, **kwargs)
    try:
        bound = _signature(original).bind(mask, *args, **kwargs).arguments
    except TypeError:  # torchvision raises its own error
        return original(mask, *args, **kwargs)
    sides, fill = views.parse_padding(bound.get("padding")), bound.get("fill")
    usual = bound.get("padding_mode", "constant") == "constant" and (fill is None or _is_byte(fill))
    if sides is None or not usual or not 2 <= mask.ndim <= 3 or not mask.numel():
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

    if not recording.is_on() or type(inpt) is not tv_tensors.Mask or not _is_usual_choice(inpt, params):
        return original(transform, inpt, params)
    masks = inpt.as_subclass(torch.Tensor)
    which = params["valid"].nonzero()[:, 0]
    result = _new((len(which), *masks.shape[1:]), masks.dtype)
    torch.index_select(masks, 0, which, out=result)
    return tv_tensors.wrap(result, like=inpt)


def _is_usual_choice(masks: torch.Tensor, params: Any) -> bool:
    """Return whether ``masks[params["valid"]]`` is a copy of contiguous masks."""
    valid = params.get("valid")
    if type(valid) is not torch.Tensor or valid.dtype != torch.bool or valid.device.type != "cpu" or valid.ndim != 1:
        return False
    plain = masks.device.type == "cpu" and masks.layout == torch.strided and not masks.requires_grad
    return plain and masks.ndim > 1 and masks.is_contiguous() and masks.numel() > 0 and len(masks) == len(valid)


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
