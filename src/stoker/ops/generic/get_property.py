# SPDX-License-Identifier: Apache-2.0
"""``get_property``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value


class GetProperty(Operator, name="get_property"):
    """Return the names of a tensor's axes, or the origin of its sample. Input: any. Output: uint8 (N,).

    The names are ASCII. The origin ("source_info") is what the tensor's reader returns with ``origin=True``: the path
    of the file as UTF-8, in a container followed by `` at byte N``. The tensor must come from exactly one of the
    readers that have this argument, row by row.
    """

    devices = ("cpu",)
    takes_bfloat16 = True
    key = arg("str", doc='Name of the property: "layout" or "source_info".')
    cases = ({"key": "layout"},)

    @classmethod
    def wants_origin(cls, arguments: Mapping[str, Any]) -> bool:
        return arguments.get("key") == "source_info"

    def lower(self, c: Lowering, x: Value) -> Value:
        if c.const("key") == "source_info":
            return x
        if c.const("key") != "layout":
            raise UnsupportedError(
                f'`get_property`: expected "layout" or "source_info" as `key`, got {c.const("key")!r}'
            )
        return c.constant(np.frombuffer(x.layout.encode(), np.uint8))

    def reference(self, row: RowContext, x: Any) -> Any:
        if row["key"] == "source_info":
            return x
        return np.frombuffer((row.layouts[0] if row.layouts else "").encode(), np.uint8)
