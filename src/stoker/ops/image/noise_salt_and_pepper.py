# SPDX-License-Identifier: Apache-2.0
"""``noise.salt_and_pepper``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import Px, binary, load, select, uniform
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array
from ..random._elements import ElementDraws, ElementDrawsReference


class NoiseSaltAndPepper(Operator, name="noise.salt_and_pepper"):
    """Replace random pixels by one of two values. Input: numbers of any shape. Output: the same type and shape.

    All channels of a pixel are replaced together, unless ``per_channel`` is set. Channels are the axis C of the layout;
    an unnamed tensor of three axes is HWC, one of two axes has none. DALI takes the last axis of every unnamed tensor
    for channels, so that it replaces whole rows of an image without channels.

    A draw depends on the seed, the epoch, the sample and the pixel's place.
    """

    gives_bfloat16 = takes_bfloat16 = True
    draws = 1
    prob = arg("float", 0.05, per_row=True, doc="Probability of a pixel to be replaced.")
    salt_vs_pepper = arg("float", 0.5, per_row=True, doc="Probability of a replaced pixel to become salt.")
    per_channel = arg("bool", False, doc="Draw for each channel.")
    salt_val = arg(
        "float", None, per_row=True, doc="Value of salt; by default the type's largest number, 1 for floats."
    )
    pepper_val = arg(
        "float", None, per_row=True, doc="Value of pepper; by default the type's smallest number, -1 for floats."
    )
    cases = (
        {"prob": 0.3},
        {"prob": 0.5, "salt_vs_pepper": 0.8, "per_channel": True},
        {"prob": 1.0, "salt_val": 300.0, "pepper_val": 7.0},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(x.dtype != DType.BOOL, "expected numbers, got bool")
        prob, share = c.scalar("prob"), c.scalar("salt_vs_pepper")
        for name, number in (("prob", prob), ("salt_vs_pepper", share)):
            c.require(ex.both(number >= 0, number <= 1), f"expected `{name}` from 0 to 1, got {{0}}", number)
        channel = c.layout(x).find("C")
        shared = () if channel < 0 or c.const("per_channel") else (channel,)
        drawn = ElementDraws(c, x.shape, 1, shared).uniform(0)
        salt, pepper = (self._value(c, name, x.dtype, k) for k, name in enumerate(("salt_val", "pepper_val")))
        either = select(binary("lt", drawn, uniform(ex.float32(prob * share))), salt, pepper)
        program = select(binary("lt", drawn, uniform(ex.float32(prob))), either, load(x.dtype))
        return c.pointwise([x], program)

    @staticmethod
    def _value(c: Lowering, name: str, dtype: DType, pepper: int) -> Px:
        number = c.scalar(name) if c.given(name) else _default(dtype, pepper)
        return uniform(number, DType.FLOAT64).cast(dtype)

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}.get(x.ndim, "")
        shared = () if "C" not in layout or row["per_channel"] else (layout.index("C"),)
        drawn = ElementDrawsReference(row, x.shape, 1, shared).uniform(0)
        own, prob = DType.of(x.dtype), row.number("prob")
        salt, pepper = (
            cast_array(np.float64(_default(own, k) if row[name] is None else row.number(name)), own)
            for k, name in enumerate(("salt_val", "pepper_val"))
        )
        replaced = np.where(drawn < np.float32(prob * row.number("salt_vs_pepper")), salt, pepper)
        return np.where(drawn < np.float32(prob), replaced, x)


def _default(dtype: DType, pepper: int) -> float:
    if dtype.is_float:
        return -1.0 if pepper else 1.0
    info = np.iinfo(dtype.numpy)
    return float(info.min if pepper else info.max)
