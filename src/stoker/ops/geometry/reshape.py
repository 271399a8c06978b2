# SPDX-License-Identifier: Apache-2.0
"""``reshape``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import too_many_axes
from ...contract.errors import ArgumentError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.step import Value, ViewOp
from ...contract.types import MAX_RANK
from ._shape_arguments import ShapeArguments
from ._window import round_away


class Reshape(ShapeArguments, name="reshape"):
    """Change the shape. Inputs: data, and optionally the shape. Output: the same elements in the same order.

    One extent may be -1; it is computed from the others. Extents of ``rel_shape`` are shares of the input's extents (of
    those that ``src_dims`` names), rounded half away from zero. Without ``layout``, the axes keep their names if their
    number does not change.
    """

    inputs = (1, 2)
    takes_bfloat16 = True
    cases = (
        {"shape": (-1,)},
        {"rel_shape": (1.0, -1.0)},
        {"src_dims": (1, 0, 2)},
        {"src_dims": (2, -1, 0, 1), "layout": "CXHW"},
        {"layout": "ABC"},
    )

    def lower(self, c: Lowering, x: Value, *shape: Value) -> Value:
        self._check(c, x, shape)
        extents = self._resolved(c, x, self._asked(c, x, shape))
        layout = c.const("layout")
        if layout is None:
            layout = x.layout if len(extents) == x.rank else ""
        elif len(layout) not in (0, len(extents)):
            raise ArgumentError(f"`reshape`: expected `layout` with {len(extents)} axes, got {layout!r}")
        if len(extents) == x.rank and all(ex.same(a, b) for a, b in zip(extents, x.shape, strict=True)):
            return c.relabel(x, layout)
        return c.view(x, [ViewOp("reshape", list=tuple(extents))], layout, may_copy=True)

    def _check(self, c: Lowering, x: Value, shape: tuple[Value, ...]) -> None:
        given = [n for n in ("shape", "rel_shape") if c.given(n)] + ["a shape as input"] * len(shape)
        if len(given) > 1:
            raise ArgumentError(f"`reshape`: expected one shape, got {' and '.join(given)}")
        if not given and not c.given("src_dims") and not c.given("layout"):
            raise ArgumentError("`reshape`: expected `shape`, `rel_shape`, `src_dims`, `layout` or a shape as input")
        if c.given("src_dims"):
            if given and given != ["rel_shape"]:
                raise ArgumentError("`reshape`: `src_dims` is used alone or with `rel_shape`")
            for axis in c.const("src_dims"):
                if not -1 <= axis < x.rank:
                    raise ArgumentError(f"`reshape`: expected `src_dims` from -1 to {x.rank - 1}, got {axis}")

    def _asked(self, c: Lowering, x: Value, shape: tuple[Value, ...]) -> list[Scalar]:
        """Return the given extents. A negative one is to be computed."""
        source = c.const("src_dims")
        base = x.shape if source is None else tuple(x.shape[a] if a >= 0 else 1 for a in source)
        if not (shape or c.given("shape") or c.given("rel_shape")):
            return list(base)
        name = "shape" if c.given("shape") else "rel_shape"
        count = c.fixed_count(shape[0], "shape") if shape else c.fixed_length(name)
        c.expect(count <= MAX_RANK, too_many_axes(count))
        asked = [c.element(shape[0], i) if shape else c.scalar(name, i) for i in range(count)]
        if name == "shape" or shape:
            return [ex.round_away(a) for a in asked]
        if count > len(base):
            raise ArgumentError(
                f"`reshape`: expected at most {len(base)} elements in `rel_shape`, got {count}. Name the extents to "
                "take by `src_dims`"
            )
        return [ex.where(a < 0, -1, ex.round_away(a * n)) for a, n in zip(asked, base, strict=False)]

    @staticmethod
    def _resolved(c: Lowering, x: Value, asked: list[Scalar]) -> list[Scalar]:
        total: Scalar = 1
        for n in x.shape:
            total = total * n
        rest: Scalar = 1
        open_count: Scalar = 0
        for a in asked:
            c.require(ex.isfinite(a), "expected finite extents, got {0}", a)
            rest = rest * ex.where(a < 0, 1, a)
            open_count = open_count + ex.where(a < 0, 1, 0)
        c.require(open_count <= 1, "expected at most one extent of -1, got {0}", open_count)
        left = total if ex.is_static(rest) and rest == 1 else ex.where(rest > 0, total // ex.maximum(rest, 1), 0)
        extents = [ex.where(a < 0, left, a) for a in asked]
        count: Scalar = 1
        for e in extents:
            count = count * e
        if not ex.same(count, total):
            c.require(
                ex.equal(count, total),
                "expected a shape of {0} elements as the input has, got one of {1}",
                total,
                count,
            )
        return extents

    def reference(self, row: RowContext, x: Any, *shape: Any) -> Any:
        source = row["src_dims"]
        base = x.shape if source is None else [x.shape[a] if a >= 0 else 1 for a in source]
        if shape or row["shape"] is not None:
            asked = [int(a) for a in np.asarray(shape[0] if shape else row["shape"]).reshape(-1)]
        elif row["rel_shape"] is not None:
            shares = np.asarray(row["rel_shape"], float).reshape(-1)
            asked = [-1 if a < 0 else round_away(a * n) for a, n in zip(shares, base, strict=False)]
        else:
            asked = list(base)
        return x.reshape([-1 if a < 0 else a for a in asked])
