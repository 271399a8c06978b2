# SPDX-License-Identifier: Apache-2.0
"""Fake video engines for machines without them: the driver's library over FFmpeg.

As the real one it shows pictures some packets later, names them by surfaces that it uses again, gives them time stamps
in rising order where pictures are out of order, and refuses to map a surface twice.
"""

from __future__ import annotations

import ctypes
import gc
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker.device import video_engines
from tests.idle_clock import HANG_S

HERE = Path(__file__).parent
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5)
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_NAMES = {number: name for name, number in video_engines.CODECS.items()}
_SURFACES, _NOT_SUPPORTED, _INVALID, _NO_MEMORY, _ALREADY_MAPPED = 20, 801, 1, 2, 208
_END_OF_STREAM = 1


class Format(ctypes.Structure):
    _fields_ = (
        ("codec", ctypes.c_int), ("rate", ctypes.c_uint * 2), ("progressive", ctypes.c_ubyte), ("luma", ctypes.c_ubyte),
        ("chroma_bits", ctypes.c_ubyte), ("surfaces", ctypes.c_ubyte), ("size", ctypes.c_uint * 2),
        ("display", ctypes.c_int * 4), ("chroma", ctypes.c_int), ("more", ctypes.c_ubyte * 20),
    )  # fmt: skip


class Shown(ctypes.Structure):
    _fields_ = (("surface", ctypes.c_int), ("flags", ctypes.c_int * 3), ("timestamp", ctypes.c_longlong))


class Packet(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_ulong), ("bytes", ctypes.c_ulong), ("data", ctypes.c_void_p),
        ("timestamp", ctypes.c_longlong),
    )  # fmt: skip


@dataclass
class Parser:
    """Parser of packets, and FFmpeg's decoder in the place of the engines."""

    codec: str
    user: int
    on_format: Any
    on_decode: Any
    on_show: Any
    context: Any
    surface_of: dict[int, int] = field(default_factory=dict)
    decoded: int = 0
    shown: int = 0
    decoder: int = 0
    has_format: bool = False
    waiting: list[Any] = field(default_factory=list)


class FakeEngines:
    """Functions of the library.

    Attributes:
        alive: number of parsers, decoders and mapped surfaces.
        converted: number of surfaces that were mapped.
        created: number of decoders that were created.
        is_supported: whether the engines decode the codecs.
        status: status of every picture, of H.264 and HEVC.
        has_memory: whether a decoder can be created.
        contents: packets that were parsed, instead of being decoded; None: they are decoded.
        corner: row and column of surfaces, even, at which pictures begin.
    """

    def __init__(self, library: Path) -> None:
        self.alive = self.converted = self.created = 0
        self.is_supported, self.status = True, 2
        self.contents: list[bytes] | None = None
        self.has_memory = True
        self.corner = 0, 0
        self._parsers: dict[int, Parser] = {}
        self._decoders: dict[int, dict[int, int]] = {}  # mapped addresses, by surface
        self._planes: dict[tuple[int, int], Any] = {}  # pictures, by decoder and surface
        self._kept_planes: dict[int, Any] = {}  # mapped ones, by address
        self._of_thread = threading.local()
        self._lock = threading.Lock()  # threads open, map and close concurrently; they share the counts
        self._number = 0
        self.codec = ""
        names = (
            "capabilities", "new_parser", "parse", "end_parser", "new_decoder", "reconfigure", "end_decoder", "decode",
            "picture_status", "map", "unmap",
        )  # fmt: skip
        self._kept = [_FUNCTION(getattr(self, name)) for name in names]
        fake = ctypes.CDLL(str(library))
        for number, function in enumerate(self._kept):
            fake.fake_set(number, function)

    def _count(self, change: int) -> None:
        with self._lock:
            self.alive += change

    def _next(self, to: int) -> int:
        with self._lock:
            self.alive += 1
            self._number += 1
            number = self._number
        ctypes.c_void_p.from_address(to).value = number
        return number

    def capabilities(self, at: int, *_: int) -> int:
        """Fill a structure of 88 bytes: supported at byte 24, largest and smallest sizes after it."""
        ctypes.c_ubyte.from_address(at + 24).value = self.is_supported
        for i, number in enumerate((4096, 4096, 65536)):
            ctypes.c_uint.from_address(at + 28 + 4 * i).value = number
        for i in range(2):
            ctypes.c_ushort.from_address(at + 40 + 2 * i).value = 16
        return 0

    def new_parser(self, to: int, at: int, *_: int) -> int:
        import av

        codec = _NAMES[ctypes.c_int.from_address(at).value]
        user = ctypes.c_void_p.from_address(at + 40).value
        callbacks = [_CALLBACK(ctypes.c_void_p.from_address(at + 48 + 8 * i).value) for i in range(3)]
        context = av.CodecContext.create(codec if codec != "av1" else "libdav1d", "r")
        context.thread_count = 1
        self._parsers[self._next(to)] = Parser(codec, user or 0, *callbacks, context)
        self.codec = codec
        return 0

    def end_parser(self, handle: int, *_: int) -> int:
        del self._parsers[handle]
        self._count(-1)
        return 0

    def new_decoder(self, to: int, *_: int) -> int:
        if not self.has_memory:
            return _NO_MEMORY
        self._decoders[self._next(to)] = {}
        with self._lock:
            self.created += 1
        return 0

    def reconfigure(self, handle: int, *_: int) -> int:
        return _INVALID if self._decoders[handle] else 0

    def end_decoder(self, handle: int, *_: int) -> int:
        if self._decoders.pop(handle):
            return _INVALID
        self._count(-1)
        return 0

    def decode(self, handle: int, *_: int) -> int:
        self._of_thread.parser.decoder = handle
        return 0

    def picture_status(self, handle: int, surface: int, to: int, *_: int) -> int:
        if self.codec not in ("h264", "hevc"):
            return _NOT_SUPPORTED
        ctypes.c_int.from_address(to).value = self.status
        return 0

    def map(self, handle: int, surface: int | None, to: int, pitch: int, _: int) -> int:
        mapped = self._decoders[handle]
        surface = surface or 0
        if surface in mapped:
            return _ALREADY_MAPPED
        plane = self._planes[handle, surface].copy()  # a copy, as the engines make one
        self._kept_planes[plane.ctypes.data] = plane
        mapped[surface] = plane.ctypes.data
        ctypes.c_ulonglong.from_address(to).value = plane.ctypes.data
        ctypes.c_uint.from_address(pitch).value = plane.strides[0]
        with self._lock:
            self.alive += 1
            self.converted += 1
        return 0

    def unmap(self, handle: int, address: int, *_: int) -> int:
        mapped = self._decoders[handle]
        surface = next((s for s, a in mapped.items() if a == address), None)
        if surface is None:
            return _INVALID
        del mapped[surface], self._kept_planes[address]
        self._count(-1)
        return 0

    def parse(self, handle: int, at: int, *_: int) -> int:
        import av

        parser, packet = self._parsers[handle], Packet.from_address(at)
        self._of_thread.parser = parser
        if self.contents is not None:
            self.contents.append(ctypes.string_at(packet.data, packet.bytes))
            return 0
        if packet.flags & _END_OF_STREAM:
            parser.waiting += parser.context.decode(None)
            return 0 if self._show(parser, len(parser.waiting)) else _INVALID
        content = av.Packet(ctypes.string_at(packet.data, packet.bytes))
        content.pts = content.dts = packet.timestamp
        frames = parser.context.decode(content)
        if not parser.has_format and not self._announce(parser):
            return _INVALID
        surface = parser.decoded % _SURFACES
        parser.decoded += 1
        parser.surface_of[packet.timestamp] = surface
        picture = (ctypes.c_int * 3)(1, 1, surface)
        if not parser.on_decode(parser.user, ctypes.addressof(picture)):
            return _INVALID
        parser.waiting += frames
        return 0 if self._show(parser, max(len(parser.waiting) - 2, 0)) else _INVALID

    def _announce(self, parser: Parser) -> bool:
        context = parser.context
        width, height = context.width, context.height
        bits = 10 if "10" in (context.pix_fmt or "") else 8
        top, left = self.corner
        coded = [(n + 15) // 16 * 16 for n in (left + width, top + height)]
        form = Format(
            codec=0, progressive=1, luma=bits - 8, chroma_bits=bits - 8, surfaces=8, size=(ctypes.c_uint * 2)(*coded),
            display=(ctypes.c_int * 4)(left, top, left + width, top + height), chroma=1,
        )  # fmt: skip
        parser.has_format = True
        return bool(parser.on_format(parser.user, ctypes.addressof(form)))

    def _show(self, parser: Parser, count: int) -> bool:
        for frame in parser.waiting[:count]:
            surface = parser.surface_of[frame.pts]
            self._planes[parser.decoder, surface] = _surface_of(frame, self.corner)
            stamp = sorted(parser.surface_of)[parser.shown] if parser.codec in ("h264", "hevc") else frame.pts
            parser.shown += 1
            shown = Shown(surface=surface, flags=(ctypes.c_int * 3)(1, 0, 0), timestamp=stamp)
            if not parser.on_show(parser.user, ctypes.addressof(shown)):
                return False
        del parser.waiting[:count]
        return True


def _surface_of(frame: Any, corner: tuple[int, int]) -> Any:
    """Return a frame as the engines leave it: luma, then pairs of chroma samples; words in the upper bits."""
    wide = "10" in frame.format.name
    dtype = np.dtype(np.uint16 if wide else np.uint8)
    planes = [
        np.frombuffer(p, np.uint8).reshape(-1, p.line_size)[: p.height].copy().view(dtype)[:, : p.width]
        for p in frame.planes
    ]
    top, left = corner
    height, width = ((n + m + 15) // 16 * 16 for n, m in zip(planes[0].shape, corner, strict=True))
    surface = np.zeros((height * 3 // 2, width + 32), dtype)
    surface[top : top + planes[0].shape[0], left : left + planes[0].shape[1]] = planes[0]
    for i in range(2):
        chroma, row = planes[1 + i], height + top // 2
        surface[row : row + chroma.shape[0], left + i : left + 2 * chroma.shape[1] + i : 2] = chroma
    return surface << 6 if wide else surface


@pytest.fixture(scope="module")
def nvcuvid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nvcuvid") / "libnvcuvid.so"
    subprocess.run(
        ["g++", "-std=c++20", "-shared", "-fPIC", HERE / "fake_nvcuvid.cpp", "-o", path], check=True, timeout=HANG_S
    )
    return path


@pytest.fixture
def fake_video_engines(nvcuvid: Path, emulated_gpu: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngines]:
    pytest.importorskip("av", reason="PyAV, which decodes in the place of the engines, is not installed")
    monkeypatch.setattr(video_engines, "LIBRARY", str(nvcuvid))
    fake = FakeEngines(nvcuvid)
    yield fake
    gc.collect()
    assert fake.alive == 0, "parsers and decoders are destroyed, and surfaces returned"
