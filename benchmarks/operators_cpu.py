# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.operators_cpu``: single operators on one core, compared with other libraries in two minutes.

It runs the contenders of the cases ``operator-*``. Each library has one process for all operators, so that libraries
are imported once; the processes alternate (A B B A) and sleep while another one runs. A library that took over three
times the fastest's time in the first round is not measured again. Figures are medians of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from benchmarks import environment, machine
from benchmarks.case import Case, Contender
from benchmarks.cases import operators
from benchmarks.data import Data
from benchmarks.harness import turns
from benchmarks.machine import ROOT
from benchmarks.process import ContenderFailed, read_answer
from benchmarks.worker import measure_loop

BAR = 1.1
HOPELESS = 3.0
LIMIT_S = 60.0
ROUNDS, SECONDS = 3, 0.1


def main() -> int:
    """Measure the named operators, or all, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.operators_cpu", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", help="operators, by default all")
    parser.add_argument("--data", type=Path, required=True, help="folder of JPEG files")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="length of a round")
    parser.add_argument("--peers", type=Path, help="interpreter with the peers; default: .venv-bench, made if needed")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(Data(arguments.data))
        return 0
    if unknown := [name for name in arguments.names if name not in operators.TITLES]:
        parser.error(f"expected names of {', '.join(operators.TITLES)}, got {', '.join(unknown)}")
    cases = [case for case in operators.CASES if not arguments.names or _name(case) in arguments.names]
    pythons = {"stoker": Path(sys.executable), "peers": arguments.peers or environment.ensure()}
    facts = machine.describe()
    print(f"{facts['processor']}, commit {facts['commit']}, {facts['date']}, load at start {facts['load at start']}\n")
    print("| operator | Stoker | fastest library | ratio | bar 1.1 |\n| --- | --- | --- | --- | --- |", flush=True)
    with ExitStack() as stack:
        servers: dict[str, Server] = {}
        for contender in (one for case in cases for one in case.contenders):
            if contender.name not in servers:
                python = pythons[contender.environment]
                servers[contender.name] = stack.enter_context(Server(contender.name, python, arguments.data))
        for server in servers.values():
            server.wait()
        for case in cases:
            print(row(case, measure(case, servers, arguments.rounds, arguments.seconds)), flush=True)
    return 0


def _name(case: Case) -> str:
    return str(case.contenders[0].options["operator"])


def measure(case: Case, servers: dict[str, Server], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Return the milliseconds of processor time per image of each contender that runs, one per round."""
    times: dict[str, list[float]] = {}
    dropped: set[str] = set()
    for order in turns(len(case.contenders), rounds):
        for contender in (case.contenders[k] for k in order):
            if contender.name in dropped:
                continue
            found = servers[contender.name].measure(contender, seconds)
            if found is None:
                dropped.add(contender.name)
            else:
                times.setdefault(contender.name, []).append(found)
        fastest = min(min(taken) for taken in times.values())
        others = set(times) - {"stoker"}
        dropped |= {name for name in others if times[name][0] > HOPELESS * fastest and len(others) > 1}
    return times


def row(case: Case, times: dict[str, list[float]]) -> str:
    """Return the line of an operator."""
    title = operators.TITLES[_name(case)]
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    mine = medians.pop("stoker", None)
    if mine is None or not medians:
        return f"| {title} | not measured | | | |"
    best = min(medians, key=medians.__getitem__)
    ratio = mine / medians[best]
    return (
        f"| {title} | {mine:.3g} | {best} {medians[best]:.3g} | {ratio:.2f} | {'met' if ratio <= BAR else 'missed'} |"
    )


@dataclass
class Server:
    """Process of one library.

    Attributes:
        name: of the library.
        python: interpreter of its environment.
        data: folder of JPEG files.
    """

    name: str
    python: Path
    data: Path

    def __enter__(self) -> Self:
        self._popen = subprocess.Popen(
            [os.fspath(self.python), "-m", "benchmarks.operators_cpu", "--serve", "--data", os.fspath(self.data)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self._popen.kill()
        self._popen.communicate()

    def wait(self) -> None:
        """Wait until the process has decoded the images."""
        self._answer()

    def measure(self, contender: Contender, seconds: float) -> float | None:
        """Return milliseconds per image, or None if the library fails; standard error has the reason."""
        request = {"function": contender.function, "options": dict(contender.options), "seconds": seconds}
        assert self._popen.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, and so gives no answer
            self._popen.stdin.write(json.dumps(request).encode() + b"\n")
            self._popen.stdin.flush()
        found = self._answer()
        if "failed" in found:
            print(f"{self.name}, {contender.options}: {found['failed']}", file=sys.stderr)
            return None
        return float(1e3 * found["cpu_s"] / found["items"])

    def _answer(self) -> dict[str, Any]:
        try:
            return read_answer(self._popen, LIMIT_S)
        except ContenderFailed as error:
            raise ContenderFailed(f"{self.name}: {error}") from None


def serve(data: Data) -> None:
    """Measure jobs of one library on request, on one core."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    operators.photographs(data)
    answers.write("{}\n")
    current, job = None, None
    for line in sys.stdin:
        request = json.loads(line)
        wanted = (request["function"], request["options"])
        try:
            if job is None or current != wanted:
                current, job = wanted, replace(getattr(operators, wanted[0])(data, **wanted[1]), warm=1)
                job.step()  # imports libraries and creates plans
            found = measure_loop(job, request["seconds"])
        except Exception as error:  # noqa: BLE001 - the table names what failed
            job, found = None, {"failed": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    start = time.monotonic()
    status = main()
    if "--serve" not in sys.argv:
        print(f"\n{time.monotonic() - start:.0f} s", file=sys.stderr)
    sys.exit(status)
