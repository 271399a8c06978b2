# SPDX-License-Identifier: Apache-2.0
"""Errors of a row: the node that each names, and the first of several, with all passes and with none."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stoker import Pipeline, fn, types
from stoker.contract.config import PipelineConfig
from stoker.contract.errors import DataError
from stoker.frontends.conditionals import BranchRuntime
from stoker.frontends.definition import GraphBuilder
from stoker.frontends.registry import find
from stoker.graph.analysis import PASSES
from stoker.graph.node import Graph
from stoker.testing import laws

IMAGE = np.arange(90, dtype=np.uint8).reshape(6, 5, 3)
OTHER = np.ones((6, 4, 3), np.uint8)
ZEROS = np.zeros((6, 5, 3), np.uint8)
EMPTY = np.zeros((0, 5, 3), np.uint8)
Define = Callable[[], Any]


def fed(x: Any, layout: str | None = None) -> Any:
    return fn.external_source(source=lambda info: x, batch=False, layout=layout)


def image(x: Any = IMAGE) -> Any:
    return fed(x, "HWC")


def half(x: Any) -> Any:
    """Continue with a stage that fusion joins to the one before."""
    return fn.cast(x, dtype=types.FLOAT) * 0.5


def message(passes: frozenset[str], define: Define) -> str:
    pipe = Pipeline(batch_size=1, num_threads=1, seed=3, passes=passes)
    with pipe:
        outputs = define()
    pipe.set_outputs(*outputs) if isinstance(outputs, tuple) else pipe.set_outputs(outputs)
    with pipe, pytest.raises(DataError) as error:
        pipe.run()
    return str(error.value)


def same_message(define: Define) -> str:
    """Return the error, which must be the same with all passes, with none and with each one alone."""
    alone = [frozenset({name}) for name in PASSES]
    (text,) = {message(passes, define) for passes in (frozenset(PASSES), frozenset(), *alone)}
    return text


# Each fails in a node that fusion joins with later ones.
FAULTS: dict[str, tuple[Define, str]] = {
    "shapes": (lambda: half(image() + image(OTHER)), "`+`: expected operands of one shape"),
    "division": (lambda: half(100 // image(ZEROS)), "`//`: expected a non-zero divisor"),
    "remainder": (lambda: half(image() % fed(np.asarray(0, np.int32))), "`%`: expected a non-zero divisor"),
    "resize": (lambda: half(fn.resize(image(EMPTY), size=(4, 4))), "`resize`: expected a region (or image)"),
    "rotate": (
        lambda: half(fn.rotate(image(EMPTY), angle=9.0, size=(4, 4), interp_type="INTERP_CUBIC")),
        "`rotate`: expected an image with pixels",
    ),
    "index": (lambda: half(image()[fed(np.asarray(9, np.int32))]), "`[]`: expected an index in [-6, 6), got 9"),
    "window": (lambda: half(fn.crop(image(), crop=(20.0, 20.0))), "`crop`: expected `crop_h` <= 6"),
    "mask": (lambda: half(fn.boolean_mask(image(), fed(np.ones(4, bool)))), "`boolean_mask`: expected a mask"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_error_names_its_node_in_a_joined_step(fault: str) -> None:
    define, text = FAULTS[fault]
    assert same_message(define).startswith(text)


@pytest.mark.parametrize("faults", list(itertools.permutations(FAULTS, 2)), ids=" ".join)
def test_the_first_of_two_branches_fails_the_row(faults: tuple[str, str]) -> None:
    first, second = (FAULTS[fault] for fault in faults)
    text = message(frozenset(PASSES), lambda: (first[0](), second[0]()))
    assert text == message(frozenset(), lambda: (first[0](), second[0]()))
    assert text.startswith(first[1])


@pytest.mark.parametrize("between", ["index", "window", "mask", "shapes"])
def test_a_node_between_joined_ones_does_not_come_before_them(between: str) -> None:
    """Fusion moves the sum down to its product, past the node between. The sum's check stays before it."""

    def define() -> Any:
        total = image() + image(OTHER)
        other = FAULTS[between][0]()
        return total * 2.0, other

    assert same_message(define).startswith("`+`: expected operands of one shape")


def test_a_node_before_joined_ones_comes_before_them() -> None:
    def define() -> Any:
        total = image() + image()
        part = image()[fed(np.asarray(9, np.int32))]
        return total * 2.0 + image(OTHER), part

    assert same_message(define).startswith("`[]`: expected an index")


def test_the_checks_of_a_branch_stay_in_it() -> None:
    """A check moves only to steps that run under the same conditions."""

    def define() -> Any:
        def then() -> Any:
            total = image() + image(OTHER)
            return total * 2.0

        chosen = BranchRuntime(lambda f: f).choose(fed(np.asarray(False)), then, lambda: image() * 3.0)
        return chosen, half(image())

    for passes in (frozenset(PASSES), frozenset[str]()):
        pipe = Pipeline(batch_size=1, num_threads=1, seed=3, passes=passes)
        with pipe:
            outputs = define()
        pipe.set_outputs(*outputs)
        with pipe:
            np.testing.assert_array_equal(np.asarray(pipe.run()[0])[0], IMAGE * np.float32(3))


def test_empty_operands_fit_only_what_numpy_accepts() -> None:
    """An empty result is checked like any other: 5 elements do not fit to none."""
    with pytest.raises(ValueError, match="broadcast"):
        EMPTY + IMAGE
    assert same_message(lambda: image(EMPTY) + image()).startswith("`+`: expected operands of one shape")
    assert same_message(lambda: half(image() + image(EMPTY))).startswith("`+`: expected operands of one shape")


def graph_of(define: Define) -> Graph:
    builder = GraphBuilder(find)
    with builder:
        outputs = define()
    return builder.graph(outputs if isinstance(outputs, tuple) else (outputs,))


def test_the_law_accepts_another_error_of_the_row_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = graph_of(lambda: (image() + image(OTHER), image()[fed(np.asarray(9, np.int32))]))
    laws.check_failure(graph, 0, 1, 3)
    real = laws._failure
    reported: list[str] = []

    def failure(graph: Graph, config: PipelineConfig, find: Any) -> Any:
        return (0, reported[0]) if config.passes else real(graph, config, find)

    monkeypatch.setattr(laws, "_failure", failure)
    config = PipelineConfig(batch_size=1, threads=1, seed=3, depth=0, passes=frozenset())
    index = real(laws._ending_with(graph, graph.nodes[graph.outputs[1].node]), config, find)
    assert index is not None
    reported[:] = [index[1]]
    assert reported[0].startswith("`[]`")
    laws.check_failure(graph, 0, 1, 3)
    reported[:] = ["`+`: another text"]
    with pytest.raises(AssertionError, match="which is no error of the row"):
        laws.check_failure(graph, 0, 1, 3)
