# SPDX-License-Identifier: Apache-2.0
"""``jax_function``: functions on JAX arrays as operators. `make test-jax` runs these tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from stoker import fn, pipeline_def
from stoker.contract.errors import ArgumentError, DataError, DeviceError, UnsupportedError
from stoker.dali.plugin.jax.fn import jax_function
from stoker.device.gpu import Gpu
from tests.cuda.emulated_stages import EmulatedGpu
from tests.frameworks import jax_function_rank
from tests.idle_clock import HANG_S
from tests.run.pipelines import ROOT, environment

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


def test_a_sharding_of_one_process() -> None:
    one = NamedSharding(Mesh(np.asarray(jax.devices()[:1]), ("rows",)), PartitionSpec("rows"))
    seen = []

    @jax_function(sharding=one, num_outputs=2)
    def function(x: jax.Array) -> Any:
        seen.append((x.shape, x.sharding))
        return x - x.mean(), jnp.arange(len(x))

    centred, numbers = run(function)
    np.testing.assert_allclose(np.stack(centred), np.stack(ROWS) - np.mean(ROWS))
    assert numbers == [0, 1, 2, 3] and seen[0] == ((4, 3, 4), one)


def test_a_sharding_over_two_processes(tmp_path: Path) -> None:
    """A batch is centred by the mean over both processes' batches."""
    ranks = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.frameworks.jax_function_rank", str(rank), str(tmp_path)],
            cwd=ROOT, env=environment(XLA_FLAGS="", JAX_PLATFORMS="cpu"),
        )
        for rank in range(2)
    ]  # fmt: skip
    assert [r.wait(timeout=HANG_S) for r in ranks] == [0, 0]
    found = [np.load(tmp_path / f"{rank}.npy") for rank in range(2)]
    assert found[0].shape == (5, 4, 3)
    for batch in range(5):
        rows = [[jax_function_rank.row(rank, 4 * batch + i) for i in range(4)] for rank in range(2)]
        for rank in range(2):
            np.testing.assert_allclose(found[rank][batch], rows[rank] - np.mean(rows), rtol=1e-5, atol=1e-4)


def test_errors() -> None:
    with pytest.raises(ArgumentError, match=r"expected a jax\.sharding\.Sharding as `sharding`, got <object"):
        jax_function(lambda x: x, sharding=object())(fn.random.uniform())
    with pytest.raises(UnsupportedError, match="expected no `sharding` on a"):
        jax_function(lambda x: x, sharding=object(), device="gpu")
    devices = jax.devices()
    if len(devices) > 1:
        several = NamedSharding(Mesh(np.asarray(devices), ("rows",)), PartitionSpec("rows"))
        with pytest.raises(UnsupportedError, match=f"one device of this process, got {len(devices)}"):
            jax_function(lambda x: x, sharding=several)
    with pytest.raises(UnsupportedError, match="device cpu"):
        jax_function(lambda x: x, device="tpu")
    with pytest.raises(DataError, match="samples of one shape"):
        run(jax_function(lambda x: x), [ROWS[0], ROWS[1][:2]])
