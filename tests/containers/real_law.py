# SPDX-License-Identifier: Apache-2.0
"""The law of containers for the formats of other libraries and for objects of a store: ``make test-containers``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import lance
import pyarrow as pa
import pytest
from array_record.python import array_record_module
from litdata.streaming.writer import BinaryWriter
from pyarrow import parquet as pq

import containers
from stoker import fn
from stoker import tfrecord as features
from tests.containers import law
from tests.containers.real_stores import Server
from tests.containers.real_stores import cache as cache
from tests.containers.real_stores import deadline as deadline
from tests.containers.real_stores import server as server

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning", "ignore:.*single rows",
    ),
    pytest.mark.leaks("the libraries' own threads and files"),
]  # fmt: skip
Reader = Callable[..., Any]


def parquet(folder: Path) -> Reader:
    table = pa.table({"s": pa.array([law.content(i) for i in range(law.COUNT)], pa.binary()), "n": law.LABELS})
    pq.write_table(table, folder / "rows.parquet", row_group_size=5)
    return lambda **order: fn.readers.parquet(str(folder / "rows.parquet"), ["s", "n"], **order)["s"]


def huggingface(folder: Path) -> Reader:
    kinds = datasets.Features({"s": datasets.Value("binary")})
    rows = {"s": [law.content(i) for i in range(law.COUNT)]}
    datasets.Dataset.from_dict(rows, features=kinds).save_to_disk(str(folder / "saved"))
    return lambda **order: fn.readers.huggingface(str(folder / "saved"), ["s"], **order)["s"]


def rows_of_lance(folder: Path) -> Reader:
    table = pa.table({"s": pa.array([law.content(i) for i in range(law.COUNT)], pa.large_binary())})
    lance.write_dataset(table, str(folder / "rows.lance"), max_rows_per_file=10)
    return lambda **order: fn.readers.lance(str(folder / "rows.lance"), columns=["s"], **order)["s"]


def litdata(folder: Path) -> Reader:
    writer = BinaryWriter(str(folder / "litdata"), chunk_size=9)
    for i in range(law.COUNT):
        writer.add_item(i, {"s": law.content(i)})
    writer.done()
    writer.merge(1)
    return lambda **order: fn.readers.litdata(str(folder / "litdata"), columns=["s"], **order)["s"]


def array_record(folder: Path) -> Reader:
    writer = array_record_module.ArrayRecordWriter(str(folder / "a.array_record"), "group_size:1")
    for i in range(law.COUNT):
        writer.write(law.content(i))
    writer.close()
    return lambda **order: fn.readers.array_record([str(folder / "a.array_record")], **order)


MADE = {m.__name__: m for m in (parquet, huggingface, rows_of_lance, litdata, array_record)}


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reader]:
    return {name: make(tmp_path_factory.mktemp(name)) for name, make in MADE.items()}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return law.write_files(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("order", law.ORDERS)
@pytest.mark.parametrize("kind", MADE)
def test_a_container_gives_the_rows_of_files(
    kind: str, order: str, readers: dict[str, Reader], files: list[str]
) -> None:
    law.check(readers[kind], files, order)


@pytest.mark.parametrize("order", law.ORDERS)
def test_objects_give_the_rows_of_files(order: str, files: list[str], server: Server) -> None:
    urls = [server.put(f"{i}.bin", law.content(i)) for i in range(law.COUNT)]
    law.check(lambda **arguments: fn.readers.file(files=urls, labels=law.LABELS, **arguments)[0], files, order)
    records = containers.tfrecord(containers.example({"s": law.content(i)}) for i in range(law.COUNT))
    url, declared = server.put("a.tfrecord", records), {"s": features.FixedLenFeature((), features.string)}
    law.check(lambda **o: fn.readers.tfrecord(path=url, features=declared, **o)["s"], files, order)
