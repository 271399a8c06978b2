# SPDX-License-Identifier: Apache-2.0
"""``mixup``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import load, uniform
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array
from ._mixing import MixArguments, checked_weight, mixed_labels, mixed_labels_reference, require_pair


class MixUp(MixArguments, name="mixup"):
    """Mix two images and their labels: ``weight * x + (1 - weight) * y`` (Zhang et al., "mixup", 2018). Inputs: two
    images of one shape and type, any layout; optionally their labels: whole numbers, or floats (classes,). Outputs: the
    image, of the same type; the soft label, float32, or the type of soft labels.

    `readers.partner` reads the second sample, so that the batch size changes nothing. Products and their sum are
    rounded to float32 (float64 for float64), whole numbers half to even.
    """

    inputs = (2, 4)
    cases = ({"weight": 0.3}, {"weight": 0.8, "num_classes": 5}, {"weight": 1.0, "num_classes": 9})

    def lower(self, c: Lowering, x: Value, other: Value, *labels: Value) -> tuple[Value, ...]:
        weight = checked_weight(c)
        require_pair(c, x, other)
        wide = DType.FLOAT64 if x.dtype in (DType.FLOAT64, DType.INT64, DType.UINT64) else DType.FLOAT
        rest = ex.float32(1 - weight)
        parts = [load(x.dtype, i).cast(wide) * uniform(w, wide) for i, w in enumerate((weight, rest))]
        return (c.pointwise([x, other], (parts[0] + parts[1]).cast(x.dtype)), *mixed_labels(c, labels, weight))

    def reference(self, row: RowContext, x: Any, other: Any, *labels: Any) -> Any:
        weight = np.float32(row.number("weight"))
        if not 0 <= weight <= 1 or x.shape != other.shape:
            raise ValueError("expected a weight from 0 to 1, and images of one shape")
        own = DType.of(x.dtype)
        wide: Any = np.float64 if own in (DType.FLOAT64, DType.INT64, DType.UINT64) else np.float32
        mixed = x.astype(wide) * wide(weight) + other.astype(wide) * wide(np.float32(1) - weight)
        out = (cast_array(mixed, own), *mixed_labels_reference(row, labels, weight))
        return out if len(out) > 1 else out[0]
