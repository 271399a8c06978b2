# SPDX-License-Identifier: Apache-2.0
"""``debayer``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, Value, ViewOp
from ...contract.types import DType
from ._windows import element_blocks

_ALGORITHMS = ("bilinear_ocv", "edgeaware_ocv", "gray_ocv")  # in the order of native/shared/debayer.hpp
_ABSENT = ("default_npp", "vng_ocv")
_WEIGHTS = (4899, 9617, 1868)  # of red, green and blue in a gray value


class Debayer(Operator, name="debayer"):
    """Compute the colours of an image whose pixels have one colour each. Input: uint8 or uint16, HW, HWC of one
    channel, or these with a leading F; at least 3 pixels on a side. Output: RGB, HWC or FHWC, in the same type.

    Exact: the values of OpenCV's ``demosaicing``, on the CPU and on GPUs. Pixels at the edges repeat their neighbours.
    DALI's operator computes other values on GPUs, those of NPP, and takes even extents only.
    `blue_position` may be per frame.
    """

    blue_position = arg(
        "int", many=True, per_row=True,
        doc="Position of the blue pixel, (row, column), in the 2x2 tile that begins in the second row and column: "
        "(0, 0) is OpenCV's BG, (0, 1) GB, (1, 0) GR, (1, 1) RG.",
    )  # fmt: skip
    algorithm = arg(
        "str", "bilinear_ocv", choices=(*_ALGORITHMS, *_ABSENT),
        doc="bilinear_ocv: means of the neighbours; edgeaware_ocv: green from the neighbours that differ less; "
        "gray_ocv: a gray image of one channel. DALI's default_npp and vng_ocv are refused.",
    )  # fmt: skip
    cases = (
        {"blue_position": (0, 0)},
        {"blue_position": (0, 1), "algorithm": "edgeaware_ocv"},
        {"blue_position": (1, 0), "algorithm": "gray_ocv"},
        {"blue_position": (1, 1)},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.each(*(samples.noise(k, shape) for k, shape in enumerate(((12, 18), (7, 9), (3, 4)))))

    def lower(self, c: Lowering, x: Value) -> Value:
        if x.dtype not in (DType.UINT8, DType.UINT16):
            raise UnsupportedError(f"`debayer`: expected uint8 or uint16, got {x.dtype}. Cast it first")
        name = c.const("algorithm")
        if name in _ABSENT:
            raise UnsupportedError(
                f"`debayer`: the algorithm {name!r} of DALI is not in Stoker; expected one of {', '.join(_ALGORITHMS)}"
            )
        layout = c.layout(x) if x.layout else {2: "HW", 3: "HWC", 4: "FHWC"}.get(x.rank, "")
        if layout not in ("HW", "HWC", "FHW", "FHWC"):
            raise UnsupportedError(f"`debayer`: expected layout HW, HWC, FHW or FHWC, got {layout!r}")
        if layout.endswith("C"):
            c.require(ex.equal(x.shape[-1], 1), "expected one channel, got {0}", x.shape[-1])
            x = c.view(x, [ViewOp("slice", x.rank - 1, 0, 1, 1), ViewOp("drop", x.rank - 1)])
        lead = x.rank - 2
        for axis in (lead, lead + 1):
            c.require(x.shape[axis] >= 3, "expected at least 3 pixels on a side, got {0}", x.shape[axis])
        places = [c.scalar("blue_position", i) for i in (0, 1)]
        for place in places:
            c.require(
                ex.either(ex.equal(place, 0), ex.equal(place, 1)), "expected 0 or 1 as `blue_position`, got {0}", place
            )
        algorithm = _ALGORITHMS.index(name)
        shape = (*x.shape, 1 if name == "gray_ocv" else 3)
        frames, inner = None, x.shape
        if any(c.differs_by_frame(n) for n in places):
            # The kernel sees one frame after the other.
            c.expect(lead == 1, "expected a video (a leading F axis) for arguments per frame")
            frames, inner, lead = x.shape[0], x.shape[1:], 0
        axes = (0 if lead else -1, lead, lead + 1)
        numbers = (*places, *axes, -1, *axes, lead + 2, algorithm)
        return c.native(
            "debayer", [x], [(x.dtype, shape, "FHWC"[4 - len(shape) :])], attrs=(algorithm,), params=numbers,
            own=Launches("Debayer", {"colors": element_blocks(inner)}), frames=frames,
            framed=[True] if frames is not None else (),
        )[0]  # fmt: skip

    def reference(self, row: RowContext, x: Any) -> Any:
        position = [int(row.number("blue_position", i)) for i in (0, 1)]
        x = x[..., 0] if row.layout.endswith("C") else x
        frames = x if x.ndim == 3 else x[None]
        found = np.stack([_demosaiced(frame, position, row["algorithm"]) for frame in frames])
        return found if x.ndim == 3 else found[0]


def _demosaiced(x: Any, position: list[int], algorithm: str) -> Any:
    y, column = (1 + n for n in np.indices((x.shape[0] - 2, x.shape[1] - 2)))
    wide = x.astype(np.int64)
    own = wide[1:-1, 1:-1]
    left, right, up, down = wide[1:-1, :-2], wide[1:-1, 2:], wide[:-2, 1:-1], wide[2:, 1:-1]
    corners = wide[:-2, :-2] + wide[:-2, 2:] + wide[2:, :-2] + wide[2:, 2:]
    red_row = (y - position[0]) % 2 == 0
    red = red_row & ((column - position[1]) % 2 == 0)
    blue = ~red_row & ((column - position[1]) % 2 == 1)
    green = ~(red | blue)
    across, along = (left + right + 1) >> 1, (up + down + 1) >> 1
    if algorithm == "gray_ocv":
        r, g, b = _WEIGHTS
        sides = left + right + up + down
        at_red, at_blue = 4 * r * own + g * sides + b * corners, 4 * b * own + g * sides + r * corners
        line, other = np.where(red_row, r, b), np.where(red_row, b, r)
        at_green = 4 * g * own + 2 * ((left + right) * line + (up + down) * other)
        inner = (np.select([red, blue], [at_red, at_blue], at_green) + 32768 >> 16)[..., None]
    else:
        middle = (left + right + up + down + 2) >> 2
        if algorithm == "edgeaware_ocv":
            middle = np.where(abs(left - right) > abs(up - down), along, across)
        ends = [
            np.select([mine, theirs, line], [own, (corners + 2) >> 2, across], along)
            for mine, theirs, line in ((red, blue, red_row), (blue, red, ~red_row))
        ]
        inner = np.stack([ends[0], np.where(green, own, middle), ends[1]], -1)
    return np.pad(inner, ((1, 1), (1, 1), (0, 0)), mode="edge").astype(x.dtype)
