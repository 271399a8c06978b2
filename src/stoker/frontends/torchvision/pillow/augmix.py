# SPDX-License-Identifier: Apache-2.0
"""timm's AugMix: a weighted sum of views of one Pillow image, recorded as one step.

timm's method adds ``weight * np.asarray(view, np.float32)`` for each chain, truncates the sum to bytes and blends it
with the image. An array cannot be recorded, so this module repeats the method with the same random draws. A trial on
small images compares it with the installed timm once; if anything differs, timm's own method is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageOps

from .. import counts
from ..ir import steps
from ..ir.recipe import Node
from ..ir.tables import VALUES, Table
from ..materialize import eager
from ..reference.replay import plain_image
from .image import LazyImage, RecordingImage

MODULE, CLASS, METHOD = "timm.data.auto_augment", "AugMixAugment", "_apply_basic"


def apply_basic(original: Callable[..., Any], augment: Any, image: Any, weights: Any, part: Any) -> Any:
    """Replace ``AugMixAugment._apply_basic``: chains of operations on an image, their mean, blended with the image."""
    if (
        not isinstance(image, RecordingImage)
        or image._recorded_node() is None
        or not _is_known(original, type(augment))
    ):
        return original(augment, image, weights, part)
    return _apply(augment, image, weights, part)


def _apply(augment: Any, image: Any, weights: Any, part: Any) -> Any:
    views = [_run_chain(augment, image) for _ in weights]
    mixed = _record_mean(image, views, weights)
    return Image.blend(image, _mean_of_pixels(views, weights) if mixed is None else mixed, part)


def _run_chain(augment: Any, image: Any) -> Any:
    """Return the image after one chain of operations, with timm's random draws."""
    depth = augment.depth if augment.depth > 0 else np.random.randint(1, 4)
    for operation in np.random.choice(augment.ops, depth, replace=True):
        image = operation(image)
    return image


def _record_mean(image: Any, views: list[Any], weights: Any) -> Any:
    """Return the views' weighted sum as bytes; None if a view is not recorded or has another source."""
    if weights.dtype != np.float32:
        return None
    first = image._recorded_node()
    nodes: list[Node] = []
    for view in views:
        node = view._recorded_node() if isinstance(view, RecordingImage) else None
        if node is None or node.source is not first.source:
            return None
        if (node.size, node.channels) != (first.size, first.channels):
            return None
        nodes.append(node)
    tables = [Table(torch.from_numpy(weight * _RAMP).view(1, 1, VALUES)) for weight in weights]
    mixed = image._record(nodes[0].then(steps.Mix(tables[0], tuple(zip(nodes[1:], tables[1:], strict=True)))))
    mixed.info = {}
    return mixed


_RAMP = np.arange(VALUES, dtype=np.float32)


def _mean_of_pixels(views: list[Any], weights: Any) -> Image.Image:
    """Return the views' weighted sum as bytes, computed from pixels."""
    total = np.zeros_like(views[0], dtype=np.float32)
    for view, weight in zip(views, weights, strict=True):
        total += weight * np.asarray(view, dtype=np.float32)
    return Image.fromarray(np.clip(total, 0, 255.0, out=total).astype(np.uint8))


# ---- comparison with the installed timm ----

_known: dict[Any, bool] = {}


def _is_known(original: Callable[..., Any], kind: type) -> bool:
    """Return whether ``original`` gives the recorded result with the same draws, found by a trial."""
    if original not in _known:
        state = np.random.get_state()
        try:
            with counts.paused():
                _known[original] = all(_is_equal(original, kind, seed) for seed in range(_TRIALS))
        except Exception:  # noqa: BLE001 - a method that cannot be tried is not the known one
            _known[original] = False
        finally:
            np.random.set_state(state)
    return _known[original]


_TRIALS = 6
_SIZE = (11, 14)


def _is_equal(original: Callable[..., Any], kind: type, seed: int) -> bool:
    augment: Any = object.__new__(kind)
    augment.ops = [ImageOps.mirror, ImageOps.flip, ImageOps.invert, ImageOps.solarize]
    augment.depth, augment.width, augment.alpha, augment.blended = (-1, 2)[seed % 2], 3, 1.0, False
    noise = np.random.Generator(np.random.PCG64(seed)).integers(0, 256, (*_SIZE, 3), np.uint8)
    weights, part = np.array([0.2, 0.5, 0.3], np.float32), np.float32(0.1 + 0.15 * seed)
    np.random.seed(seed)
    expected, after = np.asarray(original(augment, plain_image(noise), weights, part)), np.random.random()
    np.random.seed(seed)
    lazy = LazyImage()._record(Node.pixels(noise.reshape(-1), _SIZE[::-1], 3))
    result = eager.pixels_node(_apply(augment, lazy, weights, part)._recorded_node())
    assert result is not None
    return np.array_equal(result.source.data, expected.reshape(-1)) and np.random.random() == after
