# SPDX-License-Identifier: Apache-2.0
"""Images that are made before their batch is, since somebody looks at their pixels (``np.array``, drawing).

What is made is kept on its node, and so is what a second image is made of: scripts that look at several images of one
file while they make them would have it decoded for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

from ...native import _native
from . import packing, recipe
from .recipe import Node
from .replay import replay
from .segment import Bytes

MODES = {1: "L", 3: "RGB"}


def core(node: Node) -> Any:
    """Pillow's core image of a node, made on this thread.

    Raises:
        OSError: the file cannot be decoded; Pillow's error.
    """
    known = made(node)
    if known is None:
        return replay(node).im
    return Image.frombytes(MODES[node.channels], node.size, known.source.data).im  # a copy, which may be changed


def made(node: Node) -> Node | None:
    """A node's image as pixels that are there, made on this thread; None if its file is left to Pillow."""
    if node.op == recipe.PIXELS and not node.params[5]:
        return node
    if node.made is None:
        _keep(node, from_made(node))
    return node.made


def _keep(node: Node, same: Node) -> None:
    data = interleaved(same)
    node.made = None if data is None else Node.pixels(data, node.size, node.channels)


def from_made(node: Node, *, counted: bool = True) -> Node:
    """The same image, out of pixels that are there: of an image that was made, or that a second one is made of.

    Without ``counted`` nothing is made: of several images that are made together, native code sees what they share.
    """
    if node.made is not None:
        return node.made
    parent = node if recipe.others_of(node) else node.parent  # the other parts of a mixture begin elsewhere
    while parent is not None and parent.op != recipe.PIXELS and not recipe.others_of(parent):
        parent.asked += counted
        if parent.made is None and counted and parent.asked > 1 and not parent.floats:
            _keep(parent, parent)
        if parent.made is not None:
            return _after(parent, node)
        parent = parent.parent
    return node


def _after(first: Node, node: Node) -> Node:
    """The steps from one node to another, on the first one's pixels."""
    steps = []
    while node is not first:
        steps.append(node)
        assert node.parent is not None
        node = node.parent
    assert first.made is not None
    image = first.made
    for step in reversed(steps):
        image = image.then(step.op, step.params, step.size, step.channels)
    return image


def interleaved(node: Node) -> Bytes | None:
    """A node's image as bytes, ``(height, width, channels)``; None if its file is left to Pillow."""
    return _stored(node, interleaved=True)


def pixels_of(node: Node) -> Any:
    """A node's image, ``(channels, height, width)``, bytes or float32; None if its file is left to Pillow."""
    data = _stored(node, interleaved=False)
    if data is None:
        return None
    return data.view(np.float32 if node.floats else np.uint8).reshape(node.channels, node.size[1], node.size[0])


def _stored(node: Node, *, interleaved: bool) -> Bytes | None:
    size = node.size[0] * node.size[1] * node.channels * (4 if node.floats else 1)
    memory = np.empty(size + 8, np.uint8)
    packed = packing.pack([packing.Row(node, None, 0, 0, interleaved)], [memory])
    _native.recipe.make(packed.order)
    if packed.order.unmade:
        check(packed.order.unmade)
        return None
    return memory[:size]


def check(unmade: list[tuple[int, str]]) -> None:
    """A recipe that native code refuses is a mistake in the recording, not of the data."""
    for _, why in unmade:
        if why:
            raise RuntimeError(f"a recorded image could not be made: {why}; please report this")
