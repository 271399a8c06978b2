# SPDX-License-Identifier: Apache-2.0
"""``decoders.image_random_crop``."""

from __future__ import annotations

from typing import Any

from ...contract.argument import arg
from ._decoding import ImageDecoder, decoded_window


class DecodeImageRandomCrop(ImageDecoder, name="decoders.image_random_crop"):
    """Decode a random window of an image. Input: a file's bytes. Output: ``(h, w, C)``.

    uint8 unless ``dtype`` is given. The window is drawn as in torchvision's RandomResizedCrop (see
    ``random_crop_generator``). Only the window is decoded. The pixels equal a crop of the whole image.
    """

    draws = 1
    num_attempts = arg("int", 10, doc="Attempts before the largest centred window of a permitted ratio is taken.")
    random_area = arg(
        "float", (0.08, 1.0), many=True, doc="Range of the window's share of the area, above 0 and up to 1."
    )
    random_aspect_ratio = arg("float", (3 / 4, 4 / 3), many=True, doc="Range of width over height, above 0.")
    cases = ({}, {"random_area": (0.5, 1.0)})

    def compose(self, c: Any, data: Any) -> Any:
        kind, adjust = c.const("output_type"), c.const("adjust_orientation")
        shape = c.apply(
            "peek_image_shape", data, image_type=kind, adjust_orientation=adjust, scale_denom=c.const("scale_denom"),
            max_pixels=c.const("max_pixels"),
        )  # fmt: skip
        anchor, extent = c.apply(
            "random_crop_generator", shape, random_area=c.const("random_area"),
            random_aspect_ratio=c.const("random_aspect_ratio"), num_attempts=c.const("num_attempts"),
        )  # fmt: skip
        return decoded_window(c, data, lambda image: c.apply("slice", image, start=anchor, shape=extent, axes=(0, 1)))
