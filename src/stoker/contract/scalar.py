# SPDX-License-Identifier: Apache-2.0
"""Operations of scalar expressions: their names, and their meaning for plain numbers.

``native/plan/scalar.hpp`` computes the same values at run time, bit for bit. Functions that differ between machines
(exp, log, sin, cos) exist only there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

# In the order of ScalarOp in native/scalar.hpp.
OPS = (
    "const", "dim", "elem", "frame", "add", "sub", "mul", "div", "floordiv", "mod", "neg", "abs", "min", "max",
    "floor", "ceil", "round_even", "round_away", "trunc", "sqrt", "exp", "log", "sin", "cos", "lt", "le", "gt", "ge",
    "eq", "ne", "and", "or", "not", "where", "float32", "isfinite", "count",
    "elem_or_only",
)  # fmt: skip
CODE = {name: i for i, name in enumerate(OPS)}
LEAVES = frozenset({"dim", "elem", "count", "elem_or_only"})  # operations that read a value


def _div(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1.0, b)


def _floor(x: float) -> float:
    return math.copysign(math.floor(x), x) if math.isfinite(x) else x  # of -0.0 it is -0.0, as in native code


def _trunc(x: float) -> float:
    return math.copysign(math.trunc(x), x) if math.isfinite(x) else x


def _round_even(x: float) -> float:
    return float(round(x)) if x and math.isfinite(x) else x


def _round_away(x: float) -> float:
    if not math.isfinite(x):
        return x
    return -float(math.floor(-x + 0.5)) if x < 0 else float(math.floor(x + 0.5))


def _float32(x: float) -> float:
    import numpy as np

    with np.errstate(over="ignore"):
        return float(np.float32(x))


EVALUATE: dict[str, Callable[..., Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _div,
    "floordiv": lambda a, b: _floor(_div(a, b)),
    "mod": lambda a, b: a - _floor(_div(a, b)) * b,
    "neg": lambda a: -a,
    "abs": abs,
    "min": lambda a, b: b if b < a else a,
    "max": lambda a, b: b if a < b else a,
    "floor": _floor,
    "ceil": lambda a: -_floor(-a),
    "round_even": _round_even,
    "round_away": _round_away,
    "trunc": _trunc,
    "sqrt": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
    "not": lambda a: not a,
    "float32": _float32,
    "isfinite": math.isfinite,
}
