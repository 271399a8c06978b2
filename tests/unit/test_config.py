# SPDX-License-Identifier: Apache-2.0
"""The frozen configuration of a pipeline, checked when the pipeline is defined."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

from stoker import ArgumentError, Pipeline
from stoker.contract.config import OnError, PipelineConfig, WorkerConfig


def test_a_pipeline_has_one_frozen_configuration() -> None:
    pipe = Pipeline(
        batch_size=3, num_threads=2, seed=7, on_error="skip", error_limit=0.5, uneven_ranks=True, device_id=None,
        prefetch_queue_depth={"cpu_size": 3, "gpu_size": 2}, py_num_workers=4, py_start_method="spawn",
        py_callback_pickler=pickle, passes=frozenset({"memory"}), gpu_memory_limit=1 << 20, gpu_jpeg_index=1 << 10,
        gpu_decoder_load=0.25, gpu_utilization=0.5, without_gpu="cpu", shards="launcher", checkpoint={"epoch": 1},
        epoch_reader="Images",
    )  # fmt: skip
    assert pipe._config == PipelineConfig(
        batch_size=3, threads=2, threads_with_gpu=2, seed=7, depth=3, gpu_depth=2, passes=frozenset({"memory"}),
        device_id=None, without_gpu="cpu", gpu_memory_limit=1 << 20, gpu_load=0.25,
        codec_options={"jpeg": {"index_bytes": 1 << 10, "index_path": None}}, gpu_utilization=0.5,
        on_error=OnError("skip", 0.5, True), shards="launcher", epoch_reader="Images",
        workers=WorkerConfig(4, "spawn", pickle), checkpoint={"epoch": 1},
    )  # fmt: skip
    with pytest.raises(dataclasses.FrozenInstanceError):
        pipe._config.seed = 8  # type: ignore[misc]


def test_threads_and_depths_follow_from_whether_a_gpu_is_used() -> None:
    config = PipelineConfig(batch_size=1, threads=8, threads_with_gpu=7, seed=0, depth=3, gpu_depth=2)
    assert [config.count_threads(has_gpu=gpu) for gpu in (False, True)] == [8, 7]
    assert [config.count_prefetched(has_gpu=gpu) for gpu in (False, True)] == [3, 5]
    assert [config.count_on_gpu(has_gpu=gpu) for gpu in (False, True)] == [None, 2]
    alone = dataclasses.replace(config, depth=0)
    assert (alone.count_prefetched(has_gpu=True), alone.count_on_gpu(has_gpu=True)) == (0, None)
    assert dataclasses.replace(config, threads_with_gpu=None).count_threads(has_gpu=True) == 8


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"py_num_workers": 0}, "`py_num_workers` >= 1, got 0"),
        ({"py_start_method": "thread"}, "`py_start_method` in .*, got 'thread'"),
        ({"py_callback_pickler": 3}, "`py_callback_pickler` with `dumps` and `loads`"),
        ({"py_callback_pickler": ()}, "`py_callback_pickler` with `dumps` and `loads`"),
    ],
)
def test_options_of_workers_are_checked_when_a_pipeline_is_defined(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        Pipeline(**options)
