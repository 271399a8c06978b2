# SPDX-License-Identifier: Apache-2.0
"""Pipelines with coordinates in their stages, on an emulated GPU: the CPU's bits."""

from __future__ import annotations

from typing import Any

import emulated_stages
import numpy as np
import pytest

from stoker import fn, pipeline_def, types
from stoker.device.gpu import Gpu

ROWS = 3
PAD = {"out_of_bounds_policy": "pad", "fill_values": (10.0, 20.0, 30.0)}


@pytest.fixture(autouse=True)
def gpu(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Gpu, "open", staticmethod(lambda number, memory_limit=None: emulated_stages.EmulatedStages(folder))
    )


def images(info: Any) -> Any:
    rng = np.random.default_rng(info.idx_in_epoch)
    return rng.integers(0, 256, (5 + 30 * (info.idx_in_epoch % 2), 9 + info.idx_in_epoch, 3), dtype=np.uint8)


@pipeline_def(batch_size=ROWS, num_threads=1, seed=4, device_id=0)
def padded(device: str) -> Any:
    x = fn.external_source(source=images, batch=False, dtype=types.UINT8, ndim=3, layout="HWC", device=device)
    mirror = fn.random.coin_flip()
    cropped = fn.flip(fn.crop(x, crop=(20, 40), crop_pos_x=fn.random.uniform(range=[0, 1]), **PAD), horizontal=mirror)
    return cropped, fn.crop_mirror_normalize(x, crop=(17, 50), mirror=mirror, mean=[1.0, 2.0, 3.0], std=4.0, **PAD)


def test_paddings_are_the_cpus() -> None:
    with padded("gpu") as on_gpu, padded("cpu") as on_cpu:
        for _ in range(2):
            for got, want in zip(on_gpu.run(), on_cpu.run(), strict=True):
                for a, b in zip(got.as_cpu(), want, strict=True):
                    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
