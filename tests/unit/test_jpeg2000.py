# SPDX-License-Identifier: Apache-2.0
"""JPEG 2000 by imagecodecs: the files that it takes. A stand-in for the package decodes with Pillow;
tests/containers/real_jpeg2000.py compares the pixels of the package.
"""

from __future__ import annotations

import io
import struct
import sys
from typing import Any

import numpy as np
import pytest
from PIL import Image, features

from stoker import DataError, eager, types
from stoker.ops.image import _jpeg2000

pytestmark = pytest.mark.skipif(not features.check("jpg_2000"), reason="this Pillow has no JPEG 2000")
RGB = np.random.Generator(np.random.PCG64(3)).integers(0, 256, (20, 31, 4), np.uint8)


def encoded(pixels: Any, mode: str | None = None, **options: Any) -> bytes:
    """Return a file."""
    file = io.BytesIO()
    image = Image.fromarray(pixels)
    (image.convert(mode) if mode else image).save(file, "JPEG2000", **options)
    return file.getvalue()


def patched(data: bytes, marker: bytes, at: int, new: bytes) -> bytes:
    """Return a file with other bytes after a marker."""
    start = data.index(marker) + at
    return data[:start] + new + data[start + len(new) :]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Install the stand-in and return the files that it gets."""
    seen: list[bytes] = []

    def decode(content: bytes, numthreads: int) -> Any:
        assert numthreads == 1
        seen.append(content)
        with Image.open(io.BytesIO(content)) as image:
            return np.asarray(image)

    monkeypatch.setattr(_jpeg2000, "_decoder", lambda: decode)
    return seen


@pytest.mark.parametrize("codestream", [False, True])
@pytest.mark.parametrize(
    ("pixels", "mode"),
    [
        (RGB[..., :3], "RGB"), (RGB[..., 0], "L"), (RGB[..., :2], "LA"), (RGB, "RGBA"),
        (RGB[..., 0].astype(np.uint16) * 257, "I;16"),
    ],
)  # fmt: skip
def test_plain_components_are_taken(calls: list[bytes], pixels: Any, mode: str, codestream: bool) -> None:
    data = np.frombuffer(encoded(pixels, no_jp2=codestream), np.uint8)
    found = _jpeg2000.decode_jpeg2000(data, mode)
    np.testing.assert_array_equal(found, pixels)
    assert len(calls) == 1
    assert _jpeg2000.decode_jpeg2000(data, "P") is None
    got = np.asarray(eager.decoders.image(data, output_type=types.ANY_DATA))
    assert len(calls) == 2
    np.testing.assert_array_equal(got, (pixels >> 8 if mode == "I;16" else pixels).reshape(*pixels.shape[:2], -1))


PLAIN = encoded(RGB[..., :3])
START = b"\xff\x4f\xff\x51"


@pytest.mark.parametrize(
    "data",
    [
        encoded(RGB[..., :3], "YCbCr"),
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
        b"",
        START,
        struct.pack(">I4sQ", 1, b"jp2h", 2**63) + PLAIN,
        struct.pack(">I4s", 3, b"jp2h") * 100,
    ],
)
def test_other_files_are_pillows(calls: list[bytes], data: bytes) -> None:
    assert _jpeg2000.decode_jpeg2000(np.frombuffer(data, np.uint8), "RGB") is None
    assert not calls


def test_headers_of_any_bytes_raise_nothing(calls: list[bytes]) -> None:
    rng = np.random.Generator(np.random.PCG64(5))
    taken = 0
    for _ in range(3000):
        data = bytearray(PLAIN[: int(rng.integers(0, 200))])
        for _ in range(int(rng.integers(0, 4))):
            if data:
                data[int(rng.integers(0, len(data)))] = int(rng.integers(0, 256))
        taken += _jpeg2000._plain_image(bytes(data)) is not None
    assert 0 < taken < 3000


def test_the_result_has_the_headers_shape_and_type(monkeypatch: pytest.MonkeyPatch) -> None:
    data = np.frombuffer(PLAIN, np.uint8)
    for wrong in (RGB, RGB[:5, :, :3], RGB[..., :3].astype(np.uint16)):
        monkeypatch.setattr(_jpeg2000, "_decoder", lambda wrong=wrong: lambda content, numthreads: wrong)
        assert _jpeg2000.decode_jpeg2000(data, "RGB") is None
        np.testing.assert_array_equal(np.asarray(eager.decoders.image(data)), RGB[..., :3])


def test_errors_are_pillows(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(content: bytes, numthreads: int) -> Any:
        raise RuntimeError("its own words")

    monkeypatch.setattr(_jpeg2000, "_decoder", lambda: fail)
    np.testing.assert_array_equal(np.asarray(eager.decoders.image(np.frombuffer(PLAIN, np.uint8))), RGB[..., :3])
    with pytest.raises(DataError, match="broken data stream"):
        eager.decoders.image(np.frombuffer(PLAIN[: len(PLAIN) // 2], np.uint8))


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imagecodecs", None)  # importing it fails
    _jpeg2000._decoder.cache_clear()
    try:
        assert _jpeg2000._decoder() is None
        np.testing.assert_array_equal(np.asarray(eager.decoders.image(np.frombuffer(PLAIN, np.uint8))), RGB[..., :3])
    finally:
        _jpeg2000._decoder.cache_clear()
