# SPDX-License-Identifier: Apache-2.0
"""``experimental.warp_perspective``: tests beyond the generated ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import Pipeline, eager, fn
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError

MATRIX = (0.9, 0.2, 1.5, -0.1, 1.1, -0.75, 0.002, 0.004, 1.0)


def picture() -> Any:
    return np.random.default_rng(0).integers(0, 256, (23, 31, 3), np.uint8)


def shown(x: Any, **arguments: Any) -> Any:
    return eager.experimental.warp_perspective(x, **arguments)


@pytest.mark.parametrize("interpolation", ["NN", "LINEAR", "CUBIC"])
def test_it_equals_pillow(interpolation: str) -> None:
    x = picture()
    kinds = {"NN": Image.Resampling.NEAREST, "LINEAR": Image.Resampling.BILINEAR, "CUBIC": Image.Resampling.BICUBIC}
    image = Image.fromarray(x).transform(
        (40, 20), Image.Transform.PERSPECTIVE, MATRIX[:8], kinds[interpolation], fillcolor=(7, 8, 9)
    )
    result = shown(x, matrix=MATRIX, size=(20, 40), fill_value=(7, 8, 9), interp_type=f"INTERP_{interpolation}")
    np.testing.assert_array_equal(result, np.asarray(image))


def test_a_matrix_may_be_an_input_and_undoes_its_inverse() -> None:
    x = picture()
    matrix = np.array(MATRIX, np.float64).reshape(3, 3)
    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        data = fn.external_source(source=lambda: [x], layout="HWC")
        numbers = fn.external_source(source=lambda: [matrix])
        pipe.set_outputs(fn.experimental.warp_perspective(data, numbers, interp_type="INTERP_NN"))
    with pipe:
        result = np.asarray(pipe.run()[0][0])
    np.testing.assert_array_equal(result, shown(x, matrix=MATRIX, interp_type="INTERP_NN"))
    inverse = np.linalg.inv(matrix).reshape(-1)
    other = shown(x, matrix=inverse, inverse_map=False, interp_type="INTERP_NN")
    assert (result != other).mean() < 0.01, "except where rounding moves a pixel"
    doubled = shown(x, matrix=[2 * n for n in MATRIX], interp_type="INTERP_NN")
    np.testing.assert_array_equal(result, doubled)


def test_the_origin() -> None:
    x = picture()
    same = shown(x, matrix=(1, 0, 0, 0, 1, 0, 0, 0, 1), pixel_origin="center")
    np.testing.assert_array_equal(same, x)
    larger = (0.5, 0, 0, 0, 0.5, 0, 0, 0, 1)
    assert (shown(x, matrix=larger) != shown(x, matrix=larger, pixel_origin="center")).any()


def test_invalid_arguments_are_refused() -> None:
    x = picture()
    with pytest.raises(ArgumentError, match="nine numbers"):
        shown(x, matrix=(1.0, 0.0))
    with pytest.raises(ArgumentError, match="expected a matrix"):
        shown(x)
    with pytest.raises((ArgumentError, DataError), match="not zero"):
        shown(x, matrix=(1, 0, 0, 0, 1, 0, 0, 0, 0))
    with pytest.raises(UnsupportedError, match="Cast it first"):
        shown(x.astype(np.float64), matrix=MATRIX)
    with pytest.raises((ArgumentError, DataError), match="per channel"):
        shown(x, matrix=MATRIX, fill_value=(1, 2))
    with pytest.raises((ArgumentError, DataError), match="per channel"):
        shown(x.astype(np.float32), matrix=MATRIX, fill_value=(1, 2))
    with pytest.raises(ArgumentError, match="border_mode"):
        shown(x, matrix=MATRIX, border_mode="mirror")


SHIFTED = (1.0, 0.0, -40.25, 0.0, 1.0, -29.5, 0.0, 0.0, 1.0)  # more than the image's size


@pytest.mark.parametrize(
    ("border", "numpys"),
    [("replicate", "edge"), ("reflect", "symmetric"), ("reflect_101", "reflect"), ("wrap", "wrap")],
)
@pytest.mark.parametrize("kind", ["INTERP_NN", "INTERP_LINEAR", "INTERP_CUBIC"])
def test_borders_are_those_of_a_padded_image(border: str, numpys: str, kind: str) -> None:
    """The same shift inside of an image that NumPy has padded. uint8 too: only its constant border is Pillow's."""
    for dtype in ("uint8", "uint16", "int16", "float32"):
        x = picture().astype(dtype)
        wide = np.pad(x, ((60, 60), (60, 60), (0, 0)), mode=numpys)  # type: ignore[call-overload]
        inside = (1.0, 0.0, -40.25 + 60, 0.0, 1.0, -29.5 + 60, 0.0, 0.0, 1.0)
        want = shown(wide, matrix=inside, interp_type=kind, border_mode="replicate", size=(50, 60))
        assert np.array_equal(shown(x, matrix=SHIFTED, interp_type=kind, border_mode=border, size=(50, 60)), want)


def test_a_fill_value_for_each_channel_of_floats() -> None:
    x = picture().astype(np.float32)
    out = shown(x, matrix=SHIFTED, fill_value=(0.5, -1.0, 1e6))
    assert (np.asarray(out)[0, 0] == (0.5, -1.0, 1e6)).all()


def test_matrices_per_frame_of_floats() -> None:
    x = np.stack([picture().astype(np.float32)] * 2)
    matrices = np.array([MATRIX, SHIFTED], np.float32).reshape(2, 3, 3)

    pipe = Pipeline(batch_size=1, num_threads=1, seed=1)
    with pipe:
        video = fn.external_source(source=lambda: [x], layout="FHWC")
        pipe.set_outputs(
            fn.experimental.warp_perspective(video, matrix=fn.per_frame(matrices), border_mode="wrap"),
            fn.experimental.warp_perspective(video, matrix=fn.per_frame(matrices), fill_value=(1.0, 2.0, 3.0)),
        )
    with pipe:
        wrapped, filled = (np.asarray(out[0]) for out in pipe.run())
    for i, matrix in enumerate(matrices):
        assert np.array_equal(wrapped[i], shown(x[0], matrix=matrix, border_mode="wrap"))
        assert np.array_equal(filled[i], shown(x[0], matrix=matrix, fill_value=(1.0, 2.0, 3.0)))
