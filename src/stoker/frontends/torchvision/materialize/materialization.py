# SPDX-License-Identifier: Apache-2.0
"""Materialization of lazy tensors: all of a batch together, or a single one when a caller needs its values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch

from ....native import _native
from .. import counts
from ..ir import packing, recipe, steps
from ..ir.packing import Row
from ..ir.recipe import Node, Patch
from ..ir.rows import RecordedTensor
from ..ir.tables import VALUES, storage_table
from ..reference.float_replay import replay_floats
from ..reference.replay import replay
from ..transport import file_refs
from . import eager, retry

Take = Callable[[int], torch.Tensor]  # allocates this many bytes


class Materialization:
    """Lazy tensors that are materialized together, with their output memory."""

    def __init__(
        self, tensors: Sequence[RecordedTensor], take: Take | None = None, begin: Callable[[Node], Node] | None = None
    ) -> None:
        self.tensors = [t for t in {id(t): t for t in tensors}.values() if t._materialized is None]
        self._memory: list[torch.Tensor] = []
        rows: list[Row] = []
        for at, tensor in enumerate(self.tensors):
            item = tensor.element_size()
            self._memory.append((take or allocate)(item * math.prod(tensor.shape)))
            first = 0
            for node, table, patches in tensor._rows:
                size = item * math.prod(node.size) * node.channels
                if begin is not None and node.op != recipe.RAW:
                    node = begin(node)
                rows.append(Row(node, storage_table(node, table), at, first, patches=patches))
                first += size
        self._packed = packing.pack(rows, [m.numpy() for m in self._memory])
        self.native_batch = self._packed.native_batch

    @property
    def is_done(self) -> bool:
        """Return whether all writes have ended."""
        return self.native_batch.done  # type: ignore[no-any-return]

    @property
    def thread_s(self) -> float:
        """Return the time that threads of a pool have spent on the batch, added over the threads."""
        return self.native_batch.thread_s  # type: ignore[no-any-return]

    @property
    def job_s(self) -> float:
        """Return the time of jobs on a GPU: there are none."""
        return 0.0

    def run(self) -> None:
        """Materialize the tensors on this thread."""
        _native.recipe.materialize(self.native_batch)
        self.finish(counts.FORCED)

    def finish(self, as_what: int | None = counts.NATIVE) -> None:
        """Complete a finished batch: decode the remaining files with Pillow and attach the memory to the tensors.

        Args:
            as_what: the counter for the images; None if the caller counts them later.

        Raises:
            Damaged: Pillow cannot decode a file either. All such files are remembered.
        """
        failures = self.native_batch.failures
        eager.check_refusals(failures)
        failed: OSError | None = None
        for at, _ in failures:
            rows = self._packed.rows[at]
            counts.add(counts.PILLOW)
            try:
                for row in rows:
                    self._replay(row)
            except (
                file_refs.StaleFileRef
            ) as error:  # the file need not be damaged: it is read when the batch is fetched again
                failed = error
            except OSError as error:
                failed = error
                retry.remember_damaged(rows[0].node.source.data)
        if failed is not None:
            raise retry.Damaged(str(failed)) from failed
        for tensor, memory in zip(self.tensors, self._memory, strict=True):
            tensor._materialized = as_tensor(memory, tensor.dtype, tensor.shape)
        if as_what is not None:
            counts.add(as_what, count_recorded(self.tensors))

    def _replay(self, row: Row) -> None:
        root = row.node.root
        if isinstance(root.step, recipe.StrictDecode):
            raise OSError("a file that torchvision is to decode")
        image = replay_floats(row.node) if row.node.is_float else self._of_bytes(row)
        image = image.contiguous()
        apply_patches(image, row.patches)
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


def count_recorded(tensors: Sequence[RecordedTensor]) -> int:
    """Return the number of recorded images."""
    return sum(row.node.op != recipe.RAW for tensor in tensors if tensor.is_counted for row in tensor._rows)


def shrink(tensors: Sequence[RecordedTensor]) -> None:
    """Replace decoded pixels by their views where the views are smaller, before the tensors are sent.

    Files stay as they are: they are small, and the receiver decodes them. Pixels that Pillow has decoded may be large.
    """
    views: dict[int, list[tuple[RecordedTensor, int]]] = {}
    for tensor in tensors:
        for at, row in enumerate(tensor._rows):
            if row.node.op == recipe.RAW:
                continue
            if row.node.root.op == steps.PIXELS:
                views.setdefault(id(row.node.source), []).append((tensor, at))
            else:
                # a data set may keep the file: share its bytes instead of sending them in the message
                row.node.source.share()
    rows: list[Row] = []
    places: list[tuple[RecordedTensor, int]] = []
    for group in views.values():
        nodes = [tensor._rows[at].node for tensor, at in group]
        if sum(_size_bytes(node) for node in nodes) < nodes[0].source.data.size:
            rows += [Row(node, None, len(rows) + i, 0) for i, node in enumerate(nodes)]
            places += group
        else:
            nodes[0].source.share()
    if rows:
        _make_views(rows, places)


def _make_views(rows: list[Row], places: list[tuple[RecordedTensor, int]]) -> None:
    outputs = [np.empty(_size_bytes(row.node), np.uint8) for row in rows]
    packed = packing.pack(rows, outputs)
    _native.recipe.materialize(packed.native_batch)
    eager.check_refusals(packed.native_batch.failures)
    for (tensor, at), result, data in zip(places, rows, outputs, strict=True):
        size, channels = result.node.size, result.node.channels
        node = (
            Node.raw(data, size, channels) if result.node.is_float else Node.pixels(data, size, channels, recipe.PLANAR)
        )
        node.source.share()
        assert isinstance(tensor._rows, list), "only what has arrived here from another process is none"
        tensor._rows[at] = tensor._rows[at]._replace(node=node)


def _size_bytes(node: Node) -> int:
    return node.size[0] * node.size[1] * node.channels * (4 if node.is_float else 1)


def as_tensor(memory: torch.Tensor, dtype: torch.dtype, shape: torch.Size) -> torch.Tensor:
    """Return a tensor of all the memory. It is no view, so that its owner may detach it in place."""
    result = torch.empty(0, dtype=dtype, device=memory.device)
    offset = memory.storage_offset() // dtype.itemsize
    strides = torch.empty(shape, device="meta").stride()
    return result.set_(memory.untyped_storage(), offset, shape, strides)


_LARGE = 3 << 20  # bytes of a result that is likely to fill a large page of the system


def is_large(size: int) -> bool:
    """Return whether a result of this many bytes belongs in large pages."""
    return size >= _LARGE


def allocate(size: int) -> torch.Tensor:
    """Return this many uninitialized bytes, in large pages if they are many."""
    memory = torch.empty(size, dtype=torch.uint8)
    if is_large(size):
        _native.recipe.advise_large_pages(memory.numpy())
    return memory


def apply_patches(image: torch.Tensor, patches: Sequence[Patch]) -> None:
    """Write patches into a materialized image, ``(channels, height, width)``."""
    for (c0, c1, y0, y1, x0, x1), single, memory in patches:
        window = image[c0:c1, y0:y1, x0:x1]
        count = 1 if single else window.numel()
        values = torch.from_numpy(memory[: count * image.element_size()].copy()).view(image.dtype).to(image.device)
        window[...] = values.reshape(()) if single else values.view(window.shape)
