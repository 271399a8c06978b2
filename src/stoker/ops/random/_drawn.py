# SPDX-License-Identifier: Apache-2.0
"""Step of the operators that draw each element of a tensor from a distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...contract.expr import Scalar, is_static
from ...contract.lowering import Lowering
from ...contract.step import Launches, Value
from ...contract.types import DType

UNIFORM, NORMAL, COIN, VALUES = range(4)  # numbers of the distributions in native/shared/draws.hpp

_ELEMENTS = 8192  # of a block on a GPU (native/device/own_draw.cuh)
_FEW = 1024  # tensors with at most as many elements are drawn on the CPU, which sends them with the batch
_WORDS = 5  # name of a row's stream


def drawn(
    c: Lowering,
    distribution: int,
    dtype: DType,
    shape: Sequence[Scalar],
    *,
    inputs: Sequence[Value] = (),
    numbers: Sequence[Scalar] = (),
) -> Value:
    """Return a tensor of random numbers. A GPU draws it, unless it is known to have few elements.

    Args:
        c: the builder; the operator declares ``draws = 1``.
        distribution: one of the numbers of this module.
        dtype: element type.
        shape: extents.
        inputs: the values to draw from, for ``VALUES``.
        numbers: parameters of the distribution.
    """
    outputs, attrs, count = [(dtype, shape, "")], (distribution, *c.draw), math.prod(shape)
    if not shape or (is_static(count) and count <= _FEW):
        return c.native("draw", inputs, outputs, attrs=attrs, params=numbers)[0]
    words = c.native("draw_stream", [], [(DType.INT32, (_WORDS,), "")], attrs=c.draw)[0]
    params = (*numbers, *(c.element(words, i) for i in range(_WORDS)))
    own = Launches("Draw", {"draw": (count + _ELEMENTS - 1) // _ELEMENTS}, constants=(distribution,))
    return c.native("draw", inputs, outputs, attrs=attrs, params=params, own=own)[0]
