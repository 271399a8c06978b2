# SPDX-License-Identifier: Apache-2.0
"""``mixup``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import load, uniform
from ...contract.step import Value
from ...contract.types import DType
from ..generic._arithmetic_reference import common_type
from ..generic.cast import cast_array
from ._mixing import MixArguments, checked_weight, mixed_labels, mixed_labels_reference, require_pair

_OBJECTS = ("boxes", "masks", "labels")


class MixUp(MixArguments, name="mixup"):
    """Mix two images and their labels: ``weight * x + (1 - weight) * y`` (Zhang et al., "mixup", 2018). Inputs: two
    images of one shape and type, any layout; optionally their labels: whole numbers, or floats (classes,). Outputs: the
    image, of the same type; the soft label, float32, or the type of soft labels.

    For detection (Zhang et al., "Bag of Freebies for Training Object Detection Neural Networks", 2019), ``boxes``,
    ``masks`` and ``labels`` are given by name, in place of those labels. Outputs: the image, and of each the objects of
    both images, those of the first one first. Nothing is dropped, for the mixture shows all objects. `geometry` takes
    images of different sizes to one canvas before.

    `readers.partner` reads the second sample, so that the batch size changes nothing. Products and their sum are
    rounded to float32 (float64 for float64), whole numbers half to even.
    """

    inputs = (2, 2 + 2 * len(_OBJECTS))
    named_inputs: ClassVar[dict[str, str]] = {
        "boxes": "Boxes of both images, (N, 4) of one type. A pair.",
        "masks": "Masks of both images' objects, (N, H, W) of one type. A pair.",
        "labels": "Anything with an element for each object along the first axis. A pair.",
    }
    listed_inputs = _OBJECTS
    input_names = arg("str", (), many=True, doc="Names of the inputs after the images, for calls by position.")
    cases = (
        {"weight": 0.3}, {"weight": 0.8, "num_classes": 5}, {"weight": 1.0, "num_classes": 9},
        {"weight": 0.4, "input_names": ("boxes", "boxes", "labels", "labels")},
        {"weight": 0.6, "input_names": tuple(name for name in _OBJECTS for _ in range(2))},
    )  # fmt: skip

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rows = super().case_inputs(case)
        names = case.get("input_names")
        if not names:
            return rows
        mixed: samples.Rows = []
        for i, (x, other, *_) in enumerate(rows):
            rng, counts = np.random.default_rng(i), (2 * i, 3)
            arrays = {
                "boxes": [rng.uniform(0, 9, (n, 4)).astype(np.float32) for n in counts],
                "masks": [rng.integers(0, 2, (n, *x.shape[:2]), np.uint8) for n in counts],
                "labels": [rng.integers(0, 9, n) for n in counts],
            }
            mixed.append((x, other, *(a for name in _OBJECTS if name in names for a in arrays[name])))
        return mixed

    def count_outputs_with(self, args: Mapping[str, Any], inputs: int) -> int:
        names = args["input_names"]
        return 1 + len(names) // 2 if names else super().count_outputs_with(args, inputs)

    def validate(self, args: Mapping[str, Any]) -> None:
        names = args["input_names"]
        if names != tuple(name for name in _OBJECTS if name in names for _ in range(2)):
            raise ArgumentError(
                f"`mixup`: expected a pair of `boxes`, of `masks` and of `labels`, or none, got {names}"[:200]
            )
        if names and args["num_classes"]:
            raise ArgumentError("`mixup`: `num_classes` is for soft labels; labels of objects stay what they are")

    def lower(self, c: Lowering, x: Value, other: Value, *inputs: Value) -> tuple[Value, ...]:
        names = c.const("input_names")
        text = "expected two images, and their labels or none, got {0} inputs"
        c.expect(len(inputs) == len(names) or (not names and len(inputs) <= 2), text, 2 + len(inputs))
        weight = checked_weight(c)
        require_pair(c, x, other)
        wide = DType.FLOAT64 if x.dtype in (DType.FLOAT64, DType.INT64, DType.UINT64) else DType.FLOAT
        rest = ex.float32(1 - weight)
        parts = [load(x.dtype, i).cast(wide) * uniform(w, wide) for i, w in enumerate((weight, rest))]
        image = c.pointwise([x, other], (parts[0] + parts[1]).cast(x.dtype))
        return (image, *(self._objects(c, x, names, inputs) if names else mixed_labels(c, inputs, weight)))

    @staticmethod
    def _objects(c: Lowering, image: Value, names: Sequence[str], inputs: Sequence[Value]) -> list[Value]:
        """Return the objects of both images."""
        size = None
        for i, (name, x) in enumerate(zip(names, inputs, strict=True)):
            rank = {"boxes": 2, "masks": 3}.get(name)
            c.expect(
                x.rank == rank if rank else x.rank > 0, f"expected `{name}` with {rank or 'some'} axes, got {x.rank}"
            )
            if name == "boxes":
                c.require(ex.equal(x.shape[1], 4), "expected boxes of 4 numbers, got {0}", x.shape[1])
            if name == "masks":
                size = size or (c.extent(image, "H"), c.extent(image, "W"))
                right = ex.both(ex.equal(x.shape[1], size[0]), ex.equal(x.shape[2], size[1]))
                text = "expected masks of the image's size, {0} x {1}, got {2} x {3}"
                c.require(right, text, *size, *x.shape[1:])
            count = inputs[i % 2].shape[0]  # of the image's objects
            text = f"expected `{name}` of {{0}} objects of image {i % 2}, as many as `{names[0]}`, got {{1}}"
            c.require(ex.equal(x.shape[0], count), text, count, x.shape[0])
            c.expect(name == "labels" or x.dtype == inputs[i - i % 2].dtype, f"expected `{name}` of one type")
        return [c.apply("cat", *inputs[i : i + 2]) for i in range(0, len(inputs), 2)]

    def reference(self, row: RowContext, x: Any, other: Any, *inputs: Any) -> Any:
        weight = np.float32(row.number("weight"))
        if not 0 <= weight <= 1 or x.shape != other.shape:
            raise ValueError("expected a weight from 0 to 1, and images of one shape")
        own = DType.of(x.dtype)
        wide: Any = np.float64 if own in (DType.FLOAT64, DType.INT64, DType.UINT64) else np.float32
        mixed = x.astype(wide) * wide(weight) + other.astype(wide) * wide(np.float32(1) - weight)
        if row["input_names"]:
            pairs = zip(inputs[::2], inputs[1::2], strict=True)
            joined = [np.concatenate([x.astype(common_type([a.dtype, b.dtype])) for x in (a, b)]) for a, b in pairs]
        else:
            joined = list(mixed_labels_reference(row, inputs, weight))
        out = (cast_array(mixed, own), *joined)
        return out if len(out) > 1 else out[0]
