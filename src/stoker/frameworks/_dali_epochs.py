# SPDX-License-Identifier: Apache-2.0
"""Framework-independent part of DALI's iterators: epochs, last batches, several pipelines."""

from __future__ import annotations

import enum
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..contract.batch import Batch
from ..contract.errors import ArgumentError, DataError
from ..contract.text import brief
from ..contract.warning import warn
from ..executor.schedule import AtEnd
from ..executor.state import require_entries
from ..frontends.dali.errors import raises_as_dali
from ..frontends.pipeline import Pipeline


class LastBatchPolicy(enum.Enum):
    """Policy for an epoch's last batch if it has too few rows.

    Attributes:
        FILL: complete the batch with rows of the next epoch.
        DROP: leave the batch out.
        PARTIAL: deliver the rows that are left.
    """

    FILL = 0
    DROP = 1
    PARTIAL = 2


class DaliEpochs(ABC):
    """Iterator over one epoch of one or several pipelines at a time. Each item is a list with a dictionary per
    pipeline.

    Subclasses convert batches to the framework's tensors (:meth:`_convert`).

    Args:
        pipelines: one or several pipelines of one batch size.
        output_map: a name for every output.
        size: rows of an epoch over all pipelines, for pipelines without a reader; -1: until a source ends.
        reader_name: the reader whose epochs count; excludes ``size`` and ``last_batch_padded``.
        auto_reset: True or "yes": be ready for the next epoch after StopIteration, without :meth:`reset`.
        fill_last_batch: deprecated: True is FILL, False is PARTIAL.
        dynamic_shape: accepted; shapes may always change.
        last_batch_padded: with ``size`` and a reader: the rows that fill an epoch's last batch are padding (True), or
            belong to the next epoch, which is shorter by their number (False, with FILL).
        last_batch_policy: FILL, DROP or PARTIAL. With PARTIAL and ``reader_name``, all shards together deliver every
            sample of an epoch exactly once: shards may differ by one row, and the last lists of batches may lack a
            pipeline whose shard has ended. FILL and DROP deliver equal numbers of rows from all shards.
        prepare_first_batch: accepted; the first batch is computed when it is requested.
    """

    @raises_as_dali
    def __init__(
        self, pipelines: Any, output_map: Sequence[str], size: int = -1, reader_name: str | None = None,
        auto_reset: Any = False, fill_last_batch: bool | None = None, dynamic_shape: bool = False,
        last_batch_padded: bool = False, last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ) -> None:  # fmt: skip
        self._name = type(self).__name__
        if fill_last_batch is not None:
            warn("`fill_last_batch` is deprecated; use `last_batch_policy`", DeprecationWarning, stacklevel=3)
            last_batch_policy = LastBatchPolicy.FILL if fill_last_batch else LastBatchPolicy.PARTIAL
        self._pipes: list[Pipeline] = list(pipelines) if isinstance(pipelines, (list, tuple)) else [pipelines]
        self._policy = self._checked_policy(last_batch_policy)
        self._auto_reset = self._checked_reset(auto_reset)
        self._check_pipes()
        self.output_map = self._checked_map(output_map)
        if reader_name is not None and (size >= 0 or last_batch_padded):
            raise ArgumentError(
                f"`{self._name}`: expected neither `size` nor `last_batch_padded` with `reader_name`, which says both"
            )
        if reader_name is None and size == -1 and self._policy is not LastBatchPolicy.FILL and self._has_reader():
            raise ArgumentError(
                f"`{self._name}`: expected `reader_name` or `size` for {self._policy}, got neither: the end of the "
                "epoch is not known"
            )
        self._size = size
        self._padded = last_batch_padded
        self._reader_name = reader_name
        if reader_name is not None:
            for pipe in self._pipes:
                pipe.reader_meta(reader_name)  # raises an error with the existing names
        self._at_end: AtEnd = "go_on"
        if reader_name is not None:
            at_ends: dict[LastBatchPolicy, AtEnd] = {
                LastBatchPolicy.FILL: "fill", LastBatchPolicy.PARTIAL: "exact", LastBatchPolicy.DROP: "stop",
            }  # fmt: skip
            self._at_end = at_ends[self._policy]
        self._counter = self._began = 0  # rows of the epoch so far, and where it began
        self._over = False

    # ---- checks ----

    def _check_pipes(self) -> None:
        for pipe in self._pipes:
            if not isinstance(pipe, Pipeline):
                raise ArgumentError(f"`{self._name}`: expected pipelines, got {type(pipe).__name__}")
            pipe.build()
        sizes = {p.batch_size for p in self._pipes}
        if len(sizes) != 1:
            raise ArgumentError(f"`{self._name}`: expected pipelines of one batch size, got {sorted(sizes)}")
        self.batch_size = sizes.pop()

    def _checked_policy(self, policy: Any) -> LastBatchPolicy:
        if isinstance(policy, enum.Enum) and policy.name in LastBatchPolicy.__members__:
            return LastBatchPolicy[policy.name]
        raise ArgumentError(f"`{self._name}`: expected a LastBatchPolicy as `last_batch_policy`, got {brief(policy)}")

    def _checked_reset(self, value: Any) -> bool:
        known = {None: False, False: False, "no": False, True: True, "yes": True}
        if value not in known:
            raise ArgumentError(
                f'`{self._name}`: expected "yes" or "no" (or a bool) as `auto_reset`, got {brief(value)}'
            )
        return known[value]

    def _checked_map(self, names: Sequence[str]) -> list[str]:
        names = list(names)
        count = self._pipes[0].num_outputs
        if len(names) != count or len(set(names)) != count:
            raise ArgumentError(
                f"`{self._name}`: expected one name of its own for each of {count} outputs in `output_map`, got {names}"
            )
        return names

    def _has_reader(self) -> bool:
        return any(p.execution.sources for p in self._pipes)

    # ---- epochs ----

    def __iter__(self) -> Iterator[Any]:
        return self

    def __len__(self) -> int:
        """Return the number of batches in an epoch.

        Raises:
            TypeError: only the source knows the number.
        """
        dropping = self._policy is LastBatchPolicy.DROP
        if self._reader_name is not None:
            rows = max(self._shard_sizes())
            return rows // self.batch_size if dropping else math.ceil(rows / self.batch_size)
        if self._size < 0:
            raise TypeError("the length of an epoch is not known; give `size` or `reader_name`")
        step = self.batch_size * len(self._pipes)
        return self._size // step if dropping else math.ceil(self._size / step)

    @property
    def size(self) -> int:
        """Return the rows of an epoch over all pipelines; -1 if only the source knows."""
        if self._reader_name is None:
            return self._size
        return sum(self._shard_sizes())

    def _shard_sizes(self) -> list[int]:
        """Return the rows of the current epoch for each pipeline."""
        if self._at_end == "exact":
            return [p.execution.schedule.own_epoch_size(p.execution.mark.epoch) or 0 for p in self._pipes]
        metas = [p.reader_meta(self._reader_name) for p in self._pipes]
        return [int(m["epoch_size_padded"]) // int(m["number_of_shards"]) for m in metas]

    @raises_as_dali
    def __next__(self) -> Any:
        """Return the next list of batches.

        Raises:
            StopIteration: the epoch is over.
            DataError: a row failed, or the pipelines' epochs differ in length.
        """
        if self._over:
            raise StopIteration
        if 0 <= self._size <= self._counter:
            self._stop()
        step = self.batch_size * len(self._pipes)
        batches = [self._next_of(pipe) for pipe in self._pipes]
        remaining = [b for b in batches if b is not None]
        if not remaining or (len(remaining) < len(batches) and self._at_end != "exact"):
            self._require_one_end(batches)
            self._stop()
        self._counter += step
        if self._policy is LastBatchPolicy.DROP and 0 <= self._size < self._counter:
            self._stop()
        if self._size >= 0 and self._policy is LastBatchPolicy.PARTIAL and self._counter > self._size:
            remaining = self._shortened(remaining, step - (self._counter - self._size))
        return [dict(zip(self.output_map, self._convert(b), strict=True)) for b in remaining]

    next = __next__

    def _next_of(self, pipe: Pipeline) -> tuple[Batch, ...] | None:
        delivered = pipe.next(self._at_end)
        if delivered is None:
            return None
        if self._policy is LastBatchPolicy.DROP and delivered.asked < self.batch_size and self._size < 0:
            return None
        return pipe.execution.batches(delivered)[: len(self.output_map)]

    def _require_one_end(self, batches: list[Any]) -> None:
        if not all(b is None for b in batches):
            ended = [i for i, b in enumerate(batches) if b is None]
            raise DataError(
                f"`{self._name}`: expected the epochs of all pipelines to be equally long, got one that ends earlier: "
                f"pipeline {ended[0]} of {len(batches)}"
            )

    def _shortened(self, batches: list[Any], rows: int) -> list[Any]:
        """Return the first ``rows`` rows over all pipelines. Pipelines without rows are left out."""
        kept = []
        for batch in batches:
            take = min(rows, self.batch_size)
            if take > 0:
                kept.append(tuple(_head(b, take) for b in batch))
            rows -= take
        return kept

    def _stop(self) -> None:
        self._over = True
        if self._auto_reset:
            self.reset()
        raise StopIteration

    def reset(self) -> None:
        """Begin the next epoch. Before the end of an epoch the call is ignored with a warning, as in DALI."""
        if not self._over and self._counter > self._began:
            warn(f"`{self._name}.reset`: the epoch is not over; the call is ignored", stacklevel=2)
            return
        seamless = self._size >= 0 and self._has_reader()
        if self._over and not seamless:
            for pipe in self._pipes:
                Pipeline.reset(pipe)  # in `stoker.dali` the method has no effect before a StopIteration of `run`
        # Rows of the next epoch that filled the last batch count towards it, which shortens it as in DALI.
        carried = self._over and seamless and self._policy is LastBatchPolicy.FILL and not self._padded
        self._began = self._counter = self._counter % self._size if carried and self._size else 0
        self._over = False

    def checkpoints(self) -> list[Any]:
        """Return the state of every pipeline, for its argument ``checkpoint``."""
        states = ((p, p.get_state()) for p in self._pipes)
        return [json.dumps(state).encode() if hasattr(p, "checkpoint") else state for p, state in states]

    def state_dict(self) -> dict[str, Any]:
        """Return the position of all pipelines after the last batch (JSON-able)."""
        return {"pipelines": [p.get_state() for p in self._pipes], "rows": self._counter}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from :meth:`state_dict`.

        Args:
            state: the result of :meth:`state_dict`.

        Raises:
            ArgumentError: the state is of another number of pipelines.
            StateError: the state is invalid, or of other pipelines.
        """
        require_entries(state, pipelines=(list, tuple), rows=int)
        states = state["pipelines"]
        if len(states) != len(self._pipes):
            raise ArgumentError(f"`{self._name}`: expected states of {len(self._pipes)} pipelines, got {len(states)}")
        for pipe, own in zip(self._pipes, states, strict=True):
            pipe.set_state(own)
        self._over, self._counter = False, int(state["rows"])

    @abstractmethod
    def _convert(self, outputs: tuple[Batch, ...]) -> list[Any]:
        """Return the framework's tensors, one per output."""


def _head(batch: Batch, rows: int) -> Batch:
    """Return those of the first ``count`` rows of a batch that were not left out."""
    there = rows - sum(number < rows for number in batch.skipped)
    return batch if len(batch) == there else batch.head(there)
