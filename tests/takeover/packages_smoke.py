# SPDX-License-Identifier: Apache-2.0
"""Packages that load images: with the take-over their batches and trained weights are equal, bit for bit.

`make test-packages` runs these tests in an environment of its own.
"""

from __future__ import annotations

import io
import os
import random
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from photographs import photograph
from PIL import Image

import stoker.torchvision
import tests.takeover.declared  # noqa: F401
from stoker.frontends.torchvision import counts
from tests.takeover.conftest import exactly

import torchvision.transforms as transforms  # isort: skip

os.environ.setdefault("YOLO_OFFLINE", "true")
os.environ.setdefault("YOLO_AUTOINSTALL", "false")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes of ordinary photographs, for training and validation."""
    root = tmp_path_factory.mktemp("packages")
    for part in ("train", "val"):
        for c, name in enumerate(("ant", "bee")):
            (root / part / name).mkdir(parents=True)
            for i in range(6):
                Image.fromarray(photograph(6 * c + i, 90 + 7 * i, 120)).save(root / part / name / f"{i}.jpg")
    return root


def _seed() -> None:
    torch.manual_seed(5)
    random.seed(5)
    np.random.seed(5)


def compare(run: Callable[[], Any], *, is_recorded: bool = True) -> None:
    """Compare the tensors that ``run`` returns untouched and taken over."""
    _seed()
    untouched = run()
    counts.reset()
    _seed()
    with stoker.torchvision.enabled():
        taken_over = run()
    assert len(untouched) == len(taken_over) > 0
    for a, b in zip(untouched, taken_over, strict=True):
        assert type(a) is type(b)
        exactly(a.detach(), b.detach())
    if is_recorded:
        assert counts.totals()[counts.NATIVE] > 0


@pytest.mark.parametrize("workers", [0, 2])
def test_timm(files: Path, workers: int) -> None:
    from timm.data import ImageDataset, create_loader

    def run() -> list[torch.Tensor]:
        loader = create_loader(
            ImageDataset(str(files / "train")), (3, 64, 64), 4, is_training=True, use_prefetcher=False,
            auto_augment="rand-m9-mstd0.5-inc1", re_prob=0.25, num_workers=workers, persistent_workers=False,
            device=torch.device("cpu"),
        )  # fmt: skip
        return [x for batch in loader for x in batch]

    compare(run)


@pytest.mark.parametrize("workers", [0, 2])
def test_fastai(files: Path, workers: int) -> None:
    from fastai.vision.all import ImageDataLoaders, PILImage, Resize, aug_transforms

    def run() -> list[torch.Tensor]:
        loaders = ImageDataLoaders.from_folder(
            files, train="train", valid="val", seed=3, item_tfms=Resize(64), batch_tfms=aug_transforms(size=48), bs=4,
            num_workers=workers, device=torch.device("cpu"),
        )  # fmt: skip
        _seed()
        image = PILImage.create(files / "train" / "ant" / "0.jpg")
        batches = [*loaders.valid, loaders.one_batch()]
        return [torch.from_numpy(np.array(image)), *(x.as_subclass(torch.Tensor) for batch in batches for x in batch)]

    compare(run, is_recorded=False)


def _train_set(files: Path) -> Any:
    from torchvision.datasets import ImageFolder

    steps = [transforms.RandomResizedCrop(48), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
    return ImageFolder(str(files / "train"), transforms.Compose(steps))


def _model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, 2), torch.nn.Flatten(), torch.nn.LazyLinear(2))


def test_lightning(files: Path, tmp_path: Path) -> None:
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = _model()
            self.model(torch.zeros(1, 3, 48, 48))

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            return torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    def run() -> list[torch.Tensor]:
        lightning.seed_everything(4, verbose=False)
        module = Module()
        loader = torch.utils.data.DataLoader(_train_set(files), 4, shuffle=True, num_workers=2)
        trainer = lightning.Trainer(
            max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
            enable_model_summary=False, default_root_dir=str(tmp_path),
        )  # fmt: skip
        trainer.fit(module, loader)
        return list(module.parameters())

    compare(run)


def test_accelerate(files: Path) -> None:
    from accelerate import Accelerator

    def run() -> list[torch.Tensor]:
        accelerator = Accelerator(cpu=True)
        model = _model()
        model(torch.zeros(1, 3, 48, 48))
        loader = torch.utils.data.DataLoader(_train_set(files), 4, shuffle=True, num_workers=2)
        model, optimizer, loader = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1), loader)
        for images, labels in loader:
            accelerator.backward(torch.nn.functional.cross_entropy(model(images), labels))
            optimizer.step()
            optimizer.zero_grad()
        return list(accelerator.unwrap_model(model).parameters())

    compare(run)


@pytest.mark.parametrize("workers", [0, 2])
def test_open_clip_with_webdataset(files: Path, tmp_path: Path, workers: int) -> None:
    import webdataset as wds
    from open_clip.transform import image_transform

    shard = tmp_path / "shard-000.tar"
    with tarfile.open(shard, "w") as tar:
        for number, file in enumerate(sorted(files.rglob("*.jpg"))):
            for name, data in ((f"{number:03}.jpg", file.read_bytes()), (f"{number:03}.txt", b"a photograph")):
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                tar.addfile(entry, io.BytesIO(data))

    def run() -> list[torch.Tensor]:
        data = wds.DataPipeline(
            wds.SimpleShardList([str(shard)] * max(workers, 1)), wds.split_by_worker, wds.tarfile_to_samples(),
            wds.decode("pilrgb"), wds.rename(image="jpg", text="txt"),
            wds.map_dict(image=image_transform(64, is_train=False), text=len), wds.to_tuple("image", "text"),
            wds.batched(4),
        )  # fmt: skip
        loader = wds.WebLoader(data, batch_size=None, shuffle=False, num_workers=workers)
        return [torch.as_tensor(x) for batch in loader for x in batch]

    compare(run)


@pytest.mark.parametrize("workers", [0, 2])
def test_ultralytics_classification(files: Path, workers: int) -> None:
    from ultralytics.cfg import get_cfg
    from ultralytics.data import ClassificationDataset
    from ultralytics.data.build import build_dataloader

    def run() -> list[torch.Tensor]:
        data = ClassificationDataset(str(files / "train"), get_cfg(overrides={"imgsz": 64}), augment=True)
        loader = build_dataloader(data, 4, workers, shuffle=False, rank=-1)
        return [batch[key] for batch, _ in zip(loader, range(3), strict=False) for key in ("img", "cls")]

    compare(run, is_recorded=False)


class _Normalized(torch.nn.Module):
    def __init__(self, *, is_exported: bool) -> None:
        super().__init__()
        # torch.export refuses Normalize, which tests its own values
        self.normalize = torch.nn.Identity() if is_exported else transforms.Normalize([0.5] * 3, [0.2] * 3)
        self.model = torch.nn.Conv2d(3, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(torch.flip(self.normalize(x), [-1])).relu()


@pytest.mark.leaks("torch keeps the threads of its compilers")
@pytest.mark.parametrize("how", ["compile", "inductor", "export", "script", "trace"])
def test_compilers(files: Path, how: str) -> None:
    """A model is compiled while an iterator of a loader is open, and after it."""

    def run() -> list[torch.Tensor]:
        _seed()
        model, example, results = _Normalized(is_exported=how == "export").eval(), torch.rand(2, 3, 48, 48), []
        iterator = iter(torch.utils.data.DataLoader(_train_set(files), 2, num_workers=2))
        images, _ = next(iterator)
        compiled: Any
        if how in ("compile", "inductor"):
            torch._dynamo.reset()
            compiled = torch.compile(model, backend="aot_eager" if how == "compile" else "inductor")
        elif how == "export":
            compiled = torch.export.export(model, (example,)).run_decompositions().module()
        elif how == "script":
            compiled = torch.jit.script(model)
            torch.jit.script(torch.nn.Sequential(transforms.RandomCrop(32), transforms.ConvertImageDtype(torch.float)))
        else:
            compiled = torch.jit.trace(model, example)
        with torch.no_grad():
            results.append(compiled(images))
            results += [compiled(images) for images, _ in iterator if len(images) == 2]
        return results

    compare(run)
