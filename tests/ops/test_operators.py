# SPDX-License-Identifier: Apache-2.0
"""Every operator of the index, with each of its cases, against its reference and the laws of ``stoker.testing``.

A new operator is tested here without being named. It supplies its inputs (``case_inputs``).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stoker import Pipeline, fn, types
from stoker.contract.errors import ArgumentError, UnsupportedError
from stoker.contract.operator import Operator, RowContext
from stoker.contract.samples import SHAPES, images, noise
from stoker.contract.types import DType
from stoker.frontends.registry import find
from stoker.ops._index import INDEX
from stoker.testing.laws import check_operator
from stoker.testing.tolerances import assert_close
from tests.complete import COMPLETE

DTYPES = ("uint8", "int16", "uint16", "int32", "float32", "float16")


def is_tested_elsewhere(operator: type[Operator]) -> bool:
    """Return whether rows need more than arrays: readers and their parts, whole batches, state, user code."""
    # Numba is an extra; types that the first batch decides; user code on a GPU
    elsewhere = ("_jax_gpu_function", "_numba_function", "_numba_gpu_function", "decoders.numpy", "gpu_function")
    if operator.name in elsewhere:
        return True
    reads = operator.is_source or operator.__module__.startswith("stoker.readers.")
    return reads or operator.scope == "batch" or operator.stateful or not operator.pure


FLOATS = dict.fromkeys(
    (
        "_arithmetic", "audio_resample", "mel_filter_bank", "mfcc", "power_spectrum", "random.normal", "spectrogram",
        "to_decibels",
    ), "float32",
)  # fmt: skip # default outputs
# Arguments in addition to the operator's cases.
MORE_CASES: dict[str, Sequence[dict[str, Any]]] = {
    "resize": (
        {"resize_x": 7, "resize_y": -9, "interp_type": "INTERP_NN"},
        {"size": (5, 30), "min_filter": "INTERP_GAUSSIAN", "mag_filter": "INTERP_TRIANGULAR"},
        {"size": (9.4, 6.3), "subpixel_scale": True, "interp_type": "INTERP_CUBIC"},
        {"resize_shorter": 9, "max_size": (40, 12)},
        {"size": (6, 6), "roi_start": (0.9, 0.1), "roi_end": (0.2, 0.8), "roi_relative": True, "save_attrs": True},
    ),
    "slice": ({"rel_start": (0.1, 0.2), "rel_shape": (0.5, 0.3), "axis_names": "HW"}, {"start": 1, "axes": (-2,)}),
    "color_space_conversion": (
        {"image_type": "BGR", "output_type": "GRAY"},
        {"image_type": "YCbCr", "output_type": "RGB"},
        {"image_type": "YCbCr", "output_type": "GRAY"},
        {"image_type": "BGR", "output_type": "YCbCr"},
        {"image_type": "RGB", "output_type": "RGB"},
        {"image_type": "GRAY", "output_type": "YCbCr"},
        {"image_type": "GRAY", "output_type": "BGR"},
    ),
    "crop_mirror_normalize": (
        {"crop": (40, 6), "out_of_bounds_policy": "pad", "fill_values": (1.0, 2.0, 3.0), "mirror": 1, "dtype": "int8"},
        {"crop": (40, 6), "out_of_bounds_policy": "trim_to_shape", "output_layout": ""},
    ),
}


def all_cases() -> list[Any]:
    found = []
    for name in INDEX:
        operator = find(name)
        if is_tested_elsewhere(operator):
            continue
        for i, case in enumerate([*operator.cases, *MORE_CASES.get(name, ())]):
            found.append(pytest.param(name, case, id=f"{name}-{i}"))
    return found


def tolerance(operator: type[Operator], dtype: str) -> dict[str, float]:
    """Return zero for exact operators. A float32 sum in another order changes a byte only next to a half."""
    if operator.exactness == "exact":
        return {}
    if dtype.startswith("float"):
        unit = {"float16": 2.0**-10, "float32": 2.0**-23, "float64": 2.0**-52}[dtype]
        return {"atol": 600 * unit, "bound": 2000 * unit}
    return {"atol": 0.0, "bound": 1.0, "share": 0.99}


@pytest.mark.parametrize(("name", "case"), all_cases())
def test_case(name: str, case: dict[str, Any]) -> None:
    operator = find(name)
    dtype = DType.of(case["dtype"]).numpy.name if case.get("dtype") else FLOATS.get(name, "uint8")
    named = ["HWC"] if operator.inputs[0] and operator.case_inputs(case) is None else []
    check_operator(operator, cases=[case], layouts=named, **tolerance(operator, dtype))


def test_every_operator_has_cases() -> None:
    for name in INDEX:
        assert is_tested_elsewhere(find(name)) or find(name).cases, f"`{name}` has no cases"


# ---- types and layouts ----

IMAGE_OPERATORS = (
    "brightness", "brightness_contrast", "cast", "color_twist", "contrast", "copy", "crop", "crop_mirror_normalize",
    "expand_dims", "flip", "hsv", "hue", "random_resized_crop", "reshape", "resize", "resize_crop_mirror", "rotate",
    "saturation", "slice", "transpose",
)  # fmt: skip


def fits(name: str, case: dict[str, Any], layout: str) -> bool:
    """Return whether the axes of a case exist in the layout."""
    if name == "transpose" and "perm" in case:
        return len(case["perm"]) == len(layout)
    if name == "reshape":
        return len(layout) == 3 or case.get("shape") == (-1,)
    if name in ("slice", "expand_dims"):
        return layout == "HWC"
    return True


def typed_cases() -> list[Any]:
    found = []
    for name, (d, dtype), (k, layout) in itertools.product(IMAGE_OPERATORS, enumerate(DTYPES), enumerate(SHAPES)):
        cases = [c for c in (*find(name).cases, *MORE_CASES.get(name, ())) if fits(name, c, layout)]
        if not COMPLETE and (d // 2 + k) % 2:
            continue
        if cases:  # Each combination takes the next case, so that every case meets several types and layouts.
            case = cases[(d + k) % len(cases)]
            found.append(pytest.param(name, case, dtype, layout, id=f"{name}-{dtype}-{layout}"))
    return found


@pytest.mark.parametrize(("name", "case", "dtype", "layout"), typed_cases())
def test_type_and_layout(name: str, case: dict[str, Any], dtype: str, layout: str) -> None:
    operator = find(name)
    dtype_out = case.get("dtype") or (operator.arguments["dtype"].default if name == "hsv" else dtype)
    bounds = tolerance(operator, DType.of(dtype_out).numpy.name)
    check_operator(operator, images(dtype, layout), cases=[case], layouts=[layout], **bounds)


@pytest.mark.parametrize("layout", ["CFHW", "FCHW", "HW"])
@pytest.mark.parametrize("name", ["resize", "rotate", "crop", "flip"])
def test_other_layouts(name: str, layout: str) -> None:
    case = {"resize": {"size": (5, 8)}, "rotate": {"angle": 33.0}, "crop": {"crop": (4, 6)}, "flip": {}}[name]
    sizes = {"C": 3, "F": 2, "H": 9, "W": 12}
    rows = [(noise(i, [sizes[a] + (i if a in "HW" else 0) for a in layout]),) for i in range(2)]
    check_operator(find(name), rows, cases=[case], layouts=[layout])


ONE_PIXEL: dict[str, dict[str, Any]] = {
    "resize": {"size": (4, 3), "interp_type": "INTERP_LANCZOS3"},
    "rotate": {"angle": 30.0},
    "crop": {"crop": (1, 1)},
    "crop_mirror_normalize": {"mean": (3.0,), "std": (2.0,), "mirror": 1},
    "flip": {"vertical": 1},
    "color_twist": {"hue": 30.0, "contrast": 0.5},
    "random_resized_crop": {"size": (2, 2)},
    "resize_crop_mirror": {"size": (3, 3), "crop": (2, 2), "mirror": 3},
    "slice": {"start": (0, 0), "shape": (1, 1)},
    "transpose": {},
    "reshape": {"shape": (-1, 1)},
}


@pytest.mark.parametrize(
    ("name", "channels"), [(n, k) for n in ONE_PIXEL for k in (1, 3) if (n, k) != ("color_twist", 1)]
)
def test_one_pixel(name: str, channels: int) -> None:
    operator = find(name)
    case = ONE_PIXEL[name]
    bounds = tolerance(operator, "uint8")
    check_operator(operator, [(noise(i, (1, 1, channels)),) for i in range(2)], cases=[case], **bounds)


# ---- arguments per frame ----


@pytest.mark.parametrize(
    ("name", "argument", "values", "rest"),
    [
        ("rotate", "angle", [0.0, 90.0, 33.0], {"keep_size": True, "fill_value": 5.0}),
        ("color_twist", "hue", [0.0, 90.0, -33.0], {"saturation": 1.5}),
        ("brightness", "brightness", [0.5, 1.0, 2.0], {}),
        ("resize", "roi_start", [[0, 0], [1, 2], [3, 1]], {"size": (4, 5), "roi_end": (8.0, 9.0)}),
    ],
)
def test_per_frame_argument_equals_frames_one_by_one(
    name: str, argument: str, values: list[Any], rest: dict[str, Any]
) -> None:
    video = noise(1, (3, 11, 12, 3))
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1, exec_async=False)
    call = getattr(fn, name)
    with pipe:
        per_frame = fn.per_frame(np.asarray(values, np.float32))
        whole = call(types.Constant(video, layout="FHWC"), **{argument: per_frame}, **rest)
        single = [
            call(types.Constant(frame, layout="HWC"), **{argument: value}, **rest)
            for frame, value in zip(video, values, strict=True)
        ]
        pipe.set_outputs(whole, *single)
    with pipe:
        got, *want = (np.asarray(batch[0]) for batch in pipe.run())
    np.testing.assert_array_equal(got, np.stack(want))


# ---- refusals ----


@pytest.mark.parametrize("name", sorted({*IMAGE_OPERATORS, "color_space_conversion", "squeeze"}))
def test_an_unknown_argument_is_refused_with_the_nearest_name(name: str) -> None:
    argument = next(iter(find(name).arguments or {"preserve": 0}))
    with pytest.raises(ArgumentError, match="unknown argument"):
        find(name).bind({argument + "x": 1})


@pytest.mark.parametrize("dtype", ["uint64", "int64", "float64", "uint32"])
def test_types_that_a_rotation_cannot_interpolate_are_refused(dtype: str) -> None:
    with pytest.raises(UnsupportedError, match="Cast it first"):
        check_operator(find("rotate"), [(np.zeros((4, 5, 3), dtype),)], cases=[{"angle": 10.0}])


# ---- negative controls ----


def test_the_tolerances_reject_planted_errors() -> None:
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 255, (40, 40, 3)).astype(np.uint8)
    bounds = tolerance(find("color_twist"), "uint8")
    off_by_two = pixels.copy()
    off_by_two[3, 4, 1] += 2 if off_by_two[3, 4, 1] < 254 else -2
    for wrong in (off_by_two, pixels + (rng.random(pixels.shape) < 0.05).astype(np.uint8)):
        with pytest.raises(AssertionError):
            assert_close(wrong, pixels, **bounds)
    numbers = rng.uniform(0, 300, (40, 40)).astype(np.float32)
    with pytest.raises(AssertionError):
        assert_close(numbers + np.float32(0.01), numbers, **tolerance(find("color_twist"), "float32"))


def test_the_matrix_rejects_an_operator_whose_reference_is_another() -> None:
    class Wrong(find("flip"), name="testing.wrong_flip"):  # type: ignore[misc]
        """Flip with a reference that forgets to mirror."""

        def reference(self, row: RowContext, x: Any) -> Any:
            return x

    with pytest.raises(AssertionError, match="against the reference"):
        check_operator(Wrong)
