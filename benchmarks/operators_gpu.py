# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.operators_gpu``: single operators on a GPU, compared with DALI's and with the memory's rate.

256 images of 375x500 (or those of ``--batch`` and ``--size``) and as many clips of 16 s at 16 kHz are on the GPU before
the measurement; each operator is a pipeline of its own that is fed with them without a copy. Stoker and DALI alternate
in one process. The floor of an operator is the time that a copy between two tensors of torch takes for as many bytes as
the operator reads and writes. ``benchmarks.detection_gpu`` has the operators for detection.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from .cases.operators import HEIGHT, KERNELS, TITLES, WIDTH, fn_calls
from .gpu_pipelines import BATCH, library

RATE, SECONDS = 16_000, 16
ROUNDS = 5

Step = Callable[[], None]


def main() -> int:
    """Measure the named operators, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operators_gpu", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="operators, by default all")
    parser.add_argument("--dali", type=Path, help="folder to import nvidia.dali from, if it is not installed")
    parser.add_argument("--seconds", type=float, default=0.25, help="length of a round")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--depth", type=int, default=2, help="prefetched batches, of both libraries")
    parser.add_argument("--batch", type=int, default=BATCH, help="samples of a batch")
    parser.add_argument("--size", type=int, nargs=2, default=(HEIGHT, WIDTH), help="height and width of the images")
    arguments = parser.parse_args()
    if arguments.dali:
        sys.path.insert(0, str(arguments.dali))
    import torch

    print(f"{torch.cuda.get_device_name()}, {time.strftime('%d %B %Y %H:%M', time.gmtime())} UTC", flush=True)
    bandwidth = measure_bandwidth()
    print(f"copy between tensors: {bandwidth / 1e12:.2f} TB/s, read and written\n", flush=True)
    print("| operator | per second | DALI's | ratio | part of the memory's rate |\n|---|---|---|---|---|", flush=True)
    images = torch.randint(0, 256, (arguments.batch, *arguments.size, 3), dtype=torch.uint8, device="cuda")
    clips = torch.randn((arguments.batch, RATE * SECONDS), device="cuda") / 4
    stoker, dali = library("stoker"), _dali()
    ours, theirs = _calls(stoker), _calls(dali) if dali else {}
    for name in arguments.names or ours:
        if name in ours:
            data, layout = (clips, "") if name in SOUND else (images, "HWC")
            if name == "debayer":
                data = images[..., :1].contiguous()
            contenders = [Pipeline(stoker, ours[name], data, layout, arguments)]
            if name in theirs:
                contenders.append(Pipeline(dali, theirs[name], data, layout, arguments))
            compare(name, contenders, arguments.seconds, bandwidth)
    return 0


class Pipeline:
    """Pipeline of one operator, fed with the same tensor again and again.

    Attributes:
        refusal: why there is no pipeline; empty if there is one.
    """

    def __init__(
        self, lib: Any, function: Callable[[Any], Any], data: Any, layout: str, options: argparse.Namespace
    ) -> None:
        self.refusal, self.bytes = "", 0
        self.rates: list[float] = []
        self.batch = len(data)

        sizes = {"batch_size": self.batch, "num_threads": options.threads, "prefetch_queue_depth": options.depth}

        @lib.pipeline_def(device_id=0, **sizes)  # type: ignore[untyped-decorator]
        def one_operator() -> Any:
            fed = {"layout": layout} if layout else {}
            return function(lib.fn.external_source(source=lambda: data, device="gpu", no_copy=True, **fed))

        try:
            self._pipeline = one_operator()
            self._pipeline.build()
            self.bytes = data.nbytes + _nbytes(self._pipeline.run()[0])
            for _ in range(8):
                self._pipeline.run()
        except Exception as error:  # noqa: BLE001 (the table names it)
            self.refusal = f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"

    def run(self, seconds: float) -> None:
        """Run one round."""
        if not self.refusal:
            self.rates.append(self.batch * _rate(lambda: self._pipeline.run(), seconds))

    def close(self) -> None:
        """Release the memory of the pipeline."""
        if not self.refusal:
            getattr(self._pipeline, "close", lambda: None)()
            del self._pipeline

    @property
    def rate(self) -> float:
        """Median of the rounds, in samples per second."""
        return statistics.median(self.rates) if self.rates else 0.0


def compare(name: str, contenders: Sequence[Pipeline], seconds: float, bandwidth: float) -> None:
    """Run the contenders in alternation and print a line of the table."""
    for turn in range(ROUNDS):
        for contender in contenders if turn % 2 == 0 else contenders[::-1]:
            contender.run(seconds)
    own, *peers = contenders
    cells = [name, own.refusal or f"{own.rate:,.0f}"]
    for peer in peers:
        cells += [peer.refusal or f"{peer.rate:,.0f}", f"{own.rate / peer.rate:.2f}" if own.rate and peer.rate else ""]
    cells += [""] * (4 - len(cells))
    cells.append(f"{own.rate / own.batch * own.bytes / bandwidth:.0%}" if own.rate else "")
    print(f"| {' | '.join(cells)} |", flush=True)
    for contender in contenders:
        contender.close()


def measure_bandwidth() -> float:
    """Return the bytes per second that a copy reads and writes."""
    import torch

    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes * max(_rate(lambda: target.copy_(source), 0.1) for _ in range(ROUNDS))


def _rate(step: Callable[[], Any], seconds: float) -> float:
    """Return steps per second. The clock stops when the device is idle."""
    import torch

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(4):
            step()
        count += 4
    torch.cuda.synchronize()
    return count / (time.perf_counter() - start)


def _nbytes(output: Any) -> int:
    """Return the size of a batch on the GPU, of Stoker's or DALI's."""
    import torch

    if hasattr(output, "as_tensor"):  # DALI's
        output.as_cpu()  # waits
        return sum(torch.from_dlpack(output[i]).nbytes for i in range(len(output)))
    return sum(torch.from_dlpack(output[i]).nbytes for i in range(len(output)))


def _dali() -> Any:
    try:
        return library("dali")
    except ImportError as error:
        print(f"without DALI: {error}")
        return None


# ---- operators ----


def _mel_chain(fn: Any, x: Any) -> Any:
    y = fn.spectrogram(fn.preemphasis_filter(x), nfft=512, window_length=320, window_step=160)
    y = fn.to_decibels(fn.mel_filter_bank(y, sample_rate=float(RATE), nfilter=80), cutoff_db=-80.0)
    return fn.normalize(y, axes=[1])


SOUND: dict[str, Callable[[Any, Any], Any]] = {
    "mel chain": _mel_chain,
    "spectrogram": lambda fn, x: fn.spectrogram(x, nfft=512, window_length=320, window_step=160),
    "preemphasis_filter": lambda fn, x: fn.preemphasis_filter(x),
    "audio_resample": lambda fn, x: fn.audio_resample(x, in_rate=RATE, out_rate=11025.0),
}


def _calls(lib: Any) -> dict[str, Callable[[Any], Any]]:
    """Return operators by the names of ``benchmarks.cases.operators`` and, for sound, their own."""
    found = fn_calls(lib.fn, lib.types)
    found["arithmetic"] = lambda x: x * 1.5 + 10.0
    found["debayer"] = lambda x: lib.fn.debayer(x, blue_position=[0, 0])
    for size, weights in KERNELS.items():
        found[f"filter-{size}"] = lambda x, weights=weights: lib.fn.filter(x, weights)  # type: ignore[misc]
    if hasattr(lib.fn, "motion_blur"):  # DALI has none
        found["motion-blur"] = lambda x: lib.fn.motion_blur(x, size=9, angle=30.0)
    images = {name: found[name] for name in TITLES if name in found}
    return {**images, **{name: (lambda x, make=make: make(lib.fn, x)) for name, make in SOUND.items()}}


if __name__ == "__main__":
    sys.exit(main())
