# SPDX-License-Identifier: Apache-2.0
"""Settings by kind of input: torchvision looks up an object's exact class, and a lazy object stands for another one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from PIL import Image

from .image import LazyImage
from .tensor import LazyTensor


def kind_of(kind: Any) -> Any:
    """The class that an object would have without Stoker."""
    if issubclass(kind, LazyTensor):
        return getattr(kind, "stands_for", torch.Tensor)
    if issubclass(kind, LazyImage):
        return Image.Image
    return getattr(kind, "_kind", kind)


def get_fill(original: Callable[[Any, Any], Any], fills: Any, kind: Any) -> Any:
    """v2's ``_get_fill``: what an input of this class is filled with."""
    return original(fills, kind_of(kind))


def to_dtype(original: Callable[..., Any], transform: Any, inpt: Any, params: Any) -> Any:
    """``ToDtype.transform`` with a dictionary of types by class."""
    kind = kind_of(type(inpt))
    if kind is not type(inpt) and isinstance(transform.dtype, dict) and kind in transform.dtype:
        transform = copy.copy(transform)
        transform.dtype = {**transform.dtype, type(inpt): transform.dtype[kind]}
    return original(transform, inpt, params)
