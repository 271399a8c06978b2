# SPDX-License-Identifier: Apache-2.0
"""``jax_function(device="gpu")``: functions of JAX between operators on a GPU.

Without a GPU, the null device and a module in JAX's place show which arrays are exchanged, and in which order.
`make test-jax` runs JAX itself on the null device.
"""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_gpu_functions import gpu, run  # noqa: F401

from stoker import ArgumentError, DeviceError, ResourceError, UnsupportedError, fn, types
from stoker.frontends.dali.array_functions import jax_function
from stoker.ops.generic import jax_gpu_function

ROWS = [np.arange(n, n + 24, dtype=np.float32).reshape(2, 4, 3) for n in (2, 5, 3)]
pytestmark = pytest.mark.parametrize("gpu", ["null"], indirect=True)
NUMBERS = [np.float32([n]) for n in (1, 2, 3)]


class ArrayOnHost(np.ndarray):
    """Array in JAX's place."""

    def devices(self) -> set[str]:
        return {"gpu"}

    def block_until_ready(self) -> ArrayOnHost:
        return self

    def __dlpack__(self, **keywords: Any) -> Any:
        return np.asarray(self).__dlpack__(**keywords)


class JaxOnHost:
    """Module in JAX's place, whose arrays are NumPy's."""

    def __init__(self) -> None:
        self.config = SimpleNamespace(jax_enable_x64=False)
        self.numpy = SimpleNamespace(asarray=self._array, bfloat16=np.uint16)
        self.dlpack = SimpleNamespace(from_dlpack=lambda x: np.from_dlpack(x).view(ArrayOnHost))
        self.default_device = contextlib.nullcontext
        self.device_put = lambda x, device: x

    @staticmethod
    def _array(x: Any) -> ArrayOnHost:
        return np.array(x).view(ArrayOnHost)


@pytest.fixture(autouse=True)
def jax(monkeypatch: pytest.MonkeyPatch) -> JaxOnHost:
    module = JaxOnHost()
    monkeypatch.setattr(jax_gpu_function, "jax_module", lambda: module)
    monkeypatch.setattr("stoker.frontends.dali.array_functions._require", lambda *_: None)
    return module


def test_a_function_between_operators() -> None:
    """It gets whole batches, and the operators after it see its results."""

    @jax_function(device="gpu")
    def double(images: Any) -> Any:
        assert images.shape == (3, 2, 4, 3)
        return 2 * images

    (found,) = run(lambda x: fn.flip(double(x + 1), horizontal=1) - 3, count=6, rows=ROWS)
    for got, row in zip(found, ROWS, strict=True):
        np.testing.assert_array_equal(got, 2 * (row + 5 + 1)[:, ::-1] - 3)


def test_outputs_of_other_shapes_and_types() -> None:
    @jax_function(
        device="gpu", num_outputs=2, output_dtypes=[types.FLOAT, types.UINT8], output_layouts=["HW", "HWC"],
        output_shapes=lambda image, _: [image[:2], image],
    )  # fmt: skip
    def split(images: Any, numbers: Any) -> Any:
        return images.sum(3) + numbers[:, :, None], images > 12

    def make(x: Any) -> Any:
        return split(x, fn.external_source(source=lambda: NUMBERS).gpu())

    sums, masks = run(make, rows=ROWS)
    for total, mask, row, number in zip(sums, masks, ROWS, NUMBERS, strict=True):
        np.testing.assert_array_equal(total, row.sum(2) + number)
        np.testing.assert_array_equal(mask, (row > 12).astype(np.uint8))


def test_inputs_may_be_kept() -> None:
    """Inputs are copies. Later batches do not take their memory before they are gone."""
    kept: list[Any] = []

    @jax_function(device="gpu")
    def keep(images: Any) -> Any:
        kept.append(images)
        return images

    run(lambda x: keep(x), count=12, rows=ROWS)
    assert len({x.ctypes.data for x in kept}) == len(kept) >= 12
    kept.sort(key=lambda images: float(images[0, 0, 0, 0]))  # batches are issued in any order
    for i, images in enumerate(kept):
        np.testing.assert_array_equal(images, np.stack(ROWS) + i)


def test_memory_of_inputs_is_reused() -> None:
    addresses = set()

    @jax_function(device="gpu")
    def look(images: Any) -> Any:
        addresses.add(images.ctypes.data)
        return images

    run(lambda x: look(x), count=12, rows=ROWS)
    assert len(addresses) < 4


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: x[:-1], r"a result of shape \(3, 2, 4, 3\), got \(2, 2, 4, 3\)"),
        (lambda x: (x, x), "expected 1 outputs, got 2"),
        (lambda x: 1 / 0, "division by zero"),
    ],
)
def test_wrong_results_are_named(function: Any, text: str) -> None:
    with pytest.raises(DeviceError, match="`jax_function`: the function failed: .*" + text):
        run(jax_function(function, device="gpu"), rows=ROWS)


def test_rows_of_one_shape() -> None:
    with pytest.raises(DeviceError, match="samples of one shape"):
        run(jax_function(lambda x: x, device="gpu"))
    shapes = {"output_shapes": lambda x, n: (n[0],)}
    sizes = [np.zeros(n, np.float32) for n in (1, 2, 3)]
    with pytest.raises(DeviceError, match="samples of one shape"):
        run(
            lambda x: jax_function(lambda x, n: x, device="gpu", **shapes)(x, fn.external_source(source=lambda: sizes)),
            rows=ROWS,
        )


def test_wrong_arguments_are_refused(jax: JaxOnHost, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ArgumentError, match="expected a function"):
        jax_function(3, device="gpu")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="sharding"):
        jax_function(lambda x: x, sharding=object(), device="gpu")
    with pytest.raises(UnsupportedError, match="expected the device cpu, got 'tpu'"):
        jax_function(lambda x: x, device="tpu")
    with pytest.raises(ArgumentError, match="are for the device gpu"):
        jax_function(lambda x: x, output_dtypes=types.FLOAT)
    with pytest.raises(ArgumentError, match="a tuple of extents for each of 1 outputs"):
        run(jax_function(lambda x: x, device="gpu", output_shapes=lambda x: 4), rows=ROWS)
    wide = jax_function(lambda x: x, device="gpu", output_dtypes=types.INT64)
    with pytest.raises(ArgumentError, match="without `jax_enable_x64`, got int64"):
        run(wide, rows=ROWS)
    jax.config.jax_enable_x64 = True
    (found,) = run(wide, rows=ROWS)
    np.testing.assert_array_equal(found[1], ROWS[1].astype(np.int64))

    def missing() -> Any:
        raise ResourceError("`jax_function`: expected jax")

    monkeypatch.setattr(jax_gpu_function, "jax_module", missing)
    with pytest.raises(ResourceError, match="expected jax"):
        run(jax_function(lambda x: x, device="gpu"), rows=ROWS)


def test_the_exchange_checks_what_it_is_given() -> None:
    """Also from Python: a wrong array must not be read."""
    found: list[str] = []

    def probe(stream: int, rows: Any, exchange: Any) -> None:
        outputs = [outs[0] for outs, _ in rows]
        good = np.zeros((3, 2, 4, 3), np.float32)
        wrong: list[tuple[Any, Any]] = [
            (good[:2], outputs), (good.astype(np.float64), outputs), (good.transpose(0, 2, 1, 3), outputs),
            (good[..., :2], outputs), (np.zeros((3, 4, 2, 3), np.float32), outputs), (good, []),
            (np.float32(1), outputs),
        ]  # fmt: skip
        for array, targets in wrong:
            with pytest.raises(ValueError, match="expected an array") as error:
                exchange.split(stream, np.asarray(array).__dlpack__(), targets)
            found.append(str(error.value))
        with pytest.raises(ValueError, match="at least a row"):
            exchange.stack(stream, [])
        exchange.split(stream, good.__dlpack__(), outputs)

    class Call(jax_gpu_function.JaxFunctionOnGpu):
        def __call__(self, stream: int, rows: Any, exchange: Any) -> str | None:
            return probe(stream, rows, exchange)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jax_gpu_function, "JaxFunctionOnGpu", Call)
        run(jax_function(lambda x: x, device="gpu"), rows=ROWS)
    assert len(found) >= 7
