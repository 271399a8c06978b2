# SPDX-License-Identifier: Apache-2.0
"""Which images of a batch a GPU makes together, and their recipes as it takes them.

Workers do this before they send a batch, so that the main process, which all batches pass through, only hands it on.
"""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...native import _native
from . import recipe, told
from .packing import Alone, Row, pack_alone
from .recipe import Node
from .rows import LazyRow
from .segment import Bytes
from .source import Source
from .tables import stored_table
from .tensor import LazyTensor, Like

MOST = 256  # files of a group
_FEW = 4  # files that are alike in a batch, below which no group is made of them

# What the GPU's form of recipes knows (native/recipe_described.cpp).
_NAMES = (
    "Decode Pixels Crop Resize Transpose Affine Pad Map Luma Spread Contrast Saturate Hue Autocontrast Equalize "
    "Sharpen Project PadEdges Correlate TorchResize TorchResizeFloats TorchPick TorchLuma TorchContrast TorchSaturate "
    "TorchHue TorchSharpen TorchAutocontrast TorchEqualize TorchWarp TorchGrid Channels Blur Mix Blend Store Patch"
)
FORMS = frozenset(number for number, (name, _) in enumerate(_native.recipe.OPS) if name in _NAMES.split())


class Recipes(NamedTuple):
    """Recipes of files, one behind the other."""

    numbers: npt.NDArray[np.float64]
    starts: tuple[int, ...]  # one more than recipes
    windows: npt.NDArray[np.int32]  # (files, 4): y0, x0, y1, x1 of the decoded images
    blobs: list[Bytes]  # the different tables
    blob: tuple[int, ...]  # which of them each recipe has

    @classmethod
    def of(cls, recipes: Sequence[Alone]) -> Recipes:
        """Of single ones."""
        blobs = {id(r.tables): r.tables for r in recipes}
        number = {key: at for at, key in enumerate(blobs)}
        starts = np.cumsum([0, *(r.numbers.size for r in recipes)])
        return cls(
            np.concatenate([r.numbers for r in recipes]), tuple(starts.tolist()),
            np.array([r.window for r in recipes], np.int32), list(blobs.values()),
            tuple(number[id(r.tables)] for r in recipes),
        )  # fmt: skip

    def each(self) -> list[npt.NDArray[np.float64]]:
        """The recipes one by one."""
        return [self.numbers[a:b] for a, b in zip(self.starts, self.starts[1:], strict=False)]

    def tables(self) -> list[Bytes]:
        """The tables of each."""
        return [self.blobs[at] for at in self.blob]


class Files(NamedTuple):
    """Files of a group: what tells of all of them, or their bytes."""

    told: Bytes | None  # (files, bytes); see `told.py`
    sources: list[Source]  # unless they are told of

    @classmethod
    def of(cls, sources: list[Source]) -> Files:
        """Of files that are told of, or of files that are here."""
        what = [source.told for source in sources]
        known = [x for x in what if x is not None]
        return cls(told.joined(known), []) if len(known) == len(what) else cls(None, sources)

    def given(self) -> Any:
        """What a pipeline is given, row by row."""
        return [source.data for source in self.sources] if self.told is None else self.told


class Group(NamedTuple):
    """Files that are alike: they are made together."""

    channels: int  # of what is decoded; 0: pixels that are there already
    where: tuple[int, ...]  # the numbers of the tensors that their images are in
    rows: list[list[int]]  # for each of these, the numbers of the images, file by file
    files: Files
    recipes: Recipes


class Groups(NamedTuple):
    """A batch: its groups, and of each tensor the numbers of the images that are in none."""

    groups: list[Group]
    rest: list[list[int]]


_View = tuple[int, int]  # an image of a file: its tensor's number, and its own there


def root_of(node: Node) -> Node | None:
    """What an image begins with, if the GPU has a form for everything that is recorded about it."""
    if node.floats:
        return None
    while node.parent is not None:
        if node.op not in FORMS:
            return None
        others = recipe.others_of(node)
        if others:
            first = root_of(node.parent)
            return first if all(root_of(other) is first for other in others) else None
        node = node.parent
    return node if node.op in FORMS else None


def group(tensors: Sequence[LazyTensor]) -> Groups:
    """Group the images of a batch's tensors."""
    rest: list[list[int]] = [[] for _ in tensors]
    files: dict[int, list[_View]] = {}
    for at, tensor in enumerate(tensors):
        for number, row in enumerate(tensor._rows):
            if row.node.op == recipe.RAW:
                rest[at].append(number)
            else:
                files.setdefault(id(row.node.source), []).append((at, number))
    alike: dict[tuple[int, bool, tuple[int, ...]], list[list[_View]]] = {}
    for views in files.values():
        (at, number), where = views[0], tuple(at for at, _ in views)
        is_told = tensors[at]._rows[number].node.source.told is not None
        alike.setdefault((_channels(tensors, views), is_told, where), []).append(views)
    groups = []
    for (channels, _, where), members in alike.items():
        if channels < 0 or len(members) < min(_FEW, len(files)):
            for at, number in (view for views in members for view in views):
                rest[at].append(number)
            continue
        for first in range(0, len(members), MOST):
            groups.append(_group(tensors, channels, where, members[first : first + MOST]))
    return Groups(groups, rest)


def _channels(tensors: Sequence[LazyTensor], views: list[_View]) -> int:
    """:attr:`Group.channels` of a file; -1: there is no form for all of its views."""
    roots = [root_of(tensors[at]._rows[number].node) for at, number in views]
    root = roots[0]
    if root is None or any(other is not root for other in roots):
        return -1
    return int(root.params[0]) if root.op == recipe.DECODE else 0


def _group(tensors: Sequence[LazyTensor], channels: int, where: tuple[int, ...], members: list[list[_View]]) -> Group:
    slots = {at: slot for slot, at in enumerate(dict.fromkeys(where))}
    recipes = Recipes.of([_recipe(tensors, views, slots) for views in members])
    rows = [[number for views in members for at, number in views if at == slot_at] for slot_at in slots]
    sources = [tensors[views[0][0]]._rows[views[0][1]].node.source for views in members]
    return Group(channels, tuple(slots), rows, Files.of(sources), recipes)


def _recipe(tensors: Sequence[LazyTensor], views: list[_View], slots: dict[int, int]) -> Alone:
    """Of a file's views, each stored behind the one before it of the same tensor."""
    rows = []
    used = [0] * len(slots)
    for at, number in views:
        node, table, patches = tensors[at]._rows[number]
        stored, slot = stored_table(node, table), slots[at]
        rows.append(Row(node, stored, slot, used[slot], patches=patches))
        item = 1 if stored is None else stored.memory()[1]
        used[slot] += node.size[0] * node.size[1] * node.channels * item
    return pack_alone(rows)


# ---- between processes ----


class Arrived(NamedTuple):
    """What a tensor knows of the groups that a worker has made."""

    groups: Groups
    number: int  # the tensor's
    rows: Sequence[LazyRow]  # as they came; others are grouped again


def send(tensors: Sequence[LazyTensor]) -> None:
    """In a worker: group a batch's tensors, which take their groups with them."""
    different = list({id(t): t for t in tensors}.values())
    if different:
        groups = group(different)
        for number, tensor in enumerate(different):
            tensor._arrived = Arrived(groups, number, tensor._rows)


class FoldedRows(Sequence[LazyRow]):
    """The rows of a tensor as a worker has sent them. Few ask for them: what a GPU does with them is in the groups."""

    __slots__ = ("_count", "_folded", "_rows")

    def __init__(self, folded: bytes, count: int) -> None:
        self._folded = folded
        self._count = count
        self._rows: list[LazyRow] | None = None

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: Any) -> Any:
        if self._rows is None:
            self._rows = ForkingPickler.loads(self._folded)
        return self._rows[at]


def reduce(tensor: LazyTensor, arrived: Arrived) -> tuple[Any, ...]:
    """How a tensor with its groups travels."""
    if any(row.node.source.told is None for row in tensor._rows):
        return arrive, (tensor._rows, tensor._lead, arrived.groups, arrived.number)
    folded = bytes(ForkingPickler.dumps(tensor._rows))
    (node, table, _), count = tensor._rows[0], len(tensor._rows)
    like = (node.channels, node.size, table.values.dtype)
    return _arrive_folded, (folded, count, like, tensor._lead, arrived.groups, arrived.number)


def _arrive_folded(
    folded: bytes, count: int, like: Like, lead: tuple[int, ...], groups: Groups, number: int
) -> LazyTensor:
    return arrive(FoldedRows(folded, count), lead, groups, number, like)


def arrive(
    rows: Sequence[LazyRow], lead: tuple[int, ...], groups: Groups, number: int, like: Like | None = None
) -> LazyTensor:
    """In the main process: a tensor with its groups."""
    tensor = LazyTensor(rows, lead, like)
    tensor._arrived = Arrived(groups, number, rows)
    return tensor


def known(tensors: Sequence[LazyTensor]) -> Groups | None:
    """The groups of a worker's, if these are all their tensors and nothing has changed since."""
    groups: Groups | None = None
    for number, tensor in enumerate(tensors):
        arrived = tensor._arrived
        if arrived is None or arrived.number != number or arrived.rows is not tensor._rows:
            return None
        if groups is not None and arrived.groups is not groups:
            return None
        groups = arrived.groups
    return groups if groups is not None and len(groups.rest) == len(tensors) else None
