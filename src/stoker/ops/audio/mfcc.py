# SPDX-License-Identifier: Apache-2.0
"""``mfcc``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.samples import Rows
from ...contract.step import Value
from ...contract.streaming import StreamRule
from ._signals import across_time, along_axis, at_least, expect_floats, is_finite, spectra, weighted


class Mfcc(Operator, name="mfcc"):
    """Compute mel-frequency cepstral coefficients: a discrete cosine transform along the axis of a mel spectrogram in
    decibels. Input: float32, any shape. Output: the same with ``n_mfcc`` elements along ``axis``.

    Without ``normalize`` the values are half of SciPy's, as DALI's are; with it they are SciPy's with ``norm="ortho"``.
    Coefficient i (from 0) is multiplied by ``1 + lifter / 2 sin(pi (i + 1) / lifter)``. Sums are in float32.
    """

    exactness = "within float32 rounding"
    n_mfcc = arg("int", 20, doc="Number of coefficients, at most as many as the axis has elements.")
    dct_type = arg("int", 2, choices=(1, 2, 3, 4), doc="Type of the discrete cosine transform, 1 to 4.")
    normalize = arg("bool", False, doc="Use an orthonormal transform; not with type 1.")
    axis = arg("int", 0, doc="The axis of mel bands.")
    lifter = arg("float", 0.0, doc="Coefficient of the lifter, which raises higher coefficients; 0: none.")
    cases = (
        {"n_mfcc": 13},
        {"n_mfcc": 9, "axis": 1, "normalize": True, "lifter": 22.0},
        {"dct_type": 3, "normalize": True},
        {"dct_type": 4},
        {"dct_type": 1, "n_mfcc": 5},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return spectra(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        expect_floats(c, x)
        axis = c.const("axis")
        c.expect(-x.rank <= axis < x.rank, f"expected `axis` in [-{x.rank}, {x.rank}), got {axis}")
        axis %= x.rank
        count, type_, lifter = at_least(c, "n_mfcc", 1), c.const("dct_type"), float(c.const("lifter"))
        c.expect(count <= 1 << 16, f"expected `n_mfcc` of at most 65536, got {count}")
        c.expect(not (type_ == 1 and c.const("normalize")), "expected `dct_type` 2 to 4 with `normalize`, got 1")
        c.expect(is_finite(lifter), f"expected a finite `lifter`, got {lifter}")
        n = x.shape[axis]
        c.require(n >= count, "expected at most {0} as `n_mfcc` (elements along the axis), got {1}", n, count)
        c.require(n >= (2 if type_ == 1 else 1), "expected at least two elements along the axis for `dct_type` 1")
        return along_axis(c, x, axis, "dct_weights", count, (count, type_, c.const("normalize"), lifter))

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        return across_time(args["axis"] % len(x.shape), axis)

    def reference(self, row: RowContext, x: Any) -> Any:
        n, lifter = x.shape[row["axis"]], row["lifter"]
        weights = _cosines(row["dct_type"], n, row["normalize"])[: row["n_mfcc"]]
        if lifter:
            weights = weights * (1 + lifter / 2 * np.sin(np.pi * np.arange(1, len(weights) + 1) / lifter))[:, None]
        return weighted(x, weights, row["axis"] % x.ndim)


def _cosines(type_: int, n: int, normalize: bool) -> Any:
    k, i = np.arange(n)[:, None].astype(np.float64), np.arange(n)[None].astype(np.float64)
    if type_ == 1:
        weights = np.cos(np.pi * k * i / (n - 1))
        weights[:, [0, -1]] *= 0.5
        return weights
    if type_ == 2:
        weights = np.cos(np.pi * k * (2 * i + 1) / (2 * n))
    elif type_ == 3:
        weights = np.cos(np.pi * i * (2 * k + 1) / (2 * n))
        weights[:, 0] *= 0.5
    else:
        weights = np.cos(np.pi * (2 * k + 1) * (2 * i + 1) / (4 * n))
    if normalize:
        weights *= np.sqrt(2 / n)
        if type_ == 2:
            weights[0] *= np.sqrt(0.5)
        elif type_ == 3:
            weights[:, 0] *= np.sqrt(2)
    return weights
