# SPDX-License-Identifier: Apache-2.0
"""``crop_mirror_normalize``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.lowering import Lowering
from ...contract.operator import RowContext, arg
from ...contract.pixel import load
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array
from ..geometry.crop import CropArguments, crop_reference, crop_window


class CropMirrorNormalize(CropArguments, name="crop_mirror_normalize"):
    """Crop, mirror, normalise and transpose: the last step before a network. Input: HWC, CHW or FHWC, FCHW.

    ``out = scale * (x - mean) / std + shift``, in float32 as ``(x - mean) * (scale * (1 / std)) + shift``, cast to
    ``dtype``. Output: ``output_layout``, by default CHW, float32. ``pad_output`` adds a channel of zeros to three.
    """

    kind = "composite"
    mean = arg("float", (0.0,), many=True, per_row=True, doc="Mean, one or one per channel.")
    std = arg("float", (1.0,), many=True, per_row=True, doc="Standard deviation, one or one per channel.")
    mirror = arg("int", 0, per_row=True, doc="Mirror left and right where not 0.")
    scale = arg("float", 1.0, doc="Factor after the normalisation.")
    shift = arg("float", 0.0, doc="Added last.")
    dtype = arg("dtype", DType.FLOAT, doc="Element type of the output.")
    output_layout = arg("str", "CHW", doc="Layout of the output: CHW or HWC (a leading F is kept).")
    pad_output = arg("bool", False, doc="Add a channel of zeros, to make four of three.")
    cases = (
        {"mean": (100.0, 110.0, 120.0), "std": (50.0, 60.0, 70.0)},
        {"mirror": 1, "crop": (5, 6), "output_layout": "HWC"},
        {"mean": (1.5,), "std": (3.0,), "dtype": "float16", "pad_output": True},
        {"scale": 2.0, "shift": 1.0, "dtype": "uint8"},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        x = crop_window(c, x)
        x = c.flip(x, c.axis(x, "W"), c.scalar("mirror"))
        layout = c.layout(x)
        at = c.axis(x, "C")
        channels = x.shape[at]
        counts = [c.length("mean"), c.length("std")]
        c.require(None not in counts, "expected `mean` and `std` with a number of elements that is the same for all rows")
        program = self._program(c, x, channels, [n for n in counts if n])
        x = c.channelled(x, program, at)
        wanted = c.const("output_layout")
        wanted = "F" + wanted if layout[0] == "F" and wanted[0] != "F" else wanted
        c.require(
            sorted(wanted) == sorted(layout), f"expected `output_layout` with the axes of {layout}, got {wanted}"
        )
        return c.permute(x, [layout.index(a) for a in wanted], wanted)

    def _program(self, c: Lowering, x: Value, channels: Any, counts: list[int]) -> list[Any]:
        if ex.is_static(channels):
            count = int(channels)
        else:
            count = max(counts)
            c.require(count > 1 or not c.const("pad_output"), "expected images with a fixed number of channels")
            c.require(ex.equal(channels, count), "expected {0} channels as in `mean` and `std`, got {1}", count, channels)
        for n in counts:
            c.require(n in (1, count), "expected 1 or {0} elements (channels) in `mean` and `std`, got {1}", count, n)
        dtype, scale, shift = c.const("dtype"), c.const("scale"), c.const("shift")
        program = []
        for k in range(count):
            factor = _factor(c.scalar("std", k), scale)
            value = load(x.dtype, channel=k).cast(DType.FLOAT) - ex.float32(c.scalar("mean", k))
            value = value * factor
            program.append((value + shift if shift else value).cast(dtype))
        if c.const("pad_output") and count == 3:
            program.append((load(x.dtype, channel=0).cast(DType.FLOAT) * 0.0).cast(dtype))
        return program

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {3: "HWC", 4: "FHWC"}[x.ndim]
        x = crop_reference(row, x, layout)
        if row.number("mirror"):
            x = np.flip(x, layout.index("W"))
        at = layout.index("C")
        x = np.moveaxis(x, at, -1).astype(np.float32)
        n = x.shape[-1]
        mean = np.asarray([row.number("mean", k) for k in range(n)], np.float32)
        inverse = np.float32(1) / np.asarray([row.number("std", k) for k in range(n)], np.float32)
        if row["scale"] != 1:
            inverse = inverse * np.float32(row["scale"])
        out = (x - mean) * inverse
        if row["shift"]:
            out = out + np.float32(row["shift"])
        if row["pad_output"] and n == 3:
            out = np.concatenate([out, np.zeros_like(out[..., :1])], -1)
        out = np.moveaxis(cast_array(out, row["dtype"]), -1, at)
        wanted = row["output_layout"]
        wanted = "F" + wanted if layout[0] == "F" and wanted[0] != "F" else wanted
        return out.transpose([layout.index(a) for a in wanted])


def _factor(std: Any, scale: float) -> Any:
    """float32(1 / float32(std)), times the scale in float32."""
    inverse = ex.float32(1.0 / ex.float32(std))
    return inverse if scale == 1 else ex.float32(inverse * ex.float32(scale))
