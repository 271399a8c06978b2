# SPDX-License-Identifier: Apache-2.0
"""``permute_batch``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from .condition import require_single


class PermuteBatch(Operator, name="permute_batch"):
    """Take each row's data from another row of the same batch; moves no data.

    ``indices`` is a number per row (a node, for example of ``random.choice`` or ``batch_permutation``), or a list with
    one number for every row of the batch. An index outside of the batch is an error of the row. Since results depend
    on which rows share a batch, they change with the batch size.
    """

    kind = "gather"
    takes_bfloat16 = True
    scope = "batch"
    indices = arg("int", many=True, per_row=True, doc="Number of the row to take, counted in the batch from 0.")

    def lower(self, c: Lowering, x: Value) -> Value:
        # Rows that a condition leaves out have nothing that another row could take.
        c.expect(not c.scope.guards, "expected to be outside of `if` branches: it takes data from rows of all branches")
        index = c.pass_on("indices")
        if not isinstance(index, Value):
            index = c.apply("_row_number", numbers=index)
        c.expect(not index.dtype.is_float, f"expected whole numbers as `indices`, got {index.dtype}")
        require_single(c, index, "one index per row")
        known = [e if ex.is_static(e) else None for e in x.shape]
        out = c.opaque(x.dtype, x.rank, x.layout, known)
        # The value is an input as well, so that the plan makes it for all rows before any row takes it.
        c.emit("other_row", [index, x], [out], rows_of=1, batch_scope=True, aliases=True)
        return c.mark(out, per_frame=True) if x.per_frame else out

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """The meaning for a whole batch."""
        taken = []
        for row in rows:
            indices = np.asarray(row["indices"]).reshape(-1)
            at = int(indices[row.place[0] if isinstance(row["indices"], tuple) else 0])
            taken.append(inputs[at][0])
        return taken

    def reference(self, row: RowContext, x: Any) -> Any:
        raise NotImplementedError("a row alone has no other rows: see `run_rows`")
