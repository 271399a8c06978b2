# SPDX-License-Identifier: Apache-2.0
"""Operators of users with a CUDA form: the CPU's bits, on emulated threads and on a GPU; wrong sources."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest
from test_own_kernels import compare, compare_rows

from stoker import cpp, fn, pipeline_def
from stoker.contract.errors import ArgumentError, DataError
from stoker.contract.step import CompiledPass, OwnKernel
from stoker.contract.types import DType
from stoker.device.compile import compile_kernels
from stoker.device.gpu import Gpu, _naming_users_lines
from stoker.device.own import own_sources
from stoker.frontends.compiled.cuda import parse_cuda
from stoker.frontends.compiled.declaration import parse
from stoker.frontends.registry import find

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("g++", "c++", "clang++"))), reason="there is no C++ compiler"
)
MAXIMUM = Path(__file__).parents[1] / "ops" / "abi" / "v1" / "maximum.cpp"
CUDA = r"""
#include <stoker/op.cuh>

ST_LAUNCHES(R"(
  kernel maximum: h * w * c
)")

ST_KERNEL(maximum, row, i) {
  const auto in = row.in<0>();
  const auto out = row.out<0>();
  const int64_t h = in.shape(0), w = in.shape(1), channels = in.shape(2), radius = static_cast<int64_t>(row.arg(0));
  const int64_t c = i % channels, x = i / channels % w, y = i / channels / w;
  auto most = in(y, x, c);
  for (int64_t v = y - radius; v <= y + radius; ++v)
    for (int64_t u = x - radius; u <= x + radius; ++u)
      if (v >= 0 && v < h && u >= 0 && u < w && in(v, u, c) > most) most = in(v, u, c);
  out(y, x, c) = most;
}
"""
# Two kernels with memory between them, a block that works together, rounding.
SUMS_CPP = r"""
#include <stoker/op.h>
ST_DECLARE(R"(
  Mean of each row of a table, times a factor.
  input x: float32 | uint8 | int64 (n, m)
  output: uint8 (n)
  argument factor: float = 1
)")
ST_RUN(row) {
  const st::Array<uint8_t> out(row.out(0));
  st::dispatch(row.in(0), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, uint8_t> || std::is_same_v<T, int64_t>) {
      const st::Array<const T> in(row.in(0));
      for (int64_t i = 0; i < in.shape(0); ++i) {
        double sum = 0;
        for (int64_t k = 0; k < 32; ++k)
          for (int64_t j = k; j < in.shape(1); j += 32) sum += static_cast<double>(in(i, j));
        out(i) = st::round<uint8_t>(sum / static_cast<double>(in.shape(1)) * row.arg(0));
      }
    }
  });
}
"""
SUMS_CU = r"""
#include <stoker/op.cuh>
ST_LAUNCHES(R"(
  blocks sums: n of 32
  kernel scale: n
  memory: 8 * n
)")
ST_BLOCKS(sums, row, block) {
  ST_SHARED(double, lanes, 32);
  const auto in = row.in<0>();
  const int64_t lane = st::thread();
  double own = 0;
  lanes[lane] = 0;
  st::barrier();
  if (lane == 0) {
    for (int64_t k = 0; k < st::threads(); ++k)
      for (int64_t j = k; j < in.shape(1); j += st::threads()) own += static_cast<double>(in(block, j));
    lanes[0] = own;
  }
  st::barrier();
  if (lane == 31) row.memory<double>()[block] = lanes[0];
}
ST_KERNEL(scale, row, i) {
  const double mean = row.memory<double>()[i] / static_cast<double>(row.in<0>().shape(1));
  row.out<0>()(i) = st::round<uint8_t>(mean * row.arg(0));
}
"""


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)])
def gpu(folder: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Use the null device as GPU 0, unless there is a GPU."""
    if request.param == "null":
        monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: emulated_stages.EmulatedGpu(folder)))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_an_operator_has_the_bits_of_its_cpu_form(dtype: str) -> None:
    cpp.load(MAXIMUM, "t_cuda_maximum", cuda=CUDA)
    rng = np.random.default_rng(1)
    rows = [(rng.random((h, w, 3)) * 255).astype(dtype) for h, w in ((9, 7), (1, 1), (30, 41), (0, 4))]
    radii = [np.array(r, np.int32) for r in (1, 3, 0, 2)]
    compare_rows([rows, radii], ["HWC", ""], lambda x, radius: (fn.t_cuda_maximum(x, radius=radius),))
    compare_rows([rows], ["HWC"], lambda x: (fn.t_cuda_maximum(fn.flip(x, horizontal=1, vertical=1)),))
    with pytest.raises(DataError, match="`t_cuda_maximum`: expected `radius` of at least 0"):
        compare_rows([rows], ["HWC"], lambda x: (fn.t_cuda_maximum(x, radius=-fn.reductions.sum(x) - 1),))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("dtype", ["float32", "uint8", "int64"])
def test_kernels_share_memory_and_blocks_work_together(dtype: str) -> None:
    cpp.load(SUMS_CPP, "t_cuda_sums", cuda=SUMS_CU)
    rng = np.random.default_rng(2)
    rows = [
        (rng.random(shape) * 200 - 20 * (dtype == "float32")).astype(dtype) for shape in ((5, 7), (1, 90), (70, 33))
    ]
    if dtype == "float32":
        rows.append(np.full((2, 3), np.nan, np.float32))
    factors = [np.float32(f) for f in (1.0, 0.37, 4.0, 1.0)[: len(rows)]]
    compare_rows([rows, factors], ["", ""], lambda x, factor: (fn.t_cuda_sums(x, factor=factor),))


@pytest.mark.usefixtures("gpu")
def test_an_operator_of_the_gpu_in_a_chain() -> None:
    cpp.load(MAXIMUM, "t_cuda_chain", cuda=CUDA)
    rng = np.random.default_rng(3)
    rows = [rng.integers(0, 256, (20, 24, 3), np.uint8) for _ in range(3)]

    @pipeline_def(batch_size=3, num_threads=2, seed=1)
    def pipe(on_gpu: bool) -> Any:
        x = fn.external_source(source=lambda info: rows[info.idx_in_batch], batch=False, layout="HWC")
        x = fn.brightness_contrast(fn.flip(x.gpu() if on_gpu else x), brightness=1.2)
        return fn.crop_mirror_normalize(fn.t_cuda_chain(x), dtype="float32", mean=[9.0], std=[3.0])

    compare(pipe)


def sources(name: str, in_types: list[DType], out_types: list[DType]) -> list[str]:
    operator: Any = find(name)
    form = operator.cuda
    passes = tuple(CompiledPass(k.name, k.threads or 256) for k in form.kernels)
    places = tuple(-1 if k.threads else 1 for k in form.kernels)
    kernel = OwnKernel(name, passes, places, form.source)
    return [text for _, text in own_sources(kernel, in_types, out_types)]


@pytest.mark.parametrize("architecture", [80, 90, 100])
def test_kernels_compile_without_spills(architecture: int) -> None:
    cpp.load(MAXIMUM, "t_cuda_compiled", cuda=CUDA)
    cpp.load(SUMS_CPP, "t_cuda_sums_compiled", cuda=SUMS_CU)
    texts = sources("t_cuda_compiled", [DType.UINT8], [DType.UINT8])
    texts += sources("t_cuda_compiled", [DType.FLOAT], [DType.FLOAT])
    for dtype in (DType.UINT8, DType.FLOAT, DType.INT64):
        texts += sources("t_cuda_sums_compiled", [dtype], [DType.UINT8])
    for text in texts:
        report: list[str] = []
        compile_kernels(text, architecture, report=report)
        spills = [int(n) for n in re.findall(r"(\d+) bytes spill", report[0])]
        assert spills and not any(spills), report[0]


def test_errors_of_the_compiler_name_the_users_line() -> None:
    cpp.load(MAXIMUM, "t_cuda_wrong", cuda=CUDA.replace("auto most", "nonsense most"))
    (text,) = sources("t_cuda_wrong", [DType.UINT8], [DType.UINT8])
    with pytest.raises(ArgumentError, match=r"`t_cuda_wrong`: .*CUDA source: t_cuda_wrong\.cu:13: .*nonsense"):
        _naming_users_lines("t_cuda_wrong", lambda: [compile_kernels(text, 90)])()  # type: ignore[list-item]
    cpp.load(MAXIMUM, "t_cuda_half", cuda=CUDA)
    (text,) = sources("t_cuda_half", [DType.FLOAT16], [DType.FLOAT16])
    with pytest.raises(ArgumentError, match="no elements of type float16 or bfloat16"):
        _naming_users_lines("t_cuda_half", lambda: [compile_kernels(text, 90)])()  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("launches", "code", "text"),
    [
        ("", "ST_KERNEL(k, row, i) {}", "expected `ST_LAUNCHES"),
        ('ST_LAUNCHES("")', "ST_KERNEL(k, row, i) {}", "a kernel in `ST_LAUNCHES`"),
        ('ST_LAUNCHES("kernel k")', "ST_KERNEL(k, row, i) {}", "expected `kernel NAME: COUNT`"),
        ('ST_LAUNCHES("kernel k: h +")', "ST_KERNEL(k, row, i) {}", "expression of names and numbers"),
        ('ST_LAUNCHES("kernel k: h")', "ST_KERNEL(other, row, i) {}", r"expected `ST_KERNEL\(k, row"),
        ('ST_LAUNCHES("kernel k: h")', "ST_BLOCKS(k, row, i) {}", r"expected `ST_KERNEL\(k, row"),
        ('ST_LAUNCHES("blocks k: h of 33")', "ST_BLOCKS(k, row, i) {}", "multiple of 32, got 33"),
        ('ST_LAUNCHES(R"(kernel k: h\nkernel k: h)")', "ST_KERNEL(k, row, i) {}", "launched twice"),
        ('ST_LAUNCHES(R"(kernel k: h\nmemory: 1\nmemory: 2)")', "ST_KERNEL(k, row, i) {}", "once `memory"),
    ],
)
def test_launches_that_are_wrong(launches: str, code: str, text: str) -> None:
    with pytest.raises(ArgumentError, match=f"`t_cuda_wrong`.*{text}"):
        cpp.load(MAXIMUM, "t_cuda_wrong", cuda=f"{launches}\n{code}\n")


@pytest.mark.parametrize(("line", "text"), [("draws", "`draws`"), ("output: int32 (count <= h)", "`count`")])
def test_declarations_without_a_form_for_gpus(line: str, text: str) -> None:
    output = "" if "count" in line else "output: like x\n"
    declared = parse(f"input x: uint8 (h)\n{output}{line}", "t_cuda_wrong")
    with pytest.raises(ArgumentError, match=f"no {text}"):
        parse_cuda(CUDA, "t_cuda_wrong", "", declared)


def test_names_of_launches_are_those_of_the_declaration() -> None:
    found = cpp.load(MAXIMUM, "t_cuda_names", cuda=CUDA.replace("h * w * c", "h * w * k"))
    with pytest.raises(ArgumentError, match="expected one of the names h, w, c, radius, got 'k'"):
        found(np.zeros((3, 3, 3), np.uint8))
