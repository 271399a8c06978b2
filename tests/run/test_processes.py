# SPDX-License-Identifier: Apache-2.0
"""Tests that need a separate process: exit of the interpreter, Ctrl-C, fork."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import PIL.Image
import pytest
from idle_clock import HANG_S, at_most

from tests.run.pipelines import environment, files_of

QUICK_S = 5.0

BEGIN = """
import os, signal, sys, threading, time
import numpy as np
from stoker import DataError, StateError, eager, fn, pipeline_def
from tests.run.pipelines import decoding, rows_of, run_interrupted, training

files = sys.argv[1:]

@pipeline_def(batch_size=2, num_threads=2, seed=1)
def calling(function):
    numbers = fn.external_source(source=lambda n: np.asarray([[2 * n], [2 * n + 1]], np.int64))
    return fn.python_function(numbers, function=function)

def say(text):
    print(text, flush=True)
"""


class Script:
    """Python program that runs at the same time as the test."""

    def __init__(self, text: str, files: list[str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", "-c", BEGIN + text, *files],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
        )  # fmt: skip
        self.lines: list[str] = []

    def expect_line(self, word: str) -> None:
        """Wait until the program prints a line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        self.lines.append(line)
        assert line == word, self.process.communicate(timeout=HANG_S)

    def end(self, seconds: float = HANG_S) -> tuple[int, str, str]:
        """Return its exit code, output and errors. The program must end within ``seconds``."""
        try:
            out, err = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # faulthandler prints its stacks
            pytest.fail(f"it did not end: {self.process.communicate(timeout=HANG_S)}")
        return self.process.returncode, out, err


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return files_of(jpegs)[:9]


# ---- exit of the interpreter ----

ENDS = {
    "native": "pipe = training(files, prefetch_queue_depth=4)\npipe.run()",
    "codecs that Pillow uses": "pipe = decoding(files)\npipe.run(); pipe.run()",
    "Python function": "pipe = calling(lambda x: x)\npipe.run()",
    "referenced by a cycle": "pipe = training(files)\npipe.run()\nloop = [pipe]; loop.append(loop)\ndel pipe, loop",
    "referenced by a module": "import json\njson.pipe = training(files)\njson.pipe.run()",
    "in another thread": """
pipe = training(files)
def consume():
    while True:
        pipe.run()
threading.Thread(target=consume, daemon=True).start()
time.sleep(0.2)
""",
    "waiting in another thread": """
pipe = calling(lambda x: time.sleep(0.3) or x)
def consume():
    while True:
        pipe.run()
threading.Thread(target=consume, daemon=True).start()
time.sleep(0.2)
""",
    "many eager calls in other threads": """
image = np.zeros((2000, 2000, 3), np.uint8)
def work():
    while True:
        eager.resize(image, size=(500, 500))
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.5)
""",
    "after a failure": """
pipe = training([*files, "none.jpg"], shuffle=False)
try:
    while True:
        pipe.run()
except DataError:
    pass
""",
}


@pytest.mark.parametrize("text", ENDS.values(), ids=ENDS)
def test_the_interpreter_ends(files: list[str], text: str) -> None:
    script = Script(text + "\nsay('last')", files)
    script.expect_line("last")
    with at_most(QUICK_S):
        assert script.end() == (0, "", "")


def test_a_pipeline_that_is_deleted_after_the_modules(files: list[str]) -> None:
    """PyTorch keeps modules, which lose their variables before the program's are deleted."""
    pytest.importorskip("torch")
    script = Script("import torch, stoker.cpp\npipe = training(files)\npipe.run()\nsay('last')", files)
    script.expect_line("last")
    assert script.end() == (0, "", "")


def test_the_end_does_not_wait_for_a_function_that_hangs(files: list[str]) -> None:
    script = Script("pipe = calling(lambda x: time.sleep(1000 * (x[0] >= 4)) or x)\npipe.run()\nsay('last')", files)
    script.expect_line("last")
    with at_most(QUICK_S):
        assert script.end() == (0, "", "")


def test_an_exception_ends_the_process(files: list[str]) -> None:
    code, _, err = Script("pipe = training(files)\npipe.run()\nraise ValueError('mine')", files).end()
    assert code == 1
    assert err.rstrip().endswith("ValueError: mine")


def test_a_quick_end_while_batches_are_in_flight(files: list[str]) -> None:
    for _ in range(3):
        ended = Script("pipe = training(files, batch_size=50)\npipe.run()\nsys.exit(7)", files).end()
        assert ended[0] == 7, ended


# ---- Ctrl-C ----

WAITS = {
    "for a slow function": "pipe = calling(lambda x: time.sleep(0.4) or x)",
    "for a function that hangs": "pipe = calling(lambda x: time.sleep(1000 * (x[0] >= 4)) or x)",
    "for a source": """
@pipeline_def(batch_size=1, num_threads=1)
def sourced():
    return fn.external_source(source=lambda n: time.sleep(0.3 if n < 3 else 1000) or np.asarray([n], np.int32))
pipe = sourced()
""",
    "never long": "pipe = training(files)",
    "on its own thread": "pipe = training(files, exec_async=False)",
}


@pytest.mark.alone("measures how soon a program reacts to Ctrl-C")
@pytest.mark.parametrize("text", WAITS.values(), ids=WAITS)
def test_ctrl_c(files: list[str], text: str) -> None:
    """An endless program reacts to Ctrl-C within a second; half a second more is for other programs."""
    script = Script(
        text + """
try:
    say("running")
    while True:
        pipe.run()
except KeyboardInterrupt:
    say("interrupted")
""", files
    )  # fmt: skip
    script.expect_line("running")
    time.sleep(1.0)
    with at_most(QUICK_S):
        with at_most(1.0 + 0.5):
            script.process.send_signal(signal.SIGINT)
            script.expect_line("interrupted")
        assert script.end() == (0, "", "")


def test_ctrl_c_without_a_handler(files: list[str]) -> None:
    script = Script(
        "pipe = calling(lambda x: time.sleep(0.2) or x)\nsay('running')\nwhile True:\n    pipe.run()", files
    )
    script.expect_line("running")
    time.sleep(0.5)
    script.process.send_signal(signal.SIGINT)
    code, _, err = script.end()
    assert code == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")


def test_ctrl_c_loses_nothing(files: list[str]) -> None:
    """After interrupts at random points, the next batch follows the last one that the pipeline reports as delivered."""
    text = """
import random
def stream(pipe, count):
    rows = []
    while len(rows) < count:
        rows += rows_of(pipe.run())
    return rows
COUNT, BATCH = 900, 3
with training(files, batch_size=BATCH) as pipe:
    expected = stream(pipe, COUNT)
rng = random.Random(5)
interrupted = 0
pipe = training(files, batch_size=BATCH, prefetch_queue_depth=3)
pipe.run()
done = BATCH
while done < COUNT - BATCH:
    got, cut = run_interrupted(pipe, rng.uniform(1e-5, 1e-3))
    interrupted += cut
    mark = pipe.execution.mark
    now = mark.epoch * len(files) + mark.position
    if got is not None:
        assert now == done + BATCH, (now, done)
        assert rows_of(got) == expected[done:now], "not the next batches"
    else:
        assert now in (done, done + BATCH), (now, done)  # the latter if it came between the hand-over and `got =`
    done = now
assert interrupted > 20, interrupted
pipe.close()
say("well")
"""
    script = Script("signal.signal(signal.SIGALRM, signal.default_int_handler)\n" + text, files)
    script.expect_line("well")
    assert script.end() == (0, "", "")


# ---- fork ----


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork, which the test is about")
@pytest.mark.parametrize("define", ["training(files)", "decoding(files)", "calling(lambda x: x)"])
def test_fork(files: list[str], define: str) -> None:
    text = f"""
import gc, warnings
warnings.simplefilter("ignore")  # newer Pythons warn of a fork with threads
pipe = {define}
reference = {define}
expected = [rows_of(reference.run()) for _ in range(6)]
reference.close()
first = pipe.run()
small = eager.resize(np.zeros((9, 9, 3), np.uint8), size=(4, 4))
child = os.fork()
if child == 0:
    for call in (pipe.run, pipe.next, pipe.reset, lambda: pipe.set_state(pipe.get_state())):
        try:
            call()
        except StateError as error:
            assert "another process" in str(error), error
        else:
            os._exit(9)
    assert rows_of(first) == expected[0]
    del first
    pipe.close()
    mine = {define}
    assert [rows_of(mine.run()) for _ in range(3)] == expected[:3]
    assert (eager.resize(np.zeros((9, 9, 3), np.uint8), size=(4, 4)) == small).all()
    del pipe
    gc.collect()
    say("child")
    sys.exit(5)
say("parent") if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5 else say("the child failed")
assert [rows_of(pipe.run()) for _ in range(5)] == expected[1:]
grandchild = os.fork()
if grandchild == 0:
    sys.exit(0)  # with a running pipeline of its parent's that it never touches
assert os.waitpid(grandchild, 0)[1] == 0
"""
    script = Script(text, files)
    script.expect_line("child")
    script.expect_line("parent")
    assert script.end() == (0, "", "")


FIRST_USE = """
import io, os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")  # newer Pythons warn of a fork with threads
import numpy as np
from stoker import fn, pipeline_def

module, *files = sys.argv[1:]
importing = threading.Event()

class SlowImport:
    \"\"\"Make the import of one module slow in all threads but the main one.\"\"\"
    def find_spec(self, name, *_):
        if name == module and threading.current_thread() is not threading.main_thread():
            importing.set()
            time.sleep(0.5)

@pipeline_def(batch_size=2, num_threads=2, seed=1)
def resizing():
    encoded, label = fn.readers.file(files=files)
    return fn.resize(fn.decoders.image(encoded), size=(8, 8)), label

def run():
    with resizing() as pipe:
        pipe.run()

def look_up():  # this alone: Python reports locks of modules that are imported while the fork begins
    assert not hasattr(fn, "no_operator")

sys.meta_path.insert(0, SlowImport())
other = threading.Thread(target=look_up if module == "importlib.metadata" else run)
other.start()
assert importing.wait(60), "expected an import in the other thread"
child = os.fork()
if child == 0:
    signal.alarm(60)  # ends a child that hangs
    run()
    os._exit(5)
status = os.waitpid(child, 0)[1]
other.join()
assert os.waitstatus_to_exitcode(status) == 5, os.waitstatus_to_exitcode(status)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork, which the test is about")
@pytest.mark.parametrize(
    "module",
    ["stoker.ops.geometry.resize", "stoker.graph.planner", "stoker.codecs.jpeg.codec", "PIL.Image",
     "PIL.QoiImagePlugin", "importlib.metadata"],
)  # fmt: skip
def test_fork_while_another_thread_imports(module: str, tmp_path: Path) -> None:
    """A first use imports operators, planner and codecs. A fork at that moment must not leave a lock in the child."""
    for name in "ab":
        PIL.Image.new("RGB", (9, 9)).save(tmp_path / f"{name}.qoi")  # a format that Pillow decodes
    files = sorted(str(path) for path in tmp_path.iterdir())
    done = subprocess.run(
        [sys.executable, "-c", FIRST_USE, module, *files],
        capture_output=True, text=True, env=environment(), check=False, timeout=HANG_S,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_pipeline_that_has_not_started_may_be_used_in_a_child(files: list[str]) -> None:
    text = """
import multiprocessing, warnings
warnings.simplefilter("ignore")
pipe = training(files).build()
def work(queue):
    queue.put(rows_of(pipe.run()))
queue = multiprocessing.get_context("fork").SimpleQueue()
process = multiprocessing.get_context("fork").Process(target=work, args=(queue,))
process.start()
theirs = queue.get()
process.join()
assert process.exitcode == 0
assert theirs == rows_of(pipe.run())
"""
    assert Script(text, files).end() == (0, "", "")


def test_workers_that_use_eager_calls(files: list[str]) -> None:
    text = """
import multiprocessing, warnings
warnings.simplefilter("ignore")
def load(path):
    return eager.resize(eager.imread(path), size=(8, 8)).tobytes()
here = [load(f) for f in files]
busy = [threading.Thread(target=lambda: [load(f) for f in files * 30], daemon=True) for _ in range(3)]
for t in busy:
    t.start()
for _ in range(3):
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map(load, files) == here
"""
    assert Script(text, files).end() == (0, "", "")


def test_an_embedded_use(files: list[str]) -> None:
    """`spawn`, as documented for users with processes."""
    text = """
import multiprocessing
context = multiprocessing.get_context("spawn")
pipe = training(files)
pipe.run()
process = context.Process(target=print, args=("hello",), kwargs={"flush": True})
process.start()
process.join()
assert process.exitcode == 0
pipe.run()
"""
    result: Any = Script(text, files).end()
    assert result == (0, "hello\n", "")
