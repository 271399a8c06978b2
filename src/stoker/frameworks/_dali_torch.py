# SPDX-License-Identifier: Apache-2.0
"""DALI's iterators for PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..contract.batch import Batch
from ..contract.errors import ArgumentError, DataError
from ..contract.text import brief
from ._dali_epochs import DaliEpochs, LastBatchPolicy
from ._missing import missing
from ._torch import TORCH_TYPES, to_torch

try:
    import torch
    import torch.utils.dlpack
except ModuleNotFoundError as error:
    raise missing("torch", "torch", error) from error

to_torch_type = dict(TORCH_TYPES)


class DALIGenericIterator(DaliEpochs):
    """Batches of one or several pipelines as PyTorch tensors: ``[{"data": tensor, "label": tensor}, ...]``.

    Arguments are those of :class:`~stoker.frameworks._dali_epochs.DaliEpochs`. The rows of every output must have one
    shape; see :class:`DALIRaggedIterator`. Tensors own their memory: later batches do not overwrite them.
    """

    def _convert(self, outputs: tuple[Batch, ...]) -> list[Any]:
        tensors = []
        for name, batch in zip(self.output_map, outputs, strict=True):
            if not len(batch):  # all rows were left out
                tensors.append(torch.empty(0, dtype=TORCH_TYPES[batch.dtype]))
                continue
            if not batch.is_dense:
                raise DataError(
                    f"`{self._name}`: expected rows of one shape in {brief(name)}, got "
                    f"{sorted(set(batch.shape()))[:3]}. Resize, crop or pad them in the pipeline, or use "
                    "DALIRaggedIterator"
                )
            tensors.append(to_torch(batch))
        return tensors


class DALIClassificationIterator(DALIGenericIterator):
    """Batches of images and labels as :class:`DALIGenericIterator` returns them: ``[{"data": ..., "label": ...}]``."""

    def __init__(
        self, pipelines: Any, size: int = -1, reader_name: str | None = None, auto_reset: Any = False,
        fill_last_batch: bool | None = None, dynamic_shape: bool = False, last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL, prepare_first_batch: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            pipelines, ["data", "label"], size, reader_name, auto_reset, fill_last_batch, dynamic_shape,
            last_batch_padded, last_batch_policy, prepare_first_batch,
        )  # fmt: skip


class DALIRaggedIterator(DaliEpochs):
    """Batches whose rows may differ in shape.

    Args:
        output_types: per output, ``DENSE_TAG`` (one tensor), ``SPARSE_LIST_TAG`` (a list of tensors) or
            ``SPARSE_COO_TAG`` (a sparse tensor of the largest shape, with the batch as its first axis). By default all
            are dense.
    """

    DENSE_TAG = "dense"
    SPARSE_LIST_TAG = "sparse_list"
    SPARSE_COO_TAG = "sparse_coo"

    def __init__(
        self, pipelines: Any, output_map: Sequence[str], size: int = -1, reader_name: str | None = None,
        output_types: Sequence[str] | None = None, auto_reset: Any = False, fill_last_batch: bool | None = None,
        dynamic_shape: bool = False, last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL, prepare_first_batch: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(
            pipelines, output_map, size, reader_name, auto_reset, fill_last_batch, dynamic_shape, last_batch_padded,
            last_batch_policy, prepare_first_batch,
        )  # fmt: skip
        known = (self.DENSE_TAG, self.SPARSE_LIST_TAG, self.SPARSE_COO_TAG)
        tags = [self.DENSE_TAG] * len(self.output_map) if output_types is None else list(output_types)
        if len(tags) != len(self.output_map) or not set(tags) <= set(known):
            raise ArgumentError(
                f"`{self._name}`: expected one of {known} for each of {len(self.output_map)} outputs in "
                f"`output_types`, got {tags}"
            )
        self._tags = tags

    def _convert(self, outputs: tuple[Batch, ...]) -> list[Any]:
        return [
            self._ragged(name, tag, batch)
            for name, tag, batch in zip(self.output_map, self._tags, outputs, strict=True)
        ]

    def _ragged(self, name: str, tag: str, batch: Batch) -> Any:
        tensor = to_torch(batch)
        if tag == self.DENSE_TAG:
            if not len(batch) and not batch.is_dense:
                return torch.empty(0, dtype=TORCH_TYPES[batch.dtype])
            if not batch.is_dense:
                raise DataError(
                    f"`{self._name}`: expected rows of one shape in {brief(name)}, got "
                    f"{sorted(set(batch.shape()))[:3]}. Pass SPARSE_LIST_TAG or SPARSE_COO_TAG for it in `output_types`"
                )
            return tensor
        rows = list(tensor)
        if not rows and tag == self.SPARSE_COO_TAG:  # all rows were left out
            return torch.empty(0, dtype=TORCH_TYPES[batch.dtype]).to_sparse()
        return rows if tag == self.SPARSE_LIST_TAG else _coo(rows)


def _coo(rows: list[Any]) -> Any:
    """Return all elements of all rows as a sparse tensor, row number first."""
    places, values = [], []
    for number, row in enumerate(rows):
        # The coordinates of all elements, in order.
        own = torch.ones(row.shape, dtype=torch.bool, device=row.device).nonzero().T
        places.append(torch.cat([torch.full((1, own.shape[1]), number, device=row.device), own]))
        values.append(row.reshape(-1))
    shape = (len(rows), *(max(sizes) for sizes in zip(*(r.shape for r in rows), strict=True)))
    return torch.sparse_coo_tensor(torch.cat(places, 1), torch.cat(values), shape, check_invariants=False)


def feed_ndarray(
    dali_tensor: Any, arr: torch.Tensor, cuda_stream: Any = None, non_blocking: bool = False
) -> torch.Tensor:
    """Copy a tensor of a pipeline's output into another tensor, and return that tensor.

    Args:
        dali_tensor: a tensor, or a list of tensors of one shape.
        arr: the destination.
        cuda_stream: accepted without effect.
        non_blocking: the copy between devices may return before it is complete, as in ``torch.Tensor.copy_``.

    Raises:
        ArgumentError: the shapes differ.
    """
    source = dali_tensor.as_tensor() if hasattr(dali_tensor, "as_tensor") else dali_tensor
    found = torch.utils.dlpack.from_dlpack(source)
    if tuple(found.shape) != tuple(arr.shape):
        raise ArgumentError(f"`feed_ndarray`: expected a tensor of shape {tuple(found.shape)}, got {tuple(arr.shape)}")
    return arr.copy_(found, non_blocking=non_blocking)


def to_torch_tensor(dali_tensor: Any, copy: bool) -> torch.Tensor:
    """Convert a tensor of a pipeline's output to PyTorch, sharing its memory or as a copy."""
    tensor = torch.utils.dlpack.from_dlpack(dali_tensor)
    return tensor.clone() if copy else tensor
