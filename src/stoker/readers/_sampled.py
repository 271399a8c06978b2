# SPDX-License-Identifier: Apache-2.0
"""Base class of readers with the usual arguments for the order of an epoch and its shards."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from typing import Any, ClassVar

from ..contract.argument import ON_ERROR, arg
from ..contract.errors import ArgumentError
from ..contract.reader import Reader, Sampler, Shards
from ._samplers import Sequential, Shuffled, ShuffledAcrossShards, as_sampler
from ._sharding import (
    NAMES,
    NUM_SHARDS,
    PAD_LAST_BATCH,
    SHARD_ID,
    SHARDING,
    STICK_TO_SHARD,
    check_shards,
    shards_of,
)
from .order import own_seed


class SampledReader(Reader, ABC):
    """Reader with arguments for shuffling, samplers, shards and bad samples. A subclass defines the data set.

    ``class Records(SampledReader, name="my.records")`` declares its arguments, ``outputs`` and :meth:`dataset`. A
    subclass that overrides :meth:`validate` must call this one too. One with ``result_neutral`` arguments of its own
    adds them to these.
    """

    arguments_come_last = True
    result_neutral: ClassVar[tuple[str, ...]] = (*NAMES, "on_error")
    random_shuffle = arg("bool", False, doc="Another order every epoch: a permutation of the whole data set.")
    shuffle_after_epoch = arg(
        "bool", False, doc="Like random_shuffle, over the whole data set: contiguous shards too have other samples "
        "every epoch.",
    )  # fmt: skip
    seed = arg("int", None, doc="Seed of the order; by default the pipeline's.")
    sampler = arg(
        "object", None, doc="Samples of an epoch and their order: one of stoker.samplers, a sequence of "
        "numbers, or any iterable, such as a torch.utils.data.Sampler.",
    )  # fmt: skip
    num_shards = NUM_SHARDS
    shard_id = SHARD_ID
    sharding = SHARDING
    stick_to_shard = STICK_TO_SHARD
    pad_last_batch = PAD_LAST_BATCH
    on_error = ON_ERROR

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        check_shards(args)
        if args["shuffle_after_epoch"] and (args["random_shuffle"] or args["stick_to_shard"]):
            raise ArgumentError(
                "`shuffle_after_epoch` shuffles the whole data set: expected neither `random_shuffle` nor "
                "`stick_to_shard` with it"
            )
        if args["sampler"] is not None and (args["random_shuffle"] or args["shuffle_after_epoch"]):
            raise ArgumentError(
                "`sampler` says the order: expected no `random_shuffle` or `shuffle_after_epoch` with it"
            )

    @classmethod
    def ordering(cls, args: Mapping[str, Any]) -> Sampler:
        if args["sampler"] is not None:
            return as_sampler(args["sampler"])
        if args["shuffle_after_epoch"]:
            return ShuffledAcrossShards()
        if args["random_shuffle"]:
            return Shuffled()
        return Sequential()

    @classmethod
    def order_seed(cls, args: Mapping[str, Any]) -> int | None:
        return own_seed(args)

    @classmethod
    def shards(cls, args: Mapping[str, Any]) -> Shards:
        return shards_of(args, shuffled=args["random_shuffle"])
