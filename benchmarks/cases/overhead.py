# SPDX-License-Identifier: Apache-2.0
"""Overhead without work: a tiny pipeline, each additional node, an eager call."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import US_PER_NODE, US_PER_RUN, Bar, Case, Contender, Environment, Loop, Sample
from benchmarks.data import Data
from benchmarks.library import DALI, STOKER, load

ORDER = 50
_PORTION = 200
_FURTHER_NODES = 20
_SAMPLE_S = 0.6


def make_pipeline(library: str, further_nodes: int, **settings: Any) -> Any:
    """Return a pipeline of one random number and ``nodes`` more nodes, half of them draws that cannot be merged."""
    lib = load(library)
    fn = lib.fn

    @lib.pipeline_def(batch_size=1, num_threads=1, device_id=None, seed=7, **settings)
    def tiny() -> Any:
        x = fn.random.uniform(range=[0.0, 1.0])
        for _ in range(further_nodes // 2):
            x = x + fn.random.uniform(range=[0.0, 1.0])
        return x

    pipeline = tiny()
    pipeline.build()
    return pipeline


def run_trivial(data: Data, *, library: str, **settings: Any) -> Loop:
    """Run the smallest pipeline there is."""
    pipeline = make_pipeline(library, 0, **settings)

    def step() -> tuple[int, float]:
        for _ in range(_PORTION):
            outputs = pipeline.run()
        return _PORTION, float(np.asarray(outputs[0].at(0)).sum())

    return Loop(step, warm=1)


def time_per_node(data: Data, *, library: str, **settings: Any) -> Sample:
    """Return a twentieth of the time of twenty additional nodes; short and long runs alternate."""
    short, long = (make_pipeline(library, count, **settings) for count in (0, _FURTHER_NODES))

    def read() -> float:
        return (_seconds_per_call(long.run) - _seconds_per_call(short.run)) * 1e6 / _FURTHER_NODES

    return Sample(read)


def _seconds_per_call(call: Callable[[], object]) -> float:
    calls, start = 0, time.perf_counter()
    while time.perf_counter() - start < _SAMPLE_S / 2:
        for _ in range(_PORTION):
            call()
        calls += _PORTION
    return (time.perf_counter() - start) / calls


def call_stoker(data: Data) -> Loop:
    """Call `eager.flip` on an array of 8x8 pixels."""
    from stoker import eager

    return _call_loop(lambda image: np.asarray(eager.flip(image)))


def call_dali(data: Data) -> Loop:
    """Call `flip` in DALI's imperative mode, and evaluate it."""
    from nvidia.dali.experimental import dynamic

    return _call_loop(lambda image: np.asarray(dynamic.flip(dynamic.as_tensor(image, layout="HWC")).evaluate()))


def call_numpy(data: Data) -> Loop:
    """Flip in NumPy, for scale."""
    return _call_loop(lambda image: np.ascontiguousarray(image[:, ::-1]))


def _call_loop(call: Callable[[np.ndarray], np.ndarray]) -> Loop:
    image = np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)
    if not np.array_equal(call(image), image[:, ::-1]):
        raise ValueError("the contender does not flip.")

    def step() -> tuple[int, float]:
        for _ in range(_PORTION):
            result = call(image)
        return _PORTION, float(result.sum())

    return Loop(step, warm=1)


def _pairs(function: str) -> tuple[Contender, ...]:
    dali: Environment = "peers"
    return (
        Contender("stoker", function, {"library": STOKER}),
        Contender("DALI", function, {"library": DALI}, dali),
        Contender("DALI, static executor", function, {"library": DALI, "exec_dynamic": False}, dali),
    )


CASES = (
    Case(
        "trivial-run",
        "A pipeline of one node and one sample",
        US_PER_RUN,
        _pairs("run_trivial"),
        (Bar("time per run", "stoker", at_most=20),),
        note="`random.uniform` alone, batch 1, otherwise default settings: the cost of `run` itself.",
    ),
    Case(
        "further-node",
        "Each additional node of that pipeline",
        US_PER_NODE,
        _pairs("time_per_node"),
        (Bar("time per node", "stoker", at_most=3),),
        note="(time with 21 nodes - time with 1) / 20; ten of the twenty are draws, ten are sums.",
    ),
    Case(
        "eager-call",
        "An eager call on a small array",
        US_PER_RUN,
        (
            Contender("stoker", "call_stoker"),
            Contender("DALI, imperative", "call_dali", environment="peers"),
            Contender("NumPy", "call_numpy", environment="peers"),
        ),
        (Bar("time per call", "stoker", at_most=20),),
        note="`flip` of 8x8 uint8 RGB, the result as a NumPy array.",
    ),
)
