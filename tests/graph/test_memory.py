# SPDX-License-Identifier: Apache-2.0
"""Memory: values share a buffer only if their lifetimes are disjoint."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from stoker.graph.passes.memory import last_uses, share_buffers

LIFE = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda life: (min(life), max(life)))
LIVES = st.lists(LIFE, max_size=30).map(lambda lives: dict(enumerate(lives)))


def overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] <= b[1] and b[0] <= a[1]


@given(LIVES)
def test_values_with_overlapping_lifetimes_have_different_buffers(lives: dict[int, tuple[int, int]]) -> None:
    buffers, count = share_buffers(lives)
    assert set(buffers) == set(lives)
    assert set(buffers.values()) == set(range(count))
    for a, b in combinations(lives, 2):
        assert buffers[a] != buffers[b] or not overlap(lives[a], lives[b])


@given(LIVES)
def test_no_more_buffers_than_overlapping_values(lives: dict[int, tuple[int, int]]) -> None:
    _, count = share_buffers(lives)
    most = max((sum(start <= at <= end for start, end in lives.values()) for at in range(21)), default=0)
    assert count == most


@given(LIVES)
def test_without_sharing_every_value_has_its_own(lives: dict[int, tuple[int, int]]) -> None:
    buffers, count = share_buffers(lives, share=False)
    assert sorted(buffers.values()) == list(range(count)) == list(range(len(lives)))


def test_a_value_lives_from_its_write_to_its_last_read() -> None:
    order = [((), (1,)), ((1,), (2,)), ((), (3,)), ((1, 3), (4,)), ((2,), (5,))]
    assert last_uses(order, {}) == {1: (0, 3), 2: (1, 4), 3: (2, 3), 4: (3, 3), 5: (4, 4)}


def test_a_view_extends_the_lifetime_of_its_memory() -> None:
    """2 is a view of 1, and 3 a view of 2: reading 3 reads the memory of 1."""
    order = [((), (1,)), ((1,), (2,)), ((2,), (3,)), ((), (4,)), ((3, 4), (5,))]
    lives = last_uses(order, {2: (1,), 3: (2,)})
    assert lives[1] == (0, 4)
    buffers, _ = share_buffers({v: lives[v] for v in (1, 4, 5)})
    assert len(set(buffers.values())) == 3
