# SPDX-License-Identifier: Apache-2.0
"""``transforms.combine``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ._transform import compose_matrices, read_matrix, store_matrix


class Combine(Operator, name="transforms.combine"):
    """Combine two or more affine matrices into one. Inputs: matrices ``(n, n + 1)``. Output: float32 ``(n, n + 1)``.

    The first is applied first. Products are in double.
    """

    devices = ("cpu",)
    inputs = (2, 99)
    reverse_order = arg("bool", False, doc="Apply the last matrix first.")
    cases = ({}, {"reverse_order": True})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rng = np.random.default_rng(6)
        return [tuple(rng.normal(size=(2, 3)).astype(np.float32) for _ in range(3)) for _ in range(2)]

    def lower(self, c: Lowering, *matrices: Value) -> Value:
        ordered = [read_matrix(c, m) for m in (reversed(matrices) if c.const("reverse_order") else matrices)]
        product = ordered[0]
        for matrix in ordered[1:]:
            c.expect(len(matrix) == len(product), "expected matrices of {0} rows, got {1}", len(product), len(matrix))
            product = compose_matrices(matrix, product)
        return store_matrix(c, product, matrices)

    def reference(self, row: RowContext, *matrices: Any) -> Any:
        size = matrices[0].shape[0]
        product = np.eye(size + 1)
        for matrix in reversed(matrices) if row["reverse_order"] else matrices:
            product = np.vstack([matrix.astype(np.float64), np.eye(size + 1)[-1:]]) @ product
        return product[:-1].astype(np.float32)
