# SPDX-License-Identifier: Apache-2.0
"""JAX arrays on a GPU as the data of a pipeline, and batches in JAX: ``python -m tests.gpu.jax_arrays``.

This is a separate program, because JAX keeps threads, and later tests could not fork safely.
"""

from __future__ import annotations

import jax
import numpy as np

from tests.gpu.scaled import images, scaled, want


def main() -> None:
    if jax.default_backend() != "gpu":
        print("no GPU")
        return
    add = jax.jit(lambda x: x + np.uint8(0))
    with scaled() as pipe:
        for seed in range(20):
            batch = pipe.run(x=add(jax.numpy.asarray(images(seed))))[0]
            np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(batch)), want(images(seed)))
    print("equal")


if __name__ == "__main__":
    main()
