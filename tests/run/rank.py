# SPDX-License-Identifier: Apache-2.0
"""One rank of a training that saves to a checkpoint of torch.distributed and resumes from it (test_checkpoint.py)."""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException

from stoker import Pipeline, fn, pipeline_def
from stoker.torch import Loader
from tests.run import pipelines


@pipeline_def(batch_size=2, num_threads=1, seed=7)
def counting(files: list[str], **reader: Any) -> Any:
    """Return running sums of a stateful operator, and the labels."""
    _, labels = fn.readers.file(files=files, random_shuffle=True, **reader)
    return fn.test_count(labels), labels


@pipeline_def(batch_size=2, num_threads=1, seed=7)
def drawing(files: list[str], **reader: Any) -> Any:
    """Return a random draw, and the labels."""
    _, labels = fn.readers.file(files=files, random_shuffle=True, **reader)
    return fn.random.uniform(), labels


def rows(batches: Any) -> list[list[float]]:
    return [
        [float(x), float(y)] for numbers, labels in batches for x, y in zip(numbers.reshape(-1), labels, strict=True)
    ]


def main() -> None:
    arguments = json.loads(sys.argv[1])
    rank, world, steps = arguments["rank"], arguments["world"], arguments["steps"]
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group("gloo", init_method=f"file://{arguments['meeting']}", rank=rank, world_size=world)
    make = counting if arguments["stateful"] else drawing
    pipe: Pipeline = make(arguments["files"], num_shards=world, shard_id=rank, sharding=arguments["sharding"])
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a warning of torch
        if steps:
            loader = Loader(pipe)
            batches = iter(loader)
            found["before"] = rows([next(batches) for _ in range(steps)])
            dcp.save({"loader": loader}, checkpoint_id=arguments["checkpoint"])
            found["rest"] = rows(batches)
            loader.close()
            pipe = make(arguments["files"], num_shards=world, shard_id=rank, sharding=arguments["sharding"])
        loader = Loader(pipe)
        try:
            dcp.load({"loader": loader}, checkpoint_id=arguments["checkpoint"])
            found["restored"] = rows(loader)
        except CheckpointException as error:
            found["error"] = str(error)
        loader.close()
    dist.destroy_process_group()
    print(json.dumps(found))


if __name__ == "__main__":
    assert pipelines.Count  # registers the operator
    main()
