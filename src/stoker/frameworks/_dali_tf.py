# SPDX-License-Identifier: Apache-2.0
"""DALI's data set for TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from ..contract.errors import ArgumentError, DataError, UnsupportedError
from ..contract.text import brief
from ..frontends.pipeline import Pipeline
from ._exchange import as_capsule
from ._tf import TF_TYPES


def DALIDataset(
    pipeline: Any,
    output_dtypes: Any = None,
    output_shapes: Any = None,
    fail_on_device_mismatch: bool = True,
    *,
    batch_size: int = 1,
    num_threads: int = 4,
    device_id: int = 0,
    **accepted: Any,
) -> Any:
    """Return the endless batches of a pipeline as a ``tf.data.Dataset`` (DALI's ``DALIDataset``, here a function).

    ``stoker.tf.dataset`` ends with the epoch, and takes types and shapes from the pipeline.

    Args:
        pipeline: the pipeline; one of `batch_size` rows.
        output_dtypes: a ``tf.DType``, or a tuple of one per output.
        output_shapes: shapes of the batches, in the structure of `output_dtypes`; by default they are unknown.
        fail_on_device_mismatch: accepted without effect: tensors are where the pipeline's outputs are.
        batch_size: the pipeline's batch size.
        num_threads: accepted without effect: the pipeline has its own.
        device_id: accepted without effect: the pipeline has its own.
        **accepted: DALI's further arguments, without effect; deprecated ``dtypes`` and ``shapes`` count.

    Raises:
        ArgumentError: the pipeline has other outputs, or another batch size.
        UnsupportedError: data sets as inputs of a pipeline.
    """
    if accepted.get("input_datasets") is not None:
        raise UnsupportedError(
            "`DALIDataset`: expected a pipeline without `input_datasets`, got some. Use `fn.external_source` with "
            "`source=dataset.as_numpy_iterator()`"
        )
    if not isinstance(pipeline, Pipeline):
        raise ArgumentError(f"`DALIDataset`: expected a Pipeline, got {brief(pipeline)}")
    known = {
        "exec_separated", "exec_dynamic", "prefetch_queue_depth", "cpu_prefetch_queue_depth",
        "gpu_prefetch_queue_depth", "dtypes", "shapes", "input_datasets",
    }  # fmt: skip
    if unknown := sorted(set(accepted) - known):
        raise ArgumentError(f"`DALIDataset`: unknown argument `{unknown[0]}`")
    if batch_size != pipeline.batch_size:
        raise ArgumentError(
            f"`DALIDataset`: expected the pipeline's batch size {pipeline.batch_size}, got {batch_size}"
        )
    types: Any = output_dtypes if output_dtypes is not None else accepted.get("dtypes")
    shapes = output_shapes if output_shapes is not None else accepted.get("shapes")
    single = not isinstance(types, tuple)
    wanted: tuple[Any, ...] = types if isinstance(types, tuple) else (types,)
    if not all(isinstance(t, tf.DType) for t in wanted) or len(wanted) != pipeline.num_outputs:
        raise ArgumentError(
            f"`DALIDataset`: expected a tf.DType for each of {pipeline.num_outputs} outputs in `output_dtypes`, got "
            f"{brief(types)}"
        )
    given = (None,) * len(wanted) if shapes is None else (shapes,) if single else shapes
    specs = tuple(tf.TensorSpec(shape, dtype) for shape, dtype in zip(given, wanted, strict=True))
    pipeline.build()

    def batches() -> Iterator[Any]:
        while (delivered := pipeline.next("go_on")) is not None:
            found = tuple(
                _tensor(batch, t) for batch, t in zip(pipeline.execution.batches(delivered), wanted, strict=True)
            )
            yield found[0] if single else found

    data = tf.data.Dataset.from_generator(batches, output_signature=specs[0] if single else specs)
    choices = tf.data.Options()
    choices.experimental_optimization.inject_prefetch = False
    return data.with_options(choices)


def _tensor(batch: Any, wanted: Any) -> Any:
    if TF_TYPES[batch.dtype] != wanted:
        raise ArgumentError(
            f"`DALIDataset`: expected {wanted.name} as in `output_dtypes`, got an output of {batch.dtype}"
        )
    if not batch.is_dense:
        raise DataError(
            f"`DALIDataset`: expected rows of one shape, got {sorted(set(batch.shape()))[:3]}. Resize, crop or pad "
            "them in the pipeline"
        )
    return tf.experimental.dlpack.from_dlpack(as_capsule(batch.whole, batch.dtype))


def dataset_compatible_tensorflow() -> bool:
    """Return True: every supported TensorFlow can have a :func:`DALIDataset`."""
    return True


def dataset_inputs_compatible_tensorflow() -> bool:
    """Return False: data sets as inputs of a pipeline are not supported."""
    return False


def dataset_distributed_compatible_tensorflow() -> bool:
    """Return False: ``tf.distribute`` cannot copy a data set of Python code to other processes."""
    return False
