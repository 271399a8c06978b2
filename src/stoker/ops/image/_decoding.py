# SPDX-License-Identifier: Apache-2.0
"""Shared code of the image decoders: arguments, and the native steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...contract import samples
from ...contract.argument import ON_ERROR, arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator
from ...contract.step import FileAccess, GpuForm, OnEngines, Value
from ...contract.types import DType, ImageType
from ...native import _native
from ._encoded import image_files
from ._libraries import use_libraries
from ._pillow_decoding import twin_decode, twin_peek

MAX_PIXELS = 178_956_970  # twice Pillow's warning limit: its error limit for decompression bombs
MAX_SCAN_PIXELS = 500 << 20  # libjpeg-turbo's fuzzers: 500 scans of a megapixel
CODEC = "jpeg"
_IN_PARTS = ("read_header", "read_window")  # the codec's kernels that read the parts of a file for a window
_SCALES = (1, 2, 4, 8)


SCALE_DOC = (
    "1, 2, 4 or 8: decode to 1 / `scale_denom` of the width and height, rounded up; approximate: on photographs 0.5 "
    "levels from the mean of the pixels on average, 27 to 53 at worst and up to 77 in the last row and column. JPEG "
    "uses low frequencies only, with TurboJPEG's pixels; other files are averaged. Crops count the smaller pixels."
)

_BACKENDS = ("exact", "nvjpeg_hardware")
_BACKEND_DOC = (
    '"exact", or "nvjpeg_hardware": decode the share `hw_decoder_load` of the rows on a GPU with its JPEG engines '
    "(A100, H100, H200 and newer, through nvJPEG, the extra `nvjpeg`). The row key decides, so that pixels do not "
    "depend on threads or batches. Files with 4:4:4 sampling are exact, others approximate: photographs with "
    "4:2:0 0.6 levels from the exact pixels on average, 69 at worst; with `jpeg_fancy_upsampling` 1 at worst. The "
    "engines do not report damaged data. Files that they do not decode (progressive, gray, inks, no end marker, "
    "another `output_type`) are exact. `Pipeline.report` has their number, the reasons, and the measured error. "
    "No effect on the CPU."
)
_UPSAMPLING_DOC = (
    "Accepted: chroma is upsampled as libjpeg does, smoothly; by the engines of `gpu_backend` only if this is set, at "
    "a quarter of their rate."
)


_LOAD = 0.65
_LOAD_DOC = (
    'With `gpu_backend="nvjpeg_hardware"`: the engines\' share of the rows, 0 to 1. Without effect with the '
    "exact backend, which uses no engine; with `mixed`, a value that is neither 0 nor the default warns there."
)
_HYBRID_DOC = (
    "Accepted, without effect: one decoder on the GPU takes images of all sizes; what share of the images goes to the "
    "CPU follows from measured rates, or is `Pipeline(gpu_decoder_load=part)`."
)
_PADDING_DOC = (
    "Accepted, without effect: memory is planned per batch and grows with the first ones to what they need; "
    "`Pipeline(gpu_memory_limit=bytes)` bounds it."
)
_STATISTICS_DOC = (
    "Accepted; with `mixed`, True warns: no statistics are printed, because there is no padding to choose."
)


_DTYPE_DOC = (
    "Element type. FLOAT is scaled to [0, 1], integers to their full range: UINT16 exactly, others are the float times "
    "the largest value in float32, rounded half up. All types but UINT8 keep the values of files with 16 bits (not "
    "with YCbCr), and with ANY_DATA floating types those of gray files with floats or 32-bit integers. Other outputs "
    "have 8 bits first: the upper 8 of 16; floats and 32-bit integers must be whole numbers up to 255, with UINT16 and "
    "ANY_DATA up to 65535."
)
_INDICES_DOC = (
    "Read files with a palette as one channel of palette indices, such as segmentation masks. With `output_type` GRAY "
    "or ANY_DATA, and `dtype` UINT8. Other files are read as usual."
)
_PIXELS_DOC = (
    "Larger images are errors, before memory is taken (decompression bombs). Counts the pixels that the file's header "
    "declares, also with `scale_denom` and for crops. 0: no limit."
)
_SCANS_DOC = (
    "JPEG files with more than 24 scans whose scans times pixels exceed this are errors: every scan passes over the "
    "whole image, and costs the file a few bytes. Encoders write up to 18 scans. The default is 500 scans of a "
    "megapixel, the limit of libjpeg-turbo's fuzzers. 0: no limit."
)


class ImageDecoder(Operator):
    """Arguments of all image decoders.

    Most arguments for DALI's GPU and hardware decoders have no effect. Their docs say so with the reason. The user is
    warned of those that promise something that does not happen.
    """

    devices = ("cpu", "mixed")
    gives_bfloat16 = True
    output_type = arg("image_type", ImageType.RGB, doc="Colour model of the output: RGB, BGR, GRAY, YCbCr, ANY_DATA.")
    dtype = arg("dtype", DType.UINT8, doc=_DTYPE_DOC)
    adjust_orientation = arg("bool", True, doc="Turn the image as its EXIF orientation says.")
    jpeg_fancy_upsampling = arg("bool", False, doc=_UPSAMPLING_DOC)
    use_fast_idct = arg("bool", False, doc="Accepted: the transform is always the exact one.")
    max_pixels = arg("int", MAX_PIXELS, doc=_PIXELS_DOC)
    palette_indices = arg("bool", False, doc=_INDICES_DOC)
    max_scan_pixels = arg("int", MAX_SCAN_PIXELS, doc=_SCANS_DOC)
    scale_denom = arg("int", 1, choices=_SCALES, doc=SCALE_DOC)
    affine = arg("bool", True, doc="Accepted, without effect: no thread is tied to a core.")
    gpu_backend = arg("str", "exact", choices=_BACKENDS, doc=_BACKEND_DOC)
    hw_decoder_load = arg("float", _LOAD, doc=_LOAD_DOC)
    hybrid_huffman_threshold = arg("int", 1000000, doc=_HYBRID_DOC)
    device_memory_padding = arg("int", 16777216, doc=_PADDING_DOC)
    host_memory_padding = arg("int", 8388608, doc=_PADDING_DOC)
    device_memory_padding_jpeg2k = arg("int", 0, doc="Accepted, without effect: JPEG 2000 is decoded on the CPU.")
    host_memory_padding_jpeg2k = arg("int", 0, doc="Accepted, without effect: JPEG 2000 is decoded on the CPU.")
    preallocate_width_hint = arg("int", 0, doc=_PADDING_DOC)
    preallocate_height_hint = arg("int", 0, doc=_PADDING_DOC)
    memory_stats = arg("bool", False, doc=_STATISTICS_DOC)
    split_stages = arg("bool", False, doc="Accepted, without effect, as in DALI, where it is deprecated.")
    use_chunk_allocator = arg("bool", False, doc="Accepted, without effect, as in DALI, where it is deprecated.")
    on_error = ON_ERROR
    result_neutral = ("on_error",)

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return image_files()

    @classmethod
    def ineffective_arguments(cls, args: Mapping[str, Any]) -> tuple[str, ...]:
        """Return warnings for arguments of `mixed` decoders that promise printing or decoding by engines, which does
        not happen.
        """
        if args["device"] != "mixed":
            return ()
        warnings = []
        if args["memory_stats"]:
            warnings.append("`memory_stats`: nothing is printed. No padding is to be chosen by it: memory is planned")
        load = args["hw_decoder_load"]
        if args["gpu_backend"] == "exact" and load not in (0, _LOAD):
            text = f"`hw_decoder_load` {load:g}: the GPU's JPEG engines are not used"
            warnings.append(f'{text}. `gpu_backend="nvjpeg_hardware"` uses them, with approximate pixels')
        return tuple(warnings)

    @classmethod
    def damage_offset(cls, args: Mapping[str, Any], read: Callable[[], bytes]) -> int | None:
        """Return the offset of a JPEG file's first damage, or of its end if data are missing there."""
        checked = _native.jpeg.jpeg_check(read(), args["max_pixels"] or MAX_PIXELS, args["max_scan_pixels"])
        offset: int | None = checked["offset"]
        return offset


def wide_type(output_type: ImageType, dtype: DType) -> DType | None:
    """Return the type in which files are decoded if they should keep more than 8 bits; None: 8 bits."""
    if output_type == ImageType.YCbCr or dtype == DType.UINT8:
        return None
    return dtype if dtype == DType.UINT16 else DType.FLOAT


def peek(
    c: Lowering, data: Value, output_type: ImageType, adjust: bool, scale: int = 1, max_pixels: int = 0,
    indices: bool = False,
) -> Value:  # fmt: skip
    """Return the decoded image's (height, width, channels), int64, from the file's header.

    Rows whose file declares more than ``max_pixels`` fail here, before a step takes memory for them. 0: no limit.
    ``indices``: files with a palette have one channel.
    """
    use_libraries()
    if data.rank != 1 or data.dtype != DType.UINT8:
        text = f"expected the bytes of a file (uint8, one axis), got {data.dtype} with {data.rank} axes"
        raise ArgumentError(f"`{c.scope.operator.name}`: {text}")
    return c.native(
        "peek",
        [data],
        [(DType.INT64, (3,), "")],
        attrs=(adjust, int(output_type), scale.bit_length() - 1, max_pixels),
        params=(1,) if indices else (),  # JPEG files have no palette: their kernels ignore it
        twin=twin_peek(output_type, adjust, scale, max_pixels, indices),
        codec=CODEC,
        file=FileAccess(header_only=True),
    )[0]


def decode(c: Lowering, data: Value) -> Value:
    """Decode the whole image, HWC: uint8, or the :func:`wide_type`. A crop of it becomes a decode window."""
    output_type, adjust = c.const("output_type"), c.const("adjust_orientation")
    scale, indices = c.const("scale_denom"), _indices(c)
    header = peek(c, data, output_type, adjust, scale, limit_of(c, "max_pixels"), indices)
    height, width = c.element(header, 0), c.element(header, 1)
    channels = {ImageType.GRAY: 1, ImageType.ANY_DATA: c.element(header, 2)}.get(output_type, 3)
    wide = wide_type(output_type, c.const("dtype"))
    max_scan_pixels = limit_of(c, "max_scan_pixels")
    keeps_floats = c.const("dtype").is_float
    twin = twin_decode(output_type, adjust, scale, max_scan_pixels, wide or DType.UINT8, indices, keeps_floats)
    attrs = (adjust, int(output_type), scale.bit_length() - 1, max_scan_pixels)
    engines = _engines(c, scale)
    exact, three = engines is None, output_type not in (ImageType.GRAY, ImageType.ANY_DATA)
    gpu = GpuForm(engines, balanced=True, in_planes=exact and three and wide is None)
    return c.native(
        "decode", [data], [(wide or DType.UINT8, (height, width, channels), "HWC")], attrs=attrs,
        params=(0, 0, 1) if indices else (0, 0), window=(0, 1), twin=twin, codec=CODEC,
        gpu=gpu,
        file=FileAccess(in_parts=_IN_PARTS if exact else None),  # engines need whole files
    )[0]  # fmt: skip


def _indices(c: Lowering) -> bool:
    """Return whether palette indices are wanted."""
    indices: bool = c.const("palette_indices")
    output_type, dtype = c.const("output_type"), c.const("dtype")
    if indices and (output_type not in (ImageType.GRAY, ImageType.ANY_DATA) or dtype != DType.UINT8):
        raise ArgumentError(
            "expected `output_type` GRAY or ANY_DATA and `dtype` UINT8 with `palette_indices`, got "
            f"{output_type.name} and {dtype}. `cast` converts the indices to another type"
        )
    return indices


def limit_of(c: Lowering, name: str) -> int:
    """Return the value of an argument that limits files; 0: no limit."""
    limit: int = c.const(name)
    if limit < 0:
        raise ArgumentError(f"expected `{name}` >= 0 (0: no limit), got {limit}")
    return limit


def _engines(c: Lowering, scale: int) -> OnEngines | None:
    """Return the settings of the engines that the user enables in addition to the exact decoder, or None."""
    part = c.const("hw_decoder_load")
    if not 0 <= part <= 1:
        raise ArgumentError(f"expected `hw_decoder_load` from 0 to 1, a part of the rows, got {part}")
    if c.const("gpu_backend") == "exact":
        return None
    if scale != 1:
        raise ArgumentError(f'expected `scale_denom` 1 with `gpu_backend="nvjpeg_hardware"`, got {scale}')
    return OnEngines(float(part), c.const("jpeg_fancy_upsampling"))


def scaled(c: Lowering, pixels: Value) -> Value:
    """Convert decoded pixels to the decoder's ``dtype``: floats in [0, 1], integers over their full range.

    An integer is the float, times the type's largest value in float32, rounded half up, as in DALI.
    """
    dtype = c.const("dtype")
    if pixels.dtype == dtype:
        return pixels
    if pixels.dtype == DType.FLOAT and dtype.is_float:
        return c.cast(pixels, dtype)
    from ...contract.pixel import load, unary

    value = load(pixels.dtype)
    if pixels.dtype == DType.UINT8:
        value = value.cast(DType.FLOAT) * (1 / 255)
    if not dtype.is_float:
        product = value * dtype.positive_range
        whole = unary("floor", product)
        rest = product - whole  # exact, unlike a sum of the product and a half
        value = whole + unary("floor", rest + rest)
    return c.pointwise([pixels], value.cast(dtype))


_PASSED_ON = (
    "output_type", "dtype", "adjust_orientation", "max_pixels", "max_scan_pixels", "palette_indices", "scale_denom",
    "gpu_backend", "hw_decoder_load", "jpeg_fancy_upsampling",
)  # fmt: skip


def decoded_window(c: Any, data: Any, cut: Callable[[Any], Any]) -> Any:
    """Decode, then ``cut``, for composites. The cut becomes a decode window (``graph/passes/decode_window.py``)."""
    return cut(c.apply("decoders.image", data, **{name: c.const(name) for name in _PASSED_ON}))
