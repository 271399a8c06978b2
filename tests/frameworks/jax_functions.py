# SPDX-License-Identifier: Apache-2.0
"""``jax_function``: functions on JAX arrays as operators. `make test-jax` runs these tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stoker import fn, pipeline_def
from stoker.contract.errors import DataError, DeviceError, UnsupportedError
from stoker.dali.plugin.jax.fn import jax_function
from stoker.device.gpu import Gpu
from tests.cuda.emulated_stages import EmulatedGpu

jnp.zeros(1).block_until_ready()  # starts JAX's threads, which stay
ROWS = [np.arange(i * 12, i * 12 + 12, dtype=np.float32).reshape(3, 4) for i in range(4)]


def run(make: Any, rows: Any = ROWS) -> list[list[np.ndarray]]:
    @pipeline_def(batch_size=len(rows), num_threads=2, device_id=0)
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


@pytest.fixture
def null_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the null device, which has its memory on the host, as GPU 0."""
    monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: EmulatedGpu(tmp_path)))


@pytest.mark.usefixtures("null_device")
def test_a_function_between_operators_of_a_gpu() -> None:
    kept: list[jax.Array] = []
    compiled = jax.jit(lambda x, y: (2 * x + y, x.sum((1, 2)), (x > 9).astype(jnp.bfloat16)))

    @jax_function(
        device="gpu", num_outputs=3, output_dtypes=["float32", "float32", "bfloat16"],
        output_shapes=lambda x, _: [x, (), x],
    )  # fmt: skip
    def function(x: jax.Array, y: jax.Array) -> Any:
        kept.append(x)
        return compiled(x, y)

    @pipeline_def(batch_size=len(ROWS), num_threads=2, device_id=0)
    def graph() -> Any:
        x = fn.external_source(lambda i: [row + np.float32(i) for row in ROWS], dtype="float32", ndim=2).gpu()
        double, sums, mask = function(x + 1, x)
        return fn.cast(double - 3, dtype="float32"), sums, fn.cast(mask, dtype="uint8")

    with graph() as pipe:
        found = [[np.array(out.as_cpu().as_array()) for out in pipe.run()] for _ in range(9)]
    whole = np.stack(ROWS)
    kept.sort(key=lambda x: float(x[0, 0, 0]))  # batches are issued in any order
    for i, (double, sums, mask) in enumerate(found):
        x = whole + np.float32(i + 1)
        np.testing.assert_array_equal(double, 2 * x + (x - 1) - 3)
        np.testing.assert_array_equal(sums, x.sum((1, 2)))
        np.testing.assert_array_equal(mask, x > 9)
        np.testing.assert_array_equal(kept[i], x)


@pytest.mark.usefixtures("null_device")
@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x[:1], r"a result of shape \(4, 3, 4\), got \(1, 3, 4\)"),
        (lambda x: x if x[0, 0, 0] > 1 else jnp.ones(7), r"got \(7,\)"),
        (jax.jit(lambda x: x if x[0, 0, 0] > 1 else -x), "TracerBoolConversionError|traced array"),
    ],
)
def test_wrong_functions_on_a_gpu(function: Any, text: str) -> None:
    with pytest.raises(DeviceError, match=f"`jax_function`: the function failed: .*({text})"):
        run(lambda x: jax_function(function, device="gpu")(x.gpu()))


def test_errors() -> None:
    with pytest.raises(UnsupportedError, match="sharding"):
        jax_function(lambda x: x, sharding=object())
    with pytest.raises(UnsupportedError, match="device cpu"):
        jax_function(lambda x: x, device="tpu")
    with pytest.raises(DataError, match="samples of one shape"):
        run(jax_function(lambda x: x), [ROWS[0], ROWS[1][:2]])
