# SPDX-License-Identifier: Apache-2.0
"""Shards: strided or contiguous parts of equal size, and padding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.contract.reader import OpenSource, Shards
from stoker.executor.schedule import Schedule
from stoker.readers.order import PermutedOrder, WeightedOrder


def joined(batches: list[list[int]]) -> list[int]:
    return [x for batch in batches for x in batch]


SIZES = st.integers(1, 60)
NUMBERS = st.integers(1, 7)
BATCH = st.integers(1, 20)
EPOCHS = st.integers(0, 5)


ONE = Shards()


def schedule(size: int, shards: Shards = ONE, *, shuffle: bool = False) -> Schedule:
    return Schedule({0: OpenSource(PermutedOrder(size, shuffle), (), "", shards)}, (0,), 5)


def epoch_of(s: Schedule, batch: int, at_end: Any = "stop") -> list[list[int]]:
    found = []
    while (rows := s.next(batch, at_end)) is not None:
        found.append(rows.indices[0].tolist())
    return found


@settings(max_examples=80, deadline=None)
@given(SIZES, NUMBERS, BATCH, EPOCHS, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_shards_divide_every_epoch_equally(
    size: int, number: int, batch: int, epoch: int, contiguous: bool, sticks: bool, pads: bool, shuffle: bool
) -> None:
    each = -(-size // number)
    everything: list[int] = []
    lengths = set()
    for i in range(number):
        s = schedule(size, Shards(number, i, contiguous, sticks, pads), shuffle=shuffle)
        s.start_epoch(epoch)
        batches = epoch_of(s, batch)
        lengths.add((len(batches), sum(map(len, batches))))
        everything += [x for b in batches for x in b]
    assert lengths == {(-(-each // batch), each)}, "as many batches on every rank"
    assert set(everything) == set(range(size)), "nothing is lost"
    assert len(everything) - size < number, "only the padding that makes them equally long repeats"


@settings(max_examples=60, deadline=None)
@given(SIZES, NUMBERS, BATCH, st.booleans(), st.sampled_from(["stop", "fill"]))
def test_batches_are_equal_in_number_and_size_on_all_ranks(
    size: int, number: int, batch: int, contiguous: bool, at_end: str
) -> None:
    """The iterators' PARTIAL, DROP and FILL rely on this."""
    shapes = {
        tuple(map(len, epoch_of(schedule(size, Shards(number, i, contiguous)), batch, at_end))) for i in range(number)
    }
    assert len(shapes) == 1
    if at_end == "fill":
        assert set(shapes.pop()) == {batch}


@pytest.mark.parametrize(("size", "number"), [(10, 3), (7, 7), (9, 2), (3, 5)])
def test_contiguous_shards_begin_where_dalis_do(size: int, number: int) -> None:
    for i in range(number):
        taken = [x for b in epoch_of(schedule(size, Shards(number, i, is_contiguous=True)), 4) for x in b]
        low, high = i * size // number, (i + 1) * size // number
        assert taken[: high - low] == list(range(low, high))
        assert [x % size for x in range(low, low + len(taken))] == taken, "completed with the samples that follow"


@pytest.mark.parametrize("contiguous", [False, True])
def test_a_shard_takes_the_next_part_in_every_epoch_unless_it_sticks(contiguous: bool) -> None:
    def parts(sticks: bool) -> list[list[int]]:
        s = schedule(9, Shards(3, 1, contiguous, sticks))
        found = []
        for epoch in range(4):
            s.start_epoch(epoch)
            found.append(joined(epoch_of(s, 2)))
        return found

    fixed, moving = parts(True), parts(False)
    assert fixed == [fixed[0]] * 4
    assert moving[0] == fixed[0] == moving[3]
    assert sorted(joined(moving[:3])) == list(range(9))


def test_a_last_batch_is_padded_with_the_last_sample() -> None:
    s = schedule(7, Shards(is_padded=True))
    first, second, third = (s.next(4, "go_on") for _ in range(3))
    assert first is not None and second is not None and third is not None
    assert second.indices[0].tolist() == [4, 5, 6, 6]
    assert second.epochs.tolist() == [0, 0, 0, 0]
    assert third.indices[0].tolist() == [0, 1, 2, 3]
    assert third.epochs.tolist() == [1] * 4
    assert epoch_of(schedule(7, Shards(is_padded=True)), 4, "fill") == [[0, 1, 2, 3], [4, 5, 6, 6]]
    assert epoch_of(schedule(7, Shards(is_padded=True)), 4, "stop") == [[0, 1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize(
    ("contiguous", "expected"),
    [(False, [[0, 3, 6, 9], [1, 4, 7, 7], [2, 5, 8, 8]]), (True, [[0, 1, 2, 2], [3, 4, 5, 5], [6, 7, 8, 9]])],
)
def test_a_part_is_padded_with_its_own_last_sample(contiguous: bool, expected: list[list[int]]) -> None:
    assert [joined(epoch_of(schedule(10, Shards(3, i, contiguous, is_padded=True)), 3)) for i in range(3)] == expected


@settings(max_examples=60, deadline=None)
@given(SIZES, NUMBERS, BATCH, st.booleans(), st.data())
def test_a_padded_stream_can_be_resumed_anywhere(
    size: int, number: int, batch: int, contiguous: bool, data: st.DataObject
) -> None:
    shards = Shards(number, number - 1, contiguous, is_padded=True)
    s = schedule(size, shards, shuffle=True)
    marks, rows = [], []
    for _ in range(8):
        marks.append((s.epoch, s.consumed(s.position)))
        taken = s.next(batch, "go_on")
        assert taken is not None
        assert len(taken) == batch, "padded batches are whole"
        rows.append(taken)
    at = data.draw(st.integers(0, 7))
    other = schedule(size, shards, shuffle=True)
    other.seek(*marks[at])
    for want in rows[at:]:
        got = other.next(batch, "go_on")
        assert got is not None
        assert np.array_equal(got.indices[0], want.indices[0]) and np.array_equal(got.epochs, want.epochs)


# ---- substitutes ----


@settings(max_examples=60, deadline=None)
@given(SIZES, NUMBERS, st.integers(0, 3), st.booleans())
def test_substitutes_follow_from_the_row_alone(size: int, number: int, attempt: int, shuffle: bool) -> None:
    alone = schedule(size, shuffle=shuffle)
    rows = alone.next(size, "stop")
    assert rows is not None
    expected = dict(zip(rows.keys.tolist(), _substitutes(alone, rows, attempt), strict=True))
    for i in range(number):
        s = schedule(size, Shards(number, i), shuffle=shuffle)
        mine = s.next(size, "stop")
        assert mine is not None
        found = dict(zip(mine.keys.tolist(), _substitutes(s, mine, attempt), strict=True))
        assert found == {k: expected[k] for k in found}


def _substitutes(s: Schedule, rows: Any, attempt: int) -> list[int]:
    return s.substitutes(rows, list(range(len(rows))), attempt).indices[0].tolist()


def test_a_contiguous_part_keeps_to_its_own_files() -> None:
    s = schedule(30, Shards(3, 1, is_contiguous=True, is_sticky=True))
    rows = s.next(10, "stop")
    assert rows is not None
    for attempt in range(20):
        assert set(_substitutes(s, rows, attempt)) <= set(range(10, 20))


def test_readers_of_one_group_are_substituted_together() -> None:
    sources = {k: OpenSource(PermutedOrder(20, True), (), "", Shards(2, 1)) for k in (0, 4)}
    s = Schedule(sources, (0, 4), 1)
    rows = s.next(5, "stop")
    assert rows is not None
    others = s.substitutes(rows, [1, 3], 0)
    assert others.indices[0].tolist() == others.indices[1].tolist()
    assert others.keys.tolist() == rows.keys[[1, 3]].tolist(), "a row keeps its key"


def test_substitutes_are_spread() -> None:
    order = WeightedOrder(1000, np.cumsum(np.ones(1000)))
    s = Schedule({0: OpenSource(order)}, (0,), 1)
    rows = s.next(1000, "stop")
    assert rows is not None
    assert len(set(_substitutes(s, rows, 0))) > 350
    assert _substitutes(s, rows, 0) != _substitutes(s, rows, 1)
