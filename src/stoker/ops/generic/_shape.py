# SPDX-License-Identifier: Apache-2.0
"""Output shape of operators that create tensors: given, or that of another value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.step import Value


def requested_shape(c: Lowering, like: Sequence[Value]) -> tuple[Any, ...]:
    """Return the shape of the input ``like``, or the argument ``shape``, or a scalar's shape."""
    if like:
        return like[0].shape
    if not c.given("shape"):
        return ()
    count = c.fixed_length("shape")
    extents = tuple(c.scalar("shape", i) for i in range(count))
    for e in extents:
        c.require(e >= 0, "expected extents >= 0 in `shape`, got {0}", e)
    return extents


def requested_shape_reference(row: RowContext, like: Sequence[Any]) -> tuple[int, ...]:
    """Return the same shape in NumPy."""
    if like:
        return tuple(like[0].shape)
    return () if row["shape"] is None else tuple(int(x) for x in np.asarray(row["shape"]).reshape(-1))
