# SPDX-License-Identifier: Apache-2.0
"""What is told of a bad sample, and what may be done with one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Action = Literal["raise", "replace", "skip"]
ACTIONS: tuple[Action, ...] = ("raise", "replace", "skip")


@dataclass(frozen=True)
class BadSample:
    """One sample that failed in a pipeline.

    Attributes:
        path: the file that it is in; "" where data do not come from files.
        index: its number in the data set; None where a source has no numbers.
        offset: the byte of the file at which it is damaged; None if what failed cannot tell.
        reason: what is wrong with it.
        action: what was done: raised, replaced or skipped.
        epoch: in which epoch this happened first.
        key: the row key: what the row's random numbers, and its substitute, follow from.
        substitute: the number of the sample that took its place; None if none did.
    """

    path: str
    index: int | None
    offset: int | None
    reason: str
    action: str
    epoch: int
    key: int
    substitute: int | None = None
