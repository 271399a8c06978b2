# SPDX-License-Identifier: Apache-2.0
"""DALI's iterators for JAX."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from ..contract.batch import Batch
from ..contract.errors import ArgumentError, DataError, StateError, UnsupportedError
from ..contract.text import brief
from ..frontends.dali.pipelines import pipeline_def
from ..settings import default_threads
from ._dali_epochs import DaliEpochs, LastBatchPolicy
from ._jax import to_jax
from ._missing import missing

try:
    import jax
except ModuleNotFoundError as error:
    raise missing("jax", "jax", error) from error


class DALIGenericIterator(DaliEpochs):
    """Batches as a dictionary of JAX arrays: ``{"image": array, "label": array}``.

    Several pipelines need `sharding` or `pmap_compatible`. The array of pipeline ``i`` is put on local device ``i``.
    Outputs of the CPU share the engine's memory where JAX can. Other arguments are those of
    :class:`~stoker.frameworks._dali_epochs.DaliEpochs`. ``stoker.jax.Loader`` takes a sharding per output, meshes for
    model parallelism, and partial batches with a mask.

    Args:
        pipelines: one pipeline, or one for each local device.
        sharding: a ``jax.sharding.Sharding`` of all outputs. Their first axis has the rows of all devices.
        pmap_compatible: True: outputs have a first axis for devices, and every device holds its part, as ``jax.pmap``
            takes them. By default False for one pipeline, True for several without `sharding`.
        last_batch_policy: FILL or DROP; JAX's arrays of a mesh have equal parts, so PARTIAL is refused.
    """

    def __init__(
        self, pipelines: Any, output_map: Sequence[str], size: int = -1, reader_name: str | None = None,
        auto_reset: Any = False, last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL, prepare_first_batch: bool = True,
        sharding: Any = None, pmap_compatible: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            pipelines, output_map, size, reader_name, auto_reset, None, False, last_batch_padded, last_batch_policy,
            prepare_first_batch,
        )  # fmt: skip
        if self._policy is LastBatchPolicy.PARTIAL:
            raise UnsupportedError(
                f"`{self._name}`: expected FILL or DROP as `last_batch_policy`, got PARTIAL, which JAX's arrays of "
                'equal parts cannot hold. `stoker.jax.Loader(last_batch_policy="partial")` has a mask'
            )
        if sharding is not None and not isinstance(sharding, jax.sharding.Sharding):
            raise ArgumentError(
                f"`{self._name}`: expected a jax.sharding.Sharding as `sharding`, got {brief(sharding)}"
            )
        count = len(self._pipes)
        if sharding is not None and pmap_compatible:
            raise ArgumentError(f"`{self._name}`: expected `sharding` or `pmap_compatible`, got both")
        if count > len(jax.local_devices()):
            raise ArgumentError(
                f"`{self._name}`: expected at most one pipeline per local device of JAX ({len(jax.local_devices())}), "
                f"got {count}"
            )
        if sharding is not None and count != len(sharding.addressable_devices):
            raise ArgumentError(
                f"`{self._name}`: expected a pipeline for each of the sharding's {len(sharding.addressable_devices)} "
                f"devices of this process, got {count}"
            )
        self._sharding = sharding
        self._stacks = pmap_compatible if pmap_compatible is not None else count > 1 and sharding is None

    def __next__(self) -> Any:
        """Return the next batch.

        Raises:
            StopIteration: the epoch is over.
            DataError: a row failed, or rows differ in shape.
        """
        parts = super().__next__()
        return {name: self._whole([part[name] for part in parts]) for name in self.output_map}

    next = __next__

    def _convert(self, outputs: tuple[Batch, ...]) -> list[Any]:
        for name, batch in zip(self.output_map, outputs, strict=True):
            if not batch.is_dense:
                raise DataError(
                    f"`{self._name}`: expected rows of one shape in {brief(name)}, got "
                    f"{sorted(set(batch.shape()))[:3]}. Resize, crop or pad them in the pipeline"
                )
        return [to_jax(batch) for batch in outputs]

    def _whole(self, parts: list[Any]) -> Any:
        if self._sharding is None and not self._stacks:
            return parts[0]
        if len({part.shape for part in parts}) > 1:
            raise DataError(
                f"`{self._name}`: expected batches of one shape from all pipelines, got "
                f"{sorted({part.shape for part in parts})}"
            )
        local = jax.local_devices()
        if self._sharding is not None:
            count = len(self._sharding.device_set)
            shape = (count * parts[0].shape[0], *parts[0].shape[1:])
            placed = [jax.device_put(part, device) for part, device in zip(parts, local, strict=False)]
            return jax.make_array_from_single_device_arrays(shape, self._sharding, placed)
        mesh = jax.sharding.Mesh(np.asarray(local[: len(parts)]), ("device",))
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("device"))
        placed = [jax.device_put(part[None], device) for part, device in zip(parts, local, strict=False)]
        return jax.make_array_from_single_device_arrays((len(parts), *parts[0].shape), sharding, placed)


class ArraySpec(NamedTuple):
    """Type and shape of an output, as the iterators of CLU describe them."""

    dtype: Any
    shape: tuple[int, ...]


class DALIGenericPeekableIterator(DALIGenericIterator):
    """Iterator whose next batch can be seen before it is taken, as CLU's ``PeekableDatasetIterator``.

    All batches have the types and shapes of the first one. Arguments are those of :class:`DALIGenericIterator`.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seen: Any = None
        self._spec: dict[str, ArraySpec] | None = None
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def __next__(self) -> Any:
        """Return the next batch.

        Raises:
            StopIteration: the epoch is over.
            DataError: a row failed, or a batch differs from the first one in type or shape.
        """
        with self._lock:
            batch, self._seen = self._seen, None
            return self._checked() if batch is None else batch

    next = __next__

    def _checked(self) -> Any:
        batch = super().__next__()
        spec = {name: ArraySpec(array.dtype, array.shape) for name, array in batch.items()}
        self._spec = self._spec or spec
        if spec != self._spec:
            raise DataError(f"`{self._name}`: expected batches of {self._spec} as the first one, got {spec}")
        return batch

    def peek(self) -> Any:
        """Return the next batch without taking it.

        Raises:
            StopIteration: the epoch is over.
        """
        with self._lock:
            if self._seen is None:
                self._seen = self._checked()
            return self._seen

    def peek_async(self) -> Future[Any]:
        """Return a future of :meth:`peek`, which runs in a thread."""
        self._pool = self._pool or ThreadPoolExecutor(1, "stoker-peek")
        return self._pool.submit(self.peek)

    @property
    def element_spec(self) -> dict[str, ArraySpec]:
        """Return types and shapes of the outputs, from the first batch."""
        if self._spec is None:
            self.peek()
        assert self._spec is not None
        return self._spec

    def checkpoints(self) -> list[Any]:
        """Return the state of every pipeline.

        Raises:
            StateError: a batch was peeked and not taken.
        """
        if self._seen is not None:
            raise StateError(f"`{self._name}`: expected all peeked batches to be taken before a checkpoint")
        return super().checkpoints()


def data_iterator(
    pipeline_fn: Callable[..., Any] | None = None, output_map: Sequence[str] = (), size: int = -1,
    reader_name: str | None = None, auto_reset: Any = False, last_batch_padded: bool = False,
    last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL, prepare_first_batch: bool = True, sharding: Any = None,
    devices: Sequence[Any] | None = None, pmap_compatible: bool | None = None,
) -> Any:  # fmt: skip
    """Make a function that defines a pipeline a function that returns an iterator (a decorator).

    The function is called with the arguments of a pipeline and its own. With `sharding` or `devices` it defines a
    pipeline for each local device and receives `device_id`, `shard_id` and `num_shards`; ``batch_size`` is then the
    number of rows over all devices. ``checkpoints=`` takes the result of the iterator's ``checkpoints()``.

    Args:
        pipeline_fn: the function.
        output_map: names of the outputs.
        size: rows of an epoch, for pipelines without a reader.
        reader_name: the reader whose epochs count.
        auto_reset: begin the next epoch after StopIteration, without ``reset``.
        last_batch_padded: the rows that fill an epoch's last batch are padding.
        last_batch_policy: FILL or DROP.
        prepare_first_batch: accepted; the first batch is computed when it is requested.
        sharding: a ``jax.sharding.Sharding`` of all outputs.
        devices: local devices for ``jax.pmap``.
        pmap_compatible: outputs have a first axis for devices.

    Raises:
        ArgumentError: both `sharding` and `devices` are given, or `devices` in one of several processes.
    """
    return _decorated(
        DALIGenericIterator, pipeline_fn, sharding, devices, pmap_compatible, output_map=output_map, size=size,
        reader_name=reader_name, auto_reset=auto_reset, last_batch_padded=last_batch_padded,
        last_batch_policy=last_batch_policy, prepare_first_batch=prepare_first_batch,
    )  # fmt: skip


def peekable_data_iterator(
    pipeline_fn: Callable[..., Any] | None = None, output_map: Sequence[str] = (), size: int = -1,
    reader_name: str | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Do the same as :func:`data_iterator`, with a :class:`DALIGenericPeekableIterator`.

    Args:
        pipeline_fn: the function.
        output_map: names of the outputs.
        size: rows of an epoch, for pipelines without a reader.
        reader_name: the reader whose epochs count.
        **options: the other arguments of :func:`data_iterator`.
    """
    known = {"output_map": output_map, "size": size, "reader_name": reader_name, **options}
    return _decorated(DALIGenericPeekableIterator, pipeline_fn, **known)


def _decorated(
    kind: Callable[..., Any], function: Any, sharding: Any = None, devices: Any = None,
    pmap_compatible: bool | None = None, **options: Any,
) -> Any:  # fmt: skip
    if sharding is not None and devices is not None:
        raise ArgumentError("`data_iterator`: expected `sharding` or `devices`, got both")
    if function is None:
        return lambda function: _decorated(kind, function, sharding, devices, pmap_compatible, **options)

    @functools.wraps(function)
    def make(*args: Any, checkpoints: Sequence[Any] | None = None, **settings: Any) -> Any:
        define = pipeline_def(function)
        settings.setdefault("num_threads", default_threads())
        if sharding is None and devices is None:
            pipes = [define(*args, checkpoint=checkpoints[0] if checkpoints else None, **settings)]
            return kind(pipes, pmap_compatible=pmap_compatible, **options)
        if devices is not None and jax.local_device_count() != jax.device_count():
            raise ArgumentError("`data_iterator`: expected one process for `devices`; use `sharding` with several")
        own = list(devices) if devices is not None else jax.local_devices()
        count = len(own) if devices is not None else jax.device_count()
        if checkpoints and len(checkpoints) != len(own):
            raise ArgumentError(f"`data_iterator`: expected {len(own)} checkpoints, got {len(checkpoints)}")
        rows = settings.pop("batch_size", None)
        if not isinstance(rows, int) or rows < count:
            raise ArgumentError(
                f"`data_iterator`: expected a `batch_size` of at least one row for each of {count} devices, got "
                f"{brief(rows)}"
            )
        pipes = [
            define(
                *args, batch_size=rows // count, device_id=number, shard_id=device.id, num_shards=count,
                checkpoint=checkpoints[number] if checkpoints else None, **settings,
            )
            for number, device in enumerate(own)
        ]  # fmt: skip
        stacks = None if sharding is not None else pmap_compatible
        return kind(pipes, sharding=sharding, pmap_compatible=stacks, **options)

    return make
