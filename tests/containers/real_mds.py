# SPDX-License-Identifier: Apache-2.0
"""Shards of MosaicML Streaming's own writer: ``make test-containers``.

The package's ``__init__`` modules import every data set and store that it knows, and thereby transformers, torchvision
and clients of four clouds. Its writer and reader of MDS files need none of them, so these modules are left out.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker import ArgumentError, fn
from tests.containers.data import rows

COUNT = 40
COLUMNS = {
    "image": "jpeg", "raw": "bytes", "text": "str", "label": "int", "weight": "float32", "small": "uint8",
    "half": "float16", "box": "ndarray:float32:2,3",
}  # fmt: skip


@pytest.fixture(scope="module")
def streaming() -> Iterator[Any]:
    """Return a function that imports a module of the package."""
    found = importlib.util.find_spec("streaming")
    assert found is not None and found.submodule_search_locations, "the environment lacks mosaicml-streaming"
    folder = Path(next(iter(found.submodule_search_locations)))
    before = set(sys.modules)
    for name in ("streaming", "streaming.base", "streaming.base.format"):
        package = ModuleType(name)
        package.__path__ = [str(folder.joinpath(*name.split(".")[1:]))]
        sys.modules[name] = package
    yield lambda name: importlib.import_module(f"streaming.base.{name}")
    for name in set(sys.modules) - before:
        if name.split(".")[0] == "streaming":
            del sys.modules[name]


def sample(i: int) -> dict[str, Any]:
    rng = np.random.default_rng(i)
    return {
        "image": Image.fromarray(rng.integers(0, 256, (8 + i, 9, 3), np.uint8)), "raw": rng.bytes(i * 211 % 3000),
        "text": "ä" * (i % 7), "label": -i, "weight": np.float32(i / 3), "small": np.uint8(i),
        "half": np.float16(i / 8), "box": rng.random((2, 3), np.float32),
    }  # fmt: skip


def write(streaming: Any, folder: Path, **settings: Any) -> str:
    writer = streaming("format.mds.writer").MDSWriter
    with writer(out=str(folder), columns=COLUMNS, size_limit=1 << 14, exist_ok=True, **settings) as out:
        for i in range(COUNT):
            out.write(sample(i))
    return str(folder)


def test_samples_are_those_of_its_own_reader(streaming: Any, tmp_path: Path) -> None:
    path = write(streaming, tmp_path, hashes=["sha1", "xxh64"])
    shards = json.loads((tmp_path / "index.json").read_text())["shards"]
    assert len(shards) > 3, "several shards"
    own = streaming("format.mds.reader").MDSReader
    wanted = [own.from_json(path, None, shard)[i] for shard in shards for i in range(shard["samples"])]
    found = rows(lambda: tuple(fn.readers.mds(path=path, columns=list(COLUMNS)).values()))
    assert len(found) == len(wanted) == COUNT
    for i, (row, theirs) in enumerate(zip(found, wanted, strict=True)):
        image, raw, text, label, weight, small, half, box = row
        pixels = np.asarray(Image.open(io.BytesIO(image.tobytes())).convert("RGB"))
        assert np.array_equal(pixels, np.asarray(theirs["image"].convert("RGB")))
        assert (raw.tobytes(), text.tobytes().decode()) == (theirs["raw"], theirs["text"])
        for mine, name in ((label, "label"), (weight, "weight"), (small, "small"), (half, "half")):
            assert mine.shape == (1,) and mine[0] == theirs[name] == sample(i)[name]
        assert box.dtype == np.float32 and np.array_equal(box, theirs["box"])


def test_shuffled_epochs_have_each_sample_once(streaming: Any, tmp_path: Path) -> None:
    path = write(streaming, tmp_path)
    labels = rows(lambda: fn.readers.mds(path=path, columns=["label"], random_shuffle=True)["label"])
    assert sorted(-int(label[0]) for (label,) in labels) == list(range(COUNT))


def test_compressed_shards_are_refused(streaming: Any, tmp_path: Path) -> None:
    path = write(streaming, tmp_path, compression="zstd")
    with pytest.raises(ArgumentError, match="compress"):
        rows(lambda: fn.readers.mds(path=path, columns=["raw"]))
