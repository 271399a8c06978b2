# SPDX-License-Identifier: Apache-2.0
"""Loops that start a thread by themselves: when they do so, and that no batch, state or error depends on it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from idle_clock import HANG_S
from run.pipelines import files_of, training

from stoker import Pipeline, StateError, fn, pipeline_def
from stoker.frameworks import _background
from stoker.frameworks._background import Producer
from stoker.numpy import Loader

ROWS = 17


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:ROWS]


@pytest.fixture
def spoilt(files: list[str], tmp_path: Path) -> list[str]:
    """Return 17 files, of which the twelfth is damaged."""
    bad = tmp_path / "bad.jpg"
    bad.write_bytes(b"no image")
    return [*files[:12], str(bad), *files[13:]]


@pytest.fixture(autouse=True)
def every_step_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a loop start its thread after one step at whose end a finished batch waited, however short it was."""
    monkeypatch.setattr(_background, "_LONG_S", 0.0)
    monkeypatch.setattr(_background, "_LONG_STEPS", 1)


def content(batch: Any) -> list[bytes]:
    return [np.ascontiguousarray(x).tobytes() for x in batch]


def wait_until(condition: Any) -> None:
    end = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < end, "the pipeline hangs"
        time.sleep(0.001)


def is_ready(pipe: Pipeline, loop: Any) -> bool:
    """Return whether a batch waits for the consumer, or none is left."""
    execution = pipe.execution
    if loop._producer is not None:
        return bool(loop._items)
    return not execution._queue or (execution.run is not None and execution.run.finished > 0)


def slowly(pipe: Pipeline, loop: Any) -> Iterator[Any]:
    """Iterate over the batches of a loop, each of which waits before it is requested."""
    for batch in loop:
        yield batch
        wait_until(lambda: is_ready(pipe, loop))


def run(pipe: Pipeline, loader: Loader, epochs: int = 1) -> list[tuple[list[bytes], dict[str, Any], bool]]:
    """Return all batches of some epochs, the state after each, and whether a thread had taken it."""
    found = []
    for _ in range(epochs):
        loop: Any = iter(loader)
        for batch in slowly(pipe, loop):
            found.append((content(batch), loader.state_dict(), loop._producer is not None))
    return found


@pytest.mark.parametrize("policy", ["even", "partial", "drop", "fill"])
def test_a_slow_consumer_gets_a_thread_and_the_same_batches(files: list[str], policy: str) -> None:
    with training(files) as plain, training(files) as pipe:
        expected = run(plain, Loader(plain, last_batch_policy=policy, background=False), 2)
        found = run(pipe, Loader(pipe, last_batch_policy=policy), 2)
        assert [b[:2] for b in found] == [b[:2] for b in expected]
        assert not any(threaded for *_, threaded in expected)
        assert [threaded for *_, threaded in found[:3]] == [False, False, True]
        assert pipe.report().rows == plain.report().rows and pipe.report().batches == plain.report().batches


def test_a_thread_that_started_in_mid_epoch_is_resumable(files: list[str]) -> None:
    with training(files) as plain, training(files) as pipe, training(files) as other:
        expected = run(plain, Loader(plain, background=False), 2)
        loader, rest = Loader(pipe), Loader(other)
        loop: Any = iter(loader)
        for number, _ in enumerate(slowly(pipe, loop)):
            if number == 2:
                break
        assert loop._producer is not None
        rest.load_state_dict(loader.state_dict())
        assert [b[:2] for b in run(other, rest, 2)] == [b[:2] for b in expected[3:]]


def test_no_thread_starts_beside_short_steps(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_background, "_LONG_S", float("inf"))
    with training(files) as pipe:
        assert not any(threaded for *_, threaded in run(pipe, Loader(pipe), 2))


def test_no_thread_starts_where_the_consumer_waits(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with training(files) as pipe:
        monkeypatch.setattr(type(pipe.execution), "ready_batches", 0)
        assert not any(threaded for *_, threaded in run(pipe, Loader(pipe), 2))


def test_a_short_step_begins_the_count_again(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_background, "_LONG_STEPS", 2)
    with training(files, batch_size=1) as pipe:
        loop: Any = iter(Loader(pipe))
        found = []
        for number, _ in enumerate(slowly(pipe, loop)):
            monkeypatch.setattr(_background, "_LONG_S", float("inf") if number in (1, 3) else 0.0)
            found.append(loop._producer is not None)
        assert found == [False] * 7 + [True] * (ROWS - 7)


def test_a_changed_position_continues_without_the_thread(files: list[str]) -> None:
    found = []
    for background in (False, None):
        with training(files) as pipe:
            loader = Loader(pipe, background=background)
            loop: Any = iter(loader)
            got: list[Any] = []
            for number, batch in enumerate(slowly(pipe, loop)):
                got.append((content(batch), loader.state_dict()))
                if number == 2:
                    assert (loop._producer is None) == (background is False)
                    pipe.start_epoch(4)
                if number == 3:
                    assert loop._producer is None
            found.append(got)
    assert found[0] == found[1] and len(found[0]) == 3 + 4


def test_another_loop_or_a_closed_pipeline_ends_the_loop(files: list[str]) -> None:
    with training(files) as pipe:
        loader = Loader(pipe)
        loop: Any = iter(loader)
        batches = slowly(pipe, loop)
        for _ in range(3):
            next(batches)
        assert loop._producer is not None
        other = iter(loader)
        next(other)
        with pytest.raises(StateError, match="another loop"):
            next(loop)
        loader.close()
        with pytest.raises(StateError, match="closed"):
            next(other)


def test_errors_are_those_of_delivered_batches(spoilt: list[str]) -> None:
    found = []
    for background in (False, None):
        with training(spoilt, shuffle=False, on_error="skip") as pipe:
            loop: Any = iter(Loader(pipe, background=background))
            found.append([(b[1].tolist(), [e.index for e in pipe.errors]) for b in slowly(pipe, loop)])
    assert found[0] == found[1] and [errors for _, errors in found[0]] == [[], [], [12], [12]]


def test_a_batch_of_the_thread_is_one_of_the_prefetched_ones(files: list[str]) -> None:
    depth = 3
    with training(files, batch_size=1, prefetch_queue_depth=depth) as pipe:
        loop: Any = iter(Loader(pipe))
        counts = []
        for _ in slowly(pipe, loop):
            if loop._producer is not None:
                wait_until(lambda: is_ready(pipe, loop))
                counts.append(len(loop._items) + len(pipe.execution._queue))
        assert max(counts) == depth and len(counts) == ROWS - 2


def test_a_system_without_another_thread_keeps_the_loop(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class NoThread:
        def __init__(self, **_: Any) -> None:
            pass

        def start(self) -> None:
            raise RuntimeError("can't start new thread")

    with training(files) as plain, training(files) as pipe:
        expected = run(plain, Loader(plain, background=False))
        with monkeypatch.context() as patch:
            patch.setattr(_background.threading, "Thread", NoThread)
            loader = Loader(pipe)
            loop: Any = iter(loader)
            found = [(content(batch), loader.state_dict()) for batch in slowly(pipe, loop)]
        assert loop._background is False and found == [b[:2] for b in expected]


@pipeline_def(batch_size=5, num_threads=2)
def with_function(files: list[str]) -> Any:
    _, labels = fn.readers.file(files=files)
    return fn.python_function(labels, function=lambda x: x + 1)


@pipeline_def(batch_size=5, num_threads=2)
def fed(files: list[str]) -> Any:
    return fn.external_source(source=iter([np.zeros((5, 2), np.int32)] * len(files)))


@pytest.mark.parametrize("define", [with_function, fed])
def test_pipelines_with_functions_and_sources_of_the_caller_have_no_thread(files: list[str], define: Any) -> None:
    with define(files) as pipe:
        loop: Any = iter(Loader(pipe, size=4))
        for _ in slowly(pipe, loop):
            assert loop._producer is None
        assert loop._background is False  # the consumer was slow enough for a thread


def test_orders_without_random_access_and_gpus_have_no_thread(
    files: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with training(files) as pipe:
        assert not pipe.may_take_ahead  # before the first batch
        pipe.run()
        execution = pipe.execution
        assert pipe.may_take_ahead
        ((node, source),) = execution.sources.items()
        forward = replace(source, sampler=replace(source.sampler, forward_only="an endless order"))
        monkeypatch.setitem(execution.sources, node, forward)
        assert not pipe.may_take_ahead
        monkeypatch.undo()
        monkeypatch.setattr(execution, "gpu", object())
        assert not pipe.may_take_ahead
        monkeypatch.undo()


@pytest.mark.parametrize("looks", [False, True])
def test_a_thread_is_woken_where_it_does_not_look_by_itself(
    files: list[str], monkeypatch: pytest.MonkeyPatch, looks: bool
) -> None:
    monkeypatch.setattr(_background, "_LONG_S", 0.0 if looks else float("inf"))
    with training(files, batch_size=1) as plain, training(files, batch_size=1) as pipe:
        expected = run(plain, Loader(plain, background=False))
        loader = Loader(pipe, background=True)
        loop: Any = iter(loader)
        found, wakes = [], []
        for batch in slowly(pipe, loop):
            found.append((content(batch), loader.state_dict()))
            if len(found) == 1:
                wait_until(lambda: is_ready(pipe, loop))  # the consumer has woken the thread before it waited
                producer = loop._producer
                monkeypatch.setattr(Producer, "wake", lambda self, w=Producer.wake: (wakes.append(self), w(self))[1])
        assert found == [b[:2] for b in expected]
        # The first step was judged as the others were. Each batch but the first has one wake, and the end has none.
        assert wakes == ([] if looks else [producer] * (ROWS - 1))


def test_unseen_wakes_do_not_add_up() -> None:
    class Pipe:
        class execution:
            course, mark = 0, None

    class Nothing:
        _done, pipeline = 0, Pipe

    producer = Producer(Nothing(), contextlib.nullcontext(), looks=True)  # type: ignore[arg-type]
    for _ in range(1000):
        producer.wake()
    assert producer._wakes.qsize() == 1
