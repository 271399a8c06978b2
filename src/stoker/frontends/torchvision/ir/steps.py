# SPDX-License-Identifier: Apache-2.0
"""Recorded steps, by their native numbers and with named parameters. Written by tools/steps.py."""

from __future__ import annotations

from typing import Any, NamedTuple

DECODE = 0
PIXELS = 1
CROP = 2
RESIZE = 3
TRANSPOSE = 4
AFFINE = 5
PAD = 6
MAP = 7
LUMA = 8
SPREAD = 9
CONTRAST = 10
SATURATE = 11
HUE = 12
AUTOCONTRAST = 13
EQUALIZE = 14
SHARPEN = 15
PROJECT = 16
PAD_EDGES = 17
CORRELATE = 18
TORCH_RESIZE = 19
TORCH_PICK = 20
TORCH_RESIZE_FLOATS = 21
TORCH_LUMA = 22
TORCH_CONTRAST = 23
TORCH_SATURATE = 24
TORCH_HUE = 25
TORCH_SHARPEN = 26
TORCH_AUTOCONTRAST = 27
TORCH_EQUALIZE = 28
TORCH_WARP = 29
TORCH_GRID = 30
CHANNELS = 31
BLUR = 32
MIX = 33
BLEND = 34
FLOATS = 35
POINTWISE = 36
FLOAT_PAD = 37
FLOAT_CONTRAST = 38
TORCH_PRODUCTS = 39
TORCH_SHARPEN_PRODUCTS = 40
ARRANGE = 41
STORE_PIXELS = 42
STORE = 43
PATCH = 44


class Decode(NamedTuple):
    """The recipe's file, of which a window x0 y0 x1 y1 is wanted; is_lenient: even if truncated; from = -1."""

    channels: int
    window_0: int
    window_1: int
    window_2: int
    window_3: int
    is_lenient: int

    @property
    def window(self) -> tuple[int, ...]:
        """Return the 4 numbers as a tuple."""
        return self[1:5]


class Pixels(NamedTuple):
    """The recipe's bytes, planar 1: [C,H,W], 2: [H,W] of four bytes; window x0 y0 x1 y1; from = -1."""

    height: int
    width: int
    channels: int
    planar: int
    window_0: int
    window_1: int
    window_2: int
    window_3: int

    @property
    def window(self) -> tuple[int, ...]:
        """Return the 4 numbers as a tuple."""
        return self[4:8]


class Crop(NamedTuple):
    """A window inside of the image."""

    x0: int
    y0: int
    x1: int
    y1: int


class Resize(NamedTuple):
    """A box of the image in another size; rows_first: always horizontal first."""

    height: int
    width: int
    top: float
    bottom: float
    left: float
    right: float
    filter: int
    rows_first: int


class Transpose(NamedTuple):
    """Pillow's Transpose: 0 left-right, 1 top-bottom, 2 90, 3 180, 4 270, 5, 6."""

    method: int


class Affine(NamedTuple):
    """A sample of the image by a matrix of six."""

    height: int
    width: int
    matrix_0: float
    matrix_1: float
    matrix_2: float
    matrix_3: float
    matrix_4: float
    matrix_5: float
    linear: int
    fill_0: int
    fill_1: int
    fill_2: int

    @property
    def matrix(self) -> tuple[float, ...]:
        """Return the 6 numbers as a tuple."""
        return self[2:8]

    @property
    def fill(self) -> tuple[int, ...]:
        """Return the 3 numbers as a tuple."""
        return self[9:12]


class Pad(NamedTuple):
    """A frame of one colour."""

    left: int
    top: int
    height: int
    width: int
    fill_0: int
    fill_1: int
    fill_2: int

    @property
    def fill(self) -> tuple[int, ...]:
        """Return the 3 numbers as a tuple."""
        return self[4:7]


class Map(NamedTuple):
    """A table of 8 bits."""

    table: Any


class Luma(NamedTuple):
    """Three channels to one, as Pillow's convert("L")."""


class Spread(NamedTuple):
    """One channel to three."""


class Contrast(NamedTuple):
    """Pillow's ImageEnhance.Contrast."""

    factor: float


class Saturate(NamedTuple):
    """Pillow's ImageEnhance.Color."""

    factor: float


class Hue(NamedTuple):
    """A turn of the hue, 0 to 255, around."""

    turn: int


class Autocontrast(NamedTuple):
    """Pillow's ImageOps.autocontrast, without cutoff."""


class Equalize(NamedTuple):
    """Pillow's ImageOps.equalize."""


class Sharpen(NamedTuple):
    """Pillow's ImageEnhance.Sharpness."""

    factor: float


class Project(NamedTuple):
    """A sample by a matrix of eight; sampling as in warp/project.hpp."""

    height: int
    width: int
    matrix_0: float
    matrix_1: float
    matrix_2: float
    matrix_3: float
    matrix_4: float
    matrix_5: float
    matrix_6: float
    matrix_7: float
    projective: int
    sampling: int
    fill_0: int
    fill_1: int
    fill_2: int

    @property
    def matrix(self) -> tuple[float, ...]:
        """Return the 8 numbers as a tuple."""
        return self[2:10]

    @property
    def fill(self) -> tuple[int, ...]:
        """Return the 3 numbers as a tuple."""
        return self[12:15]


class PadEdges(NamedTuple):
    """A frame of the edges, border as in shared/border.hpp."""

    left: int
    top: int
    height: int
    width: int
    border: int


class Correlate(NamedTuple):
    """The count of weights comes first; sums as torch's, edges reflected."""

    height: int
    width: int
    weights: tuple[float, ...]


class TorchResize(NamedTuple):
    """Torch/resize.hpp."""

    height: int
    width: int
    filter: int
    smooth: int


class TorchPick(NamedTuple):
    """The nearest values."""

    height: int
    width: int
    exact: int


class TorchResizeFloats(NamedTuple):
    """Torch/resize_float.hpp."""

    height: int
    width: int
    filter: int
    way: int


class TorchLuma(NamedTuple):
    """Three channels to one, as torchvision's rgb_to_grayscale of tensors."""

    generation: int


class TorchContrast(NamedTuple):
    """Generation as in torch/color.hpp, lanes and threads of the sum as in shared/torch_sum.hpp."""

    generation: int
    factor: float
    lanes: int
    threads: int


class TorchSaturate(NamedTuple):
    """Torchvision's adjust_saturation of tensors."""

    generation: int
    factor: float


class TorchHue(NamedTuple):
    """Torchvision's adjust_hue of tensors, turn: -0.5 to 0.5."""

    generation: int
    turn: float


class TorchSharpen(NamedTuple):
    """Torchvision's adjust_sharpness of tensors."""

    generation: int
    factor: float


class TorchAutocontrast(NamedTuple):
    """Torchvision's autocontrast of tensors."""

    generation: int


class TorchEqualize(NamedTuple):
    """Torchvision's equalize of tensors."""


class TorchWarp(NamedTuple):
    """Fills: 2 as the first generation, 0 none; torch/warp.hpp."""

    height: int
    width: int
    grid_0: float
    grid_1: float
    grid_2: float
    grid_3: float
    grid_4: float
    grid_5: float
    grid_6: float
    grid_7: float
    projective: int
    linear: int
    fills: float
    fill_0: float
    fill_1: float
    fill_2: float

    @property
    def grid(self) -> tuple[float, ...]:
        """Return the 8 numbers as a tuple."""
        return self[2:10]

    @property
    def fill(self) -> tuple[float, ...]:
        """Return the 3 numbers as a tuple."""
        return self[13:16]


class TorchGrid(NamedTuple):
    """The table is the grid's bytes."""

    height: int
    width: int
    linear: int
    fills: float
    fill_0: float
    fill_1: float
    fill_2: float
    table: Any

    @property
    def fill(self) -> tuple[float, ...]:
        """Return the 3 numbers as a tuple."""
        return self[4:7]


class Channels(NamedTuple):
    """Numbers of the first, second and third channel."""

    order_0: int
    order_1: int
    order_2: int

    @property
    def order(self) -> tuple[int, ...]:
        """Return the 3 numbers as a tuple."""
        return self[0:3]


class Blur(NamedTuple):
    """Radii across and down; are_bells: the radii are deviations of bells (filter/box_blur.hpp)."""

    radii_0: float
    radii_1: float
    passes: int
    are_bells: int

    @property
    def radii(self) -> tuple[float, ...]:
        """Return the 2 numbers as a tuple."""
        return self[0:2]


class Mix(NamedTuple):
    """The count of images comes first; sums of floats, truncated."""

    table: Any
    others: tuple[tuple[Any, Any], ...]


class Blend(NamedTuple):
    """Pillow's Image.blend of the two."""

    image: Any
    factor: float


class Floats(NamedTuple):
    """A table of floats: maps the image's values. The steps after it take floats."""

    table: Any


class Pointwise(NamedTuple):
    """The count comes first; of each operation on floats its kind (recipe/floats.cpp), a number per channel."""

    operations: tuple[float, ...]


class FloatPad(NamedTuple):
    """A frame of floats."""

    left: int
    top: int
    height: int
    width: int
    fill_0: float
    fill_1: float
    fill_2: float

    @property
    def fill(self) -> tuple[float, ...]:
        """Return the 3 numbers as a tuple."""
        return self[4:7]


class FloatContrast(NamedTuple):
    """Torchvision's adjust_contrast of floats (torch/float_color.hpp)."""

    generation: int
    factor: float
    lanes: int
    threads: int
    blocks: int
    by_pixel: int


class TorchProducts(NamedTuple):
    """Correlate of one channel, in the order of a product of matrices (torch/products.hpp)."""

    height: int
    width: int
    weights: tuple[float, ...]


class TorchSharpenProducts(NamedTuple):
    """TorchSharpen, filtered in that order."""

    generation: int
    factor: float


class Arrange(NamedTuple):
    """The floats in another order; the count comes first, then axis, extent, unit of each (recipe/arrange.hpp)."""

    axes: tuple[int, ...]


class StorePixels(NamedTuple):
    """[H,W,C] as they are."""

    output: int
    first_byte: int


class Store(NamedTuple):
    """[C,H,W] of the output's type, through a table or -1."""

    output: int
    first_byte: int
    table: Any


class Patch(NamedTuple):
    """Values over what was stored: window c0 c1 y0 y1 x0 x1; the table has their bytes, [C,H,W]."""

    output: int
    first_byte: int
    item: int
    height: int
    width: int
    window_0: int
    window_1: int
    window_2: int
    window_3: int
    window_4: int
    window_5: int
    single: int
    table: Any

    @property
    def window(self) -> tuple[int, ...]:
        """Return the 6 numbers as a tuple."""
        return self[5:11]


# Classes by number.
CLASSES: tuple[type[tuple[Any, ...]], ...] = (
    Decode,
    Pixels,
    Crop,
    Resize,
    Transpose,
    Affine,
    Pad,
    Map,
    Luma,
    Spread,
    Contrast,
    Saturate,
    Hue,
    Autocontrast,
    Equalize,
    Sharpen,
    Project,
    PadEdges,
    Correlate,
    TorchResize,
    TorchPick,
    TorchResizeFloats,
    TorchLuma,
    TorchContrast,
    TorchSaturate,
    TorchHue,
    TorchSharpen,
    TorchAutocontrast,
    TorchEqualize,
    TorchWarp,
    TorchGrid,
    Channels,
    Blur,
    Mix,
    Blend,
    Floats,
    Pointwise,
    FloatPad,
    FloatContrast,
    TorchProducts,
    TorchSharpenProducts,
    Arrange,
    StorePixels,
    Store,
    Patch,
)

# Steps that a GPU supports.
ON_GPU: tuple[int, ...] = (
    DECODE,
    PIXELS,
    CROP,
    RESIZE,
    TRANSPOSE,
    AFFINE,
    PAD,
    MAP,
    LUMA,
    SPREAD,
    CONTRAST,
    SATURATE,
    HUE,
    AUTOCONTRAST,
    EQUALIZE,
    SHARPEN,
    PROJECT,
    PAD_EDGES,
    CORRELATE,
    TORCH_RESIZE,
    TORCH_PICK,
    TORCH_RESIZE_FLOATS,
    TORCH_LUMA,
    TORCH_CONTRAST,
    TORCH_SATURATE,
    TORCH_HUE,
    TORCH_SHARPEN,
    TORCH_AUTOCONTRAST,
    TORCH_EQUALIZE,
    TORCH_WARP,
    TORCH_GRID,
    CHANNELS,
    BLUR,
    MIX,
    BLEND,
    STORE,
    PATCH,
)
