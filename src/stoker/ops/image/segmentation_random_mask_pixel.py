# SPDX-License-Identifier: Apache-2.0
"""``segmentation.random_mask_pixel``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType


class RandomMaskPixel(Operator, name="segmentation.random_mask_pixel"):
    """Draw the coordinates of a pixel of a mask. Input: a mask of any type, one to eight axes. Output: a coordinate
    along each axis, int64.

    With ``foreground`` the pixel is one above ``threshold``, or equal to ``value``; all of these are equally likely. If
    there are none, and without ``foreground``, it is any pixel. A mask without pixels is an error; DALI returns numbers
    without meaning.

    The operator runs on the CPU, as in DALI: windows and shapes are computed from the coordinates before a GPU starts.
    """

    devices = ("cpu",)
    draws = 1
    foreground = arg("int", 0, per_row=True, doc="Take only pixels of the foreground where not 0.")
    threshold = arg("float", 0.0, per_row=True, doc="Pixels above it are the foreground.")
    value = arg("int", None, per_row=True, doc="Pixels equal to it are the foreground, instead of `threshold`.")
    cases = ({}, {"foreground": 1, "threshold": 100.0}, {"foreground": 1, "value": 7})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        spots = samples.noise(3, (6, 9, 4)) // 30
        return samples.each(spots, samples.noise(1, (30, 20, 4)), np.zeros((5, 4, 4), np.uint8))

    def lower(self, c: Lowering, mask: Value) -> Value:
        c.expect(mask.rank > 0, "expected a mask with at least one axis, got a single number")
        equal = c.given("value")
        if equal and c.scope_given("threshold"):
            raise ArgumentError("`segmentation.random_mask_pixel`: expected `threshold` or `value`, got both")
        wanted, limit = c.scalar("foreground"), c.scalar("value" if equal else "threshold")
        c.require(ex.equal(limit, limit), "expected a number as `threshold`, got {0}", limit)
        output = (DType.INT64, (mask.rank,), "")
        return c.native("random_mask_pixel", [mask], [output], attrs=(*c.draw, equal), params=(wanted, limit))[0]

    def reference(self, row: RowContext, mask: Any) -> Any:
        if not mask.size:
            raise ArgumentError("expected a mask with pixels, got none")
        wide = mask.astype(np.float64)
        chosen = wide > row.number("threshold") if row["value"] is None else wide == row.number("value")
        if not row.number("foreground") or not chosen.any():
            chosen = np.ones_like(chosen)
        places = np.argwhere(chosen)
        return places[min(int(row.stream.uniform() * len(places)), len(places) - 1)].astype(np.int64)
