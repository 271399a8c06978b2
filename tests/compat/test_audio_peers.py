# SPDX-License-Identifier: Apache-2.0
"""Transforms, loudness and convolution against librosa, SciPy and pyloudnorm: ``make test-features``.

The bounds are those that docs/guides/from-torchaudio.md states.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import eager

librosa = pytest.importorskip("librosa")
pyloudnorm = pytest.importorskip("pyloudnorm")
signal = pytest.importorskip("scipy.signal")
RATE = 16000
librosa.effects.pitch_shift(np.ones(4096, np.float32), sr=RATE, n_steps=2)  # starts the threads of its libraries
librosa.effects.trim(np.ones(4096, np.float32))
pyloudnorm.Meter(RATE).integrated_loudness(np.ones(RATE))


def speech(size: int = 40000) -> Any:
    t = np.arange(size) / RATE
    tone = 0.2 * np.sin(2 * np.pi * (200 * t + 300 * t**2))
    return (tone + np.random.default_rng(size).normal(0, 0.02, size)).astype(np.float32)


def worst(got: Any, want: Any) -> float:
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape
    return float(np.abs(got - want).max() / np.abs(want).max())


@pytest.mark.parametrize(("nfft", "length", "step"), [(512, 400, 160), (2048, 2048, 512)])
def test_spectra(nfft: int, length: int, step: int) -> None:
    x, args = speech(), {"nfft": nfft, "window_length": length, "window_step": step}
    more = {"n_fft": nfft, "win_length": length, "hop_length": step}
    want = librosa.stft(x, pad_mode="reflect", **more)
    pairs = np.asarray(eager.stft(x, **args))
    assert worst(pairs, np.stack([want.real, want.imag], -1)) < 1e-6
    back = librosa.istft(want, length=len(x), **more)
    assert worst(eager.istft(pairs, length=len(x), **args), back) < 2e-6


@pytest.mark.parametrize("rate", [0.7, 1.0, 1.6])
def test_tempo(rate: float) -> None:
    x = speech()
    assert worst(eager.time_stretch(x, rate=rate), librosa.effects.time_stretch(x, rate=rate)) < 1e-2


def test_pitch() -> None:
    x = speech()
    got = np.asarray(eager.pitch_shift(x, n_steps=12, quality=100.0))
    want = librosa.effects.pitch_shift(x, sr=RATE, n_steps=12)
    assert worst(got[2000:-2000], want[2000:-2000]) < 0.1, "the resamplers differ in the highest frequencies"


def test_phases() -> None:
    x, frames = speech(8000), {"window_length": 512, "window_step": 128}
    magnitudes = np.linalg.norm(np.asarray(eager.stft(x, **frames)), axis=-1)
    got = eager.griffin_lim(magnitudes, power=1, n_iter=4, **frames)
    want = librosa.griffinlim(
        magnitudes, n_iter=4, hop_length=128, win_length=512, init=None, momentum=0.99, pad_mode="reflect"
    )
    assert worst(got, want) < 0.1, "errors of phases grow from iteration to iteration"


@pytest.mark.parametrize("rate", [16000, 44100, 48000])
@pytest.mark.parametrize("channels", [1, 2, 5])
def test_loudness(rate: int, channels: int) -> None:
    rng = np.random.default_rng(channels)
    level = 0.3 * np.repeat(rng.uniform(0, 1, 40) ** 3, rate // 10)
    x = (rng.normal(0, 1, (len(level), channels)) * level[:, None]).astype(np.float32)
    found = float(eager.loudness(x, sample_rate=float(rate)))
    assert abs(found - pyloudnorm.Meter(rate, filter_class="DeMan").integrated_loudness(x)) < 1e-3
    assert abs(found - pyloudnorm.Meter(rate).integrated_loudness(x)) < 0.15


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolution(mode: str) -> None:
    x, h = speech(), np.random.default_rng(1).normal(0, 1, 8000).astype(np.float32)
    want = signal.fftconvolve(x.astype(np.float64), h.astype(np.float64), mode)
    assert worst(eager.convolve(x, h, mode=mode), want) < 2e-6


def test_silence() -> None:
    x = speech()
    x[:9000] *= 1e-4
    x[30000:] *= 1e-4
    want, _ = librosa.effects.trim(x, top_db=40, frame_length=2048, hop_length=512)
    got = eager.trim_silence(x, cutoff_db=-40.0)
    assert abs(len(got) - len(want)) < 2500, "librosa decides by frames, and by magnitude"
