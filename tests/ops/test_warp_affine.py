# SPDX-License-Identifier: Apache-2.0
"""``warp_affine`` and its matrix argument."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import Pipeline, eager, fn
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError

MATRIX = (0.9, 0.2, 1.5, -0.1, 1.1, -0.75)


def picture(seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (23, 31, 3), np.uint8)


@pytest.mark.parametrize("interpolation", ["NN", "LINEAR"])
def test_it_equals_pillow(interpolation: str) -> None:
    x = picture()
    kind = {"NN": Image.Resampling.NEAREST, "LINEAR": Image.Resampling.BILINEAR}[interpolation]
    expected = Image.fromarray(x).transform((40, 20), Image.Transform.AFFINE, MATRIX, kind, fillcolor=(7, 7, 7))
    result = eager.warp_affine(x, matrix=MATRIX, size=(20, 40), fill_value=7, interp_type=f"INTERP_{interpolation}")
    np.testing.assert_array_equal(result, np.asarray(expected))


def test_a_matrix_may_be_an_argument_an_input_or_inverted() -> None:
    x = picture()
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        data = fn.external_source(source=lambda: [x], layout="HWC")
        shear = fn.transforms.shear(shear=fn.random.uniform(range=(-0.2, 0.2), shape=[2]))
        combined = fn.transforms.combine(shear, fn.transforms.translation(offset=[2.0, 1.0]))
        pipe.set_outputs(
            fn.warp_affine(data, matrix=combined, fill_value=0),
            fn.warp_affine(data, combined, fill_value=0),
            fn.warp_affine(data, combined, fill_value=0, inverse_map=False),
            combined,
        )
    with pipe:
        first, second, third, matrix = (np.asarray(o[0]) for o in pipe.run())
    np.testing.assert_array_equal(first, second)
    expected = eager.warp_affine(x, matrix=matrix.reshape(-1), fill_value=0)
    np.testing.assert_array_equal(first, expected)
    inverse = np.linalg.inv(np.vstack([matrix.astype(np.float64), [0, 0, 1]]))[:2]
    other = eager.warp_affine(x, matrix=inverse.reshape(-1), fill_value=0)
    assert (third != other).mean() < 0.001, "but where a rounding of the inverse moves a pixel"
    assert (third != first).any()


def test_invalid_matrices_are_refused() -> None:
    x = picture()
    with pytest.raises(ArgumentError, match="six numbers"):
        eager.warp_affine(x, matrix=(1.0, 0.0, 0.0))
    with pytest.raises(ArgumentError, match="expected a matrix"):
        eager.warp_affine(x)
    with pytest.raises((ArgumentError, DataError), match="inverted"):
        eager.warp_affine(x, matrix=(1.0, 1.0, 0.0, 1.0, 1.0, 0.0), inverse_map=False)
    with pytest.raises((ArgumentError, DataError), match="finite"):
        eager.warp_affine(x, matrix=(float("nan"), 1.0, 0.0, 1.0, 1.0, 0.0))
    with pytest.raises(UnsupportedError, match="Cast it first"):
        eager.warp_affine(x.astype(np.int64), matrix=MATRIX)


def test_one_matrix_per_frame() -> None:
    video = np.stack([picture(i) for i in range(3)])
    matrices = np.array([(1, 0, i, 0, 1, -i) for i in range(3)], np.float32)
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        data = fn.external_source(source=lambda: [video], layout="FHWC")
        pipe.set_outputs(fn.warp_affine(data, matrix=fn.per_frame(matrices), fill_value=3))
    with pipe:
        frames = np.asarray(pipe.run()[0][0])
    for frame, source, matrix in zip(frames, video, matrices, strict=True):
        np.testing.assert_array_equal(frame, eager.warp_affine(source, matrix=matrix, fill_value=3))


def test_matrices_of_other_sizes_are_refused() -> None:
    with pytest.raises(ArgumentError, match="2 or 6 numbers"):
        eager.transforms.shear(shear=(1.0, 2.0, 3.0))
    with pytest.raises(ArgumentError, match="`shear` or `angles`"):
        eager.transforms.shear()
    with pytest.raises((ArgumentError, DataError), match="between -90 and 90"):
        eager.transforms.shear(angles=(90.0, 0.0))
    with pytest.raises((ArgumentError, DataError), match="2 x 3, got 3 x 4"):
        eager.transforms.combine(np.eye(2, 3, dtype=np.float32), np.eye(3, 4, dtype=np.float32))
    with pytest.raises((ArgumentError, DataError), match="flat"):
        eager.transforms.crop(from_start=(1.0, 1.0), from_end=(1.0, 2.0))


def test_transforms_per_frame() -> None:
    """Matrices of transforms with one value per frame, also joined with matrices for all frames."""
    video = np.stack([picture(i) for i in range(3)])
    angles, shifts = np.float32([10, 45, 80]), np.float32([[1, 2], [3, 4], [5, 6]])
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        data = fn.external_source(source=lambda: [video], layout="FHWC")
        of_run = fn.per_frame(fn.external_source(source=lambda: [shifts]))
        turned = fn.transforms.rotation(angle=fn.per_frame(angles), center=(15.0, 11.0))
        moved = fn.transforms.translation(turned, offset=of_run)
        both = fn.transforms.combine(moved, fn.transforms.scale(scale=(2.0, 3.0)))
        pipe.set_outputs(fn.warp_affine(data, matrix=both, fill_value=3), both)
    with pipe:
        frames, matrices = (np.asarray(out[0]) for out in pipe.run())
    assert matrices.shape == (3, 2, 3)
    for i, (frame, source) in enumerate(zip(frames, video, strict=True)):
        own = eager.transforms.rotation(angle=float(angles[i]), center=(15.0, 11.0))
        own = eager.transforms.translation(own, offset=shifts[i])
        own = eager.transforms.combine(own, eager.transforms.scale(scale=(2.0, 3.0)))
        np.testing.assert_array_equal(matrices[i], own)
        np.testing.assert_array_equal(frame, eager.warp_affine(source, matrix=matrices[i].reshape(-1), fill_value=3))


def test_transforms_of_different_videos_are_refused() -> None:
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        angles, shifts = np.float32([10, 45]), np.float32([[1, 2]] * 3)
        turned = fn.transforms.rotation(angle=fn.per_frame(angles))
        pipe.set_outputs(fn.transforms.translation(turned, offset=fn.per_frame(shifts)))
    with pytest.raises((ArgumentError, DataError), match="frames in all arguments"), pipe:
        pipe.run()


def test_a_matrix_is_given_once() -> None:
    image, matrix = np.zeros((3, 4, 3), np.uint8), np.eye(2, 3, dtype=np.float32)
    with pytest.raises(ArgumentError, match="as second input or as `matrix`, got neither"):
        eager.warp_affine(image)
    with pytest.raises(ArgumentError, match="as second input or as `matrix`, got both"):
        eager.warp_affine(image, matrix, matrix=(1, 0, 0, 0, 1, 0))
