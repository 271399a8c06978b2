# SPDX-License-Identifier: Apache-2.0
"""Preparation of an execution from a graph and its configuration. Opens the GPU if the graph needs one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._import_lock import IMPORT_LOCK
from ..contract.config import PipelineConfig
from ..contract.errors import ArgumentError, DeviceError, did_you_mean, message
from ..contract.launch import Launch
from ..contract.text import brief
from ..graph.node import Graph
from .launcher import AUTO, find_process_gpu, shard_readers
from .reader_epochs import require_even_readers
from .registry import find
from .source_line import warn_at, warn_user

# Planner and run loop are imported when the first pipeline is built, so that `import stoker` stays light.
if TYPE_CHECKING:
    from ..executor.execution import Execution
    from ..executor.run import OpenGpu


def prepare(graph: Graph, config: PipelineConfig) -> Execution:
    """Check options that depend on the graph, open the GPU and the graph's sources, and plan. Starts no thread."""
    with IMPORT_LOCK:
        from ..executor.execution import Execution
        from ..graph.analysis import PASSES

    for name in sorted((config.passes or frozenset()).difference(PASSES)):
        hint = did_you_mean(name, PASSES) or f"there are {', '.join(PASSES)}"
        raise ArgumentError(f"`Pipeline`: expected names of passes as `passes`, got {brief(name)}; {hint}")
    graph = shard_readers(graph, config.shards)
    gpu = _open_gpu(graph, config)
    execution = Execution(graph, find, config, gpu, _launched(config, gpu))
    require_even_readers(execution)
    _warn_of_sources(execution)
    if config.checkpoint is not None:
        execution.set_state(config.checkpoint)
    return execution


def _warn_of_sources(execution: Execution) -> None:
    """Issue the data sets' remarks, each at the line that made the reader."""
    for number, source in execution.sources.items():
        node = execution.graph.nodes[number]
        for note in source.notes:
            warn_at(node.source_line, f"`{node.operator.name}`: {note}")


def _launched(config: PipelineConfig, gpu: OpenGpu | None) -> frozenset[str]:
    """Return the settings that the launcher decided, for the report."""
    on_own = gpu is not None and config.device_id == AUTO and Launch.from_environment() != Launch()
    return frozenset({"shard"} if config.shards else ()) | frozenset({"gpu"} if on_own else ())


def _open_gpu(graph: Graph, config: PipelineConfig) -> OpenGpu | None:
    """Open the GPU if the graph needs one. Return None otherwise, or if the CPU is the fallback."""
    with IMPORT_LOCK:
        from ..graph.passes.placement import place

    placed = place(graph)
    first = next((node for node in graph.nodes if placed[node.id]), None)
    if first is None or config.device_id is None:
        return None
    with IMPORT_LOCK:
        from ..device.gpu import Gpu

    number = config.device_id if isinstance(config.device_id, int) else find_process_gpu()
    try:
        return Gpu.open(number, config.gpu_memory_limit)
    except DeviceError as error:
        if config.without_gpu != "cpu":
            way_out = 'With `without_gpu="cpu"` it runs on the CPU, with the same results'
            raise DeviceError(
                message(first.operator.name, str(error), source=first.source_line, hint=way_out)
            ) from error
        warn_user(f"no GPU is used: {error}. The results on the CPU are the same")
        return None
