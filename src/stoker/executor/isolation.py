# SPDX-License-Identifier: Apache-2.0
"""Operators that run in processes of their own: a crash, an exit or a hang of one is an error of its rows."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..contract.config import WorkerConfig
from ..contract.errors import DataError, StateError
from ..contract.operator import Isolation, RowContext
from ..contract.step import PyCall
from .workers import ProcessWorkerPool, Task, WorkerDied

_START_LIMIT_S = 60.0  # a spawned process imports the caller's modules
_POLL_S = 0.05  # longest delay until a `close` in another thread, or the limit, is noticed
_CALL, _READY = range(2)  # numbers of the producers


@dataclass(frozen=True)
class _Call:
    """Function of a request that runs in the operator's process."""

    isolation: Isolation

    def __call__(self, request: Any) -> Any:
        rows, inputs = request
        contexts = [
            RowContext(arguments, layouts=layouts, stream=stream, batch_position=tuple(position), key=key, epoch=epoch)
            for (names, values), layouts, stream, position, key, epoch in rows
            for arguments in (dict(zip(names, values, strict=True)),)
        ]
        return self.isolation.call(contexts, [tuple(x) for x in inputs])


def _ready(_request: Any) -> bool:
    return True


class IsolatedOperators:
    """Processes of a pipeline's isolated operators, one for each node. They start with the first row.

    Args:
        config: how processes start.
    """

    def __init__(self, config: WorkerConfig | None = None) -> None:
        self._config = config
        self._pools: dict[int, ProcessWorkerPool] = {}
        self._finalizer: Any = None

    def call(
        self, body: PyCall, isolation: Isolation, rows: Sequence[RowContext], inputs: Sequence[tuple[Any, ...]],
        is_closed: Callable[[], bool],
    ) -> list[Any]:  # fmt: skip
        """Return the outputs of rows, for each the outputs or an exception.

        Args:
            body: the operator's call.
            isolation: its isolation.
            rows: arguments and draws of the rows.
            inputs: inputs of the rows.
            is_closed: function that returns whether the run is closed.

        Raises:
            DataError: the process ended, or did not answer in time. The next call starts a new one.
            StateError: the run was closed during the wait.
            Exception: the operator's exception.
        """
        sent = [
            (
                (list(body.edges), [row[name] for name in body.edges]), row.layouts, row.sent_stream(),
                row.batch_position, row.key, row.epoch,
            )
            for row in rows
        ]  # fmt: skip
        pool = self._started(body, isolation, is_closed)
        try:
            task = pool.submit_shared(_CALL, (sent, list(inputs)))
            results = self._answer(pool, task, isolation.time_limit_s, is_closed)
        except WorkerDied as died:
            raise _crash(died) from died.__cause__
        return list(results)

    def _started(self, body: PyCall, isolation: Isolation, is_closed: Callable[[], bool]) -> ProcessWorkerPool:
        """Return the pool of a node, with a process that answers."""
        pool = self._pools.get(body.node)
        if pool is None:
            if self._finalizer is None:  # a forgotten pipeline ends its processes, too
                self._finalizer = weakref.finalize(self, _close, self._pools)
            pool = ProcessWorkerPool(replace(self._config or WorkerConfig(), count=1), "isolate")
            pool.add(_Call(isolation), stateful=False)
            pool.add(_ready, stateful=False)
            self._pools[body.node] = pool
        try:
            self._answer(pool, pool.submit(_READY, None), _START_LIMIT_S, is_closed)
        except WorkerDied:  # it ended since the last row, as by a thread of the operator; a new one takes its place
            self._answer(pool, pool.submit(_READY, None), _START_LIMIT_S, is_closed)
        return pool

    def _answer(self, pool: ProcessWorkerPool, task: Task, limit_s: float, is_closed: Callable[[], bool]) -> Any:
        deadline = time.monotonic() + limit_s
        try:
            while not pool.ready(task):
                if is_closed():
                    raise StateError("the pipeline was closed while an isolated operator was awaited")
                if time.monotonic() > deadline:
                    raise DataError(
                        f"expected a result within {limit_s:g} s, got none from its process, which was ended. A new "
                        "process computes the next rows. `time_limit_s` is the limit"
                    )
                pool.wait(min(_POLL_S, limit_s))
            return pool.result(task)
        finally:
            if task.answer is None:  # Ctrl-C, too: the process may never come back from the user's code
                pool.end(task)

    def close(self) -> None:
        """End all processes. The next call starts new ones."""
        _close(self._pools)


def _close(pools: dict[int, ProcessWorkerPool]) -> None:
    while pools:
        pools.popitem()[1].close()


def _crash(died: WorkerDied) -> DataError:
    return DataError(
        f"expected a result, got none: its process {died.ended or 'ended'}. A new process computes the next rows. "
        "Without `isolate=True`, and with a debugger, the crash shows where"
    )
