# SPDX-License-Identifier: Apache-2.0
"""``Loader`` in PyTorch Lightning: fit with a validation loader, validate, resume in an epoch, two processes.

`make trainers` runs this test in an environment of its own.
"""

from __future__ import annotations

import tests.takeover.declared  # noqa: F401  # makes torchvision's library loadable, before others import it

# isort: split

import json
import os
import sys
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import pytest
import torch

from stoker.torch import Loader
from tests.frameworks.loops import run_alone, run_ranks
from tests.run.pipelines import files_of, training

pytestmark = pytest.mark.filterwarnings("ignore")


class Model(pl.LightningModule):
    """Model that records the rows that it is trained on."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3 * 16 * 16, 1)
        self.rows: list[tuple[int, bytes]] = []
        self.validated: list[int] = []
        self.saved_at = 0

    def training_step(self, batch: Any, number: int) -> torch.Tensor:
        images, labels = batch
        self.rows += [(int(y), x.numpy().tobytes()) for x, y in zip(images, labels, strict=True)]
        return self.layer(images.flatten(1)).mean()

    def validation_step(self, batch: Any, number: int) -> None:
        self.validated += batch[1].tolist()

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


def test_fit_and_validate_with_a_validation_loader(jpegs: Path, tmp_path: Path) -> None:
    files = files_of(jpegs)[:17]
    model, train = Model(), Loader(training(files))
    held_out = Loader(training(files, shuffle=False), last_batch_policy="partial")
    trainer(tmp_path, max_epochs=2).fit(model, train, held_out)
    assert sorted(y for y, _ in model.rows[:17]) == sorted(y for y, _ in model.rows[17:]) == list(range(17))
    sanity = model.validated[:10]  # Lightning validates two batches before it trains
    assert sanity == list(range(10)) and model.validated[10:] == [*range(17), *range(17)]
    model.validated.clear()
    trainer(tmp_path).validate(model, held_out)
    assert model.validated == list(range(17))
    train.close()
    held_out.close()


def test_two_processes(jpegs: Path, tmp_path: Path) -> None:
    run_ranks("tests.frameworks.lightning_loops", str(jpegs), str(tmp_path))
    shares = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    for epoch in range(2):
        rows = [row for share in shares for row in share["trained"][9 * epoch : 9 * epoch + 9]]
        assert sorted(set(rows)) == list(range(17)) and len(rows) == 18, "equal numbers of steps"
    assert sorted(shares[0]["validated"] + shares[1]["validated"]) == list(range(17)), "each row once"


def test_two_processes_that_lightning_starts(jpegs: Path, tmp_path: Path) -> None:
    run_alone("tests.frameworks.lightning_loops", str(jpegs), str(tmp_path), "hook")
    shares = [json.loads((tmp_path / f"own{rank}.json").read_text()) for rank in range(2)]
    for epoch in range(2):
        rows = [row for share in shares for row in share[9 * epoch : 9 * epoch + 9]]
        assert sorted(set(rows)) == list(range(17)) and len(rows) == 18, "equal numbers of steps"


def test_a_loader_that_is_older_than_lightnings_processes_is_refused(jpegs: Path, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"got 0 of 2\. Build the pipeline after the processes have started"):
        run_alone("tests.frameworks.lightning_loops", str(jpegs), str(tmp_path), "early")


class OwnLoader(Model):
    """Model that builds its loader in the process that uses it."""

    def __init__(self, files: list[str]) -> None:
        super().__init__()
        self.files = files

    def train_dataloader(self) -> Loader:
        return Loader(training(self.files, shards="launcher"))


def main_alone(root: str, folder: str, how: str) -> None:
    """Run the program of which Lightning starts the second process."""
    files = files_of(Path(root))[:17]
    model = OwnLoader(files) if how == "hook" else Model()
    loaders = () if how == "hook" else (Loader(training(files, shards="launcher")),)
    run = trainer(Path(folder), max_epochs=2, strategy="ddp", devices=2)
    run.fit(model, *loaders)
    (Path(folder) / f"own{run.global_rank}.json").write_text(json.dumps([y for y, _ in model.rows]))


def main(root: str, folder: str) -> None:
    """Run one rank of :func:`test_two_processes`."""
    files, model = files_of(Path(root))[:17], Model()
    train = Loader(training(files, num_shards=2, shard_id=int(os.environ["RANK"])))
    held_out = Loader(
        training(files, shuffle=False, num_shards=2, shard_id=int(os.environ["RANK"])), last_batch_policy="partial"
    )
    ranks = {"strategy": "ddp", "devices": 2}
    trainer(Path(folder), max_epochs=2, num_sanity_val_steps=0, limit_val_batches=0, **ranks).fit(model, train)
    trainer(Path(folder), **ranks).validate(model, held_out)
    found = {"trained": [y for y, _ in model.rows], "validated": model.validated}
    (Path(folder) / f"{os.environ['RANK']}.json").write_text(json.dumps(found))
    train.close()
    held_out.close()


if __name__ == "__main__":
    (main_alone if len(sys.argv) == 4 else main)(*sys.argv[1:])
