# SPDX-License-Identifier: Apache-2.0
"""``segmentation.select_masks``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ..generic.gather import gathered


class SelectMasks(Operator, name="segmentation.select_masks"):
    """Select the polygons of some masks, in the form of `readers.coco`. Inputs: the numbers of the masks, int32 (N,),
    each once; polygons, int32 (P, 3): mask, first vertex, end; vertices, any type (V, coordinates). Outputs: the
    polygons of these masks, in the order of the numbers, and their vertices.

    A mask keeps all of its polygons; DALI keeps only the last one. The numbers must be those of masks with polygons.
    Polygons must not share vertices. The operator runs on the CPU, as in DALI: its tables are small.
    """

    devices = ("cpu",)
    inputs = (3, 3)
    outputs = 2
    takes_bfloat16 = True
    reindex_masks = arg("bool", False, doc="Masks get the numbers of their places in the first input.")
    cases = ({}, {"reindex_masks": True})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        polygons = np.array([[0, 0, 3], [1, 3, 7], [2, 7, 10], [1, 10, 13]], np.int32)
        vertices = samples.noise(5, (13, 2), "float32")
        return samples.each(*((np.array(ids, np.int32), polygons, vertices) for ids in ([1], [2, 0], [], [0, 1, 2])))

    def lower(self, c: Lowering, mask_ids: Value, polygons: Value, vertices: Value) -> tuple[Value, ...]:
        for name, x, rank in (("mask_ids", mask_ids, 1), ("polygons", polygons, 2)):
            axes = "one axis" if rank == 1 else "two axes"
            text = f"expected `{name}` of int32 with {axes}, got {x.dtype} with {x.rank}"
            c.expect(x.dtype == DType.INT32 and x.rank == rank, text)
        c.expect(vertices.rank > 0, "expected vertices with at least one axis, got a single number")
        c.require(ex.equal(polygons.shape[1], 3), "expected polygons of 3 numbers, got {0}", polygons.shape[1])
        count = vertices.shape[0]
        c.require(count < 1 << 31, "expected fewer than 2**31 vertices, got {0}", count)
        kept, firsts, _ = c.native(
            "select_polygons", [mask_ids, polygons],
            [(DType.INT32, (None, 3), polygons.layout), (DType.INT32, (None,), "")],
            attrs=(c.const("reindex_masks"),), params=(count,), max_output=polygons.shape[0],
        )  # fmt: skip
        inputs = [kept, firsts, vertices]
        numbers, _ = c.native("select_vertices", inputs, [(DType.INT32, (None,), "")], max_output=count)
        return kept, gathered(c, vertices, numbers, argument="vertices")

    def reference(self, row: RowContext, mask_ids: Any, polygons: Any, vertices: Any) -> Any:
        if ((polygons[:, 1] < 0) | (polygons[:, 1] > polygons[:, 2]) | (polygons[:, 2] > len(vertices))).any():
            raise ArgumentError("expected polygons with vertices that exist")
        if len(set(mask_ids.tolist())) < len(mask_ids):
            raise ArgumentError("expected each of `mask_ids` once")
        rows: list[tuple[int, int, int]] = []
        numbers: list[int] = []
        for place, mask in enumerate(mask_ids):
            own = polygons[polygons[:, 0] == mask]
            if not len(own):
                raise ArgumentError(f"expected `mask_ids` of masks that have polygons, got {mask}")
            for _, first, end in own.tolist():
                rows.append((place if row["reindex_masks"] else mask, len(numbers), len(numbers) + end - first))
                numbers += range(first, end)
        if len(numbers) > len(vertices):
            raise ArgumentError("expected polygons that share no vertices")
        return np.array(rows, np.int32).reshape(-1, 3), vertices[np.array(numbers, np.int64)]
