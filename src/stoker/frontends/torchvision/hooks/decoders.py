# SPDX-License-Identifier: Apache-2.0
"""torchvision's decoders ``torchvision.io.decode_image`` and ``decode_jpeg``, which record JPEG files.

The hooks replace the bodies of the Python functions; the operators in ``torch.ops`` stay as they are. torchvision
checks the arguments, and decodes files that Stoker does not support.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ....native import _native
from .. import counts, recording
from ..ir import steps
from ..ir.recipe import Node
from ..materialize import retry, trial
from ..pillow.jpeg_file import has_end_marker
from ..tensors.tensor import image_tensor, mark_by_pixel
from ..transport.source import Source

_UNCHANGED, _GRAY, _RGB = 0, 1, 3  # values of torchvision's ImageReadMode; the others are not for JPEG files
_SIGNATURE = (0xFF, 0xD8, 0xFF)
# Pillow's transposition that undoes each EXIF orientation.
_TURNS = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}
_EXCHANGES_SIDES = (5, 6, 7, 8)
Decode = Callable[[torch.Tensor], torch.Tensor]  # decodes the bytes of a file, without a conversion


def decode_jpeg(original: Callable[..., Any], input: Any, mode: Any, device: Any, apply_exif_orientation: Any) -> Any:
    """Replace ``torchvision.io.decode_jpeg``, for one file on the CPU."""
    lazy = None
    if device == "cpu" or (isinstance(device, torch.device) and device.type == "cpu"):
        lazy = decode(original, input, mode, apply_exif_orientation)
    return original(input, mode, device, apply_exif_orientation) if lazy is None else lazy


def decode_image(original: Callable[..., Any], input: Any, mode: Any, apply_exif_orientation: Any = False) -> Any:
    """Replace ``torchvision.io.decode_image``, for the bytes of a file or its path."""
    from torchvision.io import image

    if recording.is_on() and not isinstance(input, torch.Tensor):
        input = image.read_file(str(input))
    lazy = decode(original, input, mode, apply_exif_orientation)
    return original(input, mode, apply_exif_orientation) if lazy is None else lazy


HOOKS: dict[str, Callable[..., Any]] = {"decode_jpeg": decode_jpeg, "decode_image": decode_image}


def decode(original: Callable[..., Any], data: Any, mode: Any, apply_exif_orientation: Any = False) -> Any:
    """Return the image as a lazy tensor, uint8 ``(channels, height, width)``; None if torchvision is to decode it."""
    from torchvision.io import image

    if not recording.is_on() or type(data) is not torch.Tensor or type(apply_exif_orientation) is not bool:
        return None
    if isinstance(mode, str):
        mode = image.ImageReadMode.__members__.get(mode.upper())
    number = getattr(mode, "value", None)
    if number not in (_UNCHANGED, _GRAY, _RGB):
        return None

    def unchanged(file: torch.Tensor) -> torch.Tensor:
        return original(file, image.ImageReadMode.UNCHANGED)  # type: ignore[no-any-return]

    return _lazy_image(unchanged, data, number, apply_exif_orientation)


def _lazy_image(original: Decode, data: torch.Tensor, mode: int, turned: bool) -> Any:
    """Return the lazy tensor of a file that native code is sure to decode like torchvision; otherwise None."""
    plain = data.dtype == torch.uint8 and data.ndim == 1 and data.device.type == "cpu"
    if not plain or tuple(data[:3].tolist()) != _SIGNATURE:
        return None
    file = data.numpy().tobytes()
    info = _native.jpeg.jpeg_info(file)
    whole = info["support"] == "native" and info["components"] in (1, 3) and has_end_marker(file)
    if mode == _GRAY and info["components"] == 3:
        whole = whole and file[6:10] == b"JFIF"  # the colours of other files may have no luma
    # A script may decode a file only to find out whether it is damaged: no other error would be raised.
    whole = whole and not _native.jpeg.has_unknown_marker(file)
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
    lazy = mark_by_pixel(image_tensor(node))  # torchvision returns the decoder's rows of pixels, permuted
    lazy._is_turned = orientation in _EXCHANGES_SIDES
    return lazy


def _decodes_equally(original: Decode, info: dict[str, Any], mode: int) -> bool:
    """Return whether torchvision's decoder, which may be older than Pillow's, equals native code."""

    def decode(data: bytes) -> Any:
        return original(torch.frombuffer(bytearray(data), dtype=torch.uint8)).permute(1, 2, 0).numpy()

    colours = info["sampling"] if info["components"] == 3 and mode != _GRAY else None
    return trial.decodes_equally("torchvision", colours, decode)
