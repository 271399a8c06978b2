# SPDX-License-Identifier: Apache-2.0
"""Checks of a pipeline's arguments. ArgumentError says what was expected."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from .. import settings
from ..contract.config import START_METHODS, WorkerConfig
from ..contract.errors import ArgumentError
from ..contract.failure import ACTIONS
from ..contract.file_path import as_path
from ..contract.text import brief
from ..contract.whole_number import as_whole_number
from .declared_outputs import DeclaredOutputs
from .launcher import AUTO, LAUNCHER

# Largest numbers that Pipeline takes. A system refuses fewer threads; prefetched batches and rows have positions of 32
# bits in native code.
MOST_THREADS = 1 << 15
_MOST = (1 << 31) - 1

# Arguments of DALI's Pipeline that Stoker accepts without a setting of its own: the declared types of outputs (see
# `declared_outputs.py`), and the choice between DALI's executors. Stoker has one executor.
ACCEPTED = frozenset({
    "exec_dynamic", "experimental_exec_dynamic", "bytes_per_sample", "set_affinity", "max_streams",
    "default_cuda_stream_priority", "enable_memory_stats", "enable_checkpointing", "stream_policy", "concurrency",
    *DeclaredOutputs.KEYS,
})  # fmt: skip


def require_index_size(index: int, limit: int | None) -> int:
    """Return the bytes for an index of files, which count within the GPU memory limit."""
    size = as_whole_number(index)
    if size is None or not 0 <= size < 1 << 63:
        raise ArgumentError(
            f"`Pipeline`: expected a number of bytes as `gpu_jpeg_index`, 0 for none, got {brief(index)}"
        )
    if limit is not None and size >= limit:
        raise ArgumentError(
            f"`Pipeline`: expected `gpu_jpeg_index` below `gpu_memory_limit` ({limit}), a part of it, got {size}"
        )
    return size


def require_memory_limit(value: Any) -> int | None:
    """Return the maximum of GPU memory in bytes; None: no limit."""
    limit = as_whole_number(value)
    if value is not None and (limit is None or not 1 <= limit < 1 << 63):
        raise ArgumentError(
            f"`Pipeline`: expected a number of bytes as `gpu_memory_limit`, or None, got {brief(value)}. "
            "4 GiB are `4 * 2**30`"
        )
    return limit


def require_batch_limit(value: Any) -> int | None:
    """Return the maximum of memory of a batch in bytes; 0: no limit; None: to be chosen."""
    limit = as_whole_number(value)
    if value is not None and (limit is None or not 0 <= limit < 1 << 63):
        raise ArgumentError(
            "`Pipeline`: expected a number of bytes as `max_batch_bytes`, 0 for no limit, or None, got "
            f"{brief(value)}. "
            "4 GiB are `4 * 2**30`"
        )
    return limit


def require_positive(name: str, value: Any, most: int = _MOST) -> int:
    """Return a whole number from 1 to ``most``."""
    number = as_whole_number(value)
    if number is None or number < 1:
        raise ArgumentError(f"`Pipeline`: expected `{name}` >= 1, got {brief(value)}")
    if number > most:
        raise ArgumentError(f"`Pipeline`: expected `{name}` of at most {most}, got {brief(number)}")
    return number


def require_bool(name: str, value: Any) -> bool:
    """Return a truth value: True, False, 1, 0 or NumPy's."""
    if isinstance(value, (bool, np.bool_)) or as_whole_number(value) in (0, 1):
        return bool(value)
    raise ArgumentError(f"`Pipeline`: expected `{name}` True or False, got {brief(value)}")


def require_epoch(where: str, value: Any) -> int:
    """Return the number of an epoch."""
    epoch = as_whole_number(value)
    if epoch is None or not 0 <= epoch <= 1 << 62:
        raise ArgumentError(f"`{where}`: expected the number of an epoch, from 0 on, got {brief(value)}")
    return epoch


def require_passes(value: Any) -> frozenset[str] | None:
    """Return names of passes; None: all."""
    if value is None:
        return None
    if isinstance(value, (frozenset, set, list, tuple)) and all(isinstance(name, str) for name in value):
        return frozenset(value)
    raise ArgumentError(f"`Pipeline`: expected a set of names as `passes`, or None, got {brief(value)}")


def require_checkpoint(value: Any) -> Mapping[str, Any] | None:
    """Return a state, or None. The rest of its check needs the graph."""
    if value is None or isinstance(value, Mapping):
        return value
    text = f"expected as `checkpoint` what `get_state()` gave, or None, got {brief(value)}"
    raise ArgumentError(f"`Pipeline`: {text}")


def require_load(value: Any) -> float | None:
    """Return the share of the rows that the GPU decodes; None: chosen by measured speed."""
    return None if isinstance(value, str) and value == AUTO else require_fraction("gpu_decoder_load", value)


def require_folder(name: str, value: Any) -> Any:
    """Return the path of a folder, or None."""
    path = as_path(value)
    if value is None or (isinstance(path, str) and "\0" not in path):
        return path
    raise ArgumentError(f"`Pipeline`: expected the path of a folder as `{name}`, or None, got {brief(value)}")


def require_gpu(value: Any) -> int | Literal["auto"] | None:
    """Return a GPU's number, "auto" or None."""
    if value is None or (isinstance(value, str) and value == AUTO):
        return None if value is None else AUTO
    number = as_whole_number(value)
    if number is None or not 0 <= number <= _MOST:
        raise ArgumentError(
            f'`Pipeline`: expected the number of a GPU as `device_id`, "auto" or None, got {brief(value)}'
        )
    return number


def require_seed(value: Any) -> int | None:
    """Return a seed; None if one is to be drawn (as in DALI, also for a negative number)."""
    number = as_whole_number(value)
    if value is not None and (number is None or number >= 1 << 64):
        raise ArgumentError(f"`Pipeline`: expected a whole number below 2**64 as `seed`, or None, got {brief(value)}")
    return None if number is None or number < 0 else number


def seed_of(state: Mapping[str, Any] | None) -> int | None:
    """Return the seed in a state, or None. The state is checked when it is restored."""
    number = None if state is None else as_whole_number(state.get("seed"))
    return number if number is not None and 0 <= number < 1 << 64 else None


def require_fraction(name: str, value: Any) -> float:
    """Return a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 <= _float(value) <= 1:
        raise ArgumentError(f"`Pipeline`: expected a number from 0 to 1 as `{name}`, got {brief(value)}")
    return float(value)


def _float(value: Any) -> float:
    """Return a number as a float; NaN if a float does not hold it."""
    try:
        return float(value)
    except (OverflowError, ValueError):
        return math.nan


def split_depth(value: Any) -> tuple[int, int | None]:
    """Return the numbers of prefetched batches on the CPU's side and the GPU's.

    The latter is None without DALI's pair form.
    """
    if not isinstance(value, Mapping):
        return require_positive("prefetch_queue_depth", value), None
    if set(value) != {"cpu_size", "gpu_size"}:
        raise ArgumentError(
            f"`Pipeline`: expected `prefetch_queue_depth` with `cpu_size` and `gpu_size`, got {brief(list(value))}"
        )
    cpu, gpu = (require_positive(f"prefetch_queue_depth[{side!r}]", value[side]) for side in ("cpu_size", "gpu_size"))
    return cpu, gpu


def require_action(value: Any) -> Any:
    """Return the policy for a row that fails."""
    if not isinstance(value, str) or value not in ACTIONS:
        raise ArgumentError(f"`Pipeline`: expected `on_error` to be one of {', '.join(ACTIONS)}, got {brief(value)}")
    return value


def require_error_limit(value: Any) -> float | None:
    """Return the share of an epoch's rows that may fail; None: the action's default."""
    return None if value is None else require_fraction("error_limit", value)


def require_shards(value: Any) -> Literal["launcher"] | None:
    """Return "launcher" if the launcher sets the shards of readers that have none of their own, or None."""
    if value is None or (isinstance(value, str) and value == LAUNCHER):
        return None if value is None else LAUNCHER
    raise ArgumentError(
        '`Pipeline`: expected `shards` "launcher" or None (readers have `num_shards` and `shard_id`), got '
        f"{brief(value)}"
    )


def require_epoch_reader(value: Any) -> str | None:
    """Return the name of a reader, or None."""
    if value is None or (isinstance(value, str) and value):
        return value
    raise ArgumentError(f"`Pipeline`: expected the name of a reader as `epoch_reader`, or None, got {brief(value)}")


def choose_without_gpu(value: str | None) -> Literal["error", "cpu"]:
    """Return the policy for GPU nodes on machines without a GPU; None: taken from the environment."""
    chosen = settings.without_gpu() if value is None else value
    if isinstance(chosen, str) and chosen == "error":
        return "error"
    if isinstance(chosen, str) and chosen == "cpu":
        return "cpu"
    place = "" if value is not None else ", which STOKER_WITHOUT_GPU says"
    raise ArgumentError(f'`Pipeline`: expected `without_gpu` "error" or "cpu", got {brief(chosen)}{place}')


def require_workers(count: Any, start_method: Any, pickler: Any) -> WorkerConfig:
    """Return the worker processes for sources."""
    number = require_positive("py_num_workers", count, MOST_THREADS)
    if not isinstance(start_method, str) or start_method not in START_METHODS:
        raise ArgumentError(f"`Pipeline`: expected `py_start_method` in {START_METHODS}, got {brief(start_method)}")
    module = pickler[0] if isinstance(pickler, tuple) and pickler else pickler
    if pickler is not None and not (hasattr(module, "dumps") and hasattr(module, "loads")):
        raise ArgumentError(
            f"`Pipeline`: expected `py_callback_pickler` with `dumps` and `loads` (such as the module "
            f"cloudpickle), or a tuple of it and keyword arguments for each, got {brief(pickler)}"
        )
    return WorkerConfig(number, start_method, pickler)
