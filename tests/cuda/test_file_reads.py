# SPDX-License-Identifier: Apache-2.0
"""Large files that are read to a GPU (the null device), by a fake cuFile and through bounce buffers: the bytes."""

from __future__ import annotations

import ctypes
import re
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import DataError, DeviceError, fn, pipeline_def
from stoker.device import file_reads
from stoker.native import _native
from tests.complete import sample
from tests.idle_clock import HANG_S

HERE = Path(__file__).parent
LEAST = 1 << 20  # bytes of a direct read
TYPES = ["?", "u1", "i1", "<u2", "<i2", "<u4", "<i4", "<u8", "<i8", "<f2", "<f4", "<f8"]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cufile") / "libcufile.so"
    subprocess.run(
        ["g++", "-std=c++20", "-shared", "-fPIC", HERE / "fake_cufile.cpp", "-o", path], check=True, timeout=HANG_S
    )
    return path


@pytest.fixture
def cufile(emulated_gpu: None, library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Use the fake library, for all arrays that are large enough."""
    fake = ctypes.CDLL(str(library))
    fake.fake_set(0, 0, 0, 0)
    monkeypatch.setattr(file_reads, "find_library", lambda: str(library))
    monkeypatch.setenv("STOKER_GDS", "on")
    yield fake
    assert (fake.fake_files(), fake.fake_drivers()) == (0, 1)  # the process opens the library once


@pytest.fixture(params=["direct", "staged"])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Read by cuFile, or through buffers that a file fills many times."""
    if request.param == "direct":
        request.getfixturevalue("cufile")
        yield "direct"
        return
    request.getfixturevalue("emulated_gpu")
    monkeypatch = request.getfixturevalue("monkeypatch")
    monkeypatch.setattr(file_reads, "PIECE_BYTES", 64 << 10)
    yield "staged"


def read_count(report: Any, way: str) -> int:
    """Return the number of reads to the GPU, after a check of the way that the report names."""
    found = report.file_reads
    if found is None:
        assert way == "staged"
        return 0
    assert found.way == {"direct": "direct", "staged": "off"}[way]
    assert (found.staged if way == "direct" else found.direct) == 0
    return int(getattr(found, way))


def written(folder: Path, arrays: list[Any], **form: Any) -> list[str]:
    paths = []
    for i, array in enumerate(arrays):
        paths.append(str(folder / f"{i}.npy"))
        with open(paths[-1], "wb") as file:
            np.lib.format.write_array(file, array, **form)
    return paths


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Any:
    data = np.random.default_rng(seed).integers(0, 2 if dtype == "?" else 100, shape)
    return data.astype(dtype)


def read(
    files: list[str], batch: int, *, threads: int = 2, consume: Callable[[Any], Any] | None = None, **args: Any
) -> tuple[list[Any], Any]:
    """Return the rows of an epoch, and the report."""

    @pipeline_def(batch_size=batch, num_threads=threads, device_id=0, seed=1)
    def arrays() -> Any:
        x = fn.readers.numpy(files=files, device="gpu", **args)
        return consume(x) if consume else x

    with arrays() as pipe:
        rows = [np.array(row) for _ in range(-(-len(files) // batch)) for row in pipe.run()[0].as_cpu()]
        return rows[: len(files)], pipe.report()


@pytest.mark.parametrize("dtype", sample(TYPES, 5))
def test_every_type(way: str, tmp_path: Path, dtype: str) -> None:
    rows = LEAST // np.dtype(dtype).itemsize // 64
    arrays = [numbers(dtype, (rows + 7 * i, 64), i) for i in range(6)]
    got, report = read(written(tmp_path, arrays), 4)
    for one, want in zip(got, arrays, strict=True):
        np.testing.assert_array_equal(one, want)
        assert one.dtype == want.dtype
    assert read_count(report, way) >= 6
    assert {"direct": "GPUDirect Storage", "staged": "through page-locked buffers"}[way] in str(report)


SHAPE = (700, 32, 16)  # float32: 2048 bytes for an element of the first axis
REGIONS: dict[str, tuple[dict[str, Any], Any, bool]] = {
    "whole": ({}, np.s_[:], True),
    "an odd offset": ({"roi_start": [13], "roi_axes": [0]}, np.s_[13:], True),
    "first rows": ({"roi_shape": [600], "roi_axes": [0]}, np.s_[:600], True),
    "few rows": ({"roi_shape": [3], "roi_axes": [0]}, np.s_[:3], False),
    "columns": ({"roi_start": [1], "roi_shape": [20], "roi_axes": [1]}, np.s_[:, 1:21], False),
    "shares": ({"rel_roi_start": [0.1], "rel_roi_end": [0.9], "roi_axes": [0]}, np.s_[70:630], True),
}


@pytest.mark.parametrize("region", REGIONS)
def test_regions(way: str, tmp_path: Path, region: str) -> None:
    arguments, part, is_direct = REGIONS[region]
    arrays = [numbers("<f4", SHAPE, i) for i in range(5)]
    got, report = read(written(tmp_path, arrays), 3, **arguments)
    for one, want in zip(got, arrays, strict=True):
        np.testing.assert_array_equal(one, want[part])
    assert (read_count(report, way) > 0) == is_direct


def test_padding_and_other_orders_are_staged(way: str, tmp_path: Path) -> None:
    array = numbers("<f4", SHAPE)
    for name, stored in {"fortran": np.asfortranarray(array), "big": array.astype(">f4")}.items():
        (tmp_path / name).mkdir()
        got, report = read(written(tmp_path / name, [stored]), 1)
        np.testing.assert_array_equal(got[0], array)
        assert read_count(report, way) == 0
    padded = {"roi_start": [-2], "roi_shape": [800], "roi_axes": [0], "out_of_bounds_policy": "pad", "fill_value": 7}
    got, report = read(written(tmp_path, [array]), 1, **padded)
    np.testing.assert_array_equal(got[0], np.pad(array, ((2, 98), (0, 0), (0, 0)), constant_values=7))
    assert read_count(report, way) == 0


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_headers_of_all_versions(way: str, tmp_path: Path, version: tuple[int, int]) -> None:
    arrays = [numbers("<i4", (600, 600), i) for i in range(3)]
    got, report = read(written(tmp_path, arrays, version=version), 3)
    for one, want in zip(got, arrays, strict=True):
        np.testing.assert_array_equal(one, want)
    assert read_count(report, way) >= 3


def test_operators_on_the_gpu_read_the_memory(way: str, tmp_path: Path) -> None:
    arrays = [numbers("u1", (700 + i, 600, 3), i) for i in range(9)]
    got, report = read(written(tmp_path, arrays), 2, consume=lambda x: fn.cast(x, dtype=np.int16) + 3)
    for one, want in zip(got, arrays, strict=True):
        np.testing.assert_array_equal(one, want.astype(np.int16) + 3)
    assert read_count(report, way) >= 9


def test_shapes_from_extents_need_no_elements(way: str, tmp_path: Path) -> None:
    arrays = [numbers("<f4", (1000 + i, 300), i) for i in range(4)]
    got, report = read(written(tmp_path, arrays), 2, consume=lambda x: x[1:, 2:200])
    for one, want in zip(got, arrays, strict=True):
        np.testing.assert_array_equal(one, want[1:, 2:200])
    assert read_count(report, way) >= 4


def test_memory_is_not_shared_between_batches_in_flight(
    way: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if way == "direct":
        request.getfixturevalue("cufile").fake_set(0, 0, 0, 300)
    arrays = [np.full((600, 600), i, "<i4") for i in range(40)]
    files = written(tmp_path, arrays)

    @pipeline_def(batch_size=4, num_threads=6, device_id=0, seed=1, prefetch_queue_depth=5)
    def many() -> Any:
        return fn.readers.numpy(files=files, device="gpu")

    with many() as pipe:
        kept = [pipe.run()[0] for _ in range(30)]
        for number, batch in enumerate(kept):
            for row, one in enumerate(batch.as_cpu()):
                assert (np.asarray(one) == (4 * number + row) % 40).all()


@pytest.mark.parametrize("delay_us", [0, 20_000])
def test_the_first_reads_decide(cufile: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delay_us: int) -> None:
    driver = tmp_path / "stats"
    driver.touch()
    monkeypatch.setenv("STOKER_GDS", "auto")
    monkeypatch.setattr(file_reads, "_DRIVER", str(driver))
    cufile.fake_set(0, 0, 0, delay_us)
    arrays = [numbers("<f8", (512, 256), i) for i in range(48)]
    got, report = read(written(tmp_path, arrays), 4, threads=1)
    for one, want in zip(got, arrays, strict=True):
        np.testing.assert_array_equal(one, want)
    found = report.file_reads
    assert found.direct >= 16 and found.staged >= 16
    if delay_us:
        assert found.way == "staged" and found.direct < 20, found
        assert "which was faster" in str(found)
    else:
        assert found.way in ("direct", "staged")


def test_without_the_driver_nothing_is_opened(
    emulated_gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_reads, "_DRIVER", str(tmp_path / "none"))
    files = written(tmp_path, [numbers("<f4", SHAPE)])
    for value in ("auto", "off", ""):
        monkeypatch.setenv("STOKER_GDS", value)
        found = read(files, 1)[1].file_reads
        assert (found.way, found.direct) == ("off", 0) and found.staged > 0


FAILURES = [
    ((0, 5027, 0), "a file cannot be registered: cuFile status 5027"),
    ((0, 0, 5030), "a file cannot be read: cuFile status 5030"),
]


@pytest.mark.parametrize(("statuses", "text"), FAILURES)
def test_a_failure_of_a_required_library_is_an_error(
    cufile: Any, tmp_path: Path, statuses: tuple[int, int, int], text: str
) -> None:
    files = written(tmp_path, [numbers("<f4", SHAPE, i) for i in range(2)])
    cufile.fake_set(*statuses, 0)
    with pytest.raises(DeviceError, match=rf"GPUDirect Storage: {text}.*STOKER_GDS=auto or off.*page-locked"):
        read(files, 1)
    cufile.fake_set(0, 0, 0, 0)
    assert read_count(read(files, 1)[1], "direct") >= 2


@pytest.mark.parametrize(("statuses", "text"), FAILURES)
def test_after_a_failure_of_an_automatic_one_all_reads_are_staged(
    cufile: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statuses: tuple[int, int, int], text: str
) -> None:
    driver = tmp_path / "stats"
    driver.touch()
    monkeypatch.setenv("STOKER_GDS", "auto")
    monkeypatch.setattr(file_reads, "_DRIVER", str(driver))
    cufile.fake_set(*statuses, 0)
    arrays = [numbers("<f4", SHAPE, i) for i in range(6)]
    with pytest.warns(RuntimeWarning, match=rf"GPUDirect Storage: {text}. Later files go through") as caught:
        got, report = read(written(tmp_path, arrays), 2)
    assert len(caught) == 1
    for one, want in zip(got, arrays, strict=True):
        np.testing.assert_array_equal(one, want)
    found = report.file_reads
    assert (found.way, found.direct, found.reason) == ("failed", 0, text) and found.staged >= 6
    assert text in str(report)


def test_a_library_that_does_not_open_is_an_error(
    emulated_gpu: None, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = written(tmp_path, [numbers("<f4", SHAPE)])
    other = tmp_path / "libother.so"
    other.write_bytes(library.read_bytes())
    fake = ctypes.CDLL(str(other))
    fake.fake_set(5001, 0, 0, 0)
    monkeypatch.setenv("STOKER_GDS", "on")
    monkeypatch.setattr(file_reads, "find_library", lambda: str(other))
    with pytest.raises(DeviceError, match=r"cuFile cannot be opened: cuFile status 5001.*STOKER_GDS=off"):
        read(files, 1)
    fake.fake_set(0, 0, 0, 0)
    assert read_count(read(files, 1)[1], "direct") > 0
    monkeypatch.setattr(file_reads, "find_library", lambda: str(tmp_path / "none.so"))
    with pytest.raises(DeviceError, match=r"expected cuFile's library: .*none\.so"):
        read(files, 1)
    monkeypatch.setenv("STOKER_GDS", "yes")
    with pytest.raises(ValueError, match=r"STOKER_GDS: expected off, auto or on, got 'yes'"):
        read(files, 1)


def test_truncated_files_are_errors_of_their_rows(way: str, tmp_path: Path) -> None:
    files = written(tmp_path, [numbers("<f4", SHAPE, i) for i in range(3)])
    whole = Path(files[1]).read_bytes()
    Path(files[1]).write_bytes(whole[:-1])
    with pytest.raises(DataError, match=re.escape(f"expected {700 * 2048} bytes of data")):
        read(files, 3)


def test_a_read_that_ends_early_is_staged_and_has_no_effect_on_others(cufile: Any, tmp_path: Path) -> None:
    """The library finds the end of the file before the size that it had when it was checked."""
    cufile.fake_end(1)
    arrays = [numbers("<f4", SHAPE, i) for i in range(6)]
    got, report = read(written(tmp_path, arrays), 2, threads=1)
    for one, want in zip(got, arrays, strict=True):
        np.testing.assert_array_equal(one, want)
    assert report.file_reads.way == "direct" and report.file_reads.direct >= 5


def test_the_limit_of_a_batch_counts_the_memory(way: str, tmp_path: Path) -> None:
    files = written(tmp_path, [numbers("<f4", SHAPE, i) for i in range(2)])

    @pipeline_def(batch_size=2, num_threads=1, device_id=0, seed=1, max_batch_bytes=2_000_000)
    def limited() -> Any:
        return fn.readers.numpy(files=files, device="gpu")

    with limited() as pipe, pytest.raises(Exception, match="max_batch_bytes"):
        pipe.run()


@pytest.mark.parametrize("bytes_each", [1000, LEAST])
def test_the_limit_counts_each_file_once(way: str, tmp_path: Path, bytes_each: int) -> None:
    """A batch of two files fits exactly: on the device it has the files, and the output."""
    files = written(tmp_path, [numbers("u1", (bytes_each,), i) for i in range(2)])

    def run(limit: int) -> Any:
        @pipeline_def(batch_size=2, num_threads=1, device_id=0, seed=1, max_batch_bytes=limit)
        def limited() -> Any:
            return fn.readers.numpy(files=files, device="gpu")

        with limited() as pipe:
            return pipe.run()[0].as_cpu()

    run(4 * bytes_each + 8)
    with pytest.raises(Exception, match="max_batch_bytes"):
        run(3 * bytes_each)


def raw(reader: Callable[[], Any], count: int, batch: int = 2) -> tuple[list[bytes], Any]:
    """Return the bytes of an epoch of records that go to the GPU, and the report."""

    @pipeline_def(batch_size=batch, num_threads=2, device_id=0, seed=1)
    def records() -> Any:
        return reader().gpu()

    with records() as pipe:
        rows = [bytes(np.asarray(row)) for _ in range(-(-count // batch)) for row in pipe.run()[0].as_cpu()]
        return rows[:count], pipe.report()


def test_whole_files_and_records_of_archives(way: str, tmp_path: Path) -> None:
    contents = [numbers("u1", (LEAST + 1001 * i,), i).tobytes() for i in range(5)]
    contents.append(b"short")
    files = []
    for i, data in enumerate(contents):
        files.append(str(tmp_path / f"{i}.bin"))
        Path(files[-1]).write_bytes(data)
    got, report = raw(lambda: fn.readers.file(files=files)[0], len(files))
    assert got == contents and read_count(report, way) >= 5
    archive = tmp_path / "all.tar"
    with tarfile.open(archive, "w") as tar:
        for file in files:
            tar.add(file, Path(file).name)
    got, report = raw(lambda: fn.readers.webdataset(paths=[str(archive)], ext=["bin"]), len(files))
    assert got == contents and read_count(report, way) >= 5


def test_bytes_that_a_step_on_the_host_reads_are_not_read_to_the_device(way: str, tmp_path: Path) -> None:
    data = numbers("u1", (LEAST,), 1)
    file = tmp_path / "x.bin"
    file.write_bytes(data.tobytes())

    @pipeline_def(batch_size=1, num_threads=1, device_id=0, seed=1)
    def both() -> Any:
        x = fn.readers.file(files=[str(file)])[0]
        return x.gpu(), x

    with both() as pipe:
        on_gpu, on_cpu = pipe.run()
        np.testing.assert_array_equal(on_gpu.as_cpu()[0], data)
        np.testing.assert_array_equal(on_cpu[0], data)
        assert read_count(pipe.report(), way) == 0


def test_buffers_out_of_range_are_refused() -> None:
    device = _native.gpu.open_null()
    for piece, buffers in ((1 << 10, 2), (1 << 30, 2), (1 << 20, 0), (1 << 20, 9)):
        with pytest.raises(ValueError, match="expected"):
            _native.gpu.FileReads(device, 0, "", piece, buffers)
    with pytest.raises(ValueError, match="cufile"):
        _native.gpu.FileReads(device, 3, "", 1 << 20, 2)


def test_idle_threads_take_part_in_a_large_read(
    emulated_gpu: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches of one row: without help, one thread would read each file."""
    monkeypatch.setattr(file_reads, "PIECE_BYTES", 64 << 10)
    arrays = [numbers("u1", ((16 << 20) + i,), i) for i in range(4)]
    files = written(tmp_path, arrays)

    # Two batches in flight, so that two threads have work of their own and a third one is a helper.
    @pipeline_def(batch_size=1, num_threads=4, device_id=0, seed=1, prefetch_queue_depth=1)
    def one() -> Any:
        return fn.readers.numpy(files=files, device="gpu")

    with one() as pipe:
        for i in range(2000):  # on a busy machine the first threads may take all pieces of many reads
            np.testing.assert_array_equal(pipe.run()[0].as_cpu()[0], arrays[i % 4])
            assert pipe._execution is not None and pipe._execution._run is not None
            # Lanes of more threads than batches in flight.
            helped = pipe._execution._run.pinned_bytes > 2 * 2 * (64 << 10)
            if i >= 40 and helped:
                break
        assert helped
