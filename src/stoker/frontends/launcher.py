# SPDX-License-Identifier: Apache-2.0
"""Settings that a pipeline takes from its process's launcher: the GPU and, as an opt-in, the shards."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .._import_lock import IMPORT_LOCK
from ..contract.errors import ArgumentError, StateError, message
from ..contract.launch import Launch
from ..graph.node import Graph, Node
from .source_line import warn_user

AUTO: Final = "auto"
LAUNCHER: Final = "launcher"


def find_process_gpu() -> int:
    """Return the GPU of this process: that of LOCAL_RANK, or the only visible one; 0 without a launcher.

    Raises:
        ArgumentError: the environment contradicts itself.
    """
    with IMPORT_LOCK:
        from ..native import _native

    try:
        launch = Launch.from_environment()
    except ArgumentError as error:
        raise ArgumentError(f"`Pipeline`: {error}. Or say which GPU: `device_id`, a number") from None
    # Some launchers hide all other GPUs from a process, whatever its LOCAL_RANK is.
    return 0 if _native.gpu.count_cuda() == 1 else launch.local_rank


def shard_readers(graph: Graph, shards: str | None) -> Graph:
    """Return the graph with this process's shards set in the readers that have none of their own.

    Without ``shards="launcher"`` return the graph unchanged, with a warning if several processes would each read all
    data.

    Raises:
        ArgumentError: a reader has other shards than the launcher's, no reader could be divided, or the environment
            contradicts itself.
    """
    needed = graph.needed()
    readers = [n for n in graph.nodes if n.id in needed and "num_shards" in n.operator.arguments]
    if shards is None:
        _warn_of_whole(readers)
        return graph
    if not readers:
        raise ArgumentError(
            '`Pipeline`: expected a reader that can be divided with shards="launcher", got none. A source of your own '
            "is divided where it is written: `stoker.Launch.from_environment()` returns rank and world size"
        )
    launch = Launch.from_environment()
    own = {n.id: _with_shards(n, launch) for n in readers}
    return replace(graph, nodes=tuple(own.get(n.id, n) for n in graph.nodes))


def find_launch(shards: str | None) -> Launch | None:
    """Return the numbers of this process if the launcher decides about shards."""
    return None if shards is None else Launch.from_environment()


def require_same_launch(built: Launch | None) -> None:
    """Raise StateError if this process has other numbers than when its pipeline was built.

    A trainer that starts the other processes from the first one makes the first one a rank only then. A pipeline that
    was built before reads the whole data set.

    Args:
        built: the numbers at that time; None: they do not matter.
    """
    if built is None:
        return
    try:
        launch = Launch.from_environment()
    except ArgumentError:
        return  # a trainer removes some of its variables at the end
    if launch.world_size > 1 and (launch.rank, launch.world_size) != (built.rank, built.world_size):
        raise StateError(
            f"`Pipeline`: expected the rank that the process had when the pipeline was built ({built.rank} of "
            f'{built.world_size}) with shards="launcher", got {launch.rank} of {launch.world_size}. Build the pipeline '
            "after the processes have started (with Lightning: in `train_dataloader`), or start them with torchrun"
        )


def _with_shards(node: Node, launch: Launch) -> Node:
    launcher_shards = {"num_shards": launch.world_size, "shard_id": launch.rank}
    for name, value in launcher_shards.items():
        if node.args[name] not in (None, value):
            text = (
                f'expected no `{name}`, or the launcher\'s with shards="launcher", got {node.args[name]} where '
                f"{'WORLD_SIZE' if name == 'num_shards' else 'RANK'} is {value}"
            )
            raise ArgumentError(message(node.operator.name, text, source=node.source_line))
    return replace(node, args={**node.args, **launcher_shards})


def _warn_of_whole(readers: list[Node]) -> None:
    """Warn that each of several processes reads the whole data set, which is otherwise hard to notice."""
    unsaid = [n for n in readers if n.args["num_shards"] is None]
    if not unsaid:
        return
    try:
        count = Launch.from_environment().world_size
    except ArgumentError:
        return  # the variables may be meant for another program
    if count > 1:
        warn_user(
            f"`{unsaid[0].operator.name}` gives each of the launcher's {count} processes all samples. Give the "
            'pipeline shards="launcher" to divide them, or the reader `num_shards=1` to say that this is meant'
        )
