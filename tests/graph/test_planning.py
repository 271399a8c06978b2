# SPDX-License-Identifier: Apache-2.0
"""Planning as a pure function: a plan is data and needs no device. Loading creates its kernels."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest

from stoker import fn
from stoker.contract.codec import Codec, CodecKernel
from stoker.contract.errors import GraphError, UnsupportedError
from stoker.contract.gpu import StageRows, Target
from stoker.contract.lowering import Lowering
from stoker.contract.step import Launches, Value
from stoker.executor.run import Run
from stoker.graph.analysis import PASSES
from stoker.graph.load import load
from stoker.graph.node import Graph
from stoker.graph.plan import HostKernel, Plan, PlannedCodecKernel, PlannedGpuStage
from stoker.graph.planner import make_plan
from stoker.native import _native
from stoker.testing.reference import plain_rows
from tests.graph.small_graphs import Maker, find

ON_GPU = Target(has_gpu=True)


def chain_on_gpu() -> Graph:
    maker = Maker()
    with maker.builder:
        x = fn.decoders.image(maker.encoded(), device="mixed")
        x = fn.resize(x, size=(8, 9))
        y = fn.crop_mirror_normalize(x, mean=[1.5, 2.5, 3.5], std=[4.0, 5.0, 6.0])
        return maker.builder.graph((y, fn.rotate(x, angle=30.0)))


def planned(target: Target) -> Plan:
    return make_plan(chain_on_gpu(), find, target=target)


class Kernels:
    """GPU that creates no kernels and records its calls."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls

    def stage(self, body: Any, arguments: tuple[Any, ...], rows: StageRows) -> Callable[[], Any]:
        self.calls.append("begin stage")
        return lambda: self.calls.append("wait for stage")

    def native(self, body: Any, in_types: Any, out_types: Any) -> Callable[[], Any]:
        raise AssertionError("all native kernels on the GPU are a codec's")


class Remembering(Codec):
    """Codec that creates no GPU kernels and records its calls."""

    def __init__(self, calls: list[str]) -> None:
        super().__init__(None, {})
        self.calls = calls

    def host_kernel(self, body: Any) -> CodecKernel:
        return CodecKernel("jpeg", getattr(_native.kernels, body.kernel)(*body.attrs))

    def gpu_kernel(self, body: Any, in_types: Any, out_types: Any) -> Callable[[], CodecKernel]:
        self.calls.append(f"begin {body.kernel}")
        balanced: Any = f"decoder of {body.kernel}"

        def create() -> CodecKernel:
            self.calls.append(f"wait for {body.kernel}")
            return CodecKernel("jpeg", None, balanced)

        return create


def test_a_plan_for_a_gpu_needs_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", lambda self: pytest.fail("planning starts a thread"))
    kernels = planned(ON_GPU).code.kernels
    assert sum(isinstance(k, PlannedCodecKernel) and k.on_gpu for k in kernels) == 1
    assert sum(isinstance(k, PlannedGpuStage) for k in kernels) == 3
    assert any(isinstance(k, HostKernel) for k in kernels)


def test_equal_graphs_have_equal_plans() -> None:
    one, two = planned(ON_GPU), planned(ON_GPU)
    for name in ("values", "steps", "outputs", "segments", "scratch_buffers", "index_columns"):
        assert getattr(one.code, name) == getattr(two.code, name), name
    assert [repr(s.body) for s in one.steps] == [repr(s.body) for s in two.steps]
    assert (one.outputs, one.fed, one.messages) == (two.outputs, two.fed, two.messages)


def test_all_kernels_start_compiling_before_the_first_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    native = SimpleNamespace(Plan=MagicMock, kernels=_native.kernels)  # a native plan refuses steps without kernels
    monkeypatch.setattr("stoker.graph.load._native", native)
    loaded = load(planned(ON_GPU), Kernels(calls), lambda name: Remembering(calls))
    started = [c for c in calls if c.startswith("begin")]
    assert len(started) == 4 and calls[:4] == started
    assert sorted(c.removeprefix("wait for ") for c in calls[4:]) == sorted(c.removeprefix("begin ") for c in started)
    assert loaded.decoders == ("decoder of decode",)
    (decoding,) = (n for n, k in loaded.by_codecs.items() if k.balanced)
    assert loaded.plan.steps[decoding].body.kernel == "decode"


def test_a_plan_depends_on_its_target() -> None:
    with pytest.raises(UnsupportedError, match="placed on a GPU, and the pipeline has none"):
        planned(Target())
    instead = planned(Target(has_cpu_fallback=True))
    assert all(
        isinstance(k, HostKernel) or (isinstance(k, PlannedCodecKernel) and not k.on_gpu) for k in instead.code.kernels
    )
    assert not any(o.on_gpu for o in instead.outputs) and all(o.on_gpu for o in planned(ON_GPU).outputs)


@pytest.mark.parametrize(
    ("define", "kernels"),
    [
        (lambda x: fn.expand_dims(x, axes=[0]), ["stage"]),
        (lambda x: fn.squeeze(fn.expand_dims(x, axes=[0]), axes=[0]), ["stage"]),
        (lambda x: fn.reshape(x, shape=[-1]), ["stage"]),
        (lambda x: fn.reshape(x // 3, shape=[-1]), ["stage"]),
        # The number of elements is checked before the output is allocated.
        (lambda x: fn.reshape(x, shape=[-1, 2]), ["stage", "view", "stage"]),
        (lambda x: fn.permute_batch(x, indices=[1, 0]), ["row_number", "other_row", "stage"]),
        # The first view has two readers.
        (lambda x: (y := fn.expand_dims(x, axes=[0]), fn.expand_dims(y, axes=[0])), ["view", "stage", "stage"]),
    ],
)  # fmt: skip
def test_outputs_on_a_gpu_that_show_other_memory_are_copied_by_one_stage(
    define: Callable[[Any], Any], kernels: list[str]
) -> None:
    maker = Maker()
    with maker.builder:
        x = maker.image()
        node = maker.builder.nodes[-1]
        maker.builder.nodes[-1] = replace(node, args={**node.args, "device": "gpu"})
        outputs = define(x)
    graph = maker.builder.graph(outputs if isinstance(outputs, tuple) else (outputs,))
    plan = make_plan(graph, find, target=ON_GPU)
    assert [k.name if isinstance(k, HostKernel) else "stage" for k in plan.code.kernels] == kernels


def test_a_plan_with_kernels_on_a_gpu_is_not_loaded_without_one() -> None:
    with pytest.raises(ValueError, match="expected a GPU for a plan with kernels on one"):
        load(planned(ON_GPU), codecs=lambda name: Remembering([]))
    with pytest.raises(ValueError, match="expected codecs for a plan with steps of theirs"):
        load(planned(ON_GPU))


def test_one_plan_is_loaded_for_several_runs() -> None:
    maker = Maker()
    with maker.builder:
        graph = maker.builder.graph((fn.flip(maker.image()),))
    plan = make_plan(graph, find, passes=frozenset(PASSES))
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    for _ in range(2):
        run = Run(load(plan), graph, 1, 0, {})
        try:
            (output,) = run.run_inline(plain_rows(1), {(0, 0): [image]})
            assert np.array_equal(output[0], image[:, ::-1])
        finally:
            run.close()


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize(
    ("attrs", "said"),
    [
        ((0, 1, 2), r"expected 4 constants for kernel `equalize\(frame: int, .*\)`, got 3"),
        ((0, 1, 2, 0.5), "expected `channel` of kernel `equalize.* to be int, got 0.5"),
    ],
)
def test_wrong_constants_are_refused_with_the_kernels_signature(
    device: str, attrs: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lower(self: Any, c: Lowering, x: Value) -> Value:
        own = Launches("Equalize", {"count": 1})
        return c.native("equalize", [x], [(x.dtype, x.shape, x.layout)], attrs=attrs, own=own)[0]

    monkeypatch.setattr(find("equalize"), "lower", lower)
    maker = Maker()
    with maker.builder:
        x = fn.decoders.image(maker.encoded(), device="mixed" if device == "gpu" else "cpu")
        graph = maker.builder.graph((fn.equalize(x),))
    with pytest.raises(GraphError, match=said):
        make_plan(graph, find, target=ON_GPU)
