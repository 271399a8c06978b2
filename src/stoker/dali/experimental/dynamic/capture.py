# SPDX-License-Identifier: Apache-2.0
"""Marks for loops that are captured (``reader.next_epoch(batch_size, capture=True)``).

DALI runs the operators of such a loop in a pipeline, ahead of the loop. Here operators compute when they are called,
with the same results, so marks have no effect.
"""

from typing import TypeVar as _TypeVar

_T = _TypeVar("_T")


def invariant(value: _T) -> _T:
    """Return the value: the mark that it is the same in every iteration of a captured loop.

    Args:
        value: any object.
    """
    return value
