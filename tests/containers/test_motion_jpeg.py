# SPDX-License-Identifier: Apache-2.0
"""Motion JPEG by the package's JPEG decoder: frames are Pillow's; FFmpeg decodes packets that are no such files."""

from __future__ import annotations

import io
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import fully_decoded, jpeg_frames, picture, plain_pixels, write_video
from PIL import Image

from stoker import eager, types
from stoker.contract.errors import DataError
from stoker.video.motion_jpeg import STANDARD_TABLES, complete_picture

av = pytest.importorskip("av", reason="PyAV is not installed")
FRAMES = 6


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))


def segments(content: bytes) -> list[tuple[int, int, int]]:
    """Return the kind, the begin and the end of each segment before the first scan."""
    found, at = [], 2
    while content[at + 1] != 0xDA:
        end = at + 2 + int.from_bytes(content[at + 2 : at + 4], "big")
        found.append((content[at + 1], at, end))
        at = end
    return found


def without(content: bytes, kind: int) -> bytes:
    for own, begin, end in reversed(segments(content)):
        if own == kind:
            content = content[:begin] + content[end:]
    return content


def jpeg(number: int, height: int = 96, width: int = 160, **options: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(picture(number, height, width)).save(out, "JPEG", **options)
    return out.getvalue()


def remuxed(path: Path, packets: list[bytes], size: tuple[int, int] = (96, 160)) -> Path:
    """Write packets as a stream of Motion JPEG."""
    with av.open(str(path), "w") as file:
        stream = file.add_stream("mjpeg", rate=30)
        (stream.height, stream.width), stream.pix_fmt = size, "yuvj420p"
        for number, content in enumerate(packets):
            packet = av.Packet(content)
            packet.stream, packet.pts, packet.dts, packet.time_base = stream, number, number, Fraction(1, 30)
            packet.is_keyframe = True
            file.mux(packet)
    return path


def ffmpeg(path: Path) -> list[Any]:
    with av.open(str(path)) as file:
        return [plain_pixels(frame) for frame in file.decode(video=0)]


def frames(path: Path, **options: Any) -> Any:
    with eager.video.open(path, **options) as video:
        return video[:]


@pytest.mark.parametrize("name", ["a.avi", "a.mov", "a.mkv"])
@pytest.mark.parametrize("pixels", ["yuvj420p", "yuvj422p", "yuvj444p"])
def test_frames_are_those_of_the_image_decoder(name: str, pixels: str, tmp_path: Path) -> None:
    path = write_video(tmp_path / name, "mjpeg", pixels=pixels, frames=FRAMES)
    expected = np.stack(fully_decoded(path))
    np.testing.assert_array_equal(frames(path), expected)
    np.testing.assert_array_equal(frames(path, image_type=types.BGR), expected[..., ::-1])
    np.testing.assert_array_equal(frames(path, dtype=types.UINT16), expected * np.uint16(257))
    np.testing.assert_array_equal(eager.decoders.video(np.fromfile(path, np.uint8), frames=[4, 1]), expected[[4, 1]])
    with av.open(str(path)) as file:
        packets = [bytes(p) for p in file.demux(video=0) if p.size]
    images = np.stack([eager.decoders.image(np.frombuffer(p, np.uint8)) for p in packets])
    np.testing.assert_array_equal(images, expected)
    stored = frames(path, image_type=types.YCbCr)
    np.testing.assert_array_equal(frames(path, image_type=types.YCbCr, dtype=types.UINT16), stored * np.uint16(256))
    with av.open(str(path)) as file:  # FFmpeg's transform rounds otherwise
        for own, frame in zip(stored, file.decode(video=0), strict=True):
            luma = np.frombuffer(frame.planes[0], np.uint8).reshape(-1, frame.planes[0].line_size)[:, :160]
            assert np.abs(own[..., 0].astype(int) - luma).max() <= 1


def test_the_standard_tables(tmp_path: Path) -> None:
    """Packets without Huffman tables have those of the standard, which Pillow writes."""
    whole = jpeg(3)
    tables: dict[int, bytes] = {}
    for content in (b"".join(whole[b + 4 : e] for k, b, e in segments(whole) if k == 0xC4), STANDARD_TABLES[4:]):
        while content:
            end = 17 + sum(content[1:17])
            assert tables.setdefault(content[0], content[:end]) == content[:end]
            content = content[end:]
    assert sorted(tables) == [0x00, 0x01, 0x10, 0x11]
    packets = [jpeg(n) for n in range(FRAMES)]
    expected = np.stack([np.asarray(Image.open(io.BytesIO(p))) for p in packets])
    bare = [without(p, 0xC4) for p in packets]
    assert not any(kind == 0xC4 for kind, _, _ in segments(bare[0]))
    np.testing.assert_array_equal(frames(remuxed(tmp_path / "a.avi", bare)), expected)
    np.testing.assert_array_equal(frames(remuxed(tmp_path / "b.avi", [p[:-2] for p in bare])), expected)


def fields(content: Callable[..., bytes]) -> list[bytes]:
    return [content(n, 48) + content(n, 48) for n in range(FRAMES)]


@pytest.mark.parametrize(
    ("packets", "is_own"),
    [
        ([jpeg(n, progressive=True) for n in range(FRAMES)], True),
        ([jpeg(n) + bytes(5) for n in range(FRAMES)], True),
        (fields(jpeg), False),
        ([jpeg(n, keep_rgb=True) for n in range(FRAMES)], False),
    ],
    ids=["progressive", "filled up", "two fields", "red, green and blue"],
)
def test_packets_of_other_forms(packets: list[bytes], is_own: bool, tmp_path: Path) -> None:
    path = remuxed(tmp_path / "a.avi", packets)
    if is_own:
        with av.open(str(path)) as file:
            expected = jpeg_frames(file, file.streams.video[0])
    else:
        expected = ffmpeg(path)
    assert len(expected) == FRAMES
    np.testing.assert_array_equal(frames(path), np.stack(expected))


def test_samples_of_the_limited_range(tmp_path: Path) -> None:
    path = write_video(
        tmp_path / "a.avi", "mjpeg", {"strict": "unofficial"}, pixels="yuv420p", frames=FRAMES, color=(5, 1)
    )
    np.testing.assert_array_equal(frames(path), np.stack(ffmpeg(path)))


def test_damage_is_an_error(tmp_path: Path) -> None:
    packets = [jpeg(n, quality=90) for n in range(FRAMES)]
    packets[2] = packets[2][: len(packets[2]) * 3 // 4] + b"\xff\xd9"
    path = remuxed(tmp_path / "a.mov", packets)
    with eager.video.open(path) as video:
        for number in (0, 1, 3, 5):
            np.testing.assert_array_equal(video[number], np.asarray(Image.open(io.BytesIO(packets[number]))))
        with pytest.raises(DataError, match="packet 2 holds a JPEG picture that is"):
            video[2]


def test_headers_that_are_cut_off() -> None:
    whole = jpeg(0)
    begin = segments(whole)[-1][2]
    for end in range(begin):
        assert complete_picture(whole[:end]) is None
    assert complete_picture(whole) == whole
    rng = np.random.default_rng(5)
    for _ in range(2000):
        spoilt = bytearray(whole[: begin + 40])
        for at in rng.integers(0, len(spoilt), 4):
            spoilt[at] = rng.integers(256)
        complete_picture(bytes(spoilt))
