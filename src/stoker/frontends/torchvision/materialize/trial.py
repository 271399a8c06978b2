# SPDX-License-Identifier: Apache-2.0
"""Trials: whether a recorded step gives the same bits as another library on this machine, tested once per process.

torch's sums depend on the processor and on how torch was built. A step that repeats such a sum is recorded only if a
small image gives equal bits. Pillow and torchvision each bundle a libjpeg. Versions before libjpeg-turbo 2.0.4
replicate the chroma of files with 1x2 subsampling, and later ones interpolate it.
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

from ....native import _native
from ..ir import steps
from ..ir.recipe import Node
from ..ir.tables import Table
from ..reference import trial_cache
from ..reference.replay import LenientJpegFile, plain_image
from ..transport.source import Source
from .eager import planar_pixels

SIZE = (47, 37)


def is_equal(
    key: Any,
    channels: int,
    step: Callable[[Node], Node],
    function: Callable[[torch.Tensor], torch.Tensor],
    size: tuple[int, int] = SIZE,
) -> bool:
    """Return whether ``step`` on an image equals ``function`` on its tensor ``(channels, height, width)``.

    Args:
        key: identifies the step and the function.
        channels: of the image.
        step: the recorded step.
        function: the function of torch or torchvision.
        size: the image's (width, height), for libraries that treat some sizes differently.
    """

    def find() -> bool:
        data, image = _trial_image(channels, size)
        return _has_equal_bits(step(Node.decode(Source(data), size, channels)), [function(torch.from_numpy(image))])

    return trial_cache.find_once(("bytes", key, channels, size), find)


def is_equal_in_floats(
    key: Any,
    channels: int,
    step: Callable[[Node], Node],
    function: Callable[[torch.Tensor], torch.Tensor],
    size: tuple[int, int] = SIZE,
    *,
    by_pixel: bool | None = None,
) -> bool:
    """Return whether ``step`` equals ``function`` on an image of floats, in every bit.

    ``by_pixel``: whether torch's memory holds a pixel's channels side by side; None tests both layouts.
    """

    def find() -> bool:
        data, image = _trial_image(channels, size)
        values = torch.from_numpy(np.random.Generator(np.random.PCG64(13)).random((channels, 1, 256), np.float32))
        node = step(Node.decode(Source(data), size, channels).then(steps.Floats(Table(values))))
        floats = torch.stack([v[0][torch.from_numpy(x.astype(np.int64))] for v, x in zip(values, image, strict=True)])
        turned = floats.movedim(0, -1).contiguous().movedim(-1, 0)
        tried = [floats, turned] if by_pixel is None else [turned if by_pixel else floats]
        return _has_equal_bits(node, [function(x.clone()) for x in tried])

    return trial_cache.find_once(("floats", key, channels, size, by_pixel), find)


def _has_equal_bits(node: Node, wanted: Sequence[torch.Tensor]) -> bool:
    """Return whether native code gives all ``wanted`` tensors for a node; False if it leaves the file to Pillow."""
    result = planar_pixels(node)
    arrays = [x.contiguous().numpy() for x in wanted]
    return result is not None and all(
        (result.shape, result.dtype, result.tobytes()) == (x.shape, x.dtype, x.tobytes()) for x in arrays
    )


def decodes_equally(who: str, sampling: tuple[int, int] | None, decode: Callable[[bytes], Any]) -> bool:
    """Return whether ``decode`` gives the same pixels as native code.

    Args:
        who: name of the decoder.
        sampling: pixels across and down for each chroma value; None for gray files.
        decode: from a file's bytes to ``(height, width, channels)``.
    """

    def find() -> bool:
        data = _trial_file(sampling)
        return data is None or np.array_equal(
            np.atleast_3d(decode(data)), _native.jpeg.jpeg_decode(data, None, "ANY")[0]
        )

    return trial_cache.find_once(("decoder", who, sampling), find)


def pillow_decodes_equally() -> bool:
    """Return whether Pillow's JPEG decoder gives the same pixels as native code, for files of all usual kinds."""
    return trial_cache.find_once(("Pillow's decoder",), _pillow_decodes_equally)


def _pillow_decodes_equally() -> bool:

    def decode(data: bytes) -> Any:
        return np.asarray(JpegImageFile(io.BytesIO(data)))

    return all(decodes_equally("Pillow", kind, decode) for kind in (None, *_SUBSAMPLING, _TALL))


def pillow_truncates_equally() -> bool:
    """Return whether Pillow completes truncated files with the same pixels as native code.

    libjpeg estimates missing coefficients of progressive files. libjpeg-turbo 2.1 changed these estimates.
    """
    return trial_cache.find_once(("Pillow's decoder, truncated",), _pillow_truncates_equally)


def _pillow_truncates_equally() -> bool:
    noise = np.random.Generator(np.random.PCG64(9)).integers(0, 256, (48, 64, 3), np.uint8)
    for options in ({"progressive": False}, {"progressive": True}):
        out = io.BytesIO()
        plain_image(noise).save(out, "JPEG", quality=60, **options)
        data = out.getvalue()
        scans = data.index(b"\xff\xda")
        for part in range(1, 8):
            cut = data[: scans + (len(data) - scans) * part // 8]
            if _left_to_pillow(cut) != _native.jpeg.jpeg_decode(cut, None, "ANY")[0].tobytes():
                return False
    return True


def _left_to_pillow(data: bytes) -> bytes:
    return LenientJpegFile(io.BytesIO(data)).tobytes()


_SUBSAMPLING = {(1, 1): 0, (2, 1): 1, (2, 2): 2}  # subsamplings that Pillow writes
_TALL = (1, 2)


def _trial_file(sampling: tuple[int, int] | None) -> bytes | None:
    """Return a file of noise; None for an unusual subsampling, whose chroma no library interpolates."""
    noise = np.random.Generator(np.random.PCG64(8)).integers(0, 256, (32, 48, 3), np.uint8)
    image = plain_image(noise if sampling else noise[..., 0])
    if sampling == _TALL:
        return _transpose_sampling(_encode(image, _SUBSAMPLING[2, 1]))
    if sampling is None:
        return _encode(image)
    return _encode(image, _SUBSAMPLING[sampling]) if sampling in _SUBSAMPLING else None


def _encode(image: Image.Image, subsampling: int = 0) -> bytes:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=90, subsampling=subsampling)
    return out.getvalue()


def _transpose_sampling(data: bytes) -> bytes:
    """Return a file with 2x1 subsampling as one with 1x2: its two luma blocks are stacked vertically."""
    at = data.index(b"\xff\xc0") + 5
    height, width = int.from_bytes(data[at : at + 2]), int.from_bytes(data[at + 2 : at + 4])
    size = (2 * height).to_bytes(2) + (width // 2).to_bytes(2)
    return data[:at] + size + data[at + 4 : at + 6] + b"\x12" + data[at + 7 :]


@functools.cache
def _trial_image(channels: int, size: tuple[int, int]) -> tuple[Any, Any]:
    """Return a file of noise, and its decoded pixels ``(channels, height, width)``."""
    width, height = size
    noise = np.random.Generator(np.random.PCG64(7)).integers(20, 200, (height, width, 3), np.uint8)
    image = plain_image(noise if channels == 3 else noise[..., 0])
    out = io.BytesIO()
    image.save(out, "JPEG", quality=98, subsampling=0)
    data = out.getvalue()
    array = np.asarray(JpegImageFile(io.BytesIO(data)))
    return np.frombuffer(data, np.uint8), np.atleast_3d(array).transpose(2, 0, 1).copy()
