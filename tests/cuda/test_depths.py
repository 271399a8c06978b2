# SPDX-License-Identifier: Apache-2.0
"""Separate prefetch depths for CPU and GPU: the number of batches on the GPU (a null device), and their memory."""

from __future__ import annotations

import time
from typing import Any

import emulated_stages
import numpy as np
import pytest

from stoker import ArgumentError, DataError, StateError, fn, pipeline_def
from stoker.device.gpu import Gpu
from stoker.executor.flight import SuppliedMemory
from stoker.native import _native

BATCH, INPUT = 4, 20


@pytest.fixture
def idle(emulated_gpu: None, folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, memory_limit=None: emulated_stages.IdleGpu(folder)))


@pytest.fixture
def requested() -> list[int]:
    """Return the list that records the samples that the source is called for."""
    return []


@pytest.fixture
def make(requested: list[int]) -> Any:
    """Return pipelines whose rows are (side, side, 1) and one more than the number of the sample."""

    def rows(info: Any) -> np.ndarray:
        requested.append(info.idx_in_epoch)
        return np.full((INPUT, INPUT, 1), info.idx_in_epoch % 200, np.uint8)

    @pipeline_def(batch_size=BATCH, num_threads=2, seed=1, device_id=0)
    def scaling(side: int) -> Any:
        x = fn.external_source(source=rows, batch=False, dtype=np.uint8, ndim=3, layout="HWC").gpu()
        return fn.reshape(fn.cast(fn.resize(x, size=(side, side)), dtype=np.float32) + 1.0, shape=[side, side, 1])

    return scaling


def settled(execution: Any, count: int) -> int:
    """Return the number of finished batches, once it has reached ``count`` or no longer changes."""
    until = time.monotonic() + (60 if count else 0.5)
    while execution.run.finished < count and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.3)
    return int(execution.run.finished)


@pytest.mark.parametrize(
    ("depth", "prefetched", "on_gpu"),
    [
        ({"cpu_size": 3, "gpu_size": 1}, 4, 1),
        ({"cpu_size": 1, "gpu_size": 3}, 4, 3),
        ({"cpu_size": 2, "gpu_size": 2}, 4, 2),
        (4, 4, 4),
    ],
)
def test_the_number_of_batches_on_the_gpu(
    idle: None, make: Any, requested: list[int], depth: Any, prefetched: int, on_gpu: int
) -> None:
    with make(30, prefetch_queue_depth=depth) as pipe:
        for _ in range(3):
            pipe.run()
            execution = pipe.execution
            assert len(execution._queue) == prefetched
            assert settled(execution, on_gpu) == on_gpu
        assert len(requested) == BATCH * (3 + prefetched)


def bytes_of(pipe: Any) -> int:
    """Return the GPU memory in use after some batches, when it no longer changes."""
    with pipe:
        for _ in range(4):
            pipe.run()
        settled(pipe.execution, 0)
        return pipe.execution.run.device_bytes


def test_memory_is_that_of_each_side(idle: None, make: Any) -> None:
    """More prefetched batches on the CPU take no GPU memory."""
    side = 1000
    few, many, all_on_gpu = (
        bytes_of(make(side, prefetch_queue_depth=depth))
        for depth in ({"cpu_size": 1, "gpu_size": 1}, {"cpu_size": 5, "gpu_size": 1}, 6)
    )
    output = BATCH * side * side * 4
    assert many == few, (few, many)
    assert all_on_gpu - many > 3 * output, (many, all_on_gpu)


def test_the_consumers_memory_is_requested_late(emulated_gpu: None, make: Any) -> None:
    supplied = []

    def allocate(output: int, planned: Any, rows: int) -> SuppliedMemory:
        supplied.append(np.full((rows, 24, 24, 1), -1, np.float32))
        return SuppliedMemory(supplied[-1].ctypes.data, supplied[-1])

    with make(24, prefetch_queue_depth={"cpu_size": 4, "gpu_size": 2}) as pipe:
        for k in range(3):
            output = pipe.next("go_on", allocate).outputs[0]
            assert output is supplied[k] and (output[:, 5, 7, 0] == np.arange(BATCH * k, BATCH * k + BATCH) + 1).all()
            assert len(supplied) == k + 1 + 2 and len(pipe.execution._queue) == 6
        pipe.start_epoch(1)  # held batches are dropped
        assert not pipe.execution._queue
        output = pipe.next("go_on", allocate).outputs[0]
        assert any(output is one for one in supplied[5:]) and (output > 0).all()


def test_memory_that_is_refused(emulated_gpu: None, make: Any) -> None:
    """A refused allocation is the error of its batch, and other batches continue."""
    calls = 0

    def allocate(output: int, planned: Any, rows: int) -> SuppliedMemory | None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise MemoryError("no memory there")
        return None

    with make(24, prefetch_queue_depth={"cpu_size": 2, "gpu_size": 1}) as pipe:
        assert pipe.next("go_on", allocate) is not None
        with pytest.raises(MemoryError, match="no memory there"):
            pipe.next("go_on", allocate)
        batch = pipe.next("go_on", allocate)
        assert np.frombuffer(batch.outputs[0].to_host(), np.float32)[0] == 2 * BATCH + 1


@pytest.mark.parametrize("settings", [{}, {"batch_size": 3, "num_threads": 1}, {"exec_async": False}])
def test_the_results_are_the_same(emulated_gpu: None, make: Any, settings: dict[str, Any]) -> None:
    depth = {"cpu_size": 3, "gpu_size": 1}
    with make(24, prefetch_queue_depth=depth, **settings) as pipe:
        rows = [np.asarray(row) for _ in range(8) for row in pipe.run()[0].as_cpu()]
        assert [row[3, 3, 0] for row in rows] == [n + 1.0 for n in range(len(rows))]


def test_closing_with_held_batches(idle: None, make: Any) -> None:
    pipe = make(30, prefetch_queue_depth={"cpu_size": 6, "gpu_size": 1})
    pipe.run()
    pipe.close()
    with pytest.raises(StateError):
        pipe.run()


def test_bad_rows(emulated_gpu: None, make: Any) -> None:
    """A batch with a row that fails on the GPU raises in its turn, and frees its slot."""

    @pipeline_def(
        batch_size=BATCH, num_threads=2, seed=1, device_id=0, prefetch_queue_depth={"cpu_size": 3, "gpu_size": 1}
    )
    def dividing() -> Any:
        x = fn.external_source(source=lambda info: np.int32(info.idx_in_epoch - 9), batch=False)
        return 100 // x.gpu()

    with dividing() as pipe:
        for k in range(6):
            if k == 9 // BATCH:
                with pytest.raises(DataError, match="divisor"):
                    pipe.run()
                continue
            found = pipe.run()[0].as_cpu().as_array().ravel()
            assert found.tolist() == [int(100 / (n - 9)) for n in range(BATCH * k, BATCH * k + BATCH)]


@pytest.mark.parametrize("depth", [{"cpu_size": 0, "gpu_size": 1}, {"cpu_size": 1}])
def test_depths_are_checked(make: Any, depth: Any) -> None:
    with pytest.raises(ArgumentError, match="prefetch_queue_depth"):
        make(24, prefetch_queue_depth=depth)


def test_later_batches_allocate_inputs_in_one_block(idle: None) -> None:
    """Only the first batch allocates input memory block by block. Later batches allocate one block."""
    image = np.zeros((1 << 21, 1, 1), np.uint8)  # a batch of 8 is four times as large as the first block

    def source(info: Any) -> np.ndarray:
        while info.iteration == 1 and not pipe.execution.run.finished:
            time.sleep(0.001)  # until the first batch is complete, so that others know its size
        return image

    @pipeline_def(batch_size=8, num_threads=1, device_id=0, prefetch_queue_depth=4)
    def sending() -> Any:
        return fn.external_source(source=source, batch=False, dtype=np.uint8, ndim=3, layout="HWC").gpu() + 1

    before = _native.allocations()
    with sending() as pipe:
        for _ in range(12):
            pipe.run()
        allocations = _native.allocations() - before
    # Five batches: the first allocates several blocks for its inputs, then one in place of them; the others one each.
    # Scratch memory and outputs are added.
    assert allocations <= 16, allocations
