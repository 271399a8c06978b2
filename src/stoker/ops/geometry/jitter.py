# SPDX-License-Identifier: Apache-2.0
"""``jitter``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import unary
from ...contract.step import Value
from ..random._elements import ElementDraws, ElementDrawsReference
from ._map import MaskedMapArguments, height_and_width, masked, masked_reference, pixel_places

_MOST = 1 << 20


class Jitter(MaskedMapArguments, name="jitter"):
    """Move every pixel by a random number of pixels. Input: images of up to 32 bits an element, HW, HWC, CHW or these
    with a leading F. Output: the same.

    Both numbers are drawn evenly from the ``nDegree`` integers from ``-(nDegree // 2)`` on. Sources beyond the edges
    are those at the edges, so that ``fill_value`` has no effect, and with whole numbers of pixels ``interp_type`` has
    none. All channels and frames have the same numbers. A draw depends on the seed, the epoch, the sample and the
    pixel's place.
    """

    draws = 1
    nDegree = arg("int", 2, doc="Number of integers from which the moves are drawn, from 1 to 2**20.")
    cases = ({}, {"nDegree": 7}, {"nDegree": 5, "mask": 0})

    def lower(self, c: Lowering, x: Value) -> Value:
        degree = c.const("nDegree")
        c.expect(1 <= degree <= _MOST, "expected an `nDegree` from 1 to 2**20, got {0}", degree)
        size = height_and_width(c, x)
        draws = ElementDraws(c, size, 2)
        places = []
        for i, own in enumerate(pixel_places()):
            places.append(own + (unary("floor", draws.below(i, degree)) - float(degree // 2)))
        return masked(c, x, (places[0], places[1]), half=False, border="clamp")

    def reference(self, row: RowContext, x: Any) -> Any:
        def places(y: Any, x: Any, height: int, width: int) -> Any:
            draws = ElementDrawsReference(row, (height, width), 2)
            degree = row["nDegree"]
            moves = [np.floor(draws.uniform(i) * np.float32(degree)) - np.float32(degree // 2) for i in (0, 1)]
            return np.clip(y + moves[0], 0, height - 1), np.clip(x + moves[1], 0, width - 1)

        return masked_reference(row, x, places, half=False)
