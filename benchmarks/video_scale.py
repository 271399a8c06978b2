# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.video_scale``: the index of a video of one hour, a thousand videos that are open together, and
the memory of a pipeline that reads ten thousand clips of them.

The hour is a group of 60 pictures whose packets are written 1,800 times. Processor time and memory are those of this
process.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import resource
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

_HEIGHT, _WIDTH, _RATE, _GROUP, _GROUPS = 360, 640, 30, 60, 1800
_VIDEOS, _FRAMES, _ROUNDS = 1000, 4, 5
_BATCH, _CLIPS = 10, 10_000


def main() -> None:
    """Print a table."""
    folder = Path(tempfile.mkdtemp(prefix="stoker-video-scale-"))
    os.environ["STOKER_INDEX_CACHE"] = str(folder / "indexes")
    try:
        print(time.strftime("%d %B %Y %H:%M UTC", time.gmtime()), flush=True)
        _print_hour(_written(folder / "hour.mp4", _GROUPS))
        short = _written(folder / "short.mp4", 1)
        paths = [Path(shutil.copy(short, folder / f"{i}.mp4")) for i in range(_VIDEOS)]
        _print_many(paths)
        _print_clips([str(path) for path in paths])
    finally:
        shutil.rmtree(folder)


def _written(path: Path, groups: int) -> Path:
    """Write a video whose packets repeat."""
    av: Any = importlib.import_module("av")
    texture = np.random.default_rng(0).integers(0, 256, (_HEIGHT, _WIDTH, 3), np.uint8)
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=_RATE)
        stream.width, stream.height, stream.pix_fmt = _WIDTH, _HEIGHT, "yuv420p"
        stream.options, stream.codec_context.gop_size = {"preset": "ultrafast"}, _GROUP
        frames = [av.VideoFrame.from_ndarray(np.roll(texture, 4 * i, 1), format="rgb24") for i in range(_GROUP)]
        packets = [p for frame in (*frames, None) for p in stream.encode(frame)]
        facts = [(bytes(p), p.pts, p.dts, p.is_keyframe, p.time_base) for p in packets]
        for group in range(groups):
            for data, pts, dts, is_key, base in facts:
                packet, later = av.Packet(data), int(group * _GROUP / _RATE / base)
                packet.pts, packet.dts, packet.time_base, packet.stream = pts + later, dts + later, base, stream
                packet.is_keyframe = is_key
                file.mux(packet)
    return path


def _print_hour(path: Path) -> None:
    from stoker import eager
    from stoker.video.indexing import index_video

    seconds = []
    for _ in range(_ROUNDS):
        begin = time.process_time()
        index = index_video(str(path))
        seconds.append(time.process_time() - begin)
    print(f"one hour, {len(index):,} frames, {path.stat().st_size >> 20} MiB")
    print(f"  index from the packets: {statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})")
    print(f"  memory of the index: {index.size_bytes / (1 << 20):.1f} MiB")
    with eager.video.open(str(path)) as video:  # keeps the index
        begin = time.process_time()
        video[len(index) // 2]
        print(f"  first frame of an opened video: {1e3 * (time.process_time() - begin):.1f} ms")
    begin = time.process_time()
    with eager.video.open(str(path)) as video:
        video[len(index) - 2]
    print(f"  open with a known index, and one frame: {1e3 * (time.process_time() - begin):.1f} ms", flush=True)


def _print_many(paths: list[Path]) -> None:
    from stoker import eager

    descriptors, memory = _descriptors(), _resident()
    most = descriptors
    begin = time.process_time()
    with contextlib.ExitStack() as opened:
        videos = [opened.enter_context(eager.video.open(str(path))) for path in paths]
        spent = time.process_time() - begin
        begin = time.process_time()
        for video in videos:
            assert video[:_FRAMES].shape == (_FRAMES, _HEIGHT, _WIDTH, 3)
            most = max(most, _descriptors())
        read = time.process_time() - begin
        grown = _resident() - memory
    print(f"{len(paths):,} videos of {_GROUP} frames, open together")
    print(f"  open: {1e3 * spent / len(paths):.2f} ms each; {_FRAMES} frames: {1e3 * read / len(paths):.2f} ms each")
    print(f"  descriptors: {descriptors} before, {most} at most, {_descriptors()} afterwards")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"  memory: {grown / (1 << 20):.0f} MiB more; peak {peak} MiB")


def _print_clips(paths: list[str]) -> None:
    from stoker import fn, pipeline_def

    @pipeline_def(batch_size=_BATCH, num_threads=2, seed=1)
    def clips() -> Any:
        return fn.readers.video(filenames=paths, sequence_length=_FRAMES, random_shuffle=True)

    memory = []
    with clips() as pipe:
        begin = time.process_time()
        for number in range(1, _CLIPS // _BATCH + 1):
            pipe.run()
            if number % (_CLIPS // _BATCH // 10) == 0:
                memory.append(_resident() >> 20)
        spent = time.process_time() - begin
    each = 1e3 * spent / _CLIPS
    print(f"{_CLIPS:,} clips of {_FRAMES} frames at random of {len(paths):,} videos: {each:.1f} ms each")
    print(f"  memory after each tenth of them: {', '.join(map(str, memory))} MiB", flush=True)


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main()
