# SPDX-License-Identifier: Apache-2.0
"""``torch_python_function``: functions on torch tensors as operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import fn, pipeline_def
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError
from stoker.dali.plugin.pytorch.fn import torch_python_function

torch = pytest.importorskip("torch", exc_type=ModuleNotFoundError)
ROWS = [np.arange(i * 12, i * 12 + 12, dtype=np.float32).reshape(3, 4) for i in range(4)]


def run(make: Any) -> list[list[np.ndarray]]:
    @pipeline_def(batch_size=len(ROWS), num_threads=2)
    def graph() -> Any:
        return make(fn.external_source(lambda: ROWS, dtype="float32", ndim=2))

    with graph() as pipe:
        return [[np.array(r) for r in out] for out in pipe.run()]


def test_a_function_of_a_row() -> None:
    def function(x: Any) -> Any:
        assert isinstance(x, torch.Tensor)
        x += 1  # the tensor is the function's own
        return x.softmax(1), x.sum().requires_grad_()

    scaled, sums = run(lambda x: torch_python_function(x, function=function, num_outputs=2))
    for got, total, x in zip(scaled, sums, ROWS, strict=True):
        np.testing.assert_array_equal(got, torch.from_numpy(x + 1).softmax(1).numpy())
        assert total == (x + 1).sum()
    (again,) = run(lambda x: torch_python_function(x, function=lambda t: t))
    np.testing.assert_array_equal(again[2], ROWS[2])


def test_a_function_of_a_batch() -> None:
    def function(rows: Any) -> Any:
        mean = torch.stack(rows).mean(0)
        return [row - mean for row in rows]

    (out,) = run(lambda x: torch_python_function(x, function=function, batch_processing=True))
    for got, x in zip(out, ROWS, strict=True):
        np.testing.assert_array_equal(got, x - np.mean(ROWS, axis=0))


def test_errors() -> None:
    with pytest.raises(UnsupportedError, match="device cpu"):
        run(lambda x: torch_python_function(x, function=lambda t: t, device="mixed"))
    with pytest.raises(ArgumentError, match="`output_shapes` is for the device gpu"):
        run(lambda x: torch_python_function(x, function=lambda t: t, output_shapes=lambda x: x))
    with pytest.raises(ArgumentError, match="expected a function"):
        run(lambda x: torch_python_function(x, function=3))
    with pytest.raises(DataError, match="no luck"):
        run(lambda x: torch_python_function(x, function=lambda t: 1 / 0 if t is None else _raise()))


def _raise() -> Any:
    raise RuntimeError("no luck")
