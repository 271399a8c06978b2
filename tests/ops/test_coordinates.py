# SPDX-License-Identifier: Apache-2.0
"""``cast_like``, ``coord_flip``, ``bb_flip``: values as in DALI 2.4, and clear errors for inputs that DALI misreads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import Pipeline, eager, fn
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
    ],
)
def test_other_inputs_are_refused(name: str, x: Any, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        getattr(eager, name)(x, **arguments)
