# SPDX-License-Identifier: Apache-2.0
"""Sources in worker processes: the same batches as in this process, and no process left behind whatever happens."""

from __future__ import annotations

import ctypes
import io
import os
import pickle
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import ArgumentError, DataError, Pipeline, StateError, UnsupportedError, fn, types
from stoker.executor.channel import Channel, Closed, Message, lay_out, read, write
from stoker.executor.workers import Workers
from tests.run.test_processes import Script

ROWS = 23


def pipeline(
    count: int = 2, method: str = "fork", batch_size: int = 4, parallel: bool = True, outputs: int | None = None,
    settings: dict[str, Any] | None = None, **source: Any,
) -> Pipeline:  # fmt: skip
    pipe = Pipeline(batch_size, 2, seed=1, py_num_workers=count, py_start_method=method, **(settings or {}))
    with pipe:
        out = fn.external_source(parallel=parallel, num_outputs=outputs, **source)
    pipe.set_outputs(*(out if isinstance(out, tuple) else (out,)))
    return pipe


def take(pipe: Pipeline, count: int = 100) -> list[Any]:
    out = []
    for _ in range(count):
        try:
            out.append([[x.tolist() for x in batch] for batch in pipe.run()])
        except StopIteration:
            break
    return out


# At the top of the module, so that "spawn" finds them too.
def row(info: types.SampleInfo) -> Any:
    if info.idx_in_epoch >= ROWS:
        raise StopIteration
    return np.full((info.idx_in_epoch % 3, 2), info.idx_in_epoch + 100 * info.epoch_idx, np.float32)


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
        first = take(pipe, 7)
        pipe.reset()
        return first, take(pipe, 7)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("count", [1, 3])
def test_workers_give_what_this_process_would(name: str, count: int) -> None:
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
            return take(pipe, 5)

    assert len(batchwise(True)[0]) == 3
    assert batchwise(True) == batchwise(False)


def test_rows_that_grow_and_shrink_get_the_memory_they_need() -> None:
    sizes = [10, 100_000, 3, 1_000_000, 0, 50, 2_000_000]

    def sized(info: types.SampleInfo) -> Any:
        return np.full(sizes[info.idx_in_epoch % len(sizes)], info.idx_in_epoch, np.int32)

    with pipeline(2, batch_size=2, source=sized, batch=False) as pipe:
        kept = [pipe.run()[0] for _ in range(10)]  # batches that are kept are not written over
        for i, batch in enumerate(kept):
            for k, array in enumerate(batch):
                number = 2 * i + k
                assert array.shape == (sizes[number % len(sizes)],)
                assert (array == number).all()


def test_work_happens_in_other_processes_and_ahead() -> None:
    with pipeline(2, batch_size=2, source=lambda info: np.int64(os.getpid()), batch=False) as pipe:
        pids = {x for batch in take(pipe, 4) for x in batch[0]}
        assert len(pids) == 2 and os.getpid() not in pids
        children = [os.path.exists(f"/proc/{pid}") for pid in pids]
        assert children == [True, True]
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)


def test_a_state_is_independent_of_the_workers() -> None:
    for name in ("rows", "numbered batches", "list"):
        arguments = SOURCES[name]
        with pipeline(parallel=False, **arguments) as pipe, pipeline(3, **arguments) as other:
            take(pipe, 2)
            other.set_state(pipe.get_state())
            take(other, 1)
            pipe.set_state(other.get_state())
            assert take(other) == take(pipe)
    with pipeline(source=generated, batch=False) as pipe, pytest.raises(StateError, match="can be resumed"):
        pipe.get_state()


# ---- errors ----


class Unpicklable(Exception):
    def __init__(self) -> None:
        super().__init__("mine")
        self.lock = open(os.devnull)  # noqa: SIM115

    def __reduce__(self) -> Any:
        raise TypeError("cannot be pickled")


def raising(info: types.SampleInfo) -> Any:
    if info.idx_in_epoch == 5:
        raise KeyError("lost")
    if info.idx_in_epoch == 9:
        raise Unpicklable
    if info.idx_in_epoch == 13:
        sys.exit("stop")
    if info.idx_in_epoch == 17:
        return "text"
    return np.int64(info.idx_in_epoch)


def only_in(process: int) -> Exception:
    if os.getpid() != process:
        raise RuntimeError("another process")
    return Elsewhere("bad row")


class Elsewhere(Exception):
    """Cannot be made again outside of the process that raised it."""

    def __reduce__(self) -> Any:
        return only_in, (os.getpid(),)


def raising_elsewhere(info: types.SampleInfo) -> Any:
    raise Elsewhere("bad row")


def test_an_exception_that_only_its_process_can_make_is_told_by_name_and_text() -> None:
    pipe = pipeline(1, source=raising_elsewhere, batch=False)
    with pipe, pytest.raises(DataError, match="Elsewhere: bad row") as caught:
        pipe.run()
    chain, error = [], caught.value.__cause__
    while error is not None:
        chain.append(str(error))
        error = error.__cause__
    assert any("in raising_elsewhere" in text for text in chain), chain


def test_what_a_source_raises_is_raised_at_its_batch_with_its_traceback() -> None:
    with pipeline(2, batch_size=2, source=raising, batch=False) as pipe:
        seen: list[Any] = []
        for _ in range(10):
            try:
                seen += take(pipe, 1)[0]
            except (KeyError, DataError) as error:
                seen.append(error)
    numbers = [x for x in seen if isinstance(x, list)]
    assert numbers == [[0, 1], [2, 3], [6, 7], [10, 11], [14, 15], [18, 19]]
    lost, mine, left, text = (x for x in seen if not isinstance(x, list))
    assert isinstance(lost, KeyError) and 'raise KeyError("lost")' in str(lost.__cause__)
    assert "in the source of `external_source`, made at" in lost.__notes__[0]
    assert isinstance(mine, DataError) and "Unpicklable: mine" in str(mine)
    assert "SystemExit: stop" in str(left) and 'sys.exit("stop")' in str(left.__cause__)
    assert "expected an array of numbers, a number or bytes, got 'str' in row 1" in str(text)


def crash() -> None:
    sys.stderr.flush()
    ctypes.string_at(0)


ENDS: dict[str, tuple[Any, str, str]] = {
    "exit": (lambda: os._exit(3), "ended with exit code 3", ""),
    "kill": (lambda: os.kill(os.getpid(), signal.SIGKILL), r"was killed by SIGKILL \(was memory short\?\)", ""),
    "crash": (crash, "was killed by SIGSEGV", "in crash"),
}


@pytest.mark.parametrize("how", ENDS)
def test_a_process_that_dies_is_reported_and_replaced(how: str) -> None:
    end, text, trace = ENDS[how]

    def source(info: types.SampleInfo) -> Any:
        if info.idx_in_epoch == 5:
            end()
        return np.int64(info.idx_in_epoch)

    with pipeline(2, batch_size=2, source=source, batch=False) as pipe:
        assert take(pipe, 2) == [[[0, 1]], [[2, 3]]]
        with pytest.raises(DataError, match=f"process [0-9]+\\) {text} while the source ran in it — made at") as error:
            pipe.run()
        assert trace in str(error.value.__cause__)
        if trace:
            assert "Segmentation fault" in str(error.value.__cause__)
        assert take(pipe, 3) == [[[6, 7]], [[8, 9]], [[10, 11]]]


def test_what_a_process_made_before_it_died_is_kept() -> None:
    def source(info: types.SampleInfo) -> Any:
        if info.idx_in_epoch == 0:
            time.sleep(0.5)  # by then the other process has made row 1 and died of row 3
        if info.idx_in_epoch == 3:
            os._exit(1)
        return np.full(1000, info.idx_in_epoch)

    with pipeline(2, batch_size=2, source=source, batch=False) as pipe:
        assert [x[0] for x in take(pipe, 1)[0][0]] == [0, 1]
        with pytest.raises(DataError, match="ended with exit code 1"):
            pipe.run()
        assert [x[0] for x in take(pipe, 1)[0][0]] == [4, 5]


def test_an_iterable_whose_process_died_begins_again_after_reset() -> None:
    def dying() -> Iterator[Any]:
        yield from (1, 2, 3)
        os._exit(1)

    with pipeline(1, batch_size=1, source=dying, batch=False) as pipe:
        assert take(pipe, 3) == [[[1]], [[2]], [[3]]]
        with pytest.raises(DataError, match="ended with exit code 1"):
            pipe.run()
        with pytest.raises(StateError, match="its place is lost"):
            pipe.run()
        pipe.reset()
        assert take(pipe, 3) == [[[1]], [[2]], [[3]]]

    class Numbers:
        def __len__(self) -> int:
            return 8

        def __getitem__(self, i: int) -> Any:
            return i if i != 3 else os._exit(1)

    with pipeline(1, batch_size=1, source=Numbers(), batch=False) as pipe:
        take(pipe, 3)
        with pytest.raises(DataError, match="ended with exit code 1"):
            pipe.run()
        assert take(pipe) == [[[4]], [[5]], [[6]], [[7]]]  # a sequence knows its place


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"source": lambda: 1}, "a function of one argument .* beside parallel=True, got one of none"),
        ({"source": iter([1])}, "got an iterator, which cannot move to another process"),
        ({}, "expected a `source` beside"),
        ({"source": row, "batch": False, "prefetch_queue_depth": 0}, "`prefetch_queue_depth` >= 1"),
        ({"source": row, "count": 0}, "`py_num_workers` >= 1"),
        ({"source": row, "method": "forkserver"}, "`py_start_method` in"),
        ({"source": row, "settings": {"py_callback_pickler": 5}}, "`py_callback_pickler` with `dumps`"),
        ({"source": lambda i: 1, "method": "spawn"}, "can be sent to another process, got one that cannot: .* made at"),
    ],
)  # fmt: skip
def test_what_cannot_run_in_workers_is_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        pipeline(**arguments).build()


class Pickler:
    """Sends a function's code, as picklers by value do."""

    @staticmethod
    def dumps(x: Any, mark: bytes = b"") -> bytes:
        import marshal

        return mark + pickle.dumps((type(x), x.tells, marshal.dumps(x.function.__code__)))

    @staticmethod
    def loads(data: bytes, skip: int = 0) -> Any:
        import marshal
        import types as kinds

        kind, tells, code = pickle.loads(data[skip:])
        return kind(kinds.FunctionType(marshal.loads(code), {"np": np}), tells, 1)


def test_a_pickler_of_the_users_choice() -> None:
    choice = {"py_callback_pickler": (Pickler, {"mark": b"ab"}, {"skip": 2})}
    with pipeline(1, "spawn", source=lambda i: np.int64([i, i * i]), settings=choice) as pipe:
        assert take(pipe, 3) == [[[0, 0]], [[1, 1]], [[2, 4]]]


def test_processes_start_all_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    launched: list[Any] = []
    launch = Workers._launch

    def limited(self: Workers, number: int) -> Any:
        if number == 2:
            raise OSError("no more processes")
        launched.append(launch(self, number))
        return launched[-1]

    with pipeline(3, source=row, batch=False) as pipe:
        with monkeypatch.context() as patch:
            patch.setattr(Workers, "_launch", limited)
            for _ in range(2):
                with pytest.raises(OSError, match="no more processes"):
                    pipe.start_py_workers()
        assert len(launched) == 4 and all(worker.process._closed for worker in launched)
        assert len(take(pipe)) == 6


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


# ---- processes ----

BEGIN = """
import numpy as np
pids = []
def source(info):
    import os, time
    if info.idx_in_epoch >= SLOW_FROM:
        time.sleep(1000)
    return np.int64([info.idx_in_epoch, os.getpid()])

@pipeline_def(batch_size=2, num_threads=2, seed=1, py_num_workers=2)
def pipe_of():
    return fn.external_source(source, batch=False, parallel=True)
pipe = pipe_of()
say(" ".join(str(w.process.pid) for w in (pipe.start_py_workers(), pipe.execution._workers)[1]._workers))
"""


def alive(pids: list[int]) -> list[int]:
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}")]


def script(text: str, slow_from: int = 1 << 40) -> tuple[Script, list[int]]:
    made = Script(f"SLOW_FROM = {slow_from}\n" + BEGIN + text, [])
    assert made.process.stdout is not None
    return made, [int(x) for x in made.process.stdout.readline().split()]


def gone(pids: list[int], seconds: float = 5.0) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not alive(pids)


@pytest.mark.parametrize(
    "text",
    ["pipe.run()", "pipe.run(); pipe.close()", "pipe.run(); del pipe", "pipe.run(); sys.exit(0)", "pass",
     "pipe.run(); import json; json.pipe = pipe; loop = [pipe]; loop.append(loop)"],
    ids=["left", "closed", "deleted", "exit", "never used", "kept by a cycle"],
)  # fmt: skip
def test_no_process_outlives_the_program(text: str) -> None:
    program, pids = script(text)
    assert len(pids) == 2
    assert program.end() == (0, "", "")
    assert gone(pids)


def test_no_process_outlives_a_program_that_is_killed() -> None:
    program, pids = script("pipe.run()\nsay('running')\ntime.sleep(1000)", slow_from=4)  # workers hang in the source
    program.hear("running")
    assert alive(pids) == pids
    program.process.kill()
    program.end()
    assert gone(pids)


def test_ctrl_c_ends_waiting_for_a_worker() -> None:
    program, pids = script(
        "say('running')\ntry:\n    while True: pipe.run()\nexcept KeyboardInterrupt:\n    say('interrupted')",
        slow_from=4,
    )
    program.hear("running")
    time.sleep(0.3)
    start = time.monotonic()
    program.process.send_signal(signal.SIGINT)
    program.hear("interrupted")
    assert program.end() == (0, "", "")
    assert gone(pids)
    assert time.monotonic() - start < 8.0, "two workers that hang are given a second, then killed"


def test_ctrl_c_at_any_moment_loses_nothing() -> None:
    text = """
import random
signal.signal(signal.SIGALRM, signal.default_int_handler)
rng = random.Random(3)
pipe.run()  # the plan is made
interrupted, done = 0, 2
while done < 300 or interrupted < 20:
    got = None
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 4e-3))
        got = pipe.run()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
    now = pipe.execution.mark.position
    if got is not None:
        assert [int(x[0]) for x in got[0]] == list(range(done, now)), (done, now)
    done = now
pipe.close()
say("well")
"""
    program, pids = script(text)
    program.hear("well")
    assert program.end() == (0, "", "")
    assert gone(pids)


def test_a_slow_source_does_not_hold_back_what_is_ready() -> None:
    program, _ = script("pipe.run()\nsay('one')\npipe.run()\nsay('two')\npipe.close()", slow_from=4)
    program.hear("one")
    program.hear("two")
    assert program.end() == (0, "", "")


def test_a_daemonic_process_cannot_have_workers() -> None:
    text = """
import multiprocessing
def child(queue):
    try:
        pipe_of().run()
    except StateError as error:
        queue.put(str(error))
pipe.close()
context = multiprocessing.get_context("fork")
queue = context.SimpleQueue()
process = context.Process(target=child, args=(queue,), daemon=True)
process.start()
assert "may have worker processes of its own" in queue.get()
process.join()
"""
    assert script(text)[0].end() == (0, "", "")


# ---- messages ----


def test_messages_come_whole_and_in_order_whatever_the_socket_does() -> None:
    import socket

    a, b = socket.socketpair()
    sender, receiver = Channel(a), Channel(b)
    wanted = [("x" * 70_000, 1), (None, 2), (list(range(1000)), 3)]
    got: list[Any] = []
    for content in wanted:
        sender.send(Message(content))
        while len(got) < wanted.index(content) + 1:
            receiver.receive()
            messages = receiver.messages()
            assert receiver.messages() == messages  # a look may be repeated until it is forgotten
            got += [m for m, _ in messages]
            receiver.forget()
    assert got == wanted
    sender.close()
    with pytest.raises(Closed):
        receiver.receive()
    receiver.close()


def test_arrays_of_every_kind_go_through_shared_memory() -> None:
    data: Any = (
        [np.arange(5, dtype=np.uint8), np.zeros((0, 3), np.float16)],
        (np.float64(2.5), 7, np.array(3)),
        "text",
    )
    arrays: list[tuple[int, Any]] = []
    described, size = lay_out(data, arrays)
    block = np.zeros(size, np.uint8)
    write(block, arrays)
    back = read(pickle.loads(pickle.dumps(described)), block)
    assert back[0][0].tolist() == [0, 1, 2, 3, 4] and back[0][1].shape == (0, 3) and back[0][1].dtype == np.float16
    assert back[1] == (2.5, 7, 3) and back[1][2].shape == () and back[2] == "text"


# ---- bad rows beside worker processes ----


def encoded(info: types.SampleInfo) -> Any:
    """A file's bytes; every fifth is no image."""
    if info.idx_in_epoch >= ROWS:
        raise StopIteration
    out = io.BytesIO()
    Image.new("RGB", (5, 4), (info.idx_in_epoch, 0, 0)).save(out, "PNG")
    data = b"this is no image" if info.idx_in_epoch % 5 == 3 else out.getvalue()
    return np.frombuffer(data, np.uint8)


def decoding(parallel: bool, on_error: str, **settings: Any) -> Pipeline:
    made = {"num_threads": 2, "seed": 1, "py_num_workers": 2, "error_limit": 1.0, **settings}
    pipe = Pipeline(batch_size=4, on_error=on_error, **made)
    with pipe:
        data = fn.external_source(encoded, batch=False, parallel=parallel)
    pipe.set_outputs(fn.decoders.image(data))
    return pipe


def colours(pipe: Pipeline) -> list[list[int]]:
    found = []
    while (delivered := pipe.next()) is not None:
        found.append([int(np.asarray(x)[0, 0, 0]) for x in delivered.outputs[0]])
    return found


@pytest.mark.parametrize("settings", [{}, {"num_threads": 1, "prefetch_queue_depth": 1}, {"exec_async": False}])
def test_bad_rows_are_left_out_as_without_processes(settings: dict[str, Any]) -> None:
    with decoding(False, "skip") as pipe:
        want = colours(pipe)
    assert [x for batch in want for x in batch] == [n for n in range(ROWS) if n % 5 != 3]
    with decoding(True, "skip", **settings) as pipe:
        assert colours(pipe) == want
        assert [e.reason[:30] for e in pipe.errors] == ["expected an image that Pillow "] * 4
        assert {(e.index, e.path, e.offset, e.action) for e in pipe.errors} == {(None, "", None, "skipped")}


def test_bad_rows_of_a_source_cannot_be_replaced() -> None:
    with pytest.raises(UnsupportedError, match=r'expected "skip" or "raise" for a source .* got "replace" with data'):
        decoding(True, "replace").build()


def test_a_reader_beside_processes_cannot_be_replaced_either(tmp_path: Path) -> None:
    """A substitute would want the other source's row of another time."""
    (tmp_path / "a.jpg").write_bytes(b"no image")
    pipe = Pipeline(batch_size=1, num_threads=1, on_error="replace", py_num_workers=1)
    with pipe:
        data, _ = fn.readers.file(files=[str(tmp_path / "a.jpg")])
        pipe.set_outputs(fn.decoders.image(data), fn.external_source(row, batch=False, parallel=True))
    with pytest.raises(UnsupportedError, match='got "replace" with data that the caller gives'):
        pipe.build()
