# SPDX-License-Identifier: Apache-2.0
"""Samplers whose output has another type than the image: values are rounded once, to the output's type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import eager

MATRIX = (0.9, 0.2, 1.5, -0.1, 1.1, -0.75)
CALLS = {
    "resize": {"size": (13, 22)},
    "resize down, cubic": {"size": (5, 7), "interp_type": "INTERP_CUBIC"},
    "rotate": {"angle": 30.0, "fill_value": 0.5},
    "warp_affine": {"matrix": MATRIX},
}


def picture(dtype: str = "uint8") -> Any:
    return np.random.default_rng(0).integers(0, 256, (11, 17, 3), np.uint8).astype(dtype)


def call(name: str, x: Any, **more: Any) -> Any:
    return getattr(eager, name.split(maxsplit=1)[0])(x, **CALLS[name], **more)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "int32"])
def test_floats_are_not_rounded_to_the_images_type(name: str, dtype: str) -> None:
    x = picture(dtype)
    out = np.asarray(call(name, x, dtype="float32"))
    assert np.array_equal(out, call(name, x.astype(np.float32)))
    assert (out % 1 != 0).mean() > 0.5
    half = np.asarray(call(name, x, dtype="float16"))
    assert np.array_equal(half, out.astype(np.float16))


def test_a_wider_type_keeps_what_the_images_type_would_clip() -> None:
    """A cubic filter overshoots at edges."""
    x = np.zeros((8, 8, 1), np.uint8)
    x[:, 4:] = 255
    out = np.asarray(eager.resize(x, size=(8, 24), interp_type="INTERP_CUBIC", dtype="int16"))
    assert out.min() < 0 and out.max() > 255
    assert np.array_equal(eager.resize(x, size=(8, 24), interp_type="INTERP_CUBIC"), out.clip(0, 255))


def test_large_integers_are_exact_where_nothing_is_mixed() -> None:
    x = np.full((4, 5, 1), (1 << 30) + 1, np.int32)
    for out in (
        eager.resize(x, size=(6, 3), dtype="int64"),
        eager.rotate(x, angle=0.0, dtype="int64"),
        eager.resize(x, size=(6, 3), interp_type="INTERP_NN", dtype="float64"),
    ):
        assert (np.asarray(out) == (1 << 30) + 1).all()


def test_a_fill_value_is_one_of_the_outputs_type() -> None:
    x = np.zeros((6, 6, 1), np.uint8)
    for value in (0.25, -3.0, 1000.0):
        for kind in ("INTERP_NN", "INTERP_LINEAR"):
            out = np.asarray(eager.rotate(x, angle=45.0, fill_value=value, interp_type=kind, dtype="float32"))
            assert set(np.unique(out)) == {0.0, value}
