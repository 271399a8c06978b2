# SPDX-License-Identifier: Apache-2.0
"""Rank, world size and local rank of this process, from launchers such as torchrun."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from .errors import ArgumentError

_NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK")


@dataclass(frozen=True)
class Launch:
    """Rank and size of a group of processes that train together, one per GPU.

    >>> launch = Launch.from_environment()
    >>> launch.rank, launch.world_size, launch.local_rank  # not started by a launcher
    (0, 1, 0)

    A pipeline takes its GPU from the launcher by default. It takes the shards of its readers only with
    ``shards="launcher"``: a reader cannot distinguish a shared training from an evaluation that one process runs, or
    that each process runs on all data. Use the numbers of this class for other purposes.

    Attributes:
        rank: rank of this process among all, from 0.
        world_size: number of processes.
        local_rank: rank of this process on its machine, which selects its GPU.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0

    @staticmethod
    def from_environment(environment: Mapping[str, str] | None = None) -> Launch:
        """Read RANK, WORLD_SIZE and LOCAL_RANK, which torchrun sets. Without all of them, return a group of one
        process.

        Args:
            environment: the variables; by default those of the process.

        Raises:
            ArgumentError: only some of the variables are set, or they contradict each other.
        """
        variables = os.environ if environment is None else environment
        launch_variables = {name: variables[name] for name in _NAMES if variables.get(name)}
        if not launch_variables:
            return Launch()
        if len(launch_variables) < len(_NAMES):
            raise ArgumentError(
                f"expected {', '.join(_NAMES)} in the environment, or none of them, got {launch_variables}"
            )
        try:
            rank, world_size, local_rank = (int(launch_variables[name]) for name in _NAMES)
        except ValueError:
            raise ArgumentError(f"expected numbers in the environment, got {launch_variables}") from None
        if not (0 <= rank < world_size and 0 <= local_rank < world_size):
            raise ArgumentError(
                f"expected RANK and LOCAL_RANK from 0 to WORLD_SIZE - 1 in the environment, got {launch_variables}"
            )
        return Launch(rank, world_size, local_rank)
