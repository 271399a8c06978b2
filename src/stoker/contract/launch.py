# SPDX-License-Identifier: Apache-2.0
"""Rank, world size and local rank of this process, from torch.distributed and launchers such as torchrun."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from .errors import ArgumentError

_NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
_NODE = "NODE_RANK"


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
        local_rank: rank of this process on its machine, which selects its GPU; 0 if no launcher set LOCAL_RANK.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0

    @staticmethod
    def from_environment(environment: Mapping[str, str] | None = None) -> Launch:
        """Return the numbers of this process: from the process group of torch.distributed if it is initialized, else
        from the environment. Without both, return a group of one process.

        torchrun sets RANK, WORLD_SIZE and LOCAL_RANK. Processes that Lightning starts have no RANK. On the first
        machine (NODE_RANK is 0), it is LOCAL_RANK; on others only the process group knows it.

        Args:
            environment: the variables, which alone decide then; by default those of the process, and its process group.

        Raises:
            ArgumentError: variables are missing, or they contradict each other or the process group.
        """
        variables = os.environ if environment is None else environment
        launch_variables = {name: variables[name] for name in _NAMES if variables.get(name)}
        group = _process_group() if environment is None else None
        if group is not None:
            return _launch_of_group(*group, launch_variables)
        if not launch_variables:
            return Launch()
        node = variables.get(_NODE)
        if launch_variables.keys() == {"WORLD_SIZE", "LOCAL_RANK"} and node:
            launch_variables[_NODE] = node
            if _whole_numbers(launch_variables)[_NODE]:
                raise ArgumentError(
                    f"expected RANK in the environment of a process on a machine other than the first one, got "
                    f"{launch_variables}. Build the pipeline after `torch.distributed` is initialized (with Lightning: "
                    "in `train_dataloader`), or start the processes with torchrun"
                )
            launch_variables["RANK"] = launch_variables["LOCAL_RANK"]
        if not launch_variables.keys() >= set(_NAMES):
            raise ArgumentError(
                f"expected {', '.join(_NAMES)} in the environment, or none of them, got {launch_variables}"
            )
        numbers = _whole_numbers(launch_variables)
        rank, world_size, local_rank = (numbers[name] for name in _NAMES)
        if not (0 <= rank < world_size and 0 <= local_rank < world_size):
            raise ArgumentError(
                f"expected RANK and LOCAL_RANK from 0 to WORLD_SIZE - 1 in the environment, got {launch_variables}"
            )
        return Launch(rank, world_size, local_rank)


def _whole_numbers(variables: Mapping[str, str]) -> dict[str, int]:
    try:
        return {name: int(value) for name, value in variables.items()}
    except ValueError:
        raise ArgumentError(f"expected numbers in the environment, got {dict(variables)}") from None


def _process_group() -> tuple[int, int] | None:
    """Return rank and size of the process group of torch.distributed; None if the program has none."""
    distributed = sys.modules.get("torch.distributed")
    is_initialized = getattr(distributed, "is_initialized", None)  # builds of torch may lack it
    if distributed is None or is_initialized is None or not is_initialized():
        return None
    return int(distributed.get_rank()), int(distributed.get_world_size())


def _launch_of_group(rank: int, world_size: int, variables: Mapping[str, str]) -> Launch:
    """Return the numbers of a process of a group.

    Raises:
        ArgumentError: the environment has other numbers.
    """
    numbers = _whole_numbers(variables)
    local_rank = numbers.get("LOCAL_RANK", 0)
    is_same = numbers.get("RANK", rank) == rank and numbers.get("WORLD_SIZE", world_size) == world_size
    if not is_same or not 0 <= local_rank < world_size:
        raise ArgumentError(
            f"expected the environment of rank {rank} of {world_size}, which this process has in `torch.distributed`, "
            f"got {dict(variables)}"
        )
    return Launch(rank, world_size, local_rank)
