# SPDX-License-Identifier: Apache-2.0
"""Lists of video files with labels and ranges, and the clips in them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError, DataError, is_system_failure
from ..contract.text import printable
from ..remote.addresses import folder_of, join
from ..remote.copies import local_copies
from ..video.clip_audio import audio_rate
from ..video.frame_index import FrameIndex, Ints
from ..video.sampling import FrameChoice, Rule, first_at, last_at
from ._containers import is_missing
from ._listing import list_file, list_files
from ._video import ClipTable, index_of, map_files

EXTENSIONS = (
    ".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".ts", ".m2ts", ".mts", ".mpg", ".mpeg", ".flv", ".ogv", ".wmv",
    ".3gp", ".h264", ".h265", ".hevc", ".ivf", ".mjpeg", ".mjpg",
)  # fmt: skip


@dataclass(frozen=True)
class VideoRange:
    """Part of a file.

    Attributes:
        path: the file.
        label: its label.
        start: first second, or first frame; None: the first frame.
        end: second, or frame, at which it ends; None: the end of the file.
    """

    path: str
    label: int
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True)
class Bounds:
    """Meaning of the numbers in a list of files.

    Attributes:
        in_frames: they are numbers of frames, negative ones from the end, instead of seconds.
        start_down: a start between two frames means the one before, and else the one after.
        end_up: an end between two frames means the one after, and else the one before.
        include_end: the end is the last frame instead of the one after it.
    """

    in_frames: bool = False
    start_down: bool = False
    end_up: bool = False
    include_end: bool = False

    def frames(self, one: VideoRange, index: FrameIndex) -> tuple[int, int]:
        """Return the first frame of a range and the frame after its last one."""
        count = len(index)
        begin, end = 0, count
        if self.in_frames:
            begin = 0 if one.start is None else _from_end(one.start, count)
            end = count if one.end is None else _from_end(one.end, count) + self.include_end
        else:
            times = index.times
            if one.start is not None:
                begin = last_at(times, one.start) if self.start_down else first_at(times, one.start)
            if one.end is not None:
                end = (first_at(times, one.end) if self.end_up else last_at(times, one.end)) + self.include_end
        return max(begin, 0), min(end, count)


def _from_end(number: float, count: int) -> int:
    return int(number) + count if number < 0 else int(number)


def list_ranges(args: Mapping[str, Any]) -> tuple[list[VideoRange], bool]:
    """List the parts of files that a reader's arguments name, and whether they have labels.

    Raises:
        ArgumentError: there are no files, or a list has a wrong line.
        OSError: the operating system fails.
    """
    given = [k for k in ("filenames", "file_list", "file_root") if not is_missing(args[k])]
    if not given:
        raise ArgumentError("expected `filenames`, `file_list` or `file_root`, got none of them")
    if "filenames" in given and len(given) > 1:
        raise ArgumentError(f"expected one of {given[0]!r} and {given[1]!r}, got both")
    if args["labels"] is not None and "filenames" not in given:
        raise ArgumentError("`labels` go with `filenames`, which are not given")
    if "file_list" in given:
        base = folder_of(args["file_list"]) if args["base"] is None else args["base"]
        return _with_copies(_ranges_of_list(args["file_list"], args["file_root"] or base)), True
    files = args["filenames"] if "filenames" in given else None
    labels = args["labels"] if files is not None and not is_missing(args["labels"]) else None
    data = list_files({
        "files": [files] if isinstance(files, str) else files, "labels": labels, "file_list": None,
        "file_root": None if files is not None else args["file_root"], "extensions": EXTENSIONS, "file_filters": None,
        "dir_filters": None, "case_sensitive_filter": False,
    }, argument="filenames").finish()  # fmt: skip
    storage, values = data.columns[0].storage, data.columns[1].values
    assert storage is not None and values is not None
    ranges = [VideoRange(storage.locate(i).path, int(values[i, 0])) for i in range(len(storage))]
    storage.close()
    return _with_copies(ranges), files is None or args["labels"] is not None


def _with_copies(ranges: list[VideoRange]) -> list[VideoRange]:
    """Return the ranges with copies on this machine in place of objects: decoders seek in files."""
    copies = local_copies("filenames", [one.path for one in ranges])
    return [replace(one, path=path) for one, path in zip(ranges, copies, strict=True)]


def _ranges_of_list(path: str, root: str) -> list[VideoRange]:
    found = []
    with open(list_file(path), encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            fields = line.split()
            if not fields:
                continue
            try:
                if not 2 <= len(fields) <= 4:
                    raise ValueError
                numbers = [float(f) for f in fields[2:]]
                if not all(map(math.isfinite, numbers)):
                    raise ValueError
                label = int(np.int32(int(fields[1])))
                found.append(VideoRange(join(root, fields[0]), label, *numbers))
            except (ValueError, OverflowError):
                raise ArgumentError(
                    f'expected "path label [start [end]]" in line {number} of {printable(path)!r}, got {line.strip()!r}'
                ) from None
    if not found:
        raise ArgumentError(f"expected files in {printable(path)!r}, got none")
    return found


@dataclass(frozen=True)
class FoundClips:
    """Clips of all ranges.

    Attributes:
        table: the clips.
        labels: their labels, int32 ``(clips, 1)``.
        times: seconds of each frame of the files with clips, by number of the file; empty unless asked for.
        rates: sampling rate of each clip's file in Hz, float32 ``(clips,)``; 1 unless asked for.
        note: remark about ranges without clips; "" if there are none.
    """

    table: ClipTable
    labels: npt.NDArray[np.int32]
    times: dict[int, npt.NDArray[np.float64]]
    rates: npt.NDArray[np.float32]
    note: str


def find_clips(
    ranges: list[VideoRange], bounds: Bounds, choice: FrameChoice, rule: Rule, step: int, *, with_times: bool,
    with_audio: bool,
) -> FoundClips:  # fmt: skip
    """Find the clips of all ranges. A file that cannot be read has one clip, which fails when it is read.

    Raises:
        ArgumentError: there are no clips.
        OSError: the operating system fails.
    """
    own: dict[str, list[VideoRange]] = {}
    for one in ranges:
        own.setdefault(one.path, []).append(one)
    paths = list(own)

    def facts(number: int) -> _FileFacts:
        return _facts_of(own[paths[number]], bounds, choice, with_times, with_audio)

    found = dict(zip(paths, map_files(facts, range(len(paths))), strict=True))
    numbers = {path: i for i, path in enumerate(paths)}
    rows = np.array([(numbers[r.path], *next(found[r.path].ranges)) for r in ranges], np.int64)
    first: list[Ints] = []
    failures: dict[int, str] = {}
    short, count = "", 0
    for one, (_, begin, end) in zip(ranges, rows.tolist(), strict=True):
        starts = rule.starts(begin, end, step) if end > begin else np.zeros(0, np.int64)
        damage = found[one.path].take_damage()
        if damage:
            failures[count + len(starts)] = damage
            starts = np.append(starts, 0)
        elif not len(starts) and not found[one.path].is_damaged:
            short = short or f"'{printable(one.path)}' has {max(end - begin, 0)} frames in its range"
        first.append(starts)
        count += len(starts)
    if not count:
        wanted = f"clips of {rule.length} frames, {rule.span} from the first to the last"
        way_out = '; `pad_mode="edge"` completes short ones' if (rows[:, 2] > rows[:, 1]).any() else ""
        raise ArgumentError(f"expected {wanted}, got none: {short}{way_out}")
    entry = np.repeat(np.arange(len(ranges), dtype=np.int32), [len(f) for f in first])
    labels = np.array([r.label for r in ranges], np.int32)[entry]
    chosen = {i: f.counted for i, f in enumerate(found.values()) if f.counted is not None}
    times = {i: f.times for i, f in enumerate(found.values()) if f.times is not None}
    states, sizes = [f.state for f in found.values()], [f.size for f in found.values()]
    table = ClipTable(paths, rows, entry, np.concatenate(first), failures, chosen, states, sizes)
    note = f"videos without a clip are left out: {short}" if short else ""
    rates = np.array([f.rate or 1 for f in found.values()], np.float32)[rows[entry, 0]]
    return FoundClips(table, labels[:, None], times, rates, note)


class _FileFacts:
    """Ranges of a file that are asked for, its frames, and its damage, which fails one clip.

    Attributes:
        ranges: first frame, and frame after the last one, of those that clips count.
        is_damaged: whether there is damage.
        counted: numbers of the frames that clips count; None: all.
        times: seconds of the file's frames, if they are asked for.
        rate: sampling rate of the file's audio in Hz, if it is asked for.
        state: size and modification time of the file, if it could be indexed.
        size: height and width of the stored frames, and their rotation in degrees.
    """

    def __init__(
        self, ranges: Iterable[tuple[int, int]], damage: str, counted: Ints | None = None,
        times: npt.NDArray[np.float64] | None = None, rate: int = 0, state: tuple[int, int] | None = None,
        size: tuple[int, int, int] = (0, 0, 0),
    ) -> None:  # fmt: skip
        self.ranges, self.is_damaged, self.counted, self.times = iter(ranges), bool(damage), counted, times
        self.rate, self.state, self.size = rate, state, size
        self._damage = damage

    def take_damage(self) -> str:
        """Return the damage for the first range, and then ""."""
        damage, self._damage = self._damage, ""
        return damage


def _facts_of(
    own: list[VideoRange], bounds: Bounds, choice: FrameChoice, with_times: bool, with_audio: bool
) -> _FileFacts:
    """Return the facts of a file by its ranges."""
    try:
        index = index_of(own[0].path)
        counted = choice.of(index)
        rate = audio_rate(own[0].path) if with_audio else 0
    except (DataError, OSError) as error:
        if is_system_failure(error):
            raise
        return _FileFacts([(0, 0)] * len(own), str(error))
    ranges = [bounds.frames(one, index) for one in own]
    if counted is not None:
        ranges = [(int(begin), int(end)) for begin, end in np.searchsorted(counted, ranges)]
    return _FileFacts(
        ranges, index.damage, counted, index.times[:-1] if with_times else None, rate, index.state,
        (*index.size, index.rotation),
    )  # fmt: skip
