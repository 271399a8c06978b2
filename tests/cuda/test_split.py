# SPDX-License-Identifier: Apache-2.0
"""Split of batch rows between CPU and GPU, on the null device: its stages are emulated, its decoder does nothing."""

from __future__ import annotations

import emulated_stages
import numpy as np
import pytest
from PIL import Image

from stoker import ArgumentError, DataError, Pipeline, fn, pipeline_def
from stoker.device.gpu import Gpu
from stoker.executor.split import WINDOW_BATCHES
from tests.run.pipelines import files_of

ROWS = 16


@pytest.fixture
def gpu(folder, monkeypatch):
    monkeypatch.setattr(
        Gpu, "open", staticmethod(lambda number, memory_limit=None: emulated_stages.EmulatedStages(folder))
    )


@pipeline_def(batch_size=ROWS, num_threads=2, seed=3)
def decoding(files, device):
    data, _ = fn.readers.file(files=files, random_shuffle=True)
    return fn.cast(fn.decoders.image(data, device=device), dtype=np.int16)


def test_the_cpu_may_decode_all_rows(gpu, jpegs):
    files = files_of(jpegs)
    with decoding(files, "mixed", device_id=0, gpu_decoder_load=0) as pipe, decoding(files, "cpu") as plain:
        for _ in range(4):
            for got, want in zip(pipe.run()[0].as_cpu(), plain.run()[0], strict=True):
                np.testing.assert_array_equal(got, want)
        decoded = pipe.report().decoding
    assert (decoded.rows_on_gpu, decoded.cpu_share) == (0, 1.0)
    assert decoded.rows_on_cpu >= 4 * ROWS
    assert decoded.reasons == {"the CPU's share": decoded.rows_on_cpu}
    assert "fixed by `gpu_decoder_load`" in str(pipe.report())


def test_the_gpu_may_decode_all_rows(gpu, jpegs):
    with decoding(files_of(jpegs), "mixed", device_id=0, gpu_decoder_load=1.0) as pipe:
        for _ in range(4):
            pipe.run()
        decoded = pipe.report().decoding
    assert not decoded.reasons
    assert decoded.rows_on_gpu >= 4 * ROWS


def test_shares_follow_the_measurements(gpu, jpegs):
    """The null GPU takes no time. On any machine, the controller has measured and reported it."""
    with decoding(files_of(jpegs), "mixed", device_id=0, prefetch_queue_depth=2) as pipe:
        report = pipe.build().report()
        assert report.decoding is None
        for _ in range(8 * WINDOW_BATCHES):
            pipe.run()
        report = pipe.report()
        share = pipe.execution.decoders[0].cpu_share
    assert report.decoding.cpu_share == share
    assert report.decoding.why != "nothing is measured yet"
    assert report.decoding.rows_on_cpu > 0, "a few rows measure the CPU"
    assert any(stage.where == "gpu" for stage in report.stages), "one batch in 16 is measured"
    assert report.to_dict()["decoding"]["rows_on_gpu"] == report.decoding.rows_on_gpu


@pytest.mark.parametrize("load", [-0.1, 1.5, "all", True, None])
def test_the_load_is_a_part(load):
    with pytest.raises(ArgumentError, match="expected a number from 0 to 1 as `gpu_decoder_load`"):
        Pipeline(gpu_decoder_load=load)


def test_depths_of_both_sides():
    config = Pipeline(prefetch_queue_depth={"cpu_size": 3, "gpu_size": 2}, device_id=0)._config
    assert (config.depth, config.gpu_depth) == (3, 2)  # their effect: test_depths.py
    with pytest.raises(ArgumentError, match="`cpu_size` and `gpu_size`, got"):
        Pipeline(prefetch_queue_depth={"cpu_size": 3})
    with pytest.raises(ArgumentError, match=r"'gpu_size'.*>= 1, got 0"):
        Pipeline(prefetch_queue_depth={"cpu_size": 3, "gpu_size": 0})


def test_with_little_memory_the_gpu_takes_the_cpus_share(folder, tmp_path, monkeypatch):
    """Shares only affect speed: a pipeline with exhausted memory continues when the share moves."""

    @pipeline_def(batch_size=ROWS, num_threads=2, exec_async=False, device_id=0)
    def images():
        data, _ = fn.readers.file(files=[str(tmp_path / "large.jpg")] * ROWS)
        return fn.decoders.image(data, device="mixed")

    def opened(number, memory_limit=None):
        gpu = emulated_stages.EmulatedStages(folder)
        gpu.quota.limit = memory_limit
        return gpu

    monkeypatch.setattr(Gpu, "open", staticmethod(opened))
    pixels = np.kron(np.random.default_rng(0).integers(0, 256, (40, 50, 3), np.uint8), np.ones((16, 16, 1), np.uint8))
    Image.fromarray(pixels).save(tmp_path / "large.jpg")
    with images(gpu_decoder_load=1.0, gpu_memory_limit=200 << 20) as pipe:
        held = []
        with pytest.raises(DataError, match="`gpu_memory_limit`"):  # outputs that the consumer holds take all memory
            for _ in range(20):
                held.append(pipe.run())
        held.pop()
        (decoder,) = pipe.execution.decoders
        for share in (0.5, 1.0, 1.0, 0.0):
            decoder.cpu_share = share
            pipe.run()
        assert decoder.rows_without_memory > 0
        assert decoder.rows_on_cpu > 0, "some rows fit"
