# SPDX-License-Identifier: Apache-2.0
"""``eager.video``: each frame is that of FFmpeg's full decode; other libraries' calls; threads, memory, damage."""

from __future__ import annotations

import gc
import io
import os
import pickle
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import FRAMES, KINDS, fully_decoded, make_clip, number_in, spoilt, write_video

from stoker import eager, types
from stoker.contract.errors import ArgumentError, DataError, ResourceError, StateError
from stoker.settings import default_threads
from stoker.video import pool
from stoker.video.indexing import index_video

av = pytest.importorskip("av", reason="PyAV is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clips")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def h264(folder: Path) -> str:
    return str(make_clip(folder, "h264"))


def shown(frames: Any) -> list[int]:
    return [number_in(frame) for frame in frames]


@pytest.mark.parametrize("kind", KINDS)
def test_each_frame_is_that_of_the_full_decode(folder: Path, kind: str) -> None:
    path = make_clip(folder, kind)
    expected = np.stack(fully_decoded(path))
    draws = random.Random(5)
    for source in (path, path.read_bytes()):
        with eager.video.open(source) as video:
            assert len(video) == len(expected) == video.metadata.num_frames
            for number in draws.sample(range(len(expected)), len(expected)):
                np.testing.assert_array_equal(video[number], expected[number])
            first, step = draws.randrange(len(expected)), draws.randrange(1, 5)
            np.testing.assert_array_equal(video[first::step], expected[first::step])
            np.testing.assert_array_equal(video[::-7], expected[::-7])
            several = draws.choices(range(-len(expected), len(expected)), k=9)
            np.testing.assert_array_equal(video[several], expected[several])
            np.testing.assert_array_equal(video.get_batch(np.array(several, np.int16)), expected[several])
            np.testing.assert_array_equal(np.stack(list(video)), expected)


def test_indexing(h264: str) -> None:
    with eager.video.open(h264) as video:
        assert shown(video[10:50:2]) == list(range(10, 48, 2)) and number_in(video[-1]) == 47
        assert shown(video[range(3, 6)]) == [3, 4, 5] and shown(video[(4, 4, 2)]) == [4, 4, 2]
        assert video[5:5].shape == video[[]].shape == (0, 96, 160, 3) and video[np.int8(3)].shape == (96, 160, 3)
        assert video[0].flags.writeable
        for number in (FRAMES, -FRAMES - 1, np.uint64(1 << 63), [0, FRAMES]):
            with pytest.raises(eager.video.OutOfRangeError, match="expected a number from -48 to 47"):
                video[number]
        with pytest.raises(IndexError):
            video[FRAMES]
        for key in (1.0, "1", None, True, [True], [[1]], [1.5], slice(None, None, 0), slice("a", "b"), object()):
            with pytest.raises(ArgumentError, match="expected"):
                video[key]


def test_axes_and_channels(h264: str) -> None:
    with eager.video.open(h264) as video, eager.video.open(h264, dimension_order="NCHW") as planar:
        np.testing.assert_array_equal(planar[3:5], video[3:5].transpose(0, 3, 1, 2))
        np.testing.assert_array_equal(planar[3], video[3].transpose(2, 0, 1))
        assert planar.get_frame_at(0).data.shape == (3, 96, 160) and planar[5:5].shape == (0, 3, 96, 160)
        with eager.video.open(h264, image_type=types.BGR) as bgr:
            np.testing.assert_array_equal(bgr[7], video[7][..., ::-1])


def test_all_bits(folder: Path) -> None:
    path = make_clip(folder, "hevc_10bit")
    with eager.video.open(path) as video, eager.video.open(path, dtype=types.UINT16) as deep:
        frames = deep[3:9]
        assert frames.dtype == deep[:0].dtype == np.uint16 and deep.metadata.pixel_format == "yuv420p10le"
        assert np.abs(frames / 257 - video[3:9]).max() < 1 and np.unique(frames).size > 256
        np.testing.assert_array_equal(deep.get_frame_at(5).data, frames[2])
        np.testing.assert_array_equal(list(deep)[5], frames[2])


def test_rotation(tmp_path: Path) -> None:
    path = write_video(tmp_path / "r.mp4", "libx264", {"threads": "1"}, frames=3, rotation=90)
    with eager.video.open(path) as turned, eager.video.open(path, adjust_orientation=False) as stored:
        assert (turned.metadata.height, turned.metadata.width, turned.metadata.rotation) == (160, 96, 90)
        assert (stored.metadata.height, stored.metadata.width) == (96, 160)
        np.testing.assert_array_equal(turned[2], np.rot90(stored[2], 1))
        assert turned[:0].shape == (0, 160, 96, 3)


# ---- the calls of TorchCodec ----


def test_frames_by_number(h264: str) -> None:
    with eager.video.open(h264) as video:
        frame, seconds, duration = video.get_frame_at(-3)
        assert (number_in(frame), seconds, duration) == (45, 1.5, pytest.approx(1 / 30))
        batch = video.get_frames_at([5, 40, 5])
        assert shown(batch.data) == [5, 40, 5] and len(batch) == 3 and number_in(batch[1].data) == 40
        assert batch.pts_seconds.tolist() == [5 / 30, 40 / 30, 5 / 30]
        assert shown(video.get_frames_in_range(10, 20, 3).data) == [10, 13, 16, 19]
        assert shown(video.get_frames_in_range(-2, 99).data) == [46, 47]
        for call in (
            lambda: video.get_frame_at(1.0), lambda: video.get_frame_at([1]), lambda: video.get_frames_at(1),
            lambda: video.get_frames_in_range(5, 1, -1), lambda: video.get_frames_in_range(5, 1, 0),
        ):  # fmt: skip
            with pytest.raises(ArgumentError, match="expected"):
                call()


@pytest.mark.parametrize("kind", ["h264", "h264_vfr", "h264_ts", "h264_mkv", "hevc_open", "mpeg4_avi"])
def test_frames_by_time(folder: Path, kind: str) -> None:
    path = make_clip(folder, kind)
    with eager.video.open(path) as video:
        times = video.get_frame_timestamp(slice(None))
        begin, end = video.metadata.begin_stream_seconds, video.metadata.end_stream_seconds
        assert times.shape == (FRAMES, 2) and (times[0, 0], times[-1, 1]) == (begin, end)
        assert (times[1:, 0] == times[:-1, 1]).all() and (times[:, 1] > times[:, 0]).all()
        with av.open(str(path)) as file:
            stated = [frame.time for frame in file.decode(video=0)]
        if None not in stated and kind != "mpeg4_avi":
            assert stated == times[:, 0].tolist()
        draws = random.Random(2)
        moments = [draws.uniform(begin, end) for _ in range(30)] + times[:, 0].tolist()
        expected = [max(n for n in range(FRAMES) if times[n, 0] <= s) for s in moments]
        assert shown(video.get_frames_played_at(moments).data) == expected
        assert number_in(video.get_frame_played_at(np.nextafter(end, 0)).data) == FRAMES - 1
        for _ in range(6):
            a, b = sorted(draws.choices(moments, k=2))
            batch = video.get_frames_played_in_range(a, b)
            assert shown(batch.data) == [n for n in range(FRAMES) if times[n, 0] < b and times[n, 1] > a and a < b]
            sampled = video.get_frames_played_in_range(a, b, fps=7)
            wanted = [a + k / 7 for k in range(1000) if a + k / 7 < b]
            np.testing.assert_allclose(sampled.pts_seconds, wanted)
            assert shown(sampled.data) == [max(n for n in range(FRAMES) if times[n, 0] <= s) for s in wanted]
        for call in (
            lambda: video.get_frame_played_at(end), lambda: video.get_frames_played_at([begin - 1e-9]),
            lambda: video.get_frames_played_in_range(begin, end + 1e-6),
            lambda: video.get_frames_played_in_range(end, begin),
        ):  # fmt: skip
            with pytest.raises(eager.video.OutOfRangeError, match="expected times from"):
                call()
        for wrong in (float("nan"), float("inf"), "x", None, [[1.0]]):
            with pytest.raises(ArgumentError, match="seconds"):
                video.get_frames_played_at([wrong])
        for fps in (0, -1, float("nan")):
            with pytest.raises(ArgumentError, match="expected"):
                video.get_frames_played_in_range(begin, end, fps=fps)
        with pytest.raises(ResourceError, match="STOKER_VIDEO_CLIP_MIB"):
            video.get_frames_played_in_range(begin, end, fps=1e300)


def test_metadata(h264: str, folder: Path) -> None:
    with eager.video.open(h264) as video:
        m = video.metadata
        assert (m.num_frames, m.height, m.width, m.average_fps, m.codec) == (48, 96, 160, 30.0, "h264")
        assert (m.pixel_format, m.begin_stream_seconds, m.duration_seconds) == ("yuv420p", 0.0, 1.6)
        assert not m.is_variable_rate and not m.damage
        assert "48 frames of 96 x 160, 30 fps, h264" in repr(video)
    with eager.video.open(make_clip(folder, "h264_vfr")) as video:
        assert video.metadata.is_variable_rate
    with eager.video.open(make_clip(folder, "h264_mkv")) as video:  # whose times are milliseconds
        assert not video.metadata.is_variable_rate


# ---- the calls of decord ----


def test_positions(h264: str) -> None:
    with eager.video.open(h264) as video:
        assert video.get_key_indices() == [0, 12, 24, 36] and video.get_avg_fps() == 30.0
        assert [number_in(video.next()) for _ in range(3)] == [0, 1, 2]
        video.seek(30)
        assert number_in(video.next()) == 24
        video.seek_accurate(30)
        video.skip_frames()
        assert number_in(video.next()) == 31
        video.skip_frames(15)
        assert number_in(video.next()) == 47
        with pytest.raises(StopIteration):
            video.next()
        assert video.get_frame_timestamp(3).tolist() == [0.1, 4 / 30]
        assert video.get_frame_timestamp([3, 0]).tolist() == [[0.1, 4 / 30], [0.0, 1 / 30]]
        for call in (
            lambda: video.seek(48), lambda: video.seek_accurate(48), lambda: video.seek_accurate([1]),
            lambda: video.seek([1, 2]), lambda: video.skip_frames(0), lambda: video.skip_frames(1.5),
        ):  # fmt: skip
            with pytest.raises(ArgumentError, match="expected"):
                call()


# ---- open and closed ----


def test_closed_videos_are_errors(h264: str) -> None:
    video = eager.video.open(h264)
    assert number_in(video[3]) == 3
    video.close()
    video.close()
    assert "closed" in repr(video)
    for call in (
        lambda: video[0], lambda: video[5:5], lambda: list(video), lambda: video.get_frames_at([]), video.next,
        video.get_key_indices, lambda: video.get_frame_timestamp(0), lambda: video.__enter__(),
        lambda: pickle.dumps(video), lambda: video.get_frames_played_in_range(0, 1), lambda: video.seek(0),
    ):  # fmt: skip
        with pytest.raises(StateError, match="is closed; open it again"):
            call()


def test_sources(h264: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = Path(h264).read_bytes()
    changing = bytearray(content)
    monkeypatch.chdir(Path(h264).parent)
    array = np.frombuffer(content, np.uint8)
    for source in (h264, Path(h264), "a.mp4", content, memoryview(content), array, changing):
        with eager.video.open(source) as video:
            if source is changing:
                changing[:] = bytes(len(changing))
            monkeypatch.chdir(tmp_path)
            assert number_in(video[33]) == 33
            monkeypatch.chdir(Path(h264).parent)
    for source, text in (
        (tmp_path, "a folder, pipe or device"), (io.BytesIO(b"x"), "pass its `read"),
        ("https://host/a.mp4", "this machine.*address 'https://host/a.mp4'.*pass the bytes"),
        (3, "expected the path"), (None, "expected the path"),
        ("a\0b", "expected the path"), (np.zeros((2, 2), np.uint8), "bytes of a file"),
        (np.zeros(8, np.float32), "bytes of a file"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=text):
            eager.video.open(source)
    for options in (
        {"dimension_order": "CHW"},
        {"image_type": types.GRAY},
        {"adjust_orientation": 1},
        {"dtype": types.INT16},
    ):
        with pytest.raises(ArgumentError, match="expected"):
            eager.video.open(h264, **options)
    with pytest.raises(FileNotFoundError):
        eager.video.open(tmp_path / "none.mp4")
    for content in (b"", b"no video", Path(h264).read_bytes()[:2000]):
        with pytest.raises(DataError, match="cannot read"):
            eager.video.open(content)


def test_pickled_videos_are_opened_again(h264: str) -> None:
    for source in (h264, Path(h264).read_bytes()):
        with eager.video.open(source, dimension_order="NCHW") as video, pickle.loads(pickle.dumps(video)) as other:
            np.testing.assert_array_equal(video[20:30], other[20:30])


def test_files_that_change_or_vanish(h264: str, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "v.mp4"
    path.write_bytes(Path(h264).read_bytes())
    with eager.video.open(path) as video:
        assert number_in(video[3]) == 3
        pool.POOL.reset()  # the open decoder would go on
        path.write_bytes(make_clip(folder, "hevc").read_bytes())
        with pytest.raises(DataError, match="changed after it was opened"):
            video[3]
        path.unlink()
        with pytest.raises(FileNotFoundError):
            video[3]


def test_damage(h264: str, folder: Path, tmp_path: Path) -> None:
    index, expected = index_video(h264), fully_decoded(h264)
    packet = int(index.sync[30])
    needing = [n for n in range(FRAMES) if index.sync[n] <= packet <= index.order[n]]
    with eager.video.open(spoilt(h264, tmp_path / "bad.mp4", packet, 0.0)) as video:
        for _ in range(3):
            with pytest.raises(DataError, match=r"eager\.video"):
                video[needing[2]]
        with pytest.raises(DataError):
            video[:]
        seen = 0
        with pytest.raises(DataError):
            for frame in video:
                np.testing.assert_array_equal(frame, expected[seen])
                seen += 1
        assert seen >= 20  # up to the damaged picture
        np.testing.assert_array_equal(video[:20], np.stack(expected[:20]))
    first = write_video(tmp_path / "f.mp4", "libx264", {"threads": "1"}, container_options={"movflags": "faststart"})
    cut = first.read_bytes()[: first.stat().st_size * 6 // 10]
    with pytest.warns(RuntimeWarning, match="is damaged: expected 48 frames"), eager.video.open(cut) as video:
        assert 12 <= len(video) < FRAMES and video.metadata.damage and number_in(video[5]) == 5


# ---- memory, threads, processes ----


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def idle_decoders() -> int:
    return sum(map(len, pool.POOL._idle.values()))


def test_a_thousand_open_videos(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_clip(folder, "one_frame")
    before = open_files()
    expected = fully_decoded(path)[0]
    index = index_video(str(path))
    monkeypatch.setattr("stoker.frontends.video.index_of", lambda _: index)
    videos = [eager.video.open(path) for _ in range(1000)]
    for _ in range(2):
        for video in videos:
            np.testing.assert_array_equal(video[0], expected)
    assert idle_decoders() <= 2 * default_threads() and open_files() <= before + 2 * default_threads()
    assert len(pool.POOL._indexes) <= pool.MAX_INDEXES
    for video in videos[::2]:
        video.close()
    del video, videos[:]
    gc.collect()
    assert idle_decoders() == 0 and open_files() <= before and not pool.POOL._indexes
    assert pool.POOL._index_bytes == 0


def test_evicted_indexes_are_found_again(h264: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MAX_INDEXES", 1)
    other = make_clip(folder, "vp9").read_bytes()
    with eager.video.open(h264) as one, eager.video.open(other) as two:
        for number in (40, 3, 20):
            assert number_in(one[number]) == number_in(two[number]) == number
            assert one.get_frame_timestamp(number)[0] == number / 30
            assert len(pool.POOL._indexes) == 1


@pytest.mark.parametrize("kind", ["h264", "h264_mkv", "vp9"])
def test_threads_share_a_video(folder: Path, kind: str) -> None:
    path = make_clip(folder, kind)
    with eager.video.open(path) as video:

        def run(seed: int) -> None:
            draws = random.Random(seed)
            for _ in range(12):
                numbers = draws.choices(range(FRAMES), k=draws.randrange(1, 6))
                assert shown(video.get_frames_at(numbers).data) == numbers

        with ThreadPoolExecutor(6) as threads:
            list(threads.map(run, range(6)))


def test_positions_of_threads_are_distinct(h264: str) -> None:
    with eager.video.open(h264) as video, ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: number_in(video.next()), range(FRAMES)))
    assert sorted(found) == list(range(FRAMES))


def test_a_video_is_closed_during_calls(h264: str) -> None:
    before = open_files()
    for _ in range(5):
        video = eager.video.open(h264)
        begun = threading.Barrier(5)
        ends = list[str]()

        def run(video: Any = video, begun: Any = begun, ends: Any = ends) -> None:
            begun.wait(30)
            try:
                for k in range(1000):
                    number = 7 * k % FRAMES
                    assert number_in(video[number]) == number
            except StateError:
                ends.append("closed")

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        begun.wait(30)
        video.close()
        for thread in threads:
            thread.join(60)
        assert ends == ["closed"] * 4 and open_files() <= before
    assert not idle_decoders()


FORKS = """
import os, sys, threading, warnings
warnings.simplefilter("ignore")  # newer Pythons warn of a fork with threads
sys.path.insert(0, {tests!r})
from clips import number_in
from stoker import eager

video = eager.video.open({path!r})
ended = threading.Event()
wrong = []

def read(first):
    while not ended.is_set():
        for number in range(first, 48, 5):
            wrong.extend([] if number_in(video[number]) == number else [number])

threads = [threading.Thread(target=read, args=(k,)) for k in range(2)]
for thread in threads:
    thread.start()
children = []
for _ in range(8):
    child = os.fork()
    if not child:
        status = 1
        try:
            shown = [number_in(x) for x in video[4:40]]
            status = int(shown != list(range(4, 40)) or len(os.listdir("/proc/self/fd")) > 100)
        finally:
            os._exit(status)
    children.append(child)
statuses = [os.waitpid(child, 0)[1] for child in children]
ended.set()
for thread in threads:
    thread.join()
print(statuses, wrong)
"""


@pytest.mark.parametrize("kind", ["h264", "h264_mkv"])  # the demuxer of one has a position in the file
def test_forked_processes_have_decoders_of_their_own(folder: Path, kind: str) -> None:
    text = FORKS.format(tests=str(Path(__file__).parents[1]), path=str(make_clip(folder, kind)))
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stdout) == (0, f"{[0] * 8} []\n"), done.stderr


def test_memory_of_many_reads_is_flat(h264: str, tmp_path: Path) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    index = index_video(h264)
    bad = spoilt(h264, tmp_path / "bad.mp4", int(index.sync[30]), 0.0)
    with eager.video.open(h264) as video, eager.video.open(bad) as damaged:
        for round_ in range(4):
            for k in range(150):
                _ = video[k % FRAMES]
                with pytest.raises(DataError):
                    damaged[30]
            gc.collect()
            if round_ == 0:
                first = resident()
        assert resident() < first + (24 << 20)
