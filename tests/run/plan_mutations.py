# SPDX-License-Identifier: Apache-2.0
"""Native plans with one or two wrong numbers. Native code must refuse the plan or fail the row, and never crash.

The operators' cases and inputs (``cases``, ``case_inputs``) give plans that work. This program changes numbers, orders
and lengths in them, builds the native plan without the planner's checks, feeds it and runs a row. ``--trace`` prints
each change before it is tried, so that the last line is the change that crashed.

Usage: python -m tests.run.plan_mutations [--each 40] [--seconds 0] [--seed 1] [--trace] [OPERATOR...]
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from stoker.contract.samples import images
from stoker.contract.step import Native, PyCall
from stoker.contract.types import DType
from stoker.frontends.registry import find as find_public
from stoker.graph.plan import HostKernel, PlannedCodecKernel
from stoker.graph.planner import make_plan
from stoker.native import _native
from stoker.ops._index import INDEX
from stoker.testing.laws import _Trial

NATIVE, SCRATCH, OUTPUT, INPUT, ALIAS = 0, 0, 2, 3, 4  # kind of a segment, storage of values (native/plan/plan.hpp)
INTS = (-1, 0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 64, 255, 256, 1000, 2**31 - 1, -(2**31), 2**63 - 1)
FLOATS = (-1.0, -0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 64.0, 3000.0, -3000.0, 2.0**31, 2.0**53, -(2.0**63), 1e300)
FLOATS += (float("nan"), float("inf"), float("-inf"))
REFUSALS = (ValueError, TypeError, IndexError, OverflowError, MemoryError, RuntimeError)
MANY = 1000  # of iterations that a kernel may be options to do

# (values, kernels, steps, outputs, segments, scratch buffers, index columns), and an array per fed value
Code = tuple[Any, ...]
Arrays = dict[int, np.ndarray]


# ---- plans that work ----


def operator_plans(names: Sequence[str] = ()) -> Iterator[tuple[str, Code, Arrays]]:
    """Yield a name, the plan and a row's inputs for each case of the operators that run in native code."""
    for name in names or INDEX:
        operator = find_public(name)
        reads = operator.is_source or operator.__module__.startswith("stoker.readers.")
        if reads or operator.stateful or not operator.pure:
            continue
        for number, case in enumerate(operator.cases):
            given = operator.case_inputs(case)
            rows = images(copies=operator.inputs[0]) if given is None else given
            data = [tuple(map(np.asarray, row)) for row in rows]
            for passes in (frozenset[str](), frozenset({"equal_steps", "decode_window", "fusion", "memory"})):
                found = _planned(operator, dict(case), data, passes)
                if found is not None:
                    yield f"{name}-{number}", *found


def _planned(operator: Any, case: dict[str, Any], data: Any, passes: frozenset[str]) -> tuple[Code, Arrays] | None:
    trial = _Trial(operator, case, data, (), 1, {})
    graph, feeds = trial.graph({})
    plan = make_plan(graph, trial.find, passes=passes)
    if any(isinstance(step.body, PyCall) for step in plan.steps):
        return None
    code = plan.code
    kernels = tuple(_host(kernel) for kernel in code.kernels)
    arrays = {value: np.asarray(feeds[key][0], order="C") for key, value in plan.fed.items()}
    counts = code.scratch_buffers, code.index_columns
    return (code.values, kernels, code.steps, code.outputs, code.segments, *counts), arrays


def _host(kernel: Any) -> tuple[str, tuple[Any, ...]]:
    if isinstance(kernel, PlannedCodecKernel):
        body: Native = kernel.body
        return body.kernel, body.attrs
    assert isinstance(kernel, HostKernel)
    return kernel.name, kernel.arguments


def reading_plans() -> Iterator[tuple[str, Code, Arrays]]:
    """Yield plans of the kernels that read a row's columns."""
    table = np.arange(12, dtype=np.int32)
    for name, arguments, dtype, shape in (
        ("index", (0,), DType.INT64, []),
        ("lookup", (table, 3, 0), DType.INT32, [4]),
    ):
        step = [], [0], [(0, 0, 0, 0)], [4.0], [], [[0] * len(shape)], [], [], -1, [], False, [], -1
        values = ((int(dtype), len(shape), OUTPUT, 0),)
        outputs = ((0, True, False, shape, [], [], [], -1),)
        yield name, (values, ((name, arguments),), (step,), outputs, ((NATIVE, [0], [0]),), 0, 1), {}
    # A record is read into the memory of an output, which is a part of it.
    memory = (np.arange(30, dtype=np.uint8) * 0,)
    whole = [np.array([n] * 3, t) for n, t in ((0, np.uint32), (0, np.uint64), (30, np.uint64), (0, np.uint8))]
    records = _native.MemoryTable(memory, *whole)
    values = ((int(DType.UINT8), 1, SCRATCH, 0), (int(DType.UINT8), 1, ALIAS, 0))
    step = [], [0], [], [], [], [[]], [], [], -1, [], False, [], -1
    view = [0, 0], [1], [], [], [], [[]], [], [], -1, [0, 0], False, [], -1
    kernels = ("read_range", (records, 0)), ("image_of_record", ())
    outputs = ((1, False, False, [], [], [], [], -1, 0),)
    yield "image_of_record", (values, kernels, (step, view), outputs, ((NATIVE, [0, 1], [0]),), 1, 1), {}


# ---- changes ----


def leaves(node: Any, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Yield the path and the value of every number and every list."""
    if isinstance(node, (tuple, list)):
        yield path, node
        for i, child in enumerate(node):
            yield from leaves(child, (*path, i))
    elif isinstance(node, (bool, int, float, np.integer)):
        yield path, node


def replaced(node: Any, path: tuple[int, ...], new: Any) -> Any:
    """Return ``node`` with another part at ``path``."""
    if not path:
        return new
    copy = list(node)
    copy[path[0]] = replaced(copy[path[0]], path[1:], new)
    return tuple(copy) if isinstance(node, tuple) else copy


def _changed_list(node: Any, draw: random.Random) -> Any:
    items = list(node)
    kind = draw.randrange(5)
    if kind == 0 or not items:
        items = [*items, items[-1] if items else 0]
    elif kind == 1:
        items.pop(draw.randrange(len(items)))
    elif kind == 2:
        items = []
    elif kind == 3:
        draw.shuffle(items)
    else:
        items = items * 2
    return tuple(items) if isinstance(node, tuple) else items


def _changed_number(value: Any, draw: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return draw.choice((*FLOATS, value + 1, value - 1, -value))
    return draw.choice((*INTS, int(value) + 1, int(value) - 1))


def change(code: Code, draw: random.Random) -> tuple[Code, str]:
    """Return the plan with a change, and the description of the change."""
    path, value = draw.choice(list(leaves(code)))
    is_list = isinstance(value, (tuple, list))
    new = _changed_list(value, draw) if is_list else _changed_number(value, draw)
    if path[:1] == (1,) and isinstance(new, int) and abs(new) > MANY and code[1][path[1]][0] == "crop_window":
        new = MANY  # `attempts`
    return replaced(code, path, new), f"{path}: {value!r:.60} -> {new!r:.60}"


# ---- running ----


def native_plan(code: Code) -> _native.Plan:
    values, kernels, steps, outputs, segments, buffers, columns = code
    plan = _native.Plan()
    for value in values:
        plan.add_value(*value)
    for (name, arguments), step in zip(kernels, steps, strict=True):
        plan.add_step(getattr(_native.kernels, name)(*arguments), *step)
    for output in outputs:
        plan.add_output(*output)
    for segment in segments:
        plan.add_segment(*segment)
    plan.finish(buffers, columns)
    return plan


def _array(code: Code, value: int, arrays: Arrays) -> np.ndarray:
    """Return the array for a value, of the type and rank that the changed plan wants."""
    number, rank, *_ = code[0][value]
    given = arrays.get(value)
    dtype = DType(number).numpy
    return given if given is not None and given.ndim == rank and given.dtype == dtype else np.zeros((3,) * rank, dtype)


def run(code: Code, arrays: Arrays) -> str:
    """Make a plan and run one row; return "refused", "failed" or "ran"."""
    try:
        plan = native_plan(code)
        engine = _native.Engine(plan, 1)
    except REFUSALS:
        return "refused"
    columns = code[6]
    indices = tuple(np.full(1, 1, np.int64) for _ in range(columns)) if columns < MANY else ()
    try:
        job = engine.acquire(np.full(1, 5, np.uint64), np.zeros(1, np.int64), 1, indices)
    except REFUSALS:
        return "refused"
    fed = [(v, _array(code, v, arrays)) for v, (*_, storage, _slot) in enumerate(code[0]) if storage == INPUT]
    try:
        for value, array in fed:
            job.feed(value, 0, array)
        engine.begin(job)
        while (work := engine.advance(job)) is not None:  # a kernel hands the row over
            job.fail(0, work.step, "handed over")
            engine.finish_python(work)
        if job.has_errors:
            return "failed"
        for number in range(len(code[3])):
            made = job.take_output(number)
            for array in made if isinstance(made, list) else [made]:
                array.tobytes()  # read all of it
        return "ran"
    finally:
        engine.release(job)
        engine.close()


def try_all(plans: Callable[[], Iterator[tuple[str, Code, Arrays]]], each: int, seed: int, trace: bool) -> Counter[str]:
    """Try ``each`` changes of every plan. Return how many plans were refused, failed their row, or ran."""
    outcomes: Counter[str] = Counter()
    for name, code, arrays in plans():
        unchanged = run(code, arrays)
        assert unchanged == "ran" or "decode" in name or "peek" in name, f"{name} is {unchanged} as it is"
        draw = random.Random(f"{name}/{seed}")
        for _ in range(each):
            changed, what = change(code, draw)
            if draw.random() < 0.3:
                changed, more = change(changed, draw)
                what += f"; {more}"
            if trace:
                print(name, what, flush=True)
            outcomes[run(changed, arrays)] += 1
    return outcomes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--each", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=0.0, help="go on with other seeds for so long")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trace", action="store_true")
    options = parser.parse_args()
    kept = [*reading_plans(), *operator_plans(options.operators)]
    end, outcomes, seed = time.monotonic() + options.seconds, Counter[str](), options.seed
    while True:
        outcomes += try_all(lambda: iter(kept), options.each, seed, options.trace)
        seed += 1
        if time.monotonic() >= end:
            break
    print(
        f"plans {len(kept)}, changes {outcomes.total()}, " + ", ".join(f"{k} {n}" for k, n in sorted(outcomes.items()))
    )


if __name__ == "__main__":
    main()
