# SPDX-License-Identifier: Apache-2.0
"""Threads: two of them compared with two processes, and one with a Python thread that never releases the GIL."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from benchmarks.case import IMAGES_PER_S, Bar, Case, Contender, Loop
from benchmarks.cases.training_chain import run_pipeline
from benchmarks.data import Data
from benchmarks.library import STOKER

ORDER = 70


def run_with_spinning_thread(data: Data, *, threads: int) -> Loop:
    """Run the training chain while another Python thread of the process counts as fast as possible."""
    return replace(run_pipeline(data, library=STOKER, threads=threads), around=_spinning_thread)


def run_alone(data: Data, *, threads: int) -> Loop:
    """Run the training chain."""
    return run_pipeline(data, library=STOKER, threads=threads)


@contextmanager
def _spinning_thread() -> Iterator[None]:
    stop = threading.Event()

    def spin() -> None:
        while not stop.is_set():
            sum(range(200))

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


CASES = (
    Case(
        "two-threads",
        "Training chain, two threads against two processes",
        IMAGES_PER_S,
        (
            Contender("two threads", "run_alone", {"threads": 2}),
            Contender("two processes", "run_alone", {"threads": 1}, copies=2),
        ),
        (Bar("rate over two processes'", "two threads", ("two processes",), at_least=0.95),),
        note="The two processes run at the same time, one worker thread each; their rates add up.",
    ),
    Case(
        "spinning-thread",
        "Training chain, one thread, with a Python thread that spins",
        IMAGES_PER_S,
        (
            Contender("alone", "run_alone", {"threads": 1}),
            Contender("with a spinning thread", "run_with_spinning_thread", {"threads": 1}),
        ),
        (Bar("share of the rate kept", "with a spinning thread", ("alone",), at_least=0.95),),
        note="Needs two cores, one for the spinning thread. Its processor time is in the CPU column.",
    ),
)
