# SPDX-License-Identifier: Apache-2.0
"""Audio operators on a GPU: the CPU's bits, for all sizes of transforms and layouts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import emulated_stages
import numpy as np
import pytest
from test_own_kernels import compare_rows

from stoker import fn, pipeline_def, types
from stoker.device.gpu import Gpu
from stoker.ops.audio.audio_resample import _tile
from tests.complete import sample


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], autouse=True)
def gpu(folder, monkeypatch, request):
    """Use the null device as GPU 0, unless there is a GPU."""
    if request.param == "null":
        opened = staticmethod(lambda number, limit=None: emulated_stages.EmulatedGpu(folder, limit))
        monkeypatch.setattr(Gpu, "open", opened)


def signals(*sizes: int) -> list[np.ndarray]:
    rng = np.random.default_rng(sizes[0])
    return [rng.normal(0, 0.1, n).astype(np.float32) for n in sizes]


@pytest.mark.parametrize("layout", ["ft", "tf"])
def test_spectrograms(layout: str) -> None:
    """Sizes of all radices, odd ones, Bluestein's algorithm; several blocks; signals of one sample and with NaNs."""
    rows = [*signals(700, 1), np.where(np.arange(500) == 250, np.nan, 0.1).astype(np.float32), np.zeros(90, np.float32)]

    def spectra(x: Any) -> Any:
        arguments = {"layout": layout, "window_step": 23}
        found = [fn.spectrogram(x, nfft=n, window_length=min(n, 60), **arguments) for n in (512, 200, 27, 74, 37, 2)]
        found.append(fn.spectrogram(x, window_length=64, power=1, reflect_padding=False, **arguments))
        return tuple(found)

    compare_rows([rows], [""], spectra)


def test_a_transform_that_does_not_fit_into_shared_memory() -> None:
    compare_rows(
        [signals(3000)], [""], lambda x: (fn.spectrogram(x, nfft=65536, window_length=3000, window_step=1500),)
    )


def test_complex_spectra_and_back() -> None:
    """Sizes of all radices, odd ones, Bluestein's algorithm, steps beyond a window; signals shorter than a frame."""
    rows = [*signals(700, 1, 3100), np.where(np.arange(500) == 250, np.nan, 0.1).astype(np.float32)]

    def transformed(x: Any) -> Any:
        found = []
        for n, length, step in ((512, 60, 23), (200, 200, 50), (27, 27, 9), (74, 50, 60), (37, 37, 5), (2, 2, 1)):
            form = {"nfft": n, "window_length": length, "window_step": step}
            spectra = fn.stft(x, reflect_padding=n != 200, **form)
            found += [spectra, fn.istft(spectra, **form), fn.istft(spectra, length=600, center_windows=False, **form)]
        return tuple(found)

    compare_rows([rows], [""], transformed)
    inside = {"nfft": 81, "window_length": 50, "window_step": 20, "center_windows": False}
    inside["window_fn"] = np.random.default_rng(1).normal(0, 1, 50).tolist()
    compare_rows([signals(400, 81, 95)], [""], lambda x: (fn.istft(fn.stft(x, **inside), **inside),))


def test_complex_spectra_that_do_not_fit_into_shared_memory() -> None:
    form = {"nfft": 65536, "window_length": 3000, "window_step": 1500}
    compare_rows([signals(3000, 5000)], [""], lambda x: (fn.stft(x, **form), fn.istft(fn.stft(x, **form), **form)))


def test_spectra_in_another_order_of_axes() -> None:
    """Views: signals of one channel among several, turned spectra."""
    stereo = [np.random.default_rng(n).normal(0, 0.1, (n, 2)).astype(np.float32) for n in (700, 90)]

    def transformed(x: Any) -> Any:
        form = {"window_length": 64, "window_step": 20}
        spectra = fn.stft(x[:, 1:], **form)
        turned = fn.transpose(fn.copy(fn.transpose(spectra, perm=[2, 1, 0])), perm=[2, 1, 0])
        power = fn.spectrogram(x[:, 1:], layout="tf", **form)
        return fn.istft(turned, **form), fn.griffin_lim(power, n_iter=2, **form)

    compare_rows([stereo], [""], transformed)


def test_phases_of_magnitudes() -> None:
    """With and without momentum, powers and magnitudes, no iteration, zeros."""
    rows = [*signals(700, 333), np.zeros(200, np.float32)]

    def estimated(x: Any) -> Any:
        form: dict[str, Any] = {"nfft": 100, "window_length": 80, "window_step": 20}
        power, magnitude = fn.spectrogram(x, **form), fn.spectrogram(x, power=1, **form)
        return (
            fn.griffin_lim(power, n_iter=3, **form), fn.griffin_lim(magnitude, power=1, n_iter=2, momentum=0.0, **form),
            fn.griffin_lim(power, n_iter=0, **form),
        )  # fmt: skip

    compare_rows([rows], [""], estimated)


def test_other_tempos() -> None:
    """Rates per row, more bins than a block has threads, silence."""
    rows = [*signals(1700, 333, 5), np.zeros(200, np.float32)]
    rates = [np.float32(r) for r in (1.3, 0.6, 2.0, 0.25)]

    def stretched(x: Any, rate: Any) -> Any:
        return (
            fn.time_stretch(x, rate=rate, window_length=256, window_step=64),
            fn.time_stretch(x, rate=0.9, nfft=100, window_length=80, window_step=20),
        )

    compare_rows([rows, rates], ["", ""], stretched)


def test_power_spectra() -> None:
    """Points that are the same for all rows and those of each row: all radices, odd ones, Bluestein's algorithm."""
    rows = [np.random.default_rng(n).normal(0, 0.1, (n, 3)).astype(np.float32) for n in (700, 1, 2, 74, 37, 96, 1024)]
    rows[0][5, 1] = np.nan

    def powers(x: Any) -> Any:
        turned = fn.transpose(x, perm=[1, 0])
        found = [fn.power_spectrum(x, axis=0, nfft=n) for n in (1024, 1155, 2074)]
        deep = fn.stack(x, x, axis=2)
        return (
            *found, fn.power_spectrum(x, axis=0), fn.power_spectrum(turned, power=1), fn.power_spectrum(turned, axis=0),
            fn.power_spectrum(fn.copy(turned), nfft=1024), fn.power_spectrum(deep, axis=0, power=1),
        )  # fmt: skip

    compare_rows([rows], [""], powers)


def test_power_spectra_that_do_not_fit_into_shared_memory() -> None:
    """Of one line, and of more lines than a launch has blocks."""
    rows = [np.random.default_rng(n).normal(0, 0.1, (2, n)).astype(np.float32) for n in (40000, 30011)]
    compare_rows([rows], [""], lambda x: (fn.power_spectrum(x), fn.power_spectrum(x, nfft=65536)))
    many = [np.random.default_rng(1).normal(0, 0.1, (35, 16001)).astype(np.float32)]
    compare_rows([many], [""], lambda x: (fn.power_spectrum(x),))


@pytest.mark.parametrize("mode", ["full", "same", "valid", "first"])
def test_convolutions(mode: str) -> None:
    """Responses that are shorter and longer than the signal, of one sample, of the same length; NaN; views."""
    rows = [*signals(5000, 1, 333, 700), np.where(np.arange(3000) == 1250, np.nan, 0.1).astype(np.float32)]
    responses = signals(257, 300, 333, 2000, 1)

    def convolved(x: Any, h: Any) -> Any:
        stereo = fn.stack(x, x * 2, axis=1)
        return fn.convolve(x, h, mode=mode), fn.convolve(stereo[:, 1:], h, mode=mode)

    compare_rows([rows, responses], ["", ""], convolved)


def test_a_convolution_that_does_not_fit_into_shared_memory() -> None:
    compare_rows([signals(70000, 9000), signals(9000, 30000)], ["", ""], lambda x, h: (fn.convolve(x, h),))


def test_frames_within_the_signal_and_a_window() -> None:
    window = np.random.default_rng(1).normal(0, 1, 50).tolist()
    arguments = {"window_length": 50, "window_step": 20, "center_windows": False, "window_fn": window}
    compare_rows([signals(400, 35, 50)], [""], lambda x: (fn.spectrogram(x, nfft=81, **arguments),))


@pytest.mark.parametrize("layout", ["ft", "tf"])
def test_the_mel_chain(layout: str) -> None:
    def chain(x: Any, c: Any) -> Any:
        x = fn.preemphasis_filter(x, preemph_coeff=c)
        power = fn.spectrogram(x, nfft=128, window_length=100, window_step=40, layout=layout)
        mel = fn.mel_filter_bank(power, nfilter=20, sample_rate=8000.0)
        decibels = fn.to_decibels(mel, cutoff_db=-80.0)
        return mel, decibels, fn.mfcc(decibels, n_mfcc=13, axis=layout.index("f"), lifter=22.0)

    coefficients = [np.float32(c) for c in (0.97, 0.0, 0.5)]
    compare_rows([signals(900, 333, 5000), coefficients], ["", ""], chain)


@pytest.mark.parametrize("layout", ["ft", "tf"])
def test_frames_that_are_read_in_pairs_of_samples(layout: str) -> None:
    """Long signals whose frames begin at even samples: alone, filtered, with weighted sums, and with both."""
    form = {"window_length": 64, "window_step": 32, "layout": layout}
    more = {"nfilter": 70, "sample_rate": 8000.0}

    def spectra(x: Any) -> Any:
        filtered = fn.preemphasis_filter(x, border="reflect")
        return (
            fn.spectrogram(x, **form), fn.spectrogram(filtered, power=1, **form),
            fn.mel_filter_bank(fn.spectrogram(x, **form), **more),
            fn.mel_filter_bank(fn.spectrogram(fn.preemphasis_filter(x, border="zero"), **form), **more),
        )  # fmt: skip

    compare_rows([signals(9000, 2500)], [""], spectra)


def test_normalized_floats() -> None:
    """Columns, rows, several axes, several chunks of a sum; a column without deviation, infinities, views."""
    rng = np.random.default_rng(5)
    rows = [rng.normal(2, 3, shape).astype(np.float32) for shape in ((70, 5), (4, 9000), (9000, 3), (1, 1), (5000, 1))]
    rows[0][:, 2], rows[1][3, 5] = 0.1, np.inf

    def normalized(x: Any) -> Any:
        more = {"ddof": 1, "epsilon": 0.5, "scale": 2.0, "shift": -1.0}
        turned = fn.transpose(x, perm=[1, 0])
        wide = fn.stack(x, x, axis=1)
        return (
            fn.normalize(x, axes=[0]), fn.normalize(x, axes=[1], **more), fn.normalize(x),
            fn.normalize(turned, axes=[0]), fn.normalize(wide, axes=[1]), fn.normalize(wide, axes=[0, 1], **more),
        )  # fmt: skip

    compare_rows([rows], [""], normalized)


def test_resampling() -> None:
    """Rates with few phases, with interpolated filters, and DALI's filter; several channels, integers, views."""
    stereo = [np.random.default_rng(n).normal(0, 0.1, (n, 2)).astype(np.float32) for n in (700, 1, 90)]

    def resampled(x: Any) -> Any:
        def to(before: int, after: int, **more: Any) -> Any:
            return fn.audio_resample(x, in_rate=before, out_rate=after, **more)

        return (
            to(44100, 16000), to(3, 4, quality=10.0, dtype="int16"), to(48000, 16000, quality=0.0, filter="dali"),
            to(44100, 47999, quality=100.0), to(1, 1), fn.audio_resample(x, scale=2.0),
        )  # fmt: skip

    compare_rows([signals(5000, 1, 333)], [""], resampled)
    compare_rows([stereo], [""], lambda x: (*resampled(x), fn.audio_resample(x[:, :1], in_rate=3, out_rate=2)))


def tile_of(before: int, after: int, quality: float = 50.0, aliasing: bool = False) -> Any:
    ratio = Fraction(after, before)
    return _tile(ratio.numerator, ratio.denominator, quality, aliasing)


def test_tiles_of_resampling() -> None:
    """All sizes of tiles, one and several periods together; no tile if the weights are many or the filters long."""
    sizes = {
        (16000, 11025): (1, 64, 32), (8000, 16000): (64, 64, 32), (1, 1): (128, 64, 32), (44100, 16000): (1, 32, 32),
        (4, 1): (128, 32, 16), (5, 1): (128, 16, 16), (8, 1): (128, 8, 16),
    }  # fmt: skip
    for rates, size in sizes.items():
        tile = tile_of(*rates)
        assert (tile.times, tile.phases, tile.periods) == size and tile.bytes <= 47 << 10, (rates, tile)
    assert tile_of(44100, 16000, 75.0).phases == 16 and tile_of(44100, 16000, 100.0).phases == 8
    assert tile_of(65537, 65536) is None and tile_of(12, 1) is None


RATES = [(16000, 11025), (8000, 16000), (48000, 16000), (44100, 16000), (8, 1), (10, 1), (7, 200), (640, 639)]


@pytest.mark.parametrize(("before", "after"), sample(RATES, 3))
def test_resampling_in_tiles(before: int, after: int) -> None:
    """Rows of many periods and of few, ends within a period; channels and views; numbers that are not finite."""
    down = Fraction(before, after).numerator * tile_of(before, after).times
    rng = np.random.default_rng(before)
    n = min(down * 35 + 77, 40000)
    odd = rng.normal(0, 0.1, n).astype(np.float32)
    odd[[n // 3, n // 2, n - 1]] = np.inf, np.nan, -np.inf
    zeros = np.full(n, -0.0, np.float32)
    rows = [*signals(n, n // 2 + 1, min(6 * down, n) - 1, 3), odd, zeros]
    stereo = [rng.normal(0, 0.1, (n // 2, 2)).astype(np.float32), np.stack([odd, zeros], 1)]

    def resampled(x: Any) -> Any:
        rates = {"in_rate": before, "out_rate": after}
        return (
            fn.audio_resample(x, **rates), fn.audio_resample(x, **rates, quality=20.0),
            fn.audio_resample(x, **rates, filter="dali"),
        )  # fmt: skip

    compare_rows([rows], [""], resampled)
    compare_rows([stereo], [""], lambda x: (*resampled(x)[:1], *resampled(x[:, 1:])[:1]))


def test_resampling_at_rates_of_each_row() -> None:
    """Few phases, many phases and ratios between them; both filters, several channels, views, no samples."""
    rates = [np.float32(r) for r in (0.9, 2 ** (1 / 12), 1.0, 0.125, 3.7)]

    def resampled(x: Any, rate: Any) -> Any:
        wide = fn.stack(x, x * 2, axis=1)
        return (
            fn.audio_resample(x, in_rate=rate, out_rate=1.0, quality=10.0), fn.audio_resample(x, scale=rate),
            fn.audio_resample(wide, in_rate=rate * 100.0, out_rate=80.0, quality=100.0, filter="dali", dtype="int16"),
            fn.audio_resample(wide[:, 1:], out_length=fn.cast(rate * 200.0, dtype=types.INT32), quality=30.0),
            fn.audio_resample(x, scale=0.9173),
        )  # fmt: skip

    rows = [*signals(3000, 1, 333, 5), np.zeros(0, np.float32)]
    compare_rows([rows, rates], ["", ""], resampled)


def test_other_pitches_and_speeds() -> None:
    rows = [*signals(1700, 333, 90), np.zeros(200, np.float32)]
    steps = [np.float32(s) for s in (3.0, -12.0, 0.0, 5.5)]

    def changed(x: Any, steps: Any) -> Any:
        form: dict[str, Any] = {"window_length": 128, "window_step": 32, "quality": 20.0}
        return (
            fn.pitch_shift(x, n_steps=steps, **form), fn.pitch_shift(x, n_steps=12.0, **form), fn.random_speed(x),
            fn.random_speed(fn.stack(x, x, axis=1)[:, :1], factors=(1.25, 0.8, 0.7777), quality=10.0),
        )  # fmt: skip

    compare_rows([rows, steps], ["", ""], changed)


@pytest.mark.parametrize("border", ["clamp", "zero", "reflect"])
def test_preemphasis(border: str) -> None:
    def filtered(x: Any) -> Any:
        return fn.preemphasis_filter(x, border=border), fn.preemphasis_filter(x, border=border, dtype="int16")

    compare_rows([signals(5000, 1, 2, 2049)], [""], filtered)


def test_decibels_of_any_shape_and_value() -> None:
    rng = np.random.default_rng(2)
    rows = [np.exp(rng.normal(0, 20, s)).astype(np.float32) for s in ((130, 90), (1, 1), (3, 5))]
    rows[2][0] = [0.0, np.inf, np.nan, -1.0, 1e-42]

    def converted(x: Any) -> Any:
        turned = fn.transpose(x, perm=[1, 0])
        return fn.to_decibels(turned), fn.to_decibels(x, reference=2.0, multiplier=20.0, cutoff_db=-500.0)

    compare_rows([rows], [""], converted)


def test_rows_share_a_constant() -> None:
    """A table of 1 MB for each of 32 rows would exceed the limit of memory."""
    rows = [np.random.default_rng(i).normal(0, 1, (600, 3)).astype(np.float32) for i in range(32)]

    @pipeline_def(batch_size=len(rows), num_threads=2, prefetch_queue_depth=1, gpu_memory_limit=24 << 20)
    def coefficients(on_gpu: bool) -> Any:
        x = fn.external_source(source=lambda info: rows[info.idx_in_batch], batch=False, ndim=2, dtype=types.FLOAT)
        x = fn.reshape(x.gpu() if on_gpu else x, shape=[600, 3])  # the table is made while planning
        return fn.mfcc(x, n_mfcc=400)

    with coefficients(True, device_id=0) as gpu, coefficients(False) as cpu:
        for _ in range(2):
            (got,), (want,) = gpu.run(), cpu.run()
            for a, b in zip(got.as_cpu(), want, strict=True):
                np.testing.assert_array_equal(a, b)


def test_regions_that_are_not_silent() -> None:
    """Several parts with moving sums, windows beyond a part and beyond the signal, silence, NaNs, no samples, views."""
    rows = [*signals(70000, 20000, 5, 8192, 8193), np.zeros(900, np.float32), np.zeros(0, np.float32)]
    rows.append(np.full(300, np.nan, np.float32))
    rows.append(np.where(np.arange(9000) == 250, np.nan, 0.1).astype(np.float32))
    for x in rows[:2]:
        x[:9000] *= 1e-3
        x[-700:] *= 1e-4

    def regions(x: Any) -> Any:
        forms: list[dict[str, Any]] = [
            {"window_length": 64, "cutoff_db": -10.0}, {"cutoff_db": -25.0}, {"window_length": 1},
            {"window_length": 12000, "reference_power": 0.01, "cutoff_db": -3.0},
        ]  # fmt: skip
        found = [v for form in forms for v in fn.nonsilent_region(x, **form)]
        wide = fn.stack(x, x * 2, axis=1)[:, 1:]
        numbers = fn.cast(x * 1000.0, dtype=types.INT16)
        found += fn.nonsilent_region(wide, window_length=100, cutoff_db=-20.0)
        return (*found, *fn.nonsilent_region(numbers, window_length=100, cutoff_db=-20.0))

    compare_rows([rows], [""], regions)


def test_trimmed_silence() -> None:
    """With and without a margin, integers, views, silence, NaNs, no samples; arithmetic may follow on the GPU."""
    rows = [*signals(20000, 5, 300), np.zeros(900, np.float32), np.zeros(0, np.float32)]
    rows.append(np.full(300, np.nan, np.float32))
    rows[0][:9000] *= 1e-3
    rows[0][-700:] *= 1e-4
    rows[2][:50] = 0

    def trimmed(x: Any) -> Any:
        form: dict[str, Any] = {"window_length": 100, "cutoff_db": -20.0}
        wide = fn.stack(x, x * 2, axis=1)[:, 1:]
        numbers = fn.cast(x * 1000.0, dtype=types.INT16)
        return (
            fn.trim_silence(x, **form), fn.trim_silence(x, margin=70, **form) * 2.0, fn.trim_silence(wide, **form),
            fn.trim_silence(numbers, margin=1 << 40, **form),
        )  # fmt: skip

    with np.errstate(invalid="ignore"):
        compare_rows([rows], [""], trimmed)


def test_loudness() -> None:
    """Several segments and channels, clips shorter than a block, silence, NaNs, no samples, views, rates per row."""
    sizes = (30000, 3000, 1, 0, 13000, 6450)
    rows = [np.random.default_rng(n).normal(0, 0.1, (n, 3)).astype(np.float32) for n in sizes]
    rows[0][8000:20000] *= 1e-3
    rows[4][:] = 0
    rows[5][2000, 1] = np.nan
    rates = [np.float32(r) for r in (4000.0, 8000.0, 16000.0, 8000.0, 4001.5, 8000.0)]

    def measured(x: Any, rate: Any) -> Any:
        first = fn.copy(x[:, 0])
        return (
            fn.loudness(x, sample_rate=rate), fn.loudness(x[:, 1], sample_rate=rate), fn.loudness(first),
            fn.loudness_normalize(x, sample_rate=rate, target=rate * -0.002), fn.loudness_normalize(first),
        )  # fmt: skip

    compare_rows([rows, rates], ["", ""], measured)
