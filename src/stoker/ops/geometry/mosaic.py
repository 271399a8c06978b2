# SPDX-License-Identifier: Apache-2.0
"""``mosaic``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.step import Value
from ...contract.types import InterpType
from ._affine_objects import AREA_DOC, VISIBILITY_DOC
from .mosaic_places import IMAGES, MosaicArguments


class Mosaic(MosaicArguments, name="mosaic"):
    """Join four images into one that shows a part of each (Bochkovskiy et al., "YOLOv4", 2020). Inputs: four images HWC
    with equal channels; by name ``boxes``, ``masks`` and ``labels``, a list of four each. Outputs: the image, HWC of
    ``size``; boxes, masks and labels of all that is left, in the order of the images.

    Each image is resized, with its proportions, to the smallest size that covers the canvas (`resize` with
    ``mode="not_smaller"``). Its inner corner is put at ``center``, so the canvas shows the lower right part of the
    first image at the top left, and no pixel is empty. Boxes are cut at the part that their image has. Objects are
    dropped together as in `geometry`. `readers.partner` with three different ``number`` reads the other samples, so
    that the batch size changes nothing.
    """

    inputs = (IMAGES, 4 * IMAGES)
    named_inputs: ClassVar[dict[str, str]] = {
        "boxes": "Boxes of each image, float32 (N, 4). Four.",
        "masks": "A mask of labels of each image, HW; or with `mask_layout` NHW a mask for each box. Four.",
        "labels": "Anything with an element for each box along the first axis. Four.",
    }
    listed_inputs = ("boxes", "masks", "labels")
    bbox_layout = arg("str", "xyXY", doc="Numbers of a box: xyXY or xyWH.")
    normalized = arg("bool", False, doc="Boxes are relative to the image, else in pixels.")
    mask_layout = arg("str", "HW", choices=("HW", "NHW"), doc="Axes of `masks`.")
    min_area = arg("float", 0.0, per_row=True, doc=AREA_DOC)
    min_visibility = arg("float", 0.0, per_row=True, doc=VISIBILITY_DOC)
    input_names = arg("str", (), many=True, doc="Names of the inputs after the images, for calls by position.")
    cases = (
        {"size": (12, 18)},
        {
            "size": (14, 11), "center": (0.3, 0.6), "min_visibility": 0.2,
            "input_names": ("boxes",) * IMAGES + ("labels",) * IMAGES,
        },
        {"size": (9, 9), "center": (0.7, 0.4), "input_names": ("masks",) * IMAGES},
        {
            "size": (16, 20), "center": (0.0, 0.5), "mask_layout": "NHW", "normalized": True,
            "input_names": ("boxes",) * IMAGES + ("masks",) * IMAGES,
        },
    )  # fmt: skip

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rows: samples.Rows = []
        for i in range(3):
            images = [samples.noise(4 * i + k, (9 + 3 * k, 12 + i, 3)) for k in range(IMAGES)]
            given: dict[str, list[Any]] = {"boxes": [], "masks": [], "labels": []}
            for k, x in enumerate(images):
                rng, n = np.random.default_rng(k), (i + k) % 3
                low, extent = rng.uniform(0, 0.5, (n, 2)), rng.uniform(0.1, 0.5, (n, 2))
                scale = 1 if case.get("normalized") else 9
                given["boxes"].append((scale * np.concatenate([low, low + extent], 1)).astype(np.float32))
                shape = (n, *x.shape[:2]) if case.get("mask_layout") else x.shape[:2]
                given["masks"].append(rng.integers(0, 9, shape, np.uint8))
                given["labels"].append(np.arange(n, dtype=np.int64))
            names = dict.fromkeys(case.get("input_names", ()))
            rows.append((*images, *(x for name in names for x in given[name])))
        return rows

    def count_outputs_with(self, args: Mapping[str, Any], inputs: int) -> int:
        return 1 + len(args["input_names"]) // IMAGES

    def arrange_outputs(self, args: Mapping[str, Any], outputs: Sequence[Any]) -> Any:
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    def validate(self, args: Mapping[str, Any]) -> None:
        names = args["input_names"]
        own = [n for n in self.named_inputs if n in names]
        if names != tuple(n for n in own for _ in range(IMAGES)):
            raise ArgumentError(
                f"`mosaic`: expected four `boxes`, four `masks` and four `labels`, or none; got {names}"[:200]
            )
        if "boxes" not in own and ("labels" in own or ("masks" in own and args["mask_layout"] == "NHW")):
            raise ArgumentError("`mosaic`: `labels` and masks of objects need `boxes`, which say what is left")

    def compose(self, c: Lowering, *inputs: Value) -> tuple[Value, ...]:
        names = c.const("input_names")
        c.expect(len(inputs) == IMAGES + len(names), "expected four images, got {0}", len(inputs) - len(names))
        images, rest = inputs[:IMAGES], inputs[IMAGES:]
        for x in images:
            c.expect(c.layout(x) == "HWC", f"expected images of layout HWC, got {c.layout(x)!r}")
        given = {name: rest[i : i + IMAGES] for i, name in enumerate(names) if i % IMAGES == 0}
        size = c.pass_on("size")
        shown = [c.apply("resize", x, size=size, mode="not_smaller") for x in images]
        starts, extents, places, *parts = c.apply(
            "_mosaic_places", *images, *shown, size=size, center=c.pass_on("center")
        )
        region = {"in_anchors": starts, "shapes": extents, "out_anchors": places, "output_size": size}
        canvas = c.apply("multi_paste", *shown, **region)
        left: list[Any] = [None] * IMAGES
        made: dict[str, list[Value]] = {name: [] for name in given}
        for i in range(IMAGES if "boxes" in given else 0):
            kept, left[i] = c.apply(
                "_affine_boxes", given["boxes"][i], images[i], canvas, matrix=parts[2 * i], window=parts[2 * i + 1],
                bbox_layout=c.const("bbox_layout"), normalized=c.const("normalized"),
                min_area=c.pass_on("min_area"), min_visibility=c.pass_on("min_visibility"),
            )  # fmt: skip
            made["boxes"].append(kept)
            for name in ("labels", "masks"):
                if (name == "labels" and name in given) or (name in given and c.const("mask_layout") == "NHW"):
                    x, boxes = given[name][i], given["boxes"][i]
                    c.expect(x.rank > 0, f"expected `{name}` with an axis of objects, got a single number")
                    text = f"expected an element of `{name}` for each of {{0}} boxes, got {{1}}"
                    c.require(ex.equal(x.shape[0], boxes.shape[0]), text, boxes.shape[0], x.shape[0])
                    made[name].append(c.apply("gather", x, left[i]))
        if "masks" in given and c.const("mask_layout") == "HW":
            made["masks"] = list(given["masks"])
        joined = {name: c.apply("cat", *values) for name, values in made.items() if name != "masks"}
        if "masks" in given:
            joined["masks"] = self._masks(c, images, made["masks"], region)
        return (canvas, *(joined[name] for name in given))

    @staticmethod
    def _masks(c: Lowering, images: Sequence[Value], masks: Sequence[Value], region: Mapping[str, Any]) -> Value:
        """Return masks on the canvas: one, or those of all objects."""
        per_object = c.const("mask_layout") == "NHW"
        shown = []
        for x, image in zip(masks, images, strict=True):
            c.expect(x.rank == (3 if per_object else 2), f"expected masks with layout {c.const('mask_layout')}")
            for axis, name in enumerate("HW", x.rank - 2):
                text = f"expected masks of the image's size, {{0}} along {name}, got {{1}}"
                c.require(ex.equal(x.shape[axis], c.extent(image, name)), text, c.extent(image, name), x.shape[axis])
            named = c.apply("reshape", x, layout="FHW" if per_object else "HW")
            resized = c.apply(
                "resize", named, size=region["output_size"], mode="not_smaller", interp_type=InterpType.INTERP_NN
            )
            shown.append(c.apply("expand_dims", resized, axes=(named.rank,), new_axis_names="C"))
        if not per_object:
            return c.apply("squeeze", c.apply("multi_paste", *shown, **region), axes=(2,))  # type: ignore[no-any-return]
        parts = []
        for i, x in enumerate(shown):
            own = {
                key: c.apply("slice", value, start=(2 * i,), shape=(2,), axes=(0,)) if key != "output_size" else value
                for key, value in region.items()
            }
            parts.append(c.apply("multi_paste", x, **own))
        return c.apply("reshape", c.apply("squeeze", c.apply("cat", *parts), axes=(3,)), layout="NHW")  # type: ignore[no-any-return]
