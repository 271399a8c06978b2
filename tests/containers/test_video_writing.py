# SPDX-License-Identifier: Apache-2.0
"""``eager.video.write``: written videos are read back; audio tracks; wrong frames, and files that cannot be written."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import number_in, picture

from stoker import eager
from stoker.contract.errors import ArgumentError, UnsupportedError
from stoker.video.clip_audio import read_track

av = pytest.importorskip("av", reason="PyAV is not installed")


def made(count: int, height: int = 96, width: int = 160) -> np.ndarray:
    return np.stack([picture(i, height, width) for i in range(count)])


@pytest.mark.parametrize(
    ("name", "codec", "size"),
    [("a.mp4", "h264", (96, 160)), ("a.MOV", "h264", (91, 157)), ("a.mkv", "h264", (96, 157)),
     ("a.webm", "vp9", (91, 157))],
)  # fmt: skip
def test_frames_are_read_back(tmp_path: Path, name: str, codec: str, size: tuple[int, int]) -> None:
    frames = made(12, *size)
    eager.video.write(tmp_path / name, frames, fps=12.5)
    assert os.listdir(tmp_path) == [name]
    with eager.video.open(tmp_path / name) as video:
        assert video[:].shape == frames.shape and [number_in(x) for x in video] == list(range(12))
        facts = video.metadata
        assert (facts.codec, round(facts.average_fps, 3)) == (codec, 12.5)
        assert facts.duration_seconds == pytest.approx(12 / 12.5, abs=0.002)
        assert np.abs(video[:].astype(int) - frames).mean() < 8, "the colors of the frames, but for the lossy coding"
    with av.open(str(tmp_path / name)) as file:
        context = file.streams.video[0].codec_context
        assert (int(context.colorspace), int(context.color_range)) == (1, 1)


def test_colors_are_those_of_the_frames(tmp_path: Path) -> None:
    """Flat colors survive to the rounding of YCbCr; the matrix of BT.601 would be up to 20 levels away."""
    colors = np.array([(255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 255), (0, 0, 0), (200, 90, 30)], np.uint8)
    frames = np.broadcast_to(colors[:, None, None], (6, 64, 64, 3))
    eager.video.write(str(tmp_path / "a.mp4"), frames, fps=1)
    with eager.video.open(tmp_path / "a.mp4") as video:
        assert np.abs(video[:].astype(int) - frames).max() <= 4
        assert video.metadata.average_fps == 1


def test_frames_of_an_iterable(tmp_path: Path) -> None:
    gray = [np.full((32, 48, 1), 20 * i, np.uint8) for i in range(10)]

    def generator() -> Iterator[Any]:
        yield from gray

    eager.video.write(tmp_path / "a.mp4", generator(), fps=Fraction(30000, 1001))
    with eager.video.open(tmp_path / "a.mp4") as video:
        assert np.abs(video[:].astype(int) - np.stack(gray)).max() <= 3
        assert video.metadata.average_fps == 30000 / 1001
        eager.video.write(tmp_path / "b.mkv", video)
    with eager.video.open(tmp_path / "b.mkv") as copy:
        assert np.abs(copy[:].astype(int) - np.stack(gray)).max() <= 4


def sound(seconds: float, rate: int, channels: int) -> np.ndarray:
    """Return tones, another one in each channel, a quarter as loud in the second half."""
    t = np.arange(round(seconds * rate))[:, None] / rate
    tones = 0.4 * np.sin(2 * np.pi * np.array([440, 660])[:channels] * t)
    tones[len(t) // 2 :] *= 0.25
    return tones.astype(np.float32)


def track_of(path: Path) -> tuple[np.ndarray, int]:
    found = read_track(str(path), 0, math.inf)
    assert found is not None
    return found.samples, found.rate


@pytest.mark.parametrize(
    ("name", "codec", "rate", "channels"),
    [("a.mp4", "aac", 44100, 2), ("a.mov", "aac", 16000, 1), ("a.mkv", "aac", 48000, 2), ("a.webm", "opus", 48000, 1),
     ("a.webm", "opus", 48000, 2)],
)  # fmt: skip
def test_audio_is_read_back_in_sync(tmp_path: Path, name: str, codec: str, rate: int, channels: int) -> None:
    """The tones are those of the argument, but for the lossy coding, and at the same times to the sample."""
    audio = sound(1.0, rate, channels)
    eager.video.write(tmp_path / name, made(12), fps=12, audio=audio, sample_rate=rate)
    with av.open(str(tmp_path / name)) as file:
        assert [s.codec_context.codec.canonical_name for s in file.streams.audio] == [codec]
    samples, found = track_of(tmp_path / name)
    assert found == rate and samples.shape[1] == channels and 0 <= len(samples) - rate <= 2048
    middle = audio[10 : rate - 10]
    errors = {late: np.abs(samples[10 + late : rate - 10 + late] - middle).mean() for late in range(-10, 11)}
    assert min(errors, key=errors.__getitem__) == 0 and errors[0] < 0.01, "of tones whose mean is 0.16"
    with eager.video.open(tmp_path / name) as video:
        assert [number_in(x) for x in video] == list(range(12))
        assert video.metadata.begin_stream_seconds == 0


@pytest.mark.parametrize("seconds", [0.001, 0.5, 3.0])
def test_audio_that_is_shorter_or_longer_than_the_frames(tmp_path: Path, seconds: float) -> None:
    audio = sound(seconds, 16000, 1)
    eager.video.write(tmp_path / "a.mp4", iter(made(12)), fps=12, audio=audio, sample_rate=16000)
    samples, _ = track_of(tmp_path / "a.mp4")
    assert 0 <= len(samples) - len(audio) < 1024, "all samples, and at most the rest of a packet"
    with eager.video.open(tmp_path / "a.mp4") as video:
        assert len(video) == 12


def test_forms_of_audio(tmp_path: Path) -> None:
    """Whole numbers and samples without an axis of channels make the same track as float32 with one."""
    whole = np.rint(sound(0.5, 8000, 1) * 2**15).astype(np.int16)
    found = []
    for audio in (whole, whole[:, 0], (whole / np.float32(2**15)).astype(np.float32)):
        eager.video.write(tmp_path / "a.mp4", made(2), audio=audio, sample_rate=8000)
        found.append(track_of(tmp_path / "a.mp4")[0])
    assert np.abs(found[0]).max() > 0.3
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    eager.video.write(tmp_path / "a.mp4", made(2))
    assert read_track(str(tmp_path / "a.mp4"), 0, math.inf) is None, "without `audio` there is no track"


class OnAGpu:
    ndim = 4

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("cannot convert a tensor of a GPU")


@pytest.mark.parametrize(
    ("name", "frames", "fps", "text"),
    [
        ("a.avi", made(2), 25, r"a path that ends in \.mp4, \.mov, \.mkv, \.webm, got '\.avi' at"),
        ("a.mp4", made(2), 0, "from 0.1 to 1000 frames per second as `fps`, got 0"),
        ("a.mp4", made(2), float("nan"), "as `fps`, got nan"), ("a.mp4", made(2), "x", "as `fps`, got 'x'"),
        ("a.mp4", made(2)[0], 25, r"a list of frames, got an array \(96, 160, 3\)"),
        ("a.mp4", made(2).transpose(0, 3, 1, 2), 25, r"uint8 \(3, 96, 160\) as frame 0. Move the channels to the end"),
        ("a.mp4", made(2).astype(np.float32), 25, r"got float32 \(96, 160, 3\) as frame 0. Convert them"),
        ("a.mp4", [*made(2), picture(0, 90, 160)], 25, r"one shape, got \(96, 160, 3\) as frame 0 and \(90, 160, 3\)"),
        ("a.mp4", [], 25, "at least one frame, got none"), ("a.mp4", made(2)[:0], 25, "at least one frame, got none"),
        ("a.mp4", np.zeros((1, 1, 9, 3), np.uint8), 25, "of 2 to 16384 rows and columns, got 1 x 9"),
        ("a.mp4", 3, 25, "expected a clip"), ("a.mp4", "text", 25, "expected a clip"),
        ("a.mp4", OnAGpu(), 25, "cannot convert a tensor of a GPU. Copy it with"),
        (None, made(2), 25, "expected the path of a file, got None"),
        ("a\0.mp4", made(2), 25, "expected the path of a file"),
    ],
)  # fmt: skip
def test_misuse(tmp_path: Path, name: Any, frames: Any, fps: Any, text: str) -> None:
    old = tmp_path / "a.mp4"
    old.write_bytes(b"old")
    with pytest.raises(ArgumentError, match=rf"`eager\.video\.write`: .*{text}"):
        eager.video.write(name and tmp_path / name, frames, fps)
    assert old.read_bytes() == b"old" and os.listdir(tmp_path) == ["a.mp4"], "the old file stays, and no part is left"


@pytest.mark.parametrize(
    ("name", "audio", "rate", "text"),
    [
        ("a.mp4", np.zeros(9, np.float32), None, "`audio` together with `sample_rate`, got no `sample_rate`"),
        ("a.mp4", None, 16000, "got no `audio`"),
        ("a.mp4", np.zeros(9, np.float32), 16001, "one of 96000, .* as `sample_rate`, .* got 16001. Resample with"),
        ("a.webm", np.zeros(9, np.float32), 44100, "one of 48000, 24000, 16000, 12000, 8000 Hz .* got 44100"),
        ("a.mp4", np.zeros(9, np.float32), "x", "as `sample_rate`, .* got 'x'"),
        ("a.mp4", np.zeros(9, np.float64), 16000, r"float32 or int16 .* got float64 \(9, 1\)"),
        ("a.mp4", np.zeros((2, 9), np.float32), 16000, r"got float32 \(2, 9\). Move the channels to the end"),
        ("a.mp4", np.zeros((9, 3), np.int16), 16000, r"with 1 or 2 channels, got int16 \(9, 3\)$"),
        ("a.mp4", np.zeros(0, np.float32), 16000, r"got float32 \(0, 1\)"),
        ("a.mp4", np.array([0, np.nan], np.float32), 16000, "expected finite samples as `audio`"),
        ("a.mp4", OnAGpu(), 16000, "cannot convert a tensor of a GPU. Copy it with"),
    ],
)  # fmt: skip
def test_misuse_of_audio(tmp_path: Path, name: str, audio: Any, rate: Any, text: str) -> None:
    with pytest.raises(ArgumentError, match=rf"`eager\.video\.write`: .*{text}"):
        eager.video.write(tmp_path / name, made(2), audio=audio, sample_rate=rate)
    assert not os.listdir(tmp_path)


def test_files_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError):
        eager.video.write(tmp_path / "absent" / "a.mp4", made(2))
    (tmp_path / "a.mp4").mkdir()
    with pytest.raises(IsADirectoryError):
        eager.video.write(tmp_path / "a.mp4", made(2))
    assert os.listdir(tmp_path) == ["a.mp4"]
    if os.path.exists("/dev/full"):
        (tmp_path / ".b.mp4.part").symlink_to("/dev/full")
        with pytest.raises(OSError, match="No space left"):
            eager.video.write(tmp_path / "b.mp4", made(2))
    monkeypatch.setattr(av, "codecs_available", frozenset({"mpeg4"}))
    with pytest.raises(UnsupportedError, match="has the encoder libvpx-vp9, got one without it"):
        eager.video.write(tmp_path / "c.webm", made(2))
    monkeypatch.setattr(av, "codecs_available", frozenset({"libx264"}))
    with pytest.raises(UnsupportedError, match="has the encoder aac, got one without it"):
        eager.video.write(tmp_path / "c.mp4", made(2), audio=sound(0.1, 8000, 1), sample_rate=8000)
    assert not (tmp_path / "c.mp4").exists()
