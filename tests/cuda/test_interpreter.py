# SPDX-License-Identifier: Apache-2.0
"""Interpreter of stages on a GPU: the CPU's bits, and its replacement by the compiled kernel."""

from __future__ import annotations

import itertools
import threading
import time

import emulated_stages as st
import numpy as np
import pytest
import test_stages
from test_stages import (  # noqa: F401 - run with this module's `library`
    test_chains_of_channels,
    test_coordinates,
    test_division_by_zero_fails_the_row,
    test_elements,
    test_every_operation,
    test_groups_of_lanes,
    test_views,
)

from stoker import fn, math, pipeline_def
from stoker.contract import pixel as px
from stoker.contract.gpu import StageRows
from stoker.contract.pixel import compile_program
from stoker.contract.types import DType
from stoker.device.generate import uniforms_of
from stoker.device.gpu import Gpu, StageKey, StageSources
from stoker.device.interpreter import INTERPRETER
from stoker.native import _native
from tests.idle_clock import HANG_S

NEVER = [1 << 60]
STEPS = 96  # operations of a program, at most


def unexpected(_tiered, _limit):
    raise AssertionError("the kernel must not be compiled")


class Interpreted:
    """All stages without an interpolator that are short enough, interpreted."""

    def __init__(self, gpu):
        self.gpu, self.device = gpu, gpu.device
        [self.function] = gpu.functions([INTERPRETER])()

    def kernel(self, stage, uniforms=None):
        tiered = _native.gpu.TieredFunction(self.function, NEVER, unexpected)
        uniforms = stage.source().uniforms if uniforms is None else uniforms
        return _native.gpu.stage(*stage.arguments()[2:], tiered, list(uniforms))

    def kernels(self):
        found = []
        for kind, stages in test_stages.STAGES.items():
            for stage in stages:
                if not stage.interpolator and len(stage.code) <= STEPS:
                    stage.kind = kind
                    found.append((stage, self.kernel(stage)))
        return found


@pytest.fixture(scope="module", params=["null", pytest.param("cuda", marks=st.NEEDS_GPU)])
def library(folder, request):
    return Interpreted(Gpu.open(0) if request.param == "cuda" else st.EmulatedGpu(folder))


def test_wrong_programs_are_refused(library):
    x = px.load(DType.FLOAT)
    stage = test_stages.compiled([[x * px.uniform(2.5, DType.FLOAT)]], [DType.FLOAT])
    assert len(stage.source().uniforms) == 1
    with pytest.raises(ValueError, match="lacks one of its uniforms"):
        library.kernel(stage, [])
    long = x
    for _ in range(97):
        long = px.unary("sin", long)
    with pytest.raises(ValueError, match="expected at most 96 operations in an interpreted program, got 99"):
        library.kernel(test_stages.compiled([[long]], [DType.FLOAT]))


class CountingGpu(st.EmulatedGpu):
    """Emulated GPU that compiles one stage first, and records what it compiles."""

    compiled_first = 1
    unloaded_elements = 500
    interpreted_elements = 1000

    def __init__(self, folder):
        super().__init__(folder)
        self._new_stages = itertools.count(1)
        self.sources: list[str] = []
        self.may_compile = threading.Event()
        self.may_compile.set()

    @property
    def stages(self):
        return sum("STOKER_STAGE(" in s for s in self.sources)

    def compiled(self, source):
        self.sources.append(source)
        if "STOKER_STAGE(" in source:
            assert self.may_compile.wait(HANG_S)
        return super().compiled(source)


@pytest.fixture
def counting(folder, monkeypatch):
    gpu = CountingGpu(folder)
    monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, memory_limit=None: gpu))
    return gpu


def pipeline(expression, data):
    @pipeline_def(batch_size=len(data), num_threads=1, device_id=0)
    def expressions():
        return expression(fn.external_source(source=lambda: data).gpu())

    return expressions()


def wait_until(condition):
    end = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.002)


DATA = np.linspace(-4, 4, 4 * 100, dtype=np.float32).reshape(4, 100)
EXPRESSIONS = [
    (lambda x: x + 1.5, DATA + np.float32(1.5)),
    (lambda x: x * 1.5, DATA * np.float32(1.5)),
    (lambda x: math.floor(x) > 2, np.floor(DATA) > 2),
    (lambda x: -x, -DATA),
]


def unexpected_look_up(source):
    raise AssertionError("a stage without much work must not be looked up on disk")


def test_many_small_expressions_compile_one_kernel_and_the_interpreter(counting, monkeypatch):
    """None of the others is looked up in the cache on disk."""
    counting.interpreted_elements = 1 << 22
    counting.unloaded_elements = 1 << 16
    monkeypatch.setattr(counting, "is_cached", unexpected_look_up)
    for expression, expected in EXPRESSIONS:
        with pipeline(expression, DATA) as pipe:
            np.testing.assert_array_equal(np.stack(pipe.run()[0].as_cpu()), expected)
    assert counting.stages == counting.compiled_first == 1
    assert sum("STOKER_INTERPRETED" in s for s in counting.sources) == 1


def test_an_interpreted_stage_is_compiled_when_it_has_work(counting):
    with pipeline(EXPRESSIONS[0][0], DATA) as pipe:  # compiled first
        pipe.run()
    expression, expected = EXPRESSIONS[1]
    counting.may_compile.clear()
    with pipeline(expression, DATA) as pipe:
        for _ in range(5):  # 400 elements each, and prefetched ones
            np.testing.assert_array_equal(np.stack(pipe.run()[0].as_cpu()), expected)
        wait_until(lambda: counting.stages == 2)  # begun once, and batches do not wait for it
        for _ in range(2):
            np.testing.assert_array_equal(np.stack(pipe.run()[0].as_cpu()), expected)
        counting.may_compile.set()
        wait_until(lambda: not [t for t in threading.enumerate() if t.name == "stoker-nvrtc"])
        for _ in range(3):
            np.testing.assert_array_equal(np.stack(pipe.run()[0].as_cpu()), expected)
    assert counting.stages == 2


def test_a_stage_whose_kernel_does_not_compile_remains_interpreted(folder, monkeypatch):
    class Refusing(CountingGpu):
        compiled_first = 0

        def compiled(self, source):
            if "STOKER_STAGE(" in source:
                raise RuntimeError("NVRTC refused a kernel for sm_90: why")
            return super().compiled(source)

    monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, memory_limit=None: Refusing(folder)))
    expression, expected = EXPRESSIONS[1]
    raised = []
    monkeypatch.setattr("stoker.device.gpu.warn", lambda text, **_: raised.append(text))
    with pipeline(expression, DATA) as pipe:
        for _ in range(5):
            np.testing.assert_array_equal(np.stack(pipe.run()[0].as_cpu()), expected)
        wait_until(lambda: raised)
    assert (
        len(raised) == 1 and "remains interpreted, which is slower: NVRTC refused a kernel for sm_90: why" in raised[0]
    )


@pytest.mark.parametrize("is_cached", [True, False])
def test_an_interpreted_stage_is_loaded_from_the_cache_after_some_work(counting, monkeypatch, is_cached):
    counting.compiled_first = 0
    counting.interpreted_elements = 1 << 22
    looked_up = threading.Event()

    def look_up(source):
        looked_up.set()
        return is_cached

    monkeypatch.setattr(counting, "is_cached", look_up)
    expression, expected = EXPRESSIONS[0]
    with pipeline(expression, DATA) as pipe:
        for _ in range(3):  # 400 elements each, and the kernel is wanted after 500
            np.testing.assert_array_equal(np.stack(pipe.run()[0].as_cpu()), expected)
        assert looked_up.wait(HANG_S)
        wait_until(lambda: not [t for t in threading.enumerate() if t.name == "stoker-nvrtc"])
        for _ in range(3):
            np.testing.assert_array_equal(np.stack(pipe.run()[0].as_cpu()), expected)
    assert counting.stages == is_cached
    assert sum("STOKER_INTERPRETED" in s for s in counting.sources) == 1


def test_a_stage_whose_kernel_is_loaded_is_not_interpreted(counting):
    expression, expected = EXPRESSIONS[0]
    for _ in range(2):  # the second pipeline has no new stage
        with pipeline(expression, DATA) as pipe:
            np.testing.assert_array_equal(np.stack(pipe.run()[0].as_cpu()), expected)
    assert counting.stages == 1 and not any("STOKER_INTERPRETED" in s for s in counting.sources)


def test_a_batch_that_exceeds_several_limits_requests_the_last(counting):
    counting.compiled_first = 0
    counting.unloaded_elements, counting.interpreted_elements = 100, 200
    asked = []
    replace = counting._replace
    counting._replace = lambda key, tiered, may_compile: (asked.append(may_compile), replace(key, tiered, may_compile))
    expression, expected = EXPRESSIONS[0]
    with pipeline(expression, DATA) as pipe:
        np.testing.assert_array_equal(np.stack(pipe.run()[0].as_cpu()), expected)
        wait_until(lambda: counting.stages == 1)
        wait_until(lambda: not [t for t in threading.enumerate() if t.name == "stoker-nvrtc"])
    assert asked == [True]


def test_uniforms_are_found_without_the_source():
    for stages in test_stages.STAGES.values():
        for stage in stages:
            assert uniforms_of(stage.code, _native.pixel_ops()) == stage.source().uniforms


def test_sources_of_stages_are_few():
    sources = StageSources(2)
    code = tuple(compile_program([[px.load(DType.FLOAT) * px.uniform(2.5)]], _native.pixel_ops(), 1).code)
    keys = [StageKey(code, 0, (n,), (10,), "", 0, StageRows()) for n in (1, 2, 3)]
    made = [sources.of(key) for key in keys]
    assert sources.find(keys[0]) is None and sources.of(keys[0]) == made[0]
    assert sources.find(keys[1]) is None and sources.find(keys[2]) is made[2]
