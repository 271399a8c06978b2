# SPDX-License-Identifier: Apache-2.0
"""Search for the frames of a video, which makes its frame index."""

from __future__ import annotations

import contextlib
import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np

from ..contract.errors import DataError
from . import motion_jpeg
from .decoder import PacketDecoder, VideoDecoder
from .frame_index import CORRUPT, DISCARD, HIDDEN, KEY, LEADING, NO_TIME, FrameIndex, Ints
from .pyav import FileErrors, Source, name_of, open_container, pyav, state_of, video_stream
from .video_ends import cut_of

# Containers that store the presentation time of every packet.
_TIMED = ("mov,mp4", "matroska", "mpegts", "mpeg", "flv", "ogg", "nut", "asf")
# Containers whose packets are contiguous bytes of the file. The index compares some of them.
_CONTIGUOUS = ("mov,mp4", "avi")
# Codecs whose decoders need nothing of the container but its extra data.
_SELF_CONTAINED = ("h264", "hevc", "vp9", "libdav1d", "mjpeg")
_COMPARED = 16  # packets, at least, that are compared with the file's bytes
MAX_PACKETS = 1 << 28


class _Packets:
    """Facts of the packets of a stream, in decoding order."""

    def __init__(self, source: Source) -> None:
        self.facts: list[tuple[int, int, int, int, int]] = []
        self.is_timed = self.is_contiguous = True
        self.last_duration = 0
        self._compared = 0
        self._bytes = memoryview(source) if not isinstance(source, str) else None
        self._file = open(source, "rb") if isinstance(source, str) else None  # noqa: SIM115 - `close` closes it

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def add(self, packet: Any, *, is_vp8: bool) -> None:
        """Add a packet."""
        pts, dts, size, pos = packet.pts, packet.dts, packet.size, packet.pos
        flags = KEY if packet.is_keyframe else 0
        if packet.is_discard:
            flags |= DISCARD
        if packet.is_corrupt:
            flags |= CORRUPT
        if is_vp8 and not bytes(packet)[0] & 0x10:  # the frame header's bit `show_frame`
            flags |= HIDDEN
        if pts is None:
            self.is_timed, pts = False, NO_TIME
        if dts is None:
            dts = NO_TIME
        if pos is None:
            pos = -1
        if pos < 0:
            self.is_contiguous = False
        elif self.is_contiguous and (self._compared < _COMPARED or len(self.facts) & 1023 == 0):
            self._compared += 1
            self.is_contiguous = self._at(pos, size) == bytes(packet)
        self.last_duration = packet.duration or 0
        self.facts.append((pts, dts, size, pos, flags))

    def _at(self, pos: int, size: int) -> bytes:
        if self._bytes is not None:
            return bytes(self._bytes[pos : pos + size])
        assert self._file is not None
        self._file.seek(pos)
        return self._file.read(size)


def index_video(source: Source) -> FrameIndex:
    """Find the frames of a video.

    Args:
        source: the path of a file, or its contents.

    Raises:
        DataError: it is no video, or it has no frame that can be decoded.
        OSError: the file cannot be read.
        UnsupportedError: PyAV is not installed.
    """
    with contextlib.closing(_indexed(source)) as packets:
        return packets.index


def open_video(source: Source, reduction: int = 1) -> VideoDecoder:
    """Find the frames of a video and return a decoder of them. The file is opened once.

    Args:
        source: the path of a file, or its contents.
        reduction: number by which the height and the width of the frames are divided.

    Raises:
        DataError: it is no video, or it has no frame that can be decoded, or its codec has no reduced sizes.
        OSError: the file cannot be read.
        UnsupportedError: PyAV is not installed.
    """
    packets = _indexed(source)
    if not packets.index.codec and packets.index.codec_name != motion_jpeg.CODEC and reduction == 1:
        return VideoDecoder(source, packets.index, packets)
    packets.close()
    return VideoDecoder(source, packets.index, reduction=reduction)


def _indexed(source: Source) -> PacketDecoder:
    """Return a decoder in the container that the frames were found in, with their index."""
    state = state_of(source)
    container = open_container(source)
    try:
        with FileErrors(source):
            index, is_timed = _packets_of(container, source, state)
        packets = PacketDecoder(source, dataclasses.replace(index, codec=""), container=container)
    except BaseException:
        container.close()
        raise
    try:
        index = _with_frames(source, index, packets, is_timed)
        packets.index = dataclasses.replace(index, codec="")
        packets.index = dataclasses.replace(index, rotation=_rotation(source, packets))
    except BaseException:
        packets.close()
        raise
    return packets


def _packets_of(container: Any, source: Source, state: tuple[int, int]) -> tuple[FrameIndex, bool]:
    """Return an index without points to decode from, and whether its frames have the times of their packets."""
    stream = video_stream(container, source)
    context, form = stream.codec_context, container.format.name
    if context is None:
        raise DataError(f"expected a video of a codec that FFmpeg decodes in {name_of(source)}")
    packets, damage = _scan(container, stream, source)
    if not packets.facts:
        raise DataError(f"expected frames in {name_of(source)}, got a video stream without any: {damage or 'empty'}")
    if stream.frames > len(packets.facts) and form.startswith("mov,mp4") and not damage:
        damage = f"expected {stream.frames} frames as the header says, got {len(packets.facts)}"
    cut = cut_of(source, form)
    pts, dts, size, pos, flags = (np.array(x, np.int64) for x in zip(*packets.facts, strict=True))
    if cut:  # the last picture may lack a part, which not every decoder notices
        flags[-1] |= CORRUPT
    is_contiguous = packets.is_contiguous and form.startswith(_CONTIGUOUS)
    own = is_contiguous and context.codec.name in _SELF_CONTAINED
    shown = np.flatnonzero(flags & (DISCARD | HIDDEN) == 0)
    times = pts[shown]
    is_timed = form.startswith(_TIMED) and NO_TIME not in times and len(np.unique(times)) == len(times)
    end = int(times.max()) + max(packets.last_duration, 1) if is_timed and len(times) else 0
    return FrameIndex(
        pts=np.sort(times), order=shown[np.argsort(times, kind="stable")], sync=np.zeros(len(shown), np.int64),
        end=end, packet_pts=pts, packet_dts=dts, packet_size=size, packet_pos=pos,
        packet_flags=flags.astype(np.uint8), time_base=stream.time_base,
        rate=Fraction(stream.average_rate or stream.base_rate or stream.guessed_rate or 25), stream=stream.index,
        size=(context.height, context.width), rotation=0, color=(int(context.colorspace), int(context.color_range)),
        is_contiguous=is_contiguous, codec=context.codec.name if own else "",
        codec_name=context.codec.canonical_name, pixel_format=context.pix_fmt or "",
        extradata=bytes(context.extradata or b""), state=state, damage=damage or cut,
    ), is_timed  # fmt: skip


def _with_frames(source: Source, index: FrameIndex, packets: PacketDecoder, is_timed: bool) -> FrameIndex:
    """Return the index with the frames that a decoder outputs, and the packets from which they are decoded."""
    if is_timed:
        index = _without_undecodable_head(source, index)
        index = _with_sync_points(index, index.packet_pts)
    else:
        index = _in_decoded_order(index, packets)
    if not len(index):
        raise DataError(f"expected frames that can be decoded in {name_of(source)}, got none")
    return index


def _scan(container: Any, stream: Any, source: Source) -> tuple[_Packets, str]:
    """Return the packets, and a description of damage or ""."""
    packets, is_vp8 = _Packets(source), stream.codec_context.codec.name in ("vp8", "libvpx")
    try:
        for packet in container.demux(stream):
            if packet.size:
                packets.add(packet, is_vp8=is_vp8)
            if len(packets.facts) > MAX_PACKETS:
                raise DataError(f"expected at most {MAX_PACKETS} packets in {name_of(source)}")
    except pyav().error.InvalidDataError as error:
        return packets, f"damaged after {len(packets.facts)} packets: {error.strerror}"
    finally:
        packets.close()
    return packets, ""


def _with_sync_points(index: FrameIndex, times: Ints) -> FrameIndex:
    """Find the packet from which each frame is decoded. ``times``: presentation times of all packets."""
    keys = np.flatnonzero(index.packet_flags & KEY)
    if not len(keys):
        return dataclasses.replace(index, sync=np.zeros(len(index), np.int64))
    packets = np.arange(len(times))
    at = np.searchsorted(keys, packets, side="right") - 1
    leads = (at >= 0) & (times < times[keys[np.maximum(at, 0)]])
    at -= leads
    sync = np.where(at >= 0, keys[np.maximum(at, 0)], 0)
    leads[index.order] &= at[index.order] >= 0  # those before the first key packet that a decoder outputs
    flags = index.packet_flags | leads.astype(np.uint8) * np.uint8(LEADING)
    return dataclasses.replace(index, sync=sync[index.order], packet_flags=flags)


def _without_undecodable_head(source: Source, index: FrameIndex) -> FrameIndex:
    """Leave out pictures before the first key picture that a decoder does not output: a recording that was cut."""
    keys = np.flatnonzero(index.packet_flags & KEY)
    first = int(keys[0]) if len(keys) else 0
    if not len(keys):
        return index
    start = index.packet_pts[first]
    head = index.pts < start
    if not head.any():
        return index
    found: set[int] = set()
    decoder = PacketDecoder(source, index, conceals=True)
    with contextlib.closing(decoder):
        decoder.seek(0)
        while not decoder.is_drained:
            with contextlib.suppress(DataError):
                frames = decoder.feed()
                found.update(frame.pts for frame in frames if not frame.is_corrupt)
                if any(index.packet_pts[frame.pts] >= start for frame in frames):
                    break
    kept = ~head | np.isin(index.order, list(found))
    return dataclasses.replace(index, pts=index.pts[kept], order=index.order[kept], sync=index.sync[kept])


def _in_decoded_order(index: FrameIndex, packets: PacketDecoder) -> FrameIndex:
    """Number the frames in the order in which the decoder outputs them. Their times follow from the rate."""
    order: list[int] = []
    failures = 0
    packets.seek(0)
    while not packets.is_drained:
        try:
            order += [frame.pts for frame in packets.feed()]
        except DataError:
            failures += 1
    order = list(dict.fromkeys(o for o in order if o is not None and not index.packet_flags[o] & DISCARD))
    damage = index.damage or (f"{failures} damaged packets" if failures else "")
    numbers = np.full(len(index.packet_pts), NO_TIME)
    numbers[order] = np.arange(len(order))
    unknown = np.flatnonzero(numbers == NO_TIME)  # such packets are never asked for, but they may be key packets
    numbers[unknown] = len(order)
    found = dataclasses.replace(
        index, pts=np.arange(len(order)), order=np.asarray(order, np.int64), end=len(order), time_base=1 / index.rate,
        damage=damage,
    )  # fmt: skip
    return _with_sync_points(found, numbers)


def _rotation(source: Source, packets: PacketDecoder) -> int:
    """Return the rotation of the first frame that can be decoded, in degrees counterclockwise."""
    with contextlib.suppress(DataError):
        return _rotation_of(packets)
    concealing = PacketDecoder(source, packets.index, conceals=True)
    with contextlib.closing(concealing), contextlib.suppress(DataError):
        return _rotation_of(concealing)
    return 0


def _rotation_of(packets: PacketDecoder) -> int:
    """Return the rotation of the first frame.

    Raises:
        DataError: it cannot be decoded.
    """
    packets.seek(int(packets.index.sync[0]))
    while not packets.is_drained:
        for frame in packets.feed():
            return int(frame.rotation) % 360
    raise DataError("expected a frame, got none")
