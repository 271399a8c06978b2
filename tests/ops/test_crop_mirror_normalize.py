# SPDX-License-Identifier: Apache-2.0
"""``crop_mirror_normalize``: equal to its float32 formula bit for bit, and close to DALI."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from stoker import Pipeline, eager, fn, types
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError
from stoker.testing.tolerances import assert_exact

Array = npt.NDArray[Any]
MEAN = (0.485 * 255, 0.456 * 255, 0.406 * 255)
STD = (0.229 * 255, 0.224 * 255, 0.225 * 255)


def picture(channels: int = 3, dtype: str = "uint8") -> Array:
    rng = np.random.default_rng(channels)
    if dtype == "float32":
        return rng.uniform(-300, 300, (33, 47, channels)).astype(np.float32)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, (33, 47, channels), dtype=dtype, endpoint=True)


def formula(x: Array, mean: Any, std: Any, scale: float = 1.0, shift: float = 0.0) -> Array:
    """Compute step by step in float32 and round each operation."""
    inverse = np.float32(1) / np.asarray(std, np.float32)
    if scale != 1:
        inverse = inverse * np.float32(scale)
    out = (x.astype(np.float32) - np.asarray(mean, np.float32)) * inverse
    return out + np.float32(shift) if shift else out


def run(x: Array, **arguments: Any) -> Array:
    result: Array = eager.crop_mirror_normalize(x, **arguments)
    return result


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float32"])
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("mirror", [0, 1])
def test_float32_is_the_formula(dtype: str, layout: str, mirror: int) -> None:
    x = picture(dtype=dtype)
    want = formula(x[5:29, 12:40][:, :: -1 if mirror else 1], MEAN, STD)
    got = run(
        x, crop=(24, 28), crop_pos_y=5 / 9, crop_pos_x=12 / 19, mean=MEAN, std=STD, mirror=mirror, output_layout=layout
    )
    assert_exact(got, want if layout == "HWC" else want.transpose(2, 0, 1))


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_float16_is_the_correct_rounding_of_float32(dtype: str) -> None:
    x = picture(dtype=dtype)
    want = formula(x, MEAN, STD).transpose(2, 0, 1)
    assert_exact(run(x, mean=MEAN, std=STD, dtype=types.FLOAT16), want.astype(np.float16))


def test_all_byte_values_as_float16() -> None:
    x = np.tile(np.arange(256, dtype=np.uint8).reshape(16, 16, 1), 3)
    assert_exact(
        run(x, mean=MEAN, std=STD, dtype="float16"), formula(x, MEAN, STD).transpose(2, 0, 1).astype(np.float16)
    )


@pytest.mark.parametrize(("scale", "shift"), [(2.0, 0.0), (1.0, 0.5), (0.1, -7.25)])
def test_scale_and_shift(scale: float, shift: float) -> None:
    x = picture()
    got = run(x, mean=(9.5,), std=(3.25,), scale=scale, shift=shift)
    assert_exact(got, formula(x, 9.5, 3.25, scale, shift).transpose(2, 0, 1))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16"])
def test_integers_round_half_to_even_and_saturate(dtype: str) -> None:
    x = picture(dtype="int16")
    got = run(x, mean=(3.0,), std=(2.0,), dtype=dtype)
    info = np.iinfo(dtype)
    want = np.rint(formula(x, 3.0, 2.0)).clip(info.min, info.max).astype(dtype)
    assert_exact(got, want.transpose(2, 0, 1))


def in_a_pipeline(x: Array, **arguments: Any) -> Array:
    """Run in a pipeline, which knows the number of channels before the first image."""
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1, exec_async=False)
    with pipe:
        pipe.set_outputs(fn.crop_mirror_normalize(types.Constant(x, layout="HWC"), **arguments))
    with pipe:
        (batch,) = pipe.run()
        return np.array(batch[0])


@pytest.mark.parametrize(("channels", "padded"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8)])
def test_pad_output_goes_to_a_power_of_two(channels: int, padded: int) -> None:
    x = picture(channels)
    got = in_a_pipeline(x, mean=(3.0,), std=(2.0,), pad_output=True)
    want = np.zeros((padded, 33, 47), np.float32)
    want[:channels] = formula(x, 3.0, 2.0).transpose(2, 0, 1)
    assert_exact(got, want)


def test_video_keeps_its_frames_in_front() -> None:
    video = np.stack([picture(), picture()[::-1]])
    want = formula(video, MEAN, STD)
    assert_exact(run(video, mean=MEAN, std=STD), want.transpose(0, 3, 1, 2))
    assert_exact(run(video, mean=MEAN, std=STD, output_layout=""), want)


# Results of DALI 2.4 for a ramp: the window is centred and mirrored with its padding. Fill values are not normalized.
def test_padding_equals_dali() -> None:
    x = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    got = run(
        x,
        crop=(7, 9),
        mean=(1.0, 2, 3),
        std=(2.0, 2, 2),
        mirror=1,
        out_of_bounds_policy="pad",
        fill_values=(10.0, 20, 30),
    )
    want = np.full((3, 7, 9), np.float32([10, 20, 30]).reshape(3, 1, 1), np.float32)
    want[:, 1:6, 1:8] = formula(x, (1, 2, 3), 2)[:, ::-1].transpose(2, 0, 1)
    assert_exact(got, want)
    assert got[0, 1].tolist() == [10.0, 8.5, 7.0, 5.5, 4.0, 2.5, 1.0, -0.5, 10.0]


def test_padding_leaves_the_added_channel_zero() -> None:
    x = picture()
    got = run(x, crop=(40, 47), out_of_bounds_policy="pad", fill_values=9.0, pad_output=True)
    assert got.shape == (4, 40, 47)
    assert not got[3].any()
    assert (got[:3, :3] == 9).all()
    assert (got[:3, -3:] == 9).all()


def test_trimming_takes_the_available_pixels() -> None:
    x = picture()
    got = run(x, crop=(99, 20), out_of_bounds_policy="trim_to_shape")
    assert_exact(got, x[:, 14:34].astype(np.float32).transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"crop": (40, 10)}, "expected `crop_h` <= 33"),
        ({"crop": (4, 4), "crop_h": 3}, "expected `crop` or `crop_h`, got both"),
        ({"mean": (1.0, 2.0)}, "expected 1 or 3 elements"),
        ({"std": (0.0,)}, "expected `std` other than 0"),
        ({"output_layout": "CH"}, "axes of HWC"),
        ({"out_of_bounds_policy": "pad", "crop": (40, 9), "fill_values": (1.0, 2.0)}, "expected 1 or 3 elements"),
        ({"crop_pos_x": 1.5, "crop_w": 3}, "expected `crop_pos_x` in"),
        ({"means": 0.0}, "did you mean `mean`"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=text):
        run(picture(), **arguments)


def test_many_channels_take_one_mean_or_are_refused() -> None:
    x = picture(17)
    assert_exact(in_a_pipeline(x, mean=(3.0,), std=(2.0,)), formula(x, 3.0, 2.0).transpose(2, 0, 1))
    with pytest.raises(UnsupportedError, match="1 to 16 channels, got 17"):
        in_a_pipeline(x, mean=tuple(range(17)))


# ---- negative controls ----


def test_a_division_instead_of_the_reciprocal_is_detected() -> None:
    x = picture()
    divided = (x.astype(np.float32) - np.float32(MEAN)) / np.float32(STD)
    with pytest.raises(AssertionError, match="elements differ"):
        assert_exact(run(x, mean=MEAN, std=STD, output_layout="HWC"), divided)


def test_double_arithmetic_is_detected() -> None:
    x = picture()
    exact = ((x - np.asarray(MEAN)) / np.asarray(STD)).astype(np.float32)
    with pytest.raises(AssertionError, match="elements differ"):
        assert_exact(run(x, mean=MEAN, std=STD, output_layout="HWC"), exact)
