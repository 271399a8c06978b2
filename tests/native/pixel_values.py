# SPDX-License-Identifier: Apache-2.0
"""Shared parts of the register machine's tests: instruction sets, special values, bitwise equality."""

from __future__ import annotations

import math

import numpy as np


def values(dtype: str, seed: int = 0, n: int = 600) -> np.ndarray:
    """Return random values with limits and other special values among them."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, n).astype(bool)
    if "float" in dtype:
        x = (rng.normal(size=n) * 10.0 ** rng.integers(-3, 4, n)).astype(dtype)
        edges = [0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 254.5, 255.5, -128.5, 1e-8, np.inf, -np.inf, np.nan, 65504.0]
        x[: len(edges)] = edges
        return x[rng.permutation(n)]
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, n, dtype=dtype, endpoint=True)
    small = rng.integers(max(info.min, -9), 10, n).astype(dtype)
    x = np.where(rng.random(n) < 0.5, x, small)
    x[:4] = [info.min, info.max, 0, 1]
    return x[rng.permutation(n)]


def same(a: np.ndarray, b: np.ndarray) -> None:
    assert a.dtype == b.dtype
    np.testing.assert_array_equal(a, b)
    if a.dtype.kind == "f":
        number = ~np.isnan(a)
        np.testing.assert_array_equal(np.signbit(a[number]), np.signbit(b[number]))


def cast_reference(x: np.ndarray, to: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        if to == "bool":
            return x != 0
        if "float" in to:
            return x.astype(to)
        info = np.iinfo(to)

        def one(v):
            if isinstance(v, float):
                if math.isnan(v):
                    return 0
                v = info.max if v == math.inf else info.min if v == -math.inf else round(v)
            return min(max(int(v), info.min), info.max)

        return np.array([one(v) for v in x.tolist()], to)
