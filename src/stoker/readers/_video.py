# SPDX-License-Identifier: Apache-2.0
"""Clips of video files: the table of clips, and the storage that decodes them on threads.

A clip is a row: a range of a file, a first frame, and a rule for the others. Clips of a batch that share pictures
of a file are decoded together, and a decoder that stands before a clip goes on, so that each picture is decoded once.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
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
from ..video.engine_clips import ClipsOnEngines, as_result, in_host_memory
from ..video.frame_index import ARRAYS, FrameIndex, Ints, groups_of
from ..video.frame_resize import FrameResize
from ..video.indexing import index_video
from ..video.memory import MEMORY
from ..video.pool import POOL, VideoFile, VideoOwner
from ..video.sampling import Rule
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


class ClipTable:
    """Clips of all files, 12 bytes each.

    Args:
        paths: the files.
        ranges: per range of a file: number of the file, first frame, frame after the last one. A file that cannot be
            read has a range without frames.
        entry: number of its range, per clip.
        first: first frame, per clip.
        failures: reasons why clips cannot be decoded, by number of the clip.
        chosen: numbers of the frames that ranges and clips count, by number of the file, if they are not all frames.
        states: size and modification time of the files that were indexed; None for files that could not be.
        sizes: height and width of the stored frames of each file, and the rotation in degrees; zeros for files that
            could not be indexed.
    """

    def __init__(
        self, paths: Sequence[str], ranges: Ints, entry: npt.NDArray[np.int32], first: Ints,
        failures: Mapping[int, str], chosen: Mapping[int, Ints], states: Sequence[tuple[int, int] | None],
        sizes: Sequence[tuple[int, int, int]],
    ) -> None:  # fmt: skip
        self.paths, self.ranges, self.entry, self.first, self.failures = paths, ranges, entry, first, failures
        self.chosen, self.states, self.sizes = chosen, states, sizes

    def __len__(self) -> int:
        return len(self.entry)

    def file(self, clip: int) -> int:
        """Return the number of a clip's file."""
        return int(self.ranges[self.entry[clip], 0])

    def frames(self, clip: int, rule: Rule, share: float = 0.0) -> Ints:
        """Return the frames of a clip.

        Args:
            clip: its number.
            rule: frames of a clip.
            share: number from 0 to 1 that places a random clip.
        """
        file, begin, end = (int(x) for x in self.ranges[self.entry[clip]])
        frames, chosen = rule.frames(int(self.first[clip]), begin, end, share), self.chosen.get(file)
        return frames if chosen is None else np.where(frames >= 0, chosen[frames], -1)

    def size_numbers(self, *, turned: bool) -> Ints:
        """Return a number per clip, which is the same for clips whose frames have the same size.

        Args:
            turned: the size after the rotation that the file states.
        """
        facts = np.array(self.sizes, np.int64).reshape(-1, 3)
        swapped = (facts[:, 2] % 180 != 0) & turned
        sizes = np.where(swapped[:, None], facts[:, 1::-1], facts[:, :2])
        numbers: Ints = np.unique(sizes, axis=0, return_inverse=True)[1].reshape(-1)
        found: Ints = numbers[self.ranges[self.entry, 0]]
        return found

    def fingerprint(self) -> str:
        """Return the digest of everything that decides the clips."""
        return fingerprint(self.ranges, self.entry, self.first, *(self.chosen[file] for file in sorted(self.chosen)))

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
            {file + int(files[i]): chosen for i, p in enumerate(parts) for file, chosen in p.chosen.items()},
            [state for p in parts for state in p.states], [size for p in parts for size in p.sizes],
        )  # fmt: skip


Wanted = tuple[int, float]  # number of a clip, and the share that places it if it is random
Pixels = Any  # an array, or a DeviceArray in a GPU's memory
Asked = dict[Wanted, "Future[Pixels]"]
Work = list[tuple[Wanted, "Future[Pixels]"]]


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
        self._threads = default_threads()
        self._pool: ThreadPoolExecutor | None = None
        self._pool_threads = 0
        self._retired: list[ThreadPoolExecutor] = []  # pools that were too small for the engines
        self._cancelled = False
        self._engines: ClipsOnEngines | None = None

    def use_gpu(self, gpu: Any) -> None:
        """Decode clips by the video engines of a GPU, where they can. Clips are in the GPU's memory then."""
        with self._lock:
            if self._engines is None:
                # Threads of the engines wait for them: it takes more of them than the processor's work does.
                self._threads = max(self._threads, default_threads())
                self._engines = ClipsOnEngines(gpu, self._threads)
                if self._pool is not None and self._pool_threads < self._threads:
                    self._pool.shutdown(wait=False)
                    self._retired.append(self._pool)
                    self._pool = None

    def use_threads(self, count: int) -> None:
        with self._lock:
            self._threads = count

    def resize(self, resize: FrameResize | None) -> None:
        """Resize the frames of clips while they are decoded. Clips that were requested before are resized later."""
        self.pixels = replace(self.pixels, resize=resize)

    def __len__(self) -> int:
        return len(self.table)

    def locate(self, record: int) -> RecordLocation:
        return RecordLocation(self.table.paths[self.table.file(record)])

    def absent(self) -> Bools | None:
        return None

    def content(self, record: int) -> bytes:
        return self.row(record).tobytes()

    def row(self, record: int) -> npt.NDArray[Any]:
        """Decode a clip on the caller's thread.

        Raises:
            DataError: the clip cannot be decoded.
            OSError: the file cannot be read.
        """
        future: Future[Pixels] = Future()
        self._decode(self.table.file(record), [((record, 0.0), future)])
        return in_host_memory(future.result())

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
        if self.rule.random:  # the places of the clips are known when the rows run
            return
        asked = self._ask([(int(r), 0.0) for r in records])
        with self._lock:
            self._ahead.append(asked)
            expired = [self._ahead.popleft() for _ in range(len(self._ahead) - batches)]
        _drop(expired)

    def take(self, clips: Sequence[Wanted]) -> list[Pixels | BaseException]:
        """Wait for clips. Return for each its pixels, or the error that its row fails with.

        Args:
            clips: their numbers, and shares that place random ones.
        """
        wanted, asked = set(clips), Asked()
        with self._lock:
            for batch in self._ahead:
                asked |= {w: batch.pop(w) for w in wanted & batch.keys() - asked.keys()}
        asked |= self._ask([w for w in wanted if w not in asked])
        return [self._fitting(self._result(asked.get(w))) for w in clips]

    def _fitting(self, clip: Pixels | BaseException) -> Pixels | BaseException:
        """Return a clip with the size of all clips: it may have been requested before `resize`."""
        resize = self.pixels.resize
        if resize is None or isinstance(clip, BaseException) or clip.shape[1:3] == resize.size:
            return clip
        return resize.of_clip(in_host_memory(clip))

    def _result(self, future: Future[Pixels] | None) -> Pixels | BaseException:
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

    def _ask(self, clips: Sequence[Wanted]) -> Asked:
        """Begin to decode clips: those of a file that need the same pictures by one thread."""
        asked: Asked = {w: Future() for w in dict.fromkeys(clips) if 0 <= w[0] < len(self)}
        files: dict[int, list[Wanted]] = {}
        for wanted in asked:
            files.setdefault(self.table.file(wanted[0]), []).append(wanted)
        pieces = -(-self._threads // max(len(files), 1))
        for file, own in files.items():
            work = [(w, asked[w]) for w in sorted(own)]
            self._submit(self._decode, file, work, pieces)
        return asked

    def _submit(self, function: Callable[..., None], file: int, work: Work, *more: int) -> None:
        """Call a function on one of the threads. If the storage is closed, fail the clips."""
        with self._lock:  # `use_gpu` may replace the pool
            if not self._cancelled:
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="stoker-video")
                    self._pool_threads = self._threads
                with contextlib.suppress(RuntimeError):  # the pool is shut down
                    self._pool.submit(function, file, work, *more)
                    return
        for _, future in work:
            if not future.done():
                future.set_exception(StateError(_CLOSED))

    # ---- on the threads ----

    def _decode(self, file: int, work: Work, pieces: int = 1) -> None:
        """Decode clips of one file. Other threads decode those that share no pictures, in up to ``pieces`` parts."""
        work = [(w, future) for w, future in work if future.set_running_or_notify_cancel()]
        own, *others = self._parts(file, work, pieces) if pieces > 1 and len(work) > 1 else [work]
        for part in others:
            self._submit(self._decode_part, file, part)
        self._decode_part(file, own)

    def _parts(self, file: int, work: Work, pieces: int) -> list[Work]:
        """Return the clips in parts, of which each picture is decoded for one."""
        frames = [self.table.frames(w[0], self.rule, w[1]) for w, _ in work if w[0] not in self.table.failures]
        try:
            index = POOL.index(self._video(file))
        except Exception:  # noqa: BLE001 - decoding the clips meets the error, too
            return [work]
        if len(frames) < len(work):
            return [work]
        groups = groups_of(index, frames)
        count = min(pieces, len(groups))
        bounds = [len(groups) * k // count for k in range(count + 1)]
        return [[work[i] for group in groups[a:b] for i in group] for a, b in itertools.pairwise(bounds)]

    def _decode_part(self, file: int, work: Work) -> None:
        """Decode clips of one file on this thread."""
        if self._cancelled:
            for _, future in work:
                future.set_exception(StateError(_CLOSED))
            return
        try:
            clips = self._clips_of(file, [w for w, _ in work])
        except BaseException as error:  # noqa: BLE001 - the rows carry it, also if the file cannot be opened
            for _, future in work:
                future.set_exception(error)
            return
        for (_, future), clip in zip(work, clips, strict=True):
            future.set_exception(clip) if isinstance(clip, BaseException) else future.set_result(clip)

    def _clips_of(self, file: int, clips: Sequence[Wanted]) -> list[Pixels | BaseException]:
        failures = self.table.failures
        frames = {w: self.table.frames(w[0], self.rule, w[1]) for w in clips if w[0] not in failures}
        found: dict[Wanted, Pixels | BaseException] = {w: DataError(failures[w[0]]) for w in clips if w[0] in failures}
        left = frames
        pixels = self.pixels
        if frames and self._engines is not None and pixels.reduction == 1 and pixels.resize is None:
            on_gpu = self._engines.decode(self._video(file), frames, pixels)
            found |= on_gpu
            left = {w: f for w, f in frames.items() if w not in on_gpu}
        if left:
            with POOL.borrow(self._video(file), min(int(f[f >= 0].min()) for f in left.values())) as decoder:
                decoded = pixels.decode(decoder, list(left.values()))
            found |= dict(zip(left, decoded, strict=True))
        return [found[w] for w in clips]

    def _video(self, file: int) -> VideoFile:
        path = self.table.paths[file]
        find, state = functools.partial(index_of, path), self.table.states[file]
        return VideoFile(self._owner, file, path, find, state, self.pixels.reduction)

    def span(self, clip: int, share: float) -> tuple[float, float]:
        """Return the seconds, on the clock of the file, at which a clip's first frame begins and its last one ends.

        Args:
            clip: its number.
            share: number from 0 to 1 that places a random clip.

        Raises:
            DataError: the clip cannot be decoded.
            OSError: the file cannot be read.
        """
        if clip in self.table.failures:
            raise DataError(self.table.failures[clip])
        frames, index = self.table.frames(clip, self.rule, share), POOL.index(self._video(self.table.file(clip)))
        frames = frames[frames >= 0]
        ends = np.append(index.pts, index.end)
        ticks = int(index.pts[frames.min()]), int(ends[frames.max() + 1])
        return float(ticks[0] * index.time_base), float(ticks[1] * index.time_base)

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
        for pool in (self._pool, *self._retired):
            if pool is not None:
                pool.shutdown(wait=True, cancel_futures=True)
        if self._engines is not None:
            self._engines.close()
        POOL.close(self._owner)
        MEMORY.clear()


def _drop(batches: Sequence[Asked]) -> None:
    for asked in batches:
        for future in asked.values():
            future.cancel()


class DecodeClips(TakeRecords, name="_clips"):
    """Return clips of videos. Input: their number, int64. Output: uint8 or uint16 FHWC."""

    draws = 1
    writes_to_gpu = True

    def infer(self, c: Any, number: Any) -> Spec:
        storage: ClipStorage = c.const("storage")
        size = (None, None) if storage.pixels.resize is None else storage.pixels.resize.size
        return Spec(DType.of(storage.pixels.dtype), (storage.rule.fixed_length, *size, 3), "FHWC")

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        if not rows:
            return []
        storage: ClipStorage = rows[0]["storage"]
        shares = [share_of(storage.rule, row) for row in rows]
        clips = [(int(number), share) for (number,), share in zip(inputs, shares, strict=True)]
        return self.results_of(rows[0], [as_result(x, on_gpu=rows[0].gpu is not None) for x in storage.take(clips)])

    @classmethod
    def use_gpu(cls, args: Mapping[str, Any], gpu: Any) -> None:
        args["storage"].use_gpu(gpu)

    def results_of(self, row: RowContext, found: list[Any]) -> list[Any]:
        return found


def share_of(rule: Rule, row: RowContext) -> float:
    """Return the number that places a row's clip. All columns of a reader draw the same one."""
    return row.stream.uniform() if rule.random else 0.0


class ClipColumn(Column):
    """Decoded clips FHWC.

    Args:
        storage: the clips.
        dtype: UINT8, UINT16 (which those of the storage must be) or FLOAT.
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
