# SPDX-License-Identifier: Apache-2.0
"""Records of bad samples, and the policies for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Action = Literal["raise", "replace", "skip"]
ACTIONS: tuple[Action, ...] = ("raise", "replace", "skip")


@dataclass(frozen=True)
class BadSample:
    """Sample that failed in a pipeline.

    Attributes:
        path: file that contains the sample; "" if the data do not come from files.
        index: index in the data set; None if the source has no indices.
        offset: byte of the file at which the damage begins; None if unknown.
        reason: description of the failure.
        action: outcome: raised, replaced or skipped.
        epoch: epoch of the first failure.
        key: row key, which decides the row's random numbers and its substitute.
        substitute: index of the sample that replaced it; None if no sample did.
    """

    path: str
    index: int | None
    offset: int | None
    reason: str
    action: str
    epoch: int
    key: int
    substitute: int | None = None
