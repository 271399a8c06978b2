# SPDX-License-Identifier: Apache-2.0
"""One of two JAX processes of a test: an evaluation of an epoch, with sums over the global batches."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from stoker.jax import Loader, shard_of
from tests.run.pipelines import training


def rank_main(spec: str, rank: int, folder: str, files: list[str]) -> None:
    """Run a process: `spec` "rows" divides rows over the processes, "model" their columns."""
    port = 20000 + os.getppid() % 20000
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{port}", 2, rank)
    devices = np.asarray(sorted(jax.devices(), key=lambda d: (d.process_index, d.id))).reshape(2, 4)
    if spec == "rows":
        sharding = NamedSharding(Mesh(devices.reshape(8), ("data",)), PartitionSpec("data"))
    else:
        sharding = NamedSharding(Mesh(devices, ("model", "data")), PartitionSpec("data", None, None, "model"))
    one_of = NamedSharding(sharding.mesh, PartitionSpec("data"))
    shard_id, num_shards = shard_of(sharding)
    pipe = training(files, batch_size=8, shard_id=shard_id, num_shards=num_shards)
    loader = Loader(
        pipe, ["x", "y"], sharding={"x": sharding, "y": one_of, "mask": one_of}, last_batch_policy="partial"
    )
    sums, labels = [], []
    total = jax.jit(lambda x, mask: (x * mask[:, None, None, None]).sum())
    for batch in loader:
        sums.append(float(total(batch["x"], batch["mask"])))
        for y, m in zip(batch["y"].addressable_shards, batch["mask"].addressable_shards, strict=True):
            labels += np.asarray(y.data)[np.asarray(m.data)].tolist()
    pipe.close()
    report = {"sums": sums, "labels": labels, "shard": [shard_id, num_shards]}
    (Path(folder) / f"{rank}.json").write_text(json.dumps(report))
    jax.distributed.shutdown()


if __name__ == "__main__":
    rank_main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:])
