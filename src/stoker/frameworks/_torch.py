# SPDX-License-Identifier: Apache-2.0
"""PyTorch: batches as tensors, written once, straight into the memory that the tensor has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ..contract.batch import Batch
from ..contract.errors import ArgumentError, StateError
from ..contract.types import DType
from ..executor.execution import Delivered
from ..frontends.pipeline import Pipeline
from ..graph.plan import PlannedOutput

_TORCH = {
    DType.BOOL: torch.bool, DType.UINT8: torch.uint8, DType.UINT16: torch.uint16, DType.UINT32: torch.uint32,
    DType.UINT64: torch.uint64, DType.INT8: torch.int8, DType.INT16: torch.int16, DType.INT32: torch.int32,
    DType.INT64: torch.int64, DType.FLOAT16: torch.float16, DType.FLOAT: torch.float32, DType.FLOAT64: torch.float64,
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

    Rows of one shape become one tensor ``(N, ...)``; otherwise the output is a list of tensors. Integer outputs of one
    element per row (labels) become int64 ``(N,)``.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        output_map: list[str] | tuple[str, ...] | None = None,
        *,
        last_batch_policy: str = "partial",
        size: int | None = None,
        pin_memory: bool = False,
    ) -> None:
        policy = getattr(last_batch_policy, "name", last_batch_policy).lower()
        if policy not in _POLICIES:
            raise ArgumentError(f"`Loader`: expected last_batch_policy in {_POLICIES}, got {last_batch_policy!r}")
        if not isinstance(pipeline, Pipeline):
            raise ArgumentError(f"`Loader`: expected a Pipeline, got {type(pipeline).__name__}")
        self.pipeline = pipeline.build()
        if output_map is not None and len(output_map) != pipeline.num_outputs:
            raise ArgumentError(
                f"`Loader`: expected one name per output ({pipeline.num_outputs}) in `output_map`, got {list(output_map)}"
            )
        self._names = tuple(output_map) if output_map is not None else None
        self._policy = policy
        self._size = size
        self._pin = pin_memory
        self._done = 0  # batches of the running epoch
        self._fresh = True  # at an epoch's start
        self._iterating = 0

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

        A loop that stopped early is not taken up again: the next one starts the next epoch.
        """
        execution = self.pipeline.execution
        if not self._fresh:
            self.pipeline.start_epoch(execution.schedule.epoch + 1 if self._iterating else execution.schedule.epoch)
            self._done = 0
        self._fresh = False
        self._iterating += 1
        return self._batches(self._iterating)

    def _batches(self, turn: int) -> Iterator[Any]:
        limit = len(self) if self._size is not None or self.pipeline.execution.schedule.epoch_size is not None else None
        epoch = self.pipeline.execution.mark.epoch
        while limit is None or self._done < limit:
            if turn != self._iterating:
                raise StateError("another loop over this Loader has begun; a Loader serves one loop at a time")
            delivered = self.pipeline.next(wrap=self._policy == "fill", allocate=self._allocate)
            if delivered is None:
                break
            self._done += 1
            yield self._tensors(delivered)
        if turn == self._iterating:
            self._iterating = 0
            self.pipeline.start_epoch(epoch + 1)
            self._fresh, self._done = True, 0

    def set_epoch(self, epoch: int) -> None:
        """The next loop runs this epoch's order and augmentations."""
        self.pipeline.start_epoch(epoch)
        self._fresh, self._done, self._iterating = True, 0, 0

    def state_dict(self) -> dict[str, Any]:
        """Where the stream stands after the last delivered batch (JSON-able)."""
        return {**self.pipeline.get_state(), "batches": self._done}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`state_dict`; the next loop runs the rest of that epoch."""
        state = dict(state)
        state.pop("batches", 0)
        self.pipeline.set_state(state)
        position = self.pipeline.execution.schedule.position
        self._done = -(-position // self.pipeline.batch_size)
        self._fresh, self._iterating = True, 0

    def close(self) -> None:
        """Stop the pipeline."""
        self.pipeline.close()

    # ---- tensors ----

    def _allocate(self, output: int, planned: PlannedOutput, rows: int) -> tuple[int, Any] | None:
        # torch keeps pinned memory, but gives pageable memory back to the system and faults it in again for every
        # batch, which costs as much as resizing the images. The engine's own blocks are kept, and shared without a copy.
        if not self._pin:
            return None
        assert planned.shape is not None
        tensor = torch.empty((rows, *planned.shape), dtype=_TORCH[planned.dtype], pin_memory=self._pin)
        return tensor.data_ptr(), tensor

    def _tensors(self, delivered: Delivered) -> Any:
        plan = self.pipeline.execution.plan
        assert plan is not None
        tensors = [self._tensor(x, p) for x, p in zip(delivered.outputs, plan.outputs, strict=True)]
        if self._names is not None:
            return dict(zip(self._names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else tuple(tensors)

    def _tensor(self, x: Any, planned: PlannedOutput) -> Any:
        if isinstance(x, list):
            return [torch.from_numpy(row) for row in x]
        tensor = x if isinstance(x, torch.Tensor) else torch.from_numpy(x)
        if planned.dtype in _INTEGERS and tensor.shape[1:] in ((), (1,)):
            return tensor.reshape(-1).to(torch.int64)
        return tensor


def to_torch(batch: Batch) -> Any:
    """A batch as a tensor (rows of one shape) or a list of tensors, sharing its memory."""
    if batch.is_dense:
        return torch.from_numpy(batch.as_array())
    return [torch.from_numpy(row) for row in batch]
