# SPDX-License-Identifier: Apache-2.0
"""``_affine_polygons``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.step import Value
from ...contract.types import DType
from ._affine_objects import AffineObjectArguments, Frame, area_of, frame_numbers, require_objects


class AffinePolygons(AffineObjectArguments, name="_affine_polygons"):
    """Move polygons with their image. Inputs: polygons, int32 (P, 3): object, first vertex, end; the image; the canvas;
    vertices, float32 (V, 2); the numbers of the objects that are left, int32 (N,). Outputs: polygons and vertices,
    clipped at the canvas, with the objects' new numbers. Polygons without area are dropped.
    """

    inputs = (5, 5)
    outputs = 2
    selects = arg("bool", True, doc="Keep only polygons of the objects that are left; else all, with their numbers.")
    cases = (
        {"matrix": (0.8, 0.3, 2.0, -0.2, 0.9, 4.0)},
        {"matrix": (2.0, 0.0, -9.0, 0.0, 1.5, -3.0), "selects": False},
        {"matrix": (2.0, 0.0, -9.0, 0.0, 1.5, -3.0), "normalized": True},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rows: samples.Rows = []
        for i, (image, canvas) in enumerate(samples.images(copies=2)):
            ends = np.arange(i, 6 * i + i, 6) + np.arange(i)
            starts = np.concatenate([[0], ends[:-1]])[:i]
            polygons = np.stack([np.arange(i) % 2, starts, ends], 1).astype(np.int32)
            vertices = np.random.default_rng(i).uniform(-3, 19, (int(ends[-1]) if i else 0, 2))
            scale = 20 if case.get("normalized") else 1
            kept = np.array([1, 0][: i % 3], np.int32)
            rows.append((polygons, image, canvas, (vertices / scale).astype(np.float32), kept))
        return rows

    def lower(
        self, c: Lowering, polygons: Value, image: Value, canvas: Value, vertices: Value, kept: Value
    ) -> tuple[Value, ...]:
        text = f"expected polygons of int32 with two axes, got {polygons.dtype} with {polygons.rank}"
        c.expect(polygons.dtype == DType.INT32 and polygons.rank == 2, text)
        c.require(ex.equal(polygons.shape[1], 3), "expected polygons of 3 numbers, got {0}", polygons.shape[1])
        require_objects(c, vertices, 2, "vertices")
        count = vertices.shape[0]
        c.require(count < 1 << 28, "expected fewer than 2**28 vertices, got {0}", count)
        inputs, frame = [polygons, vertices, kept], frame_numbers(c, image, canvas)
        attrs = (c.const("selects"),)
        moved, _ = c.native(
            "affine_polygons", inputs, [(DType.INT32, (None, 3), polygons.layout)], attrs=attrs, params=frame,
            max_output=polygons.shape[0],
        )  # fmt: skip
        points, _ = c.native(
            "affine_vertices", inputs, [(DType.FLOAT, (None, 2), vertices.layout)], attrs=attrs, params=frame,
            max_output=6 * count,
        )  # fmt: skip
        return moved, points

    def reference(self, row: RowContext, polygons: Any, image: Any, canvas: Any, vertices: Any, kept: Any) -> Any:
        inside = (polygons[:, 1] >= 0) & (polygons[:, 1] <= polygons[:, 2]) & (polygons[:, 2] <= len(vertices))
        if not inside.all() or (polygons[:, 2] - polygons[:, 1]).sum() > len(vertices):
            raise ArgumentError("expected polygons with vertices that exist and that they do not share")
        frame, places = Frame.of(row, image, canvas), {int(k): i for i, k in enumerate(kept)}
        rows: list[tuple[int, int, int]] = []
        points: list[Any] = []
        for number, first, end in polygons.tolist():
            if row["selects"] and number not in places:
                continue
            moved = frame.move(vertices[first:end])
            if not np.isfinite(moved).all():
                raise ArgumentError("expected finite vertices")
            clipped = frame.clip(list(moved))
            if not area_of(clipped) > 0:
                continue
            rows.append((places[number] if row["selects"] else number, len(points), len(points) + len(clipped)))
            points += [p / frame.unit for p in clipped]
        return np.array(rows, np.int32).reshape(-1, 3), np.array(points, np.float32).reshape(-1, 2)
