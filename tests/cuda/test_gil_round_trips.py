# SPDX-License-Identifier: Apache-2.0
"""A batch on a GPU (a null device) gives the GIL away twice at most: when it is queued, and when it is awaited."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import fn, pipeline_def
from stoker.device.gpu import Gpu
from stoker.native import _native

BATCHES = 10
WINDOWS = 20


class IdleGpu(Gpu):
    """The null device with kernels that do nothing."""

    def compiled(self, source: str) -> bytes:
        return b""


@pytest.fixture
def idle_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pipelines open the idle GPU."""
    opened = staticmethod(lambda number, memory_limit=None: IdleGpu(_native.gpu.open_null(), 1 << 40))
    monkeypatch.setattr(Gpu, "open", opened)


@pipeline_def(batch_size=4, num_threads=2, seed=1, device_id=0)
def doubling() -> Any:
    x = fn.external_source(source=lambda info: np.full((3, 2), info.idx_in_epoch % 50, np.uint8), batch=False)
    return fn.cast(x.gpu() * 2, dtype=np.int16)


@pytest.mark.parametrize("settings", [{}, {"prefetch_queue_depth": 4}, {"exec_async": False}])
def test_round_trips_of_a_batch(idle_gpu: None, settings: dict[str, Any]) -> None:
    """Another thread that runs Python may keep the GIL for milliseconds each time."""
    with doubling(**settings) as pipe:
        for _ in range(4):  # the first batches take memory
            pipe.run()
        fewest = 1 << 30
        for _ in range(WINDOWS):  # a busy machine has a consumer poll, but not in all of them
            before = _native.gil_acquired()
            for _ in range(BATCHES):
                pipe.run()
            fewest = min(fewest, _native.gil_acquired() - before)
        assert fewest <= 2 * BATCHES
