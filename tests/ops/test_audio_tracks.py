# SPDX-License-Identifier: Apache-2.0
"""``decoders.audio`` for files that PyAV reads: exact lengths, ranges, damaged and hostile files."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import eager, fn, pipeline_def
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError
from stoker.video.audio_track import audio_container, audio_track, read_audio

av = pytest.importorskip("av", reason="PyAV is not installed")
REFUSED = (ArgumentError, DataError, UnsupportedError)
RATE = 44100
# kind: muxer, encoder, sampling rate
KINDS = {
    "m4a": ("ipod", "aac", RATE),
    "mp4": ("mp4", "aac", 22050),
    "mov": ("mov", "pcm_s24le", RATE),
    "alac": ("ipod", "alac", RATE),
    "adts": ("adts", "aac", RATE),
    "mka": ("matroska", "aac", RATE),
    "webm": ("webm", "opus", 48000),
    "wma": ("asf", "wmav2", RATE),
    "wv": ("wv", "wavpack", RATE),
}
EXACT = ("m4a", "mp4", "mov", "alac", "webm", "wv")  # the container states the length in samples
LOSSLESS = ("mov", "alac", "wv")


def tones(frames: int, channels: int = 2) -> Any:
    """Return a rising tone, so that a shift shows."""
    t = np.arange(frames, dtype=np.float64)
    x = 0.4 * np.sin(0.02 * t + 1e-6 * t * t)
    return np.stack([x * (1 - 0.3 * c) for c in range(channels)]).astype(np.float32)


def encoded(kind: str, frames: int = 30000, channels: int = 2, options: dict[str, str] | None = None) -> bytes:
    form, codec, rate = KINDS[kind]
    layout, memory = {1: "mono", 2: "stereo"}[channels], io.BytesIO()
    with av.open(memory, "w", format=form, options=options or {}) as file:
        stream = file.add_stream(codec, rate=rate, layout=layout)
        stream.bit_rate = 128000
        context = stream.codec_context
        if codec == "wavpack":
            context.format = "s16p"
        whole = av.AudioFrame.from_ndarray(tones(frames, channels), format="fltp", layout=layout)
        whole.sample_rate, whole.pts = rate, 0
        resampler = av.AudioResampler(context.format.name, layout, rate, context.frame_size or 0)
        for frame in resampler.resample(whole) + resampler.resample(None):
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return memory.getvalue()


def decode(data: bytes, **arguments: Any) -> tuple[Any, float]:
    samples, rate = eager.decoders.audio(np.frombuffer(data, np.uint8), **arguments)
    return np.asarray(samples), float(rate)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frames", [1000, 1024, 30000])
def test_lengths_are_those_of_the_container(kind: str, frames: int) -> None:
    if kind == "wma" and frames < 2048:
        return  # the writer of these files loses so short ones
    data = encoded(kind, frames)
    samples, rate = decode(data)
    assert rate == KINDS[kind][2]
    assert samples.dtype == np.float32
    assert samples.shape[1] == 2
    assert len(samples) == frames if kind in EXACT else abs(len(samples) - frames) < 4096  # whole packets
    if kind in LOSSLESS:
        np.testing.assert_allclose(samples, tones(frames).T, atol=2e-5)
    elif kind in (*EXACT, "mka") and frames > 2048:
        errors = {
            lag: np.abs(np.roll(samples, lag, 0)[2000:20000] - tones(20000).T[2000:]).mean() for lag in range(-3, 4)
        }
        assert min(errors, key=errors.__getitem__) == 0, errors


@pytest.mark.parametrize("kind", LOSSLESS)
def test_one_sample(kind: str) -> None:
    assert decode(encoded(kind, 1))[0].shape == (1, 2)


@pytest.mark.parametrize("kind", LOSSLESS)
@pytest.mark.parametrize("dtype", ["int16", "int32", "float32"])
def test_whole_numbers_keep_their_scale(kind: str, dtype: str) -> None:
    data = encoded(kind, 3000, 1)
    full, whole = decode(data, dtype="int32")[0], decode(data, dtype=dtype)[0]
    want = {"int16": full >> 16, "int32": full, "float32": full.astype(np.float32) * np.float32(2.0**-31)}[dtype]
    np.testing.assert_array_equal(whole, want)
    assert decode(data, dtype=dtype, downmix=True)[0].shape == (3000,)


def patched(data: bytes, name: bytes, at: int, value: int) -> bytes:
    """Return a file with a number in the box that has a name."""
    start = data.index(name) + 4 + at
    return data[:start] + value.to_bytes(4, "big") + data[start + 4 :]


@pytest.mark.parametrize("priming", [0, 64, 1024, 2112, 3000])
def test_the_edit_list_of_an_mp4_file_cuts_both_ends(priming: int) -> None:
    data = encoded("m4a")
    edits = 8  # version and flags, number of edits; then duration, first sample
    open_ended = patched(patched(data, b"elst", edits, 10_000), b"elst", edits + 4, 0)
    everything = decode(open_ended)[0]
    assert len(everything) == 31024  # with the encoder's priming of 1024
    got = decode(patched(patched(data, b"elst", edits, 500), b"elst", edits + 4, priming))[0]
    assert len(got) == 22050  # half a second
    np.testing.assert_array_equal(got, everything[priming : priming + 22050])


def test_fragments_have_no_other_length() -> None:
    whole = decode(encoded("m4a"))[0]
    options = {"movflags": "frag_keyframe+empty_moov+default_base_moof", "frag_duration": "100000"}
    parts = decode(encoded("mp4", options=options))[0]
    assert len(parts) == 30000 + 1024  # without an edit list, which this writer leaves out
    assert whole.shape == (30000, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_ranges_are_parts_of_the_whole(kind: str) -> None:
    data = encoded(kind)
    whole, rate = decode(data)
    for offset, duration in ((0.1, 0.2), (0.0, 0.05), (0.3, 9.0)):
        begin, count = round(offset * rate), round(duration * rate)
        got = decode(data, offset=offset, duration=duration)[0]
        np.testing.assert_array_equal(got, whole[begin : begin + count])
    mean = decode(data, downmix=True)[0]
    np.testing.assert_array_equal(mean, whole[:, 0] * np.float32(0.5) + whole[:, 1] * np.float32(0.5))
    assert decode(data, sample_rate=16000.0, downmix=True)[1] == 16000
    with pytest.raises(REFUSED, match="at most 5000 samples"):
        decode(data, max_samples=5000)


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_cut_off_are_errors(kind: str) -> None:
    data = encoded(kind, 9000)
    size, end = len(data), time.monotonic() + 4
    cuts = [*range(64), *range(64, size - 64, max(size // 60, 1)), *range(size - 64, size)]
    frames = set()
    if kind == "adts":  # a list of frames without a head: it may end after any
        at = 0
        while at < size:
            frames.add(at)
            at += (data[at + 3] & 3) << 11 | data[at + 4] << 3 | data[at + 5] >> 5
    done = 0
    for cut in np.random.default_rng(0).permutation(cuts).tolist():
        if cut in frames and cut:
            assert len(decode(data[:cut])[0]) == 1024 * sorted(frames).index(cut)
            continue
        if kind == "wv" and cut >= data.index(b"APETAGEX"):  # all samples are there
            continue
        with pytest.raises(REFUSED):
            decode(data[:cut])
        done += 1
        if time.monotonic() > end:
            break
    assert done > 20


def test_damaged_files_never_end_the_process() -> None:
    rng, end, done = np.random.default_rng(5), time.monotonic() + 4, 0
    files = {kind: np.frombuffer(encoded(kind, 4000), np.uint8) for kind in KINDS}
    while time.monotonic() < end and done < 1500:
        file = files[list(KINDS)[done % len(KINDS)]].copy()
        for at in rng.integers(0, len(file) if done % 2 else min(400, len(file)), rng.integers(1, 5)):
            file[at] = rng.integers(0, 256)
        done += 1
        try:
            samples, _ = eager.decoders.audio(file, max_samples=1 << 20)
        except REFUSED:
            continue
        assert np.asarray(samples).dtype == np.float32
    assert done > 50


def test_formats_are_chosen_by_the_first_bytes_alone() -> None:
    found = {kind: audio_container(encoded(kind, 1000)) for kind in KINDS}
    assert found == {
        "m4a": "mov", "mp4": "mov", "mov": "mov", "alac": "mov", "adts": "aac", "mka": "matroska", "webm": "matroska",
        "wma": "asf", "wv": "wv",
    }  # fmt: skip
    assert audio_container(b"ID3\4\0\0\0\0\0\4tags" + encoded("adts", 1000)) == "aac"
    lists = b"#EXTM3U\nhttp://a/b", b"ffconcat version 1.0"
    for other in (b"", b"\xff", b"\xff\xfb\x90\x64aaaaaaa", b"fLaC", b"OggS", b"RIFF", *lists):
        assert audio_container(other) is None
    with pytest.raises(REFUSED):
        decode(b"#EXTM3U\n#EXTINF:1,\nfile:///etc/hostname\n")


def test_a_video_without_sound_is_refused(tmp_path: Path) -> None:
    memory = io.BytesIO()
    with av.open(memory, "w", format="mp4") as file:
        stream = file.add_stream("mpeg4", rate=10)
        stream.width = stream.height = 32
        stream.pix_fmt = "yuv420p"
        file.mux(stream.encode(av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8), format="rgb24")))
        file.mux(stream.encode(None))
    with pytest.raises(REFUSED, match="expected an audio stream"):
        decode(memory.getvalue())


def test_the_package_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "av", None)
    data = b"\0\0\0\x08ftyp"
    with pytest.raises(UnsupportedError, match="pip install av"):
        audio_track(data, "mov")
    with pytest.raises(UnsupportedError, match="pip install av"):
        list(read_audio(data, "mov", 0, 1))


def test_readers_list_and_decode_such_files(tmp_path: Path) -> None:
    folder = tmp_path / "music"
    folder.mkdir()
    for kind, name in (("m4a", "a.m4a"), ("adts", "b.aac"), ("wv", "c.wv")):
        (folder / name).write_bytes(encoded(kind, 8000))

    @pipeline_def(batch_size=3, num_threads=2)
    def pipe() -> Any:
        return fn.readers.audio(file_root=str(tmp_path), downmix=False)

    with pipe() as made:
        audio, rate, _ = made.run()
    for row, name in zip(audio, ("a.m4a", "b.aac", "c.wv"), strict=True):
        np.testing.assert_array_equal(np.asarray(row), decode((folder / name).read_bytes())[0])
    assert [float(r) for r in rate] == [RATE] * 3
