# SPDX-License-Identifier: Apache-2.0
"""NumPy adapter: batches as arrays in host memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError
from ..executor.delivery import Delivered
from ..frontends.pipeline import Pipeline
from ..graph.plan import Plan
from ._epochs import EpochLoader, is_label


class Loader(EpochLoader):
    """Iterator over a pipeline's batches as NumPy arrays, one epoch per ``for`` loop.

    Args:
        pipeline: the pipeline; it is built if needed. Its outputs are in host memory.
        output_map: names of the outputs. Batches are then dicts, otherwise tuples (one array if there is one output).
        last_batch_policy: rows of the epoch's last batch. "even" (default, for training) delivers it as it is; all
            shards have the same number of batches and rows. "partial" (for evaluation) delivers every sample exactly
            once over all shards, which may differ by one row. "drop" leaves an incomplete batch out. "fill" completes
            it with the first rows of the next epoch's order.
        size: batches of an epoch, for pipelines without a reader (which otherwise end when their source does).
        background: take batches and make arrays of them on a thread of the loop, one batch ahead, so that ``next()``
            costs some tens of microseconds instead of some hundred. True: from the first batch on. False: never. None
            (default): after eight steps of 5 ms or more in a row at whose ends a finished batch waited, if the pipeline
            has neither a GPU nor functions or sources of the caller. `report` may be one batch ahead of the loop then.

    Rows of one shape become one array ``(N, ...)`` of the output's type, other rows a list of arrays. Integer outputs
    of one element per row (labels) become int64 ``(N,)``. NumPy has no bfloat16: such outputs are their bits as uint16.
    Arrays own their memory; later batches do not overwrite them.

    Raises:
        ArgumentError: an argument is invalid. At the first batch: an output is on a GPU.
    """

    def __init__(
        self, pipeline: Pipeline, output_map: Sequence[str] | None = None, *, last_batch_policy: str = "even",
        size: int | None = None, background: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(pipeline, output_map, last_batch_policy, size, background)

    def _arrays(self, delivered: Delivered, plan: Plan) -> list[Any]:
        arrays = []
        for output, planned in zip(delivered.outputs, plan.outputs, strict=True):
            if planned.on_gpu:
                raise ArgumentError(
                    "`Loader`: expected outputs in host memory for NumPy, got one on a GPU. Use `stoker.torch.Loader` "
                    "or `stoker.jax.Loader`, or remove `device='gpu'`"
                )
            dense = isinstance(output, np.ndarray)
            arrays.append(output.reshape(-1).astype(np.int64) if dense and is_label(output, planned) else output)
        return arrays
