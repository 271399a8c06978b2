# SPDX-License-Identifier: Apache-2.0
"""torchvision's own decoders, ``torchvision.io.decode_image`` and ``decode_jpeg``: JPEG files are recorded.

What is replaced are the operators behind them, ``torch.ops.image``, so that functions which a script imported early are
covered, and check their arguments as before. Within a batch of a loader the result records like every other image's;
elsewhere it is decoded at once, by Stoker. What Stoker does not decode, torchvision does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...native import _native
from . import counts, recipe, retry, trial
from .jpeg_file import is_whole
from .making import Making
from .recipe import Node
from .source import Source
from .tensor import LazyTensor, image_tensor

OPERATORS = ("decode_jpeg", "decode_image")
_UNCHANGED, _GRAY, _RGB = 0, 1, 3  # of torchvision's ImageReadMode; the others are not for JPEG files
_SIGNATURE = (0xFF, 0xD8, 0xFF)
# Pillow's transposition that undoes each EXIF orientation.
_TURNS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
_EXCHANGES_SIDES = (5, 6, 7, 8)


def decode(original: Callable[..., Any], data: Any, mode: int = 0, apply_exif_orientation: bool = False) -> Any:
    """An operator of torchvision: the image as uint8 ``(channels, height, width)``."""
    node = _node(original, data, mode, apply_exif_orientation)
    if node is None:
        return original(data, mode, apply_exif_orientation)
    lazy = image_tensor(node)
    if retry.origin() is not None:
        return lazy
    made = _made_now(lazy)
    return original(data, mode, apply_exif_orientation) if made is None else made


def _node(original: Callable[..., Any], data: Any, mode: int, turned: bool) -> Node | None:
    """What is recorded for a file, if it is one that native code surely decodes, as torchvision does."""
    plain = type(data) is torch.Tensor and data.dtype == torch.uint8 and data.ndim == 1 and data.device.type == "cpu"
    if not plain or mode not in (_UNCHANGED, _GRAY, _RGB) or tuple(data[:3].tolist()) != _SIGNATURE:
        return None
    file = data.numpy().tobytes()
    info = _native.jpeg.jpeg_info(file)
    whole = info["support"] == "native" and info["components"] in (1, 3) and is_whole(file)
    if not whole or retry.is_damaged(file) or not _is_alike(original, info, mode):
        counts.add(counts.FOREIGN)
        return None
    source = Source.keep(file)
    source.origin = retry.origin()
    channels = 1 if mode == _GRAY else info["components"]
    node = Node.decode(source, (info["width"], info["height"]), channels, strict=True)
    if mode == _RGB and channels == 1:
        node = node.then(recipe.SPREAD, (), channels=3)
    orientation = info["orientation"] if turned else 1
    if orientation in _TURNS:
        size = node.size[::-1] if orientation in _EXCHANGES_SIDES else node.size
        node = node.then(recipe.TRANSPOSE, (_TURNS[orientation],), size)
    return node


def _is_alike(original: Callable[..., Any], info: dict[str, Any], mode: int) -> bool:
    """Whether torchvision's decoder, which may be older than Pillow's, makes the same of files with such colours."""

    def decode(data: bytes) -> Any:
        return original(torch.frombuffer(bytearray(data), dtype=torch.uint8), _UNCHANGED).permute(1, 2, 0).numpy()

    colours = info["sampling"] if info["components"] == 3 and mode != _GRAY else None
    return trial.decodes_alike("torchvision", colours, decode)


def _made_now(lazy: LazyTensor) -> torch.Tensor | None:
    """The image, decoded on this thread; None if the file is damaged."""
    making = Making([lazy])
    _native.recipe.make(making.order)
    if making.order.unmade:
        counts.add(counts.FOREIGN)
        return None
    making.finish()
    return lazy._real
