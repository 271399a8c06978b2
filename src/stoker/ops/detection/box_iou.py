# SPDX-License-Identifier: Apache-2.0
"""``box_iou``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import GpuForm, Launches, Value
from ._boxes import boxes_in, expect_floats, require_columns
from ._rotated import rotated_in, rotated_iou

_KINDS = ("iou", "giou", "diou", "ciou")
_OF_ROTATED = 4  # on a GPU (native/device/own_boxiou.cuh)
_PAIRS = 256  # of a block there


class BoxIou(Operator, name="box_iou"):
    """Compute the overlap of all pairs of boxes of two sets.

    Inputs: boxes (N, 4) and (M, 4), ``x0, y0, x1, y1``, both float32 or both float64; with ``rotated`` (N, 5) and (M,
    5), ``centre x, centre y, width, height, degrees``. Output: (N, M) of their type.

    Kinds: intersection over union ("iou"), generalized ("giou"), distance ("diou") and complete ("ciou"). The first
    three have the bits of torchvision's functions, with 1e-7 as the epsilon of "diou" and "ciou". "ciou" rounds its two
    arc tangents correctly in nearly all cases, while torch's depend on the processor. Boxes without area give NaN where
    torchvision does.

    On a GPU, the first boxes may be kept ones (``nms`` and others) that ``fn.gather`` has taken. The output has a row
    for each, whose number is known when the batch is done. As second boxes they are refused: a row of the output would
    be as long as a number that only the GPU knows.
    """

    inputs = (2, 2)
    exactness = "exact; ciou: one rounding of each arc tangent"
    kind = arg("str", "iou", choices=_KINDS, doc="Overlap: iou, giou, diou or ciou.")
    rotated = arg("bool", False, doc="Boxes have an angle. Only for iou.")
    cases = (*({"kind": kind} for kind in _KINDS), {"rotated": True})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        make = rotated_in if case.get("rotated") else boxes_in
        return samples.each(*((make(i, n), make(i + 9, m)) for i, (n, m) in enumerate(((9, 4), (0, 3), (1, 30)))))

    def lower(self, c: Lowering, a: Value, b: Value) -> Value:
        rotated, kind = bool(c.const("rotated")), _KINDS.index(c.const("kind"))
        c.expect(not rotated or kind == 0, f'expected `kind="iou"` for rotated boxes, got {c.const("kind")!r}')
        expect_floats(c, a, "boxes", 2)
        expect_floats(c, b, "boxes", 2)
        c.expect(a.dtype == b.dtype, f"expected boxes of one type, got {a.dtype} and {b.dtype}")
        for x in (a, b):
            require_columns(c, x, 5 if rotated else 4)
        blocks = ex.ceil(a.shape[0] * b.shape[0] / _PAIRS)
        own = Launches("BoxIou", {"pairs": blocks}, constants=(_OF_ROTATED if rotated else kind,))
        return c.native(
            "box_iou", [a, b], [(a.dtype, (a.shape[0], b.shape[0]), "")], attrs=(kind, rotated), params=own.numbers(),
            gpu=GpuForm(own.kernel(), follows=0),
        )[0]  # fmt: skip

    def reference(self, row: RowContext, a: Any, b: Any) -> Any:
        a, b, kind = np.asarray(a), np.asarray(b), row["kind"]
        if row["rotated"]:
            return np.array([[rotated_iou(x, y) for y in b] for x in a], a.dtype).reshape(len(a), len(b))
        one: Any = a.dtype.type
        a, b = a[:, None], b[None]
        sides = np.maximum(np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2]), 0)
        around = np.maximum(a[..., 2:], b[..., 2:]) - np.minimum(a[..., :2], b[..., :2])
        areas = [(x[..., 2] - x[..., 0]) * (x[..., 3] - x[..., 1]) for x in (a, b)]
        both = sides[..., 0] * sides[..., 1]
        union = areas[0] + areas[1] - both
        iou = both / union
        if kind == "giou":
            box = around[..., 0] * around[..., 1]
            return iou - (box - union) / box
        if kind == "iou":
            return iou
        centres = [(x[..., :2] + x[..., 2:]) / one(2) for x in (a, b)]
        apart = (centres[0] - centres[1]) ** 2
        distance = iou - (apart[..., 0] + apart[..., 1]) / (around[..., 0] ** 2 + around[..., 1] ** 2 + one(1e-7))
        if kind == "diou":
            return distance
        angles = [np.arctan(((x[..., 2] - x[..., 0]) / (x[..., 3] - x[..., 1])).astype(np.float64)) for x in (a, b)]
        v = one(4 / np.pi**2) * (angles[0].astype(one) - angles[1].astype(one)) ** 2
        return distance - v / (one(1) - iou + v + one(1e-7)) * v
