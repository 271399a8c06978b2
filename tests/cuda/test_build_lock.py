# SPDX-License-Identifier: Apache-2.0
"""Processes that need the same kernel at the same time: one compiles, the others wait, and none can block them."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
from idle_clock import HANG_S

from stoker.device import build_lock as locks
from stoker.device import compile as compiling

SMALL = '#include "shared/device.cuh"\nSTOKER_KERNEL f(double* p) { p[0] = p[1] * p[2] + p[0]; }\n'
# A process that writes a line for every source that it compiles, and reports when it is ready to start. With "held" in
# place of a number of seconds it waits before it compiles until the log has been removed.
PROGRAM = f"""
import os, sys, time
from stoker.device import build_lock as locks, compile as compiling
log, slow_s, wait_s = sys.argv[1], sys.argv[2], float(sys.argv[3])
real, locks.MAX_WAIT_S = compiling._compile, wait_s
def slowly(*arguments):
    with open(log, "a") as file:
        file.write("compiles\\n")
    while slow_s == "held" and os.path.exists(log):
        time.sleep(0.01)
    time.sleep(0.0 if slow_s == "held" else float(slow_s))
    return real(*arguments)
compiling._compile = slowly
print("ready", flush=True)
sys.stdin.readline()
print(len(compiling.compile_kernels({SMALL!r}, 90)), flush=True)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STOKER_KERNEL_CACHE", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


class Started:
    """Process that waits for the start signal."""

    def __init__(self, log: Path, slow_s: float | str, wait_s: float = 2 * HANG_S) -> None:
        command = [sys.executable, "-c", PROGRAM, str(log), str(slow_s), str(wait_s)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None and self.process.stdout.readline() == "ready\n"

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> int:
        out, _ = self.process.communicate(timeout=HANG_S)
        assert self.process.returncode == 0
        return int(out)


def until(condition, seconds: float = HANG_S) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_one_compiles_and_the_others_wait(cache: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    processes = [Started(log, 0.5) for _ in range(4)]
    for process in processes:
        process.go()
    assert len({process.end() for process in processes}) == 1
    assert log.read_text() == "compiles\n"
    assert [p.suffix for p in cache.iterdir()] == [".cubin"]  # and no lock is left


def test_the_wait_for_a_killed_process_ends(cache: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    first, second = Started(log, "held"), Started(log, 0.0)
    first.go()
    until(lambda: log.exists() and log.read_text())  # it exists a moment before it has the line
    second.go()
    time.sleep(0.2)
    assert log.read_text() == "compiles\n"  # it waits
    first.process.send_signal(signal.SIGKILL)
    first.process.communicate(timeout=HANG_S)
    assert second.end() > 0
    assert log.read_text() == "compiles\n" * 2
    assert [p.suffix for p in cache.iterdir()] == [".cubin"]


def test_the_wait_for_a_stopped_process_ends(cache: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    first, second = Started(log, "held"), Started(log, 0.0, wait_s=0.3)
    first.go()
    until(lambda: log.exists() and log.read_text())  # it exists a moment before it has the line
    first.process.send_signal(signal.SIGSTOP)
    try:
        second.go()
        assert second.end() > 0
        assert log.read_text() == "compiles\n" * 2
        log.unlink()
    finally:
        first.process.send_signal(signal.SIGCONT)
    assert first.end() > 0 and not log.exists()


def never_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every wait for a turn fail."""
    clock = SimpleNamespace(monotonic=time.monotonic, sleep=lambda seconds: pytest.fail("it waits"))
    monkeypatch.setattr(locks, "time", clock)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_every_process_compiles(cache: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(handle: int, how: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    never_wait(monkeypatch)
    assert compiling.compile_kernels(SMALL, 90)


def test_a_folder_that_can_only_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with locks.build_lock(tmp_path / "file" / "a.cubin"):
        pass


def test_turns_never_overlap(tmp_path: Path) -> None:
    """Threads take turns too. Two are never inside together, although each removes the file that the next may open."""
    inside, most, done = 0, 0, 0
    counting = threading.Lock()

    def take() -> None:
        nonlocal inside, most, done
        for _ in range(5):
            with locks.build_lock(tmp_path / "a.cubin"):
                with counting:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0.001)
                with counting:
                    inside -= 1
                    done += 1

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert (most, done) == (1, 20) and not list(tmp_path.iterdir())


def test_a_forked_process_keeps_no_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go, leave = os.pipe()
    with locks.build_lock(tmp_path / "a.cubin"):
        with warnings.catch_warnings():  # of threads of other tests' libraries
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            os.close(leave)
            os.read(go, 1)
            os._exit(0)
    try:
        never_wait(monkeypatch)
        with locks.build_lock(tmp_path / "a.cubin"):
            pass
    finally:
        os.close(leave)
        os.close(go)
        os.waitpid(child, 0)
