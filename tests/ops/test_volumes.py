# SPDX-License-Identifier: Apache-2.0
"""Volumes: resizing, warps, rotations and blurs along three axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import Pipeline, eager, fn, types
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError
from stoker.frontends.registry import find
from stoker.testing.laws import check_operator
from stoker.testing.tolerances import assert_exact

LAYOUTS = ("DHWC", "CDHW", "DHW", "FDHWC", "FCDHW", "CFDHW")
MATRIX = (1.0, 0.1, -0.2, 1.3, 0.05, 1.1, 0.1, -2.0, 0.2, -0.1, 0.9, 1.0)
EXTENTS = {"F": 2, "D": 5, "H": 7, "W": 6, "C": 3}


def noise(layout: str, dtype: str = "uint8", seed: int = 0) -> Any:
    shape = [EXTENTS[name] + seed * (name in "DHW") for name in layout]
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8).astype(dtype)


CASES = {
    "resize": (
        {"size": (8, 5, 9)}, {"size": (3, 4, 8), "interp_type": "INTERP_CUBIC"}, {"resize_z": 4},
        {"resize_z": 9, "resize_x": 5, "dtype": "float32"}, {"size": (4, 9, 9), "interp_type": "INTERP_NN"},
        {"size": (4, -5, 6), "roi_start": (0.5, 1.0, 1.0), "roi_end": (4.5, 5.0, 6.0), "antialias": False},
        {"resize_shorter": 7}, {"size": (4, 6, 7), "mode": "not_larger", "max_size": 5},
    ),
    "rotate": (
        {"angle": 30.0, "axis": (0.0, 0.0, 1.0)}, {"angle": -77.0, "axis": (1.0, 2.0, -3.0), "fill_value": 9.0},
        {"angle": 90.0, "axis": (1.0, 0.0, 0.0), "keep_size": True, "interp_type": "INTERP_NN", "fill_value": 1.0},
        {"angle": 10.0, "axis": (1.0, 1.0, 0.0), "size": (4, 8, 5), "dtype": "float32"},
    ),
    "warp_affine": (
        {"matrix": MATRIX}, {"matrix": MATRIX, "fill_value": 7.0, "inverse_map": False},
        {"matrix": MATRIX, "interp_type": "INTERP_NN", "size": (4, 8, 5), "dtype": "int16"},
    ),
    "gaussian_blur": (
        {"sigma": 1.1}, {"sigma": (0.5, 1.0, 2.0)}, {"window_size": (3, 5, 7), "dtype": "float32"},
    ),
    "laplacian": (
        {}, {"window_size": (3, 5, 7), "scale": (1.0, 0.5, -2.0), "dtype": "float32"},
        {"smoothing_size": (1, 3, 5), "normalized_kernel": True},
    ),
}  # fmt: skip


def tolerance(name: str, dtype: str) -> dict[str, float]:
    """Return zero for exact operators. The reference of the blur adds in another order."""
    if name != "gaussian_blur":
        return {}
    unit = {"float16": 2.0**-10, "float32": 2.0**-23}.get(dtype)
    return {"atol": 600 * unit, "bound": 2000 * unit} if unit else {"atol": 0.0, "bound": 1.0, "share": 0.99}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CASES)
def test_volumes_equal_the_reference(name: str, layout: str) -> None:
    rows = [(noise(layout, seed=i),) for i in range(2)]
    for case in CASES[name]:
        dtype = str(case.get("dtype", "uint8"))
        check_operator(find(name), rows, cases=[case], layouts=(layout,), **tolerance(name, dtype))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in CASES
        for dtype in ("uint16", "int16", "int32", "float32", "float16", "bool")
        if (name, dtype) not in (("gaussian_blur", "bool"), ("laplacian", "bool"))  # refused
    ],
)
def test_types(name: str, dtype: str) -> None:
    rows = [(noise("DHWC", dtype),)]
    check_operator(find(name), rows, cases=CASES[name][:1], layouts=("DHWC",), **tolerance(name, dtype))


def volume(x: Any, layout: str = "DHWC") -> Any:
    return types.Constant(x, layout=layout)


def test_an_axis_that_stays_is_a_resize_of_slices() -> None:
    x = noise("DHWC", "float32")
    want = np.stack([eager.resize(s, size=(9, 4)) for s in x])
    assert np.array_equal(eager.resize(volume(x), size=(5, 9, 4)), want)


def test_the_order_of_the_axes_is_depth_height_width() -> None:
    x = np.zeros((6, 6, 6, 1), np.float32)
    x[1, 2, 3] = 1
    assert np.argmax(eager.resize(volume(x), size=(12, 6, 6), interp_type="INTERP_NN")) // 36 in (2, 3)
    moved = eager.warp_affine(volume(x), matrix=(1, 0, 0, -1, 0, 1, 0, -2, 0, 0, 1, -1), interp_type="INTERP_NN")
    assert np.argwhere(np.asarray(moved))[0].tolist() == [2, 4, 4, 0]
    blurred = np.asarray(eager.gaussian_blur(volume(x), window_size=(3, 1, 1)))
    assert np.argwhere(blurred[..., 0])[:, 0].tolist() == [0, 1, 2]


def test_a_rotation_moves_whole_elements_as_dali() -> None:
    """Positions found by running DALI 2.4."""
    x = np.zeros((5, 7, 9, 1), np.float32)
    x[1, 2, 3] = 100
    for axis, shape, at in (
        ((0, 0, 1), (5, 9, 7, 1), (1, 3, 4, 0)), ((1, 0, 0), (7, 5, 9, 1), (2, 3, 3, 0)),
        ((0, 1, 0), (9, 7, 5, 1), (5, 2, 1, 0)),
    ):  # fmt: skip
        out = np.asarray(eager.rotate(volume(x), angle=90.0, axis=axis, fill_value=0.0))
        assert out.shape == shape and out[at] == 100 and out.sum() == 100


@pytest.mark.parametrize(
    ("axis", "angle", "size"),
    [
        ((0, 0, 1), 30.0, (5, 34, 36)), ((1, 0, 0), 117.0, (22, 15, 30)), ((0, 1, 0), 30.0, (21, 20, 30)),
        ((1, 1, 0), 30.0, (23, 24, 32)), ((1, 2, 3), 30.0, (17, 32, 36)), ((1, 2, 3), 117.0, (26, 32, 25)),
    ],
)  # fmt: skip
def test_the_canvas_is_dalis(axis: Any, angle: float, size: tuple[int, ...]) -> None:
    """Sizes that DALI 2.4 gives for 5 x 20 x 30."""
    x = np.zeros((5, 20, 30, 1), np.uint8)
    assert np.asarray(eager.rotate(volume(x), angle=angle, axis=axis)).shape == (*size, 1)


@pytest.mark.parametrize(
    ("arguments", "size"),
    [
        ({"resize_x": 10}, (2, 7, 10)), ({"resize_z": 10}, (10, 40, 60)), ({"resize_x": 10, "resize_z": 3}, (3, 9, 10)),
        ({"resize_shorter": 3}, (3, 12, 18)), ({"resize_longer": 10}, (2, 7, 10)), ({"size": (0, 6, 7)}, (1, 6, 7)),
        ({"size": (4, 6, 7), "mode": "not_larger"}, (1, 5, 7)), ({"size": (4, 0, 0)}, (4, 16, 24)),
        ({"size": (4, 6, 7), "mode": "not_smaller"}, (4, 16, 24)), ({"size": 8}, (8, 8, 8)),
        ({"resize_y": 5, "mode": "stretch"}, (5, 5, 30)), ({"size": (4, 6, 7), "max_size": 5}, (4, 5, 5)),
        ({"resize_shorter": 10, "max_size": (6, 10, 12)}, (2, 8, 12)),
    ],
)  # fmt: skip
def test_sizes_follow_dali(arguments: dict[str, Any], size: tuple[int, ...]) -> None:
    """Sizes that DALI 2.4 gives for 5 x 20 x 30."""
    x = np.zeros((5, 20, 30, 2), np.uint8)
    assert np.asarray(eager.resize(volume(x), **arguments)).shape == (*size, 2)


def test_arguments_per_frame() -> None:
    videos = noise("FDHWC")
    matrices = np.stack([np.float32(MATRIX), np.float32(MATRIX) * 1.1])
    angles, axes = np.float32([20, 80]), np.float32([[0, 0, 1], [1, 1, 0]])
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        x = types.Constant(videos, layout="FDHWC")
        pipe.set_outputs(
            fn.warp_affine(x, matrix=fn.per_frame(matrices)),
            fn.rotate(x, angle=fn.per_frame(angles), axis=fn.per_frame(axes)),
        )
    with pipe:
        warped, rotated = (np.asarray(out[0]) for out in pipe.run())
    for i, x in enumerate(videos):
        assert np.array_equal(warped[i], eager.warp_affine(volume(x), matrix=matrices[i]))
        size = rotated.shape[1:4]
        assert np.array_equal(rotated[i], eager.rotate(volume(x), angle=angles[i], axis=axes[i], size=size))
    own = [np.asarray(eager.rotate(volume(videos[0]), angle=angles[i], axis=axes[i])).shape for i in (0, 1)]
    assert rotated.shape[1:4] == tuple(map(max, *(s[:3] for s in own)))


def test_videos_are_filtered_by_frame() -> None:
    rng = np.random.default_rng(3)
    video = rng.integers(0, 256, (3, 9, 8, 2), np.uint8)
    sigmas = np.float32([[1, 2], [0.5, 1], [2, 0.7]])
    weights = rng.uniform(0, 0.2, (3, 3, 5)).astype(np.float32)
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        x = types.Constant(video, layout="FHWC")
        of_run = fn.per_frame(fn.external_source(source=lambda: [sigmas]))
        pipe.set_outputs(
            fn.gaussian_blur(x, sigma=of_run), fn.gaussian_blur(x, sigma=fn.per_frame(sigmas[:, 0])),
            fn.filter(x, fn.per_frame(weights)), fn.filter(x, fn.per_frame(weights), mode="valid"),
        )  # fmt: skip
    with pipe:
        outs = [np.asarray(out[0]) for out in pipe.run()]
    for i, frame in enumerate(video):
        assert np.array_equal(outs[0][i], eager.gaussian_blur(frame, sigma=sigmas[i]))
        assert np.array_equal(outs[1][i], eager.gaussian_blur(frame, sigma=sigmas[i, 0]))
        assert np.array_equal(outs[2][i], eager.filter(frame, weights[i]))
        assert np.array_equal(outs[3][i], eager.filter(frame, weights[i], mode="valid"))


def test_one_axis_is_blurred() -> None:
    line = np.random.default_rng(4).uniform(0, 9, 11).astype(np.float32)
    want = np.asarray(eager.gaussian_blur(line[None, :, None], sigma=(1.0, 1.5), window_size=(1, 0)))[0, :, 0]
    assert np.array_equal(eager.gaussian_blur(line, sigma=1.5), want)


def test_arguments_that_do_not_fit_are_refused() -> None:
    x = noise("DHWC")
    for call, text in (
        (lambda: eager.resize(volume(x), size=(4, 5)), "`size` with 1 or 3 elements"),
        (lambda: eager.rotate(volume(x), angle=3.0), "expected an `axis`"),
        (lambda: eager.rotate(volume(x), angle=3.0, axis=(0, 0, 0)), "of some length"),
        (lambda: eager.rotate(volume(x), angle=3.0, axis=(0, 1)), "three numbers"),
        (lambda: eager.warp_affine(volume(x), matrix=MATRIX[:6]), "twelve numbers"),
        (lambda: eager.warp_affine(volume(x), matrix=(0.0,) * 12, inverse_map=False), "be inverted"),
        (lambda: eager.warp_affine(volume(x[:0]), matrix=MATRIX), "with elements"),
        (lambda: eager.resize(volume(x, "HDWC"), size=(3, 4, 5)), "D, H, W in this order"),
        (lambda: eager.warp_affine(volume(x), matrix=MATRIX, size=(4, 5)), r"\(depth, height, width\)"),
    ):
        with pytest.raises((ArgumentError, DataError, UnsupportedError), match=text):
            call()


def test_choice_among_large_integers() -> None:
    elements = np.arange(5) + (1 << 60) + 1
    found = np.asarray(eager.random.choice(elements, p=[0.0, 0.5, 0.0, 0.5, 0.0], shape=(40,), seed=3))
    assert set(found.tolist()) == {elements[1], elements[3]}


@pytest.mark.parametrize("layout", ["DHWC", "CDHW", "DHW", "FDHWC"])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float16"])
def test_laplacians_of_volumes(layout: str, dtype: str) -> None:
    """Sums of small integers are exact, so that every order of additions has the same bits."""
    extents = {"F": 2, "D": 5, "H": 1, "W": 8, "C": 3}
    x = np.random.default_rng(5).integers(0, 100, [extents[name] for name in layout]).astype(dtype)
    arguments = {"window_size": (3, 5, 3), "smoothing_size": (1, 3, 5), "scale": (1.0, 0.5, -2.0)}
    second = {3: [1, -2, 1], 5: [1, 0, -2, 0, 1]}
    smooth = {1: [1], 3: [1, 2, 1], 5: [1, 4, 6, 4, 1]}

    def along(values: Any, name: str, window: list[int]) -> Any:
        axis, radius = layout.index(name), len(window) // 2
        places = np.arange(-radius, values.shape[axis] + radius)
        period = max(2 * values.shape[axis] - 2, 1)
        reflected = np.minimum(places % period, period - places % period) if period > 1 else 0 * places
        padded = np.take(values, reflected, axis)
        parts = [np.take(padded, range(k, k + values.shape[axis]), axis) * w for k, w in enumerate(window)]
        return sum(parts)

    total: Any = 0.0
    for i, factor in enumerate(arguments["scale"]):
        part = x.astype(np.float64)
        for k, name in enumerate("DHW"):
            size = arguments["window_size"][i] if k == i else arguments["smoothing_size"][k]
            part = along(part, name, (second if k == i else smooth)[int(size)])
        total = total + factor * part
    got = eager.laplacian(volume(x, layout), dtype="float32", **arguments)
    assert_exact(np.asarray(got), total.astype(np.float32))


def test_laplacians_of_one_axis_and_wrong_sizes() -> None:
    x = np.array([3, 1, 4, 1, 5], np.uint8)
    assert_exact(eager.laplacian(x, dtype="float32"), np.array([-4, 5, -6, 7, -8], np.float32))
    cube = volume(np.zeros((3, 3, 3), np.uint8), "DHW")
    with pytest.raises((ArgumentError, DataError), match="expected an odd `window_size` of 3 to 31, got 4"):
        eager.laplacian(cube, window_size=4)
    with pytest.raises(ArgumentError, match="one number as `smoothing_size`, or one for each of 3 axes, got 2"):
        eager.laplacian(cube, smoothing_size=(1, 3))
    with pytest.raises((ArgumentError, DataError), match="expected a volume with elements"):
        eager.laplacian(volume(np.zeros((0, 3, 3), np.uint8), "DHW"))
