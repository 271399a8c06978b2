# SPDX-License-Identifier: Apache-2.0
"""Dispatch by class: torchvision looks up an object's exact class, and lazy objects represent another one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..tensors.lazy_base import LazyBase


def represented_class(kind: Any) -> Any:
    """Return the class that an object would have without Stoker."""
    if issubclass(kind, LazyBase):
        return kind.represented_class
    return getattr(kind, "represents", None) or kind


def get_fill(original: Callable[[Any, Any], Any], fills: Any, kind: Any) -> Any:
    """Wrap v2's ``_get_fill``, which returns the fill value for an input's class."""
    return original(fills, represented_class(kind))


def to_dtype(original: Callable[..., Any], transform: Any, inpt: Any, params: Any) -> Any:
    """Wrap ``ToDtype.transform``, which may have a dictionary of types by class."""
    kind = represented_class(type(inpt))
    if kind is not type(inpt) and isinstance(transform.dtype, dict) and kind in transform.dtype:
        transform = copy.copy(transform)
        transform.dtype = {**transform.dtype, type(inpt): transform.dtype[kind]}
    return original(transform, inpt, params)
