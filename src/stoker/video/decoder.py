# SPDX-License-Identifier: Apache-2.0
"""Decoding of frames by number.

Every packet gets its number in decoding order as time stamp before it is decoded, and a decoder gives a frame the time
stamp of its packet. So a frame is identified by its packet and never counted, also if times of the file are missing or
occur twice.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..contract.errors import DataError
from .disposable import disposable_of
from .frame_index import CORRUPT, KEY, LEADING, NO_TIME, FrameIndex
from .motion_jpeg import CODEC, MotionJpegContext
from .pyav import DECODER_OPTIONS, FileErrors, Source, name_of, open_container, pyav, raise_data_error, state_of
from .reduction import reducing_options

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
        container: the opened file, whose packets may have been read. The decoder closes it. By default the decoder
            opens the file if packets cannot be decoded without the container. With it FFmpeg decodes all codecs, also
            Motion JPEG.
        context: codec context that decodes the packets; by default one of PyAV.
        reduction: number by which the height and the width of the frames are divided, one of `reduction.REDUCTIONS`.

    Raises:
        DataError: the file is no video, or its codec has no reduced sizes.
        OSError: the file cannot be read.
    """

    def __init__(
        self, source: Source, index: FrameIndex, *, conceals: bool = False, container: Any = None, context: Any = None,
        reduction: int = 1,
    ) -> None:  # fmt: skip
        reduced = reducing_options(source, index, reduction)
        self.source, self.index = source, index
        self.start = self.next = 0  # the packet that decoding began with, and the next one
        self.is_drained = True
        self.skipped = set[int]()  # packets since the seek that were left out
        self.last_key = -1  # packet, since the seek
        self.disposable = disposable_of(index)
        self._current: Any = b""
        self._container = container
        self._is_fresh = container is None  # no packet was read from the container
        self._packets: Iterator[Any] = iter(())
        self._numbers: Mapping[tuple[int, int, int, int], int] = {}
        # An item of a view is a Python number; one of an array is first made a scalar of NumPy.
        facts = (index.packet_pos, index.packet_size, index.packet_flags)
        self._positions, self._sizes, self._flags = (np.ascontiguousarray(x).data for x in facts)
        self.handle = -1  # descriptor of a file whose packets are contiguous
        self._packet_type = pyav().Packet
        if container is None and not (index.codec and index.is_contiguous):
            self._container = open_container(source)
        if index.is_contiguous and isinstance(source, str):
            self.handle = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
        if isinstance(source, str) and index.state != state_of(source):
            self.close()
            raise DataError(f"{name_of(source)} changed after it was indexed")
        self._options = reduced if conceals else {**DECODER_OPTIONS, **reduced}
        self._given_context = context
        is_whole = container is None and reduction == 1 and not conceals
        self._has_jpeg = index.codec_name == CODEC and is_whole
        self._context = self._new_context()

    def _new_context(self) -> Any:
        if self._given_context is not None:
            return self._given_context
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
        return MotionJpegContext(context, self.index) if self._has_jpeg else context

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._packets = iter(())
        if self._container is not None:
            self._container.close()
            self._container = None
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1

    def seek(self, packet: int, *, reopens: bool = False) -> None:
        """Begin with a packet.

        Args:
            packet: its number.
            reopens: open the container again and read it from its start, if packets are read from it.

        Raises:
            DataError: the packet is not in the file.
        """
        with FileErrors(self.source):
            if self._context.is_open:
                self._context.flush_buffers()
            self.start = self.next = packet
            self.is_drained, self.last_key = False, -1
            self.skipped.clear()
            if not self.index.is_contiguous:
                self._packets = self._found(packet, reopens)

    def drain(self) -> Sequence[Any]:
        """Return the frames that the decoder holds. It does not go on without a seek.

        Raises:
            DataError: a picture is damaged.
        """
        self.is_drained = True
        with FileErrors(self.source):
            return list(self._context.decode(None))

    def feed(self, *, skips: bool = False) -> Sequence[Any]:
        """Decode the next packet, or drain the decoder after the last one. Return the frames that come out.

        Args:
            skips: leave out the packet if no other picture needs it.

        Raises:
            DataError: the packet is damaged.
            OSError: the file cannot be read.
        """
        number = self.next
        if number >= len(self._flags):
            return self.drain()
        self.next += 1
        flags = self._flags[number]
        if flags & CORRUPT:
            raise DataError(f"packet {number} of {name_of(self.source)} is damaged")
        if flags & KEY:
            self.last_key = number
        try:  # no scope of FileErrors, whose two calls are a part of what a small picture costs
            packet = self._current = self._packet(number)
            if flags & LEADING and self.last_key == self.start:
                return ()  # it needs pictures that were not decoded
            if skips and self.is_disposable:
                self.skipped.add(number)
                return ()
            packet.pts = packet.dts = number
            return list(self._context.decode(packet))
        except Exception as error:
            raise_data_error(self.source, error)
            raise

    @property
    def is_disposable(self) -> bool:
        """Whether the last packet is known to hold a picture that no other one needs."""
        return self.disposable.codec != 0 and self.disposable(bytes(self._current))

    @property
    def contents(self) -> npt.NDArray[np.uint8] | None:
        """Return the contents of a file in memory; None: it has a path."""
        return None if isinstance(self.source, str) else np.frombuffer(self.source, np.uint8)

    def _packet(self, number: int) -> Any:
        if not self.index.is_contiguous:
            packet = next(self._packets, None)
            if packet is None:
                raise DataError(f"expected packet {number} in {name_of(self.source)}, got its end")
            return packet
        pos, size = self._positions[number], self._sizes[number]
        if isinstance(self.source, str):
            content = os.pread(self.handle, size, pos)
        else:
            content = bytes(self.source[pos : pos + size])
        if len(content) != size:
            raise DataError(f"expected {size} bytes at byte {pos} of {name_of(self.source)}, got {len(content)}")
        packet = self._packet_type(size)  # with zeros after it, which decoders read; `Packet(content)` has none
        packet.update(content)
        # FFmpeg's PNG decoder adds pictures to the one before unless their packets are key packets.
        packet.is_keyframe = bool(self._flags[number] & KEY)
        return packet

    # ---- packets of containers that scatter them ----

    def _found(self, packet: int, reopens: bool) -> Iterator[Any]:
        """Return the packets from one on. Demuxers may land anywhere: packets are recognized by their facts."""
        index = self.index
        if not self._numbers:
            facts = zip(index.packet_pos, index.packet_dts, index.packet_pts, index.packet_size, strict=True)
            self._numbers = {(int(a), int(b), int(c), int(d)): i for i, (a, b, c, d) in enumerate(facts)}
        for target in () if reopens else self._targets(packet):
            with contextlib.suppress(pyav().error.FFmpegError):  # a container without an index
                self._rewind(target)
                found = self._from_here(packet)
                if found is not None:
                    return found
        if not self._is_fresh:
            self._reopen()
        found = self._from_here(packet)
        if found is None:
            raise DataError(f"packet {packet} is not found: {name_of(self.source)} changed after it was indexed")
        return found

    def _targets(self, packet: int) -> Iterable[int]:
        """Return the packets to seek to, so that a packet is found by reading on."""
        if not packet and self._is_fresh:
            return ()
        before = self.index.sync_before(packet)
        return dict.fromkeys((packet, before, self.index.sync_before(before)))

    def _from_here(self, packet: int) -> Iterator[Any] | None:
        """Return the packets from one on, if it is among those that come next."""
        stream = self._container.streams[self.index.stream]
        self._is_fresh = False
        for one in self._container.demux(stream):
            number = self._numbers.get(_facts(one)) if one.size else None
            if number == packet:
                return self._following(one, self._container.demux(stream), packet)
            if number is not None and number > packet:
                break
        return None

    def _rewind(self, packet: int) -> None:
        """Seek to a packet; without times, to the first one."""
        stream = self._container.streams[self.index.stream]
        times = [int(t[packet]) for t in (self.index.packet_dts, self.index.packet_pts)]
        self._container.seek(next((t for t in times if t != NO_TIME), 0), stream=stream, backward=True)

    def _reopen(self) -> None:
        self._container.close()
        self._container = open_container(self.source)
        self._context = self._new_context()
        self._is_fresh = True

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


class Position(NamedTuple):
    """State of a decoder between two reads.

    Attributes:
        start: the packet that decoding began with.
        next: the next packet.
        last: the last frame that came out, or -1.
        last_key: the last key packet since the beginning, or -1.
        is_drained: the decoder does not go on without a seek.
        skipped: packets that were left out, at least those of frames after the last one.
        end: the frame after the last one of the read before; 0: there was none.
        from_start: key packets are none, so that everything is decoded from the first packet.
    """

    start: int
    next: int
    last: int
    last_key: int
    is_drained: bool
    skipped: list[int]
    end: int
    from_start: bool


class VideoDecoder:
    """Random access to the frames of a file. One thread uses it at a time.

    Args:
        source: the path of a file, or its contents.
        index: its frame index.
        packets: decoder of its packets, which is closed with this one; by default a new one.
        reduction: number by which a new one divides the height and the width of the frames.

    Raises:
        DataError: the file is no video, or its codec has no reduced sizes.
        OSError: the file cannot be read.
    """

    def __init__(
        self, source: Source, index: FrameIndex, packets: PacketDecoder | None = None, *, reduction: int = 1
    ) -> None:  # fmt: skip
        self.index = index
        self._packets = PacketDecoder(source, index, reduction=reduction) if packets is None else packets
        self._last = -1  # the last frame that came out since the seek
        self._end = 0  # the frame after the last one of the read before
        self._damaged: dict[int, Exception] = {}  # packets that fail wherever decoding begins
        self._harmless = set[int]()  # of these, packets that no other picture needs
        self._from_start = False  # key packets are none: everything is decoded from the first packet

    @functools.cached_property
    def _known(self) -> dict[int, int]:
        """Return the frames by their packets."""
        return {packet: number for number, packet in enumerate(self.index.order.tolist())}

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
        request = _Request(self.index, numbers, take)
        if not request.pending:
            return request.errors
        for sync, packet, number, stop in self._planned(request.pending):
            if packet not in request.pending:
                continue
            try:
                self._reach(sync, packet, number, stop, request)
            except Exception as error:  # noqa: BLE001 - whatever a decoder raises fails the frame
                self._packets.is_drained = True  # the decoder's state is unknown
                request.errors[request.pending.pop(packet)] = error
        return request.errors

    def read_by(self, run: Callable[[Position], Position | None]) -> bool:
        """Let another decoder of the packets read frames in the place of `read`, which it is equal to.

        Args:
            run: function that receives the position of the decoder and returns that after the frames. None: it has not
                read them, and the decoder's state is unknown.

        Returns:
            Whether the frames were read. If not, `read` reads them. They are not if the file is known to have damage.
        """
        if self._damaged:
            return False
        packets, after = self._packets, None
        before = Position(
            packets.start, packets.next, self._last, packets.last_key, packets.is_drained, sorted(packets.skipped),
            self._end, self._from_start,
        )  # fmt: skip
        try:
            after = run(before)
        finally:
            packets.is_drained |= after is None
        if after is not None:
            packets.start, packets.next, self._last, packets.last_key, packets.is_drained = after[:5]
            packets.skipped, self._end = set(after.skipped), after.end
        return after is not None

    def _planned(self, pending: Mapping[int, int]) -> list[tuple[int, int, int, int]]:
        """Return the frames of a read in the order of decoding. ``pending``: by their packets.

        For each frame: the packet that decoding begins with, the frame's packet, its number, and the packet after which
        the decoder is drained, or -1. The end of the read is noted.
        """
        # A read that goes on where one before ended is followed by another one, which continues with this decoder.
        begin, end = min(pending.values()), max(pending.values()) + 1
        goes_on, self._end = begin >= self._end if self._end else begin == 0, end
        wanted = sorted((self._sync(n), packet, n) for packet, n in pending.items())
        stops = [-1 if goes_on else wanted[-1][1]]
        for (_, packet, _), (sync, _, _) in zip(wanted[-2::-1], wanted[:0:-1], strict=True):
            stops.append(packet if sync > packet + 1 else stops[-1])
        return [(*one, stop) for one, stop in zip(wanted, reversed(stops), strict=True)]

    def _sync(self, number: int) -> int:
        return 0 if self._from_start else int(self.index.sync[number])

    def _continues(self, sync: int, number: int) -> bool:
        """Return whether a frame comes out if decoding goes on without a seek.

        Frames come out in the order of their numbers. A decoder that reorders pictures still holds frames whose packets
        it has already received.
        """
        packets = self._packets
        return not packets.is_drained and packets.start <= sync <= packets.next and number > self._last

    def _reach(self, sync: int, packet: int, number: int, stop: int, request: _Request) -> None:
        """Decode until a frame has come out.

        After the packet ``stop`` (unless it is -1) the decoder is drained: no frame of later packets is wanted, and
        those that reorder pictures would need later packets before they output this one. Pictures before the wanted
        ones that no other picture needs are left out.

        A key packet may not be one: streams that refresh pictures part by part, containers with wrong flags. Then
        decoding from it fails, or the frame does not come out, so it is tried from the key packet before and from the
        first packet. Damage shows at the same packet each time.
        """
        known = next((e for p, e in self._damaged.items() if self._is_needed(p, sync, packet, number)), None)
        if known is not None:
            raise known.with_traceback(None)  # else each raise would append to its traceback
        try:
            if not self._continues(sync, number):
                self._begin(sync)
            return self._pass(packet, number, request, stop=stop, limit=request.first)
        except DataError as error:
            failure = error
        failed_at = -1
        # As if this frame were the only one: damage that others meet is none of its own.
        for start, reopens in self._starts(sync):
            try:
                self._begin(start, reopens=reopens)
                self._pass(packet, number, request, stop=packet, limit=number)
            except DataError as error:
                failure = error
                failing = error.packet if isinstance(error, _MissingFrame) else self._packets.next - 1
                if not isinstance(error, _MissingFrame) and self._packets.is_disposable:
                    self._harmless.add(failing)
                if failed_at == failing:
                    break
                failed_at = failing
            else:
                self._from_start |= start == 0 and failed_at >= 0 and sync > 0
                return None
        self._damaged[failed_at] = failure
        raise failure

    def _is_needed(self, damaged: int, sync: int, packet: int, number: int) -> bool:
        """Return whether a frame fails because of a damaged packet."""
        is_left_out = damaged in self._harmless and self._known.get(damaged, number) < number
        return sync <= damaged <= packet and (damaged == packet or not is_left_out)

    def _begin(self, packet: int, *, reopens: bool = False) -> None:
        self._packets.seek(packet, reopens=reopens)
        self._last = -1

    def _starts(self, sync: int) -> Iterator[tuple[int, bool]]:
        """Return the packets to decode from, in the order of trials, and whether to open the container again.

        Containers that scatter packets may land elsewhere if they seek to their beginning.
        """
        yield sync, False
        if sync:
            before = self.index.sync_before(sync)
            if before:
                yield before, False
            yield 0, not self.index.is_contiguous
        elif not self.index.is_contiguous:
            yield 0, True

    def _pass(self, packet: int, number: int, request: _Request, *, stop: int, limit: int) -> None:
        """Decode until a frame has come out. Frames below ``limit`` are left out if no other one needs them.

        Raises:
            DataError: a packet is damaged, or a frame is missing among those that come out.
        """
        packets, known, pending = self._packets, self._known, request.pending
        while packet in pending:
            if packets.is_drained:
                raise _MissingFrame(packets.source, number, packet)
            own = known.get(packets.next)
            if own is not None and 0 <= stop < packets.next:  # packets without a frame belong to the one before
                frames = packets.drain()
            else:
                frames = packets.feed(skips=own is not None and (own < limit or own < request.first))
            for frame in frames:
                at = frame.pts
                found = known.get(at)
                if found is None:  # the file says that it is not shown
                    continue
                missing, self._last = self._last + 1, found
                if 0 < missing < found:
                    self._require_none(missing, found)
                if found > number and packet in pending:
                    raise _MissingFrame(packets.source, number, packet)
                if at in pending:
                    request.hand_over(at, frame, packets.source)

    def _require_none(self, begin: int, end: int) -> None:
        """Check that frames that did not come out were left out, or have packets that were not decoded.

        Raises:
            DataError: a frame is missing.
        """
        packets = self._packets
        for number, packet in enumerate(self.index.order[begin:end].tolist(), begin):
            if packet not in packets.skipped and not (packets.is_drained and packet >= packets.next):
                raise _MissingFrame(packets.source, number, packet)


class _Request:
    """Frames of a read that have not come out.

    Attributes:
        pending: their numbers, by their packets.
        errors: errors of frames that could not be decoded, by their numbers.
    """

    def __init__(self, index: FrameIndex, numbers: Iterable[int], take: Take) -> None:
        self.pending = {int(index.order[n]): n for n in numbers}
        self.errors = dict[int, Exception]()
        self._take = take
        self._order = deque(sorted((n, packet) for packet, n in self.pending.items()))

    @property
    def first(self) -> int:
        """Return the smallest number; -1 if there is none."""
        order, pending = self._order, self.pending
        while order:
            number, packet = order[0]
            if packet in pending:
                return number
            order.popleft()
        return -1

    def hand_over(self, packet: int, frame: Any, source: Source) -> None:
        """Give the frame of a packet to its taker."""
        number = self.pending.pop(packet)
        try:
            if frame.is_corrupt:
                raise DataError(f"frame {number} of {name_of(source)} is damaged")
            self._take(number, frame)
        except Exception as error:  # noqa: BLE001 - the caller's code may raise anything; the frame carries it
            self.errors[number] = error
