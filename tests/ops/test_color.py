# SPDX-License-Identifier: Apache-2.0
"""The colour operators against DALI's results, Pillow's gray, and mathematical properties."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from stoker import Pipeline, eager, fn, types
from stoker.contract.errors import ArgumentError, UnsupportedError
from stoker.testing.tolerances import assert_close, assert_exact

Array = npt.NDArray[Any]


def noise(*shape: int) -> Array:
    return np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)


# Results of DALI 2.4 on the CPU for three pixels.
@pytest.mark.parametrize(
    ("name", "arguments", "pixels", "want"),
    [
        ("color_twist", {"brightness": 1.33, "contrast": 0.51, "saturation": 0.73, "hue": -151.693},
         [[217, 163, 130], [69, 78, 10], [19, 4, 44]], [[190, 201, 240], [136, 121, 155], [86, 98, 81]]),
        ("color_twist", {"brightness": 1.382, "contrast": 0.991, "saturation": 1.769, "hue": -18.924},
         [[15, 31, 19], [151, 172, 255], [54, 240, 249]], [[16, 51, 8], [151, 255, 255], [0, 255, 217]]),
        ("hue", {"hue": 124.252},
         [[232, 107, 169], [96, 239, 30], [33, 109, 149]], [[114, 195, 23], [149, 147, 255], [150, 50, 144]]),
        ("hsv", {"hue": -52.022, "saturation": 0.438, "value": 1.225},
         [[194, 21, 5], [150, 92, 1], [240, 187, 82]], [[143, 44, 158], [161, 100, 128], [255, 212, 235]]),
        ("brightness", {"brightness": 0.892, "brightness_shift": -0.181},
         [[64, 11, 139], [114, 76, 89], [133, 183, 96]], [[11, 0, 78], [56, 22, 33], [72, 117, 39]]),
        ("brightness_contrast", {"brightness": 1.027, "brightness_shift": -0.104, "contrast": 1.17},
         [[4, 75, 20], [200, 233, 105], [119, 194, 125]], [[0, 41, 0], [191, 231, 77], [94, 184, 101]]),
    ],
)  # fmt: skip
def test_bytes_equal_dali(name: str, arguments: dict[str, float], pixels: Any, want: Any) -> None:
    got = getattr(eager, name)(np.array([pixels], np.uint8), **arguments)
    assert_exact(got, np.array([want], np.uint8))


@pytest.mark.parametrize(
    ("name", "arguments", "pixels", "want"),
    [
        ("saturation", {"saturation": 1.561}, [[233, 14, 159], [60, 40, 139]],
         [[309.86893, -31.987959, 194.18533], [61.544563, 30.325823, 184.7624]]),
        ("contrast", {"contrast": 0.69}, [[198, 120, 48], [57, 87, 136]],
         [[176.29999, 122.48, 72.8], [79.01, 99.71, 133.51999]]),
        ("color_twist", {"brightness": 0.74, "contrast": 1.082, "saturation": 0.319, "hue": -50.98},
         [[168, 25, 238], [32, 218, 198]], [[61.905262, 58.16351, 116.448284], [95.62323, 140.6197, 81.5047]]),
    ],
)  # fmt: skip
def test_floats_equal_dali_within_rounding(name: str, arguments: dict[str, float], pixels: Any, want: Any) -> None:
    got = getattr(eager, name)(np.array([pixels], np.uint8), dtype="float32", **arguments)
    assert_close(got, np.array([want], np.float32), atol=1e-4, bound=1e-4)


def test_the_tolerance_rejects_another_matrix() -> None:
    x = noise(20, 20, 3)
    got = eager.saturation(x, saturation=0.5, dtype="float32")
    luma = (x @ np.array([0.299, 0.587, 0.114]))[..., None]  # exact YIQ, not DALI's rounded one
    with pytest.raises(AssertionError):
        assert_close(got, (0.5 * x + 0.5 * luma).astype(np.float32), atol=1e-4, bound=1e-4)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float16", "int32"])
@pytest.mark.parametrize("name", ["color_twist", "hue", "saturation", "brightness", "contrast", "brightness_contrast"])
def test_defaults_change_nothing(name: str, dtype: str) -> None:
    x = noise(16, 16, 3).astype(dtype)
    assert_exact(getattr(eager, name)(x), x)
    assert_exact(eager.hsv(x, dtype=dtype), x)


def test_colour_order() -> None:
    x = noise(9, 9, 3)
    change = {"hue": 70.0, "saturation": 0.4, "contrast": 1.3}
    assert_exact(eager.color_twist(x[..., ::-1], image_type="BGR", **change), eager.color_twist(x, **change)[..., ::-1])


def test_a_twist_is_its_parts() -> None:
    x = noise(12, 12, 3).astype(np.float32)
    twisted = eager.color_twist(x, hue=40.0, saturation=1.5, contrast=0.7, brightness=1.2)
    parts = eager.hsv(x, hue=40.0, saturation=1.5, dtype="float32")
    parts = eager.brightness(eager.contrast(parts, contrast=0.7, contrast_center=0.5), brightness=1.2)
    assert_close(twisted, parts, atol=2e-4, bound=1e-3)


def test_numbers_per_row() -> None:
    x = noise(9, 9, 3)
    pipe = Pipeline(batch_size=6, num_threads=2, seed=4)
    with pipe:
        hue, gain = fn.random.uniform(range=[-180, 180]), fn.random.uniform(range=[0.5, 1.5])
        image = types.Constant(x, layout="HWC")
        pipe.set_outputs(fn.color_twist(image, hue=hue, contrast=gain), hue, gain)
    with pipe:
        images, hues, gains = pipe.run()
    assert len({float(h) for h in hues}) == 6
    for image, hue, gain in zip(images, hues, gains, strict=True):
        assert_exact(np.array(image), eager.color_twist(x, hue=float(hue), contrast=float(gain)))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32"])
def test_a_neutral_hue_costs_nothing_and_changes_nothing(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.random.default_rng(2).integers(info.min, info.max, (40, 40, 3), dtype=dtype, endpoint=True)
    for contrast, brightness in ((0.3, 1.7), (-1.5, 0.9), (1.0, -1.0), (7.25, 1.3)):
        pipe = Pipeline(batch_size=1, num_threads=1, seed=1, exec_async=False)
        with pipe:
            image = types.Constant(x, layout="HWC")
            change = {"contrast": contrast, "brightness": brightness}
            plain = fn.color_twist(image, **change)
            mixed = fn.color_twist(image, hue=fn.copy(np.float32(0)), saturation=fn.copy(np.float32(1)), **change)
            pipe.set_outputs(plain, mixed)
        with pipe:
            first, second = pipe.run()
        assert_exact(np.array(first[0]), np.array(second[0]), f"contrast {contrast}, brightness {brightness}")


# ---- colour spaces ----


def test_grey_equals_pillow() -> None:
    x = noise(64, 64, 3)
    want = np.asarray(Image.fromarray(x).convert("L"))[..., None]
    assert_exact(eager.color_space_conversion(x, image_type=types.RGB, output_type=types.GRAY), want)
    assert_exact(eager.color_space_conversion(x[..., ::-1], image_type=types.BGR, output_type=types.GRAY), want)


def test_ycbcr_equals_dali() -> None:
    pixels = np.array([[[95, 130, 194], [217, 207, 235], [15, 163, 33], [215, 217, 130], [248, 189, 16]]], np.uint8)
    to = [[[125, 161, 108], [199, 139, 130], [105, 93, 72], [193, 90, 133], [177, 43, 166]]]
    rgb = [[[197, 38, 96], [255, 116, 255], [0, 62, 69], [235, 195, 255], [91, 255, 255]]]
    assert eager.color_space_conversion(pixels, image_type=types.RGB, output_type=types.YCbCr).tolist() == to
    assert eager.color_space_conversion(pixels, image_type=types.YCbCr, output_type=types.RGB).tolist() == rgb


def test_round_trip_of_colour_spaces() -> None:
    x = noise(40, 40, 3)
    between = eager.color_space_conversion(x, image_type=types.RGB, output_type=types.YCbCr)
    assert between[..., 0].min() >= 16
    assert between[..., 0].max() <= 235
    again = eager.color_space_conversion(between, image_type=types.YCbCr, output_type=types.RGB)
    assert_close(again, x, atol=2, bound=3, share=0.99)


def test_grey_spreads_to_all_channels() -> None:
    x = noise(5, 6, 1)
    got = eager.color_space_conversion(x, image_type=types.GRAY, output_type=types.BGR)
    assert_exact(got, np.repeat(x, 3, -1))
    got = eager.color_space_conversion(
        types.Constant(x[..., 0][None], layout="CHW"), image_type="GRAY", output_type="RGB"
    )
    assert_exact(got, np.repeat(x[..., 0][None], 3, 0))


def test_other_types_and_channels_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="expected uint8, got float32"):
        eager.color_space_conversion(noise(4, 4, 3).astype(np.float32), image_type=types.RGB, output_type=types.GRAY)
    with pytest.raises(ArgumentError, match="expected 3 channels of a RGB image, got 4"):
        eager.color_space_conversion(noise(4, 4, 4), image_type=types.RGB, output_type=types.GRAY)
    with pytest.raises(ArgumentError, match="expected one of"):
        eager.color_twist(noise(4, 4, 3), image_type=types.GRAY)
