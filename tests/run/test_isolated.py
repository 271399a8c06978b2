# SPDX-License-Identifier: Apache-2.0
"""Operators in processes of their own: results, crashes, exits, hangs, closing, Ctrl-C, spawned processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, StateError, cpp, eager, fn
from tests.idle_clock import HANG_S
from tests.run import isolated_functions as functions

LIMIT_S = 2.5  # of calls that hang; far more than other calls take on a busy machine


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    yield
    gc.collect()
    deadline = time.monotonic() + 20
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not multiprocessing.active_children()


def numbers(count: int = 6, size: int = 2) -> list[Any]:
    return [np.full(size, n, np.int64) for n in range(count)]


def pipeline(function: Any, *, inputs: Any = None, isolate: bool = True, limit_s: float = 60.0, **more: Any) -> Any:
    given = {key: more.pop(key) for key in ("num_outputs", "batch_processing", "output_dtypes") if key in more}
    if "output_dtypes" in given:
        given["output_ndims"] = [1] * len(given["output_dtypes"])
    arguments = {"batch_size": 2, "num_threads": 2, "seed": 5, **more}
    with Pipeline(**arguments) as pipe:
        x = fn.external_source(source=[numbers()[i : i + 2] for i in (0, 2, 4)] if inputs is None else inputs)
        found = fn.python_function(x, function=function, isolate=isolate, time_limit_s=limit_s, **given)
        pipe.set_outputs(*(found if isinstance(found, tuple) else (found,)))
    return pipe


def run(pipe: Any) -> list[Any]:
    """Return the first elements of all rows."""
    with pipe:
        return [int(np.asarray(row).reshape(-1)[0]) for _ in range(3) for row in pipe.run()[0]]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_results_are_those_of_the_same_process(method: str) -> None:
    drawn = run(pipeline(functions.drawn, py_start_method=method))
    assert drawn == run(pipeline(functions.drawn, isolate=False)) and len(set(drawn)) == 6
    assert run(pipeline(functions.of_a_batch, batch_processing=True, inputs=[numbers(2)] * 3)) == [2, 3] * 3


def test_another_process_computes_all_rows() -> None:
    ids = run(pipeline(functions.process))
    assert len(set(ids)) == 1 and os.getpid() not in ids
    one, two = (eager.python_function(np.zeros(1), function=functions.process, isolate=True, output_dtypes="int64",
                                      output_ndims=0) for _ in range(2))  # fmt: skip
    assert os.getpid() not in (one, two)


def test_functions_own_their_inputs() -> None:
    pipe = pipeline(functions.remember, inputs=[[np.full(3, n)] for n in range(3)], batch_size=1)
    assert run(pipe) == [1, 3, 6]


def test_outputs_of_all_kinds_and_sizes() -> None:
    rows = [[np.full(100_000, 5, np.float32)], [np.zeros(0, np.float32)], [np.full(300_000, 6, np.float32)]]
    with pipeline(functions.many, inputs=rows, num_outputs=3, batch_size=1) as pipe:
        for (row,) in rows:
            first, second, third = pipe.run()
            np.testing.assert_array_equal(first[0], row)
            assert second[0].shape == (0, 3) and bytes(np.asarray(third[0])) == b"ab"


FAULTS = [
    (functions.crash, "its process was killed by SIGSEGV"),
    (functions.abort, "its process was killed by SIGABRT"),
    (functions.leave, "its process ended with exit code 7"),
    (functions.hang, f"expected a result within {LIMIT_S:g} s, got none"),
    (functions.refuse, "ValueError: no threes|no threes"),
]


@pytest.mark.parametrize(("function", "text"), FAULTS)
def test_a_fault_names_its_sample_and_the_pipeline_goes_on(function: Any, text: str) -> None:
    with pipeline(function, limit_s=LIMIT_S) as pipe:
        assert [int(x[0]) for x in pipe.run()[0]] == [1, 2]
        line = sys._getframe().f_code.co_filename
        with pytest.raises(DataError, match=text) as caught:
            pipe.run()
        assert caught.value.row == 1 and "`python_function`" in str(caught.value)
        assert line in str(caught.value), "the line of the operator"
        assert [int(x[0]) for x in pipe.run()[0]] == [5, 6]


def test_the_crash_log_is_the_cause() -> None:
    with pipeline(functions.crash) as pipe:
        pipe.run()
        with pytest.raises(DataError) as caught:
            pipe.run()
    causes, error = [], caught.value
    while error is not None:
        causes.append(str(error))
        error = error.__cause__  # type: ignore[assignment]
    assert any("string_at" in text for text in causes), causes


def test_faults_are_bad_samples() -> None:
    with pipeline(functions.abort, on_error="skip") as pipe:
        assert [int(x[0]) for _ in range(3) for x in pipe.run()[0]] == [1, 2, 3, 5, 6]


def test_the_first_sample_may_crash() -> None:
    pipe = pipeline(functions.abort, inputs=[[np.full(1, 3), np.full(1, 8)]], output_dtypes=["int64"])
    with pipe, pytest.raises(DataError, match="SIGABRT"):
        pipe.run()
    with pipeline(functions.abort, inputs=[numbers(6)[2:4], numbers(2)], on_error="skip") as pipe:
        assert [int(x[0]) for x in pipe.run()[0]] == [3]


def test_a_crash_of_a_batch_fails_all_of_its_rows() -> None:
    with pipeline(functions.of_a_batch, batch_processing=True) as pipe:
        pipe.run()
        with pytest.raises(DataError, match="SIGABRT"):
            pipe.run()
        assert [int(x[0]) for x in pipe.run()[0]] == [6, 7]


def test_a_pipeline_closes_while_a_function_hangs() -> None:
    pipe = pipeline(functions.hang)
    pipe.build()
    pipe.run()
    caught: list[BaseException] = []

    def wait() -> None:
        try:
            pipe.run()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.3)
    pipe.close()
    thread.join(HANG_S)
    assert not thread.is_alive() and isinstance(caught[0], (StateError, DataError))


def test_a_forgotten_pipeline_ends_its_process() -> None:
    pipe = pipeline(functions.process, prefetch_queue_depth=1)
    pipe.run()
    del pipe  # the fixture checks


def test_eager_calls_leave_nothing() -> None:
    for _ in range(2):
        x = eager.python_function(
            np.arange(3), function=functions.crash, isolate=True, output_dtypes="int64", output_ndims=1
        )
        assert x.tolist() == [1, 2, 3]
        with pytest.raises(DataError, match="SIGSEGV"):
            eager.python_function(
                np.full(1, 3), function=functions.crash, isolate=True, output_dtypes="int64", output_ndims=1
            )


def test_arguments_that_are_refused() -> None:
    with pytest.raises(ArgumentError, match="expected `time_limit_s` above 0, got 0"):
        pipeline(functions.refuse, limit_s=0.0)
    with (
        pipeline(lambda x: x, py_start_method="spawn") as pipe,
        pytest.raises((ArgumentError, DataError), match="expected an operator that can be sent to another process"),
    ):
        pipe.run()


CTRL_C = """
import sys
import numpy as np
sys.path[:0] = [{folder!r}]
import isolated_functions as functions
from stoker import Pipeline, fn
with Pipeline(batch_size=1, num_threads=1, exec_async={is_async}) as pipe:
    x = fn.external_source(source=[[np.full(2, n, np.int64)] for n in (0, 3, 4)])
    pipe.set_outputs(fn.python_function(x, function=functions.hang, isolate=True))
pipe.run()
print("hangs", flush=True)
try:
    pipe.run()
except KeyboardInterrupt:
    print("interrupted", flush=True)
pipe.close()
import multiprocessing
assert not multiprocessing.active_children()
print("ended", flush=True)
"""


@pytest.mark.parametrize("is_async", [False, True])
def test_ctrl_c_ends_the_wait_and_the_process(is_async: bool) -> None:
    code = CTRL_C.format(folder=str(Path(functions.__file__).parent), is_async=is_async)
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout is not None and child.stdout.readline() == "hangs\n"
            time.sleep(0.5)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=HANG_S - 20)
        finally:
            child.kill()
    assert out == "interrupted\nended\n", err


def test_processes_end_with_a_killed_parent() -> None:
    code = CTRL_C.format(folder=str(Path(functions.__file__).parent), is_async=True)
    code = code.replace(
        'print("hangs"', 'import multiprocessing; print(multiprocessing.active_children()[0].pid)\nprint("hangs"'
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert child.stdout is not None
        number = int(child.stdout.readline())
        child.stdout.readline()
    finally:
        child.kill()
        child.communicate(timeout=HANG_S - 20)
    deadline = time.monotonic() + 20
    while is_running(number) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not is_running(number)


def is_running(number: int) -> bool:
    """Return whether a process runs. One that has ended may stay in the table if no process reaps orphans."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in ("Z", "X")


# ---- C++ ----

compiled = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "c++", "clang++"))),
    reason="compiles an operator at run time as `cpp.load` does, and this machine has none of g++, c++ and clang++",
)


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("STOKER_KERNEL_CACHE", str(tmp_path / "kernels"))

    def load(declaration: str, body: str, name: str, **more: Any) -> Any:
        head = "#include <stoker/op.h>\n#include <cstdlib>\n#include <unistd.h>\n"
        return cpp.load(f'{head}ST_DECLARE(R"({declaration})")\nST_RUN(row) {{\n{body}\n}}\n', name, **more)

    return load


EVERYTHING = """
  Rows with everything that the interface has.
  input x: float32 | float64 (n, 2)
  input y: int32 (n)
  output: type of x (count <= n * 2, 2)
  output: int64 (count <= n * 2)
  argument gain: float = 1.5. Factor.
  argument lift: int = 2. Addend.
  check gain > 0: expected `gain` above 0
  draws
"""
BODY = """
  st::Array<const int32_t> y(row.in(1));
  st::Array<int64_t> second(row.out(1));
  int64_t* const area = row.scratch<int64_t>(4);
  int64_t kept = 0;
  st::dispatch(row.in(0), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_floating_point<T>::value) {
      st::Array<const T> x(row.in(0));
      st::Array<T> out(row.out(0));
      for (int64_t i = 0; i < x.shape(0); ++i) {
        if (y(i) < 0) throw std::invalid_argument("expected numbers of at least 0");
        area[0] = y(i) + static_cast<int64_t>(row.arg(1)) + static_cast<int64_t>(row.key()) + row.epoch();
        out(kept, 0) = static_cast<T>(row.uniform() * row.arg(0));
        out(kept, 1) = x(i, 1);
        second(kept++) = area[0];
      }
    }
  });
  row.set_count(kept);
"""


@compiled
def test_code_in_another_process_has_the_same_bits(load: Any) -> None:
    rng = np.random.default_rng(2)
    xs = [rng.uniform(0, 1, (n, 2)).astype(np.float32)[::-1] for n in (5, 0, 3)]
    ys = [np.arange(len(x), dtype=np.int32) for x in xs]
    found = []
    for isolate in (False, True):
        operator = load(EVERYTHING, BODY, f"t_everything_{isolate}".lower(), isolate=isolate)
        with Pipeline(batch_size=3, num_threads=2, seed=9) as pipe:
            x, y = fn.external_source(source=[(xs, ys)] * 2, num_outputs=2)
            gain = fn.random.uniform(range=(1, 2))
            pipe.set_outputs(*operator(x, y, gain=gain, lift=3))
        with pipe:
            found.append([[np.asarray(row) for column in pipe.run() for row in column] for _ in range(2)])
        with pytest.raises((ArgumentError, DataError), match="expected `gain` above 0"):
            operator(xs[0], ys[0], gain=-1.0)
        with pytest.raises(DataError, match="expected numbers of at least 0"):
            operator(xs[0], ys[0] - 9)
        with pytest.raises(ArgumentError, match="float32, float64, got int64"):
            operator(xs[0].astype(np.int64), ys[0])
    for one, other in zip(*([row for batch in f for row in batch] for f in found), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@compiled
def test_code_that_crashes_or_hangs(load: Any) -> None:
    body = """
      st::Array<const int64_t> x(row.in(0));
      st::Array<int64_t> y(row.out(0));
      if (x(0) == 3) *reinterpret_cast<volatile int*>(8) = 1;
      if (x(0) == 4) std::abort();
      if (x(0) == 5) for (;;) ::pause();
      y(0) = x(0) + 1;
    """
    declaration = "input x: int64 (n)\noutput: like x"
    operator = load(declaration, body, "t_fault", isolate=True, time_limit_s=LIMIT_S)
    with Pipeline(batch_size=1, num_threads=2) as pipe:
        pipe.set_outputs(operator(fn.external_source(source=[[np.full(1, n)] for n in range(7)])))
    texts = {3: "killed by SIGSEGV", 4: "killed by SIGABRT", 5: f"within {LIMIT_S:g} s"}
    with pipe:
        for n in range(7):
            if n not in texts:
                assert int(pipe.run()[0][0][0]) == n + 1
                continue
            with pytest.raises(DataError, match=texts[n]) as caught:
                pipe.run()
            assert "`t_fault`" in str(caught.value) and Path(__file__).name in str(caught.value)
    with pytest.raises(ArgumentError, match="expected `isolate=True` without `cuda`"):
        load(declaration, body, "t_fault2", isolate=True, cuda="#include <stoker/op.cuh>\n")
    with pytest.raises(ArgumentError, match="`t_fault3`: expected `time_limit_s` above 0, got 0"):
        load(declaration, body, "t_fault3", isolate=True, time_limit_s=0)


@compiled
def test_isolated_code_keeps_the_laws_of_operators(load: Any) -> None:
    from stoker.testing import check_operator

    body = (
        "st::Array<const uint8_t> x(row.in(0)); st::Array<uint8_t> y(row.out(0));"
        " for (int64_t i = 0; i < x.shape(0); ++i) for (int64_t j = 0; j < x.shape(1); ++j)"
        " for (int64_t k = 0; k < x.shape(2); ++k) y(i, j, k) = 255 - x(i, j, k);"
    )
    found = load(
        "input x: uint8 (h, w, c)\noutput: like x", body, "t_inverse", isolate=True, reference=lambda x: 255 - x
    )
    check_operator(found.operator)
