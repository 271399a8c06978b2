# SPDX-License-Identifier: Apache-2.0
"""Threads of Python work: rows that native kernels hand over are computed by several, functions of users by one."""

from __future__ import annotations

import gc
import io
import threading
import time
from typing import Any

import numpy as np
import pytest
from PIL import Image
from started_threads import StartedThreads

from stoker import fn, pipeline_def
from stoker.ops.image import _pillow_decoding
from tests.idle_clock import HANG_S
from tests.run.hand_over_stress import Stress


def encoded(form: str, number: int) -> Any:
    """Return a file that Pillow decodes, whose pixels are its number."""
    file = io.BytesIO()
    image, other = (Image.fromarray(np.full((9, 11, 3), value, np.uint8)) for value in (number, number + 1))
    # An animation, because other WebP files are decoded natively.
    options = {"lossless": True, "save_all": True, "append_images": [other]} if form == "WEBP" else {}
    image.save(file, form, **options)
    return np.frombuffer(file.getvalue(), np.uint8)


def test_threads_decode_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decoder works on one row per thread of the pipeline at the same time."""
    threads = 3
    names: list[str] = []
    barrier = threading.Barrier(threads, timeout=HANG_S)
    decode = _pillow_decoding.pillow_decode

    def meet(*args: Any) -> Any:
        names.append(threading.current_thread().name)
        if len(names) <= threads:
            barrier.wait()
        return decode(*args)

    monkeypatch.setattr(_pillow_decoding, "pillow_decode", meet)

    @pipeline_def(batch_size=3 * threads, num_threads=threads)
    def pipe() -> Any:
        data = fn.external_source(source=lambda i: [encoded("QOI", 10 * i + k) for k in range(3 * threads)])
        return fn.decoders.image(data)

    before = threading.active_count()
    with pipe() as running:
        for i in range(4):
            images = running.run()[0]
            assert [int(np.asarray(x)[0, 0, 0]) for x in images] == [10 * i + k for k in range(3 * threads)]
    assert set(names[:threads]) == {"stoker-python", "stoker-python-1", "stoker-python-2"}
    assert threading.active_count() == before, "closing ends the threads"


def test_functions_stay_on_one_thread_beside_other_formats() -> None:
    inside, seen = [], set()

    def function(x: Any) -> Any:
        inside.append(1)
        seen.add((threading.current_thread().name, len(inside)))
        time.sleep(0.001)
        inside.pop()
        return x

    @pipeline_def(batch_size=12, num_threads=4)
    def pipe() -> Any:
        data = fn.external_source(source=lambda i: [encoded(("WEBP", "QOI")[k % 2], k) for k in range(12)])
        return fn.python_function(fn.decoders.image(data), function=function)

    with pipe() as running:
        for _ in range(6):
            images = running.run()[0]
            assert [int(np.asarray(x)[0, 0, 0]) for x in images] == list(range(12))
        counts = [one.rows for one in running.report().handed_over]
        assert len(counts) == 2 and all(count >= 6 * 6 and count % 6 == 0 for count in counts)
    assert seen <= {("stoker-python", 1), ("MainThread", 1)}  # the latter finds out the types


def test_a_failing_row_on_any_thread_fails_alone() -> None:
    files = [encoded("QOI", k) for k in range(8)]
    files[5] = files[5][: len(files[5]) // 2]

    @pipeline_def(batch_size=8, num_threads=4, on_error="skip")
    def pipe() -> Any:
        return fn.decoders.image(fn.external_source(source=lambda: files))

    with pipe() as running:
        for _ in range(5):
            images = running.run()[0]
            assert [int(np.asarray(x)[0, 0, 0]) for x in images] == [0, 1, 2, 3, 4, 6, 7]
            assert images.skipped == (5,)


def test_pipelines_that_are_closed_dropped_and_forked_at_any_moment() -> None:
    """The short form of ``tests/run/hand_over_stress.py``. Forks are left to the program: pytest has threads."""
    stress, started = Stress(), StartedThreads()
    assert stress.run(threads=3, seconds=2, seed=7, forks=False) == []
    gc.collect()
    assert stress.pipelines > 3 and started.end()
