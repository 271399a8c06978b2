# SPDX-License-Identifier: Apache-2.0
"""CuPy adapter: batches as CuPy arrays on a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..contract.types import DType
from ..executor.delivery import Delivered
from ..frontends.pipeline import Pipeline
from ..graph.plan import Plan, PlannedOutput
from ._epochs import EpochLoader, is_label
from ._exchange import as_labels, require_type
from ._missing import missing

try:
    import cupy
except ModuleNotFoundError as error:
    raise missing("cupy-cuda13x", "cupy", error) from error

_SUBSTITUTES = {DType.BFLOAT16: DType.FLOAT16}


class Loader(EpochLoader):
    """Iterator over a pipeline's batches as CuPy arrays, one epoch per ``for`` loop.

    Args:
        pipeline: the pipeline; it is built if needed.
        output_map: names of the outputs. Batches are then dicts, otherwise tuples (one array if there is one output).
        last_batch_policy: rows of the epoch's last batch. "even" (default, for training) delivers it as it is; all
            shards have the same number of batches and rows. "partial" (for evaluation) delivers every sample exactly
            once over all shards, which may differ by one row. "drop" leaves an incomplete batch out. "fill" completes
            it with the first rows of the next epoch's order.
        size: batches of an epoch, for pipelines without a reader (which otherwise end when their source does).
        background: take batches and make arrays of them on a thread of the loop, one batch ahead. ``next()`` then costs
            some tens of microseconds instead of some hundred. `report` may be one batch ahead of the loop.

    An output on a GPU becomes an array in the engine's memory, valid on CuPy's current stream. An output in host memory
    is copied to CuPy's current device. Rows of one shape become one array ``(N, ...)``, other rows a list of arrays.
    Integer outputs of one element per row (labels) become int64 ``(N,)``.

    Raises:
        ArgumentError: an argument is invalid. At the first batch: an output is bfloat16.
    """

    def __init__(
        self, pipeline: Pipeline, output_map: Sequence[str] | None = None, *, last_batch_policy: str = "even",
        size: int | None = None, background: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(pipeline, output_map, last_batch_policy, size, background)

    def _thread_context(self) -> contextlib.AbstractContextManager[Any]:
        return _current(cupy.cuda.Device(), cupy.cuda.get_current_stream())

    def _arrays(self, delivered: Delivered, plan: Plan) -> list[Any]:
        return [_array(x, p) for x, p in zip(delivered.outputs, plan.outputs, strict=True)]


def _array(output: Any, planned: PlannedOutput) -> Any:
    require_type(planned.dtype, _SUBSTITUTES, "CuPy")
    if isinstance(output, list):
        return [_on_gpu(row) for row in output]
    if isinstance(output, np.ndarray) and is_label(output, planned):
        return _on_gpu(as_labels(output))
    array = _on_gpu(output)
    return array.reshape(-1).astype(np.int64) if is_label(array, planned) else array


def _on_gpu(array: Any) -> Any:
    """Return an array on a GPU: the same memory if the output is there, else a copy."""
    return cupy.asarray(array) if isinstance(array, np.ndarray) else cupy.from_dlpack(array)


@contextlib.contextmanager
def _current(device: Any, stream: Any) -> Iterator[None]:
    """Make a device and a stream current on this thread."""
    with device, stream:
        yield
