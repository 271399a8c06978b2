# SPDX-License-Identifier: Apache-2.0
"""Results of torch's functions on tensors of the meta device: shapes and types for a program."""

from __future__ import annotations

from typing import Any

import torch

from .program import FUNCTIONS, IN_PLACE

META = torch.device("meta")

# Functions that return new memory or change an argument, and whose shapes torch computes in Python (0.2 ms a call).
_ARITHMETIC = "add sub mul neg __add__ __radd__ __sub__ __mul__ __rmul__ round torch.round"
_IN_PLACE = "add_ sub_ mul_ __iadd__ __isub__ __imul__"
CACHED = frozenset(f"{_ARITHMETIC} {_IN_PLACE} roll flip".split())
BY_VALUE = frozenset(("roll", "flip"))  # their shapes depend on argument values; those of others only on types
_results: dict[Any, tuple[Any, ...] | None] = {}
_MAX_RESULTS = 4096


def meta_result(name: str, args: Any, kwargs: Any) -> Any:
    """Return the result of torch's function on meta tensors; None for a repeated call that changes an argument.

    Raises:
        Exception: torch's error.
    """
    if name not in CACHED:
        return FUNCTIONS[name](*args, **kwargs)
    by_value = name in BY_VALUE
    key = (name, *(_like(x, by_value) for x in args), *((k, _like(x, by_value)) for k, x in kwargs.items()))
    if key in _results:
        known = _results[key]
        return None if known is None else torch.empty_strided(known[0], known[1], dtype=known[2], device=META)
    result = FUNCTIONS[name](*args, **kwargs)
    if len(_results) >= _MAX_RESULTS:
        _results.clear()
    changes = name in IN_PLACE or "out" in kwargs
    _results[key] = None if changes else (tuple(result.shape), result.stride(), result.dtype)
    return result


def _like(x: Any, by_value: bool) -> Any:
    """Return the part of an argument on which shapes and types depend."""
    if isinstance(x, torch.Tensor):
        return tuple(x.shape), x.stride(), x.dtype
    if isinstance(x, (tuple, list)):
        return type(x), tuple(_like(y, by_value) for y in x)
    return (type(x), x) if by_value or not isinstance(x, (int, float)) else type(x)


def has_rows_in_range(name: str, args: Any) -> bool:
    """Return whether requested rows exist, which torch does not check on meta tensors."""
    order = args[1] if name == "__getitem__" else None
    if type(order) is not torch.Tensor or order.dtype != torch.int64 or not order.numel():
        return True
    count = args[0].shape[0]
    return bool(-count <= order.min() and order.max() < count)


def can_cast_result(name: str, args: Any) -> bool:
    """Return whether torch can cast the result to the changed tensor, which it does not check on meta tensors."""
    if name in ("copy_", "fill_", "zero_", "__setitem__") or name not in IN_PLACE:
        return True
    with torch._C.DisableTorchFunctionSubclass():
        return torch.can_cast(torch.result_type(args[0], args[1]), args[0].dtype)
