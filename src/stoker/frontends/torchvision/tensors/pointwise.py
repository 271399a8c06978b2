# SPDX-License-Identifier: Apache-2.0
"""Pointwise operations on lazy tensors: a recorded chain of them is a table (`ir/tables.py`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..ir import recipe
from ..ir.rows import LazyRow
from ..ir.tables import map_table
from . import floats
from .tensor import LazyTensor, Recorders, copy_layout, existing_functions, leading_shape, materialize_shared


def _key(args: tuple[Any, ...]) -> Any:
    return tuple(
        (tuple(x.shape), x.dtype, _bytes_of(x)) if isinstance(x, torch.Tensor) else (type(x), number_key(x))
        for x in args
    )


def number_key(x: Any) -> Any:
    """Return a key of a number that distinguishes zeros by their sign."""
    return (x, math.copysign(1.0, x)) if not x and isinstance(x, (float, np.floating)) else x


def _bytes_of(x: torch.Tensor) -> bytes:
    # NumPy has no bfloat16.
    return (x.view(torch.int16) if x.dtype is torch.bfloat16 else x).numpy().tobytes()


def _is_constant(x: Any, channels: int) -> bool:
    """Return whether an operand is the same for all pixels of a channel."""
    if not isinstance(x, torch.Tensor):
        return isinstance(x, (int, float, np.floating, np.integer, torch.dtype))
    if issubclass(type(x), LazyTensor) or x.device.type != "cpu" or x.requires_grad or x.ndim > 3:
        return False
    shape = (1,) * (3 - x.ndim) + tuple(x.shape)
    return shape[1:] == (1, 1) and shape[0] in (1, channels)


def _pointwise(func: Any, args: Any, kwargs: Any) -> Any:
    x = args[0]
    if not issubclass(type(x), LazyTensor) or x._materialized is not None:
        return NotImplemented
    rows = _map_rows(x, func, args[1:], kwargs)
    return NotImplemented if rows is None else copy_layout(x, LazyTensor(rows, leading_shape(x)))


def _in_place(func: Any, args: Any, kwargs: Any) -> Any:
    x = args[0]
    if not issubclass(type(x), LazyTensor) or x._materialized is not None:
        return NotImplemented
    rows = _map_rows(x, func, args[1:], kwargs)
    if rows is None or materialize_shared(x):
        return NotImplemented
    x._rows = rows
    return x


def _map_rows(x: LazyTensor, func: Any, args: Any, kwargs: Any) -> list[LazyRow] | None:
    channels = x._rows[0][0].channels
    if not all(_is_constant(c, channels) for c in (*args, *kwargs.values())):
        return None
    if floats.has_floats(x):
        return _map_floats(x, func.__name__, args, kwargs)
    key = (func.__name__, _key(args), _key(tuple(kwargs.values())), *kwargs)
    return map_rows(x, key, lambda values: func(values, *args, **kwargs))


def _map_floats(x: LazyTensor, name: str, args: Any, kwargs: Any) -> list[LazyRow] | None:
    """Return the images of ``x`` after a value operation, for float images."""
    operations = floats.parse_operations(name, args, kwargs, x._rows[0].node.channels)
    nodes = [floats.float_node(row) for row in x._rows]
    if operations is None or any(node is None for node in nodes):
        return None
    if not operations:
        return list(x._rows)
    return [floats.float_row(floats.add_operations(node, operations)) for node in nodes if node is not None]


def map_rows(x: LazyTensor, key: Any, function: Callable[[torch.Tensor], Any]) -> list[LazyRow] | None:
    """Return the images of ``x`` with mapped tables; None if that cannot be recorded."""
    rows = []
    for node, table, patches in x._rows:
        after = None if patches or node.is_float or node.op == recipe.RAW else map_table(table, key, function)
        if after is None:
            return None
        rows.append(LazyRow(node, after))
    return rows


def _as_type(func: Any, args: Any, kwargs: Any) -> Any:
    """Record ``float()`` and the like, as ``to``: a tensor of that type is returned itself."""
    return _to(func, (*args, _TYPES[func]), kwargs) if len(args) == 1 and not kwargs else NotImplemented


def _to(func: Any, args: Any, kwargs: Any) -> Any:
    x = args[0]
    dtype = args[1] if len(args) == 2 else kwargs.get("dtype")
    if set(kwargs) - {"dtype"} or len(args) + len(kwargs) != 2 or not isinstance(dtype, torch.dtype):
        return NotImplemented
    if dtype == x.dtype and x._materialized is None:
        return x
    result = _pointwise(torch.Tensor.to, (x, dtype), {})
    return result if result is NotImplemented else copy_layout(x, type(x)(result._rows, leading_shape(x)))


_T = torch.Tensor
_OPERATORS = "add sub subtract mul multiply div divide true_divide neg clamp bitwise_not bitwise_and floor round"
_METHODS = "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __neg__ __and__ __invert__"
_TYPES = {_T.float: torch.float32, _T.half: torch.float16, _T.double: torch.float64}
_CHANGES = "add_ sub_ mul_ div_ neg_ clamp_ floor_ round_ __iadd__ __isub__ __imul__ __itruediv__"
FUNCTIONS: Recorders = {
    **dict.fromkeys(
        existing_functions(_T, f"{_OPERATORS} {_METHODS}") + existing_functions(torch, _OPERATORS), _pointwise
    ),
    **dict.fromkeys(existing_functions(_T, _CHANGES), _in_place),
    **dict.fromkeys(_TYPES, _as_type),
    _T.to: _to,
}
