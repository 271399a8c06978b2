# SPDX-License-Identifier: Apache-2.0
"""Cases of long tests: `make test` runs a sample of them, `make test-complete` runs all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypeVar

_T = TypeVar("_T")
COMPLETE = os.environ.get("STOKER_COMPLETE") == "1"


def sample(cases: Sequence[_T], count: int) -> list[_T]:
    """Return ``count`` cases at even distances, with the first and the last one, or all in a complete run.

    Args:
        cases: of which each takes long, and which mostly run the same branches.
        count: how many `make test` runs, at least two.
    """
    if COMPLETE or len(cases) <= count:
        return list(cases)
    return [cases[i * (len(cases) - 1) // (count - 1)] for i in range(count)]
