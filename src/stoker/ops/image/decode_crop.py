# SPDX-License-Identifier: Apache-2.0
"""``decoders.image_crop``."""

from __future__ import annotations

from typing import Any

from ..geometry.crop import CropArguments
from ._decoding import ImageDecoder, decoded_window


class DecodeImageCrop(ImageDecoder, CropArguments, name="decoders.image_crop"):
    """Decode a window of an image. Input: a file's bytes. Output: ``(h, w, C)``, uint8 unless ``dtype`` is given.

    The window is that of ``crop``. Only the window is decoded. The pixels equal a crop of the whole image.
    """

    cases = (
        {"crop": (9, 12)},
        {"crop_h": 7, "crop_w": 5, "crop_pos_x": 1.0, "crop_pos_y": 0.2},
        {"crop": (9, 12), "dtype": "float32", "output_type": "GRAY"},
    )

    def compose(self, c: Any, data: Any) -> Any:
        crop = {name: c.pass_on(name) for name in CropArguments.declared()}
        return decoded_window(c, data, lambda image: c.apply("crop", image, **crop))
