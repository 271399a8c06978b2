# SPDX-License-Identifier: Apache-2.0
"""How torch adds up the values of a large image, where the order of additions is seen in the sum.

Native code repeats the order (``native/torch_sum.hpp``). What differs between machines is how many values torch's
vectors have, which is found by trying, and how many threads share the work, which torch tells.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from .interpolation import fused

EXACT = (1 << 24) // 255  # up to so many bytes, any order gives the same float32
_WAYS, _GRAIN, _MOST_THREADS, _LEVELS = 4, 32768, 64, 4
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
    order = order_of_floats(images)
    if (
        order is None or share_of(pixels, order.threads) > _WAYS * order.lanes * 65000
    ):  # sums of a position are not exact
        return None
    return order


def order_of_floats(images: int) -> Order | None:
    """In which order torch adds up any values of each of ``images``; None if that is not known."""
    threads = torch.get_num_threads() if images == 1 else 1  # else a thread takes whole images
    lanes = _lanes(threads) if threads <= _MOST_THREADS else None
    return Order(lanes, threads) if lanes is not None and adds_floats(Order(lanes, threads)) else None


@functools.cache
def adds_floats(order: Order) -> bool:
    """Whether this machine's torch adds up any floats in this order, with so many threads."""
    rng = np.random.Generator(np.random.PCG64(14))
    counts = (5003, 31_999, 140_011, 150_003, 65_543 * order.threads, 140_021 * order.threads)
    trials = [rng.random(count, np.float32) for count in counts]
    if order.threads != torch.get_num_threads():  # several images: each is one thread's
        trials = trials[:2]
    return all(total_of_floats(trial, *order) == float(torch.from_numpy(trial).sum()) for trial in trials)


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


def share_of(count: int, threads: int) -> int:
    """How many values each thread takes; the last one has what is left."""
    if threads < 2 or count < _GRAIN:
        return count
    return -(-count // min(threads, -(-count // _GRAIN)))


def total(values: Any, lanes: int, threads: int) -> float:
    """The sum of whole numbers, float32 ``(n,)``, as torch has it: the plain twin of native code."""
    return _in_shares(values, lanes, threads, _folded)


def total_of_floats(values: Any, lanes: int, threads: int) -> float:
    """The sum of any floats, in levels: the plain twin of ``native/torch_float_sum.hpp``."""
    return _in_shares(values, lanes, threads, _cascaded)


def _in_shares(values: Any, lanes: int, threads: int, fold: Callable[[Any, int], Any]) -> float:
    share = share_of(len(values), threads)
    sums = [fold(values[at : at + share], lanes) for at in range(0, len(values), share)]
    if threads == 1:
        return float(sums[0])
    return float(_folded(np.array([*sums, *[0.0] * (threads - len(sums))], np.float32), lanes))


def _cascaded(values: Any, lanes: int) -> Any:
    """One thread's sum: of so many rows at a time, of as many of these sums, and so on; what is left comes first."""
    lanes = lanes if len(values) >= lanes else 1
    rows = values[: len(values) // (_WAYS * lanes) * _WAYS * lanes].reshape(-1, _WAYS * lanes)
    power = max(4, (1 if len(rows) <= 2 else (len(rows) - 1).bit_length()) // _LEVELS)
    parts = []
    for _ in range(_LEVELS - 1):
        whole = len(rows) >> power << power
        parts.append(functools.reduce(np.add, rows[whole:], np.zeros(_WAYS * lanes, np.float32)))
        groups = rows[:whole].reshape(-1, 1 << power, _WAYS * lanes)
        rows = np.add.accumulate(groups, axis=1)[:, -1] if len(groups) else np.zeros((0, _WAYS * lanes), np.float32)
    parts.append(functools.reduce(np.add, rows, np.zeros(_WAYS * lanes, np.float32)))
    ways = functools.reduce(np.add, parts).reshape(_WAYS, lanes)
    four, vectors = len(values) // (_WAYS * lanes) * _WAYS * lanes, len(values) // lanes * lanes
    for vector in values[four:vectors].reshape(-1, lanes):
        ways[0] += vector
    return functools.reduce(np.add, [*values[vectors:], *functools.reduce(np.add, ways)], np.float32(0))


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


MOST_PRODUCTS = 15  # weights; more a product of matrices adds up in yet another order
_TOGETHER = 16


def products_in_order(window: tuple[int, int]) -> bool:
    """Whether torch filters small images of one channel by a product of matrices in the order that is repeated.

    ``window``: (width, height).
    """
    fits = window[0] * window[1] <= MOST_PRODUCTS
    return fits and _products_in_order(window, torch.get_num_threads())


@functools.cache
def _products_in_order(window: tuple[int, int], threads: int) -> bool:
    rng = np.random.Generator(np.random.PCG64(15))
    weights = rng.random((window[1], window[0]), np.float32)

    def equal(width: int, height: int) -> bool:
        image = rng.random((height + window[1] - 1, width + window[0] - 1), np.float32)
        made = torch.nn.functional.conv2d(torch.from_numpy(image)[None, None], torch.from_numpy(weights)[None, None])
        return np.array_equal(made[0, 0].numpy(), by_products(image, weights))

    return all(equal(*size) for size in ((47, 37), (33, 20), (131, 121), (16, 16), (11, 1)))


def by_products(image: Any, weights: Any) -> Any:
    """``image`` filtered without its edges: the plain twin of ``native/torch_products.hpp``."""
    height, width = (n - w + 1 for n, w in zip(image.shape, weights.shape, strict=True))
    values = [image[y : y + height, x : x + width].reshape(-1) for y, x in np.ndindex(*weights.shape)]
    w = weights.reshape(-1)

    def four(at: int) -> Any:
        pairs = [fused(values[i], w[i], values[i + 2] * w[i + 2]) for i in (at, at + 1)]
        return pairs[0] + pairs[1]

    def sum_from(at: int, total: Any) -> Any:
        for i in range(at, len(w)):
            total = values[i] * w[i] if total is None else fused(values[i], w[i], total)
        return total

    whole = height * width // _TOGETHER * _TOGETHER
    together = sum_from(8, four(0) + four(4)) if len(w) >= 8 else sum_from(0, None)
    return np.concatenate([together[:whole], sum_from(0, None)[whole:]]).reshape(height, width)
