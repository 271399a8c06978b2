# SPDX-License-Identifier: Apache-2.0
"""The graph: frozen nodes, written by the front ends and read by everything below them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..contract.errors import GraphError, Source, UnsupportedError
from ..contract.operator import Operator
from ..contract.reader import Part
from ..contract.types import DType, ImageType, InterpType

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Edge:
    """Output ``output`` of node ``node``."""

    node: int
    output: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One call of an operator.

    Attributes:
        args: constants, complete with defaults.
        edges: per-row arguments by name.
        draw: id of the node's random stream, fixed when the node is defined.
        guards: conditions under which the node runs: (condition, wanted).
        source: the line of the user's code that made the node.
    """

    id: int
    operator: type[Operator]
    args: Mapping[str, Any]
    inputs: tuple[Edge, ...] = ()
    edges: tuple[tuple[str, Edge], ...] = ()
    draw: int = 0
    guards: tuple[tuple[Edge, bool], ...] = ()
    source: Source | None = None
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
    """All nodes in the order of definition, and which edges leave the pipeline."""

    nodes: tuple[Node, ...]
    outputs: tuple[Edge, ...]
    names: tuple[str | None, ...] = field(default=())
    partial: bool = False  # a part of another graph: only what its outputs need
    _told: dict[str, Any] = field(default_factory=dict, repr=False)  # what every token asks for

    def before(self, node: int) -> Graph:
        """The part of the graph that feeds ``node``: its inputs, per-row arguments and conditions."""
        return Graph(self.nodes[:node], tuple(self.nodes[node].parents()), partial=True)

    def needed(self) -> set[int]:
        """Nodes that an output depends on, or that have effects, or that the user wants kept."""
        todo = [e.node for e in self.outputs]
        if not self.partial:
            todo += [n.id for n in self.nodes if n.args.get("preserve") or not n.operator.pure]
        found: set[int] = set()
        while todo:
            i = todo.pop()
            if i not in found:
                found.add(i)
                todo += [e.node for e in self.nodes[i].parents()]
        return found

    def stateful(self) -> Node | None:
        """A node whose operator has a state."""
        if "stateful" not in self._told:
            found = (self.nodes[n] for n in sorted(self.needed()))
            self._told["stateful"] = next((n for n in found if n.operator.stateful), None)
        node: Node | None = self._told["stateful"]
        return node

    def to_json(self) -> str:
        """The graph as versioned JSON; UnsupportedError for what has no import path (a lambda, a local function)."""
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
                "source": [n.source.file, n.source.line] if n.source else None,
            }
            for n in self.nodes
        ]
        outputs = [[e.node, e.output] for e in self.outputs]
        return json.dumps({"stoker_graph": FORMAT, "nodes": nodes, "outputs": outputs, "names": list(self.names)})

    @staticmethod
    def from_json(text: str, find: Callable[[str], type[Operator]]) -> Graph:
        """The graph that :meth:`to_json` wrote."""
        import json

        data = json.loads(text)
        if data.get("stoker_graph") != FORMAT:
            raise GraphError(f"expected a graph of format {FORMAT}, got {data.get('stoker_graph')!r}")
        nodes = []
        for i, n in enumerate(data["nodes"]):
            operator = find(n["operator"])
            if operator.version != n["version"]:
                raise GraphError(
                    f"`{operator.name}` has version {operator.version}, the graph was written with {n['version']}"
                )
            nodes.append(
                Node(
                    i, operator, {k: _decode(v, find) for k, v in n["args"].items()},
                    tuple(Edge(*e) for e in n["inputs"]), tuple((k, Edge(*e)) for k, e in n["edges"].items()),
                    n["draw"], tuple((Edge(a, b), w) for a, b, w in n["guards"]),
                    Source(*n["source"]) if n["source"] else None, n["outputs"],
                )
            )  # fmt: skip
        return Graph(tuple(nodes), tuple(Edge(*e) for e in data["outputs"]), tuple(data["names"]))

    def outline(self) -> list[Any]:
        """Per node what its part of the fingerprint is made of, in little space: name, arguments, all the rest."""
        if "outline" not in self._told:
            self._told["outline"] = [_outlined(n) for n in self.nodes]
        return [[name, {**args}, rest] for name, args, rest in self._told["outline"]]  # the caller's own

    def difference(self, outline: Sequence[Any]) -> str:
        """In which way another graph, of which this is the :meth:`outline`, was another than this one."""
        for node, was, now in zip(self.nodes, outline, self.outline(), strict=False):
            if was == now:
                continue
            place = f"node {node.id}, `{now[0]}`" + (f" made at {node.source}" if node.source else "")
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
        """A short digest of what decides the results: operators, versions, constants, edges, draws."""
        if "fingerprint" in self._told:
            return str(self._told["fingerprint"])
        digest = _digest()
        for n in self.nodes:
            args = {k: _stable(v) for k, v in _deciding(n.operator, n.args).items()}
            digest.update(
                repr((n.operator.name, n.operator.version, args, n.inputs, n.edges, n.draw, n.guards)).encode()
            )
        digest.update(repr(self.outputs).encode())
        self._told["fingerprint"] = digest.hexdigest()
        return str(self._told["fingerprint"])


def _outlined(node: Node) -> tuple[str, dict[str, str], str]:
    deciding = _deciding(node.operator, node.args)
    args = {k: _short(_stable(v)) for k, v in deciding.items() if not _is_default(node, k, v)}
    rest = repr((node.operator.version, node.inputs, node.edges, node.draw, node.guards))
    return node.operator.name, args, str(_digest(rest.encode()).hexdigest())[:8]


def _deciding(operator: type[Operator], args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that decide results."""
    ignored = {"name", "preserve", *operator.incidental}
    return {k: v for k, v in sorted(args.items()) if k not in ignored}


def _is_default(node: Node, name: str, value: Any) -> bool:
    known = node.operator.all_arguments()
    return value is None or (name in known and _stable(known[name].convert_default()) == _stable(value))


def _short(text: str) -> str:
    return text if len(text) <= 48 else f"{text[:24]}... {str(_digest(text.encode()).hexdigest())[:8]}"


def _digest(data: bytes = b"") -> Any:
    import hashlib  # brings in OpenSSL, which only a state token needs

    return hashlib.blake2b(data, digest_size=8)


def _stable(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"array({value.dtype}, {value.shape}, {_digest(value.tobytes()).hexdigest()})"
    if callable(value):
        return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    if isinstance(value, Part):
        args = {k: _stable(v) for k, v in _deciding(value.operator, value.args).items()}
        return repr((value.operator.name, value.operator.version, args))
    if isinstance(value, (list, tuple)):  # JSON does not tell them apart
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
    if isinstance(value, Part):
        args = {k: _encode(v, node) for k, v in value.args.items()}
        return {"$": "part", "v": [value.operator.name, args]}
    if callable(value):
        module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
        if module and module != "__main__" and "<" not in qualname and qualname:
            return {"$": "import", "v": f"{module}:{qualname}"}
    raise UnsupportedError(
        f"`{node.operator.name}`: {value!r} cannot be written to JSON (made at {node.source}). "
        "Use a function that can be imported by name."
    )


def _decode(value: Any, find: Callable[[str], type[Operator]]) -> Any:
    if not isinstance(value, dict):
        return value
    tag, v = value["$"], value["v"]
    if tag in _ENUMS:
        return _ENUMS[tag][v]
    if tag == "tuple":
        return tuple(_decode(x, find) for x in v)
    if tag == "part":
        return Part(find(v[0]), {k: _decode(x, find) for k, x in v[1].items()})
    if tag == "array":
        return np.asarray(v, dtype=value["dtype"]).reshape(value["shape"])
    module, qualname = v.split(":")
    found: Any = importlib.import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    return found
