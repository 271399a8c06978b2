# SPDX-License-Identifier: Apache-2.0
"""Batches that are delivered in a GPU's memory: rows whose steps have a form there are made there, the others by the
CPU, and sent. The bits are those of the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ...contract.errors import DataError
from ...executor.run import Supply
from . import counts, plans, recipe
from .plans import Form, Job, Plans
from .recipe import Row
from .tensor import LazyTensor, Making, Table, Take, stored_table

_BATCH = 256  # files of a job
_FEW = 4  # files of a form in a batch, below which no plan is made for them


class Place:
    """Where batches are delivered, and the plans that run there.

    Args:
        device: where the tensors are.
        gpu: the number of the GPU, for plans; None: they run on the CPU.
        threads: worker threads of a plan.
    """

    def __init__(self, device: torch.device, gpu: int | None, threads: int) -> None:
        self.device = device
        self.plans = Plans(gpu, threads, _BATCH)

    def memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> tuple[torch.Tensor, Supply]:
        """Memory for images, and how a run writes there."""
        tensor = torch.empty(shape, dtype=dtype, device=self.device)
        stream = torch.cuda.current_stream(self.device).cuda_stream if tensor.is_cuda else None
        return tensor, Supply(tensor.data_ptr(), tensor, stream)

    def take(self, tensor: torch.Tensor) -> torch.Tensor:
        """What was made on another thread, for use on this one's stream."""
        if tensor.is_cuda:
            tensor.record_stream(torch.cuda.current_stream(self.device))
        return tensor

    def close(self) -> None:
        """End its threads and plans."""
        self.plans.close()


class _Part(NamedTuple):
    """Rows of a tensor that are made together: by a job, or (None) by the CPU."""

    tensor: int
    rows: list[int]
    job: Job | None
    images: torch.Tensor | None


class _View(NamedTuple):
    """An image of a file: its tensor's number, and its own there."""

    tensor: int
    row: int


class PlacedMaking:
    """As :class:`~.tensor.Making`, in a GPU's memory."""

    def __init__(self, tensors: Sequence[LazyTensor], place: Place, take: Take | None = None) -> None:
        self.tensors = [t for t in {id(t): t for t in tensors}.values() if t._real is None]
        self._place = place
        self._parts: list[_Part] = []
        others: list[LazyTensor] = []
        for at, rows in enumerate(self._begin()):
            if rows:
                self._parts.append(_Part(at, sorted(rows), None, None))
                others.append(LazyTensor([self.tensors[at]._rows[i] for i in sorted(rows)], (len(rows),)))
        self._others = iter(others)
        self._rest = Making(others, take) if others else None
        self.order = self._rest.order if self._rest else None

    def _begin(self) -> list[list[int]]:
        """Begin the files that have a form; of each tensor, the numbers of the other rows."""
        rest: list[list[int]] = [[] for _ in self.tensors]
        files: dict[int, list[_View]] = {}
        for at, tensor in enumerate(self.tensors):
            for number, row in enumerate(tensor._rows):
                if row.node.op == recipe.RAW:
                    rest[at].append(number)
                else:
                    files.setdefault(id(row.node.source), []).append(_View(at, number))
        groups: dict[tuple[int, tuple[int, ...]], list[list[_View]]] = {}
        for views in files.values():
            channels = self._channels(views)
            groups.setdefault((channels, tuple(v.tensor for v in views)), []).append(views)
        for (channels, where), members in groups.items():
            if channels < 0 or len(members) < min(_FEW, len(files)):
                for view in (view for views in members for view in views):
                    rest[view.tensor].append(view.row)
                continue
            for first in range(0, len(members), _BATCH):
                self._submit(channels, where, members[first : first + _BATCH])
        return rest

    def _channels(self, views: list[_View]) -> int:
        """:attr:`Form.channels` of a file; -1: there is no form for all of its views."""
        roots = [plans.root_of(self.tensors[at]._rows[number].node) for at, number in views]
        root = roots[0]
        if root is None or any(other is not root for other in roots):
            return -1
        return int(root.params[0]) if root.op == recipe.DECODE else 0

    def _submit(self, channels: int, where: tuple[int, ...], members: list[list[_View]]) -> None:
        slots = {at: slot for slot, at in enumerate(dict.fromkeys(where))}
        counts_of = [where.count(at) for at in slots]
        memories = []
        sizes = []
        for at, views in zip(slots, counts_of, strict=True):
            tensor = self.tensors[at]
            memories.append(self._place.memory((len(members) * views, *tensor.shape[-3:]), tensor.dtype))
            sizes.append(_image_bytes(tensor) * views)
        recipes = [recipe.pack_alone(self._rows(views, slots), _memory_of) for views in members]
        sources = [self.tensors[views[0].tensor]._rows[views[0].row].node.source.data for views in members]
        job = Job(Form(channels, tuple(sizes)), sources, recipes, [supply for _, supply in memories])
        for at, (images, _) in zip(slots, memories, strict=True):
            rows = [view.row for views in members for view in views if view.tensor == at]
            self._parts.append(_Part(at, rows, job, images))
        self._place.plans.submit(job)

    def _rows(self, views: list[_View], slots: dict[int, int]) -> list[Row]:
        rows = []
        used = [0] * len(slots)
        for at, number in views:
            tensor, slot = self.tensors[at], slots[at]
            node, table, patches = tensor._rows[number]
            rows.append(Row(node, stored_table(node, table), slot, used[slot], patches=patches))
            used[slot] += _image_bytes(tensor)
        return rows

    @property
    def done(self) -> bool:
        """Whether nothing is written any more."""
        made = all(part.job is None or part.job.done for part in self._parts)
        return made and (self.order is None or self.order.done)

    def finish(self) -> None:
        """Wait for what the GPU makes, and put the tensors together, on the current stream.

        Raises:
            Damaged: Pillow cannot decode a file either. All such files are remembered.
        """
        if self._rest is not None:
            self._rest.finish()
        outputs: list[list[tuple[list[int], torch.Tensor]]] = [[] for _ in self.tensors]
        for part in self._parts:
            outputs[part.tensor].append((part.rows, self._finished(part)))
        for tensor, pieces in zip(self.tensors, outputs, strict=True):
            tensor._real = self._joined(tensor, pieces)

    def _finished(self, part: _Part) -> torch.Tensor:
        tensor = self.tensors[part.tensor]
        if part.job is None or part.images is None:
            made = next(self._others)._real
            assert made is not None
            counts.add(counts.SENT, len(part.rows))
            return made.to(self._place.device, non_blocking=True)
        error = part.job.wait()
        if isinstance(error, DataError):  # a file is damaged: which, and what is done about it, the CPU knows
            again = LazyTensor([tensor._rows[i] for i in part.rows], (len(part.rows),))
            Making([again]).run()
            assert again._real is not None
            counts.add(counts.SENT, len(part.rows))
            return again._real.to(self._place.device)
        if error is not None:
            raise error
        counts.add(counts.PLACED, len(part.rows))
        counts.add(counts.MADE, len(part.rows))
        return self._place.take(part.images)

    def _joined(self, tensor: LazyTensor, pieces: list[tuple[list[int], torch.Tensor]]) -> torch.Tensor:
        shape = tuple(tensor.shape)
        if len(pieces) == 1 and pieces[0][0] == list(range(len(tensor._rows))):
            return pieces[0][1].view(shape)
        out = torch.empty((len(tensor._rows), *shape[-3:]), dtype=tensor.dtype, device=self._place.device)
        for numbers, made in pieces:
            out[torch.tensor(numbers, device=self._place.device)] = made
        return out.view(shape)


def _image_bytes(tensor: LazyTensor) -> int:
    node = tensor._rows[0].node
    return tensor.element_size() * node.size[0] * node.size[1] * node.channels


def _memory_of(table: Table) -> tuple[Any, int]:
    return table.memory()


def taken(data: Any, *, pins: bool) -> Any:
    """The batch with its CPU tensors pinned if asked for; those on a GPU stay as they are."""
    if not pins:
        return data
    if isinstance(data, torch.Tensor):
        return data.pin_memory() if data.device.type == "cpu" else data
    if isinstance(data, dict):
        return type(data)((key, taken(value, pins=pins)) for key, value in data.items())
    if isinstance(data, tuple):
        made = [taken(value, pins=pins) for value in data]
        return type(data)(*made) if hasattr(data, "_fields") else type(data)(made)
    if isinstance(data, list):
        return [taken(value, pins=pins) for value in data]
    return data.pin_memory() if hasattr(data, "pin_memory") else data
