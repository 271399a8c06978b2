# SPDX-License-Identifier: Apache-2.0
"""TIFF files of strips and tiles are decoded natively, with the pixels of the Pillow twin, which gets all others."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps, features
from test_png import ANY, BGR, GRAY, RGB, YCBCR, decoded
from tiff_writer import DEFLATE, LZW, NONE, OLD_DEFLATE, PACK_BITS, PALETTE, grain, tiff
from tiff_writer import GRAY as GRAYS
from tiff_writer import RGB as COLOURS

from stoker import eager
from stoker.contract.errors import DataError
from stoker.contract.types import DType, ImageType
from stoker.ops.image._pillow_decoding import _means, pillow_decode
from stoker.testing.tolerances import assert_exact

pytestmark = pytest.mark.skipif(not features.check("libtiff"), reason="this Pillow has no libtiff")
MAP = {320: (3, [257 * (i * k % 256) for k in (3, 5, 7) for i in range(256)])}
COMPRESSIONS = {"none": NONE, "lzw": LZW, "deflate": DEFLATE, "old deflate": OLD_DEFLATE, "packbits": PACK_BITS}
KINDS: dict[str, tuple[int, int, Any, dict[str, Any]]] = {
    "gray": (GRAYS, 1, np.uint8, {}), "rgb": (COLOURS, 3, np.uint8, {}), "rgba": (COLOURS, 4, np.uint8, {"extra": [2]}),
    "rgbx": (COLOURS, 4, np.uint8, {"extra": [0]}), "la": (GRAYS, 2, np.uint8, {"extra": [2]}),
    "palette": (PALETTE, 1, np.uint8, {"tags": MAP}), "gray 16": (GRAYS, 1, np.uint16, {}),
    "rgb 16": (COLOURS, 3, np.uint16, {}), "rgba 16": (COLOURS, 4, np.uint16, {"extra": [2]}),
    "rgb and one": (COLOURS, 4, np.uint8, {}), "rgb and one 16": (COLOURS, 4, np.uint16, {}),
    "rgbx 16": (COLOURS, 4, np.uint16, {"extra": [0]}),
}  # fmt: skip
PLACES: dict[str, dict[str, Any]] = {
    "tiles": {"tile": (16, 16)}, "low tiles": {"tile": (16, 64)}, "one tile": {"tile": (32, 48)},
    "planes": {"planes": True, "rows": 5}, "planes of tiles": {"planes": True, "tile": (16, 32)},
}  # fmt: skip


def grained(shape: tuple[Any, ...], photometric: int, **options: Any) -> bytes:
    return tiff(grain(*shape), photometric, **options)


class Files(Mapping[str, bytes]):
    """Files by name. They are made when a test reads them: every process of a test run imports this file."""

    def __init__(self, makers: dict[str, Callable[[], bytes]]) -> None:
        self._makers = makers
        self._made: dict[str, bytes] = {}

    def __getitem__(self, name: str) -> bytes:
        if name not in self._made:
            self._made[name] = self._makers[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)


MAKERS: dict[str, Callable[[], bytes]] = {
    f"{kind}, {compression}, {'big' if big else 'little'}, {rows}":
        partial(grained, (23, 37, samples, dtype), photometric, big=big, compression=number, rows=rows, **options)
    for kind, (photometric, samples, dtype, options) in KINDS.items()
    for compression, number in COMPRESSIONS.items() for big in (False, True) for rows in (None, 5)
}  # fmt: skip
MAKERS |= {
    f"{kind}, {compression}, differences, {'big' if big else 'little'}":
        partial(grained, (23, 37, samples, dtype), photometric, big=big, compression=COMPRESSIONS[compression], rows=7,
             predictor=2, **options)
    for kind, (photometric, samples, dtype, options) in KINDS.items() if kind != "palette"
    for compression in ("lzw", "deflate") for big in (False, True)
}  # fmt: skip
MAKERS |= {
    f"{kind}, {compression}, {place}, {'big' if big else 'little'}, {predictor}":
        partial(grained, (23, 37, samples, dtype), photometric, big=big, compression=COMPRESSIONS[compression],
             predictor=predictor, **options, **where)
    for kind, (photometric, samples, dtype, options) in KINDS.items() for place, where in PLACES.items()
    for compression, predictor in (("none", 1), ("lzw", 1), ("lzw", 2), ("deflate", 2), ("packbits", 1))
    for big in (False, True)
    if (kind != "palette" or predictor == 1) and (samples > 2 or "planes" not in where)
    if "planes" not in where or "and one" not in kind
}  # fmt: skip
MAKERS |= {
    f"{height}x{width}": partial(grained, (height, width, 3), COLOURS, compression=LZW)
    for height, width in ((1, 1), (1, 300), (300, 1), (120, 131))
}
MAKERS["long strings"] = partial(tiff, np.zeros((400, 400, 3), np.uint8), COLOURS, compression=LZW)
FILES = Files(MAKERS)
COLOURS_16 = {name for name in FILES if "16" in name and "rgb" in name}
# Pillow takes planes of 16 bits without compression for planes of 8, and refuses those with an unspecified sample.
MISREAD = {name for name in FILES if "planes" in name and "none" in name and ("16" in name or "rgbx" in name)}


def unusual() -> dict[str, bytes]:
    pixels = grain(9, 11, 3)
    files = {
        "white is 0": tiff(pixels[..., :1], 0), "unknown planes": tiff(pixels, COLOURS, tags={284: (3, [3])}),
        "strips and tiles": tiff(pixels, COLOURS, tile=(16, 16), tags={273: (4, [8]), 279: (4, [1])}),
        "signed": tiff(pixels[..., :1], GRAYS, tags={339: (3, [2])}),
        "reversed bits": tiff(pixels, COLOURS, tags={266: (3, [2])}),
        "premultiplied": tiff(grain(9, 11, 4), COLOURS, extra=[1]),
        "wide gray with 0 as white": tiff(grain(9, 11, 1, np.uint16), 0),
    }  # fmt: skip
    for kind, mode, options in (
        ("jpeg", "RGB", {"compression": "jpeg"}), ("one bit", "1", {}), ("inks", "CMYK", {}), ("lab", "LAB", {}),
        ("float", "F", {}), ("int", "I", {}), ("zstd", "RGB", {"compression": "zstd"}),
        ("fax", "1", {"compression": "group4"}),
    ):  # fmt: skip
        memory = io.BytesIO()
        picture = Image.fromarray(pixels)
        picture = picture.convert("L").convert(mode) if mode in ("F", "I") else picture
        picture = Image.merge("LAB", picture.split()) if mode == "LAB" else picture.convert(mode)
        picture.save(memory, "TIFF", **options)
        files[kind] = memory.getvalue()
    return files


@pytest.mark.parametrize("output_type", [RGB, BGR, GRAY, ANY])
@pytest.mark.parametrize("scale", [1, 4])
def test_pixels_equal_pillows(output_type: ImageType, scale: int) -> None:
    files = {name: data for name, data in FILES.items() if name not in MISREAD}
    got = decoded([*files.values()], output_type=output_type, scale_denom=scale)
    for pixels, (name, data) in zip(got, files.items(), strict=True):
        want = pillow_decode(np.frombuffer(data, np.uint8), output_type, True, scale)
        np.testing.assert_array_equal(pixels, want, name, strict=True)


def test_files_that_pillow_writes() -> None:
    rgb = Image.fromarray(grain(50, 61, 3))
    files = []
    for mode in ("L", "RGB", "RGBA", "P", "LA", "I;16"):
        image = Image.fromarray(grain(50, 61, 1, np.uint16)[..., 0]) if mode == "I;16" else rgb.convert(mode)
        for compression in ("raw", "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits"):
            for tags in ({}, {317: 2}):
                memory = io.BytesIO()
                image.save(memory, "TIFF", compression=compression, tiffinfo=tags if "lzw" in compression else {})
                files.append(memory.getvalue())
    for pixels, data in zip(decoded(files, output_type=ANY), files, strict=True):
        assert_exact(pixels, pillow_decode(np.frombuffer(data, np.uint8), ANY, True))


@pytest.mark.parametrize("dtype", [DType.UINT16, DType.FLOAT])
def test_wide_types_and_indices(dtype: DType) -> None:
    kept = {name: data for name, data in FILES.items() if name not in COLOURS_16 and name not in MISREAD}
    got = decoded([*kept.values()], output_type=ANY, dtype=dtype)
    for pixels, (name, data) in zip(got, kept.items(), strict=True):
        want = pillow_decode(np.frombuffer(data, np.uint8), ANY, True, dtype=dtype)
        np.testing.assert_array_equal(pixels, want, name, strict=True)
    kept = {name: data for name, data in FILES.items() if name not in MISREAD}
    for pixels, data in zip(
        decoded([*kept.values()], output_type=ANY, palette_indices=True), kept.values(), strict=True
    ):
        assert_exact(pixels, pillow_decode(np.frombuffer(data, np.uint8), ANY, True, indices=True))


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("scale", [1, 4])
def test_every_bit_of_16_is_kept(channels: int, scale: int) -> None:
    """Compared with the pixels that were stored: Pillow has 8 bits of several channels."""
    pixels = grain(23, 37, channels, np.uint16)
    photometric, extra = (COLOURS, [2] * (channels - 3)) if channels > 2 else (GRAYS, [2] * (channels - 1))
    files = [
        tiff(pixels, photometric, big=big, compression=number, predictor=predictor, extra=extra, **where)
        for number, predictor in ((NONE, 1), (LZW, 1), (LZW, 2), (DEFLATE, 2), (PACK_BITS, 1))
        for big in (False, True) for where in ({}, {"rows": 5}, *PLACES.values())
        if channels > 1 or "planes" not in where
    ]  # fmt: skip
    # Means are those of the twin, whose arithmetic is NumPy's.
    want = pixels if scale == 1 else _means(pixels, scale)
    for got in decoded(files, output_type=ANY, dtype=DType.UINT16, scale_denom=scale):
        assert_exact(got, want)
    if scale == 1:
        floats = pixels.astype(np.float32) * np.float32(1 / 65535)
        for got in decoded(files, output_type=ANY, dtype=DType.FLOAT):
            assert_exact(got, floats)
        for got in decoded(files, output_type=ANY):
            assert_exact(got, (pixels >> 8).astype(np.uint8))
        for data in files:
            cut = eager.decoders.image_slice(data, start=(20, 7), shape=(13, 14), output_type=ANY, dtype=DType.UINT16)
            assert_exact(cut, pixels[7:21, 20:33])


def test_unusual_files_are_left_to_pillow() -> None:
    for name, data in unusual().items():
        try:
            want = pillow_decode(np.frombuffer(data, np.uint8), RGB, True)
        except DataError:  # Pillow does not read it either
            with pytest.raises(DataError):
                eager.decoders.image(data)
            continue
        np.testing.assert_array_equal(decoded([data], natively=False)[0], want, name, strict=True)
    colours = [FILES["rgb, lzw, big, 5"], FILES["palette, none, little, 5"]]
    for pixels, data in zip(decoded(colours, natively=False, output_type=YCBCR), colours, strict=True):
        assert_exact(pixels, pillow_decode(np.frombuffer(data, np.uint8), YCBCR, True))


@pytest.mark.parametrize("natively", [True, False])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientations(orientation: int, natively: bool) -> None:
    pixels = grain(6, 9, 3)
    tags = {274: (3, [orientation])} | ({} if natively else {266: (3, [2])})
    data = tiff(pixels, COLOURS, tags=tags)
    with Image.open(io.BytesIO(data)) as image:
        shown = np.asarray(ImageOps.exif_transpose(image))
    flat = pixels if natively else np.packbits(np.unpackbits(pixels[..., None], axis=-1)[..., ::-1], axis=-1)[..., 0]
    assert_exact(decoded([data], natively)[0], shown)
    assert_exact(decoded([data], natively, adjust_orientation=False)[0], flat)
    assert_exact(eager.peek_image_shape(data), np.asarray(shown.shape))
    assert_exact(eager.peek_image_shape(data, adjust_orientation=False), np.asarray(flat.shape))
    assert_exact(eager.decoders.image_slice(data, start=(1, 2), shape=(3, 4)), shown[2:6, 1:4])
    small = eager.decoders.image(data, scale_denom=4)
    stored = pillow_decode(np.frombuffer(tiff(flat, COLOURS), np.uint8), RGB, True, 4)
    turned = tiff(stored, COLOURS, tags={274: (3, [orientation])})
    assert_exact(small, eager.decoders.image(turned))


def test_orientations_in_text_are_left_to_pillow() -> None:
    text = b'<x tiff:Orientation="6"/>'
    pixels = grain(6, 9, 3)
    data = tiff(pixels, COLOURS, tags={700: (3, np.frombuffer(text + b" ", "<u2").tolist())})
    data = data.replace(b"\xbc\x02\x03\x00\x0d\x00", b"\xbc\x02\x01\x00\x1a\x00")  # bytes
    assert_exact(decoded([data], natively=False)[0], np.rot90(pixels, -1))
    assert_exact(decoded([data], adjust_orientation=False)[0], pixels)


def outcome(decode: Any) -> Any:
    try:
        return np.asarray(decode())
    except DataError:
        return None


def assert_like_pillow(data: bytes) -> bool:
    file = np.frombuffer(data, np.uint8)
    limit = 1 << 20
    got = outcome(lambda: eager.decoders.image(file, output_type=ANY, max_pixels=limit))
    if got is not None:
        assert_exact(got, pillow_decode(file, ANY, True))
    return got is not None


MUTATED = [
    *(f"{kind}, {compression}, little, 5" for kind in ("rgb", "palette", "gray 16") for compression in COMPRESSIONS),
    *(f"rgb, {compression}, tiles, little, 1" for compression in ("none", "lzw", "packbits")),
    "rgba 16, deflate, planes of tiles, big, 2", "palette, none, low tiles, big, 1",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:::PIL")
@pytest.mark.parametrize("name", MUTATED)
def test_truncated_and_changed_files_end_as_with_pillow(name: str) -> None:
    """A file that is accepted has Pillow's pixels. Files that Pillow accepts may be refused by `max_pixels` alone."""
    data = FILES[name]
    random = np.random.Generator(np.random.PCG64(len(data)))
    for size in random.integers(0, len(data), 25):
        assert_like_pillow(data[:size])
    accepted = 0
    for _ in range(120):
        changed = bytearray(data)
        for _ in range(random.integers(1, 4)):
            changed[random.integers(0, len(data))] = random.integers(0, 256)
        accepted += assert_like_pillow(bytes(changed))
    assert accepted > 0


def test_windows_and_limits() -> None:
    for name, data in FILES.items():
        if "23" in name or "5" not in name:
            continue
        whole = eager.decoders.image(data)
        assert_exact(eager.decoders.image_slice(data, start=(1, 7), shape=(3, 9)), whole[7:16, 1:4])
    with pytest.raises(DataError, match="at most 850 pixels"):
        eager.decoders.image(FILES["rgb, none, big, None"], max_pixels=850)
    # A strip or a tile that cannot have its pixels takes no memory for them.
    huge = tiff(grain(9, 11, 3), COLOURS, compression=LZW, tags={256: (4, [12000]), 257: (4, [12000])})
    with pytest.raises(DataError):
        eager.decoders.image(huge)
    sizes = {256: (4, [12000]), 257: (4, [12000]), 322: (4, [12000]), 323: (4, [12000])}
    with pytest.raises(DataError):
        eager.decoders.image(tiff(grain(9, 11, 3), COLOURS, compression=LZW, tile=(16, 16), tags=sizes))
