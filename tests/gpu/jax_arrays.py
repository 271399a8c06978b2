# SPDX-License-Identifier: Apache-2.0
"""JAX arrays on a GPU as the data of a pipeline, batches in JAX, and functions of JAX between operators there.

Run it as ``python -m tests.gpu.jax_arrays``.

This is a separate program, because JAX keeps threads, and later tests could not fork safely.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import jax
import numpy as np

from stoker import fn, pipeline_def, types
from stoker.dali.plugin.jax.fn import jax_function
from stoker.jax import Loader
from tests.gpu.scaled import BATCHES, ROWS, images, numbered, scaled, scaled_by_operator, want


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
    run_slow_functions_between_operators()
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


def run_slow_functions_between_operators() -> None:
    """Results of a step, some milliseconds long, wait for nothing on the host, and the operators after it see them."""
    kept, weights = [], [jax.numpy.ones((4096, 4096), jax.numpy.float32)]

    @jax.jit
    def work(x: jax.Array, weight: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        weight = jax.lax.fori_loop(0, 4, lambda _, w: w @ w * 1e-4, weight)
        x, weight = jax.lax.optimization_barrier((x, weight))  # the batch is read after the loop
        return x * 2, x.astype(np.float32).sum((1, 2, 3)), weight

    @jax_function(
        device="gpu", num_outputs=2, output_dtypes=[types.FLOAT16, types.FLOAT], output_shapes=lambda x: [x, (1,)]
    )
    def step(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        kept.append(x)
        double, total, weights[0] = work(x, weights[0])
        return double, total[:, None]

    @pipeline_def(batch_size=ROWS, num_threads=2, device_id=0)
    def define() -> Any:
        x = fn.external_source(source=[images(seed) for seed in range(BATCHES)], layout="HWC")
        double, total = step(scaled_by_operator(x.gpu()))
        return fn.flip(double, horizontal=1), total

    found = []
    with define() as pipe:
        for _ in range(BATCHES):
            double, total = pipe.run()
            found.append((double.as_cpu().as_array(), total.as_cpu().as_array()))
    of_batches = {want(images(seed)).tobytes() for seed in range(BATCHES)}  # batches are issued in any order
    assert {np.asarray(x).tobytes() for x in kept[:BATCHES]} <= of_batches
    for seed, (double, total) in enumerate(found):
        x = want(images(seed))
        np.testing.assert_array_equal(double, (2 * x)[:, :, ::-1])
        np.testing.assert_allclose(total[:, 0], x.astype(np.float64).sum((1, 2, 3)), rtol=1e-4)
    print(f"{len(found)} batches through a function of JAX")


if __name__ == "__main__":
    main()
