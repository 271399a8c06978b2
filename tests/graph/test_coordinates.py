# SPDX-License-Identifier: Apache-2.0
"""Coordinates in pixel expressions: passes rewrite them, so that each stays an index in its original tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stoker import DataNode, fn, types
from stoker.contract.step import Stage, StepList
from stoker.contract.types import DType
from stoker.executor.run import Run
from stoker.frontends.definition import GraphBuilder
from stoker.graph.analysis import PASSES, transform
from stoker.graph.load import load
from stoker.graph.planner import make_plan
from stoker.native import _native
from stoker.testing.graph_grower import find as find_for_tests
from stoker.testing.reference import Fed, plain_rows
from tests.graph.small_graphs import Maker

SHAPE = (9, 34, 3)  # A row of it is longer than the widest vector.


def find(name: str) -> Any:
    return Fed if name == Fed.name else find_for_tests(name)


def placed(x: DataNode, axes: str, **args: Any) -> DataNode:
    """Return `x` with 250 wherever first * (index on one axis) + second * (index on the other) reaches the limit."""
    result: DataNode = x.builder.call("testing.position_mask", (x,), {"axes": axes, "fill": 250.0, **args})
    return result


def placed_by_numpy(x: Any, axes: str, layout: str, first: int, second: int, limit: int) -> Any:
    grid = np.indices(x.shape)
    total = first * grid[layout.index(axes[0])] + second * grid[layout.index(axes[1])]
    return np.where(total < limit, x, 250).astype(x.dtype)


HW = {"axes": "HW", "first": 2, "second": -1, "limit": 5}
WC = {"axes": "WC", "first": 1, "second": 3, "limit": 20}
Chain = tuple[Callable[[DataNode], Any], Callable[[Any], Any], int]
CHAINS: dict[str, Chain] = {
    "alone": (lambda x: placed(x, **HW), lambda x: placed_by_numpy(x, layout="HWC", **HW), 1),
    "the channel": (lambda x: placed(x, **WC), lambda x: placed_by_numpy(x, layout="HWC", **WC), 1),
    "a flip before": (
        lambda x: placed(fn.flip(fn.cast(x, dtype=DType.INT16), horizontal=1, vertical=1), **HW),
        lambda x: placed_by_numpy(x[::-1, ::-1].astype(np.int16), layout="HWC", **HW), 1,
    ),
    "a flip after": (
        lambda x: fn.flip(placed(x, **HW), horizontal=1),
        lambda x: placed_by_numpy(x, layout="HWC", **HW)[:, ::-1], 1,
    ),
    "a flip between two": (
        lambda x: placed(fn.flip(placed(x, **HW)), **WC),
        lambda x: placed_by_numpy(placed_by_numpy(x, layout="HWC", **HW)[:, ::-1], layout="HWC", **WC), 1,
    ),
    "a transposition between two": (
        lambda x: placed(fn.transpose(placed(x, **HW), perm=[2, 1, 0]), **HW),
        lambda x: placed_by_numpy(placed_by_numpy(x, layout="HWC", **HW).transpose(2, 1, 0), layout="CWH", **HW), 1,
    ),
    "an expression for each channel": (
        lambda x: placed(fn.flip(placed(x, **WC)), **WC, by_channel=True),
        lambda x: placed_by_numpy(_with_before(placed_by_numpy(x, layout="HWC", **WC)[:, ::-1]), layout="HWC", **WC), 1,
    ),
    "normalized": (
        lambda x: fn.crop_mirror_normalize(placed(x, **WC), mean=[1.0, 2.0, 3.0], std=1.0, mirror=1),
        lambda x: (
            placed_by_numpy(x, layout="HWC", **WC)[:, ::-1].astype(np.float32) - np.float32([1, 2, 3])
        ).transpose(2, 0, 1), 1,
    ),
    "a crop before": (
        lambda x: placed(fn.crop(fn.cast(x, dtype=DType.INT16), crop=(4, 20), crop_pos_x=1.0, crop_pos_y=1.0), **HW),
        lambda x: placed_by_numpy(x[5:, 14:].astype(np.int16), layout="HWC", **HW), 2,
    ),
    "a crop after": (
        lambda x: fn.cast(fn.crop(placed(x, **HW), crop=(4, 20), crop_pos_x=1.0, crop_pos_y=1.0), dtype=DType.INT16),
        lambda x: placed_by_numpy(x, layout="HWC", **HW)[5:, 14:].astype(np.int16), 2,
    ),
    "a size before": (
        lambda x: placed(fn.resize(x, size=(18, 68), interp_type=types.INTERP_NN), **HW),
        lambda x: placed_by_numpy(x.repeat(2, 0).repeat(2, 1), layout="HWC", **HW), 1,
    ),
    "a size after": (
        lambda x: fn.resize(placed(x, **HW), size=(18, 68), interp_type=types.INTERP_NN),
        lambda x: placed_by_numpy(x, layout="HWC", **HW).repeat(2, 0).repeat(2, 1), 2,
    ),
    "a gradient": (
        lambda x: placed(x, "HW", first=3, second=5, gradient=True),
        lambda x: x + (3 * np.arange(9)[:, None, None] + 5 * np.arange(34)[None, :, None]).astype(np.float32), 1,
    ),
}  # fmt: skip


def _with_before(x: Any) -> Any:
    return np.maximum(x, x[..., [0, 0, 1]])


def graph_of(define: Callable[[DataNode], Any]) -> Any:
    maker = Maker()
    maker.builder = GraphBuilder(find)
    with maker.builder:
        return maker.builder.graph((define(maker.fed(DType.UINT8, (None, None, 3), "HWC")),))


def fused(define: Callable[[DataNode], Any]) -> StepList:
    return transform(graph_of(define), find)


@pytest.fixture(params=_native.instruction_sets())
def isa(request: pytest.FixtureRequest) -> Any:
    before = _native.get_isa()
    _native.set_isa(request.param)
    yield request.param
    _native.set_isa(before)


@pytest.mark.parametrize("passes", [frozenset(PASSES), frozenset[str]()], ids=["passes", "none"])
@pytest.mark.parametrize("name", CHAINS)
def test_a_coordinate_is_the_index_in_its_original_tensor(name: str, passes: frozenset[str], isa: str) -> None:
    define, want, _ = CHAINS[name]
    image = np.random.default_rng(0).integers(0, 200, SHAPE, dtype=np.uint8)
    graph = graph_of(define)
    run = Run(load(make_plan(graph, find, passes=passes)), graph, 1, 0, {})
    try:
        (output,) = run.run_inline(plain_rows(1), {(0, 0): [image]})
        np.testing.assert_array_equal(output[0], want(image))
    finally:
        run.close()


@pytest.mark.parametrize("name", CHAINS)
def test_expressions_with_coordinates_fuse(name: str) -> None:
    define, _, stages = CHAINS[name]
    steps = fused(define)
    assert sum(isinstance(s.body, Stage) for s in steps.steps) == stages, steps


def test_a_decode_window_leaves_coordinates_in_the_crop() -> None:
    maker = Maker()
    maker.builder = GraphBuilder(find)
    with maker.builder:
        x = fn.crop(fn.decoders.image(maker.encoded()), crop=(4, 5), crop_pos_x=0.0, crop_pos_y=1.0)
        graph = maker.builder.graph((placed(x, **HW),))
    plain, windowed = (transform(graph, find, passes=p) for p in (frozenset[str](), frozenset(PASSES)))
    (program,) = (s.body.program for s in plain.steps if isinstance(s.body, Stage))
    (same,) = (s.body.program for s in windowed.steps if isinstance(s.body, Stage))
    assert repr(program) == repr(same)


def test_a_padding_needs_no_mask_in_memory() -> None:
    """With three fill values, one stage pads and fills."""
    args = {"crop": (12, 40), "out_of_bounds_policy": "pad", "fill_values": (1.0, 2.0, 3.0)}
    for operator in (fn.crop, fn.crop_mirror_normalize):
        steps = fused(lambda x, operator=operator: operator(x, **args))
        assert [type(s.body).__name__ for s in steps.steps].count("Stage") == 1
        assert not any(getattr(s.body, "kernel", "") == "constant" for s in steps.steps)


def test_coordinates_of_videos() -> None:
    """A stage that runs per frame gets the number of the frame from the loop."""

    def define(x: DataNode) -> Any:
        return placed(fn.resize(x, size=(4, 10), interp_type=types.INTERP_NN), "FW", first=3, second=1, limit=9)

    maker = Maker()
    maker.builder = GraphBuilder(find)
    with maker.builder:
        graph = maker.builder.graph((define(maker.fed(DType.UINT8, (None, None, None, 3), "FHWC")),))
    (step,) = (s for s in transform(graph, find).steps if isinstance(s.body, Stage))
    assert step.frames is not None
    video = np.random.default_rng(1).integers(0, 200, (5, 2, 5, 3), dtype=np.uint8)
    want = placed_by_numpy(video.repeat(2, 1).repeat(2, 2), "FW", "FHWC", 3, 1, 9)
    for passes in (frozenset(PASSES), frozenset[str]()):
        run = Run(load(make_plan(graph, find, passes=passes)), graph, 1, 0, {})
        try:
            (output,) = run.run_inline(plain_rows(1), {(0, 0): [video]})
            np.testing.assert_array_equal(output[0], want)
        finally:
            run.close()
