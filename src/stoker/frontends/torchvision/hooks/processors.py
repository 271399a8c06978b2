# SPDX-License-Identifier: Apache-2.0
"""Image processors of Hugging Face transformers: a call records its images, and native code computes all of them.

Within the fetch of a DataLoader, the images stay lazy until their batch is complete. Elsewhere they are lazy within the
call, which returns plain tensors.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from PIL import Image
from PIL.JpegImagePlugin import JpegImageFile

from ....native import _native
from .. import counts, recording
from ..collation import batches, plain
from ..ir import steps
from ..ir.recipe import Node
from ..ir.rows import RecordedTensor
from ..materialize.materialization import Materialization, is_large
from ..pillow.borrowed import borrow_pixels
from ..pillow.image import CHANNELS, LazyImage, RecordingImage, is_small, pixels_node
from ..pillow.jpeg_file import LazyJpeg, close_exclusive, open_plain
from ..tensors import rearranged
from ..tensors.lazy_base import LazyBase
from ..tensors.tensor import image_tensor
from . import calls, templates
from .large_results import LargeResults

# The base classes of the processors that compute with torchvision, and the functions that make a tensor of one image:
# those of transformers 5, and of earlier releases, where torchvision's functions make the tensor.
CLASSES = {
    "transformers.image_processing_backends": ("TorchvisionBackend", "process_image"),
    "transformers.image_processing_utils_fast": ("BaseImageProcessorFast", None),
}


def process_image(
    original: Callable[..., Any],
    processor: Any,
    image: Any,
    do_convert_rgb: Any = None,
    input_data_format: Any = None,
    device: Any = None,
    **kwargs: Any,
) -> Any:
    """Replace the conversion of one image to a tensor ``(channels, height, width)``."""
    on_cpu = device is None or str(device) == "cpu"
    recorded = recording.is_on() and isinstance(image, RecordingImage) and on_cpu
    node = image._recorded_node() if recorded and "transparency" not in image.info else None
    if node is None:
        return original(processor, image, do_convert_rgb, input_data_format, device, **kwargs)
    if do_convert_rgb and node.channels == 1:
        node = node.then(steps.Spread(), channels=3)
    return image_tensor(node)


def preprocess(
    fetching: Callable[[], contextlib.AbstractContextManager[None]],
    original: Callable[..., Any],
    processor: Any,
    images: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Wrap the call of a processor.

    Args:
        fetching: returns a context manager in which images are recorded.
        original: the wrapped method.
        processor: the image processor.
        images: an image, or a list of images or of lists.
        args: further arguments of the method.
        kwargs: further arguments of the method.
    """
    if str(kwargs.get("device") or "cpu") != "cpu" or not _has_images(images):
        return original(processor, images, *args, **kwargs)
    if recording.is_on():
        with rearranged.rearranging():
            result = original(processor, images, *args, **kwargs)
            return _without_rearranged(result)
    key = calls.settings_key(processor, args, kwargs)
    result = None if key is None else calls.run(key, images, _take)
    if result is not None:
        return result
    try:
        with fetching(), recording.tracking(), rearranged.rearranging(), LargeResults():
            lazies = _lazily(images)
            if key is not None:
                templates.keep_latest()
            result = original(processor, lazies, *args, **kwargs)
            if key is not None:
                calls.learn(key, images, lazies, result)
            del lazies  # images that are still in use become plain, for which they would be decoded once more
            _materialize(result)
            return result
    except Exception:  # noqa: BLE001 - a damaged file, or a wrong argument: the second call raises the error
        templates.take_latest()
        result = original(processor, images, *args, **kwargs)
    counts.add(counts.RETRIED)
    return result


def _materialize(result: Any) -> None:
    """Make all tensors of a result plain, together."""
    others = batches.find_rearranged(result)
    lazies: list[RecordedTensor] = [*batches.find_lazy(result), *(x for x in others if x._rows)]
    if lazies:
        materialization = Materialization(lazies, _take)
        _native.recipe.materialize(materialization.native_batch)
        materialization.finish()
    rearranged.materialize_together(others, _take)
    batches.to_plain(result)
    for reference in recording.take_created():  # objects that the processor keeps, or that are in unknown ones
        x = reference()
        if x is not None and issubclass(type(x), LazyBase):
            plain.become_plain(x)
        elif isinstance(x, RecordingImage):
            x.become_plain()


def _without_rearranged(result: Any) -> Any:
    """Make the rearranged tensors of a result plain; the lazy ones wait for their batch."""
    rearranged.materialize_together(batches.find_rearranged(result))
    return batches.to_plain(result, kinds=(rearranged.RearrangedTensor, rearranged.LazyView))


def _take(size: int) -> torch.Tensor:
    """Return memory for a result. That of large results is reused, because new memory costs more than its values."""
    return torch.from_numpy(_blocks.take(size)) if is_large(size) else torch.empty(size, dtype=torch.uint8)


_KEPT_BLOCKS = 2  # a batch of images, and its mask
_blocks = _native.recipe.block_pool(_KEPT_BLOCKS)


def _has_images(images: Any) -> bool:
    first: Any = images
    while isinstance(first, (list, tuple)) and first:
        first = first[0]
    return isinstance(first, Image.Image)


def _lazily(images: Any) -> Any:
    """Return the images as lazy ones; those that are not recorded stay as they are."""
    if isinstance(images, (list, tuple)):
        return [_lazily(image) for image in images]
    return _lazy_image(images) or images if isinstance(images, Image.Image) else images


def _lazy_image(image: Image.Image) -> Image.Image | None:
    if isinstance(image, RecordingImage) or image.mode not in CHANNELS or is_small(image.size):
        return None
    if type(image) is JpegImageFile and image._im is None:
        return _reopened(image)
    if "transparency" in image.info:
        return None
    image.load()
    return _image_of(borrow_pixels(image) or pixels_node(image.im))


def _image_of(node: Node) -> LazyImage:
    return LazyImage()._record(node)


def _reopened(image: Any) -> Image.Image | None:
    """Return a lazy image of a file that Pillow has opened and not decoded; None if the file is unusual.

    The opened image is decoded if the script uses it again. Its file is closed, as Pillow does after decoding.
    """
    file = image.fp
    if file is None or image.decoderconfig or len(image.tile) != 1 or not file.seekable():
        return None
    position = file.tell()
    try:
        file.seek(0)
        lazy = open_plain(file, image.filename) or LazyJpeg(file, image.filename)
        if (lazy.mode, lazy.size, lazy.tile) != (image.mode, image.size, image.tile):
            return None
        node = lazy._recorded_node()
    finally:
        file.seek(position)
    if node is None:
        return None
    close_exclusive(image, node.source)
    return _image_of(node)


def find_owner(kind: Any) -> Any:
    """Return the class whose ``preprocess`` all processors of this base class call; None if there is none."""
    return next((owner for owner in kind.__mro__ if "preprocess" in vars(owner)), None)
