# SPDX-License-Identifier: Apache-2.0
"""``jax_function``: functions on JAX arrays as operators. `make test-jax` runs these tests."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stoker import fn, pipeline_def
from stoker.contract.errors import DataError, UnsupportedError
from stoker.dali.plugin.jax.fn import jax_function

jnp.zeros(1).block_until_ready()  # starts JAX's threads, which stay
ROWS = [np.arange(i * 12, i * 12 + 12, dtype=np.float32).reshape(3, 4) for i in range(4)]


def run(make: Any, rows: Any = ROWS) -> list[list[np.ndarray]]:
    @pipeline_def(batch_size=len(rows), num_threads=2)
    def graph() -> Any:
        return make(fn.external_source(lambda: rows, dtype="float32", ndim=2))

    with graph() as pipe:
        return [[np.array(r) for r in out] for out in pipe.run()]


def test_a_function_of_a_batch() -> None:
    @jax_function(num_outputs=2)
    @jax.jit
    def function(x: Any) -> Any:
        return x[:, ::-1, :], jnp.sum(x, axis=(1, 2))

    flipped, sums = run(function)
    for got, total, x in zip(flipped, sums, ROWS, strict=True):
        np.testing.assert_array_equal(got, x[::-1])
        assert total == x.sum()
    (doubled,) = run(jax_function(lambda x: 2 * x))
    np.testing.assert_array_equal(doubled[3], 2 * ROWS[3])


def test_errors() -> None:
    with pytest.raises(UnsupportedError, match="sharding"):
        jax_function(lambda x: x, sharding=object())
    with pytest.raises(UnsupportedError, match="device cpu"):
        jax_function(lambda x: x, device="gpu")
    with pytest.raises(DataError, match="samples of one shape"):
        run(jax_function(lambda x: x), [ROWS[0], ROWS[1][:2]])
