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

_ALGORITHMS = ("bilinear_ocv", "edgeaware_ocv", "gray_ocv", "vng_ocv")  # in the order of native/shared/debayer.hpp
_ABSENT = ("default_npp",)
_WEIGHTS = (4899, 9617, 1868)  # of red, green and blue in a gray value
_LEAST_GRADIENTS = 8  # pixels of a side, else vng_ocv is bilinear_ocv; also in native/shared/debayer.hpp


class Debayer(Operator, name="debayer"):
    """Compute the colours of an image whose pixels have one colour each. Input: uint8 or uint16, HW, HWC of one
    channel, or these with a leading F; at least 3 pixels on a side. Output: RGB, HWC or FHWC, in the same type.

    Exact: the values of OpenCV's ``demosaicing``, on the CPU and on GPUs. Pixels at the edges repeat their neighbours.
    `vng_ocv` has the values of OpenCV 5 (OpenCV 4.11 computes others), mirrors the mosaic at its edge pixels,
    and computes `bilinear_ocv` if a side has fewer than 8 pixels.
    DALI's operator computes other values on GPUs, those of NPP, and takes even extents only.
    `blue_position` may be per frame.
    """

    blue_position = arg(
        "int", many=True, per_axis=True, per_row=True,
        doc="Position of the blue pixel, (row, column), in the 2x2 tile that begins in the second row and column: "
        "(0, 0) is OpenCV's BG, (0, 1) GB, (1, 0) GR, (1, 1) RG.",
    )  # fmt: skip
    algorithm = arg(
        "str", "bilinear_ocv", choices=(*_ALGORITHMS, *_ABSENT),
        doc="bilinear_ocv: means of the neighbours; edgeaware_ocv: green from the neighbours that differ less; "
        "vng_ocv: means in the directions whose gradients are small, uint8 only; gray_ocv: a gray image of one "
        "channel. DALI's default_npp is refused.",
    )  # fmt: skip
    cases = (
        {"blue_position": (0, 0)},
        {"blue_position": (0, 1), "algorithm": "edgeaware_ocv"},
        {"blue_position": (1, 0), "algorithm": "gray_ocv"},
        {"blue_position": (1, 1)},
        {"blue_position": (1, 0), "algorithm": "vng_ocv"},
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
        if name == "vng_ocv" and x.dtype != DType.UINT8:
            raise UnsupportedError(
                f"`debayer`: expected uint8 for the algorithm 'vng_ocv', got {x.dtype}. Cast it first"
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
        c.expect_one_or_each("blue_position", 2)
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
        kernel = "gradients" if name == "vng_ocv" else "colors"
        numbers = (*places, *axes, -1, *axes, lead + 2, algorithm)
        return c.native(
            "debayer", [x], [(x.dtype, shape, "FHWC"[4 - len(shape) :])], attrs=(algorithm,), params=numbers,
            own=Launches("Debayer", {kernel: element_blocks(inner)}), frames=frames,
            framed=[True] if frames is not None else (),
        )[0]  # fmt: skip

    def reference(self, row: RowContext, x: Any) -> Any:
        position = [int(row.number("blue_position", i)) for i in (0, 1)]
        x = x[..., 0] if row.layout.endswith("C") else x
        frames = x if x.ndim == 3 else x[None]
        found = np.stack([_demosaiced(frame, position, row["algorithm"]) for frame in frames])
        return found if x.ndim == 3 else found[0]


def _demosaiced(x: Any, position: list[int], algorithm: str) -> Any:
    if algorithm == "vng_ocv" and min(x.shape) >= _LEAST_GRADIENTS:
        return _by_gradients(x, position)
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


class _Around:
    """Neighbours of all pixels of a mosaic that is mirrored about its edge pixels."""

    def __init__(self, x: Any) -> None:
        self._shape = x.shape
        self._wide = np.pad(x.astype(np.int64), 2, mode="reflect")

    def at(self, y: int, x: int) -> Any:
        return self._wide[2 + y : 2 + y + self._shape[0], 2 + x : 2 + x + self._shape[1]]

    def apart(self, a: tuple[int, int], b: tuple[int, int]) -> Any:
        return abs(self.at(*a) - self.at(*b))


def _gradients(w: _Around, y: int, x: int) -> tuple[Any, Any]:
    """Return twice the gradients toward (y, x), at pixels that are red or blue and at green ones."""
    both = w.apart((y, x), (-y, -x)) + w.apart((2 * y, 2 * x), (0, 0))
    if y and x:
        colored = w.apart((y, 0), (0, -x)) + w.apart((0, x), (-y, 0))
        colored = colored + w.apart((2 * y, x), (y, 0)) + w.apart((y, 2 * x), (0, x))
        return 2 * both + colored, 2 * (both + w.apart((2 * y, x), (0, -x)) + w.apart((y, 2 * x), (-y, 0)))
    sides = [w.apart((y + s, x + t), (s - y, t - x)) for s, t in ((x, y), (-x, -y))]
    sides += [w.apart((2 * y + s, 2 * x + t), (s, t)) for s, t in ((x, y), (-x, -y))]
    found = 2 * both + sum(sides)
    return found, found


def _doubled_means(w: _Around, y: int, x: int) -> tuple[Any, Any]:
    """Return twice the mean colours toward (y, x): the pixel's own, green and the third one at pixels that are red or
    blue, and its own, the row's and the column's at green pixels.
    """
    own = w.at(2 * y, 2 * x) + w.at(0, 0)
    if y and x:
        green = (w.at(2 * y, x) + w.at(y, 0) + w.at(0, x) + w.at(y, 2 * x)) >> 1
        line, column = w.at(2 * y, x) + w.at(0, x), w.at(y, 2 * x) + w.at(y, 0)
        return (own, green, 2 * w.at(y, x)), (2 * w.at(y, x), line, column)
    ahead = 2 * w.at(y, x)
    aside = w.at(2 * y + x, 2 * x + y) + w.at(2 * y - x, 2 * x - y)
    third = w.at(y + x, x + y) + w.at(y - x, x - y)
    return (own, ahead, third), (own, ahead, aside) if y == 0 else (own, aside, ahead)


def _by_gradients(x: Any, position: list[int]) -> Any:
    """Return the colours by a variable number of gradients (Chang, Cheung and Pang, 1999), rounded as OpenCV 5 does."""
    width = x.shape[1]
    y, column = np.indices(x.shape)
    red_row = (y - position[0]) % 2 == 0
    first = np.where(red_row, position[1], 1 - position[1])  # column of the row's first pixel that is not green
    colored = (column - first) % 2 == 0
    # OpenCV weighs seven directions with 1/14 in float32 in whole groups of eight columns, and else with a decimal.
    grouped = (column >= first) & (column < first + (width - first) // 8 * 8)
    w = _Around(x)
    directions = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]
    gradients = np.stack([np.where(colored, *_gradients(w, *toward)) for toward in directions])
    chosen = gradients < np.maximum(gradients.min(0) + gradients.max(0) // 2, 1)
    count = chosen.sum(0)
    weight = np.float32(1) / (2 * np.maximum(count, 1)).astype(np.float32)
    weight = np.where((count == 7) & ~grouped, np.float32(0.0714286), weight)
    means = [_doubled_means(w, *toward) for toward in directions]
    sums = [
        (np.stack([np.where(colored, at_color[i], at_green[i]) for at_color, at_green in means]) * chosen).sum(0)
        for i in range(3)
    ]
    own = x.astype(np.int64)
    one, two = (
        np.clip(own + np.rint((s - sums[0]).astype(np.float32) * weight).astype(np.int64), 0, 255) for s in sums[1:]
    )
    line, green = np.where(colored, own, one), np.where(colored, one, own)
    red, blue = np.where(red_row, line, two), np.where(red_row, two, line)
    return np.stack([red, green, blue], -1).astype(x.dtype)
