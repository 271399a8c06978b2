# SPDX-License-Identifier: Apache-2.0
"""Recipes of whole calls of an image processor: a later call with equal settings runs without the processor's Python.

Otherwise Python takes up to a third of a call of 16 images: the processor's code, and lazy objects that exist for one
call. The first call is recorded as usual. If templates made its result (see `templates.py`), the recipe of an image
depends only on its size and kind and on the processor's settings. Later calls fill in the bytes of the images and the
places of their results, and native code computes all of them.

The plain twin is the recorded call: a call that is not known or fails here is recorded.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from PIL import Image, ImageFile
from PIL.JpegImagePlugin import JpegImageFile

from ....native import _native
from .. import counts
from ..ir import packing, steps
from ..ir.recipe import Node
from ..ir.tables import storage_table
from ..materialize.materialization import Take, as_tensor
from ..pillow.borrowed import borrow_bytes, layout_of
from ..pillow.image import CHANNELS, RecordingImage, is_small
from ..pillow.jpeg_file import close_exclusive, plain_source
from ..tensors.tensor import LazyTensor
from ..transport.source import Source
from . import templates

_MAX_RECIPES = 1024
# Methods between the call and the processing of all images. Those of a script may do anything.
_METHODS = (
    "_standardize_kwargs", "_further_process_kwargs", "_validate_preprocess_kwargs", "fetch_images",
    "_preprocess_image_like_inputs", "_prepare_images_structure", "_prepare_image_like_inputs", "process_image",
    "_process_image", "_preprocess",
)  # fmt: skip


class _Known(NamedTuple):
    """Recipe of images of one size and kind, and the result that such an image belongs to."""

    recipe: packing.SharedRecipe
    shape: tuple[int, ...]  # of one image of the result
    dtype: torch.dtype
    batch_class: Any

    def fits(self, other: _Known) -> bool:
        """Return whether images of both kinds may belong to one result."""
        if self.shape != other.shape or self.dtype != other.dtype or self.batch_class is not other.batch_class:
            return False
        tables, others = self.recipe.tables, other.recipe.tables
        return len(tables) == len(others) and all(one is table for one, table in zip(tables, others, strict=True))


_known: dict[Any, _Known] = {}


def settings_key(processor: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return a key of all that the result of a call depends on except its images; None if there is no such key."""
    if args or kwargs.get("return_tensors") != "pt" or ImageFile.LOAD_TRUNCATED_IMAGES:
        return None
    # Other names may be wrong, of which transformers warns in every call.
    names = vars(processor).get("_valid_kwargs_names") or ()
    methods = tuple(getattr(type(processor), name, None) for name in _METHODS)
    if not all(name in names for name in kwargs) or not templates.are_owned(methods):
        return None
    key = templates.processor_key(processor, kwargs)
    return None if key is None else (*key, methods)


def run(key: tuple[Any, ...], images: Any, take: Take) -> Any:
    """Return the result of a call; None if the call must be recorded.

    Args:
        key: the key of the call's settings.
        images: an image, or a list of images.
        take: allocates memory.
    """
    images = images if type(images) is list else [images]
    found: list[_Known] = []
    sources: list[Any] = []
    for image in images:
        known = _known.get((key, _kind_of(image)))
        source = None if known is None or not known.fits((found or [known])[0]) else _source_of(image)
        if known is None or source is None:
            return None
        found.append(known)
        sources.append(source)
    if not found:
        return None
    first = found[0]
    size = math.prod(first.shape) * first.dtype.itemsize
    memory = take(size * len(found))
    data = [(x.ref or x.data) if type(x) is Source else x for x in sources]
    batch = packing.pack_shared([x.recipe for x in found], data, size, memory.numpy())
    _native.recipe.materialize(batch)
    if batch.failures:
        return None
    for image, source in zip(images, sources, strict=True):
        if type(source) is Source:
            close_exclusive(image, source)
    counts.add(counts.NATIVE, len(found))
    values = as_tensor(memory, first.dtype, torch.Size((len(found), *first.shape)))
    return first.batch_class(data={templates.RESULT: values}, tensor_type="pt")


def learn(key: tuple[Any, ...], images: Any, lazy_images: Any, result: Any) -> None:
    """Remember the recipes of a recorded call, unless its result has other parts than those of its images.

    Args:
        key: the key of the call's settings.
        images: the image or the list of images that the script has passed.
        lazy_images: the image or the images that were recorded in their place.
        result: the recorded result, before its tensors are plain.
    """
    made = templates.take_latest()
    if made is None or not _is_result(result, made):
        return
    images = images if type(images) is list else [images]
    lazy_images = lazy_images if type(lazy_images) is list else [lazy_images]
    if len(made._rows) != len(images) or len(lazy_images) != len(images):
        return
    for image, lazy, row in zip(images, lazy_images, made._rows, strict=True):
        kind, root = _kind_of(image), row.node.root
        node = lazy._node if isinstance(lazy, RecordingImage) else None
        if kind is None or node is None or root is not node.root or not _is_whole(root, kind) or row.patches:
            continue
        if len(_known) >= _MAX_RECIPES:
            _known.clear()
        shared = packing.share(row.node, storage_table(row.node, row.table))
        _known[key, kind] = _Known(shared, tuple(made.shape[1:]), made.dtype, type(result))


def _is_result(result: Any, made: LazyTensor) -> bool:
    """Return whether a call's result contains nothing but the images that templates have made."""
    kind = type(result)
    if not kind.__module__.startswith(templates.PACKAGE) or list(result) != [templates.RESULT]:
        return False
    fresh = kind(data={templates.RESULT: made}, tensor_type="pt")
    values, expected = dict(vars(result)), dict(vars(fresh))
    data, other = values.pop("data", None), expected.pop("data", None)
    return data == other and data[templates.RESULT] is made and values == expected and made._lead == (len(made._rows),)


def _kind_of(image: Any) -> tuple[Any, ...] | None:
    """Return what the recipe of an image depends on: whether it is a file, its size and its mode; None if unusual."""
    if not isinstance(image, Image.Image) or isinstance(image, RecordingImage):
        return None
    if image.mode not in CHANNELS or is_small(image.size):
        return None
    is_file = image._im is None
    if is_file and type(image) is not JpegImageFile:
        return None
    return is_file, image.size, image.mode


def _is_whole(root: Node, kind: tuple[Any, ...]) -> bool:
    """Return whether a recorded image begins with all of an image of this kind."""
    is_file, size, mode = kind
    channels = CHANNELS[mode]
    step = root.step
    if is_file:
        return step == steps.Decode(channels, 0, 0, size[0], size[1], 0) and root.op == steps.DECODE
    return step == steps.Pixels(size[1], size[0], channels, layout_of(channels), 0, 0, size[0], size[1])


def _source_of(image: Any) -> Any:
    """Return an opened file as a source, or the bytes of a decoded image; None if the image is unusual."""
    if image._im is not None:
        return None if "transparency" in image.info else borrow_bytes(image)
    try:
        return plain_source(image)
    except (OSError, ValueError):  # a closed file: the recorded call raises the error
        return None
