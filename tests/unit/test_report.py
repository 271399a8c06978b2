# SPDX-License-Identifier: Apache-2.0
"""The report: the bottleneck, the gain of stages, the state of the queue, the progress of the epoch."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import Pipeline, fn, pipeline_def
from stoker.executor import execution, source_puller
from stoker.executor.meter import Meter
from stoker.executor.report import DISK, NETWORK, PYTHON, SOURCE, THREADS, Progress, Report

MS = 1_000_000


def measured(times: dict[tuple[str, str, str], int], *, waited: float = 0.9, depth: int = 2, threads: int = 2,
             own: float = 0.0, size: int | None = 400) -> Report:  # fmt: skip
    """Return a report of 100 rows in 10 batches and one second; the consumer waits and works for these shares."""
    meter = Meter()
    for i in range(10):
        meter.delivered(10, i * 0.1, i * 0.1 + waited * 0.1, in_flight=2, finished=i % 2)
    meter.last, meter.waited_s, meter.inside_s = 1.0, waited, 1.0 - own
    return meter.report(times, 7, threads, depth=depth, place=(3, 100, size))


def test_worker_threads_limit() -> None:
    decode, resize = (THREADS, "decode", "a.py:1"), (THREADS, "resize", "a.py:2")
    report = measured({resize: 500 * MS, decode: 1500 * MS})
    assert [s.name for s in report.stages] == ["decode", "resize"]
    first, second = report.stages
    assert (first.ms_per_row, first.share, first.where) == (15.0, 0.75, THREADS)
    assert first.rows_per_second == pytest.approx(2 / 15e-3)
    assert (first.gain, second.gain) == (pytest.approx(4.0), pytest.approx(4 / 3))
    assert report.limited_by == THREADS
    assert report.limit == "the pipeline, mostly `decode` at a.py:1 (75% of its time; 4.0x the rate if it were free)"


def test_a_stage_that_does_not_limit_gains_nothing() -> None:
    source, decode = (SOURCE, "external_source", ""), (THREADS, "decode", "")
    report = measured({source: 900 * MS, decode: 1000 * MS})
    gains = {s.name: s.gain for s in report.stages}
    assert gains == {"external_source": pytest.approx(9 / 5), "decode": 1.0}  # two threads: decoding takes half
    assert report.limit.startswith("the source, which runs where batches are asked for, mostly `external_source`")
    python = (PYTHON, "python_function", "")
    report = measured({python: 900 * MS, decode: 1000 * MS})
    assert report.limited_by == PYTHON and report.stages[1].gain == pytest.approx(9 / 5)
    alone = measured({python: 900 * MS, decode: 100 * MS}, depth=0)
    assert [s.gain for s in alone.stages] == [pytest.approx(10.0), pytest.approx(10 / 9)]  # sequential


def test_the_consumers_own_work_counts_beside_its_sources() -> None:
    source, decode = (SOURCE, "external_source", ""), (THREADS, "decode", "")
    report = measured({source: 300 * MS, decode: 1000 * MS}, own=0.5)
    assert report.stages[1].gain == pytest.approx(0.8 / 0.5)
    assert report.stages[0].gain == 1.0


def test_a_consumer_that_does_not_wait_limits() -> None:
    report = measured({(THREADS, "decode", ""): 1000 * MS}, waited=0.05)
    assert report.limited_by == "consumer" and report.stages[0].gain == 1.0
    assert report.limit == "the consumer: batches are ready when it asks for them"


@pytest.mark.parametrize(("in_source", "limit"), [(0, "consumer"), (90, "consumer"), (110, SOURCE), (900, SOURCE)])
def test_sources_limit_that_run_between_a_delivery_and_the_consumers_turn(in_source: int, limit: str) -> None:
    times = {(SOURCE, "external_source", "a.py:3"): in_source * MS, (THREADS, "resize", ""): 100 * MS}
    report = measured(times, waited=0.0, own=1 - in_source / 1000)
    assert report.limited_by == limit
    gain = {s.name: s.gain for s in report.stages}["external_source"]
    assert gain == pytest.approx(1 if limit == "consumer" else min(1000 / (1000 - in_source), 1000 / 50))


def test_the_time_of_a_source_during_a_wait_counts_once() -> None:
    report = measured({(SOURCE, "external_source", ""): 500 * MS}, waited=0.05, own=0.94)
    assert report.limited_by == "consumer"


def test_queue_and_progress() -> None:
    report = measured({})
    assert (report.queue.depth, report.queue.in_flight, report.queue.finished, report.queue.ready) == (2, 2.0, 0.5, 0.5)
    assert report.progress == Progress(3, 100, 400, pytest.approx(3.0))
    assert str(Progress(3, 100, 400, 3725.4)) == "epoch 3: 100 of 400 rows (25%), 1:02:05 left"
    assert str(Progress(0, 5, None, None)) == "epoch 0: 5 rows"
    assert "queue of 2: 0.5 batches finished and 2.0 in flight when asked; 50% of the requests did not wait" in str(
        report
    )
    assert measured({}, size=None).progress.seconds_left is None


def test_a_report_before_the_first_run() -> None:
    report = Meter().report({}, 1, 2)
    assert report.limit == "nothing has run yet" and report.rows_per_second == 0 and report.limited_by == ""
    assert "0 rows" in str(report) and "<table>" in report._repr_html_()


def test_forms() -> None:
    report = measured({(THREADS, "<resize>", "a.py:2"): 500 * MS})
    text, page, plain = str(report), report._repr_html_(), report.to_dict()
    assert repr(report) == text
    for word in ("stage", "ms per row", "rows/s alone", "if free", "<resize>", "a.py:2", "limited by"):
        assert word in text
    assert "&lt;resize&gt;" in page and "<resize>" not in page and "epoch 3" in page
    assert json.loads(json.dumps(plain))["queue"]["depth"] == 2
    assert plain["stages"][0]["gain"] == report.stages[0].gain and plain["progress"]["of"] == 400


# ---- reports of real pipelines ----


def slow(x: Any) -> Any:
    time.sleep(0.004)
    return x


def test_a_slow_python_function_limits() -> None:
    requests = 0

    def when_requested(x: Any) -> Any:
        while requests < x[0]:  # however late the consumer is, no batch is ready before
            time.sleep(0.0005)
        return slow(x)

    pipe = Pipeline(4, 2, seed=1)
    with pipe:
        x = fn.external_source(lambda i: np.full((4, 8), i, np.float32))
        pipe.set_outputs(fn.python_function(x + 1, function=when_requested))
    with pipe:
        for _ in range(6):
            requests += 1
            pipe.run()
        report = pipe.report()
        requests += 100
    assert report.limited_by == PYTHON
    top = report.stages[0]
    assert top.name == "python_function" and top.where == PYTHON and "test_report.py" in top.source
    assert top.ms_per_row > 3 and top.gain > 3  # The first batch, which finds the types, does not count.
    assert report.queue.ready < 0.7 and report.batches == 6


class Clock:
    """Replacement of the module ``time``: it stands still unless the test moves it."""

    def __init__(self) -> None:
        self.ns = 0

    def perf_counter(self) -> float:
        return self.ns / 1e9

    def perf_counter_ns(self) -> int:
        return self.ns

    def sleep(self, seconds: float) -> None:
        self.ns += round(seconds * 1e9)


@pytest.mark.parametrize(("in_source", "in_step", "limit"), [(100.0, 1.0, SOURCE), (1.0, 100.0, "consumer")])
@pytest.mark.parametrize("batches", [2, 40])
def test_a_slow_source_limits(
    monkeypatch: pytest.MonkeyPatch, in_source: float, in_step: float, limit: str, batches: int
) -> None:
    clock = Clock()
    monkeypatch.setattr(execution, "time", clock)
    monkeypatch.setattr(source_puller, "time", clock)

    def source(i: int) -> Any:
        clock.sleep(in_source)
        return np.full((4, 8), i, np.float32)

    pipe = Pipeline(4, 2, seed=1)
    with pipe:
        x = fn.external_source(source)
        pipe.set_outputs(x * 2)
    with pipe:
        pipe.run()
        for _ in range(batches):
            clock.sleep(in_step)
            pipe.run()
        report = pipe.report()
    first = report.stages[0]
    assert first.where == SOURCE and first.name == "external_source" and first.share > 0.9
    if batches > 2:  # the first request pulls three batches
        assert report.limited_by == limit
    if limit == SOURCE:
        assert report.limited_by == SOURCE and "test_report.py:" in first.source
        assert f"asked for, mostly `external_source` at {first.source} (100% of its time" in str(report)


def test_a_slow_consumer_limits_and_progress_is_the_epochs(jpegs: Path) -> None:
    @pipeline_def(batch_size=4, num_threads=2, seed=1)
    def reading() -> Any:
        encoded, label = fn.readers.file(file_root=str(jpegs))
        return fn.decoders.image_random_crop(encoded), label

    with reading() as pipe:
        size = pipe.epoch_size("__readers.file_0")
        pipe.run()
        for _ in range(3):
            while not pipe.execution.run.finished:
                time.sleep(0.001)
            time.sleep(0.15)
            pipe.run()
        report = pipe.report()
    assert report.progress.rows == 16 and report.progress.of == size and report.progress.seconds_left is not None
    assert report.queue.ready >= 0.5
    assert {s.where for s in report.stages} <= {THREADS, PYTHON, DISK}  # new files may not be in the page cache


def test_waits_for_a_disk_or_the_network_are_named() -> None:
    read, wait, decode = (THREADS, "read", ""), (DISK, "read", "a.py:1"), (THREADS, "decode", "")
    report = measured({read: 100 * MS, wait: 1500 * MS, decode: 400 * MS})
    assert report.limited_by == DISK and report.stages[0].where == DISK
    assert report.stages[0].gain == pytest.approx(4.0) and report.stages[0].rows_per_second == pytest.approx(2 / 15e-3)
    assert report.limit.startswith("the disk, which threads wait for in `read` at a.py:1 (100% of its time; 4.0x")
    assert report.progress_line == "epoch 3: 100 of 400 rows (25%), 0:00:03 left, 100 rows/s, limited by the disk"
    decoding = measured({wait: 400 * MS, decode: 1500 * MS})
    assert decoding.limited_by == THREADS and decoding.progress_line.endswith("limited by `decode`")
    fetch, other = (NETWORK, "read", ""), (PYTHON, "python_function", "")
    report = measured({fetch: 800 * MS, other: 300 * MS, decode: 900 * MS})
    assert report.limited_by == NETWORK and "the network, which rows wait for in `read`" in report.limit
    assert report.progress_line.endswith("limited by the network")
    assert measured({fetch: 300 * MS, other: 800 * MS, decode: 900 * MS}).limited_by == PYTHON
    assert measured({decode: 100 * MS}, waited=0.0).progress_line.endswith("limited by the consumer")
    assert str(Meter().report({}, 7, 2).progress) == Meter().report({}, 7, 2).progress_line
