# SPDX-License-Identifier: Apache-2.0
"""Lazy tensors are made: those of a batch together, a single one when something asks for its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch

from ...native import _native
from . import counts, early, packing, recipe, retry, told
from .float_replay import replay_floats
from .packing import Row
from .recipe import Node, Patch
from .replay import replay
from .rows import Recorded
from .tables import VALUES, stored_table

Take = Callable[[int], torch.Tensor]  # memory of so many bytes


class Making:
    """Lazy tensors that are made together, with their memory."""

    def __init__(
        self, tensors: Sequence[Recorded], take: Take | None = None, begin: Callable[[Node], Node] | None = None
    ) -> None:
        self.tensors = [t for t in {id(t): t for t in tensors}.values() if t._real is None]
        self._memory: list[torch.Tensor] = []
        rows: list[Row] = []
        for at, tensor in enumerate(self.tensors):
            size = tensor.element_size() * math.prod(tensor._rows[0][0].size) * tensor._rows[0][0].channels
            self._memory.append(_memory(size * len(tensor._rows), take))
            for i, (node, table, patches) in enumerate(tensor._rows):
                if begin is not None and node.op != recipe.RAW:
                    node = begin(node)
                rows.append(Row(node, stored_table(node, table), at, i * size, patches=patches))
        self._packed = packing.pack(rows, [m.numpy() for m in self._memory])
        self.order = self._packed.order

    @property
    def done(self) -> bool:
        """Whether nothing is written any more."""
        return self.order.done  # type: ignore[no-any-return]

    def run(self) -> None:
        """Make them on this thread."""
        _native.recipe.make(self.order)
        self.finish(counts.REAL)

    def finish(self, as_what: int | None = counts.MADE) -> None:
        """After the order is done: Pillow makes what is left, and the tensors are real. None: they are counted later.

        Raises:
            Damaged: Pillow cannot decode a file either. All such files are remembered.
        """
        unmade = self.order.unmade
        early.check(unmade)
        failed: OSError | None = None
        for at, _ in unmade:
            rows = self._packed.rows[at]
            counts.add(counts.FOREIGN)
            try:
                for row in rows:
                    self._replay(row)
            except told.Moved as error:  # the file need not be damaged: it is read when the batch is fetched again
                failed = error
            except OSError as error:
                failed = error
                retry.remember(rows[0].node.source.data)
        if failed is not None:
            raise retry.Damaged(str(failed)) from failed
        for tensor, memory in zip(self.tensors, self._memory, strict=True):
            tensor._real = memory.view(tensor.dtype).view(tensor.shape)
        if as_what is not None:
            counts.add(as_what, recorded(self.tensors))

    def _replay(self, row: Row) -> None:
        root = row.node.root
        if root.op == recipe.DECODE and root.params[5]:
            raise OSError("a file that torchvision is to decode")
        image = replay_floats(row.node) if row.node.floats else self._of_bytes(row)
        image = image.contiguous()
        _put(image, row.patches)
        data = image.view(torch.uint8).reshape(-1)
        self._memory[row.output][row.first_byte : row.first_byte + data.numel()] = data

    @staticmethod
    def _of_bytes(row: Row) -> torch.Tensor:
        array = np.asarray(replay(row.node))
        image = torch.from_numpy(np.ascontiguousarray(np.atleast_3d(array).transpose(2, 0, 1)))
        if row.table is not None:
            values = row.table.values.view(-1, VALUES)
            image = torch.stack([values[min(c, len(values) - 1)][x.long()] for c, x in enumerate(image)])
        return image


def recorded(tensors: Sequence[Recorded]) -> int:
    """How many of their images were recorded."""
    return sum(row.node.op != recipe.RAW for tensor in tensors for row in tensor._rows)


def shrink(tensors: Sequence[Recorded]) -> None:
    """Before tensors travel: of decoded pixels that are more than what is made of them, the latter is kept.

    A file's bytes are few, and its pixels are made where it arrives. Pixels that Pillow has decoded may be many.
    """
    views: dict[int, list[tuple[Recorded, int]]] = {}
    for tensor in tensors:
        for at, row in enumerate(tensor._rows):
            if row.node.op == recipe.RAW:
                continue
            if row.node.root.op == recipe.PIXELS:
                views.setdefault(id(row.node.source), []).append((tensor, at))
            else:
                row.node.source.place()  # of a file that the data set keeps: not in the message
    rows: list[Row] = []
    places: list[tuple[Recorded, int]] = []
    for group in views.values():
        nodes = [tensor._rows[at].node for tensor, at in group]
        if sum(_bytes(node) for node in nodes) < nodes[0].source.data.size:
            rows += [Row(node, None, len(rows) + i, 0) for i, node in enumerate(nodes)]
            places += group
        else:
            nodes[0].source.place()
    if rows:
        _make_views(rows, places)


def _make_views(rows: list[Row], places: list[tuple[Recorded, int]]) -> None:
    outputs = [np.empty(_bytes(row.node), np.uint8) for row in rows]
    packed = packing.pack(rows, outputs)
    _native.recipe.make(packed.order)
    early.check(packed.order.unmade)
    for (tensor, at), made, data in zip(places, rows, outputs, strict=True):
        size, channels = made.node.size, made.node.channels
        node = Node.raw(data, size, channels) if made.node.floats else Node.pixels(data, size, channels, planar=True)
        node.source.place()
        assert isinstance(tensor._rows, list), "only what has arrived here from another process is none"
        tensor._rows[at] = tensor._rows[at]._replace(node=node)


def _bytes(node: Node) -> int:
    return node.size[0] * node.size[1] * node.channels * (4 if node.floats else 1)


def _memory(size: int, take: Take | None) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8) if take is None else take(size)


def _put(image: torch.Tensor, patches: Sequence[Patch]) -> None:
    """Patches on an image that is made, ``(channels, height, width)``."""
    for (c0, c1, y0, y1, x0, x1), single, memory in patches:
        window = image[c0:c1, y0:y1, x0:x1]
        count = 1 if single else window.numel()
        values = torch.from_numpy(memory[: count * image.element_size()].copy()).view(image.dtype)
        window[...] = values.reshape(()) if single else values.view(window.shape)
