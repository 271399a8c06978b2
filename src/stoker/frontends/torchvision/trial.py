# SPDX-License-Identifier: Apache-2.0
"""Whether a recorded step makes the bits that another library makes on this machine: found by trying, once per process.

torch's sums depend on the processor and on how torch was built. Steps that repeat them are recorded only where a small
image comes out equal. Pillow and torchvision bring a libjpeg each, and those before libjpeg-turbo 2.0.4 repeat the
colours of files that sample them at every pixel of every other line, where later ones interpolate.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from ...native import _native
from .early import pixels_of
from .recipe import FLOATS, Node
from .replay import image_of
from .source import Source
from .tables import Table

SIZE = (47, 37)
_found: dict[Any, bool] = {}


def is_equal(
    key: Any,
    channels: int,
    step: Callable[[Node], Node],
    function: Callable[[torch.Tensor], torch.Tensor],
    size: tuple[int, int] = SIZE,
) -> bool:
    """Whether ``step`` of an image is ``function`` of its tensor ``(channels, height, width)``; ``key`` names both.

    ``size``: the image's (width, height), where another one is made in another way.
    """
    key = (key, channels, size)
    if key not in _found:
        data, image = _trial(channels, size)
        _found[key] = _makes(step(Node.decode(Source(data), size, channels)), [function(torch.from_numpy(image))])
    return _found[key]


def is_equal_in_floats(
    key: Any,
    channels: int,
    step: Callable[[Node], Node],
    function: Callable[[torch.Tensor], torch.Tensor],
    size: tuple[int, int] = SIZE,
    *,
    by_pixel: bool | None = None,
) -> bool:
    """The same of an image of floats, every bit of them.

    ``by_pixel``: whether torch's memory of it has a pixel's channels side by side; None: it makes no difference.
    """
    key = ("floats", key, channels, size, by_pixel)
    if key not in _found:
        data, image = _trial(channels, size)
        values = torch.from_numpy(np.random.Generator(np.random.PCG64(13)).random((channels, 1, 256), np.float32))
        node = step(Node.decode(Source(data), size, channels).then(FLOATS, (Table(values),)))
        floats = torch.stack([v[0][torch.from_numpy(x.astype(np.int64))] for v, x in zip(values, image, strict=True)])
        turned = floats.movedim(0, -1).contiguous().movedim(-1, 0)
        tried = [floats, turned] if by_pixel is None else [turned if by_pixel else floats]
        _found[key] = _makes(node, [function(x.clone()) for x in tried])
    return _found[key]


def _makes(node: Node, wanted: Sequence[torch.Tensor]) -> bool:
    """Whether all these are what native code makes of a node, bit by bit; not if it leaves the file to Pillow."""
    made = pixels_of(node)
    arrays = [x.contiguous().numpy() for x in wanted]
    return made is not None and all(
        (made.shape, made.dtype, made.tobytes()) == (x.shape, x.dtype, x.tobytes()) for x in arrays
    )


def decodes_alike(who: str, sampling: tuple[int, int] | None, decode: Callable[[bytes], Any]) -> bool:
    """Whether ``decode``, which ``who`` names, makes the pixels that native code makes.

    Args:
        who: whose decoder it is.
        sampling: pixels across and down for each value of the colours; None: of files without colours.
        decode: from a file's bytes to ``(height, width, channels)``.
    """
    key = (who, sampling)
    if key not in _found:
        data = _file_of(sampling)
        _found[key] = data is None or np.array_equal(
            np.atleast_3d(decode(data)), _native.jpeg.jpeg_decode(data, None, "ANY")[0]
        )
    return _found[key]


@functools.cache
def pillow_decodes_alike() -> bool:
    """Whether Pillow's JPEG decoder makes the pixels that native code makes, of files of all usual kinds."""

    def decode(data: bytes) -> Any:
        return np.asarray(JpegImageFile(io.BytesIO(data)))

    return all(decodes_alike("Pillow", kind, decode) for kind in (None, *_SUBSAMPLING, _TALL))


_SUBSAMPLING = {(1, 1): 0, (2, 1): 1, (2, 2): 2}  # what Pillow writes
_TALL = (1, 2)


def _file_of(sampling: tuple[int, int] | None) -> bytes | None:
    """A file of noise; None of a kind that is not known, and of which no library interpolates the colours."""
    noise = np.random.Generator(np.random.PCG64(8)).integers(0, 256, (32, 48, 3), np.uint8)
    image = image_of(noise if sampling else noise[..., 0])
    if sampling == _TALL:
        return _turned(_encoded(image, _SUBSAMPLING[2, 1]))
    if sampling is None:
        return _encoded(image)
    return _encoded(image, _SUBSAMPLING[sampling]) if sampling in _SUBSAMPLING else None


def _encoded(image: Image.Image, subsampling: int = 0) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=90, subsampling=subsampling)
    return out.getvalue()


def _turned(data: bytes) -> bytes:
    """A file with two blocks of luma beside each other for one of each colour, with those two on each other instead."""
    at = data.index(b"\xff\xc0") + 5
    height, width = int.from_bytes(data[at : at + 2]), int.from_bytes(data[at + 2 : at + 4])
    size = (2 * height).to_bytes(2) + (width // 2).to_bytes(2)
    return data[:at] + size + data[at + 4 : at + 6] + b"\x12" + data[at + 7 :]


@functools.cache
def _trial(channels: int, size: tuple[int, int]) -> tuple[Any, Any]:
    """A file of noise, and what it decodes to: ``(channels, height, width)``."""
    width, height = size
    noise = np.random.Generator(np.random.PCG64(7)).integers(20, 200, (height, width, 3), np.uint8)
    image = image_of(noise if channels == 3 else noise[..., 0])
    out = io.BytesIO()
    image.save(out, "JPEG", quality=98, subsampling=0)
    data = out.getvalue()
    array = np.asarray(JpegImageFile(io.BytesIO(data)))
    return np.frombuffer(data, np.uint8), np.atleast_3d(array).transpose(2, 0, 1).copy()
