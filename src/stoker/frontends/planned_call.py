# SPDX-License-Identifier: Apache-2.0
"""Operators planned for inputs of certain types, for eager calls on the CPU and on a GPU."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..codecs.open_codecs import OpenCodecs
from ..contract.errors import UnsupportedError
from ..contract.feed import GpuArray
from ..contract.gpu import Target
from ..contract.lowering import UndeclaredTypes
from ..contract.operator import Operator, Spec
from ..contract.types import DType
from ..executor.device_copies import copy_to_host
from ..executor.run import OpenGpu, Run
from ..executor.schedule import Rows
from ..graph.load import load
from ..graph.planner import make_plan
from ..native import _native
from ..settings import default_threads
from .definition import GraphBuilder
from .registry import find

_LEAST_ROWS = 2  # rows of a thread's part of a batch


class _FedInput(Operator, name="_input"):
    """Value that the caller feeds."""

    inputs = (0, 0)
    is_source = True
    hidden = True

    def lower(self, c: Any) -> Any:
        return c.fed(c.const("spec"))


class PlannedCall:
    """Operator planned for inputs of certain types. Several threads may call it concurrently.

    Args:
        name: name of the operator.
        inputs: types of the inputs.
        fed: names and types of the arguments that are fed with the data.
        consts: other arguments.
        gpu: GPU that the operator runs on; None: the CPU.

    Attributes:
        plan: the plan, whose outputs have types.
        types: per output, its element type, layout and device.
    """

    def __init__(
        self, name: str, inputs: tuple[Any, ...], fed: tuple[Any, ...], consts: tuple[tuple[str, Any], ...],
        gpu: OpenGpu | None = None,
    ) -> None:  # fmt: skip
        builder = GraphBuilder()
        nodes = [_fed_node(builder, spec, on_gpu=gpu is not None) for spec in inputs]
        edges = {key: _fed_node(builder, spec) for key, spec in fed}
        device = {} if gpu is None else {"device": "gpu"}
        result = builder.call(name, nodes, {**dict(consts), **edges, **device})
        outputs = result if isinstance(result, tuple) else (result,)
        self.graph = builder.graph(outputs)
        codecs = OpenCodecs(gpu)
        try:
            self.plan = make_plan(self.graph, _find, target=Target(gpu is not None, False, codecs.indexed_codecs))
        except UndeclaredTypes:
            raise UnsupportedError(f"`eager.{name}`: call the function itself; there is nothing to plan") from None
        self.run = Run(load(self.plan, gpu, codecs.get), self.graph, default_threads(), 0, {}, gpu)
        self.engine = self.run.engine
        self.types = [(p.dtype, p.layout, "gpu" if p.on_gpu else "cpu") for p in self.plan.outputs]
        self.values = [self.plan.fed.get((n.edge.node, 0), -1) for n in (*nodes, *edges.values())]
        self._takes_columns = self.run.may_run_inline
        self._rows_are_independent = not find(name).depends_on_batch(dict(consts))
        self._gpu: Any = gpu
        self._on_gpu = threading.Lock()

    def run_one(self, data: list[Any], seed: int) -> Any:
        """Compute one row in a single native call, on the CPU.

        Return None if it needs Python or fails; :meth:`run_many` then repeats it.
        """
        return self.engine.run_row(self.values, data, seed)

    def run_many(self, data: list[Any], rows: int, seed: int, pool: RowThreads | None = None) -> list[Any]:
        """Compute several rows. Handles operators in Python and rows that fail.

        A single native call computes all rows, until a batch has needed Python: such a call's work is lost.

        Args:
            data: per input and fed argument, an ``ArrayRows`` or a list with one array per row, or an array, a number
                or a tuple of floats for all rows.
            rows: number of rows.
            seed: seed of random numbers.
            pool: threads that divide the rows; None: the caller's thread computes all of them.
        """
        takes_columns = self._takes_columns and rows > 0
        if takes_columns:
            if pool is None:
                outputs = self.engine.run_columns(self.values, data, rows, seed)
            else:
                outputs = self._run_parts(data, rows, seed, pool)
            if outputs is not None:
                return outputs
        if self._gpu is not None:
            data = [self._readable(x, v) for x, v in zip(data, self.values, strict=True)]
            with self._on_gpu:  # a call's work is complete when it returns, so calls do not overlap
                return self._run_inline(data, rows, seed)
        outputs = self._run_inline(data, rows, seed)
        if takes_columns:
            # Rows that fail raise their error above, so the native call failed because it needs Python.
            self._takes_columns = False
        return outputs

    def _readable(self, x: Any, value: int) -> Any:
        """Return an input where the plan's steps read it: what the CPU reads is copied to host memory."""
        one = x[0] if isinstance(x, list) and x else x
        if not isinstance(one, GpuArray) or value < 0 or value in self.plan.fed_on_gpu:
            return x
        device = self._gpu.device
        return [copy_to_host(row, device) for row in x] if isinstance(x, list) else copy_to_host(x, device)

    def _run_parts(self, data: list[Any], rows: int, seed: int, pool: RowThreads) -> list[Any] | None:
        parts = min(pool.num_threads, rows // _LEAST_ROWS) if self._rows_are_independent else 1
        if parts < 2:
            return self.engine.run_columns(self.values, data, rows, seed)
        ends = [rows * (i + 1) // parts for i in range(parts)]

        def run(first: int, end: int) -> list[Any] | None:
            part = [_part_of(x, first, end) for x in data]
            return self.engine.run_part(self.values, part, end - first, seed, first)

        done = pool.map(run, [0, *ends[:-1]], ends)
        if any(part is None for part in done):
            return None
        return [_joined(parts) for parts in zip(*done, strict=True)]

    def _run_inline(self, data: list[Any], rows: int, seed: int) -> list[Any]:
        keys = np.arange(rows, dtype=np.uint64)
        where = Rows(keys, np.zeros(rows, np.int64), (), 0, 0)
        feeds = {(k, 0): _fed_rows(x, rows) for k, x in enumerate(data)}
        try:
            return self.run.run_inline(where, feeds, seed=seed)
        finally:
            self.run.python.end_isolated()


class RowThreads:
    """Threads that divide the rows of eager calls. They start with the first call that needs them.

    Args:
        num_threads: number of threads, at least 1.

    Attributes:
        num_threads: the same.
    """

    def __init__(self, num_threads: int) -> None:
        self.num_threads = num_threads
        self._lock = threading.Lock()
        self._executor: ThreadPoolExecutor | None = None
        self._pid = 0

    def map(self, function: Callable[[int, int], Any], firsts: Sequence[int], ends: Sequence[int]) -> list[Any]:
        """Call a function with each pair of row numbers on the threads, and return its results in order."""
        with self._lock:
            if self._executor is None or self._pid != os.getpid():  # threads do not survive a fork
                self._executor = ThreadPoolExecutor(self.num_threads, "stoker-rows")
                self._pid = os.getpid()
            executor = self._executor
        return list(executor.map(function, firsts, ends))


def _joined(parts: Sequence[Any]) -> Any:
    """Return the rows of several parts: one array if all have one shape, else a list."""
    if all(isinstance(part, np.ndarray) for part in parts) and len({part.shape[1:] for part in parts}) == 1:
        return np.concatenate(parts)
    return [row for part in parts for row in part]


def first_row(output: Any) -> Any:
    """Return the first row of an output of a call: a view."""
    return output[0] if isinstance(output, (list, np.ndarray)) else output.row(0)


def _part_of(x: Any, first: int, end: int) -> Any:
    """Return some rows of a column of data, or the value that serves all rows."""
    if isinstance(x, _native.ArrayRows):
        return x.part(first, end)
    return x[first:end] if isinstance(x, list) else x


def _fed_rows(x: Any, rows: int) -> Any:
    """Return a column of data as one array per row. Rows share the memory of a value that serves all of them."""
    if isinstance(x, _native.ArrayRows):
        return x.arrays()
    if isinstance(x, list):
        return x
    if isinstance(x, float):
        return np.full(rows, x)
    if isinstance(x, tuple):
        return np.broadcast_to(np.array(x, np.float64), (rows, len(x)))
    return np.broadcast_to(x, (rows, *x.shape)) if isinstance(x, np.ndarray) else [x] * rows


def _find(name: str) -> type[Operator]:
    return _FedInput if name == "_input" else find(name)


def _fed_node(builder: GraphBuilder, spec: tuple[Any, ...], *, on_gpu: bool = False) -> Any:
    dtype, rank, layout = spec[:3]
    shape: tuple[Any, ...] = (None,) * rank if len(spec) == 3 else spec[3]
    device = {"device": "gpu"} if on_gpu else {}
    return builder.add_operator(_FedInput, {"spec": Spec(DType(dtype), shape, layout), **device})
