# SPDX-License-Identifier: Apache-2.0
"""WebP and JPEG 2000 by libraries that Pillow's package brings: its pixels; it gets damaged files."""

from __future__ import annotations

import base64
import io
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import pytest
from PIL import Image
from test_png import ANY, BGR, GRAY, RGB, decoded

from stoker import DataError, eager
from stoker.contract.types import DType, ImageType
from stoker.native import _native
from stoker.ops.image._libraries import use_libraries
from stoker.ops.image._pillow_decoding import pillow_decode
from stoker.testing.tolerances import assert_exact

use_libraries()
NAMES = {"libwebp": "webp", "openjpeg": "jpg_2000"}
LOADED = _native.raster.libraries()
# A wheel of Pillow for Linux brings both, so there they must be found. A Pillow of the system may have neither.
BUNDLED = [*Path(PIL.__file__).parents[1].glob("pillow.libs/lib*")]
pytestmark = pytest.mark.skipif(
    len(LOADED) < len(NAMES) and not BUNDLED, reason="this Pillow is no wheel, and the system has not both libraries"
)
SIZES = [(1, 1), (7, 5), (37, 53), (80, 101)]


def test_pillows_wheels_have_the_libraries() -> None:
    assert [*NAMES] == LOADED


def picture(height: int, width: int, mode: str) -> Image.Image:
    """Return a picture with edges and grain."""
    y, x = np.mgrid[:height, :width]
    grain = np.random.Generator(np.random.PCG64(height)).normal(0, 6, (height, width))
    channels = {"L": 1, "I;16": 1, "LA": 2, "RGB": 3, "RGBA": 4}[mode]
    parts = [128 + 90 * np.sin(x / (9 + k)) + 30 * np.cos(y / (5 + k)) + grain for k in range(channels)]
    values = np.stack(parts, -1).clip(0, 255).astype(np.uint8)
    if mode == "I;16":
        return Image.fromarray(values[..., 0].astype(np.uint16) * 257 + 3)
    return Image.fromarray(values[..., 0] if channels == 1 else values)


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


WEBP = {
    f"webp, {mode}, {name}, {height}x{width}": encoded(picture(height, width, mode), "WEBP", **options)
    for mode in ("RGB", "RGBA") for height, width in SIZES
    for name, options in {"lossy": {"quality": 70}, "lossless": {"lossless": True}, "coarse": {"alpha_quality": 20},
                          "exact": {"lossless": True, "exact": True}}.items()
}  # fmt: skip
JPEG2000 = {
    f"jpeg 2000, {mode}, {name}, {height}x{width}": encoded(picture(height, width, mode), "JPEG2000", **options)
    for mode in ("RGB", "L", "LA", "RGBA", "I;16") for height, width in SIZES
    for name, options in {
        "reversible": {}, "lossy": {"irreversible": True, "quality_mode": "rates", "quality_layers": [8]},
        "without transform": {"irreversible": True, "mct": 0}, "codestream": {"no_jp2": True},
        "tiles": {"tile_size": (64, 64), "num_resolutions": 2},
        "layers": {"progression": "RPCL", "irreversible": True, "quality_mode": "dB", "quality_layers": [30, 40]},
    }.items()
}  # fmt: skip
FILES = WEBP | JPEG2000


@pytest.mark.parametrize("output_type", [RGB, BGR, GRAY, ANY])
@pytest.mark.parametrize("scale", [1, 4])
def test_pixels_equal_pillows(output_type: ImageType, scale: int) -> None:
    got = decoded([*FILES.values()], output_type=output_type, scale_denom=scale)
    for pixels, (name, data) in zip(got, FILES.items(), strict=True):
        want = pillow_decode(np.frombuffer(data, np.uint8), output_type, True, scale)
        np.testing.assert_array_equal(pixels, want, name, strict=True)


@pytest.mark.parametrize("dtype", [DType.UINT16, DType.FLOAT])
def test_wide_types(dtype: DType) -> None:
    for pixels, (name, data) in zip(
        decoded([*FILES.values()], output_type=ANY, dtype=dtype), FILES.items(), strict=True
    ):
        want = pillow_decode(np.frombuffer(data, np.uint8), ANY, True, dtype=dtype)
        np.testing.assert_array_equal(pixels, want, name, strict=True)


def test_windows_and_limits() -> None:
    for name, data in FILES.items():
        if "37x53" in name:
            whole = eager.decoders.image(data)
            assert_exact(eager.decoders.image_slice(data, start=(11, 7), shape=(13, 9)), whole[7:16, 11:24])
            with pytest.raises(DataError, match="at most 1960 pixels"):
                eager.decoders.image(data, max_pixels=1960)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientations_of_webp(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    for prefix in (b"", b"Exif\0\0"):
        block = prefix + exif.tobytes().removeprefix(b"Exif\0\0")
        data = encoded(picture(37, 53, "RGB"), "WEBP", exif=block)
        for adjust in (True, False):
            want = pillow_decode(np.frombuffer(data, np.uint8), RGB, adjust)
            assert_exact(decoded([data], adjust_orientation=adjust)[0], want)
            assert_exact(eager.peek_image_shape(data, adjust_orientation=adjust), np.asarray(want.shape))


# By channels and bits: files of OpenJPEG, of pixels of 5 x 6, since Pillow writes 8 bits of several channels.
WIDE = {
    (2, 16): "/0//UQAsAAAAAAAGAAAABQAAAAAAAAAAAAAABgAAAAUAAAAAAAAAAAACDwEBDwEB/1IADAAAAAEAAAQEAAH/XAAEQID/ZAAlAAFDcmVhd"
    "GVkIGJ5IE9wZW5KUEVHIHZlcnNpb24gMi41LjT/kAAKAAAAAACRAAH/k9/4kfASIeQ45rUHDMIj2zyg4qABfDlLd3mmJ78Y/K73d8ZZrb"
    "TTaT8aQYqmQdkW2rzzEI0Azo7g9iQGWkBaj5vNq8/8MPQQ268fPrE6qwhcIlYOKKQpwB41Azy15Q3YjDWfyREQUh7xvO6e2eBey6D54GL"
    "/PveaxKP0ifjUxjTa/dav/9k=",
    (3, 12): "/0//UQAvAAAAAAAGAAAABQAAAAAAAAAAAAAABgAAAAUAAAAAAAAAAAADCwEBCwEBCwEB/1IADAAAAAEBAAQEAAH/XAAEQGD/ZAAlAAFDc"
    "mVhdGVkIGJ5IE9wZW5KUEVHIHZlcnNpb24gMi41LjT/kAAKAAAAAABQAAH/k8/ktBDbrx8+sTqrCFwiVg4opCnAHjUDPBHEXoMYcRcget"
    "l/so+1CFfGu+TavRhsd8APhFAUAFqPn8APhFARUFNsX//Z",
    (3, 16): "/0//UQAvAAAAAAAGAAAABQAAAAAAAAAAAAAABgAAAAUAAAAAAAAAAAADDwEBDwEBDwEB/1IADAAAAAEBAAQEAAH/XAAEQID/ZAAlAAFDc"
    "mVhdGVkIGJ5IE9wZW5KUEVHIHZlcnNpb24gMi41LjT/kAAKAAAAAABfAAH/k8/8MPQQ268fPrE6qwhcIlYOKKQpwB41Azy15Q3YjDWfyR"
    "EQUh7xvO6e2eBey6D54GL/PveaxKP0ifjUxjTa/davwAD4RBQAW2zAAPhEEVBTbP/Z",
    (4, 10): "/0//UQAyAAAAAAAGAAAABQAAAAAAAAAAAAAABgAAAAUAAAAAAAAAAAAECQEBCQEBCQEBCQEB/1IADAAAAAEAAAQEAAH/XAAEQFD/ZAAlA"
    "AFDcmVhdGVkIGJ5IE9wZW5KUEVHIHZlcnNpb24gMi41LjT/kAAKAAAAAACyAAH/k9+xMBIh5DjmtQcMwiPbPD5/Dfm/B1Sj8QfEetsntM"
    "XtnAGWkBaj5vNqz8yYENuvHz6xOqsIXCJSKhye5dW0V9eeuKABdxbHU/yJ+NTGNNr91q/PzJwQ4mFSydmAsg7Pt2swDiNxZHahAE5yiEu"
    "N23AaKpQE0kBspw2F/3/PzJQQ4mFSydmAsemYjn4ZClUykCwaUxcIcLoYNuYoTyZIUbWTPk2T/9k=",
}


@pytest.mark.parametrize(("channels", "bits"), WIDE)
def test_several_channels_of_more_than_8_bits(channels: int, bits: int) -> None:
    data = base64.b64decode(WIDE[channels, bits])
    y, x, k = np.mgrid[:5, :6, :channels]
    stored = ((y * 6 + x) * ((1 << bits) // 29) + k * 7).clip(0, (1 << bits) - 1)
    values = (stored << (16 - bits)).astype(np.uint16)
    assert_exact(decoded([data], output_type=ANY, dtype=DType.UINT16)[0], values)
    assert_exact(
        decoded([data], output_type=ANY, dtype=DType.FLOAT)[0], values.astype(np.float32) * np.float32(1 / 65535)
    )
    cut = eager.decoders.image_slice(data, start=(1, 2), shape=(3, 2), output_type=ANY, dtype=DType.UINT16)
    assert_exact(cut, values[2:4, 1:4])
    # Pillow rounds to 8 bits, but the sum has no ninth bit: of the largest values it makes 0.
    rounded = (stored + (1 << (bits - 9))) >> (bits - 8)
    (got,) = decoded([data], output_type=ANY)
    assert_exact(got, rounded.clip(0, 255).astype(np.uint8))
    twin = pillow_decode(np.frombuffer(data, np.uint8), ANY, True)
    np.testing.assert_array_equal(got[rounded < 256], twin[rounded < 256])
    assert (rounded == 256).any()


def patched(data: bytes, marker: bytes, at: int, new: bytes) -> bytes:
    """Return a file with other bytes after a marker."""
    start = data.index(marker) + at
    return data[:start] + new + data[start + len(new) :]


PLAIN = JPEG2000["jpeg 2000, RGB, reversible, 37x53"]
START = b"\xff\x4f\xff\x51"
FRAMES = [picture(16, 16, "RGB"), picture(16, 16, "RGB").rotate(90)]
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/" tiff:Orientation="6"/>'


@pytest.mark.parametrize(
    "data",
    [
        encoded(FRAMES[0], "WEBP", save_all=True, append_images=FRAMES[1:]),
        encoded(picture(16, 20, "RGB"), "WEBP", xmp=XMP),
        encoded(picture(20, 31, "RGB").convert("YCbCr"), "JPEG2000"),
        patched(PLAIN, b"colr", 4, b"\x02"),  # a profile
        patched(PLAIN, b"colr", 7, struct.pack(">I", 17)),  # gray of three components
        patched(PLAIN, START, 6, b"\x40\x00"),  # another coder of blocks
        patched(PLAIN, START, 16, struct.pack(">I", 1)),  # an offset
        patched(PLAIN, START, 32, struct.pack(">I", 1)),  # an offset of tiles
        patched(PLAIN, START, 42, b"\x87"),  # one signed component
        patched(PLAIN, START, 46, b"\x02"),  # a subsampled component
        patched(PLAIN, START, 40, b"\x00\x05"),
        patched(PLAIN, b"jp2h", 0, b"jp2?"),
        patched(PLAIN, b"colr", 0, b"pclr"),
        PLAIN[:60],
        struct.pack(">I4s", 3, b"jP  ") * 100,
    ],
)
def test_other_files_are_pillows(data: bytes) -> None:
    file = np.frombuffer(data, np.uint8)
    try:
        want = pillow_decode(file, RGB, True)
    except Exception:  # of any class, while Pillow opens the file
        with pytest.raises(DataError, match="handed over by the native kernel"):
            eager.decoders.image(file)
    else:
        assert_exact(decoded([data], natively=False)[0], want)


@pytest.mark.parametrize("name", [name for name in FILES if "37x53" in name])
def test_truncated_and_changed_files_end_as_with_pillow(name: str) -> None:
    """A file that is accepted has Pillow's pixels, and errors are Pillow's."""
    data = FILES[name]
    random = np.random.Generator(np.random.PCG64(len(data)))
    files = [data[:size] for size in random.integers(12, len(data), 6)]
    for _ in range(10):
        changed = bytearray(data)
        for _ in range(random.integers(1, 4)):
            changed[random.integers(12, len(data))] = random.integers(0, 256)
        files.append(bytes(changed))
    for content in files:
        file = np.frombuffer(content, np.uint8)
        try:
            got = np.asarray(eager.decoders.image(file, output_type=ANY, max_pixels=1 << 20))
        except DataError:
            continue
        assert_exact(got, pillow_decode(file, ANY, True))


def test_errors_are_pillows() -> None:
    with pytest.raises(DataError, match="broken data stream"):
        eager.decoders.image(PLAIN[: len(PLAIN) // 2])
    webp = WEBP["webp, RGB, lossy, 80x101"]
    with pytest.raises(DataError, match="handed over by the native kernel: a damaged WebP file"):
        eager.decoders.image(webp[: len(webp) // 2])


def test_libraries_that_are_none() -> None:
    code = """
from stoker.native import _native
for use in (_native.raster.use_libwebp, _native.raster.use_openjpeg):
    for path, text in (("no.so", "expected a library, got"), ("libc.so.6", "expected a library with the function")):
        try:
            use(path)
        except ValueError as error:
            assert str(error).startswith(text), error
        else:
            raise AssertionError(path)
assert _native.raster.libraries() == []
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_the_libraries_pillow_decodes() -> None:
    code = f"""
import numpy as np
from stoker import eager
from stoker.native import _native
from stoker.ops.image import _decoding, _pillow_decoding
_decoding.use_libraries = lambda: None
for data in ({WEBP["webp, RGBA, lossy, 7x5"]!r}, {JPEG2000["jpeg 2000, L, tiles, 7x5"]!r}):
    file = np.frombuffer(data, np.uint8)
    want = _pillow_decoding.pillow_decode(file, _decoding.ImageType.RGB, True)
    assert np.array_equal(eager.decoders.image(file), want)
assert _native.raster.libraries() == []
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", ["WEBP", "JPEG2000", "TIFF"])
def test_another_thread_runs_while_a_file_is_decoded(kind: str) -> None:
    """Processor time is compared, because both threads wait while other programs run: next to a decoder that holds
    Python's lock, the thread gets less than a tenth of the decoder's time."""
    options: dict[str, Any] = {"compression": "tiff_lzw"} if kind == "TIFF" else {}
    data = np.frombuffer(encoded(picture(550, 750, "RGB"), kind, **options), np.uint8)
    eager.decoders.image(data)
    shares: list[float] = []
    while len(shares) < 20 and max(shares, default=0.0) < 0.2:
        shares.append(share_of_another_thread(data))
    assert max(shares) >= 0.2, shares


def share_of_another_thread(data: np.ndarray[Any, Any]) -> float:
    """Return the processor time of a thread that runs while a file is decoded, as a part of the decoder's."""
    spent: list[float] = []
    started, ended = threading.Event(), threading.Event()

    def watch() -> None:
        started.set()
        while not ended.is_set():
            pass
        spent.append(time.thread_time())

    begin = time.process_time()
    thread = threading.Thread(target=watch)
    thread.start()
    started.wait()
    eager.decoders.image(data)
    ended.set()
    thread.join()
    return spent[0] / (time.process_time() - begin - spent[0])
