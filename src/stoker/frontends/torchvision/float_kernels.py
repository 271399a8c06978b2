# SPDX-License-Identifier: Apache-2.0
"""What torchvision's kernels do to images of floats and to no others: sums that round, values without a table.

See `kernels.py` for the steps that bytes and floats share.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from . import float_replay, floats, recipe
from .recipe import Node
from .sums import order_of_floats
from .tensor import LazyTensor
from .trial import is_equal_in_floats

Original = Callable[..., Any]

# torch's vectors of floats, two at a time: behind the last of these it rounds what it would not else.
_BLOCKS = (16, 32, 8)
# Sizes that are tried, and how often: few of the values behind the last block are seen to be rounded at a time. The
# large one has four levels of sums, and threads that share.
_SUMS = {(45, 41): 24, (400, 330): 2}
_FACTORS = (1.3, 0.7, 1.21, 0.83, 1.07, 0.91)


def adjust_contrast(original: Original, x: LazyTensor, factor: float, generation: int) -> LazyTensor | None:
    """Whose sums are all rounded, in a known order."""
    channels = x._rows[0].node.channels
    order = order_of_floats(len(x._rows))
    if order is None or x._unordered or not all(is_in_order(row.node) for row in x._rows):
        return None
    if (channels == 1 and x._is_cut) or (len(x._rows) > 1 and torch.get_num_threads() > 1):
        return None  # sums along rows, shares of several images
    by_pixel = x._by_pixel and channels > 1

    def step(node: Node, blocks: int, by: float) -> Node:
        return node.then(recipe.FLOAT_CONTRAST, (generation, by, *order, blocks, int(by_pixel)))

    def is_torchs(blocks: int, size: tuple[int, int]) -> bool:
        factors = [_FACTORS[i % len(_FACTORS)] for i in range(_SUMS[size])]

        def steps(node: Node) -> Node:
            return functools.reduce(lambda made, by: step(made, blocks, by), factors, node)

        def wanted(image: torch.Tensor) -> torch.Tensor:
            return functools.reduce(original, factors, image)

        key = ("contrast", generation, order, blocks)
        return is_equal_in_floats(key, channels, steps, wanted, size, by_pixel=by_pixel)

    blocks = next((n for n in _BLOCKS if all(is_torchs(n, size) for size in _SUMS)), None)
    return None if blocks is None else floats.stepped(x, lambda node: step(node, blocks, factor))


def is_in_order(node: Node | None) -> bool:
    """Whether torch's memory of the image has its rows one behind the other: turning it leaves it as it was."""
    while node is not None:
        if node.op == recipe.TRANSPOSE and node.params[0] in (2, 4, 5, 6):
            return False
        node = node.parent
    return True


def adjusted(x: LazyTensor, name: str, number: float, generation: int) -> LazyTensor | None:
    """Brightness, or a solarization."""
    if not floats.are_floats(x):
        return None
    if name == "solarize":
        operations = [_for_all(float_replay.SOLARIZE, number)]
    else:
        # The first generation adds the rest of nothing, whose sign is the rest's.
        nothing = [_for_all(float_replay.ADD, math.copysign(0.0, 1.0 - number))] if generation == 1 else []
        limits = [_for_all(float_replay.AT_LEAST, 0.0), _for_all(float_replay.AT_MOST, 1.0)]
        operations = [_for_all(float_replay.MULTIPLY, number), *nothing, *limits]
    return floats.stepped(x, lambda node: floats.operated(node, operations))


def _for_all(kind: int, number: float) -> floats.Operation:
    return kind, number, number, number
