# SPDX-License-Identifier: Apache-2.0
"""The arguments of a pipeline, each checked: ArgumentError says what was expected."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

from .. import settings
from ..contract.errors import ArgumentError
from ..contract.failure import ACTIONS
from ..contract.whole import whole
from .expected import Expected
from .launched import AUTO, LAUNCHER

# Arguments of DALI's Pipeline besides those that have a meaning here: what outputs are to be (see `expected.py`), and
# those that choose between its executors, of which there is one here.
ACCEPTED = frozenset({
    "exec_dynamic", "experimental_exec_dynamic", "bytes_per_sample", "set_affinity", "max_streams",
    "default_cuda_stream_priority", "enable_memory_stats", "enable_checkpointing", "stream_policy", "concurrency",
    *Expected.KEYS,
})  # fmt: skip


def room(index: int, limit: int | None) -> int:
    """Bytes for an index of files, a part of the memory that may be taken at most."""
    size = whole(index)
    if size is None or size < 0:
        raise ArgumentError(f"`Pipeline`: expected a number of bytes as `gpu_jpeg_index`, 0 for none, got {index!r}")
    if limit is not None and size >= limit:
        raise ArgumentError(
            f"`Pipeline`: expected `gpu_jpeg_index` below `gpu_memory_limit` ({limit}), a part of it, got {size}"
        )
    return size


def memory_limit(value: Any) -> int | None:
    """The most bytes of a GPU's memory; None: what is there."""
    limit = whole(value)
    if value is not None and (limit is None or limit < 1):
        raise ArgumentError(
            f"`Pipeline`: expected a number of bytes as `gpu_memory_limit`, or None, got {value!r}. "
            "4 GiB are `4 * 2**30`"
        )
    return limit


def positive(name: str, value: Any) -> int:
    """A whole number of at least 1."""
    number = whole(value)
    if number is None or number < 1:
        raise ArgumentError(f"`Pipeline`: expected `{name}` >= 1, got {value!r}")
    return number


def gpu_number(value: Any) -> int | str | None:
    """Which GPU: its number, "auto" or None."""
    if value is None or (isinstance(value, str) and value == AUTO):
        return value
    number = whole(value)
    if number is None or number < 0:
        raise ArgumentError(f'`Pipeline`: expected the number of a GPU as `device_id`, "auto" or None, got {value!r}')
    return number


def chosen_seed(value: Any) -> int | None:
    """A seed; None if one is to be drawn (as DALI, also for a negative number)."""
    number = whole(value)
    if value is not None and number is None:
        raise ArgumentError(f"`Pipeline`: expected a whole number as `seed`, or None, got {value!r}")
    return None if number is None or number < 0 else number


def part(name: str, value: Any) -> float:
    """A number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= float(value) <= 1:
        raise ArgumentError(f"`Pipeline`: expected a number from 0 to 1 as `{name}`, got {value!r}")
    return float(value)


def depths(value: Any) -> tuple[int, int | None]:
    """Batches made ahead on the CPU's side, and on a GPU's besides, from DALI's pair; None: a number is all of them."""
    if not isinstance(value, Mapping):
        return positive("prefetch_queue_depth", value), None
    if set(value) != {"cpu_size", "gpu_size"}:
        raise ArgumentError(
            f"`Pipeline`: expected `prefetch_queue_depth` with `cpu_size` and `gpu_size`, got {sorted(value)}"
        )
    cpu, gpu = (positive(f"prefetch_queue_depth[{side!r}]", value[side]) for side in ("cpu_size", "gpu_size"))
    return cpu, gpu


def action(value: Any) -> Any:
    """What becomes of a row that fails."""
    if value not in ACTIONS:
        raise ArgumentError(f"`Pipeline`: expected `on_error` to be one of {', '.join(ACTIONS)}, got {value!r}")
    return value


def share(value: Any) -> float | None:
    """The share of an epoch's rows that may fail; None: the action's own."""
    return None if value is None else part("error_limit", value)


def division(value: Any) -> str | None:
    """Who says the shards of readers that say none themselves: "launcher", or None."""
    if value is None or (isinstance(value, str) and value == LAUNCHER):
        return value
    raise ArgumentError(
        f'`Pipeline`: expected `shards` "launcher" or None (readers have `num_shards` and `shard_id`), got {value!r}'
    )


def absence(value: str | None) -> str:
    """What becomes of nodes on a GPU where there is none; None: as the environment says."""
    chosen = settings.without_gpu() if value is None else value
    if chosen not in ("error", "cpu"):
        place = "" if value is not None else ", which STOKER_WITHOUT_GPU says"
        raise ArgumentError(f'`Pipeline`: expected `without_gpu` "error" or "cpu", got {chosen!r}{place}')
    return chosen
