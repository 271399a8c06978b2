# SPDX-License-Identifier: Apache-2.0
"""Paddle adapter: batches as Paddle tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import paddle

from ..contract.batch import Batch
from ..contract.errors import ArgumentError
from ..contract.types import DType
from ..executor.delivery import Delivered
from ..frontends.pipeline import Pipeline
from ..graph.plan import Plan, PlannedOutput
from ._epochs import EpochLoader, is_label
from ._exchange import as_dlpack

_ABSENT = frozenset({DType.UINT16, DType.UINT32, DType.UINT64})


class Loader(EpochLoader):
    """Iterator over a pipeline's batches as Paddle tensors, one epoch per ``for`` loop.

    Args:
        pipeline: the pipeline; it is built if needed.
        output_map: names of the outputs. Batches are then dicts, otherwise tuples (one tensor if there is one output).
        last_batch_policy: rows of the epoch's last batch. "even" (default, for training) delivers it as it is; all
            shards have the same number of batches and rows. "partial" (for evaluation) delivers every sample exactly
            once over all shards, which may differ by one row. "drop" leaves an incomplete batch out. "fill" completes
            it with the first rows of the next epoch's order.
        size: batches of an epoch, for pipelines without a reader (which otherwise end when their source does).

    Rows of one shape become one tensor ``(N, ...)``, which shares the engine's memory. Rows of different shapes become
    a list of tensors. Integer outputs of one element per row (labels) become int64 ``(N,)``.

    Raises:
        ArgumentError: an argument is invalid. At the first batch: Paddle lacks an output's type (uint16, uint32,
            uint64).
    """

    def __init__(
        self, pipeline: Pipeline, output_map: Sequence[str] | None = None, *, last_batch_policy: str = "even",
        size: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(pipeline, output_map, last_batch_policy, size)

    def _arrays(self, delivered: Delivered, plan: Plan) -> list[Any]:
        return [_tensor(x, p) for x, p in zip(delivered.outputs, plan.outputs, strict=True)]


def _tensor(output: Any, planned: PlannedOutput) -> Any:
    if isinstance(output, list):
        return [_shared(row, planned.dtype) for row in output]
    if is_label(output, planned) and not hasattr(output, "pointer"):
        return paddle.to_tensor(output.reshape(-1).astype("int64"), place=paddle.CPUPlace())
    tensor = _shared(output, planned.dtype)
    return tensor.reshape([-1]).astype("int64") if is_label(output, planned) else tensor


def to_paddle(batch: Batch) -> Any:
    """Convert a batch to Paddle, sharing its memory.

    Args:
        batch: the batch; one on a GPU gives tensors on that GPU.

    Returns:
        A tensor ``(N, ...)`` if the rows have one shape, else a list of N tensors.

    Raises:
        ArgumentError: Paddle lacks the batch's type.
    """
    return _shared(batch.whole, batch.dtype) if batch.is_dense else [_shared(row, batch.dtype) for row in batch]


def _shared(array: Any, dtype: DType) -> Any:
    """Return an output's array as a tensor in the same memory."""
    if dtype in _ABSENT:
        signed = DType.INT64 if dtype == DType.UINT32 else DType.INT32 if dtype == DType.UINT16 else DType.FLOAT64
        raise ArgumentError(
            f"`Loader`: expected a type that Paddle has, got an output of {dtype}. Add `fn.cast(x, "
            f"dtype=types.{signed.name})` to the pipeline"
        )
    return paddle.from_dlpack(as_dlpack(array, dtype))
