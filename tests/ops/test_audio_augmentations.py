# SPDX-License-Identifier: Apache-2.0
"""Augmentations and transforms of audio, against torch and formulas in double; laws, draws and refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from stoker import eager, fn, pipeline_def
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError

REFUSED = (ArgumentError, DataError, UnsupportedError)


def speech(size: int = 6000, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return (0.2 * np.sin(np.arange(size) * 0.07) + rng.normal(0, 0.03, size)).astype(np.float32)


def decibels(signal: Any, error: Any) -> float:
    return float(10 * np.log10((np.asarray(signal, np.float64) ** 2).mean() / (np.asarray(error) ** 2).mean()))


# ---- masks ----


def masked(x: Any, **args: Any) -> Any:
    return np.asarray(eager.spec_augment(x, fill_value=-7.0, **args)) == -7


def test_masks_have_the_asked_widths_and_reach_every_place() -> None:
    x = np.ones((40, 90), np.float32)
    rows, columns, widths = np.zeros(40, int), np.zeros(90, int), set()
    for seed in range(400):
        hidden = masked(x, freq_masks=1, time_masks=0, freq_width=10, seed=seed)
        assert (hidden.any(1) == hidden.all(1)).all()
        rows += hidden.all(1)
        widths.add(int(hidden.all(1).sum()))
        hidden = masked(x, freq_masks=0, time_masks=1, time_width=50, time_share=0.2, seed=seed)
        assert hidden.all(0).sum() <= 18
        columns += hidden.all(0)
    assert widths == set(range(11))
    assert rows.min() > 0 and columns.min() > 0


def test_masks_follow_the_layout() -> None:
    found = []
    for layout, shape in (("tf", (30, 50)), ("ft", (50, 30))):

        @pipeline_def(batch_size=1, num_threads=1, seed=2)
        def masks(layout: str = layout, shape: tuple[int, int] = shape) -> Any:
            x = fn.external_source([np.ones(shape, np.float32)], batch=False, layout=layout)
            return fn.spec_augment(x, freq_masks=1, time_masks=0, freq_width=20, seed=5)

        with masks() as pipe:
            found.append(np.asarray(pipe.run()[0][0]))
    assert found[0].all(1).sum() == 0 < found[0].all(0).sum() < 50, "bins are columns of tf"
    np.testing.assert_array_equal(found[0], found[1].T)


def test_masks_of_no_width_and_whole_width() -> None:
    x = np.ones((8, 9), np.float32)
    assert not masked(x, freq_width=0, time_width=0).any()
    assert not masked(x, freq_masks=0, time_masks=0).any()
    assert not masked(x, freq_masks=0, time_share=0.0).any()
    assert np.asarray(eager.spec_augment(np.ones((8, 0), np.float32))).shape == (8, 0)


def test_a_batch_has_the_masks_of_its_samples() -> None:
    @pipeline_def(num_threads=2, seed=3)
    def augmented() -> Any:
        return fn.spec_augment(fn.constant(fdata=[1.0] * 600, shape=[20, 30]), freq_width=9, time_width=9)

    runs = []
    for batch in (1, 3, 6):
        with augmented(batch_size=batch) as pipe:
            runs.append(np.concatenate([np.stack([np.asarray(r) for r in pipe.run()[0]]) for _ in range(6 // batch)]))
    np.testing.assert_array_equal(runs[0], runs[1])
    np.testing.assert_array_equal(runs[0], runs[2])
    assert len({r.tobytes() for r in runs[0]}) == 6


@pytest.mark.parametrize(
    "args",
    [{"freq_masks": -1}, {"time_masks": 65}, {"freq_width": -1}, {"time_share": 1.5}, {"time_share": math.nan}],
)
def test_spec_augment_refuses(args: dict[str, Any]) -> None:
    with pytest.raises(REFUSED, match="spec_augment"):
        eager.spec_augment(np.ones((4, 5), np.float32), **args)


def test_spec_augment_refuses_other_axes() -> None:
    with pytest.raises(REFUSED, match="axes f and t"):
        eager.spec_augment(np.ones((4, 5, 3), np.float32))


# ---- noise ----


@pytest.mark.parametrize("size", [20000, 6000, 701, 1])
@pytest.mark.parametrize("snr", [-20.0, 0.0, 35.5])
def test_noise_has_the_ratio(size: int, snr: float) -> None:
    x, noise = speech(), np.random.default_rng(1).normal(0, 1, size).astype(np.float32)
    added = np.asarray(eager.mix_noise(x, noise, snr=snr, seed=4), np.float64) - x
    assert abs(decibels(x, added) - snr) < 0.02


def test_noise_is_a_part_of_the_noise() -> None:
    x, noise = np.full(100, 0.5, np.float32), np.arange(1, 1001, dtype=np.float32)
    starts = set()
    for seed in range(60):
        added = np.asarray(eager.mix_noise(x, noise, snr=0.0, seed=seed), np.float64) - 0.5
        part = added * math.sqrt((noise.astype(np.float64) ** 2).mean()) / 0.5
        slope = np.diff(added).mean()
        starts.add(round(added[0] / slope))
        assert abs(np.diff(added) - slope).max() < 1e-6, "consecutive samples"
        assert part.min() > 0
    assert len(starts) > 30 and min(starts) >= 1 and max(starts) <= 901


def test_short_noise_goes_round() -> None:
    x, noise = np.full(10, 1.0, np.float32), np.asarray([1, 2, 3], np.float32)
    added = np.asarray(eager.mix_noise(x, noise, snr=0.0, seed=1)) - 1
    np.testing.assert_allclose(added[3:], added[:-3], atol=1e-6)
    assert len({round(float(v), 4) for v in added}) == 3


def test_silence_and_noise() -> None:
    x, none = speech(50), np.zeros(80, np.float32)
    np.testing.assert_array_equal(eager.mix_noise(x, none, snr=3.0), x)
    np.testing.assert_array_equal(eager.mix_noise(none, x, snr=3.0), none)
    for a, b, snr in (
        (x, x[:0], 3.0),
        (x[:0], x, 3.0),
        (x, x, math.nan),
        (x, x, 201.0),
        (x, np.ones((9, 2), "f4"), 1.0),
    ):
        with pytest.raises(REFUSED, match="mix_noise"):
            eager.mix_noise(a, b, snr=snr)
    assert eager.mix_noise(x[:, None], x, snr=3.0).shape == (50, 1)


# ---- speed ----


def test_speed_is_one_of_the_factors() -> None:
    x = speech(9000)
    found = {}
    for seed in range(40):
        y = np.asarray(eager.random_speed(x, factors=(0.9, 1.0, 1.1), seed=seed))
        found[len(y)] = y
    assert sorted(found) == [8182, 9000, 10000]
    np.testing.assert_array_equal(found[9000], x)
    for size, factor in ((8182, 1.1), (10000, 0.9)):
        want = np.asarray(eager.audio_resample(x, in_rate=factor, out_rate=1.0))
        np.testing.assert_array_equal(found[size], want)


def test_speed_refuses() -> None:
    for factors in ((), (0.0,), (11.0,), (math.nan,)):
        with pytest.raises(REFUSED, match="random_speed"):
            eager.random_speed(speech(99), factors=factors)
    assert eager.random_speed(speech(0), factors=(0.5, 2.0)).shape == (0,)


def test_trimming() -> None:
    x = np.zeros(4000, np.float32)
    x[1500:2500] = speech(1000)
    begin, length = (int(v) for v in eager.nonsilent_region(x, window_length=64))
    np.testing.assert_array_equal(eager.trim_silence(x, window_length=64), x[begin : begin + length])
    wide = np.asarray(eager.trim_silence(x, window_length=64, margin=5000))
    np.testing.assert_array_equal(wide, x)
    assert eager.trim_silence(np.full(100, np.nan, np.float32), margin=9).shape == (0,)
    with pytest.raises(REFUSED, match="margin"):
        eager.trim_silence(x, margin=-1)


# ---- spectra and back ----

FRAMES = [(512, 512, 128), (400, 400, 160), (100, 80, 20), (74, 50, 25), (45, 45, 11), (1, 1, 1), (2048, 1200, 300)]


@pytest.mark.parametrize(("nfft", "length", "step"), FRAMES)
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("size", [5000, 4097])
def test_stft_has_the_values_of_torch(nfft: int, length: int, step: int, center: bool, size: int) -> None:
    torch = pytest.importorskip("torch")
    x = speech(size)
    args = {"nfft": nfft, "window_length": length, "window_step": step, "center_windows": center}
    got = np.asarray(eager.stft(x, **args))
    window = torch.hann_window(length, dtype=torch.float64) if length > 1 else torch.ones(1, dtype=torch.float64)
    more = {} if length > 1 else {"window_fn": (1.0,)}
    got = np.asarray(eager.stft(x, **args, **more))
    want = torch.stft(
        torch.from_numpy(x).double(), nfft, step, length, window, center=center, pad_mode="reflect", return_complex=True
    )
    want = torch.view_as_real(want).numpy()
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= 2e-6 * np.abs(want).max()


@pytest.mark.parametrize(("nfft", "length", "step"), FRAMES[:5] + FRAMES[6:])
@pytest.mark.parametrize("frames", [1, 3, 16, 17, 40])
def test_istft_has_the_values_of_torch(nfft: int, length: int, step: int, frames: int) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    spectra = rng.normal(0, 1, (nfft // 2 + 1, frames, 2)).astype(np.float32)
    spectra[0, :, 1] = 0
    spectra[-1, :, 1] *= nfft % 2
    window = torch.hann_window(length, dtype=torch.float64)
    args = {"nfft": nfft, "window_length": length, "window_step": step}
    got = np.asarray(eager.istft(spectra, **args))
    assert got.shape == (max((frames - 1) * step + nfft % 2, 0),)
    whole = torch.view_as_complex(torch.from_numpy(spectra).double())
    if frames >= 16:
        want = torch.istft(whole, nfft, step, length, window, center=True, length=len(got)).numpy()
        assert np.abs(got - want).max() <= 3e-5 * np.abs(want).max()


@pytest.mark.parametrize(("nfft", "length", "step"), FRAMES[:4])
def test_there_and_back(nfft: int, length: int, step: int) -> None:
    x = speech(4321)
    args = {"nfft": nfft, "window_length": length, "window_step": step}
    back = np.asarray(eager.istft(np.asarray(eager.stft(x, **args)), length=len(x), **args))
    assert np.abs(back - x)[:4300].max() < 2e-6


def test_spectra_refuse() -> None:
    x = speech(100)
    with pytest.raises(REFUSED, match="samples"):
        eager.stft(x[:0])
    with pytest.raises(REFUSED, match="at least 512"):
        eager.stft(x, center_windows=False)
    with pytest.raises(REFUSED, match="nfft"):
        eager.stft(x, nfft=10)
    with pytest.raises(REFUSED, match="257 bins"):
        eager.istft(np.ones((9, 3, 2), np.float32))
    with pytest.raises(REFUSED, match="real and imaginary"):
        eager.istft(np.ones((257, 3, 3), np.float32))
    with pytest.raises(REFUSED, match="length"):
        eager.istft(np.ones((257, 3, 2), np.float32), length=-4)


def test_spectra_without_frames() -> None:
    assert np.asarray(eager.istft(np.ones((257, 0, 2), np.float32))).shape == (0,)
    assert not np.asarray(eager.istft(np.ones((257, 0, 2), np.float32), length=7)).any()


# ---- phases ----


def spectral_peak(x: Any, rate: float = 16000.0) -> float:
    power = np.abs(np.fft.rfft(np.asarray(x, np.float64) * np.hanning(len(x))))
    return float(np.argmax(power) * rate / len(x))


@pytest.mark.parametrize("rate", [0.5, 0.8, 1.0, 1.7, 3.0])
def test_stretched_tones_keep_their_pitch(rate: float) -> None:
    x = (0.3 * np.sin(2 * np.pi * 440 * np.arange(32000) / 16000)).astype(np.float32)
    y = np.asarray(eager.time_stretch(x, rate=rate, window_length=1024, window_step=256))
    assert len(y) == round(32000 / rate)
    assert abs(spectral_peak(y) - 440) < 3
    assert 0.25 < np.abs(y[2000:-2000]).max() < 0.35


@pytest.mark.parametrize("steps", [-12.0, -3.0, 0.0, 7.0, 12.0])
def test_shifted_tones_keep_their_length(steps: float) -> None:
    x = (0.3 * np.sin(2 * np.pi * 440 * np.arange(32000) / 16000)).astype(np.float32)
    y = np.asarray(eager.pitch_shift(x, n_steps=steps, window_length=1024, window_step=256))
    assert len(y) == 32000
    assert abs(spectral_peak(y) - 440 * 2 ** (steps / 12)) < 5


def test_griffin_lim_finds_a_signal_with_the_magnitudes() -> None:
    x = speech(8000)
    frames = {"window_length": 512, "window_step": 128}
    magnitudes = np.linalg.norm(np.asarray(eager.stft(x, **frames)), axis=-1)

    def distance(**args: Any) -> float:
        y = np.asarray(eager.griffin_lim(magnitudes, power=1, **frames, **args))
        assert y.shape == ((magnitudes.shape[1] - 1) * 128,)
        found = np.linalg.norm(np.asarray(eager.stft(y, **frames)), axis=-1)
        return float(np.linalg.norm(found - magnitudes) / np.linalg.norm(magnitudes))

    start, slow, fast = distance(n_iter=0), distance(n_iter=16, momentum=0.0), distance(n_iter=16)
    assert slow < 0.5 * start and fast < slow
    powers = np.asarray(eager.griffin_lim(magnitudes**2, n_iter=2, **frames))
    np.testing.assert_allclose(powers, eager.griffin_lim(magnitudes, power=1, n_iter=2, **frames), atol=1e-3)


def test_phases_refuse() -> None:
    x = speech(3000)
    for rate in (0.0, -1.0, math.inf, math.nan, 1000.0):
        with pytest.raises(REFUSED, match="time_stretch"):
            eager.time_stretch(x, rate=rate)
    with pytest.raises(REFUSED, match="n_steps"):
        eager.pitch_shift(x, n_steps=50.0)
    for args in ({"momentum": 1.0}, {"n_iter": -1}, {"n_iter": 1001}):
        with pytest.raises(REFUSED, match="griffin_lim"):
            eager.griffin_lim(np.ones((257, 4), np.float32), **args)


# ---- convolution ----


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5000, 1), (5000, 255), (257, 300), (40000, 4096), (7, 3000), (600, 600)])
@pytest.mark.parametrize("mode", ["full", "same", "valid", "first"])
def test_convolution(n: int, m: int, mode: str) -> None:
    rng = np.random.default_rng(n)
    x, h = (rng.normal(0, 1, k).astype(np.float32) for k in (n, m))
    got = np.asarray(eager.convolve(x, h, mode=mode))
    whole = np.convolve(x.astype(np.float64), h.astype(np.float64))
    if mode == "first":
        want = whole[:n]
    elif mode == "same":
        want = whole[(m - 1) // 2 : (m - 1) // 2 + n]
    elif mode == "valid":
        want = np.convolve(x.astype(np.float64), h.astype(np.float64), "valid")
    else:
        want = whole
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= 2e-6 * np.abs(whole).max()


def test_convolution_with_a_click_moves_a_signal() -> None:
    x = speech(1000)
    click = np.zeros(50, np.float32)
    click[30] = 1
    np.testing.assert_allclose(np.asarray(eager.convolve(x, click))[30:1030], x, atol=1e-7)


def test_convolution_refuses() -> None:
    x = speech(100)
    for a, b in ((x, x[:0]), (x[:0], x), (x.astype(np.int16), x), (x, np.ones((3, 2), np.float32))):
        with pytest.raises(REFUSED, match="convolve"):
            eager.convolve(a, b)
    long = np.zeros((1 << 18) + 1, np.float32)
    with pytest.raises(REFUSED, match="262144"):
        eager.convolve(long, long)


# ---- loudness ----


@pytest.mark.parametrize("rate", [8000.0, 16000.0, 44100.0, 48000.0, 192000.0])
def test_loudness_of_the_reference_tone(rate: float) -> None:
    # BS.1770: a sine of 997 Hz at full scale in one channel has -3.01 LKFS.
    x = np.sin(2 * np.pi * 997 * np.arange(int(3 * rate)) / rate).astype(np.float32)
    assert abs(float(eager.loudness(x, sample_rate=rate)) + 3.01) < 0.05
    both = np.stack([x, x], 1)
    assert abs(float(eager.loudness(both, sample_rate=rate))) < 0.05
    surround = np.stack([0 * x, 0 * x, 0 * x, x], 1)
    assert abs(float(eager.loudness(surround, sample_rate=rate)) + 3.01 - 10 * math.log10(1.41)) < 0.05


def test_silence_does_not_count() -> None:
    tone = np.sin(2 * np.pi * 997 * np.arange(48000) / 48000).astype(np.float32)
    silent = np.concatenate([tone, np.zeros(480000, np.float32)])
    # Blocks at the edge are partly silent: two of them are within 10 LU.
    assert abs(float(eager.loudness(silent, sample_rate=48000.0)) + 3.01) < 1.2
    assert float(eager.loudness(np.zeros(48000, np.float32))) == -math.inf
    assert np.isnan(float(eager.loudness(np.full(48000, np.nan, np.float32))))


def test_normalized_loudness() -> None:
    x = speech(48000)
    for target in (-23.0, -14.0):
        y = np.asarray(eager.loudness_normalize(x, target=target))
        assert abs(float(eager.loudness(y)) - target) < 1e-3
    for silent in (np.zeros(9000, np.float32), np.zeros(0, np.float32), np.full(9000, 1e-6, np.float32)):
        np.testing.assert_array_equal(eager.loudness_normalize(silent), silent)
    short = np.asarray(eager.loudness_normalize(x[:3000], target=-20.0))
    assert abs(float(eager.loudness(short)) + 20) < 1e-3


def test_loudness_refuses() -> None:
    x = speech(8000)
    for rate in (0.0, 100.0, math.nan, 1e8):
        with pytest.raises(REFUSED, match="sample_rate"):
            eager.loudness(x, sample_rate=rate)
    with pytest.raises(REFUSED, match="channels"):
        eager.loudness(np.ones((8000, 6), np.float32))
    with pytest.raises(REFUSED, match="target"):
        eager.loudness_normalize(x, target=math.nan)


def test_signals_that_are_views() -> None:
    """One channel of several is a signal like another one."""
    rng = np.random.default_rng(7)
    x, noise = (rng.normal(0, 0.1, (n, 2)).astype(np.float32) for n in (900, 300))
    for factors in ((1.0,), (0.8,), (1.25,)):
        np.testing.assert_array_equal(
            eager.random_speed(x[:, 1:], factors=factors), eager.random_speed(x[:, 1].copy(), factors=factors)
        )
    mixed = [eager.mix_noise(x[:, :1], n, snr=3.0, seed=4) for n in (noise[:, :1], noise[:, 0].copy())]
    np.testing.assert_array_equal(*mixed)
