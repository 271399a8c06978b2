# SPDX-License-Identifier: Apache-2.0
"""Clips of video files: the table of clips, and the storage that decodes them on threads.

A clip is a row: a range of a file, a first frame, and a rule for the others. Clips of a batch in one file are decoded
together, and a decoder that stands before a clip goes on, so that each picture is decoded once.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..contract.columns import Column
from ..contract.errors import ArgumentError, DataError, StateError, is_system_failure
from ..contract.lowering import Lowering
from ..contract.operator import RowContext, Spec
from ..contract.step import Value
from ..contract.storage import Bools, RecordLocation, Storage
from ..contract.types import DType
from ..settings import default_threads
from ..video.clip import ClipPixels
from ..video.frame_index import ARRAYS, FrameIndex
from ..video.indexing import index_video
from ..video.pool import POOL, VideoFile, VideoOwner
from ..video.sampling import Ints, padded
from ._columns import fingerprint
from ._fetching import TakeRecords
from ._index_files import cached_arrays

Found = TypeVar("Found")
_CLOSED = "the pipeline is closed"
_LEAST_BYTES = 64 << 10  # smaller files are indexed faster than an entry of the cache is found


def index_of(path: str) -> FrameIndex:
    """Return the frame index of a file, from the cache or by a pass over its packets.

    Raises:
        DataError: it is no video.
        OSError: the file cannot be read.
        UnsupportedError: PyAV is not installed.
    """
    arrays = cached_arrays("video", path, ARRAYS, lambda: index_video(path).arrays(), _LEAST_BYTES)
    return FrameIndex.of_arrays(arrays)


@dataclass(frozen=True)
class Rule:
    """Frames of a clip, by its first frame and the range that it lies in.

    Attributes:
        length: number of frames.
        stride: distance between them.
        pad_mode: one of ``PAD_MODES``.
        uniform: frames at equal distances over the whole range instead.
    """

    length: int
    stride: int
    pad_mode: str = "none"
    uniform: bool = False

    @property
    def span(self) -> int:
        """Number of frames from the first to the last one."""
        return (self.length - 1) * self.stride + 1

    def frames(self, first: int, begin: int, end: int) -> Ints:
        """Return the numbers of a clip's frames; -1 for constant frames."""
        if self.uniform:
            at = np.linspace(begin, end - 1, self.length) if self.length > 1 else np.array([float(begin)])
            return np.floor(at + 0.5).astype(np.int64)
        return padded(first + self.stride * np.arange(self.length), begin, end, self.pad_mode)

    def starts(self, begin: int, end: int, step: int) -> Ints:
        """Return the first frames of the clips of a range."""
        if self.uniform:
            return np.array([begin])
        is_padded = self.pad_mode != "none"
        return np.arange(begin, end if is_padded else end - self.span + 1, step)


class ClipTable:
    """Clips of all files, 12 bytes each.

    Args:
        paths: the files.
        ranges: per range of a file: number of the file, first frame, frame after the last one. A file that cannot be
            read has a range without frames.
        entry: number of its range, per clip.
        first: first frame, per clip.
        failures: reasons why clips cannot be decoded, by number of the clip.
    """

    def __init__(
        self, paths: Sequence[str], ranges: Ints, entry: npt.NDArray[np.int32], first: Ints,
        failures: Mapping[int, str],
    ) -> None:  # fmt: skip
        self.paths, self.ranges, self.entry, self.first, self.failures = paths, ranges, entry, first, failures

    def __len__(self) -> int:
        return len(self.entry)

    def file(self, clip: int) -> int:
        """Return the number of a clip's file."""
        return int(self.ranges[self.entry[clip], 0])

    def frames(self, clip: int, rule: Rule) -> Ints:
        """Return the frames of a clip."""
        _, begin, end = (int(x) for x in self.ranges[self.entry[clip]])
        return rule.frames(int(self.first[clip]), begin, end)

    def fingerprint(self) -> str:
        """Return the digest of everything that decides the clips."""
        return fingerprint(self.ranges, self.entry, self.first)

    def joined(self, others: Sequence[ClipTable]) -> ClipTable:
        """Return the clips of all parts."""
        parts = (self, *others)
        files = np.cumsum([0, *(len(p.paths) for p in parts)])
        entries = np.cumsum([0, *(len(p.ranges) for p in parts)])
        clips = np.cumsum([0, *(len(p) for p in parts)])
        ranges = np.concatenate([p.ranges + np.array([files[i], 0, 0]) for i, p in enumerate(parts)])
        return ClipTable(
            [path for p in parts for path in p.paths], ranges,
            np.concatenate([p.entry + entries[i] for i, p in enumerate(parts)]).astype(np.int32),
            np.concatenate([p.first for p in parts]),
            {clip + int(clips[i]): text for i, p in enumerate(parts) for clip, text in p.failures.items()},
        )  # fmt: skip


Asked = dict[int, "Future[npt.NDArray[np.uint8]]"]


class ClipStorage(Storage):
    """Clips, decoded on threads as soon as the rows of a batch are known.

    Args:
        table: the clips.
        rule: frames of a clip.
        pixels: form of the pixels.
    """

    asynchronous = True

    def __init__(self, table: ClipTable, rule: Rule, pixels: ClipPixels) -> None:
        self.table, self.rule, self.pixels = table, rule, pixels
        self._lock = threading.Lock()
        self._ahead: deque[Asked] = deque()
        self._owner = VideoOwner()
        self._pool: ThreadPoolExecutor | None = None
        self._cancelled = False

    def __len__(self) -> int:
        return len(self.table)

    def locate(self, record: int) -> RecordLocation:
        return RecordLocation(self.table.paths[self.table.file(record)])

    def absent(self) -> Bools | None:
        return None

    def content(self, record: int) -> bytes:
        return self.row(record).tobytes()

    def row(self, record: int) -> npt.NDArray[np.uint8]:
        """Decode a clip on the caller's thread.

        Raises:
            DataError: the clip cannot be decoded.
            OSError: the file cannot be read.
        """
        future: Future[npt.NDArray[np.uint8]] = Future()
        self._decode(self.table.file(record), [(record, future)])
        return future.result()

    def lower(self, c: Lowering, reader: int, dtype: DType, item: tuple[int, ...], layout: str) -> Value:
        number = c.native("index", [], [(DType.INT64, (), "")], attrs=(reader,))[0]
        clips: Value = c.apply("_clips", number, storage=self)
        return clips

    def joined(self, others: Sequence[ClipStorage]) -> ClipStorage:
        if any(o.rule != self.rule or o.pixels != self.pixels for o in others):
            raise ArgumentError("expected parts whose clips have the same arguments")
        return ClipStorage(self.table.joined([o.table for o in others]), self.rule, self.pixels)

    # ---- requests and waiting ----

    def request(self, records: npt.NDArray[np.int64], batches: int) -> None:
        asked = self._ask([int(r) for r in records])
        with self._lock:
            self._ahead.append(asked)
            expired = [self._ahead.popleft() for _ in range(len(self._ahead) - batches)]
        _drop(expired)

    def take(self, records: Sequence[int]) -> list[npt.NDArray[np.uint8] | BaseException]:
        """Wait for clips. Return for each its pixels, or the error that its row fails with.

        Args:
            records: numbers of the clips.
        """
        wanted, asked = set(records), Asked()
        with self._lock:
            for batch in self._ahead:
                asked |= {r: batch.pop(r) for r in wanted & batch.keys() - asked.keys()}
        asked |= self._ask([r for r in wanted if r not in asked])
        return [self._result(asked.get(r)) for r in records]

    def _result(self, future: Future[npt.NDArray[np.uint8]] | None) -> npt.NDArray[np.uint8] | BaseException:
        if future is None:
            return DataError(f"expected a sample below {len(self)} from the sampler")
        if self._cancelled and not future.done():
            return StateError(_CLOSED)
        try:
            return future.result()
        except StateError as error:
            return error
        except Exception as error:  # noqa: BLE001 - a decoder may raise anything; its row carries it
            if is_system_failure(error) or isinstance(error, DataError):
                return error
            bad = DataError(f"{type(error).__name__}: {error}")
            bad.__cause__ = error
            return bad

    def _ask(self, records: Sequence[int]) -> Asked:
        """Begin to decode clips: those of a file that need the same pictures by one thread."""
        asked: Asked = {r: Future() for r in dict.fromkeys(records) if 0 <= r < len(self)}
        files: dict[int, list[int]] = {}
        for record in asked:
            files.setdefault(self.table.file(record), []).append(record)
        with self._lock:
            if self._pool is None and not self._cancelled:
                self._pool = ThreadPoolExecutor(default_threads(), thread_name_prefix="stoker-video")
            pool = None if self._cancelled else self._pool
        for file, clips in files.items():
            work = [(r, asked[r]) for r in sorted(clips)]
            try:
                if pool is None:
                    raise RuntimeError(_CLOSED)
                pool.submit(self._decode, file, work)
            except RuntimeError:  # the pool is shut down
                for _, future in work:
                    future.set_exception(StateError(_CLOSED))
        return asked

    # ---- on the threads ----

    def _decode(self, file: int, work: Sequence[tuple[int, Future[npt.NDArray[np.uint8]]]]) -> None:
        """Decode clips of one file."""
        work = [(r, future) for r, future in work if future.set_running_or_notify_cancel()]
        if self._cancelled:
            for _, future in work:
                future.set_exception(StateError(_CLOSED))
            return
        try:
            clips = self._clips_of(file, work)
        except BaseException as error:  # noqa: BLE001 - the rows carry it, also if the file cannot be opened
            for _, future in work:
                future.set_exception(error)
            return
        for (_, future), clip in zip(work, clips, strict=True):
            future.set_exception(clip) if isinstance(clip, BaseException) else future.set_result(clip)

    def _clips_of(self, file: int, work: Sequence[tuple[int, Any]]) -> list[npt.NDArray[np.uint8] | BaseException]:
        failures = self.table.failures
        frames = {r: self.table.frames(r, self.rule) for r, _ in work if r not in failures}
        found: dict[int, npt.NDArray[np.uint8] | BaseException] = {
            r: DataError(failures[r]) for r, _ in work if r in failures
        }
        if frames:
            path = self.table.paths[file]
            video = VideoFile(self._owner, file, path, functools.partial(index_of, path))
            with POOL.borrow(video, min(int(f[f >= 0].min()) for f in frames.values())) as decoder:
                pixels = self.pixels.decode(decoder, list(frames.values()))
            found |= dict(zip(frames, pixels, strict=True))
        return [found[r] for r, _ in work]

    # ---- end ----

    def drop(self) -> None:
        """Discard clips that were requested."""
        with self._lock:
            dropped = list(self._ahead)
            self._ahead.clear()
        _drop(dropped)

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
        self.drop()

    def close(self) -> None:
        self.cancel()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        POOL.close(self._owner)


def _drop(batches: Sequence[Asked]) -> None:
    for asked in batches:
        for future in asked.values():
            future.cancel()


class DecodeClips(TakeRecords, name="_clips"):
    """Return clips of videos. Input: their number, int64. Output: uint8 FHWC."""

    def infer(self, c: Any, number: Any) -> Spec:
        rule: Rule = c.const("storage").rule
        length = None if rule.pad_mode == "none" and not rule.uniform else rule.length
        return Spec(DType.UINT8, (length, None, None, 3), "FHWC")

    def results_of(self, row: RowContext, found: list[Any]) -> list[Any]:
        return found


class ClipColumn(Column):
    """Decoded clips, uint8 FHWC, or float with ``dtype`` FLOAT.

    Args:
        storage: the clips.
        dtype: UINT8 or FLOAT.
        normalized: values from 0 to 1 instead of 0 to 255.
    """

    name, rank, layout, optional = "video", 4, "FHWC", False

    def __init__(self, storage: ClipStorage, dtype: DType, *, normalized: bool) -> None:
        self._storage, self.dtype, self._normalized = storage, dtype, normalized

    def __len__(self) -> int:
        return len(self._storage)

    @property
    def storage(self) -> ClipStorage:
        return self._storage

    def absent(self) -> Bools | None:
        return None

    def lower(self, c: Lowering, reader: int) -> Value:
        clips = self._storage.lower(c, reader, DType.UINT8, (), self.layout)
        if not self._normalized:
            return c.cast(clips, self.dtype)
        from ..contract.pixel import load

        return c.pointwise([clips], load(DType.UINT8).cast(DType.FLOAT) * (1 / 255))

    def row(self, index: int) -> npt.NDArray[Any]:
        pixels = self._storage.row(index).astype(self.dtype.numpy)
        return pixels * np.float32(1 / 255) if self._normalized else pixels

    def joined(self, others: Sequence[Column]) -> ClipColumn:
        same = [o for o in others if isinstance(o, ClipColumn)]
        mine = (self.dtype, self._normalized)
        if len(same) < len(others) or any((o.dtype, o._normalized) != mine for o in same):
            raise ArgumentError("expected parts that are clips of videos of the same type")
        return ClipColumn(
            self._storage.joined([o.storage for o in same]), self.dtype, normalized=self._normalized
        )  # fmt: skip


def map_files(find: Callable[[int], Found], numbers: Sequence[int]) -> list[Found]:
    """Call a function on numbers of files on threads, and return the results in order."""
    count = min(len(numbers), default_threads())
    if count <= 1:
        return [find(number) for number in numbers]
    with ThreadPoolExecutor(count, thread_name_prefix="stoker-index") as pool:
        return list(pool.map(find, numbers))
