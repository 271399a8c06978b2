# SPDX-License-Identifier: Apache-2.0
"""``_affine_keypoints``."""

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
from ._affine_objects import AffineObjectArguments, Frame, frame_numbers


class AffineKeypoints(AffineObjectArguments, name="_affine_keypoints"):
    """Move points with their image. Inputs: points, float32 (..., K, 2), or (..., K, 3) with their visibility; the
    image; the canvas. Output: the same shape. A point of visibility 0 and one outside of the canvas become 0, 0, 0.
    """

    inputs = (3, 3)
    keypoint_flip_order = arg("int", (), many=True, doc="Order of the points of a mirrored object.")
    cases = (
        {"matrix": (0.8, 0.3, 2.0, -0.2, 0.9, 4.0)},
        {"matrix": (-1.0, 0.0, 9.0, 0.0, 1.0, 0.0), "keypoint_flip_order": (0, 2, 1)},
        {"matrix": (1.0, 0.0, 9.0, 0.0, 1.0, 0.0), "keypoint_flip_order": (0, 2, 1), "normalized": True},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rows: samples.Rows = []
        for i, (image, canvas) in enumerate(samples.images(copies=2)):
            points = np.random.default_rng(i).uniform(-2, 17, (2 * i, 3, 3))
            points[..., 2] = np.arange(6 * i).reshape(2 * i, 3) % 3
            rows.append((points.astype(np.float32), image, canvas))
        return rows

    def lower(self, c: Lowering, points: Value, image: Value, canvas: Value) -> Value:
        text = f"expected key points of float32 with two axes or three, got {points.dtype} with {points.rank}"
        c.expect(points.dtype == DType.FLOAT and points.rank in (2, 3), text)
        numbers = points.shape[-1]
        fits = ex.either(ex.equal(numbers, 2), ex.equal(numbers, 3))
        c.require(fits, "expected key points of 2 or 3 numbers, got {0}", numbers)
        order = c.const("keypoint_flip_order")
        if order:
            c.expect(sorted(order) == list(range(len(order))), "expected each point once in `keypoint_flip_order`")
            text = "expected {0} key points, as in `keypoint_flip_order`, got {1}"
            c.require(ex.equal(points.shape[-2], len(order)), text, len(order), points.shape[-2])
        return c.native(
            "affine_keypoints", [points], [(DType.FLOAT, points.shape, points.layout)], attrs=(tuple(order),),
            params=frame_numbers(c, image, canvas),
        )[0]  # fmt: skip

    def reference(self, row: RowContext, points: Any, image: Any, canvas: Any) -> Any:
        if not np.isfinite(points).all():
            raise ArgumentError("expected finite key points")
        frame, order = Frame.of(row, image, canvas), list(row["keypoint_flip_order"])
        if order and np.linalg.det(frame.matrix[:, :2]) < 0:
            points = points[..., order, :]
        moved = frame.move(points[..., :2])
        out = points.copy()
        out[..., :2] = moved / frame.unit
        if points.shape[-1] == 3:
            seen = ((moved >= frame.start) & (moved < frame.end)).all(-1) & (points[..., 2] != 0)
            out[~seen] = 0
        return out
