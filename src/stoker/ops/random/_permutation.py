# SPDX-License-Identifier: Apache-2.0
"""Permutations of the rows of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.operator import RowContext


def drawn_permutation(rows: list[RowContext], places: Any) -> list[Any]:
    """Return a permutation of ``places``, an element per row."""
    if not rows:
        return []
    drawn = np.asarray([row.stream.uniform() for row in rows])
    apart = rows[0]["no_fixed_points"]
    count = len(rows)
    if apart and count == 1:
        return [ValueError("expected at least two rows for a permutation without fixed points, got one")]
    if rows[0]["allow_repetitions"]:
        others = (drawn * (count - apart)).astype(np.int64)
        return list(places[others + (apart & (others >= np.arange(count)))])
    order = np.argsort(drawn, kind="stable")
    taken = np.empty(count, np.int32)
    # A row gets the rank of its draw; without fixed points, the next row in that order.
    if apart:
        taken[order] = places[np.roll(order, -1)]
    else:
        taken[:] = places[order]
    return list(taken)
