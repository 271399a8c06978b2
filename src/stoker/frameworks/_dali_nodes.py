# SPDX-License-Identifier: Apache-2.0
"""Nodes of torchdata over DALI's imperative mode: a reader, a function on one entry, and tensors of PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import torch
import torchdata.nodes

from ..contract.errors import ArgumentError
from ..frontends.dali.dynamic.devices import CPU
from ..frontends.dali.dynamic.sources import Reader as DynamicReader
from ..frontends.dali.dynamic.streams import stream as as_stream
from ..frontends.dali.errors import error_class, raises_as_dali

_READER, _SOURCE, _DELIVERED = "reader", "source", "delivered"


class Reader(torchdata.nodes.BaseNode):  # type: ignore[misc]
    """Reader as a node: a dictionary of batches or tensors at a time. Its state is that of the reader."""

    @raises_as_dali
    def __init__(
        self, reader_type: type[DynamicReader], *, batch_size: int | None, output_names: Iterable[str] | None = None,
        **kwargs: Any,
    ) -> None:  # fmt: skip
        """Open a reader.

        Args:
            reader_type: class of ``readers``.
            batch_size: rows of a batch; None: single tensors.
            output_names: keys of the outputs; by default "data" and "label" if there are two.
            **kwargs: arguments of the reader.

        Raises:
            ArgumentError: the names are not those of all outputs.
        """
        super().__init__()
        self._reader = reader_type(**kwargs)
        self._batch_size = batch_size
        count = self._reader.count_outputs()
        names = ("data", "label") if output_names is None else tuple(output_names)
        if len(names) != count:
            text = f"expected names of {count} outputs as `output_names`, got {list(names)}"
            raise ArgumentError(f"`{self._reader.operator}`: {text}")
        self._names = names
        self._epoch: Iterator[Any] | None = None
        self._delivered = 0

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Begin an epoch at the reader's position, or continue one at a state.

        Args:
            initial_state: what `get_state` returned.
        """
        super().reset(initial_state)
        self._delivered = 0
        if initial_state is not None:
            self._reader.set_state(initial_state[_READER])
            self._delivered = initial_state[_DELIVERED]
        self._epoch = self._reader.continue_epoch(self._batch_size, self._delivered)

    def next(self) -> dict[str, Any]:
        """Return the next outputs by name.

        Raises:
            StopIteration: the epoch has ended.
        """
        if self._epoch is None:
            raise RuntimeError("the node has not begun: call `reset` first")
        outputs = next(self._epoch)
        self._delivered += 1
        values = outputs.values() if isinstance(outputs, dict) else outputs
        return dict(zip(self._names, values, strict=True))

    def get_state(self) -> dict[str, Any]:
        """Return the position after the last outputs, and how many the epoch has given."""
        return {_READER: self._reader.get_state(), _DELIVERED: self._delivered}

    def get_metadata(self) -> dict[str, Any]:
        """Return the size of the epoch and the shards."""
        return self._reader.get_metadata()


class _Following(torchdata.nodes.BaseNode):  # type: ignore[misc]
    """Base class of nodes that have one source and no state of their own."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        self._source = source

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Begin an epoch, or continue at a state.

        Args:
            initial_state: what `get_state` returned.
        """
        super().reset(initial_state)
        self._source.reset(None if initial_state is None else initial_state[_SOURCE])

    def get_state(self) -> dict[str, Any]:
        """Return the source's state."""
        return {_SOURCE: self._source.state_dict()}


class DictMapper(_Following):
    """Node that applies a function to one entry of the source's dictionaries."""

    def __init__(self, source: Any, map_fn: Callable[[Any], Any], key: str = "data") -> None:
        """Take the function.

        Args:
            source: node that gives dictionaries.
            map_fn: function of a tensor or batch.
            key: the entry.
        """
        super().__init__(source)
        self._function, self._key = map_fn, key

    def next(self) -> dict[str, Any]:
        """Return the next dictionary."""
        entries = dict(self._source.next())
        entries[self._key] = self._function(entries[self._key])
        return entries


class ToTorch(_Following):
    """Node that gives tuples of PyTorch's tensors. If an entry is on a GPU, all are moved there."""

    def __init__(self, source: Any, output_stream: Any = None) -> None:
        """Take the source.

        Args:
            source: node that gives dictionaries of tensors or batches; the rows of a batch have one shape.
            output_stream: CUDA stream that reads the tensors; by default PyTorch's current one. They are complete.
        """
        super().__init__(source)
        self._stream: Any = None
        if output_stream is not None:
            chosen = as_stream(stream=output_stream)
            assert chosen is not None
            self._owner = chosen
            self._stream = torch.cuda.ExternalStream(chosen.handle, chosen.device_id)  # type: ignore[no-untyped-call]

    def next(self) -> tuple[Any, ...]:
        """Return the next tensors, in the order of the dictionary."""
        entries = list(self._source.next().values())
        gpus = {x.device for x in entries} - {CPU}
        if len(gpus) > 1:
            text = f"expected entries on one GPU, got some on {' and '.join(sorted(map(str, gpus)))}"
            raise error_class(ArgumentError)(f"`ToTorch`: {text}")
        if gpus:
            place = gpus.pop()
            entries = [x.to_device(place) for x in entries]
        with nullcontext() if self._stream is None else torch.cuda.stream(self._stream):
            return tuple(x.torch() for x in entries)
