# SPDX-License-Identifier: Apache-2.0
"""The order of a shuffled epoch: a keyed permutation with random access."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.contract.random import permute
from stoker.native import _native
from stoker.readers.order import PermutedOrder

SIZES = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 63, 64, 65, 255, 256, 257, 1000, 1023, 1024, 1025, 4095, 4097, 5000)


def order(size: int, seed: int = 1, epoch: int = 0) -> np.ndarray:
    return permute(seed, epoch, size, np.arange(size, dtype=np.int64))


@pytest.mark.parametrize("size", SIZES)
def test_every_index_comes_once(size: int) -> None:
    assert sorted(order(size).tolist()) == list(range(size))


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 5000), st.integers(0, 2**63 - 1), st.integers(0, 1000))
def test_it_is_a_permutation_for_any_size_seed_and_epoch(size: int, seed: int, epoch: int) -> None:
    taken = _native.permute(seed, epoch, size, np.arange(size, dtype=np.int64))
    assert np.array_equal(np.sort(taken), np.arange(size))
    probe = np.arange(0, size, max(1, size // 50), dtype=np.int64)
    assert np.array_equal(taken[probe], permute(seed, epoch, size, probe))


@pytest.mark.parametrize("size", [5, 1000, 4097])
def test_any_position_is_known_without_the_others(size: int) -> None:
    whole = order(size)
    rng = np.random.default_rng(0)
    for _ in range(20):
        at = rng.integers(0, size, 3)
        assert np.array_equal(permute(1, 0, size, at), whole[at])
        assert np.array_equal(_native.permute(1, 0, size, at), whole[at])


def test_sizes_of_many_bits_are_reached_without_a_table() -> None:
    size = 10**12 + 39
    at = np.asarray([0, 1, size - 1, 123_456_789_012], np.int64)
    native = _native.permute(5, 2, size, at)
    assert np.array_equal(native, permute(5, 2, size, at))
    assert len(set(native.tolist())) == 4
    assert (native >= 0).all()
    assert (native < size).all()


def test_seed_and_epoch_are_keys() -> None:
    orders = {tuple(order(100, seed, epoch).tolist()) for seed in (0, 1, 2**40) for epoch in range(5)}
    assert len(orders) == 15


def test_it_looks_shuffled() -> None:
    """The original order is not visible: neighbours are far apart, and about one element is a fixed point."""
    size, fixed = 1000, []
    for epoch in range(50):
        taken = order(size, 3, epoch)
        gaps = np.abs(np.diff(taken))
        assert 250 < gaps.mean() < 420  # In a random order, the mean distance of neighbours is a third of the size.
        assert abs(np.corrcoef(taken, np.arange(size))[0, 1]) < 0.15
        fixed.append(int(np.sum(taken == np.arange(size))))
    assert 0.5 < np.mean(fixed) < 1.7


def test_the_readers_order_uses_it() -> None:
    positions = np.arange(50, dtype=np.int64)
    shuffled = PermutedOrder(50, shuffle=True)
    assert np.array_equal(shuffled.indices(9, 4, positions), permute(9, 4, 50, positions))
    assert np.array_equal(
        PermutedOrder(50, shuffle=True, seed=2).indices(9, 4, positions), permute(2, 4, 50, positions)
    )
    assert np.array_equal(PermutedOrder(50).indices(9, 4, positions), positions)
    later = PermutedOrder(50, shuffle=True, shuffle_from_epoch=1)
    assert np.array_equal(later.indices(9, 0, positions), positions)
    assert not np.array_equal(later.indices(9, 1, positions), positions)
