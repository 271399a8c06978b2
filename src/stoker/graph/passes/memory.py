# SPDX-License-Identifier: Apache-2.0
"""Memory: assignment of scratch buffers to the values of a segment. Values with disjoint lifetimes share a buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def share_buffers(lives: Mapping[int, tuple[int, int]], share: bool = True) -> tuple[dict[int, int], int]:
    """Return buffer numbers by value, and the number of buffers.

    Args:
        lives: first and last step (both inclusive) of every value that needs scratch memory.
        share: False gives every value a buffer of its own.
    """
    buffers: dict[int, int] = {}
    busy_until: list[int] = []
    for value, (start, end) in sorted(lives.items(), key=lambda item: item[1]):
        free = [b for b, until in enumerate(busy_until) if until < start] if share else []
        if free:
            buffer = free[0]
            busy_until[buffer] = end
        else:
            buffer = len(busy_until)
            busy_until.append(end)
        buffers[value] = buffer
    return buffers, len(busy_until)


def last_uses(
    order: Sequence[tuple[Sequence[int], Sequence[int]]], aliases: Mapping[int, Sequence[int]]
) -> dict[int, tuple[int, int]]:
    """Return first and last step of every value in ``order`` (reads, writes per step). A view keeps its base alive."""
    lives: dict[int, tuple[int, int]] = {}

    def touch(value: int, at: int) -> None:
        first, _ = lives.get(value, (at, at))
        lives[value] = (first, at)
        for root in aliases.get(value, ()):
            touch(root, at)

    for at, (read, written) in enumerate(order):
        for v in (*read, *written):
            touch(v, at)
    return lives
