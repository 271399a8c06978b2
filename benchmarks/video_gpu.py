# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.video_gpu``: clips of videos by a GPU's video engines, with their peers.

Makes videos of 1280 x 720 with PyAV, several files with the same contents. Rates are frames a second. PyNvVideoCodec
decodes the files on as many threads as there are files, to NV12 that nothing reads: what all engines give. Stoker and
DALI deliver clips as RGB: clips of a group of pictures, shuffled, which waste no picture, and clips of 16 frames,
shuffled, of which most begin between two key frames. They take turns.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from .gpu_pipelines import library

HEIGHT, WIDTH, FRAMES, GROUP = 720, 1280, 300, 60
ENCODERS = {
    "h264": ("libx264", {"preset": "veryfast", "crf": "26"}),
    "hevc": ("libx265", {"preset": "ultrafast", "crf": "28", "x265-params": "log-level=none"}),
}
Run = Callable[[], int]  # deliver a batch, and return its number of frames


def main() -> None:
    """Measure each codec, and print a line for each rate."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.video_gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--codecs", nargs="+", choices=list(ENCODERS), default=list(ENCODERS))
    parser.add_argument("--files", type=int, default=14)
    parser.add_argument("--threads", type=int, default=min(8, len(os.sched_getaffinity(0))))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.5, help="length of a round")
    parser.add_argument("--dali", type=Path, help="folder to import nvidia.dali from, if it is not installed")
    arguments = parser.parse_args()
    if arguments.dali:
        sys.path.insert(0, str(arguments.dali))
    import torch

    now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {now} UTC")
    with tempfile.TemporaryDirectory() as folder:
        for codec in arguments.codecs:
            paths = make_videos(Path(folder), codec, arguments.files)
            every = engines_rate(paths)
            print(f"{codec}: {f'{every:,.0f} frames/s' if every else 'not installed'}, PyNvVideoCodec on all engines")
            for length in (GROUP, 16):
                measure(codec, paths, length, every, arguments)


def make_videos(folder: Path, codec: str, count: int) -> list[str]:
    """Write a video with a texture that moves, and copies of it. Return the paths."""
    import av

    encoder, options = ENCODERS[codec]
    texture = np.kron(np.random.default_rng(0).integers(40, 216, (60, 100, 3)), np.ones((16, 16, 1))).astype(np.uint8)
    first = folder / f"{codec}0.mp4"
    with av.open(str(first), "w") as file:
        stream: Any = file.add_stream(encoder, rate=30)
        stream.width, stream.height, stream.pix_fmt, stream.options = WIDTH, HEIGHT, "yuv420p", options
        stream.codec_context.gop_size = GROUP
        for number in range(FRAMES):
            pixels = np.ascontiguousarray(np.roll(texture, -3 * number, axis=1)[:HEIGHT, :WIDTH])
            file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        file.mux(stream.encode())
    paths = [first]
    for number in range(1, count):
        paths.append(folder / f"{codec}{number}.mp4")
        paths[-1].write_bytes(first.read_bytes())
    return [str(path) for path in paths]


def engines_rate(paths: list[str]) -> float | None:
    """Return PyNvVideoCodec's frames a second over all files at the same time; None if it is not installed."""
    try:
        peer = importlib.import_module("PyNvVideoCodec")
    except ImportError:
        return None
    counts: list[int] = []

    def decode(path: str) -> None:
        demuxer = peer.CreateDemuxer(filename=path)
        decoder = peer.CreateDecoder(
            gpuid=0, codec=demuxer.GetNvCodecId(), cudacontext=0, cudastream=0, usedevicememory=True
        )  # fmt: skip
        for _ in range(3):  # so that the creation of decoders counts less
            counts.append(sum(len(decoder.Decode(packet)) for packet in demuxer))
            demuxer = peer.CreateDemuxer(filename=path)

    threads = [threading.Thread(target=decode, args=(path,)) for path in paths]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - began)


def measure(codec: str, paths: list[str], length: int, every: float | None, arguments: argparse.Namespace) -> None:
    """Print the rates of clips of a length, and ratios."""
    sides = {name: made for name in ("stoker", "dali") if (made := side(name, paths, length, arguments)) is not None}
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for run, _ in sides.values():
        for _ in range(4):
            run()
    for _ in range(arguments.rounds):
        for name, (run, _) in sides.items():
            began, frames = time.perf_counter(), 0
            while (spent := time.perf_counter() - began) < arguments.seconds:
                frames += run()
            rates[name].append(frames / spent)
    for _, close in sides.values():
        close()
    own = statistics.median(rates["stoker"])
    text = f"{codec}, clips of {length} frames: {own:,.0f} frames/s"
    if every:
        text += f", {own / every:.2f} of all engines"
    if "dali" in rates:
        peer = statistics.median(rates["dali"])
        text += f", DALI {peer:,.0f}, ratio {own / peer:.2f}"
    print(text, flush=True)


def side(name: str, paths: list[str], length: int, arguments: argparse.Namespace) -> tuple[Run, Any] | None:
    """Return the function that delivers a batch, and one that ends the pipeline; None if the library is missing."""
    import torch

    try:
        module = library(name)
    except ImportError:
        return None

    def pipeline() -> Any:
        return module.fn.readers.video(
            device="gpu", filenames=paths, sequence_length=length, random_shuffle=True, name="reader"
        )

    options = {"batch_size": arguments.files, "num_threads": arguments.threads, "device_id": 0, "seed": 1}
    built = module.pipeline_def(**options)(pipeline)()
    built.build()

    def run() -> int:
        built.run()
        torch.cuda.synchronize()
        return int(arguments.files * length)

    return run, getattr(built, "close", lambda: None)


if __name__ == "__main__":
    main()
