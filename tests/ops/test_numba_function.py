# SPDX-License-Identifier: Apache-2.0
"""Functions that Numba compiles: results, shapes, batches, threads, errors."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from stoker import dali, fn, pipeline_def
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError
from stoker.dali import types
from stoker.dali.plugin.numba.fn.experimental import numba_function
from stoker.frontends.registry import find
from stoker.native import _native
from stoker.testing import check_operator
from tests.idle_clock import HANG_S

numba = pytest.importorskip("numba", reason="Numba is not installed: the extra `numba`")
ROWS = [np.random.default_rng(i).integers(0, 256, (5 + i, 7, 3), np.uint8) for i in range(6)]


def halve(out: Any, x: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            for k in range(x.shape[2]):
                out[i, j, k] = x[i, j, k] // 2


def turned_shape(outs: Any, ins: Any) -> None:
    perm = [1, 0, 2]
    for sample in range(len(outs[0])):
        for d in range(len(perm)):
            outs[0][sample][d] = ins[0][sample][perm[d]]
        outs[1][sample][0] = ins[0][sample][0] * 2 + 1


def turned(out: Any, sums: Any, x: Any, gain: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j, i] = x[i, j]
    for i in range(sums.shape[0]):
        sums[i] = gain * i


def turned_batch(outs: Any, sums: Any, xs: Any, gains: Any) -> None:
    for out, total, x, gain in zip(outs, sums, xs, gains):  # noqa: B905 - Numba has no `strict`
        turned_compiled(out, total, x, gain)


turned_compiled = numba.njit(turned)
U8, F32 = types.UINT8, types.FLOAT
TWO = {
    "in_types": [U8, F32], "ins_ndim": [3, 0], "out_types": [U8, F32], "outs_ndim": [3, 1], "setup_fn": turned_shape
}  # fmt: skip
ONE = {"in_types": [U8], "ins_ndim": [3], "out_types": [U8], "outs_ndim": [3]}


def run(make: Any, threads: int = 2) -> list[list[np.ndarray]]:
    @pipeline_def(batch_size=len(ROWS), num_threads=threads, seed=1)
    def graph() -> Any:
        x = fn.external_source(lambda: ROWS, dtype="uint8", ndim=3, layout="HWC")
        gain = fn.external_source(lambda: np.arange(len(ROWS), dtype=np.float32), dtype="float32", ndim=0)
        return make(x, gain)

    with graph() as pipe:
        return [[np.array(r) for r in out] for out in pipe.run()]


def test_a_function_of_a_row() -> None:
    (out,) = run(lambda x, _: numba_function(x, run_fn=halve, **ONE))
    for got, x in zip(out, ROWS, strict=True):
        np.testing.assert_array_equal(got, x // 2)
    (out,) = run(lambda x, _: numba_function(fn.flip(x, horizontal=1), run_fn=numba.njit(halve), **ONE))
    for got, x in zip(out, ROWS, strict=True):
        np.testing.assert_array_equal(got, x[:, ::-1] // 2)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("batches", [False, True])
def test_shapes_several_inputs_and_batches(batches: bool, threads: int) -> None:
    function = turned_batch if batches else turned
    outs, sums = run(lambda x, g: numba_function(x, g, run_fn=function, batch_processing=batches, **TWO), threads)
    for i, (got, total, x) in enumerate(zip(outs, sums, ROWS, strict=True)):
        np.testing.assert_array_equal(got, x.transpose(1, 0, 2))
        np.testing.assert_array_equal(total, np.arange(2 * len(x) + 1, dtype=np.float32) * i)


def test_the_laws_of_operators() -> None:
    operator = find("_numba_function")
    check_operator(operator, [(x,) for x in ROWS[:3]], cases=[{"run_fn": halve, **ONE}])
    inputs = [(x, np.float32(i)) for i, x in enumerate(ROWS[:3])]
    check_operator(operator, inputs, cases=[{"run_fn": turned, **TWO}])


def test_dalis_scripts_define_nodes_before_the_pipeline() -> None:
    pipe = dali.Pipeline(batch_size=2, num_threads=1, device_id=None)
    x = dali.fn.external_source(lambda: ROWS[:2], dtype=U8, ndim=3)
    pipe.set_outputs(numba_function(x, run_fn=halve, **ONE))
    pipe.build()
    (out,) = pipe.run()
    np.testing.assert_array_equal(np.array(out.at(1)), ROWS[1] // 2)


def fails(out: Any, x: Any) -> None:
    if x.shape[0] == 8:
        raise ValueError("eight")
    out[:] = x


def test_an_exception_is_the_error_of_its_row() -> None:
    with pytest.raises(DataError, match="the compiled function raised an exception") as caught:
        run(lambda x, _: numba_function(x, run_fn=fails, **ONE))
    assert caught.value.row == 3


def branches(outs: Any, ins: Any) -> None:
    if ins[0][0][0] > 3:
        outs[0][0][0] = 1


def test_wrong_arguments() -> None:
    def wrong(text: str, kind: type[Exception] = ArgumentError, **more: Any) -> None:
        with pytest.raises(kind, match=text):
            run(lambda x, _: numba_function(x, **{"run_fn": halve, **ONE, **more}))

    wrong("branch on them", setup_fn=branches)
    wrong("to set all extents", setup_fn=lambda outs, ins: None)
    wrong("`setup_fn`, because the outputs", outs_ndim=[2])
    wrong("with one element for each", outs_ndim=[2, 3])
    wrong("expected 2 inputs", in_types=[U8, U8], ins_ndim=[3, 3])
    wrong("input 0 of type float32", in_types=[F32])
    wrong("input 0 with 2 axes", ins_ndim=[2], outs_ndim=[2])
    wrong("a function as `run_fn`", run_fn=3)
    wrong("Numba refused the function", run_fn=lambda out, x: out.nothing(x))
    wrong('need `device="gpu"`', UnsupportedError, blocks=[1, 1, 1])
    wrong("device cpu", UnsupportedError, device="mixed")
    wrong("remove `batch_processing`", UnsupportedError, device="gpu", batch_processing=True)
    grid = {"device": "gpu", "blocks": [1, 1, 1], "threads_per_block": [32, 1, 1]}
    for name in ("blocks", "threads_per_block"):
        for value in (None, [1, 1], [1, 0, 1], [1, 1.5, 1], 4):
            wrong(f"`{name}` of three numbers above 0", ArgumentError, **{**grid, name: value})
    wrong("`blocks` up to", ArgumentError, **{**grid, "blocks": [1, 1 << 16, 1]})
    wrong("at most 1024 threads", ArgumentError, **{**grid, "threads_per_block": [32, 33, 1]})
    wrong("no float16", UnsupportedError, out_types=[types.FLOAT16])


def test_native_code_refuses_the_address_0() -> None:
    with pytest.raises(ValueError, match="address of a function"):
        _native.kernels.user_function(0, ((2, 3, 3, -1),), ((2, 3, 3, -1),))
    with pytest.raises(ValueError, match="ranks from 0 to 8"):
        _native.kernels.user_function(1, ((2, 3, 9, -1),), ((2, 3, 3, -1),))


def test_importing_the_plugin_brings_in_no_numba() -> None:
    code = "import stoker.dali.plugin.numba.fn.experimental, sys; sys.exit('numba' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG_S)
