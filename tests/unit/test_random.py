# SPDX-License-Identifier: Apache-2.0
"""Random operators: two implementations of one generator, distributions, independence of threads and batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import ArgumentError, DataError, Pipeline, fn, pipeline_def, types
from stoker.contract import random as plain
from stoker.contract.operator import RowContext
from stoker.frontends.registry import find
from stoker.native import _native

WORDS = st.integers(0, 2**64 - 1)


def draw(define: Callable[[], Any], rows: int = 8, batch: int = 8, threads: int = 2, **settings: Any) -> Any:
    """Return the values of ``rows`` rows; a list if ``define`` returns several nodes."""
    pipe = Pipeline(batch_size=batch, num_threads=threads, seed=settings.pop("seed", 11), **settings)
    with pipe:
        out = define()
    pipe.set_outputs(*(out if isinstance(out, tuple) else (out,)))
    with pipe:
        runs = [pipe.run() for _ in range(-(-rows // batch))]
    columns = [np.stack([np.array(x) for run in runs for x in run[k]])[:rows] for k in range(len(runs[0]))]
    return columns if isinstance(out, tuple) else columns[0]


# ---- the generator ----


@given(key=WORDS, low=WORDS, high=WORDS)
def test_philox_is_the_same_in_python_and_native(key: int, low: int, high: int) -> None:
    assert plain.philox(key, low, high) == _native.philox(key, low, high)


def test_philox_gives_the_published_words() -> None:
    """Known answers of Random123 for philox4x32-10."""
    assert plain.philox(0, 0, 0) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    ones = 2**64 - 1
    assert plain.philox(ones, ones, ones) == (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)


@given(seed=WORDS, epoch=st.integers(0, 2**31))
def test_epoch_keys_are_the_same_in_python_and_native(seed: int, epoch: int) -> None:
    assert plain.epoch_key(seed, epoch) == _native.epoch_key(seed, epoch)


CASES: list[tuple[str, list[Any], dict[str, Any], float]] = [
    ("random.uniform", [], {"range": [-3.0, 7.5], "shape": [5]}, 0),
    ("random.uniform", [], {"range": [0, 3], "dtype": types.INT32, "shape": [2, 3]}, 0),
    ("random.uniform", [], {"range": [0, 1], "dtype": types.FLOAT64}, 0),
    ("random.uniform", [], {"values": [1, 2, 7], "shape": [9]}, 0),
    ("random.normal", [], {"mean": 4.0, "stddev": 2.0, "shape": [5]}, 1e-6),
    ("random.coin_flip", [], {"probability": 0.3, "shape": [9]}, 0),
    ("random.choice", [5], {"shape": [9]}, 0),
    ("random.choice", [[10, 20, 30]], {"p": [0.5, 0.0, 2.0], "shape": [9]}, 0),
    ("random.choice", [np.arange(12).reshape(3, 4)], {}, 0),
]


@pytest.mark.parametrize(("name", "inputs", "args", "error"), CASES)
def test_native_draws_are_the_reference_s(name: str, inputs: list[Any], args: dict[str, Any], error: float) -> None:
    operator = find(name)
    got = draw(lambda: _function(name)(*inputs, **args), rows=4, batch=4)
    complete = operator.fill_defaults(operator.bind(args), {})
    for row in range(4):
        context = RowContext(complete, stream=plain.Stream(11, 0, row, _draw_id(inputs)))
        want = operator().reference(context, *(np.asarray(x) for x in inputs))
        assert got[row].shape == np.shape(want)
        np.testing.assert_allclose(got[row], want, rtol=error, atol=0)


def _function(name: str) -> Any:
    found: Any = fn
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _draw_id(inputs: list[Any]) -> int:
    """Return the draw id. The operator gets its id before the nodes of its constants."""
    return 0


# ---- distributions ----


def test_uniform_covers_its_range_evenly() -> None:
    x = draw(lambda: fn.random.uniform(range=[2, 6], shape=[2000]), rows=10, batch=4)
    assert x.dtype == np.float32
    assert x.min() >= 2
    assert x.max() < 6
    counts = np.histogram(x, bins=16, range=(2, 6))[0]
    assert np.all(np.abs(counts - 1250) < 5 * np.sqrt(1250))


def test_uniform_never_reaches_its_upper_end() -> None:
    high = float(np.nextafter(np.float32(1), np.float32(2)))
    x = draw(lambda: fn.random.uniform(range=[1, high], shape=[500]))
    assert np.all(x == 1)


def test_normal_has_its_moments() -> None:
    x = draw(lambda: fn.random.normal(mean=3, stddev=2, shape=[4000]), rows=10, batch=5).astype(np.float64)
    assert abs(x.mean() - 3) < 0.05
    assert abs(x.std() - 2) < 0.05
    assert abs(np.mean(((x - 3) / 2) ** 3)) < 0.1
    assert abs(np.mean(((x - 3) / 2) ** 4) - 3) < 0.2


def test_coins_and_choices_keep_their_weights() -> None:
    coin, choice = draw(
        lambda: (fn.random.coin_flip(probability=0.2, shape=[3000]), fn.random.choice(3, p=[1, 0, 3], shape=[3000])),
        rows=10, batch=5,
    )  # fmt: skip
    assert abs(coin.mean() - 0.2) < 0.02
    shares = np.bincount(choice.ravel(), minlength=3) / choice.size
    np.testing.assert_allclose(shares, [0.25, 0, 0.75], atol=0.02)


def test_two_calls_are_two_draws_and_rows_and_epochs_differ() -> None:
    a, b = draw(lambda: (fn.random.uniform(), fn.random.uniform()))
    assert len({*a.tolist(), *b.tolist()}) == 16
    pipe = Pipeline(batch_size=4, num_threads=1, seed=1)
    with pipe:
        pipe.set_outputs(fn.random.uniform())
    with pipe:
        first = np.asarray(pipe.run()[0])
        pipe.reset()
        assert not np.any(np.asarray(pipe.run()[0]) == first)


def test_an_operator_s_own_seed_is_independent_of_the_pipeline_s() -> None:
    one, two = (draw(lambda: (fn.random.uniform(seed=5), fn.random.uniform()), seed=s) for s in (1, 2))
    np.testing.assert_array_equal(one[0], two[0])
    assert not np.any(one[1] == two[1])


@settings(max_examples=12, deadline=None)
@given(batch=st.integers(1, 9), threads=st.integers(1, 3), depth=st.integers(1, 3), asynchronous=st.booleans())
def test_draws_do_not_depend_on_the_run(batch: int, threads: int, depth: int, asynchronous: bool) -> None:
    def define() -> Any:
        n = fn.random.uniform(range=[1, 5], dtype=types.INT32)
        ragged = fn.random.normal(shape=[4])[: n % 4]
        return fn.random.uniform(), fn.random.choice(100, shape=[2]), fn.cast(fn.shapes(ragged), dtype=types.INT32)

    want = draw(define, rows=12, batch=12, threads=1, exec_async=False)
    got = draw(define, rows=12, batch=batch, threads=threads, prefetch_queue_depth=depth, exec_async=asynchronous)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


# ---- arguments ----


def test_arguments_may_differ_per_row() -> None:
    low, drawn, like = draw(lambda: _per_row())
    assert np.all((drawn >= low[:, None]) & (drawn < low[:, None] + 1))
    assert like.shape == (8, 3)


def _per_row() -> tuple[Any, ...]:
    low = fn.random.uniform(range=[0, 100])
    drawn = fn.random.uniform(range=[low, low + 1.0], shape=[3])
    return low, drawn, fn.random.normal(drawn, mean=low)


@pytest.mark.parametrize(
    ("define", "text"),
    [
        (lambda: fn.random.uniform(range=[3, 1]), "expected a finite `range` that does not go down, got 3 to 1"),
        (lambda: fn.random.uniform(range=[0, np.nan]), "expected a finite `range`"),
        (lambda: fn.random.uniform(range=[0, 1, 2]), "expected `range` with 2 elements, got 3"),
        (lambda: fn.random.uniform(range=[0, 1], values=[1]), "expected one of `range` and `values`"),
        (lambda: fn.random.normal(stddev=-1.0), "expected a finite `stddev` >= 0, got -1"),
        (lambda: fn.random.coin_flip(probability=1.5), "expected `probability` in"),
        (lambda: fn.random.uniform(shape=[-1]), "expected extents >= 0"),
        (lambda: fn.random.choice(1.5), "expected a whole number or elements"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused_when_the_pipeline_is_built(define: Callable[[], Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        draw(define)


@pytest.mark.parametrize(
    ("define", "text"),
    [
        (lambda: fn.random.choice([1, 2], p=[1.0]), "expected as many probabilities"),
        (lambda: fn.random.choice([1, 2], p=[1.0, -1.0]), "expected probabilities `p` >= 0"),
        (lambda: fn.random.choice([1, 2], p=[0.0, 0.0]), "with a positive sum"),
        (lambda: fn.random.choice(fn.random.uniform(range=[-3, -2], dtype=types.INT32)), "at least one element"),
        (lambda: fn.random.normal(stddev=fn.random.uniform(range=[-3, -2])), "expected a finite `stddev`"),
    ],
)  # fmt: skip
def test_wrong_values_fail_their_row(define: Callable[[], Any], text: str) -> None:
    with pytest.raises(DataError, match=text):
        draw(define)


# ---- across the batch ----


def test_permute_batch_takes_other_rows() -> None:
    x, turned, chosen, at = draw(lambda: _turned([3, 0, 1, 2]), rows=4, batch=4)
    np.testing.assert_array_equal(turned, x[[3, 0, 1, 2]])
    np.testing.assert_array_equal(chosen, x[at])


def _turned(indices: list[int]) -> tuple[Any, ...]:
    x = fn.random.uniform(shape=[3])
    at = fn.random.choice(len(indices))
    return x, fn.permute_batch(x, indices=indices), fn.permute_batch(x, indices=at), at


def test_permute_batch_refuses_unsupported_inputs() -> None:
    with pytest.raises(DataError, match="row number 7 is outside the batch of 4 rows"):
        draw(lambda: fn.permute_batch(fn.random.uniform(), indices=fn.random.choice(1) + 7), rows=4, batch=4)
    with pytest.raises(DataError, match="expected one index for each of the 4 rows of the batch, got 3"):
        draw(lambda: fn.permute_batch(fn.random.uniform(), indices=[0, 1, 2]), rows=4, batch=4)


def in_branches(indices: Any) -> list[int]:
    """Return the numbers of eight rows, after a permutation of those that are no multiples of 3."""

    @pipeline_def(batch_size=8, num_threads=2, seed=1, device_id=None, enable_conditionals=True)
    def inside() -> Any:
        x = fn.external_source(source=lambda: np.arange(8, dtype=np.int32))
        if x % 3 > 0:
            x = fn.permute_batch(x, indices=indices(x))
        return x

    with inside() as pipe:
        return [int(np.asarray(x)) for x in pipe.run()[0]]


def test_a_permutation_in_a_branch_is_one_of_its_rows() -> None:
    assert in_branches(lambda x: [4, 3, 2, 1, 0]) == [0, 7, 5, 3, 4, 2, 6, 1]
    assert in_branches(lambda x: fn.random.choice(1)) == [0, 1, 1, 3, 1, 1, 6, 1]
    drawn = in_branches(lambda x: fn.batch_permutation())
    assert sorted(drawn) == list(range(8)) and drawn != list(range(8)) and drawn[::3] == [0, 3, 6]
    apart = in_branches(lambda x: fn.batch_permutation(no_fixed_points=True))
    assert sorted(apart) == list(range(8)) and [a == i for i, a in enumerate(apart)] == [i % 3 == 0 for i in range(8)]
    assert set(in_branches(lambda x: fn.batch_permutation(allow_repetitions=True))) - {0, 3, 6} < {1, 2, 4, 5, 7}
    with pytest.raises(DataError, match="row number 5 is outside the 5 rows of the branch"):
        in_branches(lambda x: fn.random.choice(1) + 5)
    with pytest.raises(DataError, match="expected one index for each of the 5 rows of the branch, got 8"):
        in_branches(lambda x: list(range(8)))


def test_batch_permutations_are_permutations() -> None:
    plainly, apart, repeated, other = draw(
        lambda: (
            fn.batch_permutation(), fn.batch_permutation(no_fixed_points=True),
            fn.batch_permutation(allow_repetitions=True),
            fn.batch_permutation(allow_repetitions=True, no_fixed_points=True),
        ),
        rows=60, batch=6,
    )  # fmt: skip
    places = np.tile(np.arange(6), 10)
    for column in (plainly, apart):
        assert all(sorted(part) == list(range(6)) for part in column.reshape(10, 6).tolist())
    assert not np.any(apart == places)
    assert not np.any(other == places)
    assert np.all((repeated >= 0) & (repeated < 6))
    assert len({tuple(part) for part in plainly.reshape(10, 6).tolist()}) > 5


def test_indices_as_in_numpy() -> None:
    x: npt.NDArray[Any] = np.arange(60).reshape(3, 4, 5)
    picks: list[Callable[[Any], Any]] = [
        lambda a: a[1], lambda a: a[-1, 2], lambda a: a[:, 1:3], lambda a: a[::-1, ::2, -1],
        lambda a: a[5:, :100, -100:2],
        lambda a: a[2:0:-1, 3:1, ::-2], lambda a: a[np.int64(1), -2:],
    ]  # fmt: skip
    got = draw(lambda: tuple(p(fn.copy(types.Constant(x))) for p in picks), rows=1, batch=1)
    for value, pick in zip(got, picks, strict=True):
        np.testing.assert_array_equal(value[0], pick(x))
