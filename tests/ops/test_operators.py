# SPDX-License-Identifier: Apache-2.0
"""Every operator of the index, with each of its cases, against its reference and the laws of ``stoker.testing``.

An operator that is added is tested here without being named, unless its inputs are not images.
"""

from __future__ import annotations

import functools
import io
import itertools
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from stoker import Pipeline, fn, types
from stoker.contract.errors import ArgumentError, UnsupportedError
from stoker.contract.operator import Operator, RowContext
from stoker.contract.types import DType
from stoker.frontends.registry import find
from stoker.native import _native
from stoker.ops._index import INDEX
from stoker.ops.generic.arithmetic import OPERANDS
from stoker.testing.laws import check_operator
from stoker.testing.tolerances import assert_close

Array = npt.NDArray[Any]
Rows = list[tuple[Array, ...]]

DTYPES = ("uint8", "int16", "uint16", "int32", "float32", "float16")
SHAPES = {"HWC": (13, 17, 3), "CHW": (3, 11, 19), "FHWC": (2, 13, 16, 3)}

# Operators with no rows to give them here, and why.
ELSEWHERE = {
    "external_source": "a source of the user's data",
    "readers.file": "a source: needs a folder",
    "readers.concat": "a source of sources: needs folders",
    "readers.mix": "a source of sources: needs folders",
    "python_function": "runs the user's code",
    "_row_number": "depends on the whole batch",
    "permute_batch": "depends on the whole batch",
}


def noise(seed: int, shape: Sequence[int], dtype: str = "uint8") -> Array:
    """Values of an image in its type's usual range."""
    rng = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return rng.uniform(-20, 280, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -40_000), min(info.max, 80_000), shape, dtype=dtype, endpoint=True)


def images(dtype: str = "uint8", layout: str = "HWC", copies: int = 1) -> Rows:
    """Three rows of different sizes."""
    shape = SHAPES[layout]
    rows = []
    for i in range(3):
        sizes = [n + i * {"H": 4, "W": 3}.get(a, 0) for n, a in zip(shape, layout, strict=True)]
        rows.append(tuple(noise(7 * i + k, sizes, dtype) for k in range(copies)))
    return rows


@functools.cache
def files() -> Rows:
    """JPEG of two samplings, progressive, grey, and PNG."""
    rows = []
    for i, options in enumerate(
        (
            {"format": "JPEG", "subsampling": 2},
            {"format": "JPEG", "subsampling": 0, "progressive": True},
            {"format": "PNG"},
        )
    ):
        picture = np.kron(noise(i, (6, 8, 3)), np.ones((4, 4, 1), np.uint8))
        memory = io.BytesIO()
        Image.fromarray(picture).save(memory, **options)
        rows.append((np.frombuffer(memory.getvalue(), np.uint8),))
    return rows


def operands(case: dict[str, Any]) -> Rows:
    """For arithmetic: numbers for which the operation is defined."""
    op = case["op"]
    count = OPERANDS[op]
    rng = np.random.default_rng(len(op))
    if op in ("and", "or", "xor", "not", "shl", "shr", "idiv", "mod", "pow"):
        return [tuple(rng.integers(1, 9, (4, 5)).astype(np.int32) for _ in range(count)) for _ in range(2)]
    return [tuple(rng.uniform(1.0, 1.9, (4, 5)).astype(np.float32) for _ in range(count)) for _ in range(2)]


def _each(*arrays: Any) -> Rows:
    return [tuple(np.asarray(a) for a in (row if isinstance(row, tuple) else (row,))) for row in arrays]


def _gray(case: dict[str, Any]) -> Rows:
    count = 1 if case["image_type"] == "GRAY" else 3
    return [(x[:, :, :count].copy(),) for (x,) in images()]


def _filters(case: dict[str, Any]) -> Rows:
    rng = np.random.default_rng(5)
    rows = [
        (x, rng.uniform(-0.4, 0.6, shape).astype(np.float32)) for (x,), shape in zip(images(), _WINDOWS, strict=True)
    ]
    return [(*row, np.array(77, np.uint8)) for row in rows] if case.get("border") == "constant" else rows


_WINDOWS = ((3, 3), (4, 7), (5, 2))


def _with_mean() -> Rows:
    return [(x, np.float32(100.25 + i)) for i, (x,) in enumerate(images())]


def _matrices() -> Rows:
    rng = np.random.default_rng(6)
    return [tuple(rng.normal(size=(2, 3)).astype(np.float32) for _ in range(3)) for _ in range(2)]


def _recipes() -> Rows:
    """Images of several sizes turned in hue, cut to 8 x 9, stored as planes and through a table of floats."""
    ops = {name: number for number, (name, _) in enumerate(_native.recipe.OPS)}
    table = np.random.default_rng(7).normal(size=256).astype(np.float32).view(np.uint8)
    rows = []
    for i, (x,) in enumerate(images()):
        steps = [ops["Decode"], -1, 3, 0, 0, x.shape[1], x.shape[0], ops["Hue"], 0, 40 * i]
        steps += [ops["Crop"], 1, i, 1, i + 9, 9, ops["Store"], 2, 0, 0, -1, ops["Store"], 2, 1, 0, 0]
        rows.append((x, np.array([1, 0, 4, 1, *steps], np.float64), table))
    return rows


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def _told() -> Rows:
    """Files with an end marker, told of by native code; one with zeros behind its path, as rows of one length have."""
    rows: Rows = []
    for i, size in enumerate((64, 5000)):
        path = Path(_folder().name, f"{i}.jpg")
        path.write_bytes(np.random.default_rng(i).bytes(size - 2) + b"\xff\xd9")
        with open(path, "rb") as file:
            told = _native.recipe.tell(file.fileno(), os.fsencode(path), -1.0)
        assert told is not None
        rows.append((np.frombuffer(told + bytes(3 * i), np.uint8),))
    return rows


INPUTS: dict[str, Callable[[dict[str, Any]], Rows]] = {
    "_arithmetic": operands,
    "_condition": lambda case: _each(np.int32(0), np.int32(-3), np.float32(0.5).astype(np.int32)),
    "_recipe": lambda case: _recipes(),
    "_told_file": lambda case: _told(),
    "_merge": lambda case: [(np.asarray(i == 0), *row) for i, row in enumerate(images(copies=2))],
    "cat": lambda case: images(copies=2),
    "stack": lambda case: images(copies=2),
    "color_space_conversion": _gray,
    "filter": lambda case: _filters(case),
    "reductions.variance": lambda case: _with_mean(),
    "reductions.std_dev": lambda case: _with_mean(),
    "transforms.combine": lambda case: _matrices(),
    "full": lambda case: _each(np.float32(2.5), np.float32(-1)),
    "full_like": lambda case: [(x, np.float32(3)) for (x,) in images()],
    "per_frame": lambda case: images(),
    "peek_image_shape": lambda case: files(),
    "random.choice": lambda case: _each(np.int32(7), np.int32(1)),
    "random_crop_generator": lambda case: _each(np.array([20, 31, 3]), np.array([300, 7, 3]), np.array([1, 1, 1])),
    "squeeze": lambda case: images(),
}
FLOATS = {"_arithmetic": "float32", "random.normal": "float32"}  # what they make by default
# Arguments beside the operator's own cases.
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


def rows_for(name: str, case: dict[str, Any]) -> Rows | None:
    """The rows of an operator; None: its defaults."""
    if name in INPUTS:
        return INPUTS[name](case)
    if name.startswith("decoders."):
        return files()
    return None if find(name).inputs[0] else [()] * 3


def all_cases() -> list[Any]:
    found = []
    for name in INDEX:
        operator = find(name)
        if name in ELSEWHERE or operator.stateful:
            continue
        for i, case in enumerate([*operator.cases, *MORE_CASES.get(name, ())]):
            found.append(pytest.param(name, case, id=f"{name}-{i}"))
    return found


def tolerance(operator: type[Operator], dtype: str) -> dict[str, float]:
    """Nothing for exact operators. A float32 sum in another order moves a byte only where it is next to a half."""
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
    rows = rows_for(name, case)
    named = ["HWC"] if rows is None else []
    check_operator(operator, rows, cases=[case], layouts=named, **tolerance(operator, dtype))


def test_every_operator_has_cases() -> None:
    for name in INDEX:
        assert name in ELSEWHERE or find(name).cases, f"`{name}` has no cases"
    assert set(ELSEWHERE) <= set(INDEX)


# ---- types and layouts ----

IMAGE_OPERATORS = (
    "brightness", "brightness_contrast", "cast", "color_twist", "contrast", "copy", "crop", "crop_mirror_normalize",
    "expand_dims", "flip", "hsv", "hue", "random_resized_crop", "reshape", "resize", "resize_crop_mirror", "rotate",
    "saturation", "slice", "transpose",
)  # fmt: skip


def fits(name: str, case: dict[str, Any], layout: str) -> bool:
    """Whether a case's axes are those of the layout."""
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
        if cases:  # each combination takes the next case, so that all are seen with several types and layouts
            case = cases[(d + k) % len(cases)]
            found.append(pytest.param(name, case, dtype, layout, id=f"{name}-{dtype}-{layout}"))
    return found


@pytest.mark.parametrize(("name", "case", "dtype", "layout"), typed_cases())
def test_type_and_layout(name: str, case: dict[str, Any], dtype: str, layout: str) -> None:
    operator = find(name)
    made = case.get("dtype") or (operator.arguments["dtype"].default if name == "hsv" else dtype)
    bounds = tolerance(operator, DType.of(made).numpy.name)
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


# ---- what is refused ----


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
        """A flip whose reference forgets to mirror."""

        def reference(self, row: RowContext, x: Any) -> Any:
            return x

    with pytest.raises(AssertionError, match="against the reference"):
        check_operator(Wrong)
