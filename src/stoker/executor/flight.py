# SPDX-License-Identifier: Apache-2.0
"""What goes into a run and comes out of it: memory of a consumer, a batch on its way, a row that failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..contract.errors import StokerError
from .schedule import Rows

Replay = dict[int, dict[int, Any]]  # node -> row -> outputs, made while types were being found


class Supply(NamedTuple):
    """Memory of a consumer for an output.

    Attributes:
        address: of contiguous memory for all rows, where the output is planned to be.
        owner: what is handed over as the output; it keeps the memory.
        stream: for a GPU's memory, the consumer's stream, which may still work there: the run's work follows it.
    """

    address: int
    owner: Any
    stream: int | None = None


Feeds = Mapping[tuple[int, int], Any]  # (node, output) -> an array with one element per row, or a list of arrays


@dataclass(frozen=True, slots=True)
class Failure:
    """A row that failed.

    Attributes:
        row: its number in the batch.
        node: the graph's node at which it failed; -1 if it is none's.
        reason: why, without sample and place.
        error: the whole message; DeviceError: the GPU failed, and no row is to blame.
        fatal: it is not the row's fault, and another one in its place would fail too.
        in_data: the operator failed at what it was given, rather than at its arguments or shapes.
        sample: which sample of the data set it is, if there is one.
    """

    row: int
    node: int
    reason: str
    error: StokerError
    fatal: bool = False
    in_data: bool = False
    sample: int | None = None


@dataclass(eq=False, slots=True)
class InFlight:
    """A batch on its way. ``kept`` are the caller's arrays that the native side reads or writes.

    ``taken`` are the outputs that have been handed over: Ctrl-C may come between any two of them. ``addresses`` is
    where the consumer's memory for outputs is.
    """

    job: Any
    rows: Rows
    kept: list[Any]
    supplied: dict[int, Any]
    replay: Replay
    seed: int
    record: bool = False
    failures: dict[int, BaseException] = field(default_factory=dict)
    handed_over: set[tuple[int, int, str]] = field(default_factory=set)  # (row, node, reason)
    states: dict[int, Any] = field(default_factory=dict)
    taken: list[Any] = field(default_factory=list)
    failed: list[Failure] = field(default_factory=list)
    addresses: dict[int, int] = field(default_factory=dict)
    started: bool = False
    done: bool = False
    held: bool = False
