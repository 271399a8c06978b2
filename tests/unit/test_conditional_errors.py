# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: SIM108 - the statements are what is tested
"""Errors of ``enable_conditionals=True``: an unsupported ``if`` on nodes is refused, with its line and the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stoker import ArgumentError, DataError, fn, pipeline_def, types
from tests.unit.test_conditionals import SETTINGS


def pipeline_of(define: Callable[[], Any]) -> Any:
    return pipeline_def(**SETTINGS)(define)


def test_a_variable_of_one_branch_is_an_error_when_it_is_used() -> None:
    def used() -> Any:
        u = fn.random.uniform()
        if u > 0:
            y = u
        return y

    def unused() -> Any:
        u = fn.random.uniform()
        if u > 0:
            y = u  # noqa: F841
        return u

    with pytest.raises(
        ArgumentError, match=r"`y`: expected a value for every row, got none: it is assigned in one branch"
    ):
        pipeline_of(used)()
    pipeline_of(unused)().build()


def test_values_that_cannot_be_merged() -> None:
    def words() -> Any:
        if fn.random.uniform() > 0:
            mode = "a"
        else:
            mode = "b"
        return fn.random.uniform(), mode

    def one_way() -> Any:
        u = fn.random.uniform()
        if u > 0:
            return u
        return None

    with pytest.raises(ArgumentError, match=r"`mode`: .* cannot be put together \('str' and 'str'\)"):
        pipeline_of(words)()
    with pytest.raises(ArgumentError, match=r"the pipeline's outputs: .* cannot be put together"):
        pipeline_of(one_way)()


def test_types_must_agree_and_constants_adapt() -> None:
    def differ() -> Any:
        u = fn.random.uniform()
        if u > 0:
            y = u
        else:
            y = fn.cast(u, dtype="float64")
        return y

    def ranks() -> Any:
        u = fn.random.uniform()
        return u if u > 0 else fn.stack(u, u)

    def adapted() -> Any:
        u = fn.random.uniform()
        y = u
        if u > 0:
            y = 1
        return y

    with pytest.raises(ArgumentError, match=r"expected `y` to have one type .*, got float32 with 0 axes and float64"):
        pipeline_of(differ)().build()
    with pytest.raises(ArgumentError, match=r"got float32 with 0 axes and float32 with 1 axes"):
        pipeline_of(ranks)().build()
    with pipeline_of(adapted)() as pipe:
        assert pipe.run()[0].dtype == types.FLOAT


def test_a_condition_has_one_element() -> None:
    def vector() -> Any:
        x = fn.random.uniform(shape=[2])
        return 1 if x > 0 else 0

    def unknown() -> Any:
        x = fn.random.uniform(shape=[4])[: fn.random.uniform(range=[2, 3], dtype=types.INT32)]
        return 1 if x > 0 else 0

    with pytest.raises(ArgumentError, match=r"`if`: expected a condition of one element, got a tensor of 2 elements"):
        pipeline_of(vector)().build()
    with pipeline_of(unknown)() as pipe, pytest.raises(DataError, match=r"`if`: expected a condition of one element"):
        pipe.run()


def test_leaving_a_loop_depending_on_a_node_is_refused() -> None:
    def leaves() -> Any:
        u = fn.random.uniform()
        for _ in range(3):
            if u > 0:
                break
        return u

    def assigns() -> Any:
        u, table = fn.random.uniform(), {}
        if u > 0:
            for key in "uv":
                table[key] = u
        return u

    def assigns_once() -> Any:
        u, table = fn.random.uniform(), {}
        if u > 0:
            table["u"] = u
        return u

    with pytest.raises(ArgumentError, match=r"got a `return`, `break` or `continue` in a loop"):
        pipeline_of(leaves)()
    with pytest.raises(ArgumentError, match=r"got an assignment to an element in line"):
        pipeline_of(assigns)()
    with pytest.raises(ArgumentError, match=r"`table\['u'\]`: expected a value for every row, got none"):
        pipeline_of(assigns_once)()


def test_without_conditionals_the_message_has_the_way_out() -> None:
    @pipeline_def(batch_size=1)
    def make() -> Any:
        u = fn.random.uniform()
        return u if u > 0 else -u

    with pytest.raises(TypeError, match=r"enable_conditionals=True"):
        make()


def test_functions_that_cannot_be_rewritten_are_refused() -> None:
    space: dict[str, Any] = {"fn": fn}
    exec("def typed():\n    return fn.random.uniform()", space)

    def generator() -> Any:
        yield fn.random.uniform()

    for function, text in (
        (space["typed"], "whose source can be read"),
        (lambda: fn.random.uniform(), "made with `def`"),
        (generator, "which yields"),
    ):
        with pytest.raises(ArgumentError, match=text):
            pipeline_of(function)()


def test_errors_and_nodes_show_the_user_s_lines() -> None:
    first = test_errors_and_nodes_show_the_user_s_lines.__code__.co_firstlineno

    def define() -> Any:
        u = fn.random.uniform()
        if u > 0:
            y = u * 2
        else:
            y = fn.random.uniform(
                range=[3, 1],
            )
        return y

    pipe = pipeline_of(define)()
    lines = {n.operator.subject(n.args): n.source_line.line - first for n in pipe.graph.nodes if n.source_line}
    assert (lines["random.uniform"], lines["*"], lines["if"]) == (8, 6, 5)

    def broken() -> Any:
        if fn.random.uniform() > 0:
            raise KeyError("in a branch")
        return 1

    with pytest.raises(KeyError, match=r"in a branch") as error:
        pipeline_of(broken)()
    assert error.traceback[-1].lineno + 1 == broken.__code__.co_firstlineno + 2
    assert str(error.traceback[-1].path) == __file__
