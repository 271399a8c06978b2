# SPDX-License-Identifier: Apache-2.0
"""Mathematical functions of nodes, element by element, under DALI's names (``nvidia.dali.math``).

Integers become float32 (``abs``, ``min``, ``max``, ``pow`` and ``clamp`` keep them). Operands of different types and
shapes are promoted and broadcast as for ``+``.
"""

from __future__ import annotations

from typing import Any

from ..contract.errors import ArgumentError
from .data_node import DataNode


def _call(op: str, *operands: Any) -> DataNode:
    node = next((x for x in operands if isinstance(x, DataNode)), None)
    if node is None:
        raise ArgumentError(f"`math.{op}`: expected a node of a pipeline, got {operands[0]!r}. Use NumPy for numbers")
    return node.builder.call("_arithmetic", operands, {"op": op})  # type: ignore[no-any-return]


def sqrt(x: Any) -> DataNode:
    """Square root."""
    return _call("sqrt", x)


def rsqrt(x: Any) -> DataNode:
    """Reciprocal of the square root."""
    return _call("rsqrt", x)


def cbrt(x: Any) -> DataNode:
    """Cube root."""
    return _call("cbrt", x)


def exp(x: Any) -> DataNode:
    """e to the power of x."""
    return _call("exp", x)


def log(x: Any) -> DataNode:
    """Natural logarithm."""
    return _call("log", x)


def log2(x: Any) -> DataNode:
    """Logarithm to the base 2."""
    return _call("log2", x)


def log10(x: Any) -> DataNode:
    """Logarithm to the base 10."""
    return _call("log10", x)


def abs(x: Any) -> DataNode:
    """Absolute value; integers stay integers."""
    return _call("abs", x)


def fabs(x: Any) -> DataNode:
    """Absolute value as a float."""
    return _call("fabs", x)


def floor(x: Any) -> DataNode:
    """Largest integer that is not above x."""
    return _call("floor", x)


def ceil(x: Any) -> DataNode:
    """Smallest integer that is not below x."""
    return _call("ceil", x)


def sin(x: Any) -> DataNode:
    """Sine of an angle in radians; NaN from 2**50 on."""
    return _call("sin", x)


def cos(x: Any) -> DataNode:
    """Cosine of an angle in radians; NaN from 2**50 on."""
    return _call("cos", x)


def tan(x: Any) -> DataNode:
    """Tangent of an angle in radians; NaN from 2**50 on."""
    return _call("tan", x)


def asin(x: Any) -> DataNode:
    """Inverse sine, in radians."""
    return _call("asin", x)


def acos(x: Any) -> DataNode:
    """Inverse cosine, in radians."""
    return _call("acos", x)


def atan(x: Any) -> DataNode:
    """Inverse tangent, in radians."""
    return _call("atan", x)


def sinh(x: Any) -> DataNode:
    """Hyperbolic sine."""
    return _call("sinh", x)


def cosh(x: Any) -> DataNode:
    """Hyperbolic cosine."""
    return _call("cosh", x)


def tanh(x: Any) -> DataNode:
    """Hyperbolic tangent."""
    return _call("tanh", x)


def asinh(x: Any) -> DataNode:
    """Inverse hyperbolic sine."""
    return _call("asinh", x)


def acosh(x: Any) -> DataNode:
    """Inverse hyperbolic cosine."""
    return _call("acosh", x)


def atanh(x: Any) -> DataNode:
    """Inverse hyperbolic tangent."""
    return _call("atanh", x)


def min(x: Any, y: Any) -> DataNode:
    """Smaller of both values."""
    return _call("min", x, y)


def max(x: Any, y: Any) -> DataNode:
    """Larger of both values."""
    return _call("max", x, y)


def pow(base: Any, exponent: Any) -> DataNode:
    """``base ** exponent``. Integers stay integers; their negative powers are 0."""
    return _call("pow", base, exponent)


def fpow(base: Any, exponent: Any) -> DataNode:
    """``base ** exponent`` as a float."""
    return _call("fpow", base, exponent)


def atan2(y: Any, x: Any) -> DataNode:
    """Angle of the point (x, y), in radians."""
    return _call("atan2", y, x)


def clamp(x: Any, low: Any, high: Any) -> DataNode:
    """``x`` limited to the range ``low`` to ``high``."""
    return _call("clamp", x, low, high)
