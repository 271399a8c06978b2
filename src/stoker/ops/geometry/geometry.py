# SPDX-License-Identifier: Apache-2.0
"""``geometry``."""

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
from ._warp import WarpArguments

_MOST_MATRICES = 64
_OBJECTS = ("boxes", "rotated_boxes")  # inputs that decide which objects are left, the first one that is given


class Geometry(WarpArguments, name="geometry"):
    """Move an image and everything that is marked in it by affine matrices. Inputs: the image, HWC, CHW or HW; by name
    the annotations and ``ops``. Outputs: the image, then the given annotations in the order of this page's table; with
    ``output_indices`` the numbers of the objects that are left, int32.

    ``ops`` are matrices of ``transforms``, the first one first. Their product takes a point (x, y) of the image to one
    of the canvas; corners of pixels are at whole numbers. The image is resampled once (`warp_affine`, without
    antialiasing), masks by nearest neighbours.

    An object is a row of ``boxes``, ``rotated_boxes``, ``labels``, ``keypoints`` with three axes, and masks with the
    layout NHW. Objects are dropped together: those that ``boxes`` (or, without them, ``rotated_boxes``) leave less than
    ``min_area`` or ``min_visibility`` of within the canvas, and those without any area there. A box becomes the
    smallest one around its corners, and is cut at the canvas. A rotated box becomes the smallest one around the
    parallelogram that the matrix makes of it, and is not cut. Polygons are cut. Points outside of the canvas get
    visibility 0. Coordinates are computed in double and rounded once.
    """

    inputs = (2, 8 + _MOST_MATRICES)
    named_inputs: ClassVar[dict[str, str]] = {
        "boxes": "Boxes, float32 (N, 4).",
        "masks": "A mask of labels for the whole image, HW or with one channel; or with the layout NHW a mask for each "
        "object. Up to 32-bit integers, bool or float.",
        "polygons": "Polygons, int32 (P, 3): object, first vertex and end, as from `readers.coco`. Needs `vertices`.",
        "vertices": "Vertices of the polygons, float32 (V, 2).",
        "keypoints": "Points, float32 (N, K, 2), or (N, K, 3) with their visibility as in COCO; (K, 2) or (K, 3): of "
        "no object.",
        "rotated_boxes": "Boxes, float32 (N, 5): centre, width, height, degrees from x towards y, in pixels.",
        "labels": "Anything with an element for each object along the first axis.",
        "ops": "Matrices (2, 3), a list.",
    }
    listed_inputs = ("ops",)
    bbox_layout = arg("str", "xyXY", doc="Numbers of a box: xyXY or xyWH.")
    normalized = arg("bool", False, doc="Boxes, points and vertices are relative to the image, else in pixels.")
    mask_layout = arg("str", None, doc="Axes of `masks`, such as NHW; by default their own, or HW or HWC.")
    mask_fill_value = arg("float", 0.0, doc="Label outside of the image.")
    min_area = arg("float", 0.0, per_row=True, doc=AREA_DOC)
    min_visibility = arg("float", 0.0, per_row=True, doc=VISIBILITY_DOC)
    keypoint_flip_order = arg(
        "int", (), many=True,
        doc="Numbers of the points of a mirrored object in the order of the unmirrored one: left and right change.",
    )  # fmt: skip
    output_indices = arg("bool", False, doc="Output for the numbers of the objects that are left.")
    input_names = arg("str", (), many=True, doc="Names of the inputs after the image, for calls by position.")
    cases = (
        {"input_names": ("boxes", "labels", "ops", "ops"), "fill_value": 0.0},
        {
            "input_names": ("boxes", "masks", "polygons", "vertices", "keypoints", "rotated_boxes", "labels", "ops"),
            "mask_layout": "NHW", "min_visibility": 0.3, "size": (15, 12), "output_indices": True,
        },
        {"input_names": ("masks", "keypoints", "ops"), "mask_fill_value": 255.0, "interp_type": "INTERP_NN"},
        {"input_names": ("keypoints", "rotated_boxes", "ops"), "keypoint_flip_order": (1, 0)},
    )  # fmt: skip

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rows: samples.Rows = []
        for i, (image,) in enumerate(samples.images()):
            rng, n = np.random.default_rng(i), 3 * i
            low, extent = rng.uniform(0, 9, (n, 2)), rng.uniform(1, 9, (n, 2))
            turned = [low, extent, rng.uniform(-90, 90, (n, 1))]
            polygons = np.stack([np.arange(n), np.arange(n) * 4, np.arange(n) * 4 + 4], 1).reshape(-1, 3)
            matrices = [np.array([[0.8, 0.3, 2], [-0.2, 0.9, 4]]), np.array([[-1, 0, 12], [0, 1.25, 0]])]
            shape = (n, *image.shape[:2]) if case.get("mask_layout") else (*image.shape[:2], 1)
            arrays: dict[str, Any] = {
                "boxes": np.concatenate([low, low + extent], 1).astype(np.float32),
                "masks": rng.integers(0, 9, shape, np.uint8),
                "polygons": polygons.astype(np.int32),
                "vertices": rng.uniform(-2, 18, (4 * n, 2)).astype(np.float32),
                "keypoints": rng.uniform(0, 12, (n, 2, 3)).astype(np.float32),
                "rotated_boxes": np.concatenate(turned, 1).astype(np.float32),
                "labels": np.arange(n, dtype=np.int64),
            }
            last = iter(matrices)
            data = [arrays[name] if name != "ops" else next(last).astype(np.float32) for name in case["input_names"]]
            rows.append((image, *data))
        return rows

    def count_outputs_with(self, args: Mapping[str, Any], inputs: int) -> int:
        return 1 + len([n for n in args["input_names"] if n != "ops"]) + int(args["output_indices"])

    def arrange_outputs(self, args: Mapping[str, Any], outputs: Sequence[Any]) -> Any:
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    def validate(self, args: Mapping[str, Any]) -> None:
        names = args["input_names"]

        def refuse(holds: Any, text: str) -> None:
            if not holds:
                raise ArgumentError(f"`geometry`: {text}")

        unknown = [n for n in names if n not in self.named_inputs]
        refuse(not unknown, f"expected names of inputs as `input_names`, got {unknown[:1]}")
        own = [n for n in names if n != "ops"]
        ordered = [n for n in self.named_inputs if n in own]
        refuse(own == ordered and names[: len(own)] == tuple(own), f"expected the inputs in the order {ordered}, `ops`")
        refuse("ops" in names, "expected at least one matrix in `ops`")
        refuse(names.count("ops") <= _MOST_MATRICES, f"expected at most {_MOST_MATRICES} matrices in `ops`")
        refuse(("polygons" in own) == ("vertices" in own), "expected `polygons` and `vertices`, got one of them")
        decided = any(name in own for name in _OBJECTS)
        refuse(decided or "labels" not in own, "`labels` need `boxes` or `rotated_boxes`, which say what is left")
        refuse(decided or not args["output_indices"], "`output_indices` needs `boxes` or `rotated_boxes`")

    def compose(self, c: Lowering, image: Value, *inputs: Value) -> tuple[Value, ...]:
        names = c.const("input_names")
        c.expect(len(names) == len(inputs), "expected a name in `input_names` for each of {0} inputs", len(inputs))
        given = {name: x for name, x in zip(names, inputs, strict=True) if name != "ops"}
        matrices = inputs[len(given) :]
        matrix = matrices[0] if len(matrices) == 1 else c.apply("transforms.combine", *matrices)
        canvas = c.apply(
            "warp_affine", image, matrix, inverse_map=False, size=c.pass_on("size"), dtype=c.const("dtype"),
            fill_value=c.const("fill_value"), interp_type=c.const("interp_type"), output_dtype=c.const("output_dtype"),
        )  # fmt: skip
        return (canvas, *_Objects(c, image, canvas, matrix, given).outputs())


class _Objects:
    """Annotations of an image that a matrix takes to a canvas."""

    def __init__(self, c: Lowering, image: Value, canvas: Value, matrix: Value, given: Mapping[str, Value]) -> None:
        self.c, self.images, self.matrix, self.given = c, (image, canvas), matrix, given
        self.left: Value | None = None  # numbers of the objects that are left

    def outputs(self) -> list[Value]:
        """Return the outputs after the image."""
        made: dict[str, Value] = {}
        for name in _OBJECTS:
            if name in self.given:
                made[name] = self._boxes(name)
        if "polygons" in self.given:
            made["polygons"], made["vertices"] = self._polygons()
        for name, make in (("masks", self._masks), ("keypoints", self._keypoints)):
            if name in self.given:
                made[name] = make(self.given[name])
        if "labels" in self.given:
            made["labels"] = self._selected("labels", self.given["labels"])
        found = [made[name] for name in self.given]
        return [*found, self.left] if self.c.const("output_indices") and self.left is not None else found

    def _boxes(self, name: str) -> Value:
        c, decides = self.c, self.left is None
        own: dict[str, Any] = {"bbox_layout": c.const("bbox_layout"), "normalized": c.const("normalized")}
        own = own if name == "boxes" else {"filters": decides}
        least = {key: c.pass_on(key) for key in ("min_area", "min_visibility")}
        kept, index = c.apply(f"_affine_{name}", self.given[name], *self.images, matrix=self.matrix, **own, **least)
        if decides:
            self.left = index
            return kept  # type: ignore[no-any-return]
        return self._selected(name, kept)

    def _polygons(self) -> tuple[Value, Value]:
        c = self.c
        polygons, vertices = self.given["polygons"], self.given["vertices"]
        kept = c.apply("constant", idata=(), shape=(0,)) if self.left is None else self.left
        moved: tuple[Value, Value] = c.apply(
            "_affine_polygons", polygons, *self.images, vertices, kept, matrix=self.matrix,
            normalized=c.const("normalized"), selects=self.left is not None,
        )  # fmt: skip
        return moved

    def _keypoints(self, points: Value) -> Value:
        c = self.c
        own = self._selected("keypoints", points) if points.rank == 3 else points
        return c.apply(  # type: ignore[no-any-return]
            "_affine_keypoints", own, *self.images, matrix=self.matrix, normalized=c.const("normalized"),
            keypoint_flip_order=c.const("keypoint_flip_order"),
        )  # fmt: skip

    def _masks(self, masks: Value) -> Value:
        c = self.c
        layout = c.const("mask_layout") or c.layout(masks)
        per_object = layout == "NHW"
        masks = self._selected("masks", masks) if per_object else masks
        masks = c.apply("reshape", masks, layout="FHW" if per_object else layout)
        size = {} if not c.given("size") else {"size": c.pass_on("size")}
        moved = c.apply(
            "warp_affine", masks, self.matrix, inverse_map=False, fill_value=c.const("mask_fill_value"),
            interp_type=InterpType.INTERP_NN, **size,
        )  # fmt: skip
        return c.apply("reshape", moved, layout=layout)  # type: ignore[no-any-return]

    def _selected(self, name: str, x: Value) -> Value:
        if self.left is None:
            return x
        self.c.expect(x.rank > 0, f"expected `{name}` with an axis of objects, got a single number")
        objects = next(self.given[key] for key in _OBJECTS if key in self.given).shape[0]
        text = f"expected an element of `{name}` for each of {{0}} objects, got {{1}}"
        self.c.require(ex.equal(x.shape[0], objects), text, objects, x.shape[0])
        return self.c.apply("gather", x, self.left)  # type: ignore[no-any-return]
