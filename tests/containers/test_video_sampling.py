# SPDX-License-Identifier: Apache-2.0
"""Choice of frames beyond DALI's: rates, seconds, equal distances, random places, key frames."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import FRAMES, KINDS, make_clip, number_in, write_video
from started_threads import StartedThreads

from stoker import eager, fn, pipeline_def
from stoker.contract import thread_start
from stoker.contract.errors import ArgumentError, DataError, StokerError
from stoker.video.frame_index import KEY
from stoker.video.indexing import index_video
from stoker.video.pool import POOL
from stoker.video.sampling import FrameChoice, Rule

av = pytest.importorskip("av", reason="PyAV is not installed")
VFR = np.array([0, *KINDS["h264_vfr"][2]["times"][1:]]) / 1000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clips")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))


def epochs(define: Callable[[], Any], count: int = 1, batch_size: int = 2, state: Any = None, seed: int = 5) -> Any:
    """Return the rows of epochs, each with the state after its batch."""

    @pipeline_def(batch_size=batch_size, num_threads=2, seed=seed)
    def pipe() -> Any:
        return define()

    found = []
    with pipe() as made:
        made.build()
        if state is not None:
            made.set_state(state)
        for _ in range(count * -(-next(iter(made.epoch_size().values())) // batch_size)):
            columns = [[np.asarray(x) for x in output] for output in made.run()]
            found += [(row, made.get_state()) for row in zip(*columns, strict=True)]
    return found


def shown(clip: Any) -> list[int]:
    return [number_in(x) if np.ptp(x) else -1 for x in clip]


def frames_of(**arguments: Any) -> list[list[int]]:
    """Return the frames of the clips of an epoch; they must show the numbers that the reader returns."""
    rows = epochs(lambda: fn.readers.video(enable_frame_num="sequence", **arguments), batch_size=1)
    for (clip, numbers), _ in rows:
        assert shown(clip) == numbers.tolist()
    return [row[1].tolist() for row, _ in rows]


def at_rate(fps: float, times: Any, end: float) -> list[int]:
    """Return the frames that are shown at a rate, by plain search."""
    found, k = [], 0
    while k / fps < end - 1e-6:
        found.append(max(i for i, t in enumerate(times) if t <= k / fps + 1e-6))
        k += 1
    return found


@pytest.mark.parametrize("fps", [5, 12.5, 24, 60])
def test_frames_at_a_rate(folder: Path, fps: float) -> None:
    for kind, times in (("h264", np.arange(FRAMES) / 30), ("h264_vfr", VFR)):
        path = make_clip(folder, kind)
        end = index_video(str(path)).times[-1]
        expected = at_rate(fps, times, end)
        found = frames_of(filenames=str(path), sequence_length=1, fps=fps)
        assert [n for clip in found for n in clip] == expected
        data = np.frombuffer(path.read_bytes(), np.uint8)
        if kind == "h264":
            assert shown(eager.decoders.video(data, fps=fps)) == expected
            clip = eager.decoders.video(data, fps=fps, start_frame=2, sequence_length=3, stride=2)
            assert shown(clip) == expected[2:7:2]


def test_clips_at_a_rate_with_ranges_and_padding(folder: Path, tmp_path: Path) -> None:
    path = str(make_clip(folder, "h264"))
    found = frames_of(filenames=path, sequence_length=3, stride=2, step=4, fps=10, pad_mode="edge")
    assert found == [[0, 6, 12], [12, 18, 24], [24, 30, 36], [36, 42, 45]]
    (tmp_path / "list.txt").write_text(f"{path} 1 0.5 1.0\n")
    rows = epochs(
        lambda: fn.readers.video(
            file_list=str(tmp_path / "list.txt"), sequence_length=2, fps=10, enable_timestamps=True
        )
    )
    assert [shown(row[0]) for row, _ in rows] == [[15, 18], [21, 24]]
    np.testing.assert_allclose(rows[0][0][2], [0.5, 0.6])


@pytest.mark.parametrize(
    "kind", ["h264", "h264_open", "h264_ts", "hevc_open", "vp9", "mpeg4_avi", "h264_refresh", "mjpeg"]
)
def test_key_frames(folder: Path, kind: str) -> None:
    path = make_clip(folder, kind)
    index = index_video(str(path))
    keys = [i for i in range(FRAMES) if index.packet_flags[index.order[i]] & KEY]
    assert len(keys) >= (1 if kind == "h264_refresh" else 3) and keys[0] == 0
    found = frames_of(filenames=str(path), sequence_length=1, keyframes_only=True)
    assert [n for clip in found for n in clip] == keys
    data = np.frombuffer(path.read_bytes(), np.uint8)
    np.testing.assert_array_equal(
        eager.decoders.video(data, keyframes_only=True), eager.decoders.video(data, frames=keys)
    )  # fmt: skip
    if len(keys) > 2:
        last = keys[9] if len(keys) > 9 else -1
        assert shown(eager.decoders.video(data, keyframes_only=True, frames=[2, 1, 9])) == [keys[2], keys[1], last]


def test_equal_distances(folder: Path, tmp_path: Path) -> None:
    path = make_clip(folder, "h264")
    assert frames_of(filenames=str(path), sequence_length=4, uniform_sample=True) == [[0, 16, 31, 47]]
    data = np.frombuffer(path.read_bytes(), np.uint8)
    assert shown(eager.decoders.video(data, sequence_length=4, uniform_sample=True)) == [0, 16, 31, 47]
    part = eager.decoders.video(data, sequence_length=3, uniform_sample=True, start_frame=10, end_frame=21)
    assert shown(part) == [10, 15, 20]
    short = write_video(tmp_path / "s.mp4", "libx264", {"threads": "1"}, frames=2)
    few = eager.decoders.video(np.frombuffer(short.read_bytes(), np.uint8), sequence_length=5, uniform_sample=True)
    assert shown(few) == [0, 0, 1, 1, 1]


def test_seconds(folder: Path) -> None:
    data = np.frombuffer(make_clip(folder, "h264_vfr").read_bytes(), np.uint8)
    at = [VFR[7], VFR[20] + 0.001, 0.0, VFR[3]]
    assert shown(eager.decoders.video(data, times=at)) == [7, 20, 0, 3]
    assert shown(eager.decoders.video(data, times=[1e6, 0], pad_mode="edge")) == [47, 0]
    clip = eager.decoders.video(data, start_time=VFR[5] + 0.002, end_time=VFR[9])
    assert shown(clip) == [5, 6, 7, 8]
    assert shown(eager.decoders.video(data, start_time=VFR[5], sequence_length=2, stride=3)) == [5, 8]
    for arguments, text in (
        ({"times": [-1.0]}, "seconds from 0"), ({"times": [np.nan]}, "seconds from 0"), ({"times": []}, "at least one"),
        ({"times": [1e6], "pad_mode": "none"}, "`times` in it"), ({"start_time": 1e6}, "within the video"),
        ({"times": [0.0], "frames": [1]}, "one of `frames` and `times`"),
        ({"start_time": 0.0, "start_frame": 1}, "one of `start_frame` and `start_time`"),
        ({"times": [0.0], "fps": 3.0}, "`times` without `fps`"), ({"fps": -1.0}, "as `fps`"),
        ({"fps": np.inf}, "as `fps`"),
        ({"fps": 2.0, "keyframes_only": True}, "one of `fps` and `keyframes_only`"),
        ({"uniform_sample": True}, "expected `sequence_length`"), ({"random_crop": True}, "expected `sequence_length`"),
        ({"uniform_sample": True, "sequence_length": 2, "stride": 2}, "decides the `stride`"),
        ({"uniform_sample": True, "random_crop": True, "sequence_length": 2}, "got both"),
    ):  # fmt: skip
        with pytest.raises(StokerError, match=text):
            eager.decoders.video(data, **arguments)


# ---- random places ----


def random_clips(paths: list[str], **more: Any) -> Callable[[], Any]:
    return lambda: fn.readers.video(
        filenames=paths, sequence_length=3, stride=4, random_crop=True, enable_frame_num="sequence",
        enable_timestamps=True, random_shuffle=True, **more,
    )  # fmt: skip


def test_random_places(folder: Path) -> None:
    paths = [str(make_clip(folder, kind)) for kind in ("h264", "vp9", "h264_mkv")]
    rows = epochs(random_clips(paths, labels=[]), 20)
    firsts: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for (clip, label, numbers, times), _ in rows:
        assert shown(clip) == numbers.tolist() and np.diff(numbers).tolist() == [4, 4]
        np.testing.assert_allclose(times, numbers / 30, atol=1e-3)
        firsts[int(label[0])].append(int(numbers[0]))
    for found in firsts.values():
        assert len(found) in (20, 40) or sum(map(len, firsts.values())) == len(rows)
        assert min(found) >= 0 and max(found) <= FRAMES - 9 and len(set(found)) > 8
    assert firsts[0] != firsts[1] != firsts[2]


def test_random_places_depend_on_the_row_alone(folder: Path) -> None:
    paths = [str(make_clip(folder, kind)) for kind in ("h264", "vp9", "h264_mkv", "hevc_open")]
    whole = epochs(random_clips(paths), 3, batch_size=1)
    by_two = epochs(random_clips(paths), 3, batch_size=2)
    assert [row[1].tolist() for row, _ in whole] == [row[1].tolist() for row, _ in by_two]
    for at in (1, 4, 6):
        rest = epochs(random_clips(paths), 1, batch_size=1, state=whole[at][1])
        assert [row[1].tolist() for row, _ in rest] == [row[1].tolist() for row, _ in whole[at + 1 : at + 5]]
    other = epochs(random_clips(paths), 3, batch_size=1, seed=6)
    assert [row[1].tolist() for row, _ in whole] != [row[1].tolist() for row, _ in other]
    parts = [epochs(random_clips(paths, num_shards=2, shard_id=i), 1, batch_size=1) for i in range(2)]
    assert sorted(tuple(row[1]) for part in parts for row, _ in part[:2]) == sorted(tuple(r[1]) for r, _ in whole[:4])


def test_random_places_of_decoded_rows(folder: Path) -> None:
    data = np.frombuffer(make_clip(folder, "h264").read_bytes(), np.uint8)

    def define() -> Any:
        rows = fn.external_source([[data] * 8], cycle=True)
        return fn.decoders.video(rows, sequence_length=2, stride=5, random_crop=True, start_frame=10, end_frame=30)

    @pipeline_def(batch_size=8, num_threads=2, seed=9)
    def pipe() -> Any:
        return define()

    with pipe() as made:
        found = [shown(np.asarray(x)) for _ in range(3) for x in made.run()[0]]
    assert all(a >= 10 and b == a + 5 and b < 30 for a, b in found) and len({a for a, _ in found}) > 6


def test_clips_longer_than_the_video(folder: Path, tmp_path: Path) -> None:
    short = str(write_video(tmp_path / "s.mp4", "libx264", {"threads": "1"}, frames=5))
    with pytest.raises(ArgumentError, match="5 frames in its range"):
        epochs(lambda: fn.readers.video(filenames=short, sequence_length=6, random_crop=True))
    padded = frames_of(filenames=short, sequence_length=7, random_crop=True, pad_mode="edge")
    assert padded == [[0, 1, 2, 3, 4, 4, 4]]
    bad = tmp_path / "bad.mp4"
    bad.write_bytes(b"no video")
    with pytest.raises(StokerError, match=r"cannot read.*bad\.mp4"):
        epochs(
            lambda: fn.readers.video(filenames=str(bad), sequence_length=2, random_crop=True, enable_frame_num="scalar")
        )


def test_resized_random_clips_are_joined(folder: Path) -> None:
    paths = [str(make_clip(folder, kind)) for kind in ("h264", "vp9")]

    def define() -> Any:
        parts = [
            fn.readers.video_resize(
                filenames=[p], labels=[k], sequence_length=2, random_crop=True, fps=15, size=(192, 320),
                enable_frame_num="sequence", enable_timestamps=True,
            )
            for k, p in enumerate(paths)
        ]  # fmt: skip
        return fn.readers.concat(parts)

    for row, _ in epochs(define, 4):
        clip, _, numbers, times = row[:4]
        assert clip.shape == (2, 192, 320, 3)
        assert shown(clip[:, ::2, ::2]) == numbers.tolist() and np.diff(numbers).tolist() == [2]
        np.testing.assert_allclose(times, numbers / 30, atol=1e-3)


def test_arguments_of_readers(folder: Path) -> None:
    path = str(make_clip(folder, "h264"))
    for arguments, text in (
        ({"fps": -2.0}, "as `fps`"), ({"fps": 5.0, "keyframes_only": True}, "one of `fps` and `keyframes_only`"),
        ({"random_crop": True, "step": 2}, "with `random_crop`"),
        ({"random_crop": True, "uniform_sample": True}, "with `random_crop`"),
        ({"uniform_sample": True, "stride": 2}, "with `uniform_sample`"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=text):
            epochs(lambda a=arguments: fn.readers.video(filenames=path, sequence_length=2, **a))


def test_rules() -> None:
    rule = Rule(3, 2, random=True)
    assert [int(rule.frames(0, 10, 20, s)[0]) for s in (0, 0.5, 0.999999)] == [10, 13, 15]
    assert rule.starts(10, 20, 1).tolist() == [10] and not len(rule.starts(10, 14, 1))


def test_times_that_lie_are_refused(folder: Path) -> None:
    import dataclasses

    index = index_video(str(make_clip(folder, "h264")))
    with pytest.raises(DataError, match="at most 16777216 frames at 1000 per second"):
        FrameChoice(1000).of(dataclasses.replace(index, end=1 << 50))


def test_a_forgotten_reader_waits_for_no_lock(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The garbage collector runs in a thread that holds the lock of all decoders."""
    monkeypatch.setattr(thread_start, "_CLOSING_S", 0.2)
    path = str(make_clip(folder, "h264"))

    @pipeline_def(batch_size=2, num_threads=2)
    def pipe() -> Any:
        return fn.readers.video(filenames=[path], sequence_length=2)

    started = StartedThreads()
    made = pipe()
    made.run()
    cycle: list[Any] = [made]
    cycle.append(cycle)
    with POOL._lock:
        del made, cycle
        gc.collect()
    assert started.end()
