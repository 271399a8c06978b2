# SPDX-License-Identifier: Apache-2.0
"""Start and stop at any point, from any thread, without leaks."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from idle_clock import HANG_S, at_most
from started_threads import StartedThreads

from stoker import DataError, Pipeline, StateError, eager, fn, pipeline_def
from stoker.contract import thread_start
from stoker.executor.run import Run
from stoker.torch import Loader
from tests.run.pipelines import decoding, files_of, rows_of, training

QUICK_S = 5.0  # generous bound for calls that must not wait


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:9]


@pipeline_def(batch_size=2, num_threads=2, seed=1)
def calling(function: Callable[[Any], Any], **options: Any) -> Any:
    numbers = fn.external_source(source=lambda n: np.asarray([[2 * n], [2 * n + 1]], np.int64))
    return fn.python_function(numbers, function=function, **options)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


# ---- threads ----


def test_threads_start_with_the_first_batch(files: list[str]) -> None:
    started = StartedThreads()
    pipe = training(files, num_threads=3).build()
    assert started.count() == 0, "building starts none"
    pipe.run()
    assert started.count() >= 3
    pipe.close()
    assert started.end()


def test_one_sample_without_a_thread(files: list[str]) -> None:
    started = StartedThreads()
    with training(files, batch_size=1, exec_async=False) as pipe:
        expected = [rows_of(pipe.run()) for _ in range(3)]
        assert started.count() == 0
    with training(files, batch_size=1) as pipe:
        assert [rows_of(pipe.run()) for _ in range(3)] == expected
    assert started.end()
    image = eager.decoders.image(Path(files[0]).read_bytes())
    eager.resize([image, image], size=(8, 8))
    assert started.count() == 0


def test_a_hundred_starts_and_stops(files: list[str]) -> None:
    def use(n: int) -> None:
        pipe = [training, decoding, lambda f, **o: calling(lambda x: x, **o)][n % 3](
            files, prefetch_queue_depth=1 + n % 4
        )
        for _ in range(n % 5):
            pipe.run()
        if n % 4 == 0:
            pipe.close()
        elif n % 4 == 1:
            with pipe:
                pass
        elif n % 4 == 2:
            loader = Loader(pipe, size=2)
            next(iter(loader))

    for n in range(6):
        use(n)
    gc.collect()
    started, files_open = StartedThreads(), descriptors()
    for n in range(100):
        use(n)
    gc.collect()
    assert started.end()
    assert descriptors() <= files_open


def test_forgotten_pipelines_end(files: list[str]) -> None:
    started = StartedThreads()
    pipe = training(files)
    pipe.run()
    cycle: list[Any] = [pipe]
    cycle.append(cycle)
    assert started.count() > 0
    del pipe, cycle
    gc.collect()
    assert started.end()


def test_a_forgotten_pipeline_waits_for_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage collector runs in a thread that holds a lock for which a thread of the pipeline waits."""
    monkeypatch.setattr(thread_start, "_CLOSING_S", 0.2)
    held, is_held, waits = threading.Lock(), threading.Event(), threading.Event()

    def function(x: Any) -> Any:
        if x[0] > 1:  # not in the first batch
            is_held.wait(HANG_S)
            waits.set()
            with held:
                pass
        return x

    started = StartedThreads()
    pipe = calling(function)
    pipe.run()
    cycle: list[Any] = [pipe]
    cycle.append(cycle)
    with held:
        is_held.set()
        assert waits.wait(HANG_S)
        del pipe, cycle
        gc.collect()
        assert started.count() > 0, "the thread still waits"
    assert started.end()


def test_many_pipelines_in_parallel(files: list[str]) -> None:
    pipes = [training(files, num_threads=2) for _ in range(8)]
    rows = [[rows_of(p.run()) for p in pipes] for _ in range(4)]
    for step in rows:
        assert all(r == step[0] for r in step)
    with at_most(QUICK_S):
        for pipe in pipes:
            pipe.close()


# ---- close at any point ----


def test_close_with_full_queues(files: list[str]) -> None:
    for _ in range(20):
        pipe = training(files, prefetch_queue_depth=6, batch_size=9)
        pipe.run()
        with at_most(QUICK_S):
            pipe.close()


def test_close_while_another_thread_waits() -> None:
    entered, go_on = threading.Event(), threading.Event()

    def function(x: Any) -> Any:
        if x[0] >= 6:
            entered.set()
            assert go_on.wait(60)
        return x

    raised: list[BaseException] = []
    pipe = calling(function)

    def consume() -> None:
        try:
            while True:
                pipe.run()
        except StateError as error:
            raised.append(error)

    consumer = threading.Thread(target=consume)
    consumer.start()
    assert entered.wait(60)
    closer = threading.Thread(target=pipe.close)
    closer.start()
    consumer.join(HANG_S)
    assert not consumer.is_alive(), "the waiting consumer gets an error immediately, also while the function still runs"
    go_on.set()
    closer.join(60)
    assert "closed" in str(raised[0])


def test_a_consumer_leaves_the_run_to_the_thread_that_closes(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with training(files) as pipe:
        execution = pipe.execution
        take = execution._take

        def taken_while_closing(*args: Any, **options: Any) -> Any:
            delivered = take(*args, **options)
            execution._mark_closed()  # by the other thread, which has not come to the run yet
            return delivered

        monkeypatch.setattr(execution, "_take", taken_while_closing)
        pipe.run()
        run = execution.run
        assert run is not None and not run.closed
        pipe.close()
        assert run.closed


def test_a_run_that_begins_while_its_pipeline_closes_is_closed(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with training(files) as pipe:
        execution = pipe.execution

        def begun_while_closing(*args: Any) -> Run:
            execution._mark_closed()  # by the other thread, which finds no run
            return Run(*args)

        monkeypatch.setattr("stoker.executor.execution.Run", begun_while_closing)
        pipe.run()
        assert execution.run is not None and execution.run.closed


def test_close_while_data_are_awaited() -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def fed() -> Any:
        return fn.external_source(name="x", blocking=True) + 1

    pipe = fed()
    pipe.feed_input("x", [np.asarray(1, np.int32)])
    results: list[Any] = []
    first = threading.Event()

    def consume() -> None:
        try:
            while True:
                results.append(int(pipe.run()[0][0]))
                first.set()
        except StateError as error:
            results.append(str(error))

    consumer = threading.Thread(target=consume)
    consumer.start()
    assert first.wait(60)
    pipe.close()  # with the consumer in its second call, or about to make it
    consumer.join(HANG_S)
    assert not consumer.is_alive()
    assert results[0] == 2
    assert "closed" in results[1]


def test_close_from_several_threads(files: list[str]) -> None:
    for _ in range(10):
        pipe = training(files)
        pipe.run()
        closers = [threading.Thread(target=pipe.close) for _ in range(4)]
        for t in closers:
            t.start()
        pipe.close()
        for t in closers:
            t.join(60)
        assert not any(t.is_alive() for t in closers)


@pytest.mark.parametrize("depth", [1, 3])
def test_close_from_the_users_function(depth: int) -> None:
    pipes: list[Pipeline] = []
    results: list[Any] = []
    done = threading.Event()

    def function(x: Any) -> Any:
        if x[0] == 5:
            pipes[0].close()
            results.append(x + 1)  # its inputs are still valid
            done.set()
        return x

    pipes.append(calling(function, prefetch_queue_depth=depth))
    with at_most(QUICK_S), pytest.raises(StateError, match="closed"):
        while True:
            pipes[0].run()
    assert done.wait(60)
    assert results[0][0] == 6
    pipes.clear()


def test_close_from_a_source() -> None:
    pipes: list[Pipeline] = []

    def source(n: int) -> Any:
        if n == 3:
            pipes[0].close()
        return np.asarray([n], np.int32)

    @pipeline_def(batch_size=1, num_threads=1)
    def pulling() -> Any:
        return fn.external_source(source=source) + 1

    pipes.append(pulling())
    with at_most(QUICK_S), pytest.raises(StateError, match="closed"):
        while True:
            pipes[0].run()
    pipes.clear()


def test_close_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.executor.run._CLOSE_S", 0.2)
    entered, go_on = threading.Event(), threading.Event()

    def function(x: Any) -> Any:
        if x[0] >= 2:
            entered.set()
            assert go_on.wait(60)
            function.after = int(x.sum())  # type: ignore[attr-defined]
        return x

    pipe = calling(function)
    pipe.run()
    assert entered.wait(60)
    with at_most(QUICK_S), pytest.warns(RuntimeWarning, match="has not returned for 0.2 s after `close`"):
        pipe.close()
    go_on.set()
    run = pipe.execution.run
    assert run is not None
    assert run.python.join(60)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipe.close()
    assert function.after == 2  # type: ignore[attr-defined]


_STOPPED = """
import os, sys, warnings
import numpy as np
from stoker import fn, pipeline_def
from stoker.executor import run as run_module

run_module._CLOSE_S = 2.0
ends, counts = os.fdopen(int(sys.argv[1]), "rb"), []

def function(x):
    counts.append(0)
    if len(counts) == 2:
        print("entered", flush=True)
        ends.read(1)
    return x

@pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1)
def pipeline():
    return fn.python_function(fn.external_source(source=lambda: [np.zeros(1, np.uint8)], batch=True), function=function)

warnings.simplefilter("error")
pipe = pipeline()
pipe.run()
print("closing", sys.stdin.readline(), flush=True)
pipe.close()
"""


def test_time_in_which_the_process_is_stopped_does_not_count() -> None:
    """The process is stopped for longer than `close` waits for a function, and then the function ends."""
    reads, writes = os.pipe()
    command = [sys.executable, "-c", _STOPPED, str(reads)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, pass_fds=[reads])
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "entered\n"
        child.stdin.write("now\n")
        child.stdin.flush()
        assert child.stdout.readline() == "closing now\n"
        time.sleep(0.3)  # `close` begins to wait
        child.send_signal(signal.SIGSTOP)
        time.sleep(3)
        os.write(writes, b"1")
        child.send_signal(signal.SIGCONT)
        assert child.wait(120) == 0, "`close` warned of a function that could not run"
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()
        os.close(reads)
        os.close(writes)


def test_two_consumers_share_a_pipeline(files: list[str]) -> None:
    with training(files, batch_size=2) as pipe:
        expected = [row for _ in range(40) for row in rows_of(pipe.run())]
    with training(files, batch_size=2) as pipe:
        taken: list[list[tuple[bytes, ...]]] = []

        def consume() -> None:
            for _ in range(10):
                taken.append(rows_of(pipe.run()))

        consumers = [threading.Thread(target=consume) for _ in range(4)]
        for t in consumers:
            t.start()
        for t in consumers:
            t.join(60)
    assert sorted(row for rows in taken for row in rows) == sorted(expected), "every batch once"


def test_a_failed_batch_leaves_no_trace(files: list[str], tmp_path: Path) -> None:
    with training([*files, str(tmp_path / "none.jpg")], shuffle=False, batch_size=2) as pipe:
        for n in range(100):
            if n % 5 == 4:
                with pytest.raises(DataError):
                    pipe.run()
            else:
                assert len(pipe.run()[0]) == 2
        run = pipe.execution.run
        assert run is not None
        assert len(run._in_flight) <= 2
