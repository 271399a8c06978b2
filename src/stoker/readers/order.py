# SPDX-License-Identifier: Apache-2.0
"""Orders: the sample at each position of an epoch. A sampler becomes an order when the data set's size is known.

The results of an order with ``is_pure`` depend on the arguments alone. Its rows may be requested before they are taken.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..contract.errors import DataError, StateError
from ..contract.reader import Ints
from ..contract.text import brief, reason_of
from ..contract.whole_number import as_whole_number
from ..native import _native

Keys = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
_DRAWS = 0xFFFFFFFE  # a draw id that no operator has
_WINDOWS = 0xFFFFFFFD  # part of the seed for the order within windows
_CHUNK = 1 << 20  # blocks that are searched together
_KNOWN_EPOCHS = 8  # whose place of the short block is kept
_WINDOW = 1 << 20  # recent numbers of an endless sampler that are cached for repeated requests


def own_seed(args: Mapping[str, Any]) -> int | None:
    """Return a reader's seed; None for the pipeline's, as for a negative seed of any operator."""
    seed: int | None = args["seed"]
    return None if seed is None or seed < 0 else seed


@dataclass(frozen=True)
class PermutedOrder:
    """All samples in order, or permuted by a keyed permutation: random access, no state, no memory.

    ``bounds``, if given, are the ends of parts that are permuted separately.
    """

    size: int
    shuffle: bool = False
    seed: int | None = None
    shuffle_from_epoch: int = 0
    bounds: tuple[int, ...] = ()
    forward_only: str | None = None
    is_pure: ClassVar[bool] = True

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        if not self.shuffle or epoch < self.shuffle_from_epoch:
            return positions
        seed = seed if self.seed is None else self.seed
        found: Ints
        if not self.bounds:
            found = _native.permute(seed, epoch, self.size, positions)
            return found
        ends = np.asarray(self.bounds, np.int64)
        part = np.searchsorted(ends, positions, side="right").astype(np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), ends])[part]
        epochs = np.full_like(part, epoch)
        found = starts + _native.permute_each(seed, part, epochs, ends[part] - starts, positions - starts)
        return found

    def keys(self, epoch: int, positions: Ints, indices: Ints) -> Keys:
        return indices.astype(np.uint64)


@dataclass(frozen=True, eq=False)
class WindowedOrder:
    """All samples: blocks of neighbours in a permuted order, and permutations within windows of that order.

    ``block`` neighbours in the data set are a block; the last block may be shorter. ``width`` positions are a window;
    the last window may be shorter.
    """

    size: int
    block: int
    width: int
    seed: int | None = None
    forward_only: str | None = None
    is_pure: ClassVar[bool] = True
    _short_places: dict[tuple[int, int], int] = field(default_factory=dict, repr=False)

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        seed = seed if self.seed is None else self.seed
        window = positions // self.width
        start = window * self.width
        sizes = np.minimum(start + self.width, self.size) - start
        inner = _native.epoch_key(seed, _WINDOWS)
        epochs = np.full_like(positions, epoch)
        place = start + _native.permute_each(inner, window, epochs, sizes, positions - start)
        return self._at(seed, epoch, place)

    def _at(self, seed: int, epoch: int, place: Ints) -> Ints:
        """Return the samples at places in the permuted order of blocks."""
        blocks = -(-self.size // self.block)
        lacks = blocks * self.block - self.size  # samples that the last block has fewer
        short = self._short_place(seed, epoch, blocks) if lacks else blocks
        end = (short + 1) * self.block - lacks  # of the short block; from it on, blocks begin earlier
        shifted = np.where(place < end, place, place + lacks)
        number = shifted // self.block
        found: Ints = _native.permute(seed, epoch, blocks, number) * self.block + shifted - number * self.block
        return found

    def _short_place(self, seed: int, epoch: int, blocks: int) -> int:
        """Return the place of the last block, the short one, in the permuted order of blocks."""
        known = self._short_places.get((seed, epoch))
        if known is not None:
            return known
        for begin in range(0, blocks, _CHUNK):
            numbers = np.arange(begin, min(begin + _CHUNK, blocks), dtype=np.int64)
            found = np.flatnonzero(_native.permute(seed, epoch, blocks, numbers) == blocks - 1)
            if len(found):
                break
        if len(self._short_places) >= _KNOWN_EPOCHS:
            self._short_places.clear()
        place = self._short_places[seed, epoch] = begin + int(found[0])
        return place

    def keys(self, epoch: int, positions: Ints, indices: Ints) -> Keys:
        return indices.astype(np.uint64)


class RepeatingOrder:
    """Order in which samples may repeat. Each occurrence is a separate row with its own draws."""

    forward_only: str | None = None

    def keys(self, epoch: int, positions: Ints, indices: Ints) -> Keys:
        return positions.astype(np.uint64)


@dataclass(frozen=True, eq=False)
class WeightedOrder(RepeatingOrder):
    """Independent draws: each position is sample i with probability ``ends[i] - ends[i - 1]`` over ``ends[-1]``."""

    size: int
    ends: Floats  # cumulative weights
    seed: int | None = None
    is_pure: ClassVar[bool] = True

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        seed = seed if self.seed is None else self.seed
        drawn: Floats = _native.uniforms(seed, epoch, _DRAWS, positions.astype(np.uint64))
        found = np.searchsorted(self.ends, drawn * self.ends[-1], side="right")
        # Rounding may reach the end. Then the last sample with a nonzero weight is taken.
        last = int(np.searchsorted(self.ends, self.ends[-1], side="left"))
        picked: Ints = np.minimum(found, last).astype(np.int64)
        return picked


@dataclass(frozen=True, eq=False)
class QuotaOrder(RepeatingOrder):
    """Parts in fixed proportions: every block of ``sum(quotas)`` positions holds ``quotas[k]`` samples of part k,
    mixed.

    All samples of a part are used before one repeats, also across epochs, in another order each time if ``shuffle``.
    Random access works because the block of a position determines how many samples of each part came before.
    """

    size: int
    sizes: Ints  # sizes of the parts
    quotas: Ints
    seed: int | None = None
    shuffle: bool = True

    def parts(self, seed: int, epoch: int, positions: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the part of every position, the number of complete rounds through it, and the index in the round."""
        length = int(self.quotas.sum())
        block, place = np.divmod(positions + epoch * self.size, length)
        part: Ints
        # Each part once in a block: the permutation of the block gives the part directly.
        if length == len(self.quotas):
            part = _native.permute_each(seed, np.full_like(place, -1), block, np.full_like(place, length), place)
            ordinal = block
        else:
            blocks, where = np.unique(block, return_inverse=True)
            all_parts, all_ranks = self._blocks(seed, blocks, length)
            part = all_parts[where, place]
            ordinal = block * self.quotas[part] + all_ranks[where, place]
        round_, inside = np.divmod(ordinal, self.sizes[part])
        return part, round_, inside

    def _blocks(self, seed: int, blocks: Ints, length: int) -> tuple[Ints, Ints]:
        """Return for every position of whole blocks the part, and the number of the part's samples before it in the
        block.
        """
        number = np.repeat(blocks, length)
        none, size = np.full_like(number, -1), np.full_like(number, length)
        place = _native.permute_each(seed, none, number, size, np.tile(np.arange(length), len(blocks)))
        parts = np.searchsorted(np.cumsum(self.quotas), place, side="right").reshape(-1, length)
        sequence = np.concatenate([np.arange(q) for q in self.quotas])
        ranks = np.empty_like(parts)
        np.put_along_axis(ranks, np.argsort(parts, axis=1, kind="stable"), sequence[None, :], axis=1)
        return parts, ranks

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        """Return indices of the samples in the concatenated parts."""
        seed = seed if self.seed is None else self.seed
        part, round_, inside = self.parts(seed, epoch, positions)
        if self.shuffle:
            inside = _native.permute_each(seed, part, round_, self.sizes[part], inside)
        return (np.cumsum(self.sizes) - self.sizes)[part] + inside


@dataclass(frozen=True, eq=False)
class LookupOrder(RepeatingOrder):
    """Order that maps another order's numbers through a list, for example samples sorted by class."""

    order: QuotaOrder
    members: Ints

    @property
    def size(self) -> int:
        return self.order.size

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        found: Ints = self.members[self.order.indices(seed, epoch, positions)]
        return found


@dataclass(frozen=True, eq=False)
class ListOrder:
    """List of samples, the same in every epoch."""

    numbers: Ints
    forward_only: str | None = None
    repeats: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "repeats", len(np.unique(self.numbers)) < len(self.numbers))

    @property
    def size(self) -> int:
        return len(self.numbers)

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        found: Ints = self.numbers[positions]
        return found

    def keys(self, epoch: int, positions: Ints, indices: Ints) -> Keys:
        return (positions if self.repeats else indices).astype(np.uint64)


class IterableOrder:
    """User's iterable of known length, iterated once per epoch.

    An iterable with ``set_epoch``, such as ``torch.utils.data.distributed.DistributedSampler``, gives an order that the
    epoch decides, and so supports random access. For others, a second pass may give another order.
    """

    _KEPT = 3  # epochs: that of the last delivered batch, and those of prefetched batches

    def __init__(self, source: Any, size: int) -> None:
        self.size = size
        self._source = source
        self._orders: dict[int, ListOrder] = {}
        self.forward_only = (
            None if hasattr(source, "set_epoch") else
            f"the sampler, a {type(source).__name__}, gives its numbers one after the other, and another pass over it "
            "may give others. Use one of stoker.samplers, a list of numbers, or a sampler with `set_epoch`"
        )  # fmt: skip

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        if epoch not in self._orders:
            self._orders[epoch] = self._pass(epoch)
            while len(self._orders) > self._KEPT:
                del self._orders[next(iter(self._orders))]
        return self._orders[epoch].indices(seed, epoch, positions)

    def _pass(self, epoch: int) -> ListOrder:
        if hasattr(self._source, "set_epoch"):
            self._source.set_epoch(epoch)
        numbers = array("q")
        for number in _whole_numbers(self._source):
            numbers.append(number)
            if len(numbers) == self.size:
                break
        if len(numbers) < self.size:
            raise DataError(f"expected {self.size} numbers from the sampler, as its length says, got {len(numbers)}")
        return ListOrder(np.frombuffer(numbers, np.int64))

    def keys(self, epoch: int, positions: Ints, indices: Ints) -> Keys:
        return self._orders[epoch].keys(epoch, positions, indices)


class EndlessOrder(RepeatingOrder):
    """User's iterable of unknown length. It runs forward only and has no epochs."""

    size = None

    def __init__(self, source: Iterable[Any]) -> None:
        self._numbers: Iterator[int] | None = None
        self._source = source
        self._first = 0  # position of the first cached number
        self._kept = array("q")
        self.forward_only = (
            f"the sampler, a {type(source).__name__} without a length, runs forward only. Use one of stoker.samplers, "
            "a list of numbers, or a sampler with `set_epoch` and a length"
        )

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        if not len(positions):
            return positions
        if positions[0] < self._first:
            raise StateError(f"cannot go back: {self.forward_only}")
        if self._numbers is None:
            self._numbers = _whole_numbers(self._source)
        while self._first + len(self._kept) <= positions[-1]:
            number = next(self._numbers, None)
            if number is None:
                end = self._first + len(self._kept)
                raise DataError(
                    f"the sampler, an iterable without a length, was taken to be endless, but ended after {end} "
                    "numbers. Give it a `__len__` and it runs once per epoch"
                )
            self._kept.append(number)
        found = np.asarray([self._kept[int(p) - self._first] for p in positions], np.int64)
        if len(self._kept) > 2 * _WINDOW:
            self._first += len(self._kept) - _WINDOW
            self._kept = self._kept[-_WINDOW:]
        return found


def _whole_numbers(source: Iterable[Any]) -> Iterator[int]:
    """Yield the numbers of a user's sampler, whose iteration may raise anything."""
    kind = type(source).__name__
    try:
        numbers = iter(source)
    except Exception as error:
        raise DataError(
            f"expected a sampler that can be iterated, got a {kind}: {type(error).__name__}: {reason_of(error)}"
        ) from error
    while True:
        try:
            number = next(numbers)
        except StopIteration:
            return
        except Exception as error:
            text = f"{type(error).__name__}: {reason_of(error)}"
            raise DataError(f"expected whole numbers from the sampler, a {kind}, which raised {text}") from error
        index = as_whole_number(number)
        if index is None or not -(1 << 63) <= index < 1 << 63:
            raise DataError(f"expected whole numbers from the sampler, got {brief(number)}")
        yield index
