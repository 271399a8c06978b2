# SPDX-License-Identifier: Apache-2.0
"""Large results of torch's own functions, in memory of large pages: masks, and patches of images.

The system clears new memory page by page when it is first written. For results of several megabytes this takes longer
than the function does, unless the pages are large. Values, shapes and strides are torch's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..materialize.materialization import allocate, is_large
from ..tensors.rearranged import filled


class LargeResults(TorchFunctionMode):
    """Mode in which torch allocates large results in large pages."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run ``func``, into memory of large pages if its result is large."""
        kwargs = kwargs or {}
        make = _MAKERS.get(func)
        result = None if make is None or (torch.is_grad_enabled() and _needs_grad(args)) else make(args, kwargs)
        return func(*args, **kwargs) if result is None else result


def _needs_grad(args: Any) -> bool:
    return any(isinstance(x, torch.Tensor) and x.requires_grad for x in args)


def _new(shape: Any, dtype: torch.dtype) -> torch.Tensor | None:
    size = math.prod(shape) * dtype.itemsize
    return allocate(size).view(dtype).view(tuple(shape)) if is_large(size) else None


def _zeros(args: Any, kwargs: Any) -> torch.Tensor | None:
    if set(kwargs) - {"dtype", "device"} or str(kwargs.get("device") or torch.get_default_device()) != "cpu":
        return None
    like = torch.zeros(*args, **{**kwargs, "device": "meta"})
    if is_large(like.numel() * like.element_size()):
        lazy = filled(like.shape, like.dtype, 0)
        if lazy is not None:
            return lazy
    memory = _new(like.shape, like.dtype)
    return None if memory is None else _owned(memory).zero_()


def _owned(x: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same memory that is no view."""
    return torch.empty(0, dtype=x.dtype).set_(x.untyped_storage(), 0, x.shape, x.stride())


def _joined(function: Callable[..., torch.Tensor], skipped: int) -> Callable[[Any, Any], torch.Tensor | None]:
    """Return the maker of a function that joins tensors, whose first ``skipped`` sides may differ."""

    def join(args: Any, kwargs: Any) -> torch.Tensor | None:
        tensors = args[0] if len(args) == 1 else None
        if not isinstance(tensors, (list, tuple)) or not tensors or kwargs not in ({}, {"dim": 0}):
            return None
        if not all(map(_is_plain, tensors)) or len({(x.dtype, x.ndim, *x.shape[skipped:]) for x in tensors}) > 1:
            return None
        like = function([torch.empty(x.shape, dtype=x.dtype, device="meta") for x in tensors])
        memory = _new(like.shape, like.dtype)
        return None if memory is None else function(tensors, out=_owned(memory))

    return join


def _is_plain(x: Any) -> bool:
    return type(x) is torch.Tensor and x.device.type == "cpu" and x.is_contiguous() and not x.requires_grad


def _reshape(args: Any, kwargs: Any) -> torch.Tensor | None:
    x = args[0]
    if kwargs or type(x) is not torch.Tensor or x.device.type != "cpu" or x.layout != torch.strided:
        return None
    if x.is_contiguous() or not is_large(x.numel() * x.element_size()):
        return None
    strided = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device="meta")
    like = strided.reshape(*args[1:])
    if like._is_view():
        return None
    memory = _new(like.shape, like.dtype)
    if memory is None:
        return None
    memory.view(x.shape).copy_(x)
    return _owned(memory)


_MAKERS: dict[Any, Callable[[Any, Any], torch.Tensor | None]] = {
    torch.zeros: _zeros,
    torch.stack: _joined(torch.stack, 0),
    torch.cat: _joined(torch.cat, 1),
    torch.Tensor.reshape: _reshape,
}
