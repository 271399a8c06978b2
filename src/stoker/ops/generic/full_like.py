# SPDX-License-Identifier: Apache-2.0
"""``full_like``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from .cast import cast_array
from .full import filled


class FullLike(Operator, name="full_like"):
    """Fill a tensor of the first input's shape, type and layout with the second input, which is broadcast."""

    inputs = (2, 2)
    takes_bfloat16 = True
    cases = ({},)

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return [(x, np.float32(3)) for (x,) in samples.images()]

    def lower(self, c: Lowering, like: Value, value: Value) -> Value:
        c.expect(value.rank <= like.rank, "expected a value of at most {0} axes, got {1}", like.rank, value.rank)
        for have, want in zip(value.shape[::-1], like.shape[::-1], strict=False):
            if not ex.same(have, want):
                text = "expected a value that can be broadcast, got {0} elements for {1}"
                c.require(ex.either(ex.equal(have, 1), ex.equal(have, want)), text, have, want)
        return filled(c, value, like.dtype, like.shape, like.layout)

    def reference(self, row: RowContext, like: Any, value: Any) -> Any:
        return np.broadcast_to(cast_array(value, DType.of(like.dtype)), like.shape)
