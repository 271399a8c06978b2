# SPDX-License-Identifier: Apache-2.0
"""Frame index of a video: the times of its frames, and the packets that they are decoded from.

One pass over the packets (without decoding) finds it. Frames are numbered by their presentation times. Containers
without such times (AVI, raw streams) are decoded once instead, because only a decoder knows the order of their frames.

A frame is decoded from the last key packet, in decoding order, from which it can be decoded: pictures that follow a key
packet and are shown before it may need pictures before the key packet (open groups of pictures), so that they are
decoded from the key packet before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

# Flags of packets. Leading: it needs pictures before the last key packet.
KEY, DISCARD, CORRUPT, HIDDEN, LEADING = 1, 2, 4, 8, 16
NO_TIME = -(1 << 63)


@dataclass(frozen=True, eq=False)
class FrameIndex:
    """Frames and packets of the best video stream of a file.

    Attributes:
        pts: presentation times of the frames in units of ``time_base``, rising.
        order: numbers of the frames' packets in decoding order.
        sync: numbers of the packets from which the frames are decoded.
        end: presentation time at which the last frame ends.
        packet_pts, packet_dts, packet_size, packet_pos: facts of all packets, in decoding order.
        packet_flags: KEY, DISCARD, CORRUPT, HIDDEN, LEADING.
        time_base: seconds per unit, as a fraction.
        rate: average frames per second, as a fraction.
        stream: number of the stream in its container.
        size: height and width of the stored frames.
        rotation: degrees, counterclockwise, by which players turn the frames.
        color: matrix and range that the container states, in FFmpeg's numbers.
        is_contiguous: packets are contiguous bytes of the file.
        codec: FFmpeg's name of the decoder, if packets can be decoded without the container; else "".
        codec_name: FFmpeg's name of the codec.
        pixel_format: FFmpeg's name of the pixel format that the container states; "" if it states none.
        extradata: headers of the decoder.
        state: size and modification time of the file.
        damage: description of damage that the pass found; "" if there is none.
    """

    pts: Ints
    order: Ints
    sync: Ints
    end: int
    packet_pts: Ints
    packet_dts: Ints
    packet_size: Ints
    packet_pos: Ints
    packet_flags: npt.NDArray[np.uint8]
    time_base: Fraction
    rate: Fraction
    stream: int
    size: tuple[int, int]
    rotation: int
    color: tuple[int, int]
    is_contiguous: bool
    codec: str
    codec_name: str
    pixel_format: str
    extradata: bytes
    state: tuple[int, int]
    damage: str = ""

    def __len__(self) -> int:
        return len(self.pts)

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """Return the seconds from the first frame to each frame, and to the end of the last one."""
        if not len(self):
            return np.zeros(1)
        ticks = np.append(self.pts, self.end) - self.pts[0]
        return np.asarray(ticks * self.time_base.numerator / self.time_base.denominator, np.float64)

    @property
    def size_bytes(self) -> int:
        """Return the memory that the index takes."""
        return 4096 + len(self.extradata) + sum(int(getattr(self, k).nbytes) for k in _ARRAYS)

    def sync_before(self, packet: int) -> int:
        """Return the key packet before a packet; 0 if there is none."""
        keys = np.flatnonzero(self.packet_flags[:packet] & KEY)
        return int(keys[-1]) if len(keys) else 0

    def is_corrupt(self, packet: int) -> bool:
        """Return whether the demuxer found a packet damaged."""
        return bool(self.packet_flags[packet] & CORRUPT)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the index as arrays, for a cache."""
        facts = [*self.time_base.as_integer_ratio(), *self.rate.as_integer_ratio(), self.stream, *self.size,
                 self.rotation, *self.color, self.is_contiguous, self.end, *self.state]  # fmt: skip
        texts = {k: np.frombuffer(getattr(self, k).encode(), np.uint8) for k in _TEXTS}
        texts["extradata"] = np.frombuffer(self.extradata, np.uint8)
        return {k: getattr(self, k) for k in _ARRAYS} | texts | {"facts": np.asarray(facts, np.int64)}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> FrameIndex:
        """Return the index that :meth:`arrays` describes."""
        f = [int(x) for x in arrays["facts"]]
        parts: dict[str, Any] = {k: arrays[k] for k in _ARRAYS}
        parts |= {k: arrays[k].tobytes().decode() for k in _TEXTS}
        return cls(
            **parts, time_base=Fraction(f[0], f[1]), rate=Fraction(f[2], f[3]), stream=f[4],
            size=(f[5], f[6]), rotation=f[7], color=(f[8], f[9]), is_contiguous=bool(f[10]), end=f[11],
            state=(f[12], f[13]), extradata=arrays["extradata"].tobytes(),
        )  # fmt: skip


_ARRAYS = tuple(f.name for f in fields(FrameIndex) if f.type in ("Ints", "npt.NDArray[np.uint8]"))
_TEXTS = tuple(f.name for f in fields(FrameIndex) if f.type == "str")
ARRAYS = (*_ARRAYS, *_TEXTS, "extradata", "facts")


def groups_of(index: FrameIndex, clips: Sequence[Ints]) -> list[list[int]]:
    """Return the numbers of clips in groups, such that no two groups need the same packet, in the order of packets.

    Args:
        index: the index of their file.
        clips: numbers of the frames of each clip, -1 for frames that are not decoded.
    """
    spans = []
    for number, frames in enumerate(clips):
        own = frames[frames >= 0]
        begin, last = (int(index.sync[own].min()), int(index.order[own].max())) if len(own) else (0, -1)
        spans.append((begin, last, number))
    groups: list[list[int]] = []
    end = -1
    for begin, last, number in sorted(spans):
        if begin > end or not groups:
            groups.append([])
        groups[-1].append(number)
        end = max(end, last)
    return groups
