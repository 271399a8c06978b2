# SPDX-License-Identifier: Apache-2.0
"""Errors of failed rows: the sample, the line of the pipeline, and the reason given by native code or Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import (
    DataError,
    DeviceError,
    ResourceError,
    StokerError,
    is_read_failure,
    is_system_failure,
    message,
    show_number,
)
from ..contract.text import printable
from ..graph.node import Graph
from ..graph.plan import Plan
from .flight import InFlight, RowFailure
from .schedule import Rows

# Used instead of a check's number: the constants of native/run/job.hpp.
_IN_DATA, _FATAL, _DEVICE_FAILED, _SYSTEM_FAILED, _ROW_TOO_LARGE, _BATCH_TOO_LARGE, _, _NO_MEMORY = range(-1, -9, -1)
_UNREADABLE = -9
_HINTS = {
    _FATAL: "Smaller batches take less, and so do fewer made ahead (`prefetch_queue_depth`)",
    _NO_MEMORY: "Smaller batches take less, and so do fewer made ahead (`prefetch_queue_depth`)",
    _ROW_TOO_LARGE: "`max_batch_bytes` of the pipeline allows more; `max_pixels` of decoders refuses images by their "
    "headers",
    _BATCH_TOO_LARGE: "Smaller batches take less; `max_batch_bytes` of the pipeline allows more",
}
_OF_BATCH = {_FATAL: DataError, _DEVICE_FAILED: DeviceError, _NO_MEMORY: ResourceError}


class Samples:
    """Samples of a plan's batches.

    Args:
        sources: opened sources by node, in the order of the columns of ``Rows.indices``.
    """

    def __init__(self, plan: Plan, sources: Mapping[int, Any]) -> None:
        self._sources = [sources[r] for r in plan.readers]
        order = list(sources)  # the plan of a partial graph may not need all sources
        self._columns = [order.index(r) for r in plan.readers]
        self._are_all = self._columns == list(range(len(order)))

    def indices(self, rows: Rows) -> tuple[npt.NDArray[np.int64], ...]:
        """Return the rows' indices for each reader of the plan."""
        return rows.indices if self._are_all else tuple(rows.indices[i] for i in self._columns)

    def of(self, rows: Rows, row: int) -> tuple[int | None, str]:
        """Return a row's sample index and its name in messages."""
        if not self._sources:
            return None, f"row {row}"
        sample = int(self.indices(rows)[0][row])
        return sample, f"sample {sample} ({self._sources[0].describe(sample)})"


def failures(flight: InFlight, plan: Plan, graph: Graph, samples: Samples) -> list[RowFailure]:
    """Return every failed row of a batch with its first error; only the largest row if the batch is too large."""
    first: dict[int, Any] = {}
    for entry in sorted(flight.job.errors):
        if entry[2] == _BATCH_TOO_LARGE:  # the other rows were given up, or come too late to matter
            return [_failure(flight, entry, plan, graph, samples)]
        first.setdefault(entry[0], entry)
    return [_failure(flight, entry, plan, graph, samples) for entry in first.values()]


def _failure(flight: InFlight, entry: Any, plan: Plan, graph: Graph, samples: Samples) -> RowFailure:
    row, number, check, values, text = entry
    maker = plan.steps[number].node
    cause = flight.failures.get(row)
    # Native code writes one line, with the names of files as they are.
    reason = text.decode(errors="replace") if cause is not None else printable(text.decode(errors="surrogateescape"))
    if check >= 0:
        reason, maker = plan.messages[check]
        reason = reason.format(*map(show_number, values))
    elif cause is not None and not isinstance(cause, DataError):
        reason = f"{type(cause).__name__}: {reason}"
    node = graph.nodes[maker] if maker >= 0 else None
    subject, source = (node.operator.subject(node.args), node.source_line) if node else ("output", None)
    error: StokerError
    hint = _HINTS.get(check, "")
    if check in _OF_BATCH:
        text = message(subject, reason, sample=f"a batch of {len(flight.rows)}", source=source, hint=hint)
        return RowFailure(row, maker, reason, _OF_BATCH[check](text), fatal=True)
    sample, name = samples.of(flight.rows, row)
    where = f"{name} in a batch of {len(flight.rows)}" if check == _BATCH_TOO_LARGE else name
    error = DataError(message(subject, reason, sample=where, source=source, hint=hint), row=row, sample=sample)
    error.__cause__ = cause
    fatal = check in (_SYSTEM_FAILED, _BATCH_TOO_LARGE) or is_system_failure(cause)
    unreadable = check == _UNREADABLE or is_read_failure(cause)
    return RowFailure(
        row, maker, reason, error, in_data=check == _IN_DATA, sample=sample, fatal=fatal, unreadable=unreadable
    )
