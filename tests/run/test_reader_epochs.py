# SPDX-License-Identifier: Apache-2.0
"""Pipelines with several readers: the sizes of their epochs, and the reader whose epochs count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stoker.dali as dali
from stoker import ArgumentError, Pipeline, fn

FILES = [f"{n}.jpg" for n in range(6)]


@pytest.fixture(autouse=True)
def empty_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create the files of the labels: the pipelines read them and do not decode them."""
    monkeypatch.chdir(tmp_path)
    for name in FILES:
        Path(name).write_bytes(b"x")


def labels_of(count: int, **reader: Any) -> Any:
    return fn.readers.file(files=FILES[:count], labels=list(range(count)), **reader)[1] + 0


def pipeline(*readers: dict[str, Any], make: Any = Pipeline, **settings: Any) -> Any:
    pipe = make(batch_size=3, num_threads=1, seed=3, device_id=None, **settings)
    with pipe:
        pipe.set_outputs(*(labels_of(**reader) for reader in readers))
    return pipe


def epoch_of(pipe: Any) -> list[list[int]]:
    """Return the labels of each reader in the first epoch."""
    found: list[list[int]] = [[] for _ in range(pipe.num_outputs)]
    with pipe:
        while (delivered := pipe.next()) is not None:
            for rows, batch in zip(found, pipe.execution.batches(delivered), strict=True):
                rows += batch.as_array().ravel().tolist()
    return found


def test_readers_with_epochs_of_different_sizes_are_refused() -> None:
    text = (
        r"expected readers with epochs of one size, got `readers.file` 'Images' with 6 samples "
        r"\(made at .*test_reader_epochs.py:\d+\) and `readers.file` with 5 samples \(made at .*\): "
        r"their rows do not belong together.*epoch_reader"
    )
    with pytest.raises(ArgumentError, match=text):
        pipeline({"count": 6, "name": "Images"}, {"count": 5}).build()
    with pytest.raises(ArgumentError, match=r"6 samples in 2 shards .*6 samples \("):
        pipeline({"count": 6, "num_shards": 2, "shard_id": 0}, {"count": 6}).build()


@pytest.mark.parametrize(
    "readers",
    [
        ({"count": 6}, {"count": 6, "random_shuffle": True}),
        ({"count": 6}, {"count": 4, "sampler": [0, 1, 2, 3, 3, 2]}),
    ],
)
def test_readers_with_epochs_of_one_size(readers: tuple[dict[str, Any], ...]) -> None:
    assert [len(rows) for rows in epoch_of(pipeline(*readers))] == [6, 6]


def test_the_reader_whose_epochs_count() -> None:
    readers = {"count": 6, "name": "Images"}, {"count": 4, "name": "Others"}
    assert epoch_of(pipeline(*readers, epoch_reader="Images")) == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 0, 1]]
    assert epoch_of(pipeline(*readers, epoch_reader="Others")) == [[0, 1, 2, 3], [0, 1, 2, 3]]


@pytest.mark.parametrize("name", ["Image", "x", "", 3])
def test_names_of_no_reader(name: Any) -> None:
    with pytest.raises(ArgumentError, match=r"there is no reader called|expected the name of a reader"):
        pipeline({"count": 6, "name": "Images"}, epoch_reader=name).build()


def test_scripts_of_dali_run_with_a_warning() -> None:
    readers = {"count": 6, "name": "Images"}, {"count": 4}
    pipe = pipeline(*readers, make=dali.pipeline.Pipeline)
    with pytest.warns(RuntimeWarning, match=r"6 samples .* and .* with 4 samples.*their rows do not belong together"):
        pipe.build()
    pipe.run()
    pipe.close()
    named = pipeline(*readers, make=dali.pipeline.Pipeline, epoch_reader="Images")
    named.build()
    named.close()
