# SPDX-License-Identifier: Apache-2.0
"""Random numbers of elements, and tables, in pixel expressions: fusion keeps the draws and the entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from stoker import DataNode, fn, types
from stoker.contract import samples
from stoker.contract.argument import arg
from stoker.contract.errors import ArgumentError
from stoker.contract.lowering import Lowering
from stoker.contract.operator import Operator, RowContext
from stoker.contract.pixel import binary, load, lookup, select, uniform
from stoker.contract.step import Stage, Value
from stoker.contract.types import DType
from stoker.executor.run import Run
from stoker.frontends.definition import GraphBuilder
from stoker.graph.analysis import PASSES, transform
from stoker.graph.load import load as load_plan
from stoker.graph.planner import make_plan
from stoker.testing.graph_grower import find as find_for_tests
from stoker.testing.reference import Fed, plain_rows
from tests.graph.small_graphs import Maker

SHAPE = (9, 34, 3)
SQUARES = {"keys": list(range(256)), "values": [float(k * k % 251) for k in range(256)], "dtype": types.UINT8}


class LookedUp(Operator, name="testing.looked_up"):
    """Replace bytes by the elements of the second input, a table of 256 numbers that differs from row to row."""

    inputs = (2, 2)
    hidden = True
    shift = arg("int", 0, per_row=True, doc="Added to each index, modulo 256.")

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        raise NotImplementedError

    def lower(self, c: Lowering, x: Value, table: Value) -> Value:
        index = binary("and", load(x.dtype).cast(DType.INT32) + c.scalar("shift"), 255)
        return c.pointwise([x, table], lookup(table.dtype, 1, index, 256))

    def reference(self, row: RowContext, x: Any, table: Any) -> Any:
        return table[(x.astype(int) + np.asarray(row["shift"])) & 255]


class ManyNumbers(Operator, name="testing.many_numbers"):
    """Add numbers, each of them different."""

    hidden = True
    count = arg("int", 1, doc="How many.")

    def lower(self, c: Lowering, x: Value) -> Value:
        total = load(x.dtype).cast(DType.FLOAT)
        for number in range(c.const("count")):
            total = total + float(number)
        return c.pointwise([x], total)

    def reference(self, row: RowContext, x: Any) -> Any:
        raise NotImplementedError


class Zeros(Operator, name="testing.zeros"):
    """Replace the first line by -0.0, and the others by 0.0."""

    hidden = True

    def lower(self, c: Lowering, x: Value) -> Value:
        first = binary("eq", c.coordinate(x, "H"), 0)
        minus, plus = (uniform(zero, x.dtype) for zero in (-0.0, 0.0))
        return c.pointwise([x], select(first, minus, plus))

    def reference(self, row: RowContext, x: Any) -> Any:
        raise NotImplementedError


def find(name: str) -> Any:
    own = {one.name: one for one in (Fed, LookedUp, ManyNumbers, Zeros)}
    return own.get(name) or find_for_tests(name)


def squares(x: Any) -> Any:
    return np.array(SQUARES["values"], np.uint8)[x]


def noisy(x: DataNode) -> Any:
    return fn.noise.gaussian(x, stddev=30.0, seed=5)


def graph_of(define: Callable[..., Any], *fed: tuple[DType, tuple[Any, ...], str]) -> Any:
    maker = Maker()
    maker.builder = GraphBuilder(find)
    with maker.builder:
        return maker.builder.graph((define(*(maker.fed(*f) for f in fed)),))


IMAGE = (DType.UINT8, (None, None, 3), "HWC")


def outputs(graph: Any, *fed: Any) -> list[Any]:
    """Return the outputs with all passes and with none."""
    results = []
    for passes in (frozenset(PASSES), frozenset[str]()):
        run = Run(load_plan(make_plan(graph, find, passes=passes)), graph, 1, 0, {})
        try:
            (output,) = run.run_inline(plain_rows(1), {(i, 0): [x] for i, x in enumerate(fed)})
            results.append(np.array(output[0]))
        finally:
            run.close()
    return results


def stages(graph: Any) -> int:
    return sum(isinstance(s.body, Stage) for s in transform(graph, find).steps)


CHAINS: dict[str, tuple[Callable[[DataNode], Any], Callable[[Any], Any], int]] = {
    "alone": (lambda x: fn.lookup_table(x, **SQUARES), squares, 1),
    "twice": (lambda x: fn.lookup_table(fn.lookup_table(x, **SQUARES), **SQUARES), lambda x: squares(squares(x)), 1),
    "with a flip between": (
        lambda x: fn.lookup_table(fn.flip(fn.lookup_table(x, **SQUARES), horizontal=1), **SQUARES),
        lambda x: squares(squares(x)[:, ::-1]), 1,
    ),
    "with a transposition between": (
        lambda x: fn.lookup_table(fn.transpose(fn.lookup_table(x, **SQUARES), perm=[2, 0, 1]), **SQUARES),
        lambda x: squares(squares(x).transpose(2, 0, 1)), 1,
    ),
    "before an expression for each channel": (
        lambda x: fn.crop_mirror_normalize(fn.lookup_table(x, **SQUARES), mean=[1.0, 2.0, 3.0], std=1.0, mirror=1),
        lambda x: (squares(x)[:, ::-1].astype(np.float32) - np.float32([1, 2, 3])).transpose(2, 0, 1), 1,
    ),
    "after a size": (
        lambda x: fn.lookup_table(fn.resize(x, size=(18, 68), interp_type=types.INTERP_NN), **SQUARES),
        lambda x: squares(x.repeat(2, 0).repeat(2, 1)), 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_tables_fuse_and_keep_their_entries(name: str) -> None:
    define, want, count = CHAINS[name]
    graph = graph_of(define, IMAGE)
    image = np.random.default_rng(0).integers(0, 256, SHAPE, dtype=np.uint8)
    assert stages(graph) == count
    for output in outputs(graph, image):
        np.testing.assert_array_equal(output, want(image))


def test_a_table_is_never_joined_with_the_stage_that_computes_it() -> None:
    """The table has as many elements as the data, so that only its role distinguishes it."""
    graph = graph_of(
        lambda x, t: x.builder.call("testing.looked_up", (x, fn.cast(t, dtype=DType.INT16)), {"shift": 3}),
        (DType.UINT8, (256,), ""), (DType.UINT8, (256,), ""),
    )  # fmt: skip
    x, table = np.random.default_rng(1).integers(0, 256, (2, 256), dtype=np.uint8)
    assert stages(graph) == 2
    for output in outputs(graph, x, table):
        np.testing.assert_array_equal(output, table.astype(np.int16)[(x.astype(int) + 3) & 255])


def test_tables_of_videos() -> None:
    """A table has no frames, also if it has as many elements as the video, whose frames have one axis less."""

    def define(x: DataNode, table: DataNode, shifts: DataNode) -> Any:
        return x.builder.call("testing.looked_up", (x, table), {"shift": fn.per_frame(shifts)})

    graph = graph_of(define, (DType.UINT8, (256,), "F"), (DType.FLOAT, (256,), ""), (DType.INT32, (256,), ""))
    rng = np.random.default_rng(2)
    x, table = rng.integers(0, 256, 256, dtype=np.uint8), rng.normal(size=256).astype(np.float32)
    shifts = rng.integers(0, 256, 256, dtype=np.int32)
    for output in outputs(graph, x, table, shifts):
        np.testing.assert_array_equal(output, table[(x.astype(int) + shifts) & 255])


DRAWN: dict[str, tuple[Callable[[DataNode], Any], Callable[[Any], Any]]] = {
    "a flip after": (lambda x: fn.flip(noisy(x), horizontal=1, vertical=1), lambda y: y[::-1, ::-1]),
    "a crop after": (lambda x: fn.crop(noisy(x), crop=(4, 20), crop_pos_x=1.0, crop_pos_y=1.0), lambda y: y[5:, 14:]),
    "a transposition after": (lambda x: fn.transpose(noisy(x), perm=[2, 0, 1]), lambda y: y.transpose(2, 0, 1)),
    "an expression for each channel after": (
        lambda x: fn.crop_mirror_normalize(noisy(x), mean=[1.0, 2.0, 3.0], std=1.0, mirror=1),
        lambda y: (y[:, ::-1].astype(np.float32) - np.float32([1, 2, 3])).transpose(2, 0, 1),
    ),
}


@pytest.mark.parametrize("name", DRAWN)
def test_an_element_keeps_its_draw(name: str) -> None:
    """Later steps move the noise with its element."""
    define, want = DRAWN[name]
    image = np.full(SHAPE, 128, np.uint8)
    plain, same = outputs(graph_of(noisy, IMAGE), image)
    np.testing.assert_array_equal(plain, same)
    assert len(np.unique(plain)) > 50
    for output in outputs(graph_of(define, IMAGE), image):
        np.testing.assert_array_equal(output, want(plain))


def test_draws_of_frames_and_channels_are_independent() -> None:
    video = np.full((4, 20, 30, 3), 128, np.uint8)
    (output, _) = outputs(graph_of(noisy, (DType.UINT8, (None, None, None, 3), "FHWC")), video)
    noise = output.astype(np.float64) - 128
    assert abs(noise.mean()) < 2 and abs(noise.std() - 30) < 2
    for other in (np.roll(noise, 1, axis) for axis in range(4)):
        assert abs((noise * other).mean()) / 900 < 0.06


def test_zeros_of_both_signs_are_two_numbers() -> None:
    """A program with both once got the sign of the first one for both."""
    x = np.ones((2, 3), np.float32)

    def define(x: DataNode) -> Any:
        return x.builder.call("testing.zeros", (x,), {})

    for output in outputs(graph_of(define, (DType.FLOAT, (None, None), "HW")), x):
        assert np.signbit(output).tolist() == [[True] * 3, [False] * 3]


def test_more_numbers_than_a_stage_takes() -> None:
    def chain(count: int) -> Any:
        return graph_of(lambda x: x.builder.call("testing.many_numbers", (x,), {"count": count}), IMAGE)

    assert stages(chain(256)) == 1
    text = "`testing.many_numbers`: expected at most 256 different numbers in the computation of an element, got 257"
    with pytest.raises(ArgumentError, match=text):
        stages(chain(257))
    image = np.zeros(SHAPE, np.uint8)
    assert all((x == sum(range(256))).all() for x in outputs(chain(256), image))
