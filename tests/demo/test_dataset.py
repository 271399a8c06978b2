# SPDX-License-Identifier: Apache-2.0
"""The synthetic data set: reproducible from the seed, written completely or not at all, never over other files."""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stoker.demo import dataset, photos, recipe

needs_photos = pytest.mark.skipif(
    not any(name.name == photos.DISTRIBUTION for name in metadata.distributions()),
    reason=f"{photos.DISTRIBUTION} is not installed",
)

COUNT = 70


@pytest.fixture(scope="module")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("demo") / "data"
    assert dataset.make(root, COUNT, workers=2).is_new
    return root


def digests(root: Path) -> dict[str, str]:
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in root.rglob("*.jpg")
    }


@needs_photos
def test_a_data_set_is_created_once_and_reused(data_set: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in data_set.rglob("*")}
    again = dataset.make(data_set, COUNT)
    assert not again.is_new
    assert again.count == len(digests(data_set)) == COUNT
    assert again.size_bytes == sum(path.stat().st_size for path in data_set.rglob("*.jpg"))
    assert {path: path.stat().st_mtime_ns for path in data_set.rglob("*")} == before
    assert "SYNTHETIC" in (data_set / "README.txt").read_text()


@needs_photos
def test_the_seed_decides_not_the_number_of_processes(data_set: Path, tmp_path: Path) -> None:
    done: list[int] = []
    dataset.make(tmp_path / "same", COUNT, workers=1, progress=done.append)
    dataset.make(tmp_path / "other", COUNT, seed=1, workers=1)
    assert sum(done) == COUNT
    assert digests(tmp_path / "same") == digests(data_set)
    assert not set(digests(tmp_path / "other").values()) & set(digests(data_set).values())


@needs_photos
@pytest.mark.parametrize("damage", ["lost", "shorter"])
def test_an_incomplete_data_set_is_replaced(tmp_path: Path, damage: str) -> None:
    root = tmp_path / "data"
    dataset.make(root, 6, workers=1)
    expected = digests(root)
    victim = next(root.rglob("*.jpg"))
    if damage == "lost":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:-1])
    assert dataset.make(root, 6, workers=1).is_new
    assert digests(root) == expected
    assert os.listdir(tmp_path) == ["data"], "nothing unfinished is left beside the set"


@needs_photos
def test_a_failure_leaves_no_files(tmp_path: Path) -> None:
    def fail(count: int) -> None:
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        dataset.make(tmp_path / "data", 3, workers=1, progress=fail)
    assert os.listdir(tmp_path) == []


def test_a_foreign_folder_is_never_touched(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"mine")
    with pytest.raises(dataset.FolderTaken, match="--out"):
        dataset.make(tmp_path, 3)
    (tmp_path / dataset.MANIFEST).write_text(json.dumps({"key": {"format": "something else"}, "files": {}}))
    with pytest.raises(dataset.FolderTaken):
        dataset.make(tmp_path, 3)
    assert (tmp_path / "holiday.jpg").read_bytes() == b"mine"


def test_a_nonsensical_count_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="`count` >= 1, got 0"):
        dataset.make(tmp_path / "data", 0)


@needs_photos
def test_images_resemble_imagenet(data_set: Path) -> None:
    modes: Counter[str] = Counter()
    megapixels, samplings = [], set()
    for path in data_set.rglob("*.jpg"):
        with Image.open(path) as image:
            image.load()
            modes[image.mode] += 1
            megapixels.append(image.width * image.height / 1e6)
            samplings.add(tuple(layer[1:3] for layer in image.layer))  # type: ignore[attr-defined]
    assert set(modes) <= {"RGB", "L"}
    assert modes["RGB"] > 0.85 * COUNT
    assert 0.14 < np.mean(megapixels) < 0.26
    assert len(samplings) >= 3, "4:4:4, 4:2:2 and 4:2:0 all occur"
    assert len({path.parent.name for path in data_set.rglob("*.jpg")}) >= 6


@needs_photos
def test_recipes_stay_within_their_limits() -> None:
    sources = photos.find_photos()
    drawn = [recipe.draw(0, index, sources) for index in range(400)]
    gray = sum(sources[one.photo].gray for one in drawn)
    assert 0 < gray < 0.1 * len(drawn)
    assert {one.quality for one in drawn} <= set(range(75, 97))
    assert 0.15 < np.mean([one.height > one.width for one in drawn]) < 0.45


def test_missing_photographs_are_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(photos, "DISTRIBUTION", "no-such-distribution-of-photographs")
    with pytest.raises(photos.PhotosMissing, match=r"pip install --no-deps.*--data"):
        photos.find_photos()
