# SPDX-License-Identifier: Apache-2.0
"""``reshape``, ``transpose``, ``expand_dims``, ``squeeze``: shapes and axis names as in DALI 2.4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import Pipeline, fn, types
from stoker.contract.errors import ArgumentError, DataError
from stoker.testing.tolerances import assert_exact


def run(name: str, sizes: tuple[int, ...], axes: str, arguments: dict[str, Any], *inputs: Any) -> tuple[Any, str, Any]:
    """Return the result, its layout, and the input."""
    x = np.arange(int(np.prod(sizes)), dtype=np.int16).reshape(sizes)
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1, exec_async=False)
    with pipe:
        pipe.set_outputs(getattr(fn, name)(types.Constant(x, layout=axes), *inputs, **arguments))
    with pipe:
        (batch,) = pipe.run()
        return np.array(batch[0]), batch.layout, x


@pytest.mark.parametrize(
    ("shape", "layout", "arguments", "new_shape", "names"),
    [
        ((5, 7, 3), "HWC", {"shape": (-1, 3)}, (35, 3), ""),
        ((5, 7, 3), "HWC", {"shape": (7, 5, 3)}, (7, 5, 3), "HWC"),
        ((5, 7, 3), "HWC", {"shape": (35, 3), "layout": "WC"}, (35, 3), "WC"),
        ((5, 7, 3), "HWC", {"layout": "CHW"}, (5, 7, 3), "CHW"),
        ((5, 7, 3), "HWC", {"layout": ""}, (5, 7, 3), ""),
        ((5, 7, 3), "HWC", {"rel_shape": (1, 1, 1)}, (5, 7, 3), "HWC"),
        ((4, 6), "", {"rel_shape": (0.5, -1)}, (2, 12), ""),
        ((4, 6, 2), "HWC", {"rel_shape": (0.5, 2, 1)}, (2, 12, 2), "HWC"),
        ((5, 6), "", {"rel_shape": (0.5, -1)}, (3, 10), ""),
        ((5, 6), "", {"rel_shape": (0.3, -1)}, (2, 15), ""),
        ((5, 6), "", {"rel_shape": (-1,)}, (30,), ""),
        ((5, 7, 3), "HWC", {"src_dims": (0, 2, -1, 1)}, (5, 3, 1, 7), ""),
        ((5, 7, 3), "HWC", {"src_dims": (2, 0, 1)}, (3, 5, 7), "HWC"),
        ((5, 7, 1), "HWC", {"src_dims": (0, 1)}, (5, 7), ""),
        ((5, 7, 3), "HWC", {"src_dims": (1, -1), "rel_shape": (1, -1)}, (7, 15), ""),
        ((1, 1, 1), "HWC", {"shape": ()}, (), ""),
        ((0, 4), "", {"shape": (2, 0)}, (2, 0), ""),
    ],
)
def test_reshape(shape: Any, layout: str, arguments: dict[str, Any], new_shape: tuple[int, ...], names: str) -> None:
    got, found, x = run("reshape", shape, layout, arguments)
    assert_exact(got, x.reshape(new_shape))
    assert found == names


def test_a_shape_as_input() -> None:
    got, _, x = run("reshape", (5, 7, 3), "HWC", {}, np.array([3, -1], np.int32))
    assert_exact(got, x.reshape(3, -1))


def test_a_transposed_tensor_is_copied_before_it_is_reshaped() -> None:
    x = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1, exec_async=False)
    with pipe:
        turned = fn.transpose(types.Constant(x), perm=(2, 0, 1))
        pipe.set_outputs(fn.reshape(turned, shape=(-1,)), fn.reshape(fn.flip(types.Constant(x)), shape=(6, 4)) + 1)
    with pipe:
        first, second = pipe.run()
    assert_exact(np.array(first[0]), x.transpose(2, 0, 1).reshape(-1))
    assert second[0].tolist() == (x[:, ::-1].reshape(6, 4).astype(int) + 1).tolist()


@pytest.mark.parametrize(
    ("layout", "arguments", "order", "names"),
    [
        ("HWC", {"perm": (2, 0, 1)}, (2, 0, 1), "CHW"),
        ("HWC", {}, (2, 1, 0), "CWH"),
        ("HWC", {"perm": (2, 0, 1), "transpose_layout": False}, (2, 0, 1), "HWC"),
        ("HWC", {"perm": (2, 0, 1), "output_layout": "ABC"}, (2, 0, 1), "ABC"),
        ("", {"perm": (2, 0, 1)}, (2, 0, 1), ""),
        ("", {"output_layout": "CHW"}, (2, 1, 0), "CHW"),
    ],
)
def test_transpose(layout: str, arguments: dict[str, Any], order: tuple[int, ...], names: str) -> None:
    got, found, x = run("transpose", (5, 7, 3), layout, arguments)
    assert_exact(got, x.transpose(order))
    assert found == names


@pytest.mark.parametrize(
    ("layout", "arguments", "new_shape", "names"),
    [
        ("HWC", {"axes": 0}, (1, 5, 7, 3), ""),
        ("HWC", {"axes": (0, 2), "new_axis_names": "FD"}, (1, 5, 1, 7, 3), "FHDWC"),
        ("HWC", {"axes": (2, 0), "new_axis_names": "AB"}, (1, 5, 1, 7, 3), "BHAWC"),
        ("HWC", {"axes": 3}, (5, 7, 3, 1), ""),
        ("HWC", {"axes": -1, "new_axis_names": "Z"}, (5, 7, 3, 1), "HWCZ"),
        ("", {"axes": (0, 1)}, (1, 1, 5, 7, 3), ""),
    ],
)
def test_expand_dims(layout: str, arguments: dict[str, Any], new_shape: tuple[int, ...], names: str) -> None:
    got, found, x = run("expand_dims", (5, 7, 3), layout, arguments)
    assert_exact(got, x.reshape(new_shape))
    assert found == names


@pytest.mark.parametrize(
    ("shape", "layout", "arguments", "new_shape", "names"),
    [
        ((5, 7, 1), "HWC", {"axes": 2}, (5, 7), "HW"),
        ((5, 7, 1), "HWC", {"axis_names": "C"}, (5, 7), "HW"),
        ((1, 5, 7, 1), "FHWC", {"axis_names": "CF"}, (5, 7), "HW"),
        ((1, 1, 1), "HWC", {"axes": (0, 1, 2)}, (), ""),
        ((1, 3, 1), "", {"axes": (0, -1)}, (3,), ""),
    ],
)
def test_squeeze(shape: Any, layout: str, arguments: dict[str, Any], new_shape: tuple[int, ...], names: str) -> None:
    got, found, x = run("squeeze", shape, layout, arguments)
    assert_exact(got, x.reshape(new_shape))
    assert found == names


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("reshape", {}, "expected `shape`"),
        ("reshape", {"shape": (4, 5)}, "105 elements"),
        ("reshape", {"shape": (4, -1)}, "105 elements"),
        ("reshape", {"shape": (-1, -1)}, "at most one extent of -1"),
        ("reshape", {"shape": (105,), "rel_shape": (1.0,)}, "expected one shape"),
        ("reshape", {"shape": (105,), "src_dims": (0,)}, "used alone or with"),
        ("reshape", {"rel_shape": (1, 1, 1, 1)}, "`src_dims`"),
        ("reshape", {"layout": "CH"}, "with 3 axes"),
        ("transpose", {"perm": (0, 0, 1)}, "an order of 3 axes"),
        ("transpose", {"perm": (1, 0)}, "an order of 3 axes"),
        ("transpose", {"output_layout": "CH"}, "with 3 axes"),
        ("expand_dims", {"axes": (0, 0)}, "different numbers below 5"),
        ("expand_dims", {"axes": 5}, "below 4"),
        ("expand_dims", {"axes": 0, "new_axis_names": "AB"}, "expected 1 names"),
        ("squeeze", {}, "one of `axes` and `axis_names`"),
        ("squeeze", {"axes": 2}, "extent 1, got 3"),
        ("squeeze", {"axis_names": "Z"}, "names of axes of 'HWC'"),
    ],
)
def test_wrong_arguments_are_refused(name: str, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        run(name, (5, 7, 3), "HWC", arguments)
