# SPDX-License-Identifier: Apache-2.0
"""Lists of axes, and of numbers for each axis: more numbers than a tensor has axes are refused before planning."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, Pipeline, eager, fn
from stoker.contract.argument import Argument, arg
from stoker.frontends.registry import find, names

MANY = 210_000
REFUSED = rf"argument `{{0}}`: expected at most 8 axes, got {MANY}\. Join neighbouring axes.* made at .*test_axis_lists"
LISTED = [(n, key) for n in names() for key, a in find(n).arguments.items() if a.per_axis]
OF_AXES = {"axes", "perm", "shape", "rel_shape", "src_dims", "size", "sizes", "roi_start", "roi_end", "start", "end"}


@pytest.mark.parametrize(("name", "key"), LISTED)
def test_a_constant_has_at_most_one_number_for_each_axis(name: str, key: str) -> None:
    operator = find(name)
    kept = operator.bind({key: [1] * 8})[key]
    assert kept == (1,) * 8
    for more in ([1] * 9, (1,) * 9, np.ones(9), np.ones((3, 3), np.int64)):
        with pytest.raises(ArgumentError, match=f"argument `{key}`: expected at most 8 axes, got 9"):
            operator.bind({key: more})


def test_every_list_of_axes_is_declared_as_one() -> None:
    found = [(n, key) for n in names() for key, a in find(n).arguments.items() if a.many and key in OF_AXES]
    others = {("erase", "shape"), ("_recipe", "sizes")}  # extents of several regions, and bytes
    assert set(found) - others <= set(LISTED)
    assert len(LISTED) > 60


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("reshape", "shape"), ("reshape", "rel_shape"), ("reinterpret", "shape"), ("reinterpret", "rel_shape"),
        ("slice", "axes"), ("slice", "start"), ("pad", "axes"), ("pad", "align"), ("resize", "size"),
        ("crop", "crop"), ("tensor_resize", "sizes"),
    ],
)  # fmt: skip
def test_a_node_has_at_most_one_number_for_each_axis(name: str, key: str) -> None:
    numbers = np.ones(MANY, np.float32 if find(name).arguments[key].kind == "float" else np.int64)
    _refuse(key, lambda x: getattr(fn, name)(x, **{key: fn.external_source(lambda: [numbers] * 2)}))


def test_operators_without_inputs() -> None:
    numbers = np.ones(MANY, np.int32)
    _refuse("shape", lambda x: fn.zeros(shape=fn.external_source(lambda: [numbers] * 2)))
    _refuse("shape", lambda x: fn.random.uniform(shape=fn.external_source(lambda: [numbers] * 2)))


def test_a_shape_as_an_input() -> None:
    numbers = np.ones(MANY, np.int32)
    pipe = _pipeline(lambda x: fn.reshape(x, fn.external_source(lambda: [numbers] * 2)))
    begin = time.process_time()
    with pytest.raises(ArgumentError, match=f"`reshape`: expected at most 8 axes, got {MANY}. .*made at"):
        pipe.run()
    assert time.process_time() - begin < 2
    pipe.close()


def test_an_eager_call() -> None:
    image = np.zeros((4, 5, 3), np.uint8)
    for shape in (np.ones(MANY, np.int64), [1] * MANY):
        begin = time.process_time()
        with pytest.raises(ArgumentError, match=f"argument `shape`: expected at most 8 axes, got {MANY}"):
            eager.reshape(image, shape=shape)
        assert time.process_time() - begin < 2


def test_eight_axes_are_taken() -> None:
    shape = (1, 4, 1, 5, 1, 3, 1, 1)
    image = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    assert np.array_equal(eager.reshape(image, shape=shape), image.reshape(shape))
    pipe = _pipeline(lambda x: fn.reshape(x, shape=fn.external_source(lambda: [np.array(shape)] * 2)))
    assert pipe.run()[0][0].shape == shape
    pipe.close()


def test_an_argument_of_a_user() -> None:
    declared: Argument = arg("int", (), doc="Axes.", many=True, per_axis=True)
    assert declared.convert([1] * 8) == (1,) * 8
    with pytest.raises(ValueError, match="at most 8 axes, got 9"):
        declared.convert([1] * 9)


def _pipeline(define: Any) -> Pipeline:
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None, exec_async=False)
    with pipe:
        pipe.set_outputs(define(fn.external_source(lambda: [np.zeros((4, 5, 3), np.uint8)] * 2, layout="HWC")))
    return pipe


def _refuse(key: str, define: Any) -> None:
    pipe = _pipeline(define)
    begin = time.process_time()
    with pytest.raises(ArgumentError, match=REFUSED.format(key)):
        pipe.run()
    assert time.process_time() - begin < 2
    pipe.close()
