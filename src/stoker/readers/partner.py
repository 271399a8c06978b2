# SPDX-License-Identifier: Apache-2.0
"""``readers.partner``: another sample for each row, for operators that mix two samples."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..contract.argument import ON_ERROR, arg
from ..contract.errors import ArgumentError, UnsupportedError
from ..contract.lowering import Lowering
from ..contract.random import words_of_rows
from ..contract.reader import BoundSampler, Ints, OpenSource, Reader, Source, SourcePart, lower_columns
from ..contract.step import Value
from ._combined import CombinedReader
from .order import Keys, RepeatingOrder

_MOST_PARTNERS = 64


@dataclass(frozen=True, eq=False)
class PartnerOrder(RepeatingOrder):
    """For each position of an order, the sample at another position of the same epoch.

    The row key decides the distance between both, so a row has the same partner in batches of any size, on any shard.

    Attributes:
        order: the reader's order.
        number: number of the partner: a row's partners are drawn independently.
    """

    order: BoundSampler
    number: int

    @property
    def size(self) -> int | None:
        return self.order.size

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        size = self.order.size
        assert size is not None
        keys: Keys = self.order.keys(epoch, positions, self.order.indices(seed, epoch, positions))
        words = words_of_rows(seed, epoch, keys, self.number).astype(np.uint64)
        distance = 1 + (words * np.uint64(max(size - 1, 1)) >> np.uint64(32)).astype(np.int64)
        return self.order.indices(seed, epoch, (positions + distance) % size)


class PartnerReader(Source, name="readers.partner"):
    """Read another sample for each row of a reader: the second image of `mixup`, `cutmix` and `mosaic`.

    Usage: ``others, other_labels = fn.readers.partner(files)`` with an output of ``fn.readers.file``, which returned
    ``files, labels``. Outputs: those of the reader, of the sample at another position of the epoch's order. The row key
    draws this position, among all others of the epoch and all shards. So a row has the same partner whatever the batch
    size and the number of shards. Different ``number`` give different partners. An epoch of one sample has itself as
    partner.

    The reader needs an order with random access and a length: no streams, no endless samplers, no data from Python.
    """

    devices = ("cpu",)
    positional = ("reader",)
    source_list_arguments = ("reader",)
    outputs = 2
    result_neutral: ClassVar[tuple[str, ...]] = ("on_error",)
    reader = arg("object", doc="An output of the reader, one of them.")
    number = arg("int", 0, doc="Number of the partner, from 0; each is another draw.")
    on_error = ON_ERROR

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        if len(args["reader"]) != 1:
            raise ArgumentError(f"expected one output of one reader as `reader`, got {len(args['reader'])}")
        if not 0 <= args["number"] < _MOST_PARTNERS:
            raise ArgumentError(f"expected `number` from 0 to {_MOST_PARTNERS - 1}, got {args['number']}")
        operator = args["reader"][0].operator
        if not any(issubclass(operator, c) and operator.lower is c.lower for c in (Reader, CombinedReader)):
            raise UnsupportedError(
                f"`readers.partner`: expected a reader of files whose outputs are columns, got `{operator.name}`"
            )

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        part: SourcePart | None = args["reader"][0] if args["reader"] else None
        return self.outputs if part is None else int(part.operator().count_outputs(part.args))

    @classmethod
    def open(cls, args: Mapping[str, Any]) -> OpenSource:
        """Open the reader's data set again, in the order of the partners.

        Raises:
            ArgumentError: the order is endless or has no random access, or as the reader itself.
            OSError: the operating system fails.
        """
        part = args["reader"][0]
        opened: OpenSource = part.operator.open(part.args)
        order, number = opened.sampler, args["number"]
        why = "it is endless" if order.size is None else order.forward_only
        if why:
            opened.close()
            raise ArgumentError(f"expected a reader whose order has random access and a length; {why}")
        digest = hashlib.blake2b(f"{opened.fingerprint} {number}".encode(), digest_size=8).hexdigest()
        name = f"partner {number} of {opened.order}"
        return replace(opened, sampler=PartnerOrder(order, number), fingerprint=digest, order=name, notes=())

    def lower(self, c: Lowering) -> tuple[Value, ...]:
        return lower_columns(c)
