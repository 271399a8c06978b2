# SPDX-License-Identifier: Apache-2.0
"""Random numbers as a function of (seed, epoch, row key, draw id, counter), in plain Python.

Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011). ``native/shared/philox.hpp`` is the fast form; tests compare both.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

_EPOCH_DOMAIN = 0x73746F6B65720001  # "stoker", stream 1
_SHUFFLE_DOMAIN = 0x73746F6B65720002
_PART_DOMAIN = 0x73746F6B65720003
_ROW_DOMAIN = 0x73746F6B65720004
_MASK = 0xFFFFFFFF


def philox(key: int, low: int, high: int) -> tuple[int, int, int, int]:
    """Return one block, four 32-bit words, for a 64-bit key and a 128-bit counter."""
    k0, k1 = key & _MASK, (key >> 32) & _MASK
    c0, c1, c2, c3 = low & _MASK, (low >> 32) & _MASK, high & _MASK, (high >> 32) & _MASK
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _MASK, (p0 >> 32) ^ c3 ^ k1, p0 & _MASK
        k0, k1 = (k0 + 0x9E3779B9) & _MASK, (k1 + 0xBB67AE85) & _MASK
    return c0, c1, c2, c3


@functools.lru_cache(maxsize=64)
def epoch_key(seed: int, epoch: int) -> int:
    """Return the Philox key of one epoch."""
    w = philox(seed, epoch, _EPOCH_DOMAIN)
    return w[0] | (w[1] << 32)


def part_key(seed: int, part: int, epoch: int) -> int:
    """Return the key for permuting one part of a data set in one of its own epochs; ``part`` is -1 for the whole."""
    w = philox(epoch_key(seed, epoch), part & (1 << 64) - 1, _PART_DOMAIN)
    return w[0] | (w[1] << 32)


class Stream:
    """Random numbers of one draw of one row."""

    def __init__(self, seed: int, epoch: int, row_key: int, draw: int) -> None:
        self._key, self._row, self._draw = epoch_key(seed, epoch), row_key, draw
        self._block, self._words = 0, []  # type: tuple[int, list[int]]

    def word(self) -> int:
        if not self._words:
            self._words = list(philox(self._key, (self._draw << 32) | self._block, self._row))
            self._block += 1
        return self._words.pop(0)

    def uniform(self) -> float:
        """Return a number in [0, 1) with 53 random bits."""
        high, low = self.word() >> 6, self.word() >> 5
        return float((high << 27) | low) * 2.0**-53

    def generator(self) -> np.random.Generator:
        """Return a NumPy generator seeded by this stream, for Python code."""
        return np.random.Generator(np.random.Philox(key=(self.word() << 32) | self.word()))


def _philox_words(key: int, low: npt.NDArray[np.uint64], high: int) -> npt.NDArray[np.uint64]:
    """Return the first word of ``philox`` for many counters."""
    mask, shift = np.uint64(_MASK), np.uint64(32)
    k0, k1 = key & _MASK, (key >> 32) & _MASK
    c0, c1 = low & mask, low >> shift
    c2, c3 = np.full_like(low, high & _MASK), np.full_like(low, (high >> 32) & _MASK)
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (
            (p1 >> shift) ^ c1 ^ np.uint64(k0),
            p1 & mask,
            (p0 >> shift) ^ c3 ^ np.uint64(k1),
            p0 & mask,
        )
        k0, k1 = (k0 + 0x9E3779B9) & _MASK, (k1 + 0xBB67AE85) & _MASK
    return c0


def permute(seed: int, epoch: int, size: int, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the images of ``positions`` under a keyed permutation of ``range(size)``, with random access and constant
    memory.

    A six-round Feistel network over the next even number of bits. Values outside the range walk along the cycle until
    they are inside (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
    """
    return permute_by(epoch_key(seed, epoch), size, positions)


def permute_by(key: int, size: int, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Permute as :func:`permute`, with a key given by the caller."""
    if size <= 1:
        return np.zeros_like(positions)
    half = max(1, ((size - 1).bit_length() + 1) // 2)
    mask, shift = np.uint64((1 << half) - 1), np.uint64(half)
    out = positions.astype(np.uint64)
    todo = np.arange(len(out))
    while len(todo):
        x = out[todo]
        left, right = x >> shift, x & mask
        for i in range(6):
            left, right = right, left ^ (_philox_words(key, right, _SHUFFLE_DOMAIN + (i << 48)) & mask)
        out[todo] = x = (left << shift) | right
        todo = todo[x >= np.uint64(size)]
    return out.astype(np.int64)


def words_of_rows(seed: int, epoch: int, keys: npt.NDArray[np.uint64], number: int) -> npt.NDArray[np.uint32]:
    """Return a random word of 32 bits for each row key; another ``number`` gives others."""
    return _philox_words(epoch_key(seed, epoch), keys, _ROW_DOMAIN + (number << 48)).astype(np.uint32)
