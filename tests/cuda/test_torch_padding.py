# SPDX-License-Identifier: Apache-2.0
"""Padded batches on a GPU: one kernel instead of a copy per row.

Without a GPU the kernel runs on emulated threads, on rows in host memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest

torch = pytest.importorskip("torch", exc_type=ModuleNotFoundError)

from stoker import fn, pipeline_def  # noqa: E402
from stoker.frameworks import _torch_ops_cuda as on_gpu  # noqa: E402
from stoker.frameworks._torch_padding import pad, pad_table  # noqa: E402
from stoker.native import _native  # noqa: E402
from stoker.torch import Loader  # noqa: E402

SHAPES = {
    "signals": [(1,), (2500,), (0,), (2049,)],
    "spectrograms": [(3, 700), (3, 1), (3, 0), (3, 699)],
    "images": [(5, 7, 3), (9, 2, 3), (9, 7, 1)],
    "empty": [(0, 4), (0, 2)],
}


def rows_of(name: str, dtype: Any) -> list[Any]:
    rng = np.random.default_rng(3)
    return [torch.from_numpy(rng.integers(0, 120, shape)).to(dtype) for shape in SHAPES[name]]


def table_of(rows: list[Any]) -> Any:
    lines = [[row.data_ptr() for row in rows], *zip(*(row.shape for row in rows), strict=True)]
    return torch.tensor([[*line, max(line) if i else 0] for i, line in enumerate(lines)], dtype=torch.int64)


@pytest.mark.parametrize("dtype", ["uint8", "bool", "int16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", SHAPES)
def test_the_kernel_copies_as_torch_does(name: str, dtype: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    emulated = on_gpu.Kernels(emulated_stages.EmulatedGpu(folder))
    monkeypatch.setattr(on_gpu, "kernels", lambda device: emulated)
    kind = getattr(torch, dtype)
    rows = rows_of(name, kind)
    value = 1 if dtype == "bool" else 7
    expected, _ = pad(rows, kind, value, pin=False)
    found = pad_table(table_of(rows), kind, value, torch.device("cpu"))
    assert found.dtype == kind and found.shape == expected.shape and torch.equal(found, expected)


@pytest.mark.parametrize("name", SHAPES)
def test_copies_by_torch(name: str) -> None:
    rows = rows_of(name, torch.float32)
    found, extents = pad(rows, torch.float32, -1.0, pin=False)
    largest = np.max(SHAPES[name], axis=0)
    for row, have in zip(rows, found, strict=True):
        rest = [(0, large - n) for large, n in zip(largest, row.shape, strict=True)]
        np.testing.assert_array_equal(have, np.pad(row, rest, constant_values=-1))
    assert extents.T.tolist() == [list(shape) for shape in SHAPES[name]]


def test_row_tables_are_checked() -> None:
    with pytest.raises(ValueError, match="at least a row"):
        _native.gpu.row_table([], 0)


@pytest.mark.parametrize("count", [3, 1])
@emulated_stages.NEEDS_GPU
def test_batches_of_a_gpu(count: int) -> None:
    data = [np.arange(6 * n, dtype=np.float32).reshape(2, 3 * n) for n in (5, 1, 9)]

    @pipeline_def(batch_size=count, device_id=0)
    def signals() -> Any:
        return fn.external_source(data, batch=False, layout="ft", cycle=True).gpu() + 1.0

    loader = Loader(signals(), ragged="padded", padding_value=-2.0, size=3)
    for turn, (found, lengths) in enumerate(loader):
        rows = [torch.from_numpy(data[(turn * count + k) % 3]) + 1 for k in range(count)]
        expected, extents = pad(rows, torch.float32, -2.0, pin=False)
        assert found.is_cuda and torch.equal(found.cpu(), expected)
        assert lengths.tolist() == extents[1].tolist() and lengths.is_pinned()
    loader.close()
