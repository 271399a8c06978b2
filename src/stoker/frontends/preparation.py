# SPDX-License-Identifier: Apache-2.0
"""From a graph, and what its user chose, to an execution: the GPU is opened if the graph needs one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..contract.errors import ArgumentError, DeviceError, did_you_mean, message
from ..contract.launch import Launch
from ..graph.node import Graph
from .launched import AUTO, divided, gpu_of_process
from .registry import find
from .source_line import warn_user

if TYPE_CHECKING:  # what plans and runs is imported when the first pipeline is built: `import stoker` stays light
    from ..executor.execution import Execution
    from ..executor.run import OpenGpu


@dataclass(frozen=True)
class Chosen:
    """A pipeline's arguments, each checked (:class:`.pipeline.Pipeline` says what they mean).

    Attributes:
        threads_with_gpu: worker threads where something runs on a GPU.
        depth: batches that are made ahead; 0: every one on the caller's thread.
        gpu_depth: how many more where there is a GPU, of which so many may be there; None: no more, and all may.
        device_id: the GPU's number; "auto": this process's; None: none.
        shards: "launcher": of readers that say none.
        gpu_load: the part of the rows that the GPU decodes; None: by measured speed.
        on_error: what becomes of a row that fails, the share of rows that may, whether shards may differ in rows.
        workers: processes for sources, how they start, and what sends sources to them.
        passes: names of the passes over the plan; None: all.
        checkpoint: a state to go on from.
    """

    batch_size: int
    threads: int
    threads_with_gpu: int
    seed: int
    depth: int
    device_id: int | str | None
    shards: str | None
    without_gpu: str
    gpu_depth: int | None
    memory_limit: int | None
    jpeg_index: int
    jpeg_index_path: str | os.PathLike[str] | None
    gpu_load: float | None
    gpu_utilization: float
    on_error: tuple[Any, float | None, bool]
    workers: tuple[int, str, Any]
    passes: frozenset[str] | None
    checkpoint: Mapping[str, Any] | None


def prepare(graph: Graph, chosen: Chosen) -> Execution:
    """Check the settings that the graph decides, open the GPU and the graph's sources, and plan. Starts no thread."""
    from ..executor.execution import Execution
    from ..executor.failures import OnError
    from ..executor.settings import Settings
    from ..executor.workers import WorkerSettings
    from ..graph.plan import PASSES

    passes = frozenset(PASSES if chosen.passes is None else chosen.passes)
    for name in sorted(passes.difference(PASSES)):
        hint = did_you_mean(name, PASSES) or f"there are {', '.join(PASSES)}"
        raise ArgumentError(f"`Pipeline`: expected names of passes as `passes`, got {name!r}; {hint}")
    workers = WorkerSettings(*chosen.workers)
    workers.check()
    on_error = OnError(*chosen.on_error)
    graph = divided(graph, chosen.shards)
    gpu = _open_gpu(graph, chosen)
    gpu_depth = chosen.gpu_depth if gpu and chosen.depth else None
    run = Settings(
        chosen.batch_size, chosen.threads_with_gpu if gpu else chosen.threads, chosen.seed,
        chosen.depth + (gpu_depth or 0), passes, gpu, chosen.gpu_load, chosen.gpu_utilization, on_error, workers,
        gpu_depth, _launched(chosen, gpu),
    )  # fmt: skip
    execution = Execution(graph, find, run)
    if chosen.checkpoint is not None:
        execution.set_state(chosen.checkpoint)
    return execution


def _launched(chosen: Chosen, gpu: OpenGpu | Literal[False] | None) -> frozenset[str]:
    """What the launcher decided, for the report."""
    on_own = bool(gpu) and chosen.device_id == AUTO and Launch.from_environment() != Launch()
    return frozenset({"shard"} if chosen.shards else ()) | frozenset({"gpu"} if on_own else ())


def _open_gpu(graph: Graph, chosen: Chosen) -> OpenGpu | Literal[False] | None:
    """The GPU if the graph needs one; False: do on the CPU what is placed on it."""
    from ..graph.passes.placement import place

    placed = place(graph)
    first = next((node for node in graph.nodes if placed[node.id]), None)
    if first is None:
        return None
    if chosen.device_id is None:
        return False if chosen.without_gpu == "cpu" else None
    from ..device.gpu import Gpu

    number = chosen.device_id if isinstance(chosen.device_id, int) else gpu_of_process()
    try:
        gpu = Gpu.open(number, chosen.memory_limit)
    except DeviceError as error:
        if chosen.without_gpu != "cpu":
            way_out = 'With `without_gpu="cpu"` it runs on the CPU, with the same results'
            raise DeviceError(message(first.operator.name, str(error), source=first.source, hint=way_out)) from error
        warn_user(f"no GPU is used: {error}. The results on the CPU are the same")
        return False
    if chosen.jpeg_index:
        gpu.keep_jpeg_index(chosen.jpeg_index, chosen.jpeg_index_path)
    return gpu
