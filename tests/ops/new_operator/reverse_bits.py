# SPDX-License-Identifier: Apache-2.0
"""``throwaway_reverse_bits``: an operator that exists only while tests/ops/new_operator/dry_run.sh runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, LaunchPass, Value
from ...contract.types import DType

_BYTES = 4096  # of a block on a GPU (native/device/own_reversebits.cuh)


class ReverseBits(Operator, name="throwaway_reverse_bits"):
    """Reverse the bits of every byte, and keep some. Input: uint8, any shape. Output: the same. Exact."""

    keep = 0b1000
    cases = ({},)

    def lower(self, c: Lowering, x: Value) -> Value:
        if x.dtype != DType.UINT8:
            raise UnsupportedError(f"`throwaway_reverse_bits`: expected uint8, got {x.dtype}. Cast it first")
        blocks = (math.prod(x.shape) + _BYTES - 1) // _BYTES
        own = Launches("ReverseBits", {"reverse": LaunchPass(blocks, 64, 256, 256)})
        outputs = [(x.dtype, x.shape, x.layout)]
        return c.native("throwaway_reverse_bits", [x], outputs, attrs=(self.keep,), params=(self.keep,), own=own)[0]

    def reference(self, row: RowContext, x: Any) -> Any:
        reversed_bits = np.packbits(np.unpackbits(np.ascontiguousarray(x)).reshape(-1, 8)[:, ::-1], axis=-1)
        return (reversed_bits.reshape(x.shape) & ~np.uint8(self.keep)) | (x & np.uint8(self.keep))
