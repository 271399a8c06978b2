# SPDX-License-Identifier: Apache-2.0
"""Readers that stay in step, and partners of rows: the batch size and the shards change nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, Pipeline, fn
from stoker.contract.reader import OpenSource, Shards
from stoker.executor.schedule import Schedule
from stoker.readers._samplers import Shuffled

SIZE = 10
SHARDS = (
    Shards(3, 2), Shards(3, 1, is_contiguous=True), Shards(3, 1, is_padded=True), Shards(1, 0),
    Shards(4, 1, is_sticky=True), Shards(7, 6),
)  # fmt: skip


@pytest.mark.parametrize("shards", SHARDS, ids=str)
def test_sources_of_one_size_stay_in_step(shards: Shards) -> None:
    order = Shuffled().bind(SIZE, None, shards, None)
    sources = {i: OpenSource(order, shards=shards) for i in range(2)}
    schedule = Schedule(sources, (0, 1), 1)
    for _ in range(12):
        rows = schedule.next(3, "go_on")
        assert rows is not None
        np.testing.assert_array_equal(rows.indices[0], rows.indices[1])
        for attempt in range(3):
            other = schedule.substitutes(rows, list(range(len(rows))), attempt)
            np.testing.assert_array_equal(other.indices[0], other.indices[1])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("numbers")
    paths = [folder / f"{i}.bin" for i in range(SIZE)]
    for i, path in enumerate(paths):
        path.write_bytes(bytes([i]))
    return [str(Path(path)) for path in paths]


def pairs(files: list[str], batch_size: int, epochs: int = 3, **options: Any) -> list[tuple[int, ...]]:
    """Return (epoch, label, label of the bytes, labels of the partners, and those of their bytes) of all rows."""
    pipe = Pipeline(batch_size=batch_size, num_threads=2, seed=7)
    with pipe:
        x, label = fn.readers.file(files=files, labels=list(range(SIZE)), random_shuffle=True, **options)
        found = [label, x]
        for k in range(2):
            other, other_label = fn.readers.partner(x, number=k)
            found += [other_label, other]
        pipe.set_outputs(*found)
    rows = []
    with pipe:
        for epoch in range(epochs):
            while (delivered := pipe.next(at_end="exact")) is not None:
                batch = pipe.execution.batches(delivered)
                columns = [[int(np.asarray(v).reshape(-1)[0]) for v in column] for column in batch]
                rows += [(epoch, *row) for row in zip(*columns, strict=True)]
            pipe.reset()
    return rows


def test_partners_are_others_of_the_epoch(files: list[str]) -> None:
    rows = pairs(files, 4)
    for _, label, data, first, first_data, second, second_data in rows:
        assert label == data and first == first_data and second == second_data
        assert label not in (first, second)
    assert len({row[1:] for row in rows}) > SIZE, "another epoch has other partners"
    assert any(row[3] != row[5] for row in rows), "partners are independent"


def test_batches_change_no_partner(files: list[str]) -> None:
    assert pairs(files, 4) == pairs(files, 1) == pairs(files, 7)


@pytest.mark.parametrize("number", [2, 3])
def test_shards_change_no_partner(files: list[str], number: int) -> None:
    whole = set(pairs(files, 4))
    parts = [pairs(files, 2, shard_id=i, num_shards=number) for i in range(number)]
    assert set().union(*map(set, parts)) == whole


def test_an_epoch_of_one_sample_is_its_own_partner(files: list[str]) -> None:
    pipe = Pipeline(batch_size=1, num_threads=1)
    with pipe:
        x, _ = fn.readers.file(files=files[:1], labels=[5])
        pipe.set_outputs(*fn.readers.partner(x))
    with pipe:
        assert int(np.asarray(pipe.run()[1][0])[0]) == 5


def test_partners_that_are_refused(files: list[str]) -> None:
    def build(define: Any) -> None:
        pipe = Pipeline(batch_size=1, num_threads=1)
        with pipe:
            pipe.set_outputs(*define())
        with pipe:
            pipe.run()

    def reader() -> Any:
        return fn.readers.file(files=files, labels=list(range(SIZE)))

    with pytest.raises(ArgumentError, match="expected `number` from 0 to 63, got 64"):
        build(lambda: fn.readers.partner(reader()[0], number=64))
    with pytest.raises(ArgumentError, match="several outputs of one reader"):
        build(lambda: fn.readers.partner(list(reader())))
    with pytest.raises(ArgumentError, match="expected `reader` to come from readers, got an output of `cast`"):
        build(lambda: fn.readers.partner(fn.cast(reader()[0], dtype="float32")))
