# SPDX-License-Identifier: Apache-2.0
"""``Loader`` in PyTorch Lightning: a training that stops in the middle of an epoch resumes with the remaining rows.

`make lightning` runs this test; the other tests do not need Lightning.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch

from stoker.torch import Loader
from tests.run.pipelines import files_of, training

pytestmark = pytest.mark.filterwarnings("ignore")


class Model(pl.LightningModule):
    """Model that records the rows that it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3 * 16 * 16, 1)
        self.rows: list[tuple[int, bytes]] = []
        self.saved_at = 0

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        images, labels = batch
        self.rows += [(int(y), x.numpy().tobytes()) for x, y in zip(images, labels, strict=True)]
        return self.layer(images.flatten(1)).mean()

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=0.0)


class SaveAfter(pl.Callback):
    """Callback that saves after this many steps. Later steps are lost, as in a killed process."""

    def __init__(self, steps: int, path: Path) -> None:
        self._steps = steps
        self._path = path

    def on_train_batch_end(self, trainer: pl.Trainer, module: Any, *_: Any) -> None:
        if trainer.global_step == self._steps:
            trainer.save_checkpoint(self._path)
            module.saved_at = len(module.rows)


def trainer(folder: Path, **limits: Any) -> pl.Trainer:
    return pl.Trainer(
        default_root_dir=folder, accelerator="cpu", logger=False, enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False, **limits,
    )  # fmt: skip


@pytest.mark.parametrize("steps", [1, 3, 4, 5, 6])
def test_a_training_resumes_in_the_middle_of_an_epoch(steps: int, jpegs: Path, tmp_path: Path) -> None:
    files = files_of(jpegs)[:17]  # four batches per epoch
    whole = Model()
    loader = Loader(training(files))
    trainer(tmp_path, max_epochs=3).fit(whole, loader)
    loader.close()
    assert len(whole.rows) == 51

    first, loader = Model(), Loader(training(files))
    trainer(tmp_path, max_epochs=2, callbacks=[SaveAfter(steps, tmp_path / "saved.ckpt")]).fit(first, loader)
    loader.close()
    before = first.rows[: first.saved_at]
    second, loader = Model(), Loader(training(files, num_threads=1))
    trainer(tmp_path, max_epochs=3).fit(second, loader, ckpt_path=tmp_path / "saved.ckpt", weights_only=False)
    loader.close()
    assert [y for y, _ in [*before, *second.rows]] == [y for y, _ in whole.rows]
    assert [*before, *second.rows] == whole.rows


def test_a_training_resumes_after_whole_epochs(jpegs: Path, tmp_path: Path) -> None:
    """Lightning does not restore loaders after a whole epoch. It sets the number of the next epoch."""
    files = files_of(jpegs)[:17]
    whole, loader = Model(), Loader(training(files))
    trainer(tmp_path, max_epochs=3).fit(whole, loader)
    loader.close()
    first, loader = Model(), Loader(training(files))
    stopped = trainer(tmp_path, max_epochs=1)
    stopped.fit(first, loader)
    stopped.save_checkpoint(tmp_path / "saved.ckpt")
    loader.close()
    second, loader = Model(), Loader(training(files))
    trainer(tmp_path, max_epochs=3).fit(second, loader, ckpt_path=tmp_path / "saved.ckpt", weights_only=False)
    loader.close()
    assert [*first.rows, *second.rows] == whole.rows
