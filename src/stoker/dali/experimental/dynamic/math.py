# SPDX-License-Identifier: Apache-2.0
"""Mathematical functions of tensors and batches, element by element (as ``nvidia.dali.experimental.dynamic.math``).

Integers become float32 (``abs``, ``min``, ``max``, ``pow`` and ``clamp`` keep them).
"""

from ....frontends.dali.dynamic.tensors import elementwise as _elementwise

sqrt = _elementwise("sqrt", "Return the square root.", "input")
rsqrt = _elementwise("rsqrt", "Return the reciprocal of the square root.", "input")
cbrt = _elementwise("cbrt", "Return the cube root.", "input")
exp = _elementwise("exp", "Return e to the power of the elements.", "input")
log = _elementwise("log", "Return the natural logarithm.", "input")
log2 = _elementwise("log2", "Return the logarithm to the base 2.", "input")
log10 = _elementwise("log10", "Return the logarithm to the base 10.", "input")
abs = _elementwise("abs", "Return the absolute value.", "input")
fabs = _elementwise("fabs", "Return the absolute value as a float.", "input")
floor = _elementwise("floor", "Return the largest whole number up to each element, as a float.", "input")
ceil = _elementwise("ceil", "Return the smallest whole number from each element on, as a float.", "input")
sin = _elementwise("sin", "Return the sine.", "input")
cos = _elementwise("cos", "Return the cosine.", "input")
tan = _elementwise("tan", "Return the tangent.", "input")
asin = _elementwise("asin", "Return the inverse sine.", "input")
acos = _elementwise("acos", "Return the inverse cosine.", "input")
atan = _elementwise("atan", "Return the inverse tangent.", "input")
sinh = _elementwise("sinh", "Return the hyperbolic sine.", "input")
cosh = _elementwise("cosh", "Return the hyperbolic cosine.", "input")
tanh = _elementwise("tanh", "Return the hyperbolic tangent.", "input")
asinh = _elementwise("asinh", "Return the inverse hyperbolic sine.", "input")
acosh = _elementwise("acosh", "Return the inverse hyperbolic cosine.", "input")
atanh = _elementwise("atanh", "Return the inverse hyperbolic tangent.", "input")
min = _elementwise("min", "Return the smaller elements.", "left", "right")
max = _elementwise("max", "Return the larger elements.", "left", "right")
pow = _elementwise("pow", "Return powers. Integers stay integers.", "base", "exponent")
fpow = _elementwise("fpow", "Return powers as floats.", "base", "exponent")
atan2 = _elementwise("atan2", "Return the angle of the point (x, y) in radians, from -pi to pi.", "y", "x")
clamp = _elementwise("clamp", "Limit the elements to a range.", "value", "lo", "hi")
