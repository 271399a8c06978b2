# SPDX-License-Identifier: Apache-2.0
"""The current device of the consumer's thread is restored, because other libraries query it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import fn, pipeline_def
from stoker.device.gpu import Gpu
from stoker.native import _native


@pipeline_def(batch_size=4, num_threads=2, seed=1, device_id=0)
def doubling(ragged: bool, python: bool) -> Any:
    def rows(info: Any) -> Any:
        return np.full((3 + info.idx_in_epoch % 3 * ragged, 2), info.idx_in_epoch % 50, np.uint8)

    x = fn.external_source(source=rows, batch=False)
    if python:
        x = fn.python_function(x, function=lambda a: a + 1, device="cpu")
    return fn.cast(x.gpu() * 2, dtype=np.int16)


@pytest.mark.parametrize("settings", [{}, {"exec_async": False}, {"gpu_memory_limit": 64 << 20}])
@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("python", [False, True])
def test_the_device_of_the_consumers_thread_is_restored(
    emulated_gpu: None, ragged: bool, python: bool, settings: dict[str, Any]
) -> None:
    assert not _native.gpu.is_null_device_current()
    pipe = doubling(ragged, python, **settings).build()
    assert not _native.gpu.is_null_device_current()
    batches = []
    for k in range(3):
        (batch,) = pipe.run()
        assert not _native.gpu.is_null_device_current()
        assert np.asarray(batch.as_cpu()[0])[0, 0] == 2 * (4 * k % 50 + python)
        batches.append(batch)
    pipe.close()
    assert not _native.gpu.is_null_device_current()
    del batches, batch, pipe
    assert not _native.gpu.is_null_device_current()


def test_devices_are_opened_and_closed_beside_others(emulated_gpu: None) -> None:
    gpu: Any = Gpu.open(0)
    assert gpu.device.free_bytes > 0
    gpu.device.load(b"").function("anything")
    del gpu
    assert not _native.gpu.is_null_device_current()
