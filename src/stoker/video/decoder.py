# SPDX-License-Identifier: Apache-2.0
"""Decoding of frames by number.

Every packet gets its number in decoding order as time stamp before it is decoded, and a decoder gives a frame the time
stamp of its packet. So a frame is identified by its packet and never counted, also if times of the file are missing or
occur twice.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..contract.errors import DataError
from .frame_index import CORRUPT, KEY, LEADING, NO_TIME, FrameIndex
from .pyav import DECODER_OPTIONS, FileErrors, Source, name_of, open_container, pyav, state_of

Take = Callable[[int, Any], None]


class _MissingFrame(DataError):
    """Frame that does not come out of the decoder, although later ones do."""

    def __init__(self, source: Source, number: int, packet: int) -> None:
        super().__init__(f"frame {number} of {name_of(source)} does not come out of the decoder")
        self.packet = packet


class PacketDecoder:
    """Decoder of a file that is fed with packets by number. One thread uses it at a time.

    Args:
        source: the path of a file, or its contents.
        index: its frame index.
        conceals: damaged pictures are concealed, as FFmpeg does by default, instead of being errors.

    Raises:
        DataError: the file is no video.
        OSError: the file cannot be read.
    """

    def __init__(self, source: Source, index: FrameIndex, *, conceals: bool = False) -> None:
        self.source, self.index = source, index
        self.start = self.next = 0  # the packet that decoding began with, and the next one
        self.is_drained = True
        self._last_key = -1
        self._container: Any = None
        self._packets: Iterator[Any] = iter(())
        self._numbers: Mapping[tuple[int, int, int, int], int] = {}
        self._handle = -1
        self._packet_type = pyav().Packet
        if not (index.codec and index.is_contiguous):
            self._container = open_container(source)
        if index.is_contiguous and isinstance(source, str):
            self._handle = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
        if isinstance(source, str) and index.state != state_of(source):
            self.close()
            raise DataError(f"{name_of(source)} changed after it was indexed")
        self._options = {} if conceals else DECODER_OPTIONS
        self._context = self._new_context()

    def _new_context(self) -> Any:
        if self._container is not None:
            streams = self._container.streams
            if self.index.stream >= len(streams):
                raise DataError(f"{name_of(self.source)} changed after it was indexed")
            context = streams[self.index.stream].codec_context
        else:
            context = pyav().CodecContext.create(self.index.codec, "r")
            context.extradata = self.index.extradata
            context.height, context.width = self.index.size
            context.colorspace, context.color_range = self.index.color
        context.thread_count = 1  # errors come with their packets, and rows are decoded in parallel
        context.thread_type = "NONE"
        context.options = self._options
        return context

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._packets = iter(())
        if self._container is not None:
            self._container.close()
            self._container = None
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def seek(self, packet: int) -> None:
        """Begin with a packet.

        Raises:
            DataError: the packet is not in the file.
        """
        with FileErrors(self.source):
            if self._context.is_open:
                self._context.flush_buffers()
            self.start = self.next = packet
            self.is_drained, self._last_key = False, -1
            if not self.index.is_contiguous:
                self._packets = self._found(packet)

    def feed(self) -> Sequence[Any]:
        """Decode the next packet, or drain the decoder after the last one. Return the frames that come out.

        Raises:
            DataError: the packet is damaged.
            OSError: the file cannot be read.
        """
        number = self.next
        if number >= len(self.index.packet_pts):
            self.is_drained = True
            with FileErrors(self.source):
                return list(self._context.decode(None))
        self.next += 1
        flags = int(self.index.packet_flags[number])
        if flags & CORRUPT:
            raise DataError(f"packet {number} of {name_of(self.source)} is damaged")
        if flags & KEY:
            self._last_key = number
        with FileErrors(self.source):
            packet = self._packet(number)
            if flags & LEADING and self._last_key == self.start:
                return ()  # it needs pictures that were not decoded
            packet.pts = packet.dts = number
            return list(self._context.decode(packet))

    def _packet(self, number: int) -> Any:
        if not self.index.is_contiguous:
            packet = next(self._packets, None)
            if packet is None:
                raise DataError(f"expected packet {number} in {name_of(self.source)}, got its end")
            return packet
        pos, size = int(self.index.packet_pos[number]), int(self.index.packet_size[number])
        if isinstance(self.source, str):
            content = os.pread(self._handle, size, pos)
        else:
            content = bytes(self.source[pos : pos + size])
        if len(content) != size:
            raise DataError(f"expected {size} bytes at byte {pos} of {name_of(self.source)}, got {len(content)}")
        packet = self._packet_type(size)  # with zeros after it, which decoders read; `Packet(content)` has none
        packet.update(content)
        # FFmpeg's PNG decoder adds pictures to the one before unless their packets are key packets.
        packet.is_keyframe = bool(self.index.packet_flags[number] & KEY)
        return packet

    # ---- packets of containers that scatter them ----

    def _found(self, packet: int) -> Iterator[Any]:
        """Return the packets from one on. Demuxers may land anywhere: packets are recognized by their facts."""
        index = self.index
        if not self._numbers:
            facts = zip(index.packet_pos, index.packet_dts, index.packet_pts, index.packet_size, strict=True)
            self._numbers = {(int(a), int(b), int(c), int(d)): i for i, (a, b, c, d) in enumerate(facts)}
        before = index.sync_before(packet)
        for target in dict.fromkeys((packet, before, index.sync_before(before), 0)):
            stream = self._rewound(target)
            for one in self._container.demux(stream):
                number = self._numbers.get(_facts(one)) if one.size else None
                if number == packet:
                    return self._following(one, self._container.demux(stream), packet)
                if number is not None and number > packet:
                    break
        raise DataError(f"packet {packet} is not found: {name_of(self.source)} changed after it was indexed")

    def _rewound(self, packet: int) -> Any:
        """Seek to a packet, or open the file again for the first one. Return the stream."""
        stream = self._container.streams[self.index.stream]
        times = [int(t[packet]) for t in (self.index.packet_dts, self.index.packet_pts)]
        time = next((t for t in times if t != NO_TIME), None)
        if packet and time is not None:
            with contextlib.suppress(
                pyav().error.FFmpegError
            ):  # a container without an index: it is read from its start
                self._container.seek(time, stream=stream, backward=True)
                return stream
        self._reopen()
        return self._container.streams[self.index.stream]

    def _reopen(self) -> None:
        self._container.close()
        self._container = open_container(self.source)
        self._context = self._new_context()

    def _following(self, first: Any, rest: Iterable[Any], number: int) -> Iterator[Any]:
        yield first
        for packet in rest:
            if not packet.size:
                continue
            number += 1
            if self._numbers.get(_facts(packet)) != number:
                raise DataError(f"expected packet {number} in {name_of(self.source)}, got another one")
            yield packet


def _facts(packet: Any) -> tuple[int, int, int, int]:
    no = NO_TIME
    pos, dts, pts = packet.pos, packet.dts, packet.pts
    return (-1 if pos is None else pos, no if dts is None else dts, no if pts is None else pts, packet.size)


class VideoDecoder:
    """Random access to the frames of a file. One thread uses it at a time.

    Args:
        source: the path of a file, or its contents.
        index: its frame index.

    Raises:
        DataError: the file is no video.
        OSError: the file cannot be read.
    """

    def __init__(self, source: Source, index: FrameIndex) -> None:
        self.index = index
        self._packets = PacketDecoder(source, index)
        self._known = {int(packet): number for number, packet in enumerate(index.order)}
        self._last = -1  # the last frame that came out since the seek
        self._damaged: dict[int, Exception] = {}  # packets that fail wherever decoding begins
        self._from_start = False  # key packets are none: everything is decoded from the first packet

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._packets.close()

    def cost(self, number: int) -> int:
        """Return the number of packets to decode for a frame."""
        sync, packet = self._sync(number), int(self.index.order[number])
        return max(packet - self._packets.next, 0) if self._continues(sync, number) else packet - sync

    def read(self, numbers: Iterable[int], take: Take) -> dict[int, Exception]:
        """Decode frames, each packet at most once.

        Args:
            numbers: numbers of the frames, in any order.
            take: function that receives each frame's number and PyAV's frame. Its exceptions fail the frame.

        Returns:
            The errors of frames that could not be decoded.
        """
        errors = dict[int, Exception]()
        wanted = sorted({(self._sync(n), int(self.index.order[n]), n) for n in numbers})
        pending = {packet: number for _, packet, number in wanted}
        for sync, packet, number in wanted:
            if packet not in pending:
                continue
            try:
                self._reach(sync, packet, number, pending, take, errors)
            except Exception as error:  # noqa: BLE001 - whatever a decoder raises fails the frame
                self._packets.is_drained = True  # the decoder's state is unknown
                errors[pending.pop(packet)] = error
        return errors

    def _sync(self, number: int) -> int:
        return 0 if self._from_start else int(self.index.sync[number])

    def _continues(self, sync: int, number: int) -> bool:
        """Return whether a frame comes out if decoding goes on without a seek.

        Frames come out in the order of their numbers. A decoder that reorders pictures still holds frames whose packets
        it has already received.
        """
        packets = self._packets
        return not packets.is_drained and packets.start <= sync <= packets.next and number > self._last

    def _reach(
        self, sync: int, packet: int, number: int, pending: dict[int, int], take: Take, errors: dict[int, Exception]
    ) -> None:
        """Decode until a frame has come out.

        A key packet may not be one: streams that refresh pictures part by part, containers with wrong flags. Then
        decoding from it fails, or the frame does not come out, so it is tried from the key packet before and from the
        first packet. Damage shows at the same packet each time.
        """
        known = next((e for p, e in self._damaged.items() if sync <= p <= packet), None)
        if known is not None:
            raise known.with_traceback(None)  # else each raise would append to its traceback
        failed_at = -1
        for start in self._starts(sync, goes_on=self._continues(sync, number)):
            try:
                if start is not None:
                    self._packets.seek(start)
                    self._last = -1
                self._pass(packet, number, pending, take, errors)
            except DataError as error:
                failing = error.packet if isinstance(error, _MissingFrame) else self._packets.next - 1
                if failed_at == failing or start == 0:
                    self._damaged[failing] = error
                    raise
                failed_at, failure = failing, error
            else:
                self._from_start |= start == 0 and failed_at >= 0 and sync > 0
                return
        raise failure

    def _starts(self, sync: int, *, goes_on: bool) -> Iterator[int | None]:
        """Return the packets to decode from, by their order; None: the next one."""
        if goes_on:
            yield None
        yield sync
        if sync:
            before = self.index.sync_before(sync)
            yield before
            if before:
                yield 0

    def _pass(
        self, packet: int, number: int, pending: dict[int, int], take: Take, errors: dict[int, Exception]
    ) -> None:
        """Decode until a frame has come out.

        Raises:
            DataError: a packet is damaged, or a frame is missing among those that come out.
        """
        packets, index = self._packets, self.index
        while packet in pending:
            if packets.is_drained:
                raise _MissingFrame(self._packets.source, number, packet)
            for frame in packets.feed():
                found = self._known.get(frame.pts)
                if found is None:  # the file says that it is not shown
                    continue
                missing, self._last = self._last + 1, found
                if 0 < missing < found:
                    raise _MissingFrame(self._packets.source, missing, int(index.order[missing]))
                if found > number and packet in pending:
                    raise _MissingFrame(self._packets.source, number, packet)
                if frame.pts in pending:
                    self._hand_over(pending.pop(frame.pts), frame, take, errors)

    def _hand_over(self, number: int, frame: Any, take: Take, errors: dict[int, Exception]) -> None:
        try:
            if frame.is_corrupt:
                raise DataError(f"frame {number} of {name_of(self._packets.source)} is damaged")
            take(number, frame)
        except Exception as error:  # noqa: BLE001 - the caller's code may raise anything; the frame carries it
            errors[number] = error
