# SPDX-License-Identifier: Apache-2.0
"""torchvision's kernels for float images: sums with rounding, and values without a table.

`kernels.py` has the steps that bytes and floats share.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import torch

from ..ir import steps
from ..ir.recipe import Node
from ..materialize.trial import is_equal_in_floats
from ..reference import float_replay, trial_cache
from ..reference.sums import float_sum_order
from ..tensors import floats
from ..tensors.tensor import LazyTensor

Original = Callable[..., Any]

# Sizes of torch's blocks of floats, two vectors each: torch rounds products differently after the last whole block.
_BLOCKS = (16, 32, 8)
# Sizes of trial images, and repetitions: each trial shows the rounding of few values after the last block. The large
# size needs four levels of sums, and several threads.
_SUMS = {(45, 41): 24, (400, 330): 2}
_FACTORS = (1.3, 0.7, 1.21, 0.83, 1.07, 0.91)


def adjust_contrast(original: Original, x: LazyTensor, factor: float, generation: int) -> LazyTensor | None:
    """Record the contrast of float images, whose mean is a sum with a known order of rounding."""
    channels = x._rows[0].node.channels
    order = float_sum_order(len(x._rows))
    if order is None or x._is_unordered or not all(is_row_major(row.node) for row in x._rows):
        return None
    if (channels == 1 and x._is_cut) or (len(x._rows) > 1 and torch.get_num_threads() > 1):
        return None  # sums run along rows here, or threads take several images
    by_pixel = x._is_by_pixel and channels > 1

    def step(node: Node, blocks: int, by: float) -> Node:
        return node.then(steps.FloatContrast(generation, by, *order, blocks, int(by_pixel)))

    def is_torchs(blocks: int, size: tuple[int, int]) -> bool:
        factors = [_FACTORS[i % len(_FACTORS)] for i in range(_SUMS[size])]

        def repeated(node: Node) -> Node:
            return functools.reduce(lambda result, by: step(result, blocks, by), factors, node)

        def wanted(image: torch.Tensor) -> torch.Tensor:
            return functools.reduce(original, factors, image)

        key = ("contrast", generation, order, blocks)
        return is_equal_in_floats(key, channels, repeated, wanted, size, by_pixel=by_pixel)

    blocks = trial_cache.find_once(
        ("blocks", generation, order, channels, by_pixel),
        lambda: next((n for n in _BLOCKS if all(is_torchs(n, size) for size in _SUMS)), None),
    )
    return None if blocks is None else floats.add_step(x, lambda node: step(node, blocks, factor))


def is_row_major(node: Node | None) -> bool:
    """Return whether torch's memory of the image is in row order: no step has transposed it."""
    while node is not None:
        if isinstance(node.step, steps.Transpose) and node.step.method in (2, 4, 5, 6):
            return False
        node = node.parent
    return True


def adjust_values(x: LazyTensor, name: str, number: float, generation: int) -> LazyTensor | None:
    """Record brightness, or solarization."""
    if not floats.are_floats(x):
        return None
    if name == "solarize":
        operations = [_for_all(float_replay.SOLARIZE, number)]
    else:
        # The first generation adds a zero with the sign of ``1 - factor``.
        nothing = [_for_all(float_replay.ADD, math.copysign(0.0, 1.0 - number))] if generation == 1 else []
        limits = [_for_all(float_replay.AT_LEAST, 0.0), _for_all(float_replay.AT_MOST, 1.0)]
        operations = [_for_all(float_replay.MULTIPLY, number), *nothing, *limits]
    return floats.add_step(x, lambda node: floats.add_operations(node, operations))


def _for_all(kind: int, number: float) -> floats.Operation:
    return kind, number, number, number
