# SPDX-License-Identifier: Apache-2.0
"""``get_property``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value


class GetProperty(Operator, name="get_property"):
    """Return a property of a tensor: the names of its axes. Input: any. Output: the names as ASCII, uint8 (N,).

    DALI's property "source_info" is refused: return the file's name from the source instead.
    """

    devices = ("cpu",)
    takes_bfloat16 = True
    key = arg("str", doc='Name of the property: "layout".')
    cases = ({"key": "layout"},)

    def lower(self, c: Lowering, x: Value) -> Value:
        if c.const("key") != "layout":
            raise UnsupportedError(
                f'`get_property`: expected "layout" as `key`, got {c.const("key")!r}. The origin of a sample is an '
                "output of its source, if the source returns it"
            )
        return c.constant(np.frombuffer(x.layout.encode(), np.uint8))

    def reference(self, row: RowContext, x: Any) -> Any:
        return np.frombuffer((row.layouts[0] if row.layouts else "").encode(), np.uint8)
