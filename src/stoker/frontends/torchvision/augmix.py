# SPDX-License-Identifier: Apache-2.0
"""timm's AugMix, whose chains meet in numpy: what it makes of a Pillow image is a sum of views, and recorded as one.

timm's method adds ``weight * np.asarray(view, np.float32)`` of every chain, truncates the sum to bytes and blends it
with the image. An array cannot be recorded; so the method is done here, with the same draws. Whether it is the
installed timm's is tried once, on small images: if anything differs, timm's own is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps

from . import counts, early, recipe
from .image import LazyImage, _Recording
from .recipe import Node
from .replay import image_of
from .tables import VALUES, Table

MODULE, CLASS, METHOD = "timm.data.auto_augment", "AugMixAugment", "_apply_basic"


def apply_basic(original: Callable[..., Any], augment: Any, image: Any, weights: Any, part: Any) -> Any:
    """``AugMixAugment._apply_basic``: chains of operations on an image, their mean, blended with the image."""
    if not isinstance(image, _Recording) or image._recorded() is None or not _is_known(original, type(augment)):
        return original(augment, image, weights, part)
    return _applied(augment, image, weights, part)


def _applied(augment: Any, image: Any, weights: Any, part: Any) -> Any:
    views = [_chain(augment, image) for _ in weights]
    mixed = _recorded_mean(image, views, weights)
    return Image.blend(image, _mean(views, weights) if mixed is None else mixed, part)


def _chain(augment: Any, image: Any) -> Any:
    """One chain, drawn as timm draws it."""
    depth = augment.depth if augment.depth > 0 else np.random.randint(1, 4)
    for operation in np.random.choice(augment.ops, depth, replace=True):
        image = operation(image)
    return image


def _recorded_mean(image: Any, views: list[Any], weights: Any) -> Any:
    """The views' weighted sum as bytes; None if one of them is not recorded, or none of this image's."""
    if weights.dtype != np.float32:
        return None
    first = image._recorded()
    nodes: list[Node] = []
    for view in views:
        node = view._recorded() if isinstance(view, _Recording) else None
        if node is None or node.source is not first.source:
            return None
        if (node.size, node.channels) != (first.size, first.channels):
            return None
        nodes.append(node)
    tables = [Table(torch.from_numpy(weight * _RAMP).view(1, 1, VALUES)) for weight in weights]
    mixed = image._record(nodes[0].then(recipe.MIX, (tuple(tables), tuple(nodes[1:]))))
    mixed.info = {}
    return mixed


_RAMP = np.arange(VALUES, dtype=np.float32)


def _mean(views: list[Any], weights: Any) -> Image.Image:
    """The same of pixels."""
    total = np.zeros_like(views[0], dtype=np.float32)
    for view, weight in zip(views, weights, strict=True):
        total += weight * np.asarray(view, dtype=np.float32)
    return Image.fromarray(np.clip(total, 0, 255.0, out=total).astype(np.uint8))


# ---- whether the installed timm does it so ----

_known: dict[Any, bool] = {}


def _is_known(original: Callable[..., Any], kind: type) -> bool:
    """Whether ``original`` does what is recorded here, with the same draws; found by trying."""
    if original not in _known:
        state = np.random.get_state()
        try:
            with counts.unchanged():
                _known[original] = all(_is_alike(original, kind, seed) for seed in range(_TRIALS))
        except Exception:  # noqa: BLE001 - a method that cannot be tried is another one
            _known[original] = False
        finally:
            np.random.set_state(state)
    return _known[original]


_TRIALS = 6
_SIZE = (11, 14)


def _is_alike(original: Callable[..., Any], kind: type, seed: int) -> bool:
    augment: Any = object.__new__(kind)
    augment.ops = [ImageOps.mirror, ImageOps.flip, ImageOps.invert, ImageOps.solarize]
    augment.depth, augment.width, augment.alpha, augment.blended = (-1, 2)[seed % 2], 3, 1.0, False
    noise = np.random.Generator(np.random.PCG64(seed)).integers(0, 256, (*_SIZE, 3), np.uint8)
    weights, part = np.array([0.2, 0.5, 0.3], np.float32), np.float32(0.1 + 0.15 * seed)
    np.random.seed(seed)
    expected, after = np.asarray(original(augment, image_of(noise), weights, part)), np.random.random()
    np.random.seed(seed)
    lazy = LazyImage()._record(Node.pixels(noise.reshape(-1), _SIZE[::-1], 3))
    made = early.made(_applied(augment, lazy, weights, part)._recorded())
    assert made is not None
    return np.array_equal(made.source.data, expected.reshape(-1)) and np.random.random() == after
