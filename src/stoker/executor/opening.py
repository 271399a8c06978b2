# SPDX-License-Identifier: Apache-2.0
"""Opens what a graph reads: data sets, the caller's sources, and the processes that some of those run in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.errors import ArgumentError, UnsupportedError, message
from ..graph.node import Graph, Node
from .workers import Workers, WorkerSettings


def open_sources(graph: Graph) -> dict[int, Any]:
    """By node, those that the graph's outputs need.

    Raises:
        ArgumentError: one cannot be opened; the text has its line.
    """
    needed = graph.needed()
    return {n.id: _open(n) for n in graph.nodes if n.id in needed and n.operator.kind == "source"}


def _open(node: Node) -> Any:
    opener = getattr(node.operator, "open", None)
    if opener is None:
        raise UnsupportedError(f"`{node.operator.name}` cannot be opened")
    try:
        return opener(node.args)
    except (ValueError, OSError) as error:
        text = str(error).removeprefix(f"`{node.operator.name}`: ")
        if not isinstance(error, ValueError):
            text = f"{type(error).__name__}: {text}"
        raise ArgumentError(message(node.operator.name, text, source=node.source)) from error


def open_workers(graph: Graph, feeders: Mapping[int, Any], settings: WorkerSettings) -> Workers | None:
    """Processes for the sources that want them; they start with the first batch, before the run's threads."""
    wanting = {node: feeder for node, feeder in feeders.items() if feeder.parallel}
    if not wanting:
        return None
    workers = Workers(settings)
    for number, feeder in wanting.items():
        try:
            feeder.use(workers)
        except ArgumentError as error:
            node = graph.nodes[number]
            raise ArgumentError(message(node.operator.name, str(error), source=node.source)) from error
    return workers
