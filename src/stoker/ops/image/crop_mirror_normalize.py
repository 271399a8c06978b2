# SPDX-License-Identifier: Apache-2.0
"""``crop_mirror_normalize``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import Px, load, select, uniform
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array, number_in
from ..geometry._window import BoundsArguments, lies_inside, output_type, pad, pad_reference, take
from ..geometry.crop import CropArguments, crop_windows, crop_windows_reference

MAX_CHANNELS = 16  # limit of a pixel program


class CropMirrorNormalize(CropArguments, BoundsArguments, name="crop_mirror_normalize"):
    """Crop, mirror, normalise and transpose: the last step before a network. Input: HWC, CHW or FHWC, FCHW.

    ``out = scale * (x - mean) / std + shift``, in float32 as ``(x - mean) * (scale * (1 / std)) + shift``, cast to
    ``dtype``. Output: ``output_layout``, by default CHW, float32. ``pad_output`` adds channels of zeros up to a power
    of two. ``fill_values`` are values of the output: they are not normalised.
    """

    gives_bfloat16 = takes_bfloat16 = True
    mean = arg("float", (0.0,), many=True, per_row=True, doc="Mean, one or one per channel.")
    std = arg("float", (1.0,), many=True, per_row=True, doc="Standard deviation, one or one per channel.")
    mirror = arg("int", 0, per_row=True, doc="Mirror left and right where not 0.")
    scale = arg("float", 1.0, doc="Factor after the normalisation.")
    shift = arg("float", 0.0, doc="Added last.")
    dtype = arg("dtype", None, doc="Element type of the output; by default float32.")
    output_layout = arg("str", "CHW", doc='Layout of the output (a leading F is kept); "": the input\'s.')
    pad_output = arg("bool", False, doc="Add channels of zeros up to a power of two: to make four of three.")
    output_dtype = arg("dtype", None, doc="Former name of `dtype`.")
    image_type = arg("image_type", None, doc="Accepted; has no effect.")
    cases = (
        {"mean": (100.0, 110.0, 120.0), "std": (50.0, 60.0, 70.0)},
        {"mirror": 1, "crop": (5, 6), "output_layout": "HWC"},
        {"mean": (1.5,), "std": (3.0,), "dtype": "float16", "pad_output": True},
        {"scale": 2.0, "shift": 1.0, "dtype": "uint8"},
        {"mean": (1.5, 2.5, 3.5), "std": (3.0,), "dtype": "bfloat16", "output_layout": "HWC"},
        {"crop": (30, 6), "mirror": 1, "out_of_bounds_policy": "pad", "fill_values": (3.0,), "pad_output": True},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        if x.dtype == DType.BFLOAT16:
            x = c.cast(x, DType.FLOAT)
        windows, layout, at = crop_windows(c, x), c.layout(x), c.axis(x, "C")
        count = self._channels(c, x)
        program = self._program(c, x, count)
        if c.const("out_of_bounds_policy") == "pad" and windows:
            inside = lies_inside(c, x, windows)
            x = c.channelled(pad(c, x, windows, 0.0), self._filled(c, program, inside), at)
            x = c.flip(x, c.axis(x, "W"), c.scalar("mirror"))
        else:
            x = take(c, x, windows)
            x = c.flip(x, c.axis(x, "W"), c.scalar("mirror"))
            x = c.channelled(x, program, at) if count else c.pointwise([x], program[0])
        wanted = _output_layout(c.const("output_layout"), layout)
        c.require(sorted(wanted) == sorted(layout), f"expected `output_layout` with the axes of {layout}, got {wanted}")
        return c.permute(x, [layout.index(a) for a in wanted], wanted)

    def _channels(self, c: Lowering, x: Value) -> int:
        """Return the number of channels; 0 if it is known only at run time and one expression serves all channels."""
        channels = x.shape[c.axis(x, "C")]
        known = {"mean": c.fixed_length("mean"), "std": c.fixed_length("std")}
        if c.const("out_of_bounds_policy") == "pad":
            known["fill_values"] = c.fixed_length("fill_values")
        if not ex.is_static(channels) and set(known.values()) == {1} and self._needs_channels(c):
            channels = c.fixed_extent(x, c.axis(x, "C"), "channels")
        count = int(channels) if ex.is_static(channels) else max(known.values())
        alike = set(known.values()) == {1} and not c.const("pad_output") and "fill_values" not in known
        if alike and (count > MAX_CHANNELS or not ex.is_static(channels)):
            return 0
        if not ex.is_static(channels):
            c.require(count > 1, "expected images with a fixed number of channels")
            c.require(
                ex.equal(channels, count), "expected {0} channels as in `mean` and `std`, got {1}", count, channels
            )
        for name, n in known.items():
            c.require(n in (1, count), f"expected 1 or {{0}} elements (channels) in `{name}`, got {{1}}", count, n)
        if not 1 <= count <= MAX_CHANNELS:
            raise UnsupportedError(f"`{self.name}`: expected 1 to {MAX_CHANNELS} channels, got {count}")
        return count

    @staticmethod
    def _needs_channels(c: Lowering) -> bool:
        """Return whether the output has channels that are no input's, so that one expression cannot serve all."""
        return bool(c.const("pad_output")) or c.const("out_of_bounds_policy") == "pad"

    def _program(self, c: Lowering, x: Value, count: int) -> list[Px]:
        dtype = output_type(c.const, DType.FLOAT)
        scale, shift = c.const("scale"), c.const("shift")
        program = []
        for k in range(max(count, 1)):
            std = c.scalar("std", k)
            c.require(ex.different(ex.float32(std), 0), "expected `std` other than 0, got {0}", std)
            value = load(x.dtype, channel=k if count else -1).cast(DType.FLOAT) - ex.float32(c.scalar("mean", k))
            value = value * _factor(std, scale)
            program.append((value + shift if shift else value).cast(dtype))
        zero = uniform(0.0, dtype)
        return program + [zero] * (_padded_count(count, c.const("pad_output")) - count)

    @staticmethod
    def _filled(c: Lowering, program: list[Px], inside: Px) -> list[Px]:
        """Return the program with fill values outside the image. Added channels stay 0 everywhere."""
        fills = c.const("fill_values")

        def filled(k: int, x: Px) -> Px:
            fill = number_in(fills[k if len(fills) > 1 else 0], x.dtype)
            return select(inside, x, uniform(fill, x.dtype))

        return [x if x.op == "uniform" else filled(k, x) for k, x in enumerate(program)]

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {3: "HWC", 4: "FHWC"}[x.ndim]
        windows = crop_windows_reference(row, x, layout)
        if row["out_of_bounds_policy"] == "trim_to_shape":
            windows = {i: (0, x.shape[i]) if e > x.shape[i] else (s, e) for i, (s, e) in windows.items()}
        x, mask = pad_reference(x, windows)
        if not mask.all() and row["out_of_bounds_policy"] == "error":
            raise ValueError(f"expected a window inside the input, got {windows}")
        if row.number("mirror"):
            x, mask = (np.flip(a, layout.index("W")) for a in (x, mask))
        at, dtype = layout.index("C"), output_type(row.args.get, DType.FLOAT)
        x, mask = np.moveaxis(x, at, -1).astype(np.float32), np.moveaxis(mask, at, -1)
        n = x.shape[-1]
        mean = np.asarray([row.number("mean", k) for k in range(n)], np.float32)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            inverse = np.float32(1) / np.asarray([row.number("std", k) for k in range(n)], np.float32)
            if row["scale"] != 1:
                inverse = inverse * np.float32(row["scale"])
            out = (x - mean) * inverse
            if row["shift"]:
                out = out + np.float32(row["shift"])
        fills = np.asarray([row.number("fill_values", k) for k in range(n)])
        out = np.where(mask, cast_array(out, dtype), cast_array(fills, dtype))
        added = _padded_count(n, row["pad_output"]) - n
        out = np.concatenate([out, np.zeros((*out.shape[:-1], added), out.dtype)], -1)
        wanted = _output_layout(row["output_layout"], layout)
        return np.moveaxis(out, -1, at).transpose([layout.index(a) for a in wanted])


def _output_layout(asked: str, layout: str) -> str:
    if not asked:
        return layout
    return "F" + asked if layout[0] == "F" and "F" not in asked else asked


def _padded_count(count: int, pad_output: bool) -> int:
    return 1 << (count - 1).bit_length() if pad_output else count


def _factor(std: Scalar, scale: float) -> Any:
    """Return float32(1 / float32(std)), times the scale in float32."""
    inverse = ex.float32(1.0 / ex.float32(std))
    return inverse if scale == 1 else ex.float32(inverse * ex.float32(scale))
