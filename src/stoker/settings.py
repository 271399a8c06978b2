# SPDX-License-Identifier: Apache-2.0
"""Settings from the environment. A value that is not a valid number raises ValueError.

STOKER_NUM_THREADS   default number of worker threads of a pipeline
STOKER_SIMD          plain, avx2, avx512 or neon: widest instruction set to use (default: the machine's widest)
STOKER_WITHOUT_GPU   error (default) or cpu: policy for pipelines with GPU operators on a machine without a GPU
STOKER_KERNEL_CACHE  folder of compiled GPU kernels, or "off" (default: stoker/kernels in the user's cache folder)
STOKER_KERNEL_CACHE_MIB  size limit of that folder (default: 256)
STOKER_DATA          folder of images for tests and benchmarks (default: generated images)
"""

from __future__ import annotations

import os
from pathlib import Path

_MANY = 8  # cores


def default_threads() -> int:
    """Return the number of threads for this process: the affinity mask, within the container's CPU quota."""
    asked = _number("STOKER_NUM_THREADS", 1)
    if asked is not None:
        return asked
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _quota("/sys/fs/cgroup") or cores))


def threads_beside_a_gpu() -> int:
    """Return the number of worker threads of a pipeline with a GPU: :func:`default_threads`, less one if there are at
    least 8.

    The free core serves the threads that request batches, issue their GPU work and wait for it. With 16 cores, 16
    workers make 6 % fewer batches than 15.
    """
    threads = default_threads()
    return threads - 1 if threads >= _MANY and _number("STOKER_NUM_THREADS", 1) is None else threads


def without_gpu() -> str:
    """Return the policy for machines without a GPU: "error" or "cpu"."""
    return os.environ.get("STOKER_WITHOUT_GPU", "") or "error"


def kernel_cache() -> tuple[Path, int] | None:
    """Return the folder of compiled kernels and its size limit in bytes; None if the cache is off."""
    asked = os.environ.get("STOKER_KERNEL_CACHE", "")
    if asked == "off":
        return None
    cache = os.environ.get("XDG_CACHE_HOME", "") or os.path.join(os.path.expanduser("~"), ".cache")
    mib = _number("STOKER_KERNEL_CACHE_MIB", 0)
    return Path(asked) if asked else Path(cache, "stoker", "kernels"), (256 if mib is None else mib) << 20


def _number(name: str, least: int) -> int | None:
    """Return the integer value of a setting; None if it is not set."""
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and int(text) >= least):
        raise ValueError(f"{name}: expected a whole number >= {least}, got {text!r}")
    return int(text)


def _quota(root: str) -> int | None:
    """Return the number of whole CPUs that a cgroup allows, rounded up; None without a limit."""
    try:
        quota, period = _read(root, "cpu.max").split()[:2]
        if quota != "max":
            return -(-int(quota) // int(period))
    except (OSError, ValueError):
        pass
    try:
        quota_us = int(_read(root, "cpu/cpu.cfs_quota_us"))
        period_us = int(_read(root, "cpu/cpu.cfs_period_us"))
        return -(-quota_us // period_us) if quota_us > 0 else None
    except (OSError, ValueError):
        return None


def _read(*parts: str) -> str:
    with open(os.path.join(*parts), encoding="ascii") as file:
        return file.read()
