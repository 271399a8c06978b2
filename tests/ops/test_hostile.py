# SPDX-License-Identifier: Apache-2.0
"""Hostile inputs that crash other libraries. Stoker raises a clear error or returns a defined result."""

from __future__ import annotations

import math
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stoker import Pipeline, StokerError, eager, fn, types
from stoker.contract.errors import ArgumentError, DataError
from stoker.frontends.registry import find
from stoker.native import _native
from tests.idle_clock import HANG_S

Array = npt.NDArray[Any]
COLOR = ("color_twist", "hsv", "hue", "saturation")
ARGUMENTS: dict[str, dict[str, Any]] = {
    "brightness": {"brightness": 1.5, "brightness_shift": 0.1},
    "brightness_contrast": {"brightness": 1.5, "contrast": 0.5, "contrast_center": 3.0, "brightness_shift": 0.1},
    "color_twist": {"brightness": 1.5, "contrast": 0.5, "saturation": 2.0, "hue": 10.0},
    "contrast": {"contrast": 0.5, "contrast_center": 3.0},
    "crop": {"crop_h": 3.0, "crop_w": 2.0, "crop_pos_x": 0.1, "crop_pos_y": 0.2},
    "crop_mirror_normalize": {"crop": (3.0, 4.0), "mean": (1.0,), "std": (2.0,), "mirror": 1},
    "flip": {"horizontal": 1, "vertical": 1},
    "hsv": {"hue": 10.0, "saturation": 2.0, "value": 0.5},
    "hue": {"hue": 10.0},
    "random_resized_crop": {"size": (3, 4)},
    "reshape": {"shape": (-1, 3)},
    "resize": {"size": (4.0, 5.0)},
    "resize_crop_mirror": {"resize_x": 9.0, "resize_y": 8.0, "crop": (3.0, 4.0), "mirror": 1},
    "rotate": {"angle": 10.0, "size": (5.0, 6.0)},
    "saturation": {"saturation": 2.0},
    "slice": {"rel_start": (0.25, 0.25), "rel_end": (0.5, 0.75)},
    "transpose": {},
}
NUMBERS = (
    math.nan, math.inf, -math.inf, 0.0, -0.0, -1.0, 0.5, 1e-300, 1e300, -1e300, 2.0**31, -(2.0**31), 2.0**53, 2.0**63,
    -(2.0**63), 3e9, 16777217.0,
)  # fmt: skip


def picture(height: int = 8, width: int = 9, channels: int = 3, dtype: str = "uint8") -> Array:
    values = np.random.default_rng(0).integers(0, 100, (height, width, channels))
    return values.astype(dtype)


def tried(call: Callable[[], Any]) -> Any:
    """Return the result of a call, or its error, which must be a Stoker error with a text."""
    try:
        return call()
    except StokerError as error:
        raised = error
    assert "`" in str(raised)
    assert len(str(raised)) > 20
    return raised


def run(name: str, x: Array, **arguments: Any) -> Any:
    return getattr(eager, name)(x, **arguments)


# ---- inputs that crash DALI 2.4 ----


@pytest.mark.parametrize("channels", [1, 2, 17])
@pytest.mark.parametrize("name", COLOR)
def test_colour_changes_need_colours(name: str, channels: int) -> None:
    with pytest.raises((ArgumentError, DataError), match=rf"3 .*channels.*, got {channels}"):
        run(name, picture(channels=channels))
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        pipe.set_outputs(getattr(fn, name)(types.Constant(picture(channels=channels), layout="HWC")))
    with pytest.raises(ArgumentError, match=rf"3 .*channels.*, got {channels}"), pipe:
        pipe.run()


@pytest.mark.parametrize("argument", ["size", "resize_x", "resize_y", "resize_shorter", "resize_longer"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_resize_needs_a_finite_size(argument: str, value: float) -> None:
    text = r"`resize`: (expected a finite size|expected a size of at most|the output would take more than 2\*\*40)"
    with pytest.raises((ArgumentError, DataError), match=text):
        run("resize", picture(), **{argument: value})
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        pipe.set_outputs(fn.resize(types.Constant(picture(), layout="HWC"), **{argument: value}))
    with pytest.raises((ArgumentError, DataError), match=text), pipe:
        pipe.run()


@pytest.mark.parametrize("shape", [(0, 9), (9, 0), (0, 0)])
def test_no_region_of_an_image_without_pixels_is_drawn(shape: tuple[int, int]) -> None:
    with pytest.raises((ArgumentError, DataError), match=r"pixel|extent|image"):
        run("random_resized_crop", picture(*shape), **ARGUMENTS["random_resized_crop"])


def test_the_smallest_integer_divided_by_minus_one() -> None:
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        lowest = types.Constant(np.array([-(2**31), 7], np.int32))
        pipe.set_outputs(fn.cast(lowest, dtype=types.INT32) // -1, fn.cast(lowest, dtype=types.INT32) % -1)
    with pipe:
        quotient, remainder = pipe.run()
    assert quotient[0].tolist() == [-(2**31), -7]
    assert remainder[0].tolist() == [0, 0]


# ---- extents of zero, odd numbers of channels, odd types ----


@pytest.mark.parametrize("name", ARGUMENTS)
def test_empty_images(name: str) -> None:
    for shape in ((0, 9, 3), (8, 0, 3), (0, 0, 3), (8, 9, 0)):
        result = tried(lambda shape=shape: run(name, picture(*shape), **ARGUMENTS[name]))
        if not isinstance(result, StokerError):
            assert result.size == 0 or name == "rotate" or 0 not in shape, (name, shape, result.shape)


@pytest.mark.parametrize("name", ["brightness", "contrast", "flip", "transpose"])
def test_empty_images_stay_empty(name: str) -> None:
    for shape in ((0, 9, 3), (8, 0, 3), (8, 9, 0)):
        result = run(name, picture(*shape), **ARGUMENTS[name])
        assert sorted(result.shape) == sorted(shape)


@pytest.mark.parametrize("name", sorted(set(ARGUMENTS) - {*COLOR, "reshape"}))
def test_any_number_of_channels(name: str) -> None:
    for channels in (1, 2, 4, 6, 17):
        result = run(name, picture(channels=channels), **ARGUMENTS[name])
        assert channels in result.shape


@pytest.mark.parametrize("name", ARGUMENTS)
def test_any_type_works_or_is_refused(name: str) -> None:
    for dtype in ("bool", "int8", "uint16", "uint32", "int64", "uint64", "float16", "float64"):
        result = tried(lambda dtype=dtype: run(name, picture(dtype=dtype), **ARGUMENTS[name]))
        if not isinstance(result, StokerError):
            assert result.size


@pytest.mark.parametrize("name", ARGUMENTS)
def test_any_number_of_axes_works_or_is_refused(name: str) -> None:
    for shape in ((), (5,), (5, 4), (2, 3, 4, 5, 6), (1, 2, 1, 2, 1, 2, 3)):
        tried(lambda shape=shape: run(name, np.zeros(shape, np.uint8), **ARGUMENTS[name]))


# ---- numbers ----


def _with(value: Any, number: float) -> Any:
    return (number, *value[1:]) if isinstance(value, tuple) else number


@pytest.mark.parametrize(("name", "argument"), [(n, a) for n, valid in ARGUMENTS.items() for a in valid])
def test_hostile_numbers(name: str, argument: str) -> None:
    x, valid = picture(), ARGUMENTS[name]
    for number in NUMBERS:
        value = _with(valid[argument], number)
        result = tried(lambda value=value: run(name, x, **{**valid, argument: value}))
        assert isinstance(result, StokerError) or result.nbytes < 1 << 30
        if not find(name).all_arguments()[argument].per_row:
            continue
        per_row = np.asarray(value, np.float64)
        result = tried(lambda per_row=per_row: run(name, x, **{**valid, argument: per_row}))
        assert isinstance(result, StokerError) or result.nbytes < 1 << 30


@pytest.mark.parametrize("argument", ["resize_shorter", "resize_longer", "roi_start", "roi_end"])
def test_hostile_regions_and_sides(argument: str) -> None:
    arguments = {"roi_start": (0.0, 0.0), "roi_end": (5.0, 5.0)} if "roi" in argument else {}
    size = {"size": (4, 5)} if "roi" in argument else {}
    for number in NUMBERS:
        value = (number, 1.0) if "roi" in argument else number
        result = tried(lambda value=value: run("resize", picture(), **{**size, **arguments, argument: value}))
        assert isinstance(result, StokerError) or result.nbytes < 1 << 30


@pytest.mark.parametrize("policy", ["error", "pad", "trim_to_shape"])
@pytest.mark.parametrize("argument", ["start", "end", "shape", "rel_start", "rel_end", "rel_shape"])
def test_hostile_windows(argument: str, policy: str) -> None:
    for number in NUMBERS:
        if policy == "pad" and 100 < abs(number) < 2**40:
            continue  # the call requests a window of gigabytes
        for value in ((number, 1.0), np.array([number, 1.0])):
            result = tried(
                lambda value=value: run(
                    "slice", picture(), **{argument: value}, axes=(0, 1), out_of_bounds_policy=policy
                )
            )
            assert isinstance(result, StokerError) or result.nbytes < 1 << 30


def test_windows_far_outside_are_all_padding() -> None:
    x = picture()
    for start in (-1000, 1000):
        result = run(
            "slice", x, start=(start, 2), shape=(4, 3), axes=(0, 1), out_of_bounds_policy="pad", fill_values=7.0
        )
        assert result.shape == (4, 3, 3)
        assert (result == 7).all()
    result = run("crop", x, crop=(100, 3), out_of_bounds_policy="pad", fill_values=(1.0, 2.0, 3.0))
    assert result[0, 0].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    "shape", [(0, 5), (5, 0), (-5, 7), (math.nan, 3.0), (math.inf, 3.0), (1e300, 1e300), (2.0**62, 1.0), (1.0, 1.0)]
)
def test_random_windows_of_hostile_shapes(shape: tuple[float, float]) -> None:
    result = tried(lambda: eager.random_crop_generator(np.asarray(shape, np.float64), seed=1))
    if not isinstance(result, StokerError):
        assert [part.shape for part in result] == [(2,), (2,)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"random_area": (0.0, 0.0)}, {"random_area": (math.nan, 1.0)}, {"random_area": (2.0, 1.0)},
        {"random_area": (1.0,)}, {"random_area": (1e-300, 1e-300)}, {"random_aspect_ratio": (-1.0, 1.0)},
        {"random_aspect_ratio": (0.0, math.inf)}, {"random_aspect_ratio": (1e300, 1e300)}, {"num_attempts": -1},
        {"num_attempts": 2**31 - 1},
        {"size": 0}, {"size": -4}, {"size": 1 << 60},
    ],
)  # fmt: skip
def test_hostile_random_resized_crops(arguments: dict[str, Any]) -> None:
    result = tried(lambda: run("random_resized_crop", picture(), seed=1, **{"size": (3, 4), **arguments}))
    assert isinstance(result, StokerError) or result.shape == (3, 4, 3)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("reshape", {"shape": (1 << 62, 1 << 62)}), ("reshape", {"shape": (-1, 0)}), ("reshape", {"shape": ()}),
        ("reshape", {"shape": (1,) * 9}), ("reshape", {"rel_shape": (math.nan,)}), ("reshape", {"src_dims": (7,)}),
        ("reshape", {"layout": "HHC"}), ("transpose", {"perm": (0, 0, 0)}), ("transpose", {"perm": (0, 1, 9)}),
        ("transpose", {"output_layout": ""}), ("expand_dims", {"axes": (99,)}), ("expand_dims", {"axes": ()}),
        ("expand_dims", {"axes": tuple(range(9))}), ("squeeze", {"axes": (0, 0)}), ("squeeze", {"axes": (5,)}),
        ("slice", {"axes": (9,), "start": 0}), ("slice", {"axes": (), "start": 0}), ("slice", {"start": 10**400}),
        ("slice", {"axis_names": "Q", "start": 0}), ("crop", {"crop": ()}), ("crop", {"crop": (1, 1, 1, 1)}),
        ("crop", {"crop": "3"}), ("flip", {"depthwise": 1}), ("resize", {"size": ()}), ("resize", {"size": "large"}),
        ("resize", {"size": 5, "interp_type": 99}), ("resize", {"size": 5, "interp_type": np.float64(3.5).reshape(())}),
        ("resize", {"size": 5, "max_size": (math.nan,)}), ("resize", {"size": 5, "max_size": (-3.0,)}),
        ("rotate", {}), ("rotate", {"angle": 3.0, "axis": (0, 0, 1)}),
        ("rotate", {"angle": 3.0, "interp_type": "INTERP_LANCZOS3"}),
        ("rotate", {"angle": 3.0, "fill_value": math.nan}), ("rotate", {"angle": 3.0, "fill_value": 1e300}),
        ("color_twist", {"image_type": "GRAY"}), ("color_space_conversion", {"image_type": "RGB"}),
        ("color_space_conversion", {"image_type": "GRAY", "output_type": "RGB"}),
        ("crop_mirror_normalize", {"mean": ()}), ("crop_mirror_normalize", {"std": (math.nan,)}),
        ("crop_mirror_normalize", {"scale": math.inf, "shift": -math.inf}),
        ("crop_mirror_normalize", {"std": (1e-60,)}),
        ("crop_mirror_normalize", {"output_layout": "CHWX"}), ("crop_mirror_normalize", {"dtype": "complex64"}),
    ],
)  # fmt: skip
def test_hostile_arguments(name: str, arguments: dict[str, Any]) -> None:
    tried(lambda: run(name, picture(), **arguments))


# ---- a failing row among good ones ----


def test_a_row_with_hostile_numbers_fails_alone() -> None:
    sizes = [np.float32(s) for s in (5, math.nan, 7, math.inf, 3)]

    def source() -> list[Array]:
        return [np.asarray(sizes.pop(0))]

    pipe = Pipeline(batch_size=1, num_threads=1, seed=1, exec_async=False)
    with pipe:
        size = fn.external_source(source=source)
        pipe.set_outputs(fn.resize(types.Constant(picture(), layout="HWC"), size=size))
    found = []
    with pipe:
        for _ in range(5):
            outputs = tried(pipe.run)
            found.append(None if isinstance(outputs, StokerError) else outputs[0][0].shape[0])
    assert found == [5, None, 7, None, 3]


# ---- sizes beyond memory ----

HUGE = """
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    import numpy as np
    from stoker import Pipeline, StokerError, fn, types
    x = np.zeros((8, 9, 3), np.uint8)
    for threads, build in [(t, b) for t in (0, 2) for b in (
        lambda a: fn.resize(a, size=(1 << 24, 1 << 24)),
        lambda a: fn.resize(a, size=(1 << 20, 1 << 13)),
        lambda a: fn.rotate(a, angle=3.0, size=(1 << 24, 1 << 24)),
        lambda a: fn.rotate(a, angle=3.0, size=(1 << 20, 1 << 13)),
        lambda a: fn.crop(a, crop=(1 << 30, 1 << 30), out_of_bounds_policy="pad"),
        lambda a: fn.crop(fn.rotate(fn.resize(a, size=(1 << 20, 1 << 13)), angle=3.0), crop=(2, 2)),
        lambda a: fn.crop_mirror_normalize(a, crop=(1 << 20, 1 << 13), out_of_bounds_policy="pad"),
        lambda a: fn.resize_crop_mirror(a, size=(1 << 20, 1 << 13), crop=(2, 2)),
        lambda a: fn.random_resized_crop(a, size=1 << 24),
    )]:
        pipe = Pipeline(batch_size=1, num_threads=max(threads, 1), seed=1, exec_async=bool(threads))
        with pipe:
            pipe.set_outputs(build(types.Constant(x, layout="HWC")))
        with pipe:
            try:
                pipe.run()
            except StokerError as error:
                print(type(error).__name__)
"""


@pytest.mark.skipif(_native.sanitized, reason="a sanitizer reserves more address space than the limit")
def test_sizes_beyond_all_memory_are_errors() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(HUGE)], capture_output=True, text=True, check=False, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["DataError"] * 18, done.stdout
