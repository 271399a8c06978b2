# SPDX-License-Identifier: Apache-2.0
"""``segmentation.polygon_masks``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.painting import paint_parts
from ...contract.step import Value
from ...contract.types import DType

_MOST_COORDINATE = 1 << 20  # as kMaxCoordinate in native/container/masks.hpp


class PolygonMasks(Operator, name="segmentation.polygon_masks"):
    """Paint a mask for each object from its polygons, as models for instance segmentation take them.

    Inputs: polygons, int32 (P, 3): object, first vertex, end; vertices in pixels, float32 (V, 2); the objects, anything
    with an element for each along the first axis, such as boxes or labels; an image, whose height and width the masks
    get. Output: masks (N, H, W), uint8, 1 within an object's polygons, else 0. Objects without polygons have a mask of
    zeros. Polygons must not share vertices.

    `readers.coco` with `polygon_masks` reads polygons in this form, and `geometry` moves them. The pixels are those of
    pycocotools: corners are rounded to fifths of a pixel; a pixel belongs to a polygon by the number of edges above its
    centre. The operator runs on the CPU, which reads the polygons; the masks can feed operators on a GPU.
    """

    devices = ("cpu",)
    inputs = (4, 4)
    cases = ({},)

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        polygons = np.array([[0, 0, 3], [2, 3, 7], [0, 7, 10], [2, 10, 13]], np.int32)
        vertices = [np.random.default_rng(i).uniform(-4, 24, (13, 2)).astype(np.float32) for i in range(2)]
        objects, image = np.zeros((3, 4), np.float32), samples.noise(0, (17, 21, 3))
        return [
            (polygons, vertices[0], objects, image),
            (polygons, vertices[1], objects, image[:9]),
            (polygons[:0], vertices[1][:0], objects[:0], image),
        ]

    def lower(self, c: Lowering, polygons: Value, vertices: Value, objects: Value, image: Value) -> Value:
        text = f"expected polygons of int32 with two axes, got {polygons.dtype} with {polygons.rank}"
        c.expect(polygons.dtype == DType.INT32 and polygons.rank == 2, text)
        text = f"expected vertices of float32 with two axes, got {vertices.dtype} with {vertices.rank}"
        c.expect(vertices.dtype == DType.FLOAT and vertices.rank == 2, text)
        c.expect(objects.rank > 0, "expected objects along the first axis of the third input, got a single number")
        c.require(ex.equal(polygons.shape[1], 3), "expected polygons of 3 numbers, got {0}", polygons.shape[1])
        c.require(ex.equal(vertices.shape[1], 2), "expected vertices of 2 numbers, got {0}", vertices.shape[1])
        shape = (objects.shape[0], c.extent(image, "H"), c.extent(image, "W"))
        return c.native("polygon_masks", [polygons, vertices], [(DType.UINT8, shape, "NHW")])[0]

    def reference(self, row: RowContext, polygons: Any, vertices: Any, objects: Any, image: Any) -> Any:
        layout = row.layouts[3] or {2: "HW", 3: "HWC", 4: "FHWC"}[image.ndim]
        height, width = (image.shape[layout.index(axis)] for axis in "HW")
        if ((polygons[:, 0] < 0) | (polygons[:, 0] >= len(objects))).any():
            raise ArgumentError("expected polygons of objects that exist")
        if ((polygons[:, 1] < 0) | (polygons[:, 1] > polygons[:, 2]) | (polygons[:, 2] > len(vertices))).any():
            raise ArgumentError("expected polygons with vertices that exist")
        if (polygons[:, 2] - polygons[:, 1]).sum() > len(vertices):
            raise ArgumentError("expected polygons that share no vertices")
        if not (np.abs(vertices) <= _MOST_COORDINATE).all():
            raise ArgumentError("expected vertices from -2**20 to 2**20")
        masks = np.zeros((len(objects), height, width), np.uint8)
        for number, first, end in polygons.tolist():
            words = vertices[first:end].reshape(-1).view(np.int32)
            parts = np.concatenate([np.array([1, 0, len(words)], np.int32), words])
            masks[number] |= paint_parts(parts, height, width)[..., 0].astype(np.uint8)
        return masks
