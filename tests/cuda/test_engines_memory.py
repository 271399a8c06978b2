# SPDX-License-Identifier: Apache-2.0
"""Memory of a GPU's JPEG engines: allocations of their library, and memory that the driver takes unasked, count."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_engines import decoding, forty_files
from idle_clock import HANG_S

from stoker import DataError, DeviceError
from stoker.native import _native


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return forty_files(tmp_path_factory.mktemp("files"))


def test_the_librarys_memory_is_counted(engines: Any, files: list[str]) -> None:
    """The library's memory belongs to the pipeline: it is counted, reused, and released."""
    with decoding(files, batch_size=8) as pipe:
        gpu = pipe.execution.gpu
        for _ in range(12):
            pipe.run()
        (library,) = pipe.execution.codecs.get("jpeg")._engines.values()
        assert 1 << 20 < library.device_bytes < gpu.quota.taken
        before = library.device_bytes
        for _ in range(20):
            pipe.run()
        assert library.device_bytes < 8 * before
    quota = gpu.quota
    del pipe, gpu, library
    gc.collect()
    assert quota.taken == 0


def test_memory_that_changes_is_at_most_an_error(engines: Any, files: list[str]) -> None:
    """Also if a batch finds no memory for its row descriptions, and others release some before it is sent."""
    done = 0
    for _ in range(15):
        with decoding(files, prefetch_queue_depth=4, gpu_memory_limit=1 << 30, num_threads=1) as pipe:
            gpu = pipe.execution.gpu
            gpu.device.separate_allocations = True  # every allocation is separate
            quota = gpu.quota
            ended = threading.Event()

            def change(quota: Any = quota, ended: threading.Event = ended) -> None:
                while not ended.is_set():
                    quota.limit = 0
                    quota.limit = 1 << 30

            other = threading.Thread(target=change)
            other.start()
            try:
                for _ in range(5):
                    pipe.run()
                done += 1
            except (DataError, DeviceError) as error:
                assert "gpu_memory_limit" in str(error)
            finally:
                ended.set()
                other.join(HANG_S)
    assert done < 15, "no batch was without memory"


def test_the_library_is_within_the_limit(engines: Any, files: list[str]) -> None:
    """A state of the library takes 1 MiB; the files of a batch take 4 MiB, and everything else some kilobytes."""
    with (
        decoding(files, gpu_memory_limit=5 << 20, prefetch_queue_depth=1) as pipe,
        pytest.raises(DataError, match=r"at most 5242880 bytes.*`gpu_memory_limit`\), got \d+ in use and 1048576 more"),
    ):
        for _ in range(4):
            pipe.run()
    with decoding(files, gpu_memory_limit=64 << 20) as pipe:
        pipe.run()


@pytest.fixture
def keeping(nvjpeg: Path, engines: Any) -> Iterator[Callable[..., None]]:
    """Set the memory that the null device loses with each opening, new state and batch."""
    fake = ctypes.CDLL(str(nvjpeg))
    lock, held = threading.Lock(), [0]
    watch = ctypes.CFUNCTYPE(None, ctypes.c_int)
    watchers: list[Any] = []

    def keep(*bytes: int) -> None:
        def grow(event: int) -> None:
            with lock:
                held[0] += bytes[event]
                _native.gpu.set_null_driver_bytes(held[0])

        watchers.append(watch(grow))
        fake.fake_watch(watchers[-1])

    yield keep
    fake.fake_watch(ctypes.cast(None, watch))
    _native.gpu.set_null_driver_bytes(0)


def test_the_drivers_memory_is_counted(keeping: Any, files: list[str]) -> None:
    """Openings, states, and the first batch of a state count. Later losses belong to other users of the GPU."""
    keeping(200 << 20, 5 << 20, 3 << 20)
    with decoding(files, num_threads=1, exec_async=False) as pipe:  # so that there is one state
        for _ in range(4):
            pipe.run()
        gpu = pipe.execution.gpu
        (opened,) = pipe.execution.codecs.get("jpeg")._engines.values()
        assert opened.driver_bytes == 208 << 20 and gpu.quota.taken > opened.driver_bytes + opened.device_bytes
        report = pipe.report().codecs["jpeg"].engines
        assert (report.library_bytes, report.driver_bytes) == (opened.device_bytes, 208 << 20)
        assert "their memory 1 MB and the driver's 218 MB" in str(report)
        quota = gpu.quota
    del pipe, gpu, opened
    gc.collect()
    assert quota.taken == 0


def test_the_drivers_share_is_bounded(keeping: Any, files: list[str]) -> None:
    """A model allocates memory at the same time."""
    keeping(7 << 30, 1 << 30, 0)
    with decoding(files, gpu_memory_limit=1 << 30) as pipe:
        pipe.run()
        assert pipe.report().codecs["jpeg"].engines.driver_bytes == 512 << 20


def test_the_driver_is_within_the_limit(keeping: Any, files: list[str]) -> None:
    keeping(200 << 20, 0, 0)
    with pytest.raises(DeviceError, match=r"at most 209715199 bytes.*`gpu_memory_limit`\), got 0 in use and 209715200"):
        decoding(files, gpu_memory_limit=(200 << 20) - 1).build()
    for of_state, of_batch in ((100 << 20, 0), (0, 100 << 20)):
        keeping(200 << 20, of_state, of_batch)
        with decoding(files, gpu_memory_limit=250 << 20, num_threads=1, exec_async=False) as pipe:
            for _ in range(3):  # the memory stays taken, so no later batch is within the limit either
                with pytest.raises(DataError, match=r"at most 262144000 bytes.*`gpu_memory_limit`"):
                    pipe.run()
    keeping(200 << 20, 5 << 20, 5 << 20)
    with decoding(files, gpu_memory_limit=300 << 20) as pipe:
        pipe.run()
