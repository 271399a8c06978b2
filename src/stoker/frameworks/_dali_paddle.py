# SPDX-License-Identifier: Apache-2.0
"""DALI's iterators for Paddle."""

from __future__ import annotations

from typing import Any

from ..contract.batch import Batch
from ..contract.errors import ArgumentError, DataError
from ..contract.text import brief
from ._dali_epochs import DaliEpochs, LastBatchPolicy
from ._missing import missing
from ._paddle import to_paddle

try:
    import paddle
except ModuleNotFoundError as error:
    raise missing("paddlepaddle", "paddle", error) from error


class DALIGenericIterator(DaliEpochs):
    """Batches of one or several pipelines as Paddle tensors: ``[{"data": tensor, "label": tensor}, ...]``.

    Arguments are those of :class:`~stoker.frameworks._dali_epochs.DaliEpochs`; `output_map` has names only. DALI's
    levels of detail (`LoD`) are refused: Paddle 3 has no such tensors. The rows of every output must have one shape.
    Tensors own their memory.
    """

    def _convert(self, outputs: tuple[Batch, ...]) -> list[Any]:
        for name, batch in zip(self.output_map, outputs, strict=True):
            if not batch.is_dense:
                raise DataError(
                    f"`{self._name}`: expected rows of one shape in {brief(name)}, got "
                    f"{sorted(set(batch.shape()))[:3]}. Resize, crop or pad them in the pipeline"
                )
        return [to_paddle(batch) for batch in outputs]


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


def feed_ndarray(dali_tensor: Any, ptr: Any, cuda_stream: Any = None) -> Any:
    """Copy a tensor of a pipeline's output into a Paddle tensor, and return that tensor.

    Args:
        dali_tensor: a tensor, or a list of tensors of one shape.
        ptr: the destination, a ``paddle.Tensor`` (DALI takes its address).
        cuda_stream: accepted without effect.

    Raises:
        ArgumentError: the destination is no tensor, or the shapes differ.
    """
    if not isinstance(ptr, paddle.Tensor):
        raise ArgumentError(f"`feed_ndarray`: expected a paddle.Tensor as the destination, got {brief(ptr)}")
    source = dali_tensor.as_tensor() if hasattr(dali_tensor, "as_tensor") else dali_tensor
    found = paddle.from_dlpack(source)
    if list(found.shape) != list(ptr.shape):
        raise ArgumentError(f"`feed_ndarray`: expected a tensor of shape {list(found.shape)}, got {list(ptr.shape)}")
    return paddle.assign(found, output=ptr)
