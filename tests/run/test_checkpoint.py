# SPDX-License-Identifier: Apache-2.0
"""``Loader`` in torch's own checkpoints."""

from __future__ import annotations

import json
import uuid
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.stateful import Stateful

from stoker.torch import Loader
from tests.forked import ForkServer
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


def test_a_trainer_may_set_the_epoch(jpegs: Path) -> None:
    """A trainer sets the epoch like that of a DataLoader's DistributedSampler."""
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
    assert rows(loader) == epochs[2][5:], "setting the current epoch continues it"
    loader.close()


def ranks(
    forked: ForkServer, world: int, folder: Path, files: list[str], steps: int, **more: Any
) -> list[dict[str, Any]]:
    """Return the records of all ranks: ``steps`` batches, saved, and restored. With 0, only restore the last."""
    arguments = {"world": world, "steps": steps, "files": files, "checkpoint": str(folder / "checkpoint"),
            "meeting": str(folder / uuid.uuid4().hex), "sharding": None, "stateful": False, **more}  # fmt: skip
    running = [forked.start("-m", "tests.run.rank", json.dumps({**arguments, "rank": r})) for r in range(world)]
    done = [program.wait() for program in running]
    assert [rank.returncode for rank in done] == [0] * world, done
    return [json.loads(rank.stdout) for rank in done]


def in_turn(parts: list[Any]) -> list[Any]:
    return [row for turn in zip(*parts, strict=True) for row in turn]


def test_ranks_save_one_state_and_any_number_of_ranks_resumes(jpegs: Path, tmp_path: Path, forked: ForkServer) -> None:
    files = files_of(jpegs)[:12]
    first = ranks(forked, 2, tmp_path, files, steps=1)
    rest = in_turn([r["rest"] for r in first])
    assert len(rest) == 8
    assert in_turn([r["restored"] for r in first]) == rest
    assert in_turn([r["restored"] for r in ranks(forked, 3, tmp_path, files, steps=0)])[:8] == rest


@pytest.mark.parametrize("more", [{"sharding": "contiguous"}, {"stateful": True}], ids=str)
def test_a_state_of_one_shard_is_saved_for_each_rank(
    more: dict[str, Any], jpegs: Path, tmp_path: Path, forked: ForkServer
) -> None:
    files = files_of(jpegs)[:12]
    first = ranks(forked, 2, tmp_path, files, steps=1, **more)
    assert first[0]["rest"] != first[1]["rest"]
    assert [r["restored"] for r in first] == [r["rest"] for r in first]
    if "sharding" in more:
        errors = [r["error"] for r in ranks(forked, 3, tmp_path, files, steps=0, **more)]
        assert all("Missing key" in e and f"pipeline, shard {n} of 3" in e for n, e in enumerate(errors)), errors
