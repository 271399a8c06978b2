# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: SIM108 - the statements are what is tested
"""``enable_conditionals=True``: ``if`` on nodes has the result of Python's ``if``, row by row."""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np
import pytest

from stoker import DataError, Pipeline, fn, pipeline_def, types
from stoker.frontends import rewriting
from stoker.frontends.conditionals import BranchRuntime

ROWS = 12
SETTINGS: dict[str, Any] = {"batch_size": 4, "num_threads": 2, "seed": 7, "enable_conditionals": True}


def values(make: Callable[..., Pipeline], *args: Any, **kwargs: Any) -> list[list[Any]]:
    """Return the values of some rows for each output."""
    with make(*args, **kwargs) as pipe:
        runs = [pipe.run() for _ in range(ROWS // pipe.batch_size)]
    return [[x.tolist() for run in runs for x in run[k]] for k in range(len(runs[0]))]


def check(define: Callable[..., Any], plain: Callable[..., Any], **settings: Any) -> None:
    """Check that ``define(u)`` as a pipeline returns for every row the result of ``plain(u)`` in Python."""

    @pipeline_def(**{**SETTINGS, **settings})
    def make() -> Any:
        u = fn.random.uniform(range=[-1, 1], dtype=types.FLOAT64)
        out = define(u)
        return (u, *out) if isinstance(out, tuple) else (u, out)

    for passes in (None, frozenset[str]()):
        u, *columns = values(make, passes=passes)
        want = [plain(x) for x in u]
        rows = [w if isinstance(w, tuple) else (w,) for w in want]
        for k, column in enumerate(columns):
            np.testing.assert_allclose(column, [row[k] for row in rows], rtol=1e-15)


# ---- statements: one function, run as a pipeline and in Python ----


def two_branches(u: Any) -> Any:
    if u > 0:
        y = u * 2
    else:
        y = -u
    return y


def no_else(u: Any) -> Any:
    y = u
    if u > 0.2:
        y = y + 1
        y = y * 3
    return y


def several_variables_and_constants(u: Any) -> Any:
    k, s = 0, 1.5
    if u < -0.5:
        k = 1
    elif u < 0.5:
        k, s = 2, u * 2
    else:
        s = 4.0
    return k, s


def nested(u: Any) -> Any:
    y = u
    if u > -0.5:
        if u > 0.5:
            y = y * 2
        else:
            y = y * 3
            if u < 0:
                y = y - 10
        y = y + 1
    return y


def early_returns(u: Any) -> Any:
    if u > 0.5:
        return u, 1
    v = u * 2
    if u > 0:
        if u > 0.25:
            return v, 2
        v = v + 5
    elif u < -0.5:
        return -v, 3
    return v * 2, 4


def logic(u: Any) -> Any:
    a = u > 0 and u < 0.5
    b = u > 0.5 or u < -0.5
    c = not u > 0
    d = not a and (b or c)
    return a * 1, b * 1, c * 1, d * 1


def conditional_expressions(u: Any) -> Any:
    return (u if u > 0 else -u), (1 if u > 0.5 else 2 if u > 0 else 3)


def chained_comparisons(u: Any) -> Any:
    return (1 if -0.5 < u < 0.5 else 0), (1 if 0 <= u <= 0.25 < 1 else 0)


def loops(u: Any) -> Any:
    y, parts = u, []
    for i in range(4):
        if u > i * 0.25:
            y = y + i
        else:
            y = y - 1
        parts.append(y)
    while len(parts) > 2:
        parts.pop()
    return y, parts[0]


def containers(u: Any) -> Any:
    pair, named = (u, 1), {"a": u, "b": 2}
    if u > 0:
        pair = (u * 2, 5)
        named = {"a": -u, "b": 2}
    return pair[0], pair[1], named["a"], named["b"]


def helper(u: Any, scale: Any = 3) -> Any:
    if u > 0:
        return u * scale
    return u * 0.0


def calls_another_function(u: Any) -> Any:
    def inner(v: Any) -> Any:
        return v + 1 if v > 0 else v

    if u < 0.5:
        u = helper(u)
    return inner(u) + helper(u, scale=2)


class Scaled:
    """Callable object with state."""

    def __init__(self) -> None:
        self.largest: Any = 0.0

    def __call__(self, u: Any) -> Any:
        self.last = u
        if u > 0.25:
            self.last = u * 2
            if self.last > self.largest + 1:
                self.last += 1
        return self.last


class ScaledTwice(Scaled):
    """Callable object that calls its base class."""

    def __call__(self, u: Any) -> Any:
        y = super().__call__(u)
        return -y if y < 0 else y


def attributes_and_elements(u: Any) -> Any:
    table, items, key = {"a": u}, [u, u], "b"
    if u > 0:
        table["a"] = -u
        table[key] = 1
        items[-1] = u * 3
    else:
        table[key] = 2
        items[0] = u * 2
    return table["a"], table["b"], items[0], items[1]


def objects_and_partial_functions(u: Any) -> Any:
    add = functools.partial(helper, scale=5)
    return Scaled()(u), ScaledTwice()(u), add(u)


def comprehension_and_lambda(u: Any) -> Any:
    if u > 0:
        y = sum([u * i for i in range(3)])
        f = lambda v: v * 2 if v > 0.5 else v  # noqa: E731
    else:
        y = u * 0.0
        f = lambda v: v * 2 if v > 0.5 else v  # noqa: E731, F841
    g = lambda v: -v if v < 0 else v  # noqa: E731
    return y, g(u)


@pytest.mark.parametrize(
    "function",
    [two_branches, no_else, several_variables_and_constants, nested, early_returns, conditional_expressions,
     chained_comparisons, loops, containers, calls_another_function, attributes_and_elements,
     objects_and_partial_functions],
)  # fmt: skip
def test_statements_have_their_meaning_in_python(function: Callable[..., Any]) -> None:
    check(function, function)


def angle() -> Any:
    if fn.random.coin_flip(probability=0.5):
        found = fn.random.uniform(range=[0, 1])
    else:
        found = fn.random.uniform(range=[5, 6])
    return found


def test_a_function_that_gets_no_node_may_create_some() -> None:
    @pipeline_def(**SETTINGS)
    def make() -> Any:
        return angle()

    (found,) = values(make)
    assert {0 <= x < 1 for x in found} == {True, False} and all(0 <= x < 1 or 5 <= x < 6 for x in found)


def test_logic_gives_booleans() -> None:
    check(logic, lambda u: tuple(int(bool(x)) for x in logic(u)))


def test_a_function_object_of_one_branch_is_lost_only_if_it_is_used() -> None:
    check(comprehension_and_lambda, comprehension_and_lambda)


def test_python_values_keep_python_s_meaning() -> None:
    effects: list[str] = []

    def note(x: Any) -> Any:
        effects.append(x)
        return x

    @pipeline_def(**SETTINGS)
    def make(flag: bool, items: list[int], nothing: Any = None) -> Any:
        out = fn.random.uniform()
        if flag and note("and"):
            out = out * 0 + 1
        if not items:
            out = out + 1
        elif len(items) > 1 and 0 < items[0] < 3 < note(9):
            out = out * 0 + 7
        best = nothing or items or "x"
        return out, 1 if best is items else 0

    assert values(make, True, [2, 3])[0] == [7.0] * ROWS
    assert "and" in effects
    assert 9 in effects
    effects.clear()
    assert values(make, False, [5])[1] == [1] * ROWS
    assert effects == []


def test_branches_run_only_for_their_rows() -> None:
    calls: dict[str, list[float]] = {"up": [], "down": [], "far": []}

    @pipeline_def(**{**SETTINGS, "batch_size": ROWS})
    def make() -> Any:
        u = fn.random.uniform(range=[-1, 1])
        if u > 0:
            y = fn.python_function(u, function=lambda x: calls["up"].append(float(x)) or x * 2)
        elif u > -0.5:
            y = fn.python_function(u, function=lambda x: calls["down"].append(float(x)) or -x)
        else:
            y = u * 0.0
            fn.python_function(u, function=lambda x: calls["far"].append(float(x)), num_outputs=0)
        return u, y

    u, y = values(make)
    np.testing.assert_allclose(y, [2 * x if x > 0 else -x if x > -0.5 else 0 for x in u])
    rows = {
        "up": [x for x in u if x > 0],
        "down": [x for x in u if -0.5 < x <= 0],
        "far": [x for x in u if x <= -0.5],
    }
    for key, want in rows.items():
        assert want
        assert calls[key][: len(want)] == want  # prefetched batches come next


def test_a_branch_of_python_code_that_no_row_takes_at_first_needs_types() -> None:
    def rare(**declared: Any) -> Pipeline:
        @pipeline_def(**SETTINGS)
        def make() -> Any:
            n = fn.external_source(lambda info: info.idx_in_epoch, batch=False)
            if n == 6:
                y = fn.python_function(n, function=lambda x: x * 10, **declared)
            else:
                y = n
            return y

        return make()

    with (
        rare() as pipe,
        pytest.raises(DataError, match=r"ran for no row of the first batch.* unless they are declared"),
    ):
        pipe.run()
    with rare(output_dtypes=types.INT64, output_ndims=0) as pipe:
        assert [int(x) for _ in range(2) for x in pipe.run()[0]] == [0, 1, 2, 3, 4, 5, 60, 7]


def test_shapes_and_layouts_may_differ_between_branches() -> None:
    @pipeline_def(**SETTINGS)
    def make() -> Any:
        image = fn.copy(types.Constant(np.arange(48, dtype=np.uint8).reshape(4, 4, 3), layout="HWC"))
        if fn.random.coin_flip():
            out = fn.crop(image, crop=(2, 3))
        else:
            out = fn.flip(image)
        return out, out.shape()

    with make() as pipe:
        (batch, shapes) = pipe.run()
        assert batch.layout == "HWC"
        assert {tuple(s) for s in shapes} == {(2, 3, 3), (4, 4, 3)} == {x.shape for x in batch}


@pytest.mark.parametrize("condition", ["int64", "float32", "bool"])
def test_any_single_number_is_a_condition(condition: str) -> None:
    @pipeline_def(**SETTINGS)
    def make() -> Any:
        c = fn.cast(fn.random.coin_flip(shape=[1]), dtype=condition)
        if c:
            out = 1
        else:
            out = 0
        return fn.cast(c, dtype="int32")[0], out

    a, b = values(make)
    assert a == b
    assert set(a) == {0, 1}


# ---- rewritten code is cached ----


def of_factor(factor: float) -> Callable[[Any], Any]:
    def scaled(u: Any) -> Any:
        if u > 0:
            y = u * factor
        else:
            y = u
        return y

    return scaled


def test_functions_of_one_code_are_rewritten_once_and_keep_their_own_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[CodeType] = []
    real = rewriting._parse
    monkeypatch.setattr(rewriting, "_parse", lambda code: parsed.append(code) or real(code))
    monkeypatch.setattr(rewriting, "_CACHED", {})
    for factor in (3.0, 5.0):
        check(of_factor(factor), of_factor(factor))
    assert len(parsed) == len({id(code) for code in parsed})
    assert parsed.count(of_factor(3.0).__code__) == 1


def test_equal_code_of_two_files_is_rewritten_twice(tmp_path: Path) -> None:
    """Code objects are equal whatever their file is; tracebacks show each function's own file."""
    found = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.py"
        path.write_text("def doubled(u):\n    if u > 0:\n        u = u * 2\n    return u\n")
        names: dict[str, Any] = {}
        exec(compile(path.read_text(), str(path), "exec"), names)
        found.append(names["doubled"])
        rewritten = rewriting.rewrite(names["doubled"], BranchRuntime(lambda function: function))
        assert rewritten is not None and rewritten.__code__.co_filename == str(path)
    assert found[0].__code__ == found[1].__code__


def test_the_cache_does_not_keep_code_alive(tmp_path: Path) -> None:
    path = tmp_path / "short.py"
    path.write_text("def short(u):\n    if u > 0:\n        u = u * 2\n    return u\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    before = len(rewriting._CACHED)
    assert rewriting.rewrite(names["short"], BranchRuntime(lambda function: function)) is not None
    assert len(rewriting._CACHED) == before + 1
    names.clear()
    gc.collect()
    assert len(rewriting._CACHED) <= before
