# SPDX-License-Identifier: Apache-2.0
"""Audio of clips: the samples of the clip's time, each once; rates, channels, files without audio, damage."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import FRAMES, make_clip, number_in, picture

from stoker import eager, fn, pipeline_def
from stoker.contract.errors import ArgumentError, StokerError
from stoker.readers import _clip_audio
from stoker.video.clip_audio import read_span

av = pytest.importorskip("av", reason="PyAV is not installed")
RATE, FPS = 16000, 30


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))


def sound(channels: int, seconds: float = FRAMES / FPS) -> Any:
    """Return a track whose samples are all different: int16 (channels, samples)."""
    count = round(seconds * RATE)
    ramp = (np.arange(count) * 7919 % 65521 - 32760).astype(np.int16)
    return np.stack([np.roll(ramp, 1000 * k) for k in range(channels)])


def write(path: Path, codec: str, channels: int = 2, *, frames: int = FRAMES, late: int = 0) -> Path:
    """Write a video with audio. ``late``: samples after which the audio begins."""
    with av.open(str(path), "w") as file:
        video = file.add_stream("libx264", rate=FPS)
        video.width, video.height, video.pix_fmt = 160, 96, "yuv420p"
        video.options, video.codec_context.gop_size = {"threads": "1", "bf": "2"}, 12
        audio = file.add_stream(codec, rate=RATE, layout="stereo" if channels == 2 else "mono")
        samples = sound(channels)[:, : round(frames / FPS * RATE)]
        for first in range(0, samples.shape[1], 1024):
            part = np.ascontiguousarray(samples[:, first : first + 1024])
            planar = codec == "aac"
            form = "fltp" if planar else "s16"
            data = part.astype(np.float32) / 32768 if planar else part.T.reshape(1, -1)
            frame = av.AudioFrame.from_ndarray(
                np.ascontiguousarray(data), format=form, layout="stereo" if channels == 2 else "mono"
            )
            frame.sample_rate, frame.pts, frame.time_base = RATE, late + first, Fraction(1, RATE)
            file.mux(audio.encode(frame))
        file.mux(audio.encode(None))
        for i in range(frames):
            file.mux(video.encode(av.VideoFrame.from_ndarray(picture(i), format="rgb24")))
        file.mux(video.encode(None))
    return path


def rows_of(define: Callable[[], Any], batch_size: int = 1) -> list[Any]:
    @pipeline_def(batch_size=batch_size, num_threads=2, seed=5)
    def pipe() -> Any:
        return define()

    rows = []
    with pipe() as made:
        for _ in range(-(-next(iter(made.epoch_size().values())) // batch_size)):
            columns = [[np.asarray(x) for x in output] for output in made.run()]
            rows += list(zip(*columns, strict=True))
    return rows


def bounds(first: int, last: int) -> tuple[int, int]:
    return round(first / FPS * RATE), round((last + 1) / FPS * RATE)


@pytest.mark.parametrize("name", ["a.mov", "a.mkv"])
@pytest.mark.parametrize("channels", [1, 2])
def test_clips_have_the_samples_of_their_time(tmp_path: Path, name: str, channels: int) -> None:
    path = str(write(tmp_path / name, "pcm_s16le", channels))
    expected = sound(channels).T / np.float32(32768)
    slack = 17 if name.endswith("mkv") else 0  # Matroska stores milliseconds
    rows = rows_of(
        lambda: fn.readers.video(
            filenames=path, sequence_length=5, step=7, with_audio=True, enable_frame_num="sequence"
        )
    )
    assert len(rows) == 7
    for clip, numbers, audio, rate in rows:
        assert [number_in(x) for x in clip] == numbers.tolist()
        assert audio.dtype == np.float32 and rate == RATE and rate.shape == ()
        low, high = bounds(int(numbers[0]), int(numbers[-1]))
        assert abs(len(audio) - (high - low)) <= 2 * slack and audio.shape[1] == channels
        at = next(k for k in range(max(low - slack, 0), low + slack + 1) if (expected[k] == audio[0]).all())
        np.testing.assert_array_equal(audio, expected[at : at + len(audio)])


@pytest.mark.parametrize("threads", [1, 3])
def test_the_pipeline_gives_its_number_of_threads(
    tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    path, counts = str(write(tmp_path / "a.mov", "pcm_s16le")), set[int]()

    class Pool(ThreadPoolExecutor):
        def __init__(self, count: int, **options: Any) -> None:
            counts.add(count)
            super().__init__(count, **options)

    monkeypatch.setattr(_clip_audio, "ThreadPoolExecutor", Pool)

    @pipeline_def(batch_size=4, num_threads=threads, prefetch_queue_depth=1)
    def pipe() -> Any:
        return fn.readers.video(filenames=path, sequence_length=5, step=7, with_audio=True)[1]

    with pipe() as made:
        made.run()
    assert counts == {threads}


def test_consecutive_clips_have_each_sample_once(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mov", "pcm_s16le")
    rows = rows_of(
        lambda: fn.readers.video(filenames=str(path), sequence_length=7, pad_mode="constant", with_audio=True)
    )
    assert len(rows) == 7
    np.testing.assert_array_equal(np.concatenate([row[1] for row in rows]), sound(2).T / np.float32(32768))


@pytest.mark.parametrize("name", ["a.mp4", "a.mkv", "a.ts"])
def test_lossy_audio_is_that_of_the_full_decode(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, "aac")
    with av.open(str(path)) as file:
        frames = list(file.decode(audio=0))
        base = float(frames[0].pts * frames[0].time_base)
        start = float(file.streams.video[0].start_time * file.streams.video[0].time_base)
        whole = np.concatenate([x.to_ndarray() for x in frames], 1).T
    rows = rows_of(
        lambda: fn.readers.video(
            filenames=str(path), sequence_length=4, step=5, with_audio=True, enable_frame_num="scalar",
            random_shuffle=True,
        )
    )  # fmt: skip
    slack = 2 if name.endswith("mp4") else 20
    for _, number, audio, _ in rows:
        at = round((start + number[0] / FPS - base) * RATE)
        near = range(max(at - slack, 0), at + slack + 1)
        errors = [np.abs(whole[k : k + len(audio)] - audio[: len(whole) - k]).max() for k in near]
        assert min(errors) < 1e-6


def test_rates_channels_and_random_places(tmp_path: Path) -> None:
    path = str(write(tmp_path / "a.mov", "pcm_s16le"))

    def define() -> Any:
        common: dict[str, Any] = {"filenames": path, "sequence_length": 6, "with_audio": True, "random_crop": True}
        kept = fn.readers.video(**common, enable_frame_num="scalar", seed=3, downmix=True)
        return kept

    seen = set()
    for _, number, audio, rate in [row for _ in range(1) for row in rows_of(define)]:
        low, high = bounds(int(number[0]), int(number[0]) + 5)
        mixed = (sound(2).T[low:high] / np.float32(32768)).mean(1)
        np.testing.assert_allclose(audio, mixed, atol=1e-6)
        assert audio.ndim == 1 and rate == RATE
        seen.add(low)
    (row,) = rows_of(
        lambda: fn.readers.video_resize(
            filenames=path, sequence_length=FRAMES, size=(8, 9), with_audio=True, sample_rate=8000
        )
    )
    _, audio, rate = row
    assert rate == 8000
    whole = sound(2).T / np.float32(32768)
    np.testing.assert_allclose(
        audio, eager.audio_resample(whole, in_rate=RATE, out_rate=8000, filter="exact"), atol=1e-6
    )


def test_time_without_audio_is_silent(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mkv", "pcm_s16le", 1, frames=30, late=8000)
    span = read_span(str(path), 0.25, 0.75, RATE)
    assert span.shape == (8000, 1) and not span[:3900].any() and span[4200:].any()
    assert not read_span(str(path), 5.0, 5.5, RATE).any()


def test_files_without_audio_fail_their_rows(tmp_path: Path) -> None:
    silent, loud = make_clip(tmp_path, "h264"), write(tmp_path / "a.mov", "pcm_s16le", 1)

    def define() -> Any:
        return fn.readers.video(filenames=[str(silent), str(loud)], labels=[], sequence_length=24, with_audio=True)

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe() -> Any:
        return define()

    with pipe() as made:
        with pytest.raises(StokerError, match=r"expected an audio track in .*a\.mp4.* for `with_audio`, got none"):
            made.run()
        for _ in range(2):
            assert np.asarray(made.run()[1][0]).tolist() == [1]


def test_damaged_audio_fails_the_row(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mp4", "aac", 1)
    data = bytearray(path.read_bytes())
    with av.open(str(path)) as file:
        packets = [(p.pos, p.size) for p in file.demux(audio=0) if p.size]
    for pos, size in packets[8:12]:
        data[pos : pos + size] = b"\xff" * size
    path.write_bytes(data)

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe() -> Any:
        return fn.readers.video(filenames=str(path), sequence_length=24, with_audio=True)

    with pipe() as made, pytest.raises(StokerError, match=r"a\.mp4"):
        made.run()


def test_arguments_are_checked(tmp_path: Path) -> None:
    for arguments, text in (
        ({"sample_rate": 8000.0}, "`with_audio` with `sample_rate`"), ({"downmix": True}, "`with_audio` with"),
        ({"with_audio": True, "sample_rate": -1.0}, "a `sample_rate` above 0"),
        ({"with_audio": True, "sample_rate": np.nan}, "a `sample_rate` above 0"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=text):
            rows_of(lambda a=arguments: fn.readers.video(filenames="x.mp4", sequence_length=2, **a))
