# SPDX-License-Identifier: Apache-2.0
"""Rows of several shapes as one tensor of PyTorch, filled up after each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from ..native import _native

_ELEMENTS, _THREADS = 2048, 256  # of a block (native/device/pad_rows.cuh)
_NAME = "stoker_pad_rows"
_ITEM_TYPES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}


def pad(rows: Sequence[torch.Tensor], dtype: torch.dtype, value: float, *, pin: bool) -> tuple[Any, list[Any]]:
    """Copy rows into one tensor, one by one.

    Args:
        rows: at least one tensor, all of one rank and on one device.
        dtype: element type of the result.
        value: the number that fills up rows.
        pin: put a result on the CPU into pinned memory.

    Returns:
        The tensor ``(N, ...)``, and the rows' shapes.
    """
    shapes = [tuple(row.shape) for row in rows]
    extents = [max(axis) for axis in zip(*shapes, strict=True)]
    device = rows[0].device
    pin = pin and device.type == "cpu"
    data = torch.full((len(rows), *extents), value, dtype=dtype, device=device, pin_memory=pin)
    for to, row, shape in zip(data, rows, shapes, strict=True):
        to[tuple(slice(n) for n in shape)] = row
    return data, shapes


def pad_on_gpu(rows: Sequence[Any], dtype: torch.dtype, value: float) -> tuple[Any, Any]:
    """Copy a batch's rows on a GPU into one tensor, by one launch after the work of torch's current stream.

    Args:
        rows: at least one ``DeviceArray`` of a GPU, all of one rank.
        dtype: their element type.
        value: the number that fills up rows.

    Returns:
        The tensor ``(N, ...)``, and the rows' shapes as int64 ``(N, axes)``.

    Raises:
        DeviceError: the device cannot be used.
        UnsupportedError: NVRTC is not installed.
    """
    device = torch.device("cuda", rows[0].device_id)
    table = _native.gpu.row_table(rows, torch.cuda.current_stream(device).cuda_stream)
    table = table.reshape(len(rows), -1)
    return pad_table(table, dtype, value, device), table[:, 1:]


def pad_table(table: Any, dtype: torch.dtype, value: float, device: torch.device) -> torch.Tensor:
    """Copy rows into one tensor. ``table``: int64 ``(N, 1 + axes)`` with each row's address and shape."""
    from ._torch_ops_cuda import kernels

    count, rank = len(table), table.shape[1] - 1
    extents = table[:, 1:].max(axis=0)
    data = torch.empty((count, *extents.tolist()), dtype=dtype, device=device)
    if not data.numel():
        return data
    lines = torch.from_numpy(np.concatenate([table, [[0, *extents]]]))
    if device.type == "cuda":  # a copy of pageable memory may wait for the stream
        lines = lines.pin_memory().to(device, non_blocking=True)
    fill = int.from_bytes(torch.tensor([value], dtype=dtype).view(torch.uint8).numpy().tobytes(), "little")
    row_blocks = -(-data[0].numel() // _ELEMENTS)
    source = f'#include "device/pad_rows.cuh"\nSTOKER_PAD_ROWS({_ITEM_TYPES[dtype.itemsize]})\n'
    parameters = lines.data_ptr(), count, rank, row_blocks, fill, data.data_ptr()
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else None
    kernels(device).run(source, (_NAME,), [(_NAME, count * row_blocks, _THREADS, parameters)], stream)
    return data
