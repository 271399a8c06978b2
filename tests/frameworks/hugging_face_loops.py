# SPDX-License-Identifier: Apache-2.0
"""``Loader`` in Hugging Face's ``Trainer``: train, evaluate, resume from a checkpoint, two processes.

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

import pytest
import torch
from transformers import Trainer, TrainerCallback, TrainingArguments

from stoker.torch import Loader
from tests.frameworks.loops import COLUMNS, Recording, make_loader, run_ranks
from tests.run.pipelines import files_of

ROWS, BATCHES = 17, 4


class LoaderTrainer(Trainer):
    """Trainer whose batches come from two loaders. This is all that a script changes."""

    def __init__(self, *args: Any, train: Loader, held_out: Loader, **options: Any) -> None:
        super().__init__(*args, **options)
        self.train_loader, self.eval_loader = train, held_out

    def get_train_dataloader(self) -> Any:
        return self.train_loader

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        return self.eval_loader


class StopAfter(TrainerCallback):
    """Callback that stops the training after this many steps."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        control.should_training_stop = state.global_step >= self._steps


def make_trainer(files: list[str], folder: Path, stop_after: int = 1000, **reader: Any) -> LoaderTrainer:
    arguments = TrainingArguments(
        output_dir=str(folder), use_cpu=True, num_train_epochs=3, save_steps=1, logging_steps=1, report_to=[],
        disable_tqdm=True, learning_rate=0.0, per_device_train_batch_size=5,
    )  # fmt: skip
    return LoaderTrainer(
        Recording(), arguments, callbacks=[StopAfter(stop_after)],
        train=make_loader(files, names=COLUMNS, **reader),
        held_out=make_loader(files, names=COLUMNS, shuffle=False, last_batch_policy="partial", **reader),
    )  # fmt: skip


def run(trainer: LoaderTrainer, **options: Any) -> list[int]:
    """Train and return the labels in the order of training."""
    trainer.train(**options)
    trainer.train_loader.close()
    seen: list[int] = trainer.model.seen
    return seen


def test_training_and_evaluation(jpegs: Path, tmp_path: Path) -> None:
    trainer = make_trainer(files_of(jpegs)[:ROWS], tmp_path)
    seen = run(trainer)
    assert [sorted(seen[n : n + ROWS]) for n in range(0, 3 * ROWS, ROWS)] == [list(range(ROWS))] * 3
    assert seen[:ROWS] != seen[ROWS : 2 * ROWS], "each epoch has its own order"
    assert trainer.num_examples(trainer.train_loader) == ROWS
    trainer.model.seen.clear()
    result = trainer.evaluate()
    assert trainer.model.seen == list(range(ROWS)) and torch.isfinite(torch.tensor(result["eval_loss"]))
    trainer.eval_loader.close()


@pytest.mark.parametrize("steps", [1, 3, BATCHES, BATCHES + 2])
def test_a_training_resumes(steps: int, jpegs: Path, tmp_path: Path) -> None:
    files = files_of(jpegs)[:ROWS]
    expected = run(make_trainer(files, tmp_path / "whole"))
    before = run(make_trainer(files, tmp_path / "stopped", stop_after=steps))
    resumed = make_trainer(files, tmp_path / "stopped")
    after = run(resumed, resume_from_checkpoint=str(tmp_path / "stopped" / f"checkpoint-{steps}"))
    assert before + after == expected


def test_two_processes(jpegs: Path, tmp_path: Path) -> None:
    run_ranks("tests.frameworks.hugging_face_loops", str(jpegs), str(tmp_path))
    shares = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    for epoch in range(3):
        rows = [row for share in shares for row in share["trained"][9 * epoch : 9 * epoch + 9]]
        assert sorted(set(rows)) == list(range(ROWS)) and len(rows) == ROWS + 1, "equal numbers of steps"


def main(root: str, folder: str) -> None:
    """Run one rank of :func:`test_two_processes`."""
    rank = int(os.environ["RANK"])
    trainer = make_trainer(files_of(Path(root))[:ROWS], Path(folder) / "saved", num_shards=2, shard_id=rank)
    (Path(folder) / f"{rank}.json").write_text(json.dumps({"trained": run(trainer)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
