# SPDX-License-Identifier: Apache-2.0
"""Order of rows: shards over one global order, epochs in sequence."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.contract.reader import OpenSource, Shards
from stoker.executor.schedule import AtEnd, Rows, Schedule
from stoker.readers.order import PermutedOrder


def schedule(size: int, shard: int = 0, shards: int = 1, *, shuffle: bool = True, seed: int = 5) -> Schedule:
    source = OpenSource(PermutedOrder(size, shuffle), (), "", Shards(shards, shard))
    return Schedule({0: source}, (0,), seed)


def epoch_of(s: Schedule, batch: int) -> list[int]:
    taken: list[int] = []
    while (rows := s.next(batch, "stop")) is not None:
        taken += rows.indices[0].tolist()
    return taken


def take(s: Schedule, batch: int) -> Rows:
    rows = s.next(batch, "go_on")
    assert rows is not None
    return rows


SIZES = st.integers(1, 60)
SHARDS = st.integers(1, 7)
BATCH = st.integers(1, 20)


@given(SIZES, SHARDS, BATCH)
def test_shards_cover_all_samples_and_are_equally_long(size: int, shards: int, batch: int) -> None:
    parts = [epoch_of(schedule(size, i, shards), batch) for i in range(shards)]
    assert {len(p) for p in parts} == {-(-size // shards)}
    everything = sorted(x for p in parts for x in p)
    assert set(everything) == set(range(size))
    extra = len(everything) - size
    assert 0 <= extra < shards  # Rows that fill the last round start the order again.


@given(SIZES, SHARDS, BATCH, st.data())
def test_the_rows_of_all_shards_are_a_prefix_of_one_order(
    size: int, shards: int, batch: int, data: st.DataObject
) -> None:
    whole = epoch_of(schedule(size), 1)
    count = data.draw(st.integers(0, size // shards))
    taken = []
    for i in range(shards):
        s, mine = schedule(size, i, shards), []
        while len(mine) < count:
            mine += take(s, min(batch, count - len(mine))).indices[0].tolist()
        taken.append(mine)
    together = [taken[i][k] for k in range(count) for i in range(shards)]
    assert together == whole[: count * shards]


@given(SIZES, BATCH)
def test_batch_sizes_do_not_change_the_order(size: int, batch: int) -> None:
    assert epoch_of(schedule(size), batch) == epoch_of(schedule(size), 1)


def test_epochs_are_concatenated() -> None:
    s = schedule(5)
    rows = [take(s, 3) for _ in range(5)]
    assert [r.epochs.tolist() for r in rows] == [[0, 0, 0], [0, 0, 1], [1, 1, 1], [1, 2, 2], [2, 2, 2]]
    indices = np.concatenate([r.indices[0] for r in rows])
    for epoch in range(3):
        assert sorted(indices[epoch * 5 : epoch * 5 + 5].tolist()) == list(range(5))
    assert len({tuple(indices[i * 5 : i * 5 + 5]) for i in range(3)}) == 3
    assert all(np.array_equal(r.keys, r.indices[0].astype(np.uint64)) for r in rows)


def test_an_epoch_ends_with_a_smaller_batch_and_then_none() -> None:
    s = schedule(7)
    assert [len(take(s, 4)), len(s.next(4, "stop") or ())] == [4, 3]
    assert s.next(4, "stop") is None
    assert s.next(4, "stop") is None
    s.start_epoch(1)
    assert len(s.next(4, "stop") or ()) == 4


def test_the_last_batch_can_be_filled_from_the_next_epoch() -> None:
    s = schedule(7)
    s.next(4, "fill")
    last = s.next(4, "fill")
    assert last is not None
    assert last.epochs.tolist() == [0, 0, 0, 1]
    assert s.next(4, "fill") is None
    s.start_epoch(1)
    begin = s.next(4, "fill")
    assert begin is not None
    assert begin.indices[0][0] == last.indices[0][-1]  # The epoch still starts with this sample.


@pytest.mark.parametrize(("before", "after"), [(2, 3), (4, 1), (1, 4)])
def test_another_number_of_shards_continues_at_the_position_of_the_previous(before: int, after: int) -> None:
    size, whole = 37, epoch_of(schedule(37), 1)
    first = [schedule(size, i, before) for i in range(before)]
    for s in first:
        take(s, 5)
    consumed = first[0].consumed(first[0].position)
    assert consumed == 5 * before
    rest = []
    for i in range(after):
        s = schedule(size, i, after)
        s.seek(0, consumed)
        rest.append(epoch_of(s, 4))
    together = [part[k] for k in range(len(rest[0])) for part in rest if k < len(part)]
    assert together[: size - consumed] == whole[consumed:]


class OneByOne(PermutedOrder):
    """Order whose rows are computed for each batch alone."""

    is_pure = False


STEP = st.one_of(st.tuples(st.just("next"), st.integers(0, 600)), st.tuples(st.just("seek"), st.integers(0, 4000)))


@settings(max_examples=60)
@given(
    st.integers(1, 3000), st.integers(1, 3), st.booleans(), st.booleans(), st.sampled_from(get_args(AtEnd)),
    st.lists(STEP, max_size=12),
)  # fmt: skip
def test_rows_that_are_computed_together_equal_rows_of_batches(
    size: int, shards: int, contiguous: bool, padded: bool, at_end: AtEnd, steps: list[tuple[str, int]]
) -> None:
    part = Shards(shards, 0, is_contiguous=contiguous, is_padded=padded)
    sources = [
        {0: OpenSource(kind(size, True), shards=part), 1: OpenSource(kind(size + 7, True), shards=part)}
        for kind in (PermutedOrder, OneByOne)
    ]
    together, alone = (Schedule(s, (0, 1), 5) for s in sources)
    for name, number in steps:
        if name == "seek":
            for s in (together, alone):
                s.seek(number % 3, number)
            continue
        found, wanted = together.next(number, at_end), alone.next(number, at_end)
        assert (together.epoch, together.position) == (alone.epoch, alone.position)
        if found is None or wanted is None:
            assert found is wanted
            continue
        assert (found.epoch, found.position) == (wanted.epoch, wanted.position)
        columns = (
            (found.keys, wanted.keys),
            (found.epochs, wanted.epochs),
            *zip(found.indices, wanted.indices, strict=True),
        )
        for a, b in columns:
            np.testing.assert_array_equal(a, b)
        found.keys[:] = 0  # a user may write to the keys of a batch


def test_without_a_reader_keys_count_up() -> None:
    s = Schedule({}, (), 1)
    assert s.epoch_size is None
    assert take(s, 3).keys.tolist() == [0, 1, 2]
    assert take(s, 2).keys.tolist() == [3, 4]
    assert take(s, 0).keys.tolist() == []


def test_a_second_reader_has_its_own_epochs() -> None:
    sources = {0: OpenSource(PermutedOrder(4)), 3: OpenSource(PermutedOrder(3))}
    s = Schedule(sources, (0, 3), 1)
    rows = take(s, 8)
    assert rows.indices[0].tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert rows.indices[1].tolist() == [0, 1, 2, 0, 1, 2, 0, 1]
    assert rows.keys.tolist() == rows.indices[0].tolist()


def test_an_empty_data_set_has_no_rows() -> None:
    assert schedule(0).next(3, "go_on") is None
