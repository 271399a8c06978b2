# SPDX-License-Identifier: Apache-2.0
"""Which of several processes this one is, as launchers such as torchrun tell it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from .errors import ArgumentError

_NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK")


@dataclass(frozen=True)
class Launch:
    """One of several processes that train together, one for each GPU.

    >>> launch = Launch.from_environment()
    >>> launch.rank, launch.world_size, launch.local_rank  # not started by a launcher
    (0, 1, 0)

    A pipeline takes its GPU from here by itself, and the shards of its readers with ``shards="launcher"``. These it
    does not take unasked: an evaluation that one process runs, or each of them whole, looks the same to a reader as
    a training that they share. For other things, and other readers, use its numbers.

    Attributes:
        rank: of this process among all, from 0.
        world_size: how many there are.
        local_rank: of this process among those of its machine: its GPU.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0

    @staticmethod
    def from_environment(environment: Mapping[str, str] | None = None) -> Launch:
        """From RANK, WORLD_SIZE and LOCAL_RANK, which torchrun sets; without all of them, the only process.

        Raises:
            ArgumentError: only some of them are set, or they do not fit.
        """
        told = os.environ if environment is None else environment
        found = {name: told[name] for name in _NAMES if told.get(name)}
        if not found:
            return Launch()
        if len(found) < len(_NAMES):
            raise ArgumentError(f"expected {', '.join(_NAMES)} in the environment, or none of them, got {found}")
        try:
            rank, world_size, local_rank = (int(found[name]) for name in _NAMES)
        except ValueError:
            raise ArgumentError(f"expected numbers in the environment, got {found}") from None
        if not (0 <= rank < world_size and 0 <= local_rank < world_size):
            raise ArgumentError(
                f"expected RANK and LOCAL_RANK from 0 to WORLD_SIZE - 1 in the environment, got {found}"
            )
        return Launch(rank, world_size, local_rank)
