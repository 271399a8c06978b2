# SPDX-License-Identifier: Apache-2.0
"""Paddle adapter: batches as Paddle tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..contract.batch import Batch
from ..contract.types import DType
from ..executor.delivery import Delivered
from ..frontends.pipeline import Pipeline
from ..graph.plan import Plan, PlannedOutput
from ._epochs import EpochLoader, is_label
from ._exchange import as_dlpack, as_labels, require_type
from ._missing import missing

try:
    import paddle
except ModuleNotFoundError as error:
    raise missing("paddlepaddle", "paddle", error) from error

_SUBSTITUTES = {DType.UINT16: DType.INT32, DType.UINT32: DType.INT64, DType.UINT64: DType.FLOAT64}


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
        background: take batches and make arrays of them on a thread of the loop, one batch ahead, so that ``next()``
            costs some tens of microseconds instead of some hundred. True: from the first batch on. False: never. None
            (default): after eight steps of 5 ms or more in a row at whose ends a finished batch waited, if the pipeline
            has neither a GPU nor functions or sources of the caller. `report` may be one batch ahead of the loop then.

    Rows of one shape become one tensor ``(N, ...)``, which shares the engine's memory. Rows of different shapes become
    a list of tensors. Integer outputs of one element per row (labels) become int64 ``(N,)``.

    Raises:
        ArgumentError: an argument is invalid. At the first batch: Paddle lacks an output's type (uint16, uint32,
            uint64).
    """

    def __init__(
        self, pipeline: Pipeline, output_map: Sequence[str] | None = None, *, last_batch_policy: str = "even",
        size: int | None = None, background: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(pipeline, output_map, last_batch_policy, size, background)

    def _arrays(self, delivered: Delivered, plan: Plan) -> list[Any]:
        return [_tensor(x, p) for x, p in zip(delivered.outputs, plan.outputs, strict=True)]


def _tensor(output: Any, planned: PlannedOutput) -> Any:
    if isinstance(output, list):
        return [_shared(row, planned.dtype) for row in output]
    if isinstance(output, np.ndarray) and is_label(output, planned):
        return _shared(as_labels(output), DType.INT64)
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
    require_type(dtype, _SUBSTITUTES, "Paddle")
    return paddle.from_dlpack(as_dlpack(array, dtype))
