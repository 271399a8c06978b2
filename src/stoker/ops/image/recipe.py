# SPDX-License-Identifier: Apache-2.0
"""``_recipe``: replays the recorded steps of an image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Compiled, GpuForm, Value
from ...contract.types import DType
from ...native import _native

SOURCES = (("stoker_recipe", '#include "device/recipe.cuh"\n'),)
_PARAMETERS = {name: count for name, count, *_ in _native.recipe.OPS}
_STEPS = tuple(name for name, *_ in _native.recipe.OPS)
_PIXELS = _STEPS.index("Pixels")


class Recipe(Operator, name="_recipe"):
    """Apply the steps of a recipe (``native/shared/recipe_ops.hpp``) to an image. Every row has its own recipe.

    Inputs: the decoded image, uint8 HWC, as the recipe's first step decodes it; or the bytes of its pixels, uint8 with
    one axis. The recipe, float64 with one axis: the number of tables, for each table its first byte, the bytes of a
    value and its channels, then the steps. The tables, uint8 with one axis. Outputs: as many bytes as ``sizes`` says. A
    recipe writes the bytes that it stores; the others are undefined. Exact: the same bits on CPU and GPU.
    """

    inputs = (3, 3)
    hidden = True
    sizes = arg("int", many=True, doc="Bytes of each output.")
    cases = ({"sizes": (8 * 9 * 3, 4 * 8 * 9 * 3)},)

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        """Return images of several sizes with recipes: hue rotation, a crop to 8 x 9, storing as planes and via a float
        table.
        """
        ops = {name: number for number, name in enumerate(_STEPS)}
        table = np.random.default_rng(7).normal(size=256).astype(np.float32).view(np.uint8)
        rows: samples.Rows = []
        for i, (x,) in enumerate(samples.images()):
            steps = [ops["Decode"], -1, 3, 0, 0, x.shape[1], x.shape[0], 0, ops["Hue"], 0, 40 * i]
            steps += [ops["Crop"], 1, i, 1, i + 9, 9, ops["Store"], 2, 0, 0, -1, ops["Store"], 2, 1, 0, 0]
            rows.append((x, np.array([1, 0, 4, 1, *steps], np.float64), table))
        return rows

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
        return c.native("recipe", [image, recipe, tables], outputs, attrs=(len(sizes),), gpu=GpuForm(Compiled(SOURCES)))

    def reference(self, row: RowContext, image: Any, recipe: Any, tables: Any) -> tuple[Any, ...]:
        """Run the interpreter of whole recipes. Tests compare it with Pillow and torch."""
        count = int(recipe[0])
        ranges = recipe[1 : 1 + 3 * count].reshape(-1, 3).astype(np.int64)
        steps = recipe[1 + 3 * count :]
        if image.ndim == 3:
            height, width, channels = image.shape
            numbers = [_PIXELS, -1, height, width, channels, 0, 0, 0, width, height]
            steps = np.concatenate([np.array(numbers, np.float64), steps[2 + _PARAMETERS["Decode"] :]])
        pairs = [(tables[first : first + 256 * item * channels].copy(), int(item)) for first, item, channels in ranges]
        outputs = [np.zeros(-(-size // 8) * 8, np.uint8) for size in row["sizes"]]
        batch = _native.recipe.make_batch(
            steps, np.array([0, steps.size]), [np.ascontiguousarray(image).reshape(-1)], pairs, outputs
        )
        _native.recipe.materialize(batch)
        if batch.failures:
            raise ValueError(batch.failures[0][1])
        return tuple(out[:size] for out, size in zip(outputs, row["sizes"], strict=True))
