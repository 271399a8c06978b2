# SPDX-License-Identifier: Apache-2.0
"""Reading ahead from cold disks: it starts, stops and fails, and no result depends on it."""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from idle_clock import HANG_S

from stoker import ArgumentError, fn, pipeline_def
from stoker.executor import later_rows, read_ahead
from stoker.native import _native
from stoker.readers import _storages
from tests.run.test_gil import BATCHES, fewest_per_window
from tests.started_threads import StartedThreads

COUNT, BYTES = 40, 70_000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Write files of pseudo-random bytes, and write them through to the disk."""
    folder, rng = tmp_path_factory.mktemp("cold"), np.random.default_rng(4)
    paths = [folder / f"{i:03}.bin" for i in range(COUNT)]
    for path in paths:
        path.write_bytes(rng.integers(0, 256, BYTES, np.uint8).tobytes())
        with open(path, "rb+") as file:
            os.fsync(file.fileno())
    return [str(p) for p in paths]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read ahead from the first batch on, wherever the bytes are."""
    monkeypatch.setattr(read_ahead, "_COLD_SHARE", -1.0)
    monkeypatch.setattr(read_ahead, "_MIN_FROM_DISK", -1)


@pipeline_def(batch_size=4, num_threads=2, seed=3)
def reading(files: list[str], **reader: Any) -> Any:
    """Return the bytes of files, and their numbers."""
    return fn.readers.file(files=files, name="Reader", **reader)


def rows_of_epochs(pipe: Any, epochs: int = 3) -> list[tuple[bytes, int]]:
    rows: list[tuple[bytes, int]] = []
    with pipe:
        for _ in range(epochs * COUNT // 4):
            data, labels = pipe.run()
            rows += [(np.asarray(d).tobytes(), int(n.item())) for d, n in zip(data, labels, strict=True)]
        rows.append((b"", pipe.report().read_ahead is not None))
    return rows


@pytest.mark.parametrize("settings", [{}, {"exec_async": False}, {"batch_size": 4, "prefetch_queue_depth": 5}])
def test_rows_are_the_same(
    files: list[str], request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("STOKER_READ_AHEAD_MIB", "0")
        expected = rows_of_epochs(reading(files, random_shuffle=True, **settings))
    request.getfixturevalue("always")
    found = rows_of_epochs(reading(files, random_shuffle=True, **settings))
    assert found[:-1] == expected[:-1] and expected[-1] == (b"", False) and found[-1] == (b"", True)


@pytest.mark.usefixtures("always")
def test_all_later_rows_are_requested_in_their_order(files: list[str]) -> None:
    with reading(files) as pipe:
        pipe.run()
        deadline = time.monotonic() + HANG_S
        while (found := pipe.report().read_ahead) is not None and found.bytes < COUNT * BYTES:
            assert time.monotonic() < deadline, found
            time.sleep(0.01)
        assert found is not None and found.is_active and found.records >= COUNT
        report = pipe.report()
        assert str(report.read_ahead) in str(report)


@pytest.mark.usefixtures("always")
def test_python_is_entered_once_per_batch(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.executor.run._POLL_S", HANG_S)
    with reading(files) as pipe:
        pipe.run()
        assert fewest_per_window(pipe.run) <= BATCHES
        assert pipe.report().read_ahead.is_active


@pytest.mark.usefixtures("always")
def test_damaged_files_are_errors_of_their_rows(files: list[str], tmp_path: Path) -> None:
    pipe_file = tmp_path / "pipe"
    os.mkfifo(pipe_file)
    (tmp_path / "empty").write_bytes(b"")
    bad = [str(tmp_path / "missing"), str(pipe_file), str(tmp_path)]
    listed = [*files[:5], *bad, str(tmp_path / "empty"), *files[5:]]
    with reading(listed, batch_size=4, on_error="skip") as pipe:
        seen = [int(n.item()) for _ in range(12) for n in pipe.run()[1]]
        assert sorted(e.index for e in pipe.errors) == [5, 6, 7] and 8 in seen and not {5, 6, 7} & set(seen)


@pytest.mark.usefixtures("always")
def test_threads_and_files_end_with_the_pipeline(files: list[str]) -> None:
    threads, open_before = StartedThreads(), len(os.listdir("/proc/self/fd"))
    with reading(files) as pipe:
        pipe.run()
        assert threads.count() >= 2 + read_ahead._THREADS
    assert threads.end() and len(os.listdir("/proc/self/fd")) <= open_before
    forgotten = reading(files)
    forgotten.run()
    assert threads.count() >= 2 + read_ahead._THREADS
    del forgotten
    gc.collect()
    assert threads.end()


@pytest.mark.usefixtures("always")
def test_a_child_process_leaves_the_threads_to_its_parent(files: list[str]) -> None:
    with reading(files) as pipe:
        pipe.run()
        child = os.fork()
        if not child:
            del pipe
            gc.collect()
            os._exit(0)
        deadline = time.monotonic() + HANG_S
        while not (done := os.waitpid(child, os.WNOHANG))[0] and time.monotonic() < deadline:
            time.sleep(0.01)
        assert done == (child, 0)
        pipe.run()


@pytest.mark.usefixtures("always")
def test_rows_do_without_if_no_thread_can_start(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(threads: int, max_bytes: int) -> Any:
        raise _native.ThreadStartFailed

    monkeypatch.setattr(_native, "ReadAhead", refused)
    with reading(files) as pipe:
        for _ in range(5):
            pipe.run()
        assert pipe.report().read_ahead is None


@pytest.mark.usefixtures("always")
def test_states_and_other_orders_are_followed(files: list[str]) -> None:
    with reading(files, random_shuffle=True) as pipe:
        pipe.run()
        token = pipe.get_state()
        expected = [int(n.item()) for _ in range(15) for n in pipe.run()[1]]
        pipe.set_state(token)
        assert [int(n.item()) for _ in range(15) for n in pipe.run()[1]] == expected


def test_a_setting_without_sense_is_refused(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_READ_AHEAD_MIB", "many")
    with pytest.raises((ValueError, ArgumentError), match=r"STOKER_READ_AHEAD_MIB: expected a whole number"):
        reading(files).run()


def drop_from_cache(path: str) -> bool:
    """Ask the system to forget a file's pages. Return whether it did."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        # The system begins to read what is asked for here: the first page, but not the last one.
        return not os.preadv(descriptor, [bytearray(1)], 0, os.RWF_NOWAIT)
    except OSError as error:
        return isinstance(error, BlockingIOError)
    finally:
        os.close(descriptor)


def test_cold_files_are_read_ahead_and_warm_ones_are_not(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with reading(files) as pipe:
        for _ in range(2 * COUNT // 4):
            pipe.run()  # now the files are in the page cache
    with reading(files) as pipe:
        for _ in range(COUNT // 4):
            pipe.run()
        assert pipe.report().read_ahead is None, "no row waited for a disk"
    # A busy machine may take long between two batches, next to which the waits are short.
    monkeypatch.setattr(read_ahead, "_COLD_SHARE", 0.0)
    monkeypatch.setattr(read_ahead, "_JUDGED", 2 * COUNT)
    if not all(drop_from_cache(path) for path in files):
        pytest.skip(
            "needs cold files, and the system did not drop their pages from its cache (POSIX_FADV_DONTNEED), as for "
            "files in memory or in use; reading ahead itself is tested on the queue of requests"
        )
    with reading(files) as pipe:
        for _ in range(COUNT // 4):
            pipe.run()
        found = pipe.report().read_ahead
        assert found is not None and found.from_disk > 0
        for _ in range(6 * COUNT // 4):
            pipe.run()
        assert wait_for(lambda: (pipe.run(), not pipe.report().read_ahead.is_active)[1])
        assert "now off" in str(pipe.report())


def wait_for(done: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + HANG_S
    while not done() and time.monotonic() < deadline:
        time.sleep(0.001)
    return done()


def test_its_threads_never_wait_for_pythons_lock(files: list[str]) -> None:
    # A thread that frees a Python object waits for Python's lock, and this one holds it while it waits for the queue's.
    code = f"""
import numpy as np
from stoker.native import _native
from stoker.readers import _storages
queue, table = _native.ReadAhead(8, 1 << 30), _storages.file_table({files!r})
for row in range(20_000):
    queue.request(table, np.asarray([row % {COUNT}]), row)
    queue.release(row - 8 if row > 8 else 0)
queue.close()
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG_S)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Write records into a tar file."""
    path, rng = tmp_path_factory.mktemp("tar") / "a.tar", np.random.default_rng(4)
    with tarfile.open(path, "w") as tar:
        for i in range(COUNT):
            member = tarfile.TarInfo(f"{i:03}.bin")
            member.size = BYTES
            tar.addfile(member, io.BytesIO(rng.integers(0, 256, BYTES, np.uint8).tobytes()))
    return str(path)


@pytest.mark.usefixtures("always")
def test_records_in_the_order_of_their_file_are_left_to_the_system(archive: str) -> None:
    @pipeline_def(batch_size=4, num_threads=2, seed=3)
    def members(**reader: Any) -> Any:
        return fn.readers.webdataset(paths=[archive], ext=["bin"], name="Reader", **reader)

    def requested(*, random_shuffle: bool) -> int:
        with members(random_shuffle=random_shuffle) as pipe:
            for _ in range(3 * COUNT // 4):
                pipe.run()
            found = pipe.report().read_ahead
            assert found is not None and found.is_active
            return int(found.records)

    # Each epoch, of those ahead too, begins elsewhere: at its first record.
    most = 3 * COUNT + later_rows._MAX_AHEAD + later_rows._CHUNK
    assert requested(random_shuffle=False) <= most // COUNT + 1
    assert requested(random_shuffle=True) > 2 * COUNT


def test_files_that_nobody_reads_are_not_read_ahead(files: list[str]) -> None:
    queue = _native.ReadAhead(2, 1 << 20)
    table = _storages.file_table(files)
    queue.request(table, np.asarray([0, 3, -1, COUNT, 5]), 0)
    assert wait_for(lambda: queue.counts[0] == 5) and queue.counts[1] == 3 * BYTES and not queue.pending
    ends = [threading.Thread(target=queue.close) for _ in range(3)]
    for end in ends:
        end.start()
    for end in ends:
        end.join(HANG_S)
    queue.request(table, np.asarray([1]), 5)
    assert queue.counts[0] == 5 and not queue.pending
    with pytest.raises(ValueError, match="at least one thread"):
        _native.ReadAhead(0, 1)
