# SPDX-License-Identifier: Apache-2.0
"""The law of containers: the rows of files, for each sampler, shard, resume position and batch size."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from stoker import fn, samplers
from tests.containers.data import epoch, pipeline

COUNT = 23
LABELS = [i % 3 for i in range(COUNT)]
WEIGHTS = [1 + i % 4 for i in range(COUNT)]
LENGTHS = [i * 7 % 11 for i in range(COUNT)]
ORDERS: dict[str, Callable[[], dict[str, Any]]] = {
    "in order": dict,
    "random_shuffle": lambda: {"random_shuffle": True},
    "shuffle_after_epoch": lambda: {"shuffle_after_epoch": True},
    "Windowed": lambda: {"sampler": samplers.Windowed(block=4, window=2)},
    "Weighted": lambda: {"sampler": samplers.Weighted(WEIGHTS, num_samples=30)},
    "Mixed": lambda: {"sampler": samplers.Mixed([10, 13], [0.5, 0.5], num_samples=26)},
    "Bucketed": lambda: {"sampler": samplers.Bucketed(LENGTHS, 6, buckets=3)},
    "numbers": lambda: {"sampler": [3, 3, 0, 22, 17, 5, 5, 1, 9]},
    "iterable": lambda: {"sampler": Numbers([8, 2, 8, 21, 0, 13])},
}
SHARDS: tuple[dict[str, Any], ...] = (
    {"num_shards": 2, "shard_id": 1}, {"num_shards": 3, "shard_id": 0, "sharding": "contiguous"},
)  # fmt: skip


class Numbers:
    """Sampler of a user: an iterable of numbers that depend on the epoch."""

    def __init__(self, numbers: list[int]) -> None:
        self._numbers, self._epoch = numbers, 0

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def __iter__(self) -> Any:
        return iter(self._numbers[:: -1 if self._epoch % 2 else 1])

    def __len__(self) -> int:
        return len(self._numbers)


def content(i: int) -> bytes:
    return np.random.default_rng(i).bytes(1 + i * 37 % 300)


def write_files(folder: Path) -> list[str]:
    """Write the records as files, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(COUNT):
        (folder / f"{i:02}.bin").write_bytes(content(i))
    return [str(folder / f"{i:02}.bin") for i in range(COUNT)]


def check(read: Callable[..., Any], files: list[str], order: str) -> None:
    """Compare a reader's rows with those of files: two epochs, each shard, batch size and position.

    Args:
        read: returns the reader's node with the records, for arguments of order and shards.
        files: the records as files.
        order: one of ``ORDERS``.
    """
    for arguments in ({}, SHARDS[list(ORDERS).index(order) % len(SHARDS)]):
        wanted = _of_files(tuple(files), order, tuple(arguments.items()))
        found, states = _epochs(lambda a=arguments: read(**ORDERS[order](), **a), 5)
        assert found == wanted, (order, arguments)
        with pipeline(lambda a=arguments: read(**ORDERS[order](), **a), batch_size=3) as pipe:
            for state, done in states:
                pipe.set_state(state)
                assert _bytes(epoch(pipe)) == wanted[0][done:], (order, arguments, done)


@functools.cache
def _of_files(files: tuple[str, ...], order: str, arguments: tuple[tuple[str, Any], ...]) -> list[list[bytes]]:
    def define() -> Any:
        return fn.readers.file(files=list(files), labels=LABELS, **ORDERS[order](), **dict(arguments))[0]

    return _epochs(define, 4)[0]


def _epochs(define: Callable[[], Any], batch: int) -> tuple[list[list[bytes]], list[tuple[Any, int]]]:
    """Return the rows of two epochs, and the states of the first one with the rows before them."""
    with pipeline(define, batch_size=batch) as pipe:
        first: list[bytes] = []
        states: list[tuple[Any, int]] = []
        while (delivered := pipe.next()) is not None:
            first += _bytes(zip(*pipe.execution.batches(delivered), strict=True))
            states.append((pipe.get_state(), len(first)))
        return [first, _bytes(epoch(pipe))], states[:-1]


def _bytes(rows: Any) -> list[bytes]:
    return [np.array(row[0]).tobytes() for row in rows]
