# SPDX-License-Identifier: Apache-2.0
"""Pixels of clips: frames of a video as arrays FHWC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import DataError
from ..settings import video_clip_bytes
from .colors import RGB, write_pixels
from .decoder import VideoDecoder
from .frame_resize import FrameResize
from .memory import MEMORY

Pixels = npt.NDArray[Any]  # uint8 or uint16


def excess_of(frames: float, height: int, width: int, item: int) -> str:
    """Return the reason why a clip is too large to be decoded; "" if it is not.

    Args:
        frames: number of its frames.
        height: height of the frames.
        width: width of the frames.
        item: bytes of a value.
    """
    size = frames * height * width * 3 * item
    most = video_clip_bytes(size)
    if size <= most:
        return ""
    return (
        f"expected at most {most >> 20} MiB of frames, got {frames:.0f} of {height} x {width}: {size / (1 << 20):.0f} "
        "MiB. Decode fewer of them, or raise the limit, STOKER_VIDEO_CLIP_MIB"
    )


@dataclass(frozen=True)
class ClipPixels:
    """Form of the pixels of clips.

    Attributes:
        order: order of the channels, one of `colors`.
        adjust_orientation: turn frames as the file's rotation says.
        fill: values of the channels of constant frames.
        dtype: type of the pixels: uint8, or uint16 with 257 times the values.
        reduction: number by which the decoder divides the height and the width of the frames.
        resize: resize of the frames, of uint8; None: they have the size of the video.
    """

    order: int = RGB
    adjust_orientation: bool = True
    fill: tuple[int, ...] = (0,)
    dtype: type[np.uint8] | type[np.uint16] = np.uint8
    reduction: int = 1
    resize: FrameResize | None = None

    def decode(self, decoder: VideoDecoder, clips: Sequence[npt.NDArray[np.int64]]) -> list[Pixels | BaseException]:
        """Decode clips of one file together.

        Args:
            decoder: decoder of the file.
            clips: numbers of their frames, -1 for constant frames.

        Returns:
            For each clip ``(frames, height, width, 3)``, or the error of its first frame that failed.
        """
        sizes: dict[int, tuple[int, int]] = {}
        turns = decoder.index.rotation // 90 if self.adjust_orientation else 0
        places: dict[int, list[tuple[int, int]]] = {}
        for k, frames in enumerate(clips):
            for at, number in enumerate(frames.tolist()):
                if number >= 0:
                    places.setdefault(number, []).append((k, at))
        found: list[Pixels | None] = [None] * len(clips)
        misfits: dict[int, DataError] = {}

        def take(number: int, frame: Any) -> None:
            pixels: Pixels | None = None
            for k, at in places[number]:
                pixels = self._place(found, k, at, len(clips[k]), frame, turns, pixels, sizes, misfits)

        failed = decoder.read(places, take)
        out: list[Pixels | BaseException] = []
        for k, frames in enumerate(clips):
            error = next((failed[n] for n in frames.tolist() if n in failed), misfits.get(k))
            clip = found[k]
            if clip is not None and error is None:
                clip[frames < 0] = self.fill
            out.append(error or (DataError("expected a frame in every clip, got none") if clip is None else clip))
        return out

    def _place(
        self, found: list[Pixels | None], k: int, at: int, length: int, frame: Any, turns: int, pixels: Pixels | None,
        sizes: dict[int, tuple[int, int]], misfits: dict[int, DataError],
    ) -> Pixels | None:  # fmt: skip
        """Write a frame into a clip, and return where its pixels are."""
        height, width = (frame.width, frame.height) if turns & 1 else (frame.height, frame.width)
        clip = found[k]
        if clip is None:
            size = np.dtype(self.dtype).itemsize
            rows, columns = (height, width) if self.resize is None else self.resize.size
            excess = excess_of(length, rows, columns, size) or excess_of(1, height, width, size)
            if excess:
                raise DataError(excess)
            clip = found[k] = MEMORY.array((length, rows, columns, 3 * size)).view(self.dtype)
            sizes[k] = height, width
        if sizes[k] != (height, width):
            text = f"expected frames of one size in a clip, got {sizes[k]} and {(height, width)}"
            misfits.setdefault(k, DataError(text))
            return pixels
        written: Pixels = clip[at]
        if pixels is not None:
            written[:] = pixels
        elif self.resize is not None:
            self.resize.write(frame, self.order, turns, written)
        elif turns:
            stored = np.empty((frame.height, frame.width, 3), self.dtype)
            write_pixels(frame, self.order, stored)
            written[:] = np.rot90(stored, turns)
        else:
            write_pixels(frame, self.order, written)
        return written
