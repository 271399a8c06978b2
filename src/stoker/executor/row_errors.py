# SPDX-License-Identifier: Apache-2.0
"""Rows that failed, as messages: the sample, the line of the pipeline, the reason that native code or Python gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import DataError, DeviceError, StokerError, message, show_number
from ..graph.node import Graph
from ..graph.plan import Plan
from .flight import Failure, InFlight
from .schedule import Rows

# Stand for a check's number in errors that no row is to blame for.
_FATAL, _DEVICE_FAILED = -2, -3
_HINT = "Smaller batches take less, and so do fewer made ahead (`prefetch_queue_depth`)"


class Samples:
    """Which samples the rows of a plan's batches are.

    Args:
        sources: opened sources by node, in the order of the columns of ``Rows.indices``.
    """

    def __init__(self, plan: Plan, sources: Mapping[int, Any]) -> None:
        self._sources = [sources[r] for r in plan.readers]
        order = list(sources)  # the plan of a part may not need all of them
        self._columns = [order.index(r) for r in plan.readers]

    def indices(self, rows: Rows) -> tuple[npt.NDArray[np.int64], ...]:
        """By reader of the plan."""
        return tuple(rows.indices[i] for i in self._columns)

    def of(self, rows: Rows, row: int) -> tuple[int | None, str]:
        """A row's sample, and its name in messages."""
        if not self._sources:
            return None, f"row {row}"
        sample = int(self.indices(rows)[0][row])
        return sample, f"sample {sample} ({self._sources[0].describe(sample)})"


def failures(flight: InFlight, plan: Plan, graph: Graph, samples: Samples) -> list[Failure]:
    """Every failed row of a batch with its first error."""
    first: dict[int, Any] = {}
    for entry in sorted(flight.job.errors):
        first.setdefault(entry[0], entry)
    return [_failure(flight, entry, plan, graph, samples) for entry in first.values()]


def _failure(flight: InFlight, entry: Any, plan: Plan, graph: Graph, samples: Samples) -> Failure:
    row, number, check, values, text = entry
    maker = plan.steps[number].node
    reason = text.decode(errors="replace")
    cause = flight.failures.get(row)
    if check >= 0:
        reason, maker = plan.messages[check]
        reason = reason.format(*map(show_number, values))
    elif cause is not None and not isinstance(cause, DataError):
        reason = f"{type(cause).__name__}: {reason}"
    node = graph.nodes[maker] if maker >= 0 else None
    subject, source = (node.operator.subject(node.args), node.source) if node else ("output", None)
    error: StokerError
    if check in (_FATAL, _DEVICE_FAILED):
        hint = _HINT if check == _FATAL else ""
        text = message(subject, reason, sample=f"a batch of {len(flight.rows)}", source=source, hint=hint)
        error = DataError(text) if check == _FATAL else DeviceError(text)
        return Failure(row, maker, reason, error, fatal=True)
    sample, name = samples.of(flight.rows, row)
    error = DataError(message(subject, reason, sample=name, source=source), row=row, sample=sample)
    error.__cause__ = cause
    return Failure(row, maker, reason, error, in_data=check == -1, sample=sample)
