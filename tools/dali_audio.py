# SPDX-License-Identifier: Apache-2.0
"""Audio operators of NVIDIA DALI and of Stoker on the same signals.

``PYTHON tools/dali_audio.py``: PYTHON is an interpreter with nvidia-dali (a CPU is enough). The program stores the
inputs, DALI's outputs and the names of DALI's arguments in tests/compat/dali_audio.npz, with which
tests/compat/test_dali_audio.py compares. ``PYTHON tools/dali_audio.py --compare`` compares DALI with the record.
"""

from __future__ import annotations

import importlib
import io
import sys
import wave
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

RECORD = Path(__file__).resolve().parents[1] / "tests" / "compat" / "dali_audio.npz"


class Case(NamedTuple):
    """Operators on inputs."""

    inputs: str  # names of signals, separated by spaces
    build: Callable[..., Any]  # (fn, types, *inputs) -> outputs
    tolerance: float = 0.0  # largest difference relative to DALI's largest value


def _spectrogram(fn: Any, x: Any, **arguments: Any) -> Any:
    return fn.spectrogram(x, nfft=512, window_length=320, window_step=160, **arguments)


def _mel(fn: Any, x: Any, **arguments: Any) -> Any:
    return fn.mel_filter_bank(_spectrogram(fn, x), **{"nfilter": 80, "sample_rate": 16000.0, **arguments})


def _decibels(fn: Any, x: Any) -> Any:
    return fn.to_decibels(_mel(fn, x), cutoff_db=-60.0)


def _spectrograms() -> Iterator[tuple[str, Case]]:
    def case(tolerance: float = 5e-7, x: str = "signal", **arguments: Any) -> Case:
        return Case(x, lambda fn, types, x: fn.spectrogram(x, **arguments), tolerance)

    frames: dict[str, Any] = {"window_length": 100, "window_step": 33}
    hamming = [0.54 - 0.46 * np.cos(2 * np.pi * (k + 0.5) / 100) for k in range(100)]
    yield "spectrogram", Case("signal", lambda fn, types, x: _spectrogram(fn, x), 5e-7)
    yield "spectrogram, defaults", case()
    yield "magnitudes by time", case(layout="tf", power=1, reflect_padding=False, **frames)
    yield "powers by frequency", case(layout="ft", power=2, reflect_padding=True, **frames)
    yield "frames within the signal", case(1e-6, nfft=111, center_windows=False, **frames)
    yield "frames beyond the ends", case(center_windows=True, nfft=128, **frames)
    yield "window", case(window_fn=[float(w) for w in hamming], **frames)
    yield "window and odd nfft", case(1e-6, window_fn=[1.0] * 100, nfft=135, power=1, **frames)
    yield "signal shorter than a frame", case(x="short", window_length=64, window_step=16)
    yield (
        "signal a little too short",
        case(x="almost", window_length=64, window_step=16, center_windows=False),
    )
    yield "several lengths", case(x="signals", **frames)
    yield "power_spectrum", Case("signal", lambda fn, types, x: fn.power_spectrum(x, nfft=2048), 5e-7)
    for axis in (0, 1, -1):
        yield f"power_spectrum, axis {axis}", Case("image", _power_spectrum(axis=axis, power=1), 1e-6)
    yield "power_spectrum, powers", Case("image", _power_spectrum(axis=0, power=2, nfft=64), 1e-6)


def _power_spectrum(**arguments: Any) -> Callable[..., Any]:
    return lambda fn, types, x: fn.power_spectrum(x, **arguments)


def _mels() -> Iterator[tuple[str, Case]]:
    def case(tolerance: float = 1e-6, **arguments: Any) -> Case:
        return Case("signal", lambda fn, types, x: _mel(fn, x, **arguments), tolerance)

    yield "mel_filter_bank", case()
    yield "mel_filter_bank, defaults", Case("signal", lambda fn, t, x: fn.mel_filter_bank(_spectrogram(fn, x)), 1e-6)
    for formula in ("slaney", "htk"):
        for normalize in (True, False):
            yield (
                f"mel_filter_bank, {formula}{', normalized' if normalize else ''}",
                case(5e-6, nfilter=40, mel_formula=formula, freq_low=50.0, freq_high=7000.0, normalize=normalize),
            )
    yield "mel_filter_bank, low", case(freq_low=300.0, nfilter=23)
    yield "mel_filter_bank, high", case(freq_high=3000.0, nfilter=23)
    yield "mel_filter_bank, rate", case(sample_rate=48000.0, nfilter=31)
    yield (
        "mel_filter_bank by time",
        Case(
            "signal",
            lambda fn, types, x: fn.mel_filter_bank(_spectrogram(fn, x, layout="tf"), nfilter=30, sample_rate=8000.0),
            1e-6,
        ),
    )


def _logarithms() -> Iterator[tuple[str, Case]]:
    def case(**arguments: Any) -> Case:
        return Case("signal", lambda fn, types, x: fn.to_decibels(_mel(fn, x, nfilter=24), **arguments), 5e-6)

    yield "to_decibels", Case("signal", lambda fn, types, x: _decibels(fn, x), 5e-6)
    yield "to_decibels, defaults", case()
    yield "to_decibels of magnitudes", case(multiplier=20.0, reference=0.01)
    yield "to_decibels, cut", case(cutoff_db=-20.0, reference=2.0)
    yield "to_decibels of several lengths", Case("signals", lambda fn, types, x: fn.to_decibels(_mel(fn, x)), 5e-6)
    yield "to_decibels of zeros", Case("zeros", lambda fn, types, x: fn.to_decibels(x, cutoff_db=-80.0), 5e-6)


def _cepstra() -> Iterator[tuple[str, Case]]:
    def case(**arguments: Any) -> Case:
        return Case("signal", lambda fn, types, x: fn.mfcc(_decibels(fn, x), **arguments), 2e-6)

    yield "mfcc, defaults", case()
    for kind in (1, 2, 3, 4):
        yield f"mfcc, type {kind}", case(n_mfcc=20, lifter=22.0, dct_type=kind)
        yield f"mfcc, type {kind}, without lifter", case(n_mfcc=13, dct_type=kind, normalize=False)
        if kind > 1:  # DALI has no orthonormal type 1
            yield f"mfcc, type {kind}, orthonormal", case(n_mfcc=20, lifter=22.0, dct_type=kind, normalize=True)
    yield "mfcc, axis", case(axis=1, n_mfcc=7, lifter=5.5)


def _resampling() -> Iterator[tuple[str, Case]]:
    def case(x: str = "signal", **arguments: Any) -> Case:
        return Case(x, lambda fn, types, x: fn.audio_resample(x, **arguments), 2e-3)

    yield "audio_resample", case(in_rate=44100.0, out_rate=16000.0)
    yield "audio_resample, up", case(scale=1.5, quality=75.0)
    yield "audio_resample, length", case(out_length=777, quality=25.0)
    yield "audio_resample, best", case(scale=0.7, quality=100.0)
    yield "audio_resample, channels", case("channels", scale=0.7)
    yield (
        "audio_resample, int16",
        Case("signal", lambda fn, t, x: fn.audio_resample(x, scale=0.5, quality=0.0, dtype=t.INT16), 2e-3),
    )
    yield (
        "audio_resample of int16",
        Case("shorts", lambda fn, t, x: fn.audio_resample(x, scale=1.25, dtype=t.FLOAT), 2e-3),
    )
    yield (
        "audio_resample, int16 to int16",
        Case("shorts", lambda fn, t, x: fn.audio_resample(x, scale=0.75), 2e-3),
    )
    yield "audio_resample by row", Case("signals ratios", lambda fn, t, x, s: fn.audio_resample(x, scale=s), 2e-3)
    yield (
        "audio_resample, lengths by row",
        Case("signals counts", lambda fn, t, x, n: fn.audio_resample(x, out_length=n), 2e-3),
    )
    yield (
        "audio_resample, rates by row",
        Case("signals rates others", lambda fn, t, x, a, b: fn.audio_resample(x, in_rate=a, out_rate=b), 2e-3),
    )
    yield (
        "experimental.audio_resample",
        Case(
            "signals rates others ratios counts",
            lambda fn, t, x, a, b, s, n: tuple(
                fn.experimental.audio_resample(x, **arguments)
                for arguments in (
                    {"in_rate": 3.0, "out_rate": 2.0, "quality": 60.0, "dtype": t.FLOAT}, {"in_rate": a, "out_rate": b},
                    {"scale": 1.1}, {"scale": s}, {"out_length": 500}, {"out_length": n},
                )
            ),
            2e-3,
        ),
    )  # fmt: skip


def _regions() -> Iterator[tuple[str, Case]]:
    def case(x: str = "fading", **arguments: Any) -> Case:
        return Case(x, lambda fn, types, x: tuple(fn.nonsilent_region(x, **arguments)))

    yield "nonsilent_region", case(cutoff_db=-10.0)
    yield "nonsilent_region, defaults", case()
    yield (
        "nonsilent_region, reference",
        case(cutoff_db=-20.0, reference_power=0.02, window_length=64, reset_interval=128),
    )
    yield "nonsilent_region, short window", case(cutoff_db=-15.0, window_length=5, reset_interval=50)
    yield "nonsilent_region, no reset", case(cutoff_db=-15.0, window_length=50, reset_interval=-1)
    yield "nonsilent_region of int16", case("shorts", cutoff_db=-3.0, window_length=8, reset_interval=64)
    yield "nonsilent_region of several lengths", case("signals", cutoff_db=-6.0, window_length=16)


def _filters() -> Iterator[tuple[str, Case]]:
    def case(x: str = "signal", tolerance: float = 0.0, **arguments: Any) -> Case:
        return Case(x, lambda fn, types, x: fn.preemphasis_filter(x, **arguments), tolerance)

    yield "preemphasis_filter, defaults", case()
    for border in ("clamp", "zero", "reflect"):
        yield f"preemphasis_filter, {border}", case(border=border, preemph_coeff=0.9)
        yield (
            f"preemphasis_filter by row, {border}",
            Case("signals factors", _preemphasis(border)),
        )
    yield "preemphasis_filter of int16", case("shorts", preemph_coeff=0.7)
    yield (
        "preemphasis_filter, int16",
        Case("shorts", lambda fn, t, x: fn.preemphasis_filter(x, dtype=t.INT16, preemph_coeff=0.6180339)),
    )


def _preemphasis(border: str) -> Callable[..., Any]:
    return lambda fn, types, x, k: fn.preemphasis_filter(x, border=border, preemph_coeff=k)


def _normalized() -> Iterator[tuple[str, Case]]:
    def case(tolerance: float = 2e-6, **arguments: Any) -> Case:
        return Case("signals", lambda fn, types, x: fn.normalize(_spectrogram(fn, x), **arguments), tolerance)

    yield "normalize", case()
    yield "normalize, axes", case(axes=[1], ddof=1, epsilon=0.25)
    yield "normalize, names of axes", case(3e-5, axis_names="t", scale=3.0, shift=-1.0)
    yield "normalize, batch", case(batch=True)
    yield "normalize, batch and axes", case(batch=True, axes=[1], epsilon=1.0, ddof=1)
    yield "normalize, mean", case(mean=2.0, axes=[0, 1])
    yield "normalize, deviation", case(stddev=5.0)
    yield "normalize, both", case(mean=2.0, stddev=5.0, scale=2.0, shift=1.0)
    yield (
        "normalize, int16",
        Case(
            "signals",
            lambda fn, t, x: fn.normalize(_spectrogram(fn, x), dtype=t.INT16, scale=1000.0),
            1e-4,
        ),
    )
    yield (
        "normalize by row",
        Case("signals means deviations", lambda fn, t, x, m, s: fn.normalize(x, mean=m, stddev=s, axes=[0]), 2e-6),
    )


def _padded() -> Iterator[tuple[str, Case]]:
    def case(**arguments: Any) -> Case:
        return Case("signals", lambda fn, types, x: fn.pad(_decibels(fn, x), **arguments), 5e-6)

    yield "pad", case()
    yield "pad, axes", case(axes=[1], fill_value=-7.5)
    yield "pad, names of axes", case(axis_names="t", align=16)
    yield "pad, shape", case(axes=[0, 1], shape=[-1, 40], fill_value=1.0)
    yield "pad, shape and align", case(axes=[0, 1], shape=[90, 3], align=[4, 7])
    yield (
        "pad by row",
        Case(
            "signals floors steps sizes",
            lambda fn, t, x, f, a, s: (fn.pad(x, axes=[0], fill_value=f, align=a, shape=s), fn.pad(x, axes=[-1])),
        ),
    )
    yield "pad, axes by row", Case("signals first", lambda fn, t, x, axes: fn.pad(x, axes=axes, align=5))


def _decoders() -> Iterator[tuple[str, Case]]:
    def case(x: str, tolerance: float = 0.0, name: str = "decoders.audio", **arguments: Any) -> Case:
        def build(fn: Any, types: Any, x: Any) -> Any:
            given = {k: getattr(types, v) if k == "dtype" else v for k, v in arguments.items()}
            group, _, last = name.rpartition(".")
            return tuple(getattr(getattr(fn, group) if group else fn, last)(x, **given))

        return Case(x, build, tolerance)

    integers = {"wav8": "8 bits", "wav16": "16 bits", "wav24": "24 bits", "wav32": "32 bits"}
    for x, text in {**integers, "wavf": "floats", "flac": "FLAC"}.items():
        yield f"decoders.audio, {text}", case(x)
        yield f"decoders.audio, {text}, downmix", case(x, 2e-7, downmix=True)
    for x in ("wav16", "wav24", "flac"):
        yield f"decoders.audio, {x}, int16", case(x, dtype="INT16")
        yield f"decoders.audio, {x}, int32", case(x, dtype="INT32")
        yield f"decoders.audio, {x}, float", case(x, dtype="FLOAT", downmix=False)
    yield "decoders.audio, int16, downmix", case("wav16", 1e-4, dtype="INT16", downmix=True)
    for quality in (0.0, 50.0, 100.0):
        yield f"decoders.audio, resampled {quality:g}", case("wav16", 2e-3, sample_rate=6000.0, quality=quality)
    yield (
        "decoders.audio, rates by row",
        Case(
            "wav16 others",
            lambda fn, t, x, rate: tuple(fn.decoders.audio(x, sample_rate=rate, downmix=True)),
            2e-3,
        ),
    )
    yield "decoders.audio, general arguments", case("wav16", bytes_per_sample_hint=[4096], preserve=True)
    yield (
        "audio_decoder",
        case("wav16", 2e-3, "audio_decoder", downmix=True, dtype="FLOAT", sample_rate=9000.0, quality=30.0),
    )
    yield (
        "audio_decoder, rates by row",
        Case("wav16 others", lambda fn, t, x, rate: tuple(fn.audio_decoder(x, sample_rate=rate)), 2e-3),
    )


CASES: dict[str, Case] = {
    name: case
    for group in (
        _spectrograms, _mels, _logarithms, _cepstra, _resampling, _regions, _filters, _normalized, _padded, _decoders,
    )
    for name, case in group()
}  # fmt: skip

OPERATORS = (
    "audio_decoder", "audio_resample", "decoders.audio", "experimental.audio_resample", "mel_filter_bank", "mfcc",
    "nonsilent_region", "normalize", "pad", "power_spectrum", "preemphasis_filter", "readers.nemo_asr", "spectrogram",
    "to_decibels",
)  # fmt: skip

# Arguments of all operators, without a meaning of their own for those of audio.
GENERAL = {"bytes_per_sample_hint", "preserve", "seed"}


def make_inputs() -> dict[str, list[Any]]:
    """Return the rows of named inputs."""
    rng = np.random.default_rng(3)
    signal = (0.2 * np.sin(np.arange(2000) * 0.05) + rng.normal(0, 0.05, 2000)).astype(np.float32)
    fade = np.exp(-(((np.arange(2000) - 1100) / 300) ** 2)).astype(np.float32)
    single: dict[str, Any] = {
        "signal": signal, "short": signal[:5], "almost": signal[:50], "fading": signal * fade,
        "image": rng.normal(0, 1, (9, 21)).astype(np.float32), "zeros": np.zeros((4, 3), np.float32),
        "channels": rng.normal(0, 0.2, (700, 3)).astype(np.float32),
        "shorts": (signal[:900] * fade[600:1500] * 30000).astype(np.int16),
    }  # fmt: skip

    def numbers(dtype: Any, *values: Any) -> list[Any]:
        return [np.array(v, dtype) for v in values]

    return {
        **{name: [x] for name, x in single.items()},
        "signals": [signal[:700], signal[900:1377], signal[5:326] * fade[900:1221]],
        "ratios": numbers(np.float32, 0.5, 1.0, 1.75), "counts": numbers(np.int64, 350, 477, 121),
        "rates": numbers(np.float32, 8000, 4000, 16000), "others": numbers(np.float32, 6000, 7000, 16000),
        "factors": numbers(np.float32, 0.97, 0, 0.25), "means": numbers(np.float32, [0.1], [0], [-3]),
        "deviations": numbers(np.float32, [0.5], [2], [0.25]), "floors": numbers(np.float32, 0, -1.5, 9),
        "steps": numbers(np.int32, [7], [1], [64]), "sizes": numbers(np.int32, [710], [1], [100]),
        "first": numbers(np.int32, [0], [-1], [0]),
        **{f"wav{8 * width}": [_wav(rng, width, count, c) for count, c in ((120, 1), (141, 2), (97, 2))]
           for width in (1, 2, 3, 4)},
        "wavf": [_float_wav(x) for x in (signal[:100], signal[:77])],
    }  # fmt: skip


def _wav(rng: Any, width: int, count: int, channels: int) -> Any:
    """Return a file of random samples."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setparams((channels, width, 8000, 0, "NONE", ""))
        out.writeframes(rng.integers(0, 256, count * channels * width).astype(np.uint8).tobytes())
    return np.frombuffer(file.getvalue(), np.uint8)


def _float_wav(samples: Any) -> Any:
    """Return a file of floats of 32 bits, one channel."""
    data = samples.astype("<f4").tobytes()
    head = np.array([16, 3 | 1 << 16, 8000, 32000, 4 | 32 << 16], "<u4").tobytes()
    body = b"WAVEfmt " + head + b"data" + len(data).to_bytes(4, "little") + data
    return np.frombuffer(b"RIFF" + len(body).to_bytes(4, "little") + body, np.uint8)


def _flac(wav: Any) -> Any:
    soundfile = importlib.import_module("soundfile")
    samples, rate = soundfile.read(io.BytesIO(wav.tobytes()), dtype="int16", always_2d=True)
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format="FLAC", subtype="PCM_16")
    return np.frombuffer(file.getvalue(), np.uint8)


def run_case(module: str, name: str, inputs: dict[str, list[Any]]) -> list[list[Any]]:
    """Return the rows of each output of a case. ``module`` is nvidia.dali or stoker.dali."""
    dali = importlib.import_module(module)
    fn, types = importlib.import_module(f"{module}.fn"), importlib.import_module(f"{module}.types")
    case = CASES[name]
    given = [inputs[key] for key in case.inputs.split()]
    count = min(len(rows) for rows in given)

    @dali.pipeline_def(batch_size=count, num_threads=1, device_id=None)  # type: ignore[untyped-decorator]
    def pipe() -> Any:
        return case.build(fn, types, *(fn.external_source(source=_source(rows[:count])) for rows in given))

    running = pipe()
    running.build()
    return [[np.array(output.at(i)) for i in range(count)] for output in running.run()]


def _source(rows: list[Any]) -> Callable[[], list[Any]]:
    return lambda: rows


class _Node:
    """A node that ``arguments_of`` builds graphs of."""

    def __iter__(self) -> Iterator[_Node]:
        return iter((_Node(), _Node()))


class _Recorder:
    """A module ``fn`` whose functions note the names of their arguments."""

    def __init__(self, used: set[str], path: str = "") -> None:
        self._used, self._path = used, path

    def __getattr__(self, name: str) -> _Recorder:
        return _Recorder(self._used, f"{self._path}.{name}" if self._path else name)

    def __call__(self, *inputs: Any, **arguments: Any) -> _Node:
        for name, value in arguments.items():
            self._used.add(f"{self._path} {name}{' by row' if isinstance(value, _Node) else ''}")
        return _Node()


def arguments_of(case: Case) -> set[str]:
    """Return "operator argument" of each argument that a case gives; with " by row", where it is a node."""
    used: set[str] = set()
    types = importlib.import_module("stoker.dali.types")
    case.build(_Recorder(used), types, *(_Node() for _ in case.inputs.split()))
    return used


def dalis_arguments() -> list[str]:
    """Return "operator argument" of all arguments of DALI's operators, and " by row" for those that take tensors."""
    importlib.import_module("nvidia.dali.fn")
    schema_of = importlib.import_module("nvidia.dali.backend").GetSchema
    registry = importlib.import_module("nvidia.dali.ops._registry")
    schemas = {_name_of(schema): schema for schema in registry.cpu_ops()}
    found = []
    for name in OPERATORS:
        schema = schema_of(schemas[name.removeprefix("experimental.")])  # the schema of the old name has no arguments
        for argument in set(schema.GetArgumentNames()) - GENERAL:
            found += [f"{name} {argument}"] + [f"{name} {argument} by row"] * schema.IsTensorArgument(argument)
    return sorted(found)


def _name_of(schema: str) -> str:
    """Return the name of a function: ``readers.nemo_asr`` for ``readers__NemoAsr``."""
    *groups, last = schema.split("__")
    snake = "".join(f"_{c.lower()}" if c.isupper() and i and not last[i - 1].isupper() else c.lower()
                    for i, c in enumerate(last))  # fmt: skip
    return ".".join([*groups, snake])


def main() -> None:
    inputs, check = make_inputs(), "--compare" in sys.argv[1:]
    recorded = dict(np.load(RECORD)) if check else {}
    # Versions of libsndfile may write different files, so those of the record are decoded again.
    inputs["flac"] = [recorded[f"in:flac:{i}"] if check else _flac(x) for i, x in enumerate(inputs["wav16"])]
    found: dict[str, Any] = {"arguments": np.array(dalis_arguments())}
    for key, rows in inputs.items():
        found |= {f"in:{key}:{i}": x for i, x in enumerate(rows)}
    for name in CASES:
        for k, rows in enumerate(run_case("nvidia.dali", name, inputs)):
            found |= {f"out:{name}:{k}:{i}": x for i, x in enumerate(rows)}
    if check:
        unlike = sorted(
            key for key in found.keys() | recorded.keys()
            if key not in found or key not in recorded or not np.array_equal(found[key], recorded[key])
        )  # fmt: skip
        print(f"{len(CASES)} cases, {len(unlike)} arrays unlike the record{''.join(f'; {key}' for key in unlike)}")
        sys.exit(bool(unlike))
    np.savez_compressed(RECORD, **found)


if __name__ == "__main__":
    main()
