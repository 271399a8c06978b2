# SPDX-License-Identifier: Apache-2.0
"""The JPEG engines of a real GPU: measured error, rows of the engines, damaged data, and a long run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import DataError, DeviceError, fn, pipeline_def
from tests.run.pipelines import files_of


@pipeline_def(batch_size=32, num_threads=4, device_id=0, seed=7, prefetch_queue_depth=4)
def cropping(files: list[str], backend: str = "nvjpeg_hardware", load: float = 1.0, smooth: bool = False) -> Any:
    data, _ = fn.readers.file(files=files)
    return fn.decoders.image_random_crop(
        data, device="mixed", gpu_backend=backend, hw_decoder_load=load, jpeg_fancy_upsampling=smooth
    )


@pytest.fixture
def files(images: Path) -> list[str]:
    found = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    try:
        cropping(found).build()
    except DeviceError as error:
        if os.environ.get("REQUIRE_ENGINES") == "1":
            raise
        pytest.skip(str(error))
    return found


def rows_of(pipe: Any, count: int) -> tuple[list[np.ndarray], Any]:
    with pipe:
        rows: list[np.ndarray] = []
        while len(rows) < count:
            rows += [np.asarray(row) for row in pipe.run()[0].as_cpu()]
        return rows[:count], pipe.report()


@pytest.mark.parametrize(("smooth", "most", "mean"), [(False, 255, 3.0), (True, 2, 0.01)])
def test_pixels_are_near_the_exact_ones(files: list[str], smooth: bool, most: int, mean: float) -> None:
    count = 4 * len(files)
    exact, _ = rows_of(cropping(files, "exact", 0), count)
    pixels, report = rows_of(cropping(files, smooth=smooth), count)
    apart = [np.abs(a.astype(int) - b) for a, b in zip(pixels, exact, strict=True)]
    assert max(d.max() for d in apart) <= most and np.mean([d.mean() for d in apart]) < mean
    engines = report.codecs["jpeg"].engines
    assert engines.rows > count / 2, engines.reasons
    if engines.compared:  # of windows among those above
        assert engines.max_error <= max(d.max() for d in apart)
    print(f"\nengines, {smooth=}: {engines}; all rows: {max(d.max() for d in apart)} at most")


def test_a_part_of_the_rows_is_decoded_by_the_engines(files: list[str]) -> None:
    exact, _ = rows_of(cropping(files, "exact", 0), len(files))
    all_theirs, _ = rows_of(cropping(files), len(files))
    mixed, report = rows_of(cropping(files, load=0.5, batch_size=7, num_threads=2), len(files))
    for row, one, other in zip(mixed, exact, all_theirs, strict=True):
        assert np.array_equal(row, one) or np.array_equal(row, other)
    assert report.codecs["jpeg"].engines.rows
    assert report.decoding.rows_on_gpu + report.decoding.rows_on_cpu


def test_damaged_data_do_not_affect_other_rows(files: list[str], tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    mixed = []
    for i, path in enumerate(files[:32]):
        data = bytearray(Path(path).read_bytes())
        if i % 2:
            for at in rng.integers(len(data) // 2, len(data) - 2, 9):
                data[at] = int(rng.integers(0, 256))
        mixed.append(tmp_path / f"{i:02}.jpg")
        mixed[-1].write_bytes(data)
    good, _ = rows_of(cropping(files[:32]), 32)
    pixels, report = rows_of(cropping(list(map(str, mixed)), on_error="replace", error_limit=1.0), 32)
    for i in range(0, 32, 2):
        np.testing.assert_array_equal(pixels[i], good[i])
    print(f"\ndamaged: {report.codecs['jpeg'].engines}")


def test_many_batches(files: list[str]) -> None:
    with cropping(files, load=0.65) as pipe:
        rows = sum(len(pipe.run()[0]) for _ in range(200))
        report = pipe.report()
        assert (report.batches, report.rows) == (200, rows)
        print(f"\n{report}")


def test_memory_is_counted_and_limited(files: list[str], gpu_to_itself: bool) -> None:
    """The count includes the pipeline's own memory, the library's, and the driver's for the engines."""
    with cropping(files) as pipe:
        gpu = pipe.execution.gpu
        before = gpu.device.free_bytes
        for _ in range(8):
            pipe.run()
        (library,) = pipe.execution.codecs.get("jpeg")._engines.values()
        most = gpu.quota.taken
        gone = before - gpu.device.free_bytes
        counted = f"nvJPEG's {library.device_bytes:,} and the driver's {library.driver_bytes:,}"
        print(f"\n{counted} of {most:,} bytes; the GPU has {gone:,} less since it was opened")
        assert 0 < library.driver_bytes <= 512 << 20 and library.device_bytes + library.driver_bytes < most
        if gpu_to_itself:
            assert gone < most + (256 << 20), "more than the counted memory and all other memory of the driver"
    # The driver's share is a difference of the GPU's free memory, which other programs change; the rest is counted.
    limited = cropping(files, gpu_memory_limit=(most - library.driver_bytes) // 8)
    with pytest.raises((DataError, DeviceError), match="gpu_memory_limit"), limited:  # or the library gets no memory
        for _ in range(8):
            limited.run()


@pipeline_def(batch_size=32, num_threads=4, device_id=0, seed=7, prefetch_queue_depth=4)
def through_window(files: list[str], backend: str, load: float) -> Any:
    data, _ = fn.readers.file(files=files)
    how = {"device": "mixed", "gpu_backend": backend, "hw_decoder_load": load}
    crop = fn.decoders.image_random_crop(data, **how)
    return fn.resize(crop, size=(64, 64)), fn.flip(fn.decoders.image(data, **how), horizontal=1)


def test_windows_that_later_steps_read(files: list[str]) -> None:
    """A window inside the image is near the exact one, as windows that are outputs are."""
    apart = []
    with through_window(files, "exact", 0) as exact, through_window(files, "nvjpeg_hardware", 1.0) as engines:
        for _ in range(6):
            for want, got in zip(exact.run(), engines.run(), strict=True):
                for a, b in zip(got.as_cpu(), want.as_cpu(), strict=True):
                    apart.append(np.abs(np.asarray(a).astype(int) - np.asarray(b)).mean())
        assert np.mean(apart) < 3 and max(apart) < 12, "another picture or window would be about 60"
        assert engines.report().codecs["jpeg"].engines.rows > 0
