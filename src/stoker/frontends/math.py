# SPDX-License-Identifier: Apache-2.0
"""Mathematical functions of nodes, element by element, under DALI's names (``nvidia.dali.math``).

Integers become float32 (``abs``, ``min``, ``max``, ``pow`` and ``clamp`` keep them). Operands of different types and
shapes are promoted and broadcast as for ``+``.
"""

from __future__ import annotations

from typing import Any

from ..contract.errors import ArgumentError
from ..contract.text import brief
from .data_node import DataNode


def _call(op: str, *operands: Any) -> DataNode:
    pixel = next((x for x in operands if hasattr(x, "__stoker_math__")), None)
    if pixel is not None:  # a number in a function under `stoker.fuse`
        return pixel.__stoker_math__(op, operands)  # type: ignore[no-any-return]
    node = next((x for x in operands if isinstance(x, DataNode)), None)
    if node is None:
        raise ArgumentError(
            f"`math.{op}`: expected a node of a pipeline, got {brief(operands[0])}. Use NumPy for numbers"
        )
    return node.builder.call("_arithmetic", operands, {"op": op})  # type: ignore[no-any-return]


def sqrt(x: Any) -> DataNode:
    """Return the square root of ``x``."""
    return _call("sqrt", x)


def rsqrt(x: Any) -> DataNode:
    """Return the reciprocal of the square root of ``x``."""
    return _call("rsqrt", x)


def cbrt(x: Any) -> DataNode:
    """Return the cube root of ``x``."""
    return _call("cbrt", x)


def exp(x: Any) -> DataNode:
    """Return e to the power of ``x``."""
    return _call("exp", x)


def log(x: Any) -> DataNode:
    """Return the natural logarithm of ``x``."""
    return _call("log", x)


def log2(x: Any) -> DataNode:
    """Return the logarithm of ``x`` to the base 2."""
    return _call("log2", x)


def log10(x: Any) -> DataNode:
    """Return the logarithm of ``x`` to the base 10."""
    return _call("log10", x)


def abs(x: Any) -> DataNode:
    """Return the absolute value of ``x``. Integers stay integers."""
    return _call("abs", x)


def fabs(x: Any) -> DataNode:
    """Return the absolute value of ``x`` as a float."""
    return _call("fabs", x)


def floor(x: Any) -> DataNode:
    """Return the largest whole number up to ``x``, as a float."""
    return _call("floor", x)


def ceil(x: Any) -> DataNode:
    """Return the smallest whole number from ``x`` on, as a float."""
    return _call("ceil", x)


def sin(x: Any) -> DataNode:
    """Return the sine of ``x``, in radians, at full precision for every number."""
    return _call("sin", x)


def cos(x: Any) -> DataNode:
    """Return the cosine of ``x``, in radians, at full precision for every number."""
    return _call("cos", x)


def tan(x: Any) -> DataNode:
    """Return the tangent of ``x``, in radians, at full precision for every number."""
    return _call("tan", x)


def asin(x: Any) -> DataNode:
    """Return the arc sine of ``x`` in radians."""
    return _call("asin", x)


def acos(x: Any) -> DataNode:
    """Return the arc cosine of ``x`` in radians."""
    return _call("acos", x)


def atan(x: Any) -> DataNode:
    """Return the arc tangent of ``x`` in radians."""
    return _call("atan", x)


def sinh(x: Any) -> DataNode:
    """Return the hyperbolic sine of ``x``."""
    return _call("sinh", x)


def cosh(x: Any) -> DataNode:
    """Return the hyperbolic cosine of ``x``."""
    return _call("cosh", x)


def tanh(x: Any) -> DataNode:
    """Return the hyperbolic tangent of ``x``."""
    return _call("tanh", x)


def asinh(x: Any) -> DataNode:
    """Return the inverse hyperbolic sine of ``x``."""
    return _call("asinh", x)


def acosh(x: Any) -> DataNode:
    """Return the inverse hyperbolic cosine of ``x``."""
    return _call("acosh", x)


def atanh(x: Any) -> DataNode:
    """Return the inverse hyperbolic tangent of ``x``."""
    return _call("atanh", x)


def min(x: Any, y: Any) -> DataNode:
    """Return the smaller of ``x`` and ``y``, element by element."""
    return _call("min", x, y)


def max(x: Any, y: Any) -> DataNode:
    """Return the larger of ``x`` and ``y``, element by element."""
    return _call("max", x, y)


def pow(base: Any, exponent: Any) -> DataNode:
    """``base ** exponent``. Integers stay integers; their negative powers are 0."""
    return _call("pow", base, exponent)


def fpow(base: Any, exponent: Any) -> DataNode:
    """``base ** exponent`` as a float."""
    return _call("fpow", base, exponent)


def atan2(y: Any, x: Any) -> DataNode:
    """Return the angle of the point (``x``, ``y``) in radians, from -pi to pi."""
    return _call("atan2", y, x)


def clamp(x: Any, low: Any, high: Any) -> DataNode:
    """``x`` limited to the range ``low`` to ``high``."""
    return _call("clamp", x, low, high)
