# SPDX-License-Identifier: Apache-2.0
"""Planted faults, which a walk must find."""

from __future__ import annotations

import ctypes
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from stoker import ArgumentError
from tests.hostile.cases import Case, Target


def _refuse() -> None:
    raise ArgumentError("`planted`: expected nothing, got everything")


def _spin() -> None:
    while True:
        pass


def _lose() -> None:
    """Raise as CPython does where it has no memory for the frames of an exception, at the limit of memory."""
    taken = []
    try:
        while True:
            taken.append(np.empty(64 << 20, np.uint8))
    except MemoryError:
        taken.clear()
    raise SystemError("error return without exception set")


PLANTED: dict[str, Callable[[], object]] = {
    "refuses": _refuse,
    "returns": lambda: 1,
    "python": lambda: len(3),  # type: ignore[arg-type]
    "numpy": lambda: np.zeros(3) + np.zeros(2),
    "short text": lambda: (_ for _ in ()).throw(ArgumentError("no")),
    "memory": lambda: np.ones(1 << 40, np.uint8),
    "loses an exception": _lose,
    "aborts": os.abort,
    "ends": lambda: os._exit(0),
    "reads nowhere": lambda: ctypes.string_at(0),
    "sleeps": lambda: time.sleep(1e6),
    "spins": _spin,
}


def targets(folder: Path) -> list[Target]:
    """Return the planted faults as targets."""
    return _chosen(*PLANTED)


def harmless(folder: Path) -> list[Target]:
    """Return the planted calls that end as they must."""
    return _chosen("refuses", "returns")


def faulty(folder: Path) -> list[Target]:
    """Return one planted fault."""
    return _chosen("python")


def _chosen(*chosen: str) -> list[Target]:
    def at(name: str) -> Callable[[random.Random], Case]:
        return lambda drawn: Case(name, PLANTED[name])

    return [Target(name, at(name)) for name in chosen]
