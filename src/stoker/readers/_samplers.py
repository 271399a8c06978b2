# SPDX-License-Identifier: Apache-2.0
"""Samplers for users (public as ``stoker.samplers``): their settings, before a data set is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from .._import_lock import IMPORT_LOCK
from ..contract.errors import ArgumentError
from ..contract.reader import BoundSampler, Ints, Sampler, Shards
from ..contract.text import brief, reason_of
from ..contract.whole_number import as_whole_number, is_seed
from ._bucketed import BucketedOrder
from .order import (
    EndlessOrder,
    IterableOrder,
    ListOrder,
    LookupOrder,
    PermutedOrder,
    QuotaOrder,
    WeightedOrder,
    WindowedOrder,
)

Labels = npt.NDArray[np.int32]
_LONGEST_BLOCK = 1000


class Sequential(Sampler):
    """All samples in the data set's order."""

    def __repr__(self) -> str:
        return "Sequential()"

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        return PermutedOrder(size)


class Shuffled(Sampler):
    """All samples, in another order every epoch: a keyed permutation with random access, which stores no list.

    Args:
        seed: seed of the order; by default the reader's ``seed``, or the pipeline's.
        first_epoch: first epoch that is shuffled; earlier ones are in order.
    """

    def __init__(self, seed: int | None = None, *, first_epoch: int = 0) -> None:
        self._seed = _seed("Shuffled", seed)
        first = as_whole_number(first_epoch)
        if first is None or not 0 <= first <= 1 << 62:
            raise ArgumentError(f"`samplers.Shuffled`: expected `first_epoch` >= 0, got {brief(first_epoch)}")
        self._first_epoch = first

    def __repr__(self) -> str:
        return f"Shuffled({self._seed}, first_epoch={self._first_epoch})"

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        seed = seed if self._seed is None else self._seed
        # A part that stays with one pipeline must be shuffled within itself.
        local = shards.is_contiguous and self._first_epoch == 0 and shards.number > 1
        bounds = tuple((i + 1) * size // shards.number for i in range(shards.number)) if local else ()
        return PermutedOrder(size, True, seed, self._first_epoch, bounds)


class ShuffledAcrossShards(Shuffled):
    """All samples, in another order every epoch, also with contiguous shards: a shard has other samples every epoch.

    It is the order of ``shuffle_after_epoch``. DALI shuffles its first epoch too.
    """

    def __repr__(self) -> str:
        return f"ShuffledAcrossShards({self._seed})"

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        return PermutedOrder(size, True, seed if self._seed is None else self._seed)


class Windowed(Sampler):
    """All samples, in another order every epoch, that keeps neighbours of the data set near each other.

    The data set is divided into blocks of neighbouring samples, and the blocks are permuted. Then the samples within
    each window of ``window`` blocks are permuted. So the samples of ``window * block`` positions come from few blocks:
    ``window`` of them, or one more. This suits data whose neighbours are read together: row groups of Parquet, blocks
    of a remote store, files on a disk that seeks. The order is a function of seed, epoch and position, as that of
    ``Shuffled``, and stores no list.

    Args:
        block: samples of a block.
        window: blocks of a window; the more, the better the shuffle.
        seed: seed of the order; by default the reader's ``seed``, or the pipeline's.

    Raises:
        ArgumentError: a number is not positive.
    """

    def __init__(self, block: int, window: int, *, seed: int | None = None) -> None:
        self._block, self._window = _positive("block", block), _positive("window", window)
        self._seed = _seed("Windowed", seed)

    def __repr__(self) -> str:
        return f"Windowed({self._block}, {self._window}, seed={self._seed})"

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        block = min(self._block, size)
        width = min(self._window, -(-size // block)) * block
        return WindowedOrder(size, block, width, seed if self._seed is None else self._seed)


class Weighted(Sampler):
    """Independent draws with replacement, sample i with probability ``weights[i] / sum(weights)``.

    A sample that is drawn several times gets another augmentation each time.

    Args:
        weights: one number >= 0 per sample. They need not sum to 1. Memory: 8 bytes per sample.
        num_samples: draws in an epoch; by default the number of samples.
        seed: seed of the draws; by default the reader's ``seed``, or the pipeline's.

    Raises:
        ArgumentError: the weights are invalid. When the pipeline is built: their number is not the number of samples.
    """

    def __init__(
        self, weights: Sequence[float] | npt.NDArray[Any], num_samples: int | None = None, *, seed: int | None = None
    ) -> None:
        found = _numbers(weights)
        if found.ndim != 1 or not len(found) or not np.isfinite(found).all() or (found < 0).any() or not found.any():
            raise ArgumentError(
                "`samplers.Weighted`: expected `weights` to be one finite number >= 0 per sample, not all of them 0"
            )
        self._weights = _summable(found)
        self._num_samples = _count("Weighted", num_samples)
        self._seed = _seed("Weighted", seed)

    def __repr__(self) -> str:
        return f"Weighted({_digest(self._weights)}, {self._num_samples}, seed={self._seed})"

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        if len(self._weights) != size:
            raise ArgumentError(
                f"`samplers.Weighted`: expected a weight for each of {size} samples, got {len(self._weights)}"
            )
        return WeightedOrder(
            self._num_samples or size, np.cumsum(self._weights), seed if self._seed is None else self._seed
        )


class ClassBalanced(Sampler):
    """Every class equally often, whatever its size.

    Each run of as many positions as there are classes has every class once, in a random order. Within a class, all
    samples are used before one repeats, in another order every time. A sample that occurs several times in an epoch
    gets another augmentation each time.

    Args:
        num_samples: positions in an epoch; by default the number of samples.
        seed: seed of the order; by default the reader's ``seed``, or the pipeline's.

    Raises:
        ArgumentError: fewer than one position. When the pipeline is built: a data set without labels.
    """

    def __init__(self, num_samples: int | None = None, *, seed: int | None = None) -> None:
        self._num_samples = _count("ClassBalanced", num_samples)
        self._seed = _seed("ClassBalanced", seed)

    def __repr__(self) -> str:
        return f"ClassBalanced({self._num_samples}, seed={self._seed})"

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        if labels is None:
            raise ArgumentError("`samplers.ClassBalanced`: expected a data set with labels, got one without")
        members = np.argsort(labels, kind="stable").astype(np.int64)
        sizes = np.unique(labels, return_counts=True)[1].astype(np.int64)
        seed = seed if self._seed is None else self._seed
        return LookupOrder(QuotaOrder(self._num_samples or size, sizes, np.ones_like(sizes), seed), members)


class Mixed(Sampler):
    """Several data sets, concatenated in the reader's list, in fixed proportions.

    The proportions hold in every block of positions, whatever the sizes. A block is as long as the sum of the weights
    in lowest terms, at most 1000. All samples of a part are used before one repeats, also across epochs. A sample that
    occurs several times in an epoch gets another augmentation each time.

    Args:
        sizes: samples in each part, in the reader's order.
        weights: share of each part. They need not sum to 1. Shares are rounded to a thousandth.
        num_samples: positions in an epoch; by default the number of samples.
        shuffle: whether each part is shuffled again every time; otherwise it is in order.
        seed: seed of the order; by default the reader's ``seed``, or the pipeline's.

    Raises:
        ArgumentError: sizes or weights are not positive, or not one per part; a share is below a thousandth. When the
            pipeline is built: the sizes do not sum to the data set's.

    >>> samplers.Mixed([len(photos), len(drawings)], weights=[0.8, 0.2])
    """

    def __init__(
        self, sizes: Sequence[int], weights: Sequence[float], num_samples: int | None = None, *, shuffle: bool = True,
        seed: int | None = None,
    ) -> None:  # fmt: skip
        counts = [as_whole_number(n) for n in sizes] if _is_sequence(sizes) and getattr(sizes, "ndim", 1) == 1 else []
        if not counts or any(n is None or not 1 <= n < 1 << 48 for n in counts):
            raise ArgumentError(f"`samplers.Mixed`: expected `sizes` >= 1, one per part, got {brief(sizes)}")
        if not _is_sequence(weights) or getattr(weights, "ndim", 1) != 1:
            raise ArgumentError(f"`samplers.Mixed`: expected a number per part as `weights`, got {brief(weights)}")
        if len(weights) != len(sizes):
            raise ArgumentError(
                f"`samplers.Mixed`: expected a weight for each of {len(sizes)} parts, got {len(weights)}"
            )
        self._sizes = np.asarray(counts, np.int64)
        self._quotas = quotas(weights, "part")
        self._num_samples = _count("Mixed", num_samples)
        self._shuffle = bool(shuffle)
        self._seed = _seed("Mixed", seed)

    def __repr__(self) -> str:
        parts = f"{self._sizes.tolist()}, {self._quotas.tolist()}, {self._num_samples}"
        return f"Mixed({parts}, shuffle={self._shuffle}, seed={self._seed})"

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        if int(self._sizes.sum()) != size:
            raise ArgumentError(
                f"`samplers.Mixed`: expected `sizes` that sum to the {size} samples of the data set, got "
                f"{self._sizes.tolist()}"
            )
        seed = seed if self._seed is None else self._seed
        return QuotaOrder(self._num_samples or size, self._sizes, self._quotas, seed, self._shuffle)


class Bucketed(Sampler):
    """All samples, in another order every epoch, in which neighbours have like lengths: little padding in batches.

    The samples are divided by length into buckets of equal size. Each epoch permutes every bucket, cuts it into groups
    of ``group`` samples, and permutes the groups. So a batch has samples of one bucket, and batches of short and long
    samples mix. The remainders of the buckets form groups of neighbouring lengths. The last group of an epoch may be
    incomplete. The order is a function of seed, epoch and position, with any number of shards. It stores one number per
    sample.

    Args:
        lengths: the length of each sample: seconds, frames, tokens.
        group: positions with samples of one bucket: the batch size times the number of shards. With other numbers of
            shards a batch may span two groups; the order stays the same.
        buckets: number of buckets, or the lengths at which a new bucket begins, in ascending order.
        shuffle: whether to permute; otherwise all samples are in the order of their lengths.
        seed: seed of the order; by default the reader's ``seed``, or the pipeline's.

    Raises:
        ArgumentError: an argument is invalid. When the pipeline is built: the number of lengths is not the number of
            samples.

    >>> samplers.Bucketed(durations, group=32, buckets=20)
    """

    def __init__(
        self,
        lengths: Sequence[float] | npt.NDArray[Any],
        group: int,
        *,
        buckets: int | Sequence[float] = 10,
        shuffle: bool = True,
        seed: int | None = None,
    ) -> None:
        found = _numbers(lengths)
        if found.ndim != 1 or not len(found) or not (np.isfinite(found) & (found >= 0)).all():
            raise ArgumentError("`samplers.Bucketed`: expected `lengths` to be one finite number >= 0 per sample")
        count = as_whole_number(group)
        if count is None or not 1 <= count < 1 << 48:
            raise ArgumentError(f"`samplers.Bucketed`: expected `group` >= 1, below 2**48, got {brief(group)}")
        self._group = count
        self._lengths = found
        self._members = np.argsort(found, kind="stable").astype(np.int64)
        self._sizes = _bucket_sizes(found[self._members], buckets)
        self._shuffle = bool(shuffle)
        self._seed = _seed("Bucketed", seed)

    def __repr__(self) -> str:
        parts = f"{_digest(self._lengths)}, {self._group}, sizes={_digest(self._sizes)}"
        return f"Bucketed({parts}, shuffle={self._shuffle}, seed={self._seed})"

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        if len(self._members) != size:
            raise ArgumentError(
                f"`samplers.Bucketed`: expected a length for each of {size} samples, got {len(self._members)}"
            )
        seed = seed if self._seed is None else self._seed
        return BucketedOrder(self._members, self._sizes, self._group, self._shuffle, seed)


def _bucket_sizes(ascending: npt.NDArray[np.float64], buckets: int | Sequence[float]) -> Ints:
    """Return the number of samples in each bucket that has any.

    Raises:
        ArgumentError: ``buckets`` is neither a positive number nor ascending lengths.
    """
    count = as_whole_number(buckets)
    if count is not None and 1 <= count < 1 << 31:
        count = min(count, len(ascending))
        ends = (np.arange(1, count + 1, dtype=np.int64) * len(ascending)) // count
    else:
        limits = _numbers(buckets) if _is_sequence(buckets) else np.empty((0, 0))
        if limits.ndim != 1 or not np.isfinite(limits).all() or (np.diff(limits) <= 0).any():
            text = f"expected a number >= 1 or ascending lengths as `buckets`, got {brief(buckets)}"
            raise ArgumentError(f"`samplers.Bucketed`: {text}")
        ends = np.append(np.searchsorted(ascending, limits, side="left"), len(ascending)).astype(np.int64)
    sizes = np.diff(ends, prepend=0).astype(np.int64)
    found: Ints = sizes[sizes > 0]
    return found


class UserSampler(Sampler):
    """Sampler of the user's sample numbers: a sequence, or any iterable."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self._numbers: Ints | None = None
        if _is_sequence(source):
            self._numbers = _whole(source)

    def __repr__(self) -> str:
        known = type(self._source).__qualname__ if self._numbers is None else _digest(self._numbers)
        return f"UserSampler({known})"

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        if self._numbers is not None:
            wrong = self._numbers[(self._numbers < 0) | (self._numbers >= size)]
            if len(wrong):
                raise ArgumentError(f"expected `sampler` to give numbers from 0 to {size - 1}, got {int(wrong[0])}")
            return ListOrder(self._numbers)
        if not hasattr(self._source, "__len__"):
            return EndlessOrder(self._source)
        try:
            length = len(self._source)
        except Exception as error:
            text = f"got {brief(self._source)}: {type(error).__name__}: {reason_of(error)}"
            raise ArgumentError(f"expected `sampler` to have a length, {text}") from error
        return IterableOrder(self._source, length)


def as_sampler(value: Any) -> Sampler:
    """Convert the user's ``sampler`` argument to a sampler.

    Raises:
        ArgumentError: the value cannot serve as a sampler.
    """
    if isinstance(value, Sampler):
        return value
    if isinstance(value, type) or not (hasattr(value, "__iter__") or hasattr(value, "__getitem__")):
        raise ArgumentError(
            f"expected `sampler` to be one of stoker.samplers, a sequence of numbers or something that can be "
            f"iterated, got {brief(value)}"
        )
    return UserSampler(value)


def quotas(weights: Sequence[float], names: str) -> Ints:
    """Return the count of each part in a block, in the proportions of ``weights``. A block has at most 1000 samples.

    Raises:
        ArgumentError: a weight is not positive, or its share is too small.
    """
    numbers = _numbers(weights)
    if numbers.shape != (len(weights),) or not (np.isfinite(numbers) & (numbers > 0)).all():
        raise ArgumentError(f"expected `weights` > 0, one per {names}, got {brief(weights)}")
    parts = _summable(numbers).tolist()
    total = math.fsum(parts)
    shares = [Fraction(w / total).limit_denominator(_LONGEST_BLOCK) for w in parts]
    block = math.lcm(*(s.denominator for s in shares))
    if block > _LONGEST_BLOCK or sum(shares) != 1:  # round to thousandths; the largest remainders are rounded up
        block = _LONGEST_BLOCK
        exact = [w / total * block for w in parts]
        found = [int(e) for e in exact]
        for k in sorted(range(len(exact)), key=lambda k: (found[k] - exact[k], k))[: block - sum(found)]:
            found[k] += 1
    else:
        found = [int(s * block) for s in shares]
    if min(found) == 0:
        raise ArgumentError(
            f"expected `weights` that are shares of at least 1 in {_LONGEST_BLOCK}, got {brief(weights)}"
        )
    return np.asarray(found, np.int64)


def _is_sequence(source: Any) -> bool:
    return isinstance(source, (Sequence, np.ndarray)) and not isinstance(source, (str, bytes))


def _whole(source: Any) -> Ints:
    try:
        numbers = np.asarray(source)
    except Exception:  # noqa: BLE001 - a foreign `__array__` may raise anything, and NumPy refuses ragged lists
        raise ArgumentError(f"expected `sampler` to be a list of whole numbers, got {brief(source)}") from None
    if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "iu":
        raise ArgumentError(
            f"expected `sampler` to be a list of whole numbers, got {numbers.dtype} of shape {numbers.shape}"
        )
    return numbers.astype(np.int64)


def _positive(name: str, value: int) -> int:
    count = as_whole_number(value)
    if count is None or not 1 <= count < 1 << 48:
        raise ArgumentError(f"`samplers.Windowed`: expected `{name}` >= 1, below 2**48, got {brief(value)}")
    return count


def _count(name: str, value: int | None) -> int | None:
    count = as_whole_number(value)
    if value is not None and (count is None or not 1 <= count < 1 << 48):
        raise ArgumentError(f"`samplers.{name}`: expected `num_samples` >= 1, below 2**48, got {brief(value)}")
    return count


def _seed(name: str, value: Any) -> int | None:
    if value is not None and not is_seed(value):
        text = f"expected a whole number from 0 to 2**64 - 1 as `seed`, or None, got {brief(value)}"
        raise ArgumentError(f"`samplers.{name}`: {text}")
    return as_whole_number(value)


def _numbers(values: Any) -> npt.NDArray[np.float64]:
    """Return an array of numbers; an empty one for everything else."""
    try:
        found = np.asarray(values)
        with np.errstate(all="ignore"):  # a longdouble that no double holds becomes an infinity, which is refused
            return found.astype(np.float64) if found.dtype.kind in "biuf" else np.empty(0)
    except Exception:  # noqa: BLE001 - a foreign `__array__` may raise anything, and NumPy refuses ragged lists
        return np.empty(0)


def _summable(weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return weights in the same proportions whose sum is finite."""
    with np.errstate(over="ignore"):
        return weights if np.isfinite(weights.sum()) else weights / weights.max() / len(weights)


def _digest(numbers: npt.NDArray[Any]) -> str:
    with IMPORT_LOCK:
        import hashlib

    return f"{len(numbers)} numbers {hashlib.blake2b(numbers.tobytes(), digest_size=8).hexdigest()}"
