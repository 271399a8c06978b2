# SPDX-License-Identifier: Apache-2.0
"""Base class of readers that can return the location of each sample."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..contract.argument import arg
from ..contract.reader import OpenSource
from ..contract.storage import RecordLocation
from ._columns import strings
from ._sampled import SampledReader


class OriginReader(SampledReader, ABC):
    """Reader whose last output may be the location of the sample.

    Its outputs are the columns of the data set, so a subclass with a `lower` of its own adds the last column there.
    """

    arguments_come_last = True
    gives_origin = True
    origin = arg(
        "bool", False, doc="Add a last output: the path of the sample's file as UTF-8, uint8 `(N,)`, in a container "
        "followed by ` at byte N`. `fn.get_property(x, key=\"source_info\")` does so too.",
    )  # fmt: skip

    def count_outputs_with(self, args: Mapping[str, Any], inputs: int) -> int:
        return self.count_outputs(args) + bool(args["origin"])

    def arrange_outputs(self, args: Mapping[str, Any], outputs: Sequence[Any]) -> Any:
        if not args["origin"]:
            return super().arrange_outputs(args, outputs)
        return tuple(outputs)

    @classmethod
    def open(cls, args: Mapping[str, Any]) -> OpenSource:
        source = super().open(args)
        if not args["origin"]:
            return source
        places = (text_of(source.locate(index)) for index in range(source.samples))
        return replace(source, columns=(*source.columns, strings("origin", places)))


def text_of(place: RecordLocation) -> str:
    """Return the location without the escapes that messages have, so that the path of a file opens it."""
    return place.path if place.length is None or not place.path else f"{place.path} at byte {place.offset}"
