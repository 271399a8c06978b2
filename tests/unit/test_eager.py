# SPDX-License-Identifier: Apache-2.0
"""Eager calls: the keys of the plan cache, and the errors of operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import stoker
from stoker import Operator, arg, eager
from stoker.contract.operator import RowContext


class Strange(Operator, name="probe.unhashable"):
    """Operator whose lowering raises TypeError. Input and output: any array."""

    table = arg("object", None, doc="Anything.")
    cases = ({},)
    calls = 0

    def lower(self, c: Any, x: Any) -> Any:
        type(self).calls += 1
        if c.const("table") is None:
            raise TypeError("unhashable type: 'operator'")
        return c.view(x, ())

    def reference(self, row: RowContext, x: Any) -> Any:
        return x


@pytest.fixture(autouse=True)
def registered() -> None:
    Strange.calls = 0
    stoker.register(Strange)


def test_a_type_error_of_an_operator_is_raised_once() -> None:
    with pytest.raises(TypeError, match="unhashable type: 'operator'"):
        eager.probe.unhashable(np.zeros(3))
    assert Strange.calls == 1


def test_arguments_that_cannot_be_hashed_are_accepted() -> None:
    x = np.arange(3)
    for table in ({"a": 1}, np.zeros(2), [[1], [2]]):
        assert np.array_equal(eager.probe.unhashable(x, table=table), x)


def test_plans_are_cached_where_arguments_can_be_hashed() -> None:
    x = np.arange(3)
    for _ in range(3):
        eager.probe.unhashable(x, table="one")
    assert Strange.calls == 1


@pytest.mark.parametrize("indices", [[2, 0, 0], np.array([2, 0, 0]), (2, 0, 0)], ids=["list", "array", "tuple"])
def test_a_list_for_an_operator_on_batches_has_an_element_per_row(indices: Any) -> None:
    """It was taken for one value that all rows share, in float64."""
    rows = [np.array([10]), np.array([20, 21]), np.array([30])]
    assert [x.tolist() for x in eager.permute_batch(rows, indices=indices)] == [[30], [10], [10]]
