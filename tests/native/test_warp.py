# SPDX-License-Identifier: Apache-2.0
"""Affine sampling compared with Pillow, bit for bit, and with its definition for cases that Pillow lacks."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from strided import strided_forms

from stoker.native import _native as native

LEVELS = native.instruction_sets()
IDENTITY = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)


@pytest.fixture(autouse=True)
def restore_isa():
    before = native.get_isa()
    yield
    native.set_isa(before)


def affine(array, matrix, height, width, linear, fill):
    results = []
    for level in LEVELS:
        native.set_isa(level)
        results.append(native.affine(array, matrix, height, width, linear, fill))
    for other in results[1:]:
        assert_same(other, results[0])
    return results[0]


def assert_same(got, want):
    assert got.dtype == want.dtype and got.shape == want.shape
    if not np.array_equal(got, want):
        where = np.argwhere(got != want)
        spot = tuple(where[0])
        pytest.fail(f"{len(where)} elements differ, first at {spot}: {got[spot]} instead of {want[spot]}")


def pillow(array, matrix, height, width, linear, fill):
    method = Image.Resampling.BILINEAR if linear else Image.Resampling.NEAREST
    planes = [
        np.asarray(
            Image.fromarray(np.ascontiguousarray(array[:, :, c])).transform(
                (width, height), Image.Transform.AFFINE, matrix, method, fillcolor=fill
            )
        )
        for c in range(array.shape[2])
    ]
    return np.stack(planes, axis=2)


def image(seed, height, width, channels, dtype=np.uint8):
    rng = np.random.default_rng(seed)
    if dtype == np.float32:
        return rng.normal(size=(height, width, channels)).astype(np.float32)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, (height, width, channels), dtype=dtype, endpoint=True)


def rotation(angle, scale, height, width, out_h, out_w, shift=(0.0, 0.0)):
    """Return the rotation about the centre of both images."""
    a, b = math.cos(angle) * scale, math.sin(angle) * scale
    return (
        a, -b, width / 2 - a * out_w / 2 + b * out_h / 2 + shift[0],
        b, a, height / 2 - b * out_w / 2 - a * out_h / 2 + shift[1],
    )  # fmt: skip


@st.composite
def tasks(draw):
    height, width, out_h, out_w = (draw(st.integers(1, 48)) for _ in range(4))
    kind = draw(st.sampled_from(["rotation", "any", "whole", "scale", "huge"]))
    if kind == "rotation":
        shift = draw(st.tuples(st.floats(-9, 9), st.floats(-9, 9)))
        matrix = rotation(draw(st.floats(-7, 7)), draw(st.floats(0.1, 4)), height, width, out_h, out_w, shift)
    elif kind == "whole":
        matrix = tuple(float(draw(st.integers(-3, 3))) for _ in range(6))
    elif kind == "scale":
        a, c, e, f = (draw(st.floats(-5, 5)) for _ in range(4))
        matrix = (a, 0.0, c * 5, 0.0, e, f * 5)
    else:
        bound = 8 if kind == "any" else 1e5
        matrix = tuple(draw(st.floats(-bound, bound)) for _ in range(6))
    return height, width, out_h, out_w, matrix


@settings(max_examples=500, deadline=None)
@given(task=tasks(), linear=st.booleans(), channels=st.sampled_from([1, 2, 3, 4, 5]), fill=st.integers(0, 255))
def test_bytes_equal_pillow(task, linear, channels, fill):
    height, width, out_h, out_w, matrix = task
    a = image(channels, height, width, channels)
    assert_same(affine(a, matrix, out_h, out_w, linear, fill), pillow(a, matrix, out_h, out_w, linear, fill))


@settings(max_examples=150, deadline=None)
@given(task=tasks(), linear=st.booleans(), channels=st.sampled_from([1, 3]))
def test_floats_equal_pillow(task, linear, channels):
    height, width, out_h, out_w, matrix = task
    a = image(channels, height, width, channels, np.float32)
    assert_same(affine(a, matrix, out_h, out_w, linear, 0.25), pillow(a, matrix, out_h, out_w, linear, 0.25))


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("degrees", [0, 1, 7.5, 45, 90, 180, 270, 359])
def test_rotations_of_a_photo_size_equal_pillow(linear, degrees):
    a = image(3, 211, 307, 3)
    matrix = rotation(math.radians(degrees), 1.0, 211, 307, 224, 224)
    assert_same(affine(a, matrix, 224, 224, linear, 7), pillow(a, matrix, 224, 224, linear, 7))


def test_helper_detects_one_wrong_value():
    a = image(1, 12, 12, 3)
    planted = pillow(a, IDENTITY, 12, 12, True, 0)
    assert_same(affine(a, IDENTITY, 12, 12, True, 0), planted)
    planted = planted.copy()
    planted[11, 0, 1] ^= 1
    with pytest.raises(pytest.fail.Exception, match="1 elements differ"):
        assert_same(affine(a, IDENTITY, 12, 12, True, 0), planted)


def test_helper_detects_a_shift_of_one_pixel():
    a = image(1, 12, 12, 3)
    shifted = pillow(a, (1.0, 0.0, 1.0, 0.0, 1.0, 0.0), 12, 12, False, 0)
    with pytest.raises(pytest.fail.Exception):
        assert_same(affine(a, IDENTITY, 12, 12, False, 0), shifted)


def definition(array, matrix, out_h, out_w, linear):
    """Sample by definition: coordinates clamped to the edge pixels, in double, without rounding."""
    height, width, _ = array.shape
    y, x = np.mgrid[0:out_h, 0:out_w] + 0.5
    sx = matrix[0] * x + matrix[1] * y + matrix[2]
    sy = matrix[3] * x + matrix[4] * y + matrix[5]
    a = array.astype(np.float64)
    if not linear:
        return a[np.clip(np.floor(sy), 0, height - 1).astype(int), np.clip(np.floor(sx), 0, width - 1).astype(int)]
    sx, sy = np.clip(sx, 0, width) - 0.5, np.clip(sy, 0, height) - 0.5
    x0, y0 = np.floor(sx), np.floor(sy)
    tx, ty = (sx - x0)[..., None], (sy - y0)[..., None]
    columns = [np.clip(x0 + d, 0, width - 1).astype(int) for d in (0, 1)]
    rows = [np.clip(y0 + d, 0, height - 1).astype(int) for d in (0, 1)]
    top = a[rows[0], columns[0]] * (1 - tx) + a[rows[0], columns[1]] * tx
    bottom = a[rows[1], columns[0]] * (1 - tx) + a[rows[1], columns[1]] * tx
    return top * (1 - ty) + bottom * ty


@settings(max_examples=150, deadline=None)
@given(task=tasks(), dtype=st.sampled_from([np.uint8, np.uint16, np.int16, np.int32, np.float32]))
def test_without_fill_the_edge_repeats(task, dtype):
    height, width, out_h, out_w, matrix = task
    a = image(2, height, width, 3, dtype)
    got = affine(a, matrix, out_h, out_w, True, None).astype(np.float64)
    want = definition(a, matrix, out_h, out_w, True)
    # Bytes are truncated. A coordinate that rounds differently changes a value by its slope times about 1e-10.
    tolerance = {np.uint8: 1.0, np.float32: 1e-5}.get(dtype, 0.5) + 1e-9 * float(np.abs(a.astype(np.float64)).max())
    assert np.abs(got - want).max() <= tolerance + 1e-6


@pytest.mark.parametrize("matrix", [(1.0, 0.25, -3.0, -0.25, 1.0, 5.0), (0.5, 0.0, -4.0, 0.0, 0.75, 2.0)])
def test_nearest_without_fill_repeats_the_edge(matrix):
    a = image(4, 20, 30, 3)
    got = affine(a, matrix, 40, 50, False, None)
    inside = affine(a, matrix, 40, 50, False, 0)
    marker = affine(np.ones_like(a), matrix, 40, 50, False, 0) == 1
    assert_same(np.where(marker, got, 0).astype(np.uint8), inside)
    np.testing.assert_array_equal(got, definition(a, matrix, 40, 50, False))


def test_integers_round_to_even_and_fill_saturates():
    a = np.array([0, 1, 2, 3], np.int16).reshape(1, 4, 1)
    halfway = (1.0, 0.0, 0.5, 0.0, 1.0, 0.0)
    assert affine(a, halfway, 1, 3, True, None).ravel().tolist() == [0, 2, 2]
    outside = (1.0, 0.0, 100.0, 0.0, 1.0, 0.0)
    assert affine(a, outside, 1, 2, True, 1e9).ravel().tolist() == [32767, 32767]
    assert affine(a, outside, 1, 2, False, -2.5).ravel().tolist() == [-2, -2]


@settings(max_examples=60, deadline=None)
@given(task=tasks(), linear=st.booleans(), layout=st.integers(0, 4), fill=st.sampled_from([None, 9.0]))
def test_strides_do_not_matter(task, linear, layout, fill):
    height, width, out_h, out_w, matrix = task
    plain = image(6, height, width, 3)
    strided = strided_forms(plain)[layout]
    assert_same(affine(strided, matrix, out_h, out_w, linear, fill), affine(plain, matrix, out_h, out_w, linear, fill))


@pytest.mark.parametrize("linear", [False, True])
def test_extremes(linear):
    one = np.full((1, 1, 3), 200, np.uint8)
    assert (affine(one, (1e-9, 0.0, 0.5, 0.0, 1e-9, 0.5), 5, 6, linear, 0) == 200).all()
    for huge in (1e300, -1e300):
        matrix = (huge, huge, huge, -huge, huge, huge)
        assert (affine(one, matrix, 3, 4, linear, 5) == 5).all()
        assert (affine(one, matrix, 3, 4, linear, None) == 200).all()
    assert (affine(one[:0], IDENTITY, 2, 2, linear, 4) == 4).all()
    assert affine(one, IDENTITY, 0, 4, linear, 0).shape == (0, 4, 3)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_matrices_that_are_not_finite_are_refused(bad):
    for i in range(6):
        matrix = list(IDENTITY)
        matrix[i] = bad
        with pytest.raises(ValueError):
            native.affine(image(0, 4, 4, 3), tuple(matrix), 4, 4, True, 0.0)
