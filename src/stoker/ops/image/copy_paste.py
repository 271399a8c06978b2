# SPDX-License-Identifier: Apache-2.0
"""``copy_paste``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import binary, load, select, uniform
from ...contract.step import Value, ViewOp
from ...contract.types import DType
from ..generic._arithmetic_reference import common_type
from ..generic.gather import gathered
from ._mixing import require_pair

_MASKS = (DType.BOOL, DType.UINT8, DType.INT8)


class CopyPaste(Operator, name="copy_paste"):
    """Paste objects of another image into an image by their masks (Ghiasi et al., "Simple Copy-Paste is a Strong Data
    Augmentation Method for Instance Segmentation", 2021). Inputs: two images of one shape and type, HWC, CHW or HW; by
    name ``masks`` and optionally ``labels``, a pair each. Outputs: the image; boxes ``x0, y0, x1, y1`` in pixels,
    float32 (N, 4); masks (N, H, W); labels, if they are given.

    Each object of the second image is pasted with ``probability``, where it is. Pasted objects cover the image's own
    ones, whose masks lose these pixels; an own object is dropped if less than ``min_visibility`` of it, or nothing, is
    left. Boxes are the smallest ones around the masks that are left. Masks are read on the CPU.
    Own objects come first. `geometry` takes images of different sizes to one canvas before. `readers.partner` reads the
    second sample, so that the batch size changes nothing.
    """

    inputs = (4, 6)
    draws = 1
    named_inputs: ClassVar[dict[str, str]] = {
        "masks": "Masks of both images' objects, (N, H, W), bool or 8-bit; not 0 where an object is. A pair.",
        "labels": "Anything with an element for each object along the first axis. A pair.",
    }
    listed_inputs = ("masks", "labels")
    probability = arg("float", 0.5, per_row=True, doc="Probability that an object of the second image is pasted.")
    min_visibility = arg(
        "float", 0.0, per_row=True, doc="Least share of an own object that stays visible, from 0 to 1."
    )
    input_names = arg("str", (), many=True, doc="Names of the inputs after the images, for calls by position.")
    cases = (
        {"input_names": ("masks", "masks"), "probability": 1.0},
        {"input_names": ("masks", "masks", "labels", "labels"), "min_visibility": 0.6},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rows: samples.Rows = []
        for i, images in enumerate(samples.images(copies=2)):
            height, width = images[0].shape[:2]
            rng, masks = np.random.default_rng(i), []
            for count in (2 * i, 3):
                own = np.zeros((count, height, width), np.uint8)
                for mask in own:
                    y, x = rng.integers(0, height - 4), rng.integers(0, width - 4)
                    mask[y : y + 4, x : x + 6] = rng.integers(1, 255)
                masks.append(own)
            labels = [np.arange(len(m), dtype=np.int32) for m in masks] if len(case["input_names"]) > 2 else []
            rows.append((*images, *masks, *labels))
        return rows

    def count_outputs_with(self, args: Mapping[str, Any], inputs: int) -> int:
        return 4 if "labels" in args["input_names"] else 3

    def arrange_outputs(self, args: Mapping[str, Any], outputs: Sequence[Any]) -> Any:
        return tuple(outputs)

    def validate(self, args: Mapping[str, Any]) -> None:
        names = args["input_names"]
        if names not in (("masks",) * 2, ("masks",) * 2 + ("labels",) * 2):
            raise ArgumentError(
                f"`copy_paste`: expected a pair of `masks`, and a pair of `labels` or none, got {names}"
            )

    def lower(self, c: Lowering, x: Value, other: Value, *inputs: Value) -> tuple[Value, ...]:
        require_pair(c, x, other)
        c.expect(len(inputs) == len(c.const("input_names")), "expected a name in `input_names` for each input")
        layout = c.layout(x)
        c.expect(layout in ("HWC", "CHW", "HW"), f"expected images of layout HWC, CHW or HW, got {layout!r}")
        own, pasted, *labels = inputs
        size = (c.extent(x, "H"), c.extent(x, "W"))
        for masks in (own, pasted):
            text = f"expected masks (N, H, W) of bool, uint8 or int8, got {masks.dtype} with {masks.rank} axes"
            c.expect(masks.rank == 3 and masks.dtype in _MASKS and masks.dtype == own.dtype, text)
            right = ex.both(ex.equal(masks.shape[1], size[0]), ex.equal(masks.shape[2], size[1]))
            text = "expected masks of the image's size, {0} x {1}, got {2} x {3}"
            c.require(right, text, *size, masks.shape[1], masks.shape[2])
        probability, least = c.scalar("probability"), c.scalar("min_visibility")
        for name, number in (("probability", probability), ("min_visibility", least)):
            c.require(ex.both(number >= 0, number <= 1), f"expected `{name}` from 0 to 1, got {{0}}", number)
        for k, (given, masks) in enumerate(zip(labels, (own, pasted), strict=False)):
            c.expect(given.rank > 0, "expected labels with an axis, got a single one")
            text = f"expected a label for each of {{0}} objects of image {k}, got {{1}}"
            c.require(ex.equal(given.shape[0], masks.shape[0]), text, masks.shape[0], given.shape[0])
        covered, kept, boxes, index, _ = c.native(
            "paste_objects", [own, pasted],
            [
                (DType.UINT8, size, "HW"), (own.dtype, (None, *size), own.layout), (DType.FLOAT, (None, 4), ""),
                (DType.INT32, (None,), ""),
            ],
            attrs=c.draw, params=(probability, least), max_output=own.shape[0] + pasted.shape[0],
        )  # fmt: skip
        at = layout.find("C")
        shown = c.view(covered, [ViewOp("insert", at)], "") if at >= 0 else covered
        is_pasted = binary("ne", load(DType.UINT8, 2), uniform(0, DType.UINT8))
        image = c.pointwise([x, other, shown], select(is_pasted, load(x.dtype, 1), load(x.dtype, 0)))
        joined = [gathered(c, c.apply("cat", *labels), index, argument="labels")] if labels else []
        return (image, boxes, kept, *joined)

    def reference(self, row: RowContext, x: Any, other: Any, own: Any, pasted: Any, *labels: Any) -> Any:
        if x.shape != other.shape or own.shape[1:] != pasted.shape[1:]:
            raise ValueError("expected images and masks of one shape")
        if not (0 <= row.number("probability") <= 1 and 0 <= row.number("min_visibility") <= 1):
            raise ValueError("expected `probability` and `min_visibility` from 0 to 1")
        draws = [row.stream.uniform() < row.number("probability") for _ in pasted]
        taken = [i for i, drawn in enumerate(draws) if drawn]
        covered = (pasted[taken] != 0).any(0) if taken else np.zeros(own.shape[1:], bool)
        visible = np.where(covered, 0, own).astype(own.dtype)
        index, masks, boxes = [], [], []
        for i, mask in enumerate(visible):
            left, whole = np.count_nonzero(mask), np.count_nonzero(own[i])
            if left and left >= row.number("min_visibility") * whole:
                index.append(i)
                masks.append(mask)
        for i in taken:
            if pasted[i].any():
                index.append(len(own) + i)
                masks.append(pasted[i])
        for mask in masks:
            rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
            boxes.append((columns[0], rows[0], columns[-1] + 1, rows[-1] + 1))
        layout = row.layout or {2: "HW", 3: "HWC"}[x.ndim]
        at = layout.find("C")
        shown = np.expand_dims(covered, at) if at >= 0 else covered
        out = (
            np.where(shown, other, x), np.array(boxes, np.float32).reshape(-1, 4),
            np.array(masks, own.dtype).reshape(-1, *own.shape[1:]),
        )  # fmt: skip
        if not labels:
            return out
        dtype = common_type([v.dtype for v in labels])
        return (*out, np.concatenate([v.astype(dtype) for v in labels])[index])
