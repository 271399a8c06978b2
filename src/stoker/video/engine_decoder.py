# SPDX-License-Identifier: Apache-2.0
"""Decoding by a GPU's video engines: the context that takes the place of FFmpeg's, and a pool of decoders.

A decoder of the engines takes milliseconds to create, so that decoders go from file to file. What the engines cannot
decode, or report as damaged, is left to the decoder on the CPU, whose errors rows have.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from ..contract.errors import DataError
from ..device.video_engines import CODECS, VideoEngines
from ..native import _native
from .clip import ClipPixels, excess_of
from .colors import MATRICES, form_of, frame_colors, weights
from .decoder import PacketDecoder, Position, VideoDecoder
from .disposable import disposable_of
from .frame_index import FrameIndex, Ints
from .pool import VideoKey
from .pyav import Source

_ORDER_OF_WEIGHTS = ("luma_zero", "chroma_zero", "luma", "red_v", "green_u", "green_v", "blue_u")
_BITS = (8, 10, 12)
_DONE, _MORE = 0, 1  # results of a native reading
_Form = tuple[tuple[int, ...], int, int, bool, bool]  # weights, order of channels, turns, words, planar
_PACKETS_OF_A_CALL = 1024  # between two of which Python handles signals

#: Decode the packets of contiguous files without the GIL. Tests compare the native loop with Python's.
READS_NATIVELY = True


class NotForEnginesError(Exception):
    """The video engines do not decode a file; the text says why."""


@dataclass(frozen=True)
class StreamFacts:
    """Form and colors of the first frame of a file, as FFmpeg decodes it.

    Attributes:
        bits: bits of a sample.
        matrix: FFmpeg's number of the matrix.
        full_range: whether samples have the full range.
        size: height and width.
    """

    bits: int
    matrix: int
    full_range: bool
    size: tuple[int, int]


def facts_of(decoder: VideoDecoder) -> StreamFacts:
    """Return the facts of a stream, by decoding its first frame on the CPU.

    Raises:
        NotForEnginesError: the engines do not decode such a stream.
        DataError: the frame is damaged.
    """
    codec = decoder.index.codec_name
    if codec not in CODECS:
        raise NotForEnginesError(f"the codec {codec!r} is none that a GPU's video engines decode")
    found: list[StreamFacts] = []

    def take(_: int, frame: Any) -> None:
        form = form_of(frame.format.name)
        if form is None or form.planes != 3 or form.shifts != (1, 1) or form.bits not in _BITS:
            raise NotForEnginesError(f"the pixel format {frame.format.name!r} is none that the video engines decode")
        matrix, full_range = frame_colors(frame, form)
        if matrix not in MATRICES:
            raise NotForEnginesError(f"the matrix {matrix} of H.273 is not supported")
        found.append(StreamFacts(form.bits, matrix, full_range, (frame.height, frame.width)))

    failed = decoder.read([0], take)
    if failed:
        raise failed[0]
    return found[0]


class Headers(NamedTuple):
    """Headers of a stream, as the engines' parser takes them.

    Attributes:
        content: bytes before the first packet.
        length_bytes: size of the lengths before the units of a packet; 0: units have start codes, or there are none.
    """

    content: bytes
    length_bytes: int


def headers_of(codec: str, extradata: bytes) -> Headers:
    """Return the headers in a container's description of a stream (ISO/IEC 14496-15 for H.264 and HEVC).

    Raises:
        DataError: the description is cut off.
    """
    try:
        if codec == "h264" and extradata[:1] == b"\1":
            return Headers(b"".join(_h264_units(extradata)), (extradata[4] & 3) + 1)
        if codec == "hevc" and len(extradata) > 22 and extradata[:3] != b"\0\0\1" and extradata[:4] != b"\0\0\0\1":
            return Headers(b"".join(_hevc_units(extradata)), (extradata[21] & 3) + 1)
    except IndexError:
        raise DataError("the description of the stream is cut off") from None
    if codec == "av1" and extradata[:1] == b"\x81":
        return Headers(extradata[4:], 0)
    return Headers(extradata if codec in ("h264", "hevc") else b"", 0)


def _unit(content: bytes, at: int) -> tuple[bytes, int]:
    size = content[at] << 8 | content[at + 1]
    end = at + 2 + size
    if end > len(content):
        raise IndexError
    return b"\0\0\0\1" + content[at + 2 : end], end


def _h264_units(content: bytes) -> Iterator[bytes]:
    at = 5
    for mask in (31, 255):  # parameter sets of sequences, then of pictures
        count, at = content[at] & mask, at + 1
        for _ in range(count):
            unit, at = _unit(content, at)
            yield unit


def _hevc_units(content: bytes) -> Iterator[bytes]:
    arrays, at = content[22], 23
    for _ in range(arrays):
        count, at = content[at + 1] << 8 | content[at + 2], at + 3
        for _ in range(count):
            unit, at = _unit(content, at)
            yield unit


class EngineFrame(NamedTuple):
    """Picture that came out of the engines, until the next packet is decoded.

    Attributes:
        pts: number of its packet.
        place: its place among the pictures that came out with it.
        height, width: its size.
        is_corrupt: False: damage shows when the picture is read.
    """

    pts: int
    place: int
    height: int
    width: int
    is_corrupt: bool = False


class EngineContext:
    """Codec context over a decoder of the engines, as ``PacketDecoder`` uses PyAV's.

    Args:
        native: the decoder.
        headers: headers of the stream.
    """

    def __init__(self, native: _native.gpu.VideoDecoder, headers: Headers) -> None:
        self.native = native
        self.is_open = True
        self._headers = headers

    def flush_buffers(self) -> None:
        """Begin with another packet."""
        self.native.restart(self._headers.content)

    def decode(self, packet: Any) -> list[EngineFrame]:
        """Decode a packet, or drain the decoder. Return the pictures that come out."""
        if packet is None:
            shown = self.native.drain()
        else:
            shown = self.native.feed(bytes(packet), packet.pts, self._headers.length_bytes)
        return [EngineFrame(number, i, height, width) for i, (number, height, width) in enumerate(shown)]


class EngineStream(NamedTuple):
    """Facts of a file that all of its decoders share.

    Attributes:
        headers: headers of the stream.
        packets: the packets, for the native loop; None: they are not contiguous, and Python's loop reads them.
    """

    headers: Headers
    packets: _native.gpu.VideoPackets | None


def stream_of(index: FrameIndex) -> EngineStream:
    """Return the facts of a file for its decoders.

    Raises:
        DataError: the description of the stream is cut off.
    """
    headers = headers_of(index.codec_name, index.extradata)
    if not index.is_contiguous:
        return EngineStream(headers, None)
    pos, size, order, sync = (
        np.ascontiguousarray(x) for x in (index.packet_pos, index.packet_size, index.order, index.sync)
    )
    flags, rule = np.ascontiguousarray(index.packet_flags), disposable_of(index)
    return EngineStream(headers, _native.gpu.VideoPackets(pos, size, flags, order, sync, *headers, rule))


@functools.cache
def _weights_of(matrix: int, bits: int, *, full_range: bool, words: bool) -> tuple[int, ...]:
    """Return the weights of a conversion, as native code takes them."""
    own = weights(MATRICES[matrix], full_range=full_range, extra=bits - 8, scale=257 if words else 1)
    return tuple(own[k] for k in _ORDER_OF_WEIGHTS)


class EngineDecoder:
    """Decoder of one file by the engines.

    Args:
        engines: the GPU's engines.
        source: the file.
        index: its frame index.
        facts: facts of the stream.
        native: a decoder for such streams.
        stream: facts of the file; by default they are found.

    Attributes:
        video: random access to the file's frames.
        facts: facts of the stream.
        native: the decoder.
        kind: codec and bits that it is for.
    """

    def __init__(
        self, engines: VideoEngines, source: Source, index: FrameIndex, facts: StreamFacts,
        native: _native.gpu.VideoDecoder, stream: EngineStream | None = None,
    ) -> None:  # fmt: skip
        self.facts, self.native, self.kind = facts, native, (index.codec_name, facts.bits)
        self._engines = engines
        self._stream = stream_of(index) if stream is None else stream
        self._packets = PacketDecoder(source, index, context=EngineContext(native, self._stream.headers))
        self.video = VideoDecoder(source, index, self._packets)

    def decode(
        self, pixels: ClipPixels, clips: Sequence[npt.NDArray[np.int64]], *, planar: bool = False
    ) -> list[_native.gpu.DeviceArray | Exception]:
        """Decode clips together.

        Args:
            pixels: form of the pixels.
            clips: numbers of their frames, -1 for constant frames.
            planar: clips are FCHW instead of FHWC.

        Returns:
            For each clip the frames in the GPU's memory, or the error of one that failed.
        """
        turns = self.video.index.rotation // 90 if pixels.adjust_orientation else 0
        words, facts = pixels.dtype is np.uint16, self.facts
        numbers = _weights_of(facts.matrix, facts.bits, full_range=facts.full_range, words=words)
        height, width = self.facts.size[::-1] if turns & 1 else self.facts.size
        found: list[Any] = [self._new_clip(len(c), height, width, words, planar) for c in clips]
        form = numbers, pixels.order, turns & 3, words, planar
        try:
            is_native = READS_NATIVELY and self._stream.packets is not None
            is_read = is_native and self.video.read_by(lambda at: self._run(at, clips, found, form))
            failed = {} if is_read else self._read(clips, found, form)
        finally:
            self.native.finish()
        for k, frames in enumerate(clips):
            error = next((failed[n] for n in frames.tolist() if n in failed), None)
            if error is not None:
                found[k] = error
            elif not isinstance(found[k], Exception):
                self._fill(found[k], frames, pixels, planar)
        return found

    def _read(self, clips: Sequence[Ints], found: list[Any], form: _Form) -> dict[int, Exception]:
        """Decode frames by Python's loop. Return the errors of those that cannot be decoded.

        Args:
            clips: numbers of the frames of each clip.
            found: the clips, or errors of those that are not decoded.
            form: form of the pixels.
        """
        places = _places_of(clips, found)
        numbers, order, turns, _, planar = form
        function = self._engines.function

        def take(number: int, frame: EngineFrame) -> None:
            if (frame.height, frame.width) != self.facts.size:
                raise NotForEnginesError("its frames have several sizes")
            for k, at in places[number]:
                self.native.convert(frame.place, numbers, order, turns, planar, function, found[k], at)

        return self.video.read(places, take)

    def _run(self, position: Position, clips: Sequence[Ints], found: list[Any], form: _Form) -> Position | None:
        """Decode frames by the native loop, as the function of `VideoDecoder.read_by`. The arguments: as of `_read`."""
        assert self._stream.packets is not None
        own = [None if isinstance(one, Exception) else one for one in found]
        reading = _native.gpu.VideoReading(
            self.native, self._stream.packets, self._packets.contents, self._packets.handle, position[:6],
            position.from_start, position.end, clips, own, *form, self._engines.function, self.facts.size,
        )  # fmt: skip
        while (state := reading.run(_PACKETS_OF_A_CALL)) == _MORE:
            pass
        return Position(*reading.position, reading.end, position.from_start) if state == _DONE else None

    def _new_clip(self, frames: int, height: int, width: int, words: bool, planar: bool) -> Any:
        excess = excess_of(frames, height, width, 2 if words else 1)
        return DataError(excess) if excess else self._engines.clip(frames, height, width, words=words, planar=planar)

    @staticmethod
    def _fill(clip: _native.gpu.DeviceArray, frames: npt.NDArray[np.int64], pixels: ClipPixels, planar: bool) -> None:
        if frames.min(initial=0) < 0:
            missing = np.flatnonzero(frames < 0).tolist()
            constant = np.empty(clip.shape[1:], pixels.dtype)
            (constant.transpose(1, 2, 0) if planar else constant)[:] = pixels.fill
            for at in missing:
                _native.gpu.write_frame(clip, at, constant.reshape(-1).view(np.uint8))


def _places_of(clips: Sequence[Ints], found: Sequence[Any]) -> dict[int, list[tuple[int, int]]]:
    """Return the clips and the places in them of each frame, without those of clips that have failed already."""
    places: dict[int, list[tuple[int, int]]] = {}
    for k, frames in enumerate(clips):
        for at, number in enumerate(frames.tolist()):
            if number >= 0 and not isinstance(found[k], Exception):
                places.setdefault(number, []).append((k, at))
    return places


class EngineDecoders:
    """Decoders of a reader's files on the engines of one GPU. Threads may use it concurrently.

    Args:
        engines: the GPU's engines.
        most: number of decoders, at least that of the threads.
    """

    def __init__(self, engines: VideoEngines, most: int) -> None:
        self._engines, self._most = engines, most
        self._lock = threading.Lock()
        self._idle: OrderedDict[VideoKey, list[EngineDecoder]] = OrderedDict()  # least recently used first
        self._free: list[tuple[tuple[str, int], _native.gpu.VideoDecoder]] = []  # of no file, by codec and bits
        self._count = 0
        self._is_closed = False
        self._streams: WeakKeyDictionary[FrameIndex, EngineStream] = WeakKeyDictionary()

    @contextlib.contextmanager
    def borrow(
        self, file: VideoKey | None, source: Source, index: FrameIndex, facts: StreamFacts, first: int
    ) -> Iterator[EngineDecoder]:
        """Lend a decoder of a file: of the idle ones that which reaches frame ``first`` first, or another file's.

        Args:
            file: what identifies the file among later calls; None: there are none.
            source: the file.
            index: its frame index.
            facts: facts of its stream.
            first: the first frame that is wanted.

        Raises:
            DeviceFailure: the engines do not decode such a stream.
            DataError: the file has changed.
            OSError: the file cannot be read.
        """
        decoder = self._taken(file, source, index, facts, first)
        try:
            yield decoder
        except BaseException:  # its state is unknown
            self._discard(decoder)
            raise
        self._release(file, decoder)

    def sweep(self, *, waits: bool = True) -> None:
        """Take the decoders of closed owners from their files, for other files.

        Args:
            waits: wait for other threads. Without it the call may have no effect; the garbage collector may make it in
                a thread that holds the lock.
        """
        if self._lock.acquire(blocking=waits):
            try:
                self._free_closed()
            finally:
                self._lock.release()

    def _free_closed(self) -> None:
        """Do the work of `sweep`. The caller has the lock."""
        for file in [f for f in self._idle if f[0].is_closed]:
            for decoder in self._idle.pop(file):
                decoder.video.close()
                self._free.append((decoder.kind, decoder.native))

    def _taken(
        self, file: VideoKey | None, source: Source, index: FrameIndex, facts: StreamFacts, first: int
    ) -> EngineDecoder:
        kind = (index.codec_name, facts.bits)
        with self._lock:
            self._free_closed()
            idle = self._idle.get(file) if file is not None else None
            if idle and file is not None:
                best = min(idle, key=lambda d: d.video.cost(first))
                idle.remove(best)
                if not idle:
                    del self._idle[file]
                return best
            found = self._replaced(kind)
        try:
            native = None
            if found is not None:
                own, native = found
                if own != kind:
                    native.close()
                    native = None
            if native is None:
                native = self._engines.decoder(index.codec_name, facts.bits)
            return EngineDecoder(self._engines, source, index, facts, native, self._stream_of(index))
        except BaseException:
            with self._lock:
                self._count -= 1
            raise

    def _stream_of(self, index: FrameIndex) -> EngineStream:
        with self._lock:
            known = self._streams.get(index)
        if known is None:
            known = stream_of(index)
            with self._lock:
                self._streams[index] = known
        return known

    def _replaced(self, kind: tuple[str, int]) -> tuple[tuple[str, int], _native.gpu.VideoDecoder] | None:
        """Return the kind and the decoder that a new one takes the place of; None: it is one more.

        The caller has the lock.
        """
        at = next((i for i, (own, _) in enumerate(self._free) if own == kind), None)
        if at is not None:
            return self._free.pop(at)
        if self._count < self._most or not (self._free or self._idle):
            self._count += 1
            return None
        if self._free:
            return self._free.pop(0)
        oldest = next(iter(self._idle))
        unused = self._idle[oldest].pop(0)
        if not self._idle[oldest]:
            del self._idle[oldest]
        unused.video.close()
        return unused.kind, unused.native

    def _discard(self, decoder: EngineDecoder) -> None:
        decoder.video.close()
        decoder.native.close()
        with self._lock:
            self._count -= 1

    def _release(self, file: VideoKey | None, decoder: EngineDecoder) -> None:
        if file is None:
            decoder.video.close()
        with self._lock:
            if not self._is_closed and file is None:
                self._free.append((decoder.kind, decoder.native))
                return
            if not self._is_closed and file is not None:
                self._idle.setdefault(file, []).append(decoder)
                self._idle.move_to_end(file)
                return
        self._discard(decoder)

    def close(self) -> None:
        """Close the idle decoders; those that are lent are closed when they come back. Idempotent."""
        with self._lock:
            self._is_closed = True
            idle = [decoder for each in self._idle.values() for decoder in each]
            self._idle.clear()
            free, self._free = self._free, []
            self._count -= len(free)
        for _, native in free:
            native.close()
        for decoder in idle:
            self._discard(decoder)
