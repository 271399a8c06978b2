# SPDX-License-Identifier: Apache-2.0
"""A torchvision script, unchanged, compared with the same script and `stoker.torchvision` enabled."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.case import IMAGES_PER_S, MIB, Bar, Case, Contender, Loop, Sample
from benchmarks.data import Data
from benchmarks.torchvision_peer import declare_operators

ORDER = 15
BATCH = 256
EPOCH = 5120  # minimum number of files of an epoch: the timing contains few of a loader's epoch ends
CORES = 2
_LOOK_S = 0.02


def make_loader(data: Data, *, taken_over: bool, workers: int) -> Any:
    """Return the loader of the usual ImageNet script, changed only in its folder; files repeat to fill an epoch."""
    import torch

    declared = declare_operators(torch)
    import torchvision.datasets as datasets
    import torchvision.transforms as transforms

    if taken_over:
        import stoker.torchvision

        stoker.torchvision.enable()
    torch.set_num_threads(1)
    normalize = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    transform = transforms.Compose(
        [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(), normalize]
    )
    dataset = datasets.ImageFolder(class_folders(data), transform)
    dataset.samples *= -(-EPOCH // len(dataset.samples))
    dataset.declared = declared
    with warnings.catch_warnings():
        # warnings about fewer cores than workers, and about no device for pinned memory
        warnings.simplefilter("ignore")
        return torch.utils.data.DataLoader(
            dataset, batch_size=BATCH, shuffle=True, num_workers=workers, pin_memory=True
        )


def class_folders(data: Data) -> str:
    """Return the data as class folders for `ImageFolder`; a flat folder is linked as one class."""
    root = Path(data.root).resolve()
    if any(entry.is_dir() for entry in root.iterdir()):
        return str(root)
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.symlink(root, os.path.join(folder, "all"))
    return folder


def run_script(data: Data, *, taken_over: bool, workers: int) -> Loop:
    """Take batches, epoch after epoch."""
    loader = make_loader(data, taken_over=taken_over, workers=workers)

    def batches() -> Iterator[Any]:
        while True:
            yield from loader

    stream = batches()

    def step() -> tuple[int, float]:
        images, labels = next(stream)
        return len(labels), float(images.reshape(-1)[::509].sum()) + float(labels.sum())

    return Loop(step, warm=2 * workers + 1)


def measure_memory(data: Data, *, taken_over: bool, workers: int) -> Sample:
    """Return the peak memory of all processes together, in MiB, during a training loop."""
    loader = make_loader(data, taken_over=taken_over, workers=workers)

    def read() -> float:
        most = [0.0]
        stop = threading.Event()

        def look() -> None:
            while not stop.wait(_LOOK_S):
                most[0] = max(most[0], summed_pss_mib())

        thread = threading.Thread(target=look)
        thread.start()
        warnings.simplefilter("ignore")
        try:
            for at, (images, _) in enumerate(loader):
                images.sum()
                if at == 2 * workers + 8:  # prefetched batches are consumed
                    break
        finally:
            stop.set()
            thread.join()
        return most[0]

    return Sample(read)


def measure_imports(data: Data) -> Sample:
    """Return the memory of a process after the script's imports, in MiB: a lower bound."""
    make_loader(data, taken_over=False, workers=0)
    return Sample(summed_pss_mib)


def summed_pss_mib() -> float:
    """Return the proportional set size of this process and its children."""
    me = os.getpid()
    tasks = Path(f"/proc/{me}/task").iterdir()
    children = [child for task in tasks for child in (task / "children").read_text(encoding="ascii").split()]
    total_kib = 0
    for process in (str(me), *children):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
        except OSError:  # the child has ended
            continue
        total_kib += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total_kib / 1024


def _contenders(function: str, workers: int, cores: int) -> tuple[Contender, Contender]:
    options = {"workers": workers}
    return (
        Contender("two lines", function, {"taken_over": True, **options}, cores=cores),
        Contender("untouched", function, {"taken_over": False, **options}, cores=cores),
    )


CASES = (
    Case(
        "takeover",
        "A torchvision script, two lines against untouched, 2 workers on 2 cores",
        IMAGES_PER_S,
        _contenders("run_script", CORES, CORES),
        (Bar("rate over the untouched script's", "two lines", ("untouched",), at_least=3, goal=4),),
        note="`ImageFolder`, `RandomResizedCrop(224)`, `RandomHorizontalFlip`, `ToTensor`, `Normalize`, `DataLoader`, "
        "batches of 256. The processor time is that of the main process only.",
        seconds=4,
    ),
    Case(
        "takeover-core",
        "The same script without workers, one core",
        IMAGES_PER_S,
        _contenders("run_script", 0, 1),
        (Bar("rate over the untouched script's", "two lines", ("untouched",), at_least=4),),
        seconds=2,
    ),
    *(
        Case(
            f"takeover-memory-{workers}",
            f"The same script's memory, all processes together, {workers} workers",
            MIB,
            (*_contenders("measure_memory", workers, CORES), Contender("its imports alone", "measure_imports", {})),
            (Bar("memory of the untouched script's", "two lines", ("untouched",), at_most=0.5),),
            note=f"The largest sum of proportional set sizes (PSS), read every 20 ms over {2 * workers + 9} batches of "
            "147 MiB. A loop that takes the next batch holds two of them, with any loader.",
        )
        for workers in (2, 8)
    ),
)
