# SPDX-License-Identifier: Apache-2.0
"""Random numbers of single elements, in pixel expressions and in NumPy.

A row's draw gives words, from Philox4x32 of (seed, epoch, row key, draw id). Two words name a stream, and element ``i``
of a stream is Philox2x32 of them and ``i``. So a number depends on nothing but the row, the draw and the place.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import Px, binary, coordinate, normal, random, uniform
from ...contract.types import DType

Floats = npt.NDArray[np.float32]
_BITS = 24  # of a uniform number: as many as a float32 holds


class ElementDraws:
    """Random numbers of the elements of a tensor with the given extents.

    Args:
        c: the builder; the operator declares ``draws = 1``.
        shape: extents of the iteration space.
        streams: number of streams that the operator uses.
        shared: axes along which all elements share their numbers.
    """

    def __init__(self, c: Lowering, shape: Sequence[Scalar], streams: int, shared: Collection[int] = ()) -> None:
        count: Scalar = 1
        element = uniform(0, DType.INT32)
        for axis, extent in enumerate(shape):
            if axis not in shared:
                count = count * extent
                element = element * extent + coordinate(axis)
        c.require(count <= 1 << 32, "expected at most 2**32 elements, got {0}", count)
        words = c.native("draw_words", [], [(DType.INT32, (2 * streams,), "")], attrs=c.draw)[0]
        self._element = element
        self._words = [uniform(c.element(words, i), DType.INT32) for i in range(2 * streams)]

    def bits(self, stream: int) -> Px:
        """Return 32 random bits for each element, INT32."""
        return random(self._element, *self._words[2 * stream : 2 * stream + 2])

    def whole(self, stream: int) -> Px:
        """Return a number from 0 to 2**24 - 1 for each element, INT32."""
        return binary("and", binary("shr", self.bits(stream), 32 - _BITS), (1 << _BITS) - 1)

    def uniform(self, stream: int) -> Px:
        """Return a number in [0, 1) for each element, FLOAT."""
        return self.whole(stream).cast(DType.FLOAT) * 2.0**-_BITS

    def below(self, stream: int, limit: int) -> Px:
        """Return `uniform` times ``limit``, which is at most 2**24, for each element, FLOAT.

        One operation computes it: the other product, with a power of two, has no rounding.
        """
        return self.whole(stream).cast(DType.FLOAT) * (limit * 2.0**-_BITS)

    def normal(self, stream: int) -> Px:
        """Return a number from the standard normal distribution for each element, FLOAT, by Box and Muller's method.

        Every operation is rounded to float32. The largest possible number is 5.77.
        """
        return normal(self._element, *self._words[2 * stream : 2 * stream + 2])


class ElementDrawsReference:
    """The same random numbers in NumPy, as arrays of the given shape."""

    def __init__(self, row: RowContext, shape: Sequence[int], streams: int, shared: Collection[int] = ()) -> None:
        own = [1 if axis in shared else n for axis, n in enumerate(shape)]
        self._element = np.arange(math.prod(own), dtype=np.uint64).reshape(own)
        self._shape = tuple(shape)
        self._words = [row.stream.word() for _ in range(2 * streams)]

    def bits(self, stream: int) -> npt.NDArray[np.uint32]:
        return self._block(stream)[0]

    def _block(self, stream: int) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        low = self._element & np.uint64(0xFFFFFFFF)
        high = np.full_like(low, self._words[2 * stream + 1])
        key = self._words[2 * stream]
        for _ in range(10):
            product = low * np.uint64(0xD256D193)
            low, high = (product >> np.uint64(32)) ^ np.uint64(key) ^ high, product & np.uint64(0xFFFFFFFF)
            key = key + 0x9E3779B9 & 0xFFFFFFFF
        first, second = (np.broadcast_to(word.astype(np.uint32), self._shape) for word in (low, high))
        return first, second

    def uniform(self, stream: int) -> Floats:
        return _fraction(self.bits(stream))

    def normal(self, stream: int) -> Floats:
        first, second = (_fraction(word).astype(np.float64) for word in self._block(stream))
        return (np.sqrt(-2 * np.log(1 - first)) * np.cos(math.tau * second)).astype(np.float32)  # type: ignore[no-any-return]


def _fraction(words: npt.NDArray[np.uint32]) -> Floats:
    return (words >> 8).astype(np.float32) * np.float32(2.0**-_BITS)
