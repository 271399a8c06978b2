# SPDX-License-Identifier: Apache-2.0
"""Threads of ``readers.video``: clips of one file that share no pictures are decoded concurrently, by the pipeline's
number of threads, and each packet is decoded once.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import fully_decoded, write_video

from stoker import DataError, fn, pipeline_def
from stoker.ops.video import decode
from stoker.readers import _video
from stoker.readers._video import ClipStorage, ClipTable
from stoker.video.clip import ClipPixels
from stoker.video.decoder import PacketDecoder
from stoker.video.frame_index import groups_of
from stoker.video.indexing import index_video
from stoker.video.sampling import Rule
from tests.idle_clock import HANG_S

GOP, FRAMES, SIZE = 8, 48, (64, 96)


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("threads") / "video.mp4"
    options = {"x264-params": "scenecut=0:open-gop=0"}
    return str(write_video(path, "libx264", options, frames=FRAMES, size=SIZE, gop=GOP))


def batch_of(paths: list[str], threads: int, length: int, batch_size: int, **options: Any) -> list[Any]:
    """Return the first batch of clips."""

    @pipeline_def(batch_size=batch_size, num_threads=threads, seed=5, prefetch_queue_depth=1)
    def pipe() -> Any:
        return fn.readers.video(filenames=paths, sequence_length=length, **options)

    with pipe() as made:
        (out,) = made.run()
        return [np.asarray(row) for row in out]


def storage_of(paths: list[str], first: list[int], threads: int) -> ClipStorage:
    """Return clips of GOP frames of files, of which each has clips with the given first frames."""
    states = [(status.st_size, status.st_mtime_ns) for status in map(os.stat, paths)]
    table = ClipTable(
        paths, np.array([[k, 0, FRAMES] for k in range(len(paths))]),
        np.repeat(np.arange(len(paths), dtype=np.int32), len(first)), np.tile(first, len(paths)), {}, {}, states,
        [(*SIZE, 0)] * len(paths),
    )  # fmt: skip
    storage = ClipStorage(table, Rule(GOP, 1), ClipPixels())
    storage.use_threads(threads)
    return storage


def test_groups_share_no_packets(video: str, tmp_path: Path) -> None:
    opened = str(write_video(tmp_path / "open.mp4", "libx264", {"x264-params": "open-gop=1:bframes=2"}, frames=FRAMES))
    rng, counts = np.random.default_rng(3), set[int]()
    for path in (video, opened):
        index = index_video(path)
        for _ in range(300):
            clips = [np.sort(rng.integers(0, FRAMES, rng.integers(1, 5))) for _ in range(rng.integers(1, 5))]
            clips = [c[c < c[0] + 6] for c in clips]
            clips[0] = np.append(clips[0], -1)
            groups = groups_of(index, clips)
            assert sorted(k for group in groups for k in group) == list(range(len(clips)))
            needed = []
            for group in groups:
                frames = np.concatenate([clips[k] for k in group])
                own = frames[frames >= 0]
                needed.append({p for n in own for p in range(index.sync[n], index.order[n] + 1)})
            assert sum(map(len, needed)) == len(set().union(*needed))
            counts.add(len(groups))
    assert counts == {1, 2, 3, 4}
    assert groups_of(index_video(video), [np.array([-1]), np.array([0]), np.array([GOP])]) == [[0], [1], [2]]
    assert groups_of(index_video(video), [np.array([GOP]), np.array([GOP - 1, GOP]), np.array([1])]) == [[2, 1, 0]]


def test_clips_of_one_file_are_decoded_concurrently(video: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fully_decoded(Path(video))
    barrier, calls = threading.Barrier(2), itertools.count()
    clips_of = ClipStorage._clips_of

    def both(self: ClipStorage, file: int, clips: Any) -> Any:
        if next(calls) < 2:  # of the first batch; the end of the pipeline may leave one call of a later one
            barrier.wait(HANG_S)  # breaks unless two threads are here together
        return clips_of(self, file, clips)

    monkeypatch.setattr(ClipStorage, "_clips_of", both)
    rows = batch_of([video], 2, GOP, FRAMES // GOP)
    np.testing.assert_array_equal(np.concatenate(rows), np.stack(expected))


@pytest.mark.parametrize(("threads", "files", "pieces"), [(1, 1, 1), (3, 1, 3), (4, 2, 4), (1, 2, 2), (64, 1, 6)])
def test_pieces_follow_the_threads(
    threads: int, files: int, pieces: int, video: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [video]
    for number in range(1, files):
        paths.append(str(tmp_path / f"{number}.mp4"))
        Path(paths[-1]).write_bytes(Path(video).read_bytes())
    found: list[int] = []
    names, clips_of = set[str](), ClipStorage._clips_of

    def noting(self: ClipStorage, file: int, clips: Any) -> Any:
        found.append(len(clips))
        names.add(threading.current_thread().name)
        return clips_of(self, file, clips)

    monkeypatch.setattr(ClipStorage, "_clips_of", noting)
    storage = storage_of(paths, list(range(0, FRAMES, GOP)), threads)
    rows = storage.take([(clip, 0.0) for clip in range(len(storage))])
    storage.close()
    assert all(isinstance(row, np.ndarray) for row in rows) and sum(found) == len(rows)
    assert len(found) == pieces and len(names) <= threads


@pytest.mark.parametrize("threads", [1, 3])
def test_the_pipeline_gives_its_number_of_threads(
    threads: int, video: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    counts: list[int] = []
    monkeypatch.setattr(ClipStorage, "use_threads", lambda self, count: counts.append(count))
    batch_of([video], threads, GOP, 2)
    assert counts == [threads]


@pytest.mark.parametrize("threads", [1, 3])
def test_operators_take_the_number_of_threads(threads: int, video: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = set[int]()

    class Pool(ThreadPoolExecutor):
        def __init__(self, count: int, **options: Any) -> None:
            counts.add(count)
            super().__init__(count, **options)

    monkeypatch.setattr(decode, "ThreadPoolExecutor", Pool)
    content = np.fromfile(video, np.uint8)

    @pipeline_def(batch_size=4, num_threads=threads, prefetch_queue_depth=1)
    def pipe() -> Any:
        return fn.decoders.video(fn.external_source(lambda: [content] * 4, batch=True), sequence_length=2)

    with pipe() as made:
        made.run()
    assert counts == {threads}


@pytest.mark.parametrize("step", [1, 3, 5, GOP])
def test_each_packet_is_decoded_once(video: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clips that overlap, or that begin in the group of pictures in which another one ends, are decoded together.

    Those with a distance of GOP share nothing and are decoded by several threads.
    """
    index = index_video(video)  # which may decode, too
    monkeypatch.setattr(_video, "index_of", lambda path: index)
    fed: list[int] = []
    feed: Callable[..., Any] = PacketDecoder.feed

    def counting(packets: PacketDecoder, **options: Any) -> Any:
        if packets.next < len(packets.index.packet_pts):
            fed.append(packets.next)  # appending is atomic
        return feed(packets, **options)

    monkeypatch.setattr(PacketDecoder, "feed", counting)
    first = list(range(0, FRAMES - GOP + 1, step))
    storage = storage_of([video], first, 4)
    rows = storage.take([(clip, 0.0) for clip in range(len(first))])
    storage.close()
    expected = fully_decoded(Path(video))
    for begin, row in zip(first, rows, strict=True):
        np.testing.assert_array_equal(row, np.stack(expected[begin : begin + GOP]))
    # A decoder that goes on after its clip feeds packets of the next group, until the last frames come out.
    most = (GOP // 2) * (len(rows) - 1) if step == GOP else 0
    assert set(fed) == set(range(max(fed) + 1)) and len(fed) - len(set(fed)) <= most


def test_a_failing_index_fails_the_clips(video: str, tmp_path: Path) -> None:
    """A file that goes away before its clips are split into parts fails its rows with the error of the file."""
    path = tmp_path / "gone.mp4"
    path.write_bytes(Path(video).read_bytes())

    @pipeline_def(batch_size=3, num_threads=3, prefetch_queue_depth=1)
    def pipe() -> Any:
        return fn.readers.video(filenames=[str(path)], sequence_length=GOP)

    with pipe() as made:
        made.build()
        path.unlink()
        with pytest.raises(DataError, match=r"FileNotFoundError.*gone\.mp4"):
            made.run()
