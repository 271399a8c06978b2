# SPDX-License-Identifier: Apache-2.0
"""PyTorch: batches as tensors, written once, straight into the memory that the tensor has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
import torch.utils.data
import torch.utils.dlpack

from ..contract.batch import Batch
from ..contract.errors import ArgumentError, StateError
from ..contract.types import DType
from ..executor.delivery import Delivered
from ..executor.flight import Supply
from ..executor.schedule import AtEnd
from ..executor.state import require_entries
from ..frontends.pipeline import Pipeline
from ..graph.plan import PlannedOutput

TORCH_TYPES = {
    DType.BOOL: torch.bool, DType.UINT8: torch.uint8, DType.UINT16: torch.uint16, DType.UINT32: torch.uint32,
    DType.UINT64: torch.uint64, DType.INT8: torch.int8, DType.INT16: torch.int16, DType.INT32: torch.int32,
    DType.INT64: torch.int64, DType.FLOAT16: torch.float16, DType.FLOAT: torch.float32, DType.FLOAT64: torch.float64,
    DType.BFLOAT16: torch.bfloat16,
}  # fmt: skip
_POLICIES = ("partial", "drop", "fill")
_INTEGERS = frozenset({DType.UINT8, DType.UINT16, DType.UINT32, DType.INT8, DType.INT16, DType.INT32, DType.INT64})


class Loader:
    """Iterate over a pipeline's batches as PyTorch tensors, one epoch per ``for`` loop.

    Args:
        pipeline: the pipeline; it is built if need be.
        output_map: names of the outputs; batches are then dicts, else tuples (one tensor if there is one output).
        last_batch_policy: "partial" gives the epoch's last batch as it is, "drop" leaves it out, "fill" completes it
            with the first rows of the next epoch's order.
        size: batches of an epoch, for pipelines without a reader (which otherwise end when their source does).
        pin_memory: page-locked tensors, for asynchronous copies to a GPU.
        ragged: what an output becomes whose rows differ in shape: "list" (of tensors), or "nested" (a nested tensor of
            torch: jagged if only the first axis differs, else strided).
        memory_format: "channels_last" gives images, which must have the layout HWC, as tensors ``(N, C, H, W)`` whose
            channels lie side by side (``torch.channels_last``): the same memory, with other strides. Models in that
            format take them without a conversion.

    Rows of one shape become one tensor ``(N, ...)`` of the output's type, on the device that it is on. Integer outputs
    of one element per row (labels) become int64 ``(N,)``.

    Raises:
        ArgumentError: an argument is none of these, or there is no CUDA to pin memory for.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        output_map: list[str] | tuple[str, ...] | None = None,
        *,
        last_batch_policy: str = "partial",
        size: int | None = None,
        pin_memory: bool = False,
        ragged: str = "list",
        memory_format: Any = None,
    ) -> None:
        if memory_format not in (None, "channels_last", torch.channels_last):
            raise ArgumentError(
                '`Loader`: expected `memory_format` "channels_last" (or torch.channels_last) or None, '
                f"got {memory_format!r}"
            )
        self._channels_last = memory_format is not None
        if ragged not in ("list", "nested"):
            raise ArgumentError(f'`Loader`: expected `ragged` "list" or "nested", got {ragged!r}')
        self._ragged = ragged
        policy = str(getattr(last_batch_policy, "name", last_batch_policy)).lower()
        if policy not in _POLICIES:
            raise ArgumentError(f"`Loader`: expected last_batch_policy in {_POLICIES}, got {last_batch_policy!r}")
        if not isinstance(pipeline, Pipeline):
            raise ArgumentError(f"`Loader`: expected a Pipeline, got {type(pipeline).__name__}")
        if pin_memory and not torch.cuda.is_available():
            raise ArgumentError(
                "`Loader`: expected a machine with CUDA for `pin_memory=True`, got none that torch can use"
            )
        self.pipeline = pipeline.build()
        if output_map is not None and len(output_map) != pipeline.num_outputs:
            raise ArgumentError(
                f"`Loader`: expected one name per output ({pipeline.num_outputs}) in `output_map`, "
                f"got {list(output_map)}"
            )
        self._names = tuple(output_map) if output_map is not None else None
        self._policy = policy
        self._size = size
        self._pin = pin_memory
        self._at_end: AtEnd = "fill" if policy == "fill" else "stop"
        self._done = 0  # batches of the running epoch
        self._fresh = True  # the next loop takes the epoch as it stands
        self._loop = 0  # number of the running loop

    def __len__(self) -> int:
        """Batches of an epoch; TypeError if only the source knows."""
        if self._size is not None:
            return self._size
        rows = self.pipeline.execution.schedule.epoch_size
        if rows is None:
            raise TypeError("this pipeline has no reader, so its length is not known; give `size=`")
        whole, rest = divmod(rows, self.pipeline.batch_size)
        return whole + (1 if rest and self._policy != "drop" else 0)

    def __iter__(self) -> Iterator[Any]:
        """The rest of the running epoch after a restored state, else the next whole epoch.

        The loop begins with its first batch. After a :class:`~stoker.DataError` it goes on with the next batch. A loop
        that was left early is not taken up again: the next one starts the next epoch.

        Raises:
            StateError: while it runs, if another loop has begun or the epoch was set.
        """
        return _Loop(self)

    def _begin(self) -> int:
        if not self._fresh:
            self.pipeline.start_epoch(self.pipeline.execution.mark.epoch + 1)
            self._done = 0
        self._fresh = False
        self._loop += 1
        return self._loop

    def _next(self, loop: int) -> Any:
        if loop != self._loop:
            raise StateError("another loop over this Loader has begun; a Loader serves one loop at a time")
        if self._size is None or self._done < self._size:
            delivered = self.pipeline.next(self._at_end, self._allocate)
            short = self._policy == "drop" and delivered is not None and delivered.asked < self.pipeline.batch_size
            if delivered is not None and not short:
                self._done += 1
                return self._tensors(delivered)
        self.set_epoch(self.pipeline.execution.mark.epoch + 1)
        raise StopIteration

    def set_epoch(self, epoch: int) -> None:
        """The next loop runs this epoch's order and augmentations; a loop that runs is over."""
        self.pipeline.start_epoch(epoch)
        self._fresh, self._done = True, 0
        self._loop += 1

    @property
    def sampler(self) -> _Epochs:
        """For trainers that call ``loader.sampler.set_epoch(epoch)`` before every epoch, as for a DataLoader.

        Where that epoch runs already, as after :meth:`load_state_dict`, it changes nothing.
        """
        return _Epochs(self)

    def state_dict(self) -> dict[str, Any]:
        """Where the stream stands after the last delivered batch: two entries that any checkpoint can hold.

        The pipeline's state is one text, because torch.distributed.checkpoint reads only entries that it knows from
        the object it restores, and what a state holds differs from place to place. It writes an entry that several
        ranks have once: a state that serves one shard alone (contiguous shards, stateful operators) has an entry with
        the shard's number, one that serves any number of shards is the same on all ranks.

        Raises:
            StateError: a source cannot be taken up again, or an operator's own state is not made of JSON's types.
        """
        state = self.pipeline.get_state()
        try:
            return {self._entry: json.dumps(state), "batches": self._done}
        except TypeError as error:
            raise StateError(f"expected operators' states made of JSON's types: {error}") from error

    @property
    def _entry(self) -> str:
        """The name of the pipeline's state among those of all ranks."""
        shard = self.pipeline.execution.own_shard
        return "pipeline" if shard is None else f"pipeline, shard {shard[0]} of {shard[1]}"

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`; the next loop runs the rest of that epoch.

        Raises:
            StateError: it is none, or of another pipeline, data set or seed; the text says what differs.
        """
        require_entries(state, **{self._entry: str, "batches": int})
        self.pipeline.set_state(json.loads(state[self._entry]))
        self._done = int(state["batches"])
        self._fresh = True
        self._loop += 1

    def close(self) -> None:
        """Stop the pipeline."""
        self.pipeline.close()

    # ---- tensors ----

    def _allocate(self, output: int, planned: PlannedOutput, rows: int) -> Supply | None:
        if planned.on_gpu:
            assert planned.shape is not None
            gpu = torch.device("cuda", self.pipeline.device_id or 0)
            tensor = torch.empty((rows, *planned.shape), dtype=TORCH_TYPES[planned.dtype], device=gpu)
            # The allocator gives what work on this stream may still read: the pipeline writes after that work.
            return Supply(tensor.data_ptr(), tensor, torch.cuda.current_stream(gpu).cuda_stream)
        # torch keeps pinned memory, but gives pageable memory back to the system and faults it in again for every
        # batch, which costs as much as resizing the images. The engine's own blocks are kept and shared, not copied.
        if not self._pin:
            return None
        assert planned.shape is not None
        tensor = torch.empty((rows, *planned.shape), dtype=TORCH_TYPES[planned.dtype], pin_memory=self._pin)
        return Supply(tensor.data_ptr(), tensor)

    def _tensors(self, delivered: Delivered) -> Any:
        plan = self.pipeline.execution.plan
        assert plan is not None
        tensors = [self._tensor(x, p) for x, p in zip(delivered.outputs, plan.outputs, strict=True)]
        if self._names is not None:
            return dict(zip(self._names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else tuple(tensors)

    def _tensor(self, x: Any, planned: PlannedOutput) -> Any:
        if isinstance(x, list):
            rows = [self._own(row, planned.dtype) for row in x]
            if self._channels_last and planned.layout in ("HWC", "CHW"):
                rows = [_channels_last(row, planned.layout) for row in rows]
            return rows if self._ragged == "list" else _nested(rows)
        tensor = x if isinstance(x, torch.Tensor) else self._own(x, planned.dtype)
        if self._channels_last and planned.layout in ("HWC", "CHW"):
            return _channels_last(tensor, planned.layout)
        if planned.dtype in _INTEGERS and tensor.shape[1:] in ((), (1,)):
            return tensor.reshape(-1).to(torch.int64)
        return tensor

    def _own(self, array: Any, dtype: DType) -> Any:
        tensor = _shared(array, dtype)
        return tensor.pin_memory() if self._pin and isinstance(array, np.ndarray) else tensor


def _channels_last(tensor: Any, layout: str) -> Any:
    """Images (one, or a batch) with the channels' axis before the others, in the same memory."""
    if layout != "HWC":
        raise ArgumentError(
            f'`Loader`: expected images of the layout HWC for memory_format="channels_last", got {layout}. Ask for it '
            'in the pipeline, as in `crop_mirror_normalize(output_layout="HWC")`'
        )
    return tensor.movedim(-1, -3)


def _nested(rows: list[Any]) -> Any:
    one = len({tuple(r.shape[1:]) for r in rows}) == 1 and rows[0].dim() > 0
    return torch.nested.nested_tensor(rows, layout=torch.jagged if one else torch.strided)


class Dataset(torch.utils.data.IterableDataset[Any]):
    """Batches of a pipeline as a data set, for trainers that want a ``torch.utils.data.DataLoader``.

    ``DataLoader(Dataset(pipeline), batch_size=None)``: every item is a whole batch, one epoch per loop. With
    ``num_workers=0`` (best: the pipeline has threads of its own) it may be a pipeline. For worker processes it is a
    function ``define(shard_id, num_shards)`` that makes the pipeline of one shard; every worker calls it for its own.

    Args:
        pipeline: a pipeline, or a function of (shard_id, num_shards) that makes one.
        options: as for :class:`Loader`.

    Raises:
        ArgumentError: it is neither; in a worker process, when the first batch is asked for: it is a pipeline.
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
        """The loader behind it, in this process."""
        if self._loader is None:
            worker = torch.utils.data.get_worker_info()
            place = (0, 1) if worker is None else (worker.id, worker.num_workers)
            if isinstance(self._pipeline, Pipeline):
                if place[1] > 1:
                    raise ArgumentError(
                        f"`Dataset`: expected a function `define(shard_id, num_shards)` for {place[1]} worker "
                        "processes, got a pipeline, which every worker would run whole"
                    )
                made = self._pipeline
            else:
                made = self._pipeline(*place)
            args, options = self._arguments
            self._loader = Loader(made, *args, **options)
        return self._loader

    def __iter__(self) -> Iterator[Any]:
        if torch.utils.data.get_worker_info() is None:
            return iter(self.loader)
        self.loader.set_epoch(self._epoch)  # a worker is a copy that knows the epoch at which it was made
        self._epoch += 1
        return iter(self.loader)

    def __len__(self) -> int:
        """Batches of an epoch, of all workers together."""
        if not isinstance(self._pipeline, Pipeline) and torch.utils.data.get_worker_info() is None:
            raise TypeError("the number of batches depends on the number of workers")
        return len(self.loader)

    def set_epoch(self, epoch: int) -> None:
        """The next loop runs this epoch. With worker processes, call it before every loop, as with samplers."""
        self._epoch = epoch
        if self._loader is not None:
            self._loader.set_epoch(epoch)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loader": None}

    def close(self) -> None:
        """Stop the pipeline of this process."""
        if self._loader is not None:
            self._loader.close()


class _Epochs:
    """Which epoch a loader runs."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def set_epoch(self, epoch: int) -> None:
        if epoch != self._loader.pipeline.execution.mark.epoch:
            self._loader.set_epoch(epoch)


class _Loop:
    """One pass over a loader. A class and not a generator, which an error would end."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._number = 0
        self._over = False

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._over:
            raise StopIteration
        if not self._number:
            self._number = self._loader._begin()
        try:
            return self._loader._next(self._number)
        except StopIteration:
            self._over = True
            raise


def to_torch(batch: Batch) -> Any:
    """A batch as a tensor ``(N, ...)`` (rows of one shape) or a list of N tensors, sharing its memory, where that is.

    Their type is the batch's, bfloat16 too.
    """
    return _shared(batch.whole, batch.dtype) if batch.is_dense else [_shared(row, batch.dtype) for row in batch]


def _shared(array: Any, dtype: DType) -> Any:
    """An output's array as a tensor in the same memory."""
    if not isinstance(array, np.ndarray):
        return torch.utils.dlpack.from_dlpack(array)
    if dtype == DType.BFLOAT16:  # of which NumPy has the bits
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
