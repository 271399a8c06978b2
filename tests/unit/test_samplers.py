# SPDX-License-Identifier: Apache-2.0
"""Samplers: the samples of an epoch, random access, and repeated samples as separate rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker import ArgumentError, DataError, StateError, samplers
from stoker.contract.random import Stream, part_key, permute_by
from stoker.contract.reader import BoundSampler, Shards
from stoker.native import _native
from stoker.readers._samplers import as_sampler, quotas
from stoker.readers.order import PermutedOrder, QuotaOrder

ONE = Shards()


def bind(sampler: Any, size: int, labels: Any = None, shards: Shards = ONE) -> BoundSampler:
    return as_sampler(sampler).bind(size, None if labels is None else np.asarray(labels, np.int32), shards, None)


def epoch(order: BoundSampler, number: int = 0, seed: int = 5) -> list[int]:
    assert order.size is not None
    return order.indices(seed, number, np.arange(order.size, dtype=np.int64)).tolist()


# ---- the native forms against the plain ones ----


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**63 - 1), st.data())
def test_permutations_of_parts_have_a_plain_twin(seed: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    parts = [data.draw(st.integers(-1, 2000)) for _ in range(count)]
    epochs = [data.draw(st.integers(0, 10**6)) for _ in range(count)]
    sizes = [data.draw(st.integers(1, 5000)) for _ in range(count)]
    at = [data.draw(st.integers(0, n - 1)) for n in sizes]
    got = _native.permute_each(seed, *(np.asarray(x, np.int64) for x in (parts, epochs, sizes, at)))
    plain = [
        int(permute_by(part_key(seed, p, e), n, np.asarray([a], np.int64))[0])
        for p, e, n, a in zip(parts, epochs, sizes, at, strict=True)
    ]
    assert got.tolist() == plain


def test_a_position_outside_of_its_part_is_refused() -> None:
    one = np.asarray([0], np.int64)
    with pytest.raises(IndexError, match="outside of its part"):
        _native.permute_each(1, one, one, one + 3, one + 3)


@given(st.integers(0, 2**63 - 1), st.integers(0, 1000), st.lists(st.integers(0, 2**63), max_size=5))
def test_drawn_numbers_have_a_plain_twin(seed: int, number: int, keys: list[int]) -> None:
    got = _native.uniforms(seed, number, 9, np.asarray(keys, np.uint64))
    assert got.tolist() == [Stream(seed, number, k, 9).uniform() for k in keys]


# ---- each sampler ----


def test_sequential_and_shuffled() -> None:
    assert epoch(bind(samplers.Sequential(), 5)) == [0, 1, 2, 3, 4]
    shuffled = bind(samplers.Shuffled(), 50)
    assert sorted(epoch(shuffled)) == list(range(50))
    assert epoch(shuffled) != epoch(shuffled, 1)
    assert epoch(shuffled) == epoch(PermutedOrder(50, True)), "as random_shuffle"
    assert epoch(bind(samplers.Shuffled(3), 50)) == epoch(shuffled, seed=3)
    later = bind(samplers.Shuffled(first_epoch=2), 9)
    assert epoch(later, 1) == list(range(9)) != epoch(later, 2)


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 200), st.integers(1, 9), st.integers(0, 5))
def test_fixed_parts_are_shuffled_by_themselves(size: int, number: int, which: int) -> None:
    order = bind(samplers.Shuffled(), size, shards=Shards(number, 0, is_contiguous=True, is_sticky=True))
    taken = epoch(order, which)
    for i in range(number):
        low, high = i * size // number, (i + 1) * size // number
        assert sorted(taken[low:high]) == list(range(low, high))


def test_weighted_draws_in_proportion() -> None:
    order = bind(samplers.Weighted([0, 1, 3, 0, 6], num_samples=20_000), 5)
    assert order.size == 20_000
    counts = Counter(epoch(order))
    assert set(counts) == {1, 2, 4}
    for sample, share in ((1, 0.1), (2, 0.3), (4, 0.6)):
        assert abs(counts[sample] / 20_000 - share) < 0.015
    assert epoch(order) != epoch(order, 1)
    assert bind(samplers.Weighted([1, 1]), 2).size == 2


@pytest.mark.parametrize("size", [1, 2, 7, 24, 25, 26, 240, 241])
@pytest.mark.parametrize(("block", "window"), [(1, 1), (1, 9), (6, 1), (6, 2), (6, 4), (5, 3), (300, 2), (4, 1 << 40)])
def test_windows_have_each_sample_once_and_few_blocks(size: int, block: int, window: int) -> None:
    order = bind(samplers.Windowed(block, window), size)
    orders = []
    for number in range(4):
        found = order.indices(5, number, np.arange(size))
        assert sorted(found.tolist()) == list(range(size))
        one_by_one = [int(order.indices(5, number, np.asarray([p]))[0]) for p in range(size)]
        assert found.tolist() == one_by_one, "random access"
        width = min(window, size) * block
        for begin in range(0, size, width):
            few = len(set((found[begin : begin + width] // block).tolist()))
            assert few <= window + 1 and (size % block or few <= window)
        orders.append(found.tolist())
    if size > 20:
        assert len(set(map(tuple, orders))) == 4
    assert (order.keys(0, np.arange(size), found) == found).all()


def test_windows_place_every_sample_everywhere() -> None:
    """Over many epochs each sample comes early about as often as every other one, in the short block as well."""
    order = bind(samplers.Windowed(4, 2), 22)
    early = np.zeros(22)
    for number in range(2000):
        early[order.indices(1, number, np.arange(11))] += 1
    assert (np.abs(early / 2000 - 0.5) < 0.12).all()


def test_wrong_windows_are_refused() -> None:
    for block, window in ((0, 1), (1, 0), (-1, 1), (1.5, 1), ("a", 1), (1, None), (1 << 48, 1)):
        with pytest.raises(ArgumentError, match=r"`samplers\.Windowed`: expected `(block|window)` >= 1"):
            samplers.Windowed(block, window)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="`seed`"):
        samplers.Windowed(1, 1, seed=-1)


def test_weights_that_round_to_the_end_stay_inside() -> None:
    order = bind(samplers.Weighted([1e300, 1e-300, 0.0]), 3)
    assert set(epoch(order)) == {0}
    assert order.indices(1, 0, np.arange(100, dtype=np.int64)).max() < 2


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.integers(0, 3))
def test_class_balanced(labels: list[int], which: int) -> None:
    order = bind(samplers.ClassBalanced(), len(labels), labels)
    classes = sorted(set(labels))
    taken = [labels[i] for i in epoch(order, which)]
    start = which * len(labels) % len(classes)  # Blocks continue over the end of an epoch.
    whole = taken[-start % len(classes) :]
    for at in range(0, len(whole) - len(classes) + 1, len(classes)):
        assert sorted(whole[at : at + len(classes)]) == classes, "each class once in each block"


def test_all_samples_of_a_class_come_before_one_repeats() -> None:
    labels = [0] * 7 + [1] * 3
    order = bind(samplers.ClassBalanced(num_samples=28), 10, labels)
    taken = [*epoch(order, 0), *epoch(order, 1)]
    large = [i for i in taken if i < 7]
    small = [i for i in taken if i >= 7]
    assert len(large) == len(small) == 28
    assert all(sorted(large[k : k + 7]) == list(range(7)) for k in range(0, 28, 7)), "across the end of the epoch too"
    assert all(sorted(small[k : k + 3]) == [7, 8, 9] for k in range(0, 27, 3))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_interleaving_keeps_its_proportions_and_has_random_access(quota: list[int], data: st.DataObject) -> None:
    sizes = [data.draw(st.integers(1, 12)) for _ in quota]
    order = QuotaOrder(200, np.asarray(sizes, np.int64), np.asarray(quota, np.int64))
    part, round_, inside = order.parts(7, 0, np.arange(200, dtype=np.int64))
    block = sum(quota)
    for at in range(0, 200 - block + 1, block):
        assert np.bincount(part[at : at + block], minlength=len(quota)).tolist() == quota
    for k, size in enumerate(sizes):
        gone = (round_ * size + inside)[part == k]
        assert gone.tolist() == list(range(len(gone))), "each part comes in order, none left out"
    probe = np.asarray([199, 3, 77], np.int64)
    whole = order.indices(7, 0, np.arange(200, dtype=np.int64))
    assert np.array_equal(order.indices(7, 0, probe), whole[probe])


def test_blocks_of_one_each_have_a_shortcut() -> None:
    order = QuotaOrder(90, np.asarray([3, 4, 5], np.int64), np.ones(3, np.int64))
    part, _, _ = order.parts(7, 0, np.arange(90, dtype=np.int64))
    parts, ranks = order._blocks(7, np.arange(30, dtype=np.int64), 3)
    assert parts.reshape(-1).tolist() == part.tolist()
    assert not ranks.any()


@pytest.mark.parametrize(
    ("weights", "expected"),
    [([1, 1], [1, 1]), ([0.7, 0.3], [7, 3]), ([3, 1], [3, 1]), ([1, 2, 3], [1, 2, 3]), ([0.001, 0.999], [1, 999])],
)
def test_weights_become_small_blocks(weights: list[float], expected: list[int]) -> None:
    assert quotas(weights, "part").tolist() == expected


def test_odd_weights_become_thousandths() -> None:
    found = quotas([2**0.5, np.pi, 1.0], "part")
    assert found.sum() == 1000
    assert np.allclose(found / 1000, np.asarray([2**0.5, np.pi, 1.0]) / (2**0.5 + np.pi + 1), atol=1e-3)
    for wrong in ([0.0, 1.0], [-1, 2], [float("nan"), 1], [1e-9, 1]):
        with pytest.raises(ArgumentError, match="expected `weights`"):
            quotas(wrong, "part")


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 5), st.booleans())
def test_mixed_data_sets(which: int, shuffle: bool) -> None:
    order = bind(samplers.Mixed([7, 50], [0.75, 0.25], 40, shuffle=shuffle), 57)
    taken = epoch(order, which)
    assert [sum(i < 7 for i in taken[at : at + 4]) for at in range(0, 40, 4)] == [3] * 10
    stream = [i for e in range(4) for i in epoch(order, e)]
    small, large = [i for i in stream if i < 7], [i for i in stream if i >= 7]
    assert all(sorted(small[k : k + 7]) == list(range(7)) for k in range(0, len(small) - 6, 7))
    assert len(set(large)) == len(large) == 40, "none of the larger part comes again before all have come"
    found = order.indices(5, 0, np.arange(40, dtype=np.int64))
    assert order.keys(0, np.arange(40, dtype=np.int64), found).tolist() == list(range(40))


# ---- custom samplers ----


class Backwards:
    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._size - 1, -1, -1))


def test_a_list_of_numbers() -> None:
    order = bind([4, 2, 0], 5)
    assert epoch(order) == epoch(order, 3) == [4, 2, 0]
    found = order.indices(1, 0, np.asarray([1, 2], np.int64))
    assert order.keys(0, np.asarray([1, 2], np.int64), found).tolist() == [2, 0], "each once: the sample is the key"
    assert order.forward_only is None
    repeated = bind(np.asarray([1, 1, 2]), 3)
    at = np.arange(3, dtype=np.int64)
    assert repeated.keys(0, at, repeated.indices(1, 0, at)).tolist() == [0, 1, 2], "samples repeat: the place is"
    assert epoch(bind(range(2, 4), 5)) == [2, 3]


def test_an_iterable_runs_once_per_epoch() -> None:
    order = bind(Backwards(4), 9)
    assert order.size == 4
    assert epoch(order) == epoch(order, 1) == [3, 2, 1, 0]
    assert order.forward_only is not None and "Backwards" in order.forward_only


def test_torch_samplers() -> None:
    data = list(range(10))
    order = bind(torch.utils.data.SequentialSampler(data), 10)
    assert epoch(order) == data
    drawn = bind(torch.utils.data.RandomSampler(data, generator=torch.Generator().manual_seed(1)), 10)
    first = epoch(drawn)
    assert sorted(first) == data
    assert epoch(drawn) == first, "an epoch that is read again is unchanged"
    assert epoch(drawn, 1) != first
    assert drawn.forward_only
    many = bind(torch.utils.data.WeightedRandomSampler([1.0, 0.0], 6), 2)
    assert epoch(many) == [0] * 6
    assert many.keys(0, np.arange(6), np.zeros(6, np.int64)).tolist() == list(range(6))


def test_a_sampler_that_follows_from_the_epoch_can_be_resumed() -> None:
    make = lambda rank: torch.utils.data.DistributedSampler(list(range(10)), num_replicas=2, rank=rank, seed=3)  # noqa: E731
    order = bind(make(1), 10)
    assert order.forward_only is None
    assert epoch(order, 4) == epoch(bind(make(1), 10), 4) != epoch(order, 5)
    assert sorted([*epoch(order, 2), *epoch(bind(make(0), 10), 2)]) == list(range(10))


def test_an_endless_sampler_runs_forward() -> None:
    def forever() -> Iterator[int]:
        while True:
            yield from (2, 0, 1)

    order = bind(forever(), 3)
    assert order.size is None
    assert order.indices(1, 0, np.arange(5, dtype=np.int64)).tolist() == [2, 0, 1, 2, 0]
    assert order.indices(1, 0, np.arange(2, 7, dtype=np.int64)).tolist() == [1, 2, 0, 1, 2]
    assert order.forward_only
    ended = bind(iter([0, 1]), 3)
    with pytest.raises(DataError, match="taken to be endless, but ended after 2 numbers"):
        ended.indices(1, 0, np.arange(3, dtype=np.int64))


def test_the_cache_of_an_endless_sampler_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stoker.readers.order._WINDOW", 8)
    order: Any = bind(iter(range(10**6)), 10**6)
    for start in range(0, 400, 4):
        at = np.arange(start, start + 4, dtype=np.int64)
        assert order.indices(1, 0, at).tolist() == at.tolist()
        assert len(order._kept) <= 20
    with pytest.raises(StateError, match="cannot go back"):
        order.indices(1, 0, np.asarray([0], np.int64))


@pytest.mark.parametrize(
    ("sampler", "text"),
    [
        (3, "expected `sampler` to be one of stoker.samplers"),
        (samplers.Shuffled, "expected `sampler` to be one of stoker.samplers"),
        ([], "expected `sampler` to be a list of whole numbers"),
        ([0.5], "expected `sampler` to be a list of whole numbers"),
        ([0, 9], "expected `sampler` to give numbers from 0 to 4, got 9"),
        (samplers.Weighted([1, 2]), "expected a weight for each of 5 samples, got 2"),
        (samplers.ClassBalanced(), "expected a data set with labels"),
        (samplers.Mixed([2, 2], [1, 1]), r"sum to the 5 samples of the data set, got \[2, 2\]"),
    ],
)
def test_values_that_are_no_samplers(sampler: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        bind(sampler, 5)


@pytest.mark.parametrize("weights", [[], [0, 0], [-1, 2], [float("nan")], [float("inf")], [[1.0]]])
def test_weights_are_checked(weights: Any) -> None:
    with pytest.raises(ArgumentError, match="expected `weights` to be one finite number >= 0 per sample"):
        samplers.Weighted(weights)
    with pytest.raises(ArgumentError, match="expected `num_samples` >= 1"):
        samplers.ClassBalanced(0)
    with pytest.raises(ArgumentError, match="expected `sizes` >= 1"):
        samplers.Mixed([0, 3], [1, 1])
    with pytest.raises(ArgumentError, match="expected a weight for each of 2 parts, got 1"):
        samplers.Mixed([1, 3], [1])


def test_wrong_numbers_are_errors() -> None:
    order = bind(Words(), 5)
    with pytest.raises(DataError, match="expected whole numbers from the sampler, got 'one'"):
        epoch(order)
    with pytest.raises(DataError, match="expected 3 numbers from the sampler, as its length says, got 1"):
        epoch(bind(Short(), 5))


class Words:
    def __len__(self) -> int:
        return 2

    def __iter__(self) -> Iterator[Any]:
        return iter(["one", "two"])


class Short:
    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[int]:
        return iter([0])


# ---- buckets of like length ----

LENGTHS = st.lists(st.floats(0, 100), min_size=1, max_size=120)


@settings(max_examples=60, deadline=None)
@given(LENGTHS, st.integers(1, 40), st.integers(1, 130), st.booleans(), st.integers(0, 3))
def test_bucketed_orders_have_every_sample_once(
    lengths: list[float], group: int, buckets: int, shuffle: bool, number: int
) -> None:
    order = bind(samplers.Bucketed(lengths, group, buckets=buckets, shuffle=shuffle), len(lengths))
    taken = epoch(order, number)
    assert sorted(taken) == list(range(len(lengths)))
    for at in range(0, len(lengths), 7):  # random access
        assert order.indices(5, number, np.asarray([at], np.int64)).tolist() == [taken[at]]


def test_batches_of_buckets_have_like_lengths() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.uniform(1, 16, 1000)
    order = bind(samplers.Bucketed(lengths, 16, buckets=10), 1000)

    def padding(taken: list[int]) -> float:
        batches = [lengths[taken[i : i + 16]] for i in range(0, 1000, 16)]
        return sum(len(b) * b.max() for b in batches) / lengths.sum() - 1

    first, second = epoch(order), epoch(order, 1)
    assert padding(first) < 0.12 < 0.5 < padding(epoch(bind(samplers.Shuffled(), 1000)))
    assert first != second and padding(second) < 0.12
    groups = [frozenset(first[i : i + 16]) for i in range(0, 1000, 16)]
    assert not set(groups) & {frozenset(second[i : i + 16]) for i in range(0, 1000, 16)}, "others meet in every epoch"
    means = [float(lengths[list(g)].mean()) for g in groups]
    assert means != sorted(means) and np.corrcoef(means, np.arange(len(means)))[0, 1] < 0.5, "short and long mix"
    in_order = epoch(bind(samplers.Bucketed(lengths, 16, shuffle=False), 1000))
    assert (np.diff(lengths[in_order]) >= 0).all()


def test_the_order_of_buckets_does_not_depend_on_shards() -> None:
    sampler = samplers.Bucketed(np.arange(50.0), 8, seed=3)
    whole = bind(sampler, 50)
    for number in (2, 3):
        parts = [bind(sampler, 50, shards=Shards(number, k)) for k in range(number)]
        assert all(epoch(p) == epoch(whole) for p in parts)


def test_limits_of_buckets() -> None:
    order = bind(samplers.Bucketed([1, 9, 2, 8, 5, 1], 2, buckets=[2, 6]), 6)
    taken = epoch(order)
    pairs = {frozenset(taken[i : i + 2]) for i in (0, 2, 4)}
    assert pairs == {frozenset(p) for p in ((0, 5), (2, 4), (1, 3))}


@pytest.mark.parametrize(
    "args",
    [([], 2), ([1, -1], 2), ([1, np.nan], 2), (["a"], 2), ([1.0], 0), ([1.0], 1.5)],
)
def test_bucketed_refuses(args: Any) -> None:
    with pytest.raises(ArgumentError, match=r"samplers\.Bucketed"):
        samplers.Bucketed(*args)


def test_bucketed_refuses_other_buckets() -> None:
    for buckets in (0, [2, 1], [np.inf], "x", 1.5):
        with pytest.raises(ArgumentError, match=r"samplers\.Bucketed"):
            samplers.Bucketed([1.0, 2.0], 2, buckets=buckets)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="for each of 3 samples, got 2"):
        bind(samplers.Bucketed([1.0, 2.0], 2), 3)
