# SPDX-License-Identifier: Apache-2.0
"""DALI's data sets for TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError, DataError, UnsupportedError
from ..contract.text import brief
from ..frontends.pipeline import Pipeline
from ._exchange import as_capsule
from ._missing import missing
from ._tf import TF_TYPES

try:
    import tensorflow as tf
except ModuleNotFoundError as error:
    raise missing("tensorflow", "tf", error) from error

_ACCEPTED = frozenset({
    "exec_separated", "exec_dynamic", "prefetch_queue_depth", "cpu_prefetch_queue_depth", "gpu_prefetch_queue_depth",
    "dtypes", "shapes",
})  # fmt: skip


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
        UnsupportedError: data sets as inputs of the pipeline, which :func:`DALIDatasetWithInputs` takes.
    """
    if accepted.pop("input_datasets", None) is not None:
        raise UnsupportedError(
            "`DALIDataset`: expected a pipeline without `input_datasets`, got some. Use "
            "`experimental.DALIDatasetWithInputs`, as with DALI"
        )
    specs = _checked_specs("DALIDataset", pipeline, output_dtypes, output_shapes, batch_size, accepted)
    pipeline.build()

    def batches() -> Iterator[Any]:
        return iter(lambda: _next(pipeline, specs), None)

    return _dataset(batches, specs)


class Input:
    """Data set as an input of a pipeline, with its form (as DALI's ``experimental.Input``).

    Args:
        dataset: a ``tf.data.Dataset`` whose elements are single tensors.
        layout: names of the axes of a row; None: those that the pipeline's ``external_source`` declares.
        batch: whether an element is a batch, with rows on its first axis; otherwise it is one row.

    Raises:
        ArgumentError: the data set is none, or its elements are no single tensors.
    """

    def __init__(self, dataset: Any, *, layout: str | None = None, batch: bool = False) -> None:
        if not isinstance(dataset, tf.data.Dataset) or not isinstance(dataset.element_spec, tf.TensorSpec):
            got = brief(getattr(dataset, "element_spec", dataset))
            raise ArgumentError(f"`Input`: expected a tf.data.Dataset whose elements are single tensors, got {got}")
        if not isinstance(batch, bool):
            raise ArgumentError(f"`Input`: expected `batch` True or False, got {brief(batch)}")
        self.dataset = dataset
        self.layout = layout
        self.batch = batch

    def batches(self, rows: int) -> Iterator[Any]:
        """Yield what the pipeline's source takes for each batch. Rows that do not fill a batch are left out."""
        elements = (element.numpy() for element in self.dataset)
        if self.batch:
            # An array of texts is an array of objects, which are bytes.
            yield from (list(x) if isinstance(x, np.ndarray) and x.dtype == object else x for x in elements)
        else:
            yield from (list(rows_of_batch) for rows_of_batch in zip(*[elements] * rows, strict=False))


def DALIDatasetWithInputs(
    pipeline: Any,
    output_dtypes: Any = None,
    output_shapes: Any = None,
    fail_on_device_mismatch: bool = True,
    *,
    batch_size: int = 1,
    num_threads: int = 4,
    device_id: int = 0,
    input_datasets: Mapping[str, Any] | None = None,
    **accepted: Any,
) -> Any:
    """Return the batches that a pipeline makes of other data sets as a ``tf.data.Dataset``.

    It ends with the shortest of the inputs; rows that do not fill a batch are left out. Every iteration begins the
    inputs and the pipeline's random numbers again. One iteration may run at a time. The pipeline may also have sources
    of its own (``external_source`` with a ``source``).

    Args:
        pipeline: the pipeline; one of `batch_size` rows. It takes data from ``external_source(name=...)``.
        output_dtypes: a ``tf.DType``, or a tuple of one per output.
        output_shapes: shapes of the batches, in the structure of `output_dtypes`; by default they are unknown.
        fail_on_device_mismatch: accepted without effect: tensors are where the pipeline's outputs are.
        batch_size: the pipeline's batch size.
        num_threads: accepted without effect: the pipeline has its own.
        device_id: accepted without effect: the pipeline has its own.
        input_datasets: for each ``external_source`` without a ``source``, by its name, a ``tf.data.Dataset`` of rows or
            an :class:`Input`. Elements are tensors of numbers, or of texts (bytes, such as files).
        **accepted: DALI's further arguments, without effect; deprecated ``dtypes`` and ``shapes`` count.

    Raises:
        ArgumentError: the pipeline has other outputs or sources, or another batch size; or an input is no data set.
    """
    specs = _checked_specs("DALIDatasetWithInputs", pipeline, output_dtypes, output_shapes, batch_size, accepted)
    inputs = _checked_inputs(pipeline, input_datasets)
    execution = pipeline.build().execution

    def batches() -> Iterator[Any]:
        pipeline.start_epoch(0)
        execution.discard_fed()
        parts = zip(*(one.batches(batch_size) for one in inputs.values()), strict=False) if inputs else None
        ahead, flying = execution.ahead + 1, 0
        while True:
            while parts is not None and flying < ahead:
                columns = next(parts, None)
                if columns is None:
                    parts, ahead = None, 0
                    break
                for (name, one), column in zip(inputs.items(), columns, strict=True):
                    pipeline.feed_input(name, column, one.layout)
                flying += 1
            if inputs and not flying:
                return
            found = _next(pipeline, specs)
            if found is None:  # a source of the pipeline itself has ended
                return
            flying -= 1
            yield found

    return _dataset(batches, specs)


def _checked_specs(
    name: str, pipeline: Any, output_dtypes: Any, output_shapes: Any, batch_size: int, accepted: Mapping[str, Any]
) -> Any:
    """Return the specification of a batch: one, or a tuple of one per output."""
    if not isinstance(pipeline, Pipeline):
        raise ArgumentError(f"`{name}`: expected a Pipeline, got {brief(pipeline)}")
    if unknown := sorted(set(accepted) - _ACCEPTED):
        raise ArgumentError(f"`{name}`: unknown argument `{unknown[0]}`")
    if batch_size != pipeline.batch_size:
        raise ArgumentError(f"`{name}`: expected the pipeline's batch size {pipeline.batch_size}, got {batch_size}")
    types: Any = output_dtypes if output_dtypes is not None else accepted.get("dtypes")
    shapes = output_shapes if output_shapes is not None else accepted.get("shapes")
    single = not isinstance(types, tuple)
    wanted: tuple[Any, ...] = types if isinstance(types, tuple) else (types,)
    if not all(isinstance(t, tf.DType) for t in wanted) or len(wanted) != pipeline.num_outputs:
        raise ArgumentError(
            f"`{name}`: expected a tf.DType for each of {pipeline.num_outputs} outputs in `output_dtypes`, got "
            f"{brief(types)}"
        )
    given = (None,) * len(wanted) if shapes is None else (shapes,) if single else shapes
    specs = tuple(tf.TensorSpec(shape, dtype) for shape, dtype in zip(given, wanted, strict=True))
    return specs[0] if single else specs


def _checked_inputs(pipeline: Pipeline, given: Mapping[str, Any] | None) -> dict[str, Input]:
    """Return the inputs by the names of the sources that they feed."""
    if given is not None and not isinstance(given, Mapping):
        raise ArgumentError(
            f"`DALIDatasetWithInputs`: expected a dict of names and data sets as `input_datasets`, got {brief(given)}"
        )
    fed = pipeline.execution.fed
    open_sources = [n for n in pipeline.graph.nodes if n.id in fed and n.operator.name == "external_source"]
    names = [n.name for n in open_sources]
    if set(given or {}) != set(names):
        raise ArgumentError(
            f"`DALIDatasetWithInputs`: expected a data set in `input_datasets` for each `external_source` without "
            f"`source` ({brief(names)}), got {brief(sorted(map(str, given or {})))}"
        )
    return {name: one if isinstance(one, Input) else Input(one) for name, one in (given or {}).items()}


def _next(pipeline: Pipeline, specs: Any) -> Any:
    """Return the next batch as a tensor, or a tuple of them; None at the end of the pipeline's data."""
    delivered = pipeline.next("go_on")
    if delivered is None:
        return None
    wanted = specs if isinstance(specs, tuple) else (specs,)
    batches = pipeline.execution.batches(delivered)
    found = tuple(
        tensor_of("DALIDataset", batch, spec.dtype, "Resize, crop or pad them in the pipeline")
        for batch, spec in zip(batches, wanted, strict=True)
    )
    return found if isinstance(specs, tuple) else found[0]


def _dataset(batches: Callable[[], Iterator[Any]], specs: Any) -> Any:
    data = tf.data.Dataset.from_generator(batches, output_signature=specs)
    choices = tf.data.Options()
    choices.experimental_optimization.inject_prefetch = False
    return data.with_options(choices)


def require_dtype(name: str, batch: Any, wanted: Any) -> None:
    """Raise ArgumentError for a batch whose type is not the declared one."""
    if TF_TYPES[batch.dtype] != wanted:
        raise ArgumentError(
            f"`{name}`: expected {wanted.name} as in the declared types, got an output of {batch.dtype}"
        )


def tensor_of(name: str, batch: Any, wanted: Any, way_out: str) -> Any:
    """Return a batch as a tensor in the same memory.

    Args:
        name: the caller's name, for errors.
        batch: the batch.
        wanted: the declared ``tf.DType``.
        way_out: advice for rows of different shapes.

    Raises:
        ArgumentError: the batch has another type.
        DataError: its rows have different shapes.
    """
    require_dtype(name, batch, wanted)
    if not batch.is_dense:
        raise DataError(f"`{name}`: expected rows of one shape, got {sorted(set(batch.shape()))[:3]}. {way_out}")
    return tf.experimental.dlpack.from_dlpack(as_capsule(batch.whole, batch.dtype))


def dataset_compatible_tensorflow() -> bool:
    """Return True: every supported TensorFlow can have a :func:`DALIDataset`."""
    return True


def dataset_inputs_compatible_tensorflow() -> bool:
    """Return True: every supported TensorFlow can have a :func:`DALIDatasetWithInputs`."""
    return True


def dataset_distributed_compatible_tensorflow() -> bool:
    """Return False: ``tf.distribute`` cannot copy a data set of Python code to other processes."""
    return False
