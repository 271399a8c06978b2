# SPDX-License-Identifier: Apache-2.0
"""Operators with kernels of their own on a GPU: the CPU's bits, for all types, layouts and sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import emulated_stages
import numpy as np
import pytest

from stoker import fn, pipeline_def
from stoker.device.gpu import Gpu

Source = Callable[[Any], Any]


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], autouse=True)
def gpu(folder, monkeypatch, request):
    """GPU 0 is the null device, unless there is one."""
    if request.param == "null":
        monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: emulated_stages.EmulatedGpu(folder)))


def rows_of(output: Any) -> list[np.ndarray]:
    return [np.array(row) for row in output.as_cpu()]


def same(columns: Sequence[Sequence[np.ndarray]], make: Callable[..., Any], *layouts: str) -> list[list[np.ndarray]]:
    """What the CPU gives for ``make(*inputs)`` over rows of inputs. A GPU gives the same bits, NaNs aside."""

    @pipeline_def(batch_size=len(columns[0]), num_threads=2, seed=5)
    def pipe(on_gpu: bool) -> Any:
        inputs = []
        for i, column in enumerate(columns):
            layout = layouts[i] if i < len(layouts) else ""
            x = fn.external_source(
                source=lambda info, column=column: column[info.idx_in_batch], batch=False, layout=layout or None
            )
            inputs.append(x.gpu() if on_gpu else x)
        return make(*inputs)

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


def shaped(layout: str, height: int, width: int, channels: int = 3, frames: int = 2) -> list[int]:
    return [{"F": frames, "H": height, "W": width, "C": channels}[axis] for axis in layout]


LAYOUTS = ("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_equalize(layout: str) -> None:
    """Also images of one value, of few, without pixels, and of several blocks."""
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 256, shaped(layout, h, w), np.uint8) for h, w in ((9, 7), (1, 1), (0, 4), (30, 21))]
    rows += [np.full(shaped(layout, 5, 6), 77, np.uint8), rng.integers(3, 6, shaped(layout, 8, 8), np.uint8)]
    rows.append(np.clip(rng.normal(90, 20, shaped(layout, 150, 131)), 0, 255).astype(np.uint8))
    same([rows], fn.equalize, layout)
    same([rows], lambda x: fn.equalize(fn.flip(x, horizontal=1, vertical=1)), layout)
