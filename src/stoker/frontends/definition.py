# SPDX-License-Identifier: Apache-2.0
"""Writing a graph: the builder that front ends share, and the handle on a node's output that users hold."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError, Source, UnsupportedError, message
from ..contract.operator import Operator
from ..contract.reader import Part
from ..contract.types import DType
from ..graph.node import Edge, Graph, Node
from .literals import as_array
from .registry import find

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_local = threading.local()


def current() -> GraphBuilder | None:
    """The builder of the pipeline that is being defined on this thread."""
    stack = getattr(_local, "stack", None)
    return stack[-1] if stack else None


def user_line() -> Source | None:
    """The innermost line outside of this package."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Source(frame.f_code.co_filename, frame.f_lineno) if frame else None


class GraphBuilder:
    """Collects nodes in the order of definition. ``with builder:`` makes it the current one.

    Args:
        find: gives operators by name.
    """

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
        """Add a node; its output, or a tuple of outputs. Lists of nodes as inputs give lists of outputs."""
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
        """The same data on a device. Takes no draw: where data are placed must not change what is drawn after it."""
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
            args = operator.complete(operator.bind(consts), edges)
            low, high = operator.inputs
            if not low <= len(inputs) <= high:
                wanted = str(low) if low == high else f"{low} to {high}"
                raise ArgumentError(f"`{name}`: expected {wanted} inputs, got {len(inputs)}")
            sources = tuple(self.edge_of(x, name) for x in inputs)
            operator().validate(args)
            outputs = operator().count_outputs(args)
        except (ArgumentError, UnsupportedError) as error:
            text = str(error).removeprefix(f"`{name}`: ")
            raise type(error)(message(operator.subject(arguments), text.rstrip("."), source=source)) from None
        node = Node(len(self.nodes), operator, args, sources, tuple(edges.items()), draw, self.guards, source, outputs)
        self.nodes.append(node)
        results = tuple(DataNode(self, Edge(node.id, i)) for i in range(outputs))
        return results if operator().returns_tuple(args) else results[0]

    def add_operator(self, operator: type[Operator], args: dict[str, Any]) -> DataNode:
        """Add a node without inputs for an operator class that has no public name; ``args`` as they are."""
        draw, self._draws = self._draws, self._draws + 1
        node = Node(len(self.nodes), operator, args, draw=draw, guards=self.guards, source=user_line())
        self.nodes.append(node)
        return DataNode(self, Edge(node.id))

    def _split(self, operator: Any, arguments: dict[str, Any]) -> tuple[dict[str, Edge], dict[str, Any]]:
        known = operator.all_arguments()
        edges: dict[str, Edge] = {}
        consts: dict[str, Any] = {}
        for key, value in arguments.items():
            if value is None:
                continue
            if key in operator.whole_sources:
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

    def _parts(self, key: str, value: Any) -> tuple[Part, ...]:
        """The sources whose outputs these are."""
        parts = []
        single: set[int] = set()  # readers of which one output was given
        for one in value if isinstance(value, (list, tuple)) else [value]:
            node = one[0] if isinstance(one, (list, tuple)) and one else one
            if not isinstance(node, DataNode) or node.builder is not self:
                raise ArgumentError(
                    f"expected `{key}` to be a list of what readers of this pipeline returned, got {type(one).__name__}"
                )
            made = self.nodes[node.edge.node]
            if made.operator.kind != "source":
                raise ArgumentError(f"expected `{key}` to come from readers, got an output of `{made.operator.name}`")
            if made.guards:
                raise ArgumentError(
                    f"expected `{key}` to come from readers that read always, got one under a condition"
                )
            if isinstance(one, DataNode) and made.id in single:
                raise ArgumentError(
                    f"expected a list with what each reader returned in `{key}`, got several outputs of one reader"
                )
            single |= {made.id} if isinstance(one, DataNode) else set()
            parts.append(Part(made.operator, made.args))
        return tuple(parts)

    def edge_of(self, x: Any, name: str) -> Edge:
        """The edge for an input: a node's output, or a constant that becomes one."""
        if isinstance(x, DataNode):
            if x.builder is not self:
                raise ArgumentError(f"`{name}`: expected a node of this pipeline, got one of another pipeline")
            return x.edge
        return self.constant(x, name).edge

    def constant(self, x: Any, name: str = "constant") -> DataNode:
        """A node for a number or an array, as it is now; types as :func:`.literals.as_array` gives them."""
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
        """The finished graph."""
        edges = tuple(self.edge_of(o, "pipeline") for o in outputs)
        names = tuple(self.nodes[e.node].name for e in edges)
        return Graph(tuple(self.nodes), edges, names)


def stack_nodes(builder: GraphBuilder, values: Sequence[Any]) -> DataNode:
    """One small tensor per row out of nodes and numbers: ``size=[h, 224]``."""
    return builder.call("stack", [v if isinstance(v, DataNode) else builder.constant(v) for v in values], {})  # type: ignore[no-any-return]


class DataNode:
    """The output of a node: one tensor per row once the pipeline runs.

    Supports ``+ - * / // % **``, comparisons, ``& | ^ ~ << >>``, ``abs``, indexing and slicing.
    """

    __slots__ = ("builder", "edge")
    __hash__ = object.__hash__
    __array_ufunc__ = None  # so that numpy_array + node comes here

    def __init__(self, builder: GraphBuilder, edge: Edge) -> None:
        self.builder = builder
        self.edge = edge

    @property
    def device(self) -> str:
        """ "cpu" or "gpu": where the data will be."""
        todo, seen = [self.edge.node], set[int]()
        while todo:
            node = self.builder.nodes[todo.pop()]
            if node.device is not None and node.device != "cpu":
                return "gpu"
            if node.device is None and node.id not in seen:
                seen.add(node.id)
                todo += [e.node for e in node.inputs]
        return "cpu"

    @property
    def name(self) -> str:
        """The node's ``name``, or one made of its operator and number."""
        return self._node.name or f"__{self._node.operator.name}_{self.edge.node}"

    @property
    def _node(self) -> Node:
        return self.builder.nodes[self.edge.node]

    def _binary(self, op: str, other: Any, *, swap: bool = False) -> DataNode:
        if isinstance(other, (list, tuple, str, bytes)) or other is None:
            return NotImplemented  # type: ignore[no-any-return]
        a, b = (other, self) if swap else (self, other)
        return self.builder.call("_arithmetic", [a, b], {"op": op})  # type: ignore[no-any-return]

    def _unary(self, op: str) -> DataNode:
        return self.builder.call("_arithmetic", [self], {"op": op})  # type: ignore[no-any-return]

    def __add__(self, o: Any) -> DataNode:
        return self._binary("add", o)

    def __radd__(self, o: Any) -> DataNode:
        return self._binary("add", o, swap=True)

    def __sub__(self, o: Any) -> DataNode:
        return self._binary("sub", o)

    def __rsub__(self, o: Any) -> DataNode:
        return self._binary("sub", o, swap=True)

    def __mul__(self, o: Any) -> DataNode:
        return self._binary("mul", o)

    def __rmul__(self, o: Any) -> DataNode:
        return self._binary("mul", o, swap=True)

    def __truediv__(self, o: Any) -> DataNode:
        return self._binary("div", o)

    def __rtruediv__(self, o: Any) -> DataNode:
        return self._binary("div", o, swap=True)

    def __floordiv__(self, o: Any) -> DataNode:
        return self._binary("idiv", o)

    def __rfloordiv__(self, o: Any) -> DataNode:
        return self._binary("idiv", o, swap=True)

    def __mod__(self, o: Any) -> DataNode:
        return self._binary("mod", o)

    def __rmod__(self, o: Any) -> DataNode:
        return self._binary("mod", o, swap=True)

    def __pow__(self, o: Any) -> DataNode:
        return self._binary("pow", o)

    def __rpow__(self, o: Any) -> DataNode:
        return self._binary("pow", o, swap=True)

    def __and__(self, o: Any) -> DataNode:
        return self._binary("and", o)

    def __rand__(self, o: Any) -> DataNode:
        return self._binary("and", o, swap=True)

    def __or__(self, o: Any) -> DataNode:
        return self._binary("or", o)

    def __ror__(self, o: Any) -> DataNode:
        return self._binary("or", o, swap=True)

    def __xor__(self, o: Any) -> DataNode:
        return self._binary("xor", o)

    def __rxor__(self, o: Any) -> DataNode:
        return self._binary("xor", o, swap=True)

    def __lshift__(self, o: Any) -> DataNode:
        return self._binary("shl", o)

    def __rlshift__(self, o: Any) -> DataNode:
        return self._binary("shl", o, swap=True)

    def __rshift__(self, o: Any) -> DataNode:
        return self._binary("shr", o)

    def __rrshift__(self, o: Any) -> DataNode:
        return self._binary("shr", o, swap=True)

    def __lt__(self, o: Any) -> DataNode:
        return self._binary("lt", o)

    def __le__(self, o: Any) -> DataNode:
        return self._binary("le", o)

    def __gt__(self, o: Any) -> DataNode:
        return self._binary("gt", o)

    def __ge__(self, o: Any) -> DataNode:
        return self._binary("ge", o)

    def __eq__(self, o: object) -> Any:
        return self._binary("eq", o)

    def __ne__(self, o: object) -> Any:
        return self._binary("ne", o)

    def __neg__(self) -> DataNode:
        return self._unary("neg")

    def __pos__(self) -> DataNode:
        return self

    def __abs__(self) -> DataNode:
        return self._unary("abs")

    def __invert__(self) -> DataNode:
        return self._unary("not")

    def __getitem__(self, index: Any) -> DataNode:
        return index_node(self, index)

    def __iter__(self) -> Iterator[DataNode]:
        raise TypeError("a node cannot be iterated: how many elements it has is known only at run time")

    def __bool__(self) -> bool:
        raise TypeError(
            "the truth of a node is known only at run time, per row. Use `@pipeline_def(enable_conditionals=True)` "
            "for `if` statements, or `&`, `|`, `~` for logic"
        )

    def __len__(self) -> int:
        raise TypeError("the length of a node is known only at run time; use `fn.shapes(x)[0]`")

    def shape(self, *, dtype: DType = DType.INT64) -> DataNode:
        """The shape, one small tensor per row."""
        return self.builder.call("shapes", [self], {"dtype": dtype})  # type: ignore[no-any-return]

    def property(self, key: str) -> DataNode:
        """UnsupportedError: properties do not travel with data here."""
        raise UnsupportedError(message("DataNode.property", f"expected an operator that gives {key!r}, got a property, "
                                       "which do not travel with data here", source=user_line()))  # fmt: skip

    def source_info(self) -> DataNode:
        """UnsupportedError, as :meth:`property`."""
        return self.property("source_info")

    def cpu(self) -> DataNode:
        """The data in host memory; what is on a GPU does not come back in a pipeline."""
        return self if self.device == "cpu" else self._copy("cpu")

    def gpu(self) -> DataNode:
        """The data in the GPU's memory."""
        return self if self.device == "gpu" else self._copy("gpu")

    def _copy(self, device: str) -> DataNode:
        return self.builder.copy_to(self, device)

    def __repr__(self) -> str:
        return f"DataNode({self.name!r}, output {self.edge.output})"


class NewAxis:
    """In an index: an axis of size one. ``newaxis("C")`` names it."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __call__(self, name: str) -> NewAxis:
        """The same with a name of one letter."""
        if len(name) != 1:
            raise ArgumentError(f"`newaxis`: expected a name of one letter, got {name!r}")
        return NewAxis(name)

    def __repr__(self) -> str:
        return f"newaxis({self.name!r})" if self.name else "newaxis"


newaxis = NewAxis()


def index_node(x: DataNode, index: Any) -> DataNode:
    """``x[2]``, ``x[1:5:2, n]``, ``x[newaxis]``: integers drop their axis; starts, stops and integers may be nodes."""
    items = index if isinstance(index, tuple) else (index,)
    added = [(place, item.name) for place, item in enumerate(_kept(items)) if isinstance(item, NewAxis)]
    items = tuple(item for item in items if not isinstance(item, NewAxis))
    if items:
        x = _index(x, items)
    if not added:
        return x
    names = "".join(name for _, name in added)
    if names and len(names) != len(added):
        raise ArgumentError("expected a name for every new axis of an index or for none")
    arguments = {"axes": [place for place, _ in added], **({"new_axis_names": names} if names else {})}
    return x.builder.call("expand_dims", [x], arguments)  # type: ignore[no-any-return]


def _kept(items: tuple[Any, ...]) -> list[Any]:
    """The parts of an index that leave an axis."""
    return [item for item in items if isinstance(item, (slice, NewAxis))]


def _index(x: DataNode, items: tuple[Any, ...]) -> DataNode:
    spec: list[str] = []
    nodes: list[Any] = []
    for item in items:
        if isinstance(item, slice):
            parts = ""
            for part in (item.start, item.stop):
                parts += "n" if part is None else "v"
                if part is not None:
                    nodes.append(part)
            if item.step is not None and not isinstance(item.step, int):
                raise ArgumentError(f"expected a whole number as step, got {item.step!r}")
            spec.append(f"{parts}:{1 if item.step is None else item.step}")
        elif isinstance(item, (int, np.integer, DataNode)):
            spec.append("i")
            nodes.append(item)
        else:
            raise ArgumentError(f"expected whole numbers, slices or nodes as index, got {item!r}")
    return x.builder.call("_index", [x, *nodes], {"spec": ",".join(spec)})  # type: ignore[no-any-return]
