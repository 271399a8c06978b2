# SPDX-License-Identifier: Apache-2.0
"""Graph of frozen nodes, written by the front ends and read by everything below them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .._import_lock import IMPORT_LOCK
from ..contract.errors import ArgumentError, GraphError, SourceLine, StokerError, UnsupportedError
from ..contract.operator import Operator
from ..contract.reader import SourcePart
from ..contract.text import brief, reason_of
from ..contract.types import DType, ImageType, InterpType

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Edge:
    """Output number ``output`` of node ``node``."""

    node: int
    output: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Call of an operator.

    Attributes:
        args: constants, completed with defaults.
        edges: per-row arguments by name.
        draw: id of the node's random stream, fixed when the node is defined.
        guards: conditions under which the node runs: (condition, wanted).
        source_line: the line of the user's code that made the node.
    """

    id: int
    operator: type[Operator]
    args: Mapping[str, Any]
    inputs: tuple[Edge, ...] = ()
    edges: tuple[tuple[str, Edge], ...] = ()
    draw: int = 0
    guards: tuple[tuple[Edge, bool], ...] = ()
    source_line: SourceLine | None = None
    outputs: int = 1

    @property
    def name(self) -> str | None:
        return self.args.get("name")

    @property
    def device(self) -> str | None:
        return self.args.get("device")

    def parents(self) -> list[Edge]:
        return [*self.inputs, *(e for _, e in self.edges), *(e for e, _ in self.guards)]


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """All nodes in the order of definition, and the edges that leave the pipeline."""

    nodes: tuple[Node, ...]
    outputs: tuple[Edge, ...]
    names: tuple[str | None, ...] = field(default=())
    partial: bool = False  # part of another graph, reduced to the nodes that its outputs need
    _known: dict[str, Any] = field(default_factory=dict, init=False, repr=False)  # cached facts

    def before(self, node: int) -> Graph:
        """Return the part of the graph that feeds ``node``: its inputs, per-row arguments and conditions."""
        return Graph(self.nodes[:node], tuple(self.nodes[node].parents()), partial=True)

    def fact(self, name: str, find: Callable[[], Any]) -> Any:
        """Return a fact about the graph, which the first call with this name finds."""
        if name not in self._known:
            self._known[name] = find()
        return self._known[name]

    def needed(self) -> frozenset[int]:
        """Return the nodes that an output depends on, that have effects, or that the user preserves."""
        needed: frozenset[int] = self.fact("needed", self._find_needed)
        return needed

    def _find_needed(self) -> frozenset[int]:
        todo = [e.node for e in self.outputs]
        if not self.partial:
            todo += [n.id for n in self.nodes if n.args.get("preserve") or not n.operator.pure]
        found: set[int] = set()
        while todo:
            i = todo.pop()
            if i not in found:
                found.add(i)
                todo += [e.node for e in self.nodes[i].parents()]
        return frozenset(found)

    def stateful(self) -> Node | None:
        """Return a node with a stateful operator; None if there is none."""
        found = (self.nodes[n] for n in sorted(self.needed()))
        node: Node | None = self.fact("stateful", lambda: next((n for n in found if n.operator.stateful), None))
        return node

    def to_json(self) -> str:
        """Return the graph as versioned JSON.

        Raises:
            UnsupportedError: an object has no import path (a lambda, a local function).
        """
        with IMPORT_LOCK:
            import json

        nodes = [
            {
                "operator": n.operator.name,
                "version": n.operator.version,
                "args": {k: _encode(v, n) for k, v in n.args.items()},
                "inputs": [[e.node, e.output] for e in n.inputs],
                "edges": {k: [e.node, e.output] for k, e in n.edges},
                "draw": n.draw,
                "guards": [[e.node, e.output, wanted] for e, wanted in n.guards],
                "outputs": n.outputs,
                "source": [n.source_line.file, n.source_line.line] if n.source_line else None,
            }
            for n in self.nodes
        ]
        outputs = [[e.node, e.output] for e in self.outputs]
        return json.dumps({"stoker_graph": FORMAT, "nodes": nodes, "outputs": outputs, "names": list(self.names)})

    @staticmethod
    def from_json(text: str, find: Callable[[str], type[Operator]], allow: Sequence[str] = ()) -> Graph:
        """Return the graph that :meth:`to_json` wrote, after the checks that defining it makes.

        Args:
            find: gives operators by name.
            allow: names of Python functions and classes that may be imported, or of the modules that hold them.

        Raises:
            GraphError: the text is no graph of this version, or names a function that is not allowed.
            ArgumentError: an operator does not take its arguments.
        """
        with IMPORT_LOCK:
            import json

        if isinstance(allow, str):
            raise ArgumentError(f"expected `allow` to be a list of names, got {brief(allow)}: give [{brief(allow)}]")
        if not isinstance(allow, (list, tuple, set, frozenset)) or not all(isinstance(name, str) for name in allow):
            raise ArgumentError(f"expected `allow` to be a list of names, got {brief(allow)}")
        reader = _JsonReader(find, tuple(allow))
        try:
            data = json.loads(text)
            if not isinstance(data, dict) or data.get("stoker_graph") != FORMAT:
                found = data.get("stoker_graph") if isinstance(data, dict) else type(data).__name__
                raise GraphError(f"expected a graph of format {FORMAT}, got {brief(found)}")
            nodes = tuple(reader.node(i, n) for i, n in enumerate(data["nodes"]))
            names = tuple(None if name is None else str(name) for name in data["names"])
            return Graph(nodes, tuple(_edge(*e) for e in data["outputs"]), names)
        except StokerError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError) as error:
            raise GraphError(
                f"expected a graph as `Pipeline.serialize` writes it, got another text: {type(error).__name__}: {error}"
            ) from None

    def outline(self) -> list[Any]:
        """Return a compact list of each node's part of the fingerprint: name, arguments, everything else."""
        outline = self.fact("outline", lambda: [_outlined(n) for n in self.nodes])
        return [[name, {**args}, rest] for name, args, rest in outline]  # a copy

    def difference(self, outline: Sequence[Any]) -> str:
        """Describe the difference between this graph and one with the :meth:`outline` ``outline``."""
        for node, was, now in zip(self.nodes, outline, self.outline(), strict=False):
            if was == now:
                continue
            place = f"node {node.id}, `{now[0]}`" + (f" made at {node.source_line}" if node.source_line else "")
            if was[0] != now[0]:
                return f"{place}, was `{was[0]}`"
            changed = [k for k in {**was[1], **now[1]} if was[1].get(k) != now[1].get(k)]
            if not changed:
                return f"{place}, had other inputs or another place in the order of draws"
            return f"{place}, had " + ", ".join(
                f"{k}={was[1].get(k, 'its default')} and has {k}={now[1].get(k, 'its default')}" for k in changed
            )
        if len(outline) != len(self.nodes):
            return f"it had {len(outline)} nodes, this one has {len(self.nodes)}"
        return "its outputs are others"

    def fingerprint(self) -> str:
        """Return a short digest of the facts that decide the results: operators, versions, constants, edges, draws."""
        return str(self.fact("fingerprint", self._find_fingerprint))

    def _find_fingerprint(self) -> str:
        digest = _digest()
        for n in self.nodes:
            args = {k: _stable(v) for k, v in _deciding(n.operator, n.args).items()}
            digest.update(
                repr((n.operator.name, n.operator.version, args, n.inputs, n.edges, n.draw, n.guards)).encode()
            )
        digest.update(repr(self.outputs).encode())
        return str(digest.hexdigest())


def _outlined(node: Node) -> tuple[str, dict[str, str], str]:
    deciding = _deciding(node.operator, node.args)
    args = {k: _short(_stable(v)) for k, v in deciding.items() if not _is_default(node, k, v)}
    rest = repr((node.operator.version, node.inputs, node.edges, node.draw, node.guards))
    return node.operator.name, args, str(_digest(rest.encode()).hexdigest())[:8]


def _deciding(operator: type[Operator], args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that decide the results."""
    ignored = {"name", "preserve", *operator.result_neutral}
    return {k: v for k, v in sorted(args.items()) if k not in ignored}


def _is_default(node: Node, name: str, value: Any) -> bool:
    known = node.operator.all_arguments()
    return value is None or (name in known and _stable(known[name].convert_default()) == _stable(value))


def _short(text: str) -> str:
    return text if len(text) <= 48 else f"{text[:24]}... {str(_digest(text.encode()).hexdigest())[:8]}"


def _digest(data: bytes = b"") -> Any:
    with IMPORT_LOCK:
        import hashlib  # late, because it loads OpenSSL, which only state tokens need

    return hashlib.blake2b(data, digest_size=8)


def _stable(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array({value.dtype}, {value.shape}, {_digest(value.tobytes()).hexdigest()})"
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    if isinstance(value, SourcePart):
        args = {k: _stable(v) for k, v in _deciding(value.operator, value.args).items()}
        return repr((value.operator.name, value.operator.version, args))
    if isinstance(value, (list, tuple)):  # JSON has one type for both
        if len(value) > 1000 and all(type(v) is int for v in value):
            return f"({len(value)} numbers, {_digest(repr(value).encode()).hexdigest()})"
        text = f"({', '.join(map(_stable, value))})"
        return text if len(value) <= 64 else str(_digest(text.encode()).hexdigest())
    if getattr(type(value), "__repr__", None) is object.__repr__:
        return type(value).__qualname__
    return repr(value)


_ENUMS = {"DType": DType, "ImageType": ImageType, "InterpType": InterpType}


def _encode(value: Any, node: Node) -> Any:
    for tag, cls in _ENUMS.items():
        if isinstance(value, cls):
            return {"$": tag, "v": value.name}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (tuple, list)):
        return {"$": "tuple", "v": [_encode(v, node) for v in value]}
    if isinstance(value, np.ndarray):
        return {"$": "array", "v": value.tolist(), "dtype": str(value.dtype), "shape": value.shape}
    if isinstance(value, SourcePart):
        args = {k: _encode(v, node) for k, v in value.args.items()}
        return {"$": "part", "v": [value.operator.name, args]}
    if callable(value):
        module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        if module and module != "__main__" and "<" not in qualname and qualname:
            return {"$": "import", "v": f"{module}:{qualname}"}
    raise UnsupportedError(
        f"`{node.operator.name}`: {brief(value)} cannot be written to JSON (made at {node.source_line}). "
        "Use a function that can be imported by name."
    )


class _JsonReader:
    """Nodes out of the JSON form. The text is untrusted: it may only name operators, and functions that are allowed."""

    def __init__(self, find: Callable[[str], type[Operator]], allow: tuple[str, ...]) -> None:
        self._find = find
        self._allow = allow

    def node(self, i: int, n: Mapping[str, Any]) -> Node:
        """Return the node number ``i``."""
        operator = self._find(str(n["operator"]))
        if operator.version != n["version"]:
            raise GraphError(
                f"`{operator.name}` has version {operator.version}, the graph was written with {brief(n['version'])}"
            )
        edges = {str(k): _edge(*e) for k, e in n["edges"].items()}
        args = self._bound(operator, n["args"], edges)
        inputs = tuple(_edge(*e) for e in n["inputs"])
        low, high = operator.inputs
        if not low <= len(inputs) <= high:
            raise GraphError(f"node {i}, `{operator.name}`: expected {low} to {high} inputs, got {len(inputs)}")
        outputs = operator().count_outputs_with(args, len(inputs))
        if _whole(n["outputs"]) != outputs:
            raise GraphError(f"node {i}, `{operator.name}`: expected {outputs} outputs, got {brief(n['outputs'])}")
        source = SourceLine(str(n["source"][0]), _whole(n["source"][1])) if n["source"] else None
        guards = tuple((_edge(a, b), bool(wanted)) for a, b, wanted in n["guards"])
        return Node(i, operator, args, inputs, tuple(edges.items()), _whole(n["draw"]), guards, source, outputs)

    def _bound(self, operator: type[Operator], args: Mapping[str, Any], edges: Mapping[str, Edge]) -> dict[str, Any]:
        """Return checked constants, as those of a call in a pipeline's definition."""
        known = operator.all_arguments()
        for key in edges:
            if key in known and not known[key].per_row:
                raise ArgumentError(f"`{operator.name}`: argument `{key}` must be a constant, got a node of the graph")
            if key not in known:
                operator.bind({key: None})  # raises, with the nearest name
        decoded = {k: self._decoded(v) for k, v in args.items()}
        # As in a call, None is the default.
        full = operator.fill_defaults(operator.bind({k: v for k, v in decoded.items() if v is not None}), edges)
        operator().validate(full)
        operator.bind(dict.fromkeys(decoded))  # raises for an unknown argument that is None
        bound = {key: _with_whole_numbers(value, full.get(key)) for key, value in decoded.items()}
        # A text that was changed may lack arguments, which then are the defaults. The others keep their order, because
        # a graph that is written again must give the same text.
        return {**bound, **{key: value for key, value in full.items() if key not in bound}}

    def _decoded(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        tag, v = value["$"], value["v"]
        if tag in _ENUMS:
            return _ENUMS[tag][v]
        if tag == "tuple":
            return tuple(self._decoded(x) for x in v)
        if tag == "part":
            operator = self._find(str(v[0]))
            if not operator.is_source:
                raise GraphError(f"expected a reader as a part of another one, got `{operator.name}`")
            return SourcePart(operator, self._bound(operator, v[1], {}))
        if tag == "array":
            return np.asarray(v, dtype=DType.of(value["dtype"]).numpy).reshape(value["shape"])
        if tag == "import":
            return self._imported(str(v))
        raise GraphError(f"expected a value of a graph, got one of kind {brief(tag)}")

    def _imported(self, path: str) -> Any:
        """Import an allowed function or class, by the name that :meth:`Graph.to_json` writes."""
        module, _, qualname = path.partition(":")
        name = f"{module}.{qualname}"
        if not any(name == a or name.startswith(f"{a}.") for a in self._allow):
            raise GraphError(
                f"the graph names the Python function {brief(path)}, which would be imported and called. If you "
                f"trust the file and this function, allow it: `Pipeline.deserialize(text, allow=[{brief(name, 400)}])`"
            )
        try:
            found: Any = importlib.import_module(module)
            for part in qualname.split("."):
                found = getattr(found, part)
        except (ImportError, AttributeError) as error:
            raise GraphError(f"the graph names {brief(path)}, which cannot be imported: {reason_of(error)}") from None
        # An allowed module must not lead on to what it imported itself, such as `my_package:os.system`.
        if (getattr(found, "__module__", None), getattr(found, "__qualname__", None)) != (module, qualname):
            raise GraphError(f"expected a function that is defined as {brief(path)}, got {brief(found)}")
        return found


def _with_whole_numbers(read: Any, bound: Any) -> Any:
    """Return a checked value with the graph's own whole numbers in place of floats: the digest distinguishes them."""
    if isinstance(read, tuple) and isinstance(bound, tuple) and len(read) == len(bound):
        return tuple(map(_with_whole_numbers, read, bound))
    return read if type(read) is int and type(bound) is float else bound


def _edge(node: Any, output: Any) -> Edge:
    return Edge(_whole(node), _whole(output))


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise GraphError(f"expected a whole number in a graph, got {brief(value)}")
    return value
