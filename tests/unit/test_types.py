# SPDX-License-Identifier: Apache-2.0
"""Element types and their promotion."""

from __future__ import annotations

import enum
import itertools

import numpy as np
import pytest

from stoker import types
from stoker.contract.types import DType, promote

COMPUTED = [t for t in DType if t != DType.BFLOAT16]  # see test_bfloat16.py


@pytest.mark.parametrize("dtype", COMPUTED)
def test_a_type_is_found_under_all_its_names(dtype: DType) -> None:
    assert DType.of(dtype) is dtype
    assert DType.of(dtype.numpy) is dtype
    assert DType.of(dtype.numpy.type) is dtype
    assert DType.of(str(dtype)) is dtype
    assert dtype.numpy.itemsize == dtype.size


def test_python_types_have_dalis_meaning() -> None:
    assert DType.of(float) is DType.FLOAT
    assert DType.of(int) is DType.INT32
    assert DType.of(bool) is DType.BOOL


def test_types_of_other_libraries_are_accepted_by_name() -> None:
    class Theirs(enum.Enum):
        UINT8 = 17
        FLOAT = 3

    class Torch:
        def __str__(self) -> str:
            return "torch.float16"

    assert DType.of(Theirs.UINT8) is DType.UINT8
    assert DType.of(Theirs.FLOAT) is DType.FLOAT
    assert DType.of(Torch()) is DType.FLOAT16


@pytest.mark.parametrize("value", ["uint7", "complex64", object(), np.dtype("S3"), None.__class__])
def test_values_without_a_type_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="no element type"):
        DType.of(value)


@pytest.mark.parametrize("dtype", COMPUTED)
def test_traits_are_numpys(dtype: DType) -> None:
    assert dtype.is_float == (dtype.numpy.kind == "f")
    assert dtype.is_signed == (dtype.numpy.kind in "if")
    if dtype.numpy.kind in "iu":
        assert dtype.positive_range == float(np.iinfo(dtype.numpy).max)
    else:
        assert dtype.positive_range == 1.0


@pytest.mark.parametrize(("a", "b"), list(itertools.product(COMPUTED, COMPUTED)))
def test_promotion_is_symmetric_and_holds_both(a: DType, b: DType) -> None:
    both = promote(a, b)
    assert promote(b, a) == both
    assert promote(a, both) == both
    if a == b:
        assert both == a
    elif a.is_float or b.is_float:
        assert both == max(t for t in (a, b) if t.is_float)
    elif both != DType.INT64:  # No type holds both uint64 and a signed type.
        for t in (a, b):
            assert np.can_cast(t.numpy, both.numpy), (a, b, both)


def test_promotion_of_mixed_signs_goes_one_size_up() -> None:
    assert promote(DType.UINT8, DType.INT8) == DType.INT16
    assert promote(DType.UINT16, DType.INT8) == DType.INT32
    assert promote(DType.UINT32, DType.INT16) == DType.INT64
    assert promote(DType.UINT64, DType.INT64) == DType.INT64
    assert promote(DType.UINT8, DType.INT32) == DType.INT32
    assert promote(DType.BOOL, DType.UINT8) == DType.UINT8
    assert promote(DType.FLOAT16, DType.INT64) == DType.FLOAT16


def test_public_names_are_dalis() -> None:
    assert types.FLOAT is DType.FLOAT
    assert types.FLOAT32 is DType.FLOAT
    assert types.INT is DType.INT32
    assert types.DALIDataType is DType
    for dtype in DType:
        assert getattr(types, dtype.name) is dtype
