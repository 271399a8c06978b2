# SPDX-License-Identifier: Apache-2.0
"""Real processes of every command, which Ctrl-C, a closed pipe and a full disk end without a traceback."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from PIL import Image

from stoker import command
from tests.idle_clock import HANG_S

ROOT = Path(__file__).parents[2]
_PIPELINE = """
import numpy as np
from stoker import Pipeline, fn
pipe = Pipeline(batch_size=1, num_threads=1)
with pipe:
    pipe.set_outputs(fn.external_source(lambda i: [np.zeros((8, 9, 3), np.uint8)], layout="HWC"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("commands")
    for name, count, extent in (("few", 12, 300), ("many", 6000, 400)):
        (root / name).mkdir()
        first = root / name / "0.jpg"
        Image.effect_noise((extent, extent), 60).convert("RGB").save(first, quality=95)
        for i in range(1, count):
            os.link(first, root / name / f"{i}.jpg")
    (root / "shown.py").write_text(_PIPELINE)
    # A signal that comes between Python's last look for signals and the system call would not end one long sleep.
    (root / "waits.py").write_text("import time\nprint('ready', flush=True)\nwhile True:\n    time.sleep(0.05)\n")
    return root


# The command, which prints a line when it has begun to check files.
_CHECK = """
import sys
from stoker import command
from stoker.inspection import check

real = check.check_image_file

def shown(path):
    if path.name == "0.jpg":
        print("ready", flush=True)
    return real(path)

check.check_image_file = shown
sys.exit(command.main(sys.argv[1:]))
"""


def start(arguments: list[str], folder: Path, *, checks: bool = False, **streams: int) -> subprocess.Popen[bytes]:
    given = [argument.format(folder=folder) for argument in arguments]
    line = [sys.executable, *(("-c", _CHECK) if checks else ("-m", "stoker.command")), *given]
    return subprocess.Popen(line, cwd=ROOT, **streams)  # type: ignore[call-overload,no-any-return]


COMMANDS = {
    "version": ["--version"],
    "info": ["info"],
    "show": ["show", "{folder}/shown.py"],
    "check": ["check", "{folder}/few"],
    "demo": ["demo", "--data", "{folder}/few", "--out", "{folder}/out", "--seconds", "1"],
    "preview": ["preview", "{folder}/shown.py", "-n", "1", "--out", "{folder}/sheet.png"],
    "bench": ["bench", "--list"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk(name: str, folder: Path) -> None:
    with open("/dev/full", "wb") as full:
        process = start(COMMANDS[name], folder, stdout=full.fileno(), stderr=subprocess.PIPE)
        _, errors = process.communicate(timeout=HANG_S)
    assert process.returncode == 1
    assert errors.splitlines()[-1] == b"stoker: [Errno 28] No space left on device" and b"Traceback" not in errors


@pytest.mark.parametrize("name", COMMANDS)
def test_a_closed_pipe(name: str, folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = start(COMMANDS[name], folder, stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    _, errors = process.communicate(timeout=HANG_S)
    assert process.returncode == command.CLOSED_PIPE
    assert b"Traceback" not in errors and b"BrokenPipe" not in errors and b"Exception ignored" not in errors


def interrupted(process: subprocess.Popen[bytes], stream: int) -> tuple[int, bytes]:
    """Send Ctrl-C after the first output on ``stream``. Return the exit status and what was printed there."""
    printed = os.read(stream, 4096)
    assert printed
    process.send_signal(signal.SIGINT)
    while True:
        try:
            more = os.read(stream, 4096)
        except OSError:  # the end of a terminal
            more = b""
        if not more:
            return process.wait(HANG_S), printed
        printed += more


@pytest.mark.parametrize("name", ["check", "demo", "show"])
def test_ctrl_c(name: str, folder: Path) -> None:
    """Interrupt commands that run for long, on a terminal."""
    arguments = {
        "show": ["show", "{folder}/waits.py"],
        "check": ["check", "{folder}/many", "--threads", "1"],
        "demo": [*COMMANDS["demo"][:-1], "600"],
    }[name]
    terminal, other_end = pty.openpty()
    process = start(arguments, folder, checks=name == "check", stdout=other_end, stderr=other_end)
    os.close(other_end)
    try:
        status, printed = interrupted(process, terminal)
    finally:
        os.close(terminal)
        process.kill()
        process.wait(HANG_S)
    assert status == command.INTERRUPTED, printed.decode()
    assert b"stoker: interrupted" in printed and b"Traceback" not in printed


def test_ctrl_c_while_nobody_reads() -> None:
    """A pager that ignores Ctrl-C and does not read must not keep a command from ending."""
    code = """
        import os, sys
        from stoker.command import end_cleanly

        def run():
            os.set_blocking(1, False)
            try:
                while True:
                    os.write(1, bytes(4096))
            except BlockingIOError:
                os.set_blocking(1, True)
            print("more than the pipe takes")
            raise KeyboardInterrupt

        sys.exit(end_cleanly(run))
    """
    reading, writing = os.pipe()
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=writing, stderr=subprocess.PIPE, env=buffered
    )
    os.close(writing)
    try:
        _, errors = process.communicate(timeout=HANG_S)
    finally:
        os.close(reading)
        process.kill()
    assert process.returncode == command.INTERRUPTED and errors == b"stoker: interrupted\n"
