# SPDX-License-Identifier: Apache-2.0
"""Eager calls: the keys of the plan cache, and the errors of operators."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

import stoker
from stoker import Operator, arg, eager
from stoker.contract.operator import RowContext, Spec
from stoker.executor.run import Run
from stoker.frontends.planned_call import RowThreads


class Strange(Operator, name="probe.unhashable"):
    """Operator whose lowering raises TypeError. Input and output: any array."""

    table = arg("object", None, doc="Anything.")
    cases = ({},)
    calls = 0

    def lower(self, c: Any, x: Any) -> Any:
        type(self).calls += 1
        if c.const("table") is None:
            raise TypeError("unhashable type: 'operator'")
        return c.view(x, ())

    def reference(self, row: RowContext, x: Any) -> Any:
        return x


@pytest.fixture(autouse=True)
def registered() -> None:
    Strange.calls = 0
    stoker.register(Strange)


def test_a_type_error_of_an_operator_is_raised_once() -> None:
    with pytest.raises(TypeError, match="unhashable type: 'operator'"):
        eager.probe.unhashable(np.zeros(3))
    assert Strange.calls == 1


def test_arguments_that_cannot_be_hashed_are_accepted() -> None:
    x = np.arange(3)
    for table in ({"a": 1}, np.zeros(2), [[1], [2]]):
        assert np.array_equal(eager.probe.unhashable(x, table=table), x)


def test_plans_are_cached_where_arguments_can_be_hashed() -> None:
    x = np.arange(3)
    for _ in range(3):
        eager.probe.unhashable(x, table="one")
    assert Strange.calls == 1


@pytest.mark.parametrize("indices", [[2, 0, 0], np.array([2, 0, 0]), (2, 0, 0)], ids=["list", "array", "tuple"])
def test_a_list_for_an_operator_on_batches_has_an_element_per_row(indices: Any) -> None:
    """It was taken for one value that all rows share, in float64."""
    rows = [np.array([10]), np.array([20, 21]), np.array([30])]
    assert [x.tolist() for x in eager.permute_batch(rows, indices=indices)] == [[30], [10], [10]]


class Chosen(Operator, name="probe.chosen"):
    """Operator in Python that refuses negative numbers. Input and output: any array."""

    cases = ({},)

    def infer(self, c: Any, x: Any) -> Spec:
        return Spec(x.dtype, (None,), "")

    def reference(self, row: RowContext, x: Any) -> Any:
        if x.min() < 0:
            raise ValueError("negative")
        return x + 1


@pytest.mark.parametrize("count", [1, 2, 5])
def test_rows_of_a_batch_have_the_bits_of_single_calls(count: int) -> None:
    """One native call computes them: a column of arrays, and arguments that all rows share."""
    rng = np.random.default_rng(count)
    images = [rng.integers(0, 256, (9 + k % 2, 11, 3), np.uint8) for k in range(count)]
    arguments: dict[str, Any] = {"start": [2, 3], "shape": [4, 5], "axes": [0, 1]}
    found = eager.slice(images, **arguments)
    assert len(found) == count
    for one, image in zip(found, images, strict=True):
        assert np.array_equal(one, eager.slice(image, **arguments))
        assert np.array_equal(one, image[2:6, 3:8])
    bright = eager.brightness(images, brightness=0.5)
    assert all(np.array_equal(one, eager.brightness(x, brightness=0.5)) for one, x in zip(bright, images, strict=True))
    angles = stoker.Batch([np.float32(10 * k) for k in range(count)], stoker.types.FLOAT)
    turned = eager.rotate(images, angle=angles, keep_size=True)
    for k, (one, image) in enumerate(zip(turned, images, strict=True)):
        assert np.array_equal(one, eager.rotate(image, angle=float(10 * k), keep_size=True))


def test_rows_that_need_python_or_fail_are_computed_by_the_general_path() -> None:
    stoker.register(Chosen)
    rows = [np.arange(3), np.arange(4)]
    assert [x.tolist() for x in eager.probe.chosen(rows)] == [[1, 2, 3], [1, 2, 3, 4]]
    with pytest.raises(stoker.DataError, match="negative"):
        eager.probe.chosen([np.arange(3), -np.arange(3)])


def test_an_error_of_one_row_does_not_spoil_later_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    images = [np.full((4, 4, 1), k, np.uint8) for k in range(3)]
    window: dict[str, Any] = {"start": [1, 1], "shape": [2, 2], "axes": [0, 1]}
    with pytest.raises(stoker.DataError):
        eager.slice([*images, images[0][:1]], **window)
    monkeypatch.delattr(Run, "run_inline")  # the general path, which a sound batch does not take
    assert [int(x.max()) for x in eager.slice(images, **window)] == [0, 1, 2]


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 16])
def test_threads_that_divide_the_rows_change_no_bit(rows: int) -> None:
    images = [np.full((4 + i % 2, 5, 3), i, np.uint8) for i in range(rows)]
    same = [np.full((4, 5, 3), i, np.uint8) for i in range(rows)]
    pool = RowThreads(3)
    for name, data, arguments in (
        ("noise.gaussian", images, {"stddev": 9.0, "seed": 5}),
        ("resize", same, {"size": (3, 2)}),
        ("permute_batch", same, {"indices": list(range(rows))[::-1]}),
        ("normalize", images, {"batch": True}),
        ("pad", images, {}),
    ):
        (want,) = eager.batches_of(name, [data], dict(arguments), rows)
        (got,) = eager.batches_of(name, [data], dict(arguments), rows, pool)
        assert got.is_dense == want.is_dense
        assert all(np.array_equal(a, b) for a, b in zip(got, want, strict=True))


def test_a_row_that_fails_on_a_thread_is_named_by_its_number() -> None:
    rng = np.random.default_rng(0)
    files = [np.frombuffer(b"no image", np.uint8) if i == 5 else _jpeg(rng) for i in range(7)]
    with pytest.raises(stoker.DataError) as alone:
        eager.batches_of("decoders.image", [files], {}, 7)
    with pytest.raises(stoker.DataError) as divided:
        eager.batches_of("decoders.image", [files], {}, 7, RowThreads(3))
    assert str(divided.value) == str(alone.value) and "5" in str(alone.value)


def _jpeg(rng: np.random.Generator) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (8, 9, 3), np.uint8)).save(file, "JPEG")
    return np.frombuffer(file.getvalue(), np.uint8)
