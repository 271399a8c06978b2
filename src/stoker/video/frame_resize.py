# SPDX-License-Identifier: Apache-2.0
"""Resize of frames while they are converted: rows of pixels are made when the resampling reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.types import DType, InterpType
from ..native import _native
from .colors import MATRICES, form_of, frame_colors, write_pixels
from .motion_jpeg import JpegPicture

_MOST = 1 << 24  # extent of an output of `resize`
#: Values of arguments of `resize` with which a size does not depend on the frame.
_PLAIN = {
    "resize_shorter": None, "resize_longer": None, "resize_z": None, "max_size": None, "roi_start": None,
    "roi_end": None, "subpixel_scale": False,
}  # fmt: skip


@dataclass(frozen=True)
class FrameResize:
    """Resize of frames of any size to one size, with the result of the operator `resize`.

    Attributes:
        size: height and width of the result.
        shrinking: number of the filter of an axis that shrinks.
        enlarging: number of the filter of another axis.
        antialias: widen the filter when shrinking.
    """

    size: tuple[int, int]
    shrinking: int
    enlarging: int
    antialias: bool

    @classmethod
    def of(cls, args: Mapping[str, Any]) -> FrameResize | None:
        """Return the resize that constant arguments of `resize` ask for; None: its size or region depends on the frame.

        Arguments that the operator refuses are left to it, too.
        """
        if any(args.get(k) != v for k, v in _PLAIN.items()) or args.get("mode") not in ("default", "stretch"):
            return None
        size, single = args.get("size"), (args.get("resize_y"), args.get("resize_x"))
        if size is not None and single == (None, None) and len(size) in (1, 2):
            wanted = tuple(size) * (3 - len(size))
        elif size is None and None not in single:
            wanted = single
        else:
            return None
        if not all(np.isfinite(x) and 0 < x < _MOST for x in wanted):
            return None
        usual = args["interp_type"]
        kinds = tuple(usual if args.get(k) is None else args[k] for k in ("min_filter", "mag_filter"))
        if not all(x in range(max(InterpType) + 1) for x in kinds):
            return None
        height, width = (max(int(np.floor(x + 0.5)), 1) for x in wanted)
        return cls((height, width), int(kinds[0]), int(kinds[1]), bool(args["antialias"]))

    def filters(self, height: int, width: int) -> tuple[int, int]:
        """Return the filters of the vertical and the horizontal axis for a frame of a size."""
        vertical, horizontal = (
            self.shrinking if out < own else self.enlarging for out, own in zip(self.size, (height, width), strict=True)
        )
        return vertical, horizontal

    def write(self, frame: Any, order: int, turns: int, out: npt.NDArray[np.uint8]) -> None:
        """Convert a frame to bytes and resize it.

        Args:
            frame: PyAV's frame, or a picture of Motion JPEG.
            order: RGB, BGR or STORED.
            turns: quarters of a turn, counterclockwise, before the resize.
            out: contiguous ``(height, width, 3)``.

        Raises:
            DataError: the frame has a pixel format or a matrix that is not supported.
        """
        form = None if turns or isinstance(frame, JpegPicture) else form_of(frame.format.name)
        number, full_range = (0, False) if form is None else frame_colors(frame, form)
        if form is None or number not in MATRICES:
            self._write_whole(frame, order, turns, out)
            return
        height, width = frame.height, frame.width
        planes = frame.planes[: form.planes]
        _native.video.resize(
            [np.frombuffer(p, np.uint8) for p in planes], [p.line_size for p in planes], (height, width), form.shifts,
            form.bits, MATRICES[number], full_range, order, (0.0, height, 0.0, width), self.filters(height, width),
            self.antialias, out,
        )  # fmt: skip

    def _write_whole(self, frame: Any, order: int, turns: int, out: npt.NDArray[np.uint8]) -> None:
        """Resize the pixels of the whole frame."""
        stored = np.empty((frame.height, frame.width, 3), np.uint8)
        write_pixels(frame, order, stored)
        self.write_pixels(np.rot90(stored, turns), out)

    def write_pixels(self, pixels: npt.NDArray[np.uint8], out: npt.NDArray[np.uint8]) -> None:
        """Resize a frame that has been converted."""
        height, width = pixels.shape[:2]
        vertical, horizontal = self.filters(height, width)
        out[:] = _native.resample(
            np.ascontiguousarray(pixels), *self.size, None, vertical, horizontal, self.antialias
        )  # fmt: skip

    def of_clip(self, clip: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return a clip whose frames are resized."""
        out = np.empty((len(clip), *self.size, 3), np.uint8)
        for own, to in zip(clip, out, strict=True):
            self.write_pixels(own, to)
        return out

    @staticmethod
    def takes(dtype: DType) -> bool:
        """Return whether elements of a type are resized so: others are not rounded between decoding and resizing."""
        return dtype == DType.UINT8
