# SPDX-License-Identifier: Apache-2.0
"""Several Python threads use Stoker at the same time, with the GIL and, on a free-threaded Python, without it."""

from __future__ import annotations

import gc
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from idle_clock import HANG_S
from started_threads import StartedThreads

from stoker import Pipeline, StateError, fn, pipeline_def
from stoker.codecs.jpeg import index_folder
from stoker.contract import expr, warning
from stoker.contract.live_objects import LiveObjects
from stoker.ops.image import _pillow_decoding
from tests.run import thread_stress


def at_once(*work: Callable[[], Any]) -> list[Any]:
    """Run functions on a thread each, which begin together. Return their results, or raise one of their errors."""
    begin = threading.Barrier(len(work), timeout=HANG_S)
    results: list[Any] = [None] * len(work)
    errors: list[BaseException] = []

    def run(number: int) -> None:
        begin.wait()
        try:
            results[number] = work[number]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]
    return results


@pytest.mark.parametrize("seed", range(3))
def test_random_actions_on_several_threads(seed: int, tmp_path: Path) -> None:
    assert thread_stress.run(thread_stress.write_images(tmp_path), threads=4, rounds=12, seed=seed) == []
    gc.collect()


def test_the_import_keeps_the_gil_off() -> None:
    """A free-threaded Python switches the GIL on when it imports an extension that does not declare to do without."""
    if "t" in getattr(sys, "abiflags", ""):
        assert sys.flags.gil == 1 or not sys._is_gil_enabled()  # type: ignore[attr-defined]


# ---- shared tables ----


def test_equal_expressions_are_one_object_on_all_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The table's ``setdefault`` looks first and writes then: two threads may do both with an object of their own."""

    class Slow(type(expr._alive)):  # type: ignore[misc]
        def __contains__(self, key: object) -> bool:
            raise AssertionError("not used")

        def get(self, key: Any, default: Any = None) -> Any:
            found = super().get(key, default)
            time.sleep(0)  # another thread may run now
            return found

        def setdefault(self, key: Any, default: Any = None) -> Any:
            found = self.get(key)
            if found is None:
                self[key] = found = default
            return found

    monkeypatch.setattr(expr, "_alive", Slow())
    for number in range(300):
        made = at_once(*[lambda number=number: expr.Expr("dim", number, 0)] * 4)
        assert len({id(e) for e in made}) == 1
        assert len({e.number for e in made}) == 1


def test_living_objects_are_listed_while_others_come_and_go() -> None:
    class Item:
        pass

    items: LiveObjects[Item] = LiveObjects()
    kept = [Item() for _ in range(50)]
    for item in kept:
        items.add(item)
    going = threading.Event()

    def change() -> None:
        while not going.is_set():
            for item in [Item() for _ in range(20)]:
                items.add(item)
                if id(item) % 32:
                    items.discard(item)

    def list_them() -> None:
        try:
            for _ in range(300):
                found = {id(item) for item in items.list()}
                assert found >= {id(item) for item in kept}
        finally:
            going.set()

    at_once(change, change, list_them)
    gc.collect()
    assert {id(item) for item in items.list()} == {id(item) for item in kept}
    items.discard(kept[0])
    items.discard(kept[0])
    assert len(items.list()) == 49


def test_a_new_object_may_have_the_number_of_an_ended_one() -> None:
    """The callback of an ended object may run after the new object was added."""

    class Item:
        pass

    items: LiveObjects[Item] = LiveObjects()
    first, second = Item(), Item()
    items.add(first)
    (former,) = items._references.values()
    items._references = {id(first): items._references.pop(id(first))}
    forget = items._forget(id(first))
    items.add(second)
    items._references[id(first)] = items._references.pop(id(second))  # as if the second one had the first one's number
    forget(former)
    assert items.list() == [second]


# ---- warnings ----


def test_filters_are_restored_whatever_the_order_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first thread opens a file, a second one does, the first one has finished, then the second one."""
    turns = {name: threading.Event() for name in ("first in", "second in", "first out")}

    def open_image(file: Any) -> str:
        which = file.read().decode()
        if which == "first":
            turns["first in"].set()
            assert turns["second in"].wait(60)
        else:
            turns["second in"].set()
            assert turns["first out"].wait(60)
        return which

    def first() -> str:
        opened = _pillow_decoding._open(np.frombuffer(b"first", np.uint8))
        turns["first out"].set()
        return str(opened)

    def second() -> str:
        assert turns["first in"].wait(60)
        return str(_pillow_decoding._open(np.frombuffer(b"second", np.uint8)))

    monkeypatch.setattr(_pillow_decoding, "open_image", open_image)
    before = list(warnings.filters)
    assert at_once(first, second) == ["first", "second"]
    assert warnings.filters == before


def test_warnings_are_ignored_only_within_the_block() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with warning.ignored(UserWarning):
            warnings.warn("one", UserWarning, stacklevel=1)
            warnings.warn("two", RuntimeWarning, stacklevel=1)
            with warning.ignored(RuntimeWarning):
                warnings.warn("three", RuntimeWarning, stacklevel=1)
        with pytest.raises(KeyError), warning.ignored():
            raise KeyError
        warnings.warn("four", UserWarning, stacklevel=1)
    assert [str(w.message) for w in seen] == ["two", "four"]


# ---- pipelines ----


def test_each_thread_defines_a_pipeline_of_dali() -> None:
    from stoker.dali import Pipeline as DaliPipeline

    pushed, popped = threading.Barrier(2, timeout=HANG_S), threading.Barrier(2, timeout=HANG_S)

    def define() -> DaliPipeline:
        pipe = DaliPipeline(batch_size=1, num_threads=1)
        DaliPipeline.push_current(pipe)
        pushed.wait()
        assert DaliPipeline.current() is pipe
        node = fn.external_source(source=lambda n: [np.zeros(1, np.uint8)])
        DaliPipeline.pop_current()
        popped.wait()
        assert DaliPipeline.current() is None
        pipe.set_outputs(node)
        return pipe

    for pipe in at_once(define, define):
        assert len(pipe.graph.nodes) == 1
    with pytest.raises(StateError, match="push_current"):
        DaliPipeline.pop_current()


def test_closed_by_its_source_before_the_threads_start() -> None:
    started = StartedThreads()
    pipes: list[Pipeline] = []

    def source(n: int) -> Any:
        if n == 0:
            pipes[0].close()
        return [np.full(3, n)] * 2

    @pipeline_def(batch_size=2, num_threads=2)
    def closing() -> Any:
        return fn.external_source(source=source) + 1

    pipes.append(closing().build())
    with pytest.raises(StateError):
        while True:
            pipes[0].run()
    assert started.end()


def test_threads_that_share_a_loop_take_each_batch_once() -> None:
    torch = pytest.importorskip("torch", exc_type=ModuleNotFoundError)
    from stoker.torch import Loader

    @pipeline_def(batch_size=1, num_threads=2)
    def numbers() -> Any:
        return fn.external_source(source=lambda n: np.full((1, 1), n, np.int64))

    size = 5
    with numbers() as pipe:
        loader = Loader(pipe, size=size)
        for epoch in range(20):
            loop = iter(loader)
            taken = at_once(*[lambda loop=loop: [int(x) for x in loop]] * 4)
            found = sorted(number for part in taken for number in part)
            assert found == list(range(size)), epoch
    assert torch is not None


def test_an_index_that_threads_save_at_once_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[list[bytes]] = []

    def write_part(path: Path, record_bytes: int, pieces: Any) -> None:
        written.append(list(pieces))
        time.sleep(0)

    monkeypatch.setattr(index_folder, "write_part", write_part)
    monkeypatch.setattr(index_folder, "merge_parts", lambda *_: None)

    def packed(device: Any, begin: int, end: int) -> bytes:
        for _ in range(100):
            time.sleep(0)  # other threads run
        return b"x" * (end - begin)

    index: Any = SimpleNamespace(slots=3, record_bytes=1, packed=packed)
    folder = index_folder.IndexFolder(tmp_path / "index", index, SimpleNamespace())  # type: ignore[arg-type]
    at_once(*[folder.save] * 4)
    assert written == [[b"xxx"]]
