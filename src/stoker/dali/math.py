# SPDX-License-Identifier: Apache-2.0
"""Mathematical functions of nodes, with DALI's names of their arguments (as ``nvidia.dali.math``)."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from typing import Any

from ..frontends import math as _math


def _named(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """Return the function with other names of its arguments, in its docstring too."""
    renamed = dict(zip(inspect.signature(function).parameters, names, strict=True))
    signature = inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names])

    @functools.wraps(function)
    def call(*operands: Any, **more: Any) -> Any:
        return function(*signature.bind(*operands, **more).args)

    call.__doc__ = re.sub(r"``(\w+)``", lambda m: f"``{renamed.get(m[1], m[1])}``", function.__doc__ or "")
    call.__signature__ = signature  # type: ignore[attr-defined]
    return call


abs = _named(_math.abs, "input")
acos = _named(_math.acos, "input")
acosh = _named(_math.acosh, "input")
asin = _named(_math.asin, "input")
asinh = _named(_math.asinh, "input")
atan = _named(_math.atan, "input")
atan2 = _named(_math.atan2, "x", "y")
atanh = _named(_math.atanh, "input")
cbrt = _named(_math.cbrt, "input")
ceil = _named(_math.ceil, "input")
clamp = _named(_math.clamp, "value", "lo", "hi")
cos = _named(_math.cos, "input")
cosh = _named(_math.cosh, "input")
exp = _named(_math.exp, "input")
fabs = _named(_math.fabs, "input")
floor = _named(_math.floor, "input")
fpow = _named(_math.fpow, "base", "exponent")
log = _named(_math.log, "input")
log2 = _named(_math.log2, "input")
log10 = _named(_math.log10, "input")
max = _named(_math.max, "left", "right")
min = _named(_math.min, "left", "right")
pow = _named(_math.pow, "base", "exponent")
rsqrt = _named(_math.rsqrt, "input")
sin = _named(_math.sin, "input")
sinh = _named(_math.sinh, "input")
sqrt = _named(_math.sqrt, "input")
tan = _named(_math.tan, "input")
tanh = _named(_math.tanh, "input")
