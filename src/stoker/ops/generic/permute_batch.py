# SPDX-License-Identifier: Apache-2.0
"""``permute_batch``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import ALIASES, Value
from ...contract.types import DType
from .condition import require_single


class PermuteBatch(Operator, name="permute_batch"):
    """Take each row's data from another row of the same batch; moves no data.

    ``indices`` is a number per row (a node, for example of ``random.choice`` or ``batch_permutation``), or a list with
    one number for every row of the batch. An index outside the batch is an error of the row. In a branch of an ``if``,
    the branch's rows are the batch: rows are counted among them. Results depend on which rows share a batch, so they
    change with the batch size.
    """

    takes_bfloat16 = True
    scope = "batch"
    indices = arg("int", many=True, per_row=True, doc="Number of the row to take, counted in the batch from 0.")

    def lower(self, c: Lowering, x: Value) -> Value:
        index = c.pass_on("indices")
        in_branch = bool(c.scope.guards)
        if not isinstance(index, Value):
            if in_branch:
                index = c.apply("_row_number", numbers=index)
            else:
                index = c.native("row_number", [], [(DType.INT64, (), "")], attrs=(tuple(index),))[0]
        c.expect(not index.dtype.is_float, f"expected whole numbers as `indices`, got {index.dtype}")
        require_single(c, index, "one index per row")
        if in_branch:  # a row that a condition excludes has no data for another row
            index = c.apply("_row_in_branch", index)
        known = [e if ex.is_static(e) else None for e in x.shape]
        out = c.opaque(x.dtype, x.rank, x.layout, known)
        # The value is also an input, so that the plan computes it for all rows before any row reads another one's.
        c.emit("other_row", [index, x], [out], other_rows_of=1, memory=ALIASES)
        return c.with_properties(out, per_frame=True) if x.per_frame else out

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Permute a whole batch. This is the operator's definition."""
        taken = []
        for row in rows:
            indices = np.asarray(row["indices"]).reshape(-1)
            at = int(indices[row.batch_position[0] if isinstance(row["indices"], tuple) else 0])
            taken.append(inputs[at][0])
        return taken
