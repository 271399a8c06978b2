# SPDX-License-Identifier: Apache-2.0
"""Descriptions of a pipeline in one line, and in HTML for a notebook. They never build it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..contract.config import PipelineConfig
from ..contract.text import brief
from ..graph.node import Graph, Node

if TYPE_CHECKING:
    from ..executor.execution import Execution

_MOST_DRAWN = 300  # nodes
_LONGEST = 60  # characters of a path


def describe(
    kind: str, name: str, nodes: Sequence[Node], config: PipelineConfig, execution: Execution | None, *, defined: bool
) -> str:
    """Describe a pipeline: name, number of operators, batch size, threads, device, state, and sources of data.

    Args:
        kind: name of the pipeline's class.
        name: name of the function that defined it; "" if there is none.
        defined: the pipeline has its outputs.
    """
    title = f"{kind} {name!r}" if name else kind
    operators = f"{len(nodes)} operator{'' if len(nodes) == 1 else 's'}"
    threads = execution.threads if execution is not None else config.threads
    parts = [
        f"{operators}, batch size {config.batch_size}, {threads} thread{'' if threads == 1 else 's'}",
        _device(nodes, config, execution),
        _state(execution, defined=defined),
    ]
    sources = [_source(node) for node in nodes if node.operator.is_source]
    if sources:
        parts.append("reads " + ", ".join(sources))
    return f"<{title}: {'; '.join(parts)}>"


def as_html(line: str, graph: Graph | None) -> str:
    """Return a description with the picture of the graph, if there is one that can be looked at."""
    from ..display.html import paragraph

    if graph is None:
        return paragraph(line)
    if len(graph.nodes) > _MOST_DRAWN:
        return paragraph(line) + paragraph(f"{len(graph.nodes)} nodes: `print(pipe.show())` lists them")
    from ..graph.picture import draw_graph

    return f"<div>{paragraph(line)}{draw_graph(graph)}</div>"


def _device(nodes: Sequence[Node], config: PipelineConfig, execution: Execution | None) -> str:
    if execution is not None:
        return "CPU" if execution.gpu is None else f"GPU {execution.gpu.device.number}"
    if config.device_id is None or all(node.device in (None, "cpu") for node in nodes):
        return "CPU"
    return "GPU of this process" if config.device_id == "auto" else f"GPU {config.device_id}"


def _state(execution: Execution | None, *, defined: bool) -> str:
    if not defined:
        return "no outputs yet"
    if execution is None:
        return "not built"
    if execution.closed:
        return "closed"
    return f"built, epoch {execution.mark.epoch}, {execution.mark.position} rows delivered"


def _source(node: Node) -> str:
    """Return a source by its operator, with its folder or file if it has one, else its name."""
    known = node.operator.all_arguments()
    places = (v for k, v in node.args.items() if k != "name" and isinstance(v, str) and known[k].default is None)
    place = next(places, None) or node.name
    return f"{node.operator.name}({brief(place, _LONGEST)})" if place else node.operator.name
