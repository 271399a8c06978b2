# SPDX-License-Identifier: Apache-2.0
"""The codec protocol, proved by a second codec: run-length bytes, with CPU and GPU kernels, an index and a report.

A file is pairs of bytes, (count, value). Only an operator and a codec class implement the format. Neither the executor,
nor planning, nor the device depends on it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stoker import ArgumentError, Operator, Pipeline, UnsupportedError, fn, pipeline_def
from stoker.codecs import registry
from stoker.codecs.open_codecs import OpenCodecs
from stoker.contract.codec import Codec, CodecGpu, CodecKernel
from stoker.contract.config import PipelineConfig
from stoker.contract.lowering import Lowering
from stoker.contract.step import FileAccess, GpuForm, Native, Value
from stoker.contract.types import DType
from stoker.executor.execution import Execution
from stoker.executor.split import WINDOW_BATCHES
from stoker.frontends import registry as operators
from stoker.native import _native

Bytes = npt.NDArray[np.uint8]
ROWS = 8
SOURCE = """#include "device/own.cuh"

namespace stoker::own {

// A thread finds where its runs begin: rows are short.
template <class Ports>
struct Unroll {
  static void whole(const Row& row, uint32_t) {
    const auto* runs = reinterpret_cast<const uint8_t*>(row.port(0).data);
    auto* out = reinterpret_cast<uint8_t*>(row.port(1).data);
    const int64_t pairs = row.port(0).shape[0] / 2;
    int64_t at = 0;
    for (int64_t pair = 0; pair < pairs; at += runs[2 * pair], ++pair)
      if (pair % 32 == gpu::thread_index())
        for (int64_t i = 0; i < runs[2 * pair]; ++i) out[at + i] = runs[2 * pair + 1];
  }
};

}  // namespace stoker::own

using namespace stoker::own;
STOKER_PASS(test_unroll, 32, 16, Unroll<Types<U8, U8>>::whole)
"""


@dataclass(frozen=True)
class RunLengthReport:
    """Report section of the codec."""

    files: int
    found: int

    def __str__(self) -> str:
        return f"{self.files} run-length files known, {self.found} found again"


class RunLength(Codec, name="test.run_length"):
    """Codec for run-length bytes. Options: ``path``, a file in which its index outlives the pipeline."""

    opened = 0

    def __init__(self, gpu: CodecGpu | None, options: Mapping[str, Any]) -> None:
        super().__init__(gpu, options)
        RunLength.opened += 1
        self.path = Path(options["path"]) if "path" in options else None
        if self.path is not None and self.path.is_dir():
            raise ArgumentError(f"expected a file as `path`, got the folder '{self.path}'")
        known = json.loads(self.path.read_text()) if self.path is not None and self.path.exists() else {}
        self.index: dict[str, int] = known
        self.found = 0

    def host_kernel(self, body: Native) -> CodecKernel:
        return CodecKernel(self.name, _native.kernels.python(), twin=self._twin(body))

    def gpu_kernel(
        self, body: Native, in_types: Sequence[DType], out_types: Sequence[DType]
    ) -> Callable[[], CodecKernel]:
        assert self.gpu is not None
        functions = self.gpu.functions((("test_unroll", SOURCE),))

        def create() -> CodecKernel:
            on_gpu = _native.gpu.own([(functions()[0], 32, 0)], len(in_types), len(out_types), len(body.params))
            either = _native.gpu.GpuWithCpuFallback(on_gpu, _native.kernels.python())
            return CodecKernel(self.name, either, either, self._twin(body))

        return create

    def _twin(self, body: Native) -> Callable[[Sequence[Any], Sequence[float], Sequence[Any]], None]:
        return self._measure if body.kernel == "measure" else _unroll

    def _measure(self, inputs: Sequence[Any], params: Sequence[float], outputs: Sequence[Any]) -> None:
        key = inputs[0].tobytes().hex()
        if key in self.index:
            self.found += 1
        else:
            if len(inputs[0]) % 2:
                raise ValueError("expected pairs of bytes")
            self.index[key] = int(inputs[0][::2].sum())
        outputs[0][:] = self.index[key]

    def report(self, kernels: Sequence[CodecKernel]) -> RunLengthReport:
        assert all(kernel.codec == self.name for kernel in kernels)
        return RunLengthReport(len(self.index), self.found)

    def close(self) -> None:
        if self.path is not None:
            self.path.write_text(json.dumps(self.index))


def _unroll(inputs: Sequence[Any], params: Sequence[float], outputs: Sequence[Any]) -> None:
    outputs[0][:] = unrolled(inputs[0])


def unrolled(data: Bytes) -> Bytes:
    return np.repeat(data[1::2], data[::2])


class Unroll(Operator, name="test.unroll"):
    """Decode run-length bytes."""

    devices = ("cpu", "mixed")

    def lower(self, c: Lowering, data: Value) -> Value:
        file = FileAccess(header_only=True)
        (size,) = c.native("measure", [data], [(DType.INT64, (1,), "")], codec="test.run_length", file=file)
        shape = (c.element(size, 0),)
        return c.native(
            "unroll", [data], [(DType.UINT8, shape, "")], params=(1, 0), codec="test.run_length",
            gpu=GpuForm(balanced=True),
        )[0]  # fmt: skip

    def reference(self, row: Any, data: Any) -> Any:
        return unrolled(data)


@pytest.fixture(autouse=True)
def run_length() -> Iterator[None]:
    operators.register(Unroll)
    registry.register(RunLength)
    yield
    del operators._registered["test.unroll"], registry._registered["test.run_length"]


def encoded(rows: int) -> list[Bytes]:
    rng = np.random.default_rng(rows)
    return [rng.integers(1, 200, 2 * rng.integers(1, 40), np.uint8) for _ in range(rows)]


@pipeline_def(batch_size=ROWS, num_threads=2, seed=1)
def unrolling(data: list[Bytes], device: str) -> Any:
    batches = [data[i : i + ROWS] for i in range(0, len(data), ROWS)]
    x = fn.test.unroll(fn.external_source(batches, cycle="quiet"), device=device)
    return fn.cast(x, dtype=np.int16) + 1


def check(pipe: Pipeline, data: list[Bytes], epochs: int = 1) -> Any:
    with pipe:
        for first in [*range(0, len(data), ROWS)] * epochs:
            outputs = pipe.run()[0].as_cpu()
            for got, want in zip(outputs, data[first : first + ROWS], strict=True):
                np.testing.assert_array_equal(got, unrolled(want).astype(np.int16) + 1)
        return pipe.report()


def test_on_the_cpu() -> None:
    data = encoded(2 * ROWS)
    report = check(unrolling(data, "cpu", exec_async=False), data, epochs=2)
    assert report.codecs == {"test.run_length": RunLengthReport(2 * ROWS, 2 * ROWS)}
    assert report.decoding is None
    assert str(report).splitlines().count(f"{2 * ROWS} run-length files known, {2 * ROWS} found again") == 1
    assert report.to_dict()["codecs"]["test.run_length"] == {"files": 2 * ROWS, "found": 2 * ROWS}


@pytest.mark.parametrize("load", [0.0, 0.5, 1.0])
def test_rows_are_shared_between_cpu_and_gpu(emulated_gpu: None, load: float) -> None:
    data = encoded(4 * ROWS)
    pipe = unrolling(data, "mixed", device_id=0, gpu_decoder_load=load, exec_async=False)
    report = check(pipe, data)
    decoded = report.decoding
    assert (decoded.rows_on_gpu == 0) == (load == 0) and (decoded.rows_on_cpu == 0) == (load == 1)
    assert decoded.rows_on_gpu + decoded.rows_on_cpu == 4 * ROWS and decoded.cpu_share == 1 - load
    assert decoded.reasons == ({"the CPU's share": decoded.rows_on_cpu} if decoded.rows_on_cpu else {})
    (line,) = (line for line in str(report).splitlines() if line.startswith("decoded on the GPU"))
    assert f"; {4 * ROWS} run-length files known, 0 found again" in line


def test_shares_follow_the_measurements(emulated_gpu: None) -> None:
    data = encoded(ROWS)
    with unrolling(data, "mixed", device_id=0) as pipe:
        for _ in range(200):  # until the controller has measured
            for _ in range(2 * WINDOW_BATCHES):
                pipe.run()
            decoded = pipe.report().decoding
            if decoded.why != "nothing is measured yet":
                break
        assert [d.cpu_share for d in pipe.execution.decoders] == [decoded.cpu_share]
    assert decoded.why != "nothing is measured yet" and decoded.rows_on_cpu > 0


def test_a_bad_row_fails_alone() -> None:
    data = encoded(ROWS)
    data[3] = data[3][:-1]
    with unrolling(data, "cpu", on_error="skip") as pipe:
        assert len(pipe.run()[0]) == ROWS - 1
        assert "expected pairs of bytes" in pipe.errors[0].reason


def config(options: Mapping[str, Mapping[str, Any]]) -> PipelineConfig:
    return PipelineConfig(batch_size=ROWS, threads=1, seed=1, depth=0, codec_options=options)


def test_the_index_outlives_the_pipeline(tmp_path: Path) -> None:
    data = encoded(ROWS)
    graph = unrolling(data, "cpu").graph
    options = {"test.run_length": {"path": tmp_path / "index"}}
    for found in (0, ROWS):
        execution = Execution(graph, operators.find, config(options))
        delivered = execution.next()
        assert delivered is not None and len(delivered.rows) == ROWS
        assert execution.report().codecs["test.run_length"] == RunLengthReport(ROWS, found)
        execution.close()
        execution.close()  # saves once
    assert len(json.loads((tmp_path / "index").read_text())) == ROWS
    with pytest.raises(ArgumentError, match="expected a file as `path`"):
        Execution(graph, operators.find, config({"test.run_length": {"path": tmp_path}}))


def test_a_pipeline_opens_a_codec_once_and_only_if_it_needs_it() -> None:
    data, before = encoded(ROWS), RunLength.opened
    check(unrolling(data, "cpu"), data)
    assert RunLength.opened == before + 1
    with Pipeline(batch_size=1) as pipe:
        pipe.set_outputs(fn.random.uniform())
    pipe.run()
    assert RunLength.opened == before + 1 and not pipe.report().codecs


def test_names() -> None:
    with pytest.raises(ArgumentError, match="there is no codec `jpg`; did you mean `jpeg`"):
        OpenCodecs().get("jpg")
    with pytest.raises(ArgumentError, match="built-in codec's; choose another one"):
        registry.register(type("Other", (RunLength,), {}, name="jpeg"))
    with pytest.raises(ArgumentError, match="expected a class"):
        registry.register(Codec)  # type: ignore[type-abstract]


class OnCpu(Codec, name="test.on_cpu"):
    """Codec without kernels for GPUs."""

    def host_kernel(self, body: Native) -> CodecKernel:
        return CodecKernel(self.name, None)


def test_a_codec_without_a_form_for_gpus_is_refused() -> None:
    with pytest.raises(UnsupportedError, match=r"the codec `test.on_cpu` has no `unroll` for GPUs"):
        OnCpu(None, {}).gpu_kernel(Native("unroll"), (), ())


def test_the_fallback_takes_a_kernel_for_gpus_first() -> None:
    with pytest.raises(ValueError, match="expected a kernel for GPUs"):
        _native.gpu.GpuWithCpuFallback(_native.kernels.python(), _native.kernels.python())
