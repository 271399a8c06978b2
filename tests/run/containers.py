# SPDX-License-Identifier: Apache-2.0
"""Small data sets in containers, pipelines over them with custom readers, and comparisons of their rows."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import stoker
from stoker import Pipeline, fn, pipeline_def
from stoker.frontends import registry
from tests.run.own_readers import FolderStore, RecordReader, TarReader, write_records

COUNT = 23
SETTINGS: list[dict[str, Any]] = [
    {"batch_size": 1, "num_threads": 1, "prefetch_queue_depth": 1},
    {"batch_size": 7, "num_threads": 3, "prefetch_queue_depth": 4},
    {"batch_size": COUNT, "exec_async": False},
]


@pytest.fixture
def registered_readers() -> Iterator[None]:
    """Register the custom readers, and forget them and all others after the test."""
    before = dict(registry._registered)
    stoker.register(TarReader)
    stoker.register(RecordReader)
    yield
    registry._registered.clear()
    registry._registered.update(before)


def image(i: int) -> bytes:
    return bytes([i]) * (i * 7 % 50)


def boxes(i: int) -> Any:
    return np.arange(4 * (i % 3), dtype=np.float32) + i


@pytest.fixture(scope="module")
def tars(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Write samples of an image, optional boxes and an optional text. PAX headers have names of more than 100 bytes."""
    root = tmp_path_factory.mktemp("tars")
    paths = [str(root / f"{n}.tar") for n in range(2)]
    for n, path in enumerate(paths):
        with tarfile.open(path, "w") as tar:
            for i in range(COUNT):
                if i % 2 != n:
                    continue
                key = f"{'long/' * 30}{i:03}" if i % 5 == 0 else f"{i:03}"
                parts = {"img": image(i), "box": boxes(i).tobytes(), "txt": f"text {i}".encode()}
                for ext, content in parts.items():
                    if (ext == "box" and i % 4 == 0) or (ext == "txt" and i % 3 == 0):
                        continue
                    member = tarfile.TarInfo(f"{key}.{ext}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
    return paths


TAR_ORDER = [*range(0, COUNT, 2), *range(1, COUNT, 2)]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Write samples as length-prefixed records."""
    root = tmp_path_factory.mktemp("records")
    paths = [str(root / f"{n}.rec") for n in range(3)]
    for n, path in enumerate(paths):
        write_records(path, [payload(i) for i in range(COUNT) if i * 3 // COUNT == n])
    return paths


def payload(i: int) -> tuple[bytes, int, Any]:
    return f"payload {i} ".encode() * ((i + 1) % 5), i % 4, np.arange(2 * (i % 3), dtype=np.float32) + i


@pipeline_def(batch_size=4, num_threads=2, seed=3)
def of_tar(**arguments: Any) -> Any:
    args = {"ext": ["img", "box", "txt"], "optional": ["box", "txt"], "dtypes": {"box": "float32"}, **arguments}
    return fn.own.tar(**args)


@pipeline_def(batch_size=4, num_threads=2, seed=3)
def of_records(**arguments: Any) -> Any:
    return fn.own.records(**arguments)


def rows_of(outputs: Any) -> list[tuple[bytes, ...]]:
    """Return every row as the bytes of its outputs, with their shapes."""
    return [tuple(repr(x.shape).encode() + x.tobytes() for x in row) for row in zip(*outputs, strict=True)]


def epoch(pipe: Pipeline) -> list[Any]:
    """Return the rows of an epoch, each a tuple of arrays."""
    found: list[Any] = []
    while (delivered := pipe.next()) is not None:
        found += [tuple(map(np.asarray, row)) for row in zip(*pipe.execution.batches(delivered), strict=True)]
    return found


def as_tar_sample(row: Any) -> int:
    """Return the number of the sample in a row, and compare all its components with the written ones."""
    img, box, txt, has_box, has_txt = row
    number = next(i for i in range(COUNT) if _same_tar(i, img, box, txt))
    assert bool(has_box) == (number % 4 != 0) and bool(has_txt) == (number % 3 != 0)
    assert has_box.dtype == bool and has_box.shape == ()
    return number


def _same_tar(i: int, img: Any, box: Any, txt: Any) -> bool:
    wanted_box = boxes(i) if i % 4 else boxes(i)[:0]
    wanted_txt = f"text {i}".encode() if i % 3 else b""
    same = img.tobytes() == image(i) and np.array_equal(box, wanted_box) and txt.tobytes() == wanted_txt
    return same and img.dtype == np.uint8 and box.dtype == np.float32


def as_record(row: Any) -> int:
    data, label, points, name = row
    number = int(name.tobytes().decode().split()[1])
    wanted = payload(number)
    assert data.tobytes() == wanted[0] and label.tolist() == [wanted[1]] and label.dtype == np.int32
    assert points.dtype == np.float32 and points.tolist() == wanted[2].reshape(-1, 2).tolist()
    return number


class ReaderCase:
    """Pipeline over one of the readers, and the function that numbers its rows."""

    def __init__(self, make: Callable[..., Pipeline], number: Callable[[Any], int], **arguments: Any) -> None:
        self.make = lambda **more: make(**{**arguments, **more})
        self.number = number


@pytest.fixture(params=["tar", "file", "memory", "store"])
def reader_case(request: pytest.FixtureRequest, tars: list[str], records: list[str]) -> ReaderCase:
    if request.param == "tar":
        return ReaderCase(of_tar, as_tar_sample, paths=tars)
    if request.param == "store":
        return ReaderCase(lambda **a: of_records(store=FolderStore(), **a), as_record, paths=records, where="store")
    return ReaderCase(of_records, as_record, paths=records, where=request.param)
