# SPDX-License-Identifier: Apache-2.0
"""``_recipe``: what was recorded about an image, done with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ...native import _native

_STEPS = tuple(name for name, _ in _native.recipe.OPS)
_PIXELS = _STEPS.index("Pixels")


class Recipe(Operator, name="_recipe"):
    """The steps of a recipe (``native/recipe_ops.hpp``) on an image, another recipe for every row.

    Inputs: uint8 HWC, what the recipe's first step decodes; or the bytes of its pixels, uint8 with one axis. The
    recipe, float64 with one axis: how many tables there are, for each its first byte, the bytes of a value and its
    channels, then steps. The tables, uint8 with one axis. Outputs: as many bytes as ``sizes`` says, of which a recipe
    writes what it stores; the rest is undefined. Exact: the same bits on CPU and GPU.
    """

    inputs = (3, 3)
    kind = "general"
    hidden = True
    sizes = arg("int", many=True, doc="Bytes of each output.")
    cases = ({"sizes": (8 * 9 * 3, 4 * 8 * 9 * 3)},)

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return len(args["sizes"])

    def returns_tuple(self, args: Mapping[str, Any]) -> bool:
        return True

    def lower(self, c: Lowering, image: Value, recipe: Value, tables: Value) -> tuple[Value, ...]:
        wanted = ((DType.UINT8, (1, 3)), (DType.FLOAT64, (1,)), (DType.UINT8, (1,)))
        for value, (dtype, ranks) in zip((image, recipe, tables), wanted, strict=True):
            if value.dtype != dtype or value.rank not in ranks:
                raise UnsupportedError(
                    f"`_recipe`: expected {dtype} with {ranks} axes, got {value.dtype}, {value.rank}"
                )
        sizes = c.const("sizes")
        outputs = [(DType.UINT8, (size,), "") for size in sizes]
        return c.native("recipe", [image, recipe, tables], outputs, attrs=(len(sizes),), gpu=True)

    def reference(self, row: RowContext, image: Any, recipe: Any, tables: Any) -> tuple[Any, ...]:
        """By the interpreter of whole orders, which Pillow's and torch's results are compared with."""
        count = int(recipe[0])
        told = recipe[1 : 1 + 3 * count].reshape(-1, 3).astype(np.int64)
        steps = recipe[1 + 3 * count :]
        if image.ndim == 3:
            height, width, channels = image.shape
            numbers = [_PIXELS, -1, height, width, channels, 0, 0, 0, width, height]
            steps = np.concatenate([np.array(numbers, np.float64), steps[2 + dict(_native.recipe.OPS)["Decode"] :]])
        pairs = [(tables[first : first + 256 * item * channels].copy(), int(item)) for first, item, channels in told]
        outputs = [np.zeros(-(-size // 8) * 8, np.uint8) for size in row["sizes"]]
        order = _native.recipe.order(
            steps, np.array([0, steps.size]), [np.ascontiguousarray(image).reshape(-1)], pairs, outputs
        )
        _native.recipe.make(order)
        if order.unmade:
            raise ValueError(order.unmade[0][1])
        return tuple(out[:size] for out, size in zip(outputs, row["sizes"], strict=True))
