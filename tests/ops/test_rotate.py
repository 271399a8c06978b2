# SPDX-License-Identifier: Apache-2.0
"""``rotate`` against Pillow bit for bit, and its canvas against DALI's."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from stoker import Pipeline, eager, fn, types
from stoker.contract.errors import ArgumentError
from stoker.testing.tolerances import assert_exact

Array = npt.NDArray[Any]
KINDS = {"INTERP_NN": Image.Resampling.NEAREST, "INTERP_LINEAR": Image.Resampling.BILINEAR}
# Multiples of 15 degrees put sample points on pixel edges, where the last bit of the matrix matters.
ANGLES = [*range(-360, 405, 15), *np.random.default_rng(0).uniform(-720, 720, 30).round(3).tolist()]
SHAPES = ((13, 17), (16, 16), (1, 9), (31, 8))


def noise(height: int, width: int) -> Array:
    return np.random.default_rng(height * width).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.mark.parametrize("kind", KINDS)
def test_kept_size_equals_pillow(kind: str) -> None:
    for height, width in SHAPES:
        x = noise(height, width)
        for angle in ANGLES:
            want = np.asarray(Image.fromarray(x).rotate(angle, KINDS[kind], fillcolor=(7, 7, 7)))
            got = eager.rotate(x, angle=angle, keep_size=True, fill_value=7, interp_type=kind)
            assert_exact(got, want, f"{height}x{width} by {angle}")


@pytest.mark.parametrize("kind", KINDS)
def test_pillows_expanded_canvas_equals_pillow(kind: str) -> None:
    for height, width in SHAPES:
        x = noise(height, width)
        for angle in ANGLES:
            want = np.asarray(Image.fromarray(x).rotate(angle, KINDS[kind], expand=True, fillcolor=(0, 0, 0)))
            got = eager.rotate(x, angle=angle, size=want.shape[:2], fill_value=0, interp_type=kind)
            assert_exact(got, want, f"{height}x{width} by {angle}")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fill", [None, 3.0])
def test_right_angles_only_move_pixels(kind: str, fill: float | None) -> None:
    x = noise(6, 11)
    for quarters in range(-4, 9):
        for angle in (90 * quarters, np.float64(90 * quarters).reshape(())):
            assert_exact(eager.rotate(x, angle=angle, fill_value=fill, interp_type=kind), np.rot90(x, quarters))


def test_constants_and_nodes_give_the_same_bits() -> None:
    x = noise(13, 17)
    for angle in ANGLES:
        pipe = Pipeline(batch_size=1, num_threads=1, seed=1, exec_async=False)
        with pipe:
            image, node = types.Constant(x, layout="HWC"), fn.copy(types.Constant(np.float64(angle)))
            pipe.set_outputs(fn.rotate(image, angle=float(angle)), fn.rotate(image, angle=node))
        with pipe:
            constant, per_row = pipe.run()
        assert_exact(np.array(constant[0]), np.array(per_row[0]), f"by {angle}")


# Canvases that DALI 2.4 computes.
@pytest.mark.parametrize(
    ("angle", "source", "canvas"),
    [
        (90.0, (13, 17), (17, 13)), (270.0, (100, 64), (64, 100)), (-45.0, (16, 16), (24, 24)),
        (109.56935119628906, (1, 9), (9, 5)), (109.56935119628906, (100, 64), (94, 116)),
        (330.2044677734375, (100, 64), (120, 106)), (183.5972442626953, (31, 8), (33, 10)),
        (285.9234313964844, (31, 8), (18, 33)), (183.72434997558594, (13, 17), (15, 19)),
        (-160.23048400878906, (16, 16), (22, 22)), (-61.850223541259766, (31, 8), (22, 33)),
        (-300.5733642578125, (13, 17), (23, 21)), (150.75738525390625, (1, 9), (7, 9)),
        (-88.86286163330078, (13, 17), (19, 15)), (-86.70479583740234, (100, 64), (70, 104)), (360.0, (31, 8), (31, 8)),
    ],
)  # fmt: skip
def test_the_canvas_is_dalis(angle: float, source: tuple[int, int], canvas: tuple[int, int]) -> None:
    assert eager.rotate(np.zeros((*source, 1), np.uint8), angle=angle).shape == (*canvas, 1)


def test_without_a_fill_value_the_edge_repeats() -> None:
    x = np.full((9, 12, 3), 77, np.uint8)
    assert (eager.rotate(x, angle=33.0) == 77).all()
    assert (eager.rotate(x, angle=33.0, fill_value=0) == 0).any()


def test_counter_clockwise() -> None:
    x = np.zeros((9, 9, 1), np.uint8)
    x[4, 8] = 200  # right of the centre
    assert eager.rotate(x, angle=90)[0, 4, 0] == 200  # above the centre


def test_fractions_of_a_size_are_rounded() -> None:
    assert eager.rotate(noise(5, 5), angle=10, size=(6.5, 7.4)).shape == (7, 7, 3)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, ArgumentError, "expected the argument `angle`"),
        ({"angle": 3.0, "axis": (0, 0, 1)}, ArgumentError, "volumes"),
        ({"angle": 3.0, "keep_size": True, "size": (4, 4)}, ArgumentError, "got both"),
        ({"angle": 3.0, "size": (4, 4, 4)}, ArgumentError, "`size` as"),
        ({"angle": 3.0, "interp_type": "INTERP_LANCZOS3"}, ArgumentError, "expected one of"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        eager.rotate(noise(4, 5), **arguments)


def test_angles_per_frame_share_the_largest_canvas() -> None:
    frames, angles = np.stack([noise(12, 15)] * 3), (10.0, 40.0, 85.0)
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        video = types.Constant(frames, layout="FHWC")
        pipe.set_outputs(fn.rotate(video, angle=fn.per_frame(np.float32(angles)), fill_value=0.0))
    with pipe:
        out = np.asarray(pipe.run()[0][0])
    sizes = [np.asarray(eager.rotate(frames[0], angle=a)).shape[:2] for a in angles]
    size = (max(s[0] for s in sizes), max(s[1] for s in sizes))
    assert out.shape == (3, *size, 3) and size == (20, 21), "as DALI's"
    for frame, source, angle in zip(out, frames, angles, strict=True):
        assert_exact(frame, eager.rotate(source, angle=angle, size=size, fill_value=0.0))


def test_a_shift_by_a_hundredth_of_a_pixel_is_detected() -> None:
    x = noise(31, 31)
    angle = np.deg2rad(20)
    cos, sin = np.cos(angle), np.sin(angle)
    shift = 15.5 - cos * 15.5 + sin * 15.5 + 0.01, 15.5 - sin * 15.5 - cos * 15.5
    moved = Image.fromarray(x).transform(
        (31, 31), Image.Transform.AFFINE, (cos, -sin, shift[0], sin, cos, shift[1]), KINDS["INTERP_LINEAR"]
    )
    with pytest.raises(AssertionError, match="elements differ"):
        assert_exact(eager.rotate(x, angle=20, keep_size=True, fill_value=0), np.asarray(moved))
