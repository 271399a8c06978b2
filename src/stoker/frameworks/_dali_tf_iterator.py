# SPDX-License-Identifier: Apache-2.0
"""DALI's operator for TensorFlow: the next batch of a pipeline as tensors, in eager code and in graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..contract.batch import Batch
from ..contract.errors import ArgumentError, DataError
from ..contract.text import brief
from ..contract.whole_number import as_whole_number
from ..frontends.pipeline import Pipeline
from ._dali_tf import require_dtype, tensor_of

_ACCEPTED = frozenset({
    "exec_separated", "cpu_prefetch_queue_depth", "gpu_prefetch_queue_depth", "enable_memory_stats",
})  # fmt: skip
_PARTS = 3  # of a sparse output: indices, values, extents

# Pipelines that eager calls made of texts, as TensorFlow keeps one kernel for calls with equal attributes.
_opened: dict[tuple[Any, ...], Pipeline] = {}


def serialize_pipeline(pipeline: Any) -> Any:
    """Return the text of a pipeline, which :func:`DALIIteratorWrapper` takes as `serialized_pipeline`."""
    return pipeline.serialize()


def DALIIteratorWrapper(
    pipeline: Any = None, serialized_pipeline: Any = None, sparse: Sequence[bool] = (), shapes: Any = (),
    dtypes: Any = (), batch_size: int = -1, prefetch_queue_depth: Any = 2, exec_dynamic: Any = None, *,
    num_threads: int = 4, device_id: int = -1, **accepted: Any,
) -> list[Any]:  # fmt: skip
    """Return the next batch of a pipeline as a list of tensors (the function that DALI's ``DALIIterator()`` returns).

    In eager code every call delivers the next batch. In a graph (``tf.function``, a session of TensorFlow 1) the call
    adds an operation that delivers the next batch whenever it runs. It runs Python, so the graph cannot be saved. Calls
    with one pipeline, and eager calls with one text, deliver its batches in turn. The pipeline of a text stays open
    until the process ends, as TensorFlow keeps DALI's operators; a pipeline that is passed itself can be closed.

    Args:
        pipeline: the pipeline. DALI runs a copy of it, here it runs itself.
        serialized_pipeline: instead, its text from :func:`serialize_pipeline`. Functions in Python cannot be in it.
        sparse: for each output, whether it becomes a ``tf.SparseTensor`` of int64 indices (row, axes of the row), which
            rows of different shapes need.
        shapes: shapes of the outputs, which begin with the batch size. Empty ones are not checked.
        dtypes: a ``tf.DType`` for each output.
        batch_size: the batch size; -1: the first extent of `shapes`.
        prefetch_queue_depth: batches that are prefetched, if the pipeline is given by its text.
        exec_dynamic: accepted without effect.
        num_threads: number of threads, if the pipeline is given by its text.
        device_id: its GPU, -1 for none, if the pipeline is given by its text.
        **accepted: DALI's further arguments, without effect.

    Raises:
        ArgumentError: the outputs differ from the arguments; at a batch also from their shapes and types.
        DataError: rows of an output that is not sparse have different shapes.
        tensorflow.errors.OutOfRangeError: the pipeline's source has ended (in eager code; a graph reports another
            error of TensorFlow with that text).
    """
    rows = _batch_size(pipeline, batch_size, shapes)
    settings = {
        "batch_size": rows, "num_threads": num_threads, "device_id": None if device_id < 0 else device_id,
        "prefetch_queue_depth": prefetch_queue_depth,
    }  # fmt: skip
    parts = _parts(pipeline, serialized_pipeline, settings, sparse, shapes, dtypes, accepted)
    found, at = [], 0
    for number in range(len(dtypes)):
        if number < len(sparse) and sparse[number]:
            found.append(tf.SparseTensor(*parts[at : at + _PARTS]))
            at += _PARTS
        else:
            found.append(parts[at])
            at += 1
    return found


def DALIIterator() -> Callable[..., list[Any]]:
    """Return :func:`DALIIteratorWrapper`."""
    return DALIIteratorWrapper


def DALIRawIterator() -> Callable[..., list[Any]]:
    """Return the function of serialized pipelines whose results are plain tensors: three for a sparse output, its
    indices, values and extents.
    """
    return _raw


def dataset_options() -> Any:
    """Return options that keep TensorFlow from changing a data set of a pipeline."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.experimental_optimization.inject_prefetch = False
    options.autotune.enabled = False
    return options


def _raw(
    *, serialized_pipeline: Any, shapes: Any, dtypes: Any, num_threads: int = 4, device_id: int = -1,
    sparse: Sequence[bool] = (), batch_size: int = -1, exec_dynamic: Any = None, **accepted: Any,
) -> list[Any]:  # fmt: skip
    """Return the next batch of a serialized pipeline, as :func:`DALIIteratorWrapper` does, as plain tensors.

    `shapes` and `dtypes` have three elements for a sparse output.
    """
    outputs: list[tuple[Any, Any]] = []
    at = 0
    while at < len(dtypes):
        is_sparse = len(outputs) < len(sparse) and bool(sparse[len(outputs)])
        shape = () if is_sparse or at >= len(shapes) else shapes[at]
        outputs.append((shape, dtypes[min(at + is_sparse, len(dtypes) - 1)]))
        at += _PARTS if is_sparse else 1
    settings = {
        "batch_size": _batch_size(None, batch_size, shapes), "num_threads": num_threads,
        "device_id": None if device_id < 0 else device_id,
        "prefetch_queue_depth": accepted.get("gpu_prefetch_queue_depth", 2),
    }  # fmt: skip
    own_shapes, own_dtypes = [shape for shape, _ in outputs], [dtype for _, dtype in outputs]
    return _parts(None, serialized_pipeline, settings, sparse, own_shapes, own_dtypes, accepted)


def _batch_size(pipeline: Any, batch_size: int, shapes: Any) -> int:
    rows = batch_size
    if rows == -1 and pipeline is not None:
        rows = pipeline.batch_size
    if rows == -1 and len(shapes) and len(shapes[0]):
        rows = int(shapes[0][0])
    if as_whole_number(rows) is None or rows < 1:
        raise ArgumentError(
            f"`DALIIterator`: expected the batch size as `batch_size` or as the first extent of `shapes`, got "
            f"{brief(batch_size)} and {brief(shapes)}"
        )
    return rows


def _parts(
    pipeline: Any, text: Any, settings: dict[str, Any], sparse: Any, shapes: Any, dtypes: Any, accepted: Any
) -> list[Any]:
    """Return the tensors of the next batch, or of an operation that delivers it; a sparse output has three."""
    if unknown := sorted(set(accepted) - _ACCEPTED):
        raise ArgumentError(f"`DALIIterator`: unknown argument `{unknown[0]}`")
    opened = _pipeline(pipeline, text, settings)
    if not all(isinstance(t, tf.DType) for t in dtypes) or len(dtypes) != opened.num_outputs:
        raise ArgumentError(
            f"`DALIIterator`: expected a tf.DType for each of {opened.num_outputs} outputs in `dtypes`, got "
            f"{brief(dtypes)}"
        )
    flags = [n < len(sparse) and bool(sparse[n]) for n in range(len(dtypes))]
    known = [tuple(shapes[n]) if n < len(shapes) and not flags[n] else () for n in range(len(dtypes))]

    def batch() -> list[Any]:
        delivered = opened.next("go_on")
        if delivered is None:
            raise tf.errors.OutOfRangeError(None, None, "the pipeline's source has ended")
        batches = opened.execution.batches(delivered)
        tensors: list[Any] = []
        for one, dtype, flag, shape in zip(batches, dtypes, flags, known, strict=True):
            tensors += _sparse(one, dtype) if flag else [_dense(one, dtype, shape)]
        return tensors

    if tf.executing_eagerly():
        return batch()
    types: list[Any] = []
    for dtype, flag in zip(dtypes, flags, strict=True):
        types += [tf.int64, dtype, tf.int64] if flag else [dtype]
    tensors = tf.py_function(batch, [], types)
    at = 0
    for flag, shape in zip(flags, known, strict=True):
        if not flag and shape:
            tensors[at].set_shape(shape)
        at += _PARTS if flag else 1
    return list(tensors)


def _pipeline(pipeline: Any, text: Any, settings: dict[str, Any]) -> Pipeline:
    if (pipeline is None) == (text is None):
        raise ArgumentError("`DALIIterator`: expected either `pipeline` or `serialized_pipeline`")
    if pipeline is not None:
        if not isinstance(pipeline, Pipeline):
            raise ArgumentError(f"`DALIIterator`: expected a Pipeline, got {brief(pipeline)}")
        if pipeline.batch_size != (rows := settings["batch_size"]):
            raise ArgumentError(f"`DALIIterator`: expected the pipeline's batch size {pipeline.batch_size}, got {rows}")
        return pipeline.build()
    if not tf.executing_eagerly():
        return Pipeline.deserialize(text, **settings).build()
    key = (text, *map(repr, settings.values()))
    if key not in _opened or _opened[key].execution.closed:
        _opened[key] = Pipeline.deserialize(text, **settings).build()
    return _opened[key]


def _dense(batch: Batch, dtype: Any, shape: tuple[Any, ...]) -> Any:
    tensor = tensor_of("DALIIterator", batch, dtype, "Resize, crop or pad them in the pipeline, or make it `sparse`")
    if shape and not tensor.shape.is_compatible_with(shape):
        raise ArgumentError(
            f"`DALIIterator`: expected a batch of the shape {shape} as in `shapes`, got {tuple(tensor.shape)}"
        )
    return tensor


def _sparse(batch: Batch, dtype: Any) -> list[Any]:
    """Return the indices, values and extents of the elements of all rows, in their order."""
    require_dtype("DALIIterator", batch, dtype)
    rows = [np.asarray(row) for row in batch]
    rank = max((row.ndim for row in rows), default=0)
    if any(row.ndim != rank for row in rows):
        raise DataError("`DALIIterator`: expected rows with one number of axes in a sparse output, got different ones")
    indices = np.empty((sum(row.size for row in rows), 1 + rank), np.int64)
    at = 0
    for number, row in enumerate(rows):
        own = indices[at : at + row.size]
        own[:, 0] = number
        own[:, 1:] = np.indices(row.shape).reshape(rank, row.size).T
        at += row.size
    extents = [len(rows), *(max((row.shape[axis] for row in rows), default=0) for axis in range(rank))]
    values = np.concatenate([row.reshape(-1) for row in rows]) if rows else np.empty(0, batch.dtype.numpy)
    found = tf.constant(values)
    found = found if found.dtype == dtype else tf.bitcast(found, dtype)  # NumPy holds bfloat16 as bits
    return [tf.constant(indices), found, tf.constant(extents, tf.int64)]
