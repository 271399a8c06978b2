# SPDX-License-Identifier: Apache-2.0
"""Recorded images become numbers: recipes, which native code makes, one for all views of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...native import _native
from .recipe import (
    BLEND,
    CROP,
    DECODE,
    FLOATS,
    MAP,
    MIX,
    PATCH,
    PIXELS,
    RAW,
    STORE,
    STORE_PIXELS,
    TORCH_GRID,
    Node,
    Patch,
    others_of,
)
from .segment import Bytes
from .tables import VALUES, Table


class Row(NamedTuple):
    """An image of a batch: what it is, its table (None: the 8 bits themselves), and where it is to be stored."""

    node: Node
    table: Table | None
    output: int
    first_byte: int
    interleaved: bool = False  # stored as bytes, (height, width, channels), rather than as planes through the table
    patches: tuple[Patch, ...] = ()


class Packed(NamedTuple):
    """Recipes as native code takes them, and which rows each one makes."""

    order: Any
    rows: list[list[Row]]
    kept: tuple[Any, ...]  # whose memory the order uses


def pack(rows: Iterable[Row], outputs: Sequence[Bytes]) -> Packed:
    """One recipe per file, whatever the number of its views: it is decoded once.

    Args:
        rows: all images that are to be made together.
        outputs: the memory that they are stored in.
    """
    files: dict[int, list[Row]] = {}
    for row in rows:
        if row.node.op == RAW:
            data = row.node.source.data
            outputs[row.output][row.first_byte : row.first_byte + data.size] = data
            continue
        files.setdefault(id(row.node.source), []).append(row)
    tables = _Tables()
    numbers: list[float] = []
    starts = [0]
    for views in files.values():
        _Recipe(numbers, tables).add(views)
        starts.append(len(numbers))
    groups = list(files.values())
    sources = [source.told or source.data for source in (views[0].node.source for views in groups)]
    order = _native.recipe.order(
        np.array(numbers, np.float64), np.array(starts, np.int64), sources, tables.memory, list(outputs)
    )
    return Packed(order, groups, (sources, tables.memory, outputs))


class Alone(NamedTuple):
    """A recipe for itself, as the operator `_recipe` takes it."""

    numbers: npt.NDArray[np.float64]
    tables: Bytes
    window: tuple[int, int, int, int]  # y0, x0, y1, x1 of the decoded image that it takes


_WITH_OTHERS = frozenset((MIX, BLEND, MAP, TORCH_GRID))  # steps that take tables, or more than one image
_NO_TABLES = np.zeros(16, np.uint8)
_ALIGNMENT = 16  # of tables


def pack_alone(views: list[Row]) -> Alone:
    """The recipe of one file's views. ``output`` and ``first_byte`` are those of its own outputs."""
    alone = _pack_chain(views[0]) if len(views) == 1 else None
    if alone is not None:
        return alone
    tables = _Tables()
    steps: list[float] = []
    _Recipe(steps, tables).add(views)
    numbers: list[float] = [len(tables.memory)]
    first = 0
    for data, item in tables.memory:
        numbers += (first, item, data.size // (VALUES * item))
        first += -(-data.size // _ALIGNMENT) * _ALIGNMENT
    x0, y0, x1, y1 = (int(n) for n in steps[3:7]) if steps[0] == DECODE else (0, 0, 0, 0)
    return Alone(np.array(numbers + steps, np.float64), _joined(tables.memory, first), (y0, x0, y1, x1))


def _pack_chain(row: Row) -> Alone | None:
    """The same of a single view of a file, each of whose steps takes the one before; None if it is more than that."""
    chain, node = [], row.node
    while node.parent is not None:
        if node.op in _WITH_OTHERS:
            return None
        chain.append(node)
        node = node.parent
    if node.op != DECODE or row.patches or row.interleaved:
        return None
    cut = bool(chain) and chain[-1].op == CROP  # of the decoded image nothing else is wanted
    x0, y0, x1, y1 = window = chain[-1].params if cut else node.params[1:5]
    memory, numbers, table = _NO_TABLES, [0], -1
    if row.table is not None:
        memory, item = row.table.memory()
        numbers, table = [1, 0, item, memory.size // (VALUES * item)], 0
    numbers += (DECODE, -1, node.params[0], *window)
    for count, step in enumerate(reversed(chain)):
        params = (0, 0, x1 - x0, y1 - y0) if cut and not count else step.params
        numbers += (step.op, count, *params)
    numbers += (STORE, len(chain), row.output, row.first_byte, table)
    return Alone(np.array(numbers, np.float64), memory, (y0, x0, y1, x1))


def _joined(tables: list[tuple[Bytes, int]], size: int) -> Bytes:
    if len(tables) < 2:
        return tables[0][0] if tables else _NO_TABLES
    memory = np.zeros(size, np.uint8)
    first = 0
    for data, _ in tables:
        memory[first : first + data.size] = data
        first += -(-data.size // _ALIGNMENT) * _ALIGNMENT
    return memory


def _roots(node: Node) -> Iterator[tuple[Node, Node | None]]:
    """Where an image begins, with the first step that is done with it; more than one pair for a mixture."""
    after: Node | None = None
    while node.parent is not None:
        for other in others_of(node):
            yield from _roots(other)
        node, after = node.parent, node
    yield node, after


class _Tables:
    """The different tables of an order."""

    def __init__(self) -> None:
        self.memory: list[tuple[Bytes, int]] = []
        self._known: dict[int, int] = {}
        self._kept: list[Any] = []  # an object's id is its own only while it lives

    def index(self, table: Any) -> int:
        if table is None:
            return -1
        at = self._known.get(id(table))
        if at is None:
            at = self._known[id(table)] = len(self.memory)
            self.memory.append((table, 1) if isinstance(table, np.ndarray) else table.memory())
            self._kept.append(table)
        return at


class _Recipe:
    """Writes the steps of one file."""

    def __init__(self, numbers: list[float], tables: _Tables) -> None:
        self._numbers = numbers
        self._tables = tables
        self._made: dict[int, int] = {}  # node → number of its image
        self._count = 0
        self._windows: dict[int, tuple[int, int, int, int]] = {}

    def add(self, views: list[Row]) -> None:
        self._find_windows(views)
        for row in views:
            image = self._image(row.node)
            if row.interleaved:
                self._step(STORE_PIXELS, image, (row.output, row.first_byte))
            else:
                self._store(image, row)

    def _store(self, image: int, row: Row) -> None:
        table = self._tables.index(row.table)
        stored = self._step(STORE, image, (row.output, row.first_byte, table))
        item = self._tables.memory[table][1] if table >= 0 else 4 if row.node.floats else 1
        width, height = row.node.size
        for patch in row.patches:
            place = (row.output, row.first_byte, item, height, width, *patch.window, int(patch.single))
            self._step(PATCH, stored, (*place, self._tables.index(patch.values)))

    def _find_windows(self, views: list[Row]) -> None:
        """Of a decoded image of which only crops are wanted, nothing else is decoded."""
        windows = self._windows
        for node, after in (found for row in views for found in _roots(row.node)):
            wanted = after.params if after is not None and after.op == CROP else node.params[1:5]
            have = windows.get(id(node), wanted)
            windows[id(node)] = (
                min(have[0], wanted[0]),
                min(have[1], wanted[1]),
                max(have[2], wanted[2]),
                max(have[3], wanted[3]),
            )

    def _image(self, node: Node) -> int:
        made = self._made.get(id(node))
        if made is not None:
            return made
        chain = [node]
        while chain[-1].parent is not None and id(chain[-1].parent) not in self._made:
            chain.append(chain[-1].parent)
        for step in reversed(chain):
            self._made[id(step)] = self._add_node(step)
        return self._made[id(node)]

    def _add_node(self, node: Node) -> int:
        parent = node.parent
        if parent is None:
            window = self._windows[id(node)]
            if node.op == DECODE:
                return self._step(DECODE, -1, (node.params[0], *window))
            width, height = node.size
            return self._step(PIXELS, -1, (height, width, node.channels, node.params[5], *window))
        params = node.params
        if node.op in (MAP, FLOATS):
            params = (self._tables.index(params[0]),)
        elif node.op == MIX:
            tables, others = params
            pairs = [(self._image(n), self._tables.index(t)) for t, n in zip(tables[1:], others, strict=True)]
            params = (1 + 2 * len(pairs), self._tables.index(tables[0]), *(n for pair in pairs for n in pair))
        elif node.op == BLEND:
            params = (self._image(params[0]), params[1])
        elif node.op == TORCH_GRID:
            params = (*params[:-1], self._tables.index(params[-1]))
        elif node.op == CROP and parent.parent is None:
            x, y = self._windows[id(parent)][:2]
            params = (params[0] - x, params[1] - y, params[2] - x, params[3] - y)
        return self._step(node.op, self._made[id(parent)], params)

    def _step(self, op: int, image: int, params: tuple[float, ...]) -> int:
        self._numbers += (op, image, *params)
        self._count += 1
        return self._count - 1
