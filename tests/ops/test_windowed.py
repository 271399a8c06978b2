# SPDX-License-Identifier: Apache-2.0
"""Dilation, erosion, medians and the Laplacian: laws, types, layouts, arguments per row, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, Pipeline, UnsupportedError, eager, fn
from stoker.native import _native

TYPES = ("bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "float16", "float32")
dilate, erode, median = eager.experimental.dilate, eager.experimental.erode, eager.experimental.median_blur


def picture(shape: tuple[int, ...] = (19, 23, 3), dtype: str = "uint8") -> Any:
    rng = np.random.default_rng(1)
    if dtype == "bool":
        return rng.random(shape) < 0.4
    if dtype.startswith("float"):
        return rng.normal(0, 50, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def on_every_instruction_set(call: Any) -> Any:
    """Return the results, which must be equal."""
    before, results = _native.get_isa(), []
    try:
        for isa in _native.instruction_sets():
            _native.set_isa(isa)
            results.append(np.asarray(call()))
    finally:
        _native.set_isa(before)
    for found in results[1:]:
        assert found.tobytes() == results[0].tobytes()
    return results[0]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 3, 1), (90, 130, 3), (7, 41, 4)])
def test_every_instruction_set_gives_the_same_bits(dtype: str, shape: tuple[int, ...]) -> None:
    x = picture(shape, dtype)
    for size in ((3, 3), (2, 5), (40, 1), (1, 9)):
        on_every_instruction_set(lambda size=size: dilate(x, mask_size=size, border_mode="reflect"))
        on_every_instruction_set(lambda size=size: erode(x, mask_size=size, border_mode="wrap"))
    for odd in ((3, 3), (5, 5), (3, 7), (17, 19)):
        on_every_instruction_set(lambda odd=odd: median(x, window_size=odd))
    if dtype not in ("bool", "uint32", "int32"):
        on_every_instruction_set(lambda: eager.laplacian(x, window_size=(5, 3), smoothing_size=(3, 9), scale=0.37))


@pytest.mark.parametrize("dtype", TYPES)
def test_extremes_and_medians_are_of_the_window(dtype: str) -> None:
    x = picture((9, 11, 2), dtype)
    padded = np.pad(x, [(2, 2), (1, 1), (0, 0)], mode="edge")
    seen = np.lib.stride_tricks.sliding_window_view(padded, (5, 3), (0, 1)).reshape(9, 11, 2, -1)
    np.testing.assert_array_equal(dilate(x, mask_size=(3, 5), border_mode="replicate"), seen.max(-1))
    np.testing.assert_array_equal(erode(x, mask_size=(3, 5), border_mode="replicate"), seen.min(-1))
    np.testing.assert_array_equal(median(x, window_size=(3, 5)), np.sort(seen, -1)[..., 7])


def test_a_median_of_a_large_window_of_words() -> None:
    """The window has more pixels than a counter of 16 bits."""
    x = picture((4, 5, 1), "uint16")
    at = (
        np.clip(np.arange(-127, 128)[:, None] + np.arange(4), 0, 3),
        np.clip(np.arange(-127, 128)[:, None] + np.arange(5), 0, 4),
    )
    for y, line in enumerate(np.asarray(median(x, window_size=255))[..., 0]):
        for k, value in enumerate(line):
            assert value == np.median(x[np.ix_(at[0][:, y], at[1][:, k])])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool"])
@pytest.mark.parametrize(
    ("shape", "window"),
    [((40, 50, 3), (17, 19)), ((9, 70, 1), (21, 15)), ((3, 4, 2), (33, 35)), ((30, 33, 4), (1, 255))],
)
def test_medians_of_large_windows_of_bytes(dtype: str, shape: tuple[int, ...], window: tuple[int, int]) -> None:
    """Histograms of columns give the medians, also where they stand still and where the window exceeds the image."""
    x = picture(shape, dtype)
    if dtype == "uint8":
        x[: shape[0] // 2] = np.where(x[: shape[0] // 2] < 128, 0, 255)
    width, height = window
    padded = np.pad(x, [(height // 2,) * 2, (width // 2,) * 2, (0, 0)], mode="edge")
    seen = np.lib.stride_tricks.sliding_window_view(padded, (height, width), (0, 1)).reshape(*shape, -1)
    found = on_every_instruction_set(lambda: median(x, window_size=window))
    np.testing.assert_array_equal(found, np.sort(seen, -1)[..., width * height // 2])


def test_nans_lie_beyond_infinity() -> None:
    x = np.array([[1.0, np.nan, 3.0, np.inf, -np.nan, -np.inf, -0.0]], np.float32)[..., None]
    highest = on_every_instruction_set(lambda: dilate(x, mask_size=(3, 1)))[0, :, 0]
    lowest = on_every_instruction_set(lambda: erode(x, mask_size=(3, 1)))[0, :, 0]
    np.testing.assert_array_equal(highest, np.float32([np.nan, np.nan, np.nan, np.inf, np.inf, -0.0, -0.0]))
    np.testing.assert_array_equal(lowest, np.float32([1, 1, 3, np.nan, np.nan, np.nan, -np.inf]))
    assert np.signbit(highest[-1])


def test_a_border_of_no_pixels_never_wins() -> None:
    dark, bright = np.zeros((4, 4, 1), np.uint8), np.full((4, 4, 1), 255, np.uint8)
    np.testing.assert_array_equal(erode(bright, mask_size=9), bright)
    np.testing.assert_array_equal(dilate(dark, mask_size=9), dark)
    low = np.full((3, 3, 1), -5, np.int8)
    np.testing.assert_array_equal(dilate(low, mask_size=9), low)


def test_repetitions_are_one_larger_window() -> None:
    x = picture()
    twice = dilate(dilate(x, mask_size=(3, 2)), mask_size=(3, 2))
    np.testing.assert_array_equal(dilate(x, mask_size=(3, 2), iterations=2), twice)
    np.testing.assert_array_equal(dilate(x, iterations=0), x)
    far = dilate(x, mask_size=(16384, 16384), border_mode="wrap")
    assert (np.asarray(far) == x.max((0, 1))).all()


@pytest.mark.parametrize("layout", ["HW", "CHW", "FHW", "FHWC", "FCHW"])
def test_layouts(layout: str) -> None:
    x = picture((2, 9, 12, 3))
    order = [("FHWC").index(axis) for axis in layout]
    rest = [i for i in range(4) if i not in order]
    turned = np.ascontiguousarray(x.transpose(rest + order)[(0,) * len(rest)])
    pipe = Pipeline(batch_size=1, num_threads=1)
    with pipe:
        image = fn.external_source(source=lambda: turned, batch=False, dtype="uint8", ndim=turned.ndim, layout=layout)
        image = fn.flip(image, horizontal=1)  # a view with negative strides
        pipe.set_outputs(
            fn.experimental.dilate(image, mask_size=(3, 2)),
            fn.experimental.median_blur(image, window_size=(5, 3)),
            fn.laplacian(image),
        )
    with pipe:
        found = [np.asarray(batch[0]) for batch in pipe.run()]
    for got, call in zip(
        found,
        (lambda f: dilate(f, mask_size=(3, 2)), lambda f: median(f, window_size=(5, 3)), eager.laplacian),
        strict=True,
    ):
        frames = np.stack([np.asarray(call(np.ascontiguousarray(frame[:, ::-1]))) for frame in x])
        np.testing.assert_array_equal(got, frames.transpose(rest + order)[(0,) * len(rest)])


def test_arguments_per_row() -> None:
    x, sizes = picture(), [np.int32(s) for s in ((3, 3), (1, 5), (4, 2))]
    pipe = Pipeline(batch_size=3, num_threads=2)
    with pipe:
        image = fn.external_source(source=lambda: x, batch=False, dtype="uint8", ndim=3, layout="HWC")
        size = fn.external_source(source=lambda info: sizes[info.idx_in_batch], batch=False, dtype="int32", ndim=1)
        pipe.set_outputs(
            fn.experimental.erode(image, mask_size=size),
            fn.laplacian(image, scale=size * 0.25),
        )
    with pipe:
        eroded, derived = pipe.run()
    for k, size in enumerate(sizes):
        np.testing.assert_array_equal(np.asarray(eroded[k]), erode(x, mask_size=size.tolist()))
        np.testing.assert_array_equal(np.asarray(derived[k]), eager.laplacian(x, scale=(size * 0.25).tolist()))


def test_a_laplacian_of_a_paraboloid_is_constant() -> None:
    y, x = np.indices((20, 30)).astype(np.float32)
    bowl = (3 * x * x + 5 * y * y)[..., None]
    plain = np.asarray(eager.laplacian(bowl, smoothing_size=1))[3:-3, 3:-3]
    np.testing.assert_array_equal(plain, np.full_like(plain, 16))
    normal = np.asarray(eager.laplacian(bowl, window_size=7, normalized_kernel=True))[6:-6, 6:-6]
    np.testing.assert_allclose(normal, 16, rtol=1e-5)


def test_an_empty_image_has_no_derivatives() -> None:
    """DALI's process ends."""
    for call in (eager.laplacian, median, lambda x: dilate(x, border_mode="wrap")):
        with pytest.raises((ArgumentError, DataError), match="image with pixels"):
            call(np.zeros((0, 5, 3), np.uint8))
    assert np.asarray(dilate(np.zeros((0, 5, 3), np.uint8))).shape == (0, 5, 3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: dilate(x, mask_size=0), (ArgumentError, DataError), "at least 1, got 0"),
        (lambda x: dilate(x, mask_size=3, anchor=3), (ArgumentError, DataError), "inside of the window"),
        (lambda x: dilate(x, mask_size=9000, iterations=2), (ArgumentError, DataError), "at most 16384 pixels"),
        (lambda x: erode(x, iterations=-1), ArgumentError, "`iterations`"),
        (lambda x: erode(x.astype(np.int64)), UnsupportedError, "Cast it first"),
        (lambda x: median(x, window_size=4), (ArgumentError, DataError), "odd `window_size`"),
        (lambda x: median(x, window_size=257), (ArgumentError, DataError), "odd `window_size`"),
        (lambda x: eager.laplacian(x, window_size=1), (ArgumentError, DataError), "of 3 to 31"),
        (lambda x: eager.laplacian(x, smoothing_size=4), (ArgumentError, DataError), "of 1 to 31"),
        (lambda x: eager.laplacian(x, scale=2.0, normalized_kernel=True), ArgumentError, "either `scale`"),
        (lambda x: eager.laplacian(x, scale=np.nan), (ArgumentError, DataError), "finite `scale`"),
        (lambda x: eager.laplacian(x, dtype="int32"), ArgumentError, "as `dtype`"),
    ],
)
def test_invalid_arguments_are_refused(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(picture())


def test_the_kernel_refuses_a_border_that_does_not_exist() -> None:
    from stoker.native._native import kernels

    with pytest.raises(ValueError, match="border mode"):
        kernels.extremes(-1, 0, 1, 2, 9, True)
