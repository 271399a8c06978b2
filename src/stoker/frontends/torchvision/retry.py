# SPDX-License-Identifier: Apache-2.0
"""Batches with a damaged file are made again, with that file on plain Pillow, from the random state of their start.

A file is decoded after the data set's ``__getitem__`` has returned. If that fails, the sample's own error handling must
still see it: the batch is fetched again, the damaged file is now decoded when it is opened, and a ``try`` around the
transforms, or a retry with another index, acts as it does without Stoker.
"""

from __future__ import annotations

import hashlib
import random
import threading
from typing import Any, NamedTuple

import numpy as np
import torch

from ...contract.errors import DataError


class Origin(NamedTuple):
    """What a batch was fetched for, and the random states when it began."""

    index: Any
    states: tuple[Any, Any, Any]


class Damaged(DataError, OSError):
    """A file that was recorded cannot be decoded. Caught and answered by fetching the batch again."""


class _Now(threading.local):
    origin: Origin | None = None


_now = _Now()
_damaged: set[bytes] = set()


def origin() -> Origin | None:
    """Of the batch that this thread is fetching."""
    return _now.origin


def begin(index: Any) -> Origin:
    """A batch begins."""
    _now.origin = Origin(index, (random.getstate(), np.random.get_state(), torch.get_rng_state()))
    return _now.origin


def end() -> None:
    """No batch is being fetched."""
    _now.origin = None


def go_back(origin: Origin) -> None:
    """Draw again what has been drawn since the batch began."""
    random.setstate(origin.states[0])
    np.random.set_state(origin.states[1])
    torch.set_rng_state(origin.states[2])


def states() -> Origin:
    """Where the random streams stand, for :func:`go_back`."""
    return Origin(None, (random.getstate(), np.random.get_state(), torch.get_rng_state()))


def is_damaged(data: Any) -> bool:
    """Whether a file of these bytes could not be decoded before."""
    return bool(_damaged) and _name(data) in _damaged


def remember(data: Any) -> bool:
    """From now on files of these bytes are opened by Pillow; False if they were already."""
    name = _name(data)
    if name in _damaged:
        return False
    _damaged.add(name)
    return True


def forget() -> None:
    """Forget all damaged files."""
    _damaged.clear()


def _name(data: Any) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
