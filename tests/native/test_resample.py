# SPDX-License-Identifier: Apache-2.0
"""Resampling compared with Pillow, bit for bit, on every instruction set of this machine."""

import math
import subprocess
import sys

import numpy as np
import PIL
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from strided import strided_forms

from stoker.native import _native as native

NEAREST, LINEAR, CUBIC, LANCZOS, TRIANGULAR, GAUSSIAN, BOX, HAMMING = range(8)
PILLOW = {
    NEAREST: Image.Resampling.NEAREST,
    LINEAR: Image.Resampling.BILINEAR,
    CUBIC: Image.Resampling.BICUBIC,
    LANCZOS: Image.Resampling.LANCZOS,
    BOX: Image.Resampling.BOX,
    HAMMING: Image.Resampling.HAMMING,
}
SUPPORT = {LINEAR: 1.0, CUBIC: 2.0, LANCZOS: 3.0, TRIANGULAR: 1.0, GAUSSIAN: 1.0, BOX: 0.5, HAMMING: 1.0}
# Pillow 13 runs the vertical pass first if the height shrinks much more than the width.
OLD_PILLOW = int(PIL.__version__.split(".")[0]) < 13
LEVELS = native.instruction_sets()


@pytest.fixture(autouse=True)
def restore_isa():
    before = native.get_isa()
    yield
    native.set_isa(before)


def resample(array, height, width, box, method, method_h=None, antialias=True, horizontal_first=OLD_PILLOW):
    """Return the result, after checking that it is the same for every instruction set."""
    results = []
    for level in LEVELS:
        native.set_isa(level)
        results.append(
            native.resample(
                array, height, width, box, method, method if method_h is None else method_h, antialias, horizontal_first
            )
        )
    for level, other in zip(LEVELS[1:], results[1:], strict=True):
        assert_same(other, results[0], level)
    return results[0]


def assert_same(got, want, context=""):
    assert got.dtype == want.dtype and got.shape == want.shape, (context, got.dtype, got.shape, want.dtype, want.shape)
    same = np.ascontiguousarray(got).view(np.uint8) == np.ascontiguousarray(want).view(np.uint8)
    if not same.all():
        where = np.argwhere(got != want)
        spot = tuple(where[0]) if len(where) else None
        pytest.fail(f"{context}: {len(where)} elements differ, first at {spot}: {got[spot]} instead of {want[spot]}")


def pillow(array, height, width, box, method):
    planes = [
        np.asarray(Image.fromarray(np.ascontiguousarray(array[:, :, c])).resize((width, height), PILLOW[method], box))
        for c in range(array.shape[2])
    ]
    return np.stack(planes, axis=2)


def image(seed, height, width, channels, dtype=np.uint8):
    rng = np.random.default_rng(seed)
    shape = (height, width, channels)
    if dtype == np.float32:
        return rng.normal(size=shape).astype(np.float32)
    info = np.iinfo(dtype)
    scale = 8 if info.bits == 32 else 1  # leave room for the overshoot, for which Pillow's mode I is undefined
    return rng.integers(info.min // scale, info.max // scale, shape, dtype=np.int64, endpoint=True).astype(dtype)


@st.composite
def tasks(draw):
    height, width = draw(st.integers(1, 70)), draw(st.integers(1, 70))
    out_h = draw(st.one_of(st.just(height), st.integers(1, 90)))
    out_w = draw(st.one_of(st.just(width), st.integers(1, 90)))

    def side(size, out):
        kind = draw(st.sampled_from(["whole", "pixels", "fraction", "same"]))
        if kind == "whole":
            return 0.0, float(size)
        if kind == "same" and out <= size:
            low = draw(st.integers(0, size - out))
            return float(low), float(low + out)
        number = st.integers(0, size) if kind == "pixels" else st.floats(0, size, width=32)
        low, high = sorted((draw(number), draw(number)))
        return float(low), float(high)

    y0, y1 = side(height, out_h)
    x0, x1 = side(width, out_w)
    return height, width, out_h, out_w, (x0, y0, x1, y1)


@settings(max_examples=400, deadline=None)
@given(task=tasks(), method=st.sampled_from(sorted(PILLOW)), channels=st.integers(1, 6), seed=st.integers(0, 99))
def test_bytes_equal_pillow(task, method, channels, seed):
    height, width, out_h, out_w, box = task
    a = image(seed, height, width, channels)
    assert_same(resample(a, out_h, out_w, box, method), pillow(a, out_h, out_w, box, method), "Pillow")


@settings(max_examples=150, deadline=None)
@given(
    task=tasks(),
    method=st.sampled_from(sorted(PILLOW)),
    channels=st.sampled_from([1, 3, 4, 5]),
    dtype=st.sampled_from([np.float32, np.int32]),
    seed=st.integers(0, 99),
)
def test_float_and_int32_equal_pillow(task, method, channels, dtype, seed):
    height, width, out_h, out_w, box = task
    a = image(seed, height, width, channels, dtype)
    assert_same(resample(a, out_h, out_w, box, method), pillow(a, out_h, out_w, box, method), "Pillow")


@pytest.mark.parametrize("method", sorted(PILLOW))
@pytest.mark.parametrize(
    "size",
    [(375, 500, 224, 224), (500, 375, 224, 224), (300, 64, 7, 64), (64, 300, 64, 7), (97, 101, 388, 33), (1, 1, 9, 7)],
)
def test_photo_sizes_equal_pillow(method, size):
    height, width, out_h, out_w = size
    a = image(7, height, width, 3)
    for box in [None, (0.0, 0.0, float(width), float(height)), (width * 0.21, height * 0.1, width * 0.8, height * 0.7)]:
        assert_same(resample(a, out_h, out_w, box, method), pillow(a, out_h, out_w, box, method), f"{box}")


@pytest.mark.parametrize("method", sorted(PILLOW))
@pytest.mark.parametrize("size", [(3, 4000, 2, 1), (4000, 3, 1, 2), (2, 3, 700, 5), (3, 2, 5, 700), (1, 2000, 1, 3)])
def test_extreme_scales_equal_pillow(method, size):
    height, width, out_h, out_w = size
    for channels in (1, 3, 4):
        a = image(channels, height, width, channels)
        assert_same(resample(a, out_h, out_w, None, method), pillow(a, out_h, out_w, None, method))


def test_every_width_of_a_row():
    """The last vector of a row and the outputs near its end have separate code paths."""
    for width in range(1, 80):
        for channels in (1, 2, 3, 4):
            a = image(width, 5, width, channels)
            out = width * 2 // 3 + 1
            assert_same(resample(a, 4, out, None, LINEAR), pillow(a, 4, out, None, LINEAR), f"{width} {channels}")


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("method", [LINEAR, CUBIC])
def test_widths_without_antialiasing(method, channels):
    """Outputs have two or four taps, near or far apart, up to the last byte of a row; bytes beyond have no effect."""
    random = np.random.default_rng(channels)
    for width in (1, 2, 3, 5, 17, 40, 101):
        for out in (1, 2, 7, 11, 16, 45, 224):
            whole = image(out, 9, width + 8, channels)
            view = whole[:, 4 : 4 + width]
            low, high = sorted(random.uniform(0, width, 2))
            for box in ((0, 0, width, 9), (low, 1.5, min(high + 0.5, width), 8), (width, 0, 0, 9)):
                box = tuple(map(float, box))
                got = resample(view, 6, out, box, method, antialias=False)
                assert_same(resample(view.copy(), 6, out, box, method, antialias=False), got)


def test_white_stays_white():
    for method in range(8):
        for size in ((13, 200), (200, 13)):
            a = np.full((*size, 3), 255, np.uint8)
            assert (resample(a, 50, 50, None, method) == 255).all()


def test_helper_detects_one_wrong_bit():
    a = image(1, 20, 20, 3)
    want = pillow(a, 10, 10, None, CUBIC)
    planted = want.copy()
    planted[9, 9, 2] ^= 1
    with pytest.raises(pytest.fail.Exception, match=r"1 elements differ, first at \(.*9.*9.*2.*\)"):
        assert_same(resample(a, 10, 10, None, CUBIC), planted)


def test_helper_detects_a_shift_of_one_pixel():
    a = image(2, 40, 40, 3)
    shifted = pillow(a, 20, 20, (1, 0, 40, 40), LINEAR)
    with pytest.raises(pytest.fail.Exception):
        assert_same(resample(a, 20, 20, (0, 0, 40, 40), LINEAR), shifted)


def test_orders_differ_where_they_should():
    a = image(3, 300, 40, 3)
    first, second = (resample(a, 20, 60, None, CUBIC, horizontal_first=flag) for flag in (False, True))
    assert (first != second).any()
    assert np.abs(first.astype(int) - second.astype(int)).max() <= 2
    by_hand = pillow(pillow(a, 300, 60, None, CUBIC), 20, 60, None, CUBIC)
    assert_same(second, by_hand)
    by_hand = pillow(pillow(a, 20, 40, None, CUBIC), 20, 60, None, CUBIC)
    assert_same(first, by_hand)


# ---------------------------------------------------------------- options that Pillow lacks


@settings(max_examples=120, deadline=None)
@given(
    task=tasks(),
    method=st.integers(0, 7),
    flips=st.tuples(st.booleans(), st.booleans()),
    dtype=st.sampled_from([np.uint8, np.uint16, np.float32]),
)
def test_mirrored_region_is_the_flipped_result(task, method, flips, dtype):
    height, width, out_h, out_w, (x0, y0, x1, y1) = task
    if x0 == x1 or y0 == y1:  # no mirror
        return
    a = image(11, height, width, 3, dtype)
    want = resample(a, out_h, out_w, (x0, y0, x1, y1), method)
    box = (x1 if flips[0] else x0, y1 if flips[1] else y0, x0 if flips[0] else x1, y0 if flips[1] else y1)
    got = resample(a, out_h, out_w, box, method)
    assert_same(got, want[:: -1 if flips[1] else 1, :: -1 if flips[0] else 1])


@settings(max_examples=120, deadline=None)
@given(task=tasks(), method=st.integers(0, 7), layout=st.integers(0, 5), channels=st.sampled_from([1, 2, 3, 4, 5]))
def test_strides_do_not_matter(task, method, layout, channels):
    height, width, out_h, out_w, box = task
    plain = image(5, height, width, channels)
    padded = np.zeros((height, width, channels + 2), np.uint8)
    padded[:, :, :channels] = plain
    strided = [*strided_forms(plain), padded[:, :, :channels]][layout]
    assert_same(resample(strided, out_h, out_w, box, method), resample(plain, out_h, out_w, box, method))


def test_crop_of_a_larger_image_reads_only_the_view():
    """The filter ends at the edge of the view, and does not read the pixels after it in memory."""
    big = image(8, 64, 64, 3)
    view = big[10:40, 20:51]
    assert_same(resample(view, 17, 12, None, LANCZOS), resample(view.copy(), 17, 12, None, LANCZOS))


def kernel(method, x):
    x = abs(x)
    if method in (LINEAR, TRIANGULAR):
        return max(0.0, 1 - x)
    if method == GAUSSIAN:
        return math.exp(-4 * x * x) if x < 1 else 0.0
    if method == BOX:
        return 1.0 if x <= 0.5 else 0.0
    if method == CUBIC:
        return 1.5 * x**3 - 2.5 * x**2 + 1 if x < 1 else (-0.5 * x**3 + 2.5 * x**2 - 4 * x + 2 if x < 2 else 0.0)
    if method == LANCZOS:
        return float(np.sinc(x) * np.sinc(x / 3)) if x < 3 else 0.0
    return float(np.sinc(x)) * (0.54 + 0.46 * math.cos(math.pi * x)) if x < 1 else 0.0


def axis_matrix(size, out, low, high, method, antialias):
    """Return the defining weights, without regard for speed or the last bit."""
    scale = (high - low) / out
    stretch = scale if (antialias or method == TRIANGULAR) and scale > 1 else 1.0
    m = np.zeros((out, size))
    for i in range(out):
        center = low + (i + 0.5) * scale
        for x in range(size):
            if abs(x + 0.5 - center) < (SUPPORT[method] * stretch + 0.5):
                m[i, x] = kernel(method, (x + 0.5 - center) / stretch)
        m[i] /= m[i].sum()
    return m


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("method", [LINEAR, CUBIC, LANCZOS, TRIANGULAR, GAUSSIAN, HAMMING])
def test_float_follows_the_definition(method, antialias):
    a = image(4, 61, 47, 2, np.float32)
    # No sample is exactly on the edge of a filter: the Gaussian is discontinuous there, and the last bit would decide.
    for out_h, out_w, box in [(22, 90, (0, 0, 47, 61)), (100, 11, (3.5, 1.25, 40.75, 60.5))]:
        rows = axis_matrix(61, out_h, box[1], box[3], method, antialias)
        columns = axis_matrix(47, out_w, box[0], box[2], method, antialias)
        want = np.einsum("yh,xw,hwc->yxc", rows, columns, a)
        got = resample(a, out_h, out_w, tuple(map(float, box)), method, antialias=antialias)
        np.testing.assert_allclose(got, want, atol=2e-6)


def test_filters_may_differ_by_axis():
    a = image(6, 31, 29, 3, np.float32)
    got = resample(a, 12, 50, None, CUBIC, GAUSSIAN)
    rows = axis_matrix(31, 12, 0, 31, CUBIC, True)
    columns = axis_matrix(29, 50, 0, 29, GAUSSIAN, True)
    np.testing.assert_allclose(got, np.einsum("yh,xw,hwc->yxc", rows, columns, a), atol=2e-6)
    a = image(6, 31, 29, 3)
    mixed = resample(a, 12, 29, None, NEAREST, LINEAR)
    assert_same(mixed, pillow(a, 12, 29, None, NEAREST))


@pytest.mark.parametrize("dtype", [np.uint16, np.int16])
def test_sixteen_bits_round_to_even_and_saturate(dtype):
    info = np.iinfo(dtype)
    steps = np.array([0, 1, 2, 3, 4, 5], dtype).reshape(1, 6, 1)
    assert resample(steps, 1, 3, None, BOX).ravel().tolist() == [0, 2, 4]  # 0.5, 2.5 and 4.5
    edge = np.array([info.min, info.min, info.max, info.max], dtype).reshape(1, 4, 1)
    over = resample(edge, 1, 64, None, LANCZOS)
    assert over.min() == info.min and over.max() == info.max
    assert (np.diff(over.ravel().astype(int))[20:43] >= 0).all()  # a wrap-around would jump


def test_int32_saturates():
    info = np.iinfo(np.int32)
    edge = np.array([info.min, info.min, info.max, info.max], np.int32).reshape(1, 4, 1)
    over = resample(edge, 1, 64, None, LANCZOS)
    assert over.min() == info.min and over.max() == info.max


def test_regions_outside_are_clamped():
    a = image(9, 20, 30, 3)
    assert_same(
        resample(a, 11, 12, (-5.0, -1e30, 99.0, 1e300), LINEAR), resample(a, 11, 12, (0.0, 0.0, 30.0, 20.0), LINEAR)
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("position", range(4))
def test_regions_that_are_not_finite_are_refused(bad, position):
    box = [0.0, 0.0, 4.0, 4.0]
    box[position] = bad
    with pytest.raises(ValueError):
        native.resample(image(0, 4, 4, 1), 2, 2, tuple(box), LINEAR, LINEAR, True)


def test_empty_sizes():
    a = image(0, 4, 5, 3)
    assert resample(a, 0, 7, None, LINEAR).shape == (0, 7, 3)
    assert resample(a, 7, 0, None, LINEAR).shape == (7, 0, 3)
    assert resample(a[:, :, :0], 7, 3, None, LINEAR).shape == (7, 3, 0)


def test_a_region_of_no_extent_shows_its_place():
    a = image(12, 9, 9, 1)
    for method in sorted(PILLOW):
        for at in (0.0, 3.25, 9.0):
            box = (at, at, at, at)
            assert_same(resample(a, 3, 4, box, method), pillow(a, 3, 4, box, method), f"{method} {at}")


def test_unsupported_types_are_refused():
    with pytest.raises(TypeError):
        native.resample(np.zeros((4, 4, 1), np.float64), 2, 2, None, LINEAR, LINEAR, True)
    with pytest.raises(ValueError):
        native.resample(np.zeros((4, 4, 1), np.uint8), 2, 2, None, 8, LINEAR, True)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("out_w", [112, 150, 333, 500, 777])
def test_two_taps_of_all_pairs_of_bytes(channels, out_w):
    """Differences of neighbours are all that two bytes can have, also where a weight is near a tie."""
    first, second = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8))
    flat = np.stack([first, second], axis=-1).reshape(-1)
    a = np.resize(flat, (len(flat) // 256 + 1, 256, channels))
    resample(a, len(a), out_w, None, LINEAR, antialias=False)
    resample(np.ascontiguousarray(a.transpose(1, 0, 2)), out_w, len(a), None, LINEAR, antialias=False)


@pytest.mark.parametrize("method", [LINEAR, CUBIC, TRIANGULAR, BOX])
@pytest.mark.parametrize("scale", [1.25, 1.5, 2, 3, 4, 7, 0.8, 0.6, 0.45, 0.2, 0.1])
def test_few_taps_of_extreme_images(method, scale):
    """Sums at both ends of the range, at the borders, where weights exceed 1, and at the end of a row of any length."""
    for width in (2, 3, 5, 8, 15, 16, 17, 31, 33, 66, 130):
        for channels in (1, 2, 3, 4):
            a = np.random.default_rng(width).integers(0, 2, (11, width, channels), np.uint8) * 255
            out = max(round(width * scale), 1)
            for box in (None, (0.0, 0.0, width * 0.7, 11.0), (width * 0.9, 11.0, 0.0, 0.0)):
                resample(a, max(round(11 * scale), 1), out, box, method, antialias=False)
                resample(a, 11, out, box, method, antialias=False)


GUARDED = """
import ctypes, mmap
import numpy as np
from stoker.native import _native as native

memory = mmap.mmap(-1, 2 * mmap.PAGESIZE)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + mmap.PAGESIZE), mmap.PAGESIZE, 0) == 0
page = np.frombuffer(memory, np.uint8)[: mmap.PAGESIZE]
for level in native.instruction_sets():
    native.set_isa(level)
    for channels in (1, 2, 3, 4):
        for width in (2, 3, 5, 8, 11, 16, 17, 22, 33, 64, 100):
            image = page[-3 * width * channels :].reshape(3, width, channels)
            for out_w in (width // 2, width * 3 // 4 + 1, width + 1, 2 * width, 4 * width):
                for method in range(8):
                    for box in (None, (float(width), 3.0, 0.0, 0.0)):
                        native.resample(image, 5, out_w, box, method, method, False, False)
print("read")
"""


def test_no_byte_after_the_last_row_is_read():
    """An image ends with a page after which memory cannot be read; its process would die."""
    done = subprocess.run([sys.executable, "-c", GUARDED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "read\n"), done.stderr
