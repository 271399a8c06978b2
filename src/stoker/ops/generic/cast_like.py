# SPDX-License-Identifier: Apache-2.0
"""``cast_like``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from .cast import cast_array


class CastLike(Operator, name="cast_like"):
    """Change the element type to that of another tensor. Inputs: data, and a tensor of any shape whose type is taken.
    Output: the data's shape and layout.

    Values are converted as `cast` does: floats round half to even, values outside the range saturate, NaN becomes 0.
    DALI's CPU form rounds halves away from zero.
    """

    inputs = (2, 2)
    takes_bfloat16 = True
    cases = ({},)

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return [(samples.noise(i, (n, 5), "float32"), np.zeros(i, np.int16)) for i, n in enumerate((7, 0, 12))]

    def lower(self, c: Lowering, x: Value, like: Value) -> Value:
        return c.cast(x, like.dtype)

    def reference(self, row: RowContext, x: Any, like: Any) -> Any:
        return cast_array(x, DType.of(like.dtype))
