# SPDX-License-Identifier: Apache-2.0
"""DALI's metadata of a pipeline's readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ..contract.errors import ArgumentError, did_you_mean
from ..contract.text import brief

if TYPE_CHECKING:  # see `preparation.py`
    from ..executor.execution import Execution

T = TypeVar("T")


def reader_facts(execution: Execution) -> dict[str, dict[str, Any]]:
    """Return DALI's metadata of every reader by its node's name, or by a name from operator and number."""
    found = {}
    for number, source in execution.sources.items():
        node, size, shards = execution.graph.nodes[number], source.sampler.size or 0, source.shards
        found[node.name or f"__{node.operator.name}_{number}"] = {
            "epoch_size": size,
            "epoch_size_padded": shards.length(size) * shards.number,
            "number_of_shards": shards.number,
            "shard_id": shards.id,
            "pad_last_batch": int(shards.is_padded),
            "stick_to_shard": int(shards.is_sticky),
        }
    return found


def named(facts: Mapping[str, T], name: str | None) -> Mapping[str, T] | T:
    """Return the metadata of the reader ``name``, or of all readers without a name.

    Raises:
        ArgumentError: there is no such reader.
    """
    if name is None:
        return facts
    if not isinstance(name, str) or name not in facts:
        raise ArgumentError(
            f"there is no reader called {brief(name)}; {did_you_mean(name, facts) or f'there are {list(facts)}'}"
        )
    return facts[name]
