# SPDX-License-Identifier: Apache-2.0
"""``Loader`` in torch's own checkpoints."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.stateful import Stateful

from stoker.torch import Loader
from tests.run.pipelines import counting_rows, files_of, training


def rows(loader: Loader) -> list[bytes]:
    return [x.numpy().tobytes() for batch in loader for x in batch[0]]


@pytest.mark.parametrize("make", [training, counting_rows])
@pytest.mark.filterwarnings("ignore")
def test_torch_distributed_checkpoint(make: Any, jpegs: Path, tmp_path: Path) -> None:
    files = files_of(jpegs)[:13]
    model = torch.nn.Linear(2, 2)
    loader = Loader(make(files))
    assert isinstance(loader, Stateful)
    batches = iter(loader)
    for _ in range(2):
        next(batches)
    dcp.save({"model": model, "loader": loader}, checkpoint_id=tmp_path / "checkpoint", no_dist=True)
    rest = [x.numpy().tobytes() for batch in batches for x in batch[0]]
    second = rows(loader)
    loader.close()
    other = Loader(make(files, batch_size=4, num_threads=1))
    dcp.load({"model": torch.nn.Linear(2, 2), "loader": other}, checkpoint_id=tmp_path / "checkpoint", no_dist=True)
    assert rows(other) == rest
    assert rows(other) == second
    other.close()


def test_torch_save(jpegs: Path, tmp_path: Path) -> None:
    files = files_of(jpegs)[:13]
    loader = Loader(training(files))
    next(iter(loader))
    torch.save({"loader": loader.state_dict()}, tmp_path / "state.pt")
    loader.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = torch.load(tmp_path / "state.pt", weights_only=True)["loader"]
    whole, other = Loader(training(files)), Loader(training(files))
    other.load_state_dict(state)
    assert rows(other) == rows(whole)[5:]
    whole.close()
    other.close()


def test_a_trainer_may_say_which_epoch_comes(jpegs: Path) -> None:
    """As it does for a DataLoader's DistributedSampler."""
    files = files_of(jpegs)[:13]
    loader = Loader(training(files))
    epochs = []
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        epochs.append(rows(loader))
    loader.sampler.set_epoch(1)
    assert rows(loader) == epochs[1] != epochs[2]
    loader.sampler.set_epoch(2)
    next(iter(loader))
    state = loader.state_dict()
    loader.load_state_dict(state)
    loader.sampler.set_epoch(2)
    assert rows(loader) == epochs[2][5:], "where it runs already, it goes on"
    loader.close()
