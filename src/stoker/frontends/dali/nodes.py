# SPDX-License-Identifier: Apache-2.0
"""Nodes of ``stoker.dali``, which may be defined outside of a pipeline, and the builder of their graphs.

DALI collects a pipeline's graph from its outputs, so nodes belong to no pipeline before. Here a node that is defined
outside of a pipeline gets a builder of its own. A builder that meets a node of another builder imports a copy of the
node and of all that it depends on. Each builder has one copy of a node, whichever way the node reached it.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...contract.types import DType
from ...graph.node import Edge, Node
from ..data_node import DataNode as _DataNode
from ..definition import GraphBuilder, current
from .errors import raises_as_dali, raising_as_dali

_NARROW = {np.dtype(np.int64): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.float32)}
Origin = tuple["NodeBuilder", int]


class DataNode(_DataNode):
    """Node's output with DALI's conventions: lists are operands, ``None`` in an index keeps its axis whole."""

    __slots__ = ()
    __hash__ = object.__hash__

    def _binary(self, op: str, other: Any, *, swap: bool = False) -> _DataNode:
        if isinstance(other, (list, tuple)) and other:
            other = self.builder.constant(other, op)
        with raising_as_dali():
            return super()._binary(op, other, swap=swap)

    @raises_as_dali
    def __getitem__(self, index: Any) -> _DataNode:
        items = index if isinstance(index, tuple) else (index,)
        return super().__getitem__(tuple(slice(None) if item is None else _as_node(self, item) for item in items))

    def shape(self, *, dtype: DType = DType.INT64, device: str = "cpu") -> _DataNode:
        """Return the shape: a tensor ``(rank,)`` per row.

        Args:
            dtype: element type of the result.
            device: "cpu", or "gpu" for a copy of the shape in the GPU's memory.
        """
        found = super().shape(dtype=dtype)
        return found.gpu() if device == "gpu" else found


def _number_of(value: Any) -> Any:
    """Return the number of a constant that is given as an argument."""
    return value.value if hasattr(value, "__stoker_constant__") else value


def _as_node(x: _DataNode, item: Any) -> Any:
    """Return a constant in an index as a node."""
    return x.builder.constant(item) if hasattr(item, "__stoker_constant__") else item


class NodeBuilder(GraphBuilder):
    """Builder of a pipeline's graph, or of nodes outside of a pipeline.

    Args:
        pipeline: the pipeline; None for nodes outside of one.
    """

    node_class = DataNode

    def __init__(self, pipeline: Any = None) -> None:
        super().__init__()
        self._pipeline = None if pipeline is None else weakref.ref(pipeline)
        self._origins: dict[int, Origin] = {}  # of imported nodes
        self._copies: dict[Origin, int] = {}
        self._draws_of: dict[Origin, int] = {}  # draw ids, by those of the origin

    @property
    def pipeline(self) -> Any:
        """Return the pipeline whose graph this is, or None."""
        return None if self._pipeline is None else self._pipeline()

    @raises_as_dali
    def call(self, name: str, inputs: Sequence[Any], arguments: dict[str, Any]) -> Any:
        """Add a node to the pipeline that is being defined, or else here."""
        inside = current()
        if inside is not self and isinstance(inside, NodeBuilder):
            return inside.call(name, inputs, arguments)
        arguments = {key: _number_of(value) for key, value in arguments.items()}
        return super().call(name, inputs, arguments)

    @raises_as_dali
    def constant(self, x: Any, name: str = "constant") -> _DataNode:
        """Add a node for a copy of a number or an array. As in DALI, numbers and arrays of 64 bits become narrow.

        Whole numbers that need 64 bits keep them.
        """
        if hasattr(x, "__stoker_constant__"):
            return super().constant(x, name)
        return super().constant(narrowed(x, keeps_single=name == "_arithmetic"), name)

    def edge_of(self, x: Any, name: str) -> Edge:
        """Return the edge for an input: a node's output, or a constant, which becomes a node."""
        if isinstance(x, _DataNode) and x.builder is not self and isinstance(x.builder, NodeBuilder):
            return Edge(self.imported(x.builder, x.edge.node), x.edge.output)
        return super().edge_of(x, name)

    def imported(self, other: NodeBuilder, number: int) -> int:
        """Return the number of this builder's copy of another builder's node."""
        wanted, todo = set[int](), [number]
        while todo:
            node = other.nodes[todo.pop()]
            if node.id not in wanted:
                wanted.add(node.id)
                todo += [edge.node for edge in node.parents()]
        numbers: dict[int, int] = {}
        for i in sorted(wanted):  # a node follows all that it depends on
            numbers[i] = self._copied(other, other.nodes[i], numbers)
        return numbers[number]

    def _copied(self, other: NodeBuilder, node: Node, numbers: dict[int, int]) -> int:
        builder, own = other._origins.get(node.id, (other, node.id))
        if builder is self:
            return own
        origin = (builder, own)
        if origin not in self._copies:
            copy = Node(
                len(self.nodes), node.operator, node.args, tuple(_moved(e, numbers) for e in node.inputs),
                tuple((key, _moved(e, numbers)) for key, e in node.edges), self._draw_like(origin, node),
                tuple((_moved(e, numbers), wanted) for e, wanted in node.guards), node.source_line, node.outputs,
            )  # fmt: skip
            self.nodes.append(copy)
            self._copies[origin] = copy.id
            self._origins[copy.id] = origin
        return self._copies[origin]

    def _draw_like(self, origin: Origin, node: Node) -> int:
        """Return this builder's draw id for a node. Nodes that share one, share one here too."""
        builder = origin[0]
        key = (builder, builder.nodes[origin[1]].draw)
        if key not in self._draws_of:
            self._draws_of[key] = self._take_draws(node.operator.name)
        return self._draws_of[key]


def _moved(edge: Edge, numbers: dict[int, int]) -> Edge:
    return Edge(numbers[edge.node], edge.output)


def narrowed(x: Any, *, keeps_single: bool = True) -> Any:
    """Return NumPy's numbers of 64 bits with 32 bits, if these hold them; everything else as it is.

    A single integer keeps its type in arithmetic, as in DALI.
    """
    if not isinstance(x, (np.ndarray, np.generic)) or x.dtype not in _NARROW:
        return x
    array = np.asarray(x)
    if array.dtype.kind == "i" and array.size:
        if keeps_single and not array.ndim:
            return x
        limits = np.iinfo(np.int32)
        if array.min() < limits.min or array.max() > limits.max:
            return x
    with np.errstate(over="ignore"):
        return array.astype(_NARROW[array.dtype])
