# SPDX-License-Identifier: Apache-2.0
"""``element_extract``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value, ViewOp


class ElementExtract(Operator, name="element_extract"):
    """Take single frames of a video, or single elements along the first axis. Input: any type; the first axis is F or
    has no name. Output: one tensor for each number in ``element_map``, without the first axis. Moves no data.

    Unlike DALI, elements of a tensor with one axis are accepted: the outputs are scalars.
    """

    takes_bfloat16 = True
    element_map = arg("int", many=True, doc="Numbers of the elements, from 0; each gives an output.")
    cases = ({"element_map": (1,)},)

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.images(layout="FHWC")

    def validate(self, args: Mapping[str, Any]) -> None:
        wanted = args["element_map"]
        if not wanted:
            raise ArgumentError("`element_extract`: expected at least one number as `element_map`, got an empty list")
        if min(wanted) < 0:
            raise ArgumentError(f"`element_extract`: expected numbers from 0 in `element_map`, got {min(wanted)}")

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return len(args.get("element_map") or (0,))

    def lower(self, c: Lowering, x: Value) -> tuple[Value, ...]:
        c.expect(x.rank > 0, "expected a tensor with an axis of elements, got a scalar")
        c.expect(not x.layout or x.layout[0] == "F", f"expected the first axis to be F, got layout {x.layout!r}")
        return tuple(self._element(c, x, at) for at in c.const("element_map"))

    @staticmethod
    def _element(c: Lowering, x: Value, at: int) -> Value:
        c.require(x.shape[0] > at, "expected an element below {0}, the number of elements, got {1}", x.shape[0], at)
        out = c.view(x, [ViewOp("slice", 0, at, 1, 1), ViewOp("drop", 0)])
        return c.with_properties(out, per_frame=False) if x.per_frame else out

    def reference(self, row: RowContext, x: Any) -> Any:
        taken = tuple(np.asarray(x)[i] for i in row["element_map"])
        return taken[0] if len(taken) == 1 else taken
