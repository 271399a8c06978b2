# SPDX-License-Identifier: Apache-2.0
"""``experimental.remap``."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import IMAGES, Operator, RowContext
from ...contract.pixel import load, unary
from ...contract.step import Value, ViewOp
from ...contract.types import DType, InterpType
from ._axes import each_frame
from ._map import height_and_width, interpolation, mapped, mapped_reference


class Remap(Operator, name="experimental.remap"):
    """Sample images at given coordinates. Inputs: an image of up to 32 bits an element, HW, HWC, CHW or these with a
    leading F; columns ``mapx`` and rows ``mapy`` of the source, float32: (H, W), (H, W, 1), or (F, H, W) by frame.
    Output: the image's axes in the maps' size.

    Neighbours beyond the edges are 0. With ``pixel_origin="center"`` bytes are those of OpenCV's ``remap``.
    """

    default_layouts = IMAGES
    gives_bfloat16 = takes_bfloat16 = True
    inputs = (3, 3)
    interp = interpolation(InterpType.INTERP_LINEAR)
    pixel_origin = arg("str", "corner", choices=("corner", "center"), doc="Point of the first pixel that is at (0, 0).")
    cases = (
        {}, {"interp": "INTERP_NN"}, {"pixel_origin": "center"}, {"interp": "INTERP_CUBIC", "pixel_origin": "center"},
        {"interp": "INTERP_CUBIC"},
    )  # fmt: skip

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rng, rows = np.random.default_rng(4), []
        for (x,) in samples.images():
            height, width = x.shape[:2]
            size = (height + 2, width - 3)
            maps = [rng.uniform(-3, n + 3, size).astype(np.float32) for n in (width, height)]
            maps[0].flat[:4] = [np.nan, np.inf, -np.inf, 1e30]
            rows.append((x, *maps))
        return rows

    def lower(self, c: Lowering, x: Value, mapx: Value, mapy: Value) -> Value:
        height_and_width(c, x)
        maps = [self._map(c, x, m) for m in (mapy, mapx)]
        c.expect(
            maps[0].rank == maps[1].rank, "expected maps of one shape, got {0} and {1} axes", *(m.rank for m in maps)
        )
        for rows, columns in zip(maps[0].shape, maps[1].shape, strict=True):
            c.require(ex.equal(rows, columns), "expected maps of one shape, got extents of {1} and {0}", rows, columns)
        kind = c.const("interp")
        shift = 0.5 if c.const("pixel_origin") == "corner" else 0.0
        if shift or kind == InterpType.INTERP_NN:
            value = load(DType.FLOAT) - shift
            value = unary("round", value) if kind == InterpType.INTERP_NN else value
            maps = [c.pointwise([m], value) for m in maps]
        return mapped(c, x, maps[0], maps[1], kind, fill=0.0)

    @staticmethod
    def _map(c: Lowering, x: Value, m: Value) -> Value:
        c.expect(m.dtype == DType.FLOAT, f"expected maps of float32, got {m.dtype}")
        framed = c.layout(x)[:1] == "F"
        names = m.layout or ("FHWC"[: m.rank] if framed and m.rank > 2 else "HWC"[: m.rank])
        c.expect(names in ("HW", "HWC", "FHW", "FHWC"), "expected maps (H, W) or (F, H, W), got {0} axes", m.rank)
        c.expect(framed or "F" not in names, "expected maps without frames for an image without frames")
        if names.endswith("C"):
            c.require(m.shape[-1] == 1, "expected maps of one channel, got {0}", m.shape[-1])
            m = c.view(m, [ViewOp("drop", m.rank - 1)])
        return m

    def reference(self, row: RowContext, x: Any, mapx: Any, mapy: Any) -> Any:
        kind = row["interp"]
        shift = np.float32(0.5 if row["pixel_origin"] == "corner" else 0)
        maps = [m - shift for m in (mapy, mapx)]
        maps = [np.rint(m) for m in maps] if kind == InterpType.INTERP_NN else maps
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        number = itertools.count()

        def shown(frame: Any) -> Any:
            f = next(number)
            y, x = (_plane(m, f if layout[0] == "F" else None) for m in maps)
            return mapped_reference(frame, "HWC", y, x, kind, fill=0.0)

        return each_frame(x, layout, shown)


def _plane(m: Any, frame: int | None) -> Any:
    """Return the rows and columns of a map, for a frame of a video."""
    if frame is not None and m.ndim > 2:
        m = m[frame]
    return m.reshape(m.shape[:2])
