# SPDX-License-Identifier: Apache-2.0
"""Encoding of recorded images as native recipes: one recipe for all views of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ....native import _native
from ..transport.segment import Bytes
from . import steps as s
from .recipe import RAW, Node, Patch, extra_inputs
from .tables import VALUES, Table


class Row(NamedTuple):
    """An image of a batch: its node, its table (None: the bytes themselves) and its place in the output memory."""

    node: Node
    table: Table | None
    output: int
    first_byte: int
    interleaved: bool = False  # stored as bytes (height, width, channels), without the table
    patches: tuple[Patch, ...] = ()


class Packed(NamedTuple):
    """Recipes in native form (a ``RecipeBatch``), and the rows of each."""

    native_batch: Any
    rows: list[list[Row]]
    owners: tuple[Any, ...]  # objects whose memory the native batch uses


def pack(rows: Iterable[Row], outputs: Sequence[Bytes]) -> Packed:
    """Encode all ``rows`` as one recipe per file, so that a file with several views is decoded once.

    Args:
        rows: the images that are materialized together.
        outputs: the memory that receives them.
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
    sources = [source.ref or source.data for source in (views[0].node.source for views in groups)]
    native_batch = _native.recipe.make_batch(
        np.array(numbers, np.float64), np.array(starts, np.int64), sources, tables.memory, list(outputs)
    )
    return Packed(native_batch, groups, (sources, tables.memory, outputs))


class SharedRecipe(NamedTuple):
    """Recipe of one image that is stored whole; its source and the place of its result are filled in for each use."""

    numbers: npt.NDArray[np.float64]
    tables: list[tuple[Bytes, int]]
    owners: tuple[Any, ...]  # objects whose memory the tables use


_FIRST_BYTE = -2  # place of the output's first byte in the numbers of a recipe, whose last step stores its image


def share(node: Node, table: Table | None) -> SharedRecipe:
    """Return the recipe of an image for images of other sources, whose other steps are equal."""
    tables = _Tables()
    numbers: list[float] = []
    _Recipe(numbers, tables).add([Row(node, table, 0, 0)])
    return SharedRecipe(np.array(numbers, np.float64), tables.memory, (node, table))


def pack_shared(recipes: Sequence[SharedRecipe], sources: list[Any], size_bytes: int, output: Bytes) -> Any:
    """Return a ``RecipeBatch`` that stores the results of recipes with equal tables one after the other.

    Args:
        recipes: the recipe of each image.
        sources: the bytes of each image, or its file reference, which are used until the batch is done.
        size_bytes: of each result.
        output: the memory that receives them.
    """
    numbers = np.concatenate([recipe.numbers for recipe in recipes])
    starts = np.zeros(len(recipes) + 1, np.int64)
    np.cumsum([len(recipe.numbers) for recipe in recipes], out=starts[1:])
    numbers[starts[1:] + _FIRST_BYTE] = np.arange(0, size_bytes * len(recipes), size_bytes)
    return _native.recipe.make_batch(numbers, starts, sources, recipes[0].tables, [output])


class SingleRecipe(NamedTuple):
    """A recipe of one file, as the operator `_recipe` takes it."""

    numbers: npt.NDArray[np.float64]
    tables: Bytes
    window: tuple[int, int, int, int]  # y0, x0, y1, x1: the part of the decoded image that the recipe takes


_WITH_OTHERS = frozenset((s.MIX, s.BLEND, s.MAP, s.TORCH_GRID))  # steps that take tables, or more than one image
_NO_TABLES = np.zeros(16, np.uint8)
_ALIGNMENT = 16  # of tables


def pack_single(views: list[Row]) -> SingleRecipe:
    """Return the recipe of one file's views. ``output`` and ``first_byte`` of a row refer to the recipe's outputs."""
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
    x0, y0, x1, y1 = (int(n) for n in steps[3:7]) if steps[0] == s.DECODE else (0, 0, 0, 0)
    return SingleRecipe(np.array(numbers + steps, np.float64), _join_tables(tables.memory, first), (y0, x0, y1, x1))


def _pack_chain(row: Row) -> SingleRecipe | None:
    """Return the recipe of a single view whose steps form a chain; None for other views."""
    chain, node = [], row.node
    while node.parent is not None:
        if node.op in _WITH_OTHERS:
            return None
        chain.append(node)
        node = node.parent
    if not isinstance(node.step, s.Decode) or row.patches or row.interleaved:
        return None
    cut = bool(chain) and chain[-1].op == s.CROP  # only this window of the decoded image is needed
    x0, y0, x1, y1 = window = chain[-1].step if cut else node.step.window
    memory, numbers, table = _NO_TABLES, [0], -1
    if row.table is not None:
        memory, item = row.table.memory()
        numbers, table = [1, 0, item, memory.size // (VALUES * item)], 0
    numbers += (s.DECODE, -1, node.step.channels, *window, node.step.is_lenient)
    for count, step in enumerate(reversed(chain)):
        params = (0, 0, x1 - x0, y1 - y0) if cut and not count else _parameters_of(step.step)
        numbers += (step.op, count, *params)
    numbers += (s.STORE, len(chain), row.output, row.first_byte, table)
    return SingleRecipe(np.array(numbers, np.float64), memory, (y0, x0, y1, x1))


def _root_window(root: Node) -> tuple[int, ...]:
    assert isinstance(root.step, (s.Decode, s.Pixels))
    return root.step.window


def _parameters_of(step: tuple[Any, ...]) -> tuple[float, ...]:
    """Return a step's parameters in native form. A variable number of parameters is preceded by their count."""
    if isinstance(step, (s.Correlate, s.TorchProducts)):
        return (2 + len(step.weights), step.height, step.width, *step.weights)
    if isinstance(step, s.Arrange):
        return (len(step.axes), *step.axes)
    return (len(step.operations), *step.operations) if isinstance(step, s.Pointwise) else step


def _join_tables(tables: list[tuple[Bytes, int]], size: int) -> Bytes:
    if len(tables) < 2:
        return tables[0][0] if tables else _NO_TABLES
    memory = np.zeros(size, np.uint8)
    first = 0
    for data, _ in tables:
        memory[first : first + data.size] = data
        first += -(-data.size // _ALIGNMENT) * _ALIGNMENT
    return memory


def _roots(node: Node) -> Iterator[tuple[Node, Node | None]]:
    """Yield the first nodes of an image, each with the step after it. A mixture has several."""
    after: Node | None = None
    while node.parent is not None:
        for other in extra_inputs(node):
            yield from _roots(other)
        node, after = node.parent, node
    yield node, after


class _Tables:
    """Distinct tables of a batch of recipes."""

    def __init__(self) -> None:
        self.memory: list[tuple[Bytes, int]] = []
        self._known: dict[int, int] = {}
        self._kept: list[Any] = []  # keeps the ids unique: Python reuses the id of an object that is gone

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
    """Encoder of one file's steps."""

    def __init__(self, numbers: list[float], tables: _Tables) -> None:
        self._numbers = numbers
        self._tables = tables
        self._images: dict[int, int] = {}  # id of a node → number of its image in the recipe
        self._count = 0
        self._windows: dict[int, tuple[int, int, int, int]] = {}

    def add(self, views: list[Row]) -> None:
        self._find_windows(views)
        for row in views:
            image = self._image(row.node)
            if row.interleaved:
                self._step(s.STORE_PIXELS, image, (row.output, row.first_byte))
            else:
                self._store(image, row)

    def _store(self, image: int, row: Row) -> None:
        table = self._tables.index(row.table)
        stored = self._step(s.STORE, image, (row.output, row.first_byte, table))
        item = self._tables.memory[table][1] if table >= 0 else 4 if row.node.is_float else 1
        width, height = row.node.size
        for patch in row.patches:
            place = (row.output, row.first_byte, item, height, width, *patch.window, int(patch.single))
            self._step(s.PATCH, stored, (*place, self._tables.index(patch.values)))

    def _find_windows(self, views: list[Row]) -> None:
        """Find the window of each decoded image that contains all requested crops; only this window is decoded."""
        windows = self._windows
        for node, after in (found for row in views for found in _roots(row.node)):
            wanted: Any = after.step if after is not None and after.op == s.CROP else _root_window(node)
            have = windows.get(id(node), wanted)
            windows[id(node)] = (
                min(have[0], wanted[0]),
                min(have[1], wanted[1]),
                max(have[2], wanted[2]),
                max(have[3], wanted[3]),
            )

    def _image(self, node: Node) -> int:
        result = self._images.get(id(node))
        if result is not None:
            return result
        chain = [node]
        while chain[-1].parent is not None and id(chain[-1].parent) not in self._images:
            chain.append(chain[-1].parent)
        for step in reversed(chain):
            self._images[id(step)] = self._add_node(step)
        return self._images[id(node)]

    def _add_node(self, node: Node) -> int:
        parent = node.parent
        step = node.step
        if parent is None:
            return self._root(node)
        params: tuple[Any, ...]
        match step:
            case s.Map() | s.Floats():
                params = (self._tables.index(step.table),)
            case s.Mix():
                pairs = [(self._image(n), self._tables.index(t)) for n, t in step.others]
                params = (1 + 2 * len(pairs), self._tables.index(step.table), *(n for pair in pairs for n in pair))
            case s.Blend():
                params = (self._image(step.image), step.factor)
            case s.TorchGrid():
                params = (*step[:-1], self._tables.index(step.table))
            case s.Crop() if parent.parent is None:
                x, y = self._windows[id(parent)][:2]
                params = (step.x0 - x, step.y0 - y, step.x1 - x, step.y1 - y)
            case _:
                params = _parameters_of(step)
        return self._step(node.op, self._images[id(parent)], params)

    def _root(self, node: Node) -> int:
        step, window = node.step, self._windows[id(node)]
        if isinstance(step, s.Decode):
            return self._step(s.DECODE, -1, (step.channels, *window, step.is_lenient))
        assert isinstance(step, s.Pixels)
        return self._step(s.PIXELS, -1, (*step[:4], *window))

    def _step(self, op: int, image: int, params: tuple[float, ...]) -> int:
        self._numbers += (op, image, *params)
        self._count += 1
        return self._count - 1
