# SPDX-License-Identifier: Apache-2.0
"""Opening of a graph's inputs: data sets, the caller's sources, and the worker processes for some of them."""

from __future__ import annotations

from collections.abc import Mapping

from ..contract.config import WorkerConfig
from ..contract.errors import ArgumentError, message
from ..contract.feed import Feeder
from ..contract.reader import OpenSource, Source
from ..graph.node import Graph, Node
from .workers import ProcessWorkerPool


def open_sources(graph: Graph) -> dict[int, OpenSource | Feeder]:
    """Open the sources that the graph's outputs need and return them by node.

    Raises:
        ArgumentError: a source cannot be opened; the text has its line.
    """
    needed = graph.needed()
    return {n.id: _open(n, n.operator) for n in graph.nodes if n.id in needed and issubclass(n.operator, Source)}


def _open(node: Node, operator: type[Source]) -> OpenSource | Feeder:
    try:
        return operator.open(node.args)
    except (ValueError, OSError) as error:
        text = str(error).removeprefix(f"`{node.operator.name}`: ")
        if not isinstance(error, ValueError):
            text = f"{type(error).__name__}: {text}"
        raise ArgumentError(message(node.operator.name, text, source=node.source_line)) from error


def open_workers(graph: Graph, feeders: Mapping[int, Feeder], config: WorkerConfig) -> ProcessWorkerPool | None:
    """Return the pool of worker processes for sources that need it.

    It starts with the first batch, before the run's threads.
    """
    wanting = {node: feeder for node, feeder in feeders.items() if feeder.parallel}
    if not wanting:
        return None
    workers = ProcessWorkerPool(config)
    for number, feeder in wanting.items():
        try:
            feeder.use(workers)
        except ArgumentError as error:
            node = graph.nodes[number]
            raise ArgumentError(message(node.operator.name, str(error), source=node.source_line)) from error
    return workers


def offer_workers(graph: Graph, sources: Mapping[int, OpenSource], config: WorkerConfig) -> None:
    """Give worker processes to the storages that need some."""
    for number, source in sources.items():
        for storage in dict.fromkeys(source.storages()):
            try:
                storage.use(lambda: ProcessWorkerPool(config))
            except ArgumentError as error:
                node = graph.nodes[number]
                raise ArgumentError(message(node.operator.name, str(error), source=node.source_line)) from error
