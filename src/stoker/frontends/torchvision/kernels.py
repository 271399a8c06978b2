# SPDX-License-Identifier: Apache-2.0
"""torchvision's kernels for image tensors, recorded: what stands in its registry for tensors that record.

Each returns None where it does not record; then torchvision's own kernel runs, and makes the tensor real.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.functional import conv2d
from torch.nn.functional import pad as torch_pad

from . import float_kernels, floats, grids, images, recipe, views
from .pointwise import map_rows
from .recipe import Node
from .resizes import first_resize
from .sums import filters_in_order, order_of, products_in_order
from .tensor import LazyTensor, is_lazy, lead_of, like_memory, of_rows
from .trial import SIZE, is_equal, is_equal_in_floats

# torch filters single channels of at most so many values in another way if its window is small: by products of
# matrices, which its library adds up in an order that depends on the processor and on the place in the image.
_FEW_VALUES = 20480
_MANY = (160, 140)  # an image of more
Step = Callable[[Node], Node]
Original = Callable[..., Any]


def _stepped(
    x: LazyTensor, key: Any, step: Step, original: Callable[[torch.Tensor], Any], size: tuple[int, int] = SIZE
) -> LazyTensor | None:
    """All images after a step, if it makes the bits that torch makes, tried with an image of that size."""
    channels = x._rows[0].node.channels
    if floats.are_floats(x):
        return floats.stepped(x, step) if is_equal_in_floats(key, channels, step, original, size) else None
    if x.dtype != torch.uint8 or not is_equal(key, channels, step, original, size):
        return None
    return views.stepped(x, step)


FIRST, SECOND = 1, 2  # torchvision's generations, native/torch_color.hpp


def _one(op: int, generation: int, factor: float) -> Step:
    return lambda node: node.then(op, (generation, float(factor)))


def _is_number(x: Any) -> bool:
    return type(x) in (int, float) and math.isfinite(x)


def adjust_contrast(
    original: Original, x: LazyTensor, contrast_factor: Any, generation: int = SECOND
) -> LazyTensor | None:
    """Of images whose mean is exact, or whose values torch adds up in a known order."""
    node = x._rows[0].node
    if not _is_number(contrast_factor) or contrast_factor < 0:
        return None
    if floats.are_floats(x):
        return _as_laid_out(x, float_kernels.adjust_contrast(original, x, float(contrast_factor), generation))
    order = order_of(node.size[0] * node.size[1], len(x._rows))
    if order is None or (order.lanes and not all(float_kernels.is_in_order(row.node) for row in x._rows)):
        return None

    def step(node: Node) -> Node:
        return node.then(recipe.TORCH_CONTRAST, (generation, float(contrast_factor), *order))

    return _as_laid_out(x, _stepped(x, ("contrast", generation), step, lambda v: original(v, contrast_factor)))


def adjust_saturation(
    original: Original, x: LazyTensor, saturation_factor: Any, generation: int = SECOND
) -> LazyTensor | None:
    """Of three channels."""
    if not _is_number(saturation_factor) or saturation_factor < 0 or x._rows[0].node.channels != 3:
        return None
    step = _one(recipe.TORCH_SATURATE, generation, saturation_factor)
    return _as_laid_out(x, _stepped(x, ("saturation", generation), step, lambda v: original(v, saturation_factor)))


def adjust_hue(original: Original, x: LazyTensor, hue_factor: Any, generation: int = SECOND) -> LazyTensor | None:
    """Of three channels; the first generation leaves single ones as they are."""
    if generation == FIRST and x._rows[0].node.channels == 1 and _is_number(hue_factor) and abs(hue_factor) <= 0.5:
        return x
    if not _is_number(hue_factor) or not -0.5 <= hue_factor <= 0.5 or x._rows[0].node.channels != 3:
        return None
    step = _one(recipe.TORCH_HUE, generation, hue_factor)
    made = _stepped(x, ("hue", generation), step, lambda v: original(v, hue_factor))
    if made is not None:  # planes are stacked, or made pixel by pixel by a product of matrices
        made._by_pixel = generation == FIRST and not lead_of(x)
        made._unordered = generation == FIRST and bool(lead_of(x))
    return made


def adjust_sharpness(
    original: Original, x: LazyTensor, sharpness_factor: Any, generation: int = SECOND
) -> LazyTensor | None:
    """Of images with an inside."""
    if not _is_number(sharpness_factor) or sharpness_factor < 0 or min(x._rows[0].node.size) <= 2:
        return None
    node = x._rows[0].node
    found = _trial_of_filter(node.channels, (3, 3), len(x._rows), node.size)
    if found is None:
        return None
    size, products = found
    step = _one(recipe.TORCH_SHARPEN_PRODUCTS if products else recipe.TORCH_SHARPEN, generation, sharpness_factor)
    return _as_laid_out(
        x, _stepped(x, ("sharpness", generation, products), step, lambda v: original(v, sharpness_factor), size)
    )


def _trial_of_filter(
    channels: int, window: Sequence[int], images: int, size: tuple[int, int]
) -> tuple[tuple[int, int], bool] | None:
    """The size of an image that torch filters as those of ``size``, and whether by a product of matrices; None if that
    is not repeated."""
    if channels not in (1, 3):
        return None
    trial = SIZE if channels == 3 or min(window) > 3 else _MANY
    if trial == _MANY and images == 1 and size[0] * size[1] <= _FEW_VALUES:
        return (SIZE, True) if products_in_order((window[0], window[1])) else None
    room = (max(trial[0], window[0] + 8), max(trial[1], window[1] + 8))
    return (trial, False) if filters_in_order(channels, (window[0], window[1]), room) else None


def autocontrast(original: Original, x: LazyTensor, generation: int = SECOND) -> LazyTensor | None:
    """Of bytes or floats."""
    key = ("autocontrast", generation)
    made = _stepped(x, key, lambda node: node.then(recipe.TORCH_AUTOCONTRAST, (generation,)), original)
    return _as_laid_out(x, made)


def equalize(original: Original, x: LazyTensor, generation: int = SECOND) -> LazyTensor | None:
    """Of bytes."""
    if x.dtype != torch.uint8:
        return None
    return _stepped(x, ("equalize", generation), lambda node: node.then(recipe.TORCH_EQUALIZE), original)


def solarize(original: Original, x: LazyTensor, threshold: Any, generation: int = SECOND) -> LazyTensor | None:
    """By a table."""
    return _mapped(original, x, "solarize", threshold, generation)


def adjust_brightness(
    original: Original, x: LazyTensor, brightness_factor: Any, generation: int = SECOND
) -> LazyTensor | None:
    """By a table."""
    return _mapped(original, x, "brightness", brightness_factor, generation)


def _mapped(original: Original, x: LazyTensor, name: str, number: Any, generation: int) -> LazyTensor | None:
    if not _is_number(number):
        return None
    if floats.has_floats(x):
        return _as_laid_out(x, float_kernels.adjusted(x, name, float(np.float32(number)), generation))
    rows = map_rows(x, (name, generation, number), lambda values: original(values, number))
    return None if rows is None else _as_laid_out(x, of_rows(x, rows, lead_of(x)))


def _as_laid_out(x: LazyTensor, made: LazyTensor | None) -> LazyTensor | None:
    """Torch's memory of what an operation makes of every value is laid out as its operand's."""
    return None if made is None else like_memory(x, made)


def rgb_to_grayscale(
    original: Original, x: LazyTensor, num_output_channels: int = 1, generation: int = SECOND
) -> LazyTensor | None:
    """To one or three channels."""
    if num_output_channels not in (1, 3):
        return None
    if x._rows[0].node.channels == 1:
        if num_output_channels == 1:
            return None
        return floats.stepped(x, _spread) if floats.are_floats(x) else views.stepped(x, _spread)

    def gray(node: Node) -> Node:
        return node.then(recipe.TORCH_LUMA, (generation,), channels=1)

    if num_output_channels == 1:
        made = _stepped(x, ("gray", generation), gray, lambda v: original(v, 1))
        if made is not None:  # a channel has no others beside it
            made._turned = x._turned
        return made
    return _stepped(x, ("gray 3", generation), lambda node: _spread(gray(node)), lambda v: original(v, 3))


def _spread(node: Node) -> Node:
    return node.then(recipe.SPREAD, (), channels=3)


def gaussian_blur(original: Original, x: LazyTensor, kernel_size: Any, sigma: Any = None) -> LazyTensor | None:
    """Of bytes or floats."""
    from torchvision.transforms.v2.functional import _misc

    return _blurred(x, kernel_size, sigma, _misc._get_gaussian_kernel2d)


def _blurred(x: LazyTensor, kernel_size: Any, sigma: Any, bell: Any) -> LazyTensor | None:
    node, in_floats = x._rows[0].node, floats.are_floats(x)
    if not in_floats and (x.dtype != torch.uint8 or any(views.bytes_of(row) is None for row in x._rows)):
        return None
    step = blur_step(node.channels, node.size, kernel_size, sigma, bell, len(x._rows), in_floats)
    if step is None:
        return None
    return floats.stepped(x, step) if in_floats else views.stepped(x, step)


def pad(
    original: Original, x: LazyTensor, padding: Any, fill: Any = None, padding_mode: str = "constant"
) -> LazyTensor | None:
    """Whose edges are mirrored with them; the other modes are functions of torch."""
    sides = views.four_sides(padding)
    if sides is None:
        return None
    if padding_mode == "constant" and isinstance(fill, (list, tuple)) and len(fill) == x._rows[0].node.channels == 3:
        return views.framed(x, sides, fill)
    left, top, right, bottom = sides
    width, height = x._rows[0].node.size
    if padding_mode != "symmetric" or max(left, right) > width or max(top, bottom) > height or x.ndim not in (3, 4):
        return None
    return views.moved(x, lambda node: views.edges_node(node, sides, views.BORDERS["symmetric"]))


def permute_channels(original: Original, x: LazyTensor, permutation: Any) -> LazyTensor | None:
    """Of three channels."""
    if not is_permutation(permutation, x._rows[0].node.channels):
        return None
    order = tuple(int(c) for c in permutation)
    stepped = floats.stepped if floats.are_floats(x) else views.stepped
    return stepped(x, lambda node: node.then(recipe.CHANNELS, order))


def is_permutation(x: Any, channels: int) -> bool:
    """Whether ``x`` says the order of three channels."""
    numbers = x.tolist() if isinstance(x, torch.Tensor) and x.ndim == 1 and not x.is_floating_point() else x
    listed = isinstance(numbers, (list, tuple)) and all(type(n) is int for n in numbers)
    return channels == 3 and listed and sorted(numbers) == [0, 1, 2]


def blur_step(
    channels: int,
    size: tuple[int, int],
    kernel_size: Any,
    sigma: Any,
    bell: Callable[..., torch.Tensor],
    images: int = 1,
    in_floats: bool = False,
) -> Step | None:
    """The step of torchvision's ``gaussian_blur`` of so many ``images`` at a time; None if it does not record (or
    refuse) these arguments."""
    window = _window_of(kernel_size, sigma)
    if window is None:
        return None
    sizes, sigmas = window
    if any(n // 2 >= extent for n, extent in zip(sizes, size, strict=True)):
        return None  # torch refuses such a reflection
    weights = bell(sizes, sigmas, torch.float32, torch.device("cpu"))
    params = (weights.numel() + 2, *weights.shape, *weights.reshape(-1).tolist())

    def original(image: torch.Tensor) -> torch.Tensor:
        padded = torch_pad(image[None].float(), [sizes[0] // 2] * 2 + [sizes[1] // 2] * 2, mode="reflect")
        made = conv2d(padded, weights.expand(channels, 1, *weights.shape), groups=channels)
        return made[0] if in_floats else made[0].round_().to(torch.uint8)

    edges = [extent + n // 2 * 2 for n, extent in zip(sizes, size, strict=True)]
    found = _trial_of_filter(channels, sizes, images, (edges[0], edges[1]))
    if found is None:
        return None
    trial, products = found

    def step(node: Node) -> Node:
        return node.then(recipe.TORCH_PRODUCTS if products else recipe.CORRELATE, params)

    if any(n // 2 >= extent for n, extent in zip(sizes, trial, strict=True)):
        return None
    alike = is_equal_in_floats if in_floats else is_equal
    return step if alike(("blur", *sizes, products), channels, step, original, trial) else None


def _window_of(kernel_size: Any, sigma: Any) -> tuple[list[int], list[Any]] | None:
    """A blur's sizes and its bell's widths, across and down, as torchvision takes them; None if it refuses them."""
    bells = sigma is None or _is_number(sigma) or isinstance(sigma, (list, tuple))
    if not bells or not isinstance(kernel_size, (int, list, tuple)):
        return None
    sizes = [kernel_size] * 2 if isinstance(kernel_size, int) else list(kernel_size)
    if len(sizes) != 2 or not all(type(n) is int and n > 0 and n % 2 for n in sizes):
        return None
    if sigma is None:
        return sizes, [n * 0.15 + 0.35 for n in sizes]
    sigmas = [float(sigma)] if _is_number(sigma) else list(sigma)
    sigmas = sigmas * 2 if len(sigmas) == 1 else sigmas
    return (sizes, sigmas) if len(sigmas) == 2 and all(_is_number(s) and s > 0 for s in sigmas) else None


Record = Callable[..., LazyTensor | None]
_OF_BOTH_GENERATIONS: dict[str, Record] = {
    "adjust_contrast": adjust_contrast,
    "adjust_saturation": adjust_saturation,
    "adjust_hue": adjust_hue,
    "adjust_sharpness": adjust_sharpness,
    "autocontrast": autocontrast,
    "equalize": equalize,
    "solarize": solarize,
    "rgb_to_grayscale": rgb_to_grayscale,
    **dict.fromkeys(["affine", "rotate", "perspective"], grids.kernel),
}
KERNELS: dict[str, Record] = {
    **_OF_BOTH_GENERATIONS,
    "elastic": grids.kernel,
    "gaussian_blur": gaussian_blur,
    "pad": pad,
    "permute_channels": permute_channels,
}


def first_generation(name: str) -> Callable[..., Any]:
    """What stands in for a function of torchvision's first generation for tensors; it gets the original."""
    record = FIRST_GENERATION[name]
    more = {} if record in (grids.kernel, first_blur, first_resize) else {"generation": FIRST}

    def call(original: Original, x: Any, *args: Any, **kwargs: Any) -> Any:
        if is_lazy(x):
            result = record(original, x, *args, **kwargs, **more)
            if result is not None:
                return result if result is x or type(x) is LazyTensor else images.returned(result)
        return original(x, *args, **kwargs)

    return call


def first_blur(original: Original, x: LazyTensor, kernel_size: Any, sigma: Any) -> LazyTensor | None:
    """The first generation's ``gaussian_blur``."""
    import torchvision.transforms._functional_tensor as tensors

    return _blurred(x, kernel_size, sigma, tensors._get_gaussian_kernel2d)


FIRST_GENERATION: dict[str, Record] = {
    **_OF_BOTH_GENERATIONS,
    "adjust_brightness": adjust_brightness,
    "elastic_transform": grids.kernel,
    "gaussian_blur": first_blur,
    "resize": first_resize,
}


def kernel(plain: Original, of_image: Original, record: Record) -> Original:
    """What stands in torchvision's registry for tensors that record; its kernels for tensors and for images."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x._real is None:
            result = record(plain, x, *args, **kwargs)
            if result is not None:
                return result
        return (plain if type(x) is LazyTensor else of_image)(x, *args, **kwargs)

    return call
