# SPDX-License-Identifier: Apache-2.0
"""Batches that are delivered in a GPU's memory: rows with a form are made there, the others by the CPU, and sent.

Pixels come from the plan as 8 bits per channel; what they become is looked up in the table that torch made
(`tensor.py`), on the stream of who takes the batch. So bits are those of the CPU.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ...contract.errors import DataError
from ...executor.run import Supply
from . import counts, plans, recipe
from .plans import Form, Job, Plans, Values
from .tensor import LazyRow, LazyTensor, Making, Table, Take, first_table

_BATCH = 256  # rows of a job
_FEW = 4  # rows of a form in a batch, below which no plan is made for them


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
        self._tables: weakref.WeakKeyDictionary[Table, torch.Tensor] = weakref.WeakKeyDictionary()

    def memory(self, shape: tuple[int, ...]) -> tuple[torch.Tensor, Supply]:
        """Memory for 8-bit pixels, and how a run writes there."""
        tensor = torch.empty(shape, dtype=torch.uint8, device=self.device)
        stream = torch.cuda.current_stream(self.device).cuda_stream if tensor.is_cuda else None
        return tensor, Supply(tensor.data_ptr(), tensor, stream)

    def take(self, tensor: torch.Tensor) -> torch.Tensor:
        """What was made on another thread, for use on this one's stream."""
        if tensor.is_cuda:
            tensor.record_stream(torch.cuda.current_stream(self.device))
        return tensor

    def look_up(self, pixels: torch.Tensor, table: Table) -> torch.Tensor:
        """``pixels``, uint8 ``(N, channels, height, width)``, through a table."""
        if table is first_table(pixels.shape[1]):
            return pixels
        values = self._tables.get(table)
        if values is None:
            values = self._tables[table] = table.values.reshape(-1).to(self.device)
        index = pixels.to(torch.int32)
        if values.numel() > 256:
            index += torch.arange(0, values.numel(), 256, dtype=torch.int32, device=self.device).view(-1, 1, 1)
        return values.index_select(0, index.view(-1)).view(pixels.shape)

    def close(self) -> None:
        """End its threads and plans."""
        self.plans.close()


class _Part(NamedTuple):
    """Rows of a tensor that are made together: by a job, or (None) by the CPU."""

    tensor: int
    rows: list[int]
    job: Job | None
    pixels: torch.Tensor | None


class PlacedMaking:
    """As :class:`~.tensor.Making`, in a GPU's memory."""

    def __init__(self, tensors: Sequence[LazyTensor], place: Place, take: Take | None = None) -> None:
        self.tensors = [t for t in {id(t): t for t in tensors}.values() if t._real is None]
        self._place = place
        self._parts: list[_Part] = []
        others: list[LazyTensor] = []
        for at, tensor in enumerate(self.tensors):
            rest = self._begin(at, tensor)
            if rest:
                self._parts.append(_Part(at, rest, None, None))
                others.append(LazyTensor([tensor._rows[i] for i in rest], (len(rest),)))
        self._others = iter(others)
        self._rest = Making(others, take) if others else None
        self.order = self._rest.order if self._rest else None

    def _begin(self, at: int, tensor: LazyTensor) -> list[int]:
        """Begin the rows that have a form; the others' numbers."""
        groups: dict[Form, list[tuple[int, Values]]] = {}
        rest: list[int] = []
        for number, row in enumerate(tensor._rows):
            found = plans.read(row.node) if row.node.op != recipe.RAW else None
            if found is None:
                rest.append(number)
            else:
                groups.setdefault(found[0], []).append((number, found[1]))
        for form, members in groups.items():
            if len(members) < min(_FEW, len(tensor._rows)):
                rest += [number for number, _ in members]
                continue
            for first in range(0, len(members), _BATCH):
                self._submit(at, tensor, form, members[first : first + _BATCH])
        return sorted(rest)

    def _submit(self, at: int, tensor: LazyTensor, form: Form, members: list[tuple[int, Values]]) -> None:
        pixels, supply = self._place.memory((len(members), form.channels, *form.size))
        files = [tensor._rows[number].node.source.data for number, _ in members]
        job = Job(form, files, [values for _, values in members], supply)
        self._parts.append(_Part(at, [number for number, _ in members], job, pixels))
        self._place.plans.submit(job)

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
            outputs[part.tensor] += self._finished(part)
        for tensor, pieces in zip(self.tensors, outputs, strict=True):
            tensor._real = self._joined(tensor, pieces)

    def _finished(self, part: _Part) -> list[tuple[list[int], torch.Tensor]]:
        tensor = self.tensors[part.tensor]
        if part.job is None or part.pixels is None:
            made = next(self._others)._real
            assert made is not None
            counts.add(counts.SENT, len(part.rows))
            return [(part.rows, made.to(self._place.device, non_blocking=True))]
        error = part.job.wait()
        if isinstance(error, DataError):  # a file is damaged: which, and what is done about it, the CPU knows
            again = LazyTensor([tensor._rows[i] for i in part.rows], (len(part.rows),))
            Making([again]).run()
            assert again._real is not None
            counts.add(counts.SENT, len(part.rows))
            return [(part.rows, again._real.to(self._place.device))]
        if error is not None:
            raise error
        counts.add(counts.PLACED, len(part.rows))
        counts.add(counts.MADE, len(part.rows))
        return self._looked_up([tensor._rows[i] for i in part.rows], part.rows, self._place.take(part.pixels))

    def _looked_up(
        self, rows: list[LazyRow], numbers: list[int], pixels: torch.Tensor
    ) -> list[tuple[list[int], torch.Tensor]]:
        tables: dict[int, list[int]] = {}
        for at, row in enumerate(rows):
            tables.setdefault(id(row.table), []).append(at)
        pieces = []
        for members in tables.values():
            some = pixels if len(members) == len(rows) else pixels[members]
            made = self._place.look_up(some, rows[members[0]].table)
            for at, image in zip(members, made, strict=True):
                for index, value in rows[at].patches:
                    image[index] = value
            pieces.append(([numbers[at] for at in members], made))
        return pieces

    def _joined(self, tensor: LazyTensor, pieces: list[tuple[list[int], torch.Tensor]]) -> torch.Tensor:
        shape = tuple(tensor.shape)
        if len(pieces) == 1 and pieces[0][0] == list(range(len(tensor._rows))):
            return pieces[0][1].view(shape)
        out = torch.empty((len(tensor._rows), *shape[-3:]), dtype=tensor.dtype, device=self._place.device)
        for numbers, made in pieces:
            out[torch.tensor(numbers, device=self._place.device)] = made
        return out.view(shape)


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
