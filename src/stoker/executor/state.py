# SPDX-License-Identifier: Apache-2.0
"""State tokens: their content, and the checks that a token fits a pipeline."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..contract.errors import StateError, message
from ..contract.reader import OpenSource
from ..contract.text import brief
from ..graph.node import Graph

FORMAT = 1
_WAY_OUT = "Build the same pipeline over the same files with the same seed, or start without the state"

_READ = "Give what `get_state()` returned, or the same read back with `json.loads`"
_WORDS: dict[Any, str] = {int: "a whole number", str: "a text", (list, tuple): "a list", Mapping: "a dict"}
_FIELDS: dict[str, Any] = {
    "graph": str,
    "nodes": (list, tuple),
    "data": (list, tuple),
    "contiguous": (list, tuple),
    "seed": int,
    "epoch": int,
    "consumed": int,
    "bad": (list, tuple),
    "sources": Mapping,
    "states": Mapping,
}


def state_facts(graph: Graph, sources: Mapping[int, OpenSource], seed: int) -> dict[str, Any]:
    """Return the facts that must be equal in the pipeline that restores a state, with explanations of differences."""
    stateful = graph.stateful() is not None
    own = [s.shards.is_contiguous or (stateful and s.shards.number > 1) for s in sources.values()]
    shards = [[s.shards.number, s.shards.id] for s in sources.values()]
    return {
        "stoker_state": FORMAT,
        "graph": graph.fingerprint(),
        "nodes": graph.outline(),
        "data": [[s.fingerprint, s.samples] for s in sources.values()],
        # Only for shards whose state serves no other shard.
        "contiguous": [place if alone else None for place, alone in zip(shards, own, strict=True)],
        "seed": seed,
    }


def require_same(token: Mapping[str, Any], graph: Graph, sources: Mapping[int, OpenSource], seed: int) -> None:
    """Raise StateError if a token belongs to something else. The message names the difference."""
    mine = state_facts(graph, sources, seed)
    _require_whole(token)
    if token["graph"] != mine["graph"]:
        _refuse(f"another graph: {graph.difference(token['nodes'])}")
    for node, saved, now in zip(sources, token["data"], mine["data"], strict=False):
        if saved != now:
            _refuse(f"another data set: {_data_difference(graph, node, saved, now)}")
    if token["seed"] != seed:
        _refuse(f"another seed: expected {seed}, got {brief(token['seed'])}")
    for node, saved, now in zip(sources, token["contiguous"], mine["contiguous"], strict=False):
        if saved != now:
            name = graph.nodes[node].operator.name
            why = _shard_bound_reason(graph, sources[node])
            _refuse(f"other shards: `{name}` had {_shards(saved)}, has {_shards(now)}. {why}")


def require_entries(state: object, **kinds: type | tuple[type, ...]) -> None:
    """Raise StateError if an iterator's state is not a dict with these entries of the right types."""
    names = " and ".join(repr(name) for name in kinds)
    if not isinstance(state, Mapping):
        raise StateError(f"expected what `state_dict` gave, with the entries {names}, got {type(state).__name__}")
    if any(name not in state for name in kinds):
        raise StateError(f"expected what `state_dict` gave, with the entries {names}, got {sorted(map(str, state))}")
    for name, kind in kinds.items():
        if not isinstance(state[name], kind):
            raise StateError(f"expected the entry {name!r} as `state_dict` gave it, got {brief(state[name])}")


def _require_whole(token: object) -> None:
    """Raise StateError if the value is not a token or the token is incomplete. The pipeline is unchanged then."""
    if not isinstance(token, Mapping):
        raise StateError(f"expected a state, which `get_state()` gives as a dict, got {type(token).__name__}. {_READ}")
    if not isinstance(token.get("stoker_state"), int) or token["stoker_state"] != FORMAT:
        _refuse(f"another format: expected {FORMAT}, got {brief(token.get('stoker_state'))}")
    for field, kind in _FIELDS.items():
        if field not in token:
            raise StateError(f"expected a whole state, got one without {field!r}. {_READ}")
        value = token[field]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise StateError(f"expected {field!r} of a state as {_WORDS[kind]}, got {brief(value)}. {_READ}")
    for field in ("epoch", "consumed"):
        if not _is_count(token[field]):
            raise StateError(f"expected {field!r} of a state from 0 to 2**62, got {brief(token[field])}. {_READ}")
    for field, (fits, form) in _NESTED.items():
        if not fits(token[field]):
            raise StateError(f"expected {field!r} of a state as {form}, got {brief(token[field])}. {_READ}")


def _is_count(value: object) -> bool:
    """Return whether a value of a state is a count: of samples, rows or epochs."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 1 << 62


def _is_pair(value: object, first: Callable[[object], bool], second: Callable[[object], bool]) -> bool:
    return isinstance(value, (list, tuple)) and len(value) == 2 and first(value[0]) and second(value[1])


def _are_texts(values: Sequence[object]) -> bool:
    return all(isinstance(text, str) for text in values)


def _are_data(values: Sequence[object]) -> bool:
    return all(
        _is_pair(v, lambda text: text is None or isinstance(text, str), lambda size: size is None or _is_count(size))
        for v in values
    )


def _are_shards(values: Sequence[object]) -> bool:
    return all(v is None or _is_pair(v, _is_count, _is_count) for v in values)


def _are_nodes(values: Mapping[object, object]) -> bool:
    return all(isinstance(k, str) and k.isascii() and k.isdigit() and len(k) < 10 for k in values)


_NESTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "data": (_are_data, "a fingerprint and a number of samples per reader"),
    "contiguous": (_are_shards, "None or a number of shards and a shard per reader"),
    "bad": (lambda value: _is_pair(value, _is_count, _is_count), "an epoch and its rows"),
    "sources": (_are_nodes, "positions by the number of the node"),
    "states": (_are_nodes, "states by the number of the node"),
}


def require_resumable(graph: Graph, sources: Mapping[int, OpenSource], *, elastic: bool) -> None:
    """Raise StateError if a reader cannot resume from a state.

    With ``elastic``, also if it cannot resume with another number of shards.
    """
    for number, source in sources.items():
        node = graph.nodes[number]
        why = source.sampler.forward_only
        if why is not None:
            text = f"expected an order that can be entered anywhere, to save where it stands; {why}"
            raise StateError(message(node.operator.name, text, source=node.source_line))
        if elastic and source.shards.is_contiguous:
            text = (
                'expected sharding="strided" for a state that another number of shards can restore, got contiguous '
                "shards, whose state serves the same shard of the same number alone"
            )
            raise StateError(message(node.operator.name, text, source=node.source_line))
    stateful = graph.stateful()
    if elastic and stateful is not None:
        text = (
            "expected no stateful operator for a state that another number of shards can restore: what it has seen is "
            "one shard's rows"
        )
        raise StateError(message(stateful.operator.name, text, source=stateful.source_line))


def _shard_bound_reason(graph: Graph, source: OpenSource) -> str:
    """Return the reason why a state can serve only one shard."""
    stateful = graph.stateful()
    if source.shards.is_contiguous or stateful is None:
        return 'Contiguous shards cannot be divided again in the middle of an epoch; sharding="strided" can'
    return f"The stateful operator `{stateful.operator.name}` has seen the rows of one shard alone"


def own_shard(graph: Graph, sources: Mapping[int, OpenSource]) -> tuple[int, int] | None:
    """Return the only shard (number, count) that a state can serve; None if it serves any shard."""
    shards = next((s.shards for s in sources.values() if s.shards.number > 1), None)
    if shards is None:
        return None
    contiguous = any(s.shards.is_contiguous for s in sources.values())
    return (shards.id, shards.number) if contiguous or graph.stateful() is not None else None


def saved_states(graph: Graph, states: Mapping[int, Any]) -> dict[int, Any]:
    """Return the saved form of stateful operators' states by node. Copies protect them from changes by later rows."""
    return {node: copy.deepcopy(graph.nodes[node].operator().get_state(state)) for node, state in states.items()}


def restored_states(graph: Graph, nodes: Iterable[int], saved: Mapping[int, Any]) -> dict[int, Any]:
    """Return the states of stateful operators by node: saved states, and initial states for the others."""
    operators = {node: graph.nodes[node].operator() for node in nodes}
    return {k: op.set_state(copy.deepcopy(saved[k])) if k in saved else op.init() for k, op in operators.items()}


def _refuse(what: str) -> None:
    raise StateError(f"the state was saved with {what}. {_WAY_OUT}")


def _data_difference(graph: Graph, number: int, saved: Any, now: Any) -> str:
    node = graph.nodes[number]
    if saved[1] != now[1]:
        text = f"it had {saved[1]} samples, there are {now[1]}"
    else:
        text = f"of its {now[1]} samples, names, order or labels have changed"
    return message(node.operator.name, text, source=node.source_line)


def _shards(contiguous: Any) -> str:
    return "shards that share a state" if contiguous is None else f"shard {contiguous[1]} of {contiguous[0]} by itself"
