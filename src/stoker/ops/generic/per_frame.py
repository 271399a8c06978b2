# SPDX-License-Identifier: Apache-2.0
"""``per_frame``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value


class PerFrame(Operator, name="per_frame"):
    """Mark a tensor as one value per frame. Its first axis then runs along the frames of the operator that it is passed
    to.

    ``fn.rotate(video, angle=fn.per_frame(angles))`` rotates every frame by its own angle. Moves no data.
    """

    takes_bfloat16 = True
    replace = arg("bool", False, doc="Take also a tensor whose first axis has another name than F.")
    cases = ({}, {"replace": True})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.images()

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(x.rank > 0, "expected a tensor with an axis of frames, got a scalar")
        other = bool(x.layout) and x.layout[0] != "F"
        if other and not c.const("replace"):
            c.expect(False, f"expected the first axis to be F, got layout {x.layout}. Pass `replace=True`")
        return c.with_properties(x, per_frame=True, layout="F" + x.layout[1:] if x.layout else "")

    def reference(self, row: RowContext, x: Any) -> Any:
        return x
