# SPDX-License-Identifier: Apache-2.0
"""Functions that tests run in a process of their own. Spawned processes import them by name."""

from __future__ import annotations

import ctypes
import os
import time
from typing import Any

import numpy as np

BAD = 3  # the value of a sample that makes a function fail
kept: list[Any] = []


def crash(x: Any) -> Any:
    if x[0] == BAD:
        ctypes.string_at(0)
    return x + 1


def abort(x: Any) -> Any:
    if x[0] == BAD:
        os.abort()
    return x + 1


def leave(x: Any) -> Any:
    if x[0] == BAD:
        os._exit(7)
    return x + 1


def hang(x: Any) -> Any:
    if x[0] == BAD:
        time.sleep(3600)
    return x + 1


def refuse(x: Any) -> Any:
    if x[0] == BAD:
        raise ValueError("no threes")
    return x + 1


def drawn(x: Any, rng: Any) -> Any:
    return x + rng.integers(0, 1 << 40)


def process(x: Any) -> Any:
    return np.int64(os.getpid())


def many(x: Any) -> Any:
    return x, np.zeros((0, 3), np.float32), b"ab"


def of_a_batch(x: list[Any]) -> Any:
    if any(a[0] == BAD for a in x):
        os.abort()
    return [a + len(x) for a in x]


def remember(x: Any) -> Any:
    """Return the sum of all arrays so far, which the function keeps."""
    kept.append(x)
    x += 1
    return np.sum(kept, axis=0)
