# SPDX-License-Identifier: Apache-2.0
"""Front ends of speech models against their formulas in double; arguments and short signals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from stoker import eager
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError

REFUSED = (ArgumentError, DataError, UnsupportedError)


def speech(size: int = 6000, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return (0.2 * np.sin(np.arange(size) * 0.07) + rng.normal(0, 0.03, size)).astype(np.float32)


def powers(x: Any, points: int, window: Any, step: int, mode: str) -> Any:
    """Return powers of centred frames, (bins, frames)."""
    padded = np.pad(x.astype(np.float64), points // 2, mode=mode)  # type: ignore[call-overload]
    wide = np.zeros(points)
    begin = (points - len(window)) // 2
    wide[begin : begin + len(window)] = window
    cut = np.stack([padded[t : t + points] for t in range(0, len(x) + 1, step)]) * wide
    return (np.abs(np.fft.rfft(cut, axis=1)) ** 2).T


def slaney(filters: int, points: int, rate: float) -> Any:
    """Return mel filters of Slaney's form."""
    top = 15 + 27 * math.log(rate / 2 / 1000) / math.log(6.4)
    mel = np.linspace(0, top, filters + 2)
    edges = np.where(mel < 15, mel * 200 / 3, 1000 * 6.4 ** ((mel - 15) / 27))
    hz = np.linspace(0, rate / 2, points // 2 + 1)
    rise = (hz - edges[:-2, None]) / np.diff(edges)[:-1, None]
    fall = (edges[2:, None] - hz) / np.diff(edges)[1:, None]
    return np.minimum(rise, fall).clip(0) * (2 / (edges[2:] - edges[:-2]))[:, None]


@pytest.mark.parametrize("size", [6000, 12000, 1])
def test_whisper(size: int) -> None:
    x = speech(size)
    whole = np.pad(x, (0, max(8000 - size, 0)))[:8000]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 400)
    mel = slaney(80, 400, 16000) @ powers(whole, 400, window, 160, "reflect")
    log = np.log10(np.maximum(mel, 1e-10))[:, :50]
    want = (np.maximum(log, log.max() - 8) + 4) / 4
    got = np.asarray(eager.features.whisper(x, chunk_length=0.5))
    np.testing.assert_allclose(got, want, atol=2e-4)


def test_whisper_has_thirty_seconds() -> None:
    assert eager.features.whisper(speech()).shape == (80, 3000)


def test_wav2vec2() -> None:
    x = speech() * 3 + 1
    wide = x.astype(np.float64)
    want = (wide - wide.mean()) / np.sqrt(wide.var() + 1e-7)
    np.testing.assert_allclose(eager.features.wav2vec2(x), want, atol=1e-5)
    np.testing.assert_array_equal(eager.features.wav2vec2(np.zeros((5, 1), np.float32)), np.zeros(5))


def test_padding_and_truncation() -> None:
    x = speech(6000)
    assert eager.features.whisper(x, chunk_length=0.5, padding="do_not_pad").shape == (80, 37)
    assert eager.features.whisper(x, chunk_length=0.2, truncation=False).shape == (80, 37)
    assert eager.features.whisper(x, chunk_length=0.2).shape == (80, 20)
    cut = eager.features.wav2vec2(x, max_length=500, do_normalize=False)
    np.testing.assert_array_equal(cut, x[:500])
    padded = np.asarray(eager.features.wav2vec2(x, max_length=7000, padding="max_length", mask_padding=True))
    np.testing.assert_array_equal(padded[:6000], eager.features.wav2vec2(x))
    assert not padded[6000:].any()


@pytest.mark.parametrize("normalize", ["per_feature", "all_features", "none"])
def test_nemo(normalize: str) -> None:
    x = speech()
    wide = x.astype(np.float64)
    filtered = np.concatenate([wide[:1], wide[1:] - 0.97 * wide[:-1]])
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)
    mel = slaney(80, 512, 16000) @ powers(filtered, 512, window, 160, "constant")
    want = np.log(mel + 2.0**-24)[:, : len(x) // 160]
    axis = {"per_feature": 1, "all_features": None}.get(normalize, 1)
    if normalize != "none":
        want = (want - want.mean(axis, keepdims=True)) / (want.std(axis, ddof=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(eager.features.nemo(x, normalize=normalize), want, atol=1e-3)


@pytest.mark.parametrize("snip", [True, False])
@pytest.mark.parametrize("size", [6000, 400, 555])
def test_kaldi_fbank(size: int, snip: bool) -> None:
    x = speech(size).astype(np.float64)
    begins = np.arange(1 + (size - 400) // 160) * 160 if snip else np.arange((size + 80) // 160) * 160 - 120
    at = begins[:, None] + np.arange(400)
    at = np.where(at < 0, -1 - at, np.where(at >= size, 2 * size - 1 - at, at))
    frames = x[at] - x[at].mean(1, keepdims=True)
    frames = frames - 0.97 * np.concatenate([frames[:, :1], frames[:, :-1]], 1)
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(400) / 399)).clip(0) ** 0.85
    power = np.abs(np.fft.rfft(frames * window, 512, 1)) ** 2
    mel = 1127 * np.log(1 + np.arange(257) * 16000 / 512 / 700)
    edges = np.linspace(1127 * np.log(1 + 20 / 700), mel[-1], 25)
    step = edges[1] - edges[0]
    weights = (1 - np.abs(mel - edges[1:-1, None]) / step).clip(0)
    weights[:, -1] = 0
    want = np.log(np.maximum(power @ weights.T, np.finfo(np.float32).eps))
    np.testing.assert_allclose(eager.features.kaldi_fbank(x.astype(np.float32), snip_edges=snip), want, atol=2e-3)


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("whisper", {"chunk_length": 0.0}, "`chunk_length` in seconds"),
        ("whisper", {"chunk_length": 0.01}, "at least 0.02 seconds"),
        ("whisper", {"hop_length": 0}, "`hop_length` of at least 1"),
        ("whisper", {"padding": "longest"}, "expected one of"),
        ("whisper", {"padding_value": float("nan")}, "finite `padding_value`"),
        ("wav2vec2", {"padding": "max_length"}, "expected `max_length`"),
        ("wav2vec2", {"max_length": 0}, "`max_length` of at least 1"),
        ("nemo", {"sample_rate": 0.0}, "`sample_rate` from 1"),
        ("nemo", {"window_stride": float("nan")}, "`window_stride` in seconds"),
        ("nemo", {"normalize": "fixed"}, "expected one of"),
        ("kaldi_fbank", {"num_mel_bins": 3}, "`num_mel_bins` of at least 4"),
        ("kaldi_fbank", {"frame_length": 0.0}, "`frame_length` in milliseconds"),
        ("kaldi_fbank", {"high_freq": 9000.0}, "half of `sample_frequency`"),
        ("kaldi_fbank", {"window_type": "kaiser"}, "expected one of"),
    ],
)
def test_arguments_are_checked(name: str, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(REFUSED, match=text):
        getattr(eager.features, name)(speech(), **arguments)


def test_other_signals_are_refused() -> None:
    for name in ("whisper", "wav2vec2", "nemo", "kaldi_fbank"):
        with pytest.raises(REFUSED, match="float32 with full scale 1"):
            getattr(eager.features, name)(np.zeros(4000, np.int16))
        with pytest.raises(REFUSED, match="one channel"):
            getattr(eager.features, name)(np.zeros((4000, 2), np.float32))
    with pytest.raises(REFUSED, match="at least two steps"):
        eager.features.nemo(speech(319))
    with pytest.raises(REFUSED, match="at least one step"):
        eager.features.whisper(speech(159), padding="do_not_pad")
    with pytest.raises(REFUSED, match="at least one frame"):
        eager.features.kaldi_fbank(speech(399))
    with pytest.raises(REFUSED, match="with samples, got none"):
        eager.features.wav2vec2(speech(0))
