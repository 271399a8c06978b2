# SPDX-License-Identifier: Apache-2.0
"""`max_batch_bytes`: a batch that takes too much memory is refused before, with the name of the row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import ArgumentError, DataError, Pipeline, ResourceError, fn, pipeline_def, settings, types
from stoker.executor import batch_limits
from tests.hostile_images import claiming_jpeg
from tests.run.pipelines import labels_of

SIDES = (50, 500, 100, 120)  # of images of 8, 750, 30 and 43 kB
KB = 1000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root = tmp_path_factory.mktemp("sides")
    for side in SIDES:
        for suffix in ("jpg", "bmp"):  # small files, and files as large as their images
            Image.new("RGB", (side, side), (1, 2, 3)).save(root / f"{side}.{suffix}")
    return [str(root / f"{side}.jpg") for side in SIDES]


def read(files: list[str]) -> tuple[Any, Any]:
    return fn.readers.file(files=files, labels=list(range(len(files))))


@pipeline_def(batch_size=4, num_threads=2, seed=1, error_limit=1)
def decoding(files: list[str]) -> Any:
    data, labels = read(files)
    return fn.decoders.image(data), labels


@pipeline_def(batch_size=4, num_threads=2, seed=1, error_limit=1)
def reading(files: list[str]) -> Any:
    return read([name.replace(".jpg", ".bmp") for name in files])


@pipeline_def(batch_size=4, num_threads=2, seed=1, error_limit=1)
def through_python(files: list[str]) -> Any:
    """The images cross to another segment, and only a number of each is an output."""
    data, labels = read(files)
    images = fn.decoders.image(data)
    return fn.python_function(
        images, function=lambda x: x[:1, 0], output_dtypes=types.UINT8, output_ndims=2
    ), labels  # fmt: skip


@pipeline_def(batch_size=4, num_threads=2, seed=1, error_limit=1)
def out_of_python(files: list[str]) -> Any:
    _, labels = read(files)
    sides = np.array(SIDES)
    made = fn.python_function(
        labels, function=lambda x: np.zeros((sides[int(x[0])], sides[int(x[0])], 3), np.uint8),
        output_dtypes=types.UINT8, output_ndims=3,
    )  # fmt: skip
    return made, labels


Chain = Callable[..., Pipeline]
CHAINS: dict[str, Chain] = {
    "outputs": decoding, "files": reading, "values between segments": through_python, "values of Python": out_of_python,
}  # fmt: skip


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_a_row_that_is_too_large_alone_is_a_bad_row(chain: Chain, files: list[str]) -> None:
    with chain(files, max_batch_bytes=650 * KB) as pipe, pytest.raises(DataError) as raised:
        pipe.run()
    assert raised.match(r"expected at most 650000 bytes of memory for a batch \(`max_batch_bytes`\), got 75\d{4} ")
    assert raised.match(r"for this row alone — sample 1 \(.*500\.\w+\)(, made at .*:\d+)?\. `max_batch_bytes` of the")
    assert (raised.value.row, raised.value.sample) == (1, 1)
    with chain(files, max_batch_bytes=650 * KB, on_error="skip") as pipe:
        assert labels_of(pipe.run()) == [0, 2, 3]
        assert [(e.path, e.offset) for e in pipe.errors] == [(pipe.errors[0].path, None)]
        assert Path(pipe.errors[0].path).stem == "500"
    with chain(files, max_batch_bytes=650 * KB, on_error="replace") as pipe:
        assert 1 not in labels_of(pipe.run())


@pytest.mark.parametrize("policy", ["raise", "skip", "replace"])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize(("chain", "limit"), [(decoding, 800 * KB), (reading, 826 * KB)], ids=["images", "files"])
def test_a_batch_that_is_too_large_names_its_largest_row(
    chain: Chain, limit: int, threads: int, policy: str, files: list[str]
) -> None:
    """No row is to blame alone, so that the policy for bad rows does not apply. Files are read into the output."""
    with chain(files, max_batch_bytes=limit, on_error=policy, num_threads=threads) as pipe:
        for _ in range(2):
            with pytest.raises(DataError) as raised:
                pipe.run()
            assert raised.match(rf"expected at most {limit} bytes of memory for a batch \(`max_batch_bytes`\), got ")
            assert raised.match(r"of them \d+ for this row — sample \d \(.*\.\w+\) in a batch of 4")
            assert raised.match(r"Smaller batches take less")
            assert raised.match(r" 75\d{4} for this row — sample 1 \(.*500\.\w+\)")
        assert not pipe.errors
    with chain(files, max_batch_bytes=limit, batch_size=1, on_error=policy) as pipe:
        assert [labels_of(pipe.run()) for _ in SIDES] == [[0], [1], [2], [3]]


@pytest.mark.parametrize("chain", [through_python, out_of_python], ids=["values between segments", "values of Python"])
@pytest.mark.parametrize("way", [{}, {"exec_async": False}], ids=["threads", "here"])
def test_the_largest_row_is_named_where_rows_take_memory_one_by_one(
    chain: Chain, way: dict[str, Any], files: list[str]
) -> None:
    with chain(files, max_batch_bytes=800 * KB, on_error="skip", **way) as pipe:
        for _ in range(2):
            with pytest.raises(DataError, match=r"for this row — sample \d \(.*\.\w+\) in a batch of 4"):
                pipe.run()


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_a_limit_that_is_not_reached_changes_nothing(chain: Chain, files: list[str]) -> None:
    rows: list[list[np.ndarray]] = []
    for limit in (0, 10_000 * KB, None):
        with chain(files, max_batch_bytes=limit) as pipe:
            for _ in range(4):
                rows.append([np.array(x) for x in pipe.run()[0]])
    for batch in rows:
        assert all(np.array_equal(a, b) for a, b in zip(batch, rows[0], strict=True))


def test_working_memory_of_a_row_is_limited_too(files: list[str]) -> None:
    """The whole images are never outputs."""

    @pipeline_def(batch_size=4, num_threads=2, seed=1, on_error="skip", error_limit=1, max_batch_bytes=650 * KB)
    def resized() -> Any:
        data, labels = read(files)
        return fn.resize(fn.decoders.image(data), size=(8, 8)), labels

    with resized() as pipe:
        assert labels_of(pipe.run()) == [0, 2, 3]
        assert "for this row alone" in pipe.errors[0].reason


def test_claims_of_files_are_bad_rows_without_a_limit_of_pixels(tmp_path: Path, files: list[str]) -> None:
    """13 GB for each of four rows, of a file of 700 bytes."""
    claim = tmp_path / "claim.jpg"
    claim.write_bytes(claiming_jpeg(65500, 65500))

    @pipeline_def(batch_size=8, num_threads=2, seed=1, on_error="skip", error_limit=1, max_batch_bytes=1 << 30)
    def unlimited() -> Any:
        data, labels = read([name for good in files for name in (good, str(claim))])
        return fn.decoders.image(data, max_pixels=0), labels

    with unlimited() as pipe:
        assert labels_of(pipe.run()) == [0, 2, 4, 6]
        assert {e.path for e in pipe.errors} == {str(claim)}


@pytest.mark.parametrize("value", [-1, 1.5, "4 GB", True, 2**63])
def test_limits_that_are_none(value: Any) -> None:
    with pytest.raises(ArgumentError, match="expected a number of bytes as `max_batch_bytes`"):
        Pipeline(4, max_batch_bytes=value)


# ---- the default ----


def test_the_default_is_a_part_of_what_is_available(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    available: list[int | None] = [40 << 30, 1 << 20, None]
    expected = [int(0.9 * (40 << 30) / 4), 256 << 20, 0]
    for memory, limit in zip(available, expected, strict=True):
        monkeypatch.setattr(batch_limits, "available_memory", lambda memory=memory: memory)
        with decoding(files, prefetch_queue_depth=3) as pipe:
            pipe.run()
            assert pipe.execution.run is not None
            assert pipe.execution.run.limits == (limit, 0)


def test_memory_is_available() -> None:
    found = settings.available_memory()
    assert found is None or 0 < found < 1 << 50


def group(folder: Path, limit: str, used: int, cache: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(limit + "\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {cache}\nactive_file 7\n")


def test_the_limits_of_cgroups_count(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("0::/pod/box\n")

    def left() -> int | None:
        return settings._available_in_cgroups(str(tmp_path), str(own))

    assert left() is None
    group(tmp_path / "pod" / "box", "max", 10)
    assert left() is None
    group(tmp_path / "pod", "1000", 600, cache=50)
    assert left() == 450
    group(tmp_path / "pod" / "box", "500", 300)
    assert left() == 200
    (tmp_path / "pod" / "box" / "memory.current").write_text("no number")
    assert left() == 450


def test_the_first_version_of_cgroups(tmp_path: Path) -> None:
    own, folder = tmp_path / "own", tmp_path / "memory" / "box"
    own.write_text("3:cpu,cpuacct:/other\n2:memory:/box\n")
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text("5000")
    (folder / "memory.usage_in_bytes").write_text("3000")
    (folder / "memory.stat").write_text("total_inactive_file 100\ninactive_file 1\n")
    assert settings._available_in_cgroups(str(tmp_path), str(own)) == 2100
    (folder / "memory.limit_in_bytes").write_text(str(0x7FFFFFFFFFFFF000))
    assert settings._available_in_cgroups(str(tmp_path), str(own)) is None
    assert settings._available_in_cgroups(str(tmp_path), str(tmp_path / "nowhere")) is None


def test_more_rows_than_memory_can_number(monkeypatch: pytest.MonkeyPatch) -> None:
    @pipeline_def(batch_size=2**31 - 1, num_threads=1)
    def numbers() -> Any:
        return fn.random.uniform()

    monkeypatch.setattr("stoker.executor.execution.available_memory", lambda: 10**9)
    with numbers() as pipeline, pytest.raises(ResourceError, match="use a smaller `batch_size`"):
        pipeline.run()


def test_a_source_that_finds_no_memory() -> None:
    def source() -> Any:
        raise MemoryError

    @pipeline_def(batch_size=2, num_threads=1)
    def fed() -> Any:
        return fn.external_source(source)

    with fed() as pipeline, pytest.raises(ResourceError, match="no memory is left to number 2 rows"):
        pipeline.run()
