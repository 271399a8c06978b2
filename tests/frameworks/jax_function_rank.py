# SPDX-License-Identifier: Apache-2.0
"""One of two JAX processes of a test: a function of `jax_function` on the batches of both."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from stoker import fn, pipeline_def
from stoker.dali.plugin.jax.fn import jax_function

BATCH, BATCHES = 4, 5


def row(rank: int, number: int) -> np.ndarray[Any, Any]:
    """Return a row of a process."""
    return np.arange(3, dtype=np.float32) + np.float32(100 * rank + number * number)


def rank_main(rank: int, folder: str) -> None:
    """Run a process."""
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(f"127.0.0.1:{20000 + os.getppid() % 20000}", 2, rank)
    sharding = NamedSharding(Mesh(np.asarray(jax.devices()), ("rows",)), PartitionSpec("rows"))

    @jax_function(sharding=sharding)
    @jax.jit
    def centred(x: jax.Array) -> jax.Array:
        assert x.shape == (2 * BATCH, 3)
        return x - x.mean()

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None)
    def graph() -> Any:
        # The source ends, so that no process waits for its part of a batch that the other one does not compute ahead.
        batches = [[row(rank, BATCH * i + k) for k in range(BATCH)] for i in range(BATCHES)]
        return centred(fn.external_source(batches, dtype="float32", ndim=1))

    with graph() as pipe:
        found = [np.array(pipe.run()[0].as_array()) for _ in range(BATCHES)]
    np.save(Path(folder) / f"{rank}.npy", np.stack(found))
    jax.distributed.shutdown()


if __name__ == "__main__":
    rank_main(int(sys.argv[1]), sys.argv[2])
