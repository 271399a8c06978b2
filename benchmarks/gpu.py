# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.gpu``: the GPU path and DALI's on one machine, in one run.

The program creates a data set of many different files, checks that the GPU's pixels equal the CPU's, and prints a
table. If ``--dali`` names a folder with NVIDIA DALI's packages (or it is installed), DALI runs in alternation with
Stoker, with several settings, of which the best counts. Every file is new to the contender in the timed part: shuffled
epochs over a set much larger than a batch. Outputs are read on the GPU and summed, and the clock stops when the device
is idle.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stoker.settings import threads_with_gpu

from .gpu_data import add_arguments, describe, make_files
from .gpu_kinds import measure_kinds
from .gpu_pipelines import BATCH, CHAIN, DECODE, DEPTH, INDEX_BYTES, consume, make_augmentation, make_pipeline
from .gpu_training import measure_trainings

ROUNDS = 5


def main() -> int:
    """Parse the command line and measure, or serve as one contender's process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.split("\n")[0])
    add_arguments(parser, seconds=1.5)
    parser.add_argument("--dali", type=Path, help="folder to import nvidia.dali from, if it is not installed")
    parser.add_argument("--models", nargs="*", default=["resnet18", "resnet50"], help="torchvision models to train")
    parser.add_argument("--fed", nargs="*", default=["8:1.0", "8:auto"],
                        help="trainings: threads and the part of the rows that the GPU decodes, or auto; "
                             "with ':index', from the second epoch with an index of the files")  # fmt: skip
    parser.add_argument("--only", nargs="*", choices=("bits", "rates", "times", "first", "augmentation", "kinds",
                                                        "training"),
                        help="only these measurements")  # fmt: skip
    arguments = parser.parse_args()
    if arguments.contender:
        return serve(json.loads(arguments.contender))
    files = make_files(arguments.data, arguments.work, arguments.files)
    describe(files)
    measurements: dict[str, Callable[[], None]] = {
        "bits": lambda: check_bits(files),
        "rates": lambda: measure_rates(arguments),
        "times": lambda: measure_gpu_time(files),
        "first": lambda: measure_first_batch(files),
        "augmentation": measure_augmentation,
        "kinds": lambda: measure_kinds(files, arguments.work, arguments.seconds),
        "training": lambda: measure_trainings(arguments.models, files, arguments.fed),
    }
    for name, measure in measurements.items():
        if not arguments.only or name in arguments.only:
            measure()
    return 0


# ---- contenders ----


def serve(spec: dict[str, Any]) -> int:
    """Serve as a contender's process: build a pipeline, then answer each input line with the rate of a round."""
    if spec["dali"]:
        sys.path.insert(0, spec["dali"])
    if spec["cores"]:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: spec["cores"]])
    import torch

    files = sorted(str(p) for p in Path(spec["work"]).glob("*.jpg"))[: spec["count"]]
    pipeline = make_pipeline(
        spec["library"], spec["kind"], files, "gpu", spec["threads"], spec["depth"], **spec["decoder"]
    )
    total = torch.zeros((), dtype=torch.float64, device="cuda")
    for _ in range(2 * len(files) // BATCH if spec["decoder"].get("index") else 8):
        consume(pipeline.run(), total)
    torch.cuda.synchronize()
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(spec["depth"] + 1):  # batches that were prefetched while the process slept
            consume(pipeline.run(), total)
        torch.cuda.synchronize()
        rows, start, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - start < float(line):
            consume(pipeline.run(), total)
            rows += BATCH
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        print(json.dumps([rows / seconds, 1e6 * (time.process_time() - cpu) / rows]), flush=True)
    decoders = pipeline.execution.decoders if spec["library"] == "stoker" else []
    print(json.dumps([[d.rows_on_gpu, d.rows_on_cpu, d.reasons] for d in decoders]), flush=True)
    return 0


class Contender:
    """Process that runs one pipeline on request."""

    def __init__(self, label: str, arguments: argparse.Namespace, **spec: Any) -> None:
        self.label = label
        self.rates: list[float] = []
        self.cpu_us: list[float] = []
        dali = str(arguments.dali) if arguments.dali and spec["library"] == "dali" else ""
        work = {"work": str(arguments.work), "count": arguments.files}
        everything = {"decoder": {}, "depth": DEPTH, "cores": 0, "dali": dali, **work, **spec}
        command = [sys.executable, "-m", "benchmarks.gpu", "--data", ".", "--contender", json.dumps(everything)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.absent = self._line() != "ready"

    def run(self, seconds: float) -> None:
        """Run one round."""
        if self.absent:
            return
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        rate, cpu = json.loads(self._line())
        self.rates.append(rate)
        self.cpu_us.append(cpu)

    def close(self) -> Any:
        """End the process; return its report of where rows were decoded."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        last = self._line()
        self._process.wait()
        return json.loads(last) if last else None

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def measure_rates(arguments: argparse.Namespace) -> None:
    """Measure the table's rows in alternation, forwards and backwards."""
    every = len(os.sched_getaffinity(0))
    for title, kind, cores in ((f"training chain, {every} cores", CHAIN, 0), ("training chain, 2 cores", CHAIN, 2),
                               (f"decoding to RGB, {every} cores", DECODE, 0)):  # fmt: skip
        threads = cores or every
        own = cores or threads_with_gpu()  # the default
        contenders = [Contender("stoker", arguments, library="stoker", kind=kind, threads=own, cores=cores)]
        for load in (0.65, 0.75, 1.0) if kind == CHAIN else (0.65,):
            decoder = {"hw_decoder_load": load, "preallocate_width_hint": 1000, "preallocate_height_hint": 1000}
            contenders.append(
                Contender(f"DALI, hardware load {load}", arguments, library="dali", kind=kind, threads=threads,
                          cores=cores, decoder=decoder)
            )  # fmt: skip
        contenders.append(
            Contender("stoker, later epochs", arguments, library="stoker", kind=kind, threads=own, cores=cores,
                      decoder={"index": INDEX_BYTES})
        )  # fmt: skip
        for turn in range(ROUNDS):
            for contender in contenders if turn % 2 == 0 else contenders[::-1]:
                contender.run(arguments.seconds)
        print(f"\n{title}, batch {BATCH} [images/s]")
        for contender in contenders:
            counters = contender.close()
            if contender.absent:
                print(f"  {contender.label:<26} absent")
                continue
            low, high = min(contender.rates), max(contender.rates)
            print(
                f"  {contender.label:<26} {statistics.median(contender.rates):>9,.0f} ({low:,.0f} .. {high:,.0f})   "
                f"cpu {statistics.median(contender.cpu_us):.1f} us/image   {counters or ''}"
            )
        best = max((statistics.median(c.rates) for c in contenders[1:-1] if not c.absent), default=None)
        if best is not None:
            print(f"  > {statistics.median(contenders[0].rates) / best:.2f} x DALI's best", flush=True)


# ---- other rows ----


def check_bits(files: list[str], count: int = 1024) -> None:
    """Compare the chain's and the decoder's output on the GPU with the CPU's, element by element."""
    for kind, index in ((CHAIN, 0), (DECODE, 0), (CHAIN, INDEX_BYTES)):
        rows = different = 0
        gpu = make_pipeline("stoker", kind, files[:count], "gpu", 8, 2, index=index)
        cpu = make_pipeline("stoker", kind, files[:count], "cpu", 16, 2)
        for _ in range((2 if index else 1) * -(-count // BATCH)):
            a, b = gpu.run()[0].as_cpu(), cpu.run()[0]
            rows += len(b)
            different += sum(not np.array_equal(a[i], b[i]) for i in range(len(b)))
        gpu.close()
        cpu.close()
        what = f"{kind}, two epochs, files known in the second" if index else kind
        print(f"bits        {what}: {rows} rows on the GPU and the CPU, {different} differ", flush=True)


def measure_gpu_time(files: list[str], batches: int = 40) -> None:
    """Print the device's time per image in kernels and copies, from the driver's own trace."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    for kind in (CHAIN, DECODE):
        pipeline = make_pipeline("stoker", kind, files, "gpu", 16, 2)
        for _ in range(8):
            pipeline.run()
        with profile(activities=[ProfilerActivity.CUDA]) as trace:
            for _ in range(batches):
                pipeline.run()
            torch.cuda.synchronize()
        pipeline.close()
        times: dict[str, float] = {}
        for event in trace.events():
            if event.device_type == torch.autograd.DeviceType.CUDA:
                times[event.name[:44]] = times.get(event.name[:44], 0) + event.device_time_total / (batches * BATCH)
        print(f"\nGPU time of {kind} [us/image]: {sum(times.values()):.2f}")
        for name, us in sorted(times.items(), key=lambda item: -item[1])[:12]:
            print(f"  {name:<46} {us:.3f}")


def measure_first_batch(files: list[str]) -> None:
    """Measure the time from build to first batch, with cached kernels, in a fresh process's second pipeline."""
    start = time.perf_counter()
    pipeline = make_pipeline("stoker", CHAIN, files, "gpu", 16, 2)
    built = time.perf_counter()
    pipeline.run()
    print(f"\nfirst batch: building {built - start:.3f} s, then {time.perf_counter() - built:.3f} s", flush=True)
    pipeline.close()


def measure_augmentation(seconds: float = 1.0) -> None:
    """Measure the rate of the augmentation as a pipeline; ``benchmarks.stages_gpu`` measures its kernels."""
    import torch

    pipeline, total = make_augmentation(4), torch.zeros((), dtype=torch.float64, device="cuda")
    rates = []
    for _ in range(ROUNDS):
        for _ in range(16):
            consume(pipeline.run(), total)
        torch.cuda.synchronize()
        rows, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds / ROUNDS:
            consume(pipeline.run(), total)
            rows += BATCH
        torch.cuda.synchronize()
        rates.append(rows / (time.perf_counter() - start))
    print(f"\naugmentation of a tensor on the GPU: {statistics.median(rates):,.0f} images/s "
          f"({min(rates):,.0f} .. {max(rates):,.0f})")  # fmt: skip
    print(f"  {pipeline.report()}", flush=True)
    pipeline.close()


if __name__ == "__main__":
    sys.exit(main())
