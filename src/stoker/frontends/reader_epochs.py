# SPDX-License-Identifier: Apache-2.0
"""Check that the readers of a pipeline have epochs of one size, so that their rows belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..contract.errors import ArgumentError, did_you_mean
from ..contract.text import brief
from .source_line import warn_at

if TYPE_CHECKING:  # see `preparation.py`
    from ..executor.execution import Execution


def require_even_readers(execution: Execution) -> None:
    """Check the sizes of the readers' epochs if the pipeline does not name the reader whose epochs count.

    Endless orders have no epochs and are independent of the others.

    Raises:
        ArgumentError: the sizes differ and the policy is an error, or no reader has the name.
    """
    config, nodes = execution.config, execution.graph.nodes
    if config.epoch_reader is not None:
        names = [name for number in execution.sources if (name := nodes[number].name)]
        if config.epoch_reader not in names:
            hint = did_you_mean(config.epoch_reader, names) or f"there are {names}"
            raise ArgumentError(f"`Pipeline`: there is no reader called {brief(config.epoch_reader)}; {hint}")
        return
    sizes = {k: (s.sampler.size, s.shards.number) for k, s in execution.sources.items() if s.sampler.size is not None}
    if len(set(sizes.values())) < 2:
        return
    first = next(iter(sizes))
    other = next(number for number in sizes if sizes[number] != sizes[first])
    got = " and ".join(_describe(execution, number) for number in (first, other))
    wrong = "their rows do not belong together"
    if config.uneven_readers == "warn":
        line = nodes[other].source_line
        warn_at(line, f"readers have epochs of different sizes, {got}: {wrong}. `epoch_reader` says that this is meant")
        return
    raise ArgumentError(
        f"`Pipeline`: expected readers with epochs of one size, got {got}: {wrong}. Give readers of pairs lists of the "
        "same length and the same shards, or one custom reader with both columns. If the readers are independent, give "
        'the pipeline `epoch_reader="..."`: the `name` of the reader whose epochs count'
    )


def _describe(execution: Execution, number: int) -> str:
    node, source = execution.graph.nodes[number], execution.sources[number]
    name = f" {brief(node.name)}" if node.name else ""
    shards = f" in {source.shards.number} shards" if source.shards.number > 1 else ""
    line = f" (made at {node.source_line})" if node.source_line else ""
    return f"`{node.operator.name}`{name} with {source.sampler.size} samples{shards}{line}"
