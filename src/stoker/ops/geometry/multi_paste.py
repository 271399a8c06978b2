# SPDX-License-Identifier: Apache-2.0
"""``multi_paste``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import COLOURS, Operator, RowContext
from ...contract.step import ALIASES, Launches, Value
from ...contract.types import DType
from ..generic.cast import cast_array

_ELEMENTS = 16384  # of a block on a GPU (native/device/own_multipaste.cuh)
_LARGEST = 1 << 24
_MOST = 63
_PAIRS = ("in_anchors", "shapes", "out_anchors")


class MultiPaste(Operator, name="multi_paste"):
    """Paste regions of images onto a canvas of zeros, one after another: later ones cover earlier ones. Inputs: an
    image for each region, all of one type, HWC or FHWC; or with ``in_ids`` one image, whose regions come from other
    rows of the batch. Output: the canvas, of ``dtype`` or the images' type, rounded and saturated.

    Regions must lie within their image and the canvas. Numbers are pairs (height, width), one pair for each region.
    Relative places are rounded down, relative extents up. With ``in_ids`` results depend on the batch; `mosaic` takes
    other samples of the epoch instead.
    """

    default_layouts = COLOURS
    inputs = (1, _MOST)
    scope = "batch"
    in_ids = arg(
        "int", None, many=True, per_row=True,
        doc="For each region, the number of a row of the batch (in a branch of an `if`, of its rows), from 0.",
    )  # fmt: skip
    in_anchors = arg("int", None, many=True, per_row=True, doc="Starts of the regions in their images; by default 0.")
    in_anchors_rel = arg("float", None, many=True, per_row=True, doc="The same, relative to the image.")
    shapes = arg("int", None, many=True, per_row=True, doc="Extents of the regions; by default up to the image's end.")
    shapes_rel = arg("float", None, many=True, per_row=True, doc="The same, relative to the image.")
    out_anchors = arg("int", None, many=True, per_row=True, doc="Starts of the regions in the canvas; by default 0.")
    out_anchors_rel = arg("float", None, many=True, per_row=True, doc="The same, relative to the canvas.")
    output_size = arg(
        "int", None, many=True, per_axis=True, per_row=True, doc="Size of the canvas; by default that of all images."
    )
    dtype = arg("dtype", None, doc="Element type of the output; by default the input's.")
    cases = (
        {},
        {"in_anchors": (0, 0, 1, 2), "shapes": (5, 4, 9, 8), "out_anchors": (0, 0, 3, 2), "output_size": (15, 12)},
        {
            "in_anchors_rel": (0.1, 0.2, 0.5, 0.0), "shapes_rel": (0.4, 0.3, 0.5, 1.0), "dtype": "float32",
            "out_anchors_rel": (0.25, 0.3, 0.0, 0.1), "output_size": (50, 60),
        },
    )  # fmt: skip

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.images(copies=2)

    def lower(self, c: Lowering, *images: Value) -> Value:
        first = images[0]
        for x in images:
            c.expect(c.layout(x) in ("HWC", "FHWC"), f"expected images of layout HWC or FHWC, got {c.layout(x)!r}")
            text = f"expected images of one type and layout, got {first.dtype} and {x.dtype}"
            c.expect(x.dtype == first.dtype and x.rank == first.rank, text)
            for axis in (*range(first.rank - 3), first.rank - 1):
                c.require(
                    ex.equal(x.shape[axis], first.shape[axis]),
                    "expected images with as many frames and channels, got {0} and {1}", first.shape[axis],
                    x.shape[axis],
                )  # fmt: skip
        if c.given("in_ids"):
            images = self._of_other_rows(c, images)
        dtype = first.dtype if c.const("dtype") is None else c.const("dtype")
        canvas = self._canvas(c, images)
        numbers: list[Scalar] = [0.0]
        for i, x in enumerate(images):
            numbers += self._region(c, i, len(images), (c.extent(x, "H"), c.extent(x, "W")), canvas)
        shape = (*first.shape[:-3], *canvas, first.shape[-1])
        own = Launches("MultiPaste", {"paste": ex.ceil(math.prod(shape) / _ELEMENTS)}, 0, (len(images),))
        cast = [c.cast(x, dtype) for x in images]
        return c.native(
            "multi_paste", cast, [(dtype, shape, first.layout)], attrs=(len(images),), params=numbers, own=own
        )[0]

    def _of_other_rows(self, c: Lowering, images: tuple[Value, ...]) -> tuple[Value, ...]:
        c.expect(len(images) == 1, f"expected one input with `in_ids`, got {len(images)}")
        x, count = images[0], c.fixed_length("in_ids")
        c.expect(1 <= count <= _MOST, f"expected `in_ids` of 1 to {_MOST} numbers, got {count}")
        found = []
        for i in range(count):
            number = c.numbers([c.scalar("in_ids", i)], DType.INT32, ())
            if c.scope.guards:  # a row that a condition excludes has no data for another row
                number = c.apply("_row_in_branch", number)
            out = c.opaque(x.dtype, x.rank, x.layout, [e if ex.is_static(e) else None for e in x.shape])
            c.emit("other_row", [number, x], [out], other_rows_of=1, memory=ALIASES)
            found.append(out)
        return tuple(found)

    @staticmethod
    def _canvas(c: Lowering, images: tuple[Value, ...]) -> tuple[Scalar, Scalar]:
        if not c.given("output_size"):
            height, width = c.extent(images[0], "H"), c.extent(images[0], "W")
            for x in images[1:]:
                right = ex.both(ex.equal(c.extent(x, "H"), height), ex.equal(c.extent(x, "W"), width))
                c.require(right, "expected `output_size` for images of different sizes")
            return height, width
        count = c.fixed_length("output_size")
        c.expect(count == 2, f"expected `output_size` as (height, width), got {count} numbers")
        height, width = (c.scalar("output_size", i) for i in (0, 1))
        for n in (height, width):
            c.require(ex.both(n >= 0, n <= _LARGEST), f"expected `output_size` from 0 to {_LARGEST}, got {{0}}", n)
        return ex.floor(height), ex.floor(width)

    @staticmethod
    def _region(c: Lowering, region: int, count: int, image: tuple[Any, Any], canvas: tuple[Any, Any]) -> list[Any]:
        found: dict[str, list[Any]] = {}
        for name in _PAIRS:
            if c.given(name) and c.given(f"{name}_rel"):
                raise ArgumentError(f"`multi_paste`: expected `{name}` or `{name}_rel`, got both")
            found[name] = []
            for axis in (0, 1):
                whole = canvas[axis] if name == "out_anchors" else image[axis]
                given = next((n for n in (name, f"{name}_rel") if c.given(n)), None)
                if given is None:
                    found[name].append(image[axis] - found["in_anchors"][axis] if name == "shapes" else 0)
                    continue
                have = c.fixed_length(given)
                text = f"expected a pair of numbers for each of {count} regions as `{given}`, got {have}"
                c.expect(have == 2 * count, text)
                x = c.scalar(given, 2 * region + axis)
                c.require(ex.isfinite(x), f"expected finite numbers as `{given}`, got {{0}}", x)
                if given != name:
                    x = ex.ceil(x * whole) if name == "shapes" else ex.floor(x * whole)
                found[name].append(x)
        for axis, letter in enumerate("HW"):
            start, extent, place = (found[name][axis] for name in _PAIRS)
            text = f"expected region {region} within its image along {letter} (0 to {{0}}), got {{1}} to {{2}}"
            c.require(ex.both(ex.both(start >= 0, extent >= 0), start + extent <= image[axis]), text, image[axis],
            start,
                      start + extent)  # fmt: skip
            text = f"expected region {region} within the canvas along {letter} (0 to {{0}}), got {{1}} to {{2}}"
            c.require(ex.both(place >= 0, place + extent <= canvas[axis]), text, canvas[axis], place, place + extent)
        return [*found["in_anchors"], *found["shapes"], *found["out_anchors"]]

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Paste for a whole batch. This is the operator's definition."""
        results: list[Any] = []
        for row, images in zip(rows, inputs, strict=True):
            if row["in_ids"] is not None:
                images = tuple(inputs[int(i)][0] for i in np.asarray(row["in_ids"]).reshape(-1))
            results.append(self._pasted(row, images))
        return results

    @staticmethod
    def _pasted(row: RowContext, images: tuple[Any, ...]) -> Any:
        dtype = DType.of(images[0].dtype) if row["dtype"] is None else row["dtype"]
        first = images[0].shape
        size = first[-3:-1] if row["output_size"] is None else np.asarray(row["output_size"]).reshape(-1)
        out = np.zeros((*first[:-3], int(size[0]), int(size[1]), first[-1]), dtype.numpy)
        for i, x in enumerate(images):
            image, pairs = np.array(x.shape[-3:-1]), {}
            for name, step in zip(_PAIRS, (np.floor, np.ceil, np.floor), strict=True):
                whole = np.array(out.shape[-3:-1]) if name == "out_anchors" else image
                if row[name] is not None:
                    pairs[name] = np.asarray(row[name]).reshape(-1, 2)[i]
                elif row[f"{name}_rel"] is not None:
                    pairs[name] = step(np.asarray(row[f"{name}_rel"], np.float64).reshape(-1, 2)[i] * whole)
                else:
                    pairs[name] = image - pairs["in_anchors"] if name == "shapes" else np.zeros(2)
            (y, x0), (height, width), (to_y, to_x) = (pairs[n].astype(int) for n in _PAIRS)
            region = x[..., y : y + height, x0 : x0 + width, :]
            out[..., to_y : to_y + height, to_x : to_x + width, :] = cast_array(region, dtype)
        return out
