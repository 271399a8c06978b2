# SPDX-License-Identifier: Apache-2.0
"""Videos on the null device: every frame is a row of its stage, with its own arguments; the bits of the CPU."""

from __future__ import annotations

from typing import Any

import emulated_stages
import numpy as np
import pytest

from stoker import DataError, fn, pipeline_def, types
from stoker.device.gpu import Gpu

FRAMES = (4, 1, 2, 6, 3)


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], autouse=True)
def gpu(folder, monkeypatch, request):
    """Use the null device as GPU 0, unless there is a GPU."""
    if request.param == "null":
        monkeypatch.setattr(Gpu, "open", staticmethod(lambda number, limit=None: emulated_stages.EmulatedGpu(folder)))


def videos(layout: str, counts: tuple[int, ...] = FRAMES) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    sizes = rng.integers(6, 20, (len(counts), 2))
    clips = []
    for frames, (height, width) in zip(counts, sizes, strict=True):
        extents = {"F": frames, "H": int(height), "W": int(width), "C": 3}
        clips.append(rng.integers(0, 256, [extents[a] for a in layout], np.uint8))
    return clips


@pipeline_def(batch_size=5, num_threads=2, seed=2)
def rotated(clips: list[np.ndarray], layout: str, on_gpu: bool) -> Any:
    x = fn.external_source(source=lambda info: clips[info.idx_in_epoch], batch=False, layout=layout)
    numbers = fn.per_frame(fn.random.uniform(range=[0, 1], shape=fn.shapes(x)[layout.index("F")]))
    x = x.gpu() if on_gpu else x
    mirrored = fn.flip(x, horizontal=numbers < 0.5)
    small = fn.resize(x, size=(9, 7))
    rotated = fn.rotate(small, angle=numbers * 90.0, keep_size=True, fill_value=3)
    normal = fn.crop_mirror_normalize(
        rotated, mirror=numbers < 0.3, mean=[100.0], std=[50.0], dtype=types.FLOAT16, output_layout="CHW"
    )
    return mirrored, small, rotated, normal, fn.brightness(x, brightness=numbers + 0.5)


@pytest.mark.parametrize("layout", ["FHWC", "FCHW"])
def test_videos_give_the_cpus_bits(layout: str) -> None:
    """One batch has rows with several numbers of frames."""
    clips = videos(layout)
    with rotated(clips, layout, False) as pipe:
        want = [[np.array(row) for row in output] for output in pipe.run()]
    with rotated(clips, layout, True, device_id=0) as pipe:
        for got, expected in zip(pipe.run(), want, strict=True):
            assert got.device != "cpu"
            for row, other in zip(got.as_cpu(), expected, strict=True):
                np.testing.assert_array_equal(np.asarray(row), other)


@pipeline_def(batch_size=3, num_threads=2)
def shrunk(clips: list[np.ndarray], on_gpu: bool) -> Any:
    x = fn.external_source(source=lambda info: clips[info.idx_in_epoch], batch=False, layout="FHWC")
    return fn.resize(x.gpu() if on_gpu else x, size=(5, 4))


@pytest.mark.parametrize("counts", [(0, 2, 0), (0, 0, 0)])
def test_videos_without_frames(counts: tuple[int, ...]) -> None:
    with shrunk(videos("FHWC", counts), False) as cpu, shrunk(videos("FHWC", counts), True, device_id=0) as gpu:
        (want,), (got,) = cpu.run(), gpu.run()
        assert [np.shape(row) for row in got.as_cpu()] == [(n, 5, 4, 3) for n in counts]
        for row, other in zip(got.as_cpu(), want, strict=True):
            np.testing.assert_array_equal(np.asarray(row), np.asarray(other))


@pipeline_def(batch_size=3, num_threads=1)
def scaled(numbers: list[np.ndarray], divisors: list[np.ndarray], on_gpu: bool) -> Any:
    x = fn.external_source(source=lambda info: numbers[info.idx_in_epoch], batch=False, layout="FHW")
    by = fn.external_source(source=lambda info: divisors[info.idx_in_epoch], batch=False, dtype=types.INT32, ndim=1)
    x = x.gpu() if on_gpu else x
    return x // fn.per_frame(by)


@pytest.mark.parametrize("on_gpu", [False, True])
def test_a_frame_that_fails_fails_its_row(on_gpu: bool) -> None:
    numbers = [np.full((f, 2, 2), 40, np.int32) for f in (2, 3, 2)]
    divisors = [np.array(d, np.int32) for d in ([1, 2], [4, 0, 0], [5, 8])]
    more = {"device_id": 0} if on_gpu else {}
    with scaled(numbers, divisors, on_gpu, **more) as pipe:
        with pytest.raises(DataError, match=r"non-zero divisor.*row 1") as error:
            pipe.run()
        assert str(error.value).count("non-zero divisor") == 1
