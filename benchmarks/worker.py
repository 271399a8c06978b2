# SPDX-License-Identifier: Apache-2.0
"""Process of a contender: prepares one job, measures it on request, and sleeps in between.

Requests arrive on standard input, and answers leave on standard output, one line of JSON each. The libraries' output
goes to standard error. The module also runs in a peer's environment, so it imports only the standard library.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from importlib import metadata
from typing import Any

from benchmarks.case import Job, Loop
from benchmarks.data import Data

DISTRIBUTIONS = {
    "stoker": "stoker",
    "nvidia.dali": "nvidia-dali-cuda130",
    "torch": "torch",
    "torchvision": "torchvision",
    "simplejpeg": "simplejpeg",
    "cv2": "opencv-python-headless",
    "PIL": "pillow",
    "numpy": "numpy",
    "scipy": "scipy",
    "librosa": "librosa",
    "torchaudio": "torchaudio",
    "soxr": "soxr",
    "soundfile": "soundfile",
    "miniaudio": "miniaudio",
}

_REST_LIMIT_S = 10.0
_REST_PERIOD_S = 0.03
_REST_SHARE = 0.07


def main() -> None:
    """Serve one contender until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)

    def answer(**fields: Any) -> None:
        answers.write(json.dumps(fields) + "\n")

    order = json.loads(sys.stdin.readline())
    try:
        job = prepare(order)
    except ImportError as error:
        answer(absent=f"{type(error).__name__}: {error}")
        return
    except Exception as error:  # noqa: BLE001 - the harness reports any error of a contender
        traceback.print_exc()
        answer(failed=f"{type(error).__name__}: {error}")
        return
    answer(ready=True, versions=versions())
    for line in sys.stdin:
        try:
            answer(**measure(job, float(json.loads(line)["seconds"])))
        except Exception as error:  # noqa: BLE001 - the harness reports any error of a contender
            traceback.print_exc()
            answer(failed=f"{type(error).__name__}: {error}")


def prepare(order: dict[str, Any]) -> Job:
    """Pin the process if requested, and create the job."""
    if order["cores"] is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: order["cores"]])
    function = getattr(importlib.import_module(order["module"]), order["function"])
    job: Job = function(Data(order["data"]), **order["options"])
    return job


def measure(job: Job, seconds: float) -> dict[str, Any]:
    """Run a job for one round, and wait until its threads are idle."""
    result = measure_loop(job, seconds) if isinstance(job, Loop) else {"figure": job.read()}
    return {**result, "rested": rest()}


def measure_loop(job: Loop, seconds: float) -> dict[str, Any]:
    """Repeat the step for at least this many seconds, whole steps only."""
    with job.around():
        for _ in range(job.warm):
            job.step()
        items, checksum = 0, 0.0
        cpu_start, start = time.process_time(), time.perf_counter()
        while True:
            count, part = job.step()
            items += count
            checksum += part
            wall_s = time.perf_counter() - start
            if wall_s >= seconds:
                break
        cpu_s = time.process_time() - cpu_start
    return {"items": items, "wall_s": wall_s, "cpu_s": cpu_s, "checksum": checksum}


def rest() -> bool:
    """Wait until the process uses no processor time, so that it does not slow down the next contender."""
    deadline = time.monotonic() + _REST_LIMIT_S
    while time.monotonic() < deadline:
        before = time.process_time()
        time.sleep(_REST_PERIOD_S)
        if time.process_time() - before < _REST_PERIOD_S * _REST_SHARE:
            return True
    return False


def versions() -> dict[str, str]:
    """Return the versions of the libraries that the job has loaded."""
    return {name: _version(module, name) for module, name in DISTRIBUTIONS.items() if module in sys.modules}


def _version(module: str, distribution: str) -> str:
    """Return a library's own version, which exists also if the library runs from its source."""
    return str(getattr(sys.modules[module], "__version__", None) or metadata.version(distribution))


if __name__ == "__main__":
    main()
