# SPDX-License-Identifier: Apache-2.0
"""Limits on the memory of one batch, from the pipeline's options or from what is available."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from ..contract.config import PipelineConfig
from ..native import _native
from ..settings import available_memory

_PART = 0.9  # of the available memory; the rest is for what is not counted
_LEAST = 256 << 20  # a default below this would refuse ordinary batches, which the system may find memory for


_AGE_S = 0.25  # of what is known of the available memory: reading it takes as long as planning a tenth of a pipeline


class BatchLimits(NamedTuple):
    """Most bytes that a batch may take. 0: no limit."""

    host: int = 0
    device: int = 0


NO_LIMITS = BatchLimits()


def batch_limits(config: PipelineConfig, ahead: int, device: _native.gpu.Device | None) -> BatchLimits:
    """Return the limits of a pipeline that is about to run.

    Args:
        ahead: number of prefetched batches. The consumer uses one more.
        device: the GPU; None without one.
    """
    if config.max_batch_bytes is not None:
        return BatchLimits(config.max_batch_bytes, config.max_batch_bytes)
    available = _recent(available_memory)
    host = 0 if available is None else max(_LEAST, int(_PART * available / (ahead + 1)))
    if device is None or config.gpu_memory_limit is not None:
        return BatchLimits(host)
    return BatchLimits(host, max(_LEAST, device.free_bytes))


_latest: tuple[Callable[[], int | None], float, int | None] = (available_memory, -_AGE_S, None)


def _recent(read: Callable[[], int | None]) -> int | None:
    """Return what ``read`` returns, or returned a moment ago."""
    global _latest  # replaced as a whole, by any thread
    function, at, value = _latest
    now = time.monotonic()
    if function is not read or now - at >= _AGE_S:
        value = read()
        _latest = read, now, value
    return value
