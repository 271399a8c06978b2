# SPDX-License-Identifier: Apache-2.0
"""``torchvision.set_video_backend("stoker")``: frames, times and audio of ``read_video`` and ``VideoReader``."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision

import stoker.torchvision
from stoker import eager
from stoker.contract.errors import DataError
from tests.clips import fully_decoded, write_video

av = pytest.importorskip("av", reason="PyAV is not installed")
FRAMES = 30
RATE = 8000


@pytest.fixture(autouse=True)
def backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))
    assert stoker.torchvision is not None
    before = {name: vars(torchvision.io).get(name) for name in ("read_video", "read_video_timestamps", "VideoReader")}
    assert torchvision.get_video_backend() != "stoker"
    torchvision.set_video_backend("stoker")
    torchvision.set_video_backend("stoker")  # a second call has no effect
    assert torchvision.get_video_backend() == "stoker"
    yield
    torchvision.set_video_backend("pyav")
    assert torchvision.get_video_backend() == "pyav"
    assert {name: vars(torchvision.io).get(name) for name in before} == before


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(write_video(tmp_path / "a.mp4", "libx264", {"bf": "2", "threads": "1"}, frames=FRAMES))


def with_sound(path: Path, samples: int) -> str:
    """Write a video of one second with PCM audio: a ramp."""
    with av.open(str(path), "w") as file:
        stream, sound = file.add_stream("mpeg4", rate=25), file.add_stream("pcm_s16le", rate=RATE, layout="mono")
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for number in range(25):
            pixels = np.full((48, 64, 3), 8 * number, np.uint8)
            file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        file.mux(stream.encode(None))
        tone = av.AudioFrame.from_ndarray(np.arange(samples, dtype=np.int16)[None], format="s16", layout="mono")
        tone.sample_rate, tone.pts = RATE, 0
        file.mux(sound.encode(tone))
        file.mux(sound.encode(None))
    return str(path)


def read(*arguments: Any, **more: Any) -> Any:
    return importlib.import_module("torchvision.io").read_video(*arguments, **more)


def test_frames_of_a_span(path: str) -> None:
    expected = torch.from_numpy(np.stack(fully_decoded(path)))
    times, rate = torchvision.io.read_video_timestamps(path, pts_unit="sec")
    assert rate == 30.0 and times == [Fraction(n, 30) for n in range(FRAMES)]
    ticks, _ = torchvision.io.read_video_timestamps(path)
    for arguments, first, end in (
        ({}, 0, FRAMES),
        ({"end_pts": math.inf, "pts_unit": "sec"}, 0, FRAMES),
        ({"start_pts": times[7], "end_pts": times[12], "pts_unit": "sec"}, 7, 13),
        ({"start_pts": 0.25, "end_pts": 0.5, "pts_unit": "sec"}, 7, 16),  # frame 7 is shown at 0.25 s
        ({"start_pts": ticks[3], "end_pts": ticks[3]}, 3, 4),
        ({"start_pts": 50, "pts_unit": "sec"}, FRAMES - 1, FRAMES),
    ):
        frames, audio, info = read(path, **arguments)
        assert torch.equal(frames, expected[first:end]), arguments
        assert audio.shape == (1, 0) and info == {"video_fps": 30.0}
    frames, _, _ = read(path, output_format="tchw")
    assert torch.equal(frames, expected.permute(0, 3, 1, 2))


def test_audio_of_the_span(tmp_path: Path) -> None:
    path = with_sound(tmp_path / "a.mov", RATE)
    ramp = np.arange(RATE, dtype=np.float32) / 32768
    _, audio, info = read(path, pts_unit="sec")
    assert info == {"video_fps": 25.0, "audio_fps": RATE}
    np.testing.assert_array_equal(audio.numpy(), ramp[None])
    frames, audio, _ = read(path, 0.2, 0.4, pts_unit="sec")
    assert len(frames) == 6
    np.testing.assert_array_equal(audio.numpy(), ramp[None, 1600:3200])


def test_refusals(path: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="File not found"):
        read(str(tmp_path / "missing.mp4"))
    with pytest.raises(ValueError, match="`output_format`"):
        read(path, output_format="CTHW")
    with pytest.raises(ValueError, match="`end_pts`"):
        read(path, 2, 1)
    with pytest.raises(ValueError, match="`pts_unit`"):
        read(path, pts_unit="frames")
    with pytest.raises(ValueError, match="`pts_unit`"):
        torchvision.io.read_video_timestamps(path, pts_unit="frames")
    (tmp_path / "text.mp4").write_text("no video")
    with pytest.raises(DataError):
        read(str(tmp_path / "text.mp4"))


def reader(*arguments: Any, **more: Any) -> Any:
    return importlib.import_module("torchvision.io").VideoReader(*arguments, **more)


def test_reader_of_frames(path: str) -> None:
    expected = torch.from_numpy(np.stack(fully_decoded(path))).permute(0, 3, 1, 2)
    content = Path(path).read_bytes()
    for source in (path, content, torch.frombuffer(bytearray(content), dtype=torch.uint8)):
        frames = list(reader(source))
        assert [f["pts"] for f in frames] == [n / 30 for n in range(FRAMES)]
        assert torch.equal(torch.stack([f["data"] for f in frames]), expected)
    opened = reader(path, "video:0", num_threads=2)
    assert opened.get_metadata() == {"video": {"duration": [1.0], "fps": [30.0]}}
    assert next(opened)["pts"] == 0
    for time, first in ((-1, 0), (0, 0), (7 / 30, 7), (0.25, 8), (0.5, 15), (5, FRAMES)):
        assert [f["pts"] for f in opened.seek(time)] == [n / 30 for n in range(first, FRAMES)], time
    with pytest.raises(StopIteration):
        next(opened)
    assert opened.set_current_stream("video") and torch.equal(next(opened)["data"], expected[0])


def test_reader_seeks_key_frames(tmp_path: Path) -> None:
    path = str(write_video(tmp_path / "k.mp4", "libx264", {"g": "10", "sc_threshold": "0", "threads": "1"}, frames=30))
    opened = reader(path)
    for time, first in ((0, 0), (0.3, 0), (10 / 30, 10), (0.65, 10), (0.7, 20), (9, 20), (-1, 0)):
        assert next(opened.seek(time, keyframes_only=True))["pts"] == first / 30, time


def test_reader_refusals(path: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="File not found"):
        reader(str(tmp_path / "missing.mp4"))
    for stream in ("video:1", "text", "audio:x", "audio:-1", "audio:", "subtitles"):
        with pytest.raises(ValueError, match="`stream`"):
            reader(path, stream)
        with pytest.raises(ValueError, match="`stream`"):
            reader(path).set_current_stream(stream)
    for stream in ("audio", "audio:2"):
        with pytest.raises(ValueError, match="of the 0 of the file"):
            reader(path, stream)
    for source in ("", b"", torch.empty(0, dtype=torch.uint8), 3):
        with pytest.raises(ValueError, match="`src`"):
            reader(source)
    with pytest.raises(ValueError, match="`time_s`"):
        reader(path).seek(math.nan)
    with pytest.raises(DataError):
        reader(b"no video")


def test_reader_of_audio(tmp_path: Path) -> None:
    path, ramp = with_sound(tmp_path / "a.mov", RATE), np.arange(RATE, dtype=np.float32) / 32768
    for source in (path, Path(path).read_bytes()):
        opened = reader(source, "audio")
        found = list(opened)
        assert all(f["data"].dtype == torch.float32 and f["data"].shape[1] == 1 for f in found)
        np.testing.assert_array_equal(torch.cat([f["data"] for f in found])[:, 0].numpy(), ramp)
        begins = np.cumsum([0] + [len(f["data"]) for f in found])[:-1]
        np.testing.assert_allclose([f["pts"] for f in found], begins / RATE, atol=1e-9)
        assert len(found) > 4, "several frames, among which to seek"
        for time in (-1.0, 0.0, 0.3, float(begins[2] / RATE), 0.99, 7.0):
            first = int(np.searchsorted(begins / RATE, max(time, 0.0) - 1e-6))
            assert [f["pts"] for f in opened.seek(time)] == [f["pts"] for f in found[first:]], time
            before = max(int(np.searchsorted(begins / RATE, max(time, 0.0) + 1e-6)) - 1, 0)
            after = [f["pts"] for f in opened.seek(time, keyframes_only=True)]
            assert after == [f["pts"] for f in found[before:]], time
        with pytest.raises(StopIteration):
            next(opened)
        facts = opened.get_metadata()
        assert facts == {
            "video": {"duration": [1.0], "fps": [25.0]}, "audio": {"duration": [1.0], "framerate": [float(RATE)]},
        }  # fmt: skip
        assert opened.set_current_stream("video:0") and next(opened)["data"].shape == (3, 48, 64)
        assert opened.set_current_stream("audio:0") and torch.equal(next(opened)["data"], found[0]["data"])
        with pytest.raises(ValueError, match="of the 1 of the file"):
            opened.set_current_stream("audio:1")
        assert next(opened)["pts"] == found[1]["pts"], "a refused stream changes nothing"


def test_reader_of_coded_audio(tmp_path: Path) -> None:
    """Streams of lossy codecs: the samples of the whole file, wherever a seek lands."""
    path = str(tmp_path / "a.mp4")
    tone = np.sin(np.arange(3 * 44100, dtype=np.float64) * 0.05).astype(np.float32)
    frames = np.zeros((75, 48, 64, 3), np.uint8)
    eager.video.write(path, frames, fps=25, audio=np.stack([tone, -tone], 1) * np.float32(0.5), sample_rate=44100)
    opened = reader(path, "audio")
    found = list(opened)
    whole = torch.cat([f["data"] for f in found])
    assert whole.shape[1] == 2 and abs(len(whole) - len(tone)) <= 2048
    assert np.abs(whole[4096:-4096, 0].numpy() - 0.5 * tone[4096 : len(whole) - 4096]).max() < 0.02
    for time in (0.0, 0.4, 1.7, 2.9):
        later = [f for f in found if f["pts"] >= time - 1e-6]
        again = list(opened.seek(time))
        assert [f["pts"] for f in again] == [f["pts"] for f in later]
        assert max(float((x["data"] - y["data"]).abs().max()) for x, y in zip(again, later, strict=True)) < 1e-4


def test_reader_of_audio_without_video(tmp_path: Path) -> None:
    path = str(tmp_path / "a.mp4")
    with av.open(path, "w") as file:
        sound = file.add_stream("aac", rate=44100, layout="mono")
        tone = av.AudioFrame.from_ndarray(np.zeros((1, 8192), np.float32), format="fltp", layout="mono")
        tone.sample_rate, tone.pts = 44100, 0
        file.mux(sound.encode(tone))
        file.mux(sound.encode(None))
    opened = reader(path, "audio")
    assert list(opened.get_metadata()) == ["audio"] and next(opened)["data"].shape[1] == 1
    with pytest.raises(DataError):
        opened.set_current_stream("video")


def test_reader_of_damaged_audio(tmp_path: Path) -> None:
    path = tmp_path / "a.mp4"
    noise = np.random.default_rng(3).uniform(-0.5, 0.5, 44100).astype(np.float32)
    eager.video.write(str(path), np.zeros((25, 48, 64, 3), np.uint8), fps=25, audio=noise, sample_rate=44100)
    content = bytearray(path.read_bytes())
    with av.open(str(path)) as file:
        packets = [(p.pos, p.size) for p in file.demux(file.streams.audio[0]) if p.size]
    at, size = packets[len(packets) // 2]
    content[at : at + size] = bytes(255 for _ in range(size))
    opened = reader(bytes(content), "audio")
    with pytest.raises(DataError):
        list(opened)
