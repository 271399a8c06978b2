# SPDX-License-Identifier: Apache-2.0
"""The generator of step classes, and their match with the compiled native code."""

from __future__ import annotations

import pytest

import steps as tool
from stoker.native import _native


def test_the_table_equals_the_native_codes() -> None:
    table = tool.rows(tool.TABLE.read_text(encoding="utf-8"))
    assert [(row.name, row.on_gpu) for row in table] == [(name, on_gpu) for name, _, on_gpu, _ in _native.recipe.OPS]
    for row, (_, count, _, fields) in zip(table, _native.recipe.OPS, strict=True):
        assert len(row.fields) == len(fields.split())
        assert count == (-1 if any(not f.size for f in row.fields) else sum(f.size for f in row.fields))


@pytest.mark.parametrize(("fields", "why"), [("x0 y0", "the names of 3"), ("x[2 y", "expected `name`")])
def test_names_that_are_not_those_of_the_parameters_are_refused(fields: str, why: str) -> None:
    with pytest.raises(SystemExit, match=why):
        tool.rows(f'X(Crop, 3, true, "{fields}")  /* a window */')


def test_a_class_has_its_parameters_in_their_order() -> None:
    (row,) = tool.rows('X(Warp, 4, true, "height grid[2]:float linear") /* a sample */')
    names: dict[str, object] = {}
    exec("from typing import NamedTuple\n" + tool.declaration(row), names)
    step = names["Warp"](5, 0.5, 0.25, 1)  # type: ignore[operator]
    assert step == (5, 0.5, 0.25, 1) and step.grid == (0.5, 0.25) and step.linear == 1
    assert tool.constant("TorchResizeFloats") == "TORCH_RESIZE_FLOATS"
