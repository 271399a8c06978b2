# SPDX-License-Identifier: Apache-2.0
"""Native plans are checked as a whole before they run: each rule, and changes of the plans of all operators."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker.contract.types import DType
from stoker.native import _native
from tests.complete import COMPLETE
from tests.idle_clock import HANG_S
from tests.run.plan_mutations import Code, change, native_plan, replaced, run

ROOT = Path(__file__).parents[2]
SCRATCH, OUTPUT, INPUT, ALIAS, DEVICE = 0, 2, 3, 4, 6  # storage of values (native/plan/plan.hpp)
NATIVE, PYTHON, ON_DEVICE = 0, 1, 2  # kinds of segments
U8, F32, I64 = int(DType.UINT8), int(DType.FLOAT), int(DType.INT64)
MEAN = 3  # native/shared/reduce_fold.hpp
DIM, ELEM, CONST, ADD, ELEM_OR_ONLY = 1, 2, 0, 4, 37  # native/plan/scalar.hpp

VALUES, KERNELS, STEPS, OUTPUTS, SEGMENTS, BUFFERS = range(6)
IN, OUT, CODE, CONSTS, PARAMS, EXTENTS, CHECKS, GUARDS, FRAMES, FRAMED = range(10)


def step(inputs: list[int], outputs: list[int], code: Any, params: list[int], extents: Any) -> tuple[Any, ...]:
    return inputs, outputs, code, [0.0, 1.0], params, extents, [], [], -1, [0] * len(inputs), False, [], -1


def dims(value: int, *axes: int) -> list[tuple[int, int, int, int]]:
    """Return code: a constant in register 0, then the extents of some axes."""
    return [(CONST, 0, 0, 0), *((DIM, value, axis, 0) for axis in axes)]


# An image [3, 4, 5] of bytes: a view [5, 3, 4], its means [5, 4], and their means [5].
BASE: Code = (
    ((U8, 3, INPUT, 0), (U8, 3, ALIAS, 0), (F32, 2, SCRATCH, 0), (F32, 1, OUTPUT, 0)),
    (("view", ([(1, 0, 0, 0, 0, [2, 0, 1])], False)), ("reduce", (MEAN, 2)), ("reduce", (MEAN, 2))),
    (
        step([0], [1], [], [], [[]]),
        step([1], [2], dims(1, 0, 2), [0], [[1, 2]]),
        step([2], [3], dims(2, 0), [0], [[1]]),
    ),
    ((3, False, False, [], dims(0, 2), [0.0], [1], -1),),
    ((NATIVE, [0, 1, 2], [0]),),
    1,
    0,
)  # fmt: skip
IMAGE = np.arange(60, dtype=np.uint8).reshape(3, 4, 5)


def changed(*changes: tuple[tuple[int, ...], Any]) -> Code:
    code = BASE
    for path, new in changes:
        code = replaced(code, path, new)
    return code


@contextmanager
def running(code: Code) -> Iterator[tuple[Any, Any]]:
    engine = _native.Engine(native_plan(code), 1)
    job = engine.acquire(np.zeros(1, np.uint64), np.zeros(1, np.int64), 0, ())
    try:
        yield engine, job
    finally:
        engine.release(job)
        engine.close()


def result(code: Code, image: np.ndarray = IMAGE) -> tuple[np.ndarray | None, str]:
    """Return the output of a plan for a row, or the row's error."""
    with running(code) as (engine, job):
        job.feed(0, 0, image)
        engine.begin(job)
        assert engine.advance(job) is None
        if job.has_errors:
            return None, job.errors[0][-1].decode()
        return np.array(job.take_output(0)[0]), ""


def test_the_plan_is_right_as_it_is() -> None:
    made, _ = result(BASE)
    assert made is not None
    assert made.tolist() == IMAGE.astype(np.float32).transpose(2, 0, 1).mean(1).mean(1).tolist()


REFUSED: list[tuple[str, Sequence[tuple[tuple[int, ...], Any]], str]] = [
    # values and their memory
    ("type", [((VALUES, 0, 0), 13)], "value 0: expected one of 13 element types, got 13"),
    ("type-256", [((VALUES, 0, 0), 256)], "expected an element type, got 256"),
    ("rank", [((VALUES, 0, 1), 9)], "value 0: expected 0 to 8 axes, got 9"),
    ("negative rank", [((VALUES, 2, 1), -1)], "value 2: expected 0 to 8 axes, got -1"),
    ("storage", [((VALUES, 1, 2), 10)], "value 1: expected a kind of memory, got 10"),
    ("buffer", [((VALUES, 2, 3), 1)], "value 2: expected one of 1 scratch buffers, got 1"),
    ("buffers", [((BUFFERS,), -1)], "scratch buffers: expected 0 to one for each of 4 values, got -1"),
    ("output slot", [((VALUES, 3, 3), -1)], "value 3: expected one of 1 outputs, got -1"),
    ("memory of a view", [((VALUES, 1, 2), SCRATCH)], "kernel `view`, output 0: expected a view"),
    ("view of memory", [((VALUES, 2, 2), ALIAS)], "kernel `reduce`, output 0: expected memory that the step writes"),
    ("device", [((VALUES, 2, 2), DEVICE)], "kernel `reduce`, output 0: expected a kernel on a device"),
    # order
    ("no value", [((STEPS, 0, IN, 0), 4)], "step 0, kernel `view`, input 0: expected one of 4 values, got 4"),
    ("not made", [((STEPS, 0, IN, 0), 2)], "input 0: expected a value that an earlier step makes, got value 2"),
    ("made twice", [((STEPS, 1, OUT, 0), 1)], "expected a value that nothing else makes, got value 1"),
    ("fed and made", [((STEPS, 1, OUT, 0), 0)], "expected a value that nothing else makes, got value 0"),
    ("no step", [((SEGMENTS, 0, 1, 2), 3)], "segment 0: expected one of 3 steps, got 3"),
    ("step twice", [((SEGMENTS, 0, 1), [0, 1, 1, 2])], "expected a step that runs once, got step 1 again"),
    ("step left out", [((SEGMENTS, 0, 1), [0, 1])], "step 2: expected a segment with it, got none"),
    ("order", [((SEGMENTS, 0, 1), [1, 0, 2])], "expected a value that an earlier step makes, got value 1"),
    ("kind", [((SEGMENTS, 0, 0), 3)], "segment 0: expected a kind of segment, got 3"),
    ("python", [((SEGMENTS, 0, 0), PYTHON)], "expected a segment of kernels, got the other kind"),
    ("not opened", [((SEGMENTS, 0, 2), [])], "expected output 0 to be open"),
    ("opened twice", [((SEGMENTS, 0, 2), [0, 0])], "expected an output that is opened once"),
    (
        "buffer of an earlier segment",
        [((SEGMENTS,), ((NATIVE, [0, 1], []), (NATIVE, [2], [0])))],
        "step 2, kernel `reduce`, input 0: expected a scratch buffer of its own segment, got value 2",
    ),
    (
        "buffer of the input",
        [((VALUES,), (*BASE[VALUES], (F32, 1, SCRATCH, 0))), ((STEPS, 2, OUT, 0), 4)],
        "input 0: expected a scratch buffer that no later value has, got value 2",
    ),
    # scalar code
    ("operation", [((STEPS, 1, CODE, 0), (38, 0, 0, 0))], "instruction 0: expected an operation, got 38"),
    ("axis", [((STEPS, 1, CODE, 1), (DIM, 1, 3, 0))], "instruction 1: expected one of 3 axes of value 1, got 3"),
    ("constant", [((STEPS, 1, CODE, 0), (CONST, 2, 0, 0))], "instruction 0: expected one of 2 constants, got 2"),
    ("register", [((STEPS, 1, CODE, 1), (ADD, 0, 1, 0))], "instruction 1: expected an earlier register, got 1"),
    ("element", [((STEPS, 1, CODE, 1), (ELEM, 0, -1, 0))], "expected an element from the first on, got -1"),
    ("element or the only one", [((STEPS, 1, CODE, 1), (ELEM_OR_ONLY, 0, -1, 0))], "from the first on, got -1"),
    ("parameter", [((STEPS, 1, PARAMS), [3])], "parameters: expected one of 3 registers, got 3"),
    ("own extent", [((STEPS, 1, EXTENTS, 0, 0), -1)], "output 0, extents: expected one of 3 registers, got -1"),
    ("extents", [((STEPS, 1, EXTENTS, 0), [1])], "output 0: expected 2 extents, got 1"),
    ("check", [((STEPS, 1, CHECKS), [(5, 0, [])])], "check: expected one of 3 registers, got 5"),
    ("guard", [((STEPS, 1, GUARDS), [(7, True)])], "guard: expected one of 4 values, got 7"),
    ("frames", [((STEPS, 1, FRAMES), 0), ((STEPS, 1, FRAMED), [])], "expected 1 marks of framed inputs, got 0"),
    ("frames of a view", [((STEPS, 0, FRAMES), 0), ((STEPS, 0, CODE), [(CONST, 0, 0, 0)])], "memory reserved for it"),
    # outputs
    ("output value", [((OUTPUTS, 0, 0), 2)], "value 3: expected output 0 to be this value, got value 2"),
    ("output axes", [((OUTPUTS, 0, 6), [])], "output 0: expected 1 extents, got 0"),
    ("output code", [((OUTPUTS, 0, 4, 1), (DIM, 2, 0, 0))], "expected a value that an earlier step makes, got value 2"),
    ("output on a device", [((OUTPUTS, 0, 2), True)], "expected an output where the kernel runs"),
    ("fixed extents", [((OUTPUTS, 0, 1), True), ((OUTPUTS, 0, 3), [-1])], "output 0: expected extents of 0 or more"),
    ("placed", [((OUTPUTS, 0), (3, False, False, [], [], [], [], -1, 2))], "output 0: expected rows in host memory"),
    ("placed extents", [((OUTPUTS, 0), (*BASE[OUTPUTS][0], 2))], "output 0: expected extents that are known when"),
    ("root", [((OUTPUTS, 0), (2, False, False, [], [], [], [], -1, 9)), ((VALUES, 3), (F32, 1, SCRATCH, 0))],
     "output 0, root: expected one of 4 values"),
    ("root that is no allocation", [((VALUES, 3), (F32, 1, SCRATCH, 1)), ((BUFFERS,), 2),
      ((OUTPUTS, 0), (3, False, False, [], [], [], [], -1, 3))], "output 0, root: expected a value that a kernel"),
    # kernels
    ("inputs", [((STEPS, 1, IN), [1, 1])], "step 1, kernel `reduce`: expected 1 inputs, got 2"),
    ("outputs", [((STEPS, 2, OUT), [])], "step 2, kernel `reduce`: expected 1 outputs, got 0"),
    ("parameters", [((STEPS, 1, PARAMS), [])], "kernel `reduce`: expected at least 1 parameters, got 0"),
    ("view of another type", [((VALUES, 1, 0), F32)], "`view`, output 0: expected uint8 of input 0, got float32"),
    ("view of another rank", [((VALUES, 1, 1), 2)], "kernel `view`, output: expected 3 axes, got 2"),
    ("axis named twice", [((KERNELS, 0, 1, 0, 0, 5), [2, 0, 2])], "ops, view 0: expected each axis once, got 2 twice"),
    ("axis out of range", [((KERNELS, 0, 1, 0, 0, 5), [2, 0, 3])], "ops, view 0: expected one of 3 axes, got 3"),
    ("axis left out", [((KERNELS, 0, 1, 0, 0, 5), [2, 0])], "ops, view 0: expected an order of 3 axes, got 2"),
    ("kind of view", [((KERNELS, 0, 1, 0, 0, 0), 7)], "ops, view 0: expected a view operation, got 7"),
    ("slice", [((KERNELS, 0, 1, 0, 0, 0), 0)], "ops, view 0: expected one of 0 parameters, got 0"),
    ("reduced axes", [((KERNELS, 1, 1, 1), 8)], "kernel `reduce`, axes: expected bits of 3 axes, got 8"),
    ("reduction", [((KERNELS, 1, 1, 0), 8)], "expected a reduction, got 8"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "said"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_a_wrong_plan_is_refused(changes: Sequence[tuple[tuple[int, ...], Any]], said: str) -> None:
    with pytest.raises(ValueError) as refused:
        native_plan(changed(*changes))
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([((STEPS, 2, CODE), [(CONST, 0, 0, 0), (CONST, 1, 0, 0)])], "other extents than the memory"),
        ([((STEPS, 1, CODE, 2), (DIM, 1, 1, 0))], "expected memory for 20 results, got 15"),
        ([((STEPS, 1, CONSTS), [2.0**62, 1.0]), ((STEPS, 1, EXTENTS, 0), [0, 0])], "more than 2**40 bytes"),
        ([((STEPS, 1, CODE), [*dims(1, 0, 2), (ELEM, 0, 60, 0)])], "fewer elements than are used"),
        ([((STEPS, 1, CODE), [*dims(1, 0, 2), (ELEM_OR_ONLY, 0, 60, 0)])], "fewer elements than are used"),
        ([((STEPS, 1, FRAMES), 0), ((STEPS, 1, FRAMED), [1]), ((STEPS, 1, CONSTS), [6.0, 1.0]),
          ((KERNELS, 1, 1, 1), 1)], "expected 6 frames in all inputs and outputs, got fewer"),
    ],
    ids=["output", "results", "size", "element", "element or the only one", "frames"],
)  # fmt: skip
def test_extents_that_do_not_fit_fail_their_row(changes: Sequence[tuple[tuple[int, ...], Any]], said: str) -> None:
    _, error = result(changed(*changes))
    assert said in error


def test_a_plan_is_finished_once_and_frozen() -> None:
    plan = native_plan(BASE)
    for late in (
        lambda: plan.finish(1, 0),
        lambda: plan.add_value(U8, 1, SCRATCH, 0),
        lambda: plan.add_segment(NATIVE, [], []),
        lambda: plan.add_output(*BASE[OUTPUTS][0]),
        lambda: plan.add_step(_native.kernels.select(), *BASE[STEPS][0]),
    ):
        with pytest.raises(ValueError, match="not finished"):
            late()
    with pytest.raises(ValueError, match="expected a finished plan"):
        _native.Engine(_native.Plan(), 1)
    with pytest.raises(ValueError, match="expected at least one thread, got 0"):
        _native.Engine(plan, 0)


def test_a_batch_takes_what_its_plan_says() -> None:
    with running(BASE) as (engine, job):
        for wrong in (IMAGE[0], IMAGE.astype(np.int8), IMAGE[None]):
            with pytest.raises(ValueError, match="planned element type and number of axes"):
                job.feed(0, 0, wrong)
        with pytest.raises(ValueError, match="a value that the caller feeds"):
            job.feed(2, 0, np.zeros((5, 4), np.float32))
        for value, row in ((0, 1), (0, -1), (4, 0), (-1, 0)):
            with pytest.raises(IndexError):
                job.feed(value, row, IMAGE)
        with pytest.raises(ValueError, match="without axes"):
            job.feed_scalar(0, 0, 1.0)
        with pytest.raises(ValueError, match="planned type and rank"):
            job.put(0, 0, IMAGE)
        for call in (lambda: job.fail(1, 0, ""), lambda: job.active(0, 3), lambda: job.put(0, 9, IMAGE)):
            with pytest.raises(IndexError):
                call()
        with pytest.raises(ValueError, match="an input of a step that runs now"):
            job.array(0, 3)
        with pytest.raises(ValueError, match="a finished batch"):
            job.take_output(0)
        job.feed(0, 0, IMAGE)
        engine.begin(job)
        assert engine.advance(job) is None
        with pytest.raises(IndexError):
            job.take_output(1)
        job.take_output(0)
        with pytest.raises(ValueError, match="have not been taken"):
            job.take_output(0)
        with pytest.raises(ValueError, match="planned element type and number of axes"):
            engine.run_row([0], [IMAGE[0]], 0)
        for wrong in ([IMAGE, IMAGE[0]], IMAGE[0]):
            with pytest.raises(ValueError, match="planned element type and number of axes"):
                engine.run_columns([0], [wrong], 2, 0)
        with pytest.raises(ValueError, match="one array per row"):
            engine.run_columns([0], [[IMAGE]], 2, 0)
        with pytest.raises(ValueError, match="data for each value"):
            engine.run_columns([0], [], 2, 0)
        for rows in (0, -1):
            with pytest.raises(ValueError, match="at least one row"):
                engine.run_columns([0], [[]], rows, 0)


def test_a_call_takes_rows_and_numbers_that_its_plan_says() -> None:
    with running(BASE) as (engine, _):
        for wrong in (IMAGE[0], IMAGE.astype(np.int8)):
            rows = _native.array_rows([wrong, wrong], np.ndarray, {wrong.dtype: 1 if wrong.dtype == np.uint8 else 5})
            with pytest.raises(ValueError, match="planned element type and number of axes"):
                engine.run_columns([0], [rows], 2, 0)
        rows = _native.array_rows([IMAGE], np.ndarray, {IMAGE.dtype: 1})
        with pytest.raises(ValueError, match="one array per row"):
            engine.run_columns([0], [rows], 2, 0)
        with pytest.raises(ValueError, match="a value that the caller feeds"):
            engine.run_columns([2], [rows], 1, 0)
        for call in (engine.run_row, lambda v, d, s: engine.run_columns(v, d, 2, s)):
            with pytest.raises(ValueError, match="with one axis that the caller feeds"):
                call([0], [(1.0, 2.0)], 0)


def test_an_input_that_is_not_fed_fails_the_row() -> None:
    """Also in a batch that reuses the memory of one that was fed."""
    with running(BASE) as (engine, job):
        job.feed(0, 0, IMAGE)
        engine.begin(job)
        assert engine.advance(job) is None
        engine.release(job)
        again = engine.acquire(np.zeros(1, np.uint64), np.zeros(1, np.int64), 0, ())
        engine.begin(again)
        assert engine.advance(again) is None
        assert b"an input of the plan was not fed" in again.errors[0][-1]


def test_changes_are_found() -> None:
    """The search below changes what it says it changes, and a change that matters is noticed."""
    draw, seen = random.Random(3), set()
    for _ in range(300):
        code, what = change(BASE, draw)
        assert code != BASE or "->" in what
        seen.add(run(code, {0: IMAGE}))
    assert seen == {"refused", "failed", "ran"}


def test_no_change_of_a_plan_crashes() -> None:
    """Some changes of the plan of every operator, in a process of its own."""
    command = [sys.executable, "-m", "tests.run.plan_mutations", "--each", "12" if COMPLETE else "4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\nWith `--trace` the last line is the change."
    counts = {name: int(n) for name, n in (part.split() for part in done.stdout.splitlines()[-1].split(", "))}
    assert all(counts[outcome] > (100 if COMPLETE else 30) for outcome in ("refused", "failed", "ran")), done.stdout
