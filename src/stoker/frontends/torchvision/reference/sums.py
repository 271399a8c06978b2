# SPDX-License-Identifier: Apache-2.0
"""Order of additions in torch's sums over large images, on which the sums depend.

Native code repeats the order (``native/shared/torch_sum.hpp``). Two properties differ between machines: the number of
values in torch's vectors, found by trials, and the number of threads that share the work, which torch reports.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from . import trial_cache
from .interpolation import fused_multiply_add

EXACT = (1 << 24) // 255  # up to this many bytes every order gives the same float32
_WAYS, _GRAIN, _MAX_THREADS, _LEVELS = 4, 32768, 64, 4
_LANES = (8, 16, 4)


class Order(NamedTuple):
    """Values per vector (0: the sum is exact), and number of threads."""

    lanes: int
    threads: int


_ANY = Order(0, 1)


def sum_order(pixels: int, images: int) -> Order | None:
    """Return the order in which torch adds ``pixels`` bytes of each of ``images``; None if unknown."""
    if pixels <= EXACT:
        return _ANY
    order = float_sum_order(images)
    if (
        order is None or values_per_thread(pixels, order.threads) > _WAYS * order.lanes * 65000
    ):  # sums of a position are not exact
        return None
    return order


def float_sum_order(images: int) -> Order | None:
    """Return the order in which torch adds arbitrary floats of each of ``images``; None if unknown."""
    threads = torch.get_num_threads() if images == 1 else 1  # with several images each thread sums whole ones
    lanes = trial_cache.find_once(("lanes", threads), lambda: _find_lanes(threads)) if threads <= _MAX_THREADS else None
    return Order(lanes, threads) if lanes is not None and is_float_sum_order(Order(lanes, threads)) else None


def is_float_sum_order(order: Order) -> bool:
    """Return whether this machine's torch adds floats in this order, with this number of threads."""
    return trial_cache.find_once(("sums of floats", order, torch.get_num_threads()), lambda: _is_float_sum_order(order))


def _is_float_sum_order(order: Order) -> bool:
    rng = np.random.Generator(np.random.PCG64(14))
    counts = (5003, 31_999, 140_011, 150_003, 65_543 * order.threads, 140_021 * order.threads)
    trials = [rng.random(count, np.float32) for count in counts]
    if order.threads != torch.get_num_threads():  # several images: one thread sums each of them
        trials = trials[:2]
    return all(sum_floats(trial, *order) == float(torch.from_numpy(trial).sum()) for trial in trials)


def _find_lanes(threads: int) -> int | None:
    """Return the vector size of this machine, with this number of threads; None if unknown."""
    rng = np.random.Generator(np.random.PCG64(9))
    # Enough values that each thread's sum is rounded.
    counts = (131_072 * threads, 150_037 * threads + 11, 180_003 * threads)
    trials = [rng.integers(128, 256, count, np.uint8).astype(np.float32) for count in counts]
    wanted = [float(torch.from_numpy(trial).sum()) for trial in trials]
    return next(
        (n for n in _LANES if all(sum_integers(t, n, threads) == w for t, w in zip(trials, wanted, strict=True))), None
    )


def values_per_thread(count: int, threads: int) -> int:
    """Return the number of values per thread. The last thread takes the rest."""
    if threads < 2 or count < _GRAIN:
        return count
    return -(-count // min(threads, -(-count // _GRAIN)))


def sum_integers(values: Any, lanes: int, threads: int) -> float:
    """Return the sum of integers, float32 ``(n,)``, equal to torch's: the plain twin of native code."""
    return _sum_by_thread(values, lanes, threads, _fold)


def sum_floats(values: Any, lanes: int, threads: int) -> float:
    """Return the sum of floats in levels: the plain twin of ``native/torch/float_sum.hpp``."""
    return _sum_by_thread(values, lanes, threads, _cascade)


def _sum_by_thread(values: Any, lanes: int, threads: int, fold: Callable[[Any, int], Any]) -> float:
    share = values_per_thread(len(values), threads)
    sums = [fold(values[at : at + share], lanes) for at in range(0, len(values), share)]
    if threads == 1:
        return float(sums[0])
    return float(_fold(np.array([*sums, *[0.0] * (threads - len(sums))], np.float32), lanes))


def _cascade(values: Any, lanes: int) -> Any:
    """Return one thread's sum, in levels.

    Rows are summed in groups, the group sums again in groups, and so on. The remainders of the first level come first.
    """
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


def _fold(values: Any, lanes: int) -> Any:
    """Return one thread's sum."""
    lanes = lanes if len(values) >= lanes else 1  # fewer values than a vector are added one by one
    four, vectors = len(values) // (_WAYS * lanes) * _WAYS * lanes, len(values) // lanes * lanes
    parts = np.add.accumulate(values[:four].reshape(-1, _WAYS, lanes), axis=0)[-1] if four else None
    parts = np.zeros((_WAYS, lanes), np.float32) if parts is None else parts
    for vector in values[four:vectors].reshape(-1, lanes):
        parts[0] += vector
    lane_sums = functools.reduce(np.add, parts)
    return functools.reduce(np.add, [*values[vectors:], *lane_sums], np.float32(0))


def is_filter_in_order(channels: int, window: tuple[int, int], size: tuple[int, int]) -> bool:
    """Return whether torch filters an image by fused multiply-adds in the order of the window's weights.

    Args:
        channels: of the image.
        window: (width, height).
        size: of the image, (width, height).
    """
    key = ("filter", channels, window, size, torch.get_num_threads())
    return trial_cache.find_once(key, lambda: _is_filter_in_order(channels, window, size))


def _is_filter_in_order(channels: int, window: tuple[int, int], size: tuple[int, int]) -> bool:
    rng = np.random.Generator(np.random.PCG64(11))
    image = rng.integers(0, 256, (channels, size[1], size[0])).astype(np.float32)
    weights = rng.random((window[1], window[0])).astype(np.float32)
    wide = torch.from_numpy(weights).expand(channels, 1, *weights.shape)
    result = torch.nn.functional.conv2d(torch.from_numpy(image)[None], wide, groups=channels)[0].numpy()
    return all(np.array_equal(plane, filter_in_order(x, weights)) for plane, x in zip(result, image, strict=True))


def filter_in_order(image: Any, weights: Any) -> Any:
    """Return ``image`` without its edges, filtered by fused multiply-adds in the order of the window's weights."""
    height, width = (n - w + 1 for n, w in zip(image.shape, weights.shape, strict=True))
    total = np.zeros((height, width), np.float32)
    for y, x in np.ndindex(*weights.shape):
        total = fused_multiply_add(image[y : y + height, x : x + width], weights[y, x], total)
    return total


MAX_PRODUCTS = 15  # weights; torch adds more of them in yet another order unless one by one
_TOGETHER = 16
BY_FOURS, ONE_BY_ONE = 1, 2  # orders of matrix products: MKL's kernels for AVX-512 and for AVX2
_PRODUCTS_TRIALS = ((47, 37), (33, 20), (131, 121), (16, 16), (11, 1))


def product_order(window: tuple[int, int]) -> int | None:
    """Return the order in which torch filters small one-channel images by a matrix product; None if unknown.

    ``window``: (width, height).
    """
    return trial_cache.find_once(("products", window, torch.get_num_threads()), lambda: _find_product_order(window))


def _find_product_order(window: tuple[int, int]) -> int | None:
    rng = np.random.Generator(np.random.PCG64(15))
    weights = rng.random((window[1], window[0]), np.float32)
    images = [rng.random((h + window[1] - 1, w + window[0] - 1), np.float32) for w, h in _PRODUCTS_TRIALS]
    kernel = torch.from_numpy(weights)[None, None]
    result = [torch.nn.functional.conv2d(torch.from_numpy(image)[None, None], kernel)[0, 0].numpy() for image in images]

    def equal(twin: Callable[[Any, Any], Any]) -> bool:
        return all(np.array_equal(x, twin(image, weights)) for x, image in zip(result, images, strict=True))

    if weights.size <= MAX_PRODUCTS and equal(filter_by_products):
        return BY_FOURS
    return ONE_BY_ONE if equal(filter_in_order) else None


def filter_by_products(image: Any, weights: Any) -> Any:
    """Return ``image`` without its edges, filtered by products: the plain twin of ``native/torch/products.hpp``."""
    height, width = (n - w + 1 for n, w in zip(image.shape, weights.shape, strict=True))
    values = [image[y : y + height, x : x + width].reshape(-1) for y, x in np.ndindex(*weights.shape)]
    w = weights.reshape(-1)

    def four(at: int) -> Any:
        pairs = [fused_multiply_add(values[i], w[i], values[i + 2] * w[i + 2]) for i in (at, at + 1)]
        return pairs[0] + pairs[1]

    def sum_from(at: int, total: Any) -> Any:
        for i in range(at, len(w)):
            total = values[i] * w[i] if total is None else fused_multiply_add(values[i], w[i], total)
        return total

    whole = height * width // _TOGETHER * _TOGETHER
    together = sum_from(8, four(0) + four(4)) if len(w) >= 8 else sum_from(0, None)
    return np.concatenate([together[:whole], sum_from(0, None)[whole:]]).reshape(height, width)
