# SPDX-License-Identifier: Apache-2.0
"""Handle of a node's output that users hold while they write a graph: arithmetic, indices, devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from ..contract.errors import ArgumentError, UnsupportedError, message
from ..contract.text import brief
from ..contract.types import DType
from ..contract.whole_number import as_whole_number
from ..graph.node import Edge, Node
from .source_line import user_line

_LONGEST_STEP = 1 << 62  # longer than any axis, so all longer steps give the same elements


class Builder(Protocol):
    """Interface between handles and the builder of their graph (``definition.py``).

    Attributes:
        nodes: all nodes so far; an edge's number is an index into it.
        guards: conditions of nodes that are added now.
    """

    nodes: list[Node]
    guards: tuple[tuple[Edge, bool], ...]

    def call(self, name: str, inputs: Sequence[Any], arguments: dict[str, Any]) -> Any:
        """Add a node and return its output, or a tuple of outputs."""

    def constant(self, x: Any, name: str = "constant") -> DataNode:
        """Add a node for a number or an array."""

    def copy_to(self, x: DataNode, device: str) -> DataNode:
        """Return the same data on a device."""


class DataNode:
    """Output of a node: one tensor per row once the pipeline runs.

    Supports ``+ - * / // % **``, comparisons, ``& | ^ ~ << >>``, ``abs``, indexing and slicing.

    Args:
        builder: the graph under construction.
        edge: the output of a node.
    """

    __slots__ = ("builder", "edge")
    __hash__ = object.__hash__
    __array_ufunc__ = None  # so that numpy_array + node calls __radd__

    def __init__(self, builder: Builder, edge: Edge) -> None:
        self.builder = builder
        self.edge = edge

    @property
    def device(self) -> str:
        """Return "cpu" or "gpu", the device of the data."""
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
        """Return the node's ``name``, or a name from its operator and number."""
        return self._node.name or f"__{self._node.operator.name}_{self.edge.node}"

    @property
    def _node(self) -> Node:
        return self.builder.nodes[self.edge.node]

    def _binary(self, op: str, other: Any, *, swap: bool = False) -> DataNode:
        if isinstance(other, (list, tuple, str, bytes)) or other is None:
            if op in ("eq", "ne"):  # Python compares identities then, as of all objects
                return NotImplemented  # type: ignore[no-any-return]
            hint = "A list becomes an operand as `types.Constant([...])`" if isinstance(other, (list, tuple)) else ""
            text = f"expected a node, a number or an array as operand, got {brief(other)}"
            raise ArgumentError(message(op, text, source=user_line(), hint=hint))
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
            "for `if` statements (not for `while`, `assert` and `match`, nor in generators and lambdas from outside of "
            "the pipeline's function), or `&`, `|`, `~` for logic"
        )

    def __len__(self) -> int:
        raise TypeError("the length of a node is known only at run time; use `fn.shapes(x)[0]`")

    def shape(self, *, dtype: DType = DType.INT64) -> DataNode:
        """Return the shape: a tensor ``(rank,)`` per row.

        Args:
            dtype: element type of the result.
        """
        return self.builder.call("shapes", [self], {"dtype": dtype})  # type: ignore[no-any-return]

    def property(self, key: str) -> DataNode:
        """Return a property of each row, as ``fn.get_property`` does.

        Args:
            key: "layout" or "source_info".
        """
        return self.builder.call("get_property", [self], {"key": key})  # type: ignore[no-any-return]

    def source_info(self) -> DataNode:
        """Return the location of each row's sample, as ``fn.get_property(x, key="source_info")`` does."""
        return self.property("source_info")

    def cpu(self) -> DataNode:
        """Return the data in host memory. Outputs of a pipeline are copied from the GPU. For other readers of the data
        the CPU computes them.
        """
        return self if self.device == "cpu" else self._copy("cpu")

    def gpu(self) -> DataNode:
        """Return the data in the GPU's memory."""
        return self if self.device == "gpu" else self._copy("gpu")

    def _copy(self, device: str) -> DataNode:
        return self.builder.copy_to(self, device)

    def __repr__(self) -> str:
        return f"DataNode({self.name!r}, output {self.edge.output})"


class NewAxis:
    """Axis of size one in an index. ``newaxis("C")`` names it."""

    def __init__(self, name: str = "") -> None:
        self.name = name

    def __call__(self, name: str) -> NewAxis:
        """Return a new axis named by one letter."""
        if len(name) != 1:
            raise ArgumentError(f"`newaxis`: expected a name of one letter, got {brief(name)}")
        return NewAxis(name)

    def __repr__(self) -> str:
        return f"newaxis({self.name!r})" if self.name else "newaxis"


newaxis = NewAxis()


def index_node(x: DataNode, index: Any) -> DataNode:
    """Index a node: ``x[2]``, ``x[1:5:2, n]``, ``x[newaxis]``.

    Integers drop their axis. Starts, stops and integers may be nodes.
    """
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
    """Return the parts of an index that keep an axis."""
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
            step = 1 if item.step is None else as_whole_number(item.step)
            if step is None:
                raise ArgumentError(f"expected a whole number as step, got {brief(item.step)}")
            spec.append(f"{parts}:{max(-_LONGEST_STEP, min(step, _LONGEST_STEP))}")
        elif isinstance(item, (int, np.integer, DataNode)):
            spec.append("i")
            nodes.append(item)
        elif item is Ellipsis:
            raise UnsupportedError(
                "expected whole numbers, slices or nodes as index, got `...`: write `:` for each axis"
            )
        else:
            raise ArgumentError(f"expected whole numbers, slices or nodes as index, got {brief(item)}")
    return x.builder.call("_index", [x, *nodes], {"spec": ",".join(spec)})  # type: ignore[no-any-return]
