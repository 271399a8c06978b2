# SPDX-License-Identifier: Apache-2.0
"""Sources of the imperative mode: readers, sources in Python, and files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ....contract.errors import ArgumentError, StateError
from ....contract.text import brief
from ...checks import seed_of
from ...pipeline import Pipeline
from ..errors import raises_as_dali, raising_as_dali
from ..functions import function
from .context import EvalContext
from .devices import CPU, Device
from .devices import device as as_device
from .tensors import Batch, as_batch, as_tensor, call


class Reader:
    """Reader of a data set, epoch by epoch. Arguments are those of the operator.

    ``for images, labels in reader.next_epoch(batch_size=8)`` gives batches; without ``batch_size`` it gives tensors.
    Orders are those of a pipeline with the reader, whose epochs follow each other without a gap. All batches are full:
    the last one of an epoch has the first rows of the next epoch, which then begins after them, or, with
    ``pad_last_batch``, repeats the last row.
    """

    operator = ""

    def __init__(self, *, max_batch_size: int | None = None, name: str | None = None, device: Any = "cpu",
                 enable_checkpointing: bool = True, seed: int | None = None, **arguments: Any) -> None:  # fmt: skip
        """Take the arguments. Files are opened at first use.

        Args:
            max_batch_size: accepted; memory is planned.
            name: name of the reader.
            device: "cpu", or "gpu" or "mixed" for readers that give data in the memory of the current GPU.
            enable_checkpointing: accepted: states are always there.
            seed: seed of the order; by default a random one.
            **arguments: arguments of the operator.
        """
        self._place = _reader_place(device)
        self._name = name or self.operator
        self._has_seed = seed is not None and not (isinstance(seed, int) and seed < 0)  # as Pipeline
        self._seed = seed if self._has_seed else int.from_bytes(os.urandom(8), "little") >> 1
        self._arguments = arguments
        self._threads = EvalContext.current().num_threads
        self._captures: bool | None = None
        self._pipe: Pipeline | None = None
        self._state: dict[str, Any] | None = None
        self._keys: tuple[str, ...] | None = None

    @raises_as_dali
    def _opened(self, batch_size: int) -> Pipeline:
        """Return a pipeline with the reader, at the reader's position."""
        pipe = self._pipe
        if pipe is not None and pipe.batch_size == batch_size:
            return pipe
        state = self._state if pipe is None else pipe.get_state()
        if pipe is not None:
            pipe.close()
        settings: dict[str, Any] = {"batch_size": batch_size, "num_threads": self._threads, "seed": self._seed}
        place = {} if self._place == CPU else {"device": "gpu"}
        if place:
            settings["device_id"] = self._place.device_id
        pipe = Pipeline(**settings)
        with pipe:
            outputs = function(self.operator)(name=self._name, **place, **self._arguments)
            if isinstance(outputs, dict):
                self._keys, outputs = tuple(outputs), list(outputs.values())
            pipe.set_outputs(*(outputs if isinstance(outputs, (tuple, list)) else [outputs]))
        pipe.build()
        if state is not None:
            pipe.set_state(state)
        self._pipe, self._state = pipe, None
        return pipe

    def next_epoch(
        self, batch_size: int | None = None, ctx: EvalContext | None = None, capture: bool = False
    ) -> Iterator[Any]:
        """Iterate over as many full batches as an epoch of the shard needs, from the reader's position: a tuple of
        batches or tensors at a time, or a dictionary for readers with named outputs. A loop that ended early leaves the
        position after its last batch.

        Args:
            batch_size: rows of a batch. None: single tensors.
            ctx: context that is active in the loop's body; by default the current one.
            capture: promise that the body calls the same operators in every iteration. Results are the same: the reader
                reads ahead in any case, and operators compute when they are called. A reader keeps its choice.
        """
        with raising_as_dali():
            if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
                raise ArgumentError(
                    f"`{self.operator}`: expected a `batch_size` of at least 1, got {brief(batch_size)}"
                )
            if capture and batch_size is None:
                raise ArgumentError(f"`{self.operator}`: expected a `batch_size` with `capture=True`, got None")
            if self._captures not in (None, capture):
                text = f"expected `capture={self._captures}` as in earlier epochs, got {capture}. Make another reader"
                raise StateError(f"`{self.operator}`: {text}")
        self._captures = capture
        if self._pipe is None:
            self._threads = (EvalContext.current() if ctx is None else ctx).num_threads
        return _in_context(ctx, self.continue_epoch(batch_size))

    def continue_epoch(self, batch_size: int | None, delivered: int = 0) -> Iterator[Any]:
        """Iterate over the epoch's batches that follow the first ``delivered`` ones, from the reader's position.

        Args:
            batch_size: rows of a batch. None: single tensors.
            delivered: number of batches that the epoch has given already.
        """
        rows = 1 if batch_size is None else batch_size
        pipe = self._opened(rows)
        facts = pipe.reader_meta(self._name)
        epoch_rows = facts["epoch_size_padded"] // facts["number_of_shards"]
        for _ in range(delivered, -(-epoch_rows // rows)):
            with raising_as_dali():
                # The pipeline is another one if the caller has set a state or changed the size of batches.
                pipe = self._opened(rows)
                batches = [Batch._of(x, self._place) for x in pipe.run()]
            results = tuple(batches if batch_size is not None else (x.select(0) for x in batches))
            yield results if self._keys is None else dict(zip(self._keys, results, strict=True))

    @raises_as_dali
    def count_outputs(self) -> int:
        """Return the number of outputs."""
        return len((self._pipe or self._opened(1)).execution.graph.outputs)

    def get_metadata(self) -> dict[str, Any]:
        """Return the size of the epoch and the shards, as ``Pipeline.reader_meta``."""
        pipe = self._pipe or self._opened(1)
        facts: dict[str, Any] = pipe.reader_meta(self._name)
        return facts

    def get_state(self) -> str:
        """Return the position after the last batch, as text."""
        return json.dumps((self._pipe or self._opened(1)).get_state())

    @raises_as_dali
    def set_state(self, value: str) -> None:
        """Continue at a position.

        Args:
            value: the text of `get_state` of a reader with the same arguments. The seed is the same, too, or the reader
                was made without one and takes that of the state.
        """
        try:
            state = json.loads(value)
        except (TypeError, ValueError) as error:
            raise StateError(f"`{self.operator}`: expected the text of `get_state`, got {brief(value)}") from error
        pipe = self._pipe or self._opened(1)
        saved = seed_of(state) if isinstance(state, dict) else None
        if self._has_seed or saved in (None, self._seed):
            pipe.set_state(state)
            return
        batch_size = pipe.batch_size
        self.close()
        before = self._seed, self._state
        self._seed, self._state = saved, None
        try:
            self._opened(batch_size).set_state(state)
        except BaseException:
            self.close()
            self._seed, self._state = before
            raise

    def close(self) -> None:
        """Stop reading ahead; the next epoch begins where the reader was."""
        if self._pipe is not None:
            self._state = self._pipe.get_state()
            self._pipe.close()
            self._pipe = None


def _reader_place(given: Any) -> Device:
    """Return the device of a reader; "mixed" means the current GPU."""
    found = as_device("gpu" if given == "mixed" else given)
    return CPU if found is None else found


def _in_context(context: EvalContext | None, results: Iterator[Any]) -> Iterator[Any]:
    """Give the results with a context active from the first one to the end; None: the caller's."""
    with nullcontext() if context is None else context:
        yield from results


class ExternalSource:
    """Source in Python: a function without parameters, or an iterable. A call takes its next data."""

    def __init__(self, source: Any, num_outputs: int = 1, *, cycle: str | bool | None = None, device: Any = "cpu",
                 layout: Any = None, dtype: Any = None) -> None:  # fmt: skip
        """Take the source.

        Args:
            source: the function or iterable. Its data are those of a tensor, or of a batch in a call with one, or a
                tuple of them if there are several outputs.
            num_outputs: number of outputs.
            cycle: what follows the end of an iterable: None, False or "no": StopIteration; True or "quiet": its
                beginning; "raise": StopIteration, and then its beginning.
            device: device of the tensors.
            layout: names of the axes, or a list with those of each output.
            dtype: element type, or a list with that of each output.
        """
        self._place = as_device(device)
        with raising_as_dali():
            if not callable(source) and not isinstance(source, Iterable):
                raise ArgumentError(f"`ExternalSource`: expected a function or an iterable, got {brief(source)}")
            if cycle not in (None, False, True, "no", "quiet", "raise"):
                raise ArgumentError(
                    f'`ExternalSource`: expected "no", "quiet" or "raise" as `cycle`, got {brief(cycle)}'
                )
            if cycle not in (None, False, "no") and (callable(source) or isinstance(source, Iterator)):
                raise ArgumentError("`ExternalSource`: expected an iterable that can begin again, for `cycle`")
        self._source, self._outputs, self._cycle = source, num_outputs, cycle
        self._layouts, self._types = _each(layout, num_outputs), _each(dtype, num_outputs)
        self._iterator: Iterator[Any] | None = None

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """Return the next data as a tensor, or as a batch.

        Args:
            batch_size: number of rows: those of the data if they are a list, else the data serve all rows.

        Raises:
            StopIteration: the source has ended.
        """
        data = self._next()
        with raising_as_dali():
            parts = data if self._outputs > 1 else (data,)
            if not isinstance(parts, (tuple, list)) or len(parts) != self._outputs:
                raise ArgumentError(f"`ExternalSource`: expected {self._outputs} outputs, got {brief(data)}")
            settings = zip(parts, self._layouts, self._types, strict=True)
            results = tuple(_made(x, batch_size, layout, dtype, self._place) for x, layout, dtype in settings)
        return results[0] if self._outputs == 1 else results

    def captured(self, batch_size: int, ctx: EvalContext | None = None) -> Iterator[Any]:
        """Iterate over the data until the source ends: batches, as calls with ``batch_size`` give them.

        Args:
            batch_size: number of rows.
            ctx: context that is active in the loop's body; by default the current one.
        """
        if self._iterator is not None:
            with raising_as_dali():
                raise StateError("`ExternalSource`: expected a source that has given no data yet, for `captured`")
        return _in_context(ctx, self._batches(batch_size))

    def _batches(self, batch_size: int) -> Iterator[Any]:
        while True:
            try:
                data = self(batch_size=batch_size)
            except StopIteration:
                self._iterator = None  # the next loop begins again
                return
            yield data

    def _next(self) -> Any:
        if callable(self._source):
            return self._source()
        if self._iterator is None:
            self._iterator = iter(self._source)
        try:
            return next(self._iterator)
        except StopIteration:
            if self._cycle in (None, False, "no"):
                raise
            self._iterator = None
            if self._cycle == "raise":
                raise
            self._iterator = iter(self._source)
            return next(self._iterator)


def _each(value: Any, count: int) -> Sequence[Any]:
    values = list(value) if isinstance(value, (list, tuple)) else [value] * count
    if len(values) != count:
        with raising_as_dali():
            raise ArgumentError(f"`ExternalSource`: expected one setting or {count}, got {brief(value)}")
    return values


def _made(data: Any, batch_size: int | None, layout: Any, dtype: Any, place: Device | None) -> Any:
    if batch_size is None:
        if isinstance(data, Batch):
            return as_batch(data, dtype, place, layout)
        return as_tensor(data, dtype, place, layout)
    if not isinstance(data, (Batch, list)):
        return Batch.broadcast(as_tensor(data, dtype, place, layout), batch_size)
    made = as_batch(data, dtype, place, layout)
    if made.batch_size != batch_size:
        raise ArgumentError(f"`ExternalSource`: expected {batch_size} rows, got {made.batch_size}")
    return made


def imread(filepaths: Any, /, *, device: Any = "cpu", **arguments: Any) -> Any:
    """Read and decode image files: a tensor for one path, a batch for a list.

    Args:
        filepaths: a path, or a list of paths.
        device: device that decodes and has the images.
        **arguments: those of ``decoders.image``.
    """
    one = isinstance(filepaths, (str, bytes, os.PathLike))
    read: Callable[[Any], Any] = lambda path: np.fromfile(path, np.uint8)  # noqa: E731
    data = as_tensor(read(filepaths)) if one else as_batch([read(path) for path in filepaths])
    return call("decoders.image", [data], arguments, None, device)
