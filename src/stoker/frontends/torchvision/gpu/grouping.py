# SPDX-License-Identifier: Apache-2.0
"""Groups of a batch's images that a GPU materializes together, with their recipes.

Workers build the groups before they send a batch. All batches pass through the main process, which only forwards them.
"""

from __future__ import annotations

from collections.abc import Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..ir import recipe, steps
from ..ir.packing import Row, SingleRecipe, pack_single
from ..ir.recipe import Node
from ..ir.rows import LazyRow
from ..ir.tables import storage_table
from ..tensors.tensor import LazyTensor, Like
from ..transport import file_refs
from ..transport.segment import Bytes
from ..transport.source import Source

MAX_FILES = 256  # largest number of files of a group
_MIN_FILES = 4  # smallest number of equal files in a batch that form a group

GPU_STEPS = frozenset(steps.ON_GPU)  # steps that a GPU has a form for


class Recipes(NamedTuple):
    """Recipes of several files, concatenated."""

    numbers: npt.NDArray[np.float64]
    starts: tuple[int, ...]  # one more than there are recipes
    windows: npt.NDArray[np.int32]  # (files, 4): y0, x0, y1, x1 of the decoded images
    blobs: list[Bytes]  # the different tables
    blob: tuple[int, ...]  # index of each recipe's table

    @classmethod
    def of(cls, recipes: Sequence[SingleRecipe]) -> Recipes:
        """Return single recipes, concatenated."""
        blobs = {id(r.tables): r.tables for r in recipes}
        number = {key: at for at, key in enumerate(blobs)}
        starts = np.cumsum([0, *(r.numbers.size for r in recipes)])
        return cls(
            np.concatenate([r.numbers for r in recipes]), tuple(starts.tolist()),
            np.array([r.window for r in recipes], np.int32), list(blobs.values()),
            tuple(number[id(r.tables)] for r in recipes),
        )  # fmt: skip

    def each(self) -> list[npt.NDArray[np.float64]]:
        """Return the recipes one by one."""
        return [self.numbers[a:b] for a, b in zip(self.starts, self.starts[1:], strict=False)]

    def tables(self) -> list[Bytes]:
        """Return the table of each recipe."""
        return [self.blobs[at] for at in self.blob]


class Files(NamedTuple):
    """Files of a group: references to all of them, or their bytes."""

    refs: Bytes | None  # (files, bytes); see `transport/file_refs.py`
    sources: list[Source]  # empty if there are references

    @classmethod
    def of(cls, sources: list[Source]) -> Files:
        """Return the files of these sources, as references if all have one."""
        ref = [source.ref for source in sources]
        known = [x for x in ref if x is not None]
        return cls(file_refs.pack_refs(known), []) if len(known) == len(ref) else cls(None, sources)

    def as_input(self) -> Any:
        """Return a pipeline's input, row by row."""
        return [source.data for source in self.sources] if self.refs is None else self.refs


class Group(NamedTuple):
    """Equal files that are materialized together."""

    channels: int  # of the decoded image; 0 for existing pixels
    where: tuple[int, ...]  # numbers of the tensors that contain their images
    rows: list[list[int]]  # for each of these tensors, the numbers of the images, file by file
    files: Files
    recipes: Recipes


class Groups(NamedTuple):
    """Groups of a batch, and for each tensor the numbers of the images outside of all groups."""

    groups: list[Group]
    rest: list[list[int]]


_View = tuple[int, int]  # an image of a file: the number of its tensor, and its number there


def find_root(node: Node) -> Node | None:
    """Return an image's first node if a GPU supports all recorded steps; otherwise None."""
    if node.is_float:
        return None
    while node.parent is not None:
        if node.op not in GPU_STEPS:
            return None
        others = recipe.extra_inputs(node)
        if others:
            first = find_root(node.parent)
            return first if all(find_root(other) is first for other in others) else None
        node = node.parent
    return node if node.op in GPU_STEPS else None


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
        is_referenced = tensors[at]._rows[number].node.source.ref is not None
        alike.setdefault((_channels(tensors, views), is_referenced, where), []).append(views)
    groups = []
    for (channels, _, where), members in alike.items():
        if channels < 0 or len(members) < min(_MIN_FILES, len(files)):
            for at, number in (view for views in members for view in views):
                rest[at].append(number)
            continue
        for first in range(0, len(members), MAX_FILES):
            groups.append(_group(tensors, channels, where, members[first : first + MAX_FILES]))
    return Groups(groups, rest)


def _channels(tensors: Sequence[LazyTensor], views: list[_View]) -> int:
    """Return :attr:`Group.channels` of a file; -1 if a GPU does not support all of its views."""
    roots = [find_root(tensors[at]._rows[number].node) for at, number in views]
    root = roots[0]
    if root is None or any(other is not root for other in roots):
        return -1
    return root.step.channels if isinstance(root.step, steps.Decode) else 0


def _group(tensors: Sequence[LazyTensor], channels: int, where: tuple[int, ...], members: list[list[_View]]) -> Group:
    slots = {at: slot for slot, at in enumerate(dict.fromkeys(where))}
    recipes = Recipes.of([_recipe(tensors, views, slots) for views in members])
    rows = [[number for views in members for at, number in views if at == slot_at] for slot_at in slots]
    sources = [tensors[views[0][0]]._rows[views[0][1]].node.source for views in members]
    return Group(channels, tuple(slots), rows, Files.of(sources), recipes)


def _recipe(tensors: Sequence[LazyTensor], views: list[_View], slots: dict[int, int]) -> SingleRecipe:
    """Return the recipe of a file's views. Each is stored after the preceding one of the same tensor."""
    rows = []
    used = [0] * len(slots)
    for at, number in views:
        node, table, patches = tensors[at]._rows[number]
        stored, slot = storage_table(node, table), slots[at]
        rows.append(Row(node, stored, slot, used[slot], patches=patches))
        item = 1 if stored is None else stored.memory()[1]
        used[slot] += node.size[0] * node.size[1] * node.channels * item
    return pack_single(rows)


# ---- between processes ----


class WorkerGroups(NamedTuple):
    """Link from a tensor to the groups that a worker has built."""

    groups: Groups
    number: int  # number of the tensor
    rows: Sequence[LazyRow]  # rows as received; changed rows are grouped again


def attach_groups(tensors: Sequence[LazyTensor]) -> None:
    """Group a batch's tensors in a worker, and attach the groups, which are sent with them."""
    different = list({id(t): t for t in tensors}.values())
    if different:
        groups = group(different)
        for number, tensor in enumerate(different):
            tensor._worker_groups = WorkerGroups(groups, number, tensor._rows)


class FoldedRows(Sequence[LazyRow]):
    """Pickled rows of a tensor from a worker. They are rarely unpickled, because a GPU needs only the groups."""

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


def reduce_grouped(tensor: LazyTensor, arrived: WorkerGroups) -> tuple[Any, ...]:
    """Return the pickled form of a tensor with its groups."""
    if any(row.node.source.ref is None for row in tensor._rows):
        return receive, (tensor._rows, tensor._lead, arrived.groups, arrived.number)
    folded = bytes(ForkingPickler.dumps(tensor._rows))
    (node, table, _), count = tensor._rows[0], len(tensor._rows)
    like = (node.channels, node.size, table.values.dtype)
    return _receive_folded, (folded, count, like, tensor._lead, arrived.groups, arrived.number)


def _receive_folded(
    folded: bytes, count: int, like: Like, lead: tuple[int, ...], groups: Groups, number: int
) -> LazyTensor:
    return receive(FoldedRows(folded, count), lead, groups, number, like)


def receive(
    rows: Sequence[LazyRow], lead: tuple[int, ...], groups: Groups, number: int, like: Like | None = None
) -> LazyTensor:
    """Return a received tensor with its groups, in the main process."""
    tensor = LazyTensor(rows, lead, like)
    tensor._worker_groups = WorkerGroups(groups, number, rows)
    return tensor


def received_groups(tensors: Sequence[LazyTensor]) -> Groups | None:
    """Return a worker's groups if they belong to exactly these tensors, unchanged; otherwise None."""
    groups: Groups | None = None
    for number, tensor in enumerate(tensors):
        arrived = tensor._worker_groups
        if arrived is None or arrived.number != number or arrived.rows is not tensor._rows:
            return None
        if groups is not None and arrived.groups is not groups:
            return None
        groups = arrived.groups
    return groups if groups is not None and len(groups.rest) == len(tensors) else None
