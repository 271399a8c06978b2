# SPDX-License-Identifier: Apache-2.0
"""Sources in worker processes: the same batches as in this process, or a refusal."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, Pipeline, StateError, fn, types
from stoker.executor.workers import ProcessWorkerPool
from tests.run.parallel_sources import ROWS, pipeline, row
from tests.sources import read_batches


# At module level, so that "spawn" finds them too.
def row_pair(info: types.SampleInfo) -> Any:
    return row(info), np.int64([info.idx_in_batch, info.iteration])


def numbered(i: int) -> Any:
    if i == 5:
        raise StopIteration
    return [np.arange(k + i) for k in range(1 + i % 4)]


def informed(info: types.BatchInfo) -> Any:
    if info.iteration == 5:
        raise StopIteration
    return np.full((3, 2), 10 * info.epoch_idx + info.iteration, np.int16)


def generated() -> Iterator[Any]:
    for i in range(ROWS):
        yield bytes([i, i + 1])


def batches() -> Iterator[Any]:
    for i in range(6):
        yield np.arange(2 * i, 2 * i + 4).reshape(2, 2), [i, i + 1]


SOURCES: dict[str, dict[str, Any]] = {
    "rows": {"source": row, "batch": False},
    "rows of two outputs": {"source": row_pair, "batch": False, "outputs": 2},
    "numbered batches": {"source": numbered},
    "batches": {"source": informed, "batch_info": True},
    "numbers of a declared type": {"source": lambda i: [i, 2 * i], "dtype": types.UINT8},
    "generator of rows": {"source": generated, "batch": False},
    "generator of batches": {"source": batches, "outputs": 2},
    "list": {"source": [np.float32([i]) for i in range(ROWS)], "batch": False},
    "list, again and again": {"source": [np.float32([i]) for i in range(ROWS)], "batch": False, "cycle": "quiet"},
    "list, once": {"source": [np.float32([i]) for i in range(ROWS)], "batch": False, "cycle": "no"},
}  # fmt: skip


def two_epochs(pipe: Pipeline) -> Any:
    with pipe:
        first = read_batches(pipe, 7)
        pipe.reset()
        return first, read_batches(pipe, 7)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("count", [1, 3])
def test_workers_give_the_same_as_this_process(name: str, count: int) -> None:
    arguments = SOURCES[name]
    wanted = two_epochs(pipeline(parallel=False, **arguments))
    assert len(wanted[0]) >= 5
    assert two_epochs(pipeline(count, **arguments)) == wanted
    assert two_epochs(pipeline(count, prefetch_queue_depth=5, **arguments)) == wanted


def test_spawned_workers_give_the_same() -> None:
    for name in ("rows of two outputs", "generator of batches"):
        wanted = two_epochs(pipeline(parallel=False, **SOURCES[name]))
        assert two_epochs(pipeline(2, "spawn", **SOURCES[name])) == wanted


def test_two_sources_share_the_workers_beside_a_reader(jpegs: Path) -> None:
    def batchwise(parallel: bool) -> Any:
        pipe = Pipeline(4, 2, seed=1, py_num_workers=2)
        with pipe:
            _, label = fn.readers.file(file_root=str(jpegs))
            a = fn.external_source(row, batch=False, parallel=parallel)
            b = fn.external_source(generated, batch=False, parallel=parallel)
            pipe.set_outputs(label, a, b)
        with pipe:
            return read_batches(pipe, 5)

    assert len(batchwise(True)[0]) == 3
    assert batchwise(True) == batchwise(False)


def test_rows_that_grow_and_shrink_get_the_memory_they_need() -> None:
    sizes = [10, 100_000, 3, 1_000_000, 0, 50, 2_000_000]

    def sized(info: types.SampleInfo) -> Any:
        return np.full(sizes[info.idx_in_epoch % len(sizes)], info.idx_in_epoch, np.int32)

    with pipeline(2, batch_size=2, source=sized, batch=False) as pipe:
        kept = [pipe.run()[0] for _ in range(10)]  # batches that the consumer keeps are not overwritten
        for i, batch in enumerate(kept):
            for k, array in enumerate(batch):
                number = 2 * i + k
                assert array.shape == (sizes[number % len(sizes)],)
                assert (array == number).all()


def test_rows_are_computed_in_other_processes_and_prefetched() -> None:
    with pipeline(2, batch_size=2, source=lambda info: np.int64(os.getpid()), batch=False) as pipe:
        pids = {x for batch in read_batches(pipe, 4) for x in batch[0]}
        assert len(pids) == 2 and os.getpid() not in pids
        children = [os.path.exists(f"/proc/{pid}") for pid in pids]
        assert children == [True, True]
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_a_state_is_independent_of_the_workers() -> None:
    for name in ("rows", "numbered batches", "list"):
        arguments = SOURCES[name]
        with pipeline(parallel=False, **arguments) as pipe, pipeline(3, **arguments) as other:
            read_batches(pipe, 2)
            other.set_state(pipe.get_state())
            read_batches(other, 1)
            pipe.set_state(other.get_state())
            assert read_batches(other) == read_batches(pipe)
    with pipeline(source=generated, batch=False) as pipe, pytest.raises(StateError, match="can be resumed"):
        pipe.get_state()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"source": lambda: 1}, "a function of one argument .* with parallel=True, got one of none"),
        ({"source": (i for i in [1]), "method": "spawn"}, "sent to another process, got one that cannot: .* made at"),
        ({}, "expected a `source` with"),
        ({"source": row, "batch": False, "prefetch_queue_depth": 0}, "`prefetch_queue_depth` from 1 to"),
        ({"source": row, "count": 0}, "`py_num_workers` >= 1"),
        ({"source": row, "method": "forkserver"}, "`py_start_method` in"),
        ({"source": row, "settings": {"py_callback_pickler": 5}}, "`py_callback_pickler` with `dumps`"),
        ({"source": lambda i: 1, "method": "spawn"}, "can be sent to another process, got one that cannot: .* made at"),
    ],
)  # fmt: skip
def test_sources_that_cannot_run_in_workers_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        pipeline(**arguments).build()


def test_a_forked_worker_goes_through_an_iterator_once() -> None:
    with pipeline(source=(np.full((2, 1), i) for i in range(3))) as pipe:
        assert [pipe.run()[0].as_array().ravel().tolist() for _ in range(3)] == [[i, i] for i in range(3)]
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.reset()
        with pytest.raises(StateError, match="has ended and cannot begin again"):
            pipe.run()


class Pickler:
    """Pickler that sends the code of a function, as picklers by value do."""

    @staticmethod
    def dumps(x: Any, mark: bytes = b"") -> bytes:
        import marshal

        return mark + pickle.dumps((type(x), x.make_argument, marshal.dumps(x.function.__code__)))

    @staticmethod
    def loads(data: bytes, skip: int = 0) -> Any:
        import marshal
        import types as kinds

        kind, make_argument, code = pickle.loads(data[skip:])
        return kind(kinds.FunctionType(marshal.loads(code), {"np": np}), make_argument, 1)


def test_a_pickler_of_the_users_choice() -> None:
    choice = {"py_callback_pickler": (Pickler, {"mark": b"ab"}, {"skip": 2})}
    with pipeline(1, "spawn", source=lambda i: np.int64([i, i * i]), settings=choice) as pipe:
        assert read_batches(pipe, 3) == [[[0, 0]], [[1, 1]], [[2, 4]]]


def test_processes_start_all_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[Any] = []
    launch = ProcessWorkerPool._launch

    def limited(self: ProcessWorkerPool, number: int) -> Any:
        if number == 2:
            raise OSError("no more processes")
        launched.append(launch(self, number))
        return launched[-1]

    with pipeline(3, source=row, batch=False) as pipe:
        with monkeypatch.context() as patch:
            patch.setattr(ProcessWorkerPool, "_launch", limited)
            for _ in range(2):
                with pytest.raises(OSError, match="no more processes"):
                    pipe.start_py_workers()
        assert len(launched) == 4 and all(worker.process._closed for worker in launched)
        assert len(read_batches(pipe)) == 6


def test_a_closed_pipeline_has_no_processes() -> None:
    pipe = pipeline(2, source=row, batch=False)
    pipe.start_py_workers()
    workers = pipe.execution._workers
    assert workers is not None
    pids = [w.process.pid for w in workers._workers]
    assert len(pids) == 2
    pipe.close()
    pipe.close()
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
    with pytest.raises(StateError, match="closed"):
        pipe.run()
