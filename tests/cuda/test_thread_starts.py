# SPDX-License-Identifier: Apache-2.0
"""A pipeline on a GPU (a null device) without the thread that waits for the device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from stoker import ResourceError, fn, pipeline_def
from stoker.native import _native

THREADS = 2


@pytest.fixture(autouse=True)
def _no_limit_afterwards() -> Iterator[None]:
    yield
    _native.fail_thread_starts(-1)


@pipeline_def(batch_size=4, num_threads=THREADS, seed=1, device_id=0)
def doubling() -> Any:
    x = fn.external_source(source=lambda info: np.full((3, 2), info.idx_in_epoch % 50, np.uint8), batch=False)
    return fn.cast(x.gpu() * 2, dtype=np.int16)


@pytest.mark.parametrize("started", range(THREADS + 1))
def test_no_batch_waits_for_a_missing_thread(emulated_gpu: None, started: int) -> None:
    with doubling() as pipe:
        pipe.build()
        _native.fail_thread_starts(started)  # finally the one that waits for the device, which starts after the others
        with pytest.raises(ResourceError, match=rf"expected to start {THREADS + 1} threads, got {started} before"):
            pipe.run()
        _native.fail_thread_starts(-1)
        for k in range(3):
            (batch,) = pipe.run()
            assert [np.asarray(row)[0, 0] for row in batch.as_cpu()] == [2 * (4 * k + r) for r in range(4)]
