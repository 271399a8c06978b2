# SPDX-License-Identifier: Apache-2.0
"""Reference of ``_arithmetic`` in plain NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...contract.types import DType
from .cast import cast_array

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt, "exp": np.exp, "log": np.log, "log2": np.log2,
    "log10": np.log10, "floor": np.floor, "ceil": np.ceil, "sin": np.sin, "cos": np.cos, "tan": np.tan,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "fabs": np.abs,
    "div": np.divide, "fpow": np.power, "atan2": np.arctan2,
}  # fmt: skip
_COMPARE: dict[str, Callable[..., Any]] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal
}  # fmt: skip
_PLAIN: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative, "abs": np.abs, "not": np.invert,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "min": lambda a, b: np.where(b < a, b, a), "max": lambda a, b: np.where(a < b, b, a),
    "clamp": lambda x, low, high: _PLAIN["min"](_PLAIN["max"](x, low), high),
}  # fmt: skip


def common_type(types: list[np.dtype[Any]]) -> np.dtype[Any]:
    """Return the promoted type by its rule: the widest float, or the smallest integer type that holds all, at most
    int64.
    """

    def two(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
        if "f" in (a.kind, b.kind):
            return max((t for t in (a, b) if t.kind == "f"), key=lambda t: t.itemsize)
        found = np.promote_types(a, b)  # NumPy's rule differs only in choosing a float above int64
        return np.dtype(np.int64) if found.kind == "f" else found

    return functools.reduce(two, types)


def arithmetic_reference(op: str, *operands: Any) -> Any:
    """Apply ``op`` to arrays.

    Raises:
        ZeroDivisionError: integers are divided by zero.
    """
    arrays = [np.asarray(x) for x in operands]
    common = common_type([a.dtype for a in arrays])
    with np.errstate(all="ignore"):
        if op in _COMPARE:
            return _COMPARE[op](*arrays) if common.kind != "f" else _COMPARE[op](*(_to(a, common) for a in arrays))
        if op in _FUNCTIONS or (op in ("idiv", "mod", "pow") and common.kind == "f"):
            common = common if common.kind == "f" else np.dtype(np.float32)
            function = _FUNCTIONS.get(op) or {"idiv": np.divide, "mod": np.fmod, "pow": np.power}[op]
            wide = [_to(a, common).astype(np.float64) for a in arrays]
            return np.asarray(function(*wide)).astype(common)  # computed in double, rounded once
        typed = [_to(a, common) for a in arrays]
        if op in ("idiv", "mod"):
            return _divide(op, *typed)
        if op == "pow":
            return _power(*typed)
        if op in ("shl", "shr"):
            return _shift(op, *typed)
        if op == "mul" and common == np.bool_:
            op = "and"
        return np.asarray(_PLAIN[op](*typed)).astype(common)


def _to(a: Any, dtype: np.dtype[Any]) -> Any:
    return cast_array(a, DType.of(dtype)) if dtype.kind == "f" else a.astype(dtype)


def _divide(op: str, a: Any, b: Any) -> Any:
    """Divide toward zero. The remainder has the dividend's sign."""
    if np.any(b == 0) and np.broadcast(a, b).size:
        raise ZeroDivisionError("integer division by zero")
    remainder = np.where(b == -1, 0, np.fmod(a, np.where(b == -1, 1, b))) if a.dtype.kind == "i" else a % b
    if op == "mod":
        return remainder.astype(a.dtype)
    if a.dtype.kind == "u":
        return a // b
    quotient = (a - remainder) // np.where(b == -1, 1, b)
    return np.where(b == -1, np.negative(a), quotient).astype(a.dtype)


def _power(a: Any, b: Any) -> Any:
    """Raise to a power by repeated multiplication that wraps. Negative powers are 0."""
    a, b = np.broadcast_arrays(a, b)
    bits = 8 * a.dtype.itemsize
    flat = [0 if n < 0 else pow(x, n, 1 << bits) for x, n in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True)]
    return np.asarray(flat, np.uint64).reshape(a.shape).astype(f"u{a.dtype.itemsize}").view(a.dtype)


def _shift(op: str, a: Any, b: Any) -> Any:
    """Shift by counts modulo 32, or 64 for 64-bit types. Booleans count as int32."""
    dtype = a.dtype
    if dtype == np.bool_:
        a, b = a.astype(np.int32), b.astype(np.int32)
    width = 64 if a.dtype.itemsize == 8 else 32
    count = (b.astype(np.int64) & (width - 1)).astype(np.uint64)
    wide = a.astype(np.int64) if a.dtype.kind == "i" else a.astype(np.uint64)
    wide = wide << count.astype(wide.dtype) if op == "shl" else wide >> count.astype(wide.dtype)
    return wide.astype(a.dtype) if dtype != np.bool_ else wide != 0
