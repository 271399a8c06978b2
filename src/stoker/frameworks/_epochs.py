# SPDX-License-Identifier: Apache-2.0
"""Framework-independent part of the loaders: epochs, the last batch, positions for checkpoints."""

from __future__ import annotations

import contextlib
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..contract.errors import ArgumentError, StateError
from ..contract.text import brief
from ..contract.types import DType
from ..contract.whole_number import as_whole_number
from ..executor.delivery import Delivered
from ..executor.flight import SuppliedMemory
from ..executor.schedule import AtEnd
from ..executor.state import require_entries
from ..frontends.pipeline import Pipeline
from ..graph.plan import Plan, PlannedOutput
from ._background import Loop, Producer

_INTEGERS = frozenset({DType.UINT8, DType.UINT16, DType.UINT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64})
_POLICIES: dict[str, AtEnd] = {"even": "stop", "partial": "exact", "drop": "stop", "fill": "fill"}


class EpochLoader(ABC):
    """Iterator over a pipeline's batches, one epoch per ``for`` loop.

    Subclasses make a framework's arrays of each batch (:meth:`_arrays`), and may supply memory for outputs
    (:meth:`_allocate`).

    Args:
        pipeline: the pipeline; it is built if needed.
        output_map: names of the outputs. Batches are then dicts, otherwise tuples (one array if there is one output).
        last_batch_policy: rows of the epoch's last batch: "even", "partial", "drop" or "fill".
        size: batches of an epoch, for pipelines without a reader.
        background: take batches, and make arrays of them, on a thread of the loop: True always, False never, None once
            the consumer's steps are long (see :class:`~stoker.frameworks._background.Loop`).

    Raises:
        ArgumentError: an argument is invalid.
        UnsupportedError: `background` is True, and the pipeline has a source of the caller's data.
    """

    def __init__(
        self, pipeline: Pipeline, output_map: Sequence[str] | None, last_batch_policy: str, size: int | None,
        background: bool | None = None,
    ) -> None:  # fmt: skip
        name = self._name = type(self).__name__
        policy = brief(getattr(last_batch_policy, "name", last_batch_policy)).strip("'").lower()
        if policy not in _POLICIES:
            raise ArgumentError(
                f"`{name}`: expected last_batch_policy in {tuple(_POLICIES)}, got {brief(last_batch_policy)}"
            )
        if not isinstance(pipeline, Pipeline):
            raise ArgumentError(f"`{name}`: expected a Pipeline, got {type(pipeline).__name__}")
        count = as_whole_number(size)
        if size is not None and (count is None or not 0 <= count < 1 << 63):
            raise ArgumentError(f"`{name}`: expected a number of batches as `size`, or None, got {brief(size)}")
        if background is not None and not isinstance(background, bool):
            raise ArgumentError(f"`{name}`: expected `background` True, False or None, got {brief(background)}")
        names = list(output_map) if isinstance(output_map, (list, tuple)) else []
        if output_map is not None and (not names or not all(isinstance(n, str) for n in names)):
            raise ArgumentError(f"`{name}`: expected a list of names as `output_map`, got {brief(output_map)}")
        self.pipeline = pipeline.build()
        if output_map is not None and len(names) != pipeline.num_outputs:
            raise ArgumentError(
                f"`{name}`: expected one name per output ({pipeline.num_outputs}) in `output_map`, got {brief(names)}"
            )
        if len(set(names)) < len(names):
            raise ArgumentError(f"`{name}`: expected different names in `output_map`, got {brief(names)}")
        if background:
            pipeline.require_take()
        self._background = background
        self._names = tuple(names) if output_map is not None else None
        self._policy = policy
        self._size = count
        self._at_end = _POLICIES[policy]
        self._lock = threading.RLock()  # held while a thread takes a batch, or changes the position
        self._done = 0  # batches of the running epoch
        self._fresh = True  # the next loop continues the current epoch
        self._loop = 0  # number of the running loop
        self._producer: Producer | None = None  # of the last loop

    def __len__(self) -> int:
        """Return the number of batches in an epoch; with "partial", in the current one.

        Raises:
            TypeError: only the source knows the number.
        """
        if self._size is not None:
            return self._size
        execution = self.pipeline.execution
        schedule = execution.schedule
        rows = schedule.own_epoch_size(execution.mark.epoch) if self._at_end == "exact" else schedule.epoch_size
        if rows is None:
            raise TypeError("this pipeline has no reader, so its length is not known; give `size=`")
        whole, rest = divmod(rows, self.pipeline.batch_size)
        return whole + (1 if rest and self._policy != "drop" else 0)

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator over the rest of the current epoch after a restored state, else over the next whole epoch.

        The loop begins with its first batch. After a :class:`~stoker.DataError` it continues with the next batch. A
        loop that was left early is not continued: the next loop starts the next epoch.

        Raises:
            StateError: during the loop, another loop has begun or the epoch was set.
        """
        return Loop(self, self._background)

    def _begin(self) -> int:
        self._end_thread()
        if not self._fresh:
            self.pipeline.start_epoch(self.pipeline.execution.mark.epoch + 1)
            self._done = 0
        self._fresh = False
        self._loop += 1
        return self._loop

    def _end_thread(self) -> None:
        """End the thread of the last loop with a background, after the batch that it works on."""
        if self._producer is not None:
            self._producer.end()
            self._producer = None

    def _require_current(self, loop: int) -> None:
        if loop != self._loop:
            raise StateError("another loop over this Loader has begun; a Loader serves one loop at a time")

    def _is_left_out(self, delivered: Delivered) -> bool:
        """Return whether the policy "drop" leaves a batch out."""
        return self._policy == "drop" and delivered.asked < self.pipeline.batch_size

    def _next(self, loop: int) -> Any:
        self._require_current(loop)
        if self._size is None or self._done < self._size:
            delivered = self.pipeline.next(self._at_end, self._allocate)
            if delivered is not None and not self._is_left_out(delivered):
                self._done += 1
                return self._named(self._arrays(delivered, self._plan))
        self.set_epoch(self.pipeline.execution.mark.epoch + 1)
        raise StopIteration

    @property
    def _plan(self) -> Plan:
        """Return the plan, which exists once a batch has been delivered."""
        plan = self.pipeline.execution.plan
        assert plan is not None
        return plan

    def _named(self, arrays: list[Any]) -> Any:
        if self._names is not None:
            return dict(zip(self._names, arrays, strict=True))
        return arrays[0] if len(arrays) == 1 else tuple(arrays)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next loop, which decides its order and augmentations. A running loop is over.

        Args:
            epoch: number of the epoch, from 0.
        """
        with self._lock:
            self.pipeline.start_epoch(epoch)
            self._fresh, self._done = True, 0
            self._loop += 1

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last delivered batch: two entries, a text and a number, that any checkpoint
        can hold.

        The pipeline's state is one text, because torch.distributed.checkpoint reads only entries that exist in the
        restoring object, and the content of a state varies with its position. The module writes an entry with the same
        name on several ranks only once. A state that serves one shard (contiguous shards, stateful operators) therefore
        has the shard's number in its name. A state that serves any number of shards is the same on all ranks.

        Raises:
            StateError: a source cannot resume from a state, or an operator's own state is not made of JSON's types.
        """
        state = self.pipeline.get_state()
        try:
            return {self._entry: json.dumps(state), "batches": self._done}
        except TypeError as error:
            raise StateError(f"expected operators' states made of JSON's types: {error}") from error

    @property
    def _entry(self) -> str:
        """Return the name of the pipeline's state, which distinguishes ranks if needed."""
        shard = self.pipeline.execution.own_shard
        return "pipeline" if shard is None else f"pipeline, shard {shard[0]} of {shard[1]}"

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from :meth:`state_dict`. The next loop runs the rest of that epoch.

        Args:
            state: the result of :meth:`state_dict`.

        Raises:
            StateError: the state is invalid, or of another pipeline, data set or seed; the text names the difference.
        """
        require_entries(state, **{self._entry: str, "batches": int})
        try:
            saved = json.loads(state[self._entry])
        except (ValueError, RecursionError) as error:
            raise StateError(f"expected the entry {self._entry!r} as `state_dict` gave it: {error}") from error
        if isinstance(state["batches"], bool) or not 0 <= state["batches"] < 1 << 62:
            raise StateError(f"expected the entry 'batches' as `state_dict` gave it, got {brief(state['batches'])}")
        with self._lock:
            self.pipeline.set_state(saved)
            self._done = int(state["batches"])
            self._fresh = True
            self._loop += 1

    def close(self) -> None:
        """Stop the pipeline."""
        self.pipeline.close()  # first: a loop that still delivers must find it closed, not wait for a thread that ended
        self._end_thread()

    def __repr__(self) -> str:
        try:
            length = f"{len(self)} batches an epoch"
        except TypeError:
            length = "as many batches as its source has"
        return f"<{self._name}: {length}, last batch {self._policy!r}, of {self.pipeline!r}>"

    def _repr_html_(self) -> str:
        """Return the description with a picture of the pipeline's graph, for notebooks."""
        from ..display.html import paragraph

        return paragraph(repr(self)) + self.pipeline._repr_html_()

    def _allocate(self, output: int, planned: PlannedOutput, rows: int) -> SuppliedMemory | None:
        """Return memory for an output whose rows have one shape, or None for memory of the engine."""
        return None

    def _thread_context(self) -> contextlib.AbstractContextManager[Any]:
        """Return the context, such as a framework's stream, in which the thread of a loop shall work."""
        return contextlib.nullcontext()

    @abstractmethod
    def _arrays(self, delivered: Delivered, plan: Plan) -> list[Any]:
        """Return the framework's array of each output, or its list of arrays if the rows' shapes differ."""


def is_label(array: Any, planned: PlannedOutput) -> bool:
    """Return whether an output's array has one integer per row, which the loaders deliver as labels ``(N,)``."""
    return is_integer(planned) and tuple(array.shape[1:]) in ((), (1,))


def is_integer(planned: PlannedOutput) -> bool:
    """Return whether an output has an integer type that int64 holds."""
    return planned.dtype in _INTEGERS
