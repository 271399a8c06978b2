# SPDX-License-Identifier: Apache-2.0
"""Kill a training process at random moments, many times: ``python -m tests.run.kills --times 100 FILES``.

Each process resumes from the last saved state, with another batch size, number of threads and prefetch depth, and saves
its state after every batch. At the end, the rows of all processes together must equal those of an uninterrupted run.
With ``--videos`` the files are videos, and the rows are clips of them.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stoker.torch import Loader
from tests.idle_clock import HANG_S
from tests.run.pipelines import clips, environment, training

_LONGEST_LIFE_S = 0.25  # after the first batch


def rows_of_life(
    files: list[str], state: dict[str, Any] | None, *, videos: bool = False, **settings: Any
) -> Iterator[tuple[list[str], Any]]:
    """Yield digests of the rows of every batch, epoch after epoch, with the state after it."""
    pipeline = clips if videos else training
    loader = Loader(pipeline(files, on_error="replace", error_limit=1.0, **settings))
    if state is not None:
        loader.load_state_dict(state)
    while True:
        for images, labels in loader:
            digests = [
                hashlib.blake2b(x.numpy().tobytes() + y.numpy().tobytes(), digest_size=8).hexdigest()
                for x, y in zip(images, labels, strict=True)
            ]
            yield digests, loader.state_dict()


def live(folder: Path, files: list[str], seed: int, *, videos: bool) -> None:
    """Resume from the saved state and run until killed."""
    drawn = random.Random(seed)
    saved = folder / "saved.json"
    checkpoint = json.loads(saved.read_text()) if saved.exists() else {"bytes": 0, "state": None}
    settings: dict[str, Any] = {
        "videos": videos, "batch_size": drawn.choice([1, 3, 8]), "num_threads": drawn.choice([1, 2, 3]),
        "prefetch_queue_depth": drawn.choice([1, 2, 4]),
    }  # fmt: skip
    with (folder / "rows").open("r+b" if saved.exists() else "w+b") as out:
        out.truncate(checkpoint["bytes"])  # rows written after the last state do not count
        out.seek(checkpoint["bytes"])
        for number, (digests, state) in enumerate(rows_of_life(files, checkpoint["state"], **settings)):
            out.write("".join(f"{d}\n" for d in digests).encode())
            out.flush()
            (folder / "new").write_text(json.dumps({"bytes": out.tell(), "state": state}))
            os.replace(folder / "new", saved)
            if not number:
                print("running", flush=True)


def kill_often(files: list[str], times: int, seed: int, *, videos: bool = False) -> tuple[int, int]:
    """Kill the training this many times. Return the numbers of rows and processes. AssertionError if a row differs."""
    drawn = random.Random(seed)
    grown, size = 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for life in range(times):
            command = [
                sys.executable,
                "-m",
                "tests.run.kills",
                "--live",
                name,
                "--seed",
                f"{seed * 1000 + life}",
                *(["--videos"] if videos else []),
                *files,
            ]
            with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment()) as child:
                assert child.stdout is not None
                watchdog = threading.Timer(HANG_S, child.kill)  # ends `readline`, if the process hangs
                watchdog.start()
                if drawn.random() < 0.9:
                    assert child.stdout.readline() == b"running\n", "it ended by itself"
                    time.sleep(drawn.uniform(0, _LONGEST_LIFE_S))
                else:
                    time.sleep(drawn.uniform(0, 1))  # possibly before it starts
                watchdog.cancel()
                child.send_signal(signal.SIGKILL)
                assert child.wait(HANG_S) == -signal.SIGKILL, "it ended by itself"
            now = json.loads((folder / "saved.json").read_text())["bytes"] if (folder / "saved.json").exists() else 0
            grown += now > size
            size = now
        rows = (folder / "rows").read_bytes()[:size].decode().split()
    expected = itertools.chain.from_iterable(
        digests for digests, _ in rows_of_life(files, None, videos=videos, batch_size=5)
    )
    for number, (got, want) in enumerate(zip(rows, expected, strict=False)):
        assert got == want, f"row {number} of {len(rows)} differs"
    return len(rows), grown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--videos", action="store_true", help="the files are videos")
    parser.add_argument("--live", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.live is not None:
        live(arguments.live, arguments.files, arguments.seed, videos=arguments.videos)
    rows, grown = kill_often(arguments.files, arguments.times, arguments.seed, videos=arguments.videos)
    print(f"killed {arguments.times} times; {grown} processes resumed, with {rows} rows in all, each as without a kill")
    return 0


if __name__ == "__main__":
    sys.exit(main())
