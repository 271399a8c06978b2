# SPDX-License-Identifier: Apache-2.0
"""Arguments of all readers for the division of epochs over pipelines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.argument import arg
from ..contract.errors import ArgumentError
from ..contract.reader import Shards

NUM_SHARDS = arg(
    "int", None, doc="Number of parts that every epoch is divided into. By default 1, or with the pipeline's "
    '`shards="launcher"` the number of processes (WORLD_SIZE).',
)  # fmt: skip
SHARD_ID = arg(
    "int", None, doc="First part that this pipeline takes; see `stick_to_shard`. By default 0, or with the pipeline's "
    '`shards="launcher"` this process\'s number (RANK).',
)  # fmt: skip
SHARDING = arg(
    "str", None, choices=("strided", "contiguous"), doc="strided: part k is the positions k, k + num_shards, ... "
    "of the epoch's order, so that a state restores with another num_shards too. contiguous: as DALI, from "
    "floor(k * size / num_shards) on. By default strided, unless parts are both shuffled and kept "
    "(random_shuffle with stick_to_shard).",
)  # fmt: skip
STICK_TO_SHARD = arg("bool", False, doc="Take the same part in every epoch; by default the next one.")
PAD_LAST_BATCH = arg(
    "bool", False, doc="Complete a part, and the last batch of an epoch, by repeating the part's last sample. By "
    "default the part is completed with the following samples, and the batch with the next epoch's first ones.",
)  # fmt: skip
NAMES = ("num_shards", "shard_id", "sharding", "stick_to_shard", "pad_last_batch")


_MOST_SHARDS = (1 << 31) - 1  # positions count in 64 bits


def check_shards(args: Mapping[str, Any]) -> None:
    """Raise ArgumentError if the part does not exist."""
    shards, shard = _part(args)
    if shards > _MOST_SHARDS:
        raise ArgumentError(f"expected `num_shards` of at most {_MOST_SHARDS}, got {shards}")
    if shards < 1 or not 0 <= shard < shards:
        raise ArgumentError(f"expected 0 <= shard_id < num_shards, got shard_id={shard} of num_shards={shards}")


def _part(args: Mapping[str, Any]) -> tuple[int, int]:
    """Return the number of shards and the number of this one."""
    shards, shard = args["num_shards"], args["shard_id"]
    return 1 if shards is None else shards, 0 if shard is None else shard


def shards_of(args: Mapping[str, Any], *, shuffled: bool = False) -> Shards:
    """Return the shards that the arguments describe. ``shuffled``: the order differs from epoch to epoch.

    Raises:
        ArgumentError: parts are to stay with their pipelines although they change with every epoch.
    """
    number, shard = _part(args)
    local = shuffled and args["stick_to_shard"] and number > 1
    contiguous = (args["sharding"] or ("contiguous" if local else "strided")) == "contiguous"
    if local and not contiguous:
        raise ArgumentError(
            'expected sharding="contiguous" with random_shuffle and stick_to_shard: strided parts are shuffled '
            "over the whole data set, so none can be kept"
        )
    return Shards(number, shard, contiguous, args["stick_to_shard"], args["pad_last_batch"])
