# SPDX-License-Identifier: Apache-2.0
"""``readers.coco``: boxes, labels, polygons, masks, choice and order of images, faults of annotation files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, fn
from stoker.contract.painting import paint_parts
from stoker.readers._coco import _uncompressed
from tests.containers.data import rows

CATEGORIES = [90, 5, 17]
SIZES = {7: (20, 30), 3: (11, 40), 12: (25, 25), 5: (8, 9)}  # by number of the image: height, width


def content() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    images = [{"id": i, "file_name": f"im{i}.jpg", "height": h, "width": w} for i, (h, w) in SIZES.items()]
    annotations = []
    for number, image in enumerate([7, 3, 3, 12, 7, 12, 12, 7, 3]):
        h, w = SIZES[image]
        corner, extent = rng.random(2) * [w, h] / 2, rng.random(2) * [w, h] / 2
        one = {
            "id": number, "image_id": image, "category_id": CATEGORIES[number % 3], "iscrowd": 0,
            "bbox": [round(float(v), 2) for v in (*corner, *extent)],
            "segmentation": [
                (rng.random(2 * n) * w * 1.2 - 2).round(2).tolist() for n in rng.integers(3, 7, 1 + number % 2)
            ],
        }  # fmt: skip
        if number in (2, 5):
            cuts = np.sort(rng.integers(0, h * w, 5))
            one |= {
                "iscrowd": 1,
                "segmentation": {"size": [h, w], "counts": np.diff(cuts, prepend=0, append=h * w).tolist()},
            }
        annotations.append(one)
    return {"images": images, "annotations": annotations, "categories": [{"id": c, "name": str(c)} for c in CATEGORIES]}


def write(folder: Path, data: dict[str, Any]) -> dict[str, Any]:
    for image in data["images"]:
        (folder / image["file_name"]).write_bytes(b"image %d" % image["id"])
    (folder / "a.json").write_text(json.dumps(data))
    return {"file_root": str(folder), "annotations_file": str(folder / "a.json")}


def read(folder: Path, data: dict[str, Any] | None = None, **arguments: Any) -> list[tuple[Any, ...]]:
    files = write(folder, content() if data is None else data)
    return rows(lambda: fn.readers.coco(**files, **arguments))


def kept(image: int, threshold: float = 0.1, crowds: bool = True) -> list[dict[str, Any]]:
    """Return the annotations of an image that a reader takes."""
    return [
        a for a in content()["annotations"]
        if a["image_id"] == image and min(a["bbox"][2:]) >= threshold and (crowds or not a["iscrowd"])
    ]  # fmt: skip


@pytest.mark.parametrize("ltrb", [False, True])
@pytest.mark.parametrize("ratio", [False, True])
@pytest.mark.parametrize("remaps", [False, True])
@pytest.mark.parametrize("threshold", [0.1, 6.0])
def test_boxes_and_labels(tmp_path: Path, ltrb: bool, ratio: bool, remaps: bool, threshold: float) -> None:
    found = read(
        tmp_path, ltrb=ltrb, ratio=ratio, avoid_class_remapping=not remaps, size_threshold=threshold, image_ids=True
    )
    assert [row[3].tolist() for row in found] == [[3], [5], [7], [12]]
    for data, boxes, labels, number in found:
        image = int(number[0])
        h, w = SIZES[image]
        wanted = np.array([a["bbox"] for a in kept(image, threshold)], np.float32).reshape(-1, 4)
        if ltrb:
            wanted[:, 2:] += wanted[:, :2]
        if ratio:
            wanted /= np.array([w, h, w, h], np.float32)
        assert data.tobytes() == b"image %d" % image
        assert boxes.dtype == np.float32
        assert boxes.shape == wanted.shape
        assert boxes.tolist() == wanted.tolist()
        classes = [a["category_id"] for a in kept(image, threshold)]
        assert labels.dtype == np.int32
        assert labels.tolist() == ([CATEGORIES.index(c) + 1 for c in classes] if remaps else classes)


def test_choice_and_order_of_images(tmp_path: Path) -> None:
    chosen = ["im12.jpg", "im3.jpg", "im12.jpg"]
    found = read(tmp_path, images=chosen, image_ids=True)
    assert [row[0].tobytes() for row in found] == [b"image 12", b"image 3", b"image 12"]
    assert [len(row[1]) for row in found] == [len(kept(i)) for i in (12, 3, 12)]
    assert [int(row[3][0]) for row in read(tmp_path, skip_empty=True, image_ids=True)] == [3, 7, 12]
    without = read(tmp_path, include_iscrowd=False)
    assert [len(row[2]) for row in without] == [len(kept(i, crowds=False)) for i in (3, 5, 7, 12)]
    with pytest.raises(ArgumentError, match="im99"):
        read(tmp_path, images=["im99.jpg"])


@pytest.mark.parametrize("unit", [1, 2])
@pytest.mark.parametrize("ratio", [False, True])
def test_polygons(tmp_path: Path, unit: int, ratio: bool) -> None:
    found = read(tmp_path, ratio=ratio, **({"polygon_masks": True} if unit == 1 else {"masks": True}))
    for row, image in zip(found, sorted(SIZES), strict=True):
        table: list[list[int]] = []
        vertices = np.empty((0, 2), np.float32)
        for number, one in enumerate(kept(image)):
            for polygon in [] if one["iscrowd"] else one["segmentation"]:
                begin = len(vertices)
                vertices = np.concatenate([vertices, np.array(polygon, np.float32).reshape(-1, 2)])
                table.append([number, unit * begin, unit * len(vertices)])
        if ratio:
            vertices /= np.array(SIZES[image][::-1], np.float32)
        assert row[3].tolist() == table
        assert row[4].tolist() == vertices.tolist()


def mask_words(image: int) -> np.ndarray:
    """Return the parts of an image's mask, those with larger labels last."""
    words: list[int] = []
    for one in sorted(kept(image), key=lambda a: CATEGORIES.index(a["category_id"])):
        parts = [one["segmentation"]["counts"]] if one["iscrowd"] else one["segmentation"]
        for part in parts:
            bits = part if one["iscrowd"] else np.array(part, np.float32).view(np.int32).tolist()
            words += [CATEGORIES.index(one["category_id"]) + 1, int(one["iscrowd"]), len(bits), *bits]
    return np.array(words, np.int32)


def test_masks_of_labels(tmp_path: Path) -> None:
    found = read(tmp_path, pixelwise_masks=True)
    painted = 0
    for row, image in zip(found, sorted(SIZES), strict=True):
        wanted = paint_parts(mask_words(image), *SIZES[image])
        assert row[3].dtype == np.int32
        np.testing.assert_array_equal(row[3], wanted)
        painted += len(np.unique(wanted))
    assert painted > 7


def test_masks_of_random_polygons_are_those_of_the_plain_form(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    data: dict[str, Any] = {"images": [], "annotations": [], "categories": [{"id": 1}]}
    for i in range(60):
        h, w = (int(n) for n in rng.integers(1, 40, 2))
        data["images"].append({"id": i, "file_name": f"{i}.jpg", "height": h, "width": w})
        corners = rng.random((int(rng.integers(1, 9)), 2)) * [3 * w, 3 * h] - [w, h]
        if i % 3 == 0:
            corners = corners.round()  # edges along rows and columns, corners that coincide
        one = {"image_id": i, "category_id": 1, "bbox": [0, 0, 9, 9], "segmentation": [corners.reshape(-1).tolist()]}
        data["annotations"].append(one)
    found = read(tmp_path, data, pixelwise_masks=True)
    for row, image, one in zip(found, data["images"], data["annotations"], strict=True):
        bits = np.array(one["segmentation"][0], np.float32).view(np.int32)
        words = np.concatenate([np.array([1, 0, len(bits)], np.int32), bits])
        np.testing.assert_array_equal(row[3], paint_parts(words, image["height"], image["width"]))


def test_run_lengths_in_compressed_form() -> None:
    assert _uncompressed("").tolist() == []
    assert _uncompressed("0123").tolist() == [0, 1, 2, 4]  # from the fourth on, a difference to the last but one
    assert _uncompressed("P10").tolist() == [32, 0]
    assert _uncompressed("12O").tolist() == [1, 2, -1]


@pytest.mark.parametrize("settings", [{"batch_size": 1}, {"batch_size": 3, "num_threads": 1}])
def test_shuffled_samples_are_those_of_the_epoch_in_order(tmp_path: Path, settings: dict[str, Any]) -> None:
    files = write(tmp_path, content())
    arguments = {**files, "image_ids": True, "pixelwise_masks": True}

    def numbered(**order: Any) -> dict[int, list[Any]]:
        found = rows(lambda: fn.readers.coco(**arguments, **order), **settings)
        return {int(row[4][0]): [x.tolist() for x in row] for row in found}

    assert numbered(random_shuffle=True) == numbered()
    parts = [numbered(num_shards=2, shard_id=i) for i in range(2)]
    assert parts[0] | parts[1] == numbered()
    assert numbered(sampler=[2, 0]).keys() == {7, 3}


def test_parsed_annotations_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(cache))
    monkeypatch.setattr("stoker.readers._index_files._LEAST_BYTES", 1)
    files = write(tmp_path, content())
    os.utime(files["annotations_file"], ns=(10**18, 10**18))

    def once() -> list[Any]:
        return [[x.tolist() for x in row] for row in rows(lambda: fn.readers.coco(**files, polygon_masks=True))]

    first = once()
    (entry,) = cache.glob("*.coco")
    monkeypatch.setattr("stoker.readers._coco._parse", lambda path: pytest.fail("parsed again"))
    assert once() == first
    monkeypatch.undo()
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(cache))
    for damage in (b"", b"PK\3\4 damaged", entry.read_bytes()[:-30]):
        entry.write_bytes(damage)
        assert once() == first


RUNS = {"counts": [], "size": [20, 30]}


def _changed(**change: Any) -> dict[str, Any]:
    data = content()
    data["annotations"][0] |= change
    return data


@pytest.mark.parametrize(("data", "arguments", "message"), [
    ({"images": [], "annotations": 3}, {}, "a list of objects as `annotations`"),
    ({"images": []}, {}, "expected images in"),
    (_changed(bbox=[1, 2, 3]), {}, "x, y, width and height as `bbox`"),
    (_changed(bbox=[1, 2, 3, float("nan")]), {}, "as `bbox`"),
    (_changed(category_id=4), {}, "a category in `categories` for each annotation of .*got none for 4"),
    (_changed(category_id="5"), {}, "a whole number as `category_id`, got '5'"),
    (_changed(segmentation=[[1.0, 2.0, 3.0]]), {"polygon_masks": True}, "pairs of coordinates"),
    (_changed(segmentation=[[1.0, 2.0, 3.0]]), {"pixelwise_masks": True}, "pairs of coordinates"),
    (_changed(segmentation=RUNS | {"counts": [700]}), {"pixelwise_masks": True}, "run lengths of 600 pixels, got 700"),
    (_changed(segmentation=RUNS | {"size": [30, 20]}), {"pixelwise_masks": True}, "width, .20, 30., as `size`"),
    (_changed(segmentation=3), {"masks": True}, "expected polygons or run lengths"),
    ({**content(), "images": [*content()["images"], content()["images"][0]]}, {}, "images of different `id`, got 7"),
    ({**content(), "categories": []}, {}, "a category in `categories`"),
    (content(), {"size_threshold": 1e6, "skip_empty": True}, "expected images in"),
    (content(), {"masks": True, "pixelwise_masks": True}, "polygons or `pixelwise_masks`, got both"),
    (content(), {"polygon_masks": True, "pixelwise_masks": True}, "polygons or `pixelwise_masks`, got both"),
    (content(), {"preprocessed_annotations": "folder"}, "expected `annotations_file`"),
])  # fmt: skip
def test_faults(tmp_path: Path, data: dict[str, Any], arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        read(tmp_path, data, **arguments)


def _plain(found: list[tuple[Any, ...]]) -> list[list[Any]]:
    return [[x.tolist() for x in row] for row in found]


@pytest.mark.parametrize("shape", [[[1.0, 2.0, 3.0]], RUNS | {"counts": [700]}, RUNS | {"size": [5, 5]}, "text"])
def test_a_faulty_shape_matters_only_to_readers_that_return_it(tmp_path: Path, shape: Any) -> None:
    data = _changed(segmentation=shape)
    assert _plain(read(tmp_path, data)) == _plain(read(tmp_path))
    others = {"polygon_masks": True, "images": ["im3.jpg", "im12.jpg"]}
    assert _plain(read(tmp_path, data, **others)) == _plain(read(tmp_path, **others))
    if isinstance(shape, dict):  # run lengths are no polygons
        assert len(read(tmp_path, data, polygon_masks=True)) == len(SIZES)


def test_a_polygon_without_vertices(tmp_path: Path) -> None:
    data = _changed(segmentation=[[]])
    row = read(tmp_path, data, polygon_masks=True)[2]
    assert row[3][0].tolist() == [0, 0, 0]
    other = read(tmp_path, _changed(segmentation=[]), polygon_masks=True)[2]
    assert row[3][1:].tolist() == other[3].tolist() and row[4].tolist() == other[4].tolist()
    empty, none = (read(tmp_path, _changed(segmentation=s), pixelwise_masks=True) for s in ([[]], []))
    assert _plain(empty) == _plain(none)


def test_both_forms_of_polygons_are_positions_of_coordinates(tmp_path: Path) -> None:
    assert _plain(read(tmp_path, masks=True, polygon_masks=True)) == _plain(read(tmp_path, masks=True))


def test_a_file_without_annotations_or_sizes(tmp_path: Path) -> None:
    data = content()
    for image in data["images"]:
        del image["height"], image["width"]
    assert _plain(read(tmp_path, data)) == _plain(read(tmp_path))
    with pytest.raises(ArgumentError, match="`height` and `width` of every image"):
        read(tmp_path, data, pixelwise_masks=True)
    del data["annotations"]
    found = read(tmp_path, data, polygon_masks=True, image_ids=True)
    assert [(len(row[1]), len(row[2]), len(row[3]), int(row[5][0])) for row in found] == [
        (0, 0, 0, i) for i in (3, 5, 7, 12)
    ]


def test_absolute_names_of_images(tmp_path: Path) -> None:
    data = content()
    files = write(tmp_path, data)
    for image in data["images"][::2]:
        image["file_name"] = str(tmp_path / image["file_name"])
    (tmp_path / "b.json").write_text(json.dumps(data))
    other = files | {"annotations_file": str(tmp_path / "b.json")}
    assert _plain(rows(lambda: fn.readers.coco(**other))) == _plain(rows(lambda: fn.readers.coco(**files)))


def test_large_numbers_and_annotations_of_no_image(tmp_path: Path) -> None:
    data = content()
    number = 1 << 40
    data["images"][0]["id"] = number
    for one in data["annotations"]:
        if one["image_id"] == 7:
            one["image_id"] = number
    assert len(read(tmp_path, data)[-1][1]) == len(kept(7))
    with pytest.raises(ArgumentError, match="numbers of 32 bits as `id` of images"):
        read(tmp_path, data, image_ids=True)
    data = content()
    data["annotations"][0]["image_id"] = 999
    with pytest.warns(RuntimeWarning, match="1 annotations of .* belong to none of its images"):
        read(tmp_path, data)
