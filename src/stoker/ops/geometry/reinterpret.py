# SPDX-License-Identifier: Apache-2.0
"""``reinterpret``."""

from __future__ import annotations

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.step import Value
from ._shape_arguments import ShapeArguments


class Reinterpret(ShapeArguments, name="reinterpret"):
    """Take the bytes of a tensor as elements of another type, and change the shape. Inputs: data, and optionally the
    shape. Output: the same bytes.

    The last axis is divided into elements of ``dtype``; the other arguments are those of `reshape` after that. A single
    element keeps its size; other types are an error, which ends DALI's process.
    """

    gives_bfloat16 = takes_bfloat16 = True
    inputs = (1, 2)
    dtype = arg("dtype", None, doc="Element type of the output.")
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
