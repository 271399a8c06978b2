# SPDX-License-Identifier: Apache-2.0
"""``spec_augment``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.samples import Rows
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array
from ..image._regions import erased, erased_reference
from ._signals import spectra

_UNIFORM = 0  # number of the distribution in native/shared/draws.hpp
_NUMBERS = 2  # draws of a mask: width, start
_MOST_MASKS = 64  # of each kind


class SpecAugment(Operator, name="spec_augment"):
    """Fill random bands of frequencies and random spans of time in a spectrogram. Input: any type, with axes f and t in
    any order (a matrix without axis names is ft). Output: the same.

    A mask over frequencies has a width drawn evenly from 0 to ``freq_width`` bins, and any place within the spectrogram
    with the same probability. Masks over time do the same with frames. Masks may overlap. The draws belong to the
    sample: batch size, threads and the device do not change them.

    Source: Park et al., "SpecAugment: A Simple Data Augmentation Method for Automatic Speech Recognition" (2019),
    without time warping. The paper's policies are LB ``freq_masks=1, time_masks=1``, and LD ``freq_masks=2,
    time_masks=2``, both with ``freq_width=27, time_width=100``.
    """

    gives_bfloat16 = takes_bfloat16 = True
    draws = 1
    freq_masks = arg("int", 2, doc="Number of masks over frequencies, at most 64.")
    time_masks = arg("int", 2, doc="Number of masks over time, at most 64.")
    freq_width = arg("int", 27, doc="Largest width of a mask over frequencies in bins (F in the paper).")
    time_width = arg("int", 100, doc="Largest width of a mask over time in frames (T in the paper).")
    time_share = arg(
        "float", 1.0, doc="Largest width of a mask over time as a share of the frames, from 0 to 1 (p in the paper)."
    )
    fill_value = arg("float", 0.0, per_row=True, doc="Value within the masks; 0 is the mean of normalized features.")
    cases = (
        {"freq_width": 20, "time_width": 8},
        {"freq_masks": 0, "time_masks": 5, "time_width": 40, "time_share": 0.2, "fill_value": -1.5},
        {"freq_masks": 20, "time_masks": 0, "freq_width": 3},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return spectra(case)

    def validate(self, args: Mapping[str, Any]) -> None:
        for name in ("freq_masks", "time_masks"):
            if not 0 <= args[name] <= _MOST_MASKS:
                raise ArgumentError(
                    f"`spec_augment`: expected from 0 to {_MOST_MASKS} masks as `{name}`, got {args[name]}"
                )
        for name in ("freq_width", "time_width"):
            if not 0 <= args[name] < 1 << 31:
                raise ArgumentError(f"`spec_augment`: expected a width of at least 0 as `{name}`, got {args[name]}")
        if not 0 <= args["time_share"] <= 1:
            raise ArgumentError(f"`spec_augment`: expected `time_share` from 0 to 1, got {args['time_share']:g}")

    def lower(self, c: Lowering, x: Value) -> Value:
        layout = x.layout or ("ft" if x.rank == 2 else "")
        c.expect(
            layout.count("f") == 1 and layout.count("t") == 1,
            f"expected a spectrogram with the axes f and t, got {x.rank} axes with the layout {x.layout!r}",
        )
        kinds = [(layout.index("f"), c.const("freq_masks")), (layout.index("t"), c.const("time_masks"))]
        total = sum(count for _, count in kinds)
        if total == 0:
            return c.view(x, ())
        drawn = c.native(
            "draw", [], [(DType.FLOAT64, (_NUMBERS * total,), "")], attrs=(_UNIFORM, *c.draw), params=(0, 1)
        )[0]
        numbers = iter([c.element(drawn, i) for i in range(_NUMBERS * total)])
        share = float(c.const("time_share"))
        anchors: list[Scalar] = []
        shapes: list[Scalar] = []
        for (axis, count), width, limit in zip(
            kinds, (c.const("freq_width"), c.const("time_width")), (1.0, share), strict=True
        ):
            n = x.shape[axis]
            most = ex.minimum(width, ex.floor(n * limit))
            for _ in range(count):
                size = ex.floor(next(numbers) * (most + 1))
                start = ex.floor(next(numbers) * (n - size + 1))
                anchors += [start if other == axis else 0 for other, _ in kinds]
                shapes += [size if other == axis else x.shape[other] for other, _ in kinds]
        places = (c.numbers(place, DType.FLOAT64) for place in (anchors, shapes))
        return erased(c, x, [axis for axis, _ in kinds], *places, whole=True)

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or "ft"
        total = row["freq_masks"] + row["time_masks"]
        numbers = iter([row.stream.uniform() for _ in range(_NUMBERS * total)])
        regions = []
        for name, kind, limit in (("f", "freq", 1.0), ("t", "time", row["time_share"])):
            n = x.shape[layout.index(name)]
            most = min(row[f"{kind}_width"], math.floor(n * limit))
            for _ in range(row[f"{kind}_masks"]):
                size = math.floor(next(numbers) * (most + 1))
                start = math.floor(next(numbers) * (n - size + 1))
                regions.append({layout.index(name): (start, start + size)})
        fills = cast_array(np.asarray([row.number("fill_value")], np.float64), DType.of(x.dtype))
        return erased_reference(x, regions, fills, -1)
