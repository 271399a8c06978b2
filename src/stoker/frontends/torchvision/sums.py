# SPDX-License-Identifier: Apache-2.0
"""How torch adds up the values of a large image, where the order of additions is seen in the sum.

Native code repeats the order (``native/torch_sum.hpp``). What differs between machines is how many values torch's
vectors have, which is found by trying, and how many threads share the work, which torch tells.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import torch

EXACT = (1 << 24) // 255  # up to so many bytes, any order gives the same float32
_WAYS, _GRAIN, _MOST_THREADS = 4, 32768, 64
_LANES = (8, 16, 4)


class Order(NamedTuple):
    """How many values a vector has (0: the sum is exact), and how many threads there are."""

    lanes: int
    threads: int


_ANY = Order(0, 1)


def order_of(pixels: int, images: int) -> Order | None:
    """In which order torch adds up ``pixels`` bytes of each of ``images``; None if that is not known."""
    if pixels <= EXACT:
        return _ANY
    threads = torch.get_num_threads() if images == 1 else 1  # else a thread takes whole images
    lanes = _lanes(threads) if threads <= _MOST_THREADS else None
    if lanes is None or _share(pixels, threads) > _WAYS * lanes * 65000:  # sums of one position are no longer exact
        return None
    return Order(lanes, threads)


@functools.cache
def _lanes(threads: int) -> int | None:
    """Of this machine, with so many threads."""
    rng = np.random.Generator(np.random.PCG64(9))
    # So many that each thread's sum is rounded.
    counts = (131_072 * threads, 150_037 * threads + 11, 180_003 * threads)
    trials = [rng.integers(128, 256, count, np.uint8).astype(np.float32) for count in counts]
    wanted = [float(torch.from_numpy(trial).sum()) for trial in trials]
    return next(
        (n for n in _LANES if all(total(t, n, threads) == w for t, w in zip(trials, wanted, strict=True))), None
    )


def _share(count: int, threads: int) -> int:
    if threads < 2 or count < _GRAIN:
        return count
    return -(-count // min(threads, -(-count // _GRAIN)))


def total(values: Any, lanes: int, threads: int) -> float:
    """The sum of whole numbers, float32 ``(n,)``, as torch has it: the plain twin of native code."""
    share = _share(len(values), threads)
    sums = [_folded(values[at : at + share], lanes) for at in range(0, len(values), share)]
    if threads == 1:
        return float(sums[0])
    return float(_folded(np.array([*sums, *[0.0] * (threads - len(sums))], np.float32), lanes))


def _folded(values: Any, lanes: int) -> Any:
    """One thread's sum."""
    lanes = lanes if len(values) >= lanes else 1  # fewer than a vector are taken one by one
    four, vectors = len(values) // (_WAYS * lanes) * _WAYS * lanes, len(values) // lanes * lanes
    parts = np.add.accumulate(values[:four].reshape(-1, _WAYS, lanes), axis=0)[-1] if four else None
    parts = np.zeros((_WAYS, lanes), np.float32) if parts is None else parts
    for vector in values[four:vectors].reshape(-1, lanes):
        parts[0] += vector
    lane_sums = functools.reduce(np.add, parts)
    return functools.reduce(np.add, [*values[vectors:], *lane_sums], np.float32(0))


def filters_in_order(channels: int, window: tuple[int, int], size: tuple[int, int]) -> bool:
    """Whether torch filters an image of ``size`` (width, height) by multiply-adds in the order of the window's weights.

    ``window``: (width, height).
    """
    return _filters_in_order(channels, window, size, torch.get_num_threads())


@functools.cache
def _filters_in_order(channels: int, window: tuple[int, int], size: tuple[int, int], threads: int) -> bool:
    rng = np.random.Generator(np.random.PCG64(11))
    image = rng.integers(0, 256, (channels, size[1], size[0])).astype(np.float32)
    weights = rng.random((window[1], window[0])).astype(np.float32)
    wide = torch.from_numpy(weights).expand(channels, 1, *weights.shape)
    made = torch.nn.functional.conv2d(torch.from_numpy(image)[None], wide, groups=channels)[0].numpy()
    total = np.zeros_like(made)
    for y, x in np.ndindex(*weights.shape):
        value = image[:, y : y + made.shape[1], x : x + made.shape[2]].astype(np.float64)  # products are exact
        total = (value * np.float64(weights[y, x]) + total).astype(np.float32)
    return np.array_equal(made, total)
