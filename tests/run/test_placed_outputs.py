# SPDX-License-Identifier: Apache-2.0
"""Outputs whose rows the reading kernels write into the output's memory: values, shapes, order in memory, limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from containers import example, image_record, recordio, tfrecord
from stoker import DataError, Pipeline, fn
from stoker import tfrecord as features
from stoker.contract.step import Stage
from tests.containers.data import epoch, pipeline

SIZES = [5, 70_000, 0, 1, 300, 64, 4096, 17, 90_000, 2, 63, 65]
SETTINGS: list[dict[str, Any]] = [
    {"batch_size": 5, "num_threads": 1},
    {"batch_size": 4, "num_threads": 4, "prefetch_queue_depth": 3},
    {"batch_size": 12, "exec_async": False},
]


def contents(sizes: list[int]) -> list[bytes]:
    return [np.random.default_rng(i).bytes(n) for i, n in enumerate(sizes)]


def files(folder: Path, sizes: list[int]) -> list[str]:
    paths = [folder / f"{i:03}.bin" for i in range(len(sizes))]
    for path, content in zip(paths, contents(sizes), strict=True):
        path.write_bytes(content)
    return list(map(str, paths))


def copies(pipe: Pipeline) -> int:
    """Return the number of steps that copy values to outputs."""
    pipe.build()
    return sum(isinstance(step.body, Stage) for step in pipe.execution.plan.steps)


@pytest.mark.parametrize("settings", SETTINGS)
def test_files_are_read_into_the_output(tmp_path: Path, settings: dict[str, Any]) -> None:
    paths = files(tmp_path, SIZES)
    with pipeline(lambda: fn.readers.file(files=paths), **settings) as pipe:
        assert copies(pipe) == 0
        for _ in range(3):  # sizes of files are known from the second epoch on
            assert [row[0].tobytes() for row in epoch(pipe)] == contents(SIZES)
            pipe.reset()


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("size", [0, 1, 64, 1000])
def test_rows_of_one_shape_are_one_array(tmp_path: Path, settings: dict[str, Any], size: int) -> None:
    paths = files(tmp_path, [size] * 12)
    with pipeline(lambda: fn.readers.file(files=paths), **settings) as pipe:
        seen: list[bytes] = []
        for _ in range(2):
            while (delivered := pipe.next()) is not None:
                batch = pipe.execution.batches(delivered)[0]
                assert batch.is_dense
                seen += [row.tobytes() for row in batch.as_array()]
            pipe.reset()
        assert seen == contents([size] * 12) * 2


@pytest.mark.parametrize("settings", SETTINGS)
def test_parts_of_records_are_read_into_the_output(tmp_path: Path, settings: dict[str, Any]) -> None:
    records = [
        example({"image": [content], "id": [i], "name": [b"n" * (i % 3)]}) for i, content in enumerate(contents(SIZES))
    ]
    (tmp_path / "a.tfrecord").write_bytes(tfrecord(records))
    declared = {
        "name": features.FixedLenFeature((), features.string, "none"),
        "image": features.FixedLenFeature((), features.string, ""),
        "id": features.FixedLenFeature((), features.int64, 0),
        "lacking": features.FixedLenFeature((), features.string, "default"),
    }
    with pipeline(
        lambda: fn.readers.tfrecord(path=str(tmp_path / "a.tfrecord"), features=declared), **settings
    ) as pipe:
        assert copies(pipe) == 0
        for _ in range(3):  # after the first batch the image has the record's memory, and the names are copied
            rows = epoch(pipe)
            assert [row[0].tobytes() for row in rows] == [b"n" * (i % 3) for i in range(len(SIZES))]
            assert [row[1].tobytes() for row in rows] == contents(SIZES)
            assert [row[2].item() for row in rows] == list(range(len(SIZES)))
            assert {row[3].tobytes() for row in rows} == {b"default"}
            pipe.reset()


def test_a_part_without_a_copy_keeps_its_place_in_the_record(tmp_path: Path) -> None:
    records = [image_record(1.0, content) for content in contents(SIZES)]
    file, offsets = recordio(records)
    (tmp_path / "a.rec").write_bytes(file)
    with pipeline(lambda: fn.readers.mxnet(path=str(tmp_path / "a.rec")), batch_size=12) as pipe:
        for _ in range(3):
            delivered = pipe.next()
            assert delivered is not None
            batch = pipe.execution.batches(delivered)[0]
            addresses = [row.ctypes.data for row in batch]
            assert [row.tobytes() for row in batch] == contents(SIZES)
            assert pipe.next() is None
            pipe.reset()
    # The headers of a part and of a record have 8 and 24 bytes, and records lie in memory as in the page cache.
    assert [at % 64 for at in addresses] == [(offset + 8 + 24) % 64 for offset in offsets]


def test_a_value_may_be_an_output_twice_and_be_used(tmp_path: Path) -> None:
    paths = files(tmp_path, SIZES)

    def define() -> Any:
        data, _ = fn.readers.file(files=paths)
        return data, data, fn.shapes(data), fn.python_function(data, function=lambda x: x[:1] + 0)

    with pipeline(define, batch_size=5) as pipe:
        rows = epoch(pipe)
    assert [row[0].tobytes() for row in rows] == [row[1].tobytes() for row in rows] == contents(SIZES)
    assert [row[2].item() for row in rows] == SIZES
    assert [row[3].tobytes() for row in rows] == [content[:1] for content in contents(SIZES)]


@pytest.mark.parametrize("threads", [1, 3])
def test_bad_rows_between_good_ones(tmp_path: Path, threads: int) -> None:
    paths = files(tmp_path, SIZES)
    Path(paths[3]).unlink()
    kept = [content for i, content in enumerate(contents(SIZES)) if i != 3]
    with pipeline(lambda: fn.readers.file(files=paths), batch_size=4, num_threads=threads, on_error="skip") as pipe:
        assert [row[0].tobytes() for row in epoch(pipe)] == kept


def test_the_limit_of_a_batch_counts_the_rows(tmp_path: Path) -> None:
    paths = files(tmp_path, [1000, 60_000, 1000, 1000])
    with pipeline(lambda: fn.readers.file(files=paths), max_batch_bytes=64_000) as pipe:
        assert [len(row[0]) for row in epoch(pipe)] == [1000, 60_000, 1000, 1000]
    with (
        pipeline(lambda: fn.readers.file(files=paths), max_batch_bytes=50_000) as pipe,
        pytest.raises(DataError, match="for this row alone"),
    ):
        epoch(pipe)
