# SPDX-License-Identifier: Apache-2.0
"""First frames of GIF files are decoded natively, with the pixels of the Pillow twin, which gets unusual files."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from gif_writer import extension, gif
from lzw_writer import lzw, packed
from PIL import Image
from test_png import ANY, BGR, GRAY, RGB, YCBCR, decoded

from stoker import eager
from stoker.contract.errors import DataError
from stoker.contract.types import DType, ImageType
from stoker.ops.image._pillow_decoding import pillow_decode
from stoker.testing.tolerances import assert_exact

RANDOM = np.random.default_rng(7)
COLOURS = RANDOM.bytes(768)
LOCAL = RANDOM.bytes(48)
GRAYS = bytes(x for i in range(256) for x in (i, i, i))
LOOP = extension(0xFF, b"NETSCAPE2.0", b"\1\0\0")


def numbers(height: int, width: int, bits: int = 8) -> np.ndarray[Any, Any]:
    """Return numbers of colours with runs, gradients and noise."""
    ramp = (np.arange(width)[None, :] // 3 + np.arange(height)[:, None] // 2) % (1 << bits)
    noise = RANDOM.integers(0, 1 << bits, (height, width))
    return np.where(RANDOM.random((height, width)) < 0.3, noise, ramp)


def codes_of(*codes: int) -> bytes:
    """Return codes of 9 bits."""
    return packed([(code, 9) for code in codes])


def saved(mode: str, **options: Any) -> bytes:
    out = io.BytesIO()
    values = numbers(40, 51).astype(np.uint8)
    Image.fromarray(np.dstack([values, values[::-1], values[:, ::-1]])).convert(mode).save(out, "GIF", **options)
    return out.getvalue()


FILES = {
    f"{bits} bits, {height}x{width}{', interlaced' if interlaced else ''}":
        gif(numbers(height, width, bits), COLOURS[: 3 << bits], bits=max(2, bits), interlaced=interlaced)
    for bits in range(1, 9) for height, width in ((1, 1), (3, 2), (9, 17), (70, 31)) for interlaced in (False, True)
}  # fmt: skip
FILES |= {
    f"{height} interlaced rows": gif(numbers(height, 5), COLOURS, interlaced=True)
    for height in (2, 4, 5, 6, 7, 8, 10, 11, 12, 13, 16)
}
FILES |= {
    f"{name}{', interlaced' if interlaced else ''}": gif(numbers(20, 30, 4), COLOURS, interlaced=interlaced, **options)
    for interlaced in (False, True)
    for name, options in {
        "local palette": {"local": LOCAL},
        "transparent": {"transparent": 3}, "transparent outside of the palette": {"local": LOCAL, "transparent": 200},
        "offset": {"screen": (40, 50), "at": (7, 9)}, "background": {"screen": (40, 50), "background": 5},
        "offset and transparent": {"screen": (40, 50), "at": (7, 9), "transparent": 3},
        "low": {"screen": (20, 50), "at": (0, 9), "local": LOCAL}, "wide": {"screen": (50, 30), "at": (7, 0)},
        "beyond the screen": {"screen": (10, 12), "at": (7, 9)}, "no screen": {"screen": (0, 0)},
        "blocks of a byte": {"block": 1}, "comment": {"before": extension(0xFE, b"one", b"two")},
        "empty comment": {"before": b"!\xfe\0"}, "loop": {"before": LOOP},
        "text": {"before": extension(1, bytes(12), b"text")},
        "other application": {"before": extension(0xFF, b"x" * 11)},
        "two transparent": {"before": extension(0xF9, b"\1\0\0\7"), "transparent": 2},
        "opaque after transparent": {"before": extension(0xF9, b"\1\0\0\7") + extension(0xF9, b"\0\0\0\2")},
        "no trailer": {"after": b""}, "rest": {"after": b"rest"},
    }.items()
}  # fmt: skip
FILES |= {
    "grays": gif(numbers(30, 41), GRAYS), "few grays": gif(numbers(30, 41, 3), GRAYS[:24]),
    "transparent grays": gif(numbers(30, 41), GRAYS, transparent=4), "no palette": gif(numbers(30, 41)),
    "no palette and transparent": gif(numbers(30, 41), transparent=4, screen=(50, 50)),
    "numbers outside of the palette": gif(numbers(30, 41), COLOURS[:48]),
    "full table": gif(numbers(200, 200), COLOURS, clears=False),
    "cleared table": gif(numbers(200, 200), COLOURS),
    "full table of 2 bits": gif(numbers(300, 200, 2), COLOURS[:12], bits=2, clears=False),
    "long strings": gif(np.zeros((500, 500)), COLOURS),
    "long strings of 2 bits": gif(np.zeros((500, 500)), COLOURS, bits=2),
    "saved": saved("P"), "saved gray": saved("L"), "saved colours": saved("RGB"), "saved transparent": saved("RGBA"),
    "saved interlaced": saved("P", interlace=1),
    "saved animation": saved("RGB", save_all=True, append_images=[Image.new("RGB", (51, 40))]),
    "no first clear": gif(numbers(1, 3), COLOURS, codes=codes_of(1, 2, 3, 257)),
    "two clears": gif(numbers(1, 3), COLOURS, codes=codes_of(256, 256, 1, 2, 256, 3, 257)),
    "no end": gif(numbers(1, 3), COLOURS, codes=codes_of(256, 1, 2, 3)),
    "the string being made": gif(numbers(2, 3), COLOURS, codes=codes_of(256, 7, 258, 259, 257)),
}  # fmt: skip
UNUSUAL = {
    "bytes between blocks": gif(numbers(5, 6), COLOURS, before=b"\0\0"),
    "an empty extension": gif(numbers(5, 6), COLOURS, before=extension(0xFF)),
    "a loop without a count": gif(numbers(5, 6), COLOURS, before=extension(0xFF, b"NETSCAPE2.0")),
    "a gray frame": gif(numbers(20, 30, 4), COLOURS, local=GRAYS[:48]),
    "codes of one bit": gif(np.zeros((1, 2)), COLOURS[:6], bits=1, codes=packed([(2, 2), (0, 2), (0, 2), (3, 2)])),
    "codes after their end": gif(numbers(1, 3), COLOURS, codes=codes_of(256, 1, 257)),
    "a short control": gif(numbers(5, 6), COLOURS, before=extension(0xF9, b"\1\0")),
    "a frame without pixels": gif(np.zeros((0, 6)), COLOURS),
    "codes of 9 bits": gif(numbers(1, 3), COLOURS, bits=9, codes=packed([(512, 10), (1, 10), (2, 10), (3, 10)])),
    "a wrong code": gif(numbers(1, 3), COLOURS, codes=codes_of(256, 1, 300, 257)),
    "a string first": gif(numbers(1, 3), COLOURS, codes=codes_of(256, 258, 1, 257)),
    "no frame": b"GIF89a\5\0\5\0\0\0\0;",
}


@pytest.mark.parametrize("output_type", [RGB, BGR, GRAY, ANY])
@pytest.mark.parametrize("scale", [1, 4])
def test_pixels_equal_pillows(output_type: ImageType, scale: int) -> None:
    got = decoded([*FILES.values()], output_type=output_type, scale_denom=scale)
    for pixels, (name, data) in zip(got, FILES.items(), strict=True):
        want = pillow_decode(np.frombuffer(data, np.uint8), output_type, True, scale)
        np.testing.assert_array_equal(pixels, want, name, strict=True)


def test_shapes_wide_types_and_indices() -> None:
    kinds: list[dict[str, Any]] = [{"dtype": DType.UINT16}, {"dtype": DType.FLOAT}, {"indices": True}]
    for kind in kinds:
        arguments = {"palette_indices": True} if "indices" in kind else kind
        for pixels, (name, data) in zip(
            decoded([*FILES.values()], output_type=ANY, **arguments), FILES.items(), strict=True
        ):
            want = pillow_decode(np.frombuffer(data, np.uint8), ANY, True, **kind)
            np.testing.assert_array_equal(pixels, want, name, strict=True)
    for data in FILES.values():
        want = pillow_decode(np.frombuffer(data, np.uint8), ANY, True)
        assert tuple(eager.peek_image_shape(data, image_type=ANY)) == want.shape


def test_windows_and_limits() -> None:
    for name, data in FILES.items():
        whole = eager.decoders.image(data)
        height, width = whole.shape[:2]
        y, x = height // 3, width // 4
        for end in (height, (y + height + 1) // 2):
            cut = eager.decoders.image_slice(data, start=(x, y), shape=(width - x, end - y))
            np.testing.assert_array_equal(cut, whole[y:end, x:], name, strict=True)
    with pytest.raises(DataError, match="at most 39999 pixels"):
        eager.decoders.image(FILES["full table"], max_pixels=39999)


def outcome(data: bytes, **arguments: Any) -> Any:
    try:
        return eager.decoders.image(np.frombuffer(data, np.uint8), output_type=ANY, **arguments)
    except DataError:
        return None


def test_unusual_files_are_left_to_pillow() -> None:
    accepted = 0
    for name, data in UNUSUAL.items():
        try:
            want = pillow_decode(np.frombuffer(data, np.uint8), ANY, True)
        except Exception:
            assert outcome(data) is None, name
            continue
        np.testing.assert_array_equal(decoded([data], natively=False, output_type=ANY)[0], want, name, strict=True)
        accepted += 1
    assert accepted > 1
    colours = [FILES["saved"], FILES["transparent"]]
    for pixels, data in zip(decoded(colours, natively=False, output_type=YCBCR), colours, strict=True):
        assert_exact(pixels, pillow_decode(np.frombuffer(data, np.uint8), YCBCR, True))


@pytest.mark.parametrize("name", ["4 bits, 9x17", "8 bits, 9x17, interlaced", "offset and transparent", "comment"])
def test_truncation_at_every_byte(name: str) -> None:
    """A file is an error, with Pillow's reason, until its pixels are complete."""
    data = FILES[name]
    want = eager.decoders.image(data, output_type=ANY)
    ends = [size for size in range(len(data)) if (got := outcome(data[:size])) is not None and got.shape == want.shape]
    for size in ends:
        assert_exact(outcome(data[:size]), want)
    assert all(size > len(data) - 8 for size in ends)


@pytest.mark.filterwarnings("ignore:::PIL")
@pytest.mark.parametrize(
    "name", ["4 bits, 70x31", "8 bits, 70x31, interlaced", "local palette", "offset and transparent", "loop"]
)
def test_changed_files_end_as_with_pillow(name: str) -> None:
    """A file that is accepted has Pillow's pixels."""
    data = FILES[name]
    accepted = 0
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(RANDOM.integers(1, 4)):
            changed[RANDOM.integers(6, len(data))] = RANDOM.integers(0, 256)
        got = outcome(bytes(changed), max_pixels=1 << 20)
        if got is not None:
            assert_exact(got, pillow_decode(np.frombuffer(changed, np.uint8), ANY, True))
            accepted += 1
    assert accepted > 20


def test_a_frame_that_cannot_have_its_pixels_takes_no_memory() -> None:
    data = bytearray(gif(numbers(5, 6), COLOURS))
    at = data.index(b",") if data.index(b",") > 780 else data.index(b",", 781)
    data[at + 5 : at + 9] = b"\xff\xff\xff\xff"
    with pytest.raises(DataError):
        eager.decoders.image(bytes(data), max_pixels=0)


def test_codes_of_every_length() -> None:
    """The writer's codes and the reader agree where codes grow, for every number of pixels."""
    row = RANDOM.integers(0, 4, 2600)
    files = [
        gif(row[None, :n], COLOURS[:12], bits=2, codes=lzw(bytes(row[:n].tolist()), 2)) for n in range(1, 2600, 13)
    ]
    for pixels, data in zip(decoded(files, output_type=ANY, palette_indices=True), files, strict=True):
        assert_exact(pixels[..., 0], row[None, : pixels.shape[1]].astype(np.uint8))
        assert_exact(pixels, pillow_decode(np.frombuffer(data, np.uint8), ANY, True, indices=True))
