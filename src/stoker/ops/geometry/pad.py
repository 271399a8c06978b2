# SPDX-License-Identifier: Apache-2.0
"""``pad``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...contract.lowering import Lowering
from ...contract.step import Value
from .padded import PadArguments


class Pad(PadArguments, name="pad"):
    """Pad tensors at the ends of their axes. Input: any type and shape. Output: the same type and layout.

    An extent is at least that of ``shape``, then rounded up to a multiple of ``align``. Without ``shape``, and where it
    is -1, it is the largest one of the batch: rows then depend on which others share their batch, so they change with
    the batch size. Give a constant ``shape`` if they must not. The fill value saturates, where DALI's wraps; an extent
    of 0 asks for nothing, where DALI takes it for -1.
    """

    cases = ({"shape": (15, 30), "axis_names": "HW"}, {"shape": (1, 1, 1), "align": 8, "fill_value": 7.0})

    @classmethod
    def depends_on_batch(cls, args: Mapping[str, Any]) -> bool:
        return not cls._knows_shape(args.get("shape"))

    @staticmethod
    def _knows_shape(shape: Any) -> bool:
        return isinstance(shape, tuple) and min(shape, default=0) >= 0

    def compose(self, c: Lowering, x: Value) -> Value:
        names = ("fill_value", "axes", "axis_names", "align", "shape")
        settings = {name: c.pass_on(name) for name in names}
        inputs = [x]
        if not self._knows_shape(settings["shape"]):
            extents = c.apply("shapes", x, dtype="int64")
            inputs.append(c.apply("_largest_extents", extents))
        out: Value = c.apply("_padded", *inputs, **settings)
        return out
