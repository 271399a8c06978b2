# SPDX-License-Identifier: Apache-2.0
"""Tables of the conversion between sRGB and CIE L*a*b* in 8 bits, as OpenCV's."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

_ONE = 1 << 14  # 1 in the tables of the way back


@cache
def lab_table() -> Any:
    """Return the table of native/shared/lab.hpp, uint16."""
    value = np.arange(256)
    srgb = value / 255.0
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    t = np.arange(3072) / (255.0 * 8)
    roots = np.where(t < 216 / 24389, t * (841 / 108) + 16 / 116, np.cbrt(t)).astype(np.float32) * np.float32(32768)
    lightness = value * 100 / 255.0
    dark = value * 100 <= 8 * 255
    y = np.where(dark, lightness * 27 / 24389, ((lightness + 16) / 116) ** 3)
    root = np.where(dark, (841 / 108) * y + 16 / 116, (lightness + 16) / 116)
    light = np.arange(4096) / 4096.0
    encoded = np.where(light <= 0.0031308, light * 12.92, 1.055 * light ** (1 / 2.4) - 0.055)
    parts = (255 * 8 * linear, roots, y * _ONE, root * _ONE, 255 * encoded)
    return np.concatenate([np.rint(part).astype(np.uint16) for part in parts])


def to_lab(image: Any) -> Any:
    """Return the L*a*b* of an image (..., 3) of uint8 RGB."""
    table = lab_table().astype(np.int64)
    forward = np.array([[1777, 1541, 778], [871, 2929, 296], [73, 448, 3575]])
    x, y, z = np.moveaxis(table[256 + ((table[image.astype(np.int64)] @ forward.T + 2048) >> 12)], -1, 0)
    # Scale and offset of L: 116 and 16 of its definition, rounded to hundredths of a byte's range.
    lightness = 296 * y - (16 * 255 * 32768 + 50) // 100
    colors = (lightness, 500 * (x - y) + (128 << 15), 200 * (y - z) + (128 << 15))
    return np.stack([((color + 16384) >> 15).clip(0, 255) for color in colors], -1).astype(np.uint8)


def to_rgb(image: Any) -> Any:
    """Return the RGB of an image (..., 3) of uint8 L*a*b*."""
    table = lab_table().astype(np.int64)
    lightness, a, b = np.moveaxis(image.astype(np.int64), -1, 0)
    y, root = table[3328 + lightness], table[3584 + lightness]
    x = _cubed(root + ((5 * a * 53687 + 128) >> 13) - 128 * _ONE // 500)
    z = _cubed(root - ((b * 41943 + 16) >> 9) + 128 * _ONE // 200 - 1)
    back = np.array([[12615, -6296, -2223], [-3773, 7684, 185], [217, -836, 4715]])
    light = ((np.stack([x, y, z], -1) @ back.T + 8192) >> 14).clip(0, 4095)
    return table[3840 + light].astype(np.uint8)


def _cubed(f: Any) -> Any:
    """Return the cube of f, or its straight part below 6 / 29. Quotients are truncated."""
    straight = np.sign(f) * (np.abs(f) * 108 // 841) - _ONE * 16 // 116 * 108 // 841
    return np.where(f <= 3390, straight, f * f // _ONE * f // _ONE)
