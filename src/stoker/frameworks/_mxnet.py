# SPDX-License-Identifier: Apache-2.0
"""MXNet adapter: batches as ``mx.nd.NDArray`` in host memory.

MXNet is archived upstream. This adapter exists as long as its last release, 1.9.1, can be imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError, DataError
from ..contract.types import DType
from ..executor.delivery import Delivered
from ..frontends.pipeline import Pipeline
from ..graph.plan import Plan, PlannedOutput
from ._epochs import EpochLoader, is_label
from ._exchange import as_capsule, as_labels, require_type

try:
    import mxnet
except (ImportError, AttributeError) as error:  # AttributeError: MXNet uses names that NumPy has removed
    raise ImportError(
        f"`stoker.mxnet`: expected MXNet 1.9.1 with NumPy 1, got: {error}. Install the extra `mxnet`, and write "
        "`import numpy; numpy.bool = numpy.bool_` before this import: MXNet uses that name, which NumPy 1.24 removed",
        name="mxnet",
    ) from error

_SUBSTITUTES = {
    DType.BOOL: DType.UINT8, DType.UINT16: DType.INT32, DType.UINT32: DType.INT64, DType.UINT64: DType.FLOAT64,
    DType.INT16: DType.INT32, DType.BFLOAT16: DType.FLOAT,
}  # fmt: skip


class Loader(EpochLoader):
    """Iterator over a pipeline's batches as MXNet arrays in host memory, one epoch per ``for`` loop.

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

    Rows of one shape become one ``mx.nd.NDArray`` ``(N, ...)``, which shares the engine's memory. Rows of different
    shapes become a list of arrays. Integer outputs of one element per row (labels) become int64 ``(N,)``.

    Raises:
        ArgumentError: an argument is invalid. At the first batch: an output is on a GPU, or MXNet lacks its type (bool,
            int16, uint16, uint32, uint64, bfloat16).
        DataError: an output has no elements, for which MXNet's arrays have no shape.
    """

    def __init__(
        self, pipeline: Pipeline, output_map: Sequence[str] | None = None, *, last_batch_policy: str = "even",
        size: int | None = None, background: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(pipeline, output_map, last_batch_policy, size, background)

    def _arrays(self, delivered: Delivered, plan: Plan) -> list[Any]:
        return [_array(x, p) for x, p in zip(delivered.outputs, plan.outputs, strict=True)]


def _array(output: Any, planned: PlannedOutput) -> Any:
    if planned.on_gpu:
        raise ArgumentError(
            "`Loader`: expected outputs in host memory for MXNet, got one on a GPU. Remove `device='gpu'`, or use "
            "another framework's loader"
        )
    if isinstance(output, list):
        return [_shared(row, planned.dtype) for row in output]
    if is_label(output, planned):
        return _shared(as_labels(output), DType.INT64)
    return _shared(output, planned.dtype)


def _shared(array: np.ndarray[Any, Any], dtype: DType) -> Any:
    """Return an output's array as an MXNet array in the same memory."""
    require_type(dtype, _SUBSTITUTES, "MXNet")
    if not array.size:
        raise DataError(
            f"`Loader`: expected outputs with elements, because MXNet takes an extent of 0 as unknown, got the shape "
            f"{array.shape}"
        )
    return mxnet.nd.from_dlpack(as_capsule(array, dtype))
