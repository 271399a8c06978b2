# SPDX-License-Identifier: Apache-2.0
"""``Loader`` in Accelerate: ``prepare``, ``skip_first_batches``, saved states, two processes.

`make trainers` runs this test in an environment of its own.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from accelerate import Accelerator, skip_first_batches

from stoker.torch import Loader
from tests.frameworks.loops import Recording, make_loader, run_ranks
from tests.run.pipelines import files_of

ROWS = 17


def prepare(files: list[str], **reader: Any) -> tuple[Accelerator, Any, Any, Any]:
    accelerator = Accelerator(cpu=True)
    model = Recording()
    loader = make_loader(files, **reader)
    parts = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.0), loader)
    assert isinstance(parts[2], Loader), "Accelerate leaves the loader as it is: its reader has the shards"
    return accelerator, *parts


def train(accelerator: Accelerator, model: Any, optimizer: Any, batches: Any) -> None:
    for images, labels in batches:
        accelerator.backward(model(images, labels)["loss"])
        optimizer.step()
        optimizer.zero_grad()


def seen(accelerator: Accelerator, model: Any) -> list[int]:
    labels: list[int] = accelerator.unwrap_model(model).seen
    return labels


def train_epochs(files: list[str], count: int) -> list[int]:
    accelerator, model, optimizer, loader = prepare(files)
    for epoch in range(count):
        loader.set_epoch(epoch)
        train(accelerator, model, optimizer, loader)
    loader.close()
    return seen(accelerator, model)


@pytest.mark.parametrize("steps", [0, 1, 3, 4])
def test_batches_are_skipped(steps: int, jpegs: Path) -> None:
    """The usual script skips the batches that a checkpoint of the second epoch has had."""
    files = files_of(jpegs)[:ROWS]
    expected = train_epochs(files, 2)
    accelerator, model, optimizer, loader = prepare(files)
    loader.set_epoch(1)
    train(accelerator, model, optimizer, skip_first_batches(loader, steps))
    assert seen(accelerator, model) == expected[ROWS:][5 * steps :]
    loader.close()


@pytest.mark.parametrize("steps", [1, 3])
def test_a_saved_state_has_the_position(steps: int, jpegs: Path, tmp_path: Path) -> None:
    """A loader that is registered for checkpoints resumes without reading the skipped batches."""
    files = files_of(jpegs)[:ROWS]
    expected = train_epochs(files, 2)
    accelerator, model, optimizer, loader = prepare(files)
    accelerator.register_for_checkpointing(loader)
    for number, batch in enumerate(loader, 1):
        train(accelerator, model, optimizer, [batch])
        if number == steps:
            accelerator.save_state(str(tmp_path))
            break
    loader.close()
    resumed, model, optimizer, loader = prepare(files)
    resumed.register_for_checkpointing(loader)
    resumed.load_state(str(tmp_path))
    train(resumed, model, optimizer, loader)  # the rest of the first epoch
    train(resumed, model, optimizer, loader)
    assert seen(resumed, model) == expected[5 * steps :]
    loader.close()


def test_two_processes(jpegs: Path, tmp_path: Path) -> None:
    run_ranks("tests.frameworks.accelerate_loops", str(jpegs), str(tmp_path))
    shares = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    rows = shares[0]["trained"] + shares[1]["trained"]
    assert sorted(set(rows)) == list(range(ROWS)) and len(rows) == ROWS + 1, "equal numbers of steps"
    assert shares[0]["rest"] == shares[0]["trained"][5:] and shares[1]["rest"] == shares[1]["trained"][5:]
    assert shares[0]["counted"] == shares[1]["counted"] == ROWS, "each row is evaluated once"


def main(root: str, folder: str) -> None:
    """Run one rank of :func:`test_two_processes`."""
    rank = int(os.environ["RANK"])
    files = files_of(Path(root))[:ROWS]
    shard = {"num_shards": 2, "shard_id": rank}
    accelerator, model, optimizer, loader = prepare(files, **shard)
    train(accelerator, model, optimizer, loader)
    trained = list(seen(accelerator, model))
    loader.set_epoch(0)
    train(accelerator, model, optimizer, skip_first_batches(loader, 1))
    rest = seen(accelerator, model)[len(trained) :]
    held_out = make_loader(files, shuffle=False, last_batch_policy="partial", **shard)
    own = sum(len(labels) for _, labels in held_out)
    counted = int(accelerator.reduce(torch.tensor(own), reduction="sum"))
    (Path(folder) / f"{rank}.json").write_text(json.dumps({"trained": trained, "rest": rest, "counted": counted}))
    loader.close()
    held_out.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
