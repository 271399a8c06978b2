# SPDX-License-Identifier: Apache-2.0
"""``to_decibels``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.samples import Rows
from ...contract.step import Launches, LaunchPass, Value
from ...contract.streaming import StreamRule, elementwise
from ...contract.types import DType
from ...native import _native
from ._signals import expect_floats, in_tiles, is_finite, spectra

_ELEMENTS = 8192  # of a GPU block (native/device/own_decibels.cuh)
_RESIDENT = 1280  # threads of a multiprocessor
_LARGEST = 1e30
_SMALLEST = -120.0  # of the exponent in the ratio 10^(cutoff_db / multiplier): below, a float32 is 0


class _Arguments:
    """Arguments of the operator, in a class of their own: one has the name of the method ``reference``."""

    multiplier = arg("float", 10.0, doc="Factor of the logarithm: 10 for powers, 20 for magnitudes.")
    reference = arg("float", 0.0, doc="Value of 0 dB; 0: the largest value of the row.")
    cutoff_db = arg("float", -200.0, doc="Smallest result in dB.")


class ToDecibels(_Arguments, Operator, name="to_decibels"):
    """Convert powers or magnitudes to decibels: ``multiplier log10(max(x / reference, 10^(cutoff_db / multiplier)))``.
    Input: float32, any shape. Output: the same.

    The logarithm is computed in float32, with an error below 1 ulp. A NaN stays one. With the default reference, a row
    that contains a NaN becomes NaN, and a row of zeros becomes ``cutoff_db``.
    """

    exactness = "within float32 rounding"
    cases = ({}, {"multiplier": 20.0, "reference": 0.5, "cutoff_db": -30.0})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return spectra(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        expect_floats(c, x)
        multiplier, reference, cutoff = (float(c.const(n)) for n in ("multiplier", "reference", "cutoff_db"))
        c.expect(
            0 < multiplier <= _LARGEST, f"expected `multiplier` above 0 and up to {_LARGEST:g}, got {multiplier:g}"
        )
        c.expect(0 <= reference <= _LARGEST, f"expected `reference` from 0 to {_LARGEST:g}, got {reference:g}")
        c.expect(is_finite(cutoff), f"expected a finite `cutoff_db`, got {cutoff:g}")
        exponent = cutoff / multiplier
        c.expect(
            _SMALLEST <= exponent <= 38,
            f"expected `cutoff_db` from {_SMALLEST:g} to 38 times `multiplier`, got {cutoff:g}",
        )
        (tenths,) = _native.xmath("exp", np.array([exponent * 2.302585092994046]))
        peak = c.constant(np.float32(reference)) if reference else c.apply("reductions.max", x)
        params = (float(np.float32(multiplier * 0.30102999566398120)), float(np.float32(tenths)))
        blocks = (math.prod(x.shape) + _ELEMENTS - 1) // _ELEMENTS
        own = Launches("Decibels", {"convert": LaunchPass(blocks, resident_threads=_RESIDENT)})
        tiles = in_tiles("columns", "columns")
        return c.native("decibels", [x, peak], [(DType.FLOAT, x.shape, x.layout)], params=params, own=own, tiles=tiles)[
            0
        ]

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        if not args["reference"]:
            raise UnsupportedError(
                "expected a `reference`, which streams need, got none: 0 dB is the largest value of the whole signal "
                "by default"
            )
        return elementwise(axis)

    def reference(self, row: RowContext, x: Any) -> Any:
        peak = row["reference"] or float(x.max()) or 1.0
        least = 10.0 ** (row["cutoff_db"] / row["multiplier"])
        return (row["multiplier"] * np.log10(np.maximum(x.astype(np.float64) / peak, least))).astype(np.float32)
