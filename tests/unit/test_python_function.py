# SPDX-License-Identifier: Apache-2.0
"""``python_function``: kinds of functions, order, draws, errors."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, fn, types


def pipeline(define: Callable[[], Any], batch_size: int = 4, threads: int = 2, **settings: Any) -> Pipeline:
    pipe = Pipeline(batch_size, threads, seed=5, **settings)
    with pipe:
        out = define()
    pipe.set_outputs(*(out if isinstance(out, tuple) else (out,)))
    return pipe


def columns(define: Callable[[], Any], runs: int = 1, **settings: Any) -> list[list[Any]]:
    with pipeline(define, **settings) as pipe:
        batches = [pipe.run() for _ in range(runs)]
    return [[x.tolist() for run in batches for x in run[k]] for k in range(len(batches[0]))]


def numbers() -> Any:
    return fn.random.uniform(range=[0, 9], shape=[2])


def test_a_function_of_one_row() -> None:
    x, y = columns(lambda: (n := numbers(), fn.python_function(n, function=lambda a: a * 2)))
    assert y == [[2 * v for v in row] for row in x]


def test_several_inputs_and_outputs() -> None:
    def split(a: Any, b: Any) -> Any:
        return a + b, np.float64(b.sum()), bytes(3)

    outputs = columns(lambda: fn.python_function(numbers(), numbers(), function=split, num_outputs=3))
    assert [len(outputs[0]), np.ndim(outputs[1][0]), outputs[2][0]] == [4, 0, [0, 0, 0]]


def test_a_function_of_a_batch() -> None:
    sizes: list[int] = []

    def double(rows: list[Any]) -> Any:
        sizes.append(len(rows))
        return np.stack(rows) * 2

    x, y = columns(lambda: (n := numbers(), fn.python_function(n, function=double, batch_processing=True)), runs=2)
    assert y == [[2 * v for v in row] for row in x]
    assert set(sizes) == {4}


def test_a_function_for_its_effect() -> None:
    values: list[float] = []

    def define() -> Any:
        n = fn.random.uniform()
        fn.python_function(n, function=lambda a: values.append(float(a)), num_outputs=0)
        return n

    (x,) = columns(define, runs=3, prefetch_queue_depth=1)
    assert values[: len(x)] == x


def test_layouts_apply_to_later_operators() -> None:
    def define() -> Any:
        return fn.python_function(function=lambda: np.zeros((4, 6, 3), np.uint8), output_layouts="HWC")

    with pipeline(define) as pipe:
        assert pipe.run()[0].layout == "HWC"


def test_declared_types_are_known_before_any_data() -> None:
    def define() -> Any:
        arguments = {"output_dtypes": ["uint8", "float32"], "output_ndims": [3, 0], "output_layouts": ["HWC"]}
        return fn.python_function(
            function=lambda: (np.zeros((4, 6, 3), np.uint8), np.float32(1)), num_outputs=2, **arguments
        )

    with pipeline(define) as pipe:
        assert "uint8[" in pipe.show().split("\nplan\n")[1]
        image, number = pipe.run()
        assert (image.layout, image.dtype, number.dtype) == ("HWC", types.UINT8, types.FLOAT)


def test_a_function_may_keep_and_change_its_arguments() -> None:
    arrays: list[Any] = []

    def keep(a: Any) -> Any:
        arrays.append(a)
        a += 1
        return a

    x, y = columns(lambda: (n := numbers(), fn.python_function(n, function=keep)), runs=6, prefetch_queue_depth=1)
    assert [k.tolist() for k in arrays[: len(y)]] == y
    np.testing.assert_allclose(np.asarray(y), np.asarray(x) + 1)


# ---- order ----


def test_rows_come_in_order_also_when_batches_overtake_each_other() -> None:
    """The native part of the second batch takes long, so the third batch is ready first."""
    order: list[int] = []

    def define() -> Any:
        number = fn.external_source(lambda info: info.idx_in_epoch, batch=False)
        size = fn.cast(number // 2 == 1, dtype="int32") * 3000 + 1
        heavy = fn.random.normal(shape=fn.stack(size, 100))
        first = fn.cast(heavy[0, 0] * 0, dtype="int64") + number
        return fn.python_function(first, function=lambda n: order.append(int(n)) or n)

    with pipeline(define, batch_size=2, threads=3, prefetch_queue_depth=4) as pipe:
        for _ in range(4):
            pipe.run()
    assert order[:8] == list(range(8))


def test_functions_are_called_on_one_thread_at_a_time() -> None:
    busy = threading.Lock()

    def alone(a: Any) -> Any:
        assert busy.acquire(blocking=False)
        time.sleep(0.0005)
        busy.release()
        return a

    columns(
        lambda: (fn.python_function(numbers(), function=alone), fn.python_function(numbers(), function=alone)), runs=3
    )


# ---- draws ----


@pytest.mark.parametrize("batch_processing", [False, True])
def test_a_generator_gives_the_same_numbers_however_the_pipeline_runs(batch_processing: bool) -> None:
    def one(a: Any, *, rng: np.random.Generator) -> Any:
        return a * 0 + rng.random()

    def many(rows: list[Any], rng: list[np.random.Generator]) -> Any:
        return [one(a, rng=r) for a, r in zip(rows, rng, strict=True)]

    def define() -> Any:
        return fn.python_function(
            numbers(), function=many if batch_processing else one, batch_processing=batch_processing
        )

    want = columns(define, batch_size=12, threads=1, exec_async=False)
    assert columns(define, runs=4, batch_size=3, threads=2) == want
    assert columns(define, runs=3, batch_size=4, threads=1, prefetch_queue_depth=3) == want
    assert len({row[0] for row in want[0]}) == 12


# ---- errors ----


def test_an_exception_fails_its_row_and_the_pipeline_continues() -> None:
    calls = 0

    def sixth(a: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyError("no such thing")
        return a

    with pipeline(lambda: fn.python_function(numbers(), function=sixth), prefetch_queue_depth=1) as pipe:
        pipe.run()
        with pytest.raises(DataError, match="`python_function`: KeyError: 'no such thing' — row 1, made at") as error:
            pipe.run()
        assert error.value.row == 1
        assert isinstance(error.value.__cause__, KeyError)
        assert "in sixth" in "".join(traceback.format_exception(error.value))
        assert len(pipe.run()[0]) == 4


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda a: 1 / 0, "ZeroDivisionError: division by zero.*at least one row of it must succeed"),
        (lambda a: None, "expected an array of numbers, a number or bytes, got 'NoneType'"),
        (lambda a: "text", "got 'str'"),
        (lambda a: (a, a), "expected one output, got a tuple of 2. Pass `num_outputs=2`"),
        (lambda: 1, "takes 0 positional arguments but 1 was given"),
    ],
)
def test_a_function_that_never_works_is_an_error_of_the_first_batch(function: Callable[..., Any], text: str) -> None:
    with pipeline(lambda: fn.python_function(numbers(), function=function)) as pipe:
        for _ in range(2):
            with pytest.raises(DataError, match=text):
                pipe.run()


def test_types_must_not_change() -> None:
    calls = 0

    def changing(a: Any) -> Any:
        nonlocal calls
        calls += 1
        return a if calls < 3 else a.astype(np.int8)

    text = "expected float32 with 1 axes as for the first row, got int8 with 1 — row 2"
    pipe = pipeline(lambda: fn.python_function(numbers(), function=changing))
    with pipe, pytest.raises(DataError, match=text):
        pipe.run()


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda rows: rows[:-1], "expected one result for each of 4 rows, got 3"),
        (lambda rows: (rows, rows), "expected one output, got a tuple of 2"),
    ],
)
def test_a_batch_function_gives_one_result_per_row(function: Callable[..., Any], text: str) -> None:
    pipe = pipeline(lambda: fn.python_function(numbers(), function=function, batch_processing=True))
    with pipe, pytest.raises(DataError, match=text):
        pipe.run()


def test_wrong_arguments_are_refused_at_their_line() -> None:
    for arguments, text in (
        ({"function": 3}, "expected a function as `function`, got 3"),
        ({"function": len, "num_outputs": -1}, "`num_outputs` >= 0"),
        ({"function": len, "output_layouts": ["HWC", "HW"]}, "at most 1 `output_layouts`"),
        ({"function": len, "output_dtypes": "uint8"}, "one element for each of 1 outputs, got 1 and 0"),
        ({"function": len, "output_dtypes": "uint8", "output_ndims": 2, "output_layouts": "HWC"}, "a layout of 2 axes"),
        ({}, "expected the argument `function`"),
    ):
        with pytest.raises(ArgumentError, match=text):
            pipeline(lambda arguments=arguments: fn.python_function(numbers(), **arguments))
