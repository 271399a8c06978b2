# SPDX-License-Identifier: Apache-2.0
"""Perspective as the interpolator of fused stages, on the null device or a GPU: bits as on the CPU, one launch."""

from __future__ import annotations

from collections import Counter
from typing import Any

import emulated_stages
import numpy as np
import pytest
from test_own_kernels import LAYOUTS, compare_rows, shaped

from stoker import DataError, eager, fn, pipeline_def, types
from stoker.device.gpu import Gpu


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], autouse=True)
def gpu(folder, monkeypatch, request):
    """Use the null device as GPU 0, unless there is a GPU."""
    if request.param == "null":
        monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: emulated_stages.EmulatedGpu(folder)))


PERSPECTIVES = (
    (0.9, 0.2, 1.5, -0.1, 1.1, -0.75, 0.002, 0.004, 1.0),
    (0.5, 0.1, 3.0, -0.1, 0.6, -4.0, -0.03, 0.01, 1.4),
)


@pytest.mark.parametrize("interp_type", ["INTERP_NN", "INTERP_LINEAR", "INTERP_CUBIC"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_warp_perspective(layout: str, interp_type: str) -> None:
    """Every row has its matrix, one with a horizon; output sizes differ from the image's; one to four channels."""
    rng = np.random.default_rng(2)
    sizes = ((9, 7), (1, 1), (40, 33), (2, 50))
    channels = (1, 3, 4, 2) if "C" in layout else (1,) * 4
    rows = [rng.integers(0, 256, shaped(layout, *s, c), np.uint8) for s, c in zip(sizes, channels, strict=True)]
    matrices = [np.array(PERSPECTIVES[i % 2], np.float32).reshape(3, 3) for i in range(4)]

    def shown(x: Any, m: Any) -> Any:
        first = fn.experimental.warp_perspective(x, m, interp_type=interp_type, fill_value=9.0)
        mirrored = fn.flip(x, horizontal=1)
        second = fn.experimental.warp_perspective(
            mirrored, m, interp_type=interp_type, size=(21, 60), inverse_map=False, pixel_origin="center"
        )
        return first, second

    compare_rows([rows, matrices], [layout, ""], shown)


def test_fills_of_channels() -> None:
    rows = [np.full((6, 5, 3), 200, np.uint8)]
    make = lambda x: fn.experimental.warp_perspective(x, matrix=PERSPECTIVES[0], fill_value=(1.0, 2.0, 300.0))  # noqa: E731
    (rows_out,) = compare_rows([rows], ["HWC"], make)
    assert {tuple(p) for p in rows_out[0].reshape(-1, 3)} == {(200, 200, 200), (1, 2, 255)}


@pytest.mark.parametrize("on_gpu", [False, True])
def test_a_matrix_that_overflows_is_refused(on_gpu: bool) -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe() -> Any:
        x = fn.external_source(source=lambda info: np.zeros((4, 4, 3), np.uint8), batch=False, layout="HWC")
        m = fn.external_source(source=lambda info: np.array([1e30] * 8 + [1e-300]), batch=False)
        return fn.experimental.warp_perspective(x.gpu() if on_gpu else x, m)

    with pipe(**({"device_id": 0} if on_gpu else {})) as running, pytest.raises(DataError, match="finite when divided"):
        running.run()


def chain(x: Any, m: Any) -> Any:
    x = fn.experimental.warp_perspective(fn.flip(x, horizontal=1), m, size=(37, 41), fill_value=(1.0, 2.0, 3.0))
    x = fn.color_twist(x, saturation=0.4, hue=20.0, brightness=1.2)
    how = {"mean": [1.0, 2.0, 3.0], "std": [40.0, 50.0, 60.0], "mirror": 1, "output_layout": "CHW"}
    return (fn.crop_mirror_normalize(x, dtype=types.FLOAT16, **how),)


def test_a_chain_is_one_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Perspective, colours, normalization and a layout change are one launch, without intermediate memory."""
    launched: Counter[str] = Counter()
    load = Gpu.load

    def counting(self: Any, source: str) -> Any:
        launched[source] += 1
        return load(self, source)

    monkeypatch.setattr(Gpu, "load", counting)
    rng = np.random.default_rng(3)
    rows = [rng.integers(0, 256, (h, w, 3), np.uint8) for h, w in ((9, 7), (60, 50), (33, 70))]
    matrices = [np.array(PERSPECTIVES[i % 2], np.float32) for i in range(3)]
    compare_rows([rows, matrices], ["HWC", ""], chain)
    assert sum(launched.values()) == 1, "one kernel"


def test_a_matrix_for_every_frame() -> None:
    rng = np.random.default_rng(4)
    clips = [rng.integers(0, 256, (f, 12, 17, 3), np.uint8) for f in (3, 1, 4)]
    matrices = [np.stack([np.array(PERSPECTIVES[k % 2], np.float32) + k / 50 for k in range(len(c))]) for c in clips]
    make = lambda x, m: (fn.experimental.warp_perspective(x, matrix=fn.per_frame(m), size=(10, 11)),)  # noqa: E731

    @pipeline_def(batch_size=3, num_threads=1)
    def pipe(on_gpu: bool) -> Any:
        x = fn.external_source(source=lambda info: clips[info.idx_in_batch], batch=False, layout="FHWC")
        m = fn.external_source(source=lambda info: matrices[info.idx_in_batch], batch=False, dtype=types.FLOAT, ndim=2)
        return make(x.gpu() if on_gpu else x, fn.reshape(m, shape=[-1, 9]))

    with pipe(False) as cpu, pipe(True, device_id=0) as gpu:
        (want,), (got,) = cpu.run(), gpu.run()
        for row, (a, b) in enumerate(zip(got.as_cpu(), want, strict=True)):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
            for frame, m, shown in zip(clips[row], matrices[row], np.asarray(b), strict=True):
                one = eager.experimental.warp_perspective(frame, matrix=m.tolist(), size=(10, 11))
                np.testing.assert_array_equal(shown, one)
