# SPDX-License-Identifier: Apache-2.0
"""Image files with 16 bits that other libraries write: ``make test-containers``."""

from __future__ import annotations

import io
from typing import Any

import cv2
import imagecodecs
import numpy as np
import pytest
import tifffile
from PIL import Image

from stoker import eager, fn, pipeline_def, types

ANY = types.ANY_DATA
HEIGHT, WIDTH = 70, 101


def pixels_of(channels: int, dtype: str = "u2", bits: int = 16) -> np.ndarray[Any, Any]:
    """Return gradients with grain."""
    most = (1 << bits) - 1
    grain = np.random.default_rng(channels).integers(0, most // 16, (HEIGHT, WIDTH, channels))
    ramp = np.arange(WIDTH)[None, :, None] * (most // 64) + np.arange(HEIGHT)[:, None, None] * (most // 96)
    return ((ramp + grain) % (most + 1)).astype(dtype)


def decode_natively(files: list[bytes], **arguments: Any) -> list[np.ndarray[Any, Any]]:
    @pipeline_def(batch_size=len(files), num_threads=1)
    def decoding() -> Any:
        data = fn.external_source([[np.frombuffer(file, np.uint8) for file in files]], cycle=True)
        return fn.decoders.image(data, output_type=ANY, **arguments)

    with decoding() as pipe:
        out = [np.array(row) for row in pipe.run()[0]]
        assert not pipe.report().handed_over
    return out


def check(files: dict[str, bytes], stored: np.ndarray[Any, Any]) -> None:
    """Compare the values, floats, 8 bits and a window of files with the pixels that were stored."""
    for name, got in zip(files, decode_natively([*files.values()], dtype=types.UINT16), strict=True):
        np.testing.assert_array_equal(got, stored, name, strict=True)
    floats = stored.astype(np.float32) * np.float32(1 / 65535)
    for name, got in zip(files, decode_natively([*files.values()], dtype=types.FLOAT), strict=True):
        np.testing.assert_array_equal(got, floats, name, strict=True)
    for name, file in files.items():
        cut = eager.decoders.image_slice(file, start=(37, 41), shape=(30, 20), output_type=ANY, dtype=types.UINT16)
        np.testing.assert_array_equal(cut, stored[41:61, 37:67], name, strict=True)
        assert tuple(eager.peek_image_shape(file, image_type=ANY)) == stored.shape


PLACES: dict[str, dict[str, Any]] = {
    "strips": {"rowsperstrip": 16}, "tiles": {"tile": (32, 48)}, "planes": {"planarconfig": "separate"},
    "planes of tiles": {"planarconfig": "separate", "tile": (32, 48)},
}  # fmt: skip
COMPRESSIONS = [("none", False), ("lzw", False), ("lzw", True), ("deflate", False), ("deflate", True),
                ("packbits", False)]  # fmt: skip


def tiff_of(stored: np.ndarray[Any, Any], place: str, order: str, compression: str, predictor: bool) -> bytes:
    channels = stored.shape[2]
    data = stored[..., 0] if channels == 1 else np.moveaxis(stored, -1, 0) if "planes" in place else stored
    file = io.BytesIO()
    tifffile.imwrite(
        file, data, photometric="rgb" if channels > 2 else "minisblack", byteorder=order, metadata=None,
        compression=None if compression == "none" else compression, predictor=predictor or None,
        extrasamples=["unassalpha"] if channels in (2, 4) else None, **PLACES[place],
    )  # fmt: skip
    assert np.array_equal(tifffile.imread(io.BytesIO(file.getvalue())), data)
    return file.getvalue()


def layouts(*counts: int) -> list[tuple[int, str]]:
    """Return numbers of channels with the places of their samples; one channel has no planes."""
    return [(channels, place) for channels in counts for place in PLACES if channels > 1 or "planes" not in place]


@pytest.mark.parametrize(("channels", "place"), layouts(1, 2, 3, 4))
@pytest.mark.parametrize("order", ["<", ">"])
def test_tiff_of_tifffile(channels: int, place: str, order: str) -> None:
    stored = pixels_of(channels)
    files = {f"{c}, {p}": tiff_of(stored, place, order, c, p) for c, p in COMPRESSIONS}
    check(files, stored)
    upper = (stored >> 8).astype(np.uint8)
    for name, got in zip(files, decode_natively([*files.values()]), strict=True):
        np.testing.assert_array_equal(got, upper, name, strict=True)
    if channels != 2 and place in ("strips", "tiles"):  # Pillow misreads planes, and has no gray and transparency
        mode = {1: None, 3: "RGB", 4: "RGBA"}[channels]
        for name, file in files.items():
            with Image.open(io.BytesIO(file)) as image:
                assert mode is None or image.mode == mode
                twin = np.asarray(image).reshape(stored.shape)
            np.testing.assert_array_equal(twin, stored if channels == 1 else upper, name)


@pytest.mark.parametrize(("channels", "place"), layouts(1, 3, 4))
def test_tiff_of_8_bits(channels: int, place: str) -> None:
    stored = pixels_of(channels, "u1", 8)
    files = [tiff_of(stored, place, order, c, p) for c, p in COMPRESSIONS for order in "<>"]
    for file, got in zip(files, decode_natively(files), strict=True):
        np.testing.assert_array_equal(got, stored)
        with Image.open(io.BytesIO(file)) as image:
            np.testing.assert_array_equal(got, np.asarray(image).reshape(stored.shape))


@pytest.mark.parametrize("compression", ["lzw", "deflate"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_floats_are_pillows(compression: str, order: str) -> None:
    """Predictor 3 is left to Pillow, whose libtiff has it."""
    stored = np.random.default_rng(3).normal(size=(HEIGHT, WIDTH)).astype(np.float32)
    file = io.BytesIO()
    tifffile.imwrite(file, stored, byteorder=order, compression=compression, predictor=3, metadata=None)
    got = eager.decoders.image(file.getvalue(), output_type=ANY, dtype=types.FLOAT)
    np.testing.assert_array_equal(got, stored[..., None], strict=True)


# A PPM file has no transparency.
@pytest.mark.parametrize(
    ("channels", "kind"),
    [(1, ".png"), (3, ".png"), (4, ".png"), (1, ".tiff"), (3, ".tiff"), (4, ".tiff"), (1, ".ppm"), (3, ".ppm")],
)
def test_files_of_opencv(channels: int, kind: str) -> None:
    stored = pixels_of(channels)
    blue_first = stored if channels == 1 else stored[..., [2, 1, 0, 3][:channels]]
    done, data = cv2.imencode(".pgm" if kind == ".ppm" and channels == 1 else kind, blue_first)
    assert done
    np.testing.assert_array_equal(cv2.imdecode(data, cv2.IMREAD_UNCHANGED).reshape(stored.shape), blue_first)
    check({kind: data.tobytes()}, stored)


@pytest.mark.parametrize("kind", ["jp2", "j2k"])
@pytest.mark.parametrize("bits", [8, 9, 10, 12, 15, 16])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_jpeg_2000_of_imagecodecs(channels: int, bits: int, kind: str) -> None:
    stored = pixels_of(channels, "u1" if bits == 8 else "u2", bits)
    data = imagecodecs.jpeg2k_encode(
        stored[..., 0] if channels == 1 else stored, codecformat=kind, bitspersample=bits, reversible=True, level=0,
        colorspace=imagecodecs.JPEG2K.CLRSPC.GRAY if channels < 3 else imagecodecs.JPEG2K.CLRSPC.SRGB,
    )  # fmt: skip
    if bits == 8:
        np.testing.assert_array_equal(decode_natively([data])[0], stored)
        return
    if bits == 9 and channels == 1:  # Pillow has 8 bits, or 16
        assert eager.decoders.image(data, output_type=ANY).shape == stored.shape
        return
    check({kind: data}, stored << (16 - bits))
    with Image.open(io.BytesIO(data)) as image:
        twin = np.asarray(image).reshape(stored.shape)
    if channels == 1:
        np.testing.assert_array_equal(twin, stored << (16 - bits))
        return
    (got,) = decode_natively([data])
    rounded = (stored.astype(np.int32) + (1 << (bits - 9))) >> (bits - 8)
    np.testing.assert_array_equal(got, np.minimum(rounded, 255).astype(np.uint8), strict=True)
    # Pillow's sum has no ninth bit.
    np.testing.assert_array_equal(got[rounded < 256], twin[rounded < 256])
    assert (rounded == 256).any() and not twin[rounded == 256].any()
