# SPDX-License-Identifier: Apache-2.0
"""``reinterpret``."""

from __future__ import annotations

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator
from ...contract.step import Value


class Reinterpret(Operator, name="reinterpret"):
    """Take the bytes of a tensor as elements of another type, and change the shape. Inputs: data, and optionally the
    shape. Output: the same bytes.

    The last axis is divided into elements of ``dtype``; the other arguments are those of `reshape` after that. A single
    element keeps its size; other types are an error, which ends DALI's process.
    """

    gives_bfloat16 = takes_bfloat16 = True
    inputs = (1, 2)
    dtype = arg("dtype", None, doc="Element type of the output.")
    shape = arg("int", None, many=True, per_axis=True, per_row=True, doc="Extents; one may be -1.")
    rel_shape = arg(
        "float",
        None,
        many=True,
        per_axis=True,
        per_row=True,
        doc="Extents as shares of the input's; one may be negative.",
    )
    src_dims = arg(
        "int",
        None,
        many=True,
        per_axis=True,
        doc="Axes of the input whose extents are taken; -1: a new axis of extent 1.",
    )
    layout = arg("str", None, doc="Names of the output's axes.")
    cases = (
        {"dtype": "int8"},
        {"shape": (-1,), "dtype": "uint8"},
        {"src_dims": (2, -1, 0, 1), "layout": "CXHW"},
        {"rel_shape": (1.0, -1.0)},
    )

    def compose(self, c: Lowering, x: Value, *shape: Value) -> Value:
        out = x if c.const("dtype") is None else c.apply("_retyped", x, dtype=c.const("dtype"))
        settings = {name: c.pass_on(name) for name in ("shape", "rel_shape", "src_dims", "layout") if c.given(name)}
        if shape or settings:
            out = c.apply("reshape", out, *shape, **settings)
        return out
