# SPDX-License-Identifier: Apache-2.0
"""``eager.stream``: chunks of any size give the bits of the whole; what cannot stream says why."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stoker import eager, fn, math, pipeline_def, types
from stoker.contract.errors import ArgumentError, DataError, StateError, UnsupportedError

REFUSED = (ArgumentError, DataError, UnsupportedError)
Chain = Callable[[Any], Any]


def signal(size: int, dtype: Any = np.float32, channels: int = 0) -> Any:
    x = np.random.default_rng(size).normal(0, 0.1, (size, channels) if channels else size)
    return (x * 30000).astype(dtype) if np.dtype(dtype).kind == "i" else x.astype(dtype)


def whole(chain: Chain, x: Any) -> Any:
    """Apply a chain in a pipeline, where its kernels are joined."""

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe() -> Any:
        return chain(fn.external_source(source=lambda: [x]))

    with pipe() as made:
        return np.asarray(made.run()[0][0])


def in_chunks(chain: Chain, x: Any, sizes: list[int]) -> Any:
    stream = eager.stream(chain)
    parts, at = [], 0
    for i in range(1 << 20):
        size = sizes[i % len(sizes)]
        parts.append(stream.push(x[at : at + size]))
        at += size
        if at >= len(x):
            break
    parts.append(stream.finish())
    return np.concatenate(parts, stream.axis)


def mel(x: Any) -> Any:
    x = fn.audio_resample(x, in_rate=44100, out_rate=16000)
    x = fn.preemphasis_filter(x)
    x = fn.spectrogram(x, nfft=512, window_length=400, window_step=160)
    x = fn.mel_filter_bank(x, nfilter=40, sample_rate=16000.0)
    return fn.to_decibels(x, reference=1.0, cutoff_db=-80.0)


CHAINS: dict[str, Chain] = {
    "mel": mel,
    "mfcc": lambda x: fn.normalize(fn.mfcc(mel(x), n_mfcc=13), mean=-3.0, stddev=2.0),
    "mel by time": lambda x: fn.mfcc(
        fn.to_decibels(
            fn.mel_filter_bank(fn.spectrogram(x, window_length=300, window_step=77, layout="tf"), nfilter=20),
            reference=0.5,
        ),
        n_mfcc=12, axis=1,
    ),
    "mirrored": lambda x: fn.spectrogram(x, window_length=101, window_step=30),
    "zeros around": lambda x: fn.spectrogram(x, window_length=100, window_step=40, reflect_padding=False, power=1),
    "not centred": lambda x: fn.spectrogram(x, nfft=128, window_length=90, window_step=33, center_windows=False),
    "steps beyond frames": lambda x: fn.spectrogram(x, window_length=20, window_step=70, center_windows=False),
    "far steps": lambda x: fn.spectrogram(x, window_length=20, window_step=70),
    "stft": lambda x: fn.stft(x, nfft=120, window_length=80, window_step=31),
    "stft, odd": lambda x: fn.stft(x, nfft=75, window_length=75, window_step=20),
    "stft, not centred": lambda x: fn.stft(x, nfft=120, window_length=80, window_step=31, center_windows=False),
    "kaldi": lambda x: fn.features.kaldi_fbank(x, num_mel_bins=20, sample_frequency=8000.0),
    "kaldi, mirrored": lambda x: fn.features.kaldi_fbank(x, sample_frequency=8000.0, snip_edges=False),
    "nemo": lambda x: fn.features.nemo(x, features=20, sample_rate=8000.0, normalize="none"),
    "nemo, short frames": lambda x: fn.features.nemo(
        x, features=20, sample_rate=8000.0, window_size=0.007, n_fft=64, preemph=0.0, normalize="none"
    ),
    "inverse": lambda x: fn.istft(fn.stft(x, nfft=120, window_length=80, window_step=31), window_length=80, nfft=120,
                                  window_step=31),
    "inverse, far steps": lambda x: fn.istft(
        fn.stft(x, nfft=75, window_length=40, window_step=50), nfft=75, window_length=40, window_step=50
    ),
    "inverse, not centred": lambda x: fn.istft(
        fn.stft(x, nfft=64, window_length=64, window_step=16, center_windows=False) * 0.5, window_length=64,
        window_step=16, center_windows=False,
    ),
    "numbers with the signal": lambda x: math.log(math.abs(1 - fn.features.kaldi_fbank(
        32768 * x, num_mel_bins=20, sample_frequency=8000.0)) + 1e-3),
    "clamp": lambda x: fn.preemphasis_filter(x),
    "zero": lambda x: fn.preemphasis_filter(x, border="zero", preemph_coeff=0.5),
    "reflect": lambda x: fn.preemphasis_filter(x, border="reflect"),
    "faster": lambda x: fn.audio_resample(x, in_rate=16000, out_rate=44100, quality=75.0),
    "slower": lambda x: fn.audio_resample(x, in_rate=48000, out_rate=16000, quality=100.0),
    "few lobes": lambda x: fn.audio_resample(x, in_rate=3, out_rate=2, quality=0.0),
    "much slower": lambda x: fn.audio_resample(x, in_rate=100, out_rate=3, quality=20.0),
    "interpolated": lambda x: fn.audio_resample(x, in_rate=997, out_rate=100003, quality=50.0),
    "dali": lambda x: fn.audio_resample(x, in_rate=441, out_rate=160, filter="dali"),
    "whole numbers": lambda x: fn.audio_resample(fn.cast(x, dtype=types.INT16), in_rate=2, out_rate=3),
}  # fmt: skip
SIZES = ([1000], [7, 1, 0, 333, 64], [50], [10_000])


@pytest.mark.parametrize("name", CHAINS)
def test_chunks_give_the_bits_of_the_whole(name: str) -> None:
    chain = CHAINS[name]
    x = signal(2503)
    want = whole(chain, x)
    for sizes in SIZES:
        got = in_chunks(chain, x, sizes)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want, err_msg=str(sizes))


@pytest.mark.parametrize("name", CHAINS)
def test_short_signals_are_those_of_the_whole(name: str) -> None:
    chain = CHAINS[name]
    for size in (0, 1, 2, 19, 49, 51, 99, 100, 101, 199, 201, 450):
        x = signal(size)
        try:
            want = whole(chain, x)
        except REFUSED:
            with pytest.raises(REFUSED):
                in_chunks(chain, x, [17])
            continue
        for sizes in ([17], [1], [500]):
            np.testing.assert_array_equal(in_chunks(chain, x, sizes), want, err_msg=f"{size} in {sizes}")


def test_a_long_signal_in_random_chunks() -> None:
    rng = np.random.default_rng(0)
    x = signal(300_000)
    want = whole(mel, x)
    np.testing.assert_array_equal(in_chunks(mel, x, rng.integers(0, 9000, 50).tolist()), want)


def test_channels_and_whole_numbers() -> None:
    def chain(x: Any) -> Any:
        return fn.audio_resample(x, in_rate=44100, out_rate=8000)

    for dtype, channels in ((np.int16, 0), (np.float32, 2), (np.int16, 3), (np.int32, 1)):
        x = signal(5000, dtype, channels)
        got = in_chunks(chain, x, [700])
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, whole(chain, x))
    one = signal(3000, channels=1)
    np.testing.assert_array_equal(in_chunks(mel, one, [411]), in_chunks(mel, one[:, 0], [800]))


def test_memory_does_not_grow_with_the_signal() -> None:
    stream = eager.stream(mel)
    chunk = signal(44100)
    for _ in range(3):
        stream.push(chunk)
    tracemalloc.start()
    try:
        stream.push(chunk)
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        frames = sum(stream.push(chunk).shape[1] for _ in range(60))  # a minute
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 5990 <= frames <= 6010
    assert after - before < 200_000
    assert peak - before < 4_000_000


def test_chunks_may_be_overwritten_and_outputs_kept() -> None:
    x = signal(4000)
    stream, buffer, parts = eager.stream(mel), np.empty(50, np.float32), []
    for at in range(0, 4000, 50):
        buffer[:] = x[at : at + 50]
        parts.append(stream.push(buffer))
        buffer[:] = np.nan
    parts.append(stream.finish())
    np.testing.assert_array_equal(np.concatenate(parts, 1), whole(mel, x))


def test_a_stream_takes_one_signal_after_the_other() -> None:
    stream = eager.stream(mel)
    with pytest.raises(StateError, match="expected a chunk before `finish`"):
        stream.finish()
    first = np.concatenate([stream.push(signal(3000)), stream.finish()], stream.axis)
    with pytest.raises(StateError, match="expected a chunk before `finish`"):
        stream.finish()
    second = np.concatenate([stream.push(signal(3000)[:, None]), stream.finish()], stream.axis)
    np.testing.assert_array_equal(first, second)
    assert stream.push(signal(10)).shape == (40, 0)


@pytest.mark.parametrize(
    ("chain", "text"),
    [
        (lambda x: fn.normalize(x), "`normalize` cannot stream: expected a `mean` and a `stddev`"),
        (lambda x: fn.to_decibels(fn.spectrogram(x)), "largest value of the whole signal"),
        (lambda x: fn.features.whisper(x), r"`features\.whisper` cannot stream: .* depend on the whole signal"),
        (lambda x: fn.features.nemo(x), r"`features\.nemo` cannot stream: expected `normalize=\"none\"`"),
        (lambda x: fn.istft(fn.stft(x), length=500), "`istft` cannot stream: expected no `length`"),
        (lambda x: fn.loudness_normalize(x), "`loudness_normalize` cannot stream"),
        (lambda x: fn.mfcc(fn.spectrogram(x), axis=1), "another axis than that of time"),
        (lambda x: fn.power_spectrum(x, axis=0), "another axis than that of time"),
        (lambda x: fn.audio_resample(x, scale=0.9), "`in_rate` and `out_rate` in whole Hz"),
        (lambda x: fn.audio_resample(x, in_rate=8000.5, out_rate=8000), "`in_rate` and `out_rate` in whole Hz"),
        (lambda x: fn.random_speed(x), "without random numbers"),
    ],
)
def test_what_needs_the_whole_signal_says_so(chain: Chain, text: str) -> None:
    with pytest.raises(UnsupportedError, match=text) as caught:
        eager.stream(chain).push(signal(1000))
    assert "test_audio_stream.py:" in str(caught.value)


def test_functions_that_are_no_chains_are_refused() -> None:
    for function, text in (
        (lambda x: x, "that applies operators, got none"),
        (lambda x: 3, "expected a function that returns"),
        (lambda x: fn.mix_noise(x, x, snr=3.0), "operators of one input"),
        (lambda x: x + x, "operators of one input"),
        (lambda x: x * np.ones(3, np.float32), "operators of one input and numbers"),
        (lambda x: fn.preemphasis_filter(x, preemph_coeff=x), "arguments that are nodes"),
        ("spectrogram", "expected a function, got"),
    ):
        with pytest.raises(REFUSED, match=text):
            eager.stream(function)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="unknown argument"):
        eager.stream(lambda x: fn.spectrogram(x, window=3))


def test_other_chunks_are_refused() -> None:
    stream = eager.stream(mel)
    for wrong in (np.zeros((2, 2, 2), np.float32), np.zeros(3, bool), np.float32(1), ["a"]):
        with pytest.raises(ArgumentError, match="expected a chunk of numbers"):
            stream.push(wrong)
    stream.push(signal(100))
    for wrong in (signal(100, np.int16), signal(100, channels=2)):
        with pytest.raises(ArgumentError, match="`finish` ends a signal"):
            stream.push(wrong)
    failing = eager.stream(lambda x: fn.spectrogram(x, center_windows=False))
    failing.push(signal(100))
    with pytest.raises(REFUSED, match=r"of more than \d+ samples"):
        failing.finish()
    with pytest.raises(StateError, match="has failed"):
        failing.push(signal(100))
