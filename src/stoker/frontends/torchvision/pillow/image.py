# SPDX-License-Identifier: Apache-2.0
"""Lazy Pillow images: the calls of torchvision's transforms become a recipe instead of pixels.

In every other way they are Pillow images. Code that needs pixels (``np.array(image)``, a filter, drawing) gets them:
the image is materialized, and from then on behaves like any other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from ....native import _native
from .. import counts, recording
from ..ir import steps
from ..ir.recipe import Node
from ..materialize import eager
from ..proxy_names import named_after
from ..reference.replay import plain_image
from . import filters
from .represented import Represented, set_class

_FILTER_NUMBERS = {0: 0, 1: 3, 2: 1, 3: 2, 4: 6, 5: 7}  # Pillow's Resampling → native/resample/resample.hpp
CHANNELS = {"L": 1, "RGB": 3}
_SAMPLING = {Image.Resampling.NEAREST: 0, Image.Resampling.BILINEAR: 1, Image.Resampling.BICUBIC: 2}
_MATRIX = {Image.Transform.AFFINE: 6, Image.Transform.PERSPECTIVE: 8}
_FEW_PIXELS = 64 * 64
_REAL = (int, float, np.integer, np.floating)
LARGEST = 2**31 - 1  # Pillow's limit of a width or a height


def new_plain_image(kind: type[Image.Image]) -> Image.Image:
    """Return an empty object of Pillow's own class, for the state of a pickle."""
    return kind.__new__(kind)


class LazyPixelAccess:
    """Proxy of the pixel access that ``load()`` returns. The first access materializes the pixels."""

    def __init__(self, image: RecordingImage) -> None:
        self._image = image

    def _access(self) -> Any:
        return self._image.im.pixel_access(self._image.readonly)

    def __getitem__(self, xy: tuple[int, int]) -> Any:
        return self._access()[xy]

    def __setitem__(self, xy: tuple[int, int], color: Any) -> None:
        self._access()[xy] = color


class LazyInfo:
    """Proxy of the ``info`` of a JPEG file and of images made from it, until its first use."""

    def __init__(self, find: Callable[[], dict[Any, Any]]) -> None:
        self._find = find

    def read(self) -> dict[Any, Any]:
        """Return a new dictionary."""
        return self._find()

    def copy(self) -> LazyInfo:
        """Return the proxy itself, for another image."""
        return self

    def __contains__(self, key: Any) -> bool:
        return key != "transparency" and key in self._find()  # JPEG files have no transparency


_OWN_ATTRIBUTES = ("_node", "_unrecorded_results", "_is_exported", "_is_exposed", "_header", "_is_left_to_pillow")


class RecordingImage(Represented, Image.Image):
    """Base class with the recorded methods. ``_node`` is the recorded image; None once it is materialized."""

    _node: Node | None = None
    _unrecorded_results = 0  # images that Pillow has made from this one
    _is_exported = False  # a caller has received a copy of the pixels
    _is_exposed = False  # a caller has received the pixels, and may change them at any time

    def become_plain(self) -> None:
        """Turn the image into one of Pillow's own class, in place, with the same pixels."""
        if self._im is None and self._node is not None:
            _ = self.im
        _ = self.info
        for name in _OWN_ATTRIBUTES:
            vars(self).pop(name, None)
        assert self.represents is not None
        set_class(self, self.represents)

    # ---- pixels ----

    @property
    def im(self) -> Any:
        """Return Pillow's core image, materialized now."""
        if self._im is None and self._node is not None:
            counts.add(counts.PIXELS)
            self._im = eager.core_image(self._node)
        self._node = None
        self._is_exposed = True
        return super().im

    @im.setter
    def im(self, im: Any) -> None:
        self._im = im
        self._node = None

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Return Pillow's array interface; reading it keeps the image recorded."""
        node = None if self._is_exported else self._recorded_node()
        result = None if node is None else eager.pixels_node(node)
        if node is None or result is None:
            return super().__array_interface__
        self._is_exported = True  # further reads use materialized pixels
        counts.add(counts.PIXELS)
        shape = (self.height, self.width, node.channels)[: 2 + (node.channels > 1)]
        # Read-only, like Pillow's: the pixels are cached, and other images may be made from them.
        return {"version": 3, "shape": shape, "typestr": "|u1", "data": result.source.data.data.toreadonly()}

    def load(self) -> Any:
        """Return a proxy of the pixel access, without materializing."""
        return super().load() if self._recorded_node() is None else LazyPixelAccess(self)

    def close(self) -> None:
        """Close like Pillow."""
        self._node = None
        super().close()

    def putpalette(self, data: Any, rawmode: str = "RGB") -> None:
        """Set the palette like Pillow, which changes the mode of materialized pixels."""
        if self._recorded_node() is not None:
            _ = self.im
        super().putpalette(data, rawmode)

    def _recorded_node(self) -> Node | None:
        return self._node

    def _new(self, im: Any) -> Image.Image:
        """Return Pillow's result of a step that is not recorded; later steps on it are recorded.

        This happens only once per image. A script that makes more images of these pixels would alternate between
        Pillow's steps and recorded ones, and each change costs copies.
        """
        self._unrecorded_results += 1
        return (
            super()._new(im)
            if self._unrecorded_results > 1 and issubclass(type(self), LazyImage)
            else record_decoded(super()._new(im))
        )

    def _record(self, node: Node) -> LazyImage:
        image = LazyImage.__new__(LazyImage)
        attributes = image.__dict__
        attributes.update(_new_attributes())
        attributes["_node"] = node
        attributes["_mode"] = eager.MODES[node.channels]
        attributes["_size"] = node.size
        attributes["info"] = vars(self)["info"].copy()  # a lazy ``info`` stays lazy in both images
        recording.track(image)
        return image

    @property
    def info(self) -> Any:
        """Return Pillow's ``info``: the file's metadata, read at the first access."""
        info = vars(self)["info"]
        if isinstance(info, LazyInfo):
            info = vars(self)["info"] = info.read()
        return info

    @info.setter
    def info(self, info: Any) -> None:
        vars(self)["info"] = info

    # ---- recorded methods ----

    def copy(self) -> Image.Image:
        """Return the same image."""
        node = self._recorded_node()
        return super().copy() if node is None else self._record(node)

    __copy__ = copy

    def convert(self, mode: str | None = None, matrix: Any = None, *args: Any, **kwargs: Any) -> Image.Image:
        """Convert like Pillow; conversions between L and RGB are recorded."""
        node = self._recorded_node()
        if node is None or matrix is not None or "transparency" in vars(self)["info"]:
            return super().convert(mode, matrix, *args, **kwargs)
        if mode in (None, "", self.mode):
            return self._record(node)
        if mode == "L":
            return self._record(node.then(steps.Luma(), channels=1))
        if mode == "RGB":
            return self._record(node.then(steps.Spread(), channels=3))
        counts.add(counts.CONVERT)
        return super().convert(mode, matrix, *args, **kwargs)

    def crop(self, box: tuple[float, float, float, float] | None = None) -> Image.Image:
        """Crop like Pillow. Recorded."""
        node = self._recorded_node()
        if node is None or box is None or not _is_box(box) or box[2] <= box[0] or box[3] <= box[1]:
            return super().crop(box)
        x0, y0, x1, y1 = map(round, box)
        width, height = node.size
        inside = (max(x0, 0), max(y0, 0), min(x1, width), min(y1, height))
        if inside[0] >= inside[2] or inside[1] >= inside[3]:
            counts.add(counts.CROP)
            return super().crop(box)
        Image._decompression_bomb_check((x1 - x0, y1 - y0))
        if inside != (0, 0, width, height):
            node = node.then(steps.Crop(*inside), (inside[2] - inside[0], inside[3] - inside[1]))
        if inside != (x0, y0, x1, y1):  # Pillow fills the outside with black
            node = pad_node(node, inside[0] - x0, inside[1] - y0, (x1 - x0, y1 - y0), (0, 0, 0))
        return self._record(node)

    def resize(
        self, size: Any, resample: int | None = None, box: Any = None, reducing_gap: float | None = None
    ) -> Image.Image:
        """Resize like Pillow; recorded unless ``reducing_gap`` is given."""
        node = self._recorded_node()
        number = _FILTER_NUMBERS.get(3 if resample is None else resample) if _is_filter_number(resample) else None
        width, height = map(int, size) if _is_size(size) else (0, 0)
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
        return self._record(node.then(steps.Resize(*params), (width, height)))

    def transpose(self, method: Any) -> Image.Image:
        """Transpose like Pillow. Recorded."""
        node = self._recorded_node()
        if node is None or method not in range(7):
            return super().transpose(method)
        size = node.size[::-1] if int(method) in (2, 4, 5, 6) else node.size
        return self._record(node.then(steps.Transpose(int(method)), size))

    def transform(
        self,
        size: Any,
        method: Any,
        data: Any = None,
        resample: int = Image.Resampling.NEAREST,
        fill: int = 1,
        fillcolor: Any = None,
    ) -> Image.Image:
        """Transform like Pillow; affine and perspective transforms are recorded. ``rotate`` calls this method."""
        node = self._recorded_node()
        count = _MATRIX.get(method)
        known = count is not None and data is not None and len(data) >= count and _is_filter_number(resample)
        known = known and resample in _SAMPLING
        matrix = tuple(float(x) for x in data[:count]) if known else (math.nan,)
        if node is None or not _is_size(size) or min(size) < 1 or not all(map(math.isfinite, matrix)):
            if node is not None:
                counts.add(counts.TRANSFORM)
            return record_decoded(super().transform(size, method, data, resample, fill, fillcolor))
        color = parse_color(self.mode, fillcolor)
        width, height = (int(n) for n in size)
        sampling, projective = _SAMPLING[Image.Resampling(resample)], method == Image.Transform.PERSPECTIVE
        if projective or sampling > 1:
            params = (height, width, *(*matrix, 0.0, 0.0)[:8], int(projective), sampling, *color)
            return self._record(node.then(steps.Project._make(params), (width, height)))
        return self._record(node.then(steps.Affine._make((height, width, *matrix, sampling, *color)), (width, height)))

    def point(self, lut: Any, mode: str | None = None) -> Image.Image:
        """Map values like Pillow; tables and functions of values are recorded."""
        node = self._recorded_node()
        if node is None or isinstance(lut, Image.ImagePointHandler) or mode not in (None, self.mode):
            if node is not None:
                counts.add(counts.POINT)
            return super().point(lut, mode)
        # The table is Pillow's own result for an image of all values.
        values = np.repeat(np.arange(256, dtype=np.uint8)[:, None], node.channels, 1)
        ramp = plain_image(values.reshape(1, 256, -1) if node.channels > 1 else values.reshape(1, 256))
        table = np.asarray(ramp.point(lut, mode)).reshape(256, node.channels).T
        return self._record(map_node(node, table))

    def filter(self, filter: Any) -> Image.Image:
        """Filter like Pillow; ``GaussianBlur`` and ``BoxBlur`` are recorded."""
        node = self._recorded_node()
        after = None if node is None else filters.filter_node(filter, node)
        if after is not None:
            return self._record(after)
        if node is not None:
            counts.add(counts.FILTER)
        return super().filter(filter)


def map_node(node: Node, table: Any) -> Node:
    """Return a node that maps every value through a table: ``(channels or 1, 256)``, uint8."""
    return node.then(steps.Map(np.ascontiguousarray(table, np.uint8).reshape(-1)))


def pad_node(node: Node, left: int, top: int, size: tuple[int, int], color: tuple[int, int, int]) -> Node:
    """Return a node with the image in a larger frame of one colour."""
    return node.then(steps.Pad(left, top, size[1], size[0], *color), size)


def parse_color(mode: str, color: Any) -> tuple[int, int, int]:
    """Return the bytes of a colour as Pillow parses it; None is black."""
    if color is None:
        return (0, 0, 0)
    value: Any = Image.new(mode, (1, 1), color).getpixel((0, 0))
    return (value, value, value) if isinstance(value, int) else (value[0], value[1], value[2])


def _is_size(size: Any) -> bool:
    """Return whether Pillow accepts both numbers as a size. It accepts no floats."""
    return len(size) == 2 and all(hasattr(n, "__index__") for n in size) and max(map(int, size)) <= LARGEST


def _is_filter_number(x: Any) -> bool:
    """Return whether ``x`` may be one of Pillow's filter numbers; None selects Pillow's default."""
    return x is None or isinstance(x, (int, np.integer))


def _is_box(box: Any) -> bool:
    return len(box) == 4 and all(isinstance(x, _REAL) for x in box) and max(map(abs, box)) <= LARGEST


@named_after(Image.Image)
class LazyImage(RecordingImage):
    """Image that recorded steps have made from another one."""

    represents = Image.Image

    def __eq__(self, other: object) -> bool:
        """Compare like Pillow, whose derived images all have the same class."""
        if not isinstance(other, Image.Image) or other.__class__ is not Image.Image:
            return False
        sizes = (self.mode, self.size, self.info) == (other.mode, other.size, other.info)
        return sizes and self.getpalette() == other.getpalette() and self.tobytes() == other.tobytes()

    __hash__ = None  # type: ignore[assignment]  # unhashable, like Pillow's

    def __reduce_ex__(self, protocol: Any) -> Any:
        return new_plain_image, (Image.Image,), self.__getstate__()


@functools.cache
def _new_attributes() -> dict[str, Any]:
    """Return the attributes of a new Pillow image. Only ``info`` is ever changed in place."""
    return vars(LazyImage())


@named_after(Image.Image)
class DecodedImage(LazyImage):
    """Image of pixels that Pillow has computed, or of an array. Later steps on it are recorded."""

    def load(self) -> Any:
        """Return a proxy of the pixel access, without copying."""
        return super().load() if self._is_exposed or self._im is None else LazyPixelAccess(self)

    def _recorded_node(self) -> Node | None:
        if self._node is None and self._im is not None and not self._is_exposed:
            node = pixels_node(self._im)
            if self.readonly:  # an array's memory, which its owner may change before the next step
                return node
            self._node = node
        return self._node


def record_decoded(image: Image.Image) -> Image.Image:
    """Let later steps on a new image of Pillow's be recorded, if it is L or RGB and has no other owner."""
    if type(image) is Image.Image and image.mode in CHANNELS and recording.is_on():
        if is_small(image.size):
            counts.add(counts.SMALL)
        else:
            image.__class__ = DecodedImage
            recording.track(image)
    return image


def is_small(size: tuple[int, int]) -> bool:
    """Return whether Pillow transforms an image of this size faster than its steps are recorded."""
    return size[0] * size[1] < _FEW_PIXELS


def pixels_node(core: Any) -> Node:
    """Return a node for a copy of the current pixels. Pillow's ``core`` may be changed afterwards."""
    data = np.frombuffer(Image.Image()._new(core).tobytes(), np.uint8)
    return Node.pixels(data, core.size, CHANNELS[core.mode])


_known_order: list[int] = []


def _horizontal_first() -> int:
    """Return 1 if this Pillow resamples rows before columns for every shape, found by a trial."""
    if not _known_order:
        tall = np.random.Generator(np.random.PCG64(0)).integers(0, 256, (200, 16), np.uint8)
        ours = _native.resample(tall[..., None], 20, 12, None, 1, 1, True, True)[..., 0]
        theirs = np.asarray(plain_image(tall).resize((12, 20), Image.Resampling.BILINEAR))
        _known_order.append(int(np.array_equal(ours, theirs)))
    return _known_order[0]
