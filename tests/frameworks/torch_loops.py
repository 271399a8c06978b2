# SPDX-License-Identifier: Apache-2.0
"""``Loader`` with torch's own ways to train: DDP, FSDP and ``torch.compile``, two processes, saved and resumed.

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
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from stoker.torch import Loader
from tests.frameworks.loops import make_loader, run_ranks
from tests.run.pipelines import files_of

ROWS = 17


def wrap(model: torch.nn.Module, how: str) -> Any:
    if how == "ddp":
        return DistributedDataParallel(model)
    return torch.compile(model) if how == "compile" else fully_shard(model)


@pytest.mark.parametrize("how", ["ddp", "fsdp", "compile"])
def test_two_ranks_train_evaluate_and_resume(how: str, jpegs: Path, tmp_path: Path) -> None:
    run_ranks("tests.frameworks.torch_loops", how, str(jpegs), str(tmp_path))
    shares = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    rows = [row for share in shares for row in share["trained"]]
    assert sorted(set(rows)) == list(range(ROWS)) and len(rows) == ROWS + 1, "equal numbers of steps"
    for share in shares:
        assert share["resumed"] == share["trained"][5:]
        assert share["counted"] == ROWS, "each row is evaluated once"
        assert share["losses"] == shares[0]["losses"]


def main(how: str, root: str, folder: str) -> None:
    """Run one rank: an epoch with a checkpoint after its first batch, the rest of it once more, an evaluation."""
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    files, shard = files_of(Path(root))[:ROWS], {"num_shards": 2, "shard_id": rank}
    torch.manual_seed(0)
    model = wrap(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 16 * 16, 1)), how)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    losses: list[float] = []

    def train(loader: Loader, save: bool = False) -> list[int]:
        seen = []
        for images, labels in loader:
            loss = model(images).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            seen += labels.tolist()
            total = loss.detach().clone()
            dist.all_reduce(total)
            losses.append(float(total))
            if save:
                dcp.save({"loader": loader}, checkpoint_id=f"{folder}/saved")
                save = False
        return seen

    loader = make_loader(files, **shard)
    trained = train(loader, save=True)
    loader.close()
    loader = make_loader(files, **shard)
    dcp.load({"loader": loader}, checkpoint_id=f"{folder}/saved")
    resumed = train(loader)
    loader.close()
    held_out = make_loader(files, shuffle=False, last_batch_policy="partial", **shard)
    counted = torch.tensor(sum(len(labels) for _, labels in held_out))
    dist.all_reduce(counted)
    held_out.close()
    found = {"trained": trained, "resumed": resumed, "counted": int(counted), "losses": losses}
    (Path(folder) / f"{rank}.json").write_text(json.dumps(found))
    dist.destroy_process_group()


if __name__ == "__main__":
    assert "RANK" in os.environ
    main(*sys.argv[1:])
