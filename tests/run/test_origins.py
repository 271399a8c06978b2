# SPDX-License-Identifier: Apache-2.0
"""The origin of a sample: an output of its reader, and DALI's property "source_info"."""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import fn, pipeline_def
from stoker.contract.errors import ArgumentError, UnsupportedError
from stoker.dali import Pipeline
from stoker.dali import fn as dali_fn
from stoker.dali import pipeline_def as dali_pipeline_def
from stoker.dali.tensors import TensorCPU


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with five images in two classes, a tar file, arrays and annotations."""
    for i in range(5):
        path = tmp_path / "images" / "ab"[i % 2] / f"{i} ö.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8 + i, 9), (40 * i, 9, 8)).save(path)
    np.save(tmp_path / "one.npy", np.zeros((3, 4)))
    np.save(tmp_path / "two.npy", np.ones((2, 4)))
    with tarfile.open(tmp_path / "all.tar", "w") as tar:
        for i in range(2):
            tar.add(tmp_path / "images" / "ab"[i] / f"{i} ö.png", f"{i}.png")
    images = [{"id": i, "file_name": f"{'ab'[i % 2]}/{i} ö.png", "height": 9, "width": 8 + i} for i in range(2)]
    boxes = [{"id": i, "image_id": i, "category_id": 1, "bbox": [1, 1, 3, 4]} for i in range(2)]
    known = {"images": images, "annotations": boxes, "categories": [{"id": 1, "name": "x"}]}
    (tmp_path / "boxes.json").write_text(json.dumps(known))
    return tmp_path


def texts(batch: Any) -> list[str]:
    return [bytes(np.asarray(row)).decode() for row in batch]


def test_the_origin_belongs_to_its_row(folder: Path) -> None:
    """The property equals the reader's own output, after decoding, conditions and a shuffle, in every epoch."""

    @dali_pipeline_def(batch_size=2, num_threads=2, seed=3, enable_conditionals=True)
    def reading() -> Any:
        jpegs, labels = dali_fn.readers.file(file_root=str(folder / "images"), random_shuffle=True, name="Reader")
        images = dali_fn.resize(dali_fn.decoders.image(jpegs), size=[4, 5])
        if labels[0] == 1:
            images = dali_fn.flip(images)
        origin = dali_fn.get_property(images, key="source_info")
        return images, labels, origin, jpegs.source_info(), jpegs.property("layout")

    seen = []
    with reading() as pipe:
        for _ in range(5):
            images, labels, origin, again, _ = pipe.run()
            for row, (path, label) in enumerate(zip(texts(origin), np.asarray(labels.as_array()).ravel(), strict=True)):
                assert Path(path).parent == folder / "images" / "ab"[label]
                assert np.asarray(images.at(row))[0, 0, 0] == 40 * int(Path(path).name[0])
                seen.append(path)
            assert texts(again) == texts(origin)
    assert set(seen) == {str(p) for p in (folder / "images").rglob("*.png")}
    pipe.close()


def test_tensors_have_the_location_of_their_sample(folder: Path) -> None:
    """Outputs computed from a reader's files have it, also in a branch; labels, draws and mixed rows have none."""

    @dali_pipeline_def(batch_size=2, num_threads=2, seed=3, enable_conditionals=True)
    def reading() -> Any:
        jpegs, labels = dali_fn.readers.file(file_root=str(folder / "images"), random_shuffle=True)
        images = dali_fn.resize(dali_fn.decoders.image(jpegs), size=[4, 5])
        if labels[0] == 1:
            images = dali_fn.flip(images)
        mixed = dali_fn.permute_batch(images, indices=[1, 0])
        return images, jpegs, dali_fn.get_property(jpegs, key="source_info"), labels, dali_fn.random.uniform(), mixed

    with reading() as pipe:
        for _ in range(3):
            images, jpegs, origin, *others = pipe.run()
            for row, path in enumerate(texts(origin)):
                assert images[row].source_info() == jpegs[row].source_info() == path
                assert {x[row].source_info() for x in others} == {""}
            assert images[-1].source_info() == texts(origin)[-1]
            assert images.get_property("source_info") == texts(origin)
            assert images[0].get_property("source_info") == texts(origin)[0]
    pipe.close()
    assert TensorCPU(np.zeros(2)).source_info() == ""


def test_tensors_of_two_readers_have_no_location(folder: Path) -> None:
    """A branch may take either reader's rows, so neither location is returned for all of them."""

    @dali_pipeline_def(batch_size=2, num_threads=1, seed=3, enable_conditionals=True)
    def reading() -> Any:
        one = dali_fn.readers.numpy(files=[str(folder / "one.npy")])
        two = dali_fn.readers.numpy(files=[str(folder / "two.npy")])
        return one if dali_fn.random.coin_flip() else two

    with reading() as pipe:
        assert {row.source_info() for row in pipe.run()[0]} == {""}
    pipe.close()


READERS: dict[str, tuple[Callable[[Path], Any], list[str]]] = {
    "file": (lambda f: fn.readers.file(files=["one.npy", "two.npy"], file_root=str(f), origin=True),
             ["one.npy", "two.npy"]),
    "numpy": (lambda f: fn.readers.numpy(files=[str(f / "two.npy"), str(f / "one.npy")], origin=True),
              ["two.npy", "one.npy"]),
    "coco": (lambda f: fn.readers.coco(file_root=str(f / "images"), annotations_file=str(f / "boxes.json"),
                                       origin=True),
             ["images/a/0 ö.png", "images/b/1 ö.png"]),
    "webdataset": (lambda f: fn.readers.webdataset(paths=str(f / "all.tar"), ext=["png"], origin=True),
                   ["all.tar at byte 1536", "all.tar at byte 3584"]),
}  # fmt: skip


@pytest.mark.parametrize("reader", READERS)
def test_readers_return_the_origin(reader: str, folder: Path) -> None:
    read, wanted = READERS[reader]

    @pipeline_def(batch_size=2, num_threads=1)
    def reading() -> Any:
        return read(folder)

    @pipeline_def(batch_size=2, num_threads=1)
    def asked() -> Any:
        first, *_ = read(folder)
        return fn.get_property(first, key="source_info")

    with reading() as pipe, asked() as other:
        found = texts(pipe.run()[-1])
        assert texts(other.run()[0]) == found
    assert found == [str(folder / end) for end in wanted]


def test_a_graph_with_an_origin_is_written_and_read(folder: Path) -> None:
    @dali_pipeline_def(batch_size=2, num_threads=1)
    def reading() -> Any:
        return dali_fn.get_property(dali_fn.readers.numpy(file_root=str(folder)), key="source_info")

    with reading() as pipe:
        text, wanted = pipe.serialize(), texts(pipe.run()[0])
    with Pipeline.deserialize(text, batch_size=2, num_threads=1) as again:
        assert texts(again.run()[0]) == wanted
    again.close()
    pipe.close()


def test_data_without_one_origin_are_refused(folder: Path) -> None:
    def read() -> Any:
        return fn.readers.numpy(file_root=str(folder))

    def concat() -> Any:
        return fn.readers.concat([fn.readers.file(files=["one.npy"], file_root=str(folder), origin=True)])

    cases: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: fn.get_property(read() + read(), key="source_info"), ArgumentError, "data of one reader"),
        (
            lambda: fn.get_property(fn.permute_batch(read(), indices=[1, 0]), key="source_info"),
            ArgumentError,
            "stay in",
        ),
        (lambda: fn.get_property(fn.random.uniform(), key="source_info"), UnsupportedError, "got none"),
        (lambda: fn.external_source(name="x").source_info(), UnsupportedError, "argument `origin`"),
        (lambda: read().property("name"), UnsupportedError, '"layout" or "source_info"'),
        (concat, ArgumentError, "without `origin`"),
        (lambda: fn.decoders.image(fn.readers.file(file_root=str(folder / "images"))), ArgumentError, "Unpack"),
    ]
    for define, error, words in cases:

        @pipeline_def(batch_size=2, num_threads=1)
        def reading(define: Callable[[], Any] = define) -> Any:
            return define()

        with pytest.raises(error, match=words) as caught:
            reading().build()
        assert "test_origins.py" in str(caught.value), words
