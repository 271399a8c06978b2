# SPDX-License-Identifier: Apache-2.0
"""What a state token says of the pipeline that it is for, and why one does not fit."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from ..contract.errors import StateError, message
from ..contract.reader import OpenSource
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


def facts(graph: Graph, sources: Mapping[int, OpenSource], seed: int) -> dict[str, Any]:
    """What must be equal where a state is restored, with what is needed to say what is not."""
    stateful = graph.stateful() is not None
    own = [s.shards.contiguous or (stateful and s.shards.number > 1) for s in sources.values()]
    shards = [[s.shards.number, s.shards.id] for s in sources.values()]
    return {
        "stoker_state": FORMAT,
        "graph": graph.fingerprint(),
        "nodes": graph.outline(),
        "data": [[s.fingerprint, s.samples] for s in sources.values()],
        # Of shards whose state serves them alone; those of a stateful operator came to it later.
        "contiguous": [place if alone else None for place, alone in zip(shards, own, strict=True)],
        "seed": seed,
    }


def require_same(token: Mapping[str, Any], graph: Graph, sources: Mapping[int, OpenSource], seed: int) -> None:
    """StateError if a token is of something else; it says what differs."""
    mine = facts(graph, sources, seed)
    _require_whole(token)
    if token["graph"] != mine["graph"]:
        _refuse(f"another graph: {graph.difference(token['nodes'])}")
    for node, saved, now in zip(sources, token["data"], mine["data"], strict=False):
        if saved != now:
            _refuse(f"another data set: {_data_difference(graph, node, saved, now)}")
    if token["seed"] != seed:
        _refuse(f"another seed: expected {seed}, got {token['seed']!r}")
    for node, saved, now in zip(sources, token["contiguous"], mine["contiguous"], strict=False):
        if saved != now:
            name = graph.nodes[node].operator.name
            why = _why_alone(graph, sources[node])
            _refuse(f"other shards: `{name}` had {_shards(saved)}, has {_shards(now)}. {why}")


def require_entries(state: object, **kinds: type | tuple[type, ...]) -> None:
    """StateError if an iterator's state is not a dict with these entries, each of its kind."""
    names = " and ".join(repr(name) for name in kinds)
    if not isinstance(state, Mapping):
        raise StateError(f"expected what `state_dict` gave, with the entries {names}, got {type(state).__name__}")
    if any(name not in state for name in kinds):
        raise StateError(f"expected what `state_dict` gave, with the entries {names}, got {sorted(map(str, state))}")
    for name, kind in kinds.items():
        if not isinstance(state[name], kind):
            raise StateError(f"expected the entry {name!r} as `state_dict` gave it, got {state[name]!r:.60}")


def _require_whole(token: object) -> None:
    """StateError if it is no token at all, or one that lost something on its way; nothing has been changed then."""
    if not isinstance(token, Mapping):
        raise StateError(f"expected a state, which `get_state()` gives as a dict, got {type(token).__name__}. {_READ}")
    if token.get("stoker_state") != FORMAT:
        _refuse(f"another format: expected {FORMAT}, got {token.get('stoker_state')!r}")
    for field, kind in _FIELDS.items():
        if field not in token:
            raise StateError(f"expected a whole state, got one without {field!r}. {_READ}")
        value = token[field]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise StateError(f"expected {field!r} of a state as {_WORDS[kind]}, got {value!r:.60}. {_READ}")
    for field in ("epoch", "consumed"):
        if token[field] < 0:
            raise StateError(f"expected {field!r} of a state at 0 or above, got {token[field]}. {_READ}")
    if len(token["bad"]) != 2:
        raise StateError(f"expected 'bad' of a state as an epoch and its rows, got {token['bad']!r:.60}. {_READ}")


def require_resumable(graph: Graph, sources: Mapping[int, OpenSource], *, elastic: bool) -> None:
    """StateError if a reader cannot be taken up again, or with ``elastic``, not by another number of shards."""
    for number, source in sources.items():
        node = graph.nodes[number]
        why = source.sampler.forward_only
        if why is not None:
            text = f"expected an order that can be entered anywhere, to save where it stands; {why}"
            raise StateError(message(node.operator.name, text, source=node.source))
        if elastic and source.shards.contiguous:
            text = (
                'expected sharding="strided" for a state that another number of shards can restore, got contiguous '
                "shards, whose state serves the same shard of the same number alone"
            )
            raise StateError(message(node.operator.name, text, source=node.source))
    stateful = graph.stateful()
    if elastic and stateful is not None:
        text = (
            "expected no stateful operator for a state that another number of shards can restore: what it has seen is "
            "one shard's rows"
        )
        raise StateError(message(stateful.operator.name, text, source=stateful.source))


def _why_alone(graph: Graph, source: OpenSource) -> str:
    """Why a state serves one shard alone."""
    stateful = graph.stateful()
    if source.shards.contiguous or stateful is None:
        return 'Contiguous shards cannot be divided anew in the middle of an epoch; sharding="strided" can'
    return f"The stateful operator `{stateful.operator.name}` has seen the rows of one shard alone"


def own_shard(graph: Graph, sources: Mapping[int, OpenSource]) -> tuple[int, int] | None:
    """The shard (number, of how many) that a state serves alone; None if it serves any."""
    shards = next((s.shards for s in sources.values() if s.shards.number > 1), None)
    if shards is None:
        return None
    contiguous = any(s.shards.contiguous for s in sources.values())
    return (shards.id, shards.number) if contiguous or graph.stateful() is not None else None


def saved_states(graph: Graph, states: Mapping[int, Any]) -> dict[int, Any]:
    """What stateful operators' states are saved as, by node: copies, so that rows that follow do not change them."""
    return {node: copy.deepcopy(graph.nodes[node].operator().get_state(state)) for node, state in states.items()}


def restored_states(graph: Graph, nodes: Iterable[int], saved: Mapping[int, Any]) -> dict[int, Any]:
    """The states that were saved of stateful operators, by node; of the others, those that they start with."""
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
    return message(node.operator.name, text, source=node.source)


def _shards(contiguous: Any) -> str:
    return "shards that share a state" if contiguous is None else f"shard {contiguous[1]} of {contiguous[0]} by itself"
