# SPDX-License-Identifier: Apache-2.0
"""The samplers that users choose from (as ``stoker.samplers``): what they ask for, before a data set is known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError
from ..contract.reader import BoundSampler, Ints, Shards
from .order import Endless, Grouped, Interleaved, Listed, Ordered, Passes, Picked

Labels = npt.NDArray[np.int32]
_LONGEST_BLOCK = 1000


class Sampler:
    """Which samples an epoch takes, and in which order. Give one to a reader: ``fn.readers.file(..., sampler=...)``.

    A class of your own overrides :meth:`bind`. Its ``repr`` is part of the pipeline's fingerprint, so it should say
    what decides the order.
    """

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        """The order over a data set.

        Args:
            size: samples in the data set.
            labels: their labels, int32 ``(size,)``, or None.
            shards: how epochs are divided.
            seed: the reader's own; None: what ``indices`` is told, which is the pipeline's.

        Raises:
            ArgumentError: it does not go with this data set.

        Returns:
            An object with ``size`` (positions in an epoch; None: endless), ``indices(seed, epoch, positions)`` (the
            samples at these positions), ``keys(epoch, positions, indices)`` (uint64, what the rows' random numbers
            follow from) and ``forward_only`` (None, or why the order cannot be entered anywhere).
        """
        raise NotImplementedError


class Sequential(Sampler):
    """All samples in the data set's order."""

    def __repr__(self) -> str:
        return "Sequential()"

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        return Ordered(size)


class Shuffled(Sampler):
    """All samples, every epoch in another order: a keyed permutation, which keeps no list and can be entered anywhere.

    Args:
        seed: decides the order; by default the reader's ``seed``, or the pipeline's.
        first_epoch: epochs before this one are in order.
    """

    def __init__(self, seed: int | None = None, *, first_epoch: int = 0) -> None:
        self._seed = seed
        self._first_epoch = first_epoch

    def __repr__(self) -> str:
        return f"Shuffled({self._seed}, first_epoch={self._first_epoch})"

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        seed = seed if self._seed is None else self._seed
        # A part that a pipeline keeps must be shuffled by itself.
        local = shards.contiguous and self._first_epoch == 0 and shards.number > 1
        bounds = tuple((i + 1) * size // shards.number for i in range(shards.number)) if local else ()
        return Ordered(size, True, seed, self._first_epoch, bounds)


class Weighted(Sampler):
    """Independent draws with replacement, sample i with probability ``weights[i] / sum(weights)``.

    A sample that comes several times gets another augmentation each time.

    Args:
        weights: one number >= 0 per sample; they need not sum to 1. 8 bytes per sample are kept.
        num_samples: draws in an epoch; by default as many as there are samples.
        seed: decides the draws; by default the reader's ``seed``, or the pipeline's.

    Raises:
        ArgumentError: other weights; where the pipeline is built: another number of them than there are samples.
    """

    def __init__(
        self, weights: Sequence[float] | npt.NDArray[Any], num_samples: int | None = None, *, seed: int | None = None
    ) -> None:
        found = np.array(weights, np.float64)
        if found.ndim != 1 or not len(found) or not np.isfinite(found).all() or (found < 0).any() or not found.any():
            raise ArgumentError(
                "`samplers.Weighted`: expected `weights` to be one finite number >= 0 per sample, not all of them 0"
            )
        self._weights = found
        self._num_samples = _count("Weighted", num_samples)
        self._seed = seed

    def __repr__(self) -> str:
        return f"Weighted({_digest(self._weights)}, {self._num_samples}, seed={self._seed})"

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        if len(self._weights) != size:
            raise ArgumentError(
                f"`samplers.Weighted`: expected a weight for each of {size} samples, got {len(self._weights)}"
            )
        return Picked(self._num_samples or size, np.cumsum(self._weights), seed if self._seed is None else self._seed)


class ClassBalanced(Sampler):
    """Every class equally often, whatever its size.

    Each run of as many positions as there are classes has every class once, in a drawn order. Within a class, all its
    samples come before one comes again, in another order every time. A sample that comes several times in an epoch
    gets another augmentation each time.

    Args:
        num_samples: positions in an epoch; by default as many as there are samples.
        seed: decides the order; by default the reader's ``seed``, or the pipeline's.

    Raises:
        ArgumentError: fewer than one position; where the pipeline is built: a data set without labels.
    """

    def __init__(self, num_samples: int | None = None, *, seed: int | None = None) -> None:
        self._num_samples = _count("ClassBalanced", num_samples)
        self._seed = seed

    def __repr__(self) -> str:
        return f"ClassBalanced({self._num_samples}, seed={self._seed})"

    def bind(self, size: int, labels: Labels | None, shards: Shards, seed: int | None) -> BoundSampler:
        if labels is None:
            raise ArgumentError("`samplers.ClassBalanced`: expected a data set with labels, got one without")
        members = np.argsort(labels, kind="stable").astype(np.int64)
        sizes = np.unique(labels, return_counts=True)[1].astype(np.int64)
        seed = seed if self._seed is None else self._seed
        return Grouped(Interleaved(self._num_samples or size, sizes, np.ones_like(sizes), seed), members)


class Mixed(Sampler):
    """Several data sets, which lie one after the other in the reader's list, in fixed proportions.

    The proportions hold in every block of positions (as long as the weights' smallest common terms, at most 1000),
    whatever the sizes. Each part is gone through whole before any of it comes again, over the ends of epochs too. A
    sample that comes several times in an epoch gets another augmentation each time.

    Args:
        sizes: samples in each part, in the reader's order.
        weights: the share of each part; they need not sum to 1. Shares are kept to a thousandth.
        num_samples: positions in an epoch; by default as many as there are samples.
        shuffle: whether each part is gone through in another order every time; else in its own.
        seed: decides the order; by default the reader's ``seed``, or the pipeline's.

    Raises:
        ArgumentError: sizes or weights are not positive, or not one per part; a share is below a thousandth; where the
            pipeline is built: the sizes do not sum to the data set's.

    >>> samplers.Mixed([len(photos), len(drawings)], weights=[0.8, 0.2])
    """

    def __init__(
        self, sizes: Sequence[int], weights: Sequence[float], num_samples: int | None = None, *, shuffle: bool = True,
        seed: int | None = None,
    ) -> None:  # fmt: skip
        if not len(sizes) or any(isinstance(n, bool) or n != int(n) or n < 1 for n in sizes):
            raise ArgumentError(f"`samplers.Mixed`: expected `sizes` >= 1, one per part, got {list(sizes)}")
        if len(weights) != len(sizes):
            raise ArgumentError(
                f"`samplers.Mixed`: expected a weight for each of {len(sizes)} parts, got {len(weights)}"
            )
        self._sizes = np.asarray([int(n) for n in sizes], np.int64)
        self._quotas = quotas(weights, "part")
        self._num_samples = _count("Mixed", num_samples)
        self._shuffle = bool(shuffle)
        self._seed = seed

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
        return Interleaved(self._num_samples or size, self._sizes, self._quotas, seed, self._shuffle)


class UserSampler(Sampler):
    """The user's own: numbers of samples, as a sequence, or from anything that can be iterated."""

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
            return Listed(self._numbers)
        if hasattr(self._source, "__len__"):
            return Passes(self._source, len(self._source))
        return Endless(self._source)


def as_sampler(value: Any) -> Sampler:
    """A sampler from what users give; ArgumentError if it is none."""
    if isinstance(value, Sampler):
        return value
    if isinstance(value, type) or not (hasattr(value, "__iter__") or hasattr(value, "__getitem__")):
        raise ArgumentError(
            f"expected `sampler` to be one of stoker.samplers, a sequence of numbers or something that can be "
            f"iterated, got {value!r}"
        )
    return UserSampler(value)


def quotas(weights: Sequence[float], names: str) -> Ints:
    """How many of each part a block holds, in the proportions of ``weights``; a block is 1000 long at most.

    Raises:
        ArgumentError: a weight is not positive, or too small a share.
    """
    if not all(isinstance(w, (int, float, np.number)) and math.isfinite(w) and w > 0 for w in weights):
        raise ArgumentError(f"expected `weights` > 0, one per {names}, got {list(weights)}")
    total = math.fsum(weights)
    shares = [Fraction(float(w) / total).limit_denominator(_LONGEST_BLOCK) for w in weights]
    block = math.lcm(*(s.denominator for s in shares))
    if block > _LONGEST_BLOCK or sum(shares) != 1:  # to the nearest thousandth, the largest remainders up
        block = _LONGEST_BLOCK
        exact = [float(w) / total * block for w in weights]
        found = [int(e) for e in exact]
        for k in sorted(range(len(exact)), key=lambda k: (found[k] - exact[k], k))[: block - sum(found)]:
            found[k] += 1
    else:
        found = [int(s * block) for s in shares]
    if min(found) == 0:
        raise ArgumentError(
            f"expected `weights` that are shares of at least 1 in {_LONGEST_BLOCK}, got {list(weights)}"
        )
    return np.asarray(found, np.int64)


def _is_sequence(source: Any) -> bool:
    return isinstance(source, (Sequence, np.ndarray)) and not isinstance(source, (str, bytes))


def _whole(source: Any) -> Ints:
    numbers = np.asarray(source)
    if numbers.ndim != 1 or not len(numbers) or numbers.dtype.kind not in "iu":
        raise ArgumentError(
            f"expected `sampler` to be a list of whole numbers, got {numbers.dtype} of shape {numbers.shape}"
        )
    return numbers.astype(np.int64)


def _count(name: str, value: int | None) -> int | None:
    if value is not None and (isinstance(value, bool) or value != int(value) or value < 1):
        raise ArgumentError(f"`samplers.{name}`: expected `num_samples` >= 1, got {value!r}")
    return None if value is None else int(value)


def _digest(numbers: npt.NDArray[Any]) -> str:
    import hashlib

    return f"{len(numbers)} numbers {hashlib.blake2b(numbers.tobytes(), digest_size=8).hexdigest()}"
