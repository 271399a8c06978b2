# SPDX-License-Identifier: Apache-2.0
"""Run a fuzzer in several processes with consecutive seeds, and add up their counts.

Usage: python fuzz/parallel.py JOBS SEED FOLDER COMMAND...

``{seed}`` in the command is replaced. Each process runs in FOLDER/SEED, to which it writes its findings; a folder that
is empty at the end is removed. The exit status is 1 if a process failed.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_COUNT = re.compile(r"([a-z][a-z ]*[a-z]) (\d+)")  # "runs 12, laws checked 3"
_SHOWN = 3000  # characters of a failed process's output


def run(command: list[str], seed: int, folder: Path) -> tuple[int, str]:
    """Run one process. Return its exit status and its output."""
    own = folder / str(seed)
    own.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [part.replace("{seed}", str(seed)) for part in command], cwd=own, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
    )  # fmt: skip
    if not any(own.iterdir()):
        own.rmdir()
    return done.returncode, done.stdout


def counts(output: str) -> Counter[str]:
    """Return the counts of a fuzzer's last summary: the line that begins with "runs" or "plans"."""
    lines = [line.partition(";")[0] for line in output.splitlines() if re.match(r"(runs|plans) \d", line)]
    return Counter({name: int(number) for name, number in _COUNT.findall(lines[-1])}) if lines else Counter()


def main(jobs: int, first: int, folder: Path, command: list[str]) -> int:
    """Run all processes, print findings and the sums; return the exit status."""
    total, failed, begin = Counter[str](), 0, time.monotonic()
    seeds = range(first, first + jobs)
    with ThreadPoolExecutor(jobs) as pool:
        for seed, (status, output) in zip(seeds, pool.map(lambda s: run(command, s, folder), seeds), strict=True):
            found = counts(output)
            total.update(found)
            if status == 0 and found:
                continue
            failed += 1
            print(f"{folder / str(seed)}: exit status {status}\n{output[-_SHOWN:]}", flush=True)
    sums = ", ".join(f"{name} {count:,}" for name, count in total.items())
    print(f"{folder.name}: {jobs} processes, {time.monotonic() - begin:.0f} s, {failed} failed; {sums}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]).resolve(), sys.argv[4:]))
