# SPDX-License-Identifier: Apache-2.0
"""Data of a batch in flight: memory of consumers, fed inputs, failed rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..contract.errors import StokerError
from .schedule import Rows

Replay = dict[int, dict[int, Any]]  # node -> row -> outputs, computed during type discovery


class SuppliedMemory(NamedTuple):
    """Consumer's memory for an output.

    Attributes:
        address: address of contiguous memory for all rows, on the device that the plan assigned to the output.
        owner: object that is delivered as the output; it keeps the memory alive.
        stream: for GPU memory, the consumer's stream, which may still use the memory. The run's work waits for it.
    """

    address: int
    owner: Any
    stream: int | None = None


Feeds = Mapping[tuple[int, int], Any]  # (node, output) -> an array with one element per row, or a list of arrays


@dataclass(frozen=True, slots=True)
class RowFailure:
    """Failed row.

    Attributes:
        row: position in the batch.
        node: the graph's node that failed; -1 if unknown.
        reason: the cause, without sample and line.
        error: the whole error; DeviceError if the GPU failed and no row is to blame.
        fatal: the row is not at fault, and a substitute would fail too.
        unreadable: the system could not read the row's file: a bad sample, or a dead disk.
        in_data: the operator failed on its input data, rather than on arguments or shapes.
        sample: index of the sample in the data set, if it has one.
    """

    row: int
    node: int
    reason: str
    error: StokerError
    fatal: bool = False
    unreadable: bool = False
    in_data: bool = False
    sample: int | None = None


@dataclass(eq=False, slots=True)
class InFlight:
    """Batch in flight.

    ``keep_alive`` holds the caller's arrays that native code reads or writes. ``taken`` are the outputs taken from the
    engine so far: Ctrl-C may come between any two of them. ``addresses`` are those of the consumer's memory for
    outputs.
    """

    job: Any
    rows: Rows
    keep_alive: list[Any]
    supplied: dict[int, Any]
    replay: Replay
    seed: int
    record: bool = False
    failures: dict[int, BaseException] = field(default_factory=dict)
    handed_over: set[tuple[int, int, str]] = field(default_factory=set)  # (row, node, reason)
    states: dict[int, Any] = field(default_factory=dict)
    taken: list[Any] = field(default_factory=list)
    failed: list[RowFailure] = field(default_factory=list)
    addresses: dict[int, int] = field(default_factory=dict)
    started: bool = False
    done: bool = False
    held: bool = False
