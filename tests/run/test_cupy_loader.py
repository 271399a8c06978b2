# SPDX-License-Identifier: Apache-2.0
"""``stoker.cupy.Loader`` without a GPU: which function of CuPy gets which output. See tests/gpu/test_cupy.py."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from frameworks.batches import ragged, typed
from run.pipelines import files_of, training

from stoker import ArgumentError, types


class OnGpu:
    """Array that only DLPack's protocol shows, as one in a GPU's memory."""

    def __init__(self, array: Any) -> None:
        self.array, self.shape = array, array.shape


class Shared(np.ndarray):
    """Result of the stand-in's ``from_dlpack``."""


class Copied(np.ndarray):
    """Result of the stand-in's ``asarray``."""


def host_only(array: Any) -> Any:
    assert isinstance(array, np.ndarray), "an array on a GPU would be copied to the host"
    return array.view(Copied)


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Yield the adapter, imported with a stand-in for CuPy, whose import needs the libraries of CUDA."""
    cupy = ModuleType("cupy")
    cupy.asarray = host_only
    cupy.from_dlpack = lambda x: x.array.view(Shared)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    sys.modules.pop("stoker.frameworks._cupy", None)
    yield importlib.import_module("stoker.frameworks._cupy")
    sys.modules.pop("stoker.frameworks._cupy")


def test_outputs_in_host_memory_are_copied(adapter: ModuleType, jpegs: Path) -> None:
    with training(files_of(jpegs)[:10], shuffle=False) as pipe:
        batches = list(adapter.Loader(pipe, ["image", "label"]))
        assert [b["label"].tolist() for b in batches] == [list(range(5)), list(range(5, 10))]
        assert batches[0]["label"].dtype == np.int64 and type(batches[0]["image"]) is Copied
        assert batches[0]["image"].shape == (5, 3, 16, 16)


def test_outputs_on_a_gpu_share_their_memory(adapter: ModuleType, jpegs: Path) -> None:
    with training(files_of(jpegs)[:10], shuffle=False) as pipe:
        loader = adapter.Loader(pipe)
        next(iter(loader))
        delivered = pipe.next("stop")
        delivered.outputs = [OnGpu(x) for x in delivered.outputs]
        images, labels = loader._arrays(delivered, pipe.execution.plan)
        assert type(images) is Shared and np.shares_memory(images, delivered.outputs[0].array)
        assert labels.dtype == np.int64 and labels.tolist() == list(range(5, 10))


def test_rows_of_different_shapes_are_lists(adapter: ModuleType) -> None:
    with ragged() as pipe:
        assert [r.shape for r in next(iter(adapter.Loader(pipe)))] == [(2, 3, 4), (1, 5, 4), (3, 1, 4)]


def test_bfloat16_is_refused(adapter: ModuleType) -> None:
    with typed(types.BFLOAT16) as pipe, pytest.raises(ArgumentError, match="that CuPy has, got an output of bfloat16"):
        next(iter(adapter.Loader(pipe, size=1)))


def test_the_plan_decides_about_types(adapter: ModuleType) -> None:
    with typed(types.FLOAT) as pipe:
        next(iter(adapter.Loader(pipe, size=1)))
        (planned,) = pipe.execution.plan.outputs
        with pytest.raises(ArgumentError, match=r"types\.FLOAT16"):
            adapter._array(OnGpu(np.zeros((4, 3))), replace(planned, dtype=types.BFLOAT16))
