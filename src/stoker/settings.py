# SPDX-License-Identifier: Apache-2.0
"""Settings from the environment. A value that is not a valid number raises ValueError.

STOKER_NUM_THREADS   default number of worker threads of a pipeline
STOKER_SIMD          plain, avx2, avx512 or neon: widest instruction set to use (default: the machine's widest)
STOKER_WITHOUT_GPU   error (default) or cpu: policy for pipelines with GPU operators on a machine without a GPU
STOKER_GPU_MULTIPROCESSORS  most multiprocessors of a GPU that kernels may take, rounded up by its driver (default: all)
STOKER_GDS           off (default), auto or on: GPUDirect Storage for large files that go to a GPU
STOKER_KERNEL_CACHE  folder of compiled GPU kernels, or "off" (default: stoker/kernels in the user's cache folder)
STOKER_KERNEL_CACHE_MIB  size limit of that folder (default: 256)
STOKER_INDEX_CACHE   folder of indexes of container files, or "off" (default: stoker/indexes in the user's cache folder)
STOKER_INDEX_CACHE_MIB  size limit of that folder (default: 1024)
STOKER_REMOTE_CACHE  folder of blocks of remote objects, or "off" (default: stoker/blocks in the user's cache folder)
STOKER_REMOTE_CACHE_MIB  size limit of that folder (default: 16384)
STOKER_REMOTE_DEADLINE_S  seconds after which the bytes of a remote object are given up (default: 120)
STOKER_REMOTE_AHEAD_MIB  bytes of remote objects that are loaded ahead of requests; 0: none (default: 256)
STOKER_READ_AHEAD_MIB  bytes of local files that are read ahead of the rows from a cold disk; 0: none (default: 64)
STOKER_VIDEO_CLIP_MIB  largest clip of a video that is decoded (default: 16384, or half of the available memory)
STOKER_DATA          folder of images for tests and benchmarks (default: generated images)
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Here and not at its first use, which a fork by another thread might meet.
try:
    import resource

    _HAS_LIMITS = True
except ImportError:  # Windows
    _HAS_LIMITS = False

_MANY = 8  # cores
_SMALL_CLIP = 256 << 20  # bytes
_NO_LIMIT = 1 << 60  # bytes; version 1 of cgroups has a large number where there is no limit


def default_threads() -> int:
    """Return the number of threads for this process: the affinity mask, within the container's CPU quota."""
    asked = _number("STOKER_NUM_THREADS", 1)
    if asked is not None:
        return asked
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, _quota("/sys/fs/cgroup") or cores))


def available_memory() -> int | None:
    """Return the bytes of memory that this process may still take; None if the system does not report it.

    That is the machine's available memory, within the limits of the process's cgroups and its address space.
    """
    found = [_available_on_machine(), _available_in_cgroups("/sys/fs/cgroup", "/proc/self/cgroup"), _address_space()]
    return min((max(0, f) for f in found if f is not None), default=None)


def threads_with_gpu() -> int:
    """Return the number of worker threads of a pipeline with a GPU: :func:`default_threads`, less one if there are at
    least 8.

    The free core serves the threads that request batches, issue their GPU work and wait for it. With 16 cores, 16
    workers deliver 6 % fewer batches than 15.
    """
    threads = default_threads()
    return threads - 1 if threads >= _MANY and _number("STOKER_NUM_THREADS", 1) is None else threads


def without_gpu() -> str:
    """Return the policy for machines without a GPU: "error" or "cpu"."""
    return os.environ.get("STOKER_WITHOUT_GPU", "") or "error"


def gpu_multiprocessors() -> int:
    """Return the number of a GPU's multiprocessors that pipelines may use; 0: all."""
    return _number("STOKER_GPU_MULTIPROCESSORS", 0) or 0


def gpu_direct_storage() -> str:
    """Return whether large files are read to a GPU by GPUDirect Storage.

    "off": never. "auto": if the system has NVIDIA's driver for it, and the first reads were faster than through
    page-locked memory. "on": always; an error where cuFile is missing or fails.

    Raises:
        ValueError: STOKER_GDS has another value.
    """
    asked = os.environ.get("STOKER_GDS", "") or "off"
    if asked not in ("off", "auto", "on"):
        raise ValueError(f"STOKER_GDS: expected off, auto or on, got {asked!r}")
    return asked


def kernel_cache() -> tuple[Path, int] | None:
    """Return the folder of compiled kernels and its size limit in bytes; None if the cache is off."""
    asked = os.environ.get("STOKER_KERNEL_CACHE", "")
    return _cache(asked, "kernels", _number("STOKER_KERNEL_CACHE_MIB", 0), 256)


def index_cache() -> tuple[Path, int] | None:
    """Return the folder of indexes of container files and its size limit in bytes; None if the cache is off."""
    asked = os.environ.get("STOKER_INDEX_CACHE", "")
    return _cache(asked, "indexes", _number("STOKER_INDEX_CACHE_MIB", 0), 1024)


def remote_cache() -> tuple[Path, int] | None:
    """Return the folder of blocks of remote objects and its size limit in bytes; None if the cache is off."""
    asked = os.environ.get("STOKER_REMOTE_CACHE", "")
    return _cache(asked, "blocks", _number("STOKER_REMOTE_CACHE_MIB", 1), 16384)


def remote_deadline_s() -> int:
    """Return the time after which an object's bytes are given up, in seconds."""
    asked = _number("STOKER_REMOTE_DEADLINE_S", 1)
    return 120 if asked is None else asked


def remote_ahead_bytes() -> int:
    """Return the bytes of remote objects that may be loaded ahead of requests; 0: none."""
    asked = _number("STOKER_REMOTE_AHEAD_MIB", 0)
    return (256 if asked is None else asked) << 20


def read_ahead_bytes() -> int:
    """Return the bytes of local files that may be read ahead of the rows; 0: none."""
    asked = _number("STOKER_READ_AHEAD_MIB", 0)
    return (64 if asked is None else asked) << 20


def video_clip_bytes(size: float) -> int:
    """Return the size of the largest clip of a video that is decoded, in bytes.

    Args:
        size: bytes of the clip. The available memory counts for large ones alone, because it takes 0.3 ms to find.
    """
    asked = _number("STOKER_VIDEO_CLIP_MIB", 1)
    most = (16384 if asked is None else asked) << 20
    if asked is None and size > _SMALL_CLIP:
        available = available_memory()
        return most if available is None else max(_SMALL_CLIP, min(most, available // 2))
    return most


def _cache(asked: str, folder: str, mib: int | None, default_mib: int) -> tuple[Path, int] | None:
    if asked == "off":
        return None
    from pathlib import Path  # a tenth of the time of `import stoker`, which needs no folder

    cache = os.environ.get("XDG_CACHE_HOME", "") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(asked) if asked else Path(cache, "stoker", folder), (default_mib if mib is None else mib) << 20


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


def _available_on_machine() -> int | None:
    try:
        lines = _read("/proc/meminfo").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return None


def _available_in_cgroups(root: str, own: str) -> int | None:
    """Return the least memory that is left in a cgroup of the process or above it; None without a limit.

    Args:
        own: file with the paths of the process's cgroups.
    """
    try:
        paths = [line.strip().split(":", 2) for line in _read(own).splitlines()]
    except OSError:
        return None
    left = []
    for _, controllers, path in (p for p in paths if len(p) == 3):
        if controllers and "memory" not in controllers.split(","):
            continue
        base = root if not controllers else os.path.join(root, "memory")
        parts = [p for p in path.split("/") if p]
        for count in range(len(parts) + 1):
            left.append(_left_in_cgroup(os.path.join(base, *parts[:count]), is_v2=not controllers))
    return min((bytes_left for bytes_left in left if bytes_left is not None), default=None)


def _left_in_cgroup(folder: str, *, is_v2: bool) -> int | None:
    """Return the bytes left in a cgroup, with the file cache that the system can drop; None without a limit."""
    limit, used = ("memory.max", "memory.current") if is_v2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    cache = "inactive_file" if is_v2 else "total_inactive_file"
    try:
        most = _read(folder, limit).strip()
        if most == "max" or int(most) >= _NO_LIMIT:
            return None
        droppable = sum(int(v) for k, v in map(str.split, _read(folder, "memory.stat").splitlines()) if k == cache)
        return int(most) - int(_read(folder, used)) + droppable
    except (OSError, ValueError):
        return None


def _address_space() -> int | None:
    """Return the address space that the process may still take; None without a limit."""
    if not _HAS_LIMITS:
        return None
    try:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return None
        return limit - int(_read("/proc/self/statm").split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return None


def _read(*parts: str) -> str:
    # In binary: opening a text in ASCII imports that codec at its first use, and a fork must not meet an import.
    with open(os.path.join(*parts), "rb") as file:
        return file.read().decode("ascii")
