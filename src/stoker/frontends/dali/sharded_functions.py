# SPDX-License-Identifier: Apache-2.0
"""Functions on JAX arrays of several processes, for ``jax_function``."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from ...contract.errors import ArgumentError, UnsupportedError
from ...contract.text import brief


class ShardedFunction:
    """Function on global JAX arrays, as one on the arrays of this process.

    An input of this process is its shard of a global array, which has the rows of all processes. Of a result, which
    has such a sharding too, this process gets its shard.

    Args:
        function: the function on global arrays. All processes must call it with arrays of the same shape.
        sharding: a ``jax.sharding.Sharding`` that divides the first axis over processes with a device each.

    Raises:
        ArgumentError: it is no sharding.
        UnsupportedError: this process has none of its devices, or several.
    """

    def __init__(self, function: Callable[..., Any], sharding: Any) -> None:
        self._jax = importlib.import_module("jax")
        if not isinstance(sharding, self._jax.sharding.Sharding):
            raise ArgumentError(
                f"`jax_function`: expected a jax.sharding.Sharding as `sharding`, got {brief(sharding)}"
            )
        own = list(sharding.addressable_devices)
        if len(own) != 1:
            raise UnsupportedError(
                f"`jax_function`: expected a `sharding` with one device of this process, got {len(own)}. With several "
                "devices in a process deliver sharded batches with `stoker.jax.Loader(pipeline, sharding=...)`, and "
                "call the function on these"
            )
        self._function, self._sharding = function, sharding
        self._device, self._count = own[0], len(sharding.device_set)
        functools.update_wrapper(self, function, updated=())
        vars(self).pop("__wrapped__", None)  # its parameter `rng` is not this one's

    def __call__(self, *inputs: Any) -> Any:
        """Return this process's shards of the results."""
        return self._own(self._function(*map(self._whole, inputs)))

    def _whole(self, array: Any) -> Any:
        """Return the array of all processes, of which this process has ``array``."""
        shape = (self._count * array.shape[0], *array.shape[1:])
        placed = self._jax.device_put(array, self._device)
        try:
            return self._jax.make_array_from_single_device_arrays(shape, self._sharding, [placed])
        except ValueError as error:
            raise ArgumentError(
                f"`jax_function`: expected a `sharding` that gives each of {self._count} processes {array.shape} of "
                f"{shape}: {error}"
            ) from error

    def _own(self, result: Any) -> Any:
        if isinstance(result, (tuple, list)):
            return tuple(map(self._own, result))
        if not isinstance(result, self._jax.Array):
            return result
        shards = result.addressable_shards
        if len(shards) != 1:
            raise ArgumentError(f"`jax_function`: expected results with one shard in this process, got {len(shards)}")
        return shards[0].data
