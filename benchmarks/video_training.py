# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.video_training``: a small R(2+1)D on a GPU, fed by a pipeline or by batches on the GPU.

Videos are H.264 files of 320 x 256 with a texture that moves, in a folder that the program fills. The pipeline decodes
clips of 16 frames, shuffled over all files, by the GPU's video engines, and takes a random window of 224 x 224 at 112 x
112, mirrors it and normalizes it there; the loader works in the background. The model is that of ``examples/video``,
wider. Its synthetic rate is that of batches that the pipeline has made, kept on the GPU and repeated. The ways to feed
the model alternate in one process; the figure is the ratio of rates.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .machine import ROOT

HEIGHT, WIDTH, FRAMES, GROUP, LENGTH, WINDOW, SIZE, CLASSES = 256, 320, 240, 32, 16, 224, 112, 8
ROUNDS, WARM, STEPS = 3, 20, 60
KEPT = 16  # batches on the GPU


def main() -> int:
    """Write the videos, and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.video_training", description=__doc__.split("\n")[0])
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--channels", type=int, default=64, help="of the model")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--depth", type=int, default=3, help="batches that the pipeline prefetches")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--report", action="store_true", help="print what the pipeline alone delivers, and its report")
    parser.add_argument("--device", default="cuda", help="cpu: only whether the program runs")
    arguments = parser.parse_args()
    import torch

    sys.path.insert(0, str(ROOT / "examples" / "video"))
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu"
    now = time.strftime("%d %B %Y %H:%M", time.gmtime())
    print(f"{name}, {now} UTC, batch {arguments.batch}, {arguments.channels} channels", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        paths = write_videos(Path(folder), arguments.files)
        feed = fed(paths, arguments)
        kept = [next(feed) for _ in range(KEPT if arguments.device == "cuda" else 2)]
        if arguments.report:
            print(f"  pipeline alone {alone(feed, arguments):,.1f} clips/s", flush=True)
        ways = (("synthetic", itertools.cycle(kept)), ("fed", feed))
        rates: dict[str, list[float]] = {label: [] for label, _ in ways}
        for turn in range(arguments.rounds):
            for label, batches in ways if turn % 2 == 0 else ways[::-1]:
                rates[label].append(train(batches, arguments))
        feed.close()  # type: ignore[attr-defined]
    for label, found in rates.items():
        low, high = min(found), max(found)
        print(f"  {label:<10} {statistics.median(found):>10,.1f} clips/s ({low:,.1f} .. {high:,.1f})")
    part = statistics.median(rates["fed"]) / statistics.median(rates["synthetic"])
    print(f"  fed / synthetic: {100 * part:.1f} % (bar: 98 %)", flush=True)
    return 0


def write_videos(folder: Path, count: int) -> list[str]:
    """Write a video with a texture that moves, and copies of it. Return the paths."""
    import av

    texture = np.kron(np.random.default_rng(0).integers(40, 216, (40, 90, 3)), np.ones((8, 8, 1))).astype(np.uint8)
    first = folder / "0.mp4"
    with av.open(str(first), "w") as file:
        stream: Any = file.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.options = {"preset": "veryfast", "crf": "23"}
        stream.codec_context.gop_size = GROUP
        for number in range(FRAMES):
            pixels = np.ascontiguousarray(np.roll(texture, -2 * number, axis=1)[:HEIGHT, :WIDTH])
            file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        file.mux(stream.encode())
    paths = [first]
    for number in range(1, count):
        paths.append(folder / f"{number}.mp4")
        paths[-1].write_bytes(first.read_bytes())
    return [str(path) for path in paths]


def fed(paths: list[str], arguments: argparse.Namespace) -> Iterator[Any]:
    """Return an endless iterator over clips, CFHW."""
    from stoker import fn, pipeline_def, types
    from stoker.torch import Loader

    device: Any = "gpu" if arguments.device == "cuda" else "cpu"

    @pipeline_def(
        batch_size=arguments.batch, num_threads=arguments.threads, seed=1, device_id=0 if device == "gpu" else None,
        prefetch_queue_depth=arguments.depth,
    )  # fmt: skip
    def clips() -> Any:
        x, y = (fn.random.uniform(range=(0.0, 1.0)) for _ in range(2))
        video = fn.readers.video(filenames=paths, sequence_length=LENGTH, random_shuffle=True, device=device)
        video = fn.crop(video, crop=(WINDOW, WINDOW), crop_pos_x=x, crop_pos_y=y)
        video = fn.resize(video, size=(SIZE, SIZE))
        return fn.crop_mirror_normalize(
            video, mirror=fn.random.coin_flip(), mean=[110.0] * 3, std=[60.0] * 3, dtype=types.FLOAT16,
            output_layout="CFHW",
        )  # fmt: skip

    loader = Loader(clips(), ["video"], last_batch_policy="drop", background=True)
    try:
        while True:
            for one in loader:
                yield one["video"]
    finally:
        if arguments.report:
            print(loader.pipeline.report())
        loader.close()


def alone(feed: Iterator[Any], arguments: argparse.Namespace) -> float:
    """Return clips per second that nothing reads."""
    for _ in range(5):
        next(feed)
    _wait(arguments.device)
    began = time.perf_counter()
    for _ in range(arguments.steps):
        next(feed)
    _wait(arguments.device)
    return float(arguments.steps * arguments.batch / (time.perf_counter() - began))


def train(batches: Iterable[Any], arguments: argparse.Namespace) -> float:
    """Return clips per second of the steps after ``WARM`` ones."""
    import model  # of examples/video
    import torch

    torch.manual_seed(0)
    device, batch = arguments.device, arguments.batch
    warm, steps = (WARM, arguments.steps) if device == "cuda" else (1, 2)
    net = model.R2Plus1D(CLASSES, arguments.channels).to(device, memory_format=torch.channels_last_3d)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    loss_of = torch.nn.CrossEntropyLoss()
    labels = torch.randint(CLASSES, (batch,), device=device)
    start = 0.0
    for done, video in enumerate(itertools.islice(batches, warm + steps)):
        if done == warm:
            _wait(device)
            start = time.perf_counter()
        with torch.autocast(device, torch.bfloat16):
            scores = net(video.contiguous(memory_format=torch.channels_last_3d))
        loss = loss_of(scores.float(), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    _wait(device)
    return float(steps * batch / (time.perf_counter() - start))


def _wait(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    sys.exit(main())
