# SPDX-License-Identifier: Apache-2.0
"""Sources of ``stoker.dali`` in spawned processes: functions that these cannot import are sent by value, as in DALI."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError
from stoker.dali import fn, pipeline_def, types
from stoker.dali.pickling import pickle_by_value
from stoker.frontends.dali.by_value import ByValuePickler

SCALE = 3


def copied(x: Any) -> Any:
    """Return the object as another process gets it."""
    return ByValuePickler.loads(ByValuePickler.dumps(x))


def scaled(i: int) -> int:
    return i * SCALE


def results(source: Any, **settings: Any) -> list[list[float]]:
    """Return two batches of a source in two spawned processes."""

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, py_num_workers=2, py_start_method="spawn", **settings)
    def pipe() -> Any:
        return fn.external_source(source=source, parallel=True, batch=False, dtype=types.FLOAT)

    made = pipe()
    try:
        return [[float(np.asarray(x)) for x in made.run()[0]] for _ in range(2)]
    finally:
        made.close()


def test_lambdas_and_local_functions_run_in_spawned_processes() -> None:
    offset = [10.0]

    def power(n: float, exponent: int) -> float:
        return 1.0 if exponent == 0 else n * power(n, exponent - 1)

    def local(info: Any, *, plus: float = 0.5) -> Any:
        return np.float32(power(info.idx_in_epoch, 2) + offset[0] + plus + math.floor(SCALE))

    assert results(local) == [[13.5, 14.5], [17.5, 22.5]]
    assert results(lambda info: np.float32(info.idx_in_epoch * SCALE)) == [[0, 3], [6, 9]]


def test_what_cannot_be_sent_is_refused_with_the_way_out() -> None:
    lock = (i for i in range(3))  # a generator is not pickled, by no pickler
    with pytest.raises(ArgumentError, match=r"sent to another process, got one that cannot: .*generator"):
        results(lambda info: np.float32(next(lock)))


def test_closures_keep_their_variables() -> None:
    def counter() -> tuple[Callable[[], int], Callable[[], int]]:
        count = 0

        def up() -> int:
            nonlocal count
            count += 1
            return count

        def twice() -> int:
            return up() + up()

        return up, twice

    up, twice = copied(counter())
    assert (up(), twice(), up()) == (1, 5, 4)

    def unset() -> Any:
        return later

    with pytest.raises(NameError):
        copied(unset)()
    if SCALE == 0:
        later = 1


def test_defaults_attributes_and_globals() -> None:
    def documented(x: int, y: int = 2, *, z: int = 3) -> list[int]:
        """Return numbers."""
        return [x, y, z, SCALE, *(SCALE + i for i in range(2))]

    documented.unit = "pixels"  # type: ignore[attr-defined]
    again = copied(documented)
    assert again(1) == documented(1) and again.unit == "pixels"
    assert (again.__doc__, again.__name__, again.__module__) == ("Return numbers.", "documented", __name__)
    assert again.__qualname__ == documented.__qualname__ and again.__globals__ is not documented.__globals__
    assert set(again.__globals__) == {"__builtins__", "__name__", "SCALE"}
    modules = copied(lambda: (math, sys.modules))
    assert modules()[0] is math


def test_functions_of_modules_are_sent_by_name_unless_marked() -> None:
    assert copied(scaled) is scaled and copied(math.sin) is math.sin
    module = ModuleType("nowhere")
    exec("def f(i):\n    return i + 1", module.__dict__)  # a module that no process can import
    assert copied(module.f)(2) == 3
    marked = pickle_by_value(lambda i: scaled(i))
    assert copied(marked)(2) == 6
    try:
        assert pickle_by_value(scaled) is scaled
        assert copied(scaled) is not scaled and copied(scaled)(2) == 6
    finally:
        del scaled.__dict__["_stoker_by_value"]
    with pytest.raises(TypeError, match="expected a function, got builtin"):
        pickle_by_value(math.sin)
