# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.speech_training``: a small CTC model on a GPU, fed by a pipeline or by batches on the GPU.

Clips of 16 bits are WAV files of 12 to 16 seconds, in a folder that the program fills. The pipeline reads them, sends
the integers to the GPU, and computes the features of NeMo and masks there; the loader pads in the background. The
model is that of ``examples/asr``, wider. Its synthetic rate is that of batches that the pipeline has made, kept on the
GPU and repeated: the same shapes, for which the model's libraries choose the same algorithms. cuDNN plans the
convolutions again for every number of frames that it meets, 17 to 40 ms in the launching thread; therefore the model
runs on every number of frames before the rates are taken. The rate of one batch, repeated, is printed as well. The ways
to feed the model alternate in one process; the figure is the ratio of rates.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import time
import wave
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .machine import ROOT

RATE, FEATURES, CLASSES, CHARACTERS = 16_000, 80, 29, 40
ROUNDS, WARM, STEPS = 3, 40, 120
SHORTEST, LONGEST = 12, 16  # seconds
KEPT = 48  # batches on the GPU
TURNS = 8  # of the files in an epoch


def main() -> int:
    """Write the clips, and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speech_training", description=__doc__.split("\n")[0])
    parser.add_argument("--clips", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--channels", type=int, default=256, help="of the model")
    parser.add_argument("--blocks", type=int, default=5, help="of the model")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--device", default="cuda", help="cpu: only whether the program runs")
    arguments = parser.parse_args()
    import torch

    sys.path.insert(0, str(ROOT / "examples" / "asr"))
    name = torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu"
    print(f"{name}, {time.strftime('%d %B %Y %H:%M', time.gmtime())} UTC, batch {arguments.batch}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        files = write_clips(Path(folder), arguments.clips)
        feed = fed(files, arguments.batch, arguments.threads, arguments.device)
        kept = [next(feed) for _ in range(KEPT if arguments.device == "cuda" else 2)]
        train(every_length(arguments.batch, arguments.device), arguments)
        ways = (("synthetic", itertools.cycle(kept)), ("one batch", itertools.repeat(kept[0])), ("fed", feed))
        rates: dict[str, list[float]] = {label: [] for label, _ in ways}
        for turn in range(ROUNDS):
            for label, batches in ways if turn % 2 == 0 else ways[::-1]:
                rates[label].append(train(batches, arguments))
        feed.close()  # type: ignore[attr-defined]
    for label, found in rates.items():
        low, high = min(found), max(found)
        print(f"  {label:<10} {statistics.median(found):>10,.1f} clips/s ({low:,.1f} .. {high:,.1f})")
    part = statistics.median(rates["fed"]) / statistics.median(rates["synthetic"])
    print(f"  fed / synthetic: {100 * part:.1f} % (bar: 98 %)", flush=True)
    return 0


def write_clips(folder: Path, count: int) -> list[str]:
    """Write noise of 12 to 16 seconds, and return the paths."""
    rng, files = np.random.default_rng(0), []
    noise = rng.integers(-3000, 3000, 20 * RATE).astype(np.int16)
    for i in range(count):
        begin, size = int(rng.integers(0, 4 * RATE)), int(rng.integers(SHORTEST * RATE, LONGEST * RATE))
        files.append(str(folder / f"{i:05}.wav"))
        with wave.open(files[-1], "wb") as file:
            file.setparams((1, 2, RATE, 0, "NONE", ""))
            file.writeframes(noise[begin : begin + size].tobytes())
    return files


def fed(files: list[str], batch: int, threads: int, device: str) -> Iterator[tuple[Any, Any]]:
    """Return an endless iterator over padded features and their lengths."""
    from stoker import fn, pipeline_def, types
    from stoker.torch import Loader

    on_gpu = device == "cuda"

    @pipeline_def(
        batch_size=batch, num_threads=threads, seed=1, device_id=0 if on_gpu else None, prefetch_queue_depth=3
    )
    def clips() -> Any:
        audio, _, _ = fn.readers.audio(files=files * TURNS, dtype=types.INT16, random_shuffle=True, downmix=True)
        audio = audio.gpu() if on_gpu else audio
        features = fn.features.nemo(fn.cast(audio, dtype=types.FLOAT) * (1 / 32768), features=FEATURES)
        return fn.spec_augment(features, freq_masks=2, freq_width=15, time_masks=2, time_width=40)

    loader = Loader(clips(), ["features"], ragged="padded", last_batch_policy="drop", background=True)
    try:
        while True:
            for one in loader:
                features, lengths = one["features"]
                yield features, lengths.to(features.device, non_blocking=True)
    finally:
        loader.close()


def every_length(batch: int, device: str) -> Iterator[tuple[Any, Any]]:
    """Return batches of every number of frames that a batch of the pipeline may have, but for the rarest."""
    import torch

    longest = LONGEST * RATE // 160 + 1
    for frames in range(longest, longest - WARM - STEPS, -1):
        yield (
            torch.zeros((batch, FEATURES, frames), device=device),
            torch.full((batch,), frames, dtype=torch.int64, device=device),
        )


def train(batches: Iterable[tuple[Any, Any]], arguments: argparse.Namespace) -> float:
    """Return clips per second of the steps after ``WARM`` ones."""
    import model  # of examples/asr
    import torch

    torch.manual_seed(0)
    device, batch = arguments.device, arguments.batch
    warm, steps = (WARM, STEPS) if device == "cuda" else (1, 2)
    net = model.Jasper(FEATURES, CLASSES, arguments.channels, arguments.blocks).to(device)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4)
    loss_of = torch.nn.CTCLoss(zero_infinity=True)
    texts = torch.randint(1, CLASSES, (batch, CHARACTERS), device=device)
    sizes = torch.full((batch,), CHARACTERS, dtype=torch.int64, device=device)
    start = 0.0
    for done, (features, lengths) in enumerate(itertools.islice(batches, warm + steps)):
        if done == warm:
            _wait(device)
            start = time.perf_counter()
        with torch.autocast(device, torch.bfloat16):
            scores, lengths_out = net(features, lengths)
        loss = loss_of(scores.float(), texts, lengths_out, sizes)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    _wait(device)
    return steps * batch / (time.perf_counter() - start)


def _wait(device: str) -> None:
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    sys.exit(main())
