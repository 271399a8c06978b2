# SPDX-License-Identifier: Apache-2.0
"""Lists of axes, and of numbers for each axis: more numbers than a tensor has axes are refused before planning."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, eager, fn
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


ONE_OR_EACH = [
    ("gaussian_blur", "sigma"), ("gaussian_blur", "window_size"), ("laplacian", "window_size"),
    ("laplacian", "smoothing_size"), ("laplacian", "scale"), ("experimental.median_blur", "window_size"),
    ("experimental.dilate", "mask_size"), ("experimental.erode", "anchor"), ("filter", "anchor"),
    ("debayer", "blue_position"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "key"), ONE_OR_EACH)
def test_one_number_or_one_for_each_axis(name: str, key: str) -> None:
    value = {"window_size": 3, "smoothing_size": 3, "mask_size": 3}.get(key, 1)
    text = f"expected one number as `{key}`, or one for each of 2 axes, got 3"
    image = np.arange(80, dtype=np.uint8).reshape((8, 10) if name == "debayer" else (8, 5, 2))
    inputs = [image] + [np.ones((3, 3), np.float32)] * (name == "filter")
    dtype = np.float32 if find(name).arguments[key].kind == "float" else np.int64

    def call(module: Any, *given: Any, numbers: Any) -> Any:
        for part in name.split("."):
            module = getattr(module, part)
        return module(*given, **{key: numbers})

    one, two = (np.asarray(call(eager, *inputs, numbers=[value] * n)) for n in (1, 2))
    assert np.array_equal(one, two)
    with pytest.raises(ArgumentError, match=text):
        call(eager, *inputs, numbers=[value] * 3)
    for count in (2, 3):
        numbers = np.full(count, value, dtype)
        sources = [lambda x=x: [x] * 2 for x in (*inputs, numbers)]  # type: ignore[misc]
        pipe = Pipeline(batch_size=2, num_threads=1, device_id=None, exec_async=False)
        with pipe:
            *given, drawn = (fn.external_source(s, layout="HW" * (s()[0].ndim == 2) or None) for s in sources)
            pipe.set_outputs(call(fn, *given, numbers=drawn))
        if count == 3:
            with pytest.raises((ArgumentError, DataError), match=text):
                pipe.run()
        else:
            assert np.array_equal(np.asarray(pipe.run()[0][0]), one)
        pipe.close()


def test_one_number_for_each_axis_of_a_volume() -> None:
    volume = np.arange(4 * 5 * 6, dtype=np.uint8).reshape(4, 5, 6, 1)
    for name, key in ONE_OR_EACH[:5]:
        for count in (1, 2, 3):
            numbers = [3 if "size" in key else 1] * count
            pipe = Pipeline(batch_size=1, num_threads=1, device_id=None, exec_async=False)
            with pipe:
                given = fn.external_source(lambda: [volume], layout="DHWC", dtype="uint8", ndim=4)
                pipe.set_outputs(getattr(fn, name)(given, **{key: numbers}))
            if count == 2:
                with pytest.raises(ArgumentError, match=f"`{key}`, or one for each of 3 axes, got 2.*made at"):
                    pipe.run()
            else:
                pipe.run()
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
