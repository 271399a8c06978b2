# SPDX-License-Identifier: Apache-2.0
"""Pillow images that record: what torchvision's transforms call on them becomes a recipe instead of pixels.

They are Pillow images in every other way. Whatever asks for the pixels themselves (``np.array(image)``, a filter,
drawing on it) finds them: they are made, and from then on the image is like any other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from ...native import _native
from . import counts, early, filters, recipe
from .likeness import named_after
from .recipe import Node
from .replay import image_of

_FILTER_NUMBERS = {0: 0, 1: 3, 2: 1, 3: 2, 4: 6, 5: 7}  # Pillow's Resampling → native/resample.hpp
CHANNELS = {"L": 1, "RGB": 3}
_SAMPLING = {Image.Resampling.NEAREST: 0, Image.Resampling.BILINEAR: 1, Image.Resampling.BICUBIC: 2}
_MATRIX = {Image.Transform.AFFINE: 6, Image.Transform.PERSPECTIVE: 8}
_FEW_PIXELS = 64 * 64
_REAL = (int, float, np.integer, np.floating)
LARGEST = 2**31 - 1  # of a width, a height, a frame: more than that Pillow does not take


def bare(kind: type[Image.Image]) -> Image.Image:
    """An object of Pillow's own class, which a pickle's state is put into."""
    return kind.__new__(kind)


class _PixelsLater:
    """What ``load()`` gives: Pillow's access to pixels, which are made when one is asked for."""

    def __init__(self, image: _Recording) -> None:
        self._image = image

    def _access(self) -> Any:
        return self._image.im.pixel_access(self._image.readonly)

    def __getitem__(self, xy: tuple[int, int]) -> Any:
        return self._access()[xy]

    def __setitem__(self, xy: tuple[int, int], color: Any) -> None:
        self._access()[xy] = color


class InfoLater:
    """Stands for the ``info`` of a JPEG file, and of images made of it, until somebody asks for it."""

    def __init__(self, find: Callable[[], dict[Any, Any]]) -> None:
        self._find = find

    def read(self) -> dict[Any, Any]:
        """A dictionary of the asker's own."""
        return self._find()

    def copy(self) -> InfoLater:
        """For another image."""
        return self

    def __contains__(self, key: Any) -> bool:
        return key != "transparency" and key in self._find()  # JPEG files have none


class _Recording(Image.Image):
    """The methods that record. ``_node`` is what the image is; None once its pixels are there."""

    _node: Node | None = None
    _followed = 0  # images that Pillow has made of this one
    _seen = False  # somebody has had a copy of the pixels
    _touched = False  # somebody has had the pixels, and may change them at any time

    # ---- pixels, when they are asked for ----

    @property
    def im(self) -> Any:
        """Pillow's own image: made now."""
        if self._im is None and self._node is not None:
            counts.add(counts.PIXELS)
            self._im = early.core(self._node)
        self._node = None
        self._touched = True
        return super().im

    @im.setter
    def im(self, im: Any) -> None:
        self._im = im
        self._node = None

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """As Pillow's; what is only looked at stays recorded."""
        node = None if self._seen else self._recorded()
        made = None if node is None else early.made(node)
        if node is None or made is None:
            return super().__array_interface__
        self._seen = True  # who looks again finds pixels
        counts.add(counts.PIXELS)
        shape = (self.height, self.width, node.channels)[: 2 + (node.channels > 1)]
        # Read-only, as Pillow's is: the pixels are kept, for who makes other images of them.
        return {"version": 3, "shape": shape, "typestr": "|u1", "data": made.source.data.data.toreadonly()}

    def load(self) -> Any:
        """Access to pixels; makes none."""
        return super().load() if self._recorded() is None else _PixelsLater(self)

    def close(self) -> None:
        """As Pillow's."""
        self._node = None
        super().close()

    def putpalette(self, data: Any, rawmode: str = "RGB") -> None:
        """As Pillow's, which changes the mode of pixels that are there."""
        _ = self.im
        super().putpalette(data, rawmode)

    def _recorded(self) -> Node | None:
        return self._node

    def _new(self, im: Any) -> Image.Image:
        """What Pillow makes out of this one by a step that is not recorded; what follows is.

        Only once: a script that goes on making images of these pixels goes from Pillow's steps to recorded ones and
        back, and each way costs copies.
        """
        self._followed += 1
        return super()._new(im) if self._followed > 1 and isinstance(self, LazyImage) else decoded(super()._new(im))

    def _record(self, node: Node) -> LazyImage:
        image = LazyImage.__new__(LazyImage)
        attributes = image.__dict__
        attributes.update(_blank())
        attributes["_node"] = node
        attributes["_mode"] = early.MODES[node.channels]
        attributes["_size"] = node.size
        attributes["info"] = vars(self)["info"].copy()  # what is still to be read is read of neither
        return image

    @property
    def info(self) -> Any:
        """What the file says beside its pixels, as Pillow's; found when somebody asks."""
        info = vars(self)["info"]
        if isinstance(info, InfoLater):
            info = vars(self)["info"] = info.read()
        return info

    @info.setter
    def info(self, info: Any) -> None:
        vars(self)["info"] = info

    # ---- what torchvision calls ----

    def copy(self) -> Image.Image:
        """The same image."""
        node = self._recorded()
        return super().copy() if node is None else self._record(node)

    __copy__ = copy

    def convert(self, mode: str | None = None, matrix: Any = None, *args: Any, **kwargs: Any) -> Image.Image:
        """As Pillow's; between L and RGB it is recorded."""
        node = self._recorded()
        if node is None or matrix is not None or "transparency" in vars(self)["info"]:
            return super().convert(mode, matrix, *args, **kwargs)
        if mode in (None, "", self.mode):
            return self._record(node)
        if mode == "L":
            return self._record(node.then(recipe.LUMA, (), channels=1))
        if mode == "RGB":
            return self._record(node.then(recipe.SPREAD, (), channels=3))
        counts.add(counts.CONVERT)
        return super().convert(mode, matrix, *args, **kwargs)

    def crop(self, box: tuple[float, float, float, float] | None = None) -> Image.Image:
        """As Pillow's; recorded."""
        node = self._recorded()
        if node is None or box is None or not _are_real(box) or box[2] <= box[0] or box[3] <= box[1]:
            return super().crop(box)
        x0, y0, x1, y1 = map(round, box)
        width, height = node.size
        inside = (max(x0, 0), max(y0, 0), min(x1, width), min(y1, height))
        if inside[0] >= inside[2] or inside[1] >= inside[3]:
            counts.add(counts.CROP)
            return super().crop(box)
        Image._decompression_bomb_check((x1 - x0, y1 - y0))
        if inside != (0, 0, width, height):
            node = node.then(recipe.CROP, inside, (inside[2] - inside[0], inside[3] - inside[1]))
        if inside != (x0, y0, x1, y1):  # Pillow makes what is outside black
            node = pad_node(node, inside[0] - x0, inside[1] - y0, (x1 - x0, y1 - y0), (0, 0, 0))
        return self._record(node)

    def resize(
        self, size: Any, resample: int | None = None, box: Any = None, reducing_gap: float | None = None
    ) -> Image.Image:
        """As Pillow's; recorded but for ``reducing_gap``."""
        node = self._recorded()
        number = _FILTER_NUMBERS.get(3 if resample is None else resample) if _is_whole(resample) else None
        width, height = map(int, size) if _are_whole(size) else (0, 0)
        own_width, own_height = self.size if node is None else node.size
        fits = box is None or (0 <= box[0] < box[2] <= own_width and 0 <= box[1] < box[3] <= own_height)
        if node is None or number is None or reducing_gap is not None or width < 1 or height < 1 or not fits:
            if node is not None:
                counts.add(counts.RESIZE)
            return super().resize(size, resample, box, reducing_gap)
        whole = (0.0, 0.0, float(own_width), float(own_height))
        x0, y0, x1, y1 = whole if box is None else map(float, box)
        if (width, height) == node.size and (x0, y0, x1, y1) == whole:
            return self._record(node)
        params = (height, width, y0, y1, x0, x1, number, _horizontal_first())
        return self._record(node.then(recipe.RESIZE, params, (width, height)))

    def transpose(self, method: Any) -> Image.Image:
        """As Pillow's; recorded."""
        node = self._recorded()
        if node is None or method not in range(7):
            return super().transpose(method)
        size = node.size[::-1] if int(method) in (2, 4, 5, 6) else node.size
        return self._record(node.then(recipe.TRANSPOSE, (int(method),), size))

    def transform(
        self,
        size: Any,
        method: Any,
        data: Any = None,
        resample: int = Image.Resampling.NEAREST,
        fill: int = 1,
        fillcolor: Any = None,
    ) -> Image.Image:
        """As Pillow's; recorded if affine or of perspective. ``rotate`` ends here."""
        node = self._recorded()
        count = _MATRIX.get(method)
        known = count is not None and data is not None and len(data) >= count and _is_whole(resample)
        known = known and resample in _SAMPLING
        matrix = tuple(float(x) for x in data[:count]) if known else (math.nan,)
        if node is None or not _are_whole(size) or min(size) < 1 or not all(map(math.isfinite, matrix)):
            if node is not None:
                counts.add(counts.TRANSFORM)
            return decoded(super().transform(size, method, data, resample, fill, fillcolor))
        color = color_of(self.mode, fillcolor)
        width, height = (int(n) for n in size)
        sampling, projective = _SAMPLING[Image.Resampling(resample)], method == Image.Transform.PERSPECTIVE
        if projective or sampling > 1:
            params = (height, width, *(*matrix, 0.0, 0.0)[:8], int(projective), sampling, *color)
            return self._record(node.then(recipe.PROJECT, params, (width, height)))
        return self._record(node.then(recipe.AFFINE, (height, width, *matrix, sampling, *color), (width, height)))

    def point(self, lut: Any, mode: str | None = None) -> Image.Image:
        """As Pillow's; tables and functions of values are recorded."""
        node = self._recorded()
        if node is None or isinstance(lut, Image.ImagePointHandler) or mode not in (None, self.mode):
            if node is not None:
                counts.add(counts.POINT)
            return super().point(lut, mode)
        # Pillow's own table: what it does to an image of all values.
        values = np.repeat(np.arange(256, dtype=np.uint8)[:, None], node.channels, 1)
        ramp = image_of(values.reshape(1, 256, -1) if node.channels > 1 else values.reshape(1, 256))
        table = np.asarray(ramp.point(lut, mode)).reshape(256, node.channels).T
        return self._record(map_node(node, table))

    def filter(self, filter: Any) -> Image.Image:
        """As Pillow's; ``GaussianBlur`` and ``BoxBlur`` are recorded."""
        node = self._recorded()
        after = None if node is None else filters.step_of(filter, node)
        if after is not None:
            return self._record(after)
        if node is not None:
            counts.add(counts.FILTER)
        return super().filter(filter)


def map_node(node: Node, table: Any) -> Node:
    """Every value through a table: ``(channels or 1, 256)``, uint8."""
    return node.then(recipe.MAP, (np.ascontiguousarray(table, np.uint8).reshape(-1),))


def pad_node(node: Node, left: int, top: int, size: tuple[int, int], color: tuple[int, int, int]) -> Node:
    """The image in a larger frame of one colour."""
    return node.then(recipe.PAD, (left, top, size[1], size[0], *color), size)


def color_of(mode: str, color: Any) -> tuple[int, int, int]:
    """The bytes of a colour as Pillow understands it; None is black."""
    if color is None:
        return (0, 0, 0)
    value: Any = Image.new(mode, (1, 1), color).getpixel((0, 0))
    return (value, value, value) if isinstance(value, int) else (value[0], value[1], value[2])


def _are_whole(size: Any) -> bool:
    """Whether Pillow takes both numbers for a size: of floats it takes none."""
    return len(size) == 2 and all(hasattr(n, "__index__") for n in size) and max(map(int, size)) <= LARGEST


def _is_whole(x: Any) -> bool:
    """Whether ``x`` may be one of Pillow's numbers of filters; None is its own choice."""
    return x is None or isinstance(x, (int, np.integer))


def _are_real(box: Any) -> bool:
    return len(box) == 4 and all(isinstance(x, _REAL) for x in box) and max(map(abs, box)) <= LARGEST


@named_after(Image.Image)
class LazyImage(_Recording):
    """An image that was made out of another one by recorded steps."""

    def __eq__(self, other: object) -> bool:
        """As Pillow's, where images that were made out of others are of one class."""
        if type(other) is not Image.Image and not isinstance(other, LazyImage):
            return False
        sizes = (self.mode, self.size, self.info) == (other.mode, other.size, other.info)
        return sizes and self.getpalette() == other.getpalette() and self.tobytes() == other.tobytes()

    __hash__ = None  # type: ignore[assignment]  # as Pillow's

    def __reduce_ex__(self, protocol: Any) -> Any:
        return bare, (Image.Image,), self.__getstate__()


@functools.cache
def _blank() -> dict[str, Any]:
    """What Pillow sets in a new image, none of which is ever changed in place but ``info``."""
    return vars(LazyImage())


@named_after(Image.Image)
class DecodedImage(LazyImage):
    """Pixels that Pillow has made, or an array, from which on steps are recorded."""

    def load(self) -> Any:
        """Access to pixels; copies none."""
        return super().load() if self._touched or self._im is None else _PixelsLater(self)

    def _recorded(self) -> Node | None:
        if self._node is None and self._im is not None and not self._touched:
            node = leaf(self._im)
            if self.readonly:  # an array's memory, which may be different when the next step is recorded
                return node
            self._node = node
        return self._node


def decoded(image: Image.Image) -> Image.Image:
    """An image that Pillow has just made and nobody else has: what follows is recorded, if it is L or RGB."""
    if type(image) is Image.Image and image.mode in CHANNELS:
        if is_small(image.size):
            counts.add(counts.SMALL)
        else:
            image.__class__ = DecodedImage
    return image


def is_small(size: tuple[int, int]) -> bool:
    """Whether Pillow has done what there is to do with decoded pixels before it has been written down."""
    return size[0] * size[1] < _FEW_PIXELS


def leaf(core: Any) -> Node:
    """What pixels are now; Pillow's ``core`` may be changed afterwards."""
    data = np.frombuffer(Image.Image()._new(core).tobytes(), np.uint8)
    return Node.pixels(data, core.size, CHANNELS[core.mode])


_order_known: list[int] = []


def _horizontal_first() -> int:
    """1 if this Pillow resamples rows before columns whatever the shape; found by trying."""
    if not _order_known:
        tall = np.random.Generator(np.random.PCG64(0)).integers(0, 256, (200, 16), np.uint8)
        ours = _native.resample(tall[..., None], 20, 12, None, 1, 1, True, True)[..., 0]
        theirs = np.asarray(image_of(tall).resize((12, 20), Image.Resampling.BILINEAR))
        _order_known.append(int(np.array_equal(ours, theirs)))
    return _order_known[0]
