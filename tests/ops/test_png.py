# SPDX-License-Identifier: Apache-2.0
"""PNG files are decoded natively, with the pixels of the Pillow twin; damage and truncation are errors."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image
from png_writer import KINDS, SIGNATURE, chunk, palette, png, samples

from stoker import Pipeline, eager, fn
from stoker.contract.errors import DataError
from stoker.contract.types import DType, ImageType
from stoker.native import _native
from stoker.ops.image._pillow_decoding import pillow_decode
from stoker.testing.tolerances import assert_exact

Array = npt.NDArray[Any]
ANY, GRAY, RGB, BGR, YCBCR = ImageType.ANY_DATA, ImageType.GRAY, ImageType.RGB, ImageType.BGR, ImageType.YCbCr


def decoded(files: list[bytes], natively: bool = True, **arguments: Any) -> list[Array]:
    """Decode in a pipeline; require that none, or all of the files, go to Pillow."""
    pipe = Pipeline(batch_size=len(files), num_threads=1, prefetch_queue_depth=1)
    with pipe:
        data = fn.external_source([[np.frombuffer(file, np.uint8) for file in files]], cycle=True)
        pipe.set_outputs(fn.decoders.image(data, **arguments))
    with pipe:
        got = [np.array(row) for row in pipe.run()[0]]
        left = {one.reason: one.rows for one in pipe.report().handed_over}
    assert not left if natively else sum(left.values()) >= len(files), left
    return got


def file_of(colours: int, bits: int, height: int, width: int, **options: Any) -> bytes:
    before = palette(1 << bits) if colours == 3 else b""
    return png(samples(colours, bits, height, width), colours, bits, before=before, **options)


SIZES = [(1, 1), (3, 2), (9, 17), (33, 31), (8, 64)]
FILES = {
    f"{colours}-{bits}-{height}x{width}{'-interlaced' if interlaced else ''}":
        file_of(colours, bits, height, width, interlaced=interlaced)
    for colours, bits in KINDS for height, width in SIZES for interlaced in (False, True)
}  # fmt: skip
FILES |= {
    f"palette-{entries}-{alphas}": png(samples(3, bits, 7, 40), 3, bits, before=palette(entries, alphas))
    for bits, entries, alphas in [(8, 256, 256), (8, 9, 0), (8, 9, 3), (8, 3, 9), (4, 16, 1), (2, 3, 2), (1, 2, 1)]
}
FILES["one transparent"] = png(
    samples(3, 4, 7, 40), 3, 4, before=palette(16) + chunk(b"tRNS", b"\xff\xff\0\xff")
)  # Pillow reads it as the number of the transparent entry
FILES["all opaque"] = png(samples(3, 4, 7, 40), 3, 4, before=palette(16) + chunk(b"tRNS", b"\xff\xff"))
FILES["transparent gray"] = png(samples(0, 8, 7, 40), 0, 8, before=chunk(b"tRNS", b"\0\7"))
FILES["transparent colour"] = png(samples(2, 8, 7, 40), 2, 8, before=chunk(b"tRNS", b"\0\7\0\7\0\7"))
FILES |= {f"level {level}": file_of(2, 8, 60, 70, level=level) for level in (0, 1, 9)}
FILES |= {f"chunks of {n}": file_of(2, 8, 9, 17, data_bytes=n) for n in (1, 7, 100)}
FILES |= {
    f"filter {kind} of {colours}": file_of(colours, 8, 9, 70, filters=[kind])
    for kind in range(5) for colours in (0, 2, 4, 6)
}  # fmt: skip
FILES |= {  # neighbours that are often equal, and predictions that are equally near
    f"filter {kind} of few values": png(samples(0, 8, 60, 70) % 4, 0, 8, filters=[kind]) for kind in (3, 4)
}


@pytest.mark.parametrize("output_type", [RGB, BGR, GRAY, ANY])
@pytest.mark.parametrize("scale", [1, 2, 8])
def test_pixels_equal_pillows(output_type: ImageType, scale: int) -> None:
    for got, (name, data) in zip(
        decoded([*FILES.values()], output_type=output_type, scale_denom=scale), FILES.items(), strict=True
    ):
        np.testing.assert_array_equal(
            got, pillow_decode(np.frombuffer(data, np.uint8), output_type, True, scale), name, strict=True
        )


@pytest.mark.parametrize("dtype", [DType.UINT16, DType.FLOAT])
@pytest.mark.parametrize("scale", [1, 4])
def test_wide_types_equal_pillows(dtype: DType, scale: int) -> None:
    kept = {
        name: data for name, data in FILES.items() if "-16-" not in name or name.startswith("0-")
    }  # Pillow reads colours with 8 bits
    got = decoded([*kept.values()], output_type=ANY, dtype=dtype, scale_denom=scale)
    for pixels, (name, data) in zip(got, kept.items(), strict=True):
        want = pillow_decode(np.frombuffer(data, np.uint8), ANY, True, scale, dtype=dtype)
        np.testing.assert_array_equal(pixels, want, name, strict=True)


def test_indices_and_gray_as_ycbcr() -> None:
    files = [data for name, data in FILES.items() if name.startswith(("3-", "0-", "palette", "2-8"))]
    for output_type in (ANY, GRAY):
        for got, data in zip(decoded(files, output_type=output_type, palette_indices=True), files, strict=True):
            want = pillow_decode(np.frombuffer(data, np.uint8), output_type, True, indices=True)
            assert_exact(got, want)
    gray = [data for name, data in FILES.items() if name.startswith("0-")]
    for got, data in zip(decoded(gray, output_type=YCBCR), gray, strict=True):
        assert_exact(got, pillow_decode(np.frombuffer(data, np.uint8), YCBCR, True))
    colours = [file_of(2, 8, 9, 17), file_of(4, 8, 9, 17), file_of(3, 8, 9, 17)]
    for got, data in zip(decoded(colours, natively=False, output_type=YCBCR), colours, strict=True):
        assert_exact(got, pillow_decode(np.frombuffer(data, np.uint8), YCBCR, True))


def test_every_instruction_set_gives_the_same_pixels() -> None:
    data = file_of(2, 8, 60, 70)
    want = eager.decoders.image(data)
    before = _native.get_isa()
    try:
        for name in _native.instruction_sets():
            _native.set_isa(name)
            assert_exact(eager.decoders.image(data), want)
    finally:
        _native.set_isa(before)


def exif(orientation: int) -> bytes:
    return b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\3\0\0\0\1" + struct.pack(">HHI", orientation, 0, 0)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_windows_and_orientations(orientation: int) -> None:
    turned = chunk(b"eXIf", exif(orientation))
    for file in (
        file_of(2, 8, 33, 31, after=turned),
        png(samples(2, 8, 33, 31), 2, 8, before=turned, interlaced=True),
        png(samples(0, 16, 33, 31), 0, 16, before=turned),
    ):
        for output_type, dtype in ((RGB, DType.UINT8), (ANY, DType.FLOAT)):
            arguments = {"output_type": output_type, "dtype": dtype}
            (whole,) = decoded([file], **arguments)
            assert_exact(whole, pillow_decode(np.frombuffer(file, np.uint8), output_type, True, dtype=dtype))
            cut = eager.decoders.image_slice(file, start=(3, 2), shape=(15, 14), **arguments)
            assert_exact(cut, whole[2:16, 3:18])
            (straight,) = decoded([file], adjust_orientation=False, **arguments)
            assert straight.shape[:2] == (33, 31)


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        (file_of(2, 8, 9, 9, after=chunk(b"tEXt", b"Raw profile type exif\0")), "an orientation in text"),
        (png(samples(2, 8, 9, 9), 2, 8, before=chunk(b"acTL", struct.pack(">II", 1, 0))), "an animated PNG file"),
        (png(samples(3, 8, 9, 9), 3, 8, before=palette(256, 1)[:-13] + chunk(b"tRNS", b"\xff\0\n")), "unusual"),
    ],
    ids=["text", "animation", "transparency"],
)
def test_unusual_files_are_left_to_pillow(file: bytes, reason: str) -> None:
    assert_exact(decoded([file], natively=False)[0], pillow_decode(np.frombuffer(file, np.uint8), RGB, True))


def spans(data: bytes) -> dict[bytes, tuple[int, int]]:
    """Return where the data of each kind of chunk are."""
    found, at = {}, len(SIGNATURE)
    while at < len(data):
        (size,) = struct.unpack_from(">I", data, at)
        found[data[at + 4 : at + 8]] = (at + 8, at + 8 + size)
        at += 12 + size
    return found


def test_truncation_at_every_byte() -> None:
    """A file is an error until its image data are complete; only what follows them may be missing."""
    data = file_of(2, 8, 9, 17)
    want = eager.decoders.image(data)
    end = spans(data)[b"IDAT"][1] + 4
    for size in range(len(SIGNATURE), end):
        with pytest.raises(DataError, match=r"PNG data end before the image is complete|it ends (in|before) its"):
            eager.decoders.image(data[:size])
    for size in range(end, len(data)):
        assert_exact(eager.decoders.image(data[:size]), want)


@pytest.mark.parametrize("kind", [b"IHDR", b"PLTE", b"IDAT"])
def test_every_wrong_bit_of_a_chunk_is_found(kind: bytes) -> None:
    data = bytearray(file_of(3, 4, 5, 6))
    first, end = spans(bytes(data))[kind]
    for at in range(first, end + 4):
        data[at] ^= 1 << at % 8
        with pytest.raises(DataError):
            eager.decoders.image(bytes(data))
        data[at] ^= 1 << at % 8


def with_data(packed: bytes, height: int = 2, width: int = 2) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return SIGNATURE + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def test_damage_of_compressed_data_is_named() -> None:
    rows = b"\0\1\2\0\3\4"
    right = zlib.compress(rows)
    assert_exact(eager.decoders.image(with_data(right), output_type=GRAY)[..., 0], np.uint8([[1, 2], [3, 4]]))
    for packed, text in [
        (right[:-1] + bytes([right[-1] ^ 1]), "a wrong checksum of the decompressed data"),
        (b"\x78\x9d" + right[2:], "a wrong header of the compressed data"),
        (b"\x78\x9c\x07", "an invalid kind of block"),
        (b"\x78\x9c\x01\2\0\0\0", "a stored block with a wrong length"),
        (zlib.compress(b"\5\1\2\0\3\4"), "an unknown filter of a row"),
        (zlib.compress(rows[:5]), "end before the image is complete"),
        (right[:-4], "end before the image is complete"),
        (b"", "end before the image is complete"),
    ]:
        with pytest.raises(DataError, match=text):
            eager.decoders.image(with_data(packed))
    # More rows than the header states are ignored, as by Pillow and libpng.
    more = with_data(zlib.compress(rows + b"\0\1\2"))
    assert_exact(eager.decoders.image(more, output_type=GRAY)[..., 0], np.uint8([[1, 2], [3, 4]]))


def test_limits_hold_before_memory_is_taken() -> None:
    with pytest.raises(DataError, match="at most 178956970 pixels, got an image of 65500 x 65500"):
        eager.decoders.image(with_data(b"", 65500, 65500))
    # 8 GB of pixels that the file cannot have are not reserved.
    with pytest.raises(DataError, match="end before the image is complete"):
        eager.decoders.image_slice(
            with_data(b"\x78\x9c\0\0\0\0", 90000, 90000), start=(0, 89999), shape=(1, 1), max_pixels=0
        )


def test_files_that_pillow_writes() -> None:
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (61, 83, 3), np.uint8))
    for mode in ("1", "L", "P", "RGB", "RGBA", "LA", "I;16"):
        memory = io.BytesIO()
        (picture.convert("L") if mode == "I;16" else picture).convert(mode).save(memory, "PNG", optimize=True)
        data = memory.getvalue()
        assert_exact(decoded([data])[0], pillow_decode(np.frombuffer(data, np.uint8), RGB, True))
        assert_exact(eager.peek_image_shape(data), np.asarray([61, 83, 3]))
