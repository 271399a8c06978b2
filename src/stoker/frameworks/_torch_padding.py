# SPDX-License-Identifier: Apache-2.0
"""Rows of several shapes as one tensor of PyTorch, filled up after each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from ..native import _native

_ELEMENTS, _THREADS = 2048, 256  # of a block (native/device/pad_rows.cuh)
_NAME = "stoker_pad_rows"
_ITEM_TYPES = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t", 8: "uint64_t"}


def pad(rows: Sequence[torch.Tensor], dtype: torch.dtype, value: float, *, pin: bool) -> tuple[Any, Any]:
    """Copy rows into one tensor, one by one.

    Args:
        rows: at least one tensor, all of one rank and on one device.
        dtype: element type of the result.
        value: the number that fills up rows.
        pin: put a result on the CPU into pinned memory.

    Returns:
        The tensor ``(N, ...)``, and the rows' extents as int64 ``(axes, N)``.
    """
    shapes = [tuple(row.shape) for row in rows]
    extents = [max(axis) for axis in zip(*shapes, strict=True)]
    device = rows[0].device
    pin = pin and device.type == "cpu"
    data = torch.empty((len(rows), *extents), dtype=dtype, device=device, pin_memory=pin)
    ragged = [d for d, extent in enumerate(extents) if any(shape[d] < extent for shape in shapes)]
    if len(ragged) > 1:
        data.fill_(value)
    for to, row, shape in zip(data, rows, shapes, strict=True):
        to[tuple(slice(n) for n in shape)] = row
        if len(ragged) == 1:  # most elements are written once
            (axis,) = ragged
            to.narrow(axis, shape[axis], extents[axis] - shape[axis]).fill_(value)
    return data, torch.tensor(shapes, dtype=torch.int64).reshape(len(rows), -1).T


def pad_on_gpu(rows: Sequence[Any], dtype: torch.dtype, value: float) -> tuple[Any, Any]:
    """Copy a batch's rows on a GPU into one tensor, by one launch after the work of torch's current stream.

    Args:
        rows: at least one ``DeviceArray`` of a GPU, all of one rank.
        dtype: their element type.
        value: the number that fills up rows.

    Returns:
        The tensor ``(N, ...)``, and the rows' extents as int64 ``(axes, N)`` in pinned memory.

    Raises:
        DeviceError: the device cannot be used.
        UnsupportedError: NVRTC is not installed.
    """
    device = torch.device("cuda", rows[0].device_id)
    table = _native.gpu.row_table(rows, torch.cuda.current_stream(device).cuda_stream)
    # On the way to a GPU, a copy of pageable memory may wait for the stream's work.
    lines = torch.from_numpy(table.reshape(-1, len(rows) + 1)).pin_memory()
    return pad_table(lines, dtype, value, device), lines[1:, :-1]


def pad_table(table: torch.Tensor, dtype: torch.dtype, value: float, device: torch.device) -> torch.Tensor:
    """Copy rows into one tensor. ``table``: int64 ``(1 + axes, N + 1)`` of ``_native.gpu.row_table``, on the CPU."""
    from ._torch_ops_cuda import kernels

    count, extents = table.shape[1] - 1, table[1:, -1].tolist()
    data = torch.empty((count, *extents), dtype=dtype, device=device)
    elements = math.prod(extents)
    if not elements:
        return data
    lines = table.to(device, non_blocking=True)
    row_blocks = -(-elements // _ELEMENTS)
    parameters = lines.data_ptr(), count, len(extents), row_blocks, _bits(value, dtype), data.data_ptr()
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else None
    work = [(_NAME, count * row_blocks, _THREADS, parameters)]
    kernels(device).run(_source(dtype.itemsize), (_NAME,), work, stream)
    return data


@cache
def _source(item_bytes: int) -> str:
    """Return the CUDA source of the kernel for elements of a size."""
    return f'#include "device/pad_rows.cuh"\nSTOKER_PAD_ROWS({_ITEM_TYPES[item_bytes]})\n'


def _bits(value: float, dtype: torch.dtype) -> int:
    """Return the bits of a number."""
    return int.from_bytes(torch.tensor([value], dtype=dtype).view(torch.uint8).numpy().tobytes(), "little")
