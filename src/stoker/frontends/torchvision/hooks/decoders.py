# SPDX-License-Identifier: Apache-2.0
"""torchvision's decoders ``torchvision.io.decode_image`` and ``decode_jpeg``, which record JPEG files.

The hook replaces the operators in ``torch.ops.image``. Functions that a script has imported early are therefore
covered, and check their arguments as usual. Within a batch of a loader the result is a lazy tensor; elsewhere Stoker
decodes immediately. torchvision decodes files that Stoker does not support.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ....native import _native
from .. import counts
from ..ir import steps
from ..ir.recipe import Node
from ..materialize import retry, trial
from ..materialize.materialization import Materialization
from ..pillow.jpeg_file import has_end_marker
from ..tensors.tensor import LazyTensor, image_tensor
from ..transport.source import Source

OPERATORS = ("decode_jpeg", "decode_image")
_UNCHANGED, _GRAY, _RGB = 0, 1, 3  # values of torchvision's ImageReadMode; the others are not for JPEG files
_SIGNATURE = (0xFF, 0xD8, 0xFF)
# Pillow's transposition that undoes each EXIF orientation.
_TURNS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
_EXCHANGES_SIDES = (5, 6, 7, 8)


def decode(original: Callable[..., Any], data: Any, mode: int = 0, apply_exif_orientation: bool = False) -> Any:
    """Replace an operator of torchvision: return the image as uint8 ``(channels, height, width)``."""
    node = _node(original, data, mode, apply_exif_orientation)
    if node is None:
        return original(data, mode, apply_exif_orientation)
    lazy = image_tensor(node)
    if retry.current_origin() is not None:
        return lazy
    result = _decode_now(lazy)
    return original(data, mode, apply_exif_orientation) if result is None else result


def _node(original: Callable[..., Any], data: Any, mode: int, turned: bool) -> Node | None:
    """Return the node of a file that native code is sure to decode like torchvision; otherwise None."""
    plain = type(data) is torch.Tensor and data.dtype == torch.uint8 and data.ndim == 1 and data.device.type == "cpu"
    if not plain or mode not in (_UNCHANGED, _GRAY, _RGB) or tuple(data[:3].tolist()) != _SIGNATURE:
        return None
    file = data.numpy().tobytes()
    info = _native.jpeg.jpeg_info(file)
    whole = info["support"] == "native" and info["components"] in (1, 3) and has_end_marker(file)
    if not whole or retry.is_damaged(file) or not _decodes_equally(original, info, mode):
        counts.add(counts.PILLOW)
        return None
    source = Source.from_bytes(file)
    source.origin = retry.current_origin()
    channels = 1 if mode == _GRAY else info["components"]
    node = Node.decode(source, (info["width"], info["height"]), channels, strict=True)
    if mode == _RGB and channels == 1:
        node = node.then(steps.Spread(), channels=3)
    orientation = info["orientation"] if turned else 1
    if orientation in _TURNS:
        size = node.size[::-1] if orientation in _EXCHANGES_SIDES else node.size
        node = node.then(steps.Transpose(_TURNS[orientation]), size)
    return node


def _decodes_equally(original: Callable[..., Any], info: dict[str, Any], mode: int) -> bool:
    """Return whether torchvision's decoder, which may be older than Pillow's, equals native code."""

    def decode(data: bytes) -> Any:
        return original(torch.frombuffer(bytearray(data), dtype=torch.uint8), _UNCHANGED).permute(1, 2, 0).numpy()

    colours = info["sampling"] if info["components"] == 3 and mode != _GRAY else None
    return trial.decodes_equally("torchvision", colours, decode)


def _decode_now(lazy: LazyTensor) -> torch.Tensor | None:
    """Return the image, decoded on this thread; None if the file is damaged."""
    materialization = Materialization([lazy])
    _native.recipe.materialize(materialization.native_batch)
    if materialization.native_batch.failures:
        counts.add(counts.PILLOW)
        return None
    materialization.finish()
    return lazy._materialized
