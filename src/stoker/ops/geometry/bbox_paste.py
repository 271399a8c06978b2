# SPDX-License-Identifier: Apache-2.0
"""``bbox_paste``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import binary, coordinate, load, select, uniform
from ...contract.step import Value
from ...contract.types import DType


class BBoxPaste(Operator, name="bbox_paste"):
    """Move bounding boxes with their image onto a larger canvas (`paste`). Input: float32, boxes along the last axis of
    4 elements, relative to the image: (x, y, w, h), or with ``ltrb`` (left, top, right, bottom). Output: the same,
    relative to the canvas.

    Numbers are multiplied by ``1 / ratio``; places are then moved by ``paste * (1 - 1 / ratio)``, in float32.
    """

    ratio = arg("float", per_row=True, doc="Extents of the canvas as multiples of the image's, at least 1.")
    ltrb = arg("bool", False, doc="Boxes are (left, top, right, bottom).")
    paste_x = arg("float", 0.5, per_row=True, doc="Horizontal place of the image, from 0 (left) to 1 (right).")
    paste_y = arg("float", 0.5, per_row=True, doc="Vertical place of the image, from 0 (top) to 1 (bottom).")
    cases = (
        {"ratio": 1.7},
        {"ratio": 2.5, "paste_x": 0.1, "paste_y": 0.9, "ltrb": True},
        {"ratio": 3.3, "paste_x": 1.0},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rng = np.random.default_rng(3)
        return samples.each(*(rng.uniform(0, 1, (n, 4)).astype(np.float32) for n in (6, 0, 11)))

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(x.dtype == DType.FLOAT and x.rank > 0, f"expected boxes of float32, got {x.dtype} with {x.rank} axes")
        c.require(ex.equal(x.shape[-1], 4), "expected boxes of 4 numbers, got {0}", x.shape[-1])
        ratio = c.scalar("ratio")
        c.require(ex.both(ex.isfinite(ratio), ratio >= 1), "expected a `ratio` of at least 1, got {0}", ratio)
        scale = ex.float32(1 / ex.float32(ratio))
        moves = []
        for name in ("paste_x", "paste_y"):
            place = c.scalar(name)
            c.require(ex.both(place >= 0, place <= 1), f"expected `{name}` from 0 to 1, got {{0}}", place)
            moves.append(ex.float32(ex.float32(place) * ex.float32(1 - scale)))
        number = coordinate(x.rank - 1)
        vertical = binary("eq", binary("and", number, 1), 1)
        move = select(vertical, uniform(moves[1]), uniform(moves[0]))
        scaled = load(x.dtype) * uniform(scale)
        moved = scaled + move
        if not c.const("ltrb"):
            moved = select(binary("lt", number, 2), moved, scaled)
        out = c.pointwise([x], moved)
        return c.with_properties(out, per_frame=True) if x.per_frame else out

    def reference(self, row: RowContext, x: Any) -> Any:
        ratio = np.float32(row.number("ratio"))
        if not ratio >= 1 or x.shape[-1] != 4:
            raise ValueError("expected a ratio of at least 1, and boxes")
        scale = np.float32(1) / ratio
        moves = [np.float32(row.number(name)) * (np.float32(1) - scale) for name in ("paste_x", "paste_y")]
        scaled = x * scale
        moved = scaled + np.array([*moves, *moves], np.float32)
        return moved if row["ltrb"] else np.concatenate([moved[..., :2], scaled[..., 2:]], -1)
