# SPDX-License-Identifier: Apache-2.0
"""What was recorded about an image.

A :class:`Node` is one step: an operation on the image of another node, or the decoding of a :class:`Source`. Nodes are
never changed, so that any number of images share what they have in common: ten crops of a file are ten nodes on one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...native import _native
from .segment import Bytes
from .source import Source

_OPS = {name: number for number, (name, _) in enumerate(_native.recipe.OPS)}
PIXELS = _OPS["Pixels"]
DECODE, CROP, RESIZE, TRANSPOSE, AFFINE = (_OPS[n] for n in ("Decode", "Crop", "Resize", "Transpose", "Affine"))
PAD, MAP, LUMA, SPREAD = (_OPS[n] for n in ("Pad", "Map", "Luma", "Spread"))
RAW = -1  # no step of native code: the source's bytes are the values themselves, of an image that was not recorded
CONTRAST, SATURATE, SHARPEN = (_OPS[n] for n in ("Contrast", "Saturate", "Sharpen"))
STORE, STORE_PIXELS = _OPS["Store"], _OPS["StorePixels"]
HUE, AUTOCONTRAST, EQUALIZE = (_OPS[n] for n in ("Hue", "Autocontrast", "Equalize"))
PROJECT, PAD_EDGES, CORRELATE = (_OPS[n] for n in ("Project", "PadEdges", "Correlate"))
# As torch does them with tensors.
TORCH_RESIZE, TORCH_PICK, TORCH_LUMA, TORCH_CONTRAST, TORCH_SATURATE, TORCH_HUE, TORCH_SHARPEN = (
    _OPS[f"Torch{n}"] for n in ("Resize", "Pick", "Luma", "Contrast", "Saturate", "Hue", "Sharpen")
)
TORCH_AUTOCONTRAST, TORCH_EQUALIZE = _OPS["TorchAutocontrast"], _OPS["TorchEqualize"]
CHANNELS, BLUR, MIX, BLEND = (_OPS[n] for n in ("Channels", "Blur", "Mix", "Blend"))
TORCH_RESIZE_FLOATS = _OPS["TorchResizeFloats"]
TORCH_WARP, TORCH_GRID, PATCH = _OPS["TorchWarp"], _OPS["TorchGrid"], _OPS["Patch"]
TORCH_PRODUCTS, TORCH_SHARPEN_PRODUCTS = _OPS["TorchProducts"], _OPS["TorchSharpenProducts"]
FLOATS, POINTWISE, FLOAT_PAD, FLOAT_CONTRAST = (_OPS[n] for n in ("Floats", "Pointwise", "FloatPad", "FloatContrast"))

# What is recorded leads nowhere back to itself, and lives for a batch in great numbers: Python's collector of cycles,
# which would look for some in it, and in all else whenever there is much of it, need not know of it.
untrack = _native.recipe.untrack

Size = tuple[int, int]  # (width, height), as Pillow's


class Node:
    """One recorded step, and what its image is like."""

    __slots__ = ("asked", "channels", "floats", "made", "op", "params", "parent", "size", "source")

    def __init__(
        self, op: int, parent: Node | None, params: tuple[Any, ...], size: Size, channels: int, source: Source
    ) -> None:
        self.op = op
        self.parent = parent
        self.params = params
        self.size = size
        self.channels = channels
        self.source = source
        self.floats: bool = op == FLOATS or (parent is not None and parent.floats)  # else bytes
        self.asked = 0  # how many images were made early out of this one
        self.made: Node | None = None  # its pixels, if they were made early; see `early.py`
        untrack(self)

    @classmethod
    def decode(cls, source: Source, size: Size, channels: int, strict: bool = False) -> Node:
        """The whole image of a file; ``strict``: if it is damaged, who opened it decodes it, and not Pillow."""
        return cls(DECODE, None, (channels, 0, 0, *size, strict), size, channels, source)

    @classmethod
    def pixels(cls, data: Bytes, size: Size, channels: int, planar: bool = False) -> Node:
        """An image that is there already: ``(height, width, channels)``, or planar, as bytes."""
        return cls(PIXELS, None, (channels, 0, 0, *size, planar), size, channels, Source(data))

    @property
    def root(self) -> Node:
        """What it begins with: a file, or pixels."""
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    @classmethod
    def raw(cls, data: Bytes, size: Size, channels: int) -> Node:
        """Values that are there already, ``(channels, height, width)``, as bytes, which are copied."""
        return cls(RAW, None, (), size, channels, Source.keep(data))

    def then(self, op: int, params: tuple[Any, ...] = (), size: Size | None = None, channels: int = 0) -> Node:
        """A step on this one's image; size and channels stay unless given."""
        return Node(op, self, params, size or self.size, channels or self.channels, self.source)

    def __reduce__(self) -> tuple[Any, ...]:
        return Node, (self.op, self.parent, self.params, self.size, self.channels, self.source)


def others_of(node: Node) -> tuple[Node, ...]:
    """The images that a step takes beside its parent's."""
    if node.op == MIX:
        return node.params[1]  # type: ignore[no-any-return]
    return node.params[:1] if node.op == BLEND else ()


class Patch(NamedTuple):
    """Values that are put over a window of a stored image."""

    window: tuple[int, int, int, int, int, int]  # c0 c1 y0 y1 x0 x1
    single: bool  # all get the one value
    values: Bytes  # ``(channels, height, width)`` of the window, as bytes; with some behind them, as tables are
