# SPDX-License-Identifier: Apache-2.0
"""Custom readers of containers, written with public declarations only: contents, orders, shards, tokens, columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, StateError, fn, pipeline_def, samplers
from stoker.readers import Bytes, DataSet, RangeStorage, Values, presence, ragged, strings
from tests.run.containers import (
    COUNT,
    SETTINGS,
    TAR_ORDER,
    ReaderCase,
    as_record,
    as_tar_sample,
    boxes,
    epoch,
    image,
    of_records,
    of_tar,
    payload,
    rows_of,
)

pytestmark = pytest.mark.usefixtures("registered_readers")


def test_rows_have_the_written_contents_in_order(tars: list[str], records: list[str]) -> None:
    with of_tar(paths=tars) as pipe:
        assert [as_tar_sample(row) for row in epoch(pipe)] == TAR_ORDER
    for where in ("file", "memory"):
        with of_records(paths=records, where=where) as pipe:
            assert [as_record(row) for row in epoch(pipe)] == list(range(COUNT))


def test_a_shuffle_has_each_sample_once_and_differs_every_epoch(reader_case: ReaderCase) -> None:
    with reader_case.make(random_shuffle=True) as pipe:
        first = [reader_case.number(row) for row in epoch(pipe)]
        pipe.reset()
        second = [reader_case.number(row) for row in epoch(pipe)]
    assert sorted(first) == sorted(second) == list(range(COUNT))
    assert len({tuple(first), tuple(second), tuple(range(COUNT))}) == 3
    for shape in SETTINGS:
        with reader_case.make(random_shuffle=True, **shape) as pipe:
            assert [reader_case.number(row) for row in epoch(pipe)] == first


def test_the_token_of_every_batch_restores_the_following_rows(reader_case: ReaderCase) -> None:
    rows, tokens = [], []
    with reader_case.make(random_shuffle=True) as pipe:
        for _ in range(9):  # into the second epoch
            tokens.append((len(rows), json.loads(json.dumps(pipe.get_state()))))
            rows += rows_of(pipe.run())
    for taken, token in tokens:
        with reader_case.make(random_shuffle=True, batch_size=5, num_threads=1) as pipe:
            pipe.set_state(token)
            count = min(5, len(rows) - taken)
            assert rows_of(pipe.run())[:count] == rows[taken : taken + count]


def test_a_pipeline_with_prefetched_batches_returns_to_a_token(reader_case: ReaderCase) -> None:
    with reader_case.make(random_shuffle=True, prefetch_queue_depth=3) as pipe:
        token = pipe.get_state()
        first = [rows_of(pipe.run()) for _ in range(3)]
        pipe.set_state(token)
        assert [rows_of(pipe.run()) for _ in range(3)] == first


def test_shards_share_an_epoch_and_a_token_is_valid_for_other_numbers_of_shards(reader_case: ReaderCase) -> None:
    with reader_case.make(random_shuffle=True) as pipe:
        order = [reader_case.number(row) for row in epoch(pipe)]
    parts = []
    for shard in range(2):
        with reader_case.make(random_shuffle=True, num_shards=2, shard_id=shard) as pipe:
            parts.append([reader_case.number(row) for row in epoch(pipe)])
    assert [parts[i % 2][i // 2] for i in range(COUNT)] == order
    with reader_case.make(random_shuffle=True, num_shards=2, shard_id=0) as pipe:
        pipe.run()
        token = pipe.get_state(elastic=True)
    with reader_case.make(random_shuffle=True) as pipe:
        pipe.set_state(token)
        assert [reader_case.number(row) for row in epoch(pipe)] == order[8:]


def test_samplers_see_the_labels(records: list[str]) -> None:
    with of_records(paths=records, sampler=samplers.ClassBalanced()) as pipe:
        labels = [int(row[1][0]) for row in epoch(pipe)]
    counts = np.bincount(labels)
    assert len(counts) == 4 and counts.max() - counts.min() <= 4


def test_another_data_set_has_another_fingerprint(tars: list[str]) -> None:
    with of_tar(paths=tars) as pipe:
        token = pipe.get_state()
    with of_tar(paths=tars[::-1]) as pipe, pytest.raises(StateError, match="another data set"):
        pipe.set_state(token)


def test_joined_readers_join_all_columns(tars: list[str], records: list[str]) -> None:
    @pipeline_def(batch_size=4, num_threads=2, seed=3)
    def joined() -> Any:
        args: dict[str, Any] = {"ext": ["img", "box"], "optional": ["box"], "dtypes": {"box": "float32"}}
        return fn.readers.concat([fn.own.tar(paths=[path], **args) for path in tars])

    with joined() as pipe:
        rows = epoch(pipe)
    for row, number in zip(rows, TAR_ORDER, strict=True):
        img, box, has_box, part = row
        assert img.tobytes() == image(number) and part.tolist() == [number % 2]
        assert box.tolist() == (boxes(number) if number % 4 else boxes(number)[:0]).tolist()
        assert bool(has_box) == (number % 4 != 0)

    @pipeline_def(batch_size=4, num_threads=2, seed=3)
    def mixed(where: str) -> Any:
        return fn.readers.mix([fn.own.records(paths=[p], where=where) for p in records], label_offsets=[0, 10, 20])

    for where in ("file", "memory"):
        with mixed(where) as pipe:
            rows = epoch(pipe)
        assert len(rows) == COUNT
        for data, label, points, _, part in rows:
            assert label[0] // 10 == part[0]
            same = [i for i in range(COUNT) if payload(i)[0] == data.tobytes() and i % 4 == label[0] % 10]
            assert any(points.tolist() == payload(i)[2].reshape(-1, 2).tolist() for i in same)

    @pipeline_def(batch_size=4, num_threads=2)
    def unlike() -> Any:
        return fn.readers.concat([fn.own.tar(paths=tars, ext=["img"]), fn.own.records(paths=records)])

    with pytest.raises(ArgumentError, match=r"expected parts with the same columns, got \[\['img'\], \['payload',"):
        unlike().build()

    @pipeline_def(batch_size=4, num_threads=2)
    def of_unlike_storages() -> Any:
        return fn.readers.concat([fn.own.records(paths=[records[0]], where=w) for w in ("file", "memory")])

    with pytest.raises(ArgumentError, match=r"'payload' of uint8, 1 axes \(RangeStorage\), .* \(MemoryStorage\)"):
        of_unlike_storages().build()


# ---- absent components ----


def test_an_absent_component_is_refused_unless_it_is_declared_optional(tars: list[str]) -> None:
    refused = rf"expected 'box' in every sample, got none in sample 0 \({tars[0]} at byte \d+\), and in 6 of 23"
    with pytest.raises(ArgumentError, match=refused):
        of_tar(paths=tars, optional=["txt"]).build()


def test_an_optional_column_has_no_elements_in_rows_without_it() -> None:
    column = Values("box", np.arange(12.0).reshape(3, 4), absent=[False, True, False], optional=True)
    assert column.row(1).shape == (0,) and column.row(2).tolist() == [8, 9, 10, 11]
    assert presence(column).values.tolist() == [True, False, True]
    with pytest.raises(ArgumentError, match="expected 'box' in every sample, got none in sample 1, and in 1 of 3"):
        DataSet((Values("box", np.zeros((3, 4)), absent=[False, True, False]),), "")
    with pytest.raises(ArgumentError, match="expected at least one axis in an optional column"):
        Values("number", np.zeros(3), optional=True)


# ---- invalid declarations ----


def test_invalid_columns_and_storages_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    storage = RangeStorage([path], [0, 0], [0, 4], [4, 4])
    with pytest.raises(ArgumentError, match="columns of equally many samples"):
        DataSet((Bytes("a", storage), Values("b", np.zeros(3))), "")
    with pytest.raises(ArgumentError, match="columns of different names"):
        DataSet((Bytes("a", storage), Values("a", np.zeros(2))), "")
    with pytest.raises(ArgumentError, match="one int32 per sample in the column 'b' of labels"):
        DataSet((Bytes("a", storage), Values("b", np.zeros(2))), "", "b")
    with pytest.raises(ArgumentError, match="expected a column of"):
        DataSet((Bytes("a", storage),), "", "b")
    with pytest.raises(ArgumentError, match="expected at least one sample"):
        DataSet((Values("b", np.zeros((0, 3))),), "")
    with pytest.raises(ArgumentError, match="expected at least one column"):
        DataSet((), "")
    with pytest.raises(ArgumentError, match="a fingerprint in hexadecimal digits, got 'mine'"):
        DataSet((Bytes("a", storage),), "mine")
    with pytest.raises(ArgumentError, match="a layout of 1 axes"):
        Bytes("a", storage, layout="HW")
    with pytest.raises(ArgumentError, match="expected numbers in the column 'b'"):
        Values("b", np.asarray(["text"]))
    with pytest.raises(ArgumentError, match="ends that rise to 3"):
        ragged("r", np.zeros((3, 2)), [2, 1, 3])
    with pytest.raises(ArgumentError, match="in files that there are"):
        RangeStorage([path], [1], [0], [4])
    with pytest.raises(ArgumentError, match="expected numbers from 0"):
        RangeStorage([path], [0], [-1], [4])
    with pytest.raises(ArgumentError, match="one file, offset and length per record"):
        RangeStorage([path], [0], [0, 1], [4, 4])
    texts = strings("t", ["a", None, "bc"], optional=True)
    assert [texts.row(i).tobytes() for i in range(3)] == [b"a", b"", b"bc"]
    assert presence(texts).values.tolist() == [True, False, True]
