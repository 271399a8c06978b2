# SPDX-License-Identifier: Apache-2.0
"""``decoders.image``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array
from ._decoding import ImageDecoder, decode, scaled, wide_type
from ._pillow_decoding import pillow_decode

_CACHES = ("", "largest", "threshold")
_CACHE_DOC = (
    "Accepted; with `mixed`, more than 0 warns: DALI caches this many megabytes of decoded images on the GPU, Stoker "
    "none. `Pipeline(gpu_jpeg_index=bytes)` indexes positions in JPEG files at which decoding can begin, so that "
    "later epochs read and decode no more than the window."
)


class DecodeImage(ImageDecoder, name="decoders.image"):
    """Decode an image file. Input: its bytes, uint8 ``(N,)``. Output: ``(H, W, C)``, uint8 unless ``dtype`` is given.

    Exact: JPEG pixels equal those of libjpeg-turbo (accurate transform, fancy upsampling) and so of Pillow. Baseline
    and progressive JPEG, PNG, and usual BMP, PNM, TIFF, WebP, JPEG 2000 and GIF (its first frame) are decoded natively.
    Others of these, AVIF and QOI are decoded by Pillow; ``Pipeline.report`` lists these files with the reason. A crop
    that follows becomes a decode window: of a JPEG, no pixel outside of it is decoded. Smaller scales (``scale_denom``)
    are approximate and an opt-in.
    """

    cache_size = arg("int", 0, doc=_CACHE_DOC)
    cache_threshold = arg("int", 0, doc="Accepted, without effect: there is no cache (see `cache_size`).")
    cache_type = arg("str", "", choices=_CACHES, doc="Accepted, without effect: there is no cache (see `cache_size`).")
    cache_debug = arg("bool", False, doc="Accepted, without effect: there is no cache to report on.")
    cache_batch_copy = arg("bool", True, doc="Accepted, without effect: there is no cache to copy from.")
    cases = ({}, {"output_type": "GRAY"}, {"output_type": "BGR"}, {"dtype": "float32"}, {"dtype": "int16"})

    @classmethod
    def ineffective_arguments(cls, args: Mapping[str, Any]) -> tuple[str, ...]:
        """Return warnings for arguments of `mixed` decoders that promise caching, printing or engines, which do not
        happen.
        """
        warnings = super().ineffective_arguments(args)
        if args["device"] != "mixed" or args["cache_size"] == 0:
            return warnings
        text = f"`cache_size` {args['cache_size']}: no decoded images are cached, every epoch decodes them again"
        return (f"{text}. `Pipeline(gpu_jpeg_index=bytes)` caches an index that makes decoding faster", *warnings)

    def lower(self, c: Lowering, data: Value) -> Value:
        return scaled(c, decode(c, data))

    def reference(self, row: RowContext, data: Any) -> Any:
        dtype: DType = row["dtype"]
        wide = wide_type(row["output_type"], dtype)
        pixels = pillow_decode(
            data, row["output_type"], row["adjust_orientation"], row["scale_denom"], dtype=wide or DType.UINT8,
            indices=row["palette_indices"], keeps_floats=dtype.is_float,
        )  # fmt: skip
        return _scale_reference(pixels, dtype)


def _scale_reference(pixels: Any, dtype: DType) -> Any:
    """Convert pixels as ``scaled`` does, in NumPy."""
    import numpy as np

    if pixels.dtype == dtype.numpy:
        return pixels
    values = pixels.astype(np.float32) * np.float32(1 / 255) if pixels.dtype == np.uint8 else pixels
    if dtype.is_float:
        return cast_array(values, dtype)
    return cast_array(np.floor((values * np.float32(dtype.positive_range)).astype(np.float64) + 0.5), dtype)
