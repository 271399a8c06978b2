# SPDX-License-Identifier: Apache-2.0
"""Audio on one core: processor time of front ends, resampling and decoding, against DALI and libraries for audio. The
cases of two threads measure elapsed time on two cores.
"""

from __future__ import annotations

import importlib
import io
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.case import Bar, Case, Contender, Sample, Unit
from benchmarks.data import Data
from benchmarks.library import DALI, STOKER, load

ORDER = 47
CLIPS_PER_CPU_S = Unit("clips/CPU s", higher_is_better=True)
CLIPS_PER_S = Unit("clips/s", higher_is_better=True)
_SECONDS, _RATE, _BATCH = 16, 16000, 8
_LEAST_S = 0.25  # of a figure
_FRAME: dict[str, Any] = {"nfft": 512, "window_length": 320, "window_step": 160}
_RATES = {"44to16": (44100, 16000), "48to16": (48000, 16000), "16to44": (16000, 44100)}
_FORMATS: dict[str, tuple[str, str]] = {
    "wav": ("WAV", "PCM_16"),
    "flac": ("FLAC", "PCM_16"),
    "mp3": ("MP3", "MPEG_LAYER_III"),
    "vorbis": ("OGG", "VORBIS"),
    "opus": ("OGG", "OPUS"),
}

Call = Callable[[], Any]


def clip(rate: int, seed: int) -> Any:
    """Return 16 s of sound like speech: twenty harmonics of a moving pitch, with a little noise."""
    rng, t = np.random.default_rng(seed), np.arange(_SECONDS * rate) / rate
    phase = 2 * np.pi * np.cumsum(110 + 30 * np.sin(2 * np.pi * 0.7 * t)) / rate
    voice = sum(np.sin(k * phase) / k for k in range(1, 20)) * (0.5 + 0.5 * np.sin(6 * np.pi * t))
    return np.clip(0.2 * voice + 0.01 * rng.standard_normal(len(t)), -1, 1).astype(np.float32)


def _clips(rate: int = _RATE) -> list[Any]:
    return [clip(rate, seed) for seed in range(_BATCH)]


def _frames() -> Any:
    """Return the indices of the samples of all frames, for a signal that is extended by 256 samples."""
    count = _SECONDS * _RATE // 160 + 1
    return np.arange(count)[:, None] * 160 + np.arange(512)


def _spectra() -> list[Any]:
    """Return power spectra, 257 bins in 1601 frames."""
    window, frames = np.zeros(512, np.float32), _frames()
    window[96:416] = np.hanning(321)[:320]
    cut = [np.pad(c, 256, mode="reflect")[frames] * window for c in _clips()]
    return [np.ascontiguousarray((np.abs(np.fft.rfft(c)) ** 2).astype(np.float32).T) for c in cut]


def _mels() -> list[Any]:
    """Return 80 sums of neighbouring bins for each of 1601 frames."""
    edges = np.linspace(0, 257, 81).astype(int)[:80]
    return [np.add.reduceat(s, edges, axis=0) for s in _spectra()]


def _files(form: str) -> list[Any]:
    """Return encoded clips of one channel."""
    soundfile = importlib.import_module("soundfile")
    files = []
    for one in _clips():
        file = io.BytesIO()
        soundfile.write(file, one, _RATE, format=_FORMATS[form][0], subtype=_FORMATS[form][1])
        files.append(np.frombuffer(file.getvalue(), np.uint8))
    return files


def _inputs(work: str) -> list[Any]:
    kind, _, name = work.partition("-")
    if kind == "decode":
        return _files(name)
    if kind == "resample":
        return _clips(_RATES[name][0])
    return {"mel": _spectra, "decibels": _mels, "dct": _mels, "normalize": _mels}.get(work, _clips)()


def _per_clip(run: Call, threads: int = 1) -> Sample:
    """Return clips per second of the process's CPU time, or of the clock if there are several threads; the first batch
    is not counted.
    """
    run()
    clock = time.process_time if threads == 1 else time.perf_counter

    def read() -> float:
        start, batches = clock(), 0
        while (spent := clock() - start) < _LEAST_S:
            run()
            batches += 1
        return batches * _BATCH / spent

    return Sample(read)


def _each(function: Callable[[Any], Any], inputs: list[Any], threads: int = 1) -> Sample:
    if threads == 1:
        return _per_clip(lambda: [function(one) for one in inputs])
    pool = ThreadPoolExecutor(threads)
    return _per_clip(lambda: list(pool.map(function, inputs)), threads)


def run_pipeline(
    data: Data, *, library: str, work: str, layout: str = "ft", quality: float = 75.0, threads: int = 1
) -> Sample:
    """Run the work as a pipeline, fed without copies."""
    lib, inputs = load(library), _inputs(work)
    fn = lib.fn
    time_axis = layout.index("t")

    def spectra(x: Any) -> Any:
        return fn.spectrogram(x, layout=layout, **_FRAME)

    def mel(x: Any) -> Any:
        return fn.mel_filter_bank(x, nfilter=80, sample_rate=float(_RATE))

    def decibels(x: Any) -> Any:
        return fn.to_decibels(x, multiplier=10.0, reference=1.0, cutoff_db=-80.0)

    def resample(x: Any) -> Any:
        before, after = _RATES[work.partition("-")[2]]
        return fn.audio_resample(x, in_rate=float(before), out_rate=float(after), quality=quality)

    works: dict[str, Callable[[Any], Any]] = {
        "chain": lambda x: fn.normalize(decibels(mel(spectra(fn.preemphasis_filter(x)))), axes=[time_axis]),
        "spectrogram": spectra,
        "mfcc": lambda x: fn.mfcc(decibels(mel(spectra(x))), n_mfcc=20, normalize=True, axis=1 - time_axis),
        "mel": mel,
        "decibels": decibels,
        "dct": lambda x: fn.mfcc(x, n_mfcc=20, normalize=True),
        "normalize": lambda x: fn.normalize(x, axes=[1]),
        "preemphasis": fn.preemphasis_filter,
        "nonsilent": lambda x: tuple(fn.nonsilent_region(x)),
        "resample": resample,
        "decode": lambda x: tuple(fn.decoders.audio(x)),
    }
    function = works.get(work) or works[work.partition("-")[0]]
    axes = "ft" if work in ("mel", "decibels", "dct", "normalize") else ""

    @lib.pipeline_def(batch_size=_BATCH, num_threads=threads, device_id=None, prefetch_queue_depth=1)
    def working() -> Any:
        return function(fn.external_source(source=lambda: inputs, layout=axes, no_copy=True))

    pipeline = working()
    pipeline.build()
    return _per_clip(pipeline.run, threads)


def run_torchaudio(data: Data, *, work: str, threads: int = 1) -> Sample:
    """Call torchaudio's transforms on clip after clip, each on one thread."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    audio = _torchaudio()
    transforms, functional = audio.transforms, audio.functional
    scale = {"norm": "slaney", "mel_scale": "slaney"}
    frame = {"n_fft": 512, "win_length": 320, "hop_length": 160}
    decibels = transforms.AmplitudeToDB("power")
    calls: dict[str, Call] = {
        "spectrogram": lambda: transforms.Spectrogram(**frame),
        "mfcc": lambda: transforms.MFCC(_RATE, n_mfcc=20, melkwargs={**frame, **scale, "n_mels": 80}),
        "mel": lambda: transforms.MelScale(80, _RATE, n_stft=257, **scale),
        "decibels": lambda: decibels,
        "preemphasis": lambda: functional.preemphasis,
        "resample": lambda: transforms.Resample(*_RATES[work.partition("-")[2]]),
    }

    def normalized(x: Any) -> Any:
        return (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True, correction=0)

    if work == "chain":
        mel = transforms.MelSpectrogram(_RATE, n_mels=80, **frame, **scale)

        def function(x: Any) -> Any:
            return normalized(decibels(mel(functional.preemphasis(x))))
    elif work == "normalize":
        function = normalized
    elif work == "dct":
        cosines = functional.create_dct(20, 80, "ortho").T.contiguous()
        function = cosines.matmul
    else:
        function = (calls.get(work) or calls[work.partition("-")[0]])()

    def transformed(x: Any) -> Any:
        with torch.inference_mode():
            return function(x)

    return _each(transformed, [torch.from_numpy(one) for one in _inputs(work)], threads)


def _torchaudio() -> Any:
    """Import torchaudio. Its wheels have a library that needs those of CUDA; if they are missing, torchaudio finds
    that it has no library, which the measured functions do without."""
    try:
        return importlib.import_module("torchaudio")
    except (ImportError, OSError):
        for name in [name for name in sys.modules if name.startswith("torchaudio")]:
            del sys.modules[name]
    glob = Path.glob

    def without_library(self: Path, pattern: str) -> Any:
        return iter(()) if self.parts[-2:] == ("torchaudio", "lib") else glob(self, pattern)

    Path.glob = without_library  # type: ignore[method-assign, assignment]
    try:
        return importlib.import_module("torchaudio")
    finally:
        Path.glob = glob  # type: ignore[method-assign]


def run_librosa(data: Data, *, work: str) -> Sample:
    """Call librosa's functions on clip after clip."""
    librosa = importlib.import_module("librosa")
    warnings.filterwarnings("ignore")
    frame: dict[str, Any] = {"n_fft": 512, "hop_length": 160, "win_length": 320, "pad_mode": "reflect"}
    feature = librosa.feature

    def chain(x: Any) -> Any:
        mel = feature.melspectrogram(y=librosa.effects.preemphasis(x), sr=_RATE, n_mels=80, **frame)
        y = librosa.power_to_db(mel, amin=1e-8, top_db=None)
        return (y - y.mean(1, keepdims=True)) / y.std(1, keepdims=True)

    calls: dict[str, Callable[[Any], Any]] = {
        "chain": chain,
        "spectrogram": lambda x: np.abs(librosa.stft(x, **frame)) ** 2,
        "mfcc": lambda x: feature.mfcc(y=x, sr=_RATE, n_mfcc=20, n_mels=80, **frame),
        "decibels": lambda x: librosa.power_to_db(x, amin=1e-8, top_db=None),
        "preemphasis": librosa.effects.preemphasis,
        "nonsilent": librosa.effects.trim,
    }
    return _each(calls[work], _inputs(work))


def run_scipy(data: Data, *, work: str) -> Sample:
    """Call SciPy and NumPy, as one writes it by hand."""
    fft, signal = importlib.import_module("scipy.fft"), importlib.import_module("scipy.signal")
    window, weights = np.zeros(512, np.float32), _triangles()
    window[96:416] = signal.get_window("hann", 320)

    def spectrogram(x: Any) -> Any:
        frames = np.lib.stride_tricks.sliding_window_view(np.pad(x, 256, mode="reflect"), 512)[::160] * window
        s = fft.rfft(frames, axis=1)
        return s.real**2 + s.imag**2

    def chain(x: Any) -> Any:
        y = x.copy()
        y[1:] -= np.float32(0.97) * x[:-1]
        d = 10 * np.log10(np.maximum(spectrogram(y) @ weights.T, np.float32(1e-8)))
        return (d - d.mean(0)) / d.std(0)

    def resample(x: Any) -> Any:
        before, after = _RATES[work.partition("-")[2]]
        divisor = np.gcd(before, after)
        return signal.resample_poly(x, after // divisor, before // divisor)

    calls: dict[str, Callable[[Any], Any]] = {
        "chain": chain,
        "spectrogram": spectrogram,
        "mel": lambda x: weights @ x,
        "dct": lambda x: fft.dct(x, axis=0, norm="ortho")[:20],
        "normalize": lambda x: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True),
        "resample": resample,
    }
    return _each(calls.get(work) or calls[work.partition("-")[0]], _inputs(work))


def _triangles() -> Any:
    """Return 80 triangular filters over 257 bins."""
    edges = np.geomspace(4, 260, 82) - 4
    bins = np.arange(257)
    left, middle, right = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    return np.minimum((bins - left) / (middle - left), (right - bins) / (right - middle)).clip(0).astype(np.float32)


def run_soxr(data: Data, *, work: str, quality: str, threads: int = 1) -> Sample:
    """Resample with soxr."""
    soxr = importlib.import_module("soxr")
    before, after = _RATES[work.partition("-")[2]]
    return _each(lambda x: soxr.resample(x, before, after, quality), _inputs(work), threads)


def run_soundfile(data: Data, *, work: str) -> Sample:
    """Decode with libsndfile."""
    soundfile = importlib.import_module("soundfile")
    return _each(lambda b: soundfile.read(io.BytesIO(b), dtype="float32"), [file.tobytes() for file in _inputs(work)])


def run_miniaudio(data: Data, *, work: str, threads: int = 1) -> Sample:
    """Decode with miniaudio (the dr_libs and stb_vorbis)."""
    miniaudio = importlib.import_module("miniaudio")
    form: Mapping[str, Any] = {
        "output_format": miniaudio.SampleFormat.FLOAT32, "nchannels": 1, "sample_rate": _RATE,
    }  # fmt: skip
    files = [file.tobytes() for file in _inputs(work)]
    return _each(lambda b: miniaudio.decode(b, **form), files, threads)


def _pipelines(work: str, layouts: tuple[str, ...] = ("ft",), **options: Any) -> list[Contender]:
    """Return the pipelines of Stoker and DALI, one per layout."""
    made = []
    for name, library, environment in (("stoker", STOKER, "stoker"), ("DALI", DALI, "peers")):
        for layout in layouts:
            title = name if len(layouts) == 1 else f"{name} {layout}"
            settings = {"library": library, "work": work, "layout": layout, **options}
            made.append(Contender(title, "run_pipeline", settings, environment, cores=1))  # type: ignore[arg-type]
    return made


def _peers(work: str, *functions: str) -> list[Contender]:
    return [Contender(name, f"run_{name}", {"work": work}, "peers", cores=1) for name in functions]


def _case(work: str, title: str, contenders: list[Contender], bars: tuple[Bar, ...], note: str = "") -> Case:
    text = f"{_BATCH} clips of {_SECONDS} s, one channel; clips per second of CPU time on one core. {note}".strip()
    return Case(f"audio-{work}", f"Audio: {title}", CLIPS_PER_CPU_S, tuple(contenders), bars, text)


def _front_end() -> list[Case]:
    both, tf = ("tf", "ft"), ("DALI tf", "DALI ft")
    chain = _pipelines("chain", both) + _peers("chain", "torchaudio", "librosa", "scipy")
    spectrogram = _pipelines("spectrogram", both) + _peers("spectrogram", "torchaudio", "librosa", "scipy")
    mfcc = _pipelines("mfcc", both) + _peers("mfcc", "torchaudio", "librosa")
    note = "Preemphasis, frames of 512 points (window 320, step 160), 80 mel filters, decibels, normalized over time."
    cases = [
        _case("chain", "the mel chain", chain, (Bar("mel chain", "stoker tf", tf, at_least=5, goal=9),), note),
        _case(
            "spectrogram", "spectrogram", spectrogram, (Bar("spectrogram", "stoker tf", tf, at_least=4, goal=6),)
        ),
        _case(
            "mfcc", "MFCC front end", mfcc, (Bar("MFCC", "stoker tf", ("torchaudio", "DALI tf"), at_least=6, goal=9),)
        ),
    ]  # fmt: skip
    for work, title, peers in (
        ("mel", "mel filters alone", ("torchaudio", "scipy")),
        ("decibels", "decibels alone", ("torchaudio", "librosa")),
        ("dct", "cosine transform alone", ("torchaudio", "scipy")),
        ("normalize", "normalize over time alone", ("torchaudio", "scipy")),
        ("preemphasis", "pre-emphasis", ("torchaudio", "librosa")),
        ("nonsilent", "region that is not silent", ("librosa",)),
    ):
        bar = Bar("the best library's rate", "stoker", ("DALI", *peers), at_least=1, goal=2)
        cases.append(_case(work, title, _pipelines(work) + _peers(work, *peers), (bar,)))
    return cases


def _resampling() -> list[Case]:
    cases = []
    for name, (before, after) in _RATES.items():
        work = f"resample-{name}"
        contenders = [
            Contender(f"stoker q{q}", "run_pipeline", {"library": STOKER, "work": work, "quality": q}, cores=1)
            for q in (50.0, 75.0, 100.0)
        ]
        contenders.append(
            Contender("DALI q50", "run_pipeline", {"library": DALI, "work": work, "quality": 50.0}, "peers", cores=1)
        )
        contenders += [
            Contender(f"soxr {q}", "run_soxr", {"work": work, "quality": q}, "peers", cores=1) for q in ("HQ", "VHQ")
        ]
        contenders += _peers(work, "torchaudio", "scipy")
        bars = (
            Bar("at 100 dB, against soxr HQ", "stoker q75.0", ("soxr HQ",), at_least=0.8, goal=1.3),
            Bar("default quality, against soxr HQ", "stoker q50.0", ("soxr HQ",), at_least=1.0, goal=1.7),
        )
        note = "DALI has no anti-aliasing filter. The stop band of quality 75 is at -100 dB, of soxr HQ at -120 dB."
        cases.append(_case(work, f"from {before} to {after} Hz", contenders, bars, note))
    return cases


def _decoding() -> list[Case]:
    bars = {
        "wav": Bar("against DALI", "stoker", ("DALI",), at_least=2.5, goal=5),
        "flac": Bar("against miniaudio", "stoker", ("miniaudio",), at_least=1, goal=1.5),
        "mp3": Bar("against miniaudio", "stoker", ("miniaudio",), at_least=1, goal=1.5),
        "vorbis": Bar("against miniaudio", "stoker", ("miniaudio",), at_least=1, goal=1.5),
        "opus": Bar("against DALI", "stoker", ("DALI",), at_least=1, goal=1.2),
    }
    cases = []
    for form, bar in bars.items():
        work = f"decode-{form}"
        contenders = [Contender("stoker", "run_pipeline", {"library": STOKER, "work": work}, cores=1)]
        if form != "mp3":  # DALI decodes none
            contenders += _pipelines(work)[1:]
        contenders += _peers(work, "soundfile", *(["miniaudio"] if form != "opus" else []))
        cases.append(_case(work, f"decode {form.upper()}", contenders, (bar,)))
    return cases


def _two_threads() -> list[Case]:
    """Return cases on two threads, against the libraries of their bars."""
    bars = (
        ("chain", "the mel chain", "DALI", 5), ("spectrogram", "spectrogram", "DALI", 4),
        ("mfcc", "MFCC front end", "torchaudio", 6), ("mel", "mel filters alone", "torchaudio", 1),
        ("decibels", "decibels alone", "torchaudio", 1), ("dct", "cosine transform alone", "torchaudio", 1),
        ("normalize", "normalize over time alone", "torchaudio", 1),
        ("resample-44to16", "from 44100 to 16000 Hz", "soxr HQ", 0.8), ("decode-wav", "decode WAV", "DALI", 2.5),
        ("decode-flac", "decode FLAC", "miniaudio", 1), ("decode-mp3", "decode MP3", "miniaudio", 1),
        ("decode-opus", "decode Opus", "DALI", 1),
    )  # fmt: skip
    note = f"{_BATCH} clips of {_SECONDS} s, one channel; clips per second on two cores; libraries in a thread pool."
    cases = []
    for work, title, peer, least in bars:
        settings: dict[str, Any] = {"work": work, "threads": 2}
        pipeline = {**settings, "layout": "tf" if work in ("chain", "spectrogram", "mfcc") else "ft"}
        own = Contender("stoker", "run_pipeline", {**pipeline, "library": STOKER}, cores=2)
        if peer == "DALI":
            other = Contender(peer, "run_pipeline", {**pipeline, "library": DALI}, "peers", cores=2)
        elif peer == "soxr HQ":
            other = Contender(peer, "run_soxr", {**settings, "quality": "HQ"}, "peers", cores=2)
        else:
            other = Contender(peer, f"run_{peer}", settings, "peers", cores=2)
        bar = Bar(f"two threads, against {peer}", "stoker", (peer,), at_least=least)
        cases.append(Case(f"audio-2-{work}", f"Audio, two threads: {title}", CLIPS_PER_S, (own, other), (bar,), note))
    return cases


CASES = (*_front_end(), *_resampling(), *_decoding(), *_two_threads())
