# SPDX-License-Identifier: Apache-2.0
"""Counted outputs, on the CPU: rows, following steps, bad counts, eager calls."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, eager, fn, pipeline_def
from stoker.graph.scalar_code import Compiler
from stoker.native import _native
from stoker.torch import to_torch
from stoker.types import DType
from tests.run.counted import (
    ROWS,
    assert_rows,
    expected,
    files_kept,
    keeping,
    kept,
    masked_samples,
    rows_of,
    sample,
    write_files,
)  # fmt: skip


@pytest.mark.parametrize(("size", "depth", "threads"), [(1, 1, 1), (3, 2, 2), (8, 1, 2), (24, 2, 1)])
def test_rows_have_their_own_extents(size: int, depth: int, threads: int) -> None:
    with keeping(batch_size=size, prefetch_queue_depth=depth, num_threads=threads) as pipe:
        got = [row for _ in range(ROWS // size) for row in rows_of(pipe.run())]
    assert_rows(got, [expected(i) for i in range(ROWS)])
    lengths = {len(kept(i)) for i in range(ROWS)}
    assert 0 in lengths and len(lengths) > 5, "the rows have too few different lengths"


@pytest.mark.parametrize(("per_row", "dense"), [(0, True), (3, True), (5, True), (None, False)])
def test_rows_of_one_shape_are_one_array(per_row: int | None, dense: bool) -> None:
    """Also where memory is reserved for more, and for another number in every row."""
    masks = [np.arange(5 + i) < (i if per_row is None else per_row) for i in range(4)]
    data = [np.arange(2 * len(m), dtype=np.int16).reshape(-1, 2) + 100 * i for i, m in enumerate(masks)]

    @pipeline_def(batch_size=4, num_threads=1)
    def pipe() -> Any:
        x, mask = (fn.external_source(lambda rows=rows: rows) for rows in (data, masks))
        return fn.boolean_mask(x, mask)

    with pipe() as running:
        for _ in range(2):
            (output,) = running.run()
            assert output.is_dense == dense
            if dense:
                want = np.stack([x[m] for x, m in zip(data, masks, strict=True)])
                assert output.as_array().tobytes() == want.tobytes() and output.as_array().shape == want.shape
                assert to_torch(output).shape == want.shape
            else:
                assert [x.shape for x in to_torch(output)] == [(i, 2) for i in range(4)]
                assert [x.tolist() for x in output] == [x[m].tolist() for x, m in zip(data, masks, strict=True)]


def test_following_steps_see_the_extent() -> None:
    """Views, stages, kernels, Python code, conditions and shapes after it; and the count as an argument."""

    @pipeline_def(batch_size=4, num_threads=2, seed=1, enable_conditionals=True)
    def pipe() -> Any:
        data, mask = masked_samples()
        rows, count = fn.test_masked(data, mask)
        if count > 2:  # noqa: SIM108
            some = rows[:2]
        else:
            some = rows + 1
        again = fn.boolean_mask(rows, rows[:, 0] > 0)
        mean = fn.python_function(rows, function=lambda x: x.sum(0), output_dtypes=np.float32, output_ndims=1)
        part = fn.slice(rows, start=0, shape=count // 2, axes=0)
        return some, again, mean, part, rows.shape(), fn.cat(rows, rows), fn.reductions.max(rows * 0 + 5, axes=1)

    with pipe() as running:
        got = [row for _ in range(5) for row in rows_of(running.run())]
    for i, (some, again, total, part, shape, joined, fives) in enumerate(got):
        own = kept(i)
        assert some.tolist() == (own[:2] if len(own) > 2 else own + np.float32(1)).tolist()
        assert again.tolist() == own[own[:, 0] > 0].tolist()
        assert total.tolist() == own.sum(0).tolist()
        assert part.tolist() == own[: len(own) // 2].tolist()
        assert shape.tolist() == list(own.shape)
        assert joined.tolist() == [*own.tolist(), *own.tolist()]
        assert fives.tolist() == [5] * len(own)


def test_the_stream_resumes_from_a_state() -> None:
    with keeping() as pipe:
        pipe.run()
        token = pipe.get_state()
        want = [row for _ in range(3) for row in rows_of(pipe.run())]
    for size in (4, 6):
        with keeping(batch_size=size) as pipe:
            pipe.set_state(token)
            assert_rows([row for _ in range(12 // size) for row in rows_of(pipe.run())], want)


def test_more_than_the_bound_is_an_error_of_the_row() -> None:
    want = next(i for i in range(ROWS) if len(kept(i)) > 4)
    message = rf"a count of {len(kept(want))}, expected 0 to 4, the step's max_output"
    with keeping(most=4) as pipe, pytest.raises(DataError, match=message) as caught:
        for _ in range(ROWS // 4):
            pipe.run()
    assert "test_masked" in str(caught.value)


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_policies_for_bad_rows_hold_for_bad_counts(policy: str, tmp_path: Path) -> None:
    files = write_files(tmp_path)
    good = [n for n in range(ROWS) if n % 7 <= 4]
    with files_kept(files, most=4, on_error=policy) as pipe:
        batches = [pipe.run() for _ in range(ROWS // 4)]
    rows = [row for batch in batches for row in rows_of(batch)]
    for selected, count, label in rows:
        data = np.fromfile(files[int(label[0])], np.uint8)
        assert selected.tolist() == data[data > 127].tolist() and len(selected) == int(count) <= 4
    labels = [int(label[0]) for *_, label in rows]
    if policy == "skip":
        assert labels == good and sum(len(batch[0].skipped) for batch in batches) == ROWS - len(good)
    else:
        replaced = [n for n, label in enumerate(labels[:ROWS]) if label != n]
        assert replaced == [n for n in range(ROWS) if n not in good]


def test_each_row_may_have_its_own_bound() -> None:
    @pipeline_def(batch_size=6, num_threads=2)
    def pipe(spare: int) -> Any:
        data, mask = masked_samples()
        bound = fn.external_source(lambda info: np.int32(len(kept(info.idx_in_epoch)) + spare), batch=False)
        return fn.test_masked(data, mask, most=bound)

    for spare in (0, 2):
        with pipe(spare) as running:
            assert_rows(rows_of(running.run()), [expected(i)[:2] for i in range(6)])
    with pipe(-1) as running, pytest.raises(DataError, match="expected 0 to"):
        running.run()


def test_eager_calls() -> None:
    for i in range(6):
        data, mask = sample(i)
        assert np.asarray(eager.boolean_mask(data, mask)).tolist() == kept(i).tolist()
        selected, count = eager.test_masked(data, mask)
        assert np.asarray(selected).tolist() == kept(i).tolist() and int(np.asarray(count)) == len(kept(i))
    data, mask = sample(1)
    assert np.asarray(eager.boolean_mask(data.T.copy().T, mask[::-1])).tolist() == data[mask[::-1]].tolist()
    with pytest.raises(DataError, match="a count of 2, expected 0 to 1"):
        eager.test_masked(np.zeros((2, 1), np.uint8), np.ones(2, bool), most=1)


def test_in_a_forked_process() -> None:
    data, mask = sample(1)
    want = np.asarray(eager.boolean_mask(data, mask)).tobytes()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            with keeping() as pipe:
                row = rows_of(pipe.run())[1][0].tobytes()
            os.write(writer, row + np.asarray(eager.boolean_mask(data, mask)).tobytes())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as received:
        assert received.read() == want * 2
    assert os.waitpid(child, 0)[1] == 0


def test_the_plan_shows_the_bound() -> None:
    shown = keeping(most=9).show()
    line = next(line for line in shown.splitlines() if "boolean_mask(" in line)
    count = line.partition(":int32[]")[0].rpartition("%")[2]
    assert f"float32[%{count} <= 9, 3]" in line or f"float32[%{count} <= 9, " in line
    assert "<= $" in keeping().show() or "<= %" in keeping().show()


def test_the_report_has_the_step() -> None:
    with keeping() as pipe:
        pipe.run()
        assert "test_masked" in str(pipe.report())


def test_masks_that_do_not_fit_are_refused() -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe(mask: Any) -> Any:
        return fn.boolean_mask(fn.external_source(lambda: [np.zeros((3, 2), np.float32)]),
                               fn.external_source(lambda: [mask]))  # fmt: skip

    with (
        pipe(np.ones(2, bool)) as running,
        pytest.raises(DataError, match=r"each of the 3 along the first axis, got 2"),
    ):
        running.run()
    with pytest.raises((ArgumentError, DataError), match="expected a mask of type bool with one axis, got uint8"):
        pipe(np.ones(3, np.uint8)).run()
    with pytest.raises((ArgumentError, DataError), match="expected a mask of type bool with one axis, got bool with 2"):
        pipe(np.ones((3, 1), bool)).run()


@pytest.mark.parametrize(
    ("counted", "count", "changes", "message"),
    [
        ([0], -1, {}, "expected a count for outputs with an upper bound"),
        ([0], 2, {}, "a count of type int32 without axes among the step's outputs"),
        ([0], 1, {"dtype": DType.INT64}, "a count of type int32 without axes"),
        ([0], 1, {"rank": 1}, "a count of type int32 without axes"),
        ([2], 1, {}, "counted outputs with at least one axis"),
        ([1], 1, {}, "counted outputs with at least one axis"),
        ([0], 1, {"kernel": ("constant", b"", (0,))}, "to write memory that is reserved for it"),
        ([0], 1, {"frames": 0}, "a kernel with a count that runs once for a row"),
    ],
)
def test_native_code_checks_how_a_count_is_declared(
    counted: list[int], count: int, changes: dict[str, Any], message: str
) -> None:
    plan = _native.Plan()
    scratch = native = 0
    plan.add_value(int(DType.FLOAT), 1, scratch, 0)
    plan.add_value(int(changes.get("dtype", DType.INT32)), changes.get("rank", 0), scratch, 1)
    name, *constants = changes.get("kernel", ("boolean_mask",))
    kernel = getattr(_native.kernels, name)(*constants)
    code = Compiler(lambda v: v)
    one = code.register(1)
    declared = code.code, code.consts, [], [[one], []], [], [], changes.get("frames", -1), [], False, counted, count
    plan.add_step(kernel, [], [0, 1], *declared)
    plan.add_segment(native, [0], [])
    with pytest.raises(ValueError, match=message):
        plan.finish(2, 0)
