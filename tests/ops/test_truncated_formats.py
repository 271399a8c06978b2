# SPDX-License-Identifier: Apache-2.0
"""Files of every format that end at every byte: an error of the row, or the pixels that the whole file has."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from gif_writer import extension, gif
from PIL import Image, features
from png_writer import palette, png, samples
from tiff_writer import DEFLATE, LZW, NONE, PACK_BITS, RGB, grain, tiff

from stoker import eager, types
from stoker.contract.errors import DataError
from stoker.ops.image._pillow_decoding import pillow_decode


def saved(kind: str, mode: str = "RGB", **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(grain(9, 11, 3)).convert(mode).save(out, kind, **options)
    return out.getvalue()


GRAY = grain(9, 11, 1)[..., 0] & 15
FILES = {
    "png": png(samples(2, 8, 9, 11), 2, 8), "png 16": png(samples(6, 16, 5, 6), 6, 16, interlaced=True),
    "png palette": png(samples(3, 4, 9, 11), 3, 4, before=palette(16, 3)),
    **{f"tiff {c}": tiff(grain(9, 11, 3), RGB, compression=c, rows=4) for c in (NONE, LZW, DEFLATE, PACK_BITS)},
    "tiff tiles": tiff(grain(9, 11, 3, "u2"), RGB, compression=DEFLATE, tile=(16, 16), planes=True, predictor=2),
    "gif": gif(GRAY, bytes(range(48)), bits=4, before=extension(0xFE, b"comment"), transparent=3, screen=(11, 12)),
    "gif interlaced": gif(GRAY, bytes(range(48)), bits=4, interlaced=True),
    "bmp": saved("BMP"), "bmp palette": saved("BMP", "P"), "bmp 1": saved("BMP", "1"), "ppm": saved("PPM"),
    "pgm 16": b"P5 3 2 4095\n" + bytes(range(12)), "qoi": saved("QOI"),
}  # fmt: skip
if features.check("webp"):
    FILES |= {"webp": saved("WEBP"), "webp lossless": saved("WEBP", "RGBA", lossless=True)}
if features.check("jpg_2000"):
    FILES |= {"jpeg 2000": saved("JPEG2000"), "codestream": saved("JPEG2000", no_jp2=True, tile_size=(8, 8))}


PROGRESSIVE = ("jpeg 2000", "codestream")


@pytest.mark.filterwarnings("ignore:::PIL")
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_ends_at_any_byte_is_an_error_or_whole(name: str) -> None:
    data = np.frombuffer(FILES[name], np.uint8)
    whole = eager.decoders.image(data, output_type=types.ANY_DATA)
    refused = 0
    for size in range(len(data)):
        try:
            got = eager.decoders.image(data[:size], output_type=types.ANY_DATA)
        except DataError:
            refused += 1
            continue
        # What follows the pixels may be missing. JPEG 2000 has its detail last, so Pillow takes what there is.
        want = pillow_decode(data[:size], types.ANY_DATA, True) if name in PROGRESSIVE else whole
        assert got.shape == whole.shape, size
        np.testing.assert_array_equal(got, want, f"{size} of {len(data)} bytes")
    assert refused >= len(data) // 8
