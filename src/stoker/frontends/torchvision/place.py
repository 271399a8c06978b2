# SPDX-License-Identifier: Apache-2.0
"""Batches that are delivered in a GPU's memory: rows whose steps have a form there are made there, the others by the
CPU, and sent. The bits are those of the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ...executor.flight import Supply
from . import counts, grouping
from .grouping import Group
from .making import Making, Take
from .plans import Form, Job, Plans
from .tensor import LazyTensor


class Place:
    """Where batches are delivered, and the plans that run there.

    Args:
        device: where the tensors are.
        gpu: the number of the GPU, for plans; None: they run on the CPU.
        threads: worker threads of a plan.
    """

    def __init__(self, device: torch.device, gpu: int | None, threads: int) -> None:
        self.device = device
        self.plans = Plans(gpu, threads, grouping.MOST)

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


class PlacedMaking:
    """As :class:`~.making.Making`, in a GPU's memory."""

    def __init__(self, tensors: Sequence[LazyTensor], place: Place, take: Take | None = None) -> None:
        self.tensors = [t for t in {id(t): t for t in tensors}.values() if t._real is None]
        self._place = place
        self._parts: list[_Part] = []
        others: list[LazyTensor] = []
        grouped = grouping.known(self.tensors) or grouping.group(self.tensors)
        for group in grouped.groups:
            self._submit(group)
        for at, rows in enumerate(grouped.rest):
            if rows:
                self._parts.append(_Part(at, sorted(rows), None, None))
                others.append(LazyTensor([self.tensors[at]._rows[i] for i in sorted(rows)], (len(rows),)))
        self._others = iter(others)
        self._rest = Making(others, take) if others else None
        self.order = self._rest.order if self._rest else None

    def _submit(self, group: Group) -> None:
        count = len(group.recipes.blob)
        memories = []
        for at, views in zip(group.where, group.rows, strict=True):
            tensor = self.tensors[at]
            memories.append(self._place.memory((len(views), *tensor.shape[-3:]), tensor.dtype))
        form = Form(group.channels, group.files.told is not None, tuple(m.nbytes // count for m, _ in memories))
        job = Job(form, group.files, group.recipes, [supply for _, supply in memories])
        for at, rows, (images, _) in zip(group.where, group.rows, memories, strict=True):
            self._parts.append(_Part(at, rows, job, images))
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
            outputs[part.tensor].append((part.rows, self._finished(part)))
        for tensor, pieces in zip(self.tensors, outputs, strict=True):
            tensor._real = self._joined(tensor, pieces)

    def _finished(self, part: _Part) -> torch.Tensor:
        if part.job is None or part.images is None:
            made = next(self._others)._real
            assert made is not None
            counts.add(counts.SENT, len(part.rows))
            return made.to(self._place.device, non_blocking=True)
        error = part.job.wait()
        if error is not None:
            raise error
        images = self._place.take(part.images)
        bad = self._mend(part, part.job, images) if part.job.skipped else 0
        counts.add(counts.SENT, bad)
        counts.add(counts.PLACED, len(part.rows) - bad)
        counts.add(counts.MADE, len(part.rows) - bad)
        return images

    def _mend(self, part: _Part, job: Job, images: torch.Tensor) -> int:
        """Files that the plan could not make: what is the matter with them, the CPU knows. The others stay.

        Returns:
            How many of the images are the CPU's.
        """
        tensor = self.tensors[part.tensor]
        numbers = torch.arange(len(part.rows)).view(job.count, -1)  # of each file's images
        good = torch.ones(job.count, dtype=torch.bool)
        good[list(job.skipped)] = False
        to, bad = numbers[good].flatten(), numbers[~good].flatten()
        images[to.to(images.device)] = images[: len(to)].clone()  # the plan has closed up what it left out
        again = LazyTensor([tensor._rows[part.rows[n]] for n in bad.tolist()], (len(bad),))
        Making([again]).run()
        assert again._real is not None
        images[bad.to(images.device)] = again._real.to(images.device)
        return len(bad)

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
