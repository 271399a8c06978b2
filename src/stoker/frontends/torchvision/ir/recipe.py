# SPDX-License-Identifier: Apache-2.0
"""Recorded steps of an image.

A :class:`Node` is one step: an operation on the image of another node, or the decoding of a :class:`Source`. Nodes are
immutable, so images share common steps: ten crops of a file are ten nodes with the same parent.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ....native import _native
from ..transport.segment import Bytes
from ..transport.source import Source
from . import steps

# Layouts of existing bytes, as in native/shared/recipe_ops.hpp: (height, width, channels), (channels, height, width),
# and (height, width) of four bytes, the first three of which are the channels.
PACKED, PLANAR, OF_FOUR_BYTES = 0, 1, 2
RAW = -1  # no native step: the source's bytes are the values of an image that was not recorded
Step = tuple[Any, ...]  # a class of `steps.py`, or one of the two below


class Raw(NamedTuple):
    """Values of an image that was not recorded."""


class StrictDecode(steps.Decode):
    """Decoding of a file for torchvision: if the file is damaged, torchvision decodes it instead of Pillow."""

    __slots__ = ()


_NUMBERS: dict[type, int] = {
    **{kind: number for number, kind in enumerate(steps.CLASSES)},
    StrictDecode: steps.DECODE,
    Raw: RAW,
}
# Step classes by the number that represents them in pickles.
_KINDS: tuple[Any, ...] = (*steps.CLASSES, StrictDecode, Raw)
_CODES = {kind: code for code, kind in enumerate(_KINDS)}

# Recorded objects form no reference cycles and exist in great numbers for the time of a batch. Python's cycle collector
# need not traverse them, and their number should not trigger collections.
untrack = _native.recipe.untrack

Size = tuple[int, int]  # (width, height), as Pillow's


class Node:
    """One recorded step, with the size and the channels of its image."""

    __slots__ = ("channels", "eager_pixels", "eager_uses", "is_float", "op", "parent", "size", "source", "step")

    def __init__(self, step: Step, parent: Node | None, size: Size, channels: int, source: Source) -> None:
        self.op = op = _NUMBERS[type(step)]
        self.parent = parent
        self.step = step
        self.size = size
        self.channels = channels
        self.source = source
        # float32 values; otherwise bytes
        self.is_float: bool = op == steps.FLOATS or (parent is not None and parent.is_float)
        self.eager_uses = 0  # number of images that were forced early through this node
        self.eager_pixels: Node | None = None  # its pixels, if they were materialized early; see `materialize/eager.py`
        untrack(self)
        untrack(step)  # Python untracks plain tuples itself, but no subclasses

    @classmethod
    def decode(
        cls, source: Source, size: Size, channels: int, *, strict: bool = False, is_lenient: bool = False
    ) -> Node:
        """Return a node for the whole image of a file.

        Args:
            source: the file.
            size: of the image.
            channels: of the image.
            strict: torchvision decodes the file if it is damaged; see :class:`StrictDecode`.
            is_lenient: damage is no error, as in Pillow with ``LOAD_TRUNCATED_IMAGES``.
        """
        kind = StrictDecode if strict else steps.Decode
        return cls(kind(channels, 0, 0, *size, int(is_lenient)), None, size, channels, source)

    @classmethod
    def pixels(cls, data: Bytes, size: Size, channels: int, layout: int = PACKED) -> Node:
        """Return a node for existing bytes in one of the layouts of :data:`PACKED`."""
        step = steps.Pixels(size[1], size[0], channels, layout, 0, 0, *size)
        return cls(step, None, size, channels, Source(data))

    @property
    def root(self) -> Node:
        """Return the first node: a file or existing pixels."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    @classmethod
    def raw(cls, data: Bytes, size: Size, channels: int) -> Node:
        """Return a node for existing values ``(channels, height, width)``, given as bytes. The bytes are copied."""
        return cls(Raw(), None, size, channels, Source.from_bytes(data))

    def then(self, step: Step, size: Size | None = None, channels: int = 0) -> Node:
        """Return a node for a step on this node's image. Size and channels stay the same unless they are given."""
        return Node(step, self, size or self.size, channels or self.channels, self.source)

    def __reduce__(self) -> tuple[Any, ...]:
        # The class's number is shorter than its name, by which pickle would save it.
        return _unpickle_node, (
            _CODES[type(self.step)],
            tuple(self.step),
            self.parent,
            self.size,
            self.channels,
            self.source,
        )


def _unpickle_node(code: int, numbers: tuple[Any, ...], *others: Any) -> Node:
    return Node(_KINDS[code]._make(numbers), *others)


def extra_inputs(node: Node) -> tuple[Node, ...]:
    """Return the images that a step takes in addition to its parent's."""
    step = node.step
    if isinstance(step, steps.Mix):
        return tuple(image for image, _ in step.others)
    return (step.image,) if isinstance(step, steps.Blend) else ()


class Patch(NamedTuple):
    """Values that overwrite a window of a stored image."""

    window: tuple[int, int, int, int, int, int]  # c0 c1 y0 y1 x0 x1
    single: bool  # the window is filled with one value
    values: Bytes  # ``(channels, height, width)`` of the window, as bytes, padded like a table
