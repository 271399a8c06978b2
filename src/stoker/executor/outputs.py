# SPDX-License-Identifier: Apache-2.0
"""Outputs of a batch while rows are replaced or left out, in host memory or on a GPU."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.plan import PlannedOutput
from .flight import InFlight
from .run import Run


class Outputs:
    """Outputs of a batch: arrays, lists of arrays, or the consumer's memory, on the host or a GPU.

    Args:
        run: the run that computed the batch; it makes copies on the GPU.
        outputs: result of :meth:`Run.collect`.
        flight: the batch in flight, if the consumer supplied memory.
    """

    def __init__(self, run: Run, outputs: list[Any], flight: InFlight | None) -> None:
        self._run = run
        self._outputs = list(outputs)
        self._planned: Sequence[PlannedOutput] = run.plan.outputs
        self._addresses = flight.addresses if flight is not None else {}

    def put(self, row: int, values: Sequence[Any]) -> None:
        """Replace one row."""
        for i, value in enumerate(values):
            out = self._outputs[i]
            if i in self._addresses or (not isinstance(out, list) and tuple(out.shape[1:]) == tuple(value.shape)):
                self._write(i, row, value)
                continue
            if not isinstance(out, list):
                self._outputs[i] = out = rows_of(out)
            out[row] = value

    def _write(self, output: int, row: int, value: Any) -> None:
        """Copy a row into memory for all rows."""
        planned = self._planned[output]
        size = math.prod(value.shape) * planned.dtype.size
        if planned.on_gpu:
            self._run.move_on_gpu([(self._base(output) + row * size, value.pointer, size)])
        elif output in self._addresses:
            data = np.ascontiguousarray(value)
            ctypes.memmove(self._addresses[output] + row * size, data.ctypes.data, size)
        else:
            self._outputs[output][row] = value

    def _base(self, output: int) -> int:
        supplied = self._addresses.get(output)
        return int(self._outputs[output].pointer) if supplied is None else supplied

    def keep(self, rows: list[int]) -> None:
        """Remove all rows but the given ones."""
        for i, out in enumerate(self._outputs):
            if isinstance(out, list):
                self._outputs[i] = [out[r] for r in rows]
            elif i in self._addresses or self._planned[i].on_gpu:
                self._close_up(i, rows)
                self._outputs[i] = out[: len(rows)] if i in self._addresses else out.first(len(rows))
            else:
                self._outputs[i] = out[rows]

    def _close_up(self, output: int, rows: list[int]) -> None:
        """Move the remaining rows to the front of their memory."""
        planned = self._planned[output]
        shape = planned.shape if output in self._addresses else self._outputs[output].shape[1:]
        assert shape is not None, "only outputs of one shape are supplied"
        size, base = math.prod(shape) * planned.dtype.size, self._base(output)
        moves = [(base + to * size, base + row * size, size) for to, row in enumerate(rows) if to != row]
        if planned.on_gpu:
            self._run.move_on_gpu(moves)
            return
        for to, source, count in moves:
            ctypes.memmove(to, source, count)

    def finish(self) -> list[Any]:
        """Return the outputs. Rows of one shape become one array, as in a batch without bad rows."""
        for i, out in enumerate(self._outputs):
            planned = self._planned[i]
            if not isinstance(out, list):
                continue
            if not out:
                if planned.shape is not None and not planned.on_gpu:
                    self._outputs[i] = np.empty((0, *planned.shape), planned.dtype.numpy)
            elif planned.is_uniform(out):
                self._outputs[i] = self._run.stack_on_gpu(out) if planned.on_gpu else np.stack(out)
        return self._outputs


def rows_of(column: Any) -> list[Any]:
    """Return the rows of an output, without a copy."""
    if isinstance(column, (list, np.ndarray)):
        return list(column)
    return [column.row(r) for r in range(column.shape[0])]
