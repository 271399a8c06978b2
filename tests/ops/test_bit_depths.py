# SPDX-License-Identifier: Apache-2.0
"""Files with more than 8 bits per channel keep their values, and palettes can be read as indices."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from png_writer import chunk, png, samples
from test_decoders import encoded, pipeline, rotated_file
from test_png import exif
from tiff_writer import DEFLATE, GRAY, LZW, NONE, tiff

from stoker import Pipeline, eager, fn, types
from stoker.contract.errors import ArgumentError, DataError
from stoker.contract.types import DType
from stoker.ops.generic.cast import cast_array
from stoker.ops.image._pillow_decoding import pillow_decode
from stoker.testing.tolerances import assert_exact

Array = npt.NDArray[Any]
ANY = types.ANY_DATA
SIXTEEN = np.random.default_rng(1).integers(0, 1 << 16, (7, 9)).astype(np.uint16)
FLOATS = np.random.default_rng(2).normal(size=(7, 9)).astype(np.float32) * 1000


def saved(pixels: Array, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, kind, **options)
    return out.getvalue()


def png_of_colours(pixels: Array) -> bytes:
    """Return a PNG file with 16 bits per channel, which Pillow cannot write."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, channels = pixels.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 16, {3: 2, 4: 6, 2: 4}[channels], 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


GRAY_16 = {"png": saved(SIXTEEN, "PNG"), "tiff": saved(SIXTEEN, "TIFF"), "ppm": saved(SIXTEEN, "PPM"),
           "jpeg2000": saved(SIXTEEN, "JPEG2000", irreversible=False)}  # fmt: skip


@pytest.mark.parametrize("kind", GRAY_16)
def test_gray_files_with_16_bits_keep_their_values(kind: str) -> None:
    data = GRAY_16[kind]
    assert_exact(eager.decoders.image(data, output_type=ANY, dtype=types.UINT16), SIXTEEN[..., None])
    floats = eager.decoders.image(data, output_type=ANY, dtype=types.FLOAT)
    assert floats.dtype == np.float32
    assert_exact(np.rint(floats.astype(np.float64) * 65535).astype(np.uint16), SIXTEEN[..., None])
    assert_exact(eager.decoders.image(data, output_type=ANY, dtype=types.FLOAT64), floats.astype(np.float64))
    upper = (SIXTEEN >> 8).astype(np.uint8)[..., None]
    for output_type in (ANY, types.GRAY):
        assert_exact(eager.decoders.image(data, output_type=output_type), upper)
    assert_exact(eager.decoders.image(data), np.repeat(upper, 3, 2))
    assert_exact(eager.decoders.image(data, output_type=types.BGR), np.repeat(upper, 3, 2))


def test_floats_keep_their_values() -> None:
    data = saved(FLOATS, "TIFF")
    assert_exact(eager.decoders.image(data, output_type=ANY, dtype=types.FLOAT), FLOATS[..., None])
    for arguments in ({}, {"output_type": types.GRAY}, {"output_type": ANY, "dtype": types.UINT16}):
        with pytest.raises(DataError, match=r"whole numbers from 0 to \d+ in a file of floats.*`dtype=types.FLOAT`"):
            eager.decoders.image(data, **arguments)
    labels = np.arange(63, dtype=np.float32).reshape(7, 9)
    assert_exact(eager.decoders.image(saved(labels, "TIFF"), output_type=types.GRAY), labels.astype("u1")[..., None])


@pytest.mark.parametrize("compression", [NONE, DEFLATE, LZW])
@pytest.mark.parametrize("kind", ["f4", "i4"])
@pytest.mark.parametrize("big", [False, True])
def test_32_bits_in_either_order_of_bytes(compression: int, kind: str, big: bool) -> None:
    """Pillow itself exchanges the bytes of compressed files with the high byte first once too often."""
    values = (FLOATS if kind == "f4" else np.arange(63, dtype=np.int32).reshape(7, 9) - 30)[..., None]
    tags = {258: (3, [32]), 339: (3, [3 if kind == "f4" else 2])}
    data = tiff(values, GRAY, big=big, compression=compression, tags=tags)
    assert_exact(eager.decoders.image(data, output_type=ANY, dtype=types.FLOAT), values.astype("f4"))


def test_integers_of_32_bits_keep_their_values() -> None:
    depths = np.arange(63, dtype=np.int32).reshape(7, 9) * 40_000 - 1_000_000
    data = saved(depths, "TIFF")
    assert_exact(eager.decoders.image(data, output_type=ANY, dtype=types.FLOAT), depths.astype("f4")[..., None])
    for arguments in ({}, {"output_type": ANY, "dtype": types.UINT16}):
        with pytest.raises(DataError, match=r"in a file of 32-bit integers, for uint.*got -1e.06 to"):
            eager.decoders.image(data, **arguments)
    large = np.full((2, 2), (1 << 30) + 1, np.int32)
    with pytest.raises(DataError, match="32-bit integers that float32 holds exactly"):
        eager.decoders.image(saved(large, "TIFF"), output_type=ANY, dtype=types.FLOAT)
    labels = np.arange(63, dtype=np.int32).reshape(7, 9)
    assert_exact(eager.decoders.image(saved(labels, "TIFF"), output_type=types.GRAY), labels.astype("u1")[..., None])


@pytest.mark.parametrize("channels", [2, 3, 4])
def test_colours_with_16_bits_are_not_quantised_in_silence(channels: int) -> None:
    """The native decoder has all bits. Its twin, which has 8 by Pillow, refuses."""
    pixels = np.random.default_rng(3).integers(0, 1 << 16, (5, 6, channels)).astype(np.uint16)
    data = png_of_colours(pixels)
    want = pixels if channels > 2 else pixels[..., [0, 0, 0, 1]]  # as Pillow reads gray and transparency of 16 bits
    assert_exact(eager.decoders.image(data, output_type=ANY, dtype=types.UINT16), want)
    floats = want.astype(np.float32) * np.float32(1 / 65535)
    assert_exact(eager.decoders.image(data, output_type=ANY, dtype=types.FLOAT), floats)
    assert_exact(eager.decoders.image(data, output_type=ANY), (want >> 8).astype(np.uint8))
    assert_exact(eager.decoders.image(data), (want[..., :3] >> 8).astype(np.uint8))
    for dtype in (types.UINT16, types.FLOAT):
        with pytest.raises(DataError, match=r"expected 8 bits per channel .*, got 16: Pillow reads such files"):
            pillow_decode(np.frombuffer(data, np.uint8), ANY, True, dtype=dtype)


def luma(pixels: Array) -> Array:
    """Return the gray values of colours of 16 bits, in one channel."""
    red, green, blue = (pixels[..., k].astype(np.int64) for k in range(3))
    return ((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16).astype(np.uint16)[..., None]


COLOURS = np.random.default_rng(3).integers(0, 1 << 16, (5, 6, 4)).astype(np.uint16)
COLOURS[0, :2] = [[0xFFFF], [0]]
_PNM = b"P6\n6 5\n65535\n"
COLOUR_16 = {
    "png": png_of_colours(COLOURS[..., :3]), "png with transparency": png_of_colours(COLOURS),
    "tiff": tiff(COLOURS[..., :3], 2), "tiff, high byte first": tiff(COLOURS[..., :3], 2, big=True, compression=LZW),
    "ppm": _PNM + COLOURS[..., :3].astype(">u2").tobytes(),
}  # fmt: skip


@pytest.mark.parametrize("kind", COLOUR_16)
def test_colours_with_16_bits_in_every_colour_model(kind: str) -> None:
    data, rgb = COLOUR_16[kind], COLOURS[..., :3]
    models = {types.RGB: rgb, types.BGR: rgb[..., ::-1], types.GRAY: luma(rgb)}
    for output_type, want in models.items():
        wide = eager.decoders.image(data, output_type=output_type, dtype=types.UINT16)
        assert_exact(wide, want)
        floats = want.astype(np.float32) * np.float32(1 / 65535)
        assert_exact(eager.decoders.image(data, output_type=output_type, dtype=types.FLOAT), floats)
        half = eager.decoders.image(data, output_type=output_type, dtype=types.FLOAT16)
        assert_exact(half, floats.astype(np.float16))
        cut = eager.decoders.image_slice(data, start=(1, 2), shape=(3, 2), output_type=output_type, dtype=types.UINT16)
        assert_exact(cut, want[2:4, 1:4])
        eight = eager.decoders.image(data, output_type=output_type)
        assert np.abs(wide / 257 - eight).max() <= 1.5
        mean = eager.decoders.image(data, output_type=output_type, dtype=types.UINT16, scale_denom=8)
        assert_exact(mean[0, 0], (want.astype(np.int64).sum((0, 1)) / 30 + 0.5).astype(np.uint16))


def integers(floats: Array, dtype: DType) -> Array:
    """Return floats from 0 to 1 over the range of an integer type, in float32, rounded half up."""
    largest = np.float32(dtype.positive_range)
    whole = np.floor((floats.astype(np.float32) * largest).astype(np.float64) + 0.5)
    return cast_array(whole, dtype)


INTEGERS = [t for t in DType if not t.is_float and t not in (DType.UINT8, DType.UINT16)]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_have_all_bits_of_a_file(dtype: DType) -> None:
    every = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256)
    photograph = np.random.default_rng(4).integers(0, 256, (20, 30, 3), np.uint8)
    pnm = b"P5\n256 256\n65535\n" + every.astype(">u2").tobytes()
    few = saved(every[0].astype(np.uint8).reshape(16, 16), "PNG")
    files = (saved(every, "PNG"), saved(every, "TIFF"), pnm, few, saved(photograph, "JPEG"))
    for data in files:
        for output_type in (types.RGB, types.GRAY, ANY):
            floats = eager.decoders.image(data, output_type=output_type, dtype=types.FLOAT)
            want = integers(floats, dtype)
            assert_exact(eager.decoders.image(data, output_type=output_type, dtype=dtype), want)
            cut = eager.decoders.image_slice(data, start=(1, 2), shape=(9, 8), output_type=output_type, dtype=dtype)
            assert_exact(cut, want[2:10, 1:10])
    bytes_first = eager.decoders.image(files[0], output_type=types.YCbCr)
    floats = bytes_first.astype(np.float32) * np.float32(1 / 255)
    assert_exact(eager.decoders.image(files[0], output_type=types.YCbCr, dtype=dtype), integers(floats, dtype))


def test_integers_of_16_bits_and_less_are_rounded_exactly() -> None:
    """No product is close enough to a half for float32 to change the result."""
    every = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256)
    for dtype in (DType.INT8, DType.INT16):
        got = eager.decoders.image(saved(every, "PNG"), output_type=ANY, dtype=dtype)[..., 0]
        np.testing.assert_array_equal(got, np.rint(every * (dtype.positive_range / 65535)))


def test_integers_of_files_of_floats_have_8_bits_first() -> None:
    labels = np.arange(63, dtype=np.float32).reshape(7, 9)
    floats = labels[..., None] * np.float32(1 / 255)
    got = eager.decoders.image(saved(labels, "TIFF"), output_type=ANY, dtype=types.INT32)
    assert_exact(got, integers(floats, types.INT32))
    with pytest.raises(DataError, match=r"whole numbers from 0 to 255 in a file of floats"):
        eager.decoders.image(saved(FLOATS, "TIFF"), output_type=ANY, dtype=types.INT32)


@pytest.mark.parametrize("kind", GRAY_16)
def test_gray_of_16_bits_in_every_colour_model(kind: str) -> None:
    for output_type, channels in ((types.RGB, 3), (types.BGR, 3), (types.GRAY, 1)):
        want = np.repeat(SIXTEEN[..., None], channels, 2)
        data = np.frombuffer(GRAY_16[kind], np.uint8)
        assert_exact(eager.decoders.image(data, output_type=output_type, dtype=types.UINT16), want)
        floats = want.astype(np.float32) * np.float32(1 / 65535)
        assert_exact(eager.decoders.image(data, output_type=output_type, dtype=types.FLOAT), floats)
        for dtype, values in ((types.UINT16, want), (types.FLOAT, floats)):
            assert_exact(pillow_decode(data, output_type, True, dtype=dtype), values)


@pytest.mark.filterwarnings("ignore:no GPU is used")
def test_mixed_decoders_keep_16_bits() -> None:
    def decoded(dtype: Any, device: str) -> Any:
        file = np.frombuffer(COLOUR_16["png"], np.uint8)
        pipe = Pipeline(batch_size=1, num_threads=1, seed=3, without_gpu="cpu")
        with pipe:
            pipe.set_outputs(fn.decoders.image(fn.external_source([[file]]), device=device, dtype=dtype))
        with pipe:
            return np.array(pipe.run()[0].as_cpu()[0])

    rgb = COLOURS[..., :3]
    assert_exact(decoded(types.UINT16, "mixed"), rgb)
    for device in ("mixed", "cpu"):
        assert_exact(decoded(types.FLOAT, device), rgb.astype(np.float32) * np.float32(1 / 65535))


@pytest.mark.parametrize("output_type", [types.RGB, types.BGR, types.GRAY, types.YCbCr])
def test_unscaled_files_of_floats_are_bytes_first(output_type: Any) -> None:
    data = saved(np.arange(63, dtype=np.float32).reshape(7, 9), "TIFF")
    eight = eager.decoders.image(data, output_type=output_type)
    assert_exact(eager.decoders.image(data, output_type=output_type, dtype=types.UINT16), eight.astype(np.uint16) * 257)
    floats = eight.astype(np.float32) * np.float32(1 / 255)
    assert_exact(eager.decoders.image(data, output_type=output_type, dtype=types.FLOAT), floats)


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "LA", "P", "1"])
@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_files_with_8_bits_are_scaled_as_without_wide_types(mode: str, kind: str) -> None:
    data = encoded(mode, kind)
    eight = eager.decoders.image(data, output_type=ANY)
    assert_exact(eager.decoders.image(data, output_type=ANY, dtype=types.UINT16), eight.astype(np.uint16) * 257)
    floats = eight.astype(np.float32) * np.float32(1 / 255)
    assert_exact(eager.decoders.image(data, output_type=ANY, dtype=types.FLOAT), floats)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("mode", ["RGB", "L"])
def test_jpeg_files_are_scaled_by_native_code(mode: str, orientation: int) -> None:
    data = rotated_file(orientation, mode=mode)
    eight = eager.decoders.image(data, output_type=ANY)
    assert_exact(eager.decoders.image(data, output_type=ANY, dtype=types.UINT16), eight.astype(np.uint16) * 257)
    floats = eight.astype(np.float32) * np.float32(1 / 255)
    assert_exact(eager.decoders.image(data, output_type=ANY, dtype=types.FLOAT), floats)
    cut = eager.decoders.image_slice(data, start=(3, 2), shape=(5, 4), output_type=ANY, dtype=types.FLOAT)
    assert_exact(cut, floats[2:6, 3:8])


def test_windows_and_smaller_scales_of_wide_files() -> None:
    data = GRAY_16["png"]
    cut = eager.decoders.image_slice(data, start=(3, 2), shape=(5, 4), output_type=ANY, dtype=types.UINT16)
    assert_exact(cut, SIXTEEN[2:6, 3:8, None])
    crop = eager.decoders.image_crop(data, crop=(4, 5), crop_pos_x=0, crop_pos_y=0, output_type=ANY, dtype=types.FLOAT)
    assert_exact(crop, eager.decoders.image(data, output_type=ANY, dtype=types.FLOAT)[:4, :5])
    half = eager.decoders.image(data, scale_denom=2, output_type=ANY, dtype=types.UINT16)
    assert half[0, 0, 0] == int(SIXTEEN[:2, :2].astype(int).sum() / 4 + 0.5)
    mean = eager.decoders.image(saved(FLOATS, "TIFF"), scale_denom=8, output_type=ANY, dtype=types.FLOAT)
    np.testing.assert_allclose(mean[0, 0, 0], FLOATS[:7, :8].mean(), rtol=1e-5)


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize(("colours", "channels"), [(0, 1), (2, 3), (6, 4)])
def test_crops_resizes_and_orientations_of_16_bits(colours: int, channels: int, interlaced: bool) -> None:
    """A crop becomes a window of the decoder, and a resize follows it: as of the pixels themselves."""
    pixels = samples(colours, 16, 33, 31).astype(np.uint16)
    file = png(pixels, colours, 16, interlaced=interlaced)
    wide: dict[str, Any] = {"output_type": ANY, "dtype": types.UINT16}
    data = types.Constant(np.frombuffer(file, np.uint8))

    def pipe() -> Any:
        image = fn.external_source([[pixels]], layout="HWC", cycle=True)
        whole = fn.decoders.image(data, **wide)
        return (
            fn.crop(whole, crop=(20, 17), crop_pos_x=0.3, crop_pos_y=0.6),
            fn.crop(image, crop=(20, 17), crop_pos_x=0.3, crop_pos_y=0.6),
            fn.resize(fn.decoders.image_slice(data, start=(3, 4), shape=(20, 25), **wide), size=(11, 13)),
            fn.resize(image[4:29, 3:23], size=(11, 13)),
            fn.resize(whole, size=(50, 41), dtype=types.FLOAT), fn.resize(image, size=(50, 41), dtype=types.FLOAT),
        )  # fmt: skip

    got = pipeline(pipe)
    for k in range(0, len(got), 2):
        assert got[k].shape[2] == channels
        assert_exact(got[k], got[k + 1])
    turned = png(pixels, colours, 16, after=chunk(b"eXIf", exif(6)))
    assert_exact(eager.decoders.image(turned, **wide), np.rot90(pixels, -1))


def test_a_pipeline_keeps_values() -> None:
    file = types.Constant(np.frombuffer(GRAY_16["tiff"], np.uint8))
    (pixels,) = pipeline(lambda: fn.decoders.image(file, output_type=ANY, dtype=types.UINT16))
    assert_exact(pixels, SIXTEEN[..., None])


# ---- palettes ----


def mask() -> tuple[Array, bytes]:
    """Return classes, and a file whose palette has the usual colours for them."""
    classes = np.random.default_rng(4).integers(0, 21, (7, 9)).astype(np.uint8)
    image = Image.fromarray(classes, "P")
    image.putpalette([(7 * n) % 256 for n in range(3 * 256)])
    out = io.BytesIO()
    image.save(out, "PNG")
    return classes, out.getvalue()


@pytest.mark.parametrize("output_type", [ANY, types.GRAY])
def test_palettes_are_read_as_indices(output_type: Any) -> None:
    classes, data = mask()
    assert_exact(eager.decoders.image(data, output_type=output_type, palette_indices=True), classes[..., None])
    cut = eager.decoders.image_slice(
        data, start=(3, 2), shape=(5, 4), output_type=output_type, palette_indices=True
    )  # fmt: skip
    assert_exact(cut, classes[2:6, 3:8, None])
    assert eager.decoders.image(data, output_type=ANY).shape == (7, 9, 3)
    other = encoded("L", "PNG")
    plain = eager.decoders.image(other, output_type=output_type)
    assert_exact(eager.decoders.image(other, output_type=output_type, palette_indices=True), plain)


def test_colours_and_indices_of_one_file() -> None:
    """Equal steps are merged; these are not equal."""
    classes, data = mask()
    file = types.Constant(np.frombuffer(data, np.uint8))
    indices, colours = pipeline(
        lambda: (
            fn.decoders.image(file, output_type=ANY, palette_indices=True), fn.decoders.image(file, output_type=ANY)
        )
    )  # fmt: skip
    assert_exact(indices, classes[..., None])
    assert_exact(colours, eager.decoders.image(data, output_type=ANY))


@pytest.mark.parametrize("arguments", [{}, {"output_type": ANY, "dtype": types.FLOAT}], ids=["colours", "floats"])
def test_indices_are_no_colours(arguments: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match="expected `output_type` GRAY or ANY_DATA and `dtype` UINT8 with `palette"):
        eager.decoders.image(mask()[1], palette_indices=True, **arguments)
    with pytest.raises(DataError, match="expected `scale_denom` 1 for palette indices"):
        eager.decoders.image(mask()[1], palette_indices=True, output_type=ANY, scale_denom=2)


def test_other_formats_whose_bits_pillow_drops() -> None:
    """The number of bits is read from the file, because Pillow does not keep it. The twin refuses such files."""
    colours = np.random.default_rng(5).integers(0, 256, (16, 16, 3)).astype(np.uint8)
    jp2 = bytearray(saved(colours, "JPEG2000", irreversible=False))
    at = jp2.index(b"\xff\x4f\xff\x51") + 42
    assert jp2[at] == 7
    assert eager.decoders.image(bytes(jp2), output_type=ANY, dtype=types.UINT16).shape == (16, 16, 3)
    jp2[at] = 11
    ppm = b"P6 2 1 4095\n" + np.arange(6, dtype=">u2").tobytes()
    for data in (bytes(jp2), ppm):
        with pytest.raises(DataError, match=r"expected 8 bits per channel .*, got 1[26]"):
            pillow_decode(np.frombuffer(data, np.uint8), ANY, True, dtype=types.UINT16)
