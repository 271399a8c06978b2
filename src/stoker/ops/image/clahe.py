# SPDX-License-Identifier: Apache-2.0
"""``clahe``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import IMAGES, Operator, RowContext
from ...contract.step import Launches, Value
from ...contract.types import DType
from ..geometry._axes import each_frame, image_axes
from ._lab import lab_table, to_lab, to_rgb
from ._windows import element_blocks

_MOST_TILES = 256


class Clahe(Operator, name="clahe"):
    """Equalize the contrast of every part of an image, within a limit. Input: uint8, HW, HWC, CHW or these with a
    leading F. Output: the same.

    The image is divided into tiles, each of which has a histogram. Counts above the limit are distributed over all
    values, and a pixel is mapped by the tables of the four tiles around it. The bytes are those of OpenCV's
    ``createCLAHE``. Of an RGB image the lightness is equalized, in OpenCV's L*a*b* of 8 bits, also on a GPU, where
    DALI's bytes differ.
    """

    default_layouts = IMAGES
    tiles_x = arg("int", doc="Number of tiles across, 1 to 256.")
    tiles_y = arg("int", doc="Number of tiles down, 1 to 256.")
    clip_limit = arg(
        "float",
        doc="Largest count of a value, in multiples of the mean count of a tile's values, and at least 1. 0: no limit.",
    )
    luma_only = arg(
        "bool", True,
        doc="Equalize the lightness of RGB images. Other images must have one channel. False: every channel by itself.",
    )  # fmt: skip
    bins = arg("int", 256, doc="Number of values of a histogram. It has no effect: there are 256 values.")
    cases = (
        {"tiles_x": 4, "tiles_y": 3, "clip_limit": 2.0},
        {"tiles_x": 8, "tiles_y": 8, "clip_limit": 4.0, "luma_only": False},
        {"tiles_x": 1, "tiles_y": 2, "clip_limit": 0.0},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        if x.dtype != DType.UINT8:
            raise UnsupportedError(f"`clahe`: expected uint8, got {x.dtype}. Cast it first")
        axes = image_axes(c, x)
        tiles = [c.const(name) for name in ("tiles_x", "tiles_y")]
        for name, count in zip(("tiles_x", "tiles_y"), tiles, strict=True):
            c.expect(1 <= count <= _MOST_TILES, "expected 1 to {1} as `" + name + "`, got {0}", count, _MOST_TILES)
        limit, luma = c.const("clip_limit"), bool(c.const("luma_only"))
        c.expect(np.isfinite(limit) and limit >= 0, "expected a `clip_limit` of at least 0, got {0}", limit)
        bins = c.const("bins")
        c.expect(bins > 0 and bins & (bins - 1) == 0, "expected a power of 2 as `bins`, got {0}", bins)
        frames, height, width, channels = (1 if axis < 0 else x.shape[axis] for axis in axes)
        c.require(ex.both(height >= 1, width >= 1), "expected an image with pixels")
        lightness = 0
        if luma:
            c.require(
                ex.either(ex.equal(channels, 1), ex.equal(channels, 3)),
                "expected 1 channel, or 3 of RGB, got {0}; `luma_only=False` takes any number", channels,
            )  # fmt: skip
            lightness = ex.equal(channels, 3)
        planes = frames * ex.where(lightness, 1, channels)
        pixels = planes * height * width
        tables, blocks = planes * tiles[0] * tiles[1], element_blocks([pixels])
        own = Launches(
            "Clahe", {"convert": blocks, "tabulate": tables, "apply": blocks},
            tables * 256 + ex.where(lightness, 3 * pixels, 0),
        )  # fmt: skip
        table = c.constant(lab_table())
        numbers = (*tiles, limit, *axes, int(luma))
        return c.native(
            "clahe", [x, table], [(x.dtype, x.shape, x.layout)], attrs=(*axes, luma), params=numbers, own=own
        )[0]  # fmt: skip

    def reference(self, row: RowContext, x: Any) -> Any:
        tiles, limit = (row["tiles_x"], row["tiles_y"]), row["clip_limit"]

        def equalized(frame: Any) -> Any:
            if row["luma_only"] and frame.shape[-1] == 3:
                lab = to_lab(frame)
                lab[..., 0] = _plane(lab[..., 0], tiles, limit)
                return to_rgb(lab)
            return np.stack([_plane(plane, tiles, limit) for plane in np.moveaxis(frame, -1, 0)], -1)

        return each_frame(x, row.layout, equalized)


def _plane(x: Any, tiles: tuple[int, int], clip_limit: float) -> Any:
    (height, width), (across, down) = x.shape, tiles
    wide = x
    if width % across or height % down:
        wide = np.pad(x, ((0, down - height % down), (0, across - width % across)), mode="reflect")
    size = wide.shape[0] // down, wide.shape[1] // across
    blocks = wide.reshape(down, size[0], across, size[1]).swapaxes(1, 2).reshape(down, across, -1)
    tables = np.empty((down, across, 256), np.float32)
    for j, i in np.ndindex(down, across):
        counts = np.bincount(blocks[j, i], minlength=256)
        if clip_limit > 0:
            limit = max(int(clip_limit * blocks.shape[-1] / 256), 1)
            excess = int(np.maximum(counts - limit, 0).sum())
            counts = np.minimum(counts, limit) + excess // 256
            left = excess % 256
            if left:
                counts[:: max(256 // left, 1)][:left] += 1
        scaled = np.cumsum(counts).astype(np.float32) * (np.float32(255) / np.float32(blocks.shape[-1]))
        tables[j, i] = np.rint(scaled).clip(0, 255)
    (above, below, down_share), (left, right, share) = (
        _between(n, s, count) for n, s, count in zip(x.shape, size, (down, across), strict=True)
    )
    rows = [
        tables[j[:, None], left[None], x] * (1 - share)[None] + tables[j[:, None], right[None], x] * share[None]
        for j in (above, below)
    ]
    found = rows[0] * (1 - down_share)[:, None] + rows[1] * down_share[:, None]
    return np.rint(found).clip(0, 255).astype(np.uint8)


def _between(extent: int, size: int, tiles: int) -> tuple[Any, Any, Any]:
    at = np.arange(extent, dtype=np.float32) * (np.float32(1) / np.float32(size)) - np.float32(0.5)
    first = np.floor(at).astype(np.int64)
    return np.maximum(first, 0), np.minimum(first + 1, tiles - 1), at - first.astype(np.float32)
