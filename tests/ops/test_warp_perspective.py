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
        shown(x.astype(np.float32), matrix=MATRIX)
    with pytest.raises((ArgumentError, DataError), match="per channel"):
        shown(x, matrix=MATRIX, fill_value=(1, 2))
    with pytest.raises(ArgumentError, match="border_mode"):
        shown(x, matrix=MATRIX, border_mode="wrap")
