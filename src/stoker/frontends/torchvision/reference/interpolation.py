# SPDX-License-Identifier: Apache-2.0
"""torch's interpolation of floats, addition by addition: the plain twin of ``native/torch/resize_float.cpp``.

Native code rounds its result to bytes, which hides the last bits that depend on the order of additions. This twin
therefore shows, before rounding, whether this machine's torch adds in the order that native code repeats.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from . import trial_cache

LINEAR, CUBIC = 0, 1  # native/torch/resize.hpp
SMOOTH, APART, TOGETHER, ROUNDED = 0, 1, 2, 3  # the ways of native/shared/torch_resize_float_sum.hpp
_MODES = ("bilinear", "bicubic")
_SIZE = (37, 47)  # (height, width) of the trial image

F = np.float32


def fused_multiply_add(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c`` of float32, rounded once; the product is exact in double."""
    product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
    return (product + np.asarray(c, np.float64)).astype(F)


def multiply_then_add(a: Any, b: Any, c: Any) -> Any:
    """Return ``a * b + c`` of float32, with the product rounded."""
    return np.asarray(a, F) * np.asarray(b, F) + np.asarray(c, F)


def _cubic(a: float, x: Any, smooth: bool) -> Any:
    """Return the cubic filter at ``x >= 0``, with the fused multiply-adds of torch's build."""
    near = fused_multiply_add(a + 2, x, -(a + 3)) * x
    far = fused_multiply_add(fused_multiply_add(a, x, -5 * a), x, 8 * a)
    near, far = (
        (fused_multiply_add(near, x, 1), fused_multiply_add(far, x, -4 * a))
        if smooth
        else (near * x + F(1), far * x + F(-4 * a))
    )
    return np.where(x < 1, near, np.where(x < 2, far, F(0))).astype(F)


def _smooth_taps(kind: int, n: int, out: int) -> list[tuple[int, Any]]:
    """Return (first index, weights) for each output."""
    scale, reach = F(n) / F(out), F(2 if kind else 1)
    support, inverse = (reach * scale, F(1) / scale) if scale >= 1 else (reach, F(1))
    taps = []
    for i in range(out):
        center = scale * (F(i) + F(0.5))
        first, end = max(int(float(center - support) + 0.5), 0), min(int(float(center + support) + 0.5), n)
        places = (np.arange(first, end).astype(F) - center).astype(np.float64) + 0.5
        x = np.abs((places * float(inverse)).astype(F))
        weights = _cubic(-0.5, x, True) if kind else np.where(x < 1, F(1) - x, F(0))
        taps.append((first, weights / functools.reduce(np.add, weights, F(0))))
    return taps


def _smooth(image: Any, kind: int, out: int) -> Any:
    """Filter along the first axis. Products are rounded in groups of four taps after the first, fused afterwards."""
    result = []
    for first, weights in _smooth_taps(kind, len(image), out):
        total = image[first] * weights[0]
        for j in range(1, len(weights)):
            value, rounded = image[first + j], j < 1 + (len(weights) - 1) // 4 * 4
            total = total + value * weights[j] if rounded else fused_multiply_add(value, weights[j], total)
        result.append(total)
    return np.stack(result)


def _sharp_taps(kind: int, n: int, out: int, rounded: bool = False) -> tuple[list[Any], list[Any]]:
    """Return indices and weights of the two or four values of each output.

    ``rounded``: products are rounded where a compiler did not fuse them, except in the position of the cubic filter.
    """
    add = multiply_then_add if rounded else fused_multiply_add
    at = (fused_multiply_add if kind else add)(F(n) / F(out), np.arange(out).astype(F) + F(0.5), F(-0.5))
    real = at if kind else np.maximum(at, F(0))
    if not kind and n == out:
        real = np.arange(out).astype(F)
    here = np.minimum(np.floor(real).astype(np.int64), n - 1)
    part = np.clip(real - here.astype(F), F(0), F(1))
    rest = F(1) - part
    if not kind:
        return [here, np.minimum(here + 1, n - 1)], [rest, part]
    offsets = (part + F(1), part, rest, rest + F(1))
    # An offset of exactly 1 or 2 belongs to the branch of its side.
    weights = [_cubic_branch(x, inner, add) for x, inner in zip(offsets, (False, True, True, False), strict=True)]
    return [np.clip(here + j, 0, n - 1) for j in (-1, 0, 1, 2)], weights


def _cubic_branch(x: Any, inner: bool, add: Callable[[Any, Any, Any], Any]) -> Any:
    a = -0.75
    if inner:
        return add(a + 2, x, -(a + 3)) * x * x + F(1)
    return add(add(a, x, -5 * a), x, 8 * a) * x + F(-4 * a)


def _sharp_sum(values: Sequence[Any], weights: Sequence[Any]) -> Any:
    total = fused_multiply_add(values[0], weights[0], values[1] * weights[1])
    for value, weight in zip(values[2:], weights[2:], strict=True):
        total = fused_multiply_add(value, weight, total)
    return total


def _interpolate_by_axis(image: Any, kind: int, size: tuple[int, int], rounded: bool) -> Any:
    rows, down = _sharp_taps(kind, image.shape[0], size[0], rounded)
    columns, across = _sharp_taps(kind, image.shape[1], size[1], rounded)
    filtered = _sharp_sum([image[:, x] for x in columns], across)
    return _sharp_sum([filtered[y] for y in rows], [w[:, None] for w in down])


def _interpolate_at_once(image: Any, size: tuple[int, int]) -> Any:
    rows, down = _sharp_taps(LINEAR, image.shape[0], size[0])
    columns, across = _sharp_taps(LINEAR, image.shape[1], size[1])
    values = [image[y][:, x] for y in rows for x in columns]
    return _sharp_sum(values, [(a[:, None] * b).astype(F) for a in down for b in across])


def interpolate(image: Any, kind: int, way: int, size: tuple[int, int]) -> Any:
    """Return a ``(height, width)`` image of float32 in another size, equal to torch's in every bit."""
    if way == SMOOTH:
        across = _smooth(image.T, kind, size[1]).T if size[1] != image.shape[1] else image
        return _smooth(across, kind, size[0]) if size[0] != image.shape[0] else across
    return (
        _interpolate_at_once(image, size)
        if way == TOGETHER
        else _interpolate_by_axis(image, kind, size, way == ROUNDED)
    )


def find_torch_way(kind: int, ways: tuple[int, ...], channels: int, sizes: tuple[tuple[int, int], ...]) -> int | None:
    """Return the first of ``ways`` by which this machine's torch interpolates, with its current threads; None if none
    fits."""
    threads = torch.get_num_threads()  # torch has other ways with a single thread
    return trial_cache.find_once(
        ("interpolation", kind, ways, channels, sizes, threads),
        lambda: next((way for way in ways if is_torch_way(kind, way, channels, sizes)), None),
    )


def is_torch_way(kind: int, way: int, channels: int, sizes: tuple[tuple[int, int], ...]) -> bool:
    """Return whether this machine's torch interpolates in this way, for ``channels`` and all ``sizes``."""
    rng = np.random.Generator(np.random.PCG64(10))
    image = rng.integers(0, 256, (channels, *_SIZE)).astype(F)

    def equal(size: tuple[int, int]) -> bool:
        batch = torch.from_numpy(image)[None]
        result = torch.nn.functional.interpolate(batch, size=list(size), mode=_MODES[kind], antialias=way == SMOOTH)[0]
        twin: Callable[[Any], Any] = functools.partial(interpolate, kind=kind, way=way, size=size)
        return all(np.array_equal(twin(plane), wanted) for plane, wanted in zip(image, result.numpy(), strict=True))

    return all(equal(size) for size in sizes)
