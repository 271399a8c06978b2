# SPDX-License-Identifier: Apache-2.0
"""Shared code of operators that mix two samples: images of one shape, and soft labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.expr import Expr, Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import binary, load, select, uniform
from ...contract.step import Value
from ...contract.types import DType

_MOST_CLASSES = 1 << 20


class MixArguments(Operator):
    """Inputs and arguments of operators that mix two samples."""

    takes_bfloat16 = True
    weight = arg("float", per_row=True, doc="Share of the first sample, from 0 to 1: `random.beta` draws it.")
    num_classes = arg("int", 0, doc="Number of classes, if labels are whole numbers.")

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        classes = case.get("num_classes", 0)
        rng = np.random.default_rng(6)
        rows: samples.Rows = []
        for images in samples.images(copies=2):
            labels = [np.int32(k) if classes else rng.uniform(0, 1, 5).astype(np.float32) for k in (2, 4)]
            rows.append((*images, *labels))
        return rows

    def count_outputs_with(self, args: Mapping[str, Any], inputs: int) -> int:
        return 2 if inputs > 2 else 1

    def arrange_outputs(self, args: Mapping[str, Any], outputs: Sequence[Any]) -> Any:
        return tuple(outputs) if len(outputs) > 1 else outputs[0]


def checked_weight(c: Lowering) -> Scalar:
    """Return `weight`, rounded to float32."""
    weight = c.scalar("weight")
    c.expect(not c.differs_by_frame(weight), "expected one `weight` for the whole row, got one per frame")
    c.require(ex.both(weight >= 0, weight <= 1), "expected `weight` from 0 to 1, got {0}", weight)
    rounded: Scalar = ex.float32(weight)
    return rounded


def require_pair(c: Lowering, x: Value, other: Value) -> None:
    """Require images of one type and shape."""
    c.expect(
        x.dtype == other.dtype and x.rank == other.rank,
        f"expected two images of one type and as many axes, got {x.dtype} with {x.rank} and {other.dtype} with "
        f"{other.rank}",
    )
    for axis, (a, b) in enumerate(zip(x.shape, other.shape, strict=True)):
        text = f"expected two images of one shape, got {{0}} and {{1}} elements along axis {axis}. Resize them before"
        c.require(ex.equal(a, b), text, a, b)


def mixed_labels(c: Lowering, labels: Sequence[Value], weight: Scalar) -> tuple[Value, ...]:
    """Return the soft label of a pair of labels, if there is one."""
    if not labels:
        return ()
    c.expect(len(labels) == 2, "expected the labels of both images, got one label")
    own, other = labels
    rest = ex.float32(1 - weight)
    classes = c.const("num_classes")
    if own.dtype.is_float:
        c.expect(own.dtype == other.dtype and own.rank == other.rank == 1, "expected two soft labels of one type")
        c.expect(classes == 0, "expected `num_classes` for labels that are whole numbers only")
        text = "expected two soft labels of one length, got {0} and {1}"
        c.require(ex.equal(own.shape[0], other.shape[0]), text, own.shape[0], other.shape[0])
        wide = DType.FLOAT64 if own.dtype == DType.FLOAT64 else DType.FLOAT
        parts = [load(own.dtype, i).cast(wide) * uniform(w, wide) for i, w in enumerate((weight, rest))]
        return (c.pointwise([own, other], (parts[0] + parts[1]).cast(own.dtype)),)
    c.expect(1 <= classes <= _MOST_CLASSES, f"expected `num_classes` from 1 to {_MOST_CLASSES}, got {classes}")
    c.expect(not other.dtype.is_float, f"expected two labels that are whole numbers, got {other.dtype}")
    program = None
    for label, share in ((own, weight), (other, rest)):
        count = ex.product(label.shape)
        actual: Any = Expr("count", label.id) if count is None else count
        c.require(ex.equal(actual, 1), "expected one number as label, got {0}", actual)
        k = c.element(label)
        c.require(ex.both(k >= 0, k < classes), "expected labels below `num_classes` ({1}), got {0}", k, classes)
        part = select(binary("eq", load(DType.INT32), uniform(k, DType.INT32)), uniform(share), uniform(0.0))
        program = part if program is None else program + part
    assert program is not None
    return (c.pointwise([c.constant(np.arange(classes, dtype=np.int32))], program),)


def mixed_labels_reference(row: RowContext, labels: Sequence[Any], weight: Any) -> tuple[Any, ...]:
    """Return the same in NumPy."""
    if not labels:
        return ()
    one: Any = np.float32(1)
    shares = (np.float32(weight), one - np.float32(weight))
    if labels[0].dtype.kind == "f":
        wide: Any = np.float64 if labels[0].dtype == np.float64 else np.float32
        parts = [x.astype(wide) * wide(share) for x, share in zip(labels, shares, strict=True)]
        return ((parts[0] + parts[1]).astype(labels[0].dtype),)
    soft = np.zeros(row["num_classes"], np.float32)
    for x, share in zip(labels, shares, strict=True):
        if not 0 <= int(x.reshape(-1)[0]) < len(soft):
            raise ArgumentError("expected labels below `num_classes`")
        soft[int(x.reshape(-1)[0])] += share
    return (soft,)
