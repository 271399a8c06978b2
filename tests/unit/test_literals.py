# SPDX-License-Identifier: Apache-2.0
"""Number literals in pipelines: their types, and that no number changes silently."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, UnsupportedError, fn, pipeline_def, types


def copy_constant(value: Any) -> Any:
    """Return the result of a pipeline for a constant."""

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe() -> Any:
        return fn.copy(value)

    with pipe() as built:
        return np.asarray(built.run()[0][0])


@pytest.mark.parametrize(("value", "dtype"), [
    (3, "int32"), (1 << 31, "int64"), (-(1 << 31), "int32"), ([1 << 40, 1], "int64"), ([1, -2], "int32"),
    (2.5, "float32"), ([2.5, 1], "float32"), (True, "bool"), ([True, False], "bool"), (np.uint8([7]), "uint8"),
    (np.float64(1.5), "float64"), (np.uint64(1 << 63), "uint64"),
], ids=str)  # fmt: skip
def test_types(value: Any, dtype: str) -> None:
    result = copy_constant(value)
    assert result.dtype == dtype
    assert result.tolist() == np.asarray(value).tolist()


@pytest.mark.parametrize(
    "value", [1 << 63, [1 << 63], 1 << 64, ["a"], [[1], [1, 2]], [1j], [None], np.array(["a"])], ids=str
)
def test_values_that_are_no_numbers_are_refused(value: Any) -> None:
    for use in (copy_constant, types.Constant):
        with pytest.raises(ArgumentError, match=r"(`copy`|`Constant`): expected (whole )?numbers"):
            use(value)


def test_a_constant_is_copied_when_it_is_passed() -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe(value: Any) -> Any:
        return fn.copy(value), fn.copy(types.Constant(value))

    value = np.arange(3)
    with pipe(value) as built:
        value[:] = 9
        assert [np.asarray(x[0]).tolist() for x in built.run()] == [[0, 1, 2]] * 2


@pytest.mark.parametrize(("value", "dtype", "expected"), [
    (255, types.UINT8, 255), (2.5, types.INT32, 2), (3.5, types.INT32, 4), (-0.5, types.UINT8, 0),
    (7, types.FLOAT16, 7.0), ((1 << 53) + 1, types.INT64, (1 << 53) + 1), (1 << 63, types.UINT64, 1 << 63),
], ids=str)  # fmt: skip
def test_constants_of_a_type(value: Any, dtype: Any, expected: Any) -> None:
    result = types.Constant(value, dtype).value
    assert result.dtype == dtype.numpy and result.item() == expected


@pytest.mark.parametrize(("value", "dtype"), [
    (256, types.UINT8), (-1, types.UINT8), (255.5, types.UINT8), (1 << 31, types.INT32), (float("nan"), types.INT32),
    (1e300, types.INT64), (float(1 << 63), types.INT64),
], ids=str)  # fmt: skip
def test_constants_out_of_their_range_are_refused(value: Any, dtype: Any) -> None:
    with pytest.raises(ArgumentError, match=f"`Constant`: expected numbers from .* to .* as {dtype}, got"):
        types.Constant(value, dtype)


def test_constants_of_bfloat16_are_cast() -> None:
    with pytest.raises(UnsupportedError, match=r"cast it with `fn\.cast`"):
        types.Constant(1.5, types.BFLOAT16)
