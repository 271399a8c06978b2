# SPDX-License-Identifier: Apache-2.0
"""Eager materialization: images whose pixels a script reads before their batch is complete (``np.array``, drawing).

The pixels are cached on their node, and so is the common parent of two such images. Otherwise a script that reads
several images of one file would decode the file for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

from ....native import _native
from ..ir import packing, recipe, steps
from ..ir.recipe import Node
from ..reference.replay import replay
from ..transport.segment import Bytes

MODES = {1: "L", 3: "RGB"}


def core_image(node: Node) -> Any:
    """Return Pillow's core image of a node, materialized on this thread.

    Raises:
        OSError: Pillow's error if the file cannot be decoded.
    """
    known = pixels_node(node)
    if known is None:
        return replay(node).im
    return Image.frombytes(MODES[node.channels], node.size, known.source.data).im  # a copy: the caller may change it


def pixels_node(node: Node) -> Node | None:
    """Return a node with the pixels of ``node``, materialized on this thread; None if Pillow must decode the file."""
    if isinstance(node.step, steps.Pixels) and not node.step.planar:
        return node
    if node.eager_pixels is None:
        _cache_pixels(node, reuse_pixels(node))
    return node.eager_pixels


def _cache_pixels(node: Node, same: Node) -> None:
    data = interleaved_bytes(same)
    node.eager_pixels = None if data is None else Node.pixels(data, node.size, node.channels)


def reuse_pixels(node: Node, *, counted: bool = True) -> Node:
    """Return the same image, based on the nearest ancestor whose pixels are cached.

    Without ``counted``, no further pixels are cached: if several images are materialized together, native code already
    shares their common steps.
    """
    if node.eager_pixels is not None:
        return node.eager_pixels
    parent = node if recipe.extra_inputs(node) else node.parent  # the other inputs of a mixture have other ancestors
    while parent is not None and parent.op != steps.PIXELS and not recipe.extra_inputs(parent):
        parent.eager_uses += counted
        if parent.eager_pixels is None and counted and parent.eager_uses > 1 and not parent.is_float:
            _cache_pixels(parent, parent)
        if parent.eager_pixels is not None:
            return _append_steps(parent, node)
        parent = parent.parent
    return node


def _append_steps(first: Node, node: Node) -> Node:
    """Return the steps from ``first`` to ``node``, applied to the cached pixels of ``first``."""
    nodes = []
    while node is not first:
        nodes.append(node)
        assert node.parent is not None
        node = node.parent
    assert first.eager_pixels is not None
    image = first.eager_pixels
    for after in reversed(nodes):
        image = image.then(after.step, after.size, after.channels)
    return image


def interleaved_bytes(node: Node) -> Bytes | None:
    """Return a node's image as bytes ``(height, width, channels)``; None if Pillow must decode the file."""
    return _materialize(node, interleaved=True)


def planar_pixels(node: Node) -> Any:
    """Return a node's image ``(channels, height, width)`` as bytes or float32; None if Pillow must decode the file."""
    data = _materialize(node, interleaved=False)
    if data is None:
        return None
    return data.view(np.float32 if node.is_float else np.uint8).reshape(node.channels, node.size[1], node.size[0])


def _materialize(node: Node, *, interleaved: bool) -> Bytes | None:
    size = node.size[0] * node.size[1] * node.channels * (4 if node.is_float else 1)
    memory = np.empty(size + 8, np.uint8)
    packed = packing.pack([packing.Row(node, None, 0, 0, interleaved)], [memory])
    _native.recipe.materialize(packed.native_batch)
    if packed.native_batch.failures:
        check_refusals(packed.native_batch.failures)
        return None
    return memory[:size]


def check_refusals(unmade: list[tuple[int, str]]) -> None:
    """Raise an error if native code refused a recipe: that is a bug of the recording, not a fault of the data."""
    for _, why in unmade:
        if why:
            raise RuntimeError(f"a recorded image could not be made: {why}; please report this")
