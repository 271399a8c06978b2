# SPDX-License-Identifier: Apache-2.0
"""Other libraries' versions of the audio demonstration's front end: DALI, torchaudio, librosa, SciPy and NumPy."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import wave
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Clip = Callable[[Array], Array]


@dataclass(frozen=True)
class FrontEnd:
    """Numbers of a front end: pre-emphasis, spectrogram, mel filters, decibels, normalization over time.

    Attributes:
        rate: of the samples, in Hz.
        points: of the transform; `length` of them are in the window, and frames are `step` samples apart.
        filters: weights of the mel filters, ``(bands, points // 2 + 1)``.
        coefficient: of the pre-emphasis.
        cutoff: least decibels.
    """

    rate: int
    points: int
    length: int
    step: int
    filters: Array
    coefficient: float
    cutoff: float

    @property
    def window(self) -> Array:
        """Return the window, float32 ``(length,)``, with its zeros half a sample outside of it."""
        return (0.5 * (1 - np.cos(2 * np.pi * (np.arange(self.length) + 0.5) / self.length))).astype(np.float32)

    @property
    def least(self) -> float:
        """Return the least power, which has `cutoff` decibels."""
        return float(10 ** (self.cutoff / 10))


@dataclass(frozen=True)
class Peer:
    """A library that computes the front end.

    Attributes:
        name: of the library.
        text: how it computes, for the line with its rate.
        turn: computes one clip or batch, and returns the number of clips.
        values: computes the first of the files, and returns their features, ``(bands, frames)`` each.
    """

    name: str
    text: str
    turn: Callable[[], int]
    values: Callable[[int], list[Array]]


def read_samples(path: Path) -> Array:
    """Return the samples of a file of 16 bits and one channel as NumPy reads them, float32 ``(n,)``."""
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / np.float32(32768)


@contextlib.contextmanager
def open_peers(files: Sequence[Path], front_end: FrontEnd, threads: int) -> Iterator[tuple[list[Peer], list[str]]]:
    """Open all libraries that are installed and can be imported.

    Args:
        files: the clips.
        front_end: what the libraries compute.
        threads: threads of the libraries that have a setting for them.

    Yields:
        The libraries, and the names of those that are missing.
    """
    found: list[Peer] = []
    missing: list[str] = []
    with contextlib.ExitStack() as stack:
        for name, open_peer in _PEERS.items():
            try:
                found.append(stack.enter_context(open_peer(files, front_end, threads)))
            except (ImportError, OSError):  # OSError: a library that the package loads is missing
                missing.append(name)
        yield found, missing


# ---- one clip after another ----


def _of_clips(name: str, text: str, files: Sequence[Path], compute: Clip) -> Peer:
    turns = itertools.cycle(files)

    def turn() -> int:
        compute(read_samples(next(turns)))
        return 1

    return Peer(name, text, turn, lambda count: [compute(read_samples(path)) for path in files[:count]])


def numpy_front_end(front_end: FrontEnd, rfft: Callable[..., Array]) -> Clip:
    """Return the front end in NumPy, with a given transform of real numbers."""
    window, length, step = front_end.window, front_end.length, front_end.step
    before = (front_end.points - length) // 2
    around = ((0, 0), (before, front_end.points - length - before))

    def compute(x: Array) -> Array:
        y = np.concatenate([x[:1] - front_end.coefficient * x[:1], x[1:] - front_end.coefficient * x[:-1]])
        y = np.pad(y, length // 2, mode="reflect")
        frames = np.lib.stride_tricks.sliding_window_view(y, length)[::step] * window
        power = np.abs(rfft(np.pad(frames, around), axis=1)) ** 2
        z = 10 * np.log10(np.maximum(front_end.filters @ power.T.astype(np.float32), front_end.least))
        z = z - z.mean(1, keepdims=True)
        return np.asarray(z / z.std(1, keepdims=True), np.float32)

    return compute


@contextlib.contextmanager
def _numpy(files: Sequence[Path], front_end: FrontEnd, threads: int) -> Iterator[Peer]:
    compute = numpy_front_end(front_end, np.fft.rfft)
    yield _of_clips("NumPy", "with NumPy's transform in one process", files, compute)


@contextlib.contextmanager
def _scipy(files: Sequence[Path], front_end: FrontEnd, threads: int) -> Iterator[Peer]:
    compute = numpy_front_end(front_end, importlib.import_module("scipy.fft").rfft)
    yield _of_clips("SciPy", "with SciPy's transform in one process", files, compute)


@contextlib.contextmanager
def _librosa(files: Sequence[Path], front_end: FrontEnd, threads: int) -> Iterator[Peer]:
    librosa = importlib.import_module("librosa")
    window = front_end.window
    frame = {"n_fft": front_end.points, "win_length": front_end.length, "hop_length": front_end.step}

    def compute(x: Array) -> Array:
        y = librosa.effects.preemphasis(x, coef=front_end.coefficient, zi=[-front_end.coefficient * x[0]])
        power = np.abs(librosa.stft(y, window=window, pad_mode="reflect", **frame)) ** 2
        mel = librosa.feature.melspectrogram(S=power, sr=front_end.rate, n_mels=len(front_end.filters))
        z = librosa.power_to_db(mel, amin=front_end.least, top_db=None)
        return np.asarray((z - z.mean(1, keepdims=True)) / z.std(1, keepdims=True), np.float32)

    yield _of_clips("librosa", "with librosa in one process", files, compute)


@contextlib.contextmanager
def _torchaudio(files: Sequence[Path], front_end: FrontEnd, threads: int) -> Iterator[Peer]:
    torch, torchaudio = importlib.import_module("torch"), importlib.import_module("torchaudio")
    functional, window = torchaudio.functional, torch.from_numpy(front_end.window)
    spectrogram = torchaudio.transforms.Spectrogram(
        n_fft=front_end.points, win_length=front_end.length, hop_length=front_end.step, window_fn=lambda _: window
    )
    scale = torchaudio.transforms.MelScale(
        len(front_end.filters), front_end.rate, n_stft=front_end.points // 2 + 1, norm="slaney", mel_scale="slaney"
    )

    def compute(x: Array) -> Array:
        with torch.inference_mode():
            y = functional.preemphasis(torch.from_numpy(x), front_end.coefficient)
            y[0] -= front_end.coefficient * y[0]
            z = functional.amplitude_to_DB(scale(spectrogram(y)), 10.0, front_end.least, 0.0)
            return np.asarray(((z - z.mean(1, keepdim=True)) / z.std(1, keepdim=True, correction=0)).numpy())

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield _of_clips("torchaudio", f"with torchaudio {_on(threads)}", files, compute)
    finally:
        torch.set_num_threads(before)


# ---- batches ----


@contextlib.contextmanager
def _dali(files: Sequence[Path], front_end: FrontEnd, threads: int) -> Iterator[Peer]:
    dali = importlib.import_module("nvidia.dali")
    fn, batch_size = dali.fn, min(8, len(files))

    def front_end_of_files() -> Any:
        data, _ = fn.readers.file(files=[str(path) for path in files])
        audio, _ = fn.decoders.audio(data, downmix=True)
        power = fn.spectrogram(
            fn.preemphasis_filter(audio, preemph_coeff=front_end.coefficient),
            nfft=front_end.points, window_length=front_end.length, window_step=front_end.step,
        )  # fmt: skip
        mel = fn.mel_filter_bank(power, nfilter=len(front_end.filters), sample_rate=float(front_end.rate))
        return fn.normalize(fn.to_decibels(mel, reference=1.0, cutoff_db=front_end.cutoff), axes=[1])

    def open_pipeline() -> Any:
        made = dali.pipeline_def(batch_size=batch_size, num_threads=threads, device_id=None)(front_end_of_files)()
        made.build()
        return made

    pipe = open_pipeline()

    def values(count: int) -> list[Array]:
        (batch,) = open_pipeline().run()
        return [np.array(batch.at(row)) for row in range(min(count, batch_size))]

    yield Peer("DALI", f"with DALI {_on(threads)}", lambda: len(pipe.run()[0]), values)


def _on(threads: int) -> str:
    return f"on {threads} thread{'s' if threads > 1 else ''}"


_Open = Callable[[Sequence[Path], FrontEnd, int], contextlib.AbstractContextManager[Peer]]
_PEERS: Mapping[str, _Open] = {
    "DALI": _dali,
    "torchaudio": _torchaudio,
    "librosa": _librosa,
    "SciPy": _scipy,
    "NumPy": _numpy,
}
