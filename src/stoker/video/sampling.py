# SPDX-License-Identifier: Apache-2.0
"""Choice of a clip's frames: their numbers, also beyond the end of the range that the clip lies in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError

Ints = npt.NDArray[np.int64]

PAD_MODES = ("none", "constant", "edge", "reflect_1001", "reflect_101")
_SAME_PADS = {"repeat": "edge", "symmetric": "reflect_1001", "reflect": "reflect_101"}
PAD_NAMES = (*PAD_MODES, *_SAME_PADS)


def pad_mode_of(name: str) -> str:
    """Return the name of a way to pad without its synonyms."""
    return _SAME_PADS.get(name, name)


def padded(frames: Ints, begin: int, end: int, mode: str) -> Ints:
    """Return numbers of frames of which those past the end of a range are replaced, -1 for constant ones.

    Args:
        frames: numbers of frames, at least ``begin``.
        begin: first frame of the range.
        end: the frame after its last one.
        mode: one of ``PAD_MODES``.
    """
    if mode == "none":
        return frames[frames < end]
    count, at = end - begin, frames - begin
    if mode == "constant":
        return np.where(at < count, frames, -1)
    if mode == "edge":
        return begin + np.minimum(at, count - 1)
    period = 2 * count if mode == "reflect_1001" else max(2 * (count - 1), 1)
    at = at % period
    last = period - 1 if mode == "reflect_1001" else period
    return begin + np.minimum(at, last - at) if count > 1 else np.full_like(frames, begin)


def fill_of(value: Any) -> tuple[int, ...]:
    """Return the values of constant pixels: one, or one per channel.

    Raises:
        ArgumentError: they are not one or three whole numbers from 0 to 255.
    """
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if len(values) not in (1, 3) or not all(type(x) is int and 0 <= x <= 255 for x in values):
        raise ArgumentError(f"expected one or three whole numbers from 0 to 255 as `fill_value`, got {value!r}")
    return values
