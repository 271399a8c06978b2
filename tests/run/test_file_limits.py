# SPDX-License-Identifier: Apache-2.0
"""Limits on what a small file may cause: pixels that its header claims, scans, and memory of a batch."""

from __future__ import annotations

import io
import re
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, JpegImagePlugin, PngImagePlugin

from stoker import ArgumentError, DataError, eager, fn, pipeline_def
from stoker.inspection.check import check_file
from stoker.inspection.survey import Remark
from stoker.native import _native
from stoker.ops.image import _decoding, _pillow_decoding
from stoker.testing.tolerances import assert_exact
from tests.hostile_images import claiming_gif, claiming_jpeg, claiming_png, with_scans
from tests.run.pipelines import decoding, files_of, labels_of

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
    return written_by(Image.fromarray(picture), **options)


def written_by(image: Image.Image, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, **options)
    return out.getvalue()


# ---- files of a few bytes that claim many pixels ----


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
    """Pillow decodes a PNG file to read its EXIF data, which may follow the pixels."""

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
    # Pillow decodes bitmaps of one bit.
    small_file, data = (written_by(Image.new("1", (side, side)), format="BMP") for side in (40, 4000))
    eager.decoders.image(small_file, scale_denom=8)
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
    monkeypatch.setattr(_pillow_decoding, "_BAND_PIXELS", 1)
    assert_exact(eager.decoders.image(file, scale_denom=4), whole)


# ---- files with many scans ----


def test_scans_are_counted() -> None:
    assert [_native.jpeg.count_scans(with_scans(n, 16)) for n in (6, 7, 1000)] == [6, 7, 1000]
    for name, options in FORMATS.items():
        scans = {"jpeg": 1, "progressive": 10}.get(name)
        data = written(**options)
        assert scans is None or _native.jpeg.count_scans(data) == scans
        _native.jpeg.count_scans(data[: len(data) // 2])
    assert _native.jpeg.count_scans(b"") == _native.jpeg.count_scans(b"\xff\xd8\xff\xda\x00") == 0


def test_a_file_with_many_scans_is_refused_by_default() -> None:
    """The decoder would pass 600 times over a megapixel, for a file of 40 kilobytes."""
    text = r"expected at most 500 scans in an image of 1024 x 1024, got 600 .*`max_scan_pixels` allows more"
    data = with_scans(600, 1024)
    assert len(data) < 100_000
    for decoder, arguments in DECODERS.items():
        with pytest.raises(DataError, match=text):
            getattr(eager.decoders, decoder)(data, **arguments)
    assert eager.peek_image_shape(data).tolist() == [1024, 1024, 3]


@pytest.mark.parametrize("scans", [24, 25, 199, 300], ids="{} scans".format)
def test_the_limit_of_scans(scans: int) -> None:
    """Up to 24 scans are never refused; from 200 on Pillow decodes the file."""
    data, pixels = with_scans(scans, 64), 64 * 64
    want = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    for limit in (0, scans * pixels, 2**63, *([1] if scans <= 24 else [])):
        assert_exact(eager.decoders.image(data, max_scan_pixels=limit), want)
    if scans > 24:
        most = scans - 1
        with pytest.raises(DataError, match=rf"at most {most} scans in an image of 64 x 64, got {scans}"):
            eager.decoders.image(data, max_scan_pixels=scans * pixels - 1)
        with pytest.raises(DataError, match=rf"at most 24 scans in an image of 64 x 64, got {scans}"):
            eager.decoders.image(data, max_scan_pixels=1)
    with pytest.raises(ArgumentError, match="`max_scan_pixels` >= 0"):
        eager.decoders.image(data, max_scan_pixels=-1)


def test_no_sane_file_has_too_many_scans() -> None:
    """A hundred megapixels in 20 scans, and the largest image of all in those of four components."""
    for scans, height, width in ((20, 10_000, 10_000), (18, 13_377, 13_377), (24, 65_500, 65_500)):
        data = with_scans(scans, 16)
        assert not _native.jpeg.too_many_scans(data, width, height, _decoding.MAX_SCAN_PIXELS)
    assert _native.jpeg.too_many_scans(with_scans(1000, 16), 2048, 2048, _decoding.MAX_SCAN_PIXELS)


def test_scans_of_files_that_pillow_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native decoder hands a damaged file over after the check, and other files before it."""
    loaded: list[object] = []
    load = JpegImagePlugin.JpegImageFile.load
    monkeypatch.setattr(JpegImagePlugin.JpegImageFile, "load", lambda self: (loaded.append(self), load(self))[1])
    data = with_scans(40, 64)
    at = data.index(b"\xff\xc2")
    assert eager.decoders.image(data).shape == (64, 64, 3)
    assert not loaded
    arithmetic = data[:at] + b"\xff\xca" + data[at + 2 :]  # another coding by its marker: for Pillow
    for file in (arithmetic, data[: len(data) - 30]):
        with pytest.raises(DataError, match=r"at most 24 scans in an image of 64 x 64, got (40|39)"):
            eager.decoders.image(file, max_scan_pixels=1)
    assert not loaded


def test_files_with_many_scans_are_bad_rows(jpegs: Path, tmp_path: Path) -> None:
    many = tmp_path / "many.jpg"
    many.write_bytes(with_scans(600, 1024))
    files = [name for good in files_of(jpegs)[:2] for name in (good, str(many))]
    for policy, labels in (("skip", [0, 2]), ("replace", [0, 2])):
        with decoding(files, on_error=policy, error_limit=1, batch_size=4) as pipe:
            got = labels_of(pipe.run())
            assert got == labels if policy == "skip" else set(got) == set(labels)
            assert {(e.path, e.offset) for e in pipe.errors} == {(str(many), None)}


def test_stoker_check_names_them(tmp_path: Path) -> None:
    path = tmp_path / "many.jpg"
    path.write_bytes(with_scans(600, 1024))
    (finding,) = check_file(path)
    assert (finding.remark, finding.detail) == (Remark.SCANS, "600 scans of 1024x1024 pixels")
