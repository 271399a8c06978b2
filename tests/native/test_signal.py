# SPDX-License-Identifier: Apache-2.0
"""Native code of spectra: the same bits on every instruction set, and the error against float64."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from stoker import eager
from stoker.native import _native

Array = Any
FAST = (
    1,
    2,
    3,
    4,
    5,
    6,
    8,
    10,
    15,
    16,
    25,
    27,
    32,
    48,
    64,
    81,
    100,
    125,
    128,
    200,
    256,
    400,
    480,
    512,
    1024,
    1536,
    4096,
)
CHIRPS = (7, 11, 14, 22, 34, 37, 74, 111, 222, 441, 511, 882, 1102, 1103, 4099)


def noise(shape: Any, seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(0, 0.1, shape).astype(np.float32)


def on_all_instruction_sets(make: Callable[[], Array]) -> Array:
    """Return the result, after comparing the bits that every instruction set gives."""
    before, found = _native.get_isa(), {}
    try:
        for isa in _native.instruction_sets():
            _native.set_isa(isa)
            found[isa] = np.asarray(make())
    finally:
        _native.set_isa(before)
    for isa, result in found.items():
        assert result.tobytes() == found["plain"].tobytes(), isa
    return found["plain"]


@pytest.mark.parametrize("nfft", [*FAST, *CHIRPS])
def test_error_of_a_transform(nfft: int) -> None:
    """Within a few units of float32's precision of a spectrum's largest value, as pocketfft in float32."""
    x = noise((37, nfft), nfft)
    got = on_all_instruction_sets(lambda: eager.power_spectrum(x, axis=1))
    want = np.abs(np.fft.rfft(x.astype(np.float64), axis=1)) ** 2
    error = np.abs(got - want) / want.max(1, keepdims=True)
    assert error.max() < (1.2e-6 if nfft in CHIRPS else 6e-7)
    theirs = np.abs(np.fft.rfft(x.astype(np.float64) * (1 + 1e-5), axis=1)) ** 2  # the bound detects a small error
    assert (np.abs(theirs - want) / want.max(1, keepdims=True)).max() > 6e-6


@pytest.mark.parametrize("layout", ["ft", "tf"])
@pytest.mark.parametrize(("nfft", "length"), [(512, 320), (400, 400), (37, 20), (100, 63)])
def test_layouts_and_widths_do_not_change_bits(nfft: int, length: int, layout: str) -> None:
    """A frame has the bits that it has alone; the layouts hold the same values."""
    x = noise(5 * 160 * 7 + 3)
    arguments = {"nfft": nfft, "window_length": length, "window_step": 61, "center_windows": False}
    all_frames = on_all_instruction_sets(lambda: eager.spectrogram(x, layout=layout, **arguments))
    by_time = all_frames if layout == "tf" else all_frames.T
    for t in (0, 1, 16, 40):
        (alone,) = np.asarray(eager.spectrogram(x[61 * t : 61 * t + length], layout="tf", **arguments))
        assert by_time[t].tobytes() == alone.tobytes()


def test_weighted_sums_have_the_same_bits_in_both_layouts() -> None:
    x = noise((257, 90)) ** 2
    arguments = {"nfilter": 40, "sample_rate": 16000.0}
    rows = on_all_instruction_sets(lambda: eager.mel_filter_bank(x, **arguments))
    columns = on_all_instruction_sets(lambda: eager.mfcc(rows, n_mfcc=13))
    turned = on_all_instruction_sets(lambda: eager.mfcc(np.ascontiguousarray(rows.T), n_mfcc=13, axis=1))
    assert columns.tobytes() == np.ascontiguousarray(turned.T).tobytes()


def test_tables_have_fixed_bits() -> None:
    """Tables come from functions with the same bits on every machine, so results do too."""
    x = np.ones((2, 75), np.float32)
    x[1] = np.arange(75)
    results = [eager.power_spectrum(x, axis=1, nfft=n) for n in (75, 128, 77)]
    results += [
        eager.mel_filter_bank(np.ones((65, 3), np.float32), nfilter=9, mel_formula=f) for f in ("slaney", "htk")
    ]
    results.append(eager.mfcc(np.ones((20, 2), np.float32), n_mfcc=7, lifter=22.0, normalize=True))
    results.append(eager.to_decibels(np.ldexp(np.float32(1.3), np.arange(-30, 30)).astype(np.float32), reference=1.0))
    assert [zlib.crc32(np.asarray(r).tobytes()) for r in results] == DIGESTS


DIGESTS = [2523615282, 2739438579, 3752368569, 2315762194, 3372617886, 3485853240, 2519793855]


def test_log2_is_within_an_ulp() -> None:
    """Mantissas on both sides of 1, and exponents, through a multiplier that makes the factor 1."""
    multiplier = 1 / np.log10(2.0)
    assert np.float32(multiplier * 0.30102999566398120) == 1
    mantissas = np.arange(0x3E800000, 0x40800000, 11, dtype=np.uint32).view(np.float32)
    exponents = np.ldexp(np.float32(1.2345678), np.arange(-124, 128)).astype(np.float32)
    for x in (mantissas, exponents):
        got = on_all_instruction_sets(
            lambda x=x: eager.to_decibels(x, multiplier=multiplier, reference=1.0, cutoff_db=-125.0)
        )
        want = np.log2(x.astype(np.float64))
        ulp = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
        assert (np.abs(got - want) / ulp).max() <= 1.0


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((70, 21), (0,)), ((21, 1601), (1,)), ((1601, 80), (0,)), ((9000, 19), (0,)), ((3, 9000), (1,)),
        ((5, 6, 7), (1,)), ((5, 60, 7), (0, 1)), ((5, 6, 70), (1, 2)), ((40,), (0,)), ((9, 130), (0, 1)),
        ((0, 4), (0,)), ((4, 0), (0,)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("more", [{}, {"ddof": 2, "scale": 3.0, "shift": -0.5, "epsilon": 0.25}])
def test_one_kernel_normalizes_as_reductions_do(shape: Any, axes: Any, more: dict[str, Any]) -> None:
    """The mean in double, then the variance, then every element in float32."""
    x = noise(shape, 3) + np.float32(1)
    if x.size > 100:
        x[..., 2] = 0.1  # without deviation, if the axes before it are reduced
        x.reshape(-1)[77] = np.inf
    got = on_all_instruction_sets(lambda: eager.normalize(x, axes=axes, **more))
    mean = np.asarray(eager.reductions.mean(x, axes=axes, keep_dims=True, dtype="float64"))
    spread = eager.reductions.variance(x, mean, axes=axes, keep_dims=True, ddof=more.get("ddof", 0))
    f32 = np.float32
    variance = np.asarray(spread) + f32(more.get("epsilon", 0))
    with np.errstate(all="ignore"):
        factor = np.where(variance > 0, f32(more.get("scale", 1)) / np.sqrt(variance), f32(0))
        want = (x - mean.astype(f32)) * factor + f32(more.get("shift", 0))
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("count", [1, 7, 15, 16, 17, 31, 33, 128, 129, 300])
def test_sums_do_not_depend_on_the_number_of_columns(count: int) -> None:
    """Columns are summed in tiles of several vectors; the last one overlaps the one before."""
    x = noise((65, count), count) ** 2
    mel = on_all_instruction_sets(lambda: eager.mel_filter_bank(x, nfilter=11, sample_rate=16000.0))
    cosines = on_all_instruction_sets(lambda: eager.mfcc(x, n_mfcc=14))
    for column in {0, count // 2, count - 1}:
        alone = np.ascontiguousarray(x[:, column : column + 1])
        np.testing.assert_array_equal(
            mel[:, column : column + 1], eager.mel_filter_bank(alone, nfilter=11, sample_rate=16000.0)
        )
        np.testing.assert_array_equal(cosines[:, column : column + 1], eager.mfcc(alone, n_mfcc=14))


def test_decibels_of_special_numbers() -> None:
    """Also where no result can be below a positive normal number, which has a shorter form."""
    x = np.array([0.0, -0.0, -3.0, 1e-42, 1e-38, 1.0, 3e38, np.inf, -np.inf, np.nan], np.float32).repeat(5)
    for cutoff in (-300.0, -400.0, -800.0):
        got = on_all_instruction_sets(lambda c=cutoff: eager.to_decibels(x, reference=1.0, cutoff_db=c))
        least = np.float32(10.0 ** (cutoff / 10))
        with np.errstate(all="ignore"):
            want = 10 * np.log10(np.where(x < least, least, x).astype(np.float64))
        np.testing.assert_allclose(got, want, rtol=3e-7)


def test_tables_of_weights_are_limited() -> None:
    """A graph from elsewhere may ask for any size: it is refused before memory is taken."""
    for make, arguments in (
        (_native.kernels.mel_weights, (65536, 16000.0, 0.0, 8000.0, False, True, 1 << 20)),
        (_native.kernels.dct_weights, (65536, 2, False, 0.0, 1 << 20)),
    ):
        with pytest.raises(ValueError, match=r"2\*\*24 weights"):
            make(*arguments)
    for bins in (1, -1, (1 << 20) + 1):
        with pytest.raises(ValueError, match="bins"):
            _native.kernels.mel_weights(2, 16000.0, 0.0, 8000.0, False, True, bins)
