# SPDX-License-Identifier: Apache-2.0
"""Audio operators: meanings of arguments, borders, short and hostile signals."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from stoker import eager, fn, pipeline_def
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError
from stoker.native import _native
from stoker.ops.audio._miniaudio import flac_header
from stoker.ops.audio._mp3 import checked
from stoker.ops.audio._wav import write_wav

REFUSED = (ArgumentError, DataError, UnsupportedError)


def signal(size: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 0.1, size).astype(np.float32)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 40])
def test_short_signals_are_mirrored_repeatedly(size: int) -> None:
    x = signal(size)
    got = np.asarray(eager.spectrogram(x, window_length=32, window_step=4, layout="tf"))
    assert got.shape == (size // 4 + 1, 17)
    period = max(2 * (size - 1), 1)
    mirrored = [(i % period) if (i % period) < size else period - i % period for i in range(-16, 16)]
    window = 0.5 * (1 - np.cos(2 * np.pi * (np.arange(32) + 0.5) / 32))
    want = np.abs(np.fft.rfft(x[mirrored] * window)) ** 2
    np.testing.assert_allclose(got[0], want, atol=1e-6 * want.max())


def test_a_signal_that_is_a_little_too_short_is_filled_up() -> None:
    x = signal(60)
    assert eager.spectrogram(x, window_length=64, window_step=5, center_windows=False).shape == (33, 1)
    padded = np.pad(x, (0, 4))
    np.testing.assert_array_equal(
        eager.spectrogram(x, window_length=64, window_step=5, center_windows=False),
        eager.spectrogram(padded, window_length=64, window_step=5, center_windows=False),
    )
    with pytest.raises(REFUSED, match="more than 60 samples"):
        eager.spectrogram(x, window_length=64, window_step=4, center_windows=False)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"nfft": 256}, "expected `nfft` from 512"),
        ({"nfft": 1 << 21}, "to 1048576"),
        ({"window_length": 0}, "`window_length` of at least 1"),
        ({"window_step": 0}, "`window_step` of at least 1"),
        ({"window_fn": [1.0, 2.0]}, "expected 512 numbers as `window_fn`"),
        ({"power": 3}, "expected one of 1, 2"),
        ({"layout": "tft"}, "expected one of 'ft', 'tf'"),
    ],
)
def test_arguments_of_spectrograms_are_checked(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(REFUSED, match=text):
        eager.spectrogram(signal(1000), **arguments)


def test_other_signals_are_refused() -> None:
    with pytest.raises(REFUSED, match="expected a signal with samples"):
        eager.spectrogram(signal(0))
    with pytest.raises(REFUSED, match="expected float32"):
        eager.spectrogram(np.zeros(1000, np.int16))
    with pytest.raises(REFUSED, match="one channel"):
        eager.spectrogram(np.zeros((1000, 2), np.float32))
    one = signal(1000)
    np.testing.assert_array_equal(eager.spectrogram(one[:, None]), eager.spectrogram(one))


def test_nan_stays_in_its_frames() -> None:
    x = signal(4000)
    clean = np.asarray(eager.spectrogram(x, window_length=64, window_step=64, layout="tf"))
    x[1000] = np.nan
    got = np.asarray(eager.spectrogram(x, window_length=64, window_step=64, layout="tf"))
    bad = np.isnan(got).any(1)
    assert bad.sum() == 1
    np.testing.assert_array_equal(got[~bad], clean[~bad])


def test_a_power_spectrum_of_any_axis() -> None:
    x = signal(3 * 20 * 5).reshape(3, 20, 5)
    for axis in (0, 1, 2, -2):
        got = np.asarray(eager.power_spectrum(x, axis=axis, nfft=24))
        want = np.abs(np.fft.rfft(x.astype(np.float64), 24, axis)) ** 2
        np.testing.assert_allclose(got, want, atol=1e-6 * want.max())
    with pytest.raises(REFUSED, match="expected `axis`"):
        eager.power_spectrum(x, axis=3)
    with pytest.raises(REFUSED, match="at most 8 elements"):
        eager.power_spectrum(x, axis=1, nfft=8)


@pytest.mark.parametrize("points", range(1, 10))
def test_a_power_spectrum_of_few_points(points: int) -> None:
    """Sizes of one pass have no table of factors, which sanitizers notice if the pass refers to it."""
    x = signal(4 * points).reshape(4, points)
    want = np.abs(np.fft.rfft(x.astype(np.float64))) ** 2
    np.testing.assert_allclose(np.asarray(eager.power_spectrum(x)), want, atol=1e-6 * want.max())


def test_mel_filters_are_refused_outside_of_the_spectrum() -> None:
    x = np.ones((257, 4), np.float32)
    for arguments in ({"freq_high": 30000.0}, {"freq_low": 9000.0, "freq_high": 8000.0}, {"freq_low": -1.0}):
        with pytest.raises(REFUSED, match="half of `sample_rate`"):
            eager.mel_filter_bank(x, **arguments)
    with pytest.raises(REFUSED, match="positive `sample_rate`"):
        eager.mel_filter_bank(x, sample_rate=0.0)
    with pytest.raises(REFUSED, match="two bins"):
        eager.mel_filter_bank(x[:1])


@pytest.mark.parametrize("formula", ["slaney", "htk"])
def test_filters_sum_to_one_between_their_middles(formula: str) -> None:
    """Neighbouring triangles add up to 1 where they are not divided by their widths."""
    got = np.asarray(
        eager.mel_filter_bank(np.eye(513, dtype=np.float32), nfilter=10, normalize=False, mel_formula=formula)
    )
    total = got.sum(0)
    first, last = int(got[0].argmax()) + 1, int(got[-1].argmax())
    np.testing.assert_allclose(total[first:last], 1, atol=1e-5)


def test_decibels_of_special_values() -> None:
    x = np.array([1.0, 0.5, 0.0, 1e-30, np.inf], np.float32)
    got = np.asarray(eager.to_decibels(x, reference=1.0, cutoff_db=-80.0))
    np.testing.assert_allclose(got, [0, -3.0103, -80, -80, np.inf], rtol=1e-5)
    assert np.isnan(np.asarray(eager.to_decibels(np.array([np.nan, 1.0], np.float32), reference=1.0))).tolist() == [
        True,
        False,
    ]
    assert np.asarray(eager.to_decibels(np.zeros(4, np.float32), cutoff_db=-70.0)).tolist() == pytest.approx(
        [-70.0] * 4
    )
    tiny = np.full(3, 1e-45, np.float32)  # the reciprocal of a subnormal reference is infinite
    assert not np.isnan(np.asarray(eager.to_decibels(np.array([2.0**-126, 2.0**-125], np.float32)))).any()
    assert np.asarray(eager.to_decibels(tiny, reference=1.0)).tolist() == pytest.approx([-200.0] * 3)
    for arguments in ({"multiplier": 0.0}, {"reference": -1.0}, {"cutoff_db": -3000.0}, {"cutoff_db": float("nan")}):
        with pytest.raises(REFUSED, match="expected"):
            eager.to_decibels(x, **arguments)


def test_preemphasis_borders() -> None:
    x = np.array([1.0, 3.0, 2.0], np.float32)
    for border, first in (("clamp", 0.5), ("zero", 1.0), ("reflect", -0.5)):
        got = np.asarray(eager.preemphasis_filter(x, preemph_coeff=0.5, border=border))
        np.testing.assert_array_equal(got, np.array([first, 2.5, 0.5], np.float32))
    np.testing.assert_array_equal(eager.preemphasis_filter(x, preemph_coeff=0.0), x)
    assert eager.preemphasis_filter(x[:0]).shape == (0,)
    np.testing.assert_array_equal(eager.preemphasis_filter(x[:1], preemph_coeff=0.25, border="reflect"), [0.75])
    np.testing.assert_array_equal(
        eager.preemphasis_filter(np.array([100, -100], np.int8), border="zero", preemph_coeff=1.0, dtype="int8"),
        [100, -128],
    )
    with pytest.raises(REFUSED, match="one channel"):
        eager.preemphasis_filter(np.zeros((9, 2), np.float32))


def test_the_mel_chain_in_a_pipeline_with_coefficients_per_row() -> None:
    clips = [signal(n, n) for n in (900, 1600, 333)]
    coefficients = [np.float32(c) for c in (0.0, 0.5, 0.97)]

    @pipeline_def(batch_size=3, num_threads=2)
    def chain() -> Any:
        x = fn.external_source(source=lambda: clips)
        c = fn.external_source(source=lambda: coefficients)
        x = fn.preemphasis_filter(x, preemph_coeff=c)
        x = fn.spectrogram(x, nfft=128, window_length=100, window_step=40)
        x = fn.mel_filter_bank(x, nfilter=20, sample_rate=8000.0)
        return fn.mfcc(fn.to_decibels(x, cutoff_db=-80.0), n_mfcc=13)

    with chain() as pipe:
        (batch,) = pipe.run()
    for clip, c, row in zip(clips, coefficients, batch, strict=True):
        y = eager.preemphasis_filter(clip, preemph_coeff=float(c))
        y = eager.mel_filter_bank(
            eager.spectrogram(y, nfft=128, window_length=100, window_step=40), nfilter=20, sample_rate=8000.0
        )
        np.testing.assert_array_equal(np.asarray(row), eager.mfcc(eager.to_decibels(y, cutoff_db=-80.0), n_mfcc=13))


# ---- audio_resample ----


def tone(hertz: float, rate: int, seconds: float = 1.0) -> Any:
    return np.sin(2 * np.pi * hertz * np.arange(int(rate * seconds)) / rate).astype(np.float32)


def decibels_of(x: Any) -> float:
    inner = np.asarray(x, np.float64)[len(x) // 4 : -len(x) // 4]
    return float(10 * np.log10(2 * np.mean(inner**2) + 1e-30))


@pytest.mark.parametrize(("quality", "passed"), [(50.0, 0.69), (75.0, 0.82), (100.0, 0.88)])
def test_the_bands_of_the_resampler(quality: float, passed: float) -> None:
    """Frequencies above half of the lower rate are removed; those of the pass band stay, also at another ratio."""
    for fast, slow in ((44100, 16000), (48000, 16000)):
        rates = {"in_rate": float(fast), "out_rate": float(slow), "quality": quality}
        for hertz in (0.505 * slow, 0.53 * slow, 0.56 * slow, 0.8 * slow, 1.1 * slow):
            assert decibels_of(eager.audio_resample(tone(hertz, fast), **rates)) < -(40 + 0.8 * quality)
        for part in (0.1, 0.5, 0.99):
            hertz = part * passed * slow / 2
            assert abs(decibels_of(eager.audio_resample(tone(hertz, fast), **rates))) < 0.15
    aliased = eager.audio_resample(tone(9000, 44100), in_rate=44100.0, out_rate=16000.0, filter="dali")
    assert abs(decibels_of(aliased)) < 0.1


def test_positions_do_not_drift() -> None:
    """After a minute an output still has the phase of the tone."""
    x = tone(1000, 44100, 60)
    y = np.asarray(eager.audio_resample(x, in_rate=44100.0, out_rate=16000.0, quality=75.0))
    t = np.arange(len(y))
    np.testing.assert_allclose(y[-3000:-300], np.sin(2 * np.pi * t * 1000 / 16000)[-3000:-300], atol=2e-5)


def test_resampling_has_the_same_bits_everywhere() -> None:
    x, before = signal(3001).reshape(-1, 1).repeat(3, 1) * np.float32([1, 2, 3]), _native.get_isa()
    results = {}
    try:
        for isa in _native.instruction_sets():
            _native.set_isa(isa)
            results[isa] = [
                np.asarray(eager.audio_resample(x, **arguments)).tobytes()
                for arguments in ({"scale": 0.363}, {"scale": 1.0437219}, {"scale": 0.951234}, {"out_length": 1})
            ]
    finally:
        _native.set_isa(before)
    assert all(result == results["plain"] for result in results.values())
    one = eager.audio_resample(np.ascontiguousarray(x[:, 1]), scale=0.363)
    np.testing.assert_array_equal(np.asarray(eager.audio_resample(x, scale=0.363))[:, 1], one)


def test_a_constant_stays_one_and_whole_numbers_have_full_scale() -> None:
    for scale in (0.5, 2.0, 0.9871234):
        y = np.asarray(eager.audio_resample(np.full(600, 0.5, np.float32), scale=scale, quality=75.0))
        middle = y[len(y) // 3 : -len(y) // 3]
        np.testing.assert_allclose(middle, 0.5, atol=1e-6)
    whole = np.full(300, 1000, np.int16)
    y = np.asarray(eager.audio_resample(whole, scale=2.0))
    assert y.dtype == np.int16
    assert (y[200:400] == 1000).all()
    assert np.asarray(eager.audio_resample(np.array([1.0] * 300, np.float32), scale=1.0, dtype="int16"))[150] == 32767


def test_lengths_and_arguments_of_the_resampler() -> None:
    x = signal(1001)
    assert eager.audio_resample(x, in_rate=3.0, out_rate=2.0).shape == (668,)
    assert eager.audio_resample(x, out_length=0).shape == (0,)
    assert eager.audio_resample(x[:0], scale=2.0).shape == (0,)
    for arguments, text in (
        ({}, "`in_rate` and `out_rate`, or `scale`"),
        ({"in_rate": 1.0}, "got in_rate"),
        ({"scale": 1.0, "out_length": 3}, "got scale, out_length"),
        ({"scale": -1.0}, "positive `scale`"),
        ({"scale": float("nan")}, "positive `scale`"),
        ({"in_rate": 0.0, "out_rate": 1.0}, "positive `in_rate`"),
        ({"scale": 1e9}, "ratio from 1/4096 to 4096"),
        ({"scale": 1.0, "quality": 101.0}, "`quality` from 0 to 100"),
    ):
        with pytest.raises(REFUSED, match=text):
            eager.audio_resample(x, **arguments)
    with pytest.raises(REFUSED, match="expected float32, int8"):
        eager.audio_resample(x.astype(np.float64), scale=1.0)


def test_files_at_another_rate() -> None:
    file = write_wav(pcm(4000), 8000)
    samples, _ = eager.decoders.audio(file, downmix=True)
    got, rate = eager.decoders.audio(file, downmix=True, sample_rate=12000.0, quality=60.0)
    assert float(rate) == 12000
    want = eager.audio_resample(samples, in_rate=8000.0, out_rate=12000.0, quality=60.0)
    np.testing.assert_array_equal(got, want)
    with pytest.raises(REFUSED, match="`sample_rate` of at least 0"):
        eager.decoders.audio(file, sample_rate=-5.0)


# ---- decoders.audio ----


def pcm(frames: int = 100, channels: int = 2, bits: int = 16) -> Any:
    limit = 1 << (bits - 1)
    return np.random.default_rng(bits).integers(-limit, limit, (frames, channels))


def patched(data: Any, at: int, value: int) -> Any:
    changed = data.copy()
    changed[at : at + 4] = np.frombuffer(value.to_bytes(4, "little"), np.uint8)
    return changed


DATA_SIZE = 40  # offset of the size of the samples, after a format of 16 bytes


def test_sizes_that_writers_leave_open() -> None:
    file = write_wav(pcm(), 16000)
    want, rate = eager.decoders.audio(file)
    assert rate.dtype == np.float32
    assert float(rate) == 16000
    open_ended = patched(patched(file, 4, 0xFFFFFFFF), DATA_SIZE, 0xFFFFFFFF)
    unwritten = patched(patched(file, 4, 0), DATA_SIZE, 0)
    for changed in (open_ended, unwritten):
        np.testing.assert_array_equal(eager.decoders.audio(changed)[0], want)
    assert eager.decoders.audio(patched(file, DATA_SIZE, 0))[0].shape == (0, 2)  # the size of the file says so too
    np.testing.assert_array_equal(eager.decoders.audio(np.append(file, np.zeros(3, np.uint8)))[0], want)
    odd = patched(file, DATA_SIZE, 397)  # the last frame is not whole
    np.testing.assert_array_equal(eager.decoders.audio(odd)[0], want[:99])


def test_a_file_of_sizes_beyond_32_bits() -> None:
    file = write_wav(pcm(), 16000)
    ds64 = b"ds64" + (28).to_bytes(4, "little") + bytes(8) + (400).to_bytes(8, "little") + bytes(12)
    large = np.frombuffer(
        b"RF64\xff\xff\xff\xffWAVE" + ds64 + patched(file, DATA_SIZE, 0xFFFFFFFF).tobytes()[12:], np.uint8
    )
    np.testing.assert_array_equal(eager.decoders.audio(large)[0], eager.decoders.audio(file)[0])


@pytest.mark.parametrize(
    ("at", "value", "text"),
    [
        (DATA_SIZE, 401, "401 bytes of samples, got 400: the file is cut off"),
        (20, 1, "1 to 1024 channels, got 0"),
        (20, 1 | 2000 << 16, "1 to 1024 channels, got 2000"),
        (24, 0, "positive sampling rate"),
        (32, 4 | 40 << 16, "8 to 32 bits"),
        (32, 5 | 16 << 16, "4 bytes for 2 samples of 16 bits, got 5"),
        (36, 0, "without samples"),
        (16, 8, "format of 16 bytes"),
    ],
)
def test_damaged_headers_are_errors(at: int, value: int, text: str) -> None:
    with pytest.raises(DataError, match=text):
        eager.decoders.audio(patched(write_wav(pcm(), 16000), at, value))


def test_every_prefix_of_a_file_is_an_error() -> None:
    file = write_wav(pcm(), 16000, extensible=True)
    for size in range(len(file)):
        with pytest.raises(REFUSED):
            eager.decoders.audio(file[:size])


def test_flipped_bits_never_end_the_process() -> None:
    rng = np.random.default_rng(8)
    file = write_wav(pcm(40, 3, 24), 44100, bits=24)
    for _ in range(300):
        changed = file.copy()
        for at in rng.integers(0, 48, rng.integers(1, 4)):
            changed[at] ^= 1 << rng.integers(0, 8)
        try:
            samples, _ = eager.decoders.audio(changed)
        except REFUSED:
            continue
        assert np.asarray(samples).dtype == np.float32


def test_floats_become_integers_at_full_scale() -> None:
    x = np.array([[0.37], [2.0], [-2.0], [np.nan], [np.inf], [-np.inf], [1e-40]], np.float32)
    file = write_wav(x, 8000)
    np.testing.assert_array_equal(eager.decoders.audio(file)[0], x)
    whole = eager.decoders.audio(file, dtype="int16")[0]
    assert np.asarray(whole)[:, 0].tolist() == [12124, 32767, -32768, 0, 32767, -32768, 0]


def test_many_channels_and_rates() -> None:
    for channels, rate in ((8, 1), (64, 1_000_000_000), (1, 4_000_000_000)):
        file = write_wav(pcm(30, channels), rate)
        samples, found = eager.decoders.audio(file)
        assert samples.shape == (30, channels)
        assert float(found) == np.float32(rate)
        assert eager.decoders.audio(file, downmix=True)[0].shape == (30,)


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_samples_have_the_same_bits_with_every_instruction_set(channels: int) -> None:
    rng, before = np.random.default_rng(channels), _native.get_isa()
    whole = rng.integers(-(1 << 31), 1 << 31, (517, channels))  # vectors of all sizes leave a rest
    special = [np.nan, np.inf, -np.inf, 1e-42, 1.0, -1.0, 0.49999, 1.5 / 32767, 2.5 / 32767, 3e38]
    floats = np.resize([*special, *rng.uniform(-1.2, 1.2, 501)], (517, channels))
    files = [write_wav(whole >> (32 - bits), 16000, bits=bits) for bits in (8, 16, 24, 32)]
    files += [write_wav(floats.astype(dtype), 16000) for dtype in (np.float32, np.float64)]
    results = {}
    try:
        for isa in _native.instruction_sets():
            _native.set_isa(isa)
            results[isa] = [
                np.asarray(eager.decoders.audio(file, dtype=dtype, downmix=downmix)[0]).tobytes()
                for file in files
                for dtype in ("float32", "int16", "int32")
                for downmix in (False, True)
            ]
    finally:
        _native.set_isa(before)
    assert len(set(results["plain"])) > len(files)
    assert all(result == results["plain"] for result in results.values())


def test_ranges_are_parts_of_the_whole() -> None:
    file = write_wav(pcm(1000), 1000)
    whole = np.asarray(eager.decoders.audio(file)[0])
    np.testing.assert_array_equal(eager.decoders.audio(file, offset=0.25, duration=0.5)[0], whole[250:750])
    np.testing.assert_array_equal(eager.decoders.audio(file, offset=0.9, duration=5.0)[0], whole[900:])
    assert eager.decoders.audio(file, offset=1.0)[0].shape == (0, 2)
    with pytest.raises(REFUSED, match="`offset` within the file of 1 seconds"):
        eager.decoders.audio(file, offset=1.1)
    with pytest.raises(REFUSED, match="`duration` of at least 0"):
        eager.decoders.audio(file, duration=-1.0)
    with pytest.raises(REFUSED, match="at most 1999 samples"):
        eager.decoders.audio(file, max_samples=1999)


def test_other_bytes_are_refused() -> None:
    for data in (b"", b"R", b"RIFF", b"this is a text file named tone.wav", b"RIFF\0\0\0\0AVI LIST"):
        with pytest.raises(REFUSED, match="expected a") as raised:
            eager.decoders.audio(np.frombuffer(data, np.uint8))
        assert "handed over" not in str(raised.value), "the formats are named"


@pytest.mark.parametrize("form", ["FLAC", "OGG", "MP3", "AIFF"])
def test_other_formats_are_decoded_by_libsndfile(form: str) -> None:
    soundfile = pytest.importorskip("soundfile")
    x = (0.3 * np.sin(np.arange(8000) * 0.05)).astype(np.float32)[:, None].repeat(2, 1)
    memory = io.BytesIO()
    soundfile.write(memory, x, 16000, format=form)
    data = np.frombuffer(memory.getvalue(), np.uint8)
    want, rate = soundfile.read(io.BytesIO(memory.getvalue()), dtype="float32")
    samples, found = eager.decoders.audio(data)
    assert float(found) == rate
    np.testing.assert_allclose(samples, want, atol=1e-6 if form == "MP3" else 0)  # decoders of MP3 round as they like
    part = np.asarray(eager.decoders.audio(data, downmix=True, offset=0.1, duration=0.2)[0])
    if form != "MP3":
        np.testing.assert_array_equal(part, want[1600:4800].mean(1))
    assert part.shape == (3200,)
    whole = np.asarray(eager.decoders.audio(data, dtype="int16")[0])
    assert np.abs(whole / 32767 - want).max() < 1e-4
    if form == "FLAC":
        for damaged in (data[: len(data) // 2], data[:60]):
            with pytest.raises(REFUSED):
                eager.decoders.audio(damaged)


@pytest.mark.parametrize(("rate", "channels"), [(44100, 1), (22050, 2), (8000, 1)])
def test_mp3_files_that_do_not_state_their_length_are_decoded_to_their_end(rate: int, channels: int) -> None:
    soundfile = pytest.importorskip("soundfile")
    x = np.zeros((2 * rate, channels), np.float32)  # loud, then silent: bit rates fall, and estimates are too short
    x[: rate // 2] = np.random.default_rng(rate).normal(0, 0.3, (rate // 2, channels))
    x[-2000:-1000] = 0.25
    memory = io.BytesIO()
    with soundfile.SoundFile(memory, "w", rate, channels, format="MP3", bitrate_mode="VARIABLE") as file:
        file.write(x)
    stated = memory.getvalue()
    assert checked(stated) == stated
    first = next(at for at in range(4, len(stated)) if stated[at : at + 2] == stated[:2])
    data = stated[first:]
    assert soundfile.info(io.BytesIO(data)).frames < len(x), "the file shows nothing"
    tags = b"ID3\4\0\0\0\0\1\0" + bytes(128), b"TAG" + bytes(125)
    for form in (data, tags[0] + data + tags[1]):
        samples = np.asarray(eager.decoders.audio(np.frombuffer(form, np.uint8))[0])
        assert 0 <= len(samples) - len(x) < 4000  # the encoder's delay and whole frames
        delay = int(np.abs(samples[len(x) - 2000 :]).max(1).argmax()) - 1000
        assert np.abs(samples[len(x) - 1900 + delay : len(x) - 1100 + delay] - 0.25).max() < 0.1 or delay >= 0
    whole = np.asarray(eager.decoders.audio(np.frombuffer(data, np.uint8))[0])
    known = soundfile.read(io.BytesIO(data), dtype="float32", always_2d=True)[0]
    np.testing.assert_allclose(whole[: len(known)], known, atol=1e-6)
    for damaged, text in ((data[:-3], "is cut off"), (data + b"what is this?", "is damaged")):
        with pytest.raises(REFUSED, match=text):
            eager.decoders.audio(np.frombuffer(damaged, np.uint8))


@pytest.mark.parametrize("subtype", ["PCM_S8", "PCM_16", "PCM_24"])
@pytest.mark.parametrize("channels", [1, 2, 5])
def test_both_decoders_of_flac_files_give_the_same_bits(subtype: str, channels: int, monkeypatch: Any) -> None:
    soundfile, _ = pytest.importorskip("soundfile"), pytest.importorskip("miniaudio")
    x = np.random.default_rng(channels).normal(0, 0.2, (9000, channels)).astype(np.float32)
    memory = io.BytesIO()
    soundfile.write(memory, x, 22050, format="FLAC", subtype=subtype)
    data = np.frombuffer(memory.getvalue(), np.uint8)
    assert flac_header(data) == (9000, channels, 22050)
    cases: list[dict[str, Any]] = [
        {"dtype": dtype, "downmix": downmix, **part}
        for dtype in ("float32", "int16", "int32")
        for downmix in (False, True)
        for part in ({}, {"offset": 0.2, "duration": 0.1})
    ]
    found = [[np.asarray(y) for y in eager.decoders.audio(data, **case)] for case in cases]
    monkeypatch.setattr("stoker.ops.audio._soundfile.flac_header", lambda data: None)
    for case, got in zip(cases, found, strict=True):
        for a, b in zip(got, eager.decoders.audio(data, **case), strict=True):
            np.testing.assert_array_equal(a, b, err_msg=str(case))


def test_damaged_flac_files_are_errors() -> None:
    soundfile, _ = pytest.importorskip("soundfile"), pytest.importorskip("miniaudio")
    memory = io.BytesIO()
    soundfile.write(memory, signal(9000), 16000, format="FLAC")
    data = np.frombuffer(memory.getvalue(), np.uint8)
    more = data.copy()
    more[22:26] = (0, 1, 0, 0)  # a header with more frames than the file
    streamed = data.copy()
    streamed[21] &= 0xF0  # a header without the number of frames, which libsndfile finds
    streamed[22:26] = 0
    assert flac_header(streamed) is None
    changed = data.copy()
    changed[len(data) // 2] ^= 0x55  # in a block of samples, whose checksum differs then
    for damaged in (more, changed, data[: len(data) // 2], data[:42], data[:26], data[:20], data[:4]):
        with pytest.raises(REFUSED):
            eager.decoders.audio(damaged)


# ---- nonsilent_region ----


def test_regions_of_special_signals() -> None:
    def region(x: Any, **arguments: Any) -> tuple[int, int]:
        begin, length = eager.nonsilent_region(x, **arguments)
        assert begin.dtype == np.int32
        return int(begin), int(length)

    zeros, lost = np.zeros(500, np.float32), np.full(500, np.nan, np.float32)
    assert region(zeros) == (0, 500)
    assert region(zeros[:0]) == (0, 0)
    assert region(lost) == (0, 0)
    click = zeros.copy()
    click[200] = 1
    arguments = {"window_length": 10, "reset_interval": 10}
    assert region(click, **arguments) == (191, 19)
    long = np.zeros(100_000, np.float32)  # several parts of the sums
    long[[40_000, 70_000]] = 1
    assert region(long, window_length=64) == (39_937, 30_127)
    long[10] = np.nan  # ends with the part
    assert region(long, window_length=64)[1] == 30_127
    for wrong in ({"window_length": 0}, {"reset_interval": 7}, {"reference_power": -1.0}, {"cutoff_db": float("inf")}):
        with pytest.raises(REFUSED, match="expected"):
            eager.nonsilent_region(click, **{**arguments, **wrong})
