# SPDX-License-Identifier: Apache-2.0
"""Tiles: a chain of kernels becomes one that runs part by part, so that no intermediate result leaves the cache.

The pass uses one trait, ``Native.tiles``. A kernel joins the one before if it takes the kind of parts that the other
gives, along the same axis, and is the only reader. Both compute what they compute alone. The last kernel may
give the whole output, once it has all columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...contract.expr import Scalar
from ...contract.step import GpuForm, Launches, Native, Step, StepList, Tiles
from ..lower import number_sources

MAX_LINKS = 8  # native/kernels/tiled.cpp


@dataclass(frozen=True, slots=True)
class Chain:
    """Numbers of steps that can be joined, and the axis of the last one's positions."""

    members: tuple[int, ...]
    axis: int | None


def join_tiles(steps: StepList) -> StepList:
    """Join all chains on the CPU."""
    result: list[Step | None] = list(steps.steps)
    for chain in find_chains(steps, _tiles_on_cpu):
        body = steps.steps[chain.members[-1]].body
        assert isinstance(body, Native) and body.tiles is not None
        if chain.axis is not None and len(chain.members) > 1 and body.tiles.gives != "samples":
            replace_chain(result, steps, chain)
    return with_steps(steps, result)


def with_steps(steps: StepList, result: Sequence[Step | None]) -> StepList:
    """Return the list with other steps; None: the step is left out."""
    return StepList([s for s in result if s is not None], steps.values, steps.outputs, steps.fed, steps.readers)


def replace_chain(
    result: list[Step | None], steps: StepList, chain: Chain, own: Launches | None = None
) -> None:  # fmt: skip
    """Put one step that runs a chain in place of its steps.

    Args:
        own: its form for GPUs.
    """
    members = [steps.steps[number] for number in chain.members]
    assert chain.axis is not None
    for number in chain.members:
        result[number] = None
    joined = _step_of(members, chain.axis)
    if own is not None:
        assert isinstance(joined.body, Native)
        body = replace(joined.body, params=(*joined.body.params, *own.numbers()), gpu=GpuForm(own.kernel()))
        joined = replace(joined, body=body)
    result[chain.members[-1]] = joined


def find_chains(steps: StepList, select: Callable[[Step, StepList], Tiles | None]) -> list[Chain]:
    """Return the chains of steps for which ``select`` returns the trait."""
    selected = [select(step, steps) for step in steps.steps]
    if not any(selected):
        return []
    users = Counter(v for step in steps.steps for v in (*step.inputs, *(guard for guard, _ in step.guards)))
    kept = set(steps.outputs).union(*(number_sources(step, steps) for step in steps.steps))
    chains: dict[int, Chain] = {}  # by the value that the last step computes
    for number, (step, tiles) in enumerate(zip(steps.steps, selected, strict=True)):
        if tiles is None:
            continue
        first = step.inputs[0]
        before = chains.get(first) if users[first] == 1 and first not in kept else None
        chain = _joined(before, number, tiles, steps)
        if chain is None:
            continue
        if len(chain.members) > 1:
            del chains[first]
        chains[step.outputs[0]] = chain
    return list(chains.values())


def _tiles_on_cpu(step: Step, steps: StepList) -> Tiles | None:
    """Return the trait of a step that may join a chain on the CPU."""
    return None if step.on_gpu else tiles_of(step, steps)


def tiles_of(step: Step, steps: StepList) -> Tiles | None:
    """Return the trait of a step that may join a chain."""
    body = step.body
    if not isinstance(body, Native) or step.frames is not None or not step.inputs:
        return None
    if body.twin is not None or body.codec or len(step.outputs) != 1:
        return None
    is_matrix = steps.values[step.outputs[0]].rank == 2
    return body.tiles if body.tiles is not None and (body.tiles.gives == "samples" or is_matrix) else None


def _joined(before: Chain | None, number: int, tiles: Tiles, steps: StepList) -> Chain | None:
    """Return the chain that ends with a step: with the steps before, or alone; None if it cannot be the first."""
    alone = Chain((number,), tiles.axis) if tiles.takes != "columns" else None
    if before is None or len(before.members) == MAX_LINKS:
        return alone
    step, last = steps.steps[number], steps.steps[before.members[-1]]
    assert isinstance(last.body, Native) and last.body.tiles is not None
    given = last.body.tiles
    if (
        given.gives not in ("samples", "columns")
        or tiles.takes != given.gives
        or tiles.chain != given.chain
        or last.guards != step.guards
    ):
        return alone
    axes = {axis for axis in (before.axis, tiles.axis) if axis is not None}
    return Chain((*before.members, number), axes.pop() if axes else None) if len(axes) < 2 else alone


def _step_of(members: Sequence[Step], axis: int | None) -> Step:
    """Return the step that runs a chain."""
    links: list[tuple[bytes, tuple[Any, ...], int, int]] = []
    inputs: list[int] = []
    params: list[Scalar] = []
    for number, step in enumerate(members):
        body = step.body
        assert isinstance(body, Native)
        own = step.inputs if number == 0 else step.inputs[1:]
        links.append((body.kernel.encode(), body.attrs, len(own), len(body.params)))
        inputs += own
        params += body.params
    checks = tuple(check for step in members for check in step.checks)
    end = members[-1].body
    assert isinstance(end, Native) and end.tiles is not None
    joined = Native(end.tiles.chain, (axis, tuple(links)), tuple(params))
    return replace(members[-1], body=joined, inputs=tuple(inputs), checks=checks)
