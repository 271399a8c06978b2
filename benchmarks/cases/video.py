# SPDX-License-Identifier: Apache-2.0
"""Videos on one core: processor time of decoding to RGB, with resize, and of clips at random, against FFmpeg's decoding
alone, PyAV and OpenCV.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.case import Bar, Case, Contender, Sample, Unit
from benchmarks.data import Data

ORDER = 48
FRAMES_PER_CPU_S = Unit("frames/CPU s", higher_is_better=True)
_HEIGHT, _WIDTH, _COUNT, _RATE, _GROUP = 720, 1280, 300, 30, 60
_CLIP, _SIDE = 16, 224
_CODECS: dict[str, tuple[str, dict[str, str]]] = {
    "h264": ("libx264", {"preset": "veryfast"}),
    "hevc": ("libx265", {"preset": "ultrafast", "x265-params": "log-level=none"}),
    "vp9": ("libvpx-vp9", {"cpu-used": "8", "deadline": "realtime", "lag-in-frames": "0"}),
    "av1": ("libsvtav1", {"preset": "10", "svtav1-params": "lp=1"}),
}


def _video(codec: str) -> str:
    """Return the path of a made video: a texture with noise that moves, 4 Mbit/s."""
    path = os.path.join(tempfile.gettempdir(), f"stoker-bench-{_HEIGHT}x{_WIDTH}x{_COUNT}-{codec}.mp4")
    if os.path.exists(path):
        return path
    av = importlib.import_module("av")
    rng = np.random.default_rng(0)
    texture = np.kron(rng.integers(0, 256, (_HEIGHT // 16, _WIDTH // 16, 3)), np.ones((16, 16, 1)))
    noise = rng.integers(-6, 7, (8, _HEIGHT, _WIDTH, 3))
    name, options = _CODECS[codec]
    with tempfile.NamedTemporaryFile(dir=tempfile.gettempdir(), suffix=".mp4", delete=False) as made:
        with av.open(made.name, "w") as file:
            stream = file.add_stream(name, rate=_RATE)
            stream.width, stream.height, stream.pix_fmt, stream.options = _WIDTH, _HEIGHT, "yuv420p", options
            stream.codec_context.gop_size, stream.codec_context.bit_rate = _GROUP, 4_000_000
            for i in range(_COUNT):
                pixels = (np.roll(texture, -5 * i, 1) + noise[i % 8]).clip(0, 255).astype(np.uint8)
                file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
            file.mux(stream.encode(None))
        os.replace(made.name, path)  # another contender may make it at the same time
    return path


def _starts() -> list[int]:
    return [random.Random(1).randrange(_COUNT - _CLIP) for _ in range(4)]


def _per_frame(run: Callable[[], int]) -> Sample:
    """Return frames per second of the process's CPU time; the first run is not counted."""
    run()

    def read() -> float:
        start = time.process_time()
        frames = run()
        return frames / (time.process_time() - start)

    return Sample(read)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[tuple[Any, Any]]:
    """Open a video with PyAV, for one thread."""
    with importlib.import_module("av").open(path) as file:
        stream = file.streams.video[0]
        stream.codec_context.thread_count, stream.codec_context.thread_type = 1, "NONE"
        yield file, stream


def run_ffmpeg(data: Data, *, codec: str, work: str) -> Sample:
    """Decode, and do nothing with the frames."""
    path = _video(codec)

    def run() -> int:
        with _opened(path) as (file, stream):
            return sum(1 for _ in file.decode(stream))

    return _per_frame(run)


def run_pyav(data: Data, *, codec: str, work: str) -> Sample:
    """Decode to RGB with FFmpeg's own conversion and scaling."""
    path, size = _video(codec), (_SIDE, _SIDE) if work == "resize" else (_WIDTH, _HEIGHT)

    def whole() -> int:
        with _opened(path) as (file, stream):
            return sum(
                len(f.reformat(*size, "rgb24").to_ndarray()) > 0 for f in file.decode(stream)
            )  # fmt: skip

    def clips() -> int:
        for start in _starts():
            with _opened(path) as (file, stream):
                file.seek(int(start / _RATE / stream.time_base), stream=stream)
                found = (f for f in file.decode(stream) if round(f.pts * stream.time_base * _RATE) >= start)
                frames = [f.to_ndarray(format="rgb24") for f, _ in zip(found, range(_CLIP), strict=False)]
                assert len(frames) == _CLIP
        return _CLIP * len(_starts())

    return _per_frame(clips if work == "clips" else whole)


def run_opencv(data: Data, *, codec: str, work: str) -> Sample:
    """Decode with OpenCV, whose channels are BGR."""
    cv2, path = importlib.import_module("cv2"), _video(codec)
    cv2.setNumThreads(1)
    os.environ["OPENCV_FFMPEG_CAPTURE_OPTIONS"] = "threads;1"

    def run() -> int:
        video, frames = cv2.VideoCapture(path, cv2.CAP_FFMPEG), 0
        while True:
            found, frame = video.read()
            if not found:
                video.release()
                return frames
            if work == "resize":
                cv2.resize(frame, (_SIDE, _SIDE), interpolation=cv2.INTER_LINEAR)
            frames += 1

    def clips() -> int:
        for start in _starts():
            video = cv2.VideoCapture(path, cv2.CAP_FFMPEG)
            video.set(cv2.CAP_PROP_POS_FRAMES, start)
            assert all(video.read()[0] for _ in range(_CLIP))
            video.release()
        return _CLIP * len(_starts())

    return _per_frame(clips if work == "clips" else run)


def run_stoker(data: Data, *, codec: str, work: str) -> Sample:
    """Decode with the decoders of Stoker's readers; the index of the file is known."""
    from stoker import types
    from stoker.video.clip import ClipPixels
    from stoker.video.decoder import VideoDecoder
    from stoker.video.frame_resize import FrameResize
    from stoker.video.indexing import index_video

    linear = int(types.INTERP_LINEAR)
    resize = FrameResize((_SIDE, _SIDE), linear, linear, antialias=True)  # as `readers.video_resize` asks for it
    path, pixels = _video(codec), ClipPixels(resize=resize if work == "resize" else None)
    index = index_video(path)

    def decoded(first: int, decoder: Any) -> Any:
        clip = pixels.decode(decoder, [np.arange(first, min(first + _CLIP, _COUNT))])[0]
        assert isinstance(clip, np.ndarray)
        return clip

    def whole() -> int:
        with contextlib.closing(VideoDecoder(path, index)) as decoder:
            for first in range(0, _COUNT, _CLIP):
                decoded(first, decoder)
        return _COUNT

    def clips() -> int:
        for start in _starts():
            with contextlib.closing(VideoDecoder(path, index)) as decoder:
                decoded(start, decoder)
        return _CLIP * len(_starts())

    return _per_frame(clips if work == "clips" else whole)


def _case(codec: str, work: str, title: str, peers: tuple[str, ...], bar: Bar) -> Case:
    options = {"codec": codec, "work": work}
    contenders = [Contender("stoker", "run_stoker", options, cores=1)]
    contenders += [Contender(name, f"run_{name}", options, "peers", cores=1) for name in peers]
    note = f"A made video of {_COUNT} frames, {_WIDTH}x{_HEIGHT}, groups of {_GROUP}; frames per CPU second, one core."
    name = f"video-{work}-{codec}"
    return Case(name, f"Video: {title}, {codec.upper()}", FRAMES_PER_CPU_S, tuple(contenders), (bar,), note)


def _cases() -> list[Case]:
    decoding = Bar("of FFmpeg's decoding alone", "stoker", ("ffmpeg",), at_least=0.93, goal=0.97)
    resizing = Bar("against the best library", "stoker", ("opencv", "pyav"), at_least=1.05, goal=1.15)
    clips = Bar("against the best library", "stoker", ("pyav", "opencv"), at_least=1.25, goal=1.6)
    found = []
    for codec in _CODECS:
        found += [
            _case(codec, "rgb", "to RGB", ("ffmpeg", "pyav", "opencv"), decoding),
            _case(codec, "resize", f"to RGB of {_SIDE}x{_SIDE}", ("opencv", "pyav"), resizing),
            _case(codec, "clips", f"open and {_CLIP} frames at random", ("pyav", "opencv"), clips),
        ]
    return found


CASES = tuple(_cases())
