# SPDX-License-Identifier: Apache-2.0
"""Workers of a pipeline on a GPU (a null device) that is ahead of its consumer: few of them work together."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from stoker import fn, pipeline_def
from tests.idle_clock import HANG_S

THREADS, ROWS = 8, 64


def noise(depth: int) -> Any:
    @pipeline_def(batch_size=ROWS, num_threads=THREADS, seed=1, device_id=0, prefetch_queue_depth=depth)
    def define() -> Any:
        return fn.gaussian_blur(fn.random.normal(shape=(60, 60)), sigma=2.0).gpu() * 2

    return define()


def wait_until_finished(engine: Any, count: int) -> None:
    end = time.monotonic() + HANG_S
    while engine.finished < count:
        assert time.monotonic() < end
        time.sleep(0.001)


def test_few_workers_work_ahead_of_the_consumer(emulated_gpu: None) -> None:
    with noise(3) as pipe, noise(1) as one_by_one:
        pipe.build()
        one_by_one.build()
        engine = None
        for _ in range(6):
            if engine is not None:
                wait_until_finished(engine, 3)
                engine.take_most_working()
            batch, same = (np.stack([np.asarray(row) for row in p.run()[0].as_cpu()]) for p in (pipe, one_by_one))
            assert (batch == same).all()
            if engine is not None:  # two other batches were finished while the workers had this one
                wait_until_finished(engine, 3)
                assert 1 <= engine.take_most_working() <= THREADS // 4
            engine = pipe.execution._run.engine
