# SPDX-License-Identifier: Apache-2.0
"""Messages with values, and warnings with names, that are hostile: they stay printable and raise nothing."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
from stoker import ArgumentError, DataError, Pipeline, ResourceError, eager, fn, math, samplers, types
from stoker.contract.text import brief, reason_of
from stoker.contract.warning import warn, warn_at_line
from tests.hostile import values
from tests.hostile.walk import write_files

OBJECTS = dict(values.OBJECTS)
IMAGE = np.zeros((4, 5, 3), np.uint8)


def node() -> Any:
    return fn.external_source(lambda: [IMAGE])


def run(define: Callable[[], Any], batches: int = 1) -> list[Any]:
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1, exec_async=False)
    try:
        with pipe:
            pipe.set_outputs(define())
        return [pipe.run()[0] for _ in range(batches)]
    finally:
        pipe.close()


CALLS: dict[str, Callable[[Any], object]] = {
    "index": lambda x: run(lambda: node()[:, x]),
    "step": lambda x: run(lambda: node()[::x]),
    "function": lambda x: run(lambda: fn.python_function(node(), function=x)),
    "operand": lambda x: run(lambda: node() + x),
    "math": math.sqrt,
    "allow": lambda x: Pipeline.deserialize("{}", allow=x),
    "constant": types.Constant,
    "size": lambda x: eager.resize(IMAGE, size=x),
    "ndim": lambda x: run(lambda: fn.external_source(lambda: [1], dtype=types.INT32, ndim=x)),
    "mixed sizes": lambda x: samplers.Mixed(x, [1.0]),
    "mixed weights": lambda x: samplers.Mixed([3], x),
}


@pytest.mark.parametrize("value", ["list 2000 deep", "unprintable", "[unprintable]", "cyclic list", "failing"])
@pytest.mark.parametrize("call", CALLS)
def test_values_without_a_text(call: str, value: str) -> None:
    with pytest.raises(stoker.StokerError) as raised:
        CALLS[call](OBJECTS[value]())
    assert 20 < len(str(raised.value)) < 400 and str(raised.value).isprintable()


def test_values_and_errors_have_a_text() -> None:
    for name in ("list 2000 deep", "unprintable", "cyclic list", "failing"):
        assert 0 < len(brief(OBJECTS[name]())) <= 80
    assert brief(10**5000) == "<int>"  # Python prints at most 4300 digits
    assert reason_of(values.UnprintableError()) == "UnprintableError"
    assert reason_of(ValueError("a\x1b")) == r"a\x1b" and reason_of(ValueError()) == "ValueError"


@pytest.mark.parametrize("value", ["failing", "refusing array"])
def test_functions_and_sources_whose_results_fail(value: str) -> None:
    with pytest.raises(DataError):
        run(lambda: fn.python_function(node(), function=lambda x: OBJECTS[value]()))
    with pytest.raises(DataError):
        run(lambda: fn.external_source(lambda: [OBJECTS[value]()]))

    def fails(x: Any) -> Any:
        raise values.UnprintableError

    with pytest.raises(DataError, match="UnprintableError"):
        run(lambda: fn.python_function(node(), function=fails))


# ---- samplers ----


def numbers_then(error: Exception) -> Iterator[int]:
    yield 0
    raise error


class Twice:
    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[Any]:
        return iter([0, 2**70])


@pytest.mark.parametrize(
    ("sampler", "text"),
    [
        (np.float32(3), "expected a sampler that can be iterated, got a float32"),
        (values.Failing(), "expected `sampler` to have a length, got <Failing>: UnprintableError: UnprintableError"),
        (numbers_then(TypeError("not\x1b again")), r"which raised TypeError: not\\x1b again"),
        (numbers_then(values.UnprintableError()), "which raised UnprintableError"),
        (Twice(), "expected whole numbers from the sampler, got 1180591620717411303424"),
    ],
)
def test_samplers_that_fail(sampler: Any, text: str, tmp_path: Path) -> None:
    root = str(write_files(tmp_path).parent)
    with pytest.raises((ArgumentError, DataError), match=text):
        run(lambda: fn.readers.file(file_root=root, sampler=sampler)[0], 2)


@pytest.mark.parametrize(
    "weights",
    [np.array([np.zeros(2), None], object), np.array(None, object), np.longdouble("1e4000"), [1j, 1], [10**400, 1]],
)
def test_weights_that_are_no_numbers(weights: Any) -> None:
    for make in (lambda: samplers.Weighted(weights), lambda: samplers.Mixed([3, 3], weights)):
        with pytest.raises(ArgumentError, match="`weights`"):
            make()


def test_weights_whose_sum_is_no_double(tmp_path: Path) -> None:
    huge = samplers.Weighted([1.7e308] * 6, seed=3)
    assert repr(samplers.Mixed([3, 3], [1.7e308] * 2)) == repr(samplers.Mixed([3, 3], [1, 1]))
    root = str(write_files(tmp_path).parent)
    labels = [np.asarray(b[0]).item() for b in run(lambda: fn.readers.file(file_root=root, sampler=huge)[1], 3)]
    assert labels == [0] * 3


# ---- extents and ranks ----


@pytest.mark.parametrize("ndim", [2**40, 2**70, 33])
def test_ranks_beyond_any_array(ndim: int) -> None:
    with pytest.raises(ArgumentError, match=r"`ndim`: expected"):
        run(lambda: fn.external_source(lambda: [1], dtype=types.INT32, ndim=ndim))
    with pytest.raises(ArgumentError, match=r"output_ndims"):
        run(lambda: fn.python_function(node(), function=abs, output_dtypes=types.INT32, output_ndims=ndim))


EMPTY = [(2**40, 0, 3), (2**40, 9, 0), (2**31, 0, 3)]


@pytest.mark.parametrize("shape", EMPTY)
def test_operators_on_arrays_of_many_empty_rows_end(shape: tuple[int, ...]) -> None:
    x = np.zeros(shape, np.uint8)
    assert eager.equalize(x).shape == shape
    assert eager.flip(x).shape == shape
    assert eager.cast(x, dtype=types.FLOAT).shape == shape


def test_videos_of_many_empty_frames_end() -> None:
    x = np.zeros((2**40, 0, 9, 3), np.uint8)
    with pytest.raises(stoker.StokerError):
        eager.equalize(np.zeros((3,), np.uint8))
    pipe = Pipeline(batch_size=1, num_threads=1, exec_async=False)
    with pipe:
        pipe.set_outputs(fn.equalize(fn.external_source(lambda: [x], layout="FHWC")))
    with pipe:
        (out,) = pipe.run()
        assert out[0].shape == x.shape


def test_constants_that_no_memory_holds() -> None:
    wide = np.broadcast_to(np.uint8(3), (2**31, 2**31))
    with pytest.raises((ResourceError, ArgumentError)):
        run(lambda: fn.stack(types.Constant(wide), types.Constant(wide)))


def test_numbers_that_a_declared_type_does_not_hold() -> None:
    with pytest.raises(DataError, match="expected a number that float32 holds, got 1e\\+300"):
        run(lambda: fn.external_source(lambda: [1e300], dtype=types.FLOAT, ndim=0))
    assert np.isinf(np.asarray(run(lambda: fn.external_source(lambda: [np.inf], dtype=types.FLOAT, ndim=0))[0][0]))


# ---- warnings ----


def test_warnings_escape_names() -> None:
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        warn("of 'a\x1b[2J\u202e'")
        warn_at_line("of 'b\x1b'", "a.py", 3)
    assert [str(w.message) for w in issued] == [r"of 'a\x1b[2J\u202e'", r"of 'b\x1b'"]
    assert [(Path(w.filename).name, w.lineno) for w in issued][1] == ("a.py", 3)
    assert issued[0].filename == __file__


def test_all_warnings_go_through_one_function() -> None:
    """All other code must call `contract.warning`, which escapes names."""
    root = Path(stoker.__file__).parent
    direct = []
    for file in root.rglob("*.py"):
        if file == root / "contract" / "warning.py":
            continue
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Attribute) and call.attr in ("warn", "warn_explicit"):
                direct += [f"{file.relative_to(root)}:{call.lineno}"]
    assert direct == []
