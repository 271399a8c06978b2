# SPDX-License-Identifier: Apache-2.0
"""``stoker.numpy.Loader``, and what all frameworks' loaders share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frameworks.batches import DTYPES, expected, ragged, typed
from run.pipelines import files_of, training

from stoker import ArgumentError, types
from stoker.frameworks._exchange import as_capsule, as_dlpack, empty
from stoker.numpy import Loader

ROWS = 17


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:ROWS]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_types_and_values(dtype: Any) -> None:
    with typed(dtype) as pipe:
        got = next(iter(Loader(pipe, size=1)))
        assert got.dtype == dtype.numpy and got.shape == (4, 3, 5)
        if dtype == types.BFLOAT16:
            got = (got.astype(np.uint32) << 16).view(np.float32)
        np.testing.assert_array_equal(got, expected(dtype))


def test_labels_names_and_epochs(files: list[str]) -> None:
    with training(files, shuffle=False) as pipe:
        loader = Loader(pipe, ["image", "label"])
        for _ in range(2):
            batches = list(loader)
            labels = np.concatenate([b["label"] for b in batches])
            assert labels.dtype == np.int64 and labels.tolist() == list(range(ROWS))
            assert len(batches) == len(loader) == 4 and batches[0]["image"].shape == (5, 3, 16, 16)


def test_rows_of_different_shapes_are_a_list() -> None:
    with ragged() as pipe:
        assert [row.shape for row in next(iter(Loader(pipe)))] == [(2, 3, 4), (1, 5, 4), (3, 1, 4)]


def test_a_state_continues_in_the_middle(files: list[str]) -> None:
    with training(files) as pipe, training(files) as other:
        loader = Loader(pipe)
        whole = [labels.tolist() for _, labels in loader]
        loader.set_epoch(0)
        next(iter(loader))
        rest = Loader(other)
        rest.load_state_dict(json.loads(json.dumps(loader.state_dict())))
        assert [labels.tolist() for _, labels in rest] == whole[1:]


def test_outputs_on_a_gpu_are_refused(files: list[str]) -> None:
    with training(files) as pipe:
        loader = Loader(pipe)
        next(iter(loader))
        plan = pipe.execution.plan
        on_gpu = [type(p)(**{**vars(p), "on_gpu": True}) for p in plan.outputs]
        delivered = pipe.next("stop")
        with pytest.raises(ArgumentError, match="on a GPU"):
            loader._arrays(delivered, type("Plan", (), {"outputs": on_gpu})())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"last_batch_policy": "x"}, "last_batch_policy"),
        ({"size": -1}, "size"),
        ({"output_map": ["a"]}, "one name per"),
    ],
)
def test_wrong_arguments(files: list[str], options: dict[str, Any], text: str) -> None:
    with training(files) as pipe, pytest.raises(ArgumentError, match=text):
        Loader(pipe, **options)


# ---- exchange by DLPack ----


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_exchange_shares_memory(dtype: Any) -> None:
    with typed(dtype) as pipe:
        array = pipe.run()[0].as_array()
        shared = as_dlpack(array, dtype)
        assert array.ctypes.data % 64 == 0 and shared.__dlpack_device__() == (1, 0)
        if dtype != types.BFLOAT16:
            there = np.from_dlpack(shared)
            assert there.dtype == array.dtype and there.ctypes.data == array.ctypes.data
        assert "dltensor" in repr(as_capsule(array, dtype))
        assert "dltensor_versioned" in repr(shared.__dlpack__(max_version=(1, 0)))


def test_exchange_keeps_the_memory_alive() -> None:
    class Owned(np.ndarray): ...

    array = np.arange(12, dtype=np.float32)
    shared = as_dlpack(array, types.FLOAT)
    del array
    assert np.from_dlpack(shared).tolist() == list(range(12))


@pytest.mark.parametrize(
    ("array", "dtype", "text"),
    [
        (np.zeros((4, 4), np.float32)[:, ::2], types.FLOAT, "contiguous"),
        (np.zeros(4, np.float32), types.INT32, "element type"),
        (np.zeros(4, np.int16), types.BFLOAT16, "element type"),
    ],
)
def test_exchange_refuses_what_it_would_misread(array: Any, dtype: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        as_dlpack(array, dtype)


def test_capsules_need_aligned_memory() -> None:
    with pytest.raises(ValueError, match="64 bytes"):
        as_capsule(empty((65,), np.dtype(np.uint8))[1:], types.UINT8)
    assert empty((3, 0), np.dtype(np.float32)).shape == (3, 0)
