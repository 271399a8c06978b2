# SPDX-License-Identifier: Apache-2.0
"""Simulation of a job: the records that its ranks read in a second, and from how many shards and blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..contract.reader import Ints, Sampler, Shards
from ..readers._manifest_file import OpenManifest
from ..remote.block_cache import BLOCK_BYTES
from ..samplers import Shuffled, Windowed

_RANKS = 16  # that are looked at
_WINDOW = 16  # shards of a window


@dataclass(frozen=True)
class RankReads:
    """Reads of a rank, as means over several ranks.

    Attributes:
        order: the sampler and the sharding.
        records: records in a second.
        bytes: their bytes in a second.
        shards: different shards that they are in.
        open_shards: different shards of the prefetched batches, which are read together.
        blocks: different blocks of 4 MiB that they are in: the unit in which remote objects are read.
    """

    order: str
    records: int
    bytes: float
    shards: float
    open_shards: float
    blocks: float

    def __str__(self) -> str:
        return (
            f"{self.order}: {self.records} records/s, {self.bytes / 1e6:.1f} MB/s from {self.shards:.0f} shards "
            f"({self.open_shards:.0f} together), in {self.blocks:.0f} blocks of 4 MiB"
        )


def simulate(
    manifest: OpenManifest, ranks: int, rate: int, batch: int, ahead: int = 2, window: int = _WINDOW, seed: int = 0
) -> Iterator[RankReads]:
    """Yield the reads of a rank for the full shuffle and for windows of shards.

    Args:
        manifest: the data set.
        ranks: processes of the job.
        rate: records that each reads in a second.
        batch: rows of a rank's batch.
        ahead: batches that are prefetched.
        window: shards of a window.
        seed: seed of the orders.
    """
    size = len(manifest.native)
    block = max(1, size // manifest.native.shards)
    samplers: list[tuple[str, Sampler, bool]] = [
        ("Shuffled, strided", Shuffled(seed), False),
        (f"Windowed({block}, {window}), strided", Windowed(block, window, seed=seed), False),
        (f"Windowed({block}, {window}), contiguous", Windowed(block, window, seed=seed), True),
    ]
    chosen = np.unique(np.linspace(0, ranks - 1, min(_RANKS, ranks)).astype(np.int64))
    for name, sampler, is_contiguous in samplers:
        found = [
            _reads(manifest, sampler, Shards(ranks, int(rank), is_contiguous), rate, batch * ahead, seed)
            for rank in chosen
        ]
        means = np.mean(found, axis=0)
        yield RankReads(name, rate, *map(float, means))


def rank_indices(size: int, sampler: Sampler, shards: Shards, local: Ints, seed: int, epoch: int = 0) -> Ints:
    """Return the samples of a rank's rows.

    Args:
        size: samples of the data set.
        sampler: order of the epoch.
        shards: the rank's part.
        local: row numbers of the rank, int64.
        seed: seed of the order.
        epoch: number of the epoch.
    """
    order = sampler.bind(size, None, shards, seed)
    return order.indices(seed, epoch, shards.positions(order.size, epoch, 0, local))


def _reads(
    manifest: OpenManifest, sampler: Sampler, shards: Shards, rate: int, prefetched: int, seed: int
) -> tuple[float, float, float, float]:
    """Return bytes, shards, shards of prefetched batches and blocks of a rank's first second."""
    native, size = manifest.native, len(manifest.native)
    count = max(1, min(rate, shards.length(size)))
    samples = rank_indices(size, sampler, shards, np.arange(count, dtype=np.int64), seed)
    of = native.shards_of(samples.astype(np.uint64))
    total, blocks = 0.0, set()
    for sample, shard in zip(samples.tolist(), of.tolist(), strict=True):
        start, _, file_bytes, _ = native.shard(shard)
        end = native.shard(shard + 1)[0] if shard + 1 < native.shards else size
        record_bytes = file_bytes / max(1, end - start)
        total += record_bytes
        blocks.add((shard, int((sample - start) * record_bytes) // BLOCK_BYTES))
    return total, len(np.unique(of)), len(np.unique(of[:prefetched])), len(blocks)
