# SPDX-License-Identifier: Apache-2.0
"""JAX adapter: batches as JAX arrays on one device, or spread over the devices of a mesh."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError, DataError
from ..contract.text import brief
from ..contract.types import DType
from ..executor.delivery import Delivered
from ..frontends.pipeline import Pipeline
from ..graph.plan import Plan, PlannedOutput
from ._epochs import EpochLoader, is_label
from ._exchange import as_dlpack
from ._missing import missing

try:
    import jax
    import jax.numpy as jnp
    import ml_dtypes
except ModuleNotFoundError as error:
    raise missing("jax", "jax", error) from error

_WIDE = {DType.INT64: DType.INT32, DType.UINT64: DType.UINT32, DType.FLOAT64: DType.FLOAT}  # absent by default


class Loader(EpochLoader):
    """Iterator over a pipeline's batches as JAX arrays, one epoch per ``for`` loop.

    Args:
        pipeline: the pipeline; it is built if needed.
        output_map: names of the outputs. Batches are then dicts, otherwise tuples (one array if there is one output).
        sharding: placement of the outputs: a ``jax.sharding.Sharding`` for all of them, or a mapping from names of
            `output_map` to one each (None for an output of this process alone). The first axis of an output is the
            rows of all processes. A process supplies its own rows, so its pipeline's readers need the shard that
            :func:`shard_of` gives. Axes of a mesh that do not divide rows (model parallelism) share them. By default
            outputs are arrays of this process on JAX's default device.
        last_batch_policy: rows of the epoch's last batch. "even" (default) delivers it as it is, which compiles a
            function once more for its shape. "drop" leaves an incomplete batch out. "fill" completes it with the first
            rows of the next epoch's order. "partial" (for evaluation) completes it with zeros: all batches have
            `batch_size` rows, and one more output, `mask`, is True for every sample exactly once over all processes.
        size: batches of an epoch, for pipelines without a reader (which otherwise end when their source does).
        background: take batches and make arrays of them on a thread of the loop, one batch ahead, so that ``next()``
            costs some tens of microseconds instead of some hundred. True: from the first batch on. False: never. None
            (default): after eight steps of 5 ms or more in a row at whose ends a finished batch waited, if the pipeline
            has neither a GPU nor functions or sources of the caller. `report` may be one batch ahead of the loop then.
        mask: with "partial", the name of the mask, bool ``(N,)``; without `output_map` it is the last element of the
            tuple.

    Rows of one shape become one array ``(N, ...)``. In host memory it shares the engine's memory (without `sharding`
    and with a CPU as JAX's default device). Rows of different shapes become a list of arrays. Integer outputs of one
    element per row (labels) become int32 ``(N,)``. JAX has no 64-bit types unless ``jax_enable_x64`` is set; other
    outputs of such types are refused.

    :meth:`state_dict` returns a text and a number, as JSON or Orbax's ``JsonSave`` hold them.

    Raises:
        ArgumentError: an argument is invalid, the pipeline's readers have another shard than the sharding asks of this
            process, or an output has a type that JAX lacks.
        DataError: rows to be placed on several devices have different shapes; a label exceeds int32.
    """

    def __init__(
        self, pipeline: Pipeline, output_map: Sequence[str] | None = None, *, sharding: Any = None,
        last_batch_policy: str = "even", size: int | None = None, mask: str = "mask", background: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(pipeline, output_map, last_batch_policy, size, background)
        if not isinstance(mask, str) or (self._names is not None and mask in self._names):
            raise ArgumentError(f"`Loader`: expected a name of its own as `mask`, got {brief(mask)}")
        self._masked = self._policy == "partial"
        if self._masked:  # equal numbers of rows for all processes; the mask leaves out those that occur twice
            self._at_end = "stop"
            self._names = None if self._names is None else (*self._names, mask)
        self._shardings = self._checked_shardings(sharding)
        self._count = self._checked_shards()

    def _checked_shardings(self, sharding: Any) -> list[Any]:
        """Return a sharding, or None, per output, and for the mask."""
        outputs = self.pipeline.num_outputs + self._masked
        if isinstance(sharding, Mapping):
            names = self._names or ()
            if not names or not set(sharding) <= set(names):
                known = list(names) or "none, because `output_map` is missing"
                raise ArgumentError(
                    f"`Loader`: expected names of outputs in `sharding` ({known}), got {brief(list(sharding))}"
                )
            found = [sharding.get(name) for name in names]
        else:
            found = [sharding] * outputs
        for one in found:
            if one is not None and not isinstance(one, jax.sharding.Sharding):
                raise ArgumentError(f"`Loader`: expected a jax.sharding.Sharding as `sharding`, got {brief(one)}")
        if self._masked and not isinstance(sharding, Mapping) and sharding is not None:
            found[-1] = _of_rows(sharding)
        return found

    def _checked_shards(self) -> int:
        """Return the number of shards that the shardings divide the rows into."""
        places = {shard_of(s) for s in self._shardings if s is not None}
        if not places:
            return 1
        if len(places) > 1:
            raise ArgumentError(
                "`Loader`: expected shardings that give this process the same rows of every output, got the shards "
                f"{sorted(places)}"
            )
        place = places.pop()
        for name, meta in self.pipeline.reader_meta().items():
            own = (int(meta["shard_id"]), int(meta["number_of_shards"]))
            if own != place:
                raise ArgumentError(
                    f"`Loader`: expected shard {place[0]} of {place[1]} in the reader {name!r}, as the sharding gives "
                    f"this process, got shard {own[0]} of {own[1]}. Take `shard_id, num_shards = "
                    "stoker.jax.shard_of(sharding)` for the reader"
                )
        return place[1]

    # ---- arrays ----

    def _thread_context(self) -> contextlib.AbstractContextManager[Any]:
        context: contextlib.AbstractContextManager[Any] = jax.default_device(jax.config.jax_default_device)
        return context  # each thread has a default device of its own

    def _arrays(self, delivered: Delivered, plan: Plan) -> list[Any]:
        rows = self.pipeline.batch_size if self._masked else 0
        arrays = [
            self._array(output, planned, sharding, rows)
            for output, planned, sharding in zip(delivered.outputs, plan.outputs, self._shardings, strict=False)
        ]
        if self._masked:
            mask = _padded(self._own_rows(delivered), rows)
            arrays.append(self._placed(mask, self._shardings[-1]) if self._shardings[-1] else jnp.asarray(mask))
        return arrays

    def _own_rows(self, delivered: Delivered) -> np.ndarray[Any, Any]:
        """Return for each row of a batch whether no other process delivers it too."""
        schedule, mark = self.pipeline.execution.schedule, delivered.mark
        rows = np.delete(np.arange(delivered.asked), list(delivered.skipped))
        end = schedule.own_end(mark.epoch, schedule.origin(mark.position, mark.consumed))
        return np.ones(len(rows), bool) if end is None else mark.position - delivered.asked + rows < end

    def _array(self, output: Any, planned: PlannedOutput, sharding: Any, rows: int) -> Any:
        if isinstance(output, list):
            if sharding is not None or rows:
                shapes = sorted({tuple(r.shape) for r in output})
                raise DataError(
                    f"`Loader`: expected rows of one shape for {'a sharding' if sharding else 'a mask'}, got "
                    f"{len(shapes)} different ones such as {shapes[0]}. Resize, crop or pad them in the pipeline"
                )
            return [self._delivered(row, planned) for row in output]
        if isinstance(output, np.ndarray):
            array = _padded(_labels(output) if is_label(output, planned) else output, rows)
            if sharding is not None:
                return self._placed(_in_jax(array, planned.dtype), sharding)
            return self._delivered(array, planned)
        whole = jax.dlpack.from_dlpack(output)
        whole = whole.reshape(-1).astype(jnp.int32) if is_label(whole, planned) else whole
        if whole.shape[0] < rows:
            whole = jnp.pad(whole, [(0, rows - whole.shape[0])] + [(0, 0)] * (whole.ndim - 1))
        return whole if sharding is None else self._placed(whole, sharding)

    def _delivered(self, array: Any, planned: PlannedOutput) -> Any:
        """Return one array on JAX's default device, or on the GPU where the output is."""
        if not isinstance(array, np.ndarray):
            return jax.dlpack.from_dlpack(array)
        _require_type(DType.of(array.dtype))
        if jax.default_backend() != "cpu":
            return jax.device_put(_in_jax(array, planned.dtype))
        dtype = planned.dtype if planned.dtype == DType.BFLOAT16 else DType.of(array.dtype)
        return jax.dlpack.from_dlpack(as_dlpack(array, dtype))

    def _placed(self, array: Any, sharding: Any) -> Any:
        """Return the array of all processes, of whose rows this process has ``array``."""
        _require_type(DType.of(array.dtype))
        shape = (array.shape[0] * self._count, *array.shape[1:])
        first = shard_of(sharding)[0] * array.shape[0]
        try:
            where = sharding.addressable_devices_indices_map(shape)
        except ValueError as error:
            hint = "" if array.shape[0] == self.pipeline.batch_size else (
                '. The epoch\'s last batch is smaller; see `last_batch_policy` "drop", "fill" and "partial"'
            )  # fmt: skip
            text = f"expected a batch that the sharding divides evenly, got the shape {shape}: {error}{hint}"
            raise ArgumentError(f"`Loader`: {text}") from error
        pieces = []
        for device, index in where.items():
            begin, end, _ = index[0].indices(shape[0]) if index else (0, shape[0], 1)
            pieces.append(jax.device_put(array[(slice(begin - first, end - first), *index[1:])], device))
        return jax.make_array_from_single_device_arrays(shape, sharding, pieces)


def shard_of(sharding: Any) -> tuple[int, int]:
    """Return the part of every batch that a sharding gives to this process: (shard_id, num_shards), for readers.

    Processes that hold the same rows, such as those of one model-parallel group, have the same shard.

    Args:
        sharding: a ``jax.sharding.Sharding`` whose first axis is the rows of a batch.

    Raises:
        ArgumentError: the sharding does not give each process one block of rows.
    """
    if not isinstance(sharding, jax.sharding.Sharding):
        raise ArgumentError(f"`shard_of`: expected a jax.sharding.Sharding, got {brief(sharding)}")
    count = len(sharding.device_set)
    held: dict[int, set[tuple[int, int]]] = {}
    for device, index in _indices(sharding, count).items():
        begin, end, _ = index[0].indices(count) if index else (0, count, 1)
        held.setdefault(device.process_index, set()).add((begin, end))
    blocks = {process: (min(b for b, _ in parts), max(e for _, e in parts)) for process, parts in held.items()}
    parts = sorted(set(blocks.values()))
    length = parts[0][1] - parts[0][0]
    whole = [(i * length, (i + 1) * length) for i in range(count // length)]
    full = all(_covers(held[process], block) for process, block in blocks.items())
    own = blocks.get(jax.process_index())
    if parts != whole or not full or own is None:
        raise ArgumentError(
            "`shard_of`: expected a sharding that gives every process one block of rows, and this process one, got "
            f"the blocks {parts} of {count} parts of a batch"
        )
    return parts.index(own), len(parts)


def _covers(parts: set[tuple[int, int]], block: tuple[int, int]) -> bool:
    """Return whether the parts fill a block without gaps."""
    at = block[0]
    for begin, end in sorted(parts):
        if begin > at:
            return False
        at = max(at, end)
    return at == block[1]


def _indices(sharding: Any, count: int) -> Mapping[Any, tuple[slice, ...]]:
    """Return each device's part of an array whose axes have ``count`` elements; every mesh of the devices divides them.

    The array has as many axes as the sharding's specification, or one.
    """
    rank = max(1, len(sharding.spec)) if isinstance(sharding, jax.sharding.NamedSharding) else 1
    return sharding.devices_indices_map((count,) * rank)  # type: ignore[no-any-return]


def _of_rows(sharding: Any) -> Any:
    """Return a sharding of the rows alone, for the mask."""
    if isinstance(sharding, jax.sharding.NamedSharding):
        return jax.sharding.NamedSharding(sharding.mesh, jax.sharding.PartitionSpec(*sharding.spec[:1]))
    return sharding


def _labels(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return labels as int32 ``(N,)``; DataError if one does not fit."""
    flat = array.reshape(-1)
    if flat.dtype == np.int32:
        return flat
    if flat.size and flat.itemsize > 2 and (int(flat.max()) > 2**31 - 1 or int(flat.min()) < -(2**31)):
        raise DataError(f"`Loader`: expected labels that int32 holds, got {int(flat.max())} and {int(flat.min())}")
    return flat.astype(np.int32)


def _padded(array: np.ndarray[Any, Any], rows: int) -> np.ndarray[Any, Any]:
    """Return an array with zeros after its rows, up to ``rows`` of them."""
    if len(array) >= rows:
        return array
    whole = np.zeros((rows, *array.shape[1:]), array.dtype)
    whole[: len(array)] = array
    return whole


def _require_type(dtype: DType) -> None:
    """Raise ArgumentError for a 64-bit type unless JAX has these."""
    if dtype in _WIDE and not jax.config.jax_enable_x64:
        raise ArgumentError(
            f"expected types that JAX has without `jax_enable_x64`, got an output of {dtype}. Add `fn.cast(x, "
            f"dtype=types.{_WIDE[dtype].name})` to the pipeline, or call "
            '`jax.config.update("jax_enable_x64", True)`'
        )


def _in_jax(array: np.ndarray[Any, Any], dtype: DType) -> np.ndarray[Any, Any]:
    """Return an array with JAX's type of the output."""
    return array.view(ml_dtypes.bfloat16) if dtype == DType.BFLOAT16 else array


def to_jax(batch: Any) -> Any:
    """Convert a :class:`~stoker.Batch` to JAX, sharing its memory where JAX can.

    Args:
        batch: the batch; one on a GPU gives arrays on that GPU.

    Returns:
        An array ``(N, ...)`` if the rows have one shape, else a list of N arrays.

    Raises:
        ArgumentError: JAX lacks the batch's 64-bit type, because ``jax_enable_x64`` is not set.
    """
    _require_type(batch.dtype)
    if batch.is_dense:
        return jax.dlpack.from_dlpack(as_dlpack(batch.whole, batch.dtype))
    return [jax.dlpack.from_dlpack(as_dlpack(row, batch.dtype)) for row in batch]
