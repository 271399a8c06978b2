# SPDX-License-Identifier: Apache-2.0
"""Any container gives the rows of files, for each sampler, shard, resume position and batch size (``law.py``)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import containers
from stoker import fn
from stoker import tfrecord as features
from stoker.inspection.manifest import write_manifest
from tests.containers import law

Reader = Callable[..., Any]
HALF = law.COUNT // 2
PARTS = (range(HALF), range(HALF, law.COUNT))  # the records of the two shards


def shards_of(folder: Path, name: str, write: Callable[[range], bytes]) -> list[str]:
    for k, part in enumerate(PARTS):
        (folder / f"{k}.{name}").write_bytes(write(part))
    return [str(folder / f"{k}.{name}") for k in range(len(PARTS))]


def tfrecord(folder: Path) -> tuple[list[str], Reader]:
    declared = {"s": features.FixedLenFeature((), features.string)}
    paths = shards_of(
        folder, "tfrecord", lambda part: containers.tfrecord(containers.example({"s": law.content(i)}) for i in part)
    )
    return paths, lambda path, **order: fn.readers.tfrecord(path=path, features=declared, **order)["s"]


def mxnet(folder: Path) -> tuple[list[str], Reader]:
    paths = shards_of(
        folder, "rec", lambda p: containers.recordio(containers.image_record(1.0, law.content(i)) for i in p)[0]
    )
    return paths, lambda path, **order: fn.readers.mxnet(path=path, **order)[0]


def webdataset(folder: Path) -> tuple[list[str], Reader]:
    paths = shards_of(folder, "tar", lambda p: containers.tar((f"{i:03}.bin", law.content(i)) for i in p))
    return paths, lambda path, **order: fn.readers.webdataset(paths=path, ext="bin", **order)


def packed_zip(folder: Path) -> tuple[list[str], Reader]:
    paths = shards_of(folder, "zip", lambda p: containers.stored_zip((f"c/{i:03}.jpg", law.content(i)) for i in p))
    return paths, lambda path, **order: fn.readers.zip(paths=path, **order)[0]


def bagz(folder: Path) -> tuple[list[str], Reader]:
    paths = shards_of(folder, "bag", lambda p: containers.bagz(law.content(i) for i in p))
    return paths, lambda path, **order: fn.readers.bagz(paths=path, **order)


def caffe(folder: Path) -> tuple[list[str], Reader]:
    paths = shards_of(
        folder, "mdb",
        lambda p: containers.lmdb({f"{i:03}".encode(): containers.datum(data=law.content(i), label=i) for i in p}),
    )  # fmt: skip
    return paths, lambda path, **order: fn.readers.caffe(path=path, **order)[0]


def caffe2(folder: Path) -> tuple[list[str], Reader]:
    paths = shards_of(folder, "mdb", lambda p: containers.lmdb({
        f"{i:03}".encode(): containers.tensors(
            containers.tensor(law.content(i), 4, (1,)), containers.tensor([i], 2, (1,))) for i in p
    }))  # fmt: skip
    return paths, lambda path, **order: fn.readers.caffe2(path=path, **order)[0]


def mds(folder: Path) -> tuple[list[str], Reader]:
    samples = [{"s": law.content(i)} for i in range(law.COUNT)]
    containers.mds(folder / "mds", samples, {"s": ("bytes", None)}, per_shard=9)
    return [str(folder / "mds")], lambda path, **order: fn.readers.mds(path[0], ["s"], **order)["s"]


def arrays(folder: Path) -> tuple[list[str], Reader]:
    paths = []
    for i in range(law.COUNT):
        np.save(folder / f"{i:02}.npy", np.frombuffer(law.content(i), np.uint8))
        paths.append(str(folder / f"{i:02}.npy"))
    return paths, lambda path, **order: fn.readers.numpy(files=path, **order)


MADE = (tfrecord, mxnet, webdataset, packed_zip, bagz, caffe, caffe2, mds, arrays)
WITH_MANIFESTS = (tfrecord, mxnet, webdataset, bagz)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[str], Reader]]:
    found = {}
    for make in MADE:
        folder = tmp_path_factory.mktemp(make.__name__)
        found[make.__name__] = make(folder)
        if make in WITH_MANIFESTS:
            paths, read = found[make.__name__]
            manifest = str(folder / "all.manifest")
            write_manifest(manifest, paths)
            found[f"{make.__name__} manifest"] = [manifest], read
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return law.write_files(tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize("order", law.ORDERS)
@pytest.mark.parametrize("kind", [m.__name__ for m in MADE] + [f"{m.__name__} manifest" for m in WITH_MANIFESTS])
def test_a_container_gives_the_rows_of_files(
    kind: str, order: str, made: dict[str, tuple[list[str], Reader]], files: list[str]
) -> None:
    paths, read = made[kind]
    law.check(lambda **arguments: read(paths, **arguments), files, order)
