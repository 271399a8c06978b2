# SPDX-License-Identifier: Apache-2.0
"""The laws reject what breaks them, with one planted fault per law."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from stoker import Operator, Spec, UnsupportedError, arg, eager, register
from stoker.contract.config import PipelineConfig
from stoker.contract.pixel import load, uniform
from stoker.contract.types import DType
from stoker.frontends import registry
from stoker.frontends.registry import find
from stoker.testing import check_operator
from stoker.testing.graphs import random_graph
from stoker.testing.laws import ALL_PASSES, check_graph, run_graph
from stoker.testing.strategies import batches, graphs, images
from stoker.testing.tolerances import assert_rows


class Brighter(Operator, name="test.brighter"):
    """Multiply by a factor. Exact."""

    factor = arg("float", 1.0, per_row=True, doc="Factor.")
    cases = ({}, {"factor": 1.5}, {"factor": 0.25})

    def lower(self, c: Any, x: Any) -> Any:
        value = load(x.dtype).cast(DType.FLOAT) * uniform(c.scalar("factor"))
        return c.pointwise([x], value.cast(x.dtype))

    def reference(self, row: Any, x: Any) -> Any:
        y = np.rint(x.astype(np.float32) * np.float32(row.number("factor")))
        return np.clip(y, 0, 255).astype(np.uint8)


class Twice(Operator, name="test.twice"):
    """Apply the operator twice, as a composite."""

    cases = ({},)

    def compose(self, c: Any, x: Any) -> Any:
        return c.apply("brightness", c.apply("brightness", x, brightness=1.5), brightness=0.5)


class Mirrored(Operator, name="test.mirrored"):
    """Mirror in Python, at random."""

    draws = 1
    cases = ({},)

    def infer(self, c: Any, x: Any) -> Spec:
        return Spec(x.dtype, (None, None, 3), "HWC")

    def reference(self, row: Any, x: Any) -> Any:
        return x[:, ::-1] if row.stream.uniform() < 0.5 else x


@pytest.mark.parametrize("operator", [Brighter, Twice, Mirrored])
def test_good_operators_pass(operator: type[Operator]) -> None:
    check_operator(operator)


@pytest.mark.parametrize("name", ["flip", "resize", "crop", "cast", "crop_mirror_normalize", "rotate"])
def test_built_in_operators_pass(name: str) -> None:
    check_operator(find(name))


def test_a_wrong_fast_form_is_detected() -> None:
    class Wrong(Brighter, name="test.wrong"):
        """Round down."""

        def reference(self, row: Any, x: Any) -> Any:
            y = np.floor(x.astype(np.float32) * np.float32(row.number("factor")))
            return np.clip(y, 0, 255).astype(np.uint8)

    with pytest.raises(
        AssertionError, match=r"`test.wrong` with {'factor': 1.5}: output 0 against the reference, row 0"
    ):
        check_operator(Wrong)
    check_operator(Wrong, atol=1, bound=1)
    with pytest.raises(AssertionError, match=r"expected every element within 0\.5"):
        check_operator(Wrong, atol=0.5, bound=0.5)


def test_a_wrong_type_is_detected() -> None:
    class Wide(Brighter, name="test.wide"):
        """Return a reference of another type."""

        def reference(self, row: Any, x: Any) -> Any:
            return super().reference(row, x).astype(np.int32)

    with pytest.raises(AssertionError, match="uint8 is inferred, its reference gives int32"):
        check_operator(Wide)


def test_a_wrong_shape_is_detected() -> None:
    class Narrow(Mirrored, name="test.narrow"):
        """Declare extents that differ from the result."""

        def infer(self, c: Any, x: Any) -> Spec:
            return Spec(x.dtype, (7, 7, 3), "HWC")

    with pytest.raises(AssertionError, match=r"the shape \(7, 7, 3\) is inferred, its reference gives \(13, 17, 3\)"):
        check_operator(Narrow)


def test_dependence_on_other_rows_is_detected() -> None:
    class Shared(Mirrored, name="test.shared"):
        """Count the calls."""

        calls = 0

        def reference(self, row: Any, x: Any) -> Any:
            Shared.calls += 1
            return x + np.uint8(Shared.calls)

    with pytest.raises(AssertionError):
        check_operator(Shared)


def test_an_argument_that_differs_as_a_node_is_detected() -> None:
    class Constant(Brighter, name="test.constant"):
        """Use the argument only if it is a constant."""

        def lower(self, c: Any, x: Any) -> Any:
            factor = c.scalar("factor")
            value = load(x.dtype).cast(DType.FLOAT) * uniform(factor if isinstance(factor, float) else 1.0)
            return c.pointwise([x], value.cast(x.dtype))

    with pytest.raises(AssertionError, match="with `factor` as a node"):
        check_operator(Constant)


def test_an_operator_that_writes_into_its_input_is_detected() -> None:
    class Careless(Mirrored, name="test.careless"):
        """Add in place."""

        draws = 0

        def reference(self, row: Any, x: Any) -> Any:
            try:
                x += 1
            except ValueError:  # the outputs of a pipeline are read-only
                return x
            return x

    with pytest.raises(AssertionError):
        check_operator(Careless)


def test_a_composite_that_builds_steps_is_refused() -> None:
    class Mixed(Operator, name="test.mixed"):
        """Cast in the operator itself, then call another operator."""

        cases = ({},)

        def compose(self, c: Any, x: Any) -> Any:
            return c.apply("flip", c.cast(x, DType.FLOAT))

    with pytest.raises(UnsupportedError, match=r"a `compose` must call `c.apply` for all that it does"):
        check_operator(Mixed)


def test_stateful_operators_are_refused() -> None:
    class Counter(Mirrored, name="test.counter"):
        """Count."""

        stateful = True

    with pytest.raises(UnsupportedError, match="its rows depend on those before"):
        check_operator(Counter)


@pytest.fixture
def registered() -> Iterator[type[Operator]]:
    register(Brighter)
    yield Brighter
    del registry._registered[Brighter.name]


def test_registered_operators_are_called_eagerly_as_well(
    registered: type[Operator], monkeypatch: pytest.MonkeyPatch
) -> None:
    check_operator(registered)
    call = eager._call
    monkeypatch.setattr(eager, "_call", lambda *args: call(*args) + np.uint8(1))
    with pytest.raises(AssertionError, match="of the eager call"):
        check_operator(registered)


# ---- graphs ----


def test_a_graph_with_another_result_is_detected() -> None:
    grown = random_graph(1, 1)
    want = [[x.copy() for x in column] for column in grown.columns]
    first = want[0][0].reshape(-1)
    if first.size:
        first[0] = first[0] + 1
    else:
        want[0][0] = np.zeros((2, 2), first.dtype)
    with pytest.raises(AssertionError, match="output 0 against the references, row 0"):
        check_graph(grown.graph, want, grown.seed, configs=[], find=_find)


def test_a_setting_that_changes_a_byte_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    from stoker.testing import laws

    grown = random_graph(1, 2)

    def planted(graph: Any, config: PipelineConfig, count: int, find: Any) -> Any:
        columns = run_graph(graph, config, count, find)
        if config.threads == 2:
            columns[0][1] = columns[0][1].astype(np.complex64)
        return columns

    monkeypatch.setattr(laws, "run_graph", planted)
    good, bad = (
        PipelineConfig(batch_size=6, threads=threads, seed=grown.seed, depth=0, passes=ALL_PASSES) for threads in (1, 2)
    )
    check_graph(grown.graph, grown.columns, grown.seed, configs=[good], find=_find)
    with pytest.raises(AssertionError, match="output 0 with PipelineConfig"):
        check_graph(grown.graph, grown.columns, grown.seed, configs=[good, bad], find=_find)


def _find(name: str) -> type[Operator]:
    from stoker.testing.graph_grower import find as find_all

    return find_all(name)


# ---- strategies ----


@settings(max_examples=30, deadline=None)
@given(images(layout="CHW", channels=(2,)), images(DType.FLOAT16), images("int64", layout="FHWC"))
def test_images_have_the_requested_properties(a: Any, b: Any, c: Any) -> None:
    assert a.dtype == np.uint8
    assert a.shape[0] == 2
    assert b.dtype == np.float16
    assert b.ndim == 3
    assert c.dtype == np.int64
    assert 1 <= c.shape[0] <= 3


@settings(max_examples=30, deadline=None)
@given(batches(), batches(same_size=True, rows=(2, 5)))
def test_batches_have_one_type(a: Any, b: Any) -> None:
    assert 1 <= len(a) <= 4
    assert len({x.shape[2] for x in a}) == 1
    assert 2 <= len(b) <= 5
    assert len({x.shape for x in b}) == 1
    flipped = list(eager.flip(a))
    assert_rows(flipped, [x[:, ::-1] for x in a])


@settings(max_examples=5, deadline=None)
@given(graphs())
def test_graphs_come_with_their_results(grown: Any) -> None:
    config = PipelineConfig(batch_size=6, threads=2, seed=grown.seed, depth=1)
    check_graph(grown.graph, grown.columns, grown.seed, configs=[config], find=_find)
