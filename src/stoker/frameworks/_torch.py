# SPDX-License-Identifier: Apache-2.0
"""PyTorch adapter: the engine writes batches directly into the tensors' memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..contract.batch import Batch
from ..contract.errors import ArgumentError, StateError
from ..contract.text import brief
from ..contract.types import DType
from ..executor.delivery import Delivered
from ..executor.flight import SuppliedMemory
from ..frontends.pipeline import Pipeline
from ..graph.plan import Plan, PlannedOutput
from ..native import _native
from ._epochs import EpochLoader, is_label
from ._missing import missing

try:
    import torch
    import torch.utils.data
    import torch.utils.dlpack

    from ._torch_padding import pad, pad_on_gpu
except ModuleNotFoundError as error:
    raise missing("torch", "torch", error) from error

TORCH_TYPES = {
    DType.BOOL: torch.bool, DType.UINT8: torch.uint8, DType.UINT16: torch.uint16, DType.UINT32: torch.uint32,
    DType.UINT64: torch.uint64, DType.INT8: torch.int8, DType.INT16: torch.int16, DType.INT32: torch.int32,
    DType.INT64: torch.int64, DType.FLOAT16: torch.float16, DType.FLOAT: torch.float32, DType.FLOAT64: torch.float64,
    DType.BFLOAT16: torch.bfloat16,
}  # fmt: skip


class Padded(NamedTuple):
    """Rows of different shapes as one tensor.

    Attributes:
        data: ``(N, ...)``, each axis as long as that of the longest row, on the output's device. A row is at the
            beginning of its part; the rest is the loader's ``padding_value``.
        lengths: int64 on the CPU: ``(N,)``, the rows' extents along their axis if they have one axis, or along the axis
            t of the layout (spectrograms); otherwise ``(N, axes)``, all extents. In pinned memory if the data are on a
            GPU.
    """

    data: torch.Tensor
    lengths: torch.Tensor


class Loader(EpochLoader):
    """Iterator over a pipeline's batches as PyTorch tensors, one epoch per ``for`` loop.

    Args:
        pipeline: the pipeline; it is built if needed.
        output_map: names of the outputs. Batches are then dicts, otherwise tuples (one tensor if there is one output).
        last_batch_policy: rows of the epoch's last batch. "even" (default, for training) delivers it as it is; all
            shards have the same number of batches and rows, because a shard that lacks a row takes one of another
            shard. "partial" (for evaluation) delivers every sample of the epoch exactly once over all shards, as
            ``LastBatchPolicy.PARTIAL`` of NVIDIA DALI does; shards may differ by one row, and so by one batch. "drop"
            leaves an incomplete batch out. "fill" completes it with the first rows of the next epoch's order.
        size: batches of an epoch, for pipelines without a reader (which otherwise end when their source does).
        background: take batches and make tensors of them on a thread of the loop, one batch ahead, so that ``next()``
            costs some tens of microseconds instead of some hundred. True: from the first batch on; the consumer's
            stream of tensors on a GPU is the one that is current then. False: never. None (default): after eight steps
            of 5 ms or more in a row at whose ends a finished batch waited, if the pipeline has neither a GPU nor
            functions or sources of the caller. `report` may be one batch ahead of the loop then.
        pin_memory: return page-locked tensors, for asynchronous copies to a GPU.
        ragged: form of an output whose rows differ in shape: "list" (of tensors), "nested" (a nested tensor of torch:
            jagged if only the first axis differs, else strided), or "padded" (a :class:`Padded`: one tensor, filled up
            after the rows, and the rows' lengths). An output whose rows may differ is a :class:`Padded` in every
            batch, also if the rows of a batch have one shape.
        padding_value: the number that fills up rows, with ``ragged="padded"``.
        memory_format: "channels_last" returns images, which must have the layout HWC, as tensors ``(N, C, H, W)`` with
            adjacent channels (``torch.channels_last``): the same memory with other strides. Models in that format take
            them without a conversion.

    For trainers (PyTorch Lightning, Hugging Face, Accelerate) a loader has the attributes of a
    ``torch.utils.data.DataLoader`` without workers: ``dataset``, ``sampler``, ``batch_sampler``, ``collate_fn``,
    ``drop_last`` and the like. ``len(loader.dataset)`` is the number of rows of an epoch. ``batch_size`` is None,
    as for every DataLoader with a batch sampler.

    Rows of one shape become one tensor ``(N, ...)`` of the output's type, on the output's device. Integer outputs of
    one element per row (labels) become int64 ``(N,)``.

    Several threads may take batches from one loop: each batch goes to one of them.

    Raises:
        ArgumentError: an argument is invalid, or memory is to be pinned without CUDA.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        output_map: list[str] | tuple[str, ...] | None = None,
        *,
        last_batch_policy: str = "even",
        size: int | None = None,
        background: bool | None = None,
        pin_memory: bool = False,
        ragged: str = "list",
        memory_format: Any = None,
        padding_value: float = 0,
    ) -> None:
        last = memory_format is torch.channels_last or (
            isinstance(memory_format, str) and memory_format == "channels_last"
        )
        if memory_format is not None and not last:
            raise ArgumentError(
                '`Loader`: expected `memory_format` "channels_last" (or torch.channels_last) or None, '
                f"got {brief(memory_format)}"
            )
        self._channels_last = memory_format is not None
        if not isinstance(ragged, str) or ragged not in ("list", "nested", "padded"):
            raise ArgumentError(f'`Loader`: expected `ragged` "list", "nested" or "padded", got {brief(ragged)}')
        if isinstance(padding_value, bool) or not isinstance(padding_value, (int, float)):
            raise ArgumentError(f"`Loader`: expected a number as `padding_value`, got {brief(padding_value)}")
        if padding_value and ragged != "padded":
            raise ArgumentError('`Loader`: expected `padding_value` together with `ragged="padded"` only')
        self._ragged, self._padding_value = ragged, padding_value
        if not isinstance(pin_memory, bool):
            raise ArgumentError(f"`Loader`: expected `pin_memory` True or False, got {brief(pin_memory)}")
        if pin_memory and not torch.cuda.is_available():
            raise ArgumentError(
                "`Loader`: expected a machine with CUDA for `pin_memory=True`, got none that torch can use"
            )
        super().__init__(pipeline, output_map, last_batch_policy, size, background)
        self._pin = pin_memory
        self._numbered: tuple[Iterator[Any] | None, int] = None, 0  # loop of `batch_sampler`, and its delivered batches

    # ---- attributes of a DataLoader without workers whose batch sampler numbers the batches ----

    batch_size = worker_init_fn = generator = multiprocessing_context = prefetch_factor = None
    num_workers = timeout = 0
    persistent_workers = False

    @property
    def batch_sampler(self) -> _BatchNumbers:
        """Return the numbers of the batches. A trainer that skips batches wraps this sampler."""
        return _BatchNumbers(self)

    @property
    def collate_fn(self) -> Callable[[list[Any]], Any]:
        """Return a function that takes the only element of a list: one item of the data set is a whole batch."""
        return _only

    @property
    def drop_last(self) -> bool:
        """Return whether an incomplete last batch is left out."""
        return self._policy == "drop"

    @property
    def pin_memory(self) -> bool:
        """Return whether the tensors are page-locked."""
        return self._pin

    @property
    def dataset(self) -> _Batches:
        """Return the batches as a data set, for trainers that make a ``DataLoader`` of it to skip batches.

        Its length is the number of rows.
        """
        return _Batches(self)

    @property
    def sampler(self) -> _Epochs:
        """Return an object with ``set_epoch``, for trainers that call ``loader.sampler.set_epoch(epoch)`` before every
        epoch.

        The call has no effect if that epoch is current already, as after :meth:`load_state_dict`.
        """
        return _Epochs(self)

    # ---- tensors ----

    def _thread_context(self) -> contextlib.AbstractContextManager[Any]:
        if not torch.cuda.is_available():
            return contextlib.nullcontext()
        if self.pipeline.execution.gpu is None:
            # Locking pages makes a context on the thread's device, and a new thread's device is GPU 0 on every rank.
            return torch.cuda.device(torch.cuda.current_device()) if self._pin else contextlib.nullcontext()
        return torch.cuda.stream(torch.cuda.current_stream(self.pipeline.device_id or 0))

    def _allocate(self, output: int, planned: PlannedOutput, rows: int) -> SuppliedMemory | None:
        if planned.on_gpu:
            assert planned.shape is not None
            gpu = torch.device("cuda", self.pipeline.device_id or 0)
            tensor = torch.empty((rows, *planned.shape), dtype=TORCH_TYPES[planned.dtype], device=gpu)
            # Work on this stream may still read the allocator's memory, so the pipeline writes after that work.
            return SuppliedMemory(tensor.data_ptr(), tensor, torch.cuda.current_stream(gpu).cuda_stream)
        # torch caches pinned memory, but releases pageable memory to the system and faults it in again for every
        # batch, which costs as much as resizing the images. The engine's own blocks are pooled and shared instead.
        if not self._pin:
            return None
        assert planned.shape is not None
        tensor = torch.empty((rows, *planned.shape), dtype=TORCH_TYPES[planned.dtype], pin_memory=self._pin)
        return SuppliedMemory(tensor.data_ptr(), tensor)

    def _arrays(self, delivered: Delivered, plan: Plan) -> list[Any]:
        return [self._tensor(x, p) for x, p in zip(delivered.outputs, plan.outputs, strict=True)]

    def _tensor(self, x: Any, planned: PlannedOutput) -> Any:
        if self._ragged == "padded" and planned.rank and (planned.shape is None or planned.counted):
            return self._padded(x, planned)
        if isinstance(x, list):
            own = self._own if self._ragged == "list" else _shared  # a nested tensor copies its rows
            rows = [own(row, planned.dtype) for row in x]
            if self._channels_last and planned.layout in ("HWC", "CHW"):
                rows = [_channels_last(row, planned.layout) for row in rows]
            return rows if self._ragged == "list" else _nested(rows, self._pin)
        tensor = x if isinstance(x, torch.Tensor) else self._own(x, planned.dtype)
        if self._channels_last and planned.layout in ("HWC", "CHW"):
            return _channels_last(tensor, planned.layout)
        if is_label(tensor, planned):
            labels = tensor.reshape(-1)
            if self._pin and not labels.is_cuda and labels.dtype != torch.int64:
                return torch.empty(labels.shape, dtype=torch.int64, pin_memory=True).copy_(labels)
            return labels.to(torch.int64)
        return tensor

    def _padded(self, x: Any, planned: PlannedOutput) -> Padded:
        """Return an output as one tensor, which is filled up after each row."""
        dtype = TORCH_TYPES[planned.dtype]
        if not isinstance(x, list):  # rows of one shape
            data = x if isinstance(x, torch.Tensor) else self._own(x, planned.dtype)
            extents = torch.tensor(data.shape[1:], dtype=torch.int64)[:, None].expand(-1, len(data))
        elif isinstance(x[0], _native.gpu.DeviceArray) and x[0].device_id >= 0:
            data, extents = pad_on_gpu(x, dtype, self._padding_value)
        else:
            data, extents = pad([_shared(row, planned.dtype) for row in x], dtype, self._padding_value, pin=self._pin)
        axis = 0 if planned.rank == 1 else planned.layout.find("t")
        lengths = (extents[axis] if axis >= 0 else extents.T).contiguous()
        return Padded(data, lengths.pin_memory() if self._pin or data.is_cuda else lengths)

    def _own(self, array: Any, dtype: DType) -> Any:
        tensor = _shared(array, dtype)
        return tensor.pin_memory() if self._pin and isinstance(array, np.ndarray) else tensor


def _channels_last(tensor: Any, layout: str) -> Any:
    """Return images (one, or a batch) with the channel axis before the others, in the same memory."""
    if layout != "HWC":
        raise ArgumentError(
            f'`Loader`: expected images of the layout HWC for memory_format="channels_last", got {layout}. Ask for it '
            'in the pipeline, as in `crop_mirror_normalize(output_layout="HWC")`'
        )
    return tensor.movedim(-1, -3)


def _nested(rows: list[Any], pin: bool) -> Any:
    one = len({tuple(r.shape[1:]) for r in rows}) == 1 and rows[0].dim() > 0
    layout = torch.jagged if one else torch.strided
    return torch.nested.nested_tensor(rows, layout=layout, pin_memory=pin and not rows[0].is_cuda)


class Dataset(torch.utils.data.IterableDataset[Any]):
    """Batches of a pipeline as a data set, for trainers that need a ``torch.utils.data.DataLoader``.

    ``DataLoader(Dataset(pipeline), batch_size=None)``: every item is a whole batch, one epoch per loop. With
    ``num_workers=0`` (recommended: the pipeline has its own threads) the argument may be a pipeline. With worker
    processes it must be a function ``define(shard_id, num_shards)`` that creates the pipeline of one shard. Every
    worker calls it for its own shard.

    Args:
        pipeline: a pipeline, or a function of (shard_id, num_shards) that creates one.
        *args: further arguments of :class:`Loader`, by position.
        **options: arguments of :class:`Loader`, by name.

    Raises:
        ArgumentError: the argument is neither. In a worker process, at the first batch: the argument is a pipeline.
    """

    def __init__(self, pipeline: Pipeline | Callable[[int, int], Pipeline], *args: Any, **options: Any) -> None:
        super().__init__()
        if not isinstance(pipeline, Pipeline) and not callable(pipeline):
            raise ArgumentError(
                f"`Dataset`: expected a Pipeline or a function that makes one, got {type(pipeline).__name__}"
            )
        self._pipeline = pipeline
        self._arguments = (args, options)
        self._epoch = 0
        self._loader: Loader | None = None

    @property
    def loader(self) -> Loader:
        """Return this process's loader."""
        if self._loader is None:
            worker = torch.utils.data.get_worker_info()
            place = (0, 1) if worker is None else (worker.id, worker.num_workers)
            if isinstance(self._pipeline, Pipeline):
                if place[1] > 1:
                    raise ArgumentError(
                        f"`Dataset`: expected a function `define(shard_id, num_shards)` for {place[1]} worker "
                        "processes, got a pipeline, which every worker would run whole"
                    )
                pipeline = self._pipeline
            else:
                pipeline = self._pipeline(*place)
            args, options = self._arguments
            self._loader = Loader(pipeline, *args, **options)
        return self._loader

    def __iter__(self) -> Iterator[Any]:
        if torch.utils.data.get_worker_info() is None:
            return iter(self.loader)
        self.loader.set_epoch(self._epoch)  # a worker's copy has the epoch at which it was created
        self._epoch += 1
        return iter(self.loader)

    def __len__(self) -> int:
        """Return the number of batches in an epoch, over all workers."""
        if not isinstance(self._pipeline, Pipeline) and torch.utils.data.get_worker_info() is None:
            raise TypeError("the number of batches depends on the number of workers")
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next loop. With worker processes, call it before every loop, as with samplers.

        Args:
            epoch: number of the epoch, from 0.
        """
        self._epoch = epoch
        if self._loader is not None:
            self._loader.set_epoch(epoch)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loader": None}

    def close(self) -> None:
        """Stop the pipeline of this process."""
        if self._loader is not None:
            self._loader.close()


class _Batches(torch.utils.data.Dataset[Any]):
    """Batches of a loader as a data set, in the order of :class:`_BatchNumbers`. Its length is the number of rows."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getitem__(self, number: int) -> Any:
        """Return batch ``number`` of the loop that :class:`_BatchNumbers` began; batches before it are skipped.

        Raises:
            StateError: the batch was delivered before, or no loop has begun.
        """
        with self._loader._lock:
            loop, delivered = self._loader._numbered
            if loop is None or number < delivered:
                where = "no loop over it has begun" if loop is None else f"expected batch {delivered} or a later one"
                raise StateError(
                    f"the batches of a Loader come in the order of its `batch_sampler`: {where}, got a request for "
                    f"batch {number}"
                )
            for _ in range(number - delivered):
                next(loop)
            self._loader._numbered = loop, number + 1
            return next(loop)

    def __len__(self) -> int:
        """Return the rows of an epoch of this shard.

        Raises:
            TypeError: only the source knows the number.
        """
        rows = self._loader.pipeline.execution.schedule.epoch_size
        if rows is None:
            raise TypeError("this pipeline has no reader, so the number of its rows is not known")
        return rows


class _BatchNumbers:
    """Batch sampler of a loader: lists of one batch number each."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __iter__(self) -> Iterator[list[int]]:
        """Begin a loop over the loader and yield the numbers of its batches."""
        self._loader._numbered = iter(self._loader), 0
        for number in range(len(self._loader)):
            yield [number]

    def __len__(self) -> int:
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch of the next loop, for trainers that call it after they have wrapped the sampler."""
        self._loader.set_epoch(epoch)


def _only(items: list[Any]) -> Any:
    """Collate a list of one batch."""
    return items[0]


class _Epochs:
    """Sampler interface of a loader: sets its epoch."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def set_epoch(self, epoch: int) -> None:
        if epoch != self._loader.pipeline.execution.mark.epoch:
            self._loader.set_epoch(epoch)


def to_torch(batch: Batch) -> Any:
    """Convert a batch to PyTorch, sharing its memory.

    Args:
        batch: the batch; one on a GPU gives tensors on that GPU.

    Returns:
        A tensor ``(N, ...)`` if the rows have one shape, else a list of N tensors. Their type is the batch's, including
        bfloat16.
    """
    return _shared(batch.whole, batch.dtype) if batch.is_dense else [_shared(row, batch.dtype) for row in batch]


def _shared(array: Any, dtype: DType) -> Any:
    """Return an output's array as a tensor in the same memory."""
    if not isinstance(array, np.ndarray):
        return torch.utils.dlpack.from_dlpack(array)
    if dtype == DType.BFLOAT16:  # NumPy holds bfloat16 as bits
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
