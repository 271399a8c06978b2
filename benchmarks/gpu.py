# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.gpu``: the GPU path beside DALI's on one machine, in one run.

It makes a data set of many different files, checks that the GPU's pixels are the CPU's, and prints a table. Where
``--dali`` names a folder with NVIDIA DALI's packages (or it is installed), DALI runs by turns with Stoker, with several
of its settings, of which the best counts. Rates are those of files seen for the first time in the run's own order:
shuffled epochs over a set much larger than a batch; outputs are read on the GPU and summed; a rate's time ends when the
device is idle.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from .gpu_kinds import measure_kinds

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]
BATCH = 256
ROUNDS = 5
DEPTH = 5  # batches made ahead
INDEX_BYTES = 1 << 28  # what the row of later epochs may keep about files
TURNS = 2
WARM, WARM_AUTO = 60, 400  # batches before the time is taken; the split needs some to settle
CHAIN, DECODE = "chain", "decode"


def add_arguments(parser: argparse.ArgumentParser, seconds: float) -> None:
    """What benchmarks on a GPU are told alike: the data set, the length of a round, and which contender to be."""
    parser.add_argument("--data", type=Path, required=True, help="folder of JPEG files to make the data set from")
    parser.add_argument("--files", type=int, default=4096, help="how many files to make")
    parser.add_argument("--work", type=Path, default=Path("/dev/shm/stoker-bench-gpu"), help="where to make them")
    parser.add_argument("--seconds", type=float, default=seconds, help="length of a round")
    parser.add_argument("--contender", help=argparse.SUPPRESS)


def main() -> int:
    """Parse the command line and measure, or be one contender's process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__.split("\n")[0])
    add_arguments(parser, seconds=1.5)
    parser.add_argument("--dali", type=Path, help="folder to import nvidia.dali from, if it is not installed")
    parser.add_argument("--models", nargs="*", default=["resnet18", "resnet50"], help="torchvision models to train")
    parser.add_argument("--fed", nargs="*", default=["8:1.0", "8:auto"],
                        help="trainings: threads and the part of the rows that the GPU decodes, or auto")  # fmt: skip
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
        "kinds": lambda: measure_kinds(files, arguments.work, arguments.seconds, make_pipeline, consume, INDEX_BYTES),
        "training": lambda: measure_trainings(arguments.models, files, arguments.fed),
    }
    for name, measure in measurements.items():
        if not arguments.only or name in arguments.only:
            measure()
    return 0


# ---- data ----


def make_files(photographs: Path, folder: Path, count: int) -> list[str]:
    """``count`` different files: photographs cut by some pixels and coded again, with their own chroma sampling."""
    sources = sorted(str(p) for p in photographs.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [(sources[i % len(sources)], str(folder / f"{i:06}.jpg"), i // len(sources)) for i in range(count)]
    missing = [job for job in jobs if not os.path.exists(job[1])]
    with ProcessPoolExecutor() as pool:
        for _ in pool.map(_make_file, missing, chunksize=32):
            pass
    return [path for _, path, _ in jobs]


def _make_file(job: tuple[str, str, int]) -> None:
    from PIL import Image, JpegImagePlugin

    source, path, turn = job
    with Image.open(source) as image:
        sampling = JpegImagePlugin.get_sampling(image)
        tables = image.quantization  # the same bits per pixel as the original's
        pixels = image.convert("L" if image.mode == "L" else "RGB")
    box = (turn % 5, turn // 5 % 5, pixels.width - turn // 25 % 3, pixels.height - turn // 75 % 3)
    options: dict[str, Any] = {"qtables": tables, "optimize": turn % 2 == 0}
    if sampling >= 0 and pixels.mode == "RGB":
        options["subsampling"] = sampling
    pixels.crop(box).save(path, "JPEG", **options)


def describe(files: list[str]) -> None:
    """Print machine and data."""
    import torch

    total = 0
    for path in files:  # also brings them into the page cache
        with open(path, "rb") as file:
            total += len(file.read())
    print(f"date        {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}")
    print(f"GPU         {torch.cuda.get_device_name(0)}, torch {torch.__version__}")
    print(f"cores       {len(os.sched_getaffinity(0))}")
    print(f"data        {len(files)} files, mean {total / len(files) / 1e3:.1f} kB, in the page cache", flush=True)


# ---- pipelines, the same text for both libraries ----


def library(name: str) -> Any:
    """``fn``, ``types`` and ``pipeline_def`` of Stoker or DALI."""
    if name == "stoker":
        import stoker

        return stoker
    from nvidia import dali

    return dali


def make_pipeline(
    name: str,
    kind: str,
    files: list[str],
    device: str,
    threads: int,
    depth: int,
    load: float | str = 1.0,
    index: int = 0,
    index_path: str | None = None,
    **decoder: Any,
) -> Any:
    """The training chain, or decoding alone.

    Of Stoker alone, ``load``: the part of the rows that the GPU decodes; ``index``: bytes for what is kept about files,
    ``index_path``: where it is on disk.
    """
    lib = library(name)
    fn, types = lib.fn, lib.types
    on_gpu = device == "gpu"

    own = {"gpu_decoder_load": load, "gpu_jpeg_index": index, "gpu_jpeg_index_path": index_path}

    @lib.pipeline_def(  # type: ignore[untyped-decorator]
        batch_size=BATCH, num_threads=threads, device_id=0 if on_gpu else None, seed=7, prefetch_queue_depth=depth,
        **(own if name == "stoker" else {}),
    )  # fmt: skip
    def define() -> Any:
        data, labels = fn.readers.file(files=files, labels=list(range(len(files))), random_shuffle=True, name="Reader")
        where = "mixed" if on_gpu else "cpu"
        if kind == DECODE:
            return fn.decoders.image(data, device=where, output_type=types.RGB, **decoder), labels
        x = fn.decoders.image_random_crop(data, device=where, output_type=types.RGB, **decoder)
        x = fn.resize(x, resize_x=224, resize_y=224)
        x = fn.crop_mirror_normalize(
            x, mean=MEAN, std=STD, mirror=fn.random.coin_flip(), dtype=types.FLOAT16, output_layout="CHW"
        )
        return x, labels

    pipeline = define()
    pipeline.build()
    return pipeline


def consume(outputs: Any, total: Any) -> None:
    """Sum some elements of the first output on the GPU; nothing waits for it."""
    import torch

    first = outputs[0]
    if hasattr(first, "as_tensor"):  # DALI's
        arrays = [first.as_tensor()] if first.is_dense_tensor() else [first[i] for i in range(4)]
    else:
        arrays = [first] if first.is_dense else [first[i] for i in range(4)]
    for part in map(torch.from_dlpack, arrays):
        total += part.reshape(-1)[::509].sum(dtype=torch.float64)


# ---- contenders ----


def serve(spec: dict[str, Any]) -> int:
    """A contender's process: prepares a pipeline, then answers each line on its input with a round's rate."""
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
        for _ in range(spec["depth"] + 1):  # what was made while it slept
            consume(pipeline.run(), total)
        torch.cuda.synchronize()
        rows, start, cpu = 0, time.perf_counter(), time.process_time()
        while time.perf_counter() - start < float(line):
            consume(pipeline.run(), total)
            rows += BATCH
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        print(json.dumps([rows / seconds, 1e6 * (time.process_time() - cpu) / rows]), flush=True)
    decoders = pipeline.execution.settings.gpu.decoders if spec["library"] == "stoker" else []
    print(json.dumps([[d.rows_on_gpu, d.rows_on_cpu, d.reasons] for d in decoders]), flush=True)
    return 0


class Contender:
    """A process that runs one pipeline when asked."""

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
        """One round."""
        if self.absent:
            return
        assert self._process.stdin is not None
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        rate, cpu = json.loads(self._line())
        self.rates.append(rate)
        self.cpu_us.append(cpu)

    def close(self) -> Any:
        """End the process; what it says about where rows were decoded."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        last = self._line()
        self._process.wait()
        return json.loads(last) if last else None

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


def measure_rates(arguments: argparse.Namespace) -> None:
    """The rows of the table: by turns, forwards and backwards."""
    every = len(os.sched_getaffinity(0))
    for title, kind, cores in ((f"training chain, {every} cores", CHAIN, 0), ("training chain, 2 cores", CHAIN, 2),
                               (f"decoding to RGB, {every} cores", DECODE, 0)):  # fmt: skip
        threads = cores or every
        contenders = [Contender("stoker", arguments, library="stoker", kind=kind, threads=threads, cores=cores)]
        for load in (0.65, 0.75, 1.0) if kind == CHAIN else (0.65,):
            decoder = {"hw_decoder_load": load, "preallocate_width_hint": 1000, "preallocate_height_hint": 1000}
            contenders.append(
                Contender(f"DALI, hardware load {load}", arguments, library="dali", kind=kind, threads=threads,
                          cores=cores, decoder=decoder)
            )  # fmt: skip
        contenders.append(
            Contender("stoker, later epochs", arguments, library="stoker", kind=kind, threads=threads, cores=cores,
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
    """What the device's kernels and copies take per image, from the driver's own trace of them."""
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
    """From building to the first batch, with kernels in the cache, in a fresh process's second pipeline."""
    start = time.perf_counter()
    pipeline = make_pipeline("stoker", CHAIN, files, "gpu", 16, 2)
    built = time.perf_counter()
    pipeline.run()
    print(f"\nfirst batch: building {built - start:.3f} s, then {time.perf_counter() - built:.3f} s", flush=True)
    pipeline.close()


def make_augmentation(depth: int) -> Any:
    """Augmentation of one tensor of images that is on the GPU already."""
    import torch

    images = torch.randint(0, 256, (BATCH, 375, 500, 3), dtype=torch.uint8, device="cuda")
    return augment(images, len(os.sched_getaffinity(0)), depth)


def augment(images: Any, threads: int, depth: int) -> Any:
    """The augmentation of ``images``, which are given for every batch."""
    from stoker import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=threads, device_id=0, seed=7, prefetch_queue_depth=depth)
    def define() -> Any:
        x = fn.external_source(source=lambda i: images, device="gpu", no_copy=True, layout="HWC")
        x = fn.random_resized_crop(x, size=(224, 224))
        x = fn.rotate(x, angle=fn.random.uniform(range=(-30.0, 30.0)), keep_size=True, fill_value=0)
        x = fn.color_twist(
            x, brightness=fn.random.uniform(range=(0.6, 1.4)), contrast=fn.random.uniform(range=(0.6, 1.4)),
            saturation=fn.random.uniform(range=(0.6, 1.4)), hue=fn.random.uniform(range=(-20.0, 20.0)),
        )  # fmt: skip
        return fn.crop_mirror_normalize(
            x, mirror=fn.random.coin_flip(), mean=MEAN, std=STD, dtype=types.FLOAT16, output_layout="CHW"
        )

    return define()


def measure_augmentation(seconds: float = 1.0) -> None:
    """The rate of the augmentation as a pipeline; ``benchmarks.stages_gpu`` measures its kernels."""
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


def measure_trainings(names: Iterable[str], files: list[str], fed: Iterable[str]) -> None:
    """Every model."""
    contenders = [(int(t), load if load == "auto" else float(load)) for t, load in (one.split(":") for one in fed)]
    for name in names:
        measure_training(name, files, contenders)


def measure_training(name: str, files: list[str], fed: Iterable[tuple[int, float | str]]) -> None:
    """Images per second of training on synthetic input and on the pipeline's, by turns."""
    import torch

    x = torch.randn(BATCH, 3, 224, 224, device="cuda", dtype=torch.float16)
    y = torch.zeros(BATCH, dtype=torch.int64, device="cuda")
    contenders: dict[str, Callable[[], float]] = {"synthetic": lambda: _train(name, itertools.repeat((x, y)), WARM)}
    for threads, load in fed:
        warm = WARM if load != "auto" else WARM_AUTO
        contenders[f"{threads} threads, GPU decodes {load}"] = functools.partial(
            lambda t, g, w: _train(name, _loaded(files, t, g), w), threads, load, warm
        )
    rates: dict[str, list[float]] = {label: [] for label in contenders}
    for turn in range(TURNS):
        for label in contenders if turn % 2 == 0 else reversed(contenders):
            if turn == 0 or "auto" not in label:
                rates[label].append(contenders[label]())
    synthetic = statistics.median(rates.pop("synthetic"))
    print(f"\ntraining {name}, bf16, channels last: synthetic {synthetic:,.0f} images/s")
    for label, measured in rates.items():
        fed = statistics.median(measured)
        print(f"  {label:<32} {fed:>9,.0f}   {100 * fed / synthetic:.1f} %", flush=True)


def _train(name: str, batches: Iterable[tuple[Any, Any]], warm: int, steps: int = 80) -> float:
    import torch
    import torchvision

    torch.manual_seed(0)
    model = getattr(torchvision.models, name)().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    criterion = torch.nn.CrossEntropyLoss()
    start = 0.0
    for done, (x, y) in enumerate(itertools.islice(batches, warm + steps)):
        if done == warm:
            torch.cuda.synchronize()
            start = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            loss = criterion(model(x.to(memory_format=torch.channels_last)), y % 1000)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    return steps * BATCH / (time.perf_counter() - start)


def _loaded(files: list[str], threads: int, load: float | str) -> Iterator[tuple[Any, Any]]:
    from stoker.torch import Loader

    pipeline = make_pipeline("stoker", CHAIN, files, "gpu", threads, 3, load)
    with contextlib.closing(Loader(pipeline, last_batch_policy="drop")) as loader:
        try:
            while True:
                for images, labels in loader:
                    yield images, labels.cuda(non_blocking=True)
        finally:
            if load == "auto":
                print(f"  {threads} threads: {pipeline.report().decoding}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
