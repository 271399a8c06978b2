# SPDX-License-Identifier: Apache-2.0
"""``segmentation.random_object_bbox``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError, UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import load
from ...contract.step import Value, ViewOp
from ...contract.sums import sum_in_order
from ...contract.types import DType

_FORMATS = ("anchor_shape", "start_end", "box")
_LABELS = (DType.BOOL, DType.UINT8, DType.INT8, DType.UINT16, DType.INT16, DType.INT32)
_MOST_CLASSES = 256
_LARGEST = (1 << 31) - 1


class RandomObjectBBox(Operator, name="segmentation.random_object_bbox"):
    """Draw an object of a label mask and return its bounding box. Input: labels of up to 32 bits, any number of axes.
    Outputs, int32: anchor and shape, start and end, or one box of both; with ``output_class`` the object's label.

    With the probability ``foreground_prob`` a class is drawn, all equally likely or by ``class_weights``, then one of
    its objects. An object is a set of pixels of one label that are joined through faces, not corners. Objects smaller
    than ``threshold`` do not count, nor those that are not among the ``k_largest`` boxes. A class without objects is
    drawn again; if there is none left, the box is the whole mask and the label the background.

    The operator runs on the CPU, as in DALI: windows and shapes are computed from the box before a GPU starts.
    """

    devices = ("cpu",)
    draws = 1
    background = arg(
        "int", 0, per_row=True,
        doc="Label of the background; if not given and 0 is one of `classes`, the least number from 0 that is not.",
    )  # fmt: skip
    cache_objects = arg("bool", False, doc="Accepted, without effect: the objects of each row are searched.")
    class_weights = arg(
        "float", None, many=True, per_row=True, doc="Weights of `classes`, or of the labels 1, 2, ... Not negative."
    )
    classes = arg(
        "int", None, many=True, per_row=True, doc="Labels of the foreground; by default all but `background`."
    )
    foreground_prob = arg("float", 1.0, per_row=True, doc="Probability of an object instead of the whole mask.")
    format = arg("str", "anchor_shape", choices=_FORMATS, doc="Outputs: anchor_shape, start_end or box.")
    ignore_class = arg("bool", False, doc="All objects are equally likely, of whatever class.")
    k_largest = arg("int", None, doc="Number of objects with the largest boxes that count.")
    output_class = arg("bool", False, doc="Also return the object's label.")
    threshold = arg(
        "int", None, many=True, per_axis=True, per_row=True, doc="Least extents of a box, one for all axes or one each."
    )
    cases = (
        {},
        {"format": "box", "output_class": True, "foreground_prob": 0.7, "threshold": (2, 1, 1)},
        {"format": "start_end", "classes": (0, 2, 3), "class_weights": (1.0, 5.0, 0.5), "output_class": True},
        {"ignore_class": True, "k_largest": 2, "background": 3},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rng = np.random.default_rng(2)
        return samples.each(*(rng.integers(0, 4, shape).astype(np.uint8) for shape in ((6, 9, 2), (14, 11, 1))))

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return (1 if args["format"] == "box" else 2) + int(args["output_class"])

    def validate(self, args: Mapping[str, Any]) -> None:
        def refuse(holds: Any, text: str) -> None:
            if not holds:
                raise ArgumentError(f"`segmentation.random_object_bbox`: {text}")

        known = all(args.get(k, 0) is None for k in ("classes", "class_weights")) and not args["output_class"]
        text = "expected `ignore_class` without `classes`, `class_weights` and `output_class`"
        refuse(known or not args["ignore_class"], text)
        k = args["k_largest"]
        refuse(k is None or 1 <= k <= _LARGEST, f"expected `k_largest` of at least 1, got {k}")

    def lower(self, c: Lowering, mask: Value) -> tuple[Value, ...]:
        if mask.dtype not in _LABELS:
            raise UnsupportedError(
                "`segmentation.random_object_bbox`: expected labels of type bool, int8, uint8, int16, uint16 or int32, "
                f"got {mask.dtype}. Cast them first"
            )
        c.expect(mask.rank > 0, "expected a mask with at least one axis, got a single number")
        probability = c.scalar("foreground_prob")
        inside = ex.both(probability >= 0, probability <= 1)
        c.require(inside, "expected `foreground_prob` from 0 to 1, got {0}", probability)
        classes, weights = self._classes(c)
        least: list[Any] = [0] * mask.rank
        if c.given("threshold"):
            count = c.fixed_length("threshold")
            text = f"expected one number as `threshold`, or one for each of {mask.rank} axes, got {count}"
            c.expect(count in (1, mask.rank), text)
            least = [c.scalar("threshold", k) for k in range(mask.rank)]
        attrs = (*c.draw, len(classes), len(weights), c.const("ignore_class"), c.const("k_largest") or 0)
        box, label = c.native(
            "random_object", [mask], [(DType.INT32, (2 * mask.rank,), ""), (DType.INT32, (), "")],
            attrs=attrs, params=(probability, self._background(c, classes), *least, *classes, *weights),
        )  # fmt: skip
        start, end = (c.view(box, [ViewOp("slice", 0, at, 1, mask.rank)]) for at in (0, mask.rank))
        boxes: tuple[Value, ...] = (start, end)
        if c.const("format") == "anchor_shape":
            boxes = (start, c.pointwise([end, start], load(DType.INT32, 0) - load(DType.INT32, 1)))
        elif c.const("format") == "box":
            boxes = (box,)
        return (*boxes, label) if c.const("output_class") else boxes

    @staticmethod
    def _classes(c: Lowering) -> tuple[list[Any], list[Any]]:
        weights: list[Any] = []
        if c.given("class_weights"):
            weights = _scalars(c, "class_weights")
            for w in weights:
                right = ex.both(ex.isfinite(w), w >= 0)
                c.require(right, "expected finite `class_weights` of at least 0, got {0}", w)
        if not c.given("classes"):
            return list(range(1, len(weights) + 1)), weights
        classes = _scalars(c, "classes")
        text = f"expected as many `class_weights` as `classes` ({len(classes)}), got {len(weights)}"
        c.expect(len(weights) in (0, len(classes)), text)
        return classes, weights

    @staticmethod
    def _background(c: Lowering, classes: list[Any]) -> Any:
        background = c.scalar("background")
        if c.scope_given("background") or not classes:
            for k in classes:
                c.require(
                    ex.different(k, background), "expected `background` ({0}) not to be one of `classes`", background
                )
            return background
        free: Any = len(classes)
        for n in reversed(range(len(classes))):
            taken: Any = 0
            for k in classes:
                taken = ex.either(taken, ex.equal(k, n))
            free = ex.where(taken, free, n)
        return free

    def reference(self, row: RowContext, mask: Any) -> Any:
        start, end, label = self._drawn(row, mask)
        boxes: tuple[Any, ...] = (start, end)
        if row["format"] == "anchor_shape":
            boxes = (start, end - start)
        elif row["format"] == "box":
            boxes = (np.concatenate([start, end]),)
        return (*boxes, np.int32(label)) if row["output_class"] else boxes

    def _drawn(self, row: RowContext, mask: Any) -> tuple[Any, Any, int]:
        weights = None if row["class_weights"] is None else [float(w) for w in np.asarray(row["class_weights"])]
        classes = None if row["classes"] is None else [int(k) for k in np.asarray(row["classes"])]
        if classes is None and weights is not None:
            classes = list(range(1, len(weights) + 1))
        background = int(row.number("background"))
        if classes and background == 0 and 0 in classes:
            background = next(n for n in range(len(classes) + 1) if n not in classes)
        whole = (np.zeros(mask.ndim, np.int32), np.array(mask.shape, np.int32), background)
        if not row.stream.uniform() < row.number("foreground_prob") or not mask.size:
            return whole
        least = np.zeros(mask.ndim) if row["threshold"] is None else np.asarray(row["threshold"])
        blobs = [b for b in _blobs(mask, classes, background) if (b[1] - b[0] >= least).all()]
        if row["ignore_class"]:
            return self._one_of(row, blobs) if blobs else whole
        names = sorted({b[2] for b in blobs}) if classes is None else classes
        left = dict(zip(range(len(names)), weights or [1.0] * len(names), strict=True))
        while left and (total := sum_in_order(left.values())) > 0:
            u, sums, at = row.stream.uniform() * total, 0.0, -1
            for number, w in left.items():
                at = number if w > 0 else at
                sums += w
                if u < sums:
                    break
            own = [b for b in blobs if b[2] == names[at]]
            if own:
                return self._one_of(row, own)
            del left[at]
        return whole

    @staticmethod
    def _one_of(row: RowContext, blobs: list[tuple[Any, Any, int]]) -> tuple[Any, Any, int]:
        if row["k_largest"] is not None and row["k_largest"] < len(blobs):
            blobs = sorted(blobs, key=lambda b: -math.prod(int(n) for n in b[1] - b[0]))[: row["k_largest"]]
        return blobs[min(int(row.stream.uniform() * len(blobs)), len(blobs) - 1)]


def _scalars(c: Lowering, argument: str) -> list[Any]:
    """Return the numbers of an argument of one number per class."""
    count = c.fixed_length(argument)
    c.expect(count > 0, f"expected at least one number as `{argument}`, got an empty list")
    c.expect(count <= _MOST_CLASSES, f"expected at most {_MOST_CLASSES} numbers as `{argument}`, got {count}")
    return [c.scalar(argument, i) for i in range(count)]


def _blobs(mask: Any, classes: list[int] | None, background: int) -> list[tuple[Any, Any, int]]:
    """Return start, end and label of each connected object, in the order of their first pixels."""
    found, seen = [], np.zeros(mask.shape, bool)
    for place in np.ndindex(mask.shape):
        label = int(mask[place])
        if seen[place] or (label == background if classes is None else label not in classes):
            continue
        seen[place], todo, pixels = True, [place], []
        while todo:
            pixels.append(at := todo.pop())
            for axis in range(mask.ndim):
                for step in (-1, 1):
                    near = (*at[:axis], at[axis] + step, *at[axis + 1 :])
                    if 0 <= near[axis] < mask.shape[axis] and not seen[near] and mask[near] == label:
                        seen[near] = True
                        todo.append(near)
        corners = np.array(pixels, np.int32)
        found.append((corners.min(0), corners.max(0) + np.int32(1), label))
    return found
