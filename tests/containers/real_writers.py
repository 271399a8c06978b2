# SPDX-License-Identifier: Apache-2.0
"""Files of the formats' own libraries, read by Stoker and by these libraries: ``make test-containers``."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import bagz
import lmdb
import numpy as np
import pytest
import tfrecord.reader
import tfrecord.writer
import webdataset
from pycocotools.coco import COCO

import containers
from stoker import fn, types
from stoker import tfrecord as features
from tests.containers.data import rows

# The libraries leave files open.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
    pytest.mark.leaks("the libraries' own threads and files"),
]
COUNT = 30


def content(i: int) -> bytes:
    return np.random.default_rng(i).bytes(i * 211 % 3000)


def test_tfrecord(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    writer = tfrecord.writer.TFRecordWriter(path)
    for i in range(COUNT):
        numbers = [i, -i, 1 << 40] if i % 3 else [i]
        writer.write({"image": (content(i), "byte"), "x": ([i / 2, 3.0], "float"), "ids": (numbers, "int")})
    writer.close()
    wanted = list(tfrecord.reader.tfrecord_loader(path, None, {"image": "byte", "x": "float", "ids": "int"}))
    declared = {
        "image": features.FixedLenFeature((), features.string), "x": features.FixedLenFeature([2], features.float32),
        "ids": features.VarLenFeature(features.int64),
    }  # fmt: skip
    found = rows(lambda: fn.readers.tfrecord(path=path, features=declared))
    assert len(found) == len(wanted) == COUNT
    for (image, x, ids), row in zip(found, wanted, strict=True):
        assert image.tobytes() == bytes(row["image"])
        assert (x.tolist(), ids.tolist()) == (row["x"].tolist(), np.atleast_1d(row["ids"]).tolist())


def test_webdataset(tmp_path: Path) -> None:
    with webdataset.ShardWriter(str(tmp_path / "%03d.tar"), maxcount=9, verbose=0) as writer:
        for i in range(COUNT):
            sample = {"__key__": f"{'long/' * 25}{i:03}", "jpg": content(i), "cls": i % 4, "a.json": {"n": i}}
            writer.write(sample if i % 5 else {k: v for k, v in sample.items() if k != "cls"})
    paths = sorted(map(str, tmp_path.glob("*.tar")))
    wanted = list(webdataset.WebDataset(paths, shardshuffle=False))
    found = rows(lambda: fn.readers.webdataset(paths=paths, ext=["jpg", "cls", "a.json"]))
    assert len(found) == len(wanted) == COUNT
    for row, sample in zip(found, wanted, strict=True):
        assert [x.tobytes() for x in row] == [sample.get(key, b"") for key in ("jpg", "cls", "a.json")]


@pytest.mark.parametrize("is_folder", [True, False])
def test_lmdb(is_folder: bool, tmp_path: Path) -> None:
    path = str(tmp_path / "data")
    values = {f"{i}".encode(): containers.datum(data=content(i), label=i, encoded=True) for i in range(700)}
    with lmdb.open(path, map_size=1 << 26, subdir=is_folder) as environment:
        with environment.begin(write=True) as transaction:
            for key, value in values.items():
                transaction.put(key, b"old" + value)
        with environment.begin(write=True) as transaction:  # pages that are free, and values that moved
            for key, value in values.items():
                transaction.put(key, value)
            transaction.delete(b"13")
        with environment.begin() as transaction:
            wanted = [bytes(value) for _, value in transaction.cursor()]
    found = rows(lambda: fn.readers.caffe(path=path))
    assert [containers.datum(data=r[0].tobytes(), label=int(r[1][0]), encoded=True) for r in found] == wanted
    pairs = {k: containers.tensors(containers.tensor(v, 4), containers.tensor([7], 2)) for k, v in values.items()}
    with lmdb.open(str(tmp_path / "second"), map_size=1 << 26) as environment, environment.begin(write=True) as put:
        for key, value in pairs.items():
            put.put(key, value)
    found = rows(lambda: fn.readers.caffe2(path=str(tmp_path / "second")))
    assert [r[0].tobytes() for r in found] == [values[k] for k in sorted(values)]


def test_bagz(tmp_path: Path) -> None:
    path = str(tmp_path / "a.bag")
    with bagz.Writer(path) as writer:
        for i in range(COUNT):
            writer.write(content(i))
    found = rows(lambda: fn.readers.bagz(paths=path))
    assert [r[0].tobytes() for r in found] == list(bagz.Reader(path)) == [content(i) for i in range(COUNT)]


def test_coco_masks(tmp_path: Path) -> None:
    from PIL import Image

    images, annotations = [], []
    drawn = np.random.default_rng(0)
    for i in range(6):
        Image.new("RGB", (40 + i, 30)).save(tmp_path / f"{i}.png")
        images.append({"id": i, "file_name": f"{i}.png", "width": 40 + i, "height": 30})
        for _ in range(3):
            points = (drawn.random((5, 2)) * (40 + i, 30)).round(2)
            annotations.append(
                {"id": len(annotations) + 1, "image_id": i, "category_id": 5, "iscrowd": 0, "area": 1.0,
                 "bbox": [1, 2, 10, 12], "segmentation": [points.reshape(-1).tolist()]}
            )  # fmt: skip
    text = {"images": images, "annotations": annotations, "categories": [{"id": 5, "name": "thing"}]}
    (tmp_path / "a.json").write_text(json.dumps(text))
    known = COCO(str(tmp_path / "a.json"))

    def read() -> Any:
        return fn.readers.coco(
            file_root=str(tmp_path), annotations_file=str(tmp_path / "a.json"), pixelwise_masks=True
        )  # fmt: skip

    for i, row in enumerate(rows(read)):
        masks = [known.annToMask(a) for a in known.loadAnns(known.getAnnIds(imgIds=[i]))]
        differing = row[3][..., 0] != np.any(masks, axis=0)
        assert differing.sum() <= 6  # pixels that an edge only touches
        assert row[1].tolist() == [[1, 2, 10, 12]] * 3


def test_numpy(tmp_path: Path) -> None:
    names = []
    for i, version in enumerate([(1, 0), (2, 0), (3, 0)]):
        file = io.BytesIO()
        np.lib.format.write_array(file, np.full((i + 1, 3), i, ">f4", order="F"), version)
        names.append(str(tmp_path / f"{i}.npy"))
        Path(names[-1]).write_bytes(file.getvalue())
    wanted = [np.load(name).tolist() for name in names]
    assert [r[0].tolist() for r in rows(lambda: fn.readers.numpy(files=names))] == wanted
    decoded = rows(lambda: fn.decoders.numpy(fn.readers.file(files=names)[0], dtype=types.FLOAT))
    assert [r[0].tolist() for r in decoded] == wanted
