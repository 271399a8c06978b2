# SPDX-License-Identifier: Apache-2.0
"""``random_bbox_crop``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ..generic.gather import gathered
from ._boxes import BoxLayout

_MOST_ATTEMPTS = 10_000  # without `total_num_attempts` (native/kernels/random_bbox_crop.cpp)
_MOST_AT_ONCE = 1 << 20
_LARGEST = 1 << 24
_METRICS = ("iou", "overlap")


class RandomBBoxCrop(Operator, name="random_bbox_crop"):
    """Draw a window of the image that keeps enough of its boxes, as in the training of SSD. Inputs: boxes relative to
    the image, float32 (N, 4), or (N, 6) for volumes; optionally N labels, any type. Outputs: anchor and shape of the
    window for `slice`, float32, in the order x, y(, z); the boxes that are left, relative to the window; their labels,
    if there are any; with ``output_bbox_indices`` their numbers, int32.

    A draw takes one of ``thresholds`` (or, with ``allow_no_crop``, no crop) and proposes up to ``num_attempts``
    windows; then it takes another threshold. A window is taken if it has the aspect ratio, every box reaches the
    threshold, and a box is left. A box is left if its centre lies in the window, or with ``bbox_prune_threshold`` if
    this share of its area does. Without boxes the first window is taken. So no crop is drawn more often than one in
    ``len(thresholds) + 1``: it also ends searches that fail.

    Without ``total_num_attempts``, a row whose 10,000 windows all fail is an error; DALI searches for ever. With it,
    the window with the best metric is used. If ``aspect_ratio`` is one value, one random axis determines the others,
    within the image; DALI proposes windows up to 1.8 times as large as the image. Boxes outside [0, 1] are refused. The
    numbers that are drawn are Stoker's own.

    The operator runs on the CPU, as in DALI: images are decoded in the window, and shapes are computed from it.
    """

    devices = ("cpu",)
    inputs = (1, 2)
    draws = 1
    all_boxes_above_threshold = arg("bool", True, doc="Every box must reach the threshold, else one of them.")
    allow_no_crop = arg("bool", True, doc="The whole image is one of the outcomes; not with `crop_shape`.")
    aspect_ratio = arg(
        "float", (1.0, 1.0), many=True,
        doc="Range of width over height, relative to the image, or in pixels with `input_shape`. For volumes also "
        "three ranges: x/y, x/z, y/z.",
    )  # fmt: skip
    bbox_layout = arg(
        "str", "", doc="Numbers of a box: xyXY or xyWH, by default by `ltrb`; for volumes xyzXYZ or xyzWHD."
    )
    bbox_prune_threshold = arg("float", None, doc="Least share of a box's area within the window.")
    crop_shape = arg("int", None, many=True, per_axis=True, per_row=True, doc="Fixed size of the window in pixels.")
    input_shape = arg("int", None, many=True, per_axis=True, per_row=True, doc="Size of the image in pixels.")
    ltrb = arg("bool", True, doc="Boxes are left, top, right, bottom instead of x, y, width, height.")
    num_attempts = arg("int", 1, doc="Windows that are proposed for a threshold.")
    output_bbox_indices = arg("bool", False, doc="Also return the numbers of the boxes that are left.")
    quiet = arg("bool", False, doc="Accepted, without effect: there is no warning.")
    scaling = arg("float", (1.0, 1.0), many=True, doc="Range of the window's extents relative to the image's.")
    shape_layout = arg("str", "", doc="Order of `crop_shape` and `input_shape`: WH (default), HW, WHD, ...")
    threshold_type = arg("str", "iou", choices=_METRICS, doc="Metric: iou, or overlap (share of the box).")
    thresholds = arg("float", (0.0,), many=True, doc="Least metrics of window and boxes; one is drawn.")
    total_num_attempts = arg("int", -1, doc="Windows after which the best one is used.")
    cases = (
        {"scaling": (0.3, 1.0), "aspect_ratio": (0.5, 2.0), "thresholds": (0.0, 0.1, 0.3), "num_attempts": 50},
        {
            "scaling": (0.3, 0.8), "allow_no_crop": False, "bbox_prune_threshold": 0.2, "ltrb": False,
            "input_shape": (60, 45), "total_num_attempts": 30, "thresholds": (0.7,), "output_bbox_indices": True,
        },
        {
            "crop_shape": (20, 70), "input_shape": (60, 45), "threshold_type": "overlap", "thresholds": (0.2,),
            "shape_layout": "HW", "all_boxes_above_threshold": False,
        },
    )  # fmt: skip

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rows: samples.Rows = []
        for i, n in enumerate((3, 0, 7, 1)):
            rng = np.random.default_rng(i)
            low, extent = rng.uniform(0, 0.6, (n, 2)), rng.uniform(0.1, 0.4, (n, 2))
            second = extent if case.get("ltrb") is False else low + extent
            rows.append((np.concatenate([low, second], 1).astype(np.float32), np.arange(n, dtype=np.int32)))
        return rows

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return 3 + int(args["output_bbox_indices"])

    def count_outputs_with(self, args: Mapping[str, Any], inputs: int) -> int:
        return inputs + 2 + int(args["output_bbox_indices"])

    def validate(self, args: Mapping[str, Any]) -> None:
        def refuse(holds: Any, text: str) -> None:
            if not holds:
                raise ArgumentError(f"`random_bbox_crop`: {text}")

        fixed, ratios, scaling = args.get("crop_shape", ()), args["aspect_ratio"], args["scaling"]
        sized = "crop_shape" not in args or fixed is not None
        known = "input_shape" not in args or args["input_shape"] is not None
        refuse(known or not sized, "`crop_shape` needs `input_shape`, the size of the image")
        free = (tuple(ratios), tuple(scaling)) == ((1.0, 1.0), (1.0, 1.0))
        refuse(free or not sized, "expected `crop_shape`, or `scaling` and `aspect_ratio`, got both")
        pairs = [ratios[i : i + 2] for i in range(0, len(ratios), 2)]
        right = all(len(p) == 2 and 0 < p[0] <= p[1] < math.inf for p in pairs) and len(pairs) in (1, 3)
        refuse(right, f"expected `aspect_ratio` as one or three ranges of positive numbers, got {ratios}")
        right = len(scaling) == 2 and 0 <= scaling[0] <= scaling[1] <= 1 and scaling[1] > 0
        refuse(right, f"expected `scaling` as a range within [0, 1] that does not end at 0, got {scaling}")
        refuse(len(args["thresholds"]), "expected at least one number as `thresholds`, got an empty list")
        right = all(0 <= t <= 1 for t in args["thresholds"])
        refuse(right, f"expected `thresholds` from 0 to 1, got {args['thresholds']}")
        prune, attempts, total = args["bbox_prune_threshold"], args["num_attempts"], args["total_num_attempts"]
        refuse(prune is None or 0 <= prune <= 1, f"expected `bbox_prune_threshold` from 0 to 1, got {prune}")
        refuse(1 <= attempts <= _MOST_AT_ONCE, f"expected `num_attempts` from 1 to {_MOST_AT_ONCE}, got {attempts}")
        right = total == -1 or 1 <= total <= _MOST_AT_ONCE
        refuse(right, f"expected `total_num_attempts` from 1 to {_MOST_AT_ONCE}, or -1 for none, got {total}")

    def lower(self, c: Lowering, boxes: Value, *labels: Value) -> tuple[Value, ...]:
        c.expect(
            boxes.dtype == DType.FLOAT and boxes.rank == 2,
            f"expected boxes of float32 with two axes, got {boxes.dtype} with {boxes.rank}",
        )
        layout = BoxLayout.of(c, boxes)
        sizes = self._sizes(c, layout.axes)
        for x in labels:
            c.expect(x.rank > 0, "expected labels with an axis, got a single one")
            text = "expected a label for each of {0} boxes, got {1}"
            c.require(ex.equal(x.shape[0], boxes.shape[0]), text, boxes.shape[0], x.shape[0])
        ratios = c.const("aspect_ratio")
        c.expect(len(ratios) == 2 or layout.axes == 3, f"expected one range as `aspect_ratio`, got {len(ratios) // 2}")
        fixed, prune = c.given("crop_shape"), c.const("bbox_prune_threshold")
        n, numbers = boxes.shape[0], 2 * layout.axes
        anchor, shape, kept, index, _ = c.native(
            "random_bbox_crop", [boxes],
            [
                (DType.FLOAT, (layout.axes,), ""), (DType.FLOAT, (layout.axes,), ""),
                (DType.FLOAT, (None, numbers), boxes.layout), (DType.INT32, (None,), ""),
            ],
            attrs=(
                *c.draw, layout.axes, layout.low, layout.high, layout.extents, c.const("thresholds"),
                c.const("threshold_type") == "overlap", c.const("all_boxes_above_threshold"),
                c.const("allow_no_crop") and not fixed, ratios, c.const("scaling"), c.const("num_attempts"),
                max(c.const("total_num_attempts"), 0), -1.0 if prune is None else prune, fixed, c.given("input_shape"),
            ),
            params=sizes, max_output=n,
        )  # fmt: skip
        found = [gathered(c, x, index, argument="labels") for x in labels]
        return (anchor, shape, kept, *found, *((index,) if c.const("output_bbox_indices") else ()))

    @staticmethod
    def _sizes(c: Lowering, axes: int) -> list[Any]:
        """Return `crop_shape` and `input_shape`, if they are given, in the order of the axes."""
        names = "WHD"[:axes]
        order = c.const("shape_layout") or names
        c.expect(sorted(order) == sorted(names), f"expected `shape_layout` of the letters {names}, got {order!r}")
        sizes = []
        for name in ("crop_shape", "input_shape"):
            if not c.given(name):
                continue
            count = c.fixed_length(name)
            c.expect(count == axes, f"expected {axes} numbers as `{name}`, got {count}")
            for axis in names:
                extent = c.scalar(name, order.index(axis))
                right = ex.both(extent >= 1, ex.both(extent <= _LARGEST, ex.equal(ex.floor(extent), extent)))
                c.require(right, f"expected whole numbers from 1 to {_LARGEST} as `{name}`, got {{0}}", extent)
                sizes.append(extent)
        return sizes

    def reference(self, row: RowContext, boxes: Any, *labels: Any) -> Any:
        layout = BoxLayout.in_rows(row, boxes)
        low, high = layout.corners(boxes)
        if not ((low >= 0) & (low <= high) & (high <= 1)).all():
            raise ArgumentError("expected boxes within [0, 1], with the end not below the start")
        anchor, shape, window = _Search(row, layout.axes, low, high).window()
        if window is None:
            index, found = np.arange(len(boxes)), boxes
        else:
            index = np.flatnonzero(_kept(row, window, low, high))
            start, end = window
            extent = end - start
            places = [
                np.clip((edge - start) / extent, np.float32(0), np.float32(1))
                for edge in (np.maximum(start, low[index]), np.minimum(end, high[index]))
            ]
            found = layout.of_corners(*places)
        out = (anchor.astype(np.float32), shape.astype(np.float32), found, *(x[index] for x in labels))
        return (*out, index.astype(np.int32)) if row["output_bbox_indices"] else out


def _kept(row: RowContext, window: Any, low: Any, high: Any) -> Any:
    least = row["bbox_prune_threshold"]
    if least is not None:
        share = _shares(_common(window, low, high), _volumes(low, high))
        return (share > 0) & (share >= least)
    centre = np.float32(0.5) * (low + high)
    return ((centre >= window[0]) & (centre < window[1])).all(1)


def _volumes(low: Any, high: Any) -> Any:
    return np.prod(high.astype(np.float64) - low.astype(np.float64), axis=-1)


def _common(window: Any, low: Any, high: Any) -> Any:
    sides = np.minimum(high, window[1]).astype(np.float64) - np.maximum(low, window[0]).astype(np.float64)
    return np.prod(np.maximum(sides, 0), axis=-1)


def _shares(part: Any, whole: Any) -> Any:
    return np.divide(part, whole, out=np.zeros(np.broadcast(part, whole).shape), where=np.asarray(whole) > 0)


class _Search:
    """Search for a window in plain NumPy, with the draws of the native kernel."""

    def __init__(self, row: RowContext, axes: int, low: Any, high: Any) -> None:
        self.row, self.axes, self.low, self.high = row, axes, low, high
        names = "WHD"[:axes]
        order = row["shape_layout"] or names
        self.crop, self.image = (
            None if row[name] is None else [float(np.asarray(row[name]).reshape(-1)[order.index(a)]) for a in names]
            for name in ("crop_shape", "input_shape")
        )
        ratios = row["aspect_ratio"]
        ranges = [ratios[i : i + 2] for i in range(0, len(ratios), 2)]
        self.ratios = {pair: ranges[i % len(ranges)] for i, pair in enumerate(combinations(range(axes), 2))}

    def below(self, count: float) -> int:
        return min(int(self.row.stream.uniform() * count), int(count) - 1)

    def window(self) -> tuple[Any, Any, Any]:
        """Return anchor, shape, and the window's corners; None instead of corners: no crop."""
        row, thresholds, tried = self.row, self.row["thresholds"], 0
        best: tuple[float, Any] = (-1.0, None)
        total = max(row["total_num_attempts"], 0)
        most = total or _MOST_ATTEMPTS
        whole = row["allow_no_crop"] and self.crop is None
        while tried < most:
            option = self.below(len(thresholds) + whole)
            if option == len(thresholds):
                return np.zeros(self.axes), np.ones(self.axes), None
            for _ in range(min(row["num_attempts"], most - tried)):
                tried += 1
                proposal = self.place_crop() if self.crop else self.propose()
                if proposal is None:
                    continue
                metric = self.metric(proposal[2])
                if metric > best[0]:
                    best = metric, proposal
                left = not len(self.low) or _kept(row, proposal[2], self.low, self.high).any()
                if left and metric >= thresholds[option]:
                    return proposal  # type: ignore[no-any-return]
        if total and best[1] is not None:
            return best[1]  # type: ignore[no-any-return]
        raise ArgumentError(f"expected a window that satisfies the arguments, found none in {most} attempts")

    def metric(self, window: Any) -> float:
        if not len(self.low):
            return 1.0
        both = _common(window, self.low, self.high)
        own = _volumes(self.low, self.high)
        overlap = self.row["threshold_type"] == "overlap"
        values = _shares(both, own if overlap else _volumes(*window) + own - both)
        return float(values.min() if self.row["all_boxes_above_threshold"] else values.max())

    def place_crop(self) -> Any:
        assert self.crop and self.image
        anchor = []
        for crop, extent in zip(self.crop, self.image, strict=True):
            room = self.below(abs(extent - crop) + 1)
            anchor.append(float(room if crop <= extent else -room))
        low = [np.float32(a / n) for a, n in zip(anchor, self.image, strict=True)]
        high = [np.float32((a + s) / n) for a, s, n in zip(anchor, self.crop, self.image, strict=True)]
        return np.array(anchor), np.array(self.crop), (np.array(low), np.array(high))

    def propose(self) -> Any:
        lowest, highest = self.row["scaling"]
        image = self.image or [1.0] * self.axes
        side = [(lowest + (highest - lowest) * self.row.stream.uniform()) * n for n in image]
        fixed = {pair: r[0] for pair, r in self.ratios.items() if r[0] == r[1]}
        if fixed:
            side = self.with_ratios(fixed, side, image)
        if not all(s > 0 for s in side):
            return None
        for (i, j), (least, most) in self.ratios.items():
            slack = 1e-9 if least == most else 0
            if not least * (1 - slack) <= side[i] / side[j] <= most * (1 + slack):
                return None
        low, extent = [], []
        for s, n in zip(side, image, strict=True):
            share = min(s / n, 1.0)
            low.append(np.float32((1 - share) * self.row.stream.uniform()))
            extent.append(np.float32(share))
        start, length = np.array(low, np.float32), np.array(extent, np.float32)
        return start, length, (start, np.minimum(start + length, np.float32(1)))

    def with_ratios(self, fixed: Mapping[Any, float], drawn: Sequence[float], image: Sequence[float]) -> list[float]:
        side, known = list(drawn), {self.below(self.axes)}
        for _ in range(self.axes):
            for (i, j), ratio in fixed.items():
                if (i in known) == (j in known):
                    continue
                if i in known:
                    side[j] = side[i] / ratio
                else:
                    side[i] = side[j] * ratio
                known |= {i, j}
        before = max(drawn[k] / image[k] for k in known)
        now = max(side[k] / image[k] for k in known)
        return [s * (before / now) if k in known else s for k, s in enumerate(side)]
