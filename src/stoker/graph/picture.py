# SPDX-License-Identifier: Apache-2.0
"""Picture of a graph: operators from top to bottom, as SVG."""

from __future__ import annotations

from ..contract.errors import StokerError
from ..contract.text import printable
from ..display.diagram import Arrow, Box, Kind, draw_diagram
from .node import Graph, Node
from .passes.placement import place
from .show import constants

_MOST_LINES = 4
_LONGEST = 30


def draw_graph(graph: Graph) -> str:
    """Return the graph as an SVG element.

    Solid arrows are inputs, dashed ones arguments per row, dotted ones conditions. The colour shows sources, the device
    and Python code. The tooltip is the line that made the node.
    """
    try:
        placed = place(graph)
    except StokerError:  # a graph that cannot be built is shown all the same
        placed = {}
    boxes = [_box(node, on_gpu=placed.get(node.id, False)) for node in graph.nodes]
    arrows = [arrow for node in graph.nodes for arrow in _arrows(node)]
    for number, edge in enumerate(graph.outputs):
        name = graph.names[number] if number < len(graph.names) else None
        title = f"output {number}" + (f" {printable(name)!r}" if name else "")
        arrows.append(Arrow(edge.node, len(boxes)))
        boxes.append(Box(title, kind="output"))
    return draw_diagram(boxes, arrows)


def _box(node: Node, *, on_gpu: bool) -> Box:
    operator = node.operator
    kind: Kind = "cpu"
    if operator.is_source:
        kind = "source"
    elif on_gpu:
        kind = "gpu"
    elif operator.is_python():
        kind = "interpreted"
    lines = [_cut(f"{key}={value}") for key, value in constants(node).items()]
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], f"and {len(lines) - _MOST_LINES + 1} more"]
    tooltip = f"{node.id} = {operator.name}" + (f", made at {node.source_line}" if node.source_line else "")
    return Box(_cut(operator.name.lstrip("_")), tuple(lines), kind, printable(tooltip))


def _arrows(node: Node) -> list[Arrow]:
    return [
        *(Arrow(e.node, node.id) for e in node.inputs),
        *(Arrow(e.node, node.id, "5 3", name) for name, e in node.edges),
        *(Arrow(e.node, node.id, "1 3", "if" if wanted else "if not") for e, wanted in node.guards),
    ]


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
