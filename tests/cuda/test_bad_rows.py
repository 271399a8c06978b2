# SPDX-License-Identifier: Apache-2.0
"""Bad rows of batches in GPU memory: replaced and skipped there, with the rows of the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest

from stoker import DataError, fn, pipeline_def
from stoker.executor.flight import SuppliedMemory
from stoker.native import _native
from tests.run.pipelines import files_of

COUNT, BAD = 22, (3, 4, 17)


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)])
def gpu(request):
    """Use the null device as GPU 0, unless there is a GPU."""
    if request.param == "null":
        request.getfixturevalue("emulated_gpu")
    return request.param


@pytest.fixture(scope="module")
def files(jpegs: Path, tmp_path_factory) -> list[str]:
    """Create photographs. Of ``BAD``, one is truncated, one is no image, and one is missing."""
    root, good, names = tmp_path_factory.mktemp("bad"), files_of(jpegs), []
    for n in range(COUNT):
        path = root / f"{n:02}.jpg"
        data = Path(good[n % len(good)]).read_bytes()
        data = data[: len(data) // 2] if n == BAD[0] else b"this is no photograph" if n == BAD[1] else data
        if n != BAD[2]:
            path.write_bytes(data)
        names.append(str(path))
    return names


@pipeline_def(batch_size=5, num_threads=2, seed=7, error_limit=1.0)
def dense(files: list[str], device: str) -> Any:
    """Return rows of one shape, and a label on the GPU and on the CPU."""
    data, labels = fn.readers.file(files=files, random_shuffle=True)
    images = fn.decoders.image_random_crop(data)
    images = fn.resize(images, size=(9, 8), device=device)
    images = fn.crop_mirror_normalize(images, mean=[120.0], std=[60.0], mirror=fn.random.coin_flip())
    return images, labels.gpu() if device == "gpu" else labels, labels


@pipeline_def(batch_size=5, num_threads=2, seed=7, error_limit=1.0)
def ragged(files: list[str], device: str, size: int | None = None) -> Any:
    """Return rows of several shapes (or with ``size``, of one shape that only the run knows)."""
    data, labels = fn.readers.file(files=files)
    images = fn.decoders.image(data)
    if size is not None:
        images = fn.resize(images, size=fn.random.uniform(range=(size, size + 0.4), shape=(2,)))
    return fn.flip(images, device=device), labels


@pipeline_def(batch_size=5, num_threads=2, seed=7, error_limit=1.0)
def mixed_rows(files: list[str], device: str) -> Any:
    """Return rows that depend on each other."""
    data, labels = fn.readers.file(files=files)
    images = fn.resize(fn.decoders.image(data), size=(9, 8), device=device)
    return fn.permute_batch(images, indices=fn.batch_permutation()), labels


def batches(pipe: Any) -> list[list[Any]]:
    """Return, per batch and output, whether it is dense, and the rows on the CPU."""
    found = []
    with pipe:
        while (delivered := pipe.next()) is not None:
            outputs = pipe.execution.batches(delivered)
            found.append([(o.is_dense, o.skipped, [np.array(x) for x in o.as_cpu()]) for o in outputs])
        assert [e.index for e in sorted(pipe.errors, key=lambda e: e.key)] == list(BAD)
    return found


def assert_same(got: list[list[Any]], want: list[list[Any]]) -> None:
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        for (dense_a, skipped_a, rows_a), (dense_b, skipped_b, rows_b) in zip(a, b, strict=True):
            assert (dense_a, skipped_a) == (dense_b, skipped_b)
            for x, y in zip(rows_a, rows_b, strict=True):
                np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("policy", ["replace", "skip"])
@pytest.mark.parametrize("make", [dense, ragged])
@pytest.mark.parametrize("settings", [{}, {"batch_size": 7, "num_threads": 1, "prefetch_queue_depth": 3},
                                      {"exec_async": False}], ids=str)  # fmt: skip
def test_bad_rows_are_handled_as_on_the_cpu(
    gpu: str, make: Any, policy: str, settings: dict[str, Any], files: list[str]
) -> None:
    want = batches(make(files, "cpu", on_error=policy, **settings))
    assert_same(batches(make(files, "gpu", device_id=0, on_error=policy, **settings)), want)


def test_rows_of_one_shape_become_one_array_again(gpu: str, files: list[str]) -> None:
    for policy in ("replace", "skip"):
        got = batches(ragged(files, "gpu", size=12, device_id=0, on_error=policy))
        assert all(is_dense for is_dense, *_ in (batch[0] for batch in got))
        assert_same(got, batches(ragged(files, "cpu", size=12, on_error=policy)))


def test_a_batch_may_become_empty(gpu: str, files: list[str]) -> None:
    bad = [files[n] for n in BAD]
    for make in (dense, ragged):
        with make(bad, "gpu", device_id=0, on_error="skip", batch_size=3) as pipe:
            outputs = pipe.run()
            assert [len(o) for o in outputs] == [0] * len(outputs)
            assert outputs[0].skipped == (0, 1, 2)


def test_rows_that_depend_on_each_other(gpu: str, files: list[str]) -> None:
    want = batches(mixed_rows(files, "cpu", on_error="replace"))
    assert_same(batches(mixed_rows(files, "gpu", device_id=0, on_error="replace")), want)


@pytest.mark.parametrize("policy", ["replace", "skip"])
def test_memory_of_the_consumer(emulated_gpu: None, policy: str, files: list[str]) -> None:
    """The memory is the null device's; `tests/gpu/test_bad_rows.py` uses torch's."""
    want = batches(dense(files, "cpu", on_error=policy))
    pipe = dense(files, "gpu", device_id=0, on_error=policy)
    supplied = []

    def allocate(output: int, planned: Any, rows: int) -> SuppliedMemory | None:
        memory = np.full((rows, *planned.shape), 77, planned.dtype.numpy)
        supplied.append(memory)
        return SuppliedMemory(memory.ctypes.data, memory)

    with pipe:
        for batch in want:
            delivered = pipe.next("stop", allocate)
            assert delivered is not None
            for got, (_, _, rows) in zip(delivered.outputs, batch, strict=True):
                assert any(np.shares_memory(got, memory) for memory in supplied) or not len(got)
                np.testing.assert_array_equal(got, np.asarray(rows))


def test_the_first_rows_of_a_batch(gpu: str, files: list[str]) -> None:
    """An iterator can keep the first rows of the last batch of an epoch."""
    for make in (dense, ragged):
        with make(files, "gpu", device_id=0, on_error="skip") as pipe:
            batch = pipe.run()[0]
            assert len(batch) < 5 or not batch.skipped
            head = batch.head(2)
            assert (len(head), head.device, head.skipped) == (2, "gpu", batch.skipped)
            for got, want in zip(head.as_cpu(), list(batch.as_cpu())[:2], strict=True):
                np.testing.assert_array_equal(got, want)
            assert head.as_cpu().skipped == batch.skipped


def test_the_default_raises(gpu: str, files: list[str]) -> None:
    with ragged(files, "gpu", device_id=0) as pipe:
        with pytest.raises(DataError, match=r"03\.jpg"):
            pipe.run()
        assert len(pipe.run()[0]) == 5


def test_rows_are_moved_and_joined() -> None:
    """Test only the native side."""
    plan = _native.Plan()
    plan.finish(0, 0)
    engine = _native.Engine(plan, 1, _native.gpu.open_null())
    memory = np.arange(12, dtype=np.uint8)
    at = memory.ctypes.data
    engine.move_on_device([(at, at + 4, 4), (at + 4, at + 8, 4), (at, at, 0)])
    assert memory.tolist() == [4, 5, 6, 7, 8, 9, 10, 11, 8, 9, 10, 11]
    engine.close()
