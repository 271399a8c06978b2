# SPDX-License-Identifier: Apache-2.0
"""Process of a contender, seen from the harness: start it, run rounds, end it."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks import machine
from benchmarks.case import Contender
from benchmarks.machine import ROOT

_START_LIMIT_S = 120.0
_ROUND_LIMIT_S = 120.0
_STOP_LIMIT_S = 10.0


class ContenderAbsent(RuntimeError):
    """A library that the contender needs is not installed in its environment."""


class ContenderFailed(RuntimeError):
    """The contender's process raised, died or did not answer in time."""


@dataclass(frozen=True)
class Settings:
    """Settings that all contenders of a run share.

    Attributes:
        data: Folder of the JPEG files.
        pythons: The interpreter of each environment.
        logs: Folder for the contenders' output.
        preload: The allocation counter's shared library; None if it could not be built.
    """

    data: Path
    pythons: dict[str, Path]
    logs: Path
    preload: Path | None = None


@dataclass(frozen=True)
class Round:
    """Measurements of one contender in one round.

    Attributes:
        figure: For a `Loop`, wall seconds per item of all copies together; for a `Sample`, its figure.
        cpu_s: Processor seconds per item of all copies together; None for a `Sample`.
        items: Number of items in the round.
        checksum: Sum of the steps' checksums.
        rested: False if a process stayed busy afterwards, so that it may have slowed others down.
        others: Number of processors that programs outside of the benchmark kept busy, on average.
    """

    figure: float
    cpu_s: float | None
    items: int
    checksum: float
    rested: bool
    others: float = 0.0


class Runner:
    """Running contender. Its ``with`` statement ends the processes."""

    def __init__(self, module: str, contender: Contender, settings: Settings) -> None:
        self.contender = contender
        self.versions: dict[str, str] = {}
        self._processes: list[_Process] = []
        self._module = module
        self._settings = settings

    def __enter__(self) -> Self:
        try:
            for copy in range(self.contender.copies):
                self._processes.append(_Process(self._module, self.contender, copy, self._settings))
            for process in self._processes:
                self.versions |= process.ready()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.stop()
        self._processes.clear()

    def run(self, seconds: float) -> Round:
        """Run one round, all copies at the same time."""
        start, others = time.perf_counter(), self._others_s()
        for process in self._processes:
            process.send(seconds=seconds)
        answers = [process.answer(seconds + _ROUND_LIMIT_S) for process in self._processes]
        others = (self._others_s() - others) / (time.perf_counter() - start)
        return replace(combine(answers), others=max(others, 0.0))

    def _others_s(self) -> float:
        mine = sum(machine.process_s(process.pid) for process in self._processes)
        return machine.busy_s() - mine - machine.process_s(os.getpid())


def combine(answers: list[dict[str, Any]]) -> Round:
    """Return one round for all copies: their rates add up, their processor times per item are averaged."""
    rested = all(answer["rested"] for answer in answers)
    if "figure" in answers[0]:
        return Round(sum(answer["figure"] for answer in answers) / len(answers), None, 1, 0.0, rested)
    items = sum(answer["items"] for answer in answers)
    rate = sum(answer["items"] / answer["wall_s"] for answer in answers)
    cpu_s = sum(answer["cpu_s"] for answer in answers) / items
    return Round(1 / rate, cpu_s, items, sum(answer["checksum"] for answer in answers), rested)


def read_answer(process: subprocess.Popen[bytes], limit_s: float) -> dict[str, Any]:
    """Return the next line that a process writes, which is JSON.

    Raises:
        ContenderFailed: it writes none within ``limit_s`` seconds, or has ended.
    """
    stdout = process.stdout
    assert stdout is not None
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        if not selector.select(limit_s):
            raise ContenderFailed(f"no answer within {limit_s:.0f} s")
    line = stdout.readline()
    if not line:
        raise ContenderFailed(f"its process ended with {process.wait()}")
    fields: dict[str, Any] = json.loads(line)
    return fields


class _Process:
    """One worker process and the two pipes to it."""

    def __init__(self, module: str, contender: Contender, copy: int, settings: Settings) -> None:
        python = settings.pythons.get(contender.environment)
        if python is None:
            raise ContenderAbsent(f"there is no environment for the {contender.environment}")
        paths = [os.fspath(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environ = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        if contender.count_allocations:
            if settings.preload is None:
                raise ContenderAbsent("the allocation counter could not be built")
            environ["LD_PRELOAD"] = os.fspath(settings.preload)
        name = "".join(c if c.isalnum() else "-" for c in f"{module.rpartition('.')[2]}-{contender.name}-{copy}")
        self._log = settings.logs / f"{name}.log"
        with self._log.open("wb") as log:
            self._popen = subprocess.Popen(
                [os.fspath(python), "-m", "benchmarks.worker"],
                cwd=ROOT,
                env=environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        order = {key: asdict(contender)[key] for key in ("function", "options", "cores")}
        self.pid = self._popen.pid
        self.send(module=module, data=os.fspath(settings.data), **order)

    def send(self, **fields: Any) -> None:
        stdin = self._popen.stdin
        assert stdin is not None
        try:
            stdin.write(json.dumps(fields).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            raise ContenderFailed(f"its process ended: {self._last_words()}") from None

    def ready(self) -> dict[str, str]:
        versions: dict[str, str] = self.answer(_START_LIMIT_S)["versions"]
        return versions

    def answer(self, limit_s: float) -> dict[str, Any]:
        try:
            fields = read_answer(self._popen, limit_s)
        except ContenderFailed as error:
            raise ContenderFailed(f"{error}: {self._last_words()}") from None
        if "absent" in fields:
            raise ContenderAbsent(fields["absent"])
        if "failed" in fields:
            raise ContenderFailed(fields["failed"])
        return fields

    def stop(self) -> None:
        for stream in (self._popen.stdin, self._popen.stdout):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        try:
            self._popen.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()
        return f"{lines[-1].strip()} ({self._log} has more)" if lines else "it printed nothing"
