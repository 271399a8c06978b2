# SPDX-License-Identifier: Apache-2.0
"""``normalize``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.errors import ArgumentError, UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, Spec
from ...contract.step import Value
from ...contract.streaming import StreamRule, elementwise
from ...contract.types import DType


class Normalize(Operator, name="normalize"):
    """Normalize data to a mean and a standard deviation: ``(x - mean) / stddev * scale + shift``. Input: numbers, any
    shape. Output: the same shape in ``dtype``.

    The mean and the deviation are those of the data along ``axes``, unless they are given: a number, or a tensor with
    the input's axes and extents of 1 along ``axes``. ``epsilon`` is added to the variance. Data without deviation
    become ``shift``; a given deviation of 0 divides by 0. With ``batch`` they are those of all rows of a batch
    together: rows then depend on which others share their batch. Sums are in double, in one order on every machine, and
    the result is computed in float32.
    """

    gives_bfloat16 = takes_bfloat16 = True
    batch = arg("bool", False, doc="One mean and deviation for all rows of a batch.")
    mean = arg("float", None, many=True, per_row=True, doc="Mean: a number, or a node with a tensor.")
    stddev = arg("float", None, many=True, per_row=True, doc="Standard deviation: a number, or a node with a tensor.")
    axes = arg(
        "int",
        None,
        many=True,
        per_axis=True,
        doc="Axes of the statistics, negative ones from the last; by default all.",
    )
    axis_names = arg("str", None, doc="The same by names.")
    shift = arg("float", 0.0, doc="Added to the result: the new mean.")
    scale = arg("float", 1.0, doc="Factor of the result: the new standard deviation.")
    ddof = arg("int", 0, doc="Delta degrees of freedom: squares are divided by the number of elements minus `ddof`.")
    epsilon = arg("float", 0.0, doc="Added to the variance, at least 0.")
    dtype = arg("dtype", DType.FLOAT, doc="Element type of the output.")
    cases = (
        {},
        {"axis_names": "HW", "ddof": 1, "epsilon": 0.5, "scale": 64.0, "shift": 128.0, "dtype": "uint8"},
        {"mean": 3.0, "axes": (0, -2)},
        {"mean": 100.0, "stddev": 2.0},
        {"batch": True, "axis_names": "HW", "ddof": 1, "epsilon": 0.25},
    )

    def validate(self, args: Mapping[str, Any]) -> None:
        if not args["epsilon"] >= 0:
            raise ArgumentError(f"`normalize`: expected an `epsilon` of at least 0, got {args['epsilon']}")
        if args["ddof"] < 0:
            raise ArgumentError(f"`normalize`: expected a `ddof` of at least 0, got {args['ddof']}")
        if args["axes"] is not None and args["axis_names"] is not None:
            raise ArgumentError("`normalize`: expected `axes` or `axis_names`, got both")
        given = (args.get(name) for name in ("mean", "stddev"))
        if any(value is not None and len(value) != 1 for value in given):
            raise ArgumentError("`normalize`: expected one number as `mean` and `stddev`, or a node with a tensor")

    @classmethod
    def depends_on_batch(cls, args: Mapping[str, Any]) -> bool:
        return bool(args.get("batch"))

    def compose(self, c: Lowering, x: Value) -> Value:
        axes = self._axes(c, x)
        names = ("shift", "scale", "epsilon")
        if self._is_one_kernel(c, x, axes):
            numbers = {name: c.const(name) for name in (*names, "ddof")}
            whole: Value = c.apply("_normalized_floats", x, axes=axes, **numbers)
            return whole
        both = c.given("mean") and c.given("stddev")
        if both and c.const("batch"):
            raise ArgumentError("`normalize`: expected `batch` only without a `mean` or `stddev`")
        over = {"axes": axes, "keep_dims": True}
        batch = c.const("batch")
        if c.given("mean"):
            mean = self._given(c, "mean", x)
        else:
            mean = c.apply("reductions.mean", x, dtype="float64", **over)
            mean = c.apply("_pooled", mean, x, axes=axes) if batch else mean
        if c.given("stddev"):
            spread = self._given(c, "stddev", x)
        else:
            spread = c.apply("reductions.variance", x, mean, ddof=0 if batch else c.const("ddof"), **over)
            spread = c.apply("_pooled", spread, x, axes=axes, ddof=c.const("ddof")) if batch else spread
        settings = {name: c.const(name) for name in (*names, "dtype")}
        out: Value = c.apply("_normalized", x, mean, spread, given=c.given("stddev"), **settings)
        return out

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        if args["mean"] is None or args["stddev"] is None:
            raise UnsupportedError(
                "expected a `mean` and a `stddev`, which streams need: by default they are those of the whole signal"
            )
        return elementwise(axis)

    @staticmethod
    def _is_one_kernel(c: Lowering, x: Value, axes: tuple[int, ...]) -> bool:
        """Return whether the statistics and the result can come from one kernel: floats by their own statistics."""
        if c.given("mean") or c.given("stddev") or c.const("batch") or not axes:
            return False
        is_float = x.dtype == DType.FLOAT and c.const("dtype") == DType.FLOAT
        return is_float and axes == tuple(range(axes[0], axes[0] + len(axes)))

    @staticmethod
    def _given(c: Lowering, name: str, x: Value) -> Value:
        value = c.pass_on(name)
        if not isinstance(value, Value):
            with np.errstate(over="ignore"):  # infinite, as the same value from a node is
                number: Value = c.apply("_constant", value=np.float32(value[0]))
            return number
        c.expect(value.rank in (0, x.rank), f"expected `{name}` with {{0}} axes or none, got {{1}}", x.rank, value.rank)
        return value

    @staticmethod
    def _axes(c: Lowering, x: Value) -> tuple[int, ...]:
        axes, names = c.const("axes"), c.const("axis_names")
        if names is not None:
            return tuple(c.axis(x, name) for name in names)
        if axes is not None:
            c.expect(all(-x.rank <= a < x.rank for a in axes), "expected axes in [-{0}, {0})", x.rank)
            return tuple(sorted({a % x.rank for a in axes}))
        for name in ("mean", "stddev"):
            value = c.pass_on(name)
            if isinstance(value, Value) and value.rank == x.rank and x.rank > 0:
                extents = [c.fixed_extent(value, i, f"numbers in axis {i} of `{name}`") for i in range(value.rank)]
                return tuple(i for i, n in enumerate(extents) if n == 1)
        return tuple(range(x.rank))
