# SPDX-License-Identifier: Apache-2.0
"""Graph builder that the front ends share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError, UnsupportedError, message
from ..contract.operator import Operator
from ..contract.reader import SourcePart
from ..graph.node import Edge, Graph, Node
from .data_node import DataNode
from .literals import as_array
from .origins import origin_of
from .registry import find
from .source_line import user_line, warn_user

_MOST_OUTPUTS = 4096
_local = threading.local()


def current() -> GraphBuilder | None:
    """Return the builder of the pipeline that this thread is defining."""
    stack = getattr(_local, "stack", None)
    return stack[-1] if stack else None


class GraphBuilder:
    """Builder of a graph: nodes in the order of definition. ``with builder:`` makes it the current one.

    Args:
        find: function that returns an operator by name.

    Attributes:
        node_class: class of the handles that users hold.
    """

    node_class: type[DataNode] = DataNode

    def __init__(self, find: Callable[[str], type[Operator]] = find) -> None:
        self._find = find
        self.nodes: list[Node] = []
        self.guards: tuple[tuple[Edge, bool], ...] = ()
        self._draws = 0

    def __enter__(self) -> GraphBuilder:
        if not hasattr(_local, "stack"):
            _local.stack = []
        _local.stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _local.stack.pop()

    def call(self, name: str, inputs: Sequence[Any], arguments: dict[str, Any]) -> Any:
        """Add a node and return its output, or a tuple of outputs. Lists of nodes as inputs give lists of outputs."""
        operator = self._find(name)
        if operator.named_inputs:
            arguments = dict(arguments)
            inputs = operator.take_named_inputs(inputs, arguments)
        width = {len(x) for x in inputs if isinstance(x, list) and x and all(isinstance(i, DataNode) for i in x)}
        if not width:
            return self._add(name, inputs, arguments, self._take_draws(name))
        if len(width) > 1:
            raise ArgumentError(f"`{name}`: expected input lists of one length, got {sorted(width)}")
        draw = self._take_draws(name)  # the inputs of one call share its draws
        sets = [[x[i] if isinstance(x, list) else x for x in inputs] for i in range(width.pop())]
        results = [self._add(name, each, arguments, draw) for each in sets]
        return results if isinstance(results[0], DataNode) else [list(r) for r in zip(*results, strict=True)]

    def copy_to(self, x: DataNode, device: str) -> DataNode:
        """Return the same data on a device.

        The copy takes no draw id, so that placement does not change later random numbers.
        """
        return self._add("copy", [x], {"device": device}, self._draws)  # type: ignore[no-any-return]

    def _take_draws(self, name: str) -> int:
        first = self._draws
        self._draws += max(1, self._find(name).draws)
        return first

    def _add(self, name: str, inputs: Sequence[Any], arguments: dict[str, Any], draw: int) -> Any:
        operator = self._find(name)
        source = user_line()
        try:
            edges, consts = self._split(operator, arguments)
            args = operator.fill_defaults(operator.bind(consts), edges)
            low, high = operator.inputs
            if not low <= len(inputs) <= high:
                wanted = str(low) if low == high else f"{low} to {high}"
                raise ArgumentError(f"`{name}`: expected {wanted} inputs, got {len(inputs)}")
            if inputs and operator.wants_origin(arguments):
                inputs = [origin_of(self, inputs[0]), *inputs[1:]]
            sources = tuple(self.edge_of(x, name) for x in inputs)
            outputs = operator().count_outputs_with(args, len(inputs))
            if outputs > _MOST_OUTPUTS:
                raise ArgumentError(f"`{name}`: expected at most {_MOST_OUTPUTS} outputs, got {outputs}")
            operator().validate(args)
        except (ArgumentError, UnsupportedError) as error:
            text = str(error).removeprefix(f"`{name}`: ")
            raise type(error)(message(operator.subject(arguments), text.rstrip("."), source=source)) from None
        for text in operator.ineffective_arguments(args):
            warn_user(f"`{operator.subject(args)}`: {text}")
        node = Node(len(self.nodes), operator, args, sources, tuple(edges.items()), draw, self.guards, source, outputs)
        self.nodes.append(node)
        results = tuple(self.node_class(self, Edge(node.id, i)) for i in range(outputs))
        return operator().arrange_outputs(args, results)

    def add_operator(self, operator: type[Operator], args: dict[str, Any]) -> DataNode:
        """Add a node without inputs for an operator class without a public name. ``args`` are used unchanged."""
        draw, self._draws = self._draws, self._draws + 1
        node = Node(len(self.nodes), operator, args, draw=draw, guards=self.guards, source_line=user_line())
        self.nodes.append(node)
        return self.node_class(self, Edge(node.id))

    def _split(self, operator: Any, arguments: dict[str, Any]) -> tuple[dict[str, Edge], dict[str, Any]]:
        known = operator.all_arguments()
        edges: dict[str, Edge] = {}
        consts: dict[str, Any] = {}
        for key, value in arguments.items():
            if value is None:
                continue
            if key in operator.source_list_arguments:
                consts[key] = self._parts(key, value)
                continue
            if isinstance(value, (list, tuple)) and any(isinstance(v, DataNode) for v in value) and key in known:
                value = stack_nodes(self, value)
            if not isinstance(value, DataNode):
                consts[key] = value
                continue
            if key in known and not known[key].per_row:
                raise ArgumentError(f"`{operator.name}`: argument `{key}` must be a constant, got a node of the graph")
            if key not in known:
                operator.bind({key: None})  # raises, with the nearest name
            edges[key] = self.edge_of(value, operator.name)
        return edges, consts

    def _parts(self, key: str, value: Any) -> tuple[SourcePart, ...]:
        """Return the sources that produced these outputs."""
        parts = []
        single: set[int] = set()  # readers that contributed one output only
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(one, dict):
                one = list(one.values())
            node = one[0] if isinstance(one, (list, tuple)) and one else one
            if not isinstance(node, DataNode) or node.builder is not self:
                raise ArgumentError(
                    f"expected `{key}` to be a list of what readers of this pipeline returned, got {type(one).__name__}"
                )
            reader = self.nodes[node.edge.node]
            if not reader.operator.is_source:
                raise ArgumentError(f"expected `{key}` to come from readers, got an output of `{reader.operator.name}`")
            if reader.guards:
                raise ArgumentError(
                    f"expected `{key}` to come from readers that read always, got one under a condition"
                )
            if reader.outputs != reader.operator().count_outputs(reader.args):
                raise ArgumentError(f"expected `{key}` to come from readers without `origin`, got one with it")
            if isinstance(one, DataNode) and reader.id in single:
                raise ArgumentError(
                    f"expected a list with what each reader returned in `{key}`, got several outputs of one reader"
                )
            single |= {reader.id} if isinstance(one, DataNode) else set()
            parts.append(SourcePart(reader.operator, reader.args))
        return tuple(parts)

    def edge_of(self, x: Any, name: str) -> Edge:
        """Return the edge for an input: a node's output, or a constant, which becomes a node."""
        if isinstance(x, (list, tuple)) and x and all(isinstance(i, DataNode) for i in x):
            raise ArgumentError(
                f"`{name}`: expected a node as input, got {len(x)} nodes. Unpack the outputs of an operator, as in "
                "`jpegs, labels = fn.readers.file(...)`"
            )
        if isinstance(x, DataNode):
            if x.builder is not self:
                raise ArgumentError(f"`{name}`: expected a node of this pipeline, got one of another pipeline")
            return x.edge
        return self.constant(x, name).edge

    def constant(self, x: Any, name: str = "constant") -> DataNode:
        """Add a node for a copy of a number or an array, with types as in :func:`.literals.as_array`."""
        if hasattr(x, "__stoker_constant__"):
            return x.__stoker_constant__(self)  # type: ignore[no-any-return]
        known = isinstance(x, (bool, int, float, np.generic, np.ndarray)) or hasattr(x, "__dlpack__")
        if not known and not (isinstance(x, (list, tuple)) and x):
            raise ArgumentError(f"`{name}`: expected a node, an array or a number as input, got {type(x).__name__}")
        array = as_array(x, name)
        node = self._add("_constant", (), {"value": array}, self._take_draws("_constant"))
        assert isinstance(node, DataNode)
        return node

    def graph(self, outputs: Sequence[Any]) -> Graph:
        """Return the finished graph."""
        edges = tuple(self.edge_of(o, "pipeline") for o in outputs)
        names = tuple(self.nodes[e.node].name for e in edges)
        return Graph(tuple(self.nodes), edges, names)


def stack_nodes(builder: GraphBuilder, values: Sequence[Any]) -> DataNode:
    """Stack nodes and numbers into one small tensor per row: ``size=[h, 224]``."""
    return builder.call("stack", [v if isinstance(v, DataNode) else builder.constant(v) for v in values], {})  # type: ignore[no-any-return]


def flattened(outputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a pipeline's outputs in order, with lists of nodes replaced by their members."""
    if len(outputs) == 1 and isinstance(outputs[0], (list, tuple)):
        outputs = tuple(outputs[0])
    flat: list[Any] = []
    for o in outputs:
        flat += list(o) if isinstance(o, (list, tuple)) else [o]
    return tuple(flat)
