# SPDX-License-Identifier: Apache-2.0
"""Operators on nodes and ``stoker.math``: DALI's result types, NumPy's values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from stoker import ArgumentError, DataError, Pipeline, fn, math, types
from stoker.contract.types import DType, promote
from stoker.ops.generic._arithmetic_reference import arithmetic_reference, common_type
from stoker.ops.generic.arithmetic import OPERANDS

COMPUTED = [t for t in DType if t != DType.BFLOAT16]  # NumPy has no arrays of this type: see tests/native
Array = npt.NDArray[Any]
# Functions lose digits on values beyond these (the cube root loses all).
MODEST = {"cbrt": 1e300, "sin": 1e5, "cos": 1e5, "tan": 1e5, "pow": 30.0, "fpow": 30.0}


def run(define: Callable[..., Any], *inputs: Any, **settings: Any) -> Any:
    """Return the results of a pipeline for one row of constants or other inputs; a list if there are several."""
    pipe = Pipeline(batch_size=1, num_threads=1, seed=3, exec_async=False, **settings)
    with pipe:
        out = define(*(fn.copy(types.Constant(x)) if isinstance(x, np.ndarray) else x for x in inputs))
    pipe.set_outputs(*(out if isinstance(out, tuple) else (out,)))
    results = [np.asarray(b)[0] for b in pipe.run()]
    pipe.close()
    return results if isinstance(out, tuple) else results[0]


def apply(op: str, *inputs: Any, **settings: Any) -> Array:
    """Apply one operation by its internal name."""

    def define(*nodes: Any) -> Any:
        first = next(n for n in nodes if hasattr(n, "builder"))
        return first.builder.call("_arithmetic", nodes, {"op": op})

    result: Array = run(define, *inputs, **settings)
    return result


def assert_same(got: Array, want: Array, ulps: int = 0) -> None:
    assert got.dtype == want.dtype and got.shape == want.shape
    if want.dtype.kind != "f" or ulps == 0:
        np.testing.assert_array_equal(got, want)
        return
    info = np.finfo(want.dtype)
    g, w = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        close = np.abs(g - w) <= ulps * np.maximum(np.abs(w) * info.eps, float(info.smallest_subnormal))
        assert np.all(close | (g == w) | (np.isnan(g) & np.isnan(w)))


# ---- types ----

# Measured with DALI 2.4: operand types and the type of their sum.
PROMOTIONS = [
    ("uint8", "uint8", "uint8"), ("uint8", "int8", "int16"), ("uint8", "int16", "int16"), ("uint8", "int32", "int32"),
    ("uint16", "int8", "int32"), ("uint32", "int8", "int64"), ("uint64", "int8", "int64"), ("uint64", "int64", "int64"),
    ("bool", "int32", "int32"), ("bool", "uint8", "uint8"), ("int64", "float32", "float32"),
    ("float32", "float64", "float64"), ("float16", "int32", "float16"), ("float16", "float32", "float32"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "common"), PROMOTIONS)
def test_types_are_promoted_as_in_dali(a: str, b: str, common: str) -> None:
    for x, y in ((a, b), (b, a)):
        assert promote(DType.of(x), DType.of(y)) == DType.of(common)
        assert apply("add", np.ones(2, x), np.ones(2, y)).dtype == common
        assert apply("lt", np.ones(2, x), np.ones(2, y)).dtype == np.bool_


def test_promotion_has_two_implementations_that_agree() -> None:
    for a in COMPUTED:
        for b in COMPUTED:
            assert common_type([a.numpy, b.numpy]) == promote(a, b).numpy


@pytest.mark.parametrize(
    ("expression", "dtype"),
    [
        (lambda x: x + 1, "int32"), (lambda x: x + 1.5, "float32"), (lambda x: x / 2, "float32"),
        (lambda x: x // 2, "int32"), (lambda x: x // 2.0, "float32"), (lambda x: x * x, "uint8"),
        (lambda x: x + True, "uint8"), (lambda x: x + np.int8(1), "int16"), (lambda x: 2 - x, "int32"),
        (lambda x: x**2, "int32"), (lambda x: ~x, "uint8"), (lambda x: -x, "uint8"), (lambda x: abs(x), "uint8"),
        (lambda x: x << 3, "int32"), (lambda x: x == 3, "bool"), (lambda x: math.sqrt(x), "float32"),
        (lambda x: math.floor(x), "float32"), (lambda x: math.fabs(x), "float32"), (lambda x: math.min(x, 3), "int32"),
        (lambda x: math.clamp(x, 2, 100), "int32"), (lambda x: math.clamp(x, 2.5, 100), "float32"),
        (lambda x: math.fpow(x, x), "float32"), (lambda x: math.atan2(x, x), "float32"), (lambda x: +x, "uint8"),
    ],
)  # fmt: skip
def test_python_numbers_are_int32_and_float32(expression: Callable[[Any], Any], dtype: str) -> None:
    assert run(expression, np.arange(6, dtype=np.uint8)).dtype == dtype


@pytest.mark.parametrize("op", [o for o in OPERANDS if o not in ("mul", "and", "or", "xor", "shl", "shr", "not")])
def test_booleans_alone_are_no_numbers(op: str) -> None:
    if op in ("lt", "le", "gt", "ge", "eq", "ne"):
        assert apply(op, *[np.array([True, False])] * 2).dtype == np.bool_
        return
    with pytest.raises(ArgumentError, match="expected numbers, got booleans"):
        apply(op, *[np.array([True, False])] * OPERANDS[op])


@pytest.mark.parametrize("op", ["and", "or", "xor", "shl", "shr", "not"])
def test_bitwise_operators_refuse_floats(op: str) -> None:
    with pytest.raises(ArgumentError, match="expected whole numbers or booleans, got float32"):
        apply(op, *[np.ones(2, np.float32)] * OPERANDS[op])


def test_messages_name_the_operator_as_it_is_written() -> None:
    with pytest.raises(ArgumentError, match=r"^`<<`: .* made at .*test_arithmetic.py:\d+"):
        run(lambda x: x << 1, np.ones(2, np.float32))
    with pytest.raises(ArgumentError, match=r"^`math.sqrt`: "):
        run(math.sqrt, np.ones(2, np.bool_))
    with pytest.raises(ArgumentError, match="Use NumPy"):
        math.sqrt(2.0)


# ---- values ----


def values(op: str, dtype: DType, shape: tuple[int, ...]) -> st.SearchStrategy[Array]:
    """Return arrays of all kinds of values, except values that raise errors."""
    if dtype.is_float:
        top = float(np.finfo(dtype.numpy).max) / 2
        limit = min(MODEST.get(op, top), top)
        elements = st.floats(-limit, limit, width=8 * dtype.size)  # type: ignore[arg-type]
        return hnp.arrays(dtype.numpy, shape, elements=elements)
    if dtype == DType.BOOL:
        return hnp.arrays(np.bool_, shape)
    info = np.iinfo(dtype.numpy)
    limit = int(MODEST.get(op, 2.0**63 if op != "pow" else 40))
    low, high = max(info.min, -limit), min(info.max, limit)
    return hnp.arrays(dtype.numpy, shape, elements=st.integers(low, high) | st.integers(max(low, -3), min(high, 3)))


def has_meaning(op: str, kinds: list[DType]) -> bool:
    """Return whether DALI (and NumPy) support the operation."""
    bitwise = op in ("and", "or", "xor", "shl", "shr", "not")
    logical = bitwise or op in ("mul", "lt", "le", "gt", "ge", "eq", "ne")
    if all(t == DType.BOOL for t in kinds):
        return logical
    return not (bitwise and any(t.is_float for t in kinds))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_values_are_those_of_numpy(data: st.DataObject) -> None:
    op = data.draw(st.sampled_from(sorted(OPERANDS)))
    kinds = [data.draw(st.sampled_from(COMPUTED)) for _ in range(OPERANDS[op])]
    shapes = data.draw(st.permutations([(2, 3), (3,), (2, 1), ()]))[: len(kinds)]
    inputs = [data.draw(values(op, t, s)) for t, s in zip(kinds, shapes, strict=True)]
    if op in ("idiv", "mod"):
        inputs[1] = np.where(inputs[1] == 0, np.ones_like(inputs[1]), inputs[1])
    if not has_meaning(op, kinds):
        with pytest.raises(ArgumentError, match="booleans"):
            apply(op, *inputs)
        return
    got = apply(op, *inputs)
    want = np.asarray(arithmetic_reference(op, *inputs))
    wide = want.dtype == np.float64
    assert_same(got, want, 0 if op in ("add", "sub", "mul", "neg", "abs", "min", "max") else 300 if wide else 1)


@pytest.mark.parametrize(
    ("op", "a", "b", "want"),
    [
        ("idiv", [-7, 7, 3], [2, -2, -1], [-3, -3, -3]), ("mod", [-7, 7, 3], [2, -2, -1], [-1, 1, 0]),
        ("pow", [-7, 7, 3], [2, -2, -1], [49, 0, 0]), ("pow", [1, -1, -1], [-1, -1, -2], [0, 0, 0]),
        ("pow", [0, 0], [-1, 0], [0, 1]), ("shl", [-7, 7], [33, 33], [-14, 14]),
        ("idiv", [-(2**31)], [-1], [-(2**31)]), ("mod", [-(2**31)], [-1], [0]), ("add", [2**31 - 1], [1], [-(2**31)]),
    ],
)  # fmt: skip
def test_integer_arithmetic_equals_dalis(op: str, a: list[int], b: list[int], want: list[int]) -> None:
    np.testing.assert_array_equal(apply(op, np.array(a, np.int32), np.array(b, np.int32)), want)


def test_floats_divide_truly_and_keep_the_sign_of_a_remainder() -> None:
    a, b = np.array([-7.5, 7, 2], np.float32), np.array([2, 2, -2], np.float32)
    np.testing.assert_array_equal(run(lambda x, y: x // y, a, b), np.float32([-3.75, 3.5, -1]))
    np.testing.assert_array_equal(run(lambda x, y: x % y, a, b), np.float32([-1.5, 1, 0]))
    np.testing.assert_array_equal(run(lambda x: x / 0, a), np.float32([-np.inf, np.inf, np.inf]))


def test_comparisons_of_mixed_signs_are_right() -> None:
    signed = np.array([-1, 5, 2**62], np.int64)
    unsigned = np.array([2**64 - 1, 5, 2**63], np.uint64)
    less, equal = run(lambda a, b: (a < b, a == b), signed, unsigned)
    np.testing.assert_array_equal(less, [True, False, True])
    np.testing.assert_array_equal(equal, [False, True, False])


def test_division_by_zero_is_an_error_of_its_row() -> None:
    pipe = Pipeline(batch_size=4, num_threads=2, seed=1)
    with pipe:
        pipe.set_outputs(6 // fn.external_source(lambda i: [1, 2, 0 if i == 0 else 3, 1], dtype=types.INT32))
    with pipe:
        with pytest.raises(DataError, match="`//`: expected a non-zero divisor") as error:
            pipe.run()
        assert error.value.row == 2
        np.testing.assert_array_equal(np.asarray(pipe.run()[0]), [6, 3, 2, 6])


def test_large_integers_stay_exact() -> None:
    big = np.asarray(2**53 + 1, np.int64)
    assert int(run(lambda x: x + 1, big)) == 2**53 + 2
    assert int(run(lambda x: x + (2**60 + 1), np.asarray(0, np.int32))) == 2**60 + 1


# ---- shapes ----


@pytest.mark.parametrize(("a", "b"), [((2, 3), (3,)), ((2, 1), (1, 3)), ((2, 3), ()), ((1,), ()), ((4, 1, 3), (2, 1))])
def test_operands_are_broadcast_as_in_numpy(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random(a).astype(np.float32), rng.random(b).astype(np.float32)
    for left, right in ((x, y), (y, x)):
        np.testing.assert_array_equal(run(lambda p, q: p - q, left, right), left - right)


def test_shapes_that_do_not_fit_are_refused_when_the_pipeline_is_built() -> None:
    with pytest.raises(ArgumentError, match="expected operands of one shape or extents of 1, got 3 and 2"):
        run(lambda a, b: a + b, np.ones((2, 3)), np.ones((2, 2)))


def test_shapes_that_do_not_fit_at_run_time_fail_their_row() -> None:
    pipe = Pipeline(batch_size=2, num_threads=1, seed=1)
    with pipe:
        a = fn.external_source(lambda i: [np.ones(3, np.float32), np.ones(2, np.float32)])
        pipe.set_outputs(a + fn.external_source(lambda i: [np.ones(3, np.float32), np.ones(4, np.float32)]))
    with pipe, pytest.raises(DataError, match="one shape or extents of 1") as error:
        pipe.run()
    assert error.value.row == 1


def test_axes_with_different_names_are_refused() -> None:
    def define(a: Any, b: Any) -> Any:
        return fn.copy(types.Constant(np.ones((2, 2)), layout="HW")) + fn.copy(
            types.Constant(np.ones((2, 2)), layout="WH")
        )

    with pytest.raises(ArgumentError, match="got layouts HW and WH"):
        run(define, 0, 0)


@pytest.mark.parametrize("op", sorted(OPERANDS))
def test_numbers_per_row_equal_tensors(op: str) -> None:
    """A scalar operand becomes a number in the program, a tensor becomes an input. Both have one meaning."""
    dtype = np.int32 if op in ("and", "or", "xor", "shl", "shr", "not") else np.float32
    numbers = [np.asarray(x, dtype) for x in (0.7, 3, 2)[: OPERANDS[op]]]
    scalar = apply(op, *numbers)
    tensor = apply(op, *(np.full(33, x) for x in numbers))
    mixed = apply(op, np.full(33, numbers[0]), *numbers[1:])
    np.testing.assert_array_equal(tensor, np.full(33, scalar))
    np.testing.assert_array_equal(mixed, tensor)


def test_a_chain_becomes_one_stage() -> None:
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        x = fn.copy(types.Constant(np.ones((8, 8, 3), np.uint8)))
        gain = fn.random.uniform(range=[0.5, 2])
        pipe.set_outputs(fn.cast(math.clamp((x * gain - 10) / 3 + gain, 0, 255), dtype=types.UINT8))
    assert pipe.show().split("\nplan\n")[1].count("stage[") == 1


# ---- frames ----


def test_a_number_per_frame_scales_its_frame() -> None:
    rng = np.random.default_rng(0)
    video = rng.integers(0, 256, (3, 4, 5, 3), dtype=np.uint8)
    gains = rng.random(3).astype(np.float32)
    wide = rng.integers(0, 9, (3, 1, 1, 3))

    def define(g: Any, w: Any) -> Any:
        v = fn.copy(types.Constant(video, layout="FHWC"))
        per_frame = fn.per_frame(g)
        return v * per_frame, v + fn.per_frame(w), v * per_frame + np.ones((1, 4, 5, 3), np.float32), per_frame * 2

    for passes in (None, frozenset[str]()):
        scaled, added, mixed, doubled = run(define, gains, wide, passes=passes)
        np.testing.assert_array_equal(scaled, video * gains[:, None, None, None])
        np.testing.assert_array_equal(added, video + wide)
        np.testing.assert_array_equal(mixed, video * gains[:, None, None, None] + np.float32(1))
        np.testing.assert_array_equal(doubled, gains * 2)


def test_per_frame_numbers_need_frames() -> None:
    with pytest.raises(ArgumentError, match="whose first axis is F"):
        run(lambda x, g: x * fn.per_frame(g), np.ones((4, 5, 3), np.float32), np.ones(4, np.float32))
    video, other = np.ones((3, 4, 5, 3), np.float32), np.ones((3, 1, 1, 1), np.float32)
    with pytest.raises((ArgumentError, DataError), match="frames"):
        run(lambda x, y, g: x * y * fn.per_frame(g), video, other, np.ones(2, np.float32))
