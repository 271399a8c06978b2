# SPDX-License-Identifier: Apache-2.0
"""What torch's functions give for tensors without values: shapes and types of what a program will have made."""

from __future__ import annotations

from typing import Any

import torch

from .program import FUNCTIONS, IN_PLACE

META = torch.device("meta")

# What gives memory of its own, or changes what it got, and finds out shapes in torch's Python (0.2 ms a call).
_ARITHMETIC = "add sub mul neg __add__ __radd__ __sub__ __mul__ __rmul__ round torch.round"
_IN_PLACE = "add_ sub_ mul_ __iadd__ __isub__ __imul__"
REMEMBERED = frozenset(f"{_ARITHMETIC} {_IN_PLACE} roll flip".split())
BY_VALUE = frozenset(("roll", "flip"))  # which move pixels; others depend on a number's type alone
_results: dict[Any, tuple[Any, ...] | None] = {}
_MOST_RESULTS = 4096


def result_of(name: str, args: Any, kwargs: Any) -> Any:
    """What torch's function gives for tensors without values; None if it changes one, and has been tried before.

    Raises:
        Exception: torch's.
    """
    if name not in REMEMBERED:
        return FUNCTIONS[name](*args, **kwargs)
    by_value = name in BY_VALUE
    key = (name, *(_like(x, by_value) for x in args), *((k, _like(x, by_value)) for k, x in kwargs.items()))
    if key in _results:
        known = _results[key]
        return None if known is None else torch.empty_strided(known[0], known[1], dtype=known[2], device=META)
    result = FUNCTIONS[name](*args, **kwargs)
    if len(_results) >= _MOST_RESULTS:
        _results.clear()
    changes = name in IN_PLACE or "out" in kwargs
    _results[key] = None if changes else (tuple(result.shape), result.stride(), result.dtype)
    return result


def _like(x: Any, by_value: bool) -> Any:
    """What shapes and types depend on."""
    if isinstance(x, torch.Tensor):
        return tuple(x.shape), x.stride(), x.dtype
    if isinstance(x, (tuple, list)):
        return type(x), tuple(_like(y, by_value) for y in x)
    return (type(x), x) if by_value or not isinstance(x, (int, float)) else type(x)


def is_within(name: str, args: Any) -> bool:
    """Whether rows that are asked for are there, which torch does not look at without values."""
    order = args[1] if name == "__getitem__" else None
    if type(order) is not torch.Tensor or order.dtype != torch.int64 or not order.numel():
        return True
    count = args[0].shape[0]
    return bool(-count <= order.min() and order.max() < count)


def fits(name: str, args: Any) -> bool:
    """Whether torch lets the result into the tensor that is changed, which it does not look at without values."""
    if name in ("copy_", "fill_", "zero_", "__setitem__") or name not in IN_PLACE:
        return True
    with torch._C.DisableTorchFunctionSubclass():
        return torch.can_cast(torch.result_type(args[0], args[1]), args[0].dtype)
