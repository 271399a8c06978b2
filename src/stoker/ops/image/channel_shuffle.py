# SPDX-License-Identifier: Apache-2.0
"""``channel_shuffle``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import Px, binary, load, select, uniform
from ...contract.step import Value
from ...contract.types import DType

_UNIFORM = 0  # number of the distribution in native/kernels/draw.cpp
_MOST = 16  # channels of a pixel program


class ChannelShuffle(Operator, name="channel_shuffle"):
    """Put the channels of an image into a random order. Input: images of any type with an axis C. Output: the same.

    Every order is equally probable. All frames of a video have the same order.
    """

    gives_bfloat16 = takes_bfloat16 = True
    draws = 1
    channels = arg("int", 3, doc="Number of channels, up to 16, if it is known only at run time.")
    cases = ({},)

    def lower(self, c: Lowering, x: Value) -> Value:
        at = c.axis(x, "C")
        have = x.shape[at]
        count = int(have) if ex.is_static(have) else c.const("channels")
        c.expect(0 < count <= _MOST, "expected 1 to 16 channels, got {0}", count)
        c.require(ex.equal(have, count), "expected {1} channels, got {0}. Set `channels`", have, count)
        drawn = c.native("draw", [], [(DType.FLOAT64, (count,), "")], attrs=(_UNIFORM, *c.draw), params=(0, 1))[0]
        places = _ranks([c.element(drawn, i) for i in range(count)])
        loads = [load(x.dtype, 0, k) for k in range(count)]
        program: list[Px] = []
        for out in range(count):
            value = loads[-1]
            for k in reversed(range(count - 1)):
                value = select(binary("eq", uniform(places[k], DType.INT32), out), loads[k], value)
            program.append(value)
        return c.channelled(x, program, at)

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {3: "HWC", 4: "FHWC"}[x.ndim]
        at = layout.index("C")
        drawn = [row.stream.uniform() for _ in range(x.shape[at])]
        return np.take(x, np.argsort(drawn, kind="stable"), at)


def _ranks(numbers: list[Scalar]) -> list[Scalar]:
    """Return each number's place in ascending order. Equal numbers keep their order."""
    ranks: list[Scalar] = []
    for i, a in enumerate(numbers):
        rank: Scalar = 0
        for j, b in enumerate(numbers):
            if j != i:
                rank = rank + (b <= a if j < i else b < a)
        ranks.append(rank)
    return ranks
