# SPDX-License-Identifier: Apache-2.0
"""Ray adapter: a pipeline whose batches are computed by actors on the machines of a cluster.

A batch is a pure function of the pipeline and its position. So a batch that is lost with a machine is computed again by
another one, with the same bits, and the order of batches is the order in which the consumer asks for them.
"""

from __future__ import annotations

import ctypes
import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError, ResourceError, StateError, UnsupportedError
from ..contract.failure import BadSample
from ..contract.text import brief
from ..contract.whole_number import as_whole_number
from ..executor.delivery import Delivered, Mark
from ..executor.execution import Allocate, Execution
from ..executor.report import Report
from ..executor.schedule import AtEnd, Rows
from ..frontends.pipeline import Pipeline
from ..graph.plan import PlannedOutput
from ._exchange import empty
from ._missing import missing
from ._ray_cut import Division

try:
    import ray
except ModuleNotFoundError as error:
    raise missing("ray", "ray", error) from error

_PER_ACTOR = 2  # batches that are asked of an actor: one is computed while another one waits or travels

_STEP_S = 1.0  # between two looks whether the pipeline was closed
_ENDLESS = (
    "`Remote`: expected requests for batches of one epoch, got one for epochs without end. Iterate over a loader, such "
    "as `stoker.numpy.Loader(remote)`"
)


@dataclass(frozen=True)
class ActorReport:
    """State of one actor.

    Attributes:
        actor: its number.
        node: Ray's id of the machine that it runs on.
        batches: number of batches that it has computed since it was started, or started again after a failure.
        report: the run report of its pipeline.
    """

    actor: int
    node: str
    batches: int
    report: Report

    def __str__(self) -> str:
        return f"actor {self.actor} on node {self.node[:8]}: {self.batches} batches\n{self.report}"


@dataclass(frozen=True)
class RemoteReport:
    """State of a Remote and of all its actors.

    Attributes:
        cut: the part of the pipeline that the actors compute, and the reason.
        consumer: the run report of the batches that this process receives, with the progress of the epoch.
        actors: the state of every actor.
    """

    cut: str
    consumer: Report
    actors: tuple[ActorReport, ...]

    @property
    def batches(self) -> int:
        """Return the number of batches that the actors have computed since they were started."""
        return sum(actor.batches for actor in self.actors)

    def __str__(self) -> str:
        nodes = len({actor.node for actor in self.actors})
        head = f"{len(self.actors)} actors on {nodes} nodes: {self.batches} batches; {self.cut}"
        return "\n".join([head, str(self.consumer), *map(str, self.actors)])


@dataclass(frozen=True)
class _Order:
    """Order for one batch: the token of its position, and the rule for the end of the epoch."""

    token: Mapping[str, Any]
    at_end: AtEnd


@dataclass(slots=True)
class _Result:
    """Batch of an actor: arrays per output, or the error of the batch.

    ``bad`` is the last epoch of the batch's rows that were replaced or skipped, and the number of its rows of that
    epoch which were. ``errors`` are samples that the actor lists for the first time.
    """

    keys: Any
    outputs: list[Any]
    skipped: tuple[int, ...]
    bad: tuple[int, int]
    errors: list[BadSample]
    error: Exception | None = None


class _Worker:
    """Actor: the pipeline in another process, which computes every A-th batch.

    Args:
        graph: the graph as JSON.
        allow: names of the Python functions of the graph that may be called.
        settings: arguments of the pipeline.
        stride: number of actors.
    """

    def __init__(self, graph: str, allow: Sequence[str], settings: Mapping[str, Any], stride: int) -> None:
        self._pipe = Pipeline.deserialize(graph, allow=allow, **settings).build()
        self._execution = self._pipe.execution
        self._execution.schedule.stride = stride
        self._stride = stride
        self._follows: tuple[int, int, str] | None = None  # position of the batch that is prefetched
        self._batches = 0

    def batch(self, order: _Order) -> _Result:
        """Return the batch at a position. Its successor in this actor's sequence is prefetched."""
        epoch, consumed = order.token["epoch"], order.token["consumed"]
        known = len(self._execution.errors)
        rows, outputs = np.empty(0, np.uint64), list[Any]()
        skipped: tuple[int, ...] = ()
        error: Exception | None = None
        before = self._execution.mark.bad
        try:
            if self._follows != (epoch, consumed, order.at_end):
                self._pipe.set_state(order.token)
            self._follows = None
            before = self._execution.mark.bad
            delivered = self._pipe.next(order.at_end)
            if delivered is not None:
                rows, outputs, skipped = delivered.rows.keys, delivered.outputs, delivered.skipped
                step = self._stride * self._pipe.batch_size * self._execution.schedule.number_of_shards
                self._follows = (epoch, consumed + step, order.at_end)
        except Exception as failure:  # noqa: BLE001 - the consumer raises it
            error = failure.with_traceback(None)
        self._batches += 1
        epoch, count = self._execution.mark.bad
        bad = epoch, count - (before[1] if before[0] == epoch else 0)
        return _Result(rows, outputs, skipped, bad, self._execution.errors[known:], error)

    def report(self) -> tuple[str, int, Report]:
        return ray.get_runtime_context().get_node_id(), self._batches, self._pipe.report()


@dataclass(slots=True)
class _Asked:
    """Batch that an actor computes."""

    result: Any  # Ray's reference
    rows: Rows
    mark: Mark


class Remote(Pipeline):
    """Pipeline whose batches are computed by actors of Ray, on any machines of its cluster.

    It takes the place of the pipeline in any loader: ``stoker.torch.Loader(Remote(pipe, actors=8))``. Batches and their
    order have the same bits as those of the pipeline: batch k of an epoch comes from actor k modulo `actors`. If a
    machine fails, Ray starts its actors on others, which compute the lost batches again, with the same bits. States are
    those of the pipeline, and can be exchanged with it, also with another number of actors or shards.

    The pipeline's `error_limit` holds for each actor by itself: an actor counts the bad rows of its own batches against
    the rows of the whole epoch. So up to `actors` times as many rows may be replaced or skipped before an error.

    The pipeline's own shards are this process's: every rank of a training makes a Remote of its own. This process opens
    the data sets too, to know their size; all machines must see the same files.

    Args:
        pipe: the pipeline, on the CPU. Its graph is sent to the actors (see :meth:`~stoker.Pipeline.serialize`).
        actors: number of actors.
        resources: Ray's resources of one actor. "CPU" (default 1) is also the number of the pipeline's threads there;
            other names are those of the cluster.
        max_bytes: maximum of bytes of batches that are asked for and not delivered, which is what they may take in
            Ray's object store. At least one batch is asked for, at most two of each actor.
        timeout_s: longest wait for a batch, in seconds.
        allow: Python functions and classes of the graph that the actors may import and call, by full name or by module.
        cut: "fewest_bytes": the actors compute the part of the pipeline after which the fewest bytes pass, such as
            decoding, crop and resize to uint8, and this process the rest, such as the normalisation to float32. Nodes
            of that part that are on a GPU run on the actors' CPUs, with the same bits, and the rest on the GPU of this
            process. "outputs": the actors compute everything. :attr:`cut` has the decision and its reason.

    Raises:
        ArgumentError: an argument is invalid, or `max_bytes` is less than one batch.
        UnsupportedError: the pipeline has nodes on a GPU and cannot be cut, or it has stateful operators, or sources of
            the caller's data.
        StateError: a reader has an order that cannot be entered anywhere.
        ResourceError: at a batch: no actor has computed it in time.
    """

    def __init__(
        self, pipe: Pipeline, *, actors: int = 2, resources: Mapping[str, float] | None = None,
        max_bytes: int = 1 << 30, timeout_s: float = 600.0, allow: Sequence[str] = (), cut: str = "fewest_bytes",
    ) -> None:  # fmt: skip
        if not isinstance(pipe, Pipeline):
            raise ArgumentError(f"`Remote`: expected a Pipeline, got {brief(pipe)}")
        self._count = _positive("actors", actors)
        self._max_bytes = _positive("max_bytes", max_bytes)
        if isinstance(timeout_s, bool) or not isinstance(timeout_s, (int, float)) or not 0 < timeout_s < 1e9:
            raise ArgumentError(f"`Remote`: expected seconds as `timeout_s`, got {brief(timeout_s)}")
        self._timeout_s = float(timeout_s)
        if cut not in ("fewest_bytes", "outputs"):
            raise ArgumentError(f'`Remote`: expected "fewest_bytes" or "outputs" as `cut`, got {brief(cut)}')
        wanted = _checked_resources(resources)
        execution = pipe.build().execution
        _require_remote(execution)
        self._division = Division(execution, whole=cut == "outputs")
        vars(self).update(vars(pipe))  # the same graph, settings and open data sets
        self._source = pipe  # which would close them
        self._batch_bytes = _batch_bytes(self._division.outputs, execution.config.batch_size)
        if self._batch_bytes is not None and self._batch_bytes > self._max_bytes:
            raise ArgumentError(
                f"`Remote`: expected `max_bytes` of at least one batch ({self._batch_bytes} bytes), got {max_bytes}"
            )
        self._asked: deque[_Asked] = deque()
        self._asked_with: AtEnd = "stop"
        self._bad: list[BadSample] = []
        self._listed: set[tuple[str, int | None, str]] = set()
        self._actors = self._start_actors(execution, wanted, allow)

    def _start_actors(self, execution: Execution, wanted: dict[str, float], allow: Sequence[str]) -> list[Any]:
        cpus = wanted.pop("CPU", 1.0)
        policy = execution.config.on_error
        settings = {
            "batch_size": self.batch_size, "num_threads": max(1, math.ceil(cpus)), "device_id": None, "seed": self.seed,
            "prefetch_queue_depth": 1, "on_error": policy.action, "error_limit": policy.limit,
            "uneven_ranks": policy.uneven_ranks, "epoch_reader": execution.config.epoch_reader,
            "max_batch_bytes": execution.config.max_batch_bytes, "without_gpu": "cpu",
        }  # fmt: skip
        actor = ray.remote(_Worker).options(
            num_cpus=cpus, resources=wanted, max_restarts=-1, max_task_retries=-1, scheduling_strategy="SPREAD"
        )
        graph = self._division.graph.to_json()
        return [actor.remote(graph, tuple(allow), settings, self._count) for _ in range(self._count)]

    # ---- batches ----

    def next(self, at_end: AtEnd = "stop", allocate: Allocate | None = None) -> Delivered | None:
        """Return the next batch of the epoch, in memory that ``allocate`` supplies or in new memory; None at the end.

        Raises:
            StateError: ``at_end`` is "go_on", or the pipeline is closed.
            ResourceError: no actor has computed the batch in time.
            StokerError: the batch's own error; the next call returns the next batch.
        """
        if at_end == "go_on":
            raise StateError(_ENDLESS)
        if at_end != self._asked_with:
            self._drop()
            self._asked_with = at_end
        self._compare_launch()
        asked_s = time.perf_counter()
        self._ask()
        if not self._asked:
            return None
        results = [a.result for a in self._asked]
        finished = len(ray.wait(results, num_returns=len(results), timeout=0)[0])
        result = self._await(results[0])
        item = self._asked.popleft()
        self._list(result.errors)
        kept = np.delete(item.rows.keys, list(result.skipped)) if result.skipped else item.rows.keys
        self.execution.delivered_elsewhere(item.mark, len(result.keys), result.bad, asked_s, len(results), finished)
        if result.error is not None:
            raise result.error
        if not np.array_equal(kept, result.keys):
            raise StateError("`Remote`: expected the rows of this process's order from an actor, got others")
        if self._division.has_rest:
            outputs = self._division.compute_rest(result.outputs, item.rows, allocate)
        else:
            outputs = self._received(result, allocate)
        skipped = result.skipped
        del result, results  # Ray releases the batch
        self._ask()
        rows = replace(item.rows, keys=kept, epochs=item.rows.epochs[: len(kept)])
        return Delivered(outputs, rows, item.mark, len(item.rows), skipped)

    def _ask(self) -> None:
        """Ask for further batches, as many as `max_bytes` allows."""
        execution = self.execution
        while len(self._asked) < self._ahead:
            number = execution.schedule.position // self.batch_size
            expected = execution.expect_rows(self._asked_with)
            if expected is None:
                return
            token, rows, mark = expected
            worker = self._actors[number % len(self._actors)]
            order = _Order(self._division.token(token), self._asked_with)
            self._asked.append(_Asked(worker.batch.remote(order), rows, mark))

    @property
    def _ahead(self) -> int:
        """Return the number of batches to ask for. The first one reveals the size of batches of unknown shapes."""
        if self._batch_bytes is None:
            return 1
        return min(_PER_ACTOR * len(self._actors), max(1, self._max_bytes // max(1, self._batch_bytes)))

    def _await(self, result: Any) -> _Result:
        until = time.monotonic() + self._timeout_s
        while True:
            try:
                found: _Result = ray.get(result, timeout=min(_STEP_S, max(0.0, until - time.monotonic())))
                return found
            except ray.exceptions.GetTimeoutError:
                if self.execution.closed:
                    raise StateError("the pipeline was closed while it waited for a batch") from None
                if time.monotonic() >= until:
                    alive = sum(bool(node["Alive"]) for node in ray.nodes())
                    raise ResourceError(
                        f"`Remote`: expected a batch within {self._timeout_s:g} s, got none from {len(self._actors)} "
                        f"actors; {alive} nodes of Ray's cluster are alive. `ray status` shows whether they have the "
                        "resources that the actors request"
                    ) from None

    def _received(self, result: _Result, allocate: Allocate | None) -> list[Any]:
        """Return the outputs copied out of Ray's object store, which releases them then."""
        plan, rows = self.execution.plan, len(result.keys)
        assert plan is not None
        outputs: list[Any] = []
        size = 0
        for number, (output, planned) in enumerate(zip(result.outputs, plan.outputs, strict=True)):
            if isinstance(output, list):
                outputs.append([_copied(row) for row in output])
                size += sum(row.nbytes for row in output)
                continue
            supply = allocate(number, planned, rows) if allocate is not None and planned.shape is not None else None
            size += output.nbytes
            if supply is None:
                outputs.append(_copied(output))
            else:
                ctypes.memmove(supply.address, output.ctypes.data, output.nbytes)
                outputs.append(supply.owner)
        if any(planned.shape is None for planned in plan.outputs):
            self._batch_bytes = max(self._batch_bytes or 0, size)
        return outputs

    def require_take(self) -> None:
        """Raise UnsupportedError: the actors compute ahead, and this process has no order of its own to take ahead."""
        raise UnsupportedError(
            "`Loader`: expected a pipeline of this process for `background=True`, got a Remote. Leave `background` out"
        )

    @property
    def may_take_ahead(self) -> bool:
        """Return False: the actors compute ahead."""
        return False

    def run(self, **inputs: Any) -> tuple[Any, ...]:
        """Raise StateError: a Remote delivers epochs, to a loader."""
        raise StateError(_ENDLESS)

    outputs = run

    # ---- position ----

    def _drop(self) -> None:
        """Forget the batches that are asked for."""
        for item in self._asked:
            ray.cancel(item.result)
        self._asked.clear()
        self.execution.rewind()

    def start_epoch(self, epoch: int) -> None:
        """Begin an epoch. Batches that are asked for are dropped.

        Args:
            epoch: number of the epoch, from 0. It decides order and augmentation.
        """
        self._drop()
        super().start_epoch(epoch)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a state of this object or of the pipeline.

        Args:
            state: the result of :meth:`get_state`, or the same after a round trip through JSON.

        Raises:
            StateError: the state belongs to something else; the text names the difference.
        """
        self._drop()
        super().set_state(state)

    # ---- facts ----

    @property
    def errors(self) -> list[BadSample]:
        """Return the bad samples that the actors have found, each once, in the order of their batches."""
        return list(self._bad)

    def _list(self, errors: Sequence[BadSample]) -> None:
        """Add bad samples that no other actor, or the same one before a failure, has found."""
        for one in errors:
            key = one.path, one.index, one.action
            if one.index is None or key not in self._listed:
                self._listed.add(key)
                self._bad.append(one)

    @property
    def cut(self) -> str:
        """Return the part of the pipeline that the actors compute, and the reason, as text."""
        return self._division.text

    def report_all(self) -> RemoteReport:
        """Return the state of this object and of all actors: the progress of the epoch, the cut, and a report of each.

        Raises:
            ResourceError: an actor has not answered in time.
        """
        return RemoteReport(self.cut, self.report(), tuple(self.actor_reports()))

    def actor_reports(self) -> list[ActorReport]:
        """Return the state of every actor. :meth:`report` is about the batches that this process receives.

        Raises:
            ResourceError: an actor has not answered in time.
        """
        asked = [actor.report.remote() for actor in self._actors]
        try:
            answers = ray.get(asked, timeout=self._timeout_s)
        except ray.exceptions.GetTimeoutError:
            raise ResourceError(
                f"`Remote`: expected reports of {len(asked)} actors within {self._timeout_s:g} s, got fewer"
            ) from None
        return [ActorReport(number, *answer) for number, answer in enumerate(answers)]

    def close(self) -> None:
        """End the actors, and close the pipeline; idempotent."""
        super().close()
        self._division.close()
        actors, self._actors = self._actors, []
        if ray.is_initialized():
            for actor in actors:
                ray.kill(actor)
        self._asked.clear()


def _positive(name: str, value: Any) -> int:
    count = as_whole_number(value)
    if count is None or not 0 < count < 1 << 62:
        raise ArgumentError(f"`Remote`: expected a positive whole number as `{name}`, got {brief(value)}")
    return count


def _checked_resources(resources: Any) -> dict[str, float]:
    wanted = {} if resources is None else resources
    if not isinstance(wanted, Mapping) or not all(
        isinstance(k, str) and isinstance(v, (int, float)) and not isinstance(v, bool) and 0 <= v < math.inf
        for k, v in wanted.items()
    ):
        raise ArgumentError(f"`Remote`: expected names and numbers as `resources`, got {brief(resources)}")
    if "GPU" in wanted:
        raise UnsupportedError(
            "`Remote`: expected actors on CPUs, got `resources` with a GPU. Compute the steps on a GPU in the process "
            "of the trainer"
        )
    return dict(wanted)


def _require_remote(execution: Execution) -> None:
    """Raise an error if other processes could not compute a batch from its position alone."""
    graph = execution.graph
    stateful = graph.stateful()
    if stateful is not None:
        raise UnsupportedError(
            f"`Remote`: expected batches that their position decides, got the stateful operator "
            f"`{stateful.operator.name}`, whose state depends on all batches before"
        )
    if not execution.sources or execution.has_feeders:
        raise UnsupportedError(
            "`Remote`: expected readers, whose data any process can read, got a source of the caller's data. Read in "
            "the actors, as with `fn.readers.dataset`, or with a reader of your own"
        )
    if execution.plan is None:
        raise UnsupportedError(
            "`Remote`: expected outputs whose types are known before the first batch, got a Python function without "
            "declared types. Declare them, as with `output_dtypes` and `output_ndims`"
        )
    execution.require_resumable()


def _batch_bytes(outputs: Sequence[PlannedOutput], rows: int) -> int | None:
    """Return the bytes of a whole batch's outputs; None if only the rows reveal their shapes."""
    size = 0
    for planned in outputs:
        if planned.shape is None:
            return None
        size += math.prod(planned.shape) * planned.dtype.numpy.itemsize
    return size * rows


def _copied(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy in aligned memory, which is not Ray's."""
    copy = empty(array.shape, array.dtype)
    copy[...] = array
    return copy
