# SPDX-License-Identifier: Apache-2.0
"""Functions of `pipeline_def` as picklers by value take them, which Ray Serve uses for a program's own functions."""

from __future__ import annotations

import pickle
import types
from collections.abc import Iterator
from typing import Any

import pytest

from stoker import fn, pipeline_def
from stoker.dali import pipeline_def as dali_pipeline_def


def numbers() -> Any:
    return fn.random.uniform(range=[0, 1])


def referenced(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield what a pickle by value of a function holds: the globals that its code names, and its closure."""
    for name in function.__code__.co_names:
        if name in function.__globals__:
            yield name, function.__globals__[name]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield name, cell.cell_contents


def check(name: str, value: Any, seen: set[int]) -> None:
    """Pickle a value, and a function that its name does not lead to by value; modules are pickled by their names."""
    if isinstance(value, types.ModuleType) or id(value) in seen:
        return
    seen.add(id(value))
    try:
        pickle.dumps(value)
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        if not isinstance(value, types.FunctionType):
            raise AssertionError(f"{name} cannot be pickled: {error}") from error
        for inner, held in referenced(value):
            check(f"{name}.{inner}", held, seen)


@pytest.mark.parametrize("define", [pipeline_def, dali_pipeline_def], ids=["stoker", "dali"])
def test_all_that_a_definition_refers_to_can_be_pickled(define: Any) -> None:
    made = define(batch_size=2, enable_conditionals=True)(numbers)
    assert dict(referenced(made))
    check("made", made, set())
