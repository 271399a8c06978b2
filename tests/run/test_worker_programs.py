# SPDX-License-Identifier: Apache-2.0
"""Programs with worker processes: every process ends in any case, and Ctrl-C loses no batch."""

from __future__ import annotations

import os
import signal
import time

import pytest
from idle_clock import IdleClock, at_most

from tests.run.test_processes import Script

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
    program = Script(f"SLOW_FROM = {slow_from}\n" + BEGIN + text, [])
    assert program.process.stdout is not None
    return program, [int(x) for x in program.process.stdout.readline().split()]


def gone(pids: list[int], seconds: float = 5.0) -> bool:
    clock = IdleClock()
    while alive(pids) and clock.tick() < seconds:
        time.sleep(0.05)
    return not alive(pids)


@pytest.mark.parametrize(
    "text",
    ["pipe.run()", "pipe.run(); pipe.close()", "pipe.run(); del pipe", "pipe.run(); sys.exit(0)", "pass",
     "pipe.run(); import json; json.pipe = pipe; loop = [pipe]; loop.append(loop)"],
    ids=["left", "closed", "deleted", "exit", "never used", "referenced by a cycle"],
)  # fmt: skip
def test_no_process_outlives_the_program(text: str) -> None:
    program, pids = script(text)
    assert len(pids) == 2
    assert program.end() == (0, "", "")
    assert gone(pids)


def test_no_process_outlives_a_program_that_is_killed() -> None:
    program, pids = script("pipe.run()\nsay('running')\ntime.sleep(1000)", slow_from=4)  # workers hang in the source
    program.expect_line("running")
    assert alive(pids) == pids
    program.process.kill()
    program.end()
    assert gone(pids)


def test_ctrl_c_ends_waiting_for_a_worker() -> None:
    program, pids = script(
        "try:\n    say('running')\n    while True: pipe.run()\nexcept KeyboardInterrupt:\n    say('interrupted')",
        slow_from=4,
    )
    program.expect_line("running")
    time.sleep(0.3)
    with at_most(8.0):  # two workers that hang get a second, then they are killed
        program.process.send_signal(signal.SIGINT)
        program.expect_line("interrupted")
        assert program.end() == (0, "", "")
        assert gone(pids)


def test_ctrl_c_at_any_moment_loses_nothing() -> None:
    text = """
import random
signal.signal(signal.SIGALRM, signal.default_int_handler)
rng = random.Random(3)
pipe.run()  # this makes the plan
interrupted, done = 0, 2
while done < 300 or interrupted < 20:
    got, cut = run_interrupted(pipe, rng.uniform(1e-5, 4e-3))
    interrupted += cut
    now = pipe.execution.mark.position
    if got is not None:
        assert [int(x[0]) for x in got[0]] == list(range(done, now)), (done, now)
    done = now
pipe.close()
say("well")
"""
    program, pids = script(text)
    program.expect_line("well")
    assert program.end() == (0, "", "")
    assert gone(pids)


def test_a_slow_source_does_not_delay_finished_batches() -> None:
    program, _ = script("pipe.run()\nsay('one')\npipe.run()\nsay('two')\npipe.close()", slow_from=4)
    program.expect_line("one")
    program.expect_line("two")
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
