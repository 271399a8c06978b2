# SPDX-License-Identifier: Apache-2.0
"""A Lightning data module with a resumable loader, trained by two processes.

``python tests/takeover/recipes/with_lightning.py FILES [--stoker]`` prints the same report as ``distributed.py``.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
import warnings
from typing import Any

import torch

import tests.takeover.declared  # noqa: F401

if "--stoker" in sys.argv:
    import stoker.torchvision

    stoker.torchvision.enable()

import lightning

import torchvision.datasets as datasets  # isort: skip
import torchvision.transforms as transforms  # isort: skip
from torchdata.stateful_dataloader import StatefulDataLoader

from tests.takeover.recipes.distributed import report


class Data(lightning.LightningDataModule):
    """Data module of the files."""

    def __init__(self, root: str) -> None:
        super().__init__()
        self.root = root

    def setup(self, stage: str) -> None:
        steps = [transforms.RandomResizedCrop(160), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
        self.dataset = datasets.ImageFolder(self.root, transforms.Compose(steps))

    def train_dataloader(self) -> Any:
        return StatefulDataLoader(self.dataset, batch_size=8, shuffle=True, num_workers=2)


class Model(lightning.LightningModule):
    """Small model that also computes a digest of its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)
        self.digest = hashlib.sha256()

    def training_step(self, batch: Any, index: int) -> Any:
        images, labels = batch
        self.digest.update(images.numpy().tobytes() + labels.numpy().tobytes())
        return self.layer(images.mean(dim=(2, 3))).square().mean()

    def on_train_end(self) -> None:
        self.result = self.digest.hexdigest()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), 0.01)


def main(root: str) -> None:
    """Train two epochs."""
    warnings.simplefilter("ignore")
    lightning.seed_everything(5, verbose=False)
    model = Model()
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=2,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tempfile.gettempdir(),
    )
    trainer.fit(model, Data(root))
    report(model.result)


if __name__ == "__main__":
    main(sys.argv[1])
