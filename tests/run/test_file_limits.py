# SPDX-License-Identifier: Apache-2.0
"""Limits on what a small file may cause: pixels that its header claims, scans, and memory of a batch."""

from __future__ import annotations

import io
import re
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

from stoker import DataError, eager, fn, pipeline_def
from stoker.ops.image import _decoding
from stoker.testing.tolerances import assert_exact
from tests.run.pipelines import files_of, labels_of

HEIGHT, WIDTH = 40, 56
FORMATS: dict[str, dict[str, Any]] = {
    "jpeg": {"format": "JPEG"}, "progressive": {"format": "JPEG", "progressive": True}, "png": {"format": "PNG"},
    "gif": {"format": "GIF"}, "bmp": {"format": "BMP"}, "webp": {"format": "WEBP"}, "tiff": {"format": "TIFF"},
    "ppm": {"format": "PPM"}, "jpeg2000": {"format": "JPEG2000"},
}  # fmt: skip
DECODERS: dict[str, dict[str, Any]] = {
    "image": {}, "image_crop": {"crop": (2, 2)}, "image_slice": {"start": (0, 0), "shape": (2, 2)},
    "image_random_crop": {"seed": 1},
}  # fmt: skip


def written(**options: Any) -> bytes:
    picture = np.random.default_rng(1).integers(0, 256, (HEIGHT, WIDTH, 3)).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(picture).save(out, **options)
    return out.getvalue()


# ---- files of a few bytes that claim many pixels ----


def claiming_jpeg(height: int, width: int) -> bytes:
    data = bytearray(written(format="JPEG"))
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", height, width)
    return bytes(data)


def claiming_png(height: int, width: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(bytes(100)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


def claiming_gif(height: int, width: int) -> bytes:
    """Return a file with a screen of this size and one picture of one pixel."""
    out = io.BytesIO()
    Image.new("P", (1, 1)).save(out, "GIF")
    data = bytearray(out.getvalue())
    data[6:10] = struct.pack("<HH", width, height)
    return bytes(data)


CLAIMS = {"jpeg": claiming_jpeg, "png": claiming_png, "gif": claiming_gif}


@pytest.mark.parametrize("scale", [1, 8])
@pytest.mark.parametrize("name", FORMATS)
def test_the_pixels_of_the_file_count_at_every_scale(name: str, scale: int) -> None:
    data, pixels = written(**FORMATS[name]), HEIGHT * WIDTH
    for decoder, arguments in DECODERS.items():
        decode = getattr(eager.decoders, decoder)
        assert decode(data, max_pixels=pixels, scale_denom=scale, **arguments).ndim == 3
        with pytest.raises(DataError, match=rf"at most {pixels - 1} pixels, got an image of {HEIGHT} x {WIDTH} "):
            decode(data, max_pixels=pixels - 1, scale_denom=scale, **arguments)
    assert eager.peek_image_shape(data).tolist() == [HEIGHT, WIDTH, 3]


def test_a_png_is_not_decoded_before_its_size_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pillow decodes a PNG file to read its EXIF data, which may be behind the pixels."""

    loaded: list[object] = []
    monkeypatch.setattr(PngImagePlugin.PngImageFile, "load", lambda self: loaded.append(self))
    with pytest.raises(DataError, match="at most 1000000 pixels, got an image of 9000 x 8000"):
        eager.decoders.image(claiming_png(9000, 8000), max_pixels=10**6)
    assert not loaded


@pytest.mark.parametrize("kind", CLAIMS)
@pytest.mark.parametrize("scale", [1, 8])
def test_claims_are_bad_rows_and_not_a_failed_batch(kind: str, scale: int, jpegs: Path, tmp_path: Path) -> None:
    """The four images would take 51 GB together, which is not reserved for any of them."""
    claim = tmp_path / "claim.jpg"
    claim.write_bytes(CLAIMS[kind](65500, 65500))
    files = [name for good in files_of(jpegs)[:4] for name in (good, str(claim))]

    @pipeline_def(batch_size=8, num_threads=2, seed=1, on_error="skip", error_limit=1)
    def reading() -> Any:
        data, labels = fn.readers.file(files=files, labels=list(range(8)))
        return fn.decoders.image(data, scale_denom=scale), labels

    with reading() as pipe:
        outputs = pipe.run()
        assert labels_of(outputs) == [0, 2, 4, 6]
        assert [e.path for e in pipe.errors] == [str(claim)] * len(pipe.errors)
        assert all(re.search("(?i)decompression ?bomb", e.reason) for e in pipe.errors)


def test_an_average_takes_memory_for_a_band_of_rows() -> None:
    """16 megapixels in 64-bit sums would be 384 MB."""
    data = np.frombuffer(claiming_gif(4000, 4000), np.uint8)
    eager.decoders.image(np.frombuffer(claiming_gif(40, 40), np.uint8), scale_denom=8)
    tracemalloc.start()
    try:
        small = eager.decoders.image(data, scale_denom=8)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert small.shape == (500, 500, 3)
    assert peak < 64 << 20


@pytest.mark.parametrize("mode", ["RGB", "L", "P", "RGBA", "LA", "CMYK", "I;16", "1"])
def test_bands_of_an_average_make_no_difference(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    picture = Image.fromarray(np.random.default_rng(2).integers(0, 256, (90, 70, 3)).astype(np.uint8))
    image = picture.convert("I").convert("I;16") if mode == "I;16" else picture.convert(mode)
    out = io.BytesIO()
    image.save(out, "TIFF")
    file = np.frombuffer(out.getvalue(), np.uint8)
    whole = eager.decoders.image(file, scale_denom=4)
    monkeypatch.setattr(_decoding, "_BAND_PIXELS", 1)
    assert_exact(eager.decoders.image(file, scale_denom=4), whole)
