# SPDX-License-Identifier: Apache-2.0
"""Pictures of arrays: each element type, order of axes and kind of values gives the expected colours."""

from __future__ import annotations

import numpy as np
import pytest

from stoker.display.pixels import describe_values, draw_rows

RAMP = np.arange(256, dtype=np.uint8).reshape(16, 16)
RGB = np.stack([RAMP, RAMP.T, RAMP[::-1]], axis=2)


def pixels(rows: list[np.ndarray], layout: str = "") -> np.ndarray:
    drawn = draw_rows(rows, layout, 64)
    assert drawn is not None and drawn.images[0] is not None
    return np.asarray(drawn.images[0])


def scale(rows: list[np.ndarray], layout: str = "") -> str:
    drawn = draw_rows(rows, layout, 64)
    assert drawn is not None
    return str(drawn.scale)


@pytest.mark.parametrize(("array", "layout"), [
    (RGB, "HWC"), (RGB.transpose(2, 0, 1), "CHW"), (RGB.transpose(1, 0, 2), "WHC"), (RGB, ""),
    (RGB.transpose(2, 0, 1), ""), (RGB[:, :, None, :], "HWDC"),
    (RGB.astype(np.int64), "HWC"), (RGB.astype(np.float32), "HWC"), (RGB.astype(np.uint16), "HWC"),
    (RGB[:, ::-1][:, ::-1], "HWC"), (np.dstack([RGB, RAMP]), "HWC"),
])  # fmt: skip
def test_the_same_picture_in_any_layout_and_type(array: np.ndarray, layout: str) -> None:
    assert (pixels([array], layout) == RGB).all()


@pytest.mark.parametrize("array", [RAMP, RAMP[:, :, None], np.stack([RAMP, 0 * RAMP], axis=2)])
def test_one_channel_is_gray(array: np.ndarray) -> None:
    assert (pixels([array], "HWC" if array.ndim == 3 else "HW") == RAMP[:, :, None]).all()


def test_floats_from_zero_to_one() -> None:
    assert (pixels([(RGB / 255).astype(np.float32)], "HWC") == RGB).all()
    assert scale([np.full((8, 8), 0.25)], "HW") == "black 0, white 1"


def test_normalized_floats_have_one_scale_for_all_rows() -> None:
    rows = [np.full((8, 8, 3), -2.0, np.float32), np.full((8, 8, 3), 2.0, np.float16), np.zeros((8, 8, 3))]
    assert scale(rows) == "black -2, white 2"
    drawn = draw_rows(rows, "HWC", 64)
    assert drawn is not None and [np.asarray(i).max() for i in drawn.images if i] == [0, 255, 128]


def test_wide_integers_are_scaled() -> None:
    assert scale([np.array([[0, 4095]], np.uint16)], "HW") == "black 0, white 4095"
    assert scale([np.array([[-5, 70000]], np.int32)], "HW") == "black -5, white 7e+04"
    assert pixels([np.array([[0, 65535]], np.uint16)], "HW")[0, :, 0].tolist() == [0, 255]


def test_masks_have_a_colour_per_class() -> None:
    mask = np.array([[0, 1, 2], [2, 21, 255]], np.uint8)
    assert scale([mask], "HW") == "a colour per class"
    colours = pixels([mask], "HW")
    assert colours[0, 0].tolist() == [0, 0, 0] and colours[1, 2].tolist() == [255, 255, 255]
    assert len({tuple(c) for c in colours.reshape(-1, 3)}) == 5 and (colours[0, 2] == colours[1, 0]).all()
    large = np.repeat(np.repeat(mask, 90, 0), 90, 1)  # a smaller picture has no mixed colours
    assert {tuple(c) for c in pixels([large], "HW").reshape(-1, 3)} == {tuple(c) for c in colours.reshape(-1, 3)}


def test_black_and_white_is_no_mask() -> None:
    assert scale([np.array([[0, 255]], np.uint8)], "HW") == "black 0, white 255"
    assert scale([np.array([[False, True]])], "HW") == "black 0, white 1"
    assert pixels([np.array([[False, True]])], "HW")[0, :, 0].tolist() == [0, 255]


def test_values_that_are_not_finite_are_magenta() -> None:
    row = np.array([[0.0, np.nan], [np.inf, 1.0]], np.float32)
    assert pixels([row], "HW").reshape(4, 3).tolist() == [[0, 0, 0], [255, 0, 255], [255, 0, 255], [255, 255, 255]]
    assert pixels([np.full((2, 2), np.nan)], "HW").reshape(4, 3).tolist() == [[255, 0, 255]] * 4


def test_constant_floats_and_empty_rows() -> None:
    assert pixels([np.full((2, 2), -3.0)], "HW").ravel()[0] == 128
    drawn = draw_rows([np.zeros((0, 4, 3), np.uint8), RGB], "HWC", 64)
    assert drawn is not None and drawn.images[0] is None and drawn.images[1] is not None


def test_large_images_become_thumbnails() -> None:
    drawn = draw_rows([np.zeros((3000, 1000, 3), np.uint8)], "HWC", 64)
    assert drawn is not None and drawn.images[0] is not None
    assert drawn.images[0].height == 64 and 20 <= drawn.images[0].width <= 22


@pytest.mark.parametrize(("array", "layout"), [
    (np.zeros(4), ""), (np.zeros((100, 4)), ""), (np.zeros((2, 3)), ""), (np.zeros((9, 9)), "NC"), (np.zeros(()), ""),
])  # fmt: skip
def test_other_arrays_are_no_pictures(array: np.ndarray, layout: str) -> None:
    assert draw_rows([array], layout, 64) is None


@pytest.mark.parametrize(("array", "text"), [
    (np.array(7), "7"), (np.array([7], np.int32), "7"), (np.array([0.5, 2], np.float32), "[0.5, 2]"),
    (np.array([True]), "True"), (np.frombuffer("一只猫".encode(), np.uint8), "一只猫"),
    (np.array([0, 1, 0], np.uint8), "[0, 1, 0]"),
    (np.frombuffer(b"\xff\xd8\xff" + bytes(97), np.uint8), "encoded image, 100 bytes"),
    (np.array([[1.0, 2.0], [3.0, np.nan]]), "float64 (2, 2), 1 to 3, mean 2, 1 not finite"),
    (np.zeros((0, 4), np.float32), "float32 (0, 4), empty"),
    (np.full((2, 2), np.nan, np.float16), "float16 (2, 2), no finite value"),
])  # fmt: skip
def test_values_in_words(array: np.ndarray, text: str) -> None:
    assert describe_values(array) == text


@pytest.mark.parametrize("layout", ["FHWC", "FCHW", "CFHW", "HWCF"])
def test_a_clip_is_a_strip_of_frames(layout: str) -> None:
    clip = np.stack([RGB // 16 + 24 * k for k in range(11)]).astype(np.uint8)
    moved = clip.transpose(["FHWC".index(axis) for axis in layout])
    drawn = draw_rows([moved, np.take(moved, range(3), layout.index("F"))], layout, 64)
    assert drawn is not None and drawn.remark == "6 of 3 to 11 frames per clip"
    strip, short = (np.asarray(image) for image in drawn.images)
    assert strip.shape == (16, 6 * 16 + 5 * 4, 3) and short.shape == (16, 3 * 16 + 2 * 4, 3)
    for place, number in enumerate((0, 2, 4, 6, 8, 10)):
        assert (strip[:, 20 * place : 20 * place + 16] == clip[number]).all()
    for number in range(3):
        assert (short[:, 20 * number : 20 * number + 16] == clip[number]).all()


def test_clips_without_frames_are_empty() -> None:
    drawn = draw_rows([np.zeros((0, 8, 8, 3), np.uint8), np.zeros((1, 8, 8, 3), np.uint8)], "FHWC", 64)
    assert drawn is not None and not drawn.remark
    assert drawn.images[0] is None and drawn.images[1] is not None and drawn.images[1].size == (8, 8)


def test_frames_of_a_strip_are_smaller_than_pictures() -> None:
    drawn = draw_rows([np.zeros((2, 300, 600, 3), np.uint8)], "FHWC", 96)
    assert drawn is not None and drawn.images[0] is not None and drawn.images[0].size == (64 + 4 + 64, 32)
