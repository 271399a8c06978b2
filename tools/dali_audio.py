# SPDX-License-Identifier: Apache-2.0
"""Audio operators of NVIDIA DALI and of Stoker on the same signals.

``PYTHON tools/dali_audio.py``: PYTHON is an interpreter with nvidia-dali (a CPU is enough). The program stores the
inputs and DALI's outputs in tests/compat/dali_audio.npz, with which tests/compat/test_dali_audio.py compares.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).resolve().parents[1] / "tests" / "compat" / "dali_audio.npz"

Build = Callable[[Any, Any, Any], Any]  # fn, types, input -> output


def _spectrogram(fn: Any, x: Any) -> Any:
    return fn.spectrogram(x, nfft=512, window_length=320, window_step=160)


def _mel(fn: Any, x: Any) -> Any:
    return fn.mel_filter_bank(_spectrogram(fn, x), nfilter=80, sample_rate=16000.0)


def _decibels(fn: Any, x: Any) -> Any:
    return fn.to_decibels(_mel(fn, x), cutoff_db=-60.0)


def _mfcc(**arguments: Any) -> Build:
    return lambda fn, types, x: fn.mfcc(_decibels(fn, x), n_mfcc=20, lifter=22.0, **arguments)


def _preemphasis(border: str) -> Build:
    return lambda fn, types, x: fn.preemphasis_filter(x, border=border, preemph_coeff=0.9)


# Name: the input, the operators, and the largest difference relative to DALI's largest value.
CASES: dict[str, tuple[str, Build, float]] = {
    "spectrogram": ("signal", lambda fn, types, x: _spectrogram(fn, x), 5e-7),
    "magnitudes by time": (
        "signal",
        lambda fn, types, x: fn.spectrogram(
            x, window_length=100, window_step=33, layout="tf", power=1, reflect_padding=False
        ),
        5e-7,
    ),
    "frames within the signal": (
        "signal",
        lambda fn, types, x: fn.spectrogram(x, window_length=100, window_step=33, nfft=111, center_windows=False),
        1e-6,
    ),
    "signal shorter than a frame": (
        "short", lambda fn, types, x: fn.spectrogram(x, window_length=64, window_step=16), 5e-7
    ),
    "signal a little too short": (
        "almost", lambda fn, types, x: fn.spectrogram(x, window_length=64, window_step=16, center_windows=False), 5e-7
    ),
    "power_spectrum": ("signal", lambda fn, types, x: fn.power_spectrum(x, nfft=2048), 5e-7),
    "mel_filter_bank": ("signal", lambda fn, types, x: _mel(fn, x), 1e-6),
    "mel_filter_bank, HTK": (
        "signal",
        lambda fn, types, x: fn.mel_filter_bank(
            _spectrogram(fn, x), nfilter=40, sample_rate=16000.0, mel_formula="htk", freq_low=50.0, freq_high=7000.0,
            normalize=False,
        ),
        5e-6,
    ),
    "to_decibels": ("signal", lambda fn, types, x: _decibels(fn, x), 5e-6),
    "to_decibels of magnitudes": (
        "signal", lambda fn, types, x: fn.to_decibels(_mel(fn, x), multiplier=20.0, reference=0.01), 5e-6
    ),
    **{f"mfcc, type {k}": ("signal", _mfcc(dct_type=k), 2e-6) for k in (1, 2, 3, 4)},
    **{f"mfcc, type {k}, orthonormal": ("signal", _mfcc(dct_type=k, normalize=True), 2e-6) for k in (2, 3, 4)},
    "audio_resample": ("signal", lambda fn, types, x: fn.audio_resample(x, in_rate=44100.0, out_rate=16000.0), 2e-3),
    "audio_resample, up": ("signal", lambda fn, types, x: fn.audio_resample(x, scale=1.5, quality=75.0), 2e-3),
    "audio_resample, length": ("signal", lambda fn, types, x: fn.audio_resample(x, out_length=777, quality=25.0), 2e-3),
    "audio_resample, int16": (
        "signal", lambda fn, types, x: fn.audio_resample(x, scale=0.5, quality=0.0, dtype=types.INT16), 2e-3
    ),
    "nonsilent_region": ("fading", lambda fn, types, x: fn.stack(*fn.nonsilent_region(x, cutoff_db=-10.0)), 0.0),
    "nonsilent_region, reference": (
        "fading",
        lambda fn, types, x: fn.stack(
            *fn.nonsilent_region(
                x, cutoff_db=-20.0, reference_power=0.02, window_length=64, reset_interval=128
            )
        ),
        0.0,
    ),
    **{f"preemphasis_filter, {b}": ("signal", _preemphasis(b), 0.0) for b in ("clamp", "zero", "reflect")},
}  # fmt: skip


def make_inputs() -> dict[str, Any]:
    """Return named signals."""
    rng = np.random.default_rng(3)
    signal = (0.2 * np.sin(np.arange(2000) * 0.05) + rng.normal(0, 0.05, 2000)).astype(np.float32)
    fade = np.exp(-(((np.arange(2000) - 1100) / 300) ** 2)).astype(np.float32)
    return {"signal": signal, "short": signal[:5], "almost": signal[:50], "fading": signal * fade}


def run_case(module: str, name: str, inputs: dict[str, Any]) -> Any:
    """Return the output of a case. ``module`` is nvidia.dali or stoker.dali."""
    dali = importlib.import_module(module)
    fn, types = importlib.import_module(f"{module}.fn"), importlib.import_module(f"{module}.types")
    key, build, _ = CASES[name]

    @dali.pipeline_def(batch_size=1, num_threads=1, device_id=None)  # type: ignore[untyped-decorator]
    def pipe() -> Any:
        return build(fn, types, fn.external_source(source=lambda: [inputs[key]]))

    running = pipe()
    running.build()
    return np.array(running.run()[0].at(0))


def main() -> None:
    inputs = make_inputs()
    outputs = {f"out:{name}": run_case("nvidia.dali", name, inputs) for name in CASES}
    np.savez_compressed(RECORD, **{f"in:{k}": v for k, v in inputs.items()}, **outputs)


if __name__ == "__main__":
    main()
