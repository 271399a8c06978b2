# SPDX-License-Identifier: Apache-2.0
"""torchvision's image operators, implemented by Pillow, for machines where its native library cannot be loaded.

The values equal the library's, because both decode with libjpeg-turbo. Gray images are the file's luma, unconverted.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import torch
from PIL import ImageOps
from PIL.JpegImagePlugin import JpegImageFile
from PIL.PngImagePlugin import PngImageFile


def define() -> torch.library.Library:
    """Declare and implement the operators; the caller must keep the returned library."""
    library = torch.library.Library("image", "DEF")
    for name in ("decode_jpeg", "decode_image"):
        library.define(f"{name}(Tensor data, int mode, bool apply_exif_orientation=False) -> Tensor")
        library.impl(name, _decode, "CPU")
    library.define("read_file(str filename) -> Tensor")
    library.impl("read_file", _read_file, "CompositeExplicitAutograd")
    return library


def _read_file(filename: str) -> torch.Tensor:
    try:
        return torch.frombuffer(bytearray(Path(filename).read_bytes()), dtype=torch.uint8)
    except OSError as error:
        raise RuntimeError(str(error)) from error


def _decode(data: torch.Tensor, mode: int, apply_exif_orientation: bool = False) -> torch.Tensor:
    if mode not in (0, 1, 3):
        raise RuntimeError("The provided mode is not supported for JPEG files")
    file = io.BytesIO(data.numpy().tobytes())
    try:
        image = JpegImageFile(file) if data[0] == 0xFF else PngImageFile(file)
        if mode == 1:
            image.draft("L", image.size)
        image.load()
    except (OSError, SyntaxError) as error:
        raise RuntimeError(f"decode_jpeg: {error}") from error
    turned = ImageOps.exif_transpose(image) if apply_exif_orientation else image
    pixels = np.asarray(turned.convert("RGB") if mode == 3 else turned)
    # rows of pixels, permuted, like the library's result
    return torch.from_numpy(np.ascontiguousarray(np.atleast_3d(pixels))).permute(2, 0, 1)
