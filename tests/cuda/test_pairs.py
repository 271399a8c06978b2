# SPDX-License-Identifier: Apache-2.0
"""Warps of two neighbours at a time (``device/stage_pairs.cuh``), against the CPU: the same bits, all rows."""

from __future__ import annotations

from typing import Any

import emulated_stages as st
import numpy as np
import pytest
from test_stages import compiled

from stoker.contract import pixel as px
from stoker.contract.types import DType

PLANAR = (1, 0, 0, 0, 0, [1, 2, 0])  # rows are given as HWC, and stored as CHW


def stages() -> dict[str, st.Stage]:
    """Return stages of one to eight bytes, with and without mirrors, flat, with a second input, with two outputs."""
    x = [px.load(DType.UINT8, 0, c) for c in range(3)]
    real = [v.cast(DType.FLOAT) for v in x]
    normal = [((v - 100.0 * c) * 0.01) for c, v in enumerate(real)]
    added = [px.binary("add", v, px.load(DType.FLOAT, 1, 0)).cast(DType.FLOAT16) for v in normal]
    mixed = [(real[c] * 0.5 + real[(c + 1) % 3] * 0.25).cast(DType.UINT8) for c in range(3)]
    halves = [v.cast(DType.FLOAT16) for v in normal]
    programs = {
        "bytes": ([x], [DType.UINT8], 3),
        "flat": ([[px.load(DType.UINT8).cast(DType.INT16)]], [DType.UINT8], 0),
        "halves and another input": ([added], [DType.UINT8, DType.FLOAT], 3),
        "doubles": ([[v.cast(DType.FLOAT64) for v in x]], [DType.UINT8], 3),
        "bytes and halves": ([mixed, halves], [DType.UINT8], 3),
    }
    found = {}
    for name, (program, types, channels) in programs.items():
        plain = compiled(program, types, channels, interpolator="affine")
        at = plain.interpolator_numbers + plain.uniforms
        three, mirror = (0, 2, at, at + 1, at + 2, []), (0, 2, at + 3, at + 4, at + 5, [])
        for post, suffix in (([PLANAR], ""), ([mirror, PLANAR], ", mirrored")):
            views = {"pre": [[three], *([] for _ in types[1:])], "post": [post] * len(program)}
            found[name + suffix] = compiled(program, types, channels, interpolator="affine", **views)
    return found


STAGES = stages()


@pytest.fixture(scope="module", params=["null", pytest.param("cuda", marks=st.NEEDS_GPU)])
def kernels(folder, request) -> tuple[dict[str, Any], Any]:
    """Return the kernels of the stages: pair kernels, and without a GPU a kernel that does nothing for other rows."""
    library = st.CudaLibrary() if request.param == "cuda" else st.Library(folder)
    for stage in STAGES.values():
        library.add(stage)
    library.compile()
    if request.param == "cuda":
        pair_kernels = [kernel for stage, kernel in library.kernels()][::2]
    else:
        nothing = library.device.load(b"").function("stoker_stage")
        pair_kernels = []
        for stage, names, source in library.functions:
            functions = [nothing, *(library.module.function(n) for n in names[1:])]
            pair_kernels.append(_gpu_stage(stage, functions, source))
    return dict(zip(STAGES, pair_kernels, strict=True)), library.device


def _gpu_stage(stage: st.Stage, functions: list[Any], source: Any) -> Any:
    return st.forms(stage, functions, source)[0][1]


def rows(rng: np.random.Generator, name: str) -> list[st.Row]:
    """Return rotated and stretched images, sampled inside and outside, smooth and not. Every output width is even.

    The points of the first rows are at the very edges of the source, and at pixel centres and borders.
    """
    stage, found = STAGES[name], []
    for k in range(30, 46):
        found.append(_row(stage, [1.0, 0.0, (k % 4) - 2.0, 0.0, 0.5, (k // 4) / 4 - 9.0], k, rng, (9, 7), (26, 12)))
    for k in range(30):
        height, width = (int(v) for v in rng.integers(2, 120, 2))
        out_h, out_w = int(rng.integers(1, 140 if k % 6 == 0 else 40)), 2 * int(rng.integers(1, 40))
        angle = rng.uniform(-0.6, 0.6) if k % 3 else (0.0, np.pi / 2, 3.0)[k // 3 % 3]
        step = (1.0, 0.9, 0.5, 0.3)[k % 4]
        m = [np.cos(angle) * step, -np.sin(angle) * step, rng.uniform(0, width / 3) if k % 4 else 0.0]
        m += [np.sin(angle) * step, np.cos(angle) * step, rng.uniform(0, height / 3) if k % 5 else 0.25]
        found.append(_row(stage, m, k, rng, (height, width), (out_h, out_w)))
    return found


def _row(stage: st.Stage, m: list[Any], k: int, rng: np.random.Generator, size: Any, out: Any) -> st.Row:
    """Return a row from an image of a size, rough for every other ``k``, filled or clamped for every other two."""
    (height, width), (out_h, out_w) = size, out
    rough = rng.integers(0, 256, (height // 4 + 1, width // 4 + 1, 4), dtype=np.uint8).repeat(4, 0).repeat(4, 1)
    image = rough[:height, :width] if k % 2 else rng.integers(0, 256, (height, width, 4), dtype=np.uint8)
    numbers = [*map(float, m), 1.0, float(k % 4 > 1), 12.0, *stage.numbers]
    numbers += [0.0, 1.0, 3.0, float(out_w - 1), -1.0, float(out_w)]  # three channels of four; the mirror
    x: list[np.ndarray] = [np.ascontiguousarray(image)]
    if len(stage.in_types) > 1:
        x.append(rng.random((out_h, out_w, 1), dtype=np.float32))
    return st.Row(numbers, x, [(3, out_h, out_w)] * len(stage.out_types))


@pytest.mark.parametrize("name", STAGES)
def test_pairs(kernels, name):
    pair_kernels, device = kernels
    st.assert_same(STAGES[name], pair_kernels[name], rows(np.random.default_rng(5), name), device)


@pytest.mark.parametrize("kernels", ["null"], indirect=True)
def test_a_row_whose_neighbours_are_apart_is_left_to_the_plain_kernel(kernels):
    """The planted error: the plain kernel does nothing here without a GPU, so a row that needs it stays unwritten."""
    pair_kernels, device = kernels
    row = rows(np.random.default_rng(6), "bytes")[1]
    row.shapes = [(3, 9, 7)]
    with pytest.raises(AssertionError):
        st.assert_same(STAGES["bytes"], pair_kernels["bytes"], [row], device)
