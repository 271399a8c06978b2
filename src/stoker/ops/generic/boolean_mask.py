# SPDX-License-Identifier: Apache-2.0
"""``boolean_mask``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, LaunchPass, Value
from ...contract.types import DType

_ELEMENTS = 2048  # of a block on a GPU that copies (native/device/own_booleanmask.cuh)


class BooleanMask(Operator, name="boolean_mask"):
    """Keep the elements along the first axis where a mask is true: boxes above a score, audio that is not silent.

    Inputs: data of at least one axis, and a mask of type bool with one axis, as long as the first axis of the data.
    Output: the kept elements in their order. Rows have different lengths; without a true element a row is empty. Exact.

    On a GPU the length of a row is known when the batch is done. There, operators on single elements may follow, others
    are refused.
    """

    inputs = (2, 2)
    takes_bfloat16 = True
    cases = ({},)

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        data = [samples.noise(i, (n, 4), "float32") for i, n in enumerate((9, 0, 40, 6))]
        masks = [x[:, 0] > limit for x, limit in zip(data, (130, 0, 100, 999), strict=True)]
        return samples.each(*zip(data, masks, strict=True))

    def lower(self, c: Lowering, x: Value, mask: Value) -> Value:
        c.expect(x.rank > 0, "expected data with at least one axis, got a single element")
        c.expect(
            mask.dtype == DType.BOOL and mask.rank == 1,
            f"expected a mask of type bool with one axis, got {mask.dtype} with {mask.rank}; comparisons give bool",
        )
        c.require(
            ex.equal(mask.shape[0], x.shape[0]),
            "expected a mask with one element for each of the {0} along the first axis, got {1}",
            x.shape[0],
            mask.shape[0],
        )
        blocks = (math.prod(x.shape) + _ELEMENTS - 1) // _ELEMENTS
        own = Launches("BooleanMask", {"place": LaunchPass(1, 1024), "copy": blocks}, 4 * x.shape[0])
        outputs = [(x.dtype, (None, *x.shape[1:]), x.layout)]
        kept, _ = c.native("boolean_mask", [x, mask], outputs, max_output=x.shape[0], own=own)
        return kept

    def reference(self, row: RowContext, x: Any, mask: Any) -> Any:
        return np.asarray(x)[np.asarray(mask)]
