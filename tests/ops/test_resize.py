# SPDX-License-Identifier: Apache-2.0
"""``resize`` against Pillow, bit for bit, and its sizes against DALI's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL
import pytest
from PIL import Image

from stoker import Batch, DataError, Pipeline, eager, fn, types
from stoker.contract.errors import ArgumentError
from stoker.contract.types import DType
from stoker.testing.tolerances import assert_exact

FILTERS = {
    "INTERP_NN": Image.Resampling.NEAREST,
    "INTERP_LINEAR": Image.Resampling.BILINEAR,
    "INTERP_CUBIC": Image.Resampling.BICUBIC,
    "INTERP_LANCZOS3": Image.Resampling.LANCZOS,
    "INTERP_BOX": Image.Resampling.BOX,
    "INTERP_HAMMING": Image.Resampling.HAMMING,
}
SIZES = {"down": (17, 30), "up": (95, 131), "wide": (55, 31), "same": (43, 64), "one": (1, 1), "tall": (9, 90)}
REGIONS = {"whole": None, "pixels": (5, 3, 60, 40), "fractions": (4.25, 7.5, 51.125, 33.75)}  # x0 y0 x1 y1, as Pillow's
# Pillow 13 runs the vertical pass first if the height shrinks much more than the width.
OLD_PILLOW = int(PIL.__version__.split(".")[0]) < 13

Array = npt.NDArray[Any]


def noise(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def pillow(x: Array, size: tuple[int, int], kind: str, box: tuple[float, ...] | None = None) -> Array:
    """Resize channel by channel, because Pillow's own RGBA is premultiplied."""
    height, width = size
    planes = np.moveaxis(x, -1, 0)
    channels = [
        np.asarray(Image.fromarray(np.ascontiguousarray(p)).resize((width, height), FILTERS[kind], box)) for p in planes
    ]
    return np.stack(channels, -1)


def region(box: tuple[float, ...] | None) -> dict[str, Any]:
    return {} if box is None else {"roi_start": (box[1], box[0]), "roi_end": (box[3], box[2])}


@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("box", REGIONS.values(), ids=REGIONS)
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("kind", FILTERS)
def test_bytes_equal_pillow(kind: str, size: tuple[int, int], box: tuple[float, ...] | None, channels: int) -> None:
    if OLD_PILLOW and size == SIZES["tall"] and kind != "INTERP_NN":
        pytest.skip("Pillow before 13 has another order of passes for this shape")
    x = noise(channels, 43, 64, channels)
    got = eager.resize(x, size=size, interp_type=kind, **region(box))
    assert_exact(got, pillow(x, size, kind, box))


@pytest.mark.parametrize("kind", FILTERS)
def test_an_rgb_image_equals_pillows_rgb(kind: str) -> None:
    x = noise(1, 50, 70, 3)
    got = eager.resize(x, size=(31, 99), interp_type=kind)
    assert_exact(got, np.asarray(Image.fromarray(x).resize((99, 31), FILTERS[kind])))


@pytest.mark.parametrize("kind", FILTERS)
def test_floats_equal_pillows_mode_f(kind: str) -> None:
    x = np.random.default_rng(3).normal(size=(40, 51, 1)).astype(np.float32)
    assert_exact(eager.resize(x, size=(21, 77), interp_type=kind), pillow(x, (21, 77), kind))


@pytest.mark.parametrize("kind", FILTERS)
def test_layouts_and_frames_are_the_same_pixels(kind: str) -> None:
    video = noise(5, 2, 30, 33, 3)
    want = np.stack([pillow(frame, (20, 41), kind) for frame in video])

    def run(x: Array, layout: str) -> Array:
        result: Array = eager.resize(types.Constant(x, layout=layout), size=(20, 41), interp_type=kind)
        return result

    assert_exact(run(video, "FHWC"), want)
    assert_exact(run(np.ascontiguousarray(video.transpose(0, 3, 1, 2)), "FCHW"), want.transpose(0, 3, 1, 2))
    assert_exact(run(np.ascontiguousarray(video.transpose(3, 0, 1, 2)), "CFHW"), want.transpose(3, 0, 1, 2))
    assert_exact(run(np.ascontiguousarray(video[0].transpose(2, 0, 1)), "CHW"), want[0].transpose(2, 0, 1))
    assert_exact(run(np.ascontiguousarray(video[0, :, :, 1]), "HW"), want[0, :, :, 1])


def test_a_different_filter_for_each_direction() -> None:
    x = noise(7, 30, 40, 3)
    got = eager.resize(x, size=(60, 17), min_filter="INTERP_BOX", mag_filter="INTERP_CUBIC")
    both = eager.resize(
        eager.resize(x, size=(30, 17), interp_type="INTERP_BOX"), size=(60, 17), interp_type="INTERP_CUBIC"
    )
    assert_exact(got, both)


def test_a_filter_per_row() -> None:
    x = noise(8, 30, 40, 3)
    pipe = Pipeline(batch_size=8, num_threads=2, seed=5)
    with pipe:
        chosen = fn.random.coin_flip() * int(types.INTERP_CUBIC)
        image = types.Constant(x, layout="HWC")
        pipe.set_outputs(fn.resize(image, size=(11, 12), interp_type=chosen), chosen)
    with pipe:
        images, numbers = pipe.run()
    want = {0: pillow(x, (11, 12), "INTERP_NN"), int(types.INTERP_CUBIC): pillow(x, (11, 12), "INTERP_CUBIC")}
    assert {int(n) for n in numbers} == set(want)
    for image, number in zip(images, numbers, strict=True):
        assert_exact(image, want[int(number)])


def test_negative_sizes_and_regions_backwards_mirror() -> None:
    x = noise(9, 24, 36, 3)
    plain = eager.resize(x, size=(10, 50))
    assert_exact(eager.resize(x, size=(-10, 50)), plain[::-1])
    assert_exact(eager.resize(x, size=(10, 50), roi_start=(0, 36), roi_end=(24, 0)), plain[:, ::-1])


def test_a_region_in_shares() -> None:
    x = noise(10, 24, 36, 3)
    got = eager.resize(x, size=(9, 9), roi_start=(0.25, 0.5), roi_end=(0.75, 1.0), roi_relative=True)
    assert_exact(got, pillow(x, (9, 9), "INTERP_LINEAR", (18, 6, 36, 18)))


def test_subpixel_scale_moves_the_region() -> None:
    x = noise(11, 10, 20, 1)
    half = 10 * 17 / 17.4
    got = eager.resize(x, resize_x=17.4, resize_y=10, subpixel_scale=True)
    assert_exact(got, pillow(x, (10, 17), "INTERP_LINEAR", (10 - half, 0, 10 + half, 10)))


@pytest.mark.parametrize("width", [1, 3, 4, 6, 7, 8, 13, 14, 20, 45])
def test_subpixel_scale_keeps_the_scale_where_the_size_is_rounded_up(width: int) -> None:
    x = noise(13, 9, 11, 1).astype(np.float32)
    exact = 9 * width / 11
    rows, shrink = max(math.floor(exact + 0.5), 1), max(11 / width, 1.0)
    centres = 4.5 + (np.arange(rows) + 0.5 - rows / 2) * (11 / width)  # a row is 11 / width pixels apart from the next
    distance = np.abs(np.arange(9) + 0.5 - centres[:, None]) / shrink
    weights = np.maximum(0, 1 - distance)
    wanted = np.tensordot(weights / weights.sum(1, keepdims=True), eager.resize(x, size=(9, width)), 1)
    np.testing.assert_allclose(eager.resize(x, resize_x=width, subpixel_scale=True), wanted, atol=1e-3)
    nearest = eager.resize(x, resize_x=width, subpixel_scale=True, interp_type="INTERP_NN")
    assert_exact(nearest, eager.resize(x, size=(9, width), interp_type="INTERP_NN")[np.floor(centres).astype(int)])


def test_a_region_is_clamped_if_an_output_has_its_centre_outside() -> None:
    x = noise(14, 9, 11, 1).astype(np.float32)
    arguments: dict[str, Any] = {"axes": (0,), "alignment": (0.0,), "size_rounding": "ceil"}
    for size in (6.1, 20.1):
        got = np.asarray(eager.tensor_resize(x, sizes=(size,), **arguments))
        assert_exact(got, eager.resize(x, size=(math.ceil(size), 11)))


def test_save_attrs_returns_the_input_size() -> None:
    image, size = eager.resize(noise(12, 7, 9, 3), size=(3, 3), save_attrs=True)
    assert image.shape == (3, 3, 3)
    assert_exact(size, np.array([7, 9], np.int32))


# Sizes that DALI 2.4 computes for an image of (height, width).
@pytest.mark.parametrize(
    ("source", "arguments", "size"),
    [
        ((28, 32), {"size": (38.97, 30.45), "max_size": (24.0, 23.2)}, (24, 23)),
        ((27, 4), {"resize_shorter": 21.13}, (143, 21)),
        ((6, 21), {"resize_longer": 30.65}, (9, 31)),
        ((12, 16), {"size": (32.18, 7.74), "mode": "not_larger"}, (6, 8)),
        ((36, 11), {"size": (16.95, 30.6)}, (17, 31)),
        ((9, 20), {"resize_x": 2.37}, (1, 2)),
        ((33, 11), {"size": (5.67, 48.08), "mode": "not_larger", "max_size": (13.25, 26.7)}, (6, 2)),
        ((38, 16), {"resize_x": 10.25, "mode": "not_smaller"}, (24, 10)),
        ((6, 25), {"resize_longer": 32.23, "max_size": (10.13, 32.02)}, (8, 32)),
        ((14, 4), {"resize_shorter": 49.2, "max_size": (13.24, 12.62)}, (13, 4)),
        ((33, 39), {"resize_x": 1.18, "mode": "not_smaller"}, (1, 1)),
        ((6, 28), {"resize_shorter": 32.41}, (32, 151)),
        ((33, 7), {"resize_x": 30.31, "mode": "not_smaller", "max_size": (19.25, 36.76)}, (19, 4)),
        ((14, 35), {"resize_x": 23.99, "max_size": (7.17, 15.16)}, (7, 15)),
        ((38, 11), {"resize_x": -45.19}, (156, 45)),
        ((9, 39), {"resize_shorter": 49.62, "max_size": (14.22, 39.56)}, (9, 40)),
        ((8, 38), {"size": (17.84, 1.48), "mode": "not_larger"}, (1, 1)),
        ((20, 35), {"resize_x": 20, "mode": "stretch"}, (20, 20)),
    ],
)
def test_sizes_follow_dali(source: tuple[int, int], arguments: dict[str, Any], size: tuple[int, int]) -> None:
    assert eager.resize(np.zeros((*source, 1), np.uint8), **arguments).shape == (*size, 1)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, ArgumentError, "expected one of `size`"),
        ({"size": 5, "resize_x": 3}, ArgumentError, "expected one of `size`"),
        ({"size": (4, 5, 6)}, ArgumentError, "`size` with 1 or 2 elements, got 3"),
        ({"resize_z": 4, "resize_x": 3}, DataError, "expected a volume"),
        ({"size": 5, "roi_start": (0, 0)}, ArgumentError, "`roi_start` and `roi_end` together"),
        ({"size": 5, "mode": "larger"}, ArgumentError, "not_smaller"),
        ({"size": 5, "interp": 1}, ArgumentError, "did you mean `interp_type`"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        eager.resize(np.zeros((4, 4, 3), np.uint8), **arguments)


# ---- negative controls: faults that these comparisons must find ----


def test_premultiplied_alpha_is_detected() -> None:
    x = noise(13, 40, 40, 4)
    premultiplied = np.asarray(Image.fromarray(x).resize((20, 20), Image.Resampling.BILINEAR))
    with pytest.raises(AssertionError, match="elements differ"):
        assert_exact(eager.resize(x, size=(20, 20)), premultiplied)


def test_a_crop_instead_of_a_region_is_detected() -> None:
    x = noise(14, 40, 40, 3)
    cut = pillow(x[10:30, 10:30], (40, 40), "INTERP_CUBIC")
    got = eager.resize(x, size=(40, 40), interp_type="INTERP_CUBIC", **region((10, 10, 30, 30)))
    with pytest.raises(AssertionError, match="elements differ"):
        assert_exact(got, cut)


def test_one_wrong_value_is_detected() -> None:
    x = noise(15, 40, 40, 3)
    planted = pillow(x, (20, 20), "INTERP_LINEAR")
    planted[7, 3, 2] ^= 1
    with pytest.raises(AssertionError, match="1 of 1200 elements differ"):
        assert_exact(eager.resize(x, size=(20, 20)), planted)


def test_an_argument_per_row_has_one_number_or_one_for_each_axis():
    """A plan for the count in the first row holds for rows with another count: one number is for both axes."""
    images = [np.full((8, 8, 3), 7, np.uint8)] * 2
    equal = Batch([np.asarray([3, 5], np.float32), np.asarray([6, 2], np.float32)], DType.FLOAT)
    assert [x.shape for x in eager.resize(images, size=equal)] == [(3, 5, 3), (6, 2, 3)]
    for sizes, want in (([[3], [6, 2]], [(3, 3), (6, 2)]), ([[3, 5], [6]], [(3, 5), (6, 6)])):
        ragged = Batch([np.asarray(s, np.float32) for s in sizes], DType.FLOAT)
        assert [x.shape[:2] for x in eager.resize(images, size=ragged)] == want
    empty = Batch([np.asarray(s, np.float32) for s in ([6, 2], [])], DType.FLOAT)
    with pytest.raises(DataError, match="an argument has fewer elements than are used"):
        eager.resize(images, size=empty)
    with pytest.raises(ArgumentError, match="argument `range`: expected a value per row, got a batch without rows"):
        eager.random.uniform(range=Batch([], DType.FLOAT))
