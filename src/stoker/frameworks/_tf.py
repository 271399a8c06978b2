# SPDX-License-Identifier: Apache-2.0
"""TensorFlow adapter: batches as eager tensors, and as a ``tf.data.Dataset``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError, DataError
from ..contract.text import brief
from ..contract.types import DType
from ..executor.delivery import Delivered
from ..frontends.pipeline import Pipeline
from ..graph.plan import Plan, PlannedOutput
from ._epochs import EpochLoader, is_integer, is_label
from ._exchange import as_capsule, as_labels, empty
from ._missing import missing

try:
    import tensorflow as tf
except ModuleNotFoundError as error:
    raise missing("tensorflow", "tf", error) from error

TF_TYPES = {
    DType.BOOL: tf.bool, DType.UINT8: tf.uint8, DType.UINT16: tf.uint16, DType.UINT32: tf.uint32,
    DType.UINT64: tf.uint64, DType.INT8: tf.int8, DType.INT16: tf.int16, DType.INT32: tf.int32,
    DType.INT64: tf.int64, DType.FLOAT16: tf.float16, DType.FLOAT: tf.float32, DType.FLOAT64: tf.float64,
    DType.BFLOAT16: tf.bfloat16,
}  # fmt: skip


class Loader(EpochLoader):
    """Iterator over a pipeline's batches as TensorFlow tensors, one epoch per ``for`` loop.

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
    a ``tf.RaggedTensor`` whose last axis is uniform, such as the channels of images. Integer outputs of one element
    per row (labels) become int64 ``(N,)``.

    Raises:
        ArgumentError: an argument is invalid.
        DataError: rows of different shapes differ in their last axis too.
    """

    def __init__(
        self, pipeline: Pipeline, output_map: Sequence[str] | None = None, *, last_batch_policy: str = "even",
        size: int | None = None, background: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(pipeline, output_map, last_batch_policy, size, background)

    def _arrays(self, delivered: Delivered, plan: Plan) -> list[Any]:
        return [_tensor(x, p) for x, p in zip(delivered.outputs, plan.outputs, strict=True)]

    @property
    def element_spec(self) -> Any:
        """Return the types and shapes of a batch as TensorFlow's specifications, in the structure of a batch.

        Raises:
            ArgumentError: only the first batch reveals the types.
        """
        plan = self.pipeline.execution.plan
        if plan is None:
            raise ArgumentError(
                "`Loader`: expected outputs whose types are known before the first batch, got a Python function "
                "without declared types. Declare them, as with `output_dtypes` and `output_ndims`"
            )
        return self._named([_spec(p) for p in plan.outputs])


def dataset(pipeline: Pipeline | Loader, output_map: Sequence[str] | None = None, **options: Any) -> Any:
    """Return the batches of a pipeline as a ``tf.data.Dataset``, for ``model.fit`` of Keras and ``tf.function``.

    Every iteration over the data set is one epoch. The data set takes a batch when it is asked for one, and not ahead:
    the pipeline prefetches by itself. So the state of a :class:`Loader` is the position after the last batch that was
    taken from the data set; save ``loader.state_dict()`` with the model. ``tf.train.Checkpoint`` and SavedModel cannot
    hold the data set itself.

    Keras warns at the end of every epoch of a data set whose length is not known. A data set of a pipeline has a
    length (except with "partial", and for pipelines without a reader); that of a loader, which may continue in the
    middle of an epoch, has none.

    Args:
        pipeline: a pipeline, or a loader whose position is to be saved.
        output_map: names of the outputs, if the first argument is a pipeline.
        **options: further arguments of :class:`Loader`.

    Raises:
        ArgumentError: an argument is invalid, or only the first batch reveals the types.
    """
    if isinstance(pipeline, Loader):
        if output_map is not None or options:
            raise ArgumentError("`dataset`: expected a Loader alone, which has its arguments, got further ones")
        loader = pipeline
    elif isinstance(pipeline, Pipeline):
        loader = Loader(pipeline, output_map, **options)
    else:
        raise ArgumentError(f"`dataset`: expected a Pipeline or a Loader, got {brief(pipeline)}")

    def epoch() -> Iterator[Any]:
        return iter(loader)

    data = tf.data.Dataset.from_generator(epoch, output_signature=loader.element_spec)
    choices = tf.data.Options()
    choices.experimental_optimization.inject_prefetch = False
    choices.deterministic = True
    if loader is not pipeline:
        length = _constant_length(loader)
        data = data if length is None else data.apply(tf.data.experimental.assert_cardinality(length))
    return data.with_options(choices)


def _constant_length(loader: Loader) -> int | None:
    """Return the number of batches of every epoch; None if epochs differ, or only the source knows it."""
    if loader._policy == "partial" or loader.pipeline.execution.mark.position:
        return None
    try:
        return len(loader)
    except TypeError:
        return None


def _is_ragged(planned: PlannedOutput) -> bool:
    """Return whether the rows of an output may differ in shape. Nothing else decides the structure of its batches."""
    return planned.shape is None and planned.rank > 0


def _tensor(output: Any, planned: PlannedOutput) -> Any:
    if _is_ragged(planned):
        return _ragged(list(output) if isinstance(output, (list, np.ndarray)) else _rows_on_host(output), planned)
    if isinstance(output, list):  # all rows were left out
        return tf.zeros((0, *(planned.shape or ())), TF_TYPES[planned.dtype])
    if isinstance(output, np.ndarray) and is_label(output, planned):  # TensorFlow's operations take much longer
        return tf.experimental.dlpack.from_dlpack(as_capsule(as_labels(output), DType.INT64))
    tensor = tf.experimental.dlpack.from_dlpack(as_capsule(output, planned.dtype))
    return tf.cast(tf.reshape(tensor, [-1]), tf.int64) if is_label(output, planned) else tensor


def _rows_on_host(output: Any) -> Any:
    raise ArgumentError(
        "`Loader`: expected rows of one shape on a GPU, got an output whose shapes may differ. Resize, crop or pad the "
        "rows, or take this output from the CPU"
    )


def _ragged(rows: list[Any], planned: PlannedOutput) -> Any:
    """Return rows of different shapes as a ragged tensor with a uniform last axis (rows of one axis have none)."""
    for row in rows:
        if not isinstance(row, np.ndarray):
            _rows_on_host(row)
    inner = {row.shape[-1] for row in rows} if planned.rank > 1 else set()
    if len(inner) > 1:
        raise DataError(
            f"`Loader`: expected rows whose last axis has one extent, as a tf.RaggedTensor needs, got {sorted(inner)}. "
            "Pad it in the pipeline, as with `fn.pad`"
        )
    flat = [row.reshape(-1, *inner) for row in rows]
    joined = empty((sum(len(x) for x in flat), *(inner or [0] * (planned.rank > 1))), planned.dtype.numpy)
    if flat:
        np.concatenate(flat, out=joined)
    values = tf.experimental.dlpack.from_dlpack(as_capsule(joined, planned.dtype))
    for axis in reversed(range(max(1, planned.rank - 1))):
        # One length for each index of the axes before this one, in row order.
        lengths = np.concatenate(
            [np.full(int(np.prod(row.shape[:axis], dtype=np.int64)), row.shape[axis]) for row in rows]
        ) if rows else np.empty(0, np.int64)  # fmt: skip
        values = tf.RaggedTensor.from_row_lengths(values, tf.constant(lengths, tf.int64), validate=False)
    return values


def _spec(planned: PlannedOutput) -> Any:
    dtype = TF_TYPES[planned.dtype]
    if _is_ragged(planned):
        rank = planned.rank
        return tf.RaggedTensorSpec([None] * (rank + 1), dtype, ragged_rank=max(1, rank - 1))
    shape = planned.shape or ()
    if is_integer(planned) and shape in ((), (1,)):
        return tf.TensorSpec([None], tf.int64)
    return tf.TensorSpec([None, *shape], dtype)
