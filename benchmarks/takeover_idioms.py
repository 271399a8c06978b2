# SPDX-License-Identifier: Apache-2.0
"""Time of the take-over for idioms of public scripts, in pairs that take turns.

    PYTHONPATH=.:tests python -m benchmarks.takeover_idioms [chain kept truncated processors presets] [--turns 20]
        [--data FOLDER]

Photographs are synthetic, or with `--data` the JPEG files of a folder, of which processors get 16.
Processor time does not depend on other programs as wall-clock time does; the least time of all turns is compared.
Loaders with workers are compared in wall-clock time: run them on an otherwise idle machine.

- `chain`: the plain ImageNet chain, without Stoker and taken over, with 0 and 2 workers, from photographs of two sizes.
- `kept`: later epochs of a data set that keeps its tensors, without Stoker and taken over, with 0 and 2 workers.
- `truncated`: the plain ImageNet chain with and without `ImageFile.LOAD_TRUNCATED_IMAGES = True`, both taken over.
- `processors`: image processors of transformers, without Stoker and taken over, from files and from decoded images.
- `presets`: loaders of torchvision's detection and segmentation references with 2 workers, with and without masks.
"""

from __future__ import annotations

import argparse
import functools
import io
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from photographs import photograph
from PIL import Image, ImageFile

import tests.takeover.declared  # noqa: F401
from benchmarks.data import Data

from torchvision import datasets, transforms  # isort: skip

import stoker.torchvision
from tests.takeover.recipes import presets

COUNT = 16  # photographs of 640x480
PROCESSORS: dict[str, tuple[str, dict[str, Any]]] = {
    "CLIP": ("CLIPImageProcessor", {}),
    "SigLIP": ("SiglipImageProcessor", {}),
    "ViT": ("ViTImageProcessor", {}),
    "DINOv2": ("BitImageProcessor", {"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}}),
    "Qwen2-VL": ("Qwen2VLImageProcessor", {}),
    "DETR": ("DetrImageProcessor", {}),
}


def _files(data: Path | None, height: int = 480, width: int = 640) -> list[bytes]:
    """Return the files of a folder, or without one synthetic photographs of a size in pixels."""
    if data:
        return Data(data).read()
    files = []
    for number in range(COUNT):
        file = io.BytesIO()
        Image.fromarray(photograph(number, height, width)).save(file, "JPEG", quality=90)
        files.append(file.getvalue())
    return files


def _seconds(work: Callable[[], object]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin


CHAIN = transforms.Compose(
    [
        transforms.RandomResizedCrop(224),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
    ]
)


def _write_folder(folder: str, files: list[bytes], count: int) -> None:
    """Write a class folder of at least `count` files."""
    (Path(folder) / "class").mkdir()
    for copy in range(-(-count // len(files))):
        for number, data in enumerate(files):
            (Path(folder) / "class" / f"{copy}_{number}.jpg").write_bytes(data)


def compare_chain(turns: int, data: Path | None) -> None:
    """Print the wall-clock time per image of the ImageNet chain, without Stoker and taken over."""
    for height, width in ((480, 640), (375, 500)) if data is None else ((0, 0),):
        with tempfile.TemporaryDirectory() as folder:
            files = _files(data, height, width)
            _write_folder(folder, files, 256)
            kind = f"{width}x{height}" if data is None else f"{len(files)} photographs"
            size = sum(map(len, files)) / len(files) / 1e3
            for workers in (0, 2):
                make = functools.partial(_loader, datasets.ImageFolder(folder, CHAIN), workers)
                _compare(f"ImageNet chain, {kind}, {size:.0f} kB, {workers} workers", make, turns)


class _Kept(torch.utils.data.Dataset[torch.Tensor]):
    """Data set that keeps its tensors."""

    def __init__(self, root: str) -> None:
        self.data = datasets.ImageFolder(root, CHAIN)
        self.kept: dict[int, torch.Tensor] = {}

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> torch.Tensor:
        if index not in self.kept:
            self.kept[index] = self.data[index][0]
        return self.kept[index]


def compare_kept(turns: int, data: Path | None) -> None:
    """Print the wall-clock time per image of later epochs of a data set that keeps its tensors."""
    with tempfile.TemporaryDirectory() as folder:
        _write_folder(folder, _files(data), 128)
        for workers in (0, 2):
            _compare(f"kept tensors, {workers} workers", lambda count=workers: _loader(_Kept(folder), count), turns)


def _loader(data: Any, workers: int) -> Any:
    return torch.utils.data.DataLoader(data, batch_size=32, num_workers=workers, persistent_workers=workers > 0)


def compare_truncated(turns: int, data: Path | None) -> None:
    """Print the processor time of an epoch for both settings, and the median of the ratios of neighbouring turns."""
    with tempfile.TemporaryDirectory() as folder, stoker.torchvision.enabled():
        _write_folder(folder, _files(data), 128)
        loader = torch.utils.data.DataLoader(datasets.ImageFolder(folder, CHAIN), batch_size=64, num_workers=0)

        def epoch(lenient: bool) -> float:
            torch.manual_seed(0)
            ImageFile.LOAD_TRUNCATED_IMAGES = lenient
            return _seconds(lambda: [None for _ in loader])

        for lenient in (False, True):
            epoch(lenient)
        pairs = []
        for turn in range(turns):
            first = bool(turn % 2)
            times = {lenient: epoch(lenient) for lenient in (first, not first)}
            pairs.append((times[False], times[True]))
        ImageFile.LOAD_TRUNCATED_IMAGES = False
    plain, lenient = (min(times) / len(loader.dataset) * 1e3 for times in zip(*pairs, strict=True))
    ratio = statistics.median(b / a for a, b in pairs)
    print(f"truncated idiom: {plain:.3f} ms plain, {lenient:.3f} ms with the idiom per image, median ratio {ratio:.3f}")


def compare_processors(turns: int, data: Path | None) -> None:
    """Print the processor time per image of each processor, without Stoker and taken over."""
    import transformers

    files = _files(data)[:COUNT]
    box = {"category_id": 3, "bbox": [10.0, 20.0, 100.0, 90.5], "area": 9000.0, "iscrowd": 0}
    boxes = {"annotations": [{"image_id": at, "annotations": [box]} for at in range(COUNT)]}

    def call(processor: Any, decoded: bool, options: Any) -> float:
        images = [Image.open(io.BytesIO(data)) for data in files]
        for image in images if decoded else []:
            image.load()
        return _seconds(lambda: processor(images=images, return_tensors="pt", **options))

    for name, (kind, settings) in PROCESSORS.items():
        processor = getattr(transformers, kind)(**settings)
        options = boxes if name == "DETR" else {}
        for decoded in (False, True):
            untouched, ours = [], []
            for _ in range(turns):
                untouched.append(call(processor, decoded, options))
                with stoker.torchvision.enabled():
                    ours.append(call(processor, decoded, options))
            one, other = min(untouched) / COUNT * 1e3, min(ours) / COUNT * 1e3
            source = "decoded images" if decoded else "files"
            print(f"{name}, {source}: {one:.2f} ms, taken over {other:.2f} ms, {one / other:.1f} times")


def compare_presets(turns: int, data: Path | None) -> None:
    """Print the wall-clock time per image of each preset with 2 workers, without Stoker and taken over."""
    with tempfile.TemporaryDirectory() as folder:
        files = _files(data)
        for number in range(4 * COUNT):
            (Path(folder) / f"{number:02}.jpg").write_bytes(files[number % len(files)])
        for backend in presets.BACKENDS:
            for policy in presets.POLICIES:
                for parts in ((), ("masks",)):
                    make = functools.partial(presets.detection, folder, 2, policy, backend, parts=parts)
                    name = f"{policy}, {backend}{', masks' if parts else ''}"
                    _compare(name, lambda make=make: _with_persistent_workers(make()), turns)
            make = functools.partial(presets.segmentation, folder, 2, backend)
            _compare(f"segmentation, {backend}", lambda make=make: _with_persistent_workers(make()), turns)


def _compare(name: str, make: Callable[[], Any], turns: int) -> None:
    """Compare epochs of two loaders, whose workers stay from epoch to epoch; the first epoch is not compared."""

    def epoch(loader: Any) -> float:
        begin = time.monotonic()
        for _ in loader:
            pass
        return (time.monotonic() - begin) / len(loader.dataset) * 1e3

    untouched, ours = (make() for _ in range(2))
    times: list[tuple[float, float]] = []
    for _ in range(turns + 1):  # the first epoch starts the workers, and fills caches
        one = epoch(untouched)
        with stoker.torchvision.enabled():
            times.append((one, epoch(ours)))
    one, other = (min(column) for column in zip(*times[1:], strict=True))
    print(f"{name}: {one:.2f} ms, taken over {other:.2f} ms, {one / other:.2f} times", flush=True)


def _with_persistent_workers(loader: Any) -> Any:
    settings = {"batch_size": 4, "shuffle": True, "num_workers": loader.num_workers, "collate_fn": loader.collate_fn}
    return torch.utils.data.DataLoader(loader.dataset, persistent_workers=True, **settings)


COMPARISONS = {
    "chain": compare_chain,
    "kept": compare_kept,
    "truncated": compare_truncated,
    "processors": compare_processors,
    "presets": compare_presets,
}


def main() -> None:
    """Run the chosen comparisons."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="*", default=["truncated", "processors"])
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    np.random.seed(0)
    warnings.simplefilter("ignore")
    for what in options.what:
        COMPARISONS[what](options.turns, options.data)


if __name__ == "__main__":
    main()
