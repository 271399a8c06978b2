# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.takeover_gpu``: a torchvision script untouched, and with two lines, on a machine with a GPU.

The script is the usual ImageNet one, unchanged except for the folder: `RandomResizedCrop(224)`, flip, `ToTensor`,
`Normalize`, batches of 256, `pin_memory=True`. Contenders run in alternation, each in its own process, over shuffled
epochs of 131,072 samples, because a loader's workers end with an epoch. A comparison of both contenders' batches, bit
for bit, comes first.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.gpu_data import add_arguments, describe, make_files
from benchmarks.gpu_pipelines import BATCH
from benchmarks.gpu_training import WARM, train
from benchmarks.torchvision_peer import declare_operators

EPOCH = 131_072  # at an epoch's end all workers end, and new ones start
MODES = ("untouched", "cpu", "cuda")
TURNS = 2
_COMPARED = 6
_CHILD_SECONDS = os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Parse the command line and measure, or serve as one contender's process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.takeover_gpu", description=__doc__.split("\n")[0])
    add_arguments(parser, seconds=5)
    parser.add_argument("--workers", type=int, nargs="*", default=[16], help="workers of the script")
    parser.add_argument("--models", nargs="*", default=["resnet18", "shufflenet_v2_x1_0"], help="models to train")
    parser.add_argument("--only", nargs="*", choices=("bits", "rates", "training"), help="only these measurements")
    parser.add_argument(
        "--modes", nargs="*", default=list(MODES), choices=MODES, help="only these contenders, where rates are measured"
    )
    parser.add_argument("--turns", type=int, default=TURNS, help="measurements of each contender")
    parser.add_argument(
        "--all-threads", action="store_true", help="also train with all threads at all times, whatever the pace is"
    )
    arguments = parser.parse_args()
    if arguments.contender:
        print(json.dumps(serve(json.loads(arguments.contender))))
        return 0
    describe(make_files(arguments.data, arguments.work, arguments.files))
    wanted = arguments.only or ("bits", "rates", "training")
    if "bits" in wanted:
        compare(arguments)
    if "rates" in wanted:
        measure_rates(arguments)
    if "training" in wanted:
        for model in arguments.models:
            for workers in arguments.workers:
                measure_training(arguments, model, workers)
    return 0


def _classes(work: Path) -> Path:
    """Return a folder with one class folder, for `ImageFolder`."""
    root = work.with_name(work.name + "-classes")
    root.mkdir(exist_ok=True)
    if not (root / "all").exists():
        (root / "all").symlink_to(work)
    return root


# ---- the contenders' processes ----


def make_loader(spec: dict[str, Any]) -> Any:
    """Return the script's loader; ``mode`` is "untouched", or the device on which the take-over delivers."""
    import torch

    declared = declare_operators(torch)
    import torchvision.datasets as datasets
    import torchvision.transforms as transforms

    if spec["mode"] != "untouched":
        import stoker.torchvision

        stoker.torchvision.enable(spec["mode"])
    normalize = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    transform = transforms.Compose(
        [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(), normalize]
    )
    train_dataset = datasets.ImageFolder(str(_classes(Path(spec["work"]))), transform)
    train_dataset.samples *= -(-EPOCH // len(train_dataset.samples))
    train_dataset.declared = declared
    return torch.utils.data.DataLoader(
        train_dataset, batch_size=BATCH, shuffle=True, num_workers=spec["workers"], pin_memory=True, drop_last=True
    )


def serve(spec: dict[str, Any]) -> dict[str, Any]:
    """Serve as a contender."""
    warnings.simplefilter("ignore")
    import torch

    torch.manual_seed(3)
    if spec["what"] == "training" and spec["mode"] == "synthetic":
        batch = (torch.randn(BATCH, 3, 224, 224, device="cuda"), torch.zeros(BATCH, dtype=torch.int64, device="cuda"))
        return {"rate": train(spec["model"], itertools.repeat(batch), WARM)}
    loader = make_loader(spec)
    if spec.get("all_threads"):
        ignore_pace()
    if spec["what"] == "bits":
        return {"batches": [_digest(x, y) for x, y in itertools.islice(loader, _COMPARED)]}
    if spec["what"] == "training":
        return {"rate": train(spec["model"], _on_gpu(loader), WARM), **_counts(spec)}
    return {**_rate(loader, spec["seconds"], spec["workers"]), **_counts(spec)}


def ignore_pace() -> None:
    """Let all threads work at all times, as if the consumer always waited for its batches."""
    from stoker.frontends.torchvision.loader.pace import Pace

    def deliver(pace: Pace, work_s: float) -> int:
        return pace.most

    Pace.deliver = deliver  # type: ignore[method-assign]


def _digest(images: Any, labels: Any) -> str:
    return hashlib.sha256(images.cpu().numpy().tobytes() + labels.cpu().numpy().tobytes()).hexdigest()


def _on_gpu(loader: Any) -> Iterator[tuple[Any, Any]]:
    """Yield batches epoch after epoch, like a training script."""
    while True:
        for images, target in loader:
            yield images.cuda(non_blocking=True), target.cuda(non_blocking=True)


def _rate(loader: Any, seconds: float, workers: int) -> dict[str, float]:
    import torch

    stream = _on_gpu(loader)
    total = torch.zeros((), device="cuda")
    for _ in range(3 * max(1, workers)):  # batches that were prefetched during the first one
        images, target = next(stream)
        total += images.sum() + target.sum()
    torch.cuda.synchronize()
    rows, start, main, children = 0, time.perf_counter(), _own_s(), _children_s()
    while time.perf_counter() - start < seconds:
        images, target = next(stream)
        total += images.sum() + target.sum()
        rows += len(target)
    torch.cuda.synchronize()
    wall = time.perf_counter() - start
    return {
        "rate": rows / wall,
        "main_us": (_own_s() - main) / rows * 1e6,
        "workers_us": (_children_s() - children) / rows * 1e6,
        "memory_gib": torch.cuda.max_memory_reserved() / 2**30,
    }


def _own_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _children_s() -> float:
    """Return the processor time of the workers, including those that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = 0
    for task in Path("/proc/self/task").iterdir():
        for child in (task / "children").read_text(encoding="ascii").split():
            fields = Path(f"/proc/{child}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return used.ru_utime + used.ru_stime + ticks / _CHILD_SECONDS


def _counts(spec: dict[str, Any]) -> dict[str, Any]:
    if spec["mode"] == "untouched":
        return {}
    import stoker.torchvision

    return {"counts": stoker.torchvision.report().counts}


# ---- the measurements ----


def run(arguments: argparse.Namespace, **spec: Any) -> dict[str, Any]:
    """Run one contender in its own process."""
    text = json.dumps({"work": str(arguments.work), "seconds": arguments.seconds, "workers": 16, **spec})
    command = [sys.executable, "-m", "benchmarks.takeover_gpu", "--data", str(arguments.data), "--contender", text]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{spec} failed:\n{done.stderr[-3000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def compare(arguments: argparse.Namespace) -> None:
    """Compare the batches of both by their digests."""
    modes = [mode for mode in arguments.modes if mode != "untouched"]
    untouched = run(arguments, what="bits", mode="untouched")["batches"]
    for mode in modes:
        batches = run(arguments, what="bits", mode=mode)["batches"]
        same = sum(a == b for a, b in zip(untouched, batches, strict=True))
        print(f"bits: {same} of {len(untouched)} batches of {BATCH} equal the untouched script's, device {mode!r}")


def measure_rates(arguments: argparse.Namespace) -> None:
    """Print images per second, and their cost."""
    for workers in arguments.workers:
        results: dict[str, list[dict[str, Any]]] = {mode: [] for mode in arguments.modes}
        for turn in range(arguments.turns):
            for mode in results if turn % 2 == 0 else reversed(results):
                results[mode].append(run(arguments, what="rates", mode=mode, workers=workers))
        print(f"\nimages/s, {workers} workers   main us/image   workers us/image   GPU memory GiB")
        for mode, measured in results.items():
            middle = {key: statistics.median(m[key] for m in measured) for key in measured[0] if key != "counts"}
            spread = f"({min(m['rate'] for m in measured):,.0f} to {max(m['rate'] for m in measured):,.0f})"
            print(
                f"  {mode:<10} {middle['rate']:>9,.0f} {spread:<20} {middle['main_us']:>8.0f} "
                f"{middle['workers_us']:>8.0f} {middle['memory_gib']:>8.2f}   {measured[0].get('counts', '')}",
                flush=True,
            )


def measure_training(arguments: argparse.Namespace, model: str, workers: int) -> None:
    """Print images per second of training: on synthetic input, and with each contender, in alternation."""
    modes: dict[str, dict[str, Any]] = {"synthetic": {"mode": "synthetic"}}
    modes |= {mode: {"mode": mode} for mode in arguments.modes if mode != "cpu"}
    if arguments.all_threads:
        modes["cuda, all threads"] = {"mode": "cuda", "all_threads": True}
    rates: dict[str, list[float]] = {name: [] for name in modes}
    for turn in range(arguments.turns):
        for name in modes if turn % 2 == 0 else reversed(modes):
            done = run(arguments, what="training", model=model, workers=workers, **modes[name])
            rates[name].append(done["rate"])
    print(f"\ntraining {model}, bf16, channels last, batch {BATCH}, {workers} workers: images/s")
    whole = statistics.median(rates["synthetic"])
    for name, measured in rates.items():
        spread = f"({min(measured):,.0f} to {max(measured):,.0f})"
        rate = statistics.median(measured)
        print(f"  {name:<18} {rate:>9,.0f} {spread:<18} {100 * rate / whole:.1f} %", flush=True)


if __name__ == "__main__":
    sys.exit(main())
