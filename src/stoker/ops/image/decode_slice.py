# SPDX-License-Identifier: Apache-2.0
"""``decoders.image_slice``."""

from __future__ import annotations

from typing import Any

from ..geometry.slice import SliceArguments
from ._decoding import ImageDecoder, decoded_window


class DecodeImageSlice(ImageDecoder, SliceArguments, name="decoders.image_slice"):
    """Decode a window of an image. Inputs: a file's bytes, and optionally anchor and shape. Output: ``(h, w, C)``.

    The window is that of ``slice``, by default given as (x, y). Only the window is decoded. The pixels equal a slice of
    the whole image. uint8 unless ``dtype`` is given.
    """

    inputs = (1, 3)
    cases = (
        {"start": (3, 2), "shape": (10, 8)},
        {"rel_start": (0.1, 0.2), "rel_end": (0.7, 0.9)},
        {"end": (11,), "axis_names": "H", "dtype": "float32"},
    )

    def compose(self, c: Any, data: Any, *limits: Any) -> Any:
        window = {name: c.pass_on(name) for name in SliceArguments.declared()}
        return decoded_window(c, data, lambda image: c.apply("slice", image, *limits, **window))
