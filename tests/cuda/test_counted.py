# SPDX-License-Identifier: Apache-2.0
"""Counted outputs of kernels on the GPU: the CPU's rows, the steps that may follow, and bad counts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kept_reports import report_of
from test_own_kernels import compare_rows, noise

from stoker import DataError, Operator, RowContext, UnsupportedError, fn, pipeline_def, register
from stoker.contract.lowering import Lowering
from stoker.contract.step import GpuForm, Launches, LaunchPass, Value
from stoker.contract.types import DType
from stoker.device.gpu import Gpu
from stoker.device.own import own_sources
from tests.run.counted import (
    ROWS,
    assert_rows,
    expected,
    files_kept,
    keeping,
    kept,
    masked_samples,
    rows_of,
    write_files,
)  # fmt: skip

# `boolean_mask` with a count that is wrong, or that the kernel does not write.
WRONG = """
#include "device/own_booleanmask.cuh"

namespace stoker::own {

template <class Ports, int kCount>
struct WrongCount : BooleanMask<Ports> {
  static void place(const Row& row, uint32_t block) {
    BooleanMask<Ports>::place(row, block);
    if (gpu::thread_index() == 0) *reinterpret_cast<int32_t*>(row.port(3).data) += kCount;
  }
};
template <class Ports>
struct Negative : WrongCount<Ports, -100> {};
template <class Ports>
struct More : WrongCount<Ports, 100> {};
template <class Ports>
struct Silent {
  static void place(const Row&, uint32_t) {}
  static void copy(const Row&, uint32_t) {}
};

}  // namespace stoker::own
"""
# All elements of a bound: those that are counted, then zeros.
PADDED = """
#include "device/own.cuh"

namespace stoker::own {

template <class Ports>
struct Padded {
  using Memory = typename Ports::template At<0>::Memory;
  static void fill(const Row& row, uint32_t) {
    const Port &in = row.port(0), &out = row.port(2);
    const int64_t bound = in.shape[0], count = *reinterpret_cast<const int32_t*>(row.port(1).data);
    int64_t inner = 1;
    for (int d = 1; d < in.rank; ++d) inner *= in.shape[d];
    for (int64_t i = gpu::thread_index(); i < bound * inner; i += gpu::thread_count())
      reinterpret_cast<Memory*>(out.data)[i] =
          i < count * inner ? reinterpret_cast<const Memory*>(in.data)[i] : static_cast<Memory>(0);
  }
};

}  // namespace stoker::own
"""
HEADERS = {f'#include "device/own_{name}.cuh"\n': WRONG for name in ("negative", "more", "silent")}
HEADERS['#include "device/own_padded.cuh"\n'] = PADDED


class Padded(Operator, name="test_padded"):
    """The whole memory of an output that the GPU counts: the elements, then zeros."""

    inputs = (2, 2)

    def lower(self, c: Lowering, x: Value, count: Value) -> Value:
        own = Launches("Padded", {"fill": LaunchPass(1, 64)})
        # The CPU kernel takes any tensors and does not run here.
        outputs = [(x.dtype, x.reserved, x.layout), (DType.INT32, (), "")]
        form = GpuForm(own.kernel(), takes_bound=True)
        return c.native("python", [x, count], outputs[:1], params=own.numbers(), gpu=form)[0]

    def reference(self, row: RowContext, x: Any, count: Any) -> Any:
        raise AssertionError("it is run on a GPU alone")


class NeedsExtent(Padded, name="test_needs_extent"):
    """The same as test_padded, but its kernel does not declare that it takes the bound."""

    def lower(self, c: Lowering, x: Value, count: Value) -> Value:
        own = Launches("Padded", {"fill": LaunchPass(1, 64)})
        return c.native("python", [x, count], [(x.dtype, x.reserved, x.layout)], own=own)[0]


for _operator in (Padded, NeedsExtent):
    register(_operator)


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], autouse=True)
def gpu(folder, monkeypatch, request):
    """Provide the kernels above on GPU 0, which is the null device unless there is a GPU."""
    base = emulated_stages.EmulatedGpu if request.param == "null" else Gpu

    class WithForms(base):  # type: ignore[misc, valid-type]
        def compiled(self, source: str) -> bytes:
            for header, text in HEADERS.items():
                source = source.replace(header, text)
            return super().compiled(source)

    def opened(number: int, limit: int | None = None) -> Gpu:
        if request.param == "null":
            return WithForms(folder)
        return WithForms(real(number, limit).device, 2**64 - 1 if limit is None else limit)

    real = Gpu.open
    monkeypatch.setattr(Gpu, "open", staticmethod(opened))


@pytest.mark.parametrize(("size", "depth", "threads"), [(1, 1, 1), (3, 2, 2), (8, 1, 2), (24, 2, 1)])
def test_rows_have_their_own_extents(size: int, depth: int, threads: int) -> None:
    """Compare outputs, results of steps on single elements, and an output that is returned twice."""
    options = {"batch_size": size, "prefetch_queue_depth": depth, "num_threads": threads, "device_id": 0}
    with keeping(True, **options) as pipe:
        batches = [pipe.run() for _ in range(ROWS // size)]
        assert all(output.device == "gpu" for batch in batches for output in batch)
        got = [row for batch in batches for row in rows_of(batch)]
    assert_rows(got, [expected(i) for i in range(ROWS)])


DTYPES = ("bool", "int16", "float32", "float64")


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_random_inputs(data: st.DataObject) -> None:
    """Rows of any length, rank and density of the mask, also as views, have the CPU's bits and the definition's."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype, inner = data.draw(st.sampled_from(DTYPES)), data.draw(st.sampled_from([(), (3,), (2, 5)]))
    lengths = data.draw(st.lists(st.sampled_from([0, 1, 2, 7, 40, 1025, 2500]), min_size=1, max_size=5))
    density = data.draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    flipped = bool(inner) and data.draw(st.booleans())
    make = (lambda shape: rng.random(shape) < 0.5) if dtype == "bool" else (lambda shape: noise(rng, dtype, shape))
    rows = [make((n, *inner)) for n in lengths]
    masks = [rng.random(n) < density for n in lengths]

    def masked(x: Any, mask: Any) -> Any:
        return fn.test_masked(x[:, ::-1] if flipped else x, mask)

    want = compare_rows([rows, masks], ["", ""], masked)
    for got, x, mask in zip(want[0], rows, masks, strict=True):
        assert got.tobytes() == (x[:, ::-1] if flipped else x)[mask].tobytes()
    assert [int(n) for n in want[1]] == [int(m.sum()) for m in masks]


@pytest.mark.parametrize(("per_row", "dense"), [(0, True), (3, True), (5, True), (None, False)])
def test_rows_of_one_shape_are_one_array(per_row: int | None, dense: bool) -> None:
    masks = [np.arange(5 + i) < (i if per_row is None else per_row) for i in range(4)]
    data = [np.arange(2 * len(m), dtype=np.int16).reshape(-1, 2) + 100 * i for i, m in enumerate(masks)]

    @pipeline_def(batch_size=4, num_threads=1, device_id=0)
    def pipe() -> Any:
        x, mask = (fn.external_source(lambda rows=rows: rows) for rows in (data, masks))
        return fn.boolean_mask(x.gpu(), mask)

    with pipe() as running:
        for _ in range(2):
            (output,) = running.run()
            assert output.device == "gpu" and output.is_dense == dense
            assert [x.tolist() for x in output.as_cpu()] == [x[m].tolist() for x, m in zip(data, masks, strict=True)]


def test_the_stream_resumes_from_a_state() -> None:
    with keeping(True, device_id=0) as pipe:
        pipe.run()
        token = pipe.get_state()
        want = [row for _ in range(3) for row in rows_of(pipe.run())]
    with keeping(True, batch_size=6, device_id=0) as pipe:
        pipe.set_state(token)
        assert_rows([row for _ in range(2) for row in rows_of(pipe.run())], want)


@pytest.mark.parametrize(("form", "text"), [("Negative", "a count of -9"), ("More", r"a count of 1\d\d, expected 0 to"),
                                            ("Silent", "a count of -1, expected 0 to")])  # fmt: skip
def test_a_wrong_count_is_an_error_of_the_row(form: str, text: str) -> None:
    with keeping(True, form=form, device_id=0) as pipe, pytest.raises(DataError, match=text) as caught:
        pipe.run()
    assert "test_masked" in str(caught.value) and "max_output" in str(caught.value)


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_policies_for_bad_rows_hold_for_bad_counts(policy: str, tmp_path: Path) -> None:
    """The same rows as on the CPU."""
    files, batches = write_files(tmp_path), {}
    for on_gpu in (False, True):
        more = {"device_id": 0} if on_gpu else {}
        with files_kept(files, on_gpu, most=4, on_error=policy, **more) as pipe:
            batches[on_gpu] = [rows_of(pipe.run()) for _ in range(ROWS // 4)]
    assert batches[False]
    for got, want in zip(batches[True], batches[False], strict=True):
        assert_rows(got, want)


def test_a_kernel_that_takes_the_bound_may_follow() -> None:
    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def pipe() -> Any:
        data, mask = masked_samples()
        return fn.test_padded(*fn.test_masked(data.gpu(), mask, most=12))

    with pipe() as running:
        got = [row for _ in range(3) for row in rows_of(running.run())]
    for i, (padded,) in enumerate(got):
        assert padded.tolist() == [*kept(i).tolist(), *[[0.0, 0.0, 0.0]] * (12 - len(kept(i)))]


FOLLOWING = {
    "a view": lambda masked, count: masked[1:],
    "a flip": lambda masked, count: fn.flip(masked, vertical=1),
    "a reduction": lambda masked, count: fn.reductions.sum(masked, axes=1),
    "another mask": lambda masked, count: fn.boolean_mask(masked, masked[:, 0] > 0),
    "its extents": lambda masked, count: masked.shape(),
    "a kernel": lambda masked, count: fn.test_needs_extent(masked, count),
}


@pytest.mark.parametrize("following", FOLLOWING)
def test_steps_that_need_the_extent_are_refused(following: str) -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=0)
    def pipe() -> Any:
        data, mask = masked_samples()
        return FOLLOWING[following](*fn.test_masked(data.gpu(), mask))

    with pytest.raises(UnsupportedError) as caught:
        pipe().build()
    message = str(caught.value)
    assert 'device="cpu"' in message and "test_counted.py" in message, message
    assert "on the GPU" in message or "GPU's memory" in message, message


def test_the_refusal_names_both_nodes() -> None:
    @pipeline_def(batch_size=4, num_threads=1, device_id=0)
    def pipe() -> Any:
        data, mask = masked_samples()
        return fn.flip(fn.boolean_mask(data.gpu(), mask) + 1, vertical=1)

    with pytest.raises(UnsupportedError, match=r"`flip`.* needs the first extent of what `boolean_mask` makes"):
        pipe().build()


def test_counts_that_parameters_depend_on_are_computed_on_the_cpu() -> None:
    """A count that an argument follows from keeps its kernel on the CPU, like every parameter."""

    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def pipe() -> Any:
        data, mask = masked_samples()
        masked, count = fn.test_masked(data.gpu(), mask)
        return fn.slice(masked + 1, start=0, shape=count // 2, axes=0)

    with pipe() as running:
        outputs = [running.run() for _ in range(3)]
    assert all(output.device == "gpu" for (output,) in outputs)
    for i, (part,) in enumerate(row for output in outputs for row in rows_of(output)):
        assert part.tolist() == (kept(i)[: len(kept(i)) // 2] + np.float32(1)).tolist()


def test_counted_outputs_of_the_cpu_may_be_used_anywhere() -> None:
    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def pipe() -> Any:
        data, mask = masked_samples()
        masked = fn.boolean_mask(data, mask)
        return fn.flip(masked.gpu(), vertical=1, horizontal=0), masked.gpu()[:, 1]

    with pipe() as running:
        for i, (flipped, column) in enumerate(row for _ in range(3) for row in rows_of(running.run())):
            assert flipped.tolist() == kept(i)[::-1].tolist() and column.tolist() == kept(i)[:, 1].tolist()


def test_the_plan_shows_the_bound() -> None:
    shown = keeping(True, most=9, device_id=0).show()
    assert sum(" <= 9, " in line and "on the GPU" in line for line in shown.splitlines()) >= 2, shown


@pytest.mark.parametrize("name", ["float32", "float16", "bool"])
def test_the_kernels_compile_for_gpus(name: str) -> None:
    dtype = DType.of(name)
    own = Launches("BooleanMask", {"place": LaunchPass(1, 1024), "copy": 1}, math.prod((4, 1)))
    for _, source in own_sources(own.kernel(), [dtype, DType.BOOL], [dtype, DType.INT32]):
        assert "0 bytes spill stores" in report_of(source, 90)
