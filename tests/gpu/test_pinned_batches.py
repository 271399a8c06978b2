# SPDX-License-Identifier: Apache-2.0
"""Batches of a pipeline on the CPU with ``pin_memory=True``: every tensor of every form is page-locked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from stoker import fn, pipeline_def
from stoker.torch import Loader, Padded

ROWS = [np.arange(3 * (5 + n), dtype=np.float32).reshape(5 + n, 3) for n in range(6)]
LENGTHS = [len(row) for row in ROWS]


@pipeline_def(batch_size=4, num_threads=2)
def rows_and_labels(dtype: Any) -> Any:
    """Return rows of different lengths, dense rows, and labels of a type."""
    rows = fn.external_source(source=ROWS, batch=False)
    labels = fn.external_source(source=[np.array([n], dtype) for n in range(len(ROWS))], batch=False)
    return rows, rows[:4] * 2, labels


def parts(output: Any) -> list[torch.Tensor]:
    """Return the tensors of an output in any form."""
    if isinstance(output, Padded):
        return [output.data, output.lengths]
    if isinstance(output, list):
        return output
    return list(output.unbind()) if output.is_nested else [output]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("ragged", ["list", "nested", "padded"])
def test_every_tensor_is_pinned(ragged: str, dtype: Any) -> None:
    with rows_and_labels(dtype) as pipe:
        seen = 0
        names = ["rows", "dense", "label"]
        for batch in Loader(pipe, names, pin_memory=True, ragged=ragged, last_batch_policy="partial"):
            for name, output in batch.items():
                assert [part.is_pinned() for part in parts(output)] == [True] * len(parts(output)), (name, ragged)
            labels = batch["label"]
            if isinstance(labels, Padded):  # a source without a stated shape may give rows of any length
                labels = labels.data.flatten()
            else:
                assert labels.dtype == torch.int64
            assert labels.tolist() == list(range(seen, seen + len(labels)))
            rows = batch["rows"]
            found = rows.lengths[:, 0] if isinstance(rows, Padded) else torch.tensor([len(row) for row in parts(rows)])
            assert found.flatten().tolist()[: len(labels)] == LENGTHS[seen : seen + len(labels)]
            on_gpu = labels.to("cuda", non_blocking=True)
            assert torch.equal(on_gpu.cpu(), labels)
            seen += len(labels)
        assert seen == len(ROWS)
