# SPDX-License-Identifier: Apache-2.0
"""``stoker demo video``: made videos, rates next to those of others, exactness by barcodes, a contact strip."""

from __future__ import annotations

import importlib
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from stoker import Pipeline, eager, fn, pipeline_def

from ..inspection.progress import progress_bar
from ..video.pyav import pyav
from . import clips, messages
from .clips import Clip

_SEED = 7
_ROUNDS = 2
_CHUNK = 30  # frames per call
_RANDOM = 16  # frames that are read after each opening
_OPENINGS = 3
_STRIPS = 6
_LENGTH, _STRIDE, _STEP = 16, 2, 10

Contender = tuple[str, Callable[[str], int]]


def run(out: Path, threads: int) -> bool:
    """Run the demonstration. Return whether all frames were right.

    Args:
        out: folder that everything is written to.
        threads: threads of the pipeline.

    Raises:
        UnsupportedError: PyAV is not installed.
        OSError: the operating system fails.
    """
    with progress_bar(clips.FRAMES * len(clips.KINDS), "encoding", "frames") as bar:
        made, missing = clips.make(out / "clips", bar.update)
    size = f"{clips.FRAMES} frames of {clips.WIDTH} x {clips.HEIGHT}"
    messages.data(f"{len(made)} made videos of {size}, with barcodes, in {out / 'clips'}",
                  *(f"left out: FFmpeg has no encoder {name} here" for name in missing))  # fmt: skip
    _compare_rates(made)
    wrong = _check_numbers(made)
    wrong += _check_clips(made, threads)
    path = out / "video.png"
    with _pipeline(made, threads) as pipe:
        pipe.preview(_STRIPS).save(path)
    messages.sheet(path)
    return not wrong


# ---- rates ----


def _compare_rates(made: Sequence[Clip]) -> None:
    lines = []
    with progress_bar(len(made) * _ROUNDS, "measuring", "rounds") as bar:
        for clip in made:
            rates = _measure(str(clip.path), _whole(), bar.update)
            lines.append(f"  {clip.kind.title:<32} {_in_words(rates)}")
    messages.lines("Decode", "frames per second to RGB, each library on one thread", *lines)
    lines = []
    with progress_bar(len(made) * _ROUNDS, "measuring", "rounds") as bar:
        for clip in made:
            rates = _measure(str(clip.path), _at_random(), bar.update)
            lines.append(f"  {clip.kind.title:<32} {_in_words(rates)}")
    messages.lines("Random", f"frames per second: the file is opened, and {_RANDOM} frames are read at random", *lines)


def _measure(path: str, contenders: Iterable[Contender], progress: Callable[[int], object]) -> dict[str, float]:
    """Return the best rate of each contender. They take turns, so that a slow moment slows all of them."""
    best: dict[str, float] = {}
    for _ in range(_ROUNDS):
        for name, decode in contenders:
            started = time.perf_counter()
            count = decode(path)
            best[name] = max(best.get(name, 0.0), count / (time.perf_counter() - started))
        progress(1)
    return best


def _in_words(rates: dict[str, float]) -> str:
    return ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())


def _whole() -> list[Contender]:
    cv2 = _opencv()
    return [("Stoker", _stoker_whole), ("PyAV", _pyav_whole), *([("OpenCV", _opencv_whole(cv2))] if cv2 else [])]


def _at_random() -> list[Contender]:
    return [("Stoker", _stoker_at_random), ("PyAV", _pyav_at_random)]


def _opencv() -> Any:
    """Return OpenCV; None if it is not installed, or cannot be imported."""
    try:
        return importlib.import_module("cv2")
    except (ImportError, OSError):
        return None


def _stoker_whole(path: str) -> int:
    with eager.video.open(path) as video:
        return sum(len(video[first : first + _CHUNK]) for first in range(0, len(video), _CHUNK))


def _pyav_whole(path: str) -> int:
    with pyav().open(path) as file:
        file.streams.video[0].thread_count = 1
        return sum(len(frame.to_ndarray(format="rgb24")) > 0 for frame in file.decode(video=0))


def _opencv_whole(cv2: Any) -> Callable[[str], int]:
    def decode(path: str) -> int:
        file = cv2.VideoCapture(path, cv2.CAP_FFMPEG, [cv2.CAP_PROP_N_THREADS, 1])
        count = 0
        while file.read()[0]:  # BGR
            count += 1
        file.release()
        return count

    return decode


def _stoker_at_random(path: str) -> int:
    draws = random.Random(_SEED)
    for _ in range(_OPENINGS):
        with eager.video.open(path) as video:
            video.get_frames_at(sorted(draws.sample(range(len(video)), _RANDOM)))
    return _OPENINGS * _RANDOM


def _pyav_at_random(path: str) -> int:
    """Seek to the key frame before each frame, unless decoding goes on to it, and decode up to its time."""
    draws = random.Random(_SEED)
    with eager.video.open(path) as video:  # PyAV does not know the times of the frames
        times = video.get_frame_timestamp(slice(None))[:, 0]
        keys = video.get_key_indices()
    for _ in range(_OPENINGS):
        with pyav().open(path) as file:
            stream = file.streams.video[0]
            stream.thread_count = 1
            _read_times(file, stream, sorted(draws.sample(range(len(times)), _RANDOM)), times, keys)
    return _OPENINGS * _RANDOM


def _read_times(file: Any, stream: Any, numbers: Sequence[int], times: Any, keys: Sequence[int]) -> None:
    shown: Iterator[Any] = iter(())
    group = -1
    for number in numbers:
        key = max(k for k in keys if k <= number)
        if key != group:
            file.seek(round(times[number] / stream.time_base), stream=stream, backward=True)
            shown, group = file.decode(stream), key
        for frame in shown:
            if frame.time >= times[number] - 1e-9:
                frame.to_ndarray(format="rgb24")
                break


# ---- exactness ----


def _check_numbers(made: Sequence[Clip]) -> int:
    """Read all frames in random order, by number and by time. Return how many show another number."""
    wrong, asked, draws = 0, 0, random.Random(_SEED)
    with progress_bar(2 * clips.FRAMES * len(made), "checking", "frames") as bar:
        for clip in made:
            with eager.video.open(clip.path) as video:
                numbers = draws.sample(range(len(video)), len(video))
                wrong += sum(clips.number_in(video[number]) != number for number in numbers)
                bar.update(len(numbers))
                spans = video.get_frame_timestamp(numbers)
                moments = [draws.uniform(begin, end - 1e-6) for begin, end in spans]
                shown = video.get_frames_played_at(moments).data
                wrong += sum(clips.number_in(x) != number for x, number in zip(shown, numbers, strict=True))
                bar.update(len(numbers))
                asked += 2 * len(numbers)
                wrong += len(video) != clips.FRAMES
    messages.lines(
        "Exact", f"{asked - wrong} of {asked} frames show the number that was asked for, by number and by time"
    )
    return wrong


def _check_clips(made: Sequence[Clip], threads: int) -> int:
    """Read an epoch of shuffled clips. Return how many frames show another number than the reader states."""
    wrong = asked = 0
    with _pipeline(made, threads) as pipe:
        pipe.build()
        count = next(iter(pipe.epoch_size().values()))
        started = time.perf_counter()
        done = 0
        while done < count:
            videos, _, numbers = pipe.run()
            for video, stated in list(zip(videos, numbers, strict=True))[: count - done]:
                wrong += sum(clips.number_in(x) != n for x, n in zip(video, stated, strict=True))
                asked += len(stated)
            done += len(videos)
        rate = asked / (time.perf_counter() - started)
    messages.lines(
        "",
        f"{asked - wrong} of {asked} frames of {count} shuffled clips of `readers.video`, "
        f"{rate:,.0f} frames/s on {threads} thread{'s' if threads > 1 else ''}",
    )
    return wrong


def _pipeline(made: Sequence[Clip], threads: int) -> Pipeline:
    @pipeline_def(batch_size=_STRIPS, num_threads=threads, seed=_SEED)
    def shuffled() -> Any:
        return fn.readers.video(
            filenames=[str(clip.path) for clip in made], labels=[], sequence_length=_LENGTH, stride=_STRIDE,
            step=_STEP, random_shuffle=True, enable_frame_num="sequence",
        )  # fmt: skip

    return shuffled()
