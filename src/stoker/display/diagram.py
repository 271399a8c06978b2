# SPDX-License-Identifier: Apache-2.0
"""Diagrams of acyclic graphs as SVG: layers from top to bottom, few crossings, no other file or program needed."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from .html import escape

Kind = Literal["source", "cpu", "gpu", "interpreted", "output"]

_CHARACTER = 7.3  # width in pixels of the monospaced font below, and a little more for other fonts
_LINE, _PADDING = 15, 9
_GAP_X, _GAP_Y, _MARGIN = 22, 40, 12
_SWEEPS = 8
_BOLD, _PLAIN = 'fill="#1b1f24" font-weight="bold"', 'fill="#57606a"'
_LABEL = 'text-anchor="middle" font-size="11" fill="#57606a" stroke="#fff" stroke-width="3" paint-order="stroke"'
_COLOURS: dict[Kind, tuple[str, str]] = {
    "source": ("#fff3e6", "#d9730d"),
    "cpu": ("#f4f6f9", "#5b6b82"),
    "gpu": ("#e9f7e9", "#3a8a3a"),
    "interpreted": ("#fffbe0", "#a08a00"),
    "output": ("#ffffff", "#9aa4b2"),
}


@dataclass(frozen=True)
class Box:
    """Box of a diagram.

    Attributes:
        title: first line.
        lines: smaller lines below it.
        kind: decides the colours.
        tooltip: text that a browser shows under the pointer; "" for none.
    """

    title: str
    lines: tuple[str, ...] = ()
    kind: Kind = "cpu"
    tooltip: str = ""


@dataclass(frozen=True)
class Arrow:
    """Arrow between two boxes, by their numbers. ``start`` comes before ``end`` in the list of boxes."""

    start: int
    end: int
    dash: str = ""  # SVG's stroke-dasharray; "" for a solid line
    label: str = ""


def draw_diagram(boxes: Sequence[Box], arrows: Sequence[Arrow]) -> str:
    """Return a diagram as an SVG element.

    Raises:
        ValueError: an arrow does not lead from a box to a later one.
    """
    if any(not 0 <= a.start < a.end < len(boxes) for a in arrows):
        raise ValueError("expected arrows from a box to a later one")
    layout = _Layout(boxes, arrows)
    shapes = [_draw_arrow(a, layout.route(i)) for i, a in enumerate(arrows)]
    shapes += [_draw_box(box, layout.left(i), layout.top(i), layout.widths[i]) for i, box in enumerate(boxes)]
    width, height = layout.size
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" style="max-width:100%;height:auto" font-family="monospace" font-size="12">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(shapes)}</svg>'
    )


class _Layout:
    """Positions of boxes. An arrow across several layers gets a point in each of them, which keeps its place."""

    def __init__(self, boxes: Sequence[Box], arrows: Sequence[Arrow]) -> None:
        self.widths = [_box_width(box) for box in boxes]
        self._heights = [_box_height(box) for box in boxes]
        self._layer = _assign_layers(len(boxes), arrows)
        self._paths: list[list[int]] = []  # of every arrow: its boxes and points, from layer to layer
        for arrow in arrows:
            points = range(self._layer[arrow.start] + 1, self._layer[arrow.end])
            path = [arrow.start]
            for layer in points:
                path.append(len(self.widths))
                self.widths.append(4.0)
                self._heights.append(0.0)
                self._layer.append(layer)
            self._paths.append([*path, arrow.end])
        self._rows: list[list[int]] = [[] for _ in range(max(self._layer, default=0) + 1)]
        for item, layer in enumerate(self._layer):
            self._rows[layer].append(item)
        self._centres = [0.0] * len(self.widths)
        self._arrange()
        self._y = self._stack()

    def left(self, item: int) -> float:
        return self._centres[item] - self.widths[item] / 2

    def top(self, item: int) -> float:
        return self._y[self._layer[item]]

    @property
    def size(self) -> tuple[float, float]:
        right = max((self.left(i) + w for i, w in enumerate(self.widths)), default=0.0)
        bottom = max((self.top(i) + h for i, h in enumerate(self._heights)), default=0.0)
        return right + _MARGIN, bottom + _MARGIN

    def route(self, arrow: int) -> list[tuple[float, float]]:
        """Return the points of an arrow, from the lower edge of one box to the upper edge of the other."""
        first, *points, last = self._paths[arrow]
        route = [(self._centres[first], self.top(first) + self._heights[first])]
        for point in points:
            row = self._rows[self._layer[point]]
            below = self.top(point) + max(self._heights[item] for item in row)
            route += [(self._centres[point], self.top(point)), (self._centres[point], below)]
        return [*route, (self._centres[last], self.top(last))]

    def _arrange(self) -> None:
        """Order every layer by the places of its neighbours, to and fro, and then place the boxes."""
        above: list[list[int]] = [[] for _ in self.widths]
        below: list[list[int]] = [[] for _ in self.widths]
        for path in self._paths:
            for upper, lower in pairwise(path):
                below[upper].append(lower)
                above[lower].append(upper)
        for row in self._rows:
            self._place(row, above)
        for sweep in range(_SWEEPS):
            downwards = sweep % 2 == 0
            neighbours = above if downwards else below
            for row in self._rows if downwards else reversed(self._rows):
                wanted = {item: self._wanted(item, neighbours) for item in row}
                row.sort(key=wanted.__getitem__)  # stable
                self._place(row, neighbours)
        least = min((self.left(i) for i in range(len(self.widths))), default=0.0)
        self._centres = [x - least + _MARGIN for x in self._centres]

    def _wanted(self, item: int, neighbours: list[list[int]]) -> float:
        near = neighbours[item]
        return sum(self._centres[n] for n in near) / len(near) if near else self._centres[item]

    def _place(self, row: list[int], neighbours: list[list[int]]) -> None:
        """Move the boxes of a layer as near to their neighbours as order and gaps allow (isotonic regression)."""
        offsets, edge = [], 0.0
        for item in row:
            offsets.append(edge + self.widths[item] / 2)
            edge += self.widths[item] + _GAP_X
        pools: list[tuple[float, int]] = []  # sum and number of members that share a shift
        for item, offset in zip(row, offsets, strict=True):
            pool = self._wanted(item, neighbours) - offset, 1
            while pools and pools[-1][0] / pools[-1][1] > pool[0] / pool[1]:
                total, count = pools.pop()
                pool = pool[0] + total, pool[1] + count
            pools.append(pool)
        shifts = [total / count for total, count in pools for _ in range(count)]
        for item, offset, shift in zip(row, offsets, shifts, strict=True):
            self._centres[item] = offset + shift

    def _stack(self) -> list[float]:
        tops, y = [], float(_MARGIN)
        for row in self._rows:
            tops.append(y)
            y += max((self._heights[item] for item in row), default=0.0) + _GAP_Y
        return tops


def _assign_layers(count: int, arrows: Iterable[Arrow]) -> list[int]:
    """Return a layer per box, below all boxes with arrows to it. Boxes without such boxes are just above their use."""
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for arrow in arrows:
        above[arrow.end].append(arrow.start)
        below[arrow.start].append(arrow.end)
    layers = [0] * count
    for box in range(count):
        layers[box] = max((layers[a] + 1 for a in above[box]), default=0)
    for box in range(count):
        if not above[box] and below[box]:
            layers[box] = min(layers[b] for b in below[box]) - 1
    return layers


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _box_width(box: Box) -> float:
    return max(_columns(text) for text in (box.title, *box.lines)) * _CHARACTER + 2 * _PADDING


def _box_height(box: Box) -> float:
    return _LINE * (1 + len(box.lines)) + 2 * _PADDING - 4


def _draw_box(box: Box, x: float, y: float, width: float) -> str:
    fill, stroke = _COLOURS[box.kind]
    lines = "".join(
        f'<text x="{x + width / 2:.1f}" y="{y + _PADDING + 9 + _LINE * i:.1f}" text-anchor="middle" '
        f"{_PLAIN if i else _BOLD}>{escape(text)}</text>"
        for i, text in enumerate((box.title, *box.lines))
    )
    tooltip = f"<title>{escape(box.tooltip)}</title>" if box.tooltip else ""
    frame = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_box_height(box):.1f}" rx="5" fill="{fill}" '
        f'stroke="{stroke}"/>'
    )
    return f"<g>{tooltip}{frame}{lines}</g>"


def _draw_arrow(arrow: Arrow, route: list[tuple[float, float]]) -> str:
    (x, y), *rest = route
    curve = f"M{x:.1f} {y:.1f}"
    for to_x, to_y in rest:
        half = (to_y - y) / 2
        curve += f"C{x:.1f} {y + half:.1f} {to_x:.1f} {to_y - half:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    dash = f' stroke-dasharray="{arrow.dash}"' if arrow.dash else ""
    line = f'<path d="{curve}" fill="none" stroke="#8b949e"{dash}/>'
    head = f'<polygon points="{x:.1f},{y:.1f} {x - 4:.1f},{y - 7:.1f} {x + 4:.1f},{y - 7:.1f}" fill="#8b949e"/>'
    if not arrow.label:
        return line + head
    from_x, from_y = route[-2]
    at = f'x="{(from_x + x) / 2:.1f}" y="{(from_y + y) / 2 + 4:.1f}"'
    return f"{line}{head}<text {at} {_LABEL}>{escape(arrow.label)}</text>"
