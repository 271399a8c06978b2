# SPDX-License-Identifier: Apache-2.0
"""Operators on points, boxes and classes: values as in DALI 2.4, and clear errors for inputs that DALI misreads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import Pipeline, eager, fn, types
from stoker.contract.errors import ArgumentError, DataError
from stoker.testing.tolerances import assert_exact

POINTS = np.array([[0.1, 0.2], [0.75, -1]], np.float32)
BOX = np.array([[0.1, 0.2, 0.3, 0.7]], np.float32)


def fed(name: str, x: Any, **arguments: Any) -> list[Any]:
    """Return the rows of an operator whose arguments, lists with a value per row, are nodes."""
    rows = len(next(iter(arguments.values())))
    pipe = Pipeline(batch_size=rows, num_threads=1, seed=1, device_id=None, exec_async=False)
    with pipe:
        data = fn.external_source([[x] * rows])
        nodes = {k: fn.external_source([np.asarray(v)]) for k, v in arguments.items()}
        pipe.set_outputs(getattr(fn, name)(data, **nodes))
    with pipe:
        return [np.array(row) for row in pipe.run()[0]]


def test_cast_like_takes_the_type_only() -> None:
    x = np.array([-3, 0.5, 1.5, 300, np.nan], np.float32)
    assert_exact(eager.cast_like(x, np.zeros((0, 3), np.uint8)), np.array([0, 0, 2, 255, 0], np.uint8))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_coord_flip(dtype: str) -> None:
    x = POINTS.astype(dtype)
    assert_exact(eager.coord_flip(x), np.stack([1 - x[:, 0], x[:, 1]], 1))
    assert_exact(eager.coord_flip(x, layout="yx"), np.stack([x[:, 0], 1 - x[:, 1]], 1))
    assert_exact(eager.coord_flip(x[0], flip_y=1, center_y=4.5), np.stack([1 - x[0, 0], 9 - x[0, 1]]))
    assert_exact(eager.coord_flip(x[:, :1]), 1 - x[:, :1])


def test_coord_flip_by_row() -> None:
    a, b = fed("coord_flip", POINTS, flip_x=np.array([0, 1], np.int32), center_x=np.array([0, 3], np.float32))
    assert_exact(a, POINTS)
    assert_exact(b, np.stack([6 - POINTS[:, 0], POINTS[:, 1]], 1))


def test_bb_flip_goes_through_the_corners() -> None:
    one = np.float32(1)
    x, y, w, h = BOX[0]
    assert_exact(eager.bb_flip(BOX), np.array([[one - (x + w), y, (one - x) - (one - (x + w)), h]]))
    assert float(eager.bb_flip(BOX)[0, 2]) == 0.2999999523162842  # DALI's bits
    assert_exact(eager.bb_flip(BOX, ltrb=True), np.array([[one - w, y, one - x, h]]))
    assert_exact(eager.bb_flip(BOX, ltrb=True, horizontal=0, vertical=1), np.array([[x, one - h, w, one - y]]))


@pytest.mark.parametrize("shape", [(4,), (8,), (2, 2, 2), (0, 4), (0,), (6, 2)])
def test_bb_flip_takes_any_shape_of_whole_boxes(shape: tuple[int, ...]) -> None:
    x = np.linspace(0, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
    assert_exact(eager.bb_flip(x), np.asarray(eager.bb_flip(x.reshape(-1, 4))).reshape(shape))


def test_bb_flip_by_row() -> None:
    a, b = fed("bb_flip", BOX, horizontal=np.array([0, 1], np.int32))
    assert_exact(a, BOX)
    assert_exact(b, eager.bb_flip(BOX))


def test_coord_transform_takes_a_matrix_a_factor_or_both_in_one() -> None:
    x = POINTS
    a, b = x[:, 0], x[:, 1]
    f = np.float32
    square = np.stack([a * f(1) + b * f(2), a * f(3) + b * f(4)], 1)
    assert_exact(eager.coord_transform(x, M=[1, 2, 3, 4]), square)
    assert_exact(eager.coord_transform(x, M=[1, 2, 3, 4], T=5), square + f(5))
    assert_exact(eager.coord_transform(x, MT=[1, 2, 5, 3, 4, 6]), square + np.array([5, 6], f))
    assert_exact(eager.coord_transform(x, M=[1, 2], T=[3]), (a * f(1) + b * f(2) + f(3))[:, None])
    assert_exact(eager.coord_transform(x, M=2), x * 2)
    assert_exact(eager.coord_transform(x, MT=[2]), x * 2)
    assert_exact(eager.coord_transform(x, T=[5, 6]), x + np.array([5, 6], f))
    assert_exact(eager.coord_transform(x), x)
    assert_exact(eager.coord_transform(x[0], M=[0, 1, 1, 0]), x[0, ::-1])
    assert_exact(eager.coord_transform(x[:0], M=[1, 2, 3, 4]), x[:0])


def test_coord_transform_changes_the_number_of_components() -> None:
    x = np.array([[1, 2], [3, 4]], np.uint8)
    raised = eager.coord_transform(x, M=[1, 0, 0, 1, 100, 100], T=[0, 0, 0.5], dtype="uint8")
    assert_exact(raised, np.array([[1, 2, 255], [3, 4, 255]], np.uint8))


def test_coord_transform_by_row() -> None:
    matrices = np.array([[1, 0, 0, 1], [0, 1, -1, 0]], np.float32)
    pipe = Pipeline(batch_size=2, num_threads=1, seed=1, device_id=None, exec_async=False)
    with pipe:
        points = fn.external_source([[POINTS, POINTS]])
        matrix = fn.reshape(fn.external_source([matrices]), shape=[2, 2])
        moved = fn.transforms.translation(offset=[3, 4])
        pipe.set_outputs(fn.coord_transform(points, M=matrix), fn.coord_transform(points, MT=moved))
    with pipe:
        turned, shifted = pipe.run()
        assert_exact(np.array(turned[0]), POINTS)
        assert_exact(np.array(turned[1]), np.stack([POINTS[:, 1], -POINTS[:, 0]], 1))
        assert_exact(np.array(shifted[1]), POINTS + np.array([3, 4], np.float32))
    [turned] = fed("coord_transform", POINTS, M=matrices[1].reshape(1, 2, 2))  # of the size in the first batch
    assert_exact(turned, np.stack([POINTS[:, 1], -POINTS[:, 0]], 1))


def test_a_factor_leaves_other_components_alone() -> None:
    x = np.array([[np.inf, 2]], np.float32)
    assert_exact(eager.coord_transform(x, M=2), np.array([[np.inf, 4]], np.float32))


def test_one_hot() -> None:
    labels = np.array([[1, 2]], np.int32)
    assert_exact(eager.one_hot(labels, num_classes=3), np.eye(3, dtype=np.float32)[labels])
    assert_exact(eager.one_hot(labels, num_classes=3, axis=0), np.eye(3, dtype=np.float32)[:, labels])
    fractions = np.array([-0.5, np.nan, 1.7, 9, -1, np.inf], np.float32)
    expected = np.zeros((6, 3), np.float32)
    expected[0, 0] = expected[2, 1] = 1
    assert_exact(eager.one_hot(fractions, num_classes=3), expected)
    assert_exact(eager.one_hot(np.uint64(1 << 32), num_classes=2), np.zeros(2, np.float32))
    assert_exact(eager.one_hot(np.zeros((0, 2), np.int64), num_classes=2), np.zeros((0, 2, 2), np.float32))
    narrow = eager.one_hot(np.int32(1), num_classes=2, on_value=300, off_value=-1, dtype="uint8")
    assert_exact(narrow, np.array([0, 255], np.uint8))


def test_one_hot_of_one_known_element() -> None:
    def result(**arguments: Any) -> Any:
        pipe = Pipeline(batch_size=1, num_threads=1, seed=1, device_id=None, exec_async=False)
        with pipe:
            pipe.set_outputs(fn.one_hot(types.Constant(np.array([[1]], np.int32)), num_classes=3, **arguments))
        with pipe:
            return np.array(pipe.run()[0][0])

    one = np.array([0, 1, 0], np.float32)
    assert_exact(result(), one)
    assert_exact(result(axis=-1), one.reshape(1, 1, 3))
    assert_exact(result(axis=0), one.reshape(3, 1, 1))


def test_element_extract() -> None:
    x = np.arange(24, dtype=np.int16).reshape(4, 3, 2)
    last, first, again = eager.element_extract(x, element_map=[3, 0, 3])
    assert_exact(last, x[3])
    assert_exact(first, x[0])
    assert_exact(again, x[3])
    assert_exact(eager.element_extract(x, element_map=1), x[1])
    assert_exact(eager.element_extract(x[:, 0, 0], element_map=1), x[1, 0, 0])


@pytest.mark.parametrize("order", [[2], [3, 2, 1, 0], [0, 2], [1, 1, 1], [3, 0, 0, 2], [0, 3, 3, 1, 2, 2, 0, 1, 3, 3]])
def test_sequence_rearrange(order: list[int]) -> None:
    x = np.arange(24, dtype=np.int16).reshape(4, 3, 2)
    assert_exact(eager.sequence_rearrange(x, new_order=order), x[order])
    assert_exact(eager.sequence_rearrange(x[:, 0, 0], new_order=order), x[order, 0, 0])
    assert_exact(eager.sequence_rearrange(x[:, :0], new_order=order), x[order][:, :0])


def test_sequence_rearrange_by_row() -> None:
    x = np.arange(12, dtype=np.uint8).reshape(4, 3)
    a, b = fed("sequence_rearrange", x, new_order=np.array([[0, 3, 3], [2, 0, 1]], np.int32))
    assert_exact(a, x[[0, 3, 3]])
    assert_exact(b, x[[2, 0, 1]])
    with pytest.raises((ArgumentError, DataError), match="numbers below 4, the number of elements, got 4"):
        fed("sequence_rearrange", x, new_order=np.array([[0, 4]], np.int32))
    with pytest.raises((ArgumentError, DataError), match="numbers from 0 in `new_order`, got -1"):
        fed("sequence_rearrange", x, new_order=np.array([[0, -1]], np.int32))


@pytest.mark.parametrize(
    ("name", "x", "arguments", "text"),
    [
        ("bb_flip", np.zeros((3, 3), np.float32), {}, "expected boxes of four numbers, got 9 elements"),
        ("bb_flip", np.zeros((3, 4), np.int32), {}, "expected boxes of a floating-point type, got int32"),
        ("bb_flip", np.float32(3), {}, "expected boxes of four numbers, got a single number"),
        ("coord_flip", np.zeros((3, 4), np.float32), {}, "expected points with 1 to 3 coordinates, got 4"),
        ("coord_flip", np.zeros((3, 0), np.float32), {}, "expected points with 1 to 3 coordinates, got 0"),
        ("coord_flip", np.zeros((3, 2), np.float32), {"layout": "xyz"}, "expected points with 3 coordinates"),
        ("coord_flip", np.zeros((3, 2), np.float32), {"layout": "xx"}, "`layout` with different letters"),
        ("coord_flip", np.zeros((3, 2), np.float32), {"center_x": np.inf}, "expected a finite `center_x`"),
        ("coord_flip", np.zeros((3, 2), np.uint8), {}, "expected floating-point coordinates, got uint8"),
        ("coord_transform", POINTS, {"M": [1, 2, 3]}, r"expected a square matrix, got 3 numbers in `M`.*fn\.reshape"),
        ("coord_transform", POINTS, {"M": np.ones(9)}, "expected points with 3 components for these arguments, got 2"),
        ("coord_transform", POINTS, {"M": 1, "MT": 2}, "expected `MT`, or `M` and `T`, got both"),
        ("coord_transform", POINTS, {"M": [1, 2, 3, 4], "T": [1, 2, 3]}, "expected "),
        ("coord_transform", POINTS, {"M": np.ones(49)}, "expected points of at most 6 components, got 7"),
        ("coord_transform", POINTS, {"M": []}, "expected numbers as `M`, got an empty list"),
        ("coord_transform", np.float32(1), {"M": 2}, "got a single number"),
        ("one_hot", np.zeros(3, np.int32), {}, "expected `num_classes` from 1"),
        ("one_hot", np.zeros(3, np.int32), {"num_classes": 2, "axis": 2}, "expected an axis in"),
        ("one_hot", np.zeros(3, np.int32), {"num_classes": 2, "axis_name": "C"}, "expected an input with named axes"),
        ("element_extract", POINTS, {"element_map": [2]}, "expected an element below 2, the number of elements, got 2"),
        ("element_extract", POINTS, {"element_map": -1}, "expected numbers from 0 in `element_map`, got -1"),
        ("element_extract", POINTS, {"element_map": []}, "expected at least one number as `element_map`"),
        ("element_extract", np.float32(1), {"element_map": 0}, "got a scalar"),
        ("sequence_rearrange", POINTS, {"new_order": [0, 2]}, "numbers below 2, the number of elements, got 2"),
        ("sequence_rearrange", POINTS, {"new_order": [0, -1]}, "expected numbers from 0 in `new_order`, got -1"),
        ("sequence_rearrange", POINTS, {"new_order": []}, "expected at least one number as `new_order`"),
        ("sequence_rearrange", np.float32(1), {"new_order": [0]}, "got a scalar"),
    ],
)
def test_other_inputs_are_refused(name: str, x: Any, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        getattr(eager, name)(x, **arguments)
