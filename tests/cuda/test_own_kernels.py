# SPDX-License-Identifier: Apache-2.0
"""Operators with custom GPU kernels: the CPU's bits, for all types, layouts and sizes."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import emulated_stages
import numpy as np
import pytest

from stoker import fn, pipeline_def, types
from stoker import math as stoker_math
from stoker.device.gpu import Gpu
from stoker.graph.analysis import PASSES
from tests.complete import sample

Source = Callable[[Any], Any]


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], autouse=True)
def gpu(folder, monkeypatch, request):
    """Use the null device as GPU 0, unless there is a GPU."""
    if request.param == "null":
        monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: emulated_stages.EmulatedGpu(folder)))


def rows_of(output: Any) -> list[np.ndarray]:
    return [np.array(row) for row in output.as_cpu()]


def compare(pipe: Callable[..., Any]) -> list[list[np.ndarray]]:
    """Return the CPU's results of ``pipe(on_gpu)``, and compare the GPU's: the same bits, NaNs aside."""
    with pipe(False) as cpu, pipe(True, device_id=0) as gpu:
        want, outputs = [rows_of(o) for o in cpu.run()], gpu.run()
    for got, expected in zip(outputs, want, strict=True):
        assert got.device != "cpu", "the operator has run on the CPU"
        for row, (a, b) in enumerate(zip(rows_of(got), expected, strict=True)):
            assert a.dtype == b.dtype and a.shape == b.shape
            different = a.view(f"u{a.itemsize}") != b.view(f"u{b.itemsize}")
            if a.dtype.kind == "f":
                different &= ~(np.isnan(a) & np.isnan(b))
            assert not different.any(), (row, np.argwhere(different)[:3], a[different][:3], b[different][:3])
    return want


def compare_rows(
    columns: Sequence[Sequence[Any]], layouts: Sequence[str], make: Callable[..., Any], **options: Any
) -> list[list[np.ndarray]]:
    """Compare like :func:`compare`, for ``make(*inputs)`` over rows of inputs; the first is on the GPU.

    ``options`` are those of the pipelines.
    """

    @pipeline_def(batch_size=len(columns[0]), num_threads=2, seed=5)
    def pipe(on_gpu: bool) -> Any:
        inputs = [
            fn.external_source(
                source=lambda info, column=column: column[info.idx_in_batch], batch=False, layout=layout or None
            )
            for column, layout in zip(columns, layouts, strict=True)
        ]
        return make(inputs[0].gpu() if on_gpu else inputs[0], *inputs[1:])

    return compare(functools.partial(pipe, **options))


def shaped(layout: str, height: int, width: int, channels: int = 3, frames: int = 2) -> list[int]:
    return [{"F": frames, "H": height, "W": width, "C": channels}[axis] for axis in layout]


LAYOUTS = ("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_equalize(layout: str) -> None:
    """Also images of one value, of few values, without pixels, and of several blocks."""
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 256, shaped(layout, h, w), np.uint8) for h, w in ((9, 7), (1, 1), (0, 4), (30, 21))]
    rows += [np.full(shaped(layout, 5, 6), 77, np.uint8), rng.integers(3, 6, shaped(layout, 8, 8), np.uint8)]
    rows.append(np.clip(rng.normal(90, 20, shaped(layout, 150, 131)), 0, 255).astype(np.uint8))
    compare_rows([rows], [layout], fn.equalize)
    compare_rows([rows], [layout], lambda x: fn.equalize(fn.flip(x, horizontal=1, vertical=1)))
    if "C" in layout:  # as many channels as words hold, and more than a block counts together
        more = [rng.integers(0, 256, shaped(layout, 30, 21, channels), np.uint8) for channels in (4, 5, 1)]
        compare_rows([more], [layout], fn.equalize)


def noise(rng: np.random.Generator, dtype: str, shape: Sequence[int]) -> np.ndarray:
    if dtype.startswith("float"):
        x = rng.normal(20, 90, shape).astype(dtype)
        x[rng.random(shape) < 0.02] = rng.choice([np.nan, np.inf, -np.inf, -0.0])
        return x
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


# Each type compiles the same code again, which takes most of the time of these tests: a sample, with short floats.
BLURRED = sample(("uint8", "int8", "float16", "uint16", "int16", "float32"), 3)
FILTERED = ("uint8", "int8", "uint16", "int16", "float16", "float32")


@pytest.mark.parametrize("dtype", BLURRED)
def test_gaussian_blur(dtype: str) -> None:
    """All layouts; windows from one pixel to more than the image has, one of them too large for shared memory."""
    rng = np.random.default_rng(3)
    sigmas = [np.array(s, np.float32) for s in ((0.4, 1.7), (3.0, 0.3), (0.8, 0.8))]

    def blurred(x: Any, sigma: Any) -> Any:
        own = fn.gaussian_blur(fn.flip(x, vertical=1), sigma=sigma)
        if dtype != "uint8":
            return (own,)
        return own, fn.gaussian_blur(x, window_size=(3, 5), dtype="float32"), fn.gaussian_blur(x, window_size=(81, 1))

    for layout in LAYOUTS if dtype == "uint8" else ("FCHW",):
        rows = [noise(rng, dtype, shaped(layout, h, w)) for h, w in ((9, 7), (1, 1), (20, 61))]
        compare_rows([rows, sigmas], [layout, ""], blurred)


BORDERS = ("reflect_101", "reflect_1001", "wrap", "clamp", "constant")


# Every type, every border.
@pytest.mark.parametrize(("dtype", "border"), [*zip(FILTERED, (*BORDERS, "wrap"), strict=True), ("uint8", "constant")])
def test_filter(dtype: str, border: str) -> None:
    """Every row has its window, up to one larger than the image, its anchor, and its border value."""
    rng = np.random.default_rng(4)
    layout = LAYOUTS[BORDERS.index(border) + 1]
    rows = [noise(rng, dtype, shaped(layout, h, w)) for h, w in ((9, 7), (3, 2), (20, 50))]
    windows = [rng.normal(0, 0.4, s).astype(np.float32) for s in ((3, 3), (4, 5), (2, 1))]
    fills = [np.float32(f) for f in (3.5, -20.0, 7.0)]

    anchors = [np.array(a, np.int32) for a in ((2, 0), (0, 3), (1, -1))]

    def filtered(x: Any, window: Any, fill: Any, anchor: Any) -> Any:
        more = (fill,) if border == "constant" else ()
        own = fn.filter(fn.flip(x, horizontal=1), window, *more, border=border, anchor=anchor)
        return own, fn.filter(x, window, *more, border=border, dtype="float32")

    compare_rows([rows, windows, fills, anchors], [layout, "", "", ""], filtered)


def test_filters_that_fit_no_tile() -> None:
    rng = np.random.default_rng(5)
    rows = [rng.integers(0, 256, (30, 20, 3), np.uint8)] * 2
    windows = [rng.normal(0, 0.1, s).astype(np.float32) for s in ((60, 70), (25, 25))]
    compare_rows([rows, windows], ["HWC", ""], lambda x, w: (fn.filter(x, w),))
    small = [np.ones((2, 2), np.float32)] * 2
    compare_rows([rows, small], ["HWC", ""], lambda x, w: (fn.filter(x, w, mode="valid"),))


WINDOWED = itertools.product(
    (("reflect_101", (3, 3)), ("wrap", (5, 5)), ("constant", (2, 7))), ("uint8", "int16", "float32", "float16")
)


@pytest.mark.parametrize(("border", "size", "dtype"), sample([(*window, dtype) for window, dtype in WINDOWED], 5))
def test_filters_of_known_windows(dtype: str, border: str, size: tuple[int, int]) -> None:
    """Several tiles in both directions, every alignment of rows, few and many channels, views, zeros as weights."""
    rng = np.random.default_rng(14)
    window = rng.normal(0, 0.4, size).astype(np.float32)
    window[0, -1] = 0.0
    shapes = ((131, 43, 3), (70, 90, 3), (66, 131, 1), (17, 35, 4), (9, 29, 6), (1, 1, 3), (2, 300, 2))
    rows = [noise(rng, dtype, shape) for shape in shapes]
    more = (np.float32(7.25),) if border == "constant" else ()

    def filtered(x: Any) -> Any:
        own = [fn.filter(x, window, *more, border=border), fn.filter(x, window, *more, border=border, dtype="float32")]
        views = [fn.flip(x, horizontal=1), fn.crop(x, crop=(1, 1), crop_pos_x=1.0), fn.transpose(x, perm=[2, 0, 1])]
        return *own, *(fn.filter(view, window, *more, border=border) for view in views)

    compare_rows([rows], ["HWC"], filtered)
    planes = [np.ascontiguousarray(np.moveaxis(x, -1, 0)) for x in rows]
    compare_rows([planes], ["CHW"], lambda x: (fn.filter(x, window, *more, border=border),))


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_filters_of_windows_of_any_size(dtype: str) -> None:
    """Tiles of every height, with weights of zero, in batches that need different amounts of shared memory."""
    rng = np.random.default_rng(15)
    rows = [noise(rng, dtype, (90, 61, 3))] * 5
    windows = [rng.normal(0, 0.1, s).astype(np.float32) for s in ((3, 3), (9, 9), (21, 21), (31, 31), (1, 60))]
    for window in windows:
        window[rng.random(window.shape) < 0.6] = rng.choice([0.0, -0.0])

    def filtered(x: Any, w: Any, fill: Any) -> Any:
        return fn.filter(x, w), fn.filter(x, w, fill, border="constant", mode="same")

    fills = [np.float32(f) for f in (1.0, np.inf, np.nan, -3.0, 0.0)]
    compare_rows([rows, windows, fills], ["HWC", "", ""], filtered)


NUMBERS = sample(("uint8", "bool", "uint64", "int16", "float32"), 3)
MORE = ("uint16", "uint32", "int8", "int32", "int64", "float64")  # the same code again, which takes a while to compile


def numbers(rng: np.random.Generator, dtype: str, shape: Sequence[int]) -> np.ndarray:
    if dtype == "bool":
        return rng.random(shape) < 0.5
    return noise(rng, dtype, shape) if dtype.startswith("float") else noise(rng, dtype, shape) // 3


@pytest.mark.parametrize("dtype", [*NUMBERS, *(pytest.param(t, marks=emulated_stages.NEEDS_GPU) for t in MORE)])
def test_reductions_of_types(dtype: str) -> None:
    """Over one number, over several chunks, to integers, with zeros of both signs and NaNs."""
    rng = np.random.default_rng(6)
    rows = [numbers(rng, dtype, s) for s in ((5, 7), (1, 1), (40, 210))]
    rows += [np.zeros((4, 9), dtype), np.ones((64, 65), dtype)]
    if dtype.startswith("float"):
        rows += [np.where(rng.random((3, 40)) < 0.5, 0.0, -0.0).astype(dtype), np.full((2, 2), np.nan, dtype)]

    def reduced(x: Any) -> Any:
        results = [fn.reductions.min(x), fn.reductions.sum(x), fn.reductions.mean(x)]
        if dtype in ("uint64", "float32"):  # values special to 64 bits, and to floats
            results.append(fn.reductions.max(x))
            results += [fn.reductions.sum(x, dtype="uint8"), fn.reductions.mean(x, dtype="int64")]
            results += [fn.reductions.mean_square(x), fn.reductions.rms(x, dtype="float16")]
            results.append(fn.reductions.std_dev(x, fn.reductions.mean(x) * 0.25, ddof=1))
        return tuple(results)

    compare_rows([rows], [""], reduced)


@pytest.mark.parametrize("dtype", ["bfloat16", pytest.param("float16", marks=emulated_stages.NEEDS_GPU)])
def test_reductions_of_short_floats(dtype: str) -> None:
    """Values are computed in float32. Results of 16 bits are rounded once."""
    rng = np.random.default_rng(9)
    rows = [noise(rng, "float32", s) for s in ((5, 7), (1, 1), (40, 210))] + [np.full((2, 2), -np.inf, np.float32)]
    rows += [np.where(rng.random((3, 40)) < 0.5, 0.0, -0.0).astype(np.float32), np.full((2, 3), np.nan, np.float32)]

    def reduced(x: Any) -> Any:
        short = fn.cast(x, dtype=dtype)
        mean = fn.reductions.mean(short, axes=(1,), dtype=dtype)
        return fn.reductions.min(short), fn.reductions.sum(short), mean, fn.reductions.std_dev(short, mean, axes=(1,))

    compare_rows([rows], [""], reduced)


@pytest.mark.parametrize("axes", [(0,), (0, 2), (1, 2), (0, 1, 2)])
def test_reductions_of_axes(axes: tuple[int, ...]) -> None:
    """Over views, for ragged rows, some of them empty; with a mean for every output."""
    rng, tall = np.random.default_rng(7), 40 if len(axes) == 3 else 5  # several chunks for few outputs
    rows = [rng.normal(0, 9, s).astype(np.float32) for s in ((4, 6, 3), (tall, 7, 33), (1, 1, 1), (3, 2, 70))]
    empty = [*rows, np.zeros((0, 4, 2), np.float32), np.zeros((3, 0, 2), np.float32)]

    def reduced(x: Any) -> Any:
        turned = fn.transpose(x, perm=[2, 0, 1])
        mean = fn.reductions.mean(turned, axes=axes)
        return mean, fn.reductions.variance(turned, mean, axes=axes), fn.reductions.sum(x, axes=axes, keep_dims=True)

    compare_rows([empty], [""], reduced)
    compare_rows([rows], [""], lambda x: (fn.reductions.max(fn.flip(x, horizontal=1), axes=axes),))


def test_reductions_over_equal_and_other_distances() -> None:
    """Elements of two axes are as far apart as those of one, in either direction; those of a window are not."""
    rng = np.random.default_rng(8)
    rows = [rng.integers(0, 256, s, np.uint8) for s in ((60, 75, 3), (1, 300, 3), (300, 1, 3), (9, 40, 1))]

    def reduced(x: Any) -> Any:
        views = (x, fn.flip(x, horizontal=1, vertical=1), fn.flip(x, vertical=1), fn.transpose(x, perm=[1, 0, 2]))
        windows = [fn.slice(x, start=[0, 0], rel_shape=[1.0, 0.9], axes=[0, 1])]
        return tuple(fn.reductions.mean(v, axes=(0, 1)) for v in (*views, *windows))

    compare_rows([rows], [""], reduced)


def test_an_argument_is_computed_where_it_is_read() -> None:
    rows = [noise(np.random.default_rng(8), "uint8", (5, 6, 3)) for _ in range(3)]
    compare_rows([rows], ["HWC"], lambda x: (fn.brightness(x, brightness=fn.reductions.mean(x) * 0.01),))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("interp", ["INTERP_NN", "INTERP_LINEAR"])
def test_remap(layout: str, interp: str) -> None:
    """Also places beyond the edges and those that are no numbers, and outputs of several blocks."""
    rng = np.random.default_rng(8)
    rows, columns, lines = [], [], []
    for (height, width), size in (((9, 7), (5, 6)), ((1, 1), (3, 3)), ((30, 21), (70, 90)), ((6, 5), (0, 4))):
        rows.append(rng.integers(0, 256, shaped(layout, height, width), np.uint8))
        columns.append(rng.uniform(-3, width + 3, size).astype(np.float32))
        lines.append(rng.uniform(-3, height + 3, size).astype(np.float32))
        columns[-1].flat[:3] = (np.nan, np.inf, -1e30)[: columns[-1].size]
    compare_rows([rows, columns, lines], [layout, "HW", "HW"], lambda *x: fn.experimental.remap(*x, interp=interp))


REMAPPED = sample(["uint8", "int8", "uint16", "int32", "float32"], 3)


@pytest.mark.parametrize("interp", ["INTERP_NN", "INTERP_LINEAR", "INTERP_CUBIC"])
@pytest.mark.parametrize("dtype", REMAPPED)
def test_groups_of_remapped_pixels(dtype: str, interp: str) -> None:
    """Pixels are computed in groups of four, but for some channels, and at the end. Also views of images and maps."""
    rng = np.random.default_rng(22)
    rows, columns, lines = [], [], []
    for height, width, channels in ((9, 8, 3), (7, 5, 3), (6, 13, 1), (5, 7, 4), (8, 4, 2), (3, 3, 5), (67, 70, 3)):
        rows.append(noise(rng, dtype, (height, width, channels)))
        columns.append(rng.uniform(-3, width + 3, (height, width)).astype(np.float32))
        lines.append(rng.uniform(-3, height + 3, (height, width)).astype(np.float32))
        lines[-1].flat[:4] = (np.nan, -np.inf, 1e30, -2.0)

    def make(x: Any, column: Any, line: Any) -> Any:
        turned = [fn.flip(v, horizontal=1, vertical=1) for v in (x, column, line)]
        cut = [fn.crop(v, crop=(3, 3), crop_pos_x=1.0) for v in (x, column, line)]
        return tuple(fn.experimental.remap(*v, interp=interp) for v in ((x, column, line), turned, cut))

    compare_rows([rows, columns, lines], ["HWC", "HW", "HW"], make)


@pytest.mark.parametrize("layout", ["FHWC", "FCHW"])
def test_groups_of_remapped_frames(layout: str) -> None:
    """Frames of whole groups, and others; with maps that they share, and with some of their own."""
    rng = np.random.default_rng(23)
    videos = [noise(rng, "uint8", shaped(layout, h, w, frames=3)) for h, w in ((6, 10), (7, 5), (40, 40))]
    extents = [[x.shape[layout.index(axis)] for axis in "HW"] for x in videos]
    shared = [[rng.uniform(-2, n[k] + 2, n).astype(np.float32) for n in extents] for k in (1, 0)]
    own = [[rng.uniform(-2, n[k] + 2, (3, *n)).astype(np.float32) for n in extents] for k in (1, 0)]

    def make(x: Any, *maps: Any) -> Any:
        return fn.experimental.remap(x, *maps[:2]), fn.experimental.remap(x, *maps[2:], interp="INTERP_NN")

    compare_rows([videos, *shared, *own], [layout, "HW", "HW", "FHW", "FHW"], make)


SIZES = ((9, 8, 3), (7, 5, 3), (6, 13, 1), (5, 7, 4), (8, 4, 2), (3, 3, 5), (1, 1, 3), (40, 1, 3), (150, 131, 3))


@pytest.mark.parametrize("interp", ["INTERP_NN", "INTERP_LINEAR", "INTERP_CUBIC"])
def test_coordinates_in_the_sampling_kernel(interp: str) -> None:
    """Programs of coordinates, of random numbers, of values that are broadcast, of maps in memory, and of a table; with
    and without groups in one line. Without the pass, the same bits.
    """
    rng = np.random.default_rng(31)
    rows = [noise(rng, "uint8", size) for size in SIZES]
    lines, columns = ([rng.uniform(-3, n[k] + 3, n[:2]).astype(np.float32) for n in SIZES] for k in (0, 1))
    numbers = [(line * 2).astype(np.int16) for line in lines]
    lines[0].flat[:3] = (np.nan, np.inf, -1e30)

    def make(x: Any, line: Any, column: Any, number: Any) -> Any:
        remap = functools.partial(fn.experimental.remap, interp=interp)
        whole = fn.cast(number, dtype=types.FLOAT)
        narrow = fn.cast(line, dtype=types.UINT8)
        entry = fn.lookup_table(narrow, keys=[0, 1, 2], values=[3.0, 1.0, 7.0], default_value=2.0)
        return (
            remap(x, column * 1.5 - 2.0, line * 0.5 + column), remap(x, column, line * 0.5), remap(x, column, whole),
            remap(x, column, entry),
            remap(fn.flip(x, horizontal=1, vertical=1), column + line, line),
            remap(x, fn.flip(column * 0.5), fn.flip(line, vertical=1) + column),
            fn.water(x, ampl_x=2.0, interp_type=interp), fn.jitter(x, nDegree=7), fn.sphere(x, interp_type=interp),
        )  # fmt: skip

    for passes in (frozenset(PASSES), frozenset(PASSES) - {"inlining"}):
        compare_rows([rows, lines, columns, numbers], ["HWC", "HW", "HW", "HW"], make, passes=passes)


def test_which_coordinates_are_in_the_sampling_kernel() -> None:
    """Maps with another reader, of mirrored elements, or of many functions stay in memory."""

    def long(x: Any) -> Any:
        for _ in range(8):
            x = stoker_math.sin(x)
        return x

    cases: tuple[tuple[Callable[..., Any], int, int], ...] = (
        (lambda x, m: fn.sphere(x), 0, 1),
        (lambda x, m: fn.jitter(x), 0, 1),
        (lambda x, m: fn.water(x), 1, 1),
        (lambda x, m: fn.experimental.remap(x, m, m * 2.0), 0, 1),
        (lambda x, m: fn.experimental.remap(x, m, long(m), interp="INTERP_CUBIC", pixel_origin="center"), 1, 0),
        (lambda x, m: (fn.experimental.remap(x, m, (y := m * 2.0), pixel_origin="center"), y), 1, 0),
    )
    for make, stages, inlined in cases:

        @pipeline_def(batch_size=1, device_id=0)
        def pipe(make: Callable[..., Any] = make) -> Any:
            image = fn.external_source(source=list, dtype=types.UINT8, ndim=3, layout="HWC")
            coordinates = fn.external_source(source=list, dtype=types.FLOAT, ndim=2, layout="HW")
            return make(image.gpu(), coordinates.gpu())

        with pipe() as made:
            made.build()
            text = str(made.show()).partition("\nplan")[2]
        assert (text.count("stage["), text.count(" at [")) == (stages, inlined), text


@pytest.mark.parametrize("layout", ["CHW", "FHWC", "FCHW", "FHW"])
def test_coordinates_of_frames_and_planes(layout: str) -> None:
    rng = np.random.default_rng(32)
    videos = [noise(rng, "uint8", shaped(layout, h, w, frames=3)) for h, w in ((6, 10), (7, 5), (40, 40))]
    compare_rows(
        [videos], [layout],
        lambda x: (
            fn.sphere(x), fn.jitter(x, nDegree=5), fn.water(x, interp_type="INTERP_LINEAR", mask=0), fn.water(x),
        ),
    )  # fmt: skip


VOLUMES = itertools.product(("DHWC", "CDHW", "FDHWC"), ("uint8", "uint16", "int16", "int32", "float32"))


@pytest.mark.parametrize(("layout", "dtype"), sample([*VOLUMES], 5))
def test_volumes(layout: str, dtype: str) -> None:
    extents = {"F": 2, "D": 5, "H": 7, "W": 6, "C": 3}
    rows = [
        noise(np.random.default_rng(k), dtype, tuple(n + k * (a in "DHW") for a, n in extents.items() if a in layout))
        for k in (0, 9)
    ]
    rows = [np.ascontiguousarray(np.moveaxis(x, -1, 0)) if layout[0] == "C" else x for x in rows]
    matrix = (1.0, 0.1, -0.2, 1.3, 0.05, 1.1, 0.1, -2.0, 0.2, -0.1, 0.9, 1.0)

    def make(x: Any) -> Any:
        return (
            fn.warp_affine(x, matrix=matrix, size=(6, 8, 30)), fn.warp_affine(x, matrix=matrix, fill_value=9.0),
            fn.rotate(x, angle=40.0, axis=(1.0, 2.0, 3.0), interp_type="INTERP_NN", fill_value=1.0),
            fn.resize(x, size=(4, 9, 5)), fn.resize(x, size=(9, 3, 5), interp_type="INTERP_NN"),
        )  # fmt: skip

    compare_rows([rows], [layout], make)


def test_filters_per_frame() -> None:
    rng = np.random.default_rng(8)
    videos = [noise(rng, "uint8", (3, h, w, 3)) for h, w in ((9, 7), (40, 33))]
    sigmas = [np.float32([0.5, 1.0, 2.0])] * 2
    weights = [rng.uniform(0, 0.2, (3, 3, 5)).astype(np.float32)] * 2

    def make(x: Any, sigma: Any, taps: Any) -> Any:
        return fn.gaussian_blur(x, sigma=fn.per_frame(sigma)), fn.filter(x, fn.per_frame(taps))

    compare_rows([videos, sigmas, weights], ["FHWC", "", ""], make)


def test_derivatives_and_mosaics_per_frame() -> None:
    rng = np.random.default_rng(8)
    videos = [noise(rng, "uint8", (3, h, w)) for h, w in ((9, 7), (40, 33))]
    scales, places = [np.float32([[1, 0.5], [2, 3], [0, 1]])] * 2, [np.int32([[0, 0], [1, 0], [1, 1]])] * 2
    sizes, anchors = [np.int32([3, 7, 5])] * 2, [np.int32([[0, 4], [2, 0], [-1, 1]])] * 2

    def make(x: Any, scale: Any, size: Any, place: Any, anchor: Any) -> Any:
        return (
            fn.laplacian(x, scale=fn.per_frame(scale), window_size=fn.per_frame(size), dtype=types.FLOAT),
            fn.debayer(x, blue_position=fn.per_frame(place)),
            fn.filter(x, np.full((3, 5), 1 / 15, np.float32), anchor=fn.per_frame(anchor)),
        )

    compare_rows([videos, scales, sizes, places, anchors], ["FHW", "", "", "", ""], make)


def test_derivatives_of_volumes() -> None:
    rows = [noise(np.random.default_rng(k), "uint8", (2, 5 + k, 9, 7, 3)) for k in range(2)]
    make = lambda x: (fn.laplacian(x, window_size=(3, 5, 3), scale=(1.0, 0.5, 2.0), dtype=types.FLOAT),)  # noqa: E731
    compare_rows([rows], ["FDHWC"], make)


@pytest.mark.parametrize("border", ["constant", "replicate", "reflect", "reflect_101", "wrap"])
@pytest.mark.parametrize("interp", ["INTERP_NN", "INTERP_LINEAR", "INTERP_CUBIC"])
def test_perspectives(border: str, interp: str) -> None:
    sizes = ((9, 7, 3), (1, 1, 3), (40, 33, 3), (12, 5, 3))
    rows = [noise(np.random.default_rng(8), "uint16", shape) for shape in sizes]
    arguments = {"matrix": (1.3, 0.2, -19.5, -0.1, 1.4, -7.0, 0.02, 0.04, 1.0), "border_mode": border}

    def make(x: Any) -> Any:
        return (
            fn.experimental.warp_perspective(x, interp_type=interp, size=(70, 45), fill_value=9.5, **arguments),
            fn.experimental.warp_perspective(x, interp_type=interp, fill_value=(1.0, 2.0, 3.0), **arguments),
        )

    compare_rows([rows], ["HWC"], make)


@pytest.mark.parametrize(
    "dtype", sample([types.INT8, types.UINT16, types.INT16, types.INT32, types.FLOAT, types.FLOAT16], 3)
)
def test_sampling_at_coordinates(dtype: Any) -> None:
    """Types of the image, and operators that compute the coordinates on the device."""
    rng = np.random.default_rng(9)
    rows = [rng.integers(0, 256, (h, w, 3), np.uint8) for h, w in ((9, 7), (40, 33))]
    linear = {"interp_type": types.INTERP_LINEAR, "fill_value": 300.5}
    cubic = {"interp_type": types.INTERP_CUBIC, "fill_value": 300.5}

    def make(x: Any) -> Any:
        x = fn.cast(x, dtype=dtype)
        return (
            fn.sphere(x, **linear), fn.water(x, ampl_x=2.0, mask=fn.random.coin_flip()), fn.jitter(x, nDegree=5),
            fn.lens_distortion(x, radial=[0.4, -0.2], tangential=[0.01, 0.02], **linear),
            fn.elastic(x, alpha=9.0, sigma=2.0, **linear), fn.optical_distortion(x, limit=[-1.0, 1.0]),
            fn.sphere(x, **cubic), fn.water(x, ampl_y=2.0, **cubic), fn.elastic(x, alpha=9.0, sigma=2.0, **cubic),
        )  # fmt: skip

    compare_rows([rows], ["HWC"], make)


@pytest.mark.parametrize("dtype", sample([types.BOOL, types.UINT8, types.FLOAT16, types.INT64, types.FLOAT64], 3))
def test_pad(dtype: Any) -> None:
    """Also reversed inputs, empty ones, and extents that the batch determines."""
    rng = np.random.default_rng(10)
    rows = [rng.integers(0, 256, (h, w, 3), np.uint8) for h, w in ((9, 7), (1, 1), (0, 4), (30, 31), (40, 1400))]

    def make(x: Any) -> Any:
        x = fn.cast(x, dtype=dtype)
        flipped = fn.flip(x, horizontal=1)
        return (
            fn.pad(x, fill_value=-2.5),
            fn.pad(x, axes=[1], shape=[50]),
            fn.pad(flipped, shape=[12, 3], axes=[0, 1], align=[1, 4], fill_value=3.0),
        )

    compare_rows([rows], ["HWC"], make)


@pytest.mark.parametrize(
    "dtype", sample([types.INT8, types.UINT16, types.FLOAT16, types.INT32, types.FLOAT, types.FLOAT64], 3)
)
def test_shot_noise_and_retyped_bytes(dtype: Any) -> None:
    rng = np.random.default_rng(11)
    rows = [rng.integers(0, 256, (h, w, 4), np.uint8) for h, w in ((9, 7), (1, 1), (0, 4), (30, 31))]

    def make(x: Any) -> Any:
        x = fn.flip(fn.cast(x, dtype=dtype), horizontal=1)
        return fn.noise.shot(x, factor=4.0), fn.noise.shot(x, factor=0.0), fn.reinterpret(x, dtype=types.UINT8)

    def make_flat(x: Any) -> Any:
        return fn.reinterpret(fn.cast(x, dtype=dtype), dtype=types.UINT8)

    compare_rows([[*rows, rng.integers(0, 256, (70, 90, 4), np.uint8)]], ["HWC"], lambda x: (make_flat(x),))
    compare_rows([rows], ["HWC"], make)


@pytest.mark.parametrize("dtype", [types.UINT8, types.INT8])
def test_shot_noise_of_bytes(dtype: Any) -> None:
    """A table's bits are those of the search and of the rejection method, for means of all sizes."""
    x = np.repeat(np.arange(256, dtype=np.uint8), 40).reshape(64, 160)
    factors = [np.float32(v) for v in (20.0, 25.7, 12.3, 1.0, 0.31, 1e-40, 0.0, 5.0)]

    def make(x: Any, factor: Any) -> Any:
        x = fn.reinterpret(x, dtype=dtype)
        return fn.noise.shot(x, factor=factor), fn.noise.shot(x[:, ::3], factor=factor)

    compare_rows([[x] * len(factors), factors], ["HW", ""], make)


ORDERED = sample(("bool", "uint8", "int8", "uint16", "float16", "int16", "uint32", "int32", "float32"), 3)


@pytest.mark.parametrize("dtype", ORDERED)
def test_windows(dtype: str) -> None:
    """Extremes and medians of all types, borders and layouts, with windows per row up to larger than the image."""
    rng, at = np.random.default_rng(12), ORDERED.index(dtype)
    layout = LAYOUTS[at % len(LAYOUTS)]
    sizes = [np.array(s, np.int32) for s in ((3, 3), (5, 1), (9, 12))]
    borders = ("constant", "replicate", "reflect", "reflect_101", "wrap")
    rows = [numbers(rng, dtype, shaped(layout, h, w)) for h, w in ((9, 7), (1, 1), (30, 41))]

    def make(x: Any, size: Any) -> Any:
        flipped = fn.flip(x, horizontal=1)
        return (
            fn.experimental.dilate(flipped, mask_size=size, border_mode=borders[at % 5]),
            fn.experimental.erode(x, mask_size=size, anchor=0, border_mode=borders[(at + 1) % 5], iterations=2),
            fn.experimental.median_blur(flipped, window_size=size // 2 * 2 + 1),
        )

    compare_rows([rows, sizes], [layout, ""], make)


@pytest.mark.parametrize("dtype", sample([*FILTERED, "float64"], 3))
def test_laplacian(dtype: str) -> None:
    rng = np.random.default_rng(13)
    layout = LAYOUTS[len(dtype) % len(LAYOUTS)]
    rows = [noise(rng, dtype, shaped(layout, h, w)) for h, w in ((9, 7), (1, 1), (20, 61))]
    sizes = [np.array(s, np.int32) for s in ((3, 3), (5, 31), (7, 3))]

    def make(x: Any, size: Any) -> Any:
        own = fn.laplacian(fn.flip(x, vertical=1), window_size=size)
        if dtype != "uint8":
            return (own,)
        scaled = fn.laplacian(x, window_size=5, smoothing_size=size, scale=size * 0.1, dtype="float32")
        return own, scaled, fn.laplacian(x, normalized_kernel=True, dtype="float32")

    compare_rows([rows, sizes], [layout, ""], make)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_clahe(layout: str) -> None:
    """Also images of one value, smaller than the tiles, and of several blocks; gray ones, and lightness."""
    rng = np.random.default_rng(14)
    rows = [rng.integers(0, 256, shaped(layout, h, w), np.uint8) for h, w in ((9, 7), (1, 1), (30, 41))]
    rows.append(np.full(shaped(layout, 5, 6), 77, np.uint8))

    def make(x: Any) -> Any:
        flipped = fn.flip(x, horizontal=1)
        return (
            fn.clahe(flipped, tiles_x=4, tiles_y=3, clip_limit=2.0),
            fn.clahe(x, tiles_x=2, tiles_y=8, clip_limit=0.0, luma_only=False),
        )

    compare_rows([rows], [layout], make)


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("layout", ["HW", "FHWC"])
def test_debayer(dtype: str, layout: str) -> None:
    """Every pattern, by row."""
    rng = np.random.default_rng(15)
    shapes = ((9, 12), (3, 3), (30, 41), (8, 8))
    rows = [noise(rng, dtype, shaped(layout, h, w, channels=1)) for h, w in shapes]
    positions = [np.array(p, np.int32) for p in ((0, 0), (0, 1), (1, 0), (1, 1))]

    def make(x: Any, position: Any) -> Any:
        names = ("bilinear_ocv", "edgeaware_ocv", "gray_ocv", *(["vng_ocv"] if dtype == "uint8" else []))
        return tuple(fn.debayer(x, blue_position=position, algorithm=name) for name in names)

    compare_rows([rows, positions], [layout, ""], make)


@pytest.mark.parametrize("layout", ["HWC", "CHW", "FHWC", "FCHW"])
def test_jpeg_compression_distortion(layout: str) -> None:
    """A quality per row, also beyond the scale. Parts of MCUs, odd extents, lines at any address, several blocks."""
    rng = np.random.default_rng(21)
    shapes = ((1, 1), (2, 2), (3, 5), (1, 9), (17, 4), (16, 16), (33, 18), (7, 301), (51, 150), (130, 63), (15, 7))
    qualities = (50, 1, 100, 10, 75, 49, 3, 95, 88, -4, 1000)
    rows = []
    for number, (height, width) in enumerate(shapes):
        ramp = np.indices((height, width)).sum(0) * (1 + number % 4)
        x = ramp.reshape(
            [n if axis in "HW" else 1 for axis, n in zip(layout, shaped(layout, height, width), strict=True)]
        )
        spread = (0.0, 6.0, 400.0)[number % 3]
        rows.append(np.clip(x % 256 + rng.normal(0, spread, shaped(layout, height, width)), 0, 255).astype(np.uint8))

    def make(x: Any, quality: Any) -> Any:
        turned = fn.flip(x, horizontal=1, vertical=1)
        return fn.jpeg_compression_distortion(x, quality=quality), fn.jpeg_compression_distortion(turned, quality=20)

    compare_rows([rows, [np.int32(q) for q in qualities]], [layout, ""], make)


def test_jpeg_compression_distortion_of_every_quality() -> None:
    rows = [noise(np.random.default_rng(22), "uint8", (18, 35, 3)) for _ in range(100)]
    qualities = [np.int32(q) for q in range(1, 101)]
    compare_rows([rows, qualities], ["HWC", ""], lambda x, q: (fn.jpeg_compression_distortion(x, quality=q),))


def test_jpeg_compression_distortion_of_the_largest_coefficients() -> None:
    """Blocks whose samples are at the ends of the scale by the sign of a cosine, in luma and in either chroma."""
    k = np.arange(8)
    waves = np.cos((2 * k[None] + 1) * k[:, None] * np.pi / 16) >= 0  # frequency, position
    blocks = ~(waves[:, None, :, None] ^ waves[None, :, None, :])  # frequencies, then positions
    luma = blocks.transpose(0, 2, 1, 3).reshape(64, 64)
    chroma = luma.repeat(2, 0).repeat(2, 1)
    gray = luma[..., None] ^ np.zeros(3, bool)
    rows = [gray, ~gray, *(chroma[..., None] ^ np.array(c, bool) for c in ((0, 0, 1), (1, 0, 0), (0, 1, 1)))]
    pictures = [np.where(row, np.uint8(255), np.uint8(0)) for row in rows]
    qualities = (1, 4, 12, 50, 93)
    pairs = [(x, np.int32(q)) for x in pictures for q in qualities]
    compare_rows(
        [[x for x, _ in pairs], [q for _, q in pairs]],
        ["HWC", ""],
        lambda x, q: (fn.jpeg_compression_distortion(x, quality=q),),
    )


def test_motion_blur() -> None:
    rng = np.random.default_rng(16)
    rows = [rng.integers(0, 256, (h, w, 3), np.uint8) for h, w in ((9, 7), (1, 1), (30, 41))]
    sizes = [np.int32(s) for s in (1, 5, 9)]
    compare_rows([rows, sizes], ["HWC", ""], lambda x, size: (fn.motion_blur(x, size=size, angle=20.0, direction=0.5),))


@pytest.mark.parametrize("offset", [False, True])
def test_box_encoder(offset: bool) -> None:
    """Also no boxes, boxes without area and outside of all anchors, and NaN."""
    rng = np.random.default_rng(2)
    corners = rng.uniform(0, 0.7, (700, 2))
    anchors = np.concatenate([corners, corners + rng.uniform(0.05, 0.3, (700, 2))], 1).astype(np.float32)
    rows = [anchors[rng.integers(0, 700, n)] + rng.normal(0, 0.02, (n, 4)).astype(np.float32) for n in (3, 0, 40)]
    rows.append(np.array([[2, 2, 3, 3], [0.5, 0.5, 0.5, 0.9], [np.nan] * 4, *anchors[:2], *anchors[:2]], np.float32))
    labels = [np.arange(1, len(boxes) + 1, dtype=np.int32) for boxes in rows]

    def make(boxes: Any, names: Any) -> Any:
        return fn.box_encoder(
            boxes, names, anchors=anchors.reshape(-1).tolist(), criteria=0.4, offset=offset, scale=300.0,
            means=(0.1, 0.0, 0.0, 0.0), stds=(0.1, 0.1, 0.2, 0.2),
        )  # fmt: skip

    (targets, found) = compare_rows([rows, labels], ["", ""], make)
    assert (found[2] > 0).any() and (found[1] == 0).all() and targets[0].shape == (700, 4)


def test_box_encoder_of_boxes_that_a_crop_on_the_cpu_keeps() -> None:
    """The number of boxes is known only when the batch runs."""
    rng = np.random.default_rng(4)
    corners = rng.uniform(0, 0.7, (300, 2))
    anchors = np.concatenate([corners, corners + rng.uniform(0.05, 0.3, (300, 2))], 1).astype(np.float32)
    rows = [anchors[rng.integers(0, 300, n)] for n in (3, 7, 1, 40)]
    labels = [np.arange(1, len(boxes) + 1, dtype=np.int32) for boxes in rows]

    @pipeline_def(batch_size=len(rows), num_threads=2, seed=5)
    def pipe(on_gpu: bool) -> Any:
        boxes, names = (
            fn.external_source(source=lambda info, column=column: column[info.idx_in_batch], batch=False)
            for column in (rows, labels)
        )
        *_, boxes, names = fn.random_bbox_crop(
            boxes, names, thresholds=[0.1, 0.5], scaling=[0.3, 1.0], bbox_layout="xyXY", num_attempts=50
        )
        boxes = fn.bb_flip(boxes, ltrb=True, horizontal=fn.random.coin_flip())
        if on_gpu:
            boxes, names = boxes.gpu(), names.gpu()
        return fn.box_encoder(boxes, names, anchors=anchors.reshape(-1).tolist(), criteria=0.4, offset=True)

    _, found = compare(pipe)
    assert all((x > 0).any() for x in found)


@pytest.mark.parametrize("dtype", sample([types.UINT8, types.INT16, types.FLOAT, types.FLOAT64], 2))
def test_gather(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    rows = [rng.integers(0, 200, (h, w, 4), np.uint8) for h, w in ((9, 7), (1, 1), (5, 0), (60, 31))]
    numbers = [rng.integers(-len(x), len(x), n) for x, n in zip(rows, (4, 0, 2, 90), strict=True)]

    def make(x: Any, at: Any) -> Any:
        x = fn.flip(fn.cast(x, dtype=dtype), horizontal=1)
        return fn.gather(x, at), fn.gather(x, at * 0, axis=2), fn.gather(x, fn.stack(at * 0, at))

    for x, at, taken in zip(rows, numbers, compare_rows([rows, numbers], ["HWC", ""], make)[0], strict=True):
        np.testing.assert_array_equal(taken, x[at][:, ::-1])


@pytest.mark.parametrize("dtype", sample([types.UINT8, types.INT16, types.FLOAT64], 2))
def test_cat(dtype: Any) -> None:
    """Along every axis; long and short lines, inputs without elements, reversed ones, and several blocks."""
    rng = np.random.default_rng(5)
    sizes = ((9, 7), (1, 1), (0, 4), (5, 0), (30, 90), (60, 700))
    rows = [rng.integers(0, 256, (h, w, 20), np.uint8) for h, w in sizes]

    def make(x: Any) -> Any:
        x = fn.cast(x, dtype=dtype)
        flipped, part = fn.flip(x, horizontal=1), x[:, :1]
        return (
            fn.cat(x, flipped, axis=0), fn.cat(x, x, x, axis=0), fn.cat(x, part, x, axis=1), fn.cat(x, flipped, axis=1),
            fn.cat(x, x[:, :, :3], flipped, axis=2),
        )  # fmt: skip

    for x, found in zip(rows, compare_rows([rows], ["HWC"], make)[1], strict=True):
        np.testing.assert_array_equal(found, np.concatenate([x, x, x]))


@pytest.mark.parametrize(
    ("layout", "dtype"), sample([*itertools.product(["HWC", "FHWC"], [types.UINT8, types.INT16, types.FLOAT])], 4)
)
def test_multi_paste(layout: str, dtype: Any) -> None:
    """Also regions without pixels, pixels that no region covers, and lines that begin at any byte of a word."""
    rng = np.random.default_rng(4)
    rows = [rng.integers(0, 256, shaped(layout, h, w), np.uint8) for h, w in ((9, 7), (12, 130), (60, 241))]
    starts = [np.array([0, 0, 3, 2, 1, 1], np.int32), np.array([5, 9, 0, 0, 2, 2], np.int32), np.zeros(6, np.int32)]

    def make(x: Any, start: Any) -> Any:
        y = fn.flip(x, horizontal=1)
        pasted = fn.multi_paste(
            x, y, x, shapes=(6, 5, 4, 5, 0, 3), in_anchors=(1, 2, 0, 0, 3, 3), out_anchors=start, output_size=(80, 33),
            dtype=dtype,
        )  # fmt: skip
        large = fn.multi_paste(
            x, y, x, shapes_rel=(0.9, 1, 0.6, 0.8, 0.3, 0.5), in_anchors_rel=(0.1, 0, 0.4, 0.1, 0, 0.3),
            out_anchors=start, output_size=(65, 2100), dtype=dtype,
        )  # fmt: skip
        return pasted, large, fn.multi_paste(x, y)

    compare_rows([rows, starts], [layout, ""], make)


def test_nearest_pixels() -> None:
    """Warps of RGB bytes by numbers in fixed point and by tables of positions, filled and with the edge's pixels."""
    rng = np.random.default_rng(4)
    rows = [rng.integers(0, 256, (h, w, 3), np.uint8) for h, w in ((2, 2), (9, 1), (40, 70), (131, 33))]
    matrices = ((1.3, 0, -5, 0, 0.8, 3), (0.9, 0.2, -4, -0.15, 1.1, 6), (-1, 0, 30, 0, -1, 35))

    def make(x: Any) -> Any:
        return [
            fn.warp_affine(x, matrix=matrix, interp_type=types.INTERP_NN, size=(50, 45), **fill)
            for matrix in matrices
            for fill in ({"fill_value": 7}, {"fill_value": None})
        ] + [fn.paste(x, ratio=1.5, fill_value=9), fn.flip(fn.paste(x, ratio=1.1, fill_value=0), horizontal=1)]

    compare_rows([rows], ["HWC"], make)
