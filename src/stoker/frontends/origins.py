# SPDX-License-Identifier: Apache-2.0
"""Origin of a node's rows: an output of the reader that they come from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..contract.errors import ArgumentError, UnsupportedError
from ..contract.reader import Source
from ..graph.node import Edge, Node
from .data_node import DataNode

_WAY_OUT = "Readers with the argument `origin` have it; other sources return it as an output of their own"


def origin_of(builder: Any, x: Any) -> Any:
    """Return the node with the location of each row's sample. Its reader gets `origin=True` if it has not.

    Args:
        builder: the builder of the graph.
        x: a node of the builder.

    Raises:
        ArgumentError: the rows come from several readers, or from other rows of their batch.
        UnsupportedError: the rows come from no reader that knows where its samples are.
    """
    is_own = isinstance(x, DataNode) and x.builder is builder
    if not is_own:
        raise UnsupportedError(f"expected the data of a reader for their origin, got other data. {_WAY_OUT}")
    readers = _readers(builder.nodes, x.edge.node)
    if not readers:
        raise UnsupportedError(f"expected the data of a reader for their origin, got none. {_WAY_OUT}")
    if len(readers) > 1:
        names = ", ".join(f"`{node.operator.name}`" for node in readers.values())
        raise ArgumentError(f"expected data of one reader for their origin, got data of {names}: pass an output of one")
    (reader,) = readers.values()
    if not reader.args["origin"]:
        reader = replace(reader, args={**reader.args, "origin": True}, outputs=reader.outputs + 1)
        builder.nodes[reader.id] = reader
    return builder.node_class(builder, Edge(reader.id, reader.outputs - 1))


def _readers(nodes: list[Node], first: int) -> dict[int, Node]:
    """Return the readers with an `origin` that a node's rows come from, by number."""
    found, seen, todo = {}, {first}, [first]
    while todo:
        node = nodes[todo.pop()]
        if issubclass(node.operator, Source) and node.operator.gives_origin:
            found[node.id] = node
        if node.inputs and node.operator.scope == "batch":
            raise ArgumentError(
                "expected data that stay in their row for their origin, got data of "
                f"`{node.operator.name}`, which takes other rows: apply it to the origin too"
            )
        fresh = {edge.node for edge in node.inputs} - seen
        seen |= fresh
        todo += fresh
    return found
