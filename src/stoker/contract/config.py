# SPDX-License-Identifier: Apache-2.0
"""Configuration of a pipeline: checked, frozen options that every part of a run reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .failure import Action

StartMethod = Literal["fork", "spawn"]
START_METHODS: tuple[StartMethod, ...] = ("fork", "spawn")


@dataclass(frozen=True)
class OnError:
    """Policy for rows that fail at nodes without a policy of their own.

    Attributes:
        action: raise, replace or skip.
        limit: share of an epoch's rows that may be replaced or skipped; None: 1 % for replace, 10 % for skip.
        uneven_ranks: whether skip may give the pipelines of several shards unequal numbers of rows.
    """

    action: Action = "raise"
    limit: float | None = None
    uneven_ranks: bool = False


@dataclass(frozen=True)
class WorkerConfig:
    """Worker processes for sources.

    Attributes:
        count: number of processes.
        start_method: "fork" or "spawn".
        pickler: serializer for sources that are sent to spawned processes: an object with ``dumps`` and ``loads``, or a
            tuple of the object and keyword arguments for each; None: pickle.
    """

    count: int = 1
    start_method: StartMethod = "fork"
    pickler: Any = None


@dataclass(frozen=True, kw_only=True)
class PipelineConfig:
    """Checked options of a pipeline (:class:`stoker.Pipeline` explains them to users).

    Attributes:
        batch_size: maximum number of rows in a batch.
        threads: worker threads.
        threads_with_gpu: worker threads if the pipeline uses a GPU; None: as many as without.
        seed: seed of all random numbers.
        depth: number of prefetched batches. 0: every batch is computed on the caller's thread when it is requested.
        gpu_depth: additional prefetched batches with a GPU, and the maximum number of batches on the GPU. None: no
            additional batches, and no maximum.
        passes: names of the passes; None: all.
        device_id: the GPU's number; "auto": this process's GPU; None: no GPU.
        without_gpu: policy for nodes placed on a GPU on a machine without one: raise an "error", or run them on the
            "cpu".
        gpu_memory_limit: maximum of GPU memory in bytes; None: no limit.
        max_batch_bytes: maximum of memory of a batch in bytes; 0: no limit; None: chosen from the available memory.
        codec_options: options of codecs, by the codec's name.
        gpu_load: share of the rows that the GPU decodes; None: chosen by measured speed.
        gpu_utilization: maximum share of the GPU's time that decoding may take.
        on_error: policy for rows that fail.
        shards: "launcher": the launcher sets the shards of readers that have none of their own.
        epoch_reader: name of the reader whose epochs count; None: the first one, and all have epochs of one size.
        uneven_readers: policy for readers with epochs of different sizes if none is named: raise an "error" or "warn".
        workers: worker processes for sources.
        checkpoint: state to resume from.
    """

    batch_size: int
    threads: int
    threads_with_gpu: int | None = None
    seed: int
    depth: int = 2
    gpu_depth: int | None = None
    passes: frozenset[str] | None = None
    device_id: int | Literal["auto"] | None = None
    without_gpu: Literal["error", "cpu"] = "error"
    gpu_memory_limit: int | None = None
    max_batch_bytes: int | None = None
    codec_options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    gpu_load: float | None = None
    gpu_utilization: float = 1.0
    on_error: OnError = field(default_factory=OnError)
    shards: Literal["launcher"] | None = None
    epoch_reader: str | None = None
    uneven_readers: Literal["error", "warn"] = "error"
    workers: WorkerConfig = field(default_factory=WorkerConfig)
    checkpoint: Mapping[str, Any] | None = None

    def count_threads(self, *, has_gpu: bool) -> int:
        """Return the number of worker threads."""
        return self.threads if self.threads_with_gpu is None or not has_gpu else self.threads_with_gpu

    def count_prefetched(self, *, has_gpu: bool) -> int:
        """Return the number of prefetched batches."""
        return self.depth + (self.count_on_gpu(has_gpu=has_gpu) or 0)

    def count_on_gpu(self, *, has_gpu: bool) -> int | None:
        """Return how many of the prefetched batches may be on the GPU or hold memory there; None: all."""
        return self.gpu_depth if has_gpu and self.depth else None
