# SPDX-License-Identifier: Apache-2.0
"""What stands in for functions of torchvision and Pillow: each gets the original, and records if the image does."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from PIL import ImageEnhance

from . import grids, kernels, recipe, views
from .image import LARGEST, LazyImage, _Recording, color_of, decoded, map_node, pad_node
from .images import lazy_image_class, returned
from .pointwise import map_rows
from .replay import image_of
from .rows import LazyRow
from .tables import first_table, mapped
from .tensor import LazyTensor, by_pixel, image_tensor, is_lazy, lead_of, like_memory, settled


def _node(image: Any) -> Any:
    return image._recorded() if isinstance(image, _Recording) else None


def fromarray(original: Callable[..., Any], obj: Any, *args: Any, **kwargs: Any) -> Any:
    """``Image.fromarray``: what follows is recorded."""
    return decoded(original(obj, *args, **kwargs))


def blend(original: Callable[..., Any], im1: Any, im2: Any, alpha: Any) -> Any:
    """``Image.blend`` of two images that were made out of one."""
    node, other = _node(im1), _node(im2)
    if node is None or other is None or other.source is not node.source:
        return original(im1, im2, alpha)
    alike = (other.size, other.channels) == (node.size, node.channels)
    if not alike or not isinstance(alpha, (int, float, np.floating)) or not math.isfinite(alpha):
        return original(im1, im2, alpha)
    return im1._record(node.then(recipe.BLEND, (other, float(np.float32(alpha)))))


def pil_to_tensor(original: Callable[[Any], Any], pic: Any) -> Any:
    """The image as uint8 ``(channels, height, width)``."""
    node = _node(pic)
    return original(pic) if node is None else by_pixel(image_tensor(node))


def to_tensor(original: Callable[[Any], Any], pic: Any) -> Any:
    """The image as the default float type in [0, 1], ``(channels, height, width)``."""
    node = _node(pic)
    if node is None:
        return original(pic)
    dtype = torch.get_default_dtype()
    table = mapped(first_table(node.channels), ("to_tensor", dtype), lambda values: values.to(dtype=dtype).div(255))
    return image_tensor(node, table)


def normalize(original: Callable[..., Any], tensor: Any, mean: Any, std: Any, inplace: bool = False) -> Any:
    """torchvision's ``normalize``: its own arithmetic, on 256 values instead of all pixels, once."""
    fits = is_lazy(tensor) and _is_numbers(mean) and _is_numbers(std)
    if not fits or not {len(mean), len(std)} <= {1, tensor._rows[0].node.channels}:  # torch refuses
        return original(tensor, mean, std, inplace)
    key = ("normalize", tuple(mean), tuple(std))
    rows = map_rows(tensor, key, lambda values: original(values, mean, std, True))
    if rows is None:
        return original(tensor, mean, std, inplace)
    if not inplace:
        made = like_memory(tensor, LazyTensor(rows, lead_of(tensor)))
    elif settled(tensor):  # others show its memory: they are made
        return original(tensor, mean, std, inplace)
    else:
        tensor._rows = rows
        made = tensor
    return made if type(tensor) is LazyTensor else returned(made)


def _is_numbers(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and _NUMBERS.issuperset(map(type, values))


_NUMBERS = frozenset((int, float))


def to_image(original: Callable[[Any], Any], inpt: Any) -> Any:
    """v2's ``to_image``: one of torchvision's image tensors."""
    node = _node(inpt)
    if node is None:
        return original(inpt)
    return by_pixel(lazy_image_class()([LazyRow(node, first_table(node.channels))], ()))


def wrap(original: Callable[..., Any], wrappee: Any, *, like: Any, **kwargs: Any) -> Any:
    """``tv_tensors.wrap``: like a lazy image is like the image that it stands for."""
    if isinstance(like, lazy_image_class()):
        return wrappee.as_subclass(like.stands_for)
    return original(wrappee, like=like, **kwargs)


def to_pil_image(original: Callable[..., Any], pic: Any, mode: Any = None) -> Any:
    """torchvision's ``to_pil_image``, of a tensor of bytes that records or one that is there."""
    lazy = is_lazy(pic) and pic.ndim == 3 and pic.dtype == torch.uint8
    node = views.bytes_of(pic._rows[0]) if lazy else None
    if node is None or mode not in (None, {1: "L", 3: "RGB"}[node.channels]):
        return decoded(original(pic, mode))
    return LazyImage()._record(node)


def permute_channels(original: Callable[..., Any], image: Any, permutation: Any) -> Any:
    """v2's ``permute_channels`` of a Pillow image of three."""
    node = _node(image)
    if node is None or not kernels.is_permutation(permutation, node.channels):
        return original(image, permutation)
    permuted = image._record(node.then(recipe.CHANNELS, tuple(int(c) for c in permutation)))
    permuted.info = {}
    return permuted


def call_to_tensor(original: Callable[..., Any], self: Any, pic: Any) -> Any:
    """``ToTensor.__call__``."""
    return original(self, pic) if _node(pic) is None else to_tensor(lambda x: original(self, x), pic)


def call_pil_to_tensor(original: Callable[..., Any], self: Any, pic: Any) -> Any:
    """``PILToTensor.__call__``."""
    return original(self, pic) if _node(pic) is None else pil_to_tensor(lambda x: original(self, x), pic)


def to_grayscale(original: Callable[..., Any], img: Any, num_output_channels: int) -> Any:
    """torchvision's ``to_grayscale`` of a Pillow image."""
    if _node(img) is None or num_output_channels not in (1, 3):
        return original(img, num_output_channels)
    gray = img.convert("L")
    return gray if num_output_channels == 1 else gray.convert("RGB")


def adjust_hue(original: Callable[..., Any], img: Any, hue_factor: float) -> Any:
    """torchvision's ``adjust_hue`` of a Pillow image."""
    node = _node(img)
    if node is None or node.channels != 3 or not -0.5 <= hue_factor <= 0.5:
        return original(img, hue_factor)
    shift = int(np.int32(hue_factor * 255).astype(np.uint8))
    turned = img._record(node.then(recipe.HUE, (shift,)))
    turned.info = {}
    return turned


def autocontrast(original: Callable[..., Any], image: Any, *args: Any, **kwargs: Any) -> Any:
    """``ImageOps.autocontrast`` with its defaults."""
    node = None if args or kwargs else _node(image)
    return original(image, *args, **kwargs) if node is None else image._record(node.then(recipe.AUTOCONTRAST))


def equalize(original: Callable[..., Any], image: Any, *args: Any, **kwargs: Any) -> Any:
    """``ImageOps.equalize`` without a mask."""
    node = None if args or kwargs else _node(image)
    return original(image, *args, **kwargs) if node is None else image._record(node.then(recipe.EQUALIZE))


def expand(original: Callable[..., Any], image: Any, border: Any = 0, fill: Any = 0) -> Any:
    """``ImageOps.expand``: a frame of one colour."""
    node = _node(image)
    sides = border if isinstance(border, tuple) else (border,)
    if node is None or len(sides) not in (1, 2, 4) or not all(isinstance(n, int) and n <= LARGEST for n in sides):
        return original(image, border, fill)
    left, top, right, bottom = (sides * 4)[:4] if len(sides) < 4 else sides
    if min(left, top, right, bottom) < 0:
        return original(image, border, fill)
    size = (left + node.size[0] + right, top + node.size[1] + bottom)
    framed = image._record(pad_node(node, left, top, size, color_of(image.mode, fill)))
    framed.info = {}
    return framed


def pad(original: Callable[..., Any], img: Any, padding: Any, fill: Any = 0, padding_mode: str = "constant") -> Any:
    """torchvision's ``pad`` of a Pillow image whose edges are continued; a frame of one colour is ``expand``'s."""
    node = _node(img)
    known = isinstance(padding_mode, str) and padding_mode != "replicate"
    border = views.BORDERS.get(padding_mode) if known else None
    sides = views.four_sides(padding)
    if node is None or border is None or sides is None or max(sides) > LARGEST:
        return original(img, padding, fill, padding_mode)
    padded = img._record(views.edges_node(node, sides, border))
    padded.info = {}
    return padded


def gaussian_blur(original: Callable[..., Any], img: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """``gaussian_blur`` of torchvision's first generation, of a Pillow image."""
    import torchvision.transforms._functional_tensor as tensors

    blurred = None if _node(img) is None else blur(img, kernel_size, sigma, tensors)
    return original(img, kernel_size, sigma) if blurred is None else blurred


def gaussian_blur_v2(original: Callable[..., Any], image: Any, kernel_size: Any, sigma: Any = None) -> Any:
    """v2's ``gaussian_blur`` of a Pillow image."""
    from torchvision.transforms.v2.functional import _misc

    blurred = None if _node(image) is None else blur(image, kernel_size, sigma, _misc)
    return original(image, kernel_size, sigma) if blurred is None else blurred


def elastic_v1(
    original: Callable[..., Any], img: Any, displacement: Any, interpolation: Any = None, fill: Any = None
) -> Any:
    """``elastic_transform`` of torchvision's first generation, of a Pillow image."""
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
    """v2's ``elastic`` of a Pillow image."""
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
    apply = getattr(library._apply_grid_transform, "__wrapped__", library._apply_grid_transform)
    step = grids.elastic_step(apply, node.channels, grid, mode, fill, library.__name__.endswith("_functional_tensor"))
    if step is None:
        return None
    changed = image._record(step(node))
    changed.info = {}
    return changed


def blur(image: Any, kernel_size: Any, sigma: Any, library: Any) -> Any:
    """A Pillow image, blurred; None if that is not recorded."""
    node = _node(image)
    step = kernels.blur_step(node.channels, node.size, kernel_size, sigma, library._get_gaussian_kernel2d)
    if step is None:
        return None
    blurred = image._record(step(node))
    blurred.info = {}
    return blurred


def enhancer(base: type) -> type:
    """A class of ``ImageEnhance`` that records what its objects do to an image that records."""
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
            """The image, enhanced."""
            node = None if "degenerate" in self.__dict__ or not _is_real(factor) else _node(self.image)
            if node is None:
                return super().enhance(factor)
            enhanced = self.image._record(record(node, float(factor)))
            if base.__name__ in ("Brightness", "Contrast"):  # blended into a new image, which knows nothing of the file
                enhanced.info = {}
            return enhanced

    Enhancer.__name__, Enhancer.__qualname__, Enhancer.__module__ = base.__name__, base.__qualname__, base.__module__
    Enhancer.__doc__ = base.__doc__
    return Enhancer


def _is_real(x: Any) -> bool:
    """Whether C takes ``x`` for a float, as Pillow's functions do: Python's ``float`` takes texts, too."""
    return hasattr(type(x), "__float__") or hasattr(type(x), "__index__")


def _brightness(node: recipe.Node, factor: float) -> recipe.Node:
    ramp = image_of(np.arange(256, dtype=np.uint8).reshape(1, 256))
    return map_node(node, np.asarray(ImageEnhance.Brightness(ramp).enhance(factor)))


def _contrast(node: recipe.Node, factor: float) -> recipe.Node:
    return node.then(recipe.CONTRAST, (factor,))


def _color(node: recipe.Node, factor: float) -> recipe.Node:
    return node.then(recipe.SATURATE, (factor,)) if node.channels > 1 else node


def _sharpness(node: recipe.Node, factor: float) -> recipe.Node:
    return node.then(recipe.SHARPEN, (factor,))


ENHANCERS: dict[str, Callable[[recipe.Node, float], recipe.Node]] = {
    "Brightness": _brightness,
    "Contrast": _contrast,
    "Color": _color,
    "Sharpness": _sharpness,
}
