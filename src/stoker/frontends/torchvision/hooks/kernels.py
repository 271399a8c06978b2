# SPDX-License-Identifier: Apache-2.0
"""torchvision's kernels for image tensors, as entries of its registry that record lazy tensors.

A recorder returns None if it does not record. Then torchvision's own kernel runs, and materializes the tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.functional import conv2d
from torch.nn.functional import pad as torch_pad

from ..ir import steps
from ..ir.recipe import Node
from ..materialize.trial import SIZE, is_equal, is_equal_in_floats
from ..reference.sums import BY_FOURS, is_filter_in_order, product_order, sum_order
from ..tensors import floats, grids, images, views
from ..tensors.pointwise import map_rows, number_key
from ..tensors.resizes import resize_v1
from ..tensors.tensor import LazyTensor, copy_layout, is_lazy, leading_shape, make_like
from . import float_kernels

# torch filters single channels of at most this many values with a small window in another way: by matrix products.
# Their order of additions depends on the processor and on the position in the image.
_FEW_VALUES = 20480
_LARGE_TRIAL = (160, 140)  # a larger image than that
_TRIED_FACTOR = 1.37
Step = Callable[[Node], Node]
Original = Callable[..., Any]


def _add_tried_step(
    x: LazyTensor, key: Any, step: Step, original: Callable[[torch.Tensor], Any], size: tuple[int, int] = SIZE
) -> LazyTensor | None:
    """Return all images after a step, if a trial with an image of ``size`` gives torch's bits.

    Steps on bytes are also tried on floats: rounding to bytes hides most effects of another order of additions.
    """
    channels = x._rows[0].node.channels
    if floats.are_floats(x):
        return floats.add_step(x, step) if is_equal_in_floats(key, channels, step, original, size) else None
    return (
        _add_tried_byte_step(x, key, step, original, size)
        if is_equal_in_floats(key, channels, step, original, size)
        else None
    )


def _add_tried_byte_step(
    x: LazyTensor, key: Any, step: Step, original: Callable[[torch.Tensor], Any], size: tuple[int, int] = SIZE
) -> LazyTensor | None:
    """Return all byte images after a step that is tried on bytes only."""
    if x.dtype != torch.uint8 or not is_equal(key, x._rows[0].node.channels, step, original, size):
        return None
    return views.add_step(x, step)


FIRST, SECOND = 1, 2  # torchvision's generations, native/torch/color.hpp


def _one(kind: Callable[[int, float], tuple[Any, ...]], generation: int, factor: float) -> Step:
    return lambda node: node.then(kind(generation, float(factor)))


def _is_number(x: Any) -> bool:
    return type(x) in (int, float) and math.isfinite(x)


def adjust_contrast(
    original: Original, x: LazyTensor, contrast_factor: Any, generation: int = SECOND
) -> LazyTensor | None:
    """Record the contrast, if the mean is exact or torch's order of additions is known."""
    node = x._rows[0].node
    if not _is_number(contrast_factor) or contrast_factor < 0:
        return None
    if floats.are_floats(x):
        return _with_layout_of(x, float_kernels.adjust_contrast(original, x, float(contrast_factor), generation))
    order = sum_order(node.size[0] * node.size[1], len(x._rows))
    if order is None or (order.lanes and not all(float_kernels.is_row_major(row.node) for row in x._rows)):
        return None

    def step(node: Node) -> Node:
        return node.then(steps.TorchContrast(generation, float(contrast_factor), *order))

    if node.channels == 3 and not _blends_equally(generation):
        return None
    return _with_layout_of(
        x, _add_tried_byte_step(x, ("contrast", generation), step, lambda v: original(v, contrast_factor))
    )


def _blends_equally(generation: int) -> bool:
    """Return whether torch blends colours with gray like native code, compared in floats: bytes show little of it."""
    from torchvision.transforms import _functional_tensor
    from torchvision.transforms.v2.functional import _color

    original = _functional_tensor.adjust_saturation if generation == FIRST else _color.adjust_saturation_image
    step = _one(steps.TorchSaturate, generation, _TRIED_FACTOR)
    return is_equal_in_floats(("saturation", generation), 3, step, lambda v: original(v, _TRIED_FACTOR))


def adjust_saturation(
    original: Original, x: LazyTensor, saturation_factor: Any, generation: int = SECOND
) -> LazyTensor | None:
    """Record the saturation of three channels."""
    if not _is_number(saturation_factor) or saturation_factor < 0 or x._rows[0].node.channels != 3:
        return None
    step = _one(steps.TorchSaturate, generation, saturation_factor)
    return _with_layout_of(
        x, _add_tried_step(x, ("saturation", generation), step, lambda v: original(v, saturation_factor))
    )


def adjust_hue(original: Original, x: LazyTensor, hue_factor: Any, generation: int = SECOND) -> LazyTensor | None:
    """Record the hue of three channels; the first generation leaves single channels unchanged."""
    if generation == FIRST and x._rows[0].node.channels == 1 and _is_number(hue_factor) and abs(hue_factor) <= 0.5:
        return x
    if not _is_number(hue_factor) or not -0.5 <= hue_factor <= 0.5 or x._rows[0].node.channels != 3:
        return None
    step = _one(steps.TorchHue, generation, hue_factor)
    result = _add_tried_step(x, ("hue", generation), step, lambda v: original(v, hue_factor))
    if result is not None:  # torch stacks planes, or computes pixels by a matrix product
        result._is_by_pixel = generation == FIRST and not leading_shape(x)
        result._is_unordered = generation == FIRST and bool(leading_shape(x))
    return result


def adjust_sharpness(
    original: Original, x: LazyTensor, sharpness_factor: Any, generation: int = SECOND
) -> LazyTensor | None:
    """Record the sharpness of images with interior pixels."""
    if not _is_number(sharpness_factor) or sharpness_factor < 0 or min(x._rows[0].node.size) <= 2:
        return None
    node = x._rows[0].node
    found = _filter_trial(node.channels, (3, 3), len(x._rows), node.size)
    if found is None:
        return None
    size, products = found
    step = _one(steps.TorchSharpenProducts if products else steps.TorchSharpen, generation, sharpness_factor)
    return _with_layout_of(
        x, _add_tried_step(x, ("sharpness", generation, products), step, lambda v: original(v, sharpness_factor), size)
    )


def _filter_trial(
    channels: int, window: Sequence[int], images: int, size: tuple[int, int]
) -> tuple[tuple[int, int], bool] | None:
    """Return the size of a trial image that torch filters like ``size``, and whether by a matrix product.

    None if native code does not repeat torch's filter.
    """
    if channels not in (1, 3):
        return None
    trial = SIZE if channels == 3 or min(window) > 3 else _LARGE_TRIAL
    if trial == _LARGE_TRIAL and images == 1 and size[0] * size[1] <= _FEW_VALUES:
        order = product_order((window[0], window[1]))
        return None if order is None else (SIZE, order == BY_FOURS)
    room = (max(trial[0], window[0] + 8), max(trial[1], window[1] + 8))
    return (trial, False) if is_filter_in_order(channels, (window[0], window[1]), room) else None


def autocontrast(original: Original, x: LazyTensor, generation: int = SECOND) -> LazyTensor | None:
    """Record autocontrast of bytes or floats."""
    key = ("autocontrast", generation)
    result = _add_tried_step(x, key, lambda node: node.then(steps.TorchAutocontrast(generation)), original)
    return _with_layout_of(x, result)


def equalize(original: Original, x: LazyTensor, generation: int = SECOND) -> LazyTensor | None:
    """Record equalization of bytes."""
    if x.dtype != torch.uint8:
        return None
    return _add_tried_byte_step(x, ("equalize", generation), lambda node: node.then(steps.TorchEqualize()), original)


def solarize(original: Original, x: LazyTensor, threshold: Any, generation: int = SECOND) -> LazyTensor | None:
    """Record solarization as a table."""
    return _map_values(original, x, "solarize", threshold, generation)


def adjust_brightness(
    original: Original, x: LazyTensor, brightness_factor: Any, generation: int = SECOND
) -> LazyTensor | None:
    """Record brightness as a table."""
    return _map_values(original, x, "brightness", brightness_factor, generation)


def _map_values(original: Original, x: LazyTensor, name: str, number: Any, generation: int) -> LazyTensor | None:
    if not _is_number(number):
        return None
    if floats.has_floats(x):
        return _with_layout_of(x, float_kernels.adjust_values(x, name, float(np.float32(number)), generation))
    rows = map_rows(x, (name, generation, number_key(number)), lambda values: original(values, number))
    return None if rows is None else _with_layout_of(x, make_like(x, rows, leading_shape(x)))


def _with_layout_of(x: LazyTensor, result: LazyTensor | None) -> LazyTensor | None:
    """Return ``result`` with the memory layout of ``x``, as torch's element-wise operations have it."""
    return None if result is None else copy_layout(x, result)


def rgb_to_grayscale(
    original: Original, x: LazyTensor, num_output_channels: int = 1, generation: int = SECOND
) -> LazyTensor | None:
    """Record the conversion to one or three gray channels."""
    if num_output_channels not in (1, 3):
        return None
    if x._rows[0].node.channels == 1:
        if num_output_channels == 1:
            return None
        return floats.add_step(x, _spread) if floats.are_floats(x) else views.add_step(x, _spread)

    def gray(node: Node) -> Node:
        return node.then(steps.TorchLuma(generation), channels=1)

    if num_output_channels == 1:
        result = _add_tried_step(x, ("gray", generation), gray, lambda v: original(v, 1))
        if result is not None:  # a single channel has no adjacent channels
            result._is_turned = x._is_turned
        return result
    return _add_tried_step(x, ("gray 3", generation), lambda node: _spread(gray(node)), lambda v: original(v, 3))


def _spread(node: Node) -> Node:
    return node.then(steps.Spread(), channels=3)


def gaussian_blur(original: Original, x: LazyTensor, kernel_size: Any, sigma: Any = None) -> LazyTensor | None:
    """Record the blur of bytes or floats."""
    from torchvision.transforms.v2.functional import _misc

    return _record_blur(x, kernel_size, sigma, _misc._get_gaussian_kernel2d)


def _record_blur(x: LazyTensor, kernel_size: Any, sigma: Any, bell: Any) -> LazyTensor | None:
    node, in_floats = x._rows[0].node, floats.are_floats(x)
    if not in_floats and (x.dtype != torch.uint8 or any(views.byte_node(row) is None for row in x._rows)):
        return None
    step = blur_step(node.channels, node.size, kernel_size, sigma, bell, len(x._rows), in_floats)
    if step is None:
        return None
    return floats.add_step(x, step) if in_floats else views.add_step(x, step)


def pad(
    original: Original, x: LazyTensor, padding: Any, fill: Any = None, padding_mode: str = "constant"
) -> LazyTensor | None:
    """Record symmetric padding, and frames with one value per channel. The other modes are functions of torch."""
    sides = views.parse_padding(padding)
    if sides is None:
        return None
    if padding_mode == "constant" and isinstance(fill, (list, tuple)) and len(fill) == x._rows[0].node.channels == 3:
        return views.add_frame(x, sides, fill)
    left, top, right, bottom = sides
    width, height = x._rows[0].node.size
    if padding_mode != "symmetric" or max(left, right) > width or max(top, bottom) > height or x.ndim not in (3, 4):
        return None
    return views.move_pixels(x, lambda node: views.pad_edges_node(node, sides, views.BORDERS["symmetric"]))


def permute_channels(original: Original, x: LazyTensor, permutation: Any) -> LazyTensor | None:
    """Record the permutation of three channels."""
    if not is_permutation(permutation, x._rows[0].node.channels):
        return None
    order = tuple(int(c) for c in permutation)
    stepped = floats.add_step if floats.are_floats(x) else views.add_step
    return stepped(x, lambda node: node.then(steps.Channels(*order)))


def is_permutation(x: Any, channels: int) -> bool:
    """Return whether ``x`` is an order of three channels."""
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
    """Return the step of torchvision's ``gaussian_blur`` for this number of ``images`` at a time.

    None if the step is not recorded, or torchvision raises an error for these arguments.
    """
    window = _parse_blur(kernel_size, sigma)
    if window is None:
        return None
    sizes, sigmas = window
    if any(n // 2 >= extent for n, extent in zip(sizes, size, strict=True)):
        return None  # torch raises an error for such a reflection
    weights = bell(sizes, sigmas, torch.float32, torch.device("cpu"))
    params = (*weights.shape, tuple(weights.reshape(-1).tolist()))

    def original(image: torch.Tensor) -> torch.Tensor:
        padded = torch_pad(image[None].float(), [sizes[0] // 2] * 2 + [sizes[1] // 2] * 2, mode="reflect")
        result = conv2d(padded, weights.expand(channels, 1, *weights.shape), groups=channels)
        return result[0] if in_floats else result[0].round_().to(torch.uint8)

    edges = [extent + n // 2 * 2 for n, extent in zip(sizes, size, strict=True)]
    found = _filter_trial(channels, sizes, images, (edges[0], edges[1]))
    if found is None:
        return None
    trial, products = found

    def step(node: Node) -> Node:
        return node.then((steps.TorchProducts if products else steps.Correlate)(*params))

    if any(n // 2 >= extent for n, extent in zip(sizes, trial, strict=True)):
        return None
    alike = is_equal_in_floats if in_floats else is_equal
    return step if alike(("blur", *sizes, products), channels, step, original, trial) else None


def _parse_blur(kernel_size: Any, sigma: Any) -> tuple[list[int], list[Any]] | None:
    """Return a blur's window and sigmas (across and down) as torchvision parses them; None for invalid ones."""
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
    **dict.fromkeys(["affine", "rotate", "perspective"], grids.run_kernel),
}
KERNELS: dict[str, Record] = {
    **_OF_BOTH_GENERATIONS,
    "elastic": grids.run_kernel,
    "gaussian_blur": gaussian_blur,
    "pad": pad,
    "permute_channels": permute_channels,
}


def wrap_v1(name: str) -> Callable[..., Any]:
    """Return the wrapper of a first-generation function for tensors."""
    record = V1_KERNELS[name]
    more = {} if record in (grids.run_kernel, gaussian_blur_v1, resize_v1) else {"generation": FIRST}

    def call(original: Original, x: Any, *args: Any, **kwargs: Any) -> Any:
        if is_lazy(x):
            result = record(original, x, *args, **kwargs, **more)
            if result is not None:
                return result if result is x or type(x) is LazyTensor else images.as_result_type(result)
        return original(x, *args, **kwargs)

    return call


def gaussian_blur_v1(original: Original, x: LazyTensor, kernel_size: Any, sigma: Any) -> LazyTensor | None:
    """Record the first generation's ``gaussian_blur``."""
    import torchvision.transforms._functional_tensor as tensors

    return _record_blur(x, kernel_size, sigma, tensors._get_gaussian_kernel2d)


V1_KERNELS: dict[str, Record] = {
    **_OF_BOTH_GENERATIONS,
    "adjust_brightness": adjust_brightness,
    "elastic_transform": grids.run_kernel,
    "gaussian_blur": gaussian_blur_v1,
    "resize": resize_v1,
}


def wrap_kernel(plain: Original, of_image: Original, record: Record) -> Original:
    """Return the recording kernel for torchvision's registry; it wraps those for tensors and for images."""

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x._materialized is None:
            result = record(plain, x, *args, **kwargs)
            if result is not None:
                return result
        return (plain if type(x) is LazyTensor else of_image)(x, *args, **kwargs)

    return call
