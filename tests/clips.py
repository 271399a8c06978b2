# SPDX-License-Identifier: Apache-2.0
"""Made videos: every frame shows its number as a barcode, on a texture that moves."""

from __future__ import annotations

import io
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from stoker.video.colors import MATRICES, convert_plain
from stoker.video.indexing import index_video

WIDTH, HEIGHT, FRAMES = 160, 96, 48
BITS, CELL = 8, 18  # of the barcode: pixels of a bit's square
_RNG = np.random.default_rng(0)
_TEXTURE = np.kron(_RNG.integers(40, 216, (13, 21, 3)), np.ones((16, 16, 1))).astype(np.uint8)


def picture(number: int, height: int = HEIGHT, width: int = WIDTH) -> npt.NDArray[np.uint8]:
    """Return the picture with a number, RGB."""
    pixels = np.roll(_TEXTURE, -3 * number, axis=1)[:height, :width].copy()
    for bit in range(BITS):
        pixels[8 : 8 + CELL, 8 + CELL * bit : 8 + CELL * (bit + 1)] = 235 if number >> bit & 1 else 16
    return pixels


def number_in(pixels: Any) -> int:
    """Return the number that a picture shows."""
    at = [slice(12 + CELL * bit, 4 + CELL * (bit + 1)) for bit in range(BITS)]
    return sum(int(np.mean(pixels[12:22, one]) > 125) << bit for bit, one in enumerate(at))


def write_video(
    path: Path, codec: str, options: dict[str, str] | None = None, *, frames: int = FRAMES, pixels: str = "yuv420p",
    gop: int = 12, times: list[int] | None = None, size: tuple[int, int] = (HEIGHT, WIDTH), form: str | None = None,
    rotation: int = 0, color: tuple[int, int] | None = None, make: Callable[[int], Any] | None = None,
    container_options: dict[str, str] | None = None, audio: bool = False,
) -> Path:  # fmt: skip
    """Write a video with PyAV. ``times``: milliseconds of each frame. ``color``: matrix and range."""
    av = pytest.importorskip("av", reason="PyAV is not installed")
    try:
        av.codec.Codec(codec, "w")
    except av.codec.codec.UnknownCodecError:
        pytest.skip(f"PyAV has no encoder {codec}")
    height, width = size
    with av.open(str(path), "w", format=form, options=container_options or {}) as file:
        sound = file.add_stream("aac", rate=8000, layout="mono") if audio else None
        stream = file.add_stream(codec, rate=30)
        stream.width, stream.height, stream.pix_fmt, stream.options = width, height, pixels, options or {}
        stream.codec_context.gop_size = gop
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        if rotation:
            stream.set_display_rotation(rotation)
        if color is not None:
            stream.codec_context.colorspace, stream.codec_context.color_range = color
        for i in range(frames):
            frame = av.VideoFrame.from_ndarray(make(i) if make else picture(i, height, width), format="rgb24")
            if color is not None:
                frame = frame.reformat(format=pixels, dst_colorspace=color[0], dst_color_range=color[1])
            if times is not None:
                frame.pts, frame.time_base = times[i], Fraction(1, 1000)
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
        if sound is not None:
            tone = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
            tone.sample_rate, tone.pts = 8000, 0
            file.mux(sound.encode(tone))
            file.mux(sound.encode(None))
    return path


_X264 = {"preset": "veryfast", "threads": "1"}
_X265 = "pools=1:frame-threads=1:log-level=none"
_VFR = np.cumsum([0, *np.random.default_rng(3).choice([10, 20, 33, 40, 100, 500], FRAMES - 1)]).tolist()
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    # name: file name, encoder, further arguments
    "h264": ("a.mp4", "libx264", {"options": {**_X264, "bf": "3"}}),
    "h264_open": ("a.mp4", "libx264", {"options": {"x264-params": "open-gop=1:keyint=12:bframes=3:threads=1"}}),
    "h264_refresh": ("a.mkv", "libx264", {"options": {"x264-params": "intra-refresh=1:keyint=12:threads=1"}}),
    "h264_interlaced": ("a.ts", "libx264", {"options": {"x264-params": "interlaced=1:threads=1"}, "size": (96, 160)}),
    "h264_fragments": (
        "a.mp4", "libx264", {"options": _X264, "container_options": {"movflags": "frag_keyframe+empty_moov"}},
    ),
    "h264_ts": ("a.ts", "libx264", {"options": _X264}),
    "h264_mkv": ("a.mkv", "libx264", {"options": _X264}),
    "h264_avi": ("a.avi", "libx264", {"options": _X264}),
    "h264_raw": ("a.h264", "libx264", {"options": _X264}),
    "h264_audio": ("a.mp4", "libx264", {"options": _X264, "audio": True}),
    "h264_vfr": ("a.mp4", "libx264", {"options": _X264, "times": _VFR}),
    "h264_odd": ("a.mp4", "libx264", {"options": _X264, "size": (91, 157), "pixels": "yuv444p"}),
    "h264_422": ("a.mkv", "libx264", {"options": _X264, "pixels": "yuv422p"}),
    "one_frame": ("a.mp4", "libx264", {"options": _X264, "frames": 1}),
    "hevc": ("a.mp4", "libx265", {"options": {"x265-params": f"keyint=12:open-gop=0:{_X265}"}}),
    "hevc_open": ("a.mp4", "libx265", {"options": {"x265-params": f"keyint=12:open-gop=1:radl=0:{_X265}"}}),
    "hevc_radl": ("a.mkv", "libx265", {"options": {"x265-params": f"keyint=12:open-gop=0:radl=2:bframes=4:{_X265}"}}),
    "hevc_10bit": ("a.mp4", "libx265", {"options": {"x265-params": f"keyint=12:{_X265}"}, "pixels": "yuv420p10le"}),
    "vp8": ("a.webm", "libvpx", {"options": {"deadline": "realtime", "b": "1M", "threads": "1"}}),
    "vp9": (
        "a.webm", "libvpx-vp9",
        {"options": {"cpu-used": "8", "auto-alt-ref": "1", "lag-in-frames": "12", "b": "1M", "threads": "1"}},
    ),
    "vp9_mp4": ("a.mp4", "libvpx-vp9", {"options": {"cpu-used": "8", "b": "1M", "threads": "1"}}),
    "mpeg4": ("a.mp4", "mpeg4", {"options": {"bf": "2", "b": "2M"}}),
    "mpeg4_avi": ("a.avi", "mpeg4", {"options": {"bf": "2", "b": "2M"}}),
    "mpeg2": ("a.ts", "mpeg2video", {"options": {"bf": "2", "b": "4M"}}),
    "mjpeg": ("a.avi", "mjpeg", {"pixels": "yuvj420p"}),
    "gif": ("a.gif", "gif", {"pixels": "rgb8", "frames": 12}),
    "png": ("a.mov", "png", {"pixels": "rgb24", "frames": 12}),
    "cinepak": ("a.avi", "cinepak", {"pixels": "rgb24", "frames": 12}),  # FFmpeg seeks nowhere in it
}  # fmt: skip


def make_clip(folder: Path, kind: str) -> Path:
    """Write the video of a kind into a new sub-folder."""
    name, codec, more = KINDS[kind]
    own = folder / kind
    own.mkdir(exist_ok=True)
    return write_video(own / name, codec, **more)


def fully_decoded(path: Path | str) -> list[Any]:
    """Return all frames that FFmpeg decodes, converted by the plain twin; those of Motion JPEG by Pillow."""
    av = pytest.importorskip("av", reason="PyAV is not installed")
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        if stream.codec_context.name == "mjpeg":
            return jpeg_frames(file, stream)
        return [plain_pixels(frame) for frame in file.decode(stream)]


def jpeg_frames(file: Any, stream: Any) -> list[Any]:
    """Return Pillow's pixels of each packet of a stream of JPEG files, RGB, as stored."""
    contents = [bytes(packet) for packet in file.demux(stream) if packet.size]
    return [np.asarray(Image.open(io.BytesIO(content)).convert("RGB")) for content in contents]


def plain_pixels(frame: Any) -> Any:
    """Return the pixels of PyAV's frame, RGB, in plain NumPy."""
    name = frame.format.name
    if frame.format.is_rgb:
        return frame.to_ndarray(format="rgb24")
    bits = next((n for n in (10, 12) if f"p{n}" in name), 8)
    planes = []
    for plane in frame.planes:
        samples = np.frombuffer(plane, np.uint8 if bits == 8 else np.uint16)
        rows = samples.reshape(-1, plane.line_size // samples.itemsize)
        planes.append(rows[: plane.height, : plane.width])
    shifts = {"420": (1, 1), "422": (1, 0), "444": (0, 0)}[name.lstrip("yuvj")[:3]]
    full = int(frame.color_range) == 2 or "yuvj" in name
    return convert_plain(planes, shifts, bits, MATRICES[int(frame.colorspace)], full, 0)


def spoilt(path: str, to: Path, packet: int, at: float = 0.5) -> str:
    """Write a copy whose packet has zeros from a part of it on."""
    index, data = index_video(path), bytearray(Path(path).read_bytes())
    start, size = int(index.packet_pos[packet]), int(index.packet_size[packet])
    first = start + int(size * at)
    data[first : start + size] = bytes(start + size - first)
    to.write_bytes(data)
    return str(to)
