# SPDX-License-Identifier: Apache-2.0
"""Python programs in processes of their own, forked from a process that has imported torch and torchvision already.

Starting the interpreter with both takes seconds. A forked program differs from one that the interpreter starts in its
modules alone: torch, torchvision and their imports are loaded. Warnings are ignored, as with ``-W ignore``.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

from tests.idle_clock import HANG_S

ROOT = Path(__file__).resolve().parents[1]
PATHS = [str(ROOT), str(ROOT / "tests")]  # where programs find `tests` and the modules that tests share
_WAIT_S = HANG_S


class ForkedProgram:
    """Program that a :class:`ForkServer` has started."""

    def __init__(self, server: ForkServer, arguments: list[str], outputs: Path, pid: int) -> None:
        self._server, self._arguments, self._outputs, self._pid = server, arguments, outputs, pid

    def wait(self, timeout: float = _WAIT_S) -> subprocess.CompletedProcess[str]:
        """Wait for the end of the program, and kill it after ``timeout`` seconds."""
        try:
            status = self._server.ask({"wait": self._pid}, timeout)
        except subprocess.TimeoutExpired:
            os.kill(self._pid, signal.SIGKILL)
            self._server.answer(timeout)
            raise
        out, err = ((self._outputs / name).read_text() for name in ("out", "err"))
        return subprocess.CompletedProcess(self._arguments, os.waitstatus_to_exitcode(status), out, err)


class ForkServer:
    """Process that forks programs.

    Args:
        folder: receives the output of programs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.forked"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
        )  # fmt: skip

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *exception: object) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(_WAIT_S)

    def start(
        self, *arguments: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None
    ) -> ForkedProgram:
        """Start a program.

        Args:
            arguments: of the interpreter, without options: ``-c`` and a text, ``-m`` and a module, or a file.
            cwd: its folder; default: this process's.
            env: its environment; default: this process's, with the repository's tests in ``PYTHONPATH``.
        """
        outputs = Path(tempfile.mkdtemp(dir=self._folder))
        words = [str(word) for word in arguments]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)} if env is None else env
        pid = self.ask(
            {"arguments": words, "cwd": str(cwd or Path.cwd()), "env": environment, "outputs": str(outputs)}, _WAIT_S
        )
        return ForkedProgram(self, words, outputs, pid)

    def run(
        self, *arguments: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None,
        timeout: float = _WAIT_S,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """Run a program to its end; for the arguments see :meth:`start`."""
        return self.start(*arguments, cwd=cwd, env=env).wait(timeout)

    def ask(self, request: dict[str, Any], timeout: float) -> int:
        """Send a request and return the server's answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return self.answer(timeout)

    def answer(self, timeout: float) -> int:
        """Return the answer to the last request."""
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], timeout)
        if not ready:
            raise subprocess.TimeoutExpired(self._process.args, timeout)
        line = self._process.stdout.readline()
        assert line, "the process that forks programs has ended"
        return int(line)


def _serve() -> dict[str, Any]:
    """Answer requests until the end of standard input. Return the request in the process of its program."""
    importlib.import_module("tests.takeover.declared")
    gc.freeze()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "wait" in request:
            answer = os.waitpid(request["wait"], 0)[1]
        elif (answer := os.fork()) == 0:
            return request
        os.write(1, f"{answer}\n".encode())
    os._exit(0)


def _enter(request: dict[str, Any]) -> None:
    """Give this process the folder, environment, files and paths of its program."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    streams = os.open(os.devnull, os.O_RDONLY), *(_create(Path(request["outputs"], name)) for name in ("out", "err"))
    for number, descriptor in enumerate(streams):
        os.dup2(descriptor, number)
        os.close(descriptor)
    more = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    sys.path[:] = ["", *more, *(path for path in sys.path[1:] if path not in PATHS)]
    sys.modules["multiprocessing.process"].ORIGINAL_DIR = request["cwd"]  # type: ignore[attr-defined]
    sys.modules["numpy"].random.seed()
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def _run(words: list[str]) -> None:
    """Run a program in a new main module, as the interpreter does."""
    if words[0] == "-m":
        sys.path[0], sys.argv = os.getcwd(), words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        return
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if words[0] == "-c":
        sys.argv, code = ["-c", *words[2:]], compile(words[1], "<string>", "exec")
    else:
        sys.path[0], sys.argv, main.__file__ = str(Path(words[0]).resolve().parent), words, words[0]
        code = compile(Path(words[0]).read_bytes(), words[0], "exec")
    exec(code, vars(main))


if __name__ == "__main__":
    _REQUEST = _serve()
    _enter(_REQUEST)
    _run(_REQUEST["arguments"])
