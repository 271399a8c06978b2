# SPDX-License-Identifier: Apache-2.0
"""What stayed lazy, and what fell back and why: the counts behind :func:`stoker.torchvision.report`.

Counts are numbers in shared memory, one row per process, so that those of worker processes are seen without a message
and survive a worker's end.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

_log = logging.getLogger("stoker.torchvision")

# What was counted. The first are whole ways of a sample, the others single steps that Pillow or torch made.
MADE, REAL, RETRIED, FOREIGN = range(4)
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
PLACED, SENT = len(NAMES), len(NAMES) + 1
NAMES += ["images made on the GPU", "images made by the CPU and sent to the GPU"]  # where batches are delivered there

_own: npt.NDArray[np.int64] = np.zeros(len(NAMES), np.int64)
_workers: list[Any] = []  # shared memory of the workers of all loaders so far
_said: set[int] = set()


def add(what: int, count: int = 1) -> None:
    """Count something in this process."""
    _own[what] += count


def watch(tensor: Any) -> Any:
    """Follow a loader's counts: ``tensor`` is int64 in shared memory, ``(workers, counts)``."""
    _workers.append(tensor)
    return tensor


def retire(tensor: Any) -> None:
    """The workers of a loader have ended: keep their counts, not the memory."""
    for at, known in enumerate(_workers):
        if known is tensor:
            del _workers[at]
            _own[:] += tensor.numpy().sum(0)
            return


def use(row: npt.NDArray[np.int64]) -> None:
    """In a worker: count into ``row`` from now on."""
    global _own
    row[:] = 0
    _own = row


def reset() -> None:
    """Forget all counts."""
    _own[:] = 0
    _workers.clear()
    _said.clear()


@contextlib.contextmanager
def unchanged() -> Iterator[None]:
    """Within, nothing is counted in this process: something is tried."""
    before = _own.copy()
    try:
        yield
    finally:
        _own[:] = before


def total() -> npt.NDArray[np.int64]:
    """The counts of this process and all workers."""
    total = _own.copy()
    for tensor in _workers:
        total += tensor.numpy().sum(0)
    return total


def say_once() -> None:
    """Log each kind of step that fell back, once per run."""
    counts = total()
    for what in range(REAL, PLACED):
        if counts[what] and what not in _said:
            _said.add(what)
            _log.warning(
                "%s: done as without Stoker, right but not faster; counts are in stoker.torchvision.report()",
                NAMES[what],
            )


class Report:
    """What became of the images since :func:`stoker.torchvision.enable`. Prints as a table; ``counts`` is a dict."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {
            name: int(n) for name, n in zip(NAMES, total(), strict=True) if n or name == NAMES[MADE]
        }

    def __str__(self) -> str:
        width = max(len(str(n)) for n in self.counts.values())
        return "\n".join(f"{n:>{width}}  {name}" for name, n in self.counts.items())

    __repr__ = __str__
