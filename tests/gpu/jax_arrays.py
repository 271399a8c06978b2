# SPDX-License-Identifier: Apache-2.0
"""JAX arrays on a GPU as the data of a pipeline, and batches in JAX: ``python -m tests.gpu.jax_arrays``.

This is a separate program, because JAX keeps threads, and later tests could not fork safely.
"""

from __future__ import annotations

from contextlib import closing

import jax
import numpy as np

from stoker.jax import Loader
from tests.gpu.scaled import BATCHES, ROWS, images, numbered, scaled, want


def main() -> None:
    if jax.default_backend() != "gpu":
        print("no GPU")
        return
    add = jax.jit(lambda x: x + np.uint8(0))
    with scaled() as pipe:
        for seed in range(20):
            batch = pipe.run(x=add(jax.numpy.asarray(images(seed))))[0]
            np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(batch)), want(images(seed)))
    drop_batches_that_queued_steps_read()
    print("equal")


def drop_batches_that_queued_steps_read() -> None:
    """Drop each batch while a long compiled step that reads it last is queued; later batches take its memory."""

    @jax.jit
    def step(x: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array]:
        weight = jax.lax.fori_loop(0, 40, lambda _, w: w @ w * 1e-4, weight)
        x, weight = jax.lax.optimization_barrier((x, weight))  # the batch is read after the loop
        return x + np.float16(0), weight

    weight = jax.numpy.ones((4096, 4096), jax.numpy.float32)
    step(jax.numpy.zeros((ROWS, 20, 30, 3), jax.numpy.float16), weight)[0].block_until_ready()  # compiles
    copies, addresses = [], []
    with closing(Loader(numbered(), ["image", "on_gpu", "numbers"])) as loader:
        for batch in loader:
            addresses.append(batch["image"].unsafe_buffer_pointer())
            copy, weight = step(batch["image"], weight)
            copies.append(copy)
            del batch
        queued = not copies[-1].is_ready()
    assert queued and len(copies) == BATCHES, "the steps were still queued when the last batch came"
    for seed, copy in enumerate(copies):
        np.testing.assert_array_equal(np.asarray(copy), want(images(seed)))
    print(f"{len(set(addresses))} blocks of memory for {len(addresses)} batches")


if __name__ == "__main__":
    main()
