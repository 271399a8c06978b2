# SPDX-License-Identifier: Apache-2.0
"""Batches delivered in a GPU's memory, with the same bits as on the CPU.

The GPU materializes images whose steps it supports. The CPU materializes the others, which are then copied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from ....executor.flight import SuppliedMemory
from .. import counts
from ..materialize.materialization import Materialization, Take
from ..tensors.tensor import LazyTensor
from . import grouping
from .grouping import Group
from .plans import Form, Job, Plans


class Destination:
    """Device that receives batches, and the plans that run there.

    Args:
        device: where the tensors are.
        gpu: the number of the GPU, for plans; None runs them on the CPU.
        threads: worker threads of a plan.
    """

    def __init__(self, device: torch.device, gpu: int | None, threads: int) -> None:
        self.device = device
        self.plans = Plans(gpu, threads, grouping.MAX_FILES)

    def allocate(self, shape: tuple[int, ...], dtype: torch.dtype) -> tuple[torch.Tensor, SuppliedMemory]:
        """Return memory for images, and its description for a run that writes there."""
        tensor = torch.empty(shape, dtype=dtype, device=self.device)
        stream = torch.cuda.current_stream(self.device).cuda_stream if tensor.is_cuda else None
        return tensor, SuppliedMemory(tensor.data_ptr(), tensor, stream)

    def take(self, tensor: torch.Tensor) -> torch.Tensor:
        """Let this thread's stream use a tensor that another thread has allocated."""
        if tensor.is_cuda:
            tensor.record_stream(torch.cuda.current_stream(self.device))
        return tensor

    def close(self) -> None:
        """End the threads and plans."""
        self.plans.close()


class _Part(NamedTuple):
    """Rows of a tensor that are materialized together: by a job, or by the CPU if it is None."""

    tensor: int
    rows: list[int]
    job: Job | None
    images: torch.Tensor | None


class GpuMaterialization:
    """Materialization in a GPU's memory; see :class:`~.materialization.Materialization`."""

    def __init__(self, tensors: Sequence[LazyTensor], destination: Destination, take: Take | None = None) -> None:
        self.tensors = [t for t in {id(t): t for t in tensors}.values() if t._materialized is None]
        self._destination = destination
        self._parts: list[_Part] = []
        others: list[LazyTensor] = []
        grouped = grouping.received_groups(self.tensors) or grouping.group(self.tensors)
        for group in grouped.groups:
            self._submit(group)
        for at, rows in enumerate(grouped.rest):
            if rows:
                self._parts.append(_Part(at, sorted(rows), None, None))
                others.append(LazyTensor([self.tensors[at]._rows[i] for i in sorted(rows)], (len(rows),)))
        self._others = iter(others)
        self._rest = Materialization(others, take) if others else None
        self.native_batch = self._rest.native_batch if self._rest else None

    def _submit(self, group: Group) -> None:
        count = len(group.recipes.blob)
        memories = []
        for at, views in zip(group.where, group.rows, strict=True):
            tensor = self.tensors[at]
            memories.append(self._destination.allocate((len(views), *tensor.shape[-3:]), tensor.dtype))
        form = Form(group.channels, group.files.refs is not None, tuple(m.nbytes // count for m, _ in memories))
        job = Job(form, group.files, group.recipes, [supply for _, supply in memories])
        for at, rows, (images, _) in zip(group.where, group.rows, memories, strict=True):
            self._parts.append(_Part(at, rows, job, images))
        self._destination.plans.submit(job)

    @property
    def is_done(self) -> bool:
        """Return whether all writes have ended."""
        result = all(part.job is None or part.job.is_done for part in self._parts)
        return result and (self.native_batch is None or self.native_batch.done)

    @property
    def thread_s(self) -> float:
        """Return the time that native threads have spent on the CPU's part, added over the threads."""
        return self._rest.thread_s if self._rest else 0.0

    @property
    def job_s(self) -> float:
        """Return the time that the finished jobs have taken, added over the jobs."""
        return sum(job.taken_s for job in {id(part.job): part.job for part in self._parts if part.job}.values())

    def finish(self) -> None:
        """Wait for the GPU, and assemble the tensors on the current stream.

        Raises:
            Damaged: Pillow cannot decode a file either. All such files are remembered.
        """
        if self._rest is not None:
            self._rest.finish()
        outputs: list[list[tuple[list[int], torch.Tensor]]] = [[] for _ in self.tensors]
        for part in self._parts:
            outputs[part.tensor].append((part.rows, self._finish_part(part)))
        for tensor, pieces in zip(self.tensors, outputs, strict=True):
            tensor._materialized = self._join_pieces(tensor, pieces)

    def _finish_part(self, part: _Part) -> torch.Tensor:
        if part.job is None or part.images is None:
            result = next(self._others)._materialized
            assert result is not None
            counts.add(counts.TO_GPU, len(part.rows))
            return result.to(self._destination.device, non_blocking=True)
        error = part.job.wait()
        if error is not None:
            raise error
        images = self._destination.take(part.images)
        bad = self._replace_damaged(part, part.job, images) if part.job.skipped else 0
        counts.add(counts.TO_GPU, bad)
        counts.add(counts.ON_GPU, len(part.rows) - bad)
        counts.add(counts.NATIVE, len(part.rows) - bad)
        return images

    def _replace_damaged(self, part: _Part, job: Job, images: torch.Tensor) -> int:
        """Let the CPU materialize the files that the plan could not decode; it finds the reason.

        Returns:
            The number of images that the CPU has materialized.
        """
        tensor = self.tensors[part.tensor]
        numbers = torch.arange(len(part.rows)).view(job.count, -1)  # numbers of each file's images
        good = torch.ones(job.count, dtype=torch.bool)
        good[list(job.skipped)] = False
        to, bad = numbers[good].flatten(), numbers[~good].flatten()
        # the plan has closed the gaps of files that it skipped
        images[to.to(images.device)] = images[: len(to)].clone()
        again = LazyTensor([tensor._rows[part.rows[n]] for n in bad.tolist()], (len(bad),))
        Materialization([again]).run()
        assert again._materialized is not None
        images[bad.to(images.device)] = again._materialized.to(images.device)
        return len(bad)

    def _join_pieces(self, tensor: LazyTensor, pieces: list[tuple[list[int], torch.Tensor]]) -> torch.Tensor:
        shape = tuple(tensor.shape)
        if len(pieces) == 1 and pieces[0][0] == list(range(len(tensor._rows))):
            return pieces[0][1].view(shape)
        out = torch.empty((len(tensor._rows), *shape[-3:]), dtype=tensor.dtype, device=self._destination.device)
        for numbers, result in pieces:
            out[torch.tensor(numbers, device=self._destination.device)] = result
        return out.view(shape)


def pin_batch(data: Any, *, pins: bool) -> Any:
    """Return the batch with pinned CPU tensors if ``pins``; tensors on a GPU stay as they are."""
    if not pins:
        return data
    if isinstance(data, torch.Tensor):
        return data.pin_memory() if data.device.type == "cpu" else data
    if isinstance(data, dict):
        return type(data)((key, pin_batch(value, pins=pins)) for key, value in data.items())
    if isinstance(data, tuple):
        result = [pin_batch(value, pins=pins) for value in data]
        return type(data)(*result) if hasattr(data, "_fields") else type(data)(result)
    if isinstance(data, list):
        return [pin_batch(value, pins=pins) for value in data]
    return data.pin_memory() if hasattr(data, "pin_memory") else data
