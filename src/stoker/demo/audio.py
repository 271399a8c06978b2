# SPDX-License-Identifier: Apache-2.0
"""``stoker demo audio``: a made corpus, a front end's rate next to another library's, equal bits, a picture."""

from __future__ import annotations

import time
import wave
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from stoker import Pipeline, eager, fn, pipeline_def

from ..inspection.progress import progress_bar
from . import messages
from .audio_peers import FrontEnd, Peer, open_peers, read_samples
from .sheet import Row, draw_sheet

RATE = 16000
CLIPS = 96
ROWS = 4
COLUMNS = ("log-mel", "random_speed", "mix_noise", "spec_augment")
_SEED = 7
_BATCH = 8
_ROUNDS, _SECONDS = 6, 0.5  # of measuring
_POINTS, _LENGTH, _STEP, _BANDS = 512, 320, 160, 80
_COEFFICIENT, _CUTOFF = 0.97, -80.0
_CHUNKS = (700, 16_000)  # largest sizes of chunks
_SHADES = ((0, 0, 4), (59, 15, 112), (140, 41, 129), (222, 73, 104), (254, 159, 109), (252, 253, 191))
_LINE, _GROUND = (90, 200, 250), (30, 33, 39)

Array = np.ndarray[Any, Any]


def run(out: Path, threads: int) -> bool:
    """Run the demonstration. Return whether all bits were equal.

    Args:
        out: folder that everything is written to.
        threads: threads of the pipeline.

    Raises:
        OSError: the operating system fails.
    """
    files, seconds = make(out / "clips")
    messages.data(f"{len(files)} made clips of voices and noise, {seconds:,.0f} s at {RATE:,} Hz, in {out / 'clips'}")
    _compare_rates(files, seconds, threads)
    different = _compare_bits(files, threads)
    path = out / "audio.png"
    _draw(files, path)
    messages.sheet(path)
    return not different


# ---- corpus ----


def voice(rng: np.random.Generator, seconds: float) -> Array:
    """Return int16 samples of syllables: harmonics of a moving pitch, shaped by two resonances, and noise."""
    t = np.arange(round(seconds * RATE)) / RATE
    pitch = 110 + 60 * rng.random() + 25 * np.sin(2 * np.pi * (0.4 + rng.random()) * t)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    resonances = [
        base + spread * np.sin(2 * np.pi * rate * t + rng.random() * 6)
        for base, spread, rate in ((550, 250, 2.1), (1700, 700, 1.3))
    ]
    x = np.zeros_like(t)
    for harmonic in range(1, 24):
        gain = sum(np.exp(-(((harmonic * pitch - at) / 180) ** 2)) for at in resonances) + 0.02
        x += gain * np.sin(harmonic * phase) / harmonic**0.5
    x *= np.clip(1.5 * np.sin(2 * np.pi * (2.2 + rng.random()) * t), 0, 1)
    x = 0.2 * x + rng.normal(0, 0.002, len(t))
    return np.asarray(np.rint(np.clip(x, -1, 1) * 32767), np.int16)


def make(folder: Path) -> tuple[list[Path], float]:
    """Write the corpus. Return its files and their length in seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    rng, files, seconds = np.random.default_rng(_SEED), [], 0.0
    with progress_bar(CLIPS, "writing", "clips") as bar:
        for number in range(CLIPS):
            samples = voice(rng, 3 + 5 * rng.random())
            path = folder / f"clip{number:03}.wav"
            with wave.open(str(path), "wb") as file:
                file.setparams((1, 2, RATE, 0, "NONE", ""))
                file.writeframes(samples.astype("<i2").tobytes())
            files.append(path)
            seconds += len(samples) / RATE
            bar.update(1)
    return files, seconds


# ---- the front end ----


def _log_mel(audio: Any) -> Any:
    power = fn.spectrogram(
        fn.preemphasis_filter(audio, preemph_coeff=_COEFFICIENT), nfft=_POINTS, window_length=_LENGTH, window_step=_STEP
    )
    mel = fn.mel_filter_bank(power, nfilter=_BANDS, sample_rate=float(RATE))
    return fn.to_decibels(mel, reference=1.0, cutoff_db=_CUTOFF)


def _pipeline(files: Sequence[Path], batch_size: int, threads: int) -> Pipeline:
    @pipeline_def(batch_size=batch_size, num_threads=threads)
    def front_end() -> Any:
        audio, _, _ = fn.readers.audio(files=[str(path) for path in files])
        return fn.normalize(_log_mel(audio), axes=(1,))

    return front_end()


def front_end_of_peers() -> FrontEnd:
    """Return the numbers of the same front end, for other libraries."""
    filters = np.asarray(
        eager.mel_filter_bank(np.eye(_POINTS // 2 + 1, dtype=np.float32), nfilter=_BANDS, sample_rate=float(RATE))
    )
    return FrontEnd(RATE, _POINTS, _LENGTH, _STEP, filters, _COEFFICIENT, _CUTOFF)


# ---- rates ----


def _compare_rates(files: Sequence[Path], seconds: float, threads: int) -> None:
    with (
        _pipeline(files, _BATCH, threads) as pipe,
        open_peers(files, front_end_of_peers(), threads) as (peers, missing),
    ):
        rates = _measure([("Stoker", lambda: len(pipe.run()[0])), *((peer.name, peer.turn) for peer in peers)])
        best = max(peers, key=lambda peer: rates[peer.name])
        difference = _largest_difference(files, best)
    rate, on = rates["Stoker"], f"on {threads} thread{'s' if threads > 1 else ''}"
    messages.lines(
        "Front end",
        f"{rate:,.0f} clips/s {on}, {rate * seconds / len(files):,.0f} times as fast as the sound: read, decode,",
        f"pre-emphasis, spectrogram of {_POINTS} points, {_BANDS} mel bands, decibels, normalize",
    )
    messages.lines(
        best.name,
        f"{rates[best.name]:,.0f} clips/s for the same front end {best.text}:",
        f"Stoker is {rate / rates[best.name]:.1f} times as fast {on}; the largest difference is {difference:.1e}",
    )
    others = ", ".join(f"{peer.name} {rates[peer.name]:,.0f}" for peer in peers if peer is not best)
    absent = f"not available: {', '.join(missing)}" if missing else ""
    messages.lines("", "; ".join(text for text in (f"the others: {others}" if others else "", absent) if text))


def _measure(contenders: Sequence[tuple[str, Callable[[], int]]]) -> dict[str, float]:
    """Return the best rate of each contender. They take turns, so that a slow moment slows all of them."""
    best: dict[str, float] = {}
    for compute in (compute for _, compute in contenders):
        compute()
    for _ in range(_ROUNDS):
        for name, compute in contenders:
            count, started = 0, time.perf_counter()
            while time.perf_counter() < started + _SECONDS:
                count += compute()
            best[name] = max(best.get(name, 0.0), count / (time.perf_counter() - started))
    return best


def _largest_difference(files: Sequence[Path], peer: Peer) -> float:
    """Return the largest difference from a library's values, which have mean 0 and deviation 1."""
    with _pipeline(files, ROWS, 1) as pipe:
        (batch,) = pipe.run()
    rows = zip(batch, peer.values(ROWS), strict=True)
    return max(float(np.abs(np.asarray(row) - values).max()) for row, values in rows)


# ---- equal bits ----


def _compare_bits(files: Sequence[Path], threads: int) -> int:
    """Compute the corpus in different ways. Return how many of them differ."""
    ways = ((1, 1), (_BATCH, threads), (CLIPS, threads + 1))
    sums = [_checksum(files, batch_size, count) for batch_size, count in ways]
    equal = sum(one == sums[0] for one in sums)
    messages.lines(
        "Exact",
        f"{equal} of {len(ways)} runs with 1 to {CLIPS} clips a batch and 1 to {threads + 1} threads have the checksum "
        f"{sums[0]:08x}",
    )
    decoded = (eager.decoders.audio(np.fromfile(path, np.uint8), downmix=True)[0] for path in files)
    wrong = sum(not np.array_equal(x, read_samples(path)) for x, path in zip(decoded, files, strict=True))
    messages.lines("", f"{len(files) - wrong} of {len(files)} decoded clips equal the samples that were written")
    broken = sum(not _streams_alike(path) for path in files[:ROWS])
    sizes = ", ".join(f"{size:,}" for size in _CHUNKS)
    messages.lines(
        "", f"{ROWS - broken} of {ROWS} clips that arrive in chunks of up to {sizes} samples have the bits of the whole"
    )
    return len(ways) - equal + wrong + broken


def _checksum(files: Sequence[Path], batch_size: int, threads: int) -> int:
    total, done = 0, 0
    with _pipeline(files, batch_size, threads) as pipe:
        while done < len(files):
            (batch,) = pipe.run()
            for row in list(batch)[: len(files) - done]:
                total = zlib.crc32(np.ascontiguousarray(row).tobytes(), total)
            done += len(batch)
    return total


def _streams_alike(path: Path) -> bool:
    x, rng = read_samples(path), np.random.default_rng(_SEED)
    chain = eager.stream(_log_mel)
    whole = np.concatenate([chain.push(x), chain.finish()], chain.axis)
    for largest in _CHUNKS:
        parts, at = [], 0
        while at < len(x):
            size = int(rng.integers(1, largest + 1))
            parts.append(chain.push(x[at : at + size]))
            at += size
        if not np.array_equal(np.concatenate([*parts, chain.finish()], chain.axis), whole):
            return False
    return True


# ---- picture ----


def _draw(files: Sequence[Path], path: Path) -> None:
    @pipeline_def(batch_size=ROWS, num_threads=1, seed=_SEED, epoch_reader="clips")
    def augmented() -> Any:
        names = [str(file) for file in files]
        audio, _, _ = fn.readers.audio(files=names, name="clips")
        noise, _, _ = fn.readers.audio(files=names[::-1], name="noise")
        plain = _log_mel(audio)
        speed = _log_mel(fn.random_speed(audio, factors=(0.7, 1.4)))
        mixed = _log_mel(fn.mix_noise(audio, noise, snr=3.0))
        masked = fn.spec_augment(plain, freq_masks=2, freq_width=16, time_masks=2, time_width=60, fill_value=_CUTOFF)
        return audio, plain, speed, mixed, masked

    with augmented() as pipe:
        outputs = [[np.asarray(row) for row in output] for output in pipe.run()]
    rows = []
    for i, (audio, *spectra) in enumerate(zip(*outputs, strict=True)):
        rows.append(Row(files[i].name, f"{len(audio) / RATE:.1f} s", waveform(audio), [heat(x) for x in spectra]))
    text = f"Made voices: {_BANDS} mel bands, {_STEP * 1000 // RATE} ms from column to column, seed {_SEED}."
    draw_sheet(rows, "Stoker: what the training of a speech model gets to see", text, COLUMNS).save(path)


def waveform(x: Array, width: int = 200, height: int = 200) -> Array:
    """Return a picture of a signal, uint8 RGB: the range of the samples in each column."""
    picture = Image.new("RGB", (width, height), _GROUND)
    draw, peak = ImageDraw.Draw(picture), float(np.abs(x).max()) or 1.0
    for column, part in enumerate(np.array_split(x, width)):
        if len(part):
            top, bottom = (height * (0.5 - 0.45 * float(level) / peak) for level in (part.max(), part.min()))
            draw.line((column, top, column, bottom), fill=_LINE)
    return np.asarray(picture)


def heat(x: Array, width: int = 200, height: int = 200) -> Array:
    """Return a picture of a spectrogram ``(bands, frames)``, uint8 RGB, low bands at the bottom."""
    low, high = float(x.min()), float(x.max())
    shares = (x[::-1] - low) / max(high - low, 1e-9) * (len(_SHADES) - 1)
    table = np.array(_SHADES, np.float64)
    colours = np.stack([np.interp(shares, np.arange(len(table)), table[:, c]) for c in range(3)], -1)
    picture = Image.fromarray(np.rint(colours).astype(np.uint8))
    return np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR))
