# SPDX-License-Identifier: Apache-2.0
"""Wrappers of torchvision's and Pillow's functions. Each gets the original, and records if the image is lazy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import ImageEnhance

from ..ir import recipe, steps
from ..ir.rows import LazyRow
from ..ir.tables import identity_table, map_table
from ..pillow.image import LARGEST, LazyImage, RecordingImage, map_node, pad_node, parse_color, record_decoded
from ..reference.replay import plain_image
from ..tensors import grids, views
from ..tensors.images import as_result_type, lazy_image_class
from ..tensors.lazy_base import LazyBase
from ..tensors.points import LazyPoints, plain
from ..tensors.pointwise import map_rows, number_key
from ..tensors.tensor import (
    LazyTensor,
    copy_layout,
    image_tensor,
    is_lazy,
    leading_shape,
    mark_by_pixel,
    materialize_shared,
)
from . import kernels


def _itself(function: Any) -> Any:
    return function


_find_original: Callable[[Any], Any] = _itself


def set_original_finder(find: Callable[[Any], Any]) -> None:
    """Set the function that returns the original of a function with a hook; see `changes.py`."""
    global _find_original
    _find_original = find


def _node(image: Any) -> Any:
    return image._recorded_node() if isinstance(image, RecordingImage) else None


def fromarray(original: Callable[..., Any], obj: Any, mode: Any = None) -> Any:
    """Wrap ``Image.fromarray``: later steps on the image are recorded."""
    return record_decoded(original(obj, mode))


def blend(original: Callable[..., Any], im1: Any, im2: Any, alpha: Any) -> Any:
    """Wrap ``Image.blend``, for two images with the same source."""
    node, other = _node(im1), _node(im2)
    if node is None or other is None or other.source is not node.source:
        return original(im1, im2, alpha)
    alike = (other.size, other.channels) == (node.size, node.channels)
    if not alike or not isinstance(alpha, (int, float, np.floating)) or not math.isfinite(alpha):
        return original(im1, im2, alpha)
    return im1._record(node.then(steps.Blend(other, float(np.float32(alpha)))))


def pil_to_tensor(original: Callable[[Any], Any], pic: Any) -> Any:
    """Wrap torchvision's ``pil_to_tensor``: uint8 ``(channels, height, width)``."""
    node = _node(pic)
    return original(pic) if node is None else mark_by_pixel(image_tensor(node))


def to_tensor(original: Callable[[Any], Any], pic: Any) -> Any:
    """Wrap torchvision's ``to_tensor``: the default float type in [0, 1], ``(channels, height, width)``."""
    node = _node(pic)
    if node is None:
        return original(pic)
    dtype = torch.get_default_dtype()
    table = map_table(
        identity_table(node.channels), ("to_tensor", dtype), lambda values: values.to(dtype=dtype).div(255)
    )
    return image_tensor(node, table)


def normalize(original: Callable[..., Any], tensor: Any, mean: Any, std: Any, inplace: bool = False) -> Any:
    """Wrap torchvision's ``normalize``: its own arithmetic runs on 256 values instead of all pixels, once."""
    fits = is_lazy(tensor) and _is_numbers(mean) and _is_numbers(std)
    if not fits or not {len(mean), len(std)} <= {1, tensor._rows[0].node.channels}:  # torch raises an error
        return original(tensor, mean, std, inplace)
    key = ("normalize", tuple(mean), tuple(std))
    if 0 in mean or 0 in std:
        key = ("normalize", *map(number_key, mean), None, *map(number_key, std))
    rows = map_rows(tensor, key, lambda values: original(values, mean, std, True))
    if rows is None:
        return original(tensor, mean, std, inplace)
    if not inplace:
        result = copy_layout(tensor, LazyTensor(rows, leading_shape(tensor)))
    elif materialize_shared(tensor):  # other windows of its memory have been materialized with it
        return original(tensor, mean, std, inplace)
    else:
        tensor._rows = rows
        result = tensor
    return result if type(tensor) is LazyTensor else as_result_type(result)


def _is_numbers(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and _NUMBERS.issuperset(map(type, values))


_NUMBERS = frozenset((int, float))


def to_image(original: Callable[[Any], Any], inpt: Any) -> Any:
    """Wrap v2's ``to_image``: a lazy version of torchvision's image tensor."""
    node = _node(inpt)
    if node is None:
        return original(inpt)
    return mark_by_pixel(lazy_image_class()([LazyRow(node, identity_table(node.channels))], ()))


def wrap(original: Callable[..., Any], wrappee: Any, *, like: Any, **kwargs: Any) -> Any:
    """Wrap ``tv_tensors.wrap``: a lazy tensor as ``like`` gives its represented class."""
    if issubclass(type(like), LazyPoints):  # has a size of the image
        if not hasattr(like.represented_class, "wrap"):  # an older release, such as 0.24
            return original(wrappee, like=plain(like), **kwargs)
        return like.represented_class.wrap(wrappee, like, **kwargs)
    if issubclass(type(like), LazyBase):
        return wrappee.as_subclass(like.represented_class)
    return original(wrappee, like=like, **kwargs)


def to_pil_image(original: Callable[..., Any], pic: Any, mode: Any = None) -> Any:
    """Wrap torchvision's ``to_pil_image``, for lazy and plain tensors of bytes."""
    lazy = is_lazy(pic) and pic.ndim == 3 and pic.dtype == torch.uint8
    node = views.byte_node(pic._rows[0]) if lazy else None
    if node is None or mode not in (None, {1: "L", 3: "RGB"}[node.channels]):
        return record_decoded(original(pic, mode))
    return LazyImage()._record(node)


def permute_channels(original: Callable[..., Any], image: Any, permutation: Any) -> Any:
    """Wrap v2's ``permute_channels``, for a Pillow image of three channels."""
    node = _node(image)
    if node is None or not kernels.is_permutation(permutation, node.channels):
        return original(image, permutation)
    permuted = image._record(node.then(steps.Channels(*tuple(int(c) for c in permutation))))
    permuted.info = {}
    return permuted


def call_to_tensor(original: Callable[..., Any], self: Any, pic: Any) -> Any:
    """Wrap ``ToTensor.__call__``."""
    return original(self, pic) if _node(pic) is None else to_tensor(lambda x: original(self, x), pic)


def call_pil_to_tensor(original: Callable[..., Any], self: Any, pic: Any) -> Any:
    """Wrap ``PILToTensor.__call__``."""
    return original(self, pic) if _node(pic) is None else pil_to_tensor(lambda x: original(self, x), pic)


def to_grayscale(original: Callable[..., Any], img: Any, num_output_channels: int) -> Any:
    """Wrap torchvision's ``to_grayscale`` of a Pillow image."""
    if _node(img) is None or num_output_channels not in (1, 3):
        return original(img, num_output_channels)
    gray = img.convert("L")
    return gray if num_output_channels == 1 else gray.convert("RGB")


def adjust_hue(original: Callable[..., Any], img: Any, hue_factor: float) -> Any:
    """Wrap torchvision's ``adjust_hue`` of a Pillow image."""
    node = _node(img)
    if node is None or node.channels != 3 or not -0.5 <= hue_factor <= 0.5:
        return original(img, hue_factor)
    shift = int(np.int32(hue_factor * 255).astype(np.uint8))
    turned = img._record(node.then(steps.Hue(shift)))
    turned.info = {}
    return turned


def autocontrast(original: Callable[..., Any], image: Any, *options: Any) -> Any:
    """Wrap ``ImageOps.autocontrast``; recorded with its defaults."""
    defaults = original.__defaults__ or ()
    plain = tuple(map(type, options)) == tuple(map(type, defaults)) and options == defaults
    node = _node(image) if plain else None
    return original(image, *options) if node is None else image._record(node.then(steps.Autocontrast()))


def equalize(original: Callable[..., Any], image: Any, mask: Any = None) -> Any:
    """Wrap ``ImageOps.equalize``; recorded without a mask."""
    node = _node(image) if mask is None else None
    return original(image, mask) if node is None else image._record(node.then(steps.Equalize()))


def expand(original: Callable[..., Any], image: Any, border: Any = 0, fill: Any = 0) -> Any:
    """Wrap ``ImageOps.expand``: a frame of one colour."""
    node = _node(image)
    sides = border if isinstance(border, tuple) else (border,)
    if node is None or len(sides) not in (1, 2, 4) or not all(isinstance(n, int) and n <= LARGEST for n in sides):
        return original(image, border, fill)
    left, top, right, bottom = (sides * 4)[:4] if len(sides) < 4 else sides
    if min(left, top, right, bottom) < 0:
        return original(image, border, fill)
    size = (left + node.size[0] + right, top + node.size[1] + bottom)
    framed = image._record(pad_node(node, left, top, size, parse_color(image.mode, fill)))
    framed.info = {}
    return framed


def pad(original: Callable[..., Any], img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """Wrap torchvision's ``pad`` of a Pillow image with continued edges; ``expand`` records frames of one colour."""
    node = _node(img)
    known = isinstance(padding_mode, str) and padding_mode != "replicate"
    border = views.BORDERS.get(padding_mode) if known else None
    sides = views.parse_padding(padding)
    if node is None or border is None or sides is None or max(sides) > LARGEST:
        return original(img, padding, fill, padding_mode)
    padded = img._record(views.pad_edges_node(node, sides, border))
    padded.info = {}
    return padded


def gaussian_blur(original: Callable[..., Any], img: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """Wrap the first generation's ``gaussian_blur`` of a Pillow image."""
    import torchvision.transforms._functional_tensor as tensors

    blurred = None if _node(img) is None else record_blur(img, kernel_size, sigma, tensors)
    return original(img, kernel_size, sigma) if blurred is None else blurred


def gaussian_blur_v2(original: Callable[..., Any], image: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """Wrap v2's ``gaussian_blur`` of a Pillow image."""
    from torchvision.transforms.v2.functional import _misc

    blurred = None if _node(image) is None else record_blur(image, kernel_size, sigma, _misc)
    return original(image, kernel_size, sigma) if blurred is None else blurred


def elastic_v1(
    original: Callable[..., Any], img: Any, displacement: Any, interpolation: Any = None, fill: Any = None
) -> Any:
    """Wrap the first generation's ``elastic_transform`` of a Pillow image."""
    import torchvision.transforms._functional_tensor as tensors
    from torchvision.transforms import InterpolationMode

    mode = InterpolationMode.BILINEAR if interpolation is None else interpolation
    node = _node(img)
    fits = isinstance(displacement, torch.Tensor) and isinstance(mode, InterpolationMode)
    if node is None or not fits or tuple(displacement.shape) != (1, *node.size[::-1], 2):
        return original(img, displacement, mode, fill)
    grid = tensors._create_identity_grid(list(node.size[::-1])) + displacement
    changed = _elastic(img, grid, mode.value, fill, tensors)
    return original(img, displacement, mode, fill) if changed is None else changed


def elastic_v2(
    original: Callable[..., Any], image: Any, displacement: Any, interpolation: Any = None, fill: Any = None
) -> Any:
    """Wrap v2's ``elastic`` of a Pillow image."""
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.v2.functional import _geometry

    mode = _geometry._check_interpolation(InterpolationMode.BILINEAR if interpolation is None else interpolation)
    node = _node(image)
    fits = isinstance(displacement, torch.Tensor) and displacement.device.type == "cpu"
    if node is None or not fits or tuple(displacement.shape) != (1, *node.size[::-1], 2):
        return original(image, displacement, mode, fill)
    identity = _geometry._create_identity_grid(node.size[::-1], device=torch.device("cpu"), dtype=torch.float32)
    changed = _elastic(image, identity.add_(displacement.to(torch.float32)), mode.value, fill, _geometry)
    return original(image, displacement, mode, fill) if changed is None else changed


def _elastic(image: Any, grid: torch.Tensor, mode: str, fill: Any, library: Any) -> Any:
    node = _node(image)
    apply = _find_original(library._apply_grid_transform)
    step = grids.elastic_step(apply, node.channels, grid, mode, fill, library.__name__.endswith("_functional_tensor"))
    if step is None:
        return None
    changed = image._record(step(node))
    changed.info = {}
    return changed


def record_blur(image: Any, kernel_size: Any, sigma: Any, library: Any) -> Any:
    """Return a blurred Pillow image; None if the blur is not recorded."""
    node = _node(image)
    step = kernels.blur_step(node.channels, node.size, kernel_size, sigma, library._get_gaussian_kernel2d)
    if step is None:
        return None
    blurred = image._record(step(node))
    blurred.info = {}
    return blurred


@functools.cache
def enhancer_class(base: type) -> type:
    """Return a subclass of a class of ``ImageEnhance`` that records enhancements of lazy images."""
    record = ENHANCERS[base.__name__]

    class Enhancer(base):  # type: ignore[misc]
        def __init__(self, image: Any) -> None:
            if _node(image) is None:
                super().__init__(image)
            else:
                self.image = image

        def __getattr__(self, name: str) -> Any:
            if name in ("degenerate", "intermediate_mode") and "image" in self.__dict__:
                super().__init__(self.image)
                return self.__dict__[name]
            raise AttributeError(name)

        def enhance(self, factor: float) -> Any:
            """Return the enhanced image."""
            node = None if "degenerate" in self.__dict__ or not _is_real(factor) else _node(self.image)
            if node is None:
                return super().enhance(factor)
            enhanced = self.image._record(record(node, float(factor)))
            # Pillow blends into a new image without the file's metadata
            if base.__name__ in ("Brightness", "Contrast"):
                enhanced.info = {}
            return enhanced

    Enhancer.__name__, Enhancer.__qualname__, Enhancer.__module__ = base.__name__, base.__qualname__, base.__module__
    Enhancer.__doc__ = base.__doc__
    return Enhancer


def _is_real(x: Any) -> bool:
    """Return whether C accepts ``x`` as a float, like Pillow's functions. Python's ``float`` also accepts strings."""
    return hasattr(type(x), "__float__") or hasattr(type(x), "__index__")


def _brightness(node: recipe.Node, factor: float) -> recipe.Node:
    ramp = plain_image(np.arange(256, dtype=np.uint8).reshape(1, 256))
    return map_node(node, np.asarray(ImageEnhance.Brightness(ramp).enhance(factor)))


def _contrast(node: recipe.Node, factor: float) -> recipe.Node:
    return node.then(steps.Contrast(factor))


def _color(node: recipe.Node, factor: float) -> recipe.Node:
    return node.then(steps.Saturate(factor)) if node.channels > 1 else node


def _sharpness(node: recipe.Node, factor: float) -> recipe.Node:
    return node.then(steps.Sharpen(factor))


ENHANCERS: dict[str, Callable[[recipe.Node, float], recipe.Node]] = {
    "Brightness": _brightness,
    "Contrast": _contrast,
    "Color": _color,
    "Sharpness": _sharpness,
}
