# SPDX-License-Identifier: Apache-2.0
"""Generated stages, compiled as C++ and run on the null device, against the CPU's register machine: the same bits."""

from __future__ import annotations

import emulated_stages as st
import numpy as np
import pytest
from pixel_values import values

from stoker.contract import pixel as px
from stoker.contract.types import DType
from tests.complete import COMPLETE

COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")
BINARY = {
    "float": ("add", "sub", "mul", "div", "fmod", "pow", "min", "max", "atan2", *COMPARED),
    "whole": ("add", "sub", "mul", "idiv", "mod", "ipow", "min", "max", "and", "or", "xor", "shl", "shr", *COMPARED),
}
UNARY = {"float": [k for k in px.UNARY if k != "not"], "whole": ["neg", "abs", "not"]}


def compiled(program, in_types, channels=0, **more) -> st.Stage:
    """Return a stage of expressions. Its uniforms must be numbers; they are its first numbers per row."""
    code = px.compile_program(program, st.OPS, len(in_types))
    out_types = [p[0].dtype for p in program]
    more["coordinates"] = code.coordinates
    stage = st.Stage(code.code, channels, in_types, out_types, len(code.uniforms), **more)
    stage.numbers = [float(u) for u in code.uniforms]
    return stage


def operations(dtype: DType) -> list[px.Px]:
    """Return every operation of a type."""
    a, b = px.load(dtype, 0), px.load(dtype, 1)
    kind = "float" if dtype.is_float else "whole"
    return [*(px.binary(op, a, b) for op in BINARY[kind]), *(px.unary(op, a) for op in UNARY[kind])]


# Types whose operations are compiled; the interpreter's tests run those of all types.
SAMPLE = (DType.BOOL, DType.UINT8, DType.UINT64, DType.INT32, DType.FLOAT16, DType.FLOAT, DType.FLOAT64)
COMPILED = tuple(DType) if COMPLETE else SAMPLE


def every_operation() -> list[st.Stage]:
    stages = []
    for dtype in DType:
        if dtype == DType.BOOL:
            a, b = px.load(dtype, 0), px.load(dtype, 1)
            results = [px.binary(op, a, b) for op in ("and", "or", "xor", "eq", "ne")]
        else:
            results = operations(dtype)
        results += [px.load(dtype, 0).cast(to) for to in DType if to != dtype]
        results += [px.load(dtype, 0).convert(to) for to in DType if to != dtype]
        results += [
            px.select(px.binary("lt", px.load(dtype, 0), px.load(dtype, 1)), px.load(dtype, 1), px.load(dtype, 0))
        ]
        for at in range(0, len(results), 8):
            stages.append(compiled([[r] for r in results[at : at + 8]], [dtype, dtype]))
    return stages


def chains() -> list[st.Stage]:
    """Return chains over channels, with uniforms, of one to four channels, and several outputs."""
    stages = []
    for channels in (1, 2, 3, 4):
        for dtype, to in ((DType.UINT8, DType.FLOAT16), (DType.FLOAT, DType.UINT8), (DType.INT16, DType.INT16)):
            x = [px.load(dtype, 0, c).cast(DType.FLOAT) for c in range(channels)]
            mixed = [
                sum((v * (0.25 + 0.5 * (i == c)) for i, v in enumerate(x[1:], 1)), x[0] * 0.5) for c in range(channels)
            ]
            first = [((m - 3.5 * c) * 1.25).cast(to) for c, m in enumerate(mixed)]
            second = [m.cast(DType.UINT8) for m in mixed]
            stages.append(compiled([first, second], [dtype], channels))
    return stages


def sampled(interpolator: str) -> list[st.Stage]:
    stages = []
    types = (DType.UINT8, DType.UINT16, DType.INT16, DType.INT32, DType.FLOAT)
    for dtype in types[:1] if interpolator in st.PROJECTED else types:
        x = [px.load(dtype, 0, c) for c in range(3)]
        stages.append(compiled([x], [dtype], 3, interpolator=interpolator))
        stages.append(compiled([[px.load(dtype, 0)]], [dtype], 0, interpolator=interpolator))
        y = [(v.cast(DType.FLOAT) - 100.0 * c) * 0.01 for c, v in enumerate(x)]
        y = [px.binary("add", v, px.load(DType.FLOAT, 1, 0)).cast(DType.FLOAT16) for v in y]
        stages.append(
            compiled([y], [dtype, DType.FLOAT], 3, interpolator=interpolator, post=[[(1, 0, 0, 0, 0, [1, 2, 0])]])
        )
    return stages


def placed(dtype: DType, interpolator: str = "") -> list[st.Stage]:
    """Return programs of coordinates: flat, with an expression for each channel, and stored in another order."""
    row, column, third = map(px.coordinate, range(3))
    flat = px.select(px.binary("lt", row * 3 + column - third * 2, 40), px.load(dtype), px.uniform(9, dtype))
    inside = px.binary("lt", row * 3 + column, 40)
    x = [px.load(dtype, 0, c).cast(DType.FLOAT) for c in range(3)]
    ramp = [v + row.cast(DType.FLOAT) * (c + 0.5) - column.cast(DType.FLOAT) for c, v in enumerate(x)]
    masked = [px.select(inside, px.load(dtype, 0, c), px.uniform(c, dtype)) for c in range(3)]
    return [
        compiled([[flat]], [dtype], 0, interpolator=interpolator),
        compiled([ramp], [dtype], 3, interpolator=interpolator),
        compiled([ramp], [dtype], 3, interpolator=interpolator, post=[[(1, 0, 0, 0, 0, [1, 2, 0])]]),
        compiled([masked], [dtype], 3, interpolator=interpolator),
    ]


def elements() -> list[st.Stage]:
    """Return programs with random bits of elements and with tables: flat, and with an expression for each channel."""
    row, column, third = map(px.coordinate, range(3))
    names = [px.uniform(n, DType.INT32) for n in (-7, 2**31 - 1, 0x12345678)]
    stages = []
    for dtype, entry in ((DType.UINT8, DType.FLOAT16), (DType.INT32, DType.UINT8), (DType.UINT16, DType.INT64)):
        index = px.load(dtype).cast(DType.INT32)
        flat = px.lookup(entry, 1, px.binary("and", index, 511), 300)
        stages.append(compiled([[flat]], [dtype, entry]))
        drawn = px.random((row * 300 + column) * 3 + third, names[0], names[1])
        stages.append(compiled([[drawn], [px.binary("xor", drawn, index)]], [dtype]))
        x = [px.load(dtype, 0, c).cast(DType.INT32) for c in range(3)]
        tables = [px.lookup(entry, 1, px.binary("and", v, 511), 300) for v in x]
        stages.append(compiled([tables], [dtype, entry], 3))
        bits = [px.random(row * 300 + column, names[c], names[2]) for c in range(3)]
        stages.append(compiled([[px.binary("add", b, v) for b, v in zip(bits, x, strict=True)]], [dtype], 3))
    return stages


def from_uniforms() -> list[st.Stage]:
    """Return programs with results of uniforms alone: a few, which a thread keeps, and more than it keeps."""
    x = px.load(DType.FLOAT)
    stages = []
    for count in (3, 20):
        numbers = [px.uniform(k * 37.25 - 50, DType.FLOAT64) for k in range(count)]
        limits = [px.unary("sqrt", px.unary("abs", n)).cast(DType.UINT8).cast(DType.FLOAT) for n in numbers]
        half = [n.cast(DType.FLOAT16) for n in numbers[:2]]
        summed = sum(limits[1:], limits[0] * x)
        stages.append(compiled([[summed], [half[0]], [px.select(px.binary("lt", x, 0), *half)]], [DType.FLOAT]))
    return stages


def view_stage(pre, post):
    code = px.compile_program([[px.load(DType.UINT16)]], st.OPS, 1).code
    return st.Stage(code, 0, [DType.UINT16], [DType.UINT16], 0, pre=[pre], post=[post])


FLIP = (0, 1, 0, 1, 2, [])  # slice(axis 1, start, step, extent) with parameters 0, 1, 2


def viewed() -> list[st.Stage]:
    rotated = (1, 0, 0, 0, 0, [2, 0, 1])
    planar = (1, 0, 0, 0, 0, [1, 2, 0])
    return [view_stage(*v) for v in (([FLIP], []), ([FLIP, rotated], []), ([FLIP], [planar]), ([], [FLIP]))]


def grouped() -> list[st.Stage]:
    """Return programs of three channels that read pixels in either direction and store pixels or planes."""
    stages = []
    for dtype, to in ((DType.UINT8, DType.UINT8), (DType.UINT8, DType.FLOAT16), (DType.FLOAT, DType.UINT8)):
        x = [px.load(dtype, 0, c).cast(DType.FLOAT) for c in range(3)]
        mixed = [(v * 0.5 + x[0] * 0.25 + c).cast(to) for c, v in enumerate(x)]
        for post in ([], [(1, 0, 0, 0, 0, [1, 2, 0])]):
            stage = compiled([mixed], [dtype], 3, post=[post])
            first = stage.uniforms  # parameters of the view follow the uniforms
            stage.pre = [[(0, 1, first, first + 1, first + 2, [])]]
            stages.append(stage)
    return stages


def converted() -> list[st.Stage]:
    """Return conversions of elements of one or two bytes that groups of lanes pack and unpack."""
    stages = []
    for pair in ((DType.UINT8, DType.INT8), (DType.UINT16, DType.INT16)):
        for dtype in (DType.FLOAT, DType.INT32):
            stages.append(compiled([[px.load(dtype).cast(to)] for to in pair], [dtype]))
        wide = [px.load(pair[0], 0, c).cast(DType.INT32) * 3 - 300 * (c + 1) for c in range(3)]
        stages.append(compiled([[w.cast(pair[1]) for w in wide]], [pair[0]], 3))
        stages.append(compiled([[px.load(pair[0]).cast(DType.FLOAT) * 1.5]], [pair[0]]))
        # An output that also takes numbers which are not rounded.
        x = [px.load(pair[0], 0, c) for c in range(2)]
        stages.append(compiled([[x[1], (x[0].cast(DType.FLOAT) * 1.7 - 9.0).cast(pair[0])]], [pair[0]], 2))
    return stages


def tables() -> list[st.Stage]:
    """Return programs with tables of 200 or 256 elements from which bytes choose: flat, and for each channel."""
    stages = []
    for entry, length in ((DType.UINT8, 256), (DType.INT16, 200), (DType.FLOAT, 256), (DType.INT64, 200)):
        flat = px.lookup(entry, 1, px.load(DType.UINT8).cast(DType.INT32), length)
        stages.append(compiled([[flat]], [DType.UINT8, entry]))
        chosen = [px.load(DType.UINT8, 0, c).cast(DType.FLOAT) * 0.5 + 40.0 * c for c in range(3)]
        index = [v.cast(DType.UINT8).cast(DType.INT32) for v in chosen]
        stages.append(compiled([[px.lookup(entry, 1, i, length) for i in index]], [DType.UINT8, entry], 3))
    return stages


@pytest.fixture(
    scope="module",
    params=["null", pytest.param("cuda", marks=st.NEEDS_GPU)],
)
def library(folder, request):
    """Compile all kernels of this module together, and open their device."""
    compiled_library = st.CudaLibrary() if request.param == "cuda" else st.Library(folder)
    for kind, stages in STAGES.items():
        for stage in stages:
            if kind == "operations" and stage.in_types[0] not in COMPILED:
                continue
            stage.kind = kind
            compiled_library.add(stage)
    compiled_library.compile()
    return compiled_library


STAGES = {
    "operations": every_operation(),
    "chains": chains(),
    "views": viewed(),
    "groups": grouped(),
    "elements": elements(),
    "uniforms": from_uniforms(),
    "conversions": converted(),
    "tables": tables(),
    "coordinates": [stage for dtype in (DType.UINT8, DType.FLOAT) for stage in placed(dtype)],
    **{
        f"coordinates {interpolator}": placed(DType.UINT8, interpolator)
        for interpolator in ("resample", "affine", "project_linear")
    },
    "resample": sampled("resample"),
    "affine": sampled("affine"),
    **{interpolator: sampled(interpolator) for interpolator in st.PROJECTED},
}


def kernels(library, kind):
    return [(stage, kernel) for stage, kernel in library.kernels() if stage.kind == kind]


def test_every_operation(library):
    for stage, kernel in kernels(library, "operations"):
        dtype = stage.in_types[0].numpy.name
        a, b = values(dtype, 1), values(dtype, 2)
        whole = not stage.in_types[0].is_float and stage.in_types[0] != DType.BOOL
        divided = np.where(b == 0, np.ones_like(b), b) if whole else b
        rows = [st.Row(stage.numbers, [a, y], [a.shape] * len(stage.out_types)) for y in (divided, b, a[:1])]
        st.assert_same(stage, kernel, rows, library.device)


def test_results_of_uniforms(library):
    """A thread computes them once for all of its lanes, or once for each lane if they are many."""
    x = np.random.default_rng(0).normal(0, 9, (5, 37)).astype(np.float32)
    rows = kernels(library, "uniforms")
    assert ["k0 = op::" in stage.source().stage for stage, _ in rows] == [True, False]
    for stage, kernel in rows:
        st.assert_same(stage, kernel, [st.Row(stage.numbers, [x], [x.shape] * 3)], library.device)


def test_division_by_zero_fails_the_row(library):
    stage, kernel = next(
        (s, k) for s, k in kernels(library, "operations")
        if s.in_types[0] == DType.INT32 and any(i[0] == st.OPS["IDiv"] for i in s.code)
    )  # fmt: skip
    a = np.arange(5, dtype=np.int32)
    rows = [st.Row(stage.numbers, [a, b], [a.shape] * len(stage.out_types)) for b in (a + 1, a, a - 9)]
    _, errors = st.run(stage, kernel, rows, library.device)
    assert errors == ["", "expected a non-zero divisor in an integer division, got 0", ""]


def images(rng, dtype: DType, shape) -> np.ndarray:
    if dtype == DType.FLOAT:
        return rng.normal(100, 90, shape).astype(np.float32)
    info = np.iinfo(dtype.numpy)
    return rng.integers(max(info.min, -70_000), min(info.max, 70_000), shape, endpoint=True).astype(dtype.numpy)


def test_chains_of_channels(library):
    """Also ragged rows, an empty one, broadcasting, and rows that fail."""
    rng = np.random.default_rng(0)
    for stage, kernel in kernels(library, "chains"):
        c = stage.channels
        rows = []
        for height, width, have in ((5, 7, c), (1, 1, c), (0, 3, c), (70, 40, c), (6, 5, 1)):
            x = images(rng, stage.in_types[0], (height, width, have))
            rows.append(st.Row(stage.numbers, [x], [(height, width, c)] * 2))
        rows.append(st.Row(stage.numbers, [images(rng, stage.in_types[0], (4, 4, c))], [(5, 4, c)] * 2))
        st.assert_same(stage, kernel, rows, library.device)


def test_views(library):
    """Slices, flips, permutations and reshapes on both sides: every row has its own addresses and strides."""
    rng = np.random.default_rng(1)
    shapes = (lambda n: (5, n, 3), lambda n: (3, 5, n), lambda n: (3, 5, n), lambda n: (5, 9, 3))
    for (stage, kernel), shape in zip(kernels(library, "views"), shapes, strict=True):
        stores = stage.post == [[FLIP]]
        rows = []
        for numbers in ((8.0, -1.0, 9.0), (2.0, 3.0, 2.0), (1.0, 1.0, 5.0), (4.0, 1.0, 9.0)):
            x = images(rng, DType.UINT16, (5, int(numbers[2]) if stores else 9, 3))
            rows.append(st.Row(numbers, [x], [shape(int(numbers[2]))]))
        want, want_errors = st.reference(stage, rows)
        got, errors = st.run(stage, kernel, rows, library.device)
        assert errors == want_errors and errors[-1] == "the window leaves the tensor"
        # A store through a window leaves the rest of the output unchanged.
        compared = 1 if stores else len(rows) - 1
        assert all(np.array_equal(a[0], b[0]) for a, b in zip(got[:compared], want[:compared], strict=True))


def test_groups_of_lanes(library):
    """Lines of whole groups, which are aligned or not, with a rest, and shorter than a group, in both directions."""
    rng = np.random.default_rng(3)
    tested = kernels(library, "groups")
    assert len(tested) == len(STAGES["groups"])
    for stage, kernel in tested:
        rows = []
        for have, start, step, extent in (
            (40, 0, 1, 40), (40, 39, -1, 40), (40, 4, 1, 32), (40, 35, -1, 32), (13, 0, 1, 13), (13, 12, -1, 13),
            (13, 1, 1, 12), (40, 0, 2, 20), (16, 15, -2, 8), (3, 0, 1, 3), (3, 2, -1, 3), (512, 511, -1, 512),
            (600, 0, 1, 600),  # several batches of groups in a part
        ):  # fmt: skip
            x = images(rng, stage.in_types[0], (9, have, 3))
            shape = (3, 9, extent) if stage.post[0] else (9, extent, 3)
            rows.append(st.Row([*stage.numbers, float(start), float(step), float(extent)], [x], [shape]))
        assert not any(st.reference(stage, rows)[1])
        st.assert_same(stage, kernel, rows, library.device)


def resample_rows(rng, stage, count):
    rows = []
    flat = not stage.channels
    for k in range(count):
        height, width, out_h, out_w = (int(rng.integers(1, 24)) for _ in range(4))
        if k % 4 == 0:
            out_h, out_w = height, width
        if k % 5 == 0:
            height, width = 3 * height + 8, width  # the vertical pass first
        y0, x0 = rng.uniform(0, height / 3), rng.uniform(0, width / 3)
        region = (y0, rng.uniform(y0, height), x0, rng.uniform(x0, width)) if k % 3 else (0, height, 0, width)
        if k % 7 == 3:
            region = (region[1], region[0], region[2], region[3])  # mirrored
        if k % 11 == 4:
            region = tuple(map(round, region))
        numbers = [*map(float, region), float(k % 8), float(k % 8 if k % 6 else (k + 3) % 8), float(k % 9 != 2)]
        c = 3 if not flat or k % 2 else 2
        x = [images(rng, stage.in_types[0], (height, width, c))]
        shape = (out_h, out_w, c)
        if len(stage.in_types) > 1:
            x.append(images(rng, DType.FLOAT, (out_h, 1, 1)))
            shape = (c, out_h, out_w)
        rows.append(st.Row([*numbers, *stage.numbers], x, [shape]))
    return rows


def test_resample(library):
    """Every filter, enlarging and reducing, mirrored, whole pixels, both orders of the passes, all types."""
    rng = np.random.default_rng(2)
    for stage, kernel in kernels(library, "resample"):
        st.assert_same(stage, kernel, resample_rows(rng, stage, 120), library.device)


LARGE = [
    (130, 70, 75, 70),
    (60, 200, 70, 33),
    (90, 330, 40, 35),
    (300, 60, 270, 20),
    (700, 41, 20, 31),
    (37, 40, 150, 66),
    (75, 60, 52, 230),
]


def large_rows(rng, stage):
    """Return rows of several tiles, either pass first, at all alignments; also rows that no tile has room for."""
    rows = []
    for k, (height, width, out_h, out_w) in enumerate(LARGE):
        for filter_kind in (1, 3, 2 + k % 6):
            base = rng.integers(0, 256, (height, width + 1, 3), dtype=np.uint8)
            x = [base[:, k % 2 : width + k % 2]]  # rows that are not contiguous
            x0, x1 = (0.0, float(width)) if k % 3 else (width - 0.5, 2.25)
            numbers = [0.25 * k, height - 0.5, x0, x1, float(filter_kind), float(filter_kind), 1.0]
            shape = (out_h, out_w, 3)
            if len(stage.in_types) > 1:
                x.append(images(rng, DType.FLOAT, (out_h, 1, 1)))
                shape = (3, out_h, out_w)
            rows.append(st.Row([*numbers, *stage.numbers], x, [shape]))
    return rows


def test_resample_of_large_images(library):
    """8-bit images, in one kernel and in two; see resample_tile.cuh."""
    rng = np.random.default_rng(7)
    stages = [(s, k) for s, k in kernels(library, "resample") if s.in_types[0] == DType.UINT8]
    assert len(stages) == 6
    for stage, kernel in stages:
        st.assert_same(stage, kernel, large_rows(rng, stage), library.device)


def test_resample_refuses_what_the_cpu_refuses(library):
    stage, kernel = kernels(library, "resample")[0]
    good = [0.0, 4.0, 0.0, 4.0, 1.0, 1.0, 1.0]
    nan = [float("nan"), *good[1:]]
    rows = [
        st.Row([*nan, *stage.numbers], [np.zeros((4, 4, 3), np.uint8)], [(2, 2, 3)]),
        st.Row([*good, *stage.numbers], [np.zeros((0, 4, 3), np.uint8)], [(2, 2, 3)]),
        st.Row([*good, *stage.numbers], [np.zeros((4, 4, 3), np.uint8)], [(0, 2, 3)]),
        st.Row([*good, *stage.numbers], [np.ones((4, 4, 3), np.uint8)], [(2, 2, 3)]),
    ]
    st.assert_same(stage, kernel, rows, library.device)
    assert [bool(e) for e in st.reference(stage, rows)[1]] == [True, True, False, False]


def test_images_with_too_few_channels_are_refused(library):
    stage, kernel = kernels(library, "resample")[0]
    numbers = [0.0, 4.0, 0.0, 4.0, 1.0, 1.0, 1.0, *stage.numbers]
    rows = [st.Row(numbers, [np.ones((4, 4, 2), np.uint8)], [(2, 2, 3)])]
    st.assert_same(stage, kernel, rows, library.device)
    assert st.reference(stage, rows)[1] == ["expected at least 3 channels, got 2"]


def affine_rows(rng, stage, count):
    rows = []
    for k in range(count):
        height, width, out_h, out_w = (int(rng.integers(1, 20)) for _ in range(4))
        angle, scale = rng.uniform(-3.2, 3.2), rng.uniform(0.3, 2)
        m = [np.cos(angle) * scale, np.sin(angle), rng.uniform(-9, 9)]
        m += [-np.sin(angle), np.cos(angle) * scale, rng.uniform(-9, 9)]
        if k % 3 == 0:
            m = [rng.choice([1.0, -1.0, 0.7, 1.9]), 0.0, rng.uniform(-4, 12), 0.0, rng.choice([1.0, 0.6, -2.0]), 3.5]
        if k % 7 == 1:
            m[2] += 33_000.0  # too far for 16.16 numbers
            m[0] = -33_000.0 / max(1, out_w // 2)
        numbers = [*map(float, m), float(k % 2), float(k % 4 > 1), float(rng.choice([0.0, 12.5, -7.0, 300.0]))]
        c = 3
        have = 1 if k % 10 == 9 else c
        x = [images(rng, stage.in_types[0], (height, width, have))]
        shape = (out_h, out_w, c)
        if len(stage.in_types) > 1:
            x.append(images(rng, DType.FLOAT, (out_h, 1, 1)))
            shape = (c, out_h, out_w)
        rows.append(st.Row([*numbers, *stage.numbers], x, [shape]))
    return rows


def smooth_rows(rng, stage):
    """Return images with equal neighbours, at angles and steps whose results are almost integers, and far away."""
    rows = []
    for k in range(24):
        height, width, out_h, out_w = (int(v) for v in rng.integers(20, 60, 4))
        angle = (0.0, np.pi / 2, 0.3, -0.7)[k % 4]
        step = (1.0, 0.5, 2.0, 0.37)[k // 4 % 4]
        m = [np.cos(angle) * step, -np.sin(angle) * step, (0.0, 0.25, 7.3)[k % 3]]
        m += [np.sin(angle) * step, np.cos(angle) * step, (0.0, -0.5, 3.1)[k // 3 % 3]]
        if k % 8 == 7:
            m[2] += (300_000.0, 200_000.0)[k // 8 % 2]
        image = rng.integers(0, 256, (height // 5 + 1, width // 5 + 1, 3), dtype=np.uint8).repeat(5, 0).repeat(5, 1)
        image[:: 1 + k % 3, :, k % 3] = 255
        x = image if k % 5 else image[:, :, ::-1]  # channels that are not contiguous
        rows.append(st.Row([*map(float, m), 1.0, float(k % 2), 12.0, *stage.numbers], [x], [(out_h, out_w, 3)]))
    return rows


def test_affine_of_smooth_images(library):
    """Points that float cannot decide are decided in double; see device/stage_warp.cuh."""
    rng = np.random.default_rng(9)
    stages = [(s, k) for s, k in kernels(library, "affine") if s.in_types == [DType.UINT8] and s.channels == 3]
    assert len(stages) == 2
    for stage, kernel in stages:
        st.assert_same(stage, kernel, smooth_rows(rng, stage), library.device)


def test_affine(library):
    """Linear, and the three ways to step without interpolation, clamped and filled."""
    rng = np.random.default_rng(3)
    for stage, kernel in kernels(library, "affine"):
        st.assert_same(stage, kernel, affine_rows(rng, stage, 120), library.device)


def projected_rows(rng, stage, count):
    """Return horizons inside and outside the image, images of a pixel, several tiles, strided channels."""
    rows = []
    for k in range(count):
        height, width, out_h, out_w = (int(rng.integers(1, 60 if k % 5 else 3)) for _ in range(4))
        m = np.eye(3) + rng.normal(0, 0.3, (3, 3)) * ((1, 1, 9), (1, 1, 9), (0.2, 0.2, 0))
        if k % 4 == 3:
            m[2, :2] = rng.choice([0.0, -0.5, 0.25, 3.0], 2)
        fills = rng.integers(0, 256, 4).astype(float)
        have = 1 if k % 10 == 9 else (3, 2, 4, 1)[k % 4] if not stage.channels else 3
        x = [images(rng, stage.in_types[0], (height, width, have))]
        if k % 6 == 1:
            x = [x[0][:, ::-1, ::-1]]
        shape = (out_h, out_w, 3 if stage.channels else have)
        if len(stage.in_types) > 1:
            x.append(images(rng, DType.FLOAT, (out_h, 1, 1)))
            shape = (3, out_h, out_w)
        rows.append(st.Row([*m.reshape(-1)[:8], *fills, *stage.numbers], x, [shape]))
    return rows


@pytest.mark.parametrize("interpolator", st.PROJECTED)
def test_projections(library, interpolator):
    rng = np.random.default_rng(11)
    for stage, kernel in kernels(library, interpolator):
        rows = projected_rows(rng, stage, 60)
        st.assert_same(stage, kernel, rows, library.device)
        outputs = np.concatenate([row[0].reshape(-1) for row in st.reference(stage, rows)[0]])
        assert len(np.unique(outputs)) > 100, "and not fills alone"


def test_a_projection_refuses_what_the_cpu_refuses(library):
    stage, kernel = kernels(library, "project_linear")[1]
    m = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 9.0, 9.0, 9.0, 9.0]
    shapes = ((4, 4, 3), (4, 4, 5), (0, 4, 3), (4, 4, 3))
    rows = [st.Row([*m, *stage.numbers], [np.ones(s, np.uint8)], [(2, 2, s[2])]) for s in shapes]
    rows[3] = st.Row([np.inf, *m[1:], *stage.numbers], [np.ones((4, 4, 3), np.uint8)], [(2, 2, 3)])
    st.assert_same(stage, kernel, rows, library.device)
    errors = st.reference(stage, rows)[1]
    assert [bool(e) for e in errors] == [False, True, True, True] and "up to four channels" in errors[1]


def test_elements(library):
    """Random bits depend on coordinates alone; a table is shared by all elements of a row."""
    rng = np.random.default_rng(14)
    for stage, kernel in kernels(library, "elements"):
        rows = []
        for height, width in ((5, 7), (1, 1), (0, 3), (70, 90), (6, 5)):
            inputs = [images(rng, stage.in_types[0], (height, width, 3))]
            inputs += [values(t.numpy.name, height, 300) for t in stage.in_types[1:]]
            rows.append(st.Row(stage.numbers, inputs, [(height, width, 3)] * len(stage.out_types)))
        for table in (np.zeros(299),) if len(stage.in_types) > 1 else ():
            inputs = [images(rng, stage.in_types[0], (2, 2, 3)), table.astype(stage.in_types[1].numpy)]
            rows.append(st.Row(stage.numbers, inputs, [(2, 2, 3)]))
        st.assert_same(stage, kernel, rows, library.device)
        errors = st.reference(stage, rows)[1]
        assert [bool(e) for e in errors] == [False] * 5 + [True] * (len(rows) - 5)


def test_conversions(library):
    """Contiguous rows with whole groups and parts of groups, lines with gaps, and reversed lines."""
    for stage, kernel in kernels(library, "conversions"):
        dtype, channels = stage.in_types[0].numpy.name, max(stage.channels, 1)
        rows = []
        for height, width in ((1, 3), (1, 700), (40, 64), (9, 33)):
            count = height * (width + 8) * channels
            x = values(dtype, height, max(count, 600))[:count].reshape(height, width + 8, channels)
            for view in (x, x[:, 4:-4], x[:, ::-1]):
                rows.append(st.Row(stage.numbers, [view], [view.shape] * len(stage.out_types)))
        st.assert_same(stage, kernel, rows, library.device)


def test_tables_that_bytes_choose_from(library):
    """In all kinds of groups, and one by one."""
    rng = np.random.default_rng(15)
    for stage, kernel in kernels(library, "tables"):
        rows = []
        for height, width in ((5, 7), (1, 1), (0, 3), (70, 90), (6, 64)):
            x = images(rng, stage.in_types[0], (height, width, 3))
            table = values(stage.in_types[1].numpy.name, height, 256)
            for view in (x, x[:, ::-1], x.transpose(1, 0, 2)):
                rows.append(st.Row(stage.numbers, [view, table], [view.shape]))
        st.assert_same(stage, kernel, rows, library.device)


def test_coordinates(library):
    """Without memory, along merged and unmerged axes, over several tiles, and in reversed views."""
    rng = np.random.default_rng(12)
    for stage, kernel in kernels(library, "coordinates"):
        rows = []
        for height, width in ((5, 7), (1, 1), (0, 3), (70, 90), (1, 300), (6, 5)):
            x = images(rng, stage.in_types[0], (height, width, 3))[:: 1 if height % 2 else -1]
            rows.append(st.Row(stage.numbers, [x], [(3, height, width) if stage.post else (height, width, 3)]))
        st.assert_same(stage, kernel, rows, library.device)


@pytest.mark.parametrize("interpolator", ["resample", "affine", "project_linear"])
def test_coordinates_of_sampled_stages(library, interpolator):
    """Coordinates are those of the output, in all kernels of a sampled stage. Large rows have several tiles."""
    rng = np.random.default_rng(13)
    for stage, kernel in kernels(library, f"coordinates {interpolator}"):
        if interpolator == "resample":
            rows = [*resample_rows(rng, stage, 40), *large_rows(rng, stage)]
        elif interpolator == "affine":
            rows = [*affine_rows(rng, stage, 40), *smooth_rows(rng, stage)]
        else:
            rows = projected_rows(rng, stage, 30)
        for row in rows:
            if stage.post:
                row.shapes = [(row.shapes[0][2], *row.shapes[0][:2])]
        st.assert_same(stage, kernel, rows, library.device)
