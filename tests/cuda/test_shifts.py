# SPDX-License-Identifier: Apache-2.0
"""Images that are shifted by whole pixels (``device/stage_shift.cuh``), against the CPU: the same bits, all rows."""

from __future__ import annotations

from typing import Any

import emulated_stages as st
import numpy as np
import pytest
from test_stages import compiled, images

from stoker.contract import pixel as px
from stoker.contract.types import DType

TYPES = (DType.UINT8, DType.UINT16, DType.INT16, DType.INT32, DType.FLOAT)
FILLS = (0.0, 12.0, 255.0, -3.0, 70_000.0, 0.5)


def _stage(dtype: DType, *, cut: bool) -> st.Stage:
    """Return a stage that samples an image, or a part of its lines in either direction."""
    stage = compiled([[px.load(dtype)]], [dtype], 0, interpolator="affine")
    at = stage.interpolator_numbers
    stage.pre = [[(0, 0, at, at + 1, at + 2, [])] if cut else []]
    return stage


STAGES = {(dtype, cut): _stage(dtype, cut=cut) for dtype in TYPES for cut in (False, True)}


@pytest.fixture(scope="module", params=["null", pytest.param("cuda", marks=st.NEEDS_GPU)])
def kernels(folder, request) -> tuple[dict[Any, Any], Any]:
    """Return the kernels of the stages, without a GPU those whose rows are shifts, and nothing for other rows."""
    library = st.CudaLibrary() if request.param == "cuda" else st.Library(folder)
    for stage in STAGES.values():
        library.add(stage)
    library.compile()
    if request.param == "cuda":
        found = {key: next(k for s, k in library.kernels() if s is stage) for key, stage in STAGES.items()}
    else:
        nothing, found = library.device.load(b"").function("stoker_stage"), {}
        for key, (stage, names, source) in zip(STAGES, library.functions, strict=True):
            functions = [nothing, *(library.module.function(n) for n in names[1:])]
            found[key] = st.forms(stage, functions, source)[0][1]
    return found, library.device


def _numbers(dx: float, dy: float, fill: float) -> list[float]:
    return [1.0, 0.0, float(dx), 0.0, 1.0, float(dy), 0.0, 1.0, fill]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.name.lower())
def test_shifted_images(kernels: tuple[dict[Any, Any], Any], dtype: DType) -> None:
    """Images that overlap the output anywhere or nowhere, of lines shorter and longer than a chunk, and of pixels with
    one to five elements."""
    rng = np.random.default_rng(int(dtype))
    rows = []
    for k in range(90):
        most = (4, 40, 700)[k % 3]
        height, width, out_h, out_w = (int(v) for v in rng.integers(1, most, 4))
        height, out_h = min(height, 40), min(out_h, 40)
        dx, dy = int(rng.integers(-out_w - 2, width + 2)), int(rng.integers(-out_h - 2, height + 2))
        if k % 4 == 0:
            dx, dy = -int(rng.integers(0, 5)), -int(rng.integers(0, 3))
        channels = k % 5 + 1
        x = images(rng, dtype, (height, width, channels))
        rows.append(st.Row(_numbers(dx, dy, FILLS[k % len(FILLS)]), [x], [(out_h, out_w, channels)]))
    rows.append(st.Row(_numbers(2.0**28, -1, 5.0), [images(rng, dtype, (3, 4, 1))], [(5, 6, 1)]))
    st.assert_same(STAGES[dtype, False], kernels[0][dtype, False], rows, kernels[1])


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.name.lower())
def test_shifted_views(kernels: tuple[dict[Any, Any], Any], dtype: DType) -> None:
    """Some lines of an image, also backwards: the bytes around them are other lines' or no tensor's."""
    rng = np.random.default_rng(int(dtype))
    stage, rows = STAGES[dtype, True], []
    for start, step, extent in ((0, 1, 9), (8, -1, 9), (1, 2, 4), (8, -3, 3), (4, 1, 1)):
        for dx, dy in ((0, 0), (-3, 2), (5, -4)):
            x = images(rng, dtype, (9, 37, 3))
            numbers = [*_numbers(dx, dy, 7.0), float(start), float(step), float(extent)]
            rows.append(st.Row(numbers, [x], [(11, 40, 3)]))
    st.assert_same(stage, kernels[0][dtype, True], rows, kernels[1])
