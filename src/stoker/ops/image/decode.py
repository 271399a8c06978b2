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
from ._decoding import ImageDecoder, decode, pillow_decode, scaled

_CACHES = ("", "largest", "threshold")
_CACHE_DOC = (
    "Accepted; with `mixed`, more than 0 warns: DALI keeps so many megabytes of decoded images on the GPU, here none "
    "are kept. `Pipeline(gpu_jpeg_index=bytes)` keeps where in each JPEG file decoding can begin, with which later "
    "epochs read and decode no more than the window."
)


class DecodeImage(ImageDecoder, name="decoders.image"):
    """Decode an image file. Input: its bytes, uint8 ``(N,)``. Output: ``(H, W, C)``, uint8 unless ``dtype`` says else.

    Exact: JPEG pixels equal libjpeg-turbo's (accurate transform, fancy upsampling), which is what Pillow gives.
    Baseline and progressive JPEG are decoded natively; unusual JPEG, PNG, BMP, WebP, TIFF, PNM and the first frame of a
    GIF go through Pillow; ``Pipeline.report`` lists what did, and why. A crop that follows is decoded as a window:
    nothing outside of it is made. Smaller scales (``scale_denom``) are approximate, made only where asked for.
    """

    cache_size = arg("int", 0, doc=_CACHE_DOC)
    cache_threshold = arg("int", 0, doc="Accepted, without effect: there is no cache (see `cache_size`).")
    cache_type = arg("str", "", choices=_CACHES, doc="Accepted, without effect: there is no cache (see `cache_size`).")
    cache_debug = arg("bool", False, doc="Accepted, without effect: there is no cache to tell of.")
    cache_batch_copy = arg("bool", True, doc="Accepted, without effect: there is no cache to copy from.")
    cases = ({}, {"output_type": "GRAY"}, {"output_type": "BGR"}, {"dtype": "float32"})

    @classmethod
    def unheeded(cls, args: Mapping[str, Any]) -> tuple[str, ...]:
        """Of those for `mixed`: what is expected to be kept, printed or decoded by engines, and is not."""
        told = super().unheeded(args)
        if args["device"] != "mixed" or args["cache_size"] == 0:
            return told
        text = f"`cache_size` {args['cache_size']}: no decoded images are kept, every epoch decodes them anew"
        return (f"{text}. `Pipeline(gpu_jpeg_index=bytes)` keeps what makes that faster", *told)

    def lower(self, c: Lowering, data: Value) -> Value:
        return scaled(c, decode(c, data))

    def reference(self, row: RowContext, data: Any) -> Any:
        return scale_reference(_pixels(row, data), row["dtype"])


def _pixels(row: RowContext, data: Any) -> Any:
    return pillow_decode(data, row["output_type"], row["adjust_orientation"], row["scale_denom"])


def scale_reference(pixels: Any, dtype: DType) -> Any:
    """``scaled`` in NumPy."""
    import numpy as np

    if dtype == DType.UINT8:
        return pixels
    factor = 1 / 255 if dtype.is_float else dtype.positive_range / 255
    wide = np.float64 if not dtype.is_float and dtype.size > 2 else np.float32
    values = pixels.astype(wide) * wide(factor)
    if dtype.is_float:
        return cast_array(values, dtype)
    return np.rint(values).clip(0, dtype.positive_range).astype(dtype.numpy)
