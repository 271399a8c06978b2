# SPDX-License-Identifier: Apache-2.0
"""``dl_tensor_python_function``: functions on DLPack capsules."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import stoker.dali as dali
import stoker.dali.fn as dali_fn
from stoker import DataError, UnsupportedError, eager, fn, pipeline_def
from stoker.contract.feed import to_array
from stoker.contract.types import DType
from stoker.native import _native

TYPES = ["bool", "uint8", "int16", "uint32", "int64", "float16", "float32", "float64"]


def read(capsule: Any) -> np.ndarray:
    assert type(capsule).__name__ == "PyCapsule" and '"dltensor"' in repr(capsule)
    return to_array(capsule)


def writable(array: np.ndarray) -> np.ndarray:
    """Return the same memory as an array to write to, as torch reads capsules; NumPy's is read-only."""
    kind = ctypes.c_uint8 * array.nbytes
    return np.frombuffer(kind.from_address(array.ctypes.data), array.dtype).reshape(array.shape)


def given(array: np.ndarray) -> Any:
    """Return a capsule; NumPy gives none of arrays that are read-only, and before 2.0 none of bool."""
    return _native.exchange(np.array(array), int(DType.of(array.dtype))).__dlpack__()


def rows(dtype: str = "float32") -> list[np.ndarray]:
    return [np.arange(i * 3, i * 3 + 3 * (i + 1)).reshape(3, i + 1).astype(dtype) for i in range(4)]


def run(make: Any, dtype: str = "float32", **settings: Any) -> list[list[np.ndarray]]:
    @pipeline_def(batch_size=4, num_threads=2, seed=3, **settings)
    def graph() -> Any:
        return make(fn.external_source(lambda: rows(dtype), dtype=dtype, ndim=2))

    with graph() as pipe:
        return [[np.array(r) for r in out] for out in pipe.run()]


@pytest.mark.parametrize("dtype", TYPES)
def test_a_batch_of_capsules_comes_back(dtype: str) -> None:
    seen: list[Any] = []

    def same(column: list[Any]) -> list[Any]:
        seen.append(len(column))
        return [given(read(x)) for x in column]

    (out,) = run(lambda x: fn.dl_tensor_python_function(x, function=same), dtype)
    for got, x in zip(out, rows(dtype), strict=True):
        np.testing.assert_array_equal(got, x)
        assert got.dtype == x.dtype
    assert set(seen) == {4}  # once per batch, as DALI's default


def test_capsules_may_be_returned_unread() -> None:
    (out,) = run(lambda x: fn.dl_tensor_python_function(x, function=lambda column: column))
    np.testing.assert_array_equal(out[2], rows()[2])


def test_capsules_of_a_row_and_several_outputs() -> None:
    def split(a: Any, b: Any) -> Any:
        a, b = read(a), read(b)
        memory = writable(a)
        memory += 1  # the memory is the function's own
        return given(memory), given(memory * b)

    plain, first, second = run(
        lambda x: (x, *fn.dl_tensor_python_function(x, x, function=split, num_outputs=2, batch_processing=False))
    )
    for x, a, b, want in zip(plain, first, second, rows(), strict=True):
        np.testing.assert_array_equal(x, want)
        np.testing.assert_array_equal(a, want + 1)
        np.testing.assert_array_equal(b, (want + 1) * want)


def test_draws_are_the_row_s() -> None:
    def noisy(x: Any, rng: Any) -> Any:
        return read(x) + rng.random(1, np.float32)

    plain = run(lambda x: fn.python_function(x, function=lambda a, rng: a + rng.random(1, np.float32)))
    made = run(lambda x: fn.dl_tensor_python_function(x, function=noisy, batch_processing=False))
    for a, b in zip(plain[0], made[0], strict=True):
        np.testing.assert_array_equal(a, b)


def halve(x: Any) -> Any:
    return read(x) / np.float32(2)


@pytest.mark.parametrize("batches", [False, True])
def test_in_a_process_of_its_own(batches: bool) -> None:
    function = (lambda column: [halve(x) for x in column]) if batches else halve
    (out,) = run(
        lambda x: fn.dl_tensor_python_function(
            x, function=function, isolate=True, batch_processing=batches, time_limit_s=60
        )
    )
    np.testing.assert_array_equal(out[3], rows()[3] / 2)


def test_eager() -> None:
    image = np.arange(6, dtype=np.int32).reshape(2, 3)
    got = eager.dl_tensor_python_function(
        image, function=lambda x: read(x) * 2, batch_processing=False, output_dtypes="int32", output_ndims=2
    )
    np.testing.assert_array_equal(got, image * 2)


def test_errors() -> None:
    with pytest.raises(DataError, match="expected one result for each of 4 rows, got 3"):
        run(lambda x: fn.dl_tensor_python_function(x, function=lambda column: column[:3]))

    def twice(x: Any) -> Any:
        read(x)
        return x  # read already

    with pytest.raises(DataError, match="used_dltensor"):
        run(lambda x: fn.dl_tensor_python_function(x, function=twice, batch_processing=False))
    with pytest.raises(UnsupportedError, match="before the function runs"):
        run(lambda x: fn.dl_tensor_python_function(x, function=twice, device="gpu"))


def test_dali_s_names() -> None:
    def double(column: list[Any]) -> list[Any]:
        return [given(read(x) * 2) for x in column]

    @dali.pipeline_def(batch_size=2, num_threads=1)
    def graph() -> Any:
        x = dali_fn.external_source(lambda: rows()[:2], dtype=dali.types.FLOAT, ndim=2)
        make = dali.ops.DLTensorPythonFunction(function=double, synchronize_stream=False)
        return dali_fn.dl_tensor_python_function(x, function=double), make(x)

    with graph() as pipe:
        one, other = pipe.run()
        np.testing.assert_array_equal(one.at(1), rows()[1] * 2)
        np.testing.assert_array_equal(other.at(1), rows()[1] * 2)
