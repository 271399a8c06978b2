# SPDX-License-Identifier: Apache-2.0
"""Counters of lazy images and of fallbacks with their reasons, shown by :func:`stoker.torchvision.report`.

The counters are numbers in shared memory, one row per process. The main process reads those of worker processes without
a message, and they survive a worker's end.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

_log = logging.getLogger("stoker.torchvision")

# Indices of the counters. The first ones count complete routes of a sample, the others single steps that fell back to
# Pillow or torch.
NATIVE, FORCED, RETRIED, PILLOW = range(4)
NAMES = [
    "images made natively, lazy to the end",
    "tensors made early, by an operation that is not recorded",
    "samples run again on Pillow after a damaged file",
    "files that Pillow decodes (another format or kind of JPEG, damaged, truncated)",
]
_STEPS = (
    "Image.convert to another mode",
    "Image.resize of a part with gaps",
    "Image.transform other than affine or of perspective",
    "Image.point with a mode or function",
    "Image.crop outside",
    "Image.filter other than GaussianBlur and BoxBlur",
    "an operation on pixels (np.array(image), drawing, ...)",
    "another operation of torch",
    "a step on a file's image before it is converted to L or RGB (palette, transparency, 16 bits, ...)",
    "a decoded image of fewer than 4096 pixels, which Pillow transforms sooner than it is recorded",
)
CONVERT, RESIZE, TRANSFORM, POINT, CROP, FILTER, PIXELS, TORCH, MODE, SMALL = range(
    len(NAMES), len(NAMES) + len(_STEPS)
)
NAMES += _STEPS
ON_GPU, TO_GPU = len(NAMES), len(NAMES) + 1
# only if batches are delivered on a GPU
NAMES += ["images made on the GPU", "images made by the CPU and sent to the GPU"]

_local: npt.NDArray[np.int64] = np.zeros(len(NAMES), np.int64)
_workers: list[Any] = []  # shared memory of the workers of all loaders created so far
_logged: set[int] = set()


def add(what: int, count: int = 1) -> None:
    """Add ``count`` to the counter ``what`` of this process."""
    _local[what] += count


def register(tensor: Any) -> Any:
    """Include a loader's counters in the totals; ``tensor`` is int64 in shared memory, ``(workers, counters)``."""
    _workers.append(tensor)
    return tensor


def retire(tensor: Any) -> None:
    """Add the counters of workers that have ended to those of this process, and drop their shared memory."""
    for at, known in enumerate(_workers):
        if known is tensor:
            del _workers[at]
            _local[:] += tensor.numpy().sum(0)
            return


def count_into(row: npt.NDArray[np.int64]) -> None:
    """Count into ``row`` from now on; called in a worker."""
    global _local
    row[:] = 0
    _local = row


def reset() -> None:
    """Set all counters to zero."""
    _local[:] = 0
    _workers.clear()
    _logged.clear()


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Restore this process's counters on exit, so that a trial is not counted."""
    before = _local.copy()
    try:
        yield
    finally:
        _local[:] = before


def totals() -> npt.NDArray[np.int64]:
    """Return the counters, summed over this process and all workers."""
    total = _local.copy()
    for tensor in _workers:
        total += tensor.numpy().sum(0)
    return total


def log_once() -> None:
    """Log each kind of step that fell back, once per run."""
    counts = totals()
    for what in range(FORCED, ON_GPU):
        if counts[what] and what not in _logged:
            _logged.add(what)
            _log.warning(
                "%s: done as without Stoker, right but not faster; counts are in stoker.torchvision.report()",
                NAMES[what],
            )


class Report:
    """Counts of all images since :func:`stoker.torchvision.enable`. Prints as a table; ``counts`` is a dict."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {
            name: int(n) for name, n in zip(NAMES, totals(), strict=True) if n or name == NAMES[NATIVE]
        }

    def __str__(self) -> str:
        width = max(len(str(n)) for n in self.counts.values())
        return "\n".join(f"{n:>{width}}  {name}" for name, n in self.counts.items())

    __repr__ = __str__
