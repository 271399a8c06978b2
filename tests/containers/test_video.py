# SPDX-License-Identifier: Apache-2.0
"""``readers.video``: each frame is that of FFmpeg's full decode; clips, padding, lists, resume, shards, damage."""

from __future__ import annotations

import contextlib
import importlib
import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import FRAMES, KINDS, fully_decoded, make_clip, number_in, picture, spoilt, write_video
from PIL import Image

from stoker import eager, fn, pipeline_def, types
from stoker.contract.errors import ArgumentError, DataError, StokerError, UnsupportedError
from stoker.video import decoder as decoder_module
from stoker.video import indexing
from stoker.video.clip import ClipPixels
from stoker.video.colors import MATRICES
from stoker.video.decoder import PacketDecoder, VideoDecoder
from stoker.video.frame_index import FrameIndex
from stoker.video.indexing import index_video
from stoker.video.sampling import FrameChoice

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


@pytest.fixture(scope="module")
def second(folder: Path) -> str:
    return str(make_clip(folder, "hevc"))


@contextlib.contextmanager
def decoder_of(source: Any) -> Iterator[VideoDecoder]:
    decoder = VideoDecoder(source, index_video(source))
    try:
        yield decoder
    finally:
        decoder.close()


def batches(define: Callable[[], Any], batch_size: int = 4, state: Any = None, **options: Any) -> Iterator[Any]:
    """Yield the batches of an epoch as lists of rows per output, and the state after each."""

    @pipeline_def(batch_size=batch_size, num_threads=2, seed=5, **options)
    def pipe() -> Any:
        return define()

    with pipe() as made:
        made.build()
        if state is not None:
            made.set_state(state)
        left = next(iter(made.epoch_size().values()))
        for _ in range(-(-left // batch_size)):
            yield [[np.asarray(row) for row in output] for output in made.run()], made.get_state()


def rows_of(define: Callable[[], Any], **options: Any) -> list[tuple[Any, ...]]:
    """Return all rows of an epoch."""
    return [tuple(output[0] for output in outputs) for outputs, _ in batches(define, 1, **options)]


@pytest.mark.parametrize("kind", KINDS)
def test_each_frame_is_that_of_the_full_decode(folder: Path, kind: str) -> None:
    path = make_clip(folder, kind)
    expected = fully_decoded(path)
    frames = KINDS[kind][2].get("frames", FRAMES)
    assert len(expected) == frames
    index = FrameIndex.of_arrays(index_video(str(path)).arrays())
    assert len(index) == frames and not index.damage
    if kind == "h264_vfr":
        np.testing.assert_allclose(index.times[:-1], np.array(KINDS[kind][2]["times"]) / 1000)
    draws = random.Random(3)
    for source in (str(path), path.read_bytes()):
        with decoder_of(source) as decoder:
            for trial in range(12):  # in order, then at random
                numbers = list(range(frames)) if not trial else draws.sample(range(frames), min(frames, 1 + trial % 5))
                clip = ClipPixels().decode(decoder, [np.array(numbers)])[0]
                assert not isinstance(clip, BaseException), clip
                for got, number in zip(clip, numbers, strict=True):
                    np.testing.assert_array_equal(got, expected[number])
    if kind != "gif":  # whose 256 colors hide the barcode
        assert [number_in(x) for x in expected] == list(range(frames))


@pytest.mark.parametrize("kind", ["h264", "h264_open", "hevc_open", "vp9", "mpeg4_avi"])
def test_consecutive_clips_decode_each_packet_once(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(make_clip(folder, kind))
    expected = fully_decoded(path)
    fed: list[int] = []
    feed = PacketDecoder.feed

    def count(packets: PacketDecoder, **options: Any) -> Any:
        fed.append(packets.next)
        return feed(packets, **options)

    with decoder_of(path) as decoder:
        monkeypatch.setattr(PacketDecoder, "feed", count)
        for first in range(0, len(expected), 3):
            numbers = np.arange(first, min(first + 3, len(expected)))
            assert 0 <= decoder.cost(first) <= 3
            clip = ClipPixels().decode(decoder, [numbers])[0]
            assert not isinstance(clip, BaseException), clip
            np.testing.assert_array_equal(clip, np.stack([expected[n] for n in numbers]))
    assert fed == list(range(len(fed)))


@pytest.mark.parametrize("kind", ["h264_open", "h264_ts", "hevc", "hevc_radl", "vp9", "mpeg4", "mjpeg"])
def test_key_frames_are_decoded_without_others(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(make_clip(folder, kind))
    expected = fully_decoded(path)
    fed: list[int] = []
    packet = PacketDecoder._packet
    monkeypatch.setattr(PacketDecoder, "_packet", lambda *a: (fed.append(a[1]), packet(*a))[1])
    with decoder_of(path) as decoder:
        keys = FrameChoice(keyframes_only=True).of(decoder.index)
        assert keys is not None and len(keys) > 2
        fed.clear()
        clip = ClipPixels().decode(decoder, [keys[1:]])[0]
        assert not isinstance(clip, BaseException), clip
        np.testing.assert_array_equal(clip, np.stack([expected[n] for n in keys[1:]]))
        assert fed == decoder.index.order[keys[1:]].tolist()


@pytest.mark.parametrize("kind", ["h264", "h264_open", "h264_ts", "hevc", "hevc_open", "hevc_radl"])
def test_pictures_that_no_other_needs_are_left_out(folder: Path, kind: str) -> None:
    path = str(make_clip(folder, kind))
    expected, draws, left_out = fully_decoded(path), random.Random(4), set[int]()
    with decoder_of(path) as decoder:
        for _ in range(12):
            wanted = [sorted(draws.sample(range(FRAMES), 2)) for _ in range(2)]
            for numbers, clip in zip(wanted, ClipPixels().decode(decoder, [np.array(w) for w in wanted]), strict=True):
                assert not isinstance(clip, BaseException), clip
                np.testing.assert_array_equal(clip, np.stack([expected[n] for n in numbers]))
            left_out |= decoder._packets.skipped
    assert left_out


@pytest.mark.parametrize("kind", ["h264", "h264_mkv", "h264_ts", "h264_avi", "vp9", "mpeg4_avi", "gif"])
def test_decoders_open_a_container_once(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_clip(folder, kind)
    opened: list[int] = []
    for module in (decoder_module, indexing):
        one = module.open_container
        monkeypatch.setattr(module, "open_container", lambda *a, open_one=one: (opened.append(1), open_one(*a))[1])
    whole = eager.decoders.video(np.frombuffer(path.read_bytes(), np.uint8))
    np.testing.assert_array_equal(whole, np.stack(fully_decoded(path)))
    assert len(opened) == 1


def test_the_size_of_clips_has_a_limit(h264: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_VIDEO_CLIP_MIB", "1")
    data = np.frombuffer(Path(h264).read_bytes(), np.uint8)
    with pytest.raises(DataError, match=r"at most 1 MiB .* got 48 of 96 x 160: 2 MiB.*STOKER_VIDEO_CLIP_MIB"):
        eager.decoders.video(data)
    assert eager.decoders.video(data, sequence_length=20).shape == (20, 96, 160, 3)
    monkeypatch.setenv("STOKER_VIDEO_CLIP_MIB", "3")
    assert len(eager.decoders.video(data)) == FRAMES


def test_a_clip_takes_at_most_half_of_the_available_memory(h264: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of some kilobytes may have hours of black frames."""
    monkeypatch.setattr("stoker.settings.available_memory", lambda: 800 << 20)
    data = np.frombuffer(Path(h264).read_bytes(), np.uint8)
    with pytest.raises(DataError, match=r"at most 400 MiB of frames, got 10000 of .*STOKER_VIDEO_CLIP_MIB"):
        eager.decoders.video(data, sequence_length=10_000, pad_mode="edge")
    monkeypatch.setattr("stoker.settings.available_memory", lambda: 0)
    assert len(eager.decoders.video(data)) == FRAMES


@pytest.mark.parametrize("kind", ["h264_open", "h264_ts", "hevc_open", "vp9", "mpeg4_avi"])
def test_shuffled_clips(folder: Path, kind: str) -> None:
    path = str(make_clip(folder, kind))
    rows = rows_of(lambda: fn.readers.video(
        filenames=path, sequence_length=3, stride=4, step=2, random_shuffle=True, enable_frame_num="sequence",
        enable_timestamps=True,
    ))  # fmt: skip
    starts = []
    for clip, numbers, times in rows:
        assert [number_in(x) for x in clip] == numbers.tolist()
        np.testing.assert_allclose(times, numbers / 30, atol=1e-3)
        starts.append(int(numbers[0]))
    assert sorted(starts) == list(range(0, FRAMES - 8, 2)) and starts != sorted(starts)


def test_outputs_and_types(h264: str, second: str, tmp_path: Path) -> None:
    kinds = tmp_path / "kinds"
    for name, source in (("b/x.mp4", h264), ("a/y.mp4", second)):
        (kinds / name).parent.mkdir(parents=True)
        os.link(source, kinds / name)
    rows = rows_of(lambda: fn.readers.video(
        file_root=str(kinds), sequence_length=20, enable_frame_num="scalar", dtype=types.FLOAT, normalized=True
    ))  # fmt: skip
    assert [(row[1].tolist(), row[2].tolist()) for row in rows] == [([0], [0]), ([0], [20]), ([1], [0]), ([1], [20])]
    assert rows[0][0].dtype == np.float32 and rows[0][1].dtype == rows[0][2].dtype == np.int32
    plain = rows_of(lambda: fn.readers.video(filenames=[second, h264], sequence_length=20))
    assert len(plain) == 4 and all(len(row) == 1 for row in plain)
    for row, other in zip(rows, plain, strict=True):
        np.testing.assert_array_equal(row[0], other[0] * np.float32(1 / 255))
    bgr = rows_of(lambda: fn.readers.video(filenames=[second], sequence_length=20, image_type=types.BGR))
    np.testing.assert_array_equal(bgr[0][0][..., ::-1], plain[0][0])
    stored = rows_of(lambda: fn.readers.video(filenames=[second], sequence_length=20, image_type=types.YCbCr))
    with av.open(second) as file:
        luma = next(file.decode(video=0)).to_ndarray(format="gray")
    assert np.abs(stored[0][0][0, ..., 0].astype(int) - luma).max() <= 20  # full range there
    listed = rows_of(lambda: fn.readers.video(filenames=[second, h264], labels=[7, 9], sequence_length=40))
    assert [int(row[1][0]) for row in listed] == [7, 9]


def numbers_and_shows(**arguments: Any) -> list[tuple[list[int], list[int]]]:
    rows = rows_of(lambda: fn.readers.video(enable_frame_num="sequence", **arguments))
    shows = [[number_in(x) if x.any() else -1 for x in row[0]] for row in rows]
    return list(zip([row[-1].tolist() for row in rows], shows, strict=True))


@pytest.mark.parametrize(
    ("mode", "last"),
    [("constant", [45, -1, -1]), ("edge", [45, 47, 47]), ("reflect_1001", [45, 47, 46]),
     ("reflect_101", [45, 47, 45]), ("symmetric", [45, 47, 46]), ("reflect", [45, 47, 45])],
)  # fmt: skip
def test_clips_at_the_end_are_completed(h264: str, mode: str, last: list[int]) -> None:
    # A step of 2 from 45 on: 45, 47, 49, 51.
    last = {"constant": [45, 47, -1], "edge": [45, 47, 47], "reflect_1001": [45, 47, 46], "symmetric": [45, 47, 46],
            "reflect_101": [45, 47, 45], "reflect": [45, 47, 45]}[mode]  # fmt: skip
    rows = numbers_and_shows(filenames=h264, sequence_length=3, stride=2, step=9, pad_mode=mode)
    assert rows[-1] == (last, last) and len(rows) == 6
    assert all(numbers == shows for numbers, shows in rows)
    left = numbers_and_shows(filenames=h264, sequence_length=3, stride=2, step=9)
    assert left == rows[:-1]
    if mode == "constant":
        assert numbers_and_shows(filenames=h264, sequence_length=3, stride=2, step=9, pad_sequences=True) == rows


@pytest.mark.parametrize(
    ("line", "arguments", "first", "last"),
    [
        ("", {}, 0, 47), ("0.5", {}, 15, 47), ("0.5 1", {}, 15, 29), ("0.51 0.99", {}, 16, 28),
        ("0.51 0.99", {"file_list_include_preceding_frame": True}, 15, 29),
        ("10 20", {"file_list_frame_num": True}, 10, 19), ("-8 -2", {"file_list_frame_num": True}, 40, 45),
        ("40 99", {"file_list_frame_num": True}, 40, 47),
    ],
)  # fmt: skip
def test_lists_with_ranges(h264: str, tmp_path: Path, line: str, arguments: Any, first: int, last: int) -> None:
    (tmp_path / "list.txt").write_text(f"{h264} 3 {line}\n\n")
    rows = rows_of(lambda: fn.readers.video(
        file_list=str(tmp_path / "list.txt"), sequence_length=1, enable_frame_num="scalar", **arguments
    ))  # fmt: skip
    assert [int(row[2][0]) for row in rows] == [number_in(row[0][0]) for row in rows] == list(range(first, last + 1))
    assert all(int(row[1][0]) == 3 for row in rows)


@pytest.mark.parametrize("reader", ["readers.video", "readers.video_resize", "experimental.readers.video"])
def test_folder_of_relative_paths_in_a_list(
    reader: str, h264: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an argument the list's folder counts, and with ``stoker.dali`` the current one, as in DALI."""
    from stoker import dali

    monkeypatch.chdir(Path(h264).parent)
    (tmp_path / "list.txt").write_text(f"{Path(h264).name} 3")
    arguments = {"file_list": str(tmp_path / "list.txt"), "sequence_length": 8}
    if reader == "readers.video_resize":
        arguments["size"] = [8, 8]

    def read(library: Any, **more: Any) -> list[int]:
        operator = library.fn
        for name in reader.split("."):
            operator = getattr(operator, name)
        return [int(row[1][0]) for row in rows_of(lambda: operator(device="cpu", **arguments, **more))]

    assert read(dali) == read(sys.modules["stoker"], base=".") == [3] * (FRAMES // 8)
    with pytest.raises(StokerError, match="No such file"):
        read(sys.modules["stoker"])


def experimental(**arguments: Any) -> list[tuple[list[int], list[int]]]:
    rows = rows_of(lambda: fn.experimental.readers.video(enable_frame_num="sequence", **arguments))
    return [(row[-1].tolist(), [number_in(x) if np.ptp(x) else -int(x.max()) for x in row[0]]) for row in rows]


def test_experimental_reader(h264: str, tmp_path: Path) -> None:
    assert [n[0] for n, _ in experimental(filenames=h264, sequence_length=3, stride=5)] == [0, 15, 30]
    ends = [0, 16, 31, 47]
    assert experimental(filenames=h264, sequence_length=4, uniform_sample=True) == [(ends, ends)]
    last = experimental(filenames=h264, sequence_length=3, stride=7, pad_mode="constant", fill_value=[9, 9, 9])[-1]
    assert last == ([42, -1, -1], [42, -9, -9])
    for line, arguments, first, end in (
        ("0.51 0.99", {}, 15, 30),
        ("0.51 0.99", {"file_list_rounding": "start_up_end_down"}, 16, 29),
        ("0.51 0.99", {"file_list_rounding": "all_up", "file_list_include_end": False}, 16, 29),
        ("0.51 0.99", {"file_list_rounding": "all_down", "file_list_include_end": False}, 15, 28),
        ("5 9", {"file_list_format": "frames"}, 5, 9),
    ):
        (tmp_path / "list.txt").write_text(f"{h264} 1 {line}")
        rows = experimental(file_list=str(tmp_path / "list.txt"), sequence_length=1, **arguments)
        assert [n for numbers, _ in rows for n in numbers] == list(range(first, end + 1))
        assert all(numbers == shows for numbers, shows in rows)
    for arguments, text in (
        ({"fill_value": 256}, "as `fill_value`"), ({"fill_value": [1, 2]}, "as `fill_value`"),
        ({"uniform_sample": True, "stride": 2}, "with `uniform_sample`"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=text):
            experimental(filenames=h264, sequence_length=2, **arguments)


def test_groups_of_one_size(tmp_path: Path) -> None:
    """Three sizes, one of them by a rotation: batches of one size, every clip once, another order in each epoch."""
    sizes = [((96, 160), 24, 0), ((160, 96), 16, 0), ((96, 160), 12, 90), ((64, 64), 8, 0)]

    def plain(size: tuple[int, int]) -> Callable[[int], Any]:
        return lambda _: np.zeros((*size, 3), np.uint8)

    paths = [
        str(write_video(tmp_path / f"{i}.mp4", "libx264", frames=count, size=size, rotation=turn, make=plain(size)))
        for i, (size, count, turn) in enumerate(sizes)
    ]

    def read(**more: Any) -> Any:
        return fn.readers.video(
            filenames=paths, labels=[], sequence_length=2, enable_frame_num="scalar", random_shuffle=True, **more
        )

    @pipeline_def(batch_size=3, num_threads=1, seed=2)
    def pipe(**more: Any) -> Any:
        return read(**more)

    epochs = []
    with pipe(size_group=3) as made:
        for _ in range(2):
            found, mixed = [], 0
            for _ in range(10):  # 12 clips of 96x160, 14 of 160x96, 4 of 64x64
                video, label, first = made.run()
                mixed += len({np.asarray(x).shape for x in video}) > 1
                found += [(int(np.asarray(n)[0]), int(np.asarray(f)[0])) for n, f in zip(label, first, strict=True)]
            epochs.append(found)
            assert mixed <= 1  # what is left of the sizes: two of one and one of the other
    assert len(set(epochs[0])) == len(set(epochs[1])) == 30 and epochs[0] != epochs[1]
    with pipe() as made:
        assert sum(len({np.asarray(x).shape for x in made.run()[0]}) > 1 for _ in range(10)) > 1


def test_groups_of_one_size_are_an_order(tmp_path: Path) -> None:
    paths = [str(make_clip(tmp_path, "h264"))]
    for group, more in ((-1, {}), (2, {"sampler": [0]}), (2, {"shuffle_after_epoch": True})):
        with pytest.raises(ArgumentError, match="size_group"):

            @pipeline_def(batch_size=1)
            def pipe(group: int = group, more: Any = more) -> Any:
                return fn.readers.video(filenames=paths, sequence_length=2, size_group=group, **more)

            pipe().build()


def test_resume_at_every_batch(h264: str, second: str) -> None:
    def define() -> Any:
        return fn.readers.video(
            filenames=[h264, second], labels=[], sequence_length=4, step=5, random_shuffle=True,
            enable_frame_num="scalar",
        )  # fmt: skip

    whole = list(batches(define, 3))
    for k, (_, state) in enumerate(whole[:-1]):
        again = next(batches(define, 3, state))[0]
        for outputs, expected in zip(again, whole[k + 1][0], strict=True):
            for row, other in zip(outputs, expected, strict=True):
                np.testing.assert_array_equal(row, other)


def test_shards_divide_the_clips(h264: str, second: str) -> None:
    def numbers(**more: Any) -> list[tuple[int, int]]:
        rows = rows_of(lambda: fn.readers.video(
            filenames=[h264, second], labels=[], sequence_length=4, step=6, random_shuffle=True,
            enable_frame_num="scalar", **more,
        ))  # fmt: skip
        for row in rows:
            assert number_in(row[0][0]) == row[2][0]
        return [(int(row[1][0]), int(row[2][0])) for row in rows]

    parts = [numbers(num_shards=2, shard_id=i)[:8] for i in range(2)]
    assert sorted(parts[0] + parts[1]) == sorted(numbers()) and not set(parts[0]) & set(parts[1])


# ---- damage ----


# Arithmetic codes have no checksums, so that decoders notice damage within them only by chance. All notice headers that
# are no headers; FFmpeg's H.264 and MPEG-4 decoders notice zeros in the middle.
@pytest.mark.parametrize(
    ("kind", "at"), [("h264", 0.0), ("h264", 0.5), ("hevc", 0.0), ("vp9_mp4", 0.0), ("mpeg4", 0.0), ("mpeg4", 0.5)]
)
def test_a_spoilt_packet_fails_the_clips_that_need_it(folder: Path, tmp_path: Path, kind: str, at: float) -> None:
    path = str(make_clip(folder, kind))
    index, expected = index_video(path), fully_decoded(path)
    packet = int(index.sync[30])
    bad = spoilt(path, tmp_path / "bad.mp4", packet, at)
    needing = {n for n in range(FRAMES) if index.sync[n] <= packet <= index.order[n]}
    failed = set()
    with decoder_of(bad) as decoder:
        for number in random.Random(1).sample(range(FRAMES), FRAMES):
            clip = ClipPixels().decode(decoder, [np.array([number])])[0]
            if isinstance(clip, DataError):
                failed.add(number)
            elif number not in needing:
                np.testing.assert_array_equal(clip[0], expected[number])  # type: ignore[index]
    with decoder_of(bad) as decoder:
        together = ClipPixels().decode(decoder, [np.array([n]) for n in range(FRAMES)])
    assert {n for n, clip in enumerate(together) if isinstance(clip, DataError)} == failed
    assert failed >= needing and len(failed) <= len(needing) + 4  # pictures in flight

    def define() -> Any:
        return fn.readers.video(filenames=bad, sequence_length=1, enable_frame_num="scalar")

    rows = rows_of(define, on_error="replace", error_limit=1.0)
    assert len(rows) == FRAMES and not {int(row[1][0]) for row in rows} & failed


@pytest.mark.parametrize(("kind", "share"), [("h264", 0.6), ("h264_mkv", 0.6), ("h264_fragments", 0.6)])
def test_a_truncated_file_says_so(folder: Path, tmp_path: Path, kind: str, share: float) -> None:
    path = make_clip(folder, kind)
    data = path.read_bytes()
    if kind == "h264":  # the header is at the end: first
        path = write_video(
            tmp_path / "first.mp4", "libx264", {"threads": "1"}, container_options={"movflags": "faststart"}
        )
        data = path.read_bytes()
    bad = tmp_path / f"bad{path.suffix}"
    bad.write_bytes(data[: int(len(data) * share)])
    failures, shown = 0, list[int]()

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe() -> Any:
        return fn.readers.video(filenames=str(bad), sequence_length=1, enable_frame_num="scalar")

    with pipe() as made:
        for _ in range(next(iter(made.epoch_size().values()))):
            try:
                clip, number = made.run()
            except StokerError as error:
                failures += 1
                assert "bad" in str(error)
            else:
                shown.append(number_in(np.asarray(clip[0])[0]))
                assert np.asarray(number[0])[0] == len(shown) - 1
    assert 12 <= len(shown) < FRAMES and shown[:12] == list(range(12)) and shown == sorted(shown)
    assert failures or kind != "h264"  # the header of MP4 says how many frames there were


def fails_with(path: Any, text: str) -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe() -> Any:
        return fn.readers.video(filenames=str(path), sequence_length=1)

    with pipe() as made, pytest.raises(StokerError, match=text):
        made.run()


def test_a_folder_without_folders_of_videos(h264: str) -> None:
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe() -> Any:
        return fn.readers.video(file_root=str(Path(h264).parent), sequence_length=1)

    text = r"no file was found in .* with one of the extensions \.mp4, .*sub-folders\? Else give `filenames`"
    with pytest.raises(ArgumentError, match=text):
        pipe().build()


def test_files_that_are_no_videos(tmp_path: Path, h264: str) -> None:
    fails_with(tmp_path / "none.mp4", "No such file")
    (tmp_path / "text.mp4").write_text("no video")
    fails_with(tmp_path / "text.mp4", "cannot read .*got 8 bytes that begin with b'no video'")
    (tmp_path / "empty.mp4").touch()
    fails_with(tmp_path / "empty.mp4", "cannot read .*the file is empty")
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(Path(h264).read_bytes()[:2000])  # without a header, which is at the end
    fails_with(cut, "cannot read .*begins as an MP4 file, but its list of frames .*missing")
    with av.open(str(tmp_path / "sound.mp4"), "w") as file:
        stream = file.add_stream("aac", rate=8000, layout="mono")
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        sound.sample_rate = 8000
        file.mux(stream.encode(sound))
        file.mux(stream.encode(None))
    fails_with(tmp_path / "sound.mp4", "expected a video stream.*got audio")


def test_a_file_that_changes_is_noticed(h264: str, second: str, tmp_path: Path) -> None:
    path = tmp_path / "v.mp4"
    path.write_bytes(Path(h264).read_bytes())

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe() -> Any:
        return fn.readers.video(filenames=str(path), sequence_length=1)

    with pipe() as made:
        made.build()
        path.write_bytes(Path(second).read_bytes())
        index = index_video(h264)
    with pytest.raises(DataError, match="changed after it was indexed"):
        VideoDecoder(str(path), index)


def test_a_clip_of_two_sizes_is_refused(tmp_path: Path) -> None:
    parts = [
        write_video(tmp_path / f"{k}.h264", "libx264", {"threads": "1"}, frames=6, size=size)
        for k, size in enumerate([(96, 160), (64, 96)])
    ]
    both = tmp_path / "both.h264"
    both.write_bytes(parts[0].read_bytes() + parts[1].read_bytes())
    with decoder_of(str(both)) as decoder:
        one, two, mixed = ClipPixels().decode(decoder, [np.arange(6), np.arange(6, 12), np.arange(4, 8)])
    assert one.shape == (6, 96, 160, 3) and two.shape == (6, 64, 96, 3)  # type: ignore[union-attr]
    assert "one size" in str(mixed)


def test_rotation_is_applied(tmp_path: Path) -> None:
    for degrees in (90, 180, 270):
        path = str(write_video(tmp_path / f"{degrees}.mp4", "libx264", {"threads": "1"}, frames=3, rotation=degrees))
        turned = rows_of(lambda p=path: fn.readers.video(filenames=p, sequence_length=3))[0][0]
        stored = rows_of(lambda p=path: fn.readers.video(filenames=p, sequence_length=3, adjust_orientation=False))[0][
            0
        ]
        np.testing.assert_array_equal(turned, np.rot90(stored, degrees // 90, (1, 2)))
        assert number_in(stored[2]) == 2


@pytest.mark.parametrize("matrix", [1, 5, 9])
@pytest.mark.parametrize("range_of", [1, 2])
def test_colors_of_the_stream(tmp_path: Path, matrix: int, range_of: int) -> None:
    patches = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [200, 120, 60], [128, 128, 128], [255, 255, 255]])
    image = np.kron(patches.reshape(2, 3, 3), np.ones((32, 32, 1))).astype(np.uint8)
    kr, kb = MATRICES[matrix]
    path = write_video(
        tmp_path / "c.mkv", "libx264", {"qp": "0", "threads": "1"}, frames=1, size=(64, 96), pixels="yuv444p",
        color=(matrix, range_of), make=lambda _: image,
    )  # fmt: skip
    planes = _planes_of(image, kr, kb, full=range_of == 2)
    _write_planes(path, planes, matrix, range_of)
    found = rows_of(lambda: fn.readers.video(filenames=str(path), sequence_length=1))[0][0][0]
    assert np.abs(found.astype(int) - image).max() <= 2


def _planes_of(image: Any, kr: float, kb: float, *, full: bool) -> Any:
    r, g, b = np.moveaxis(image / 255, -1, 0)
    y = kr * r + (1 - kr - kb) * g + kb * b
    u, v = (b - y) / (2 * (1 - kb)), (r - y) / (2 * (1 - kr))
    scale = (255, 255, 0) if full else (219, 224, 16)
    planes = np.stack([scale[2] + scale[0] * y, 128 + scale[1] * u, 128 + scale[1] * v])
    return np.rint(planes).clip(0, 255).astype(np.uint8)


def _write_planes(path: Path, planes: Any, matrix: int, range_of: int) -> None:
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=30)
        stream.height, stream.width = planes.shape[1:]
        stream.pix_fmt, stream.options = "yuv444p", {"qp": "0", "threads": "1"}
        stream.codec_context.colorspace, stream.codec_context.color_range = matrix, range_of
        frame = av.VideoFrame.from_ndarray(planes, format="yuv444p")
        frame.colorspace, frame.color_range = matrix, range_of
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))


# ---- arguments ----


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({}, "expected `filenames`, `file_list` or `file_root`"),
        ({"filenames": "a.mp4", "sequence_length": 0}, "as `sequence_length`"),
        ({"filenames": "a.mp4", "stride": 0}, "as `stride`"),
        ({"filenames": "a.mp4", "step": 0}, "as `step`"),
        ({"filenames": "a.mp4", "dtype": types.INT16}, "UINT8, UINT16 or FLOAT"),
        ({"filenames": "a.mp4", "normalized": True}, "FLOAT with `normalized`"),
        ({"filenames": "a.mp4", "image_type": types.GRAY}, "RGB, BGR or YCbCr"),
        ({"filenames": "a.mp4", "channels": 1}, "3 `channels`"),
        ({"filenames": "a.mp4", "pad_mode": "edge", "pad_sequences": True}, "with `pad_sequences`"),
        ({"filenames": "a.mp4", "file_root": "x"}, "got both"),
        ({"file_root": "x", "labels": [1]}, "`labels` go with `filenames`"),
        ({"filenames": ["a.mp4"], "labels": [1, 2]}, "one label per file"),
    ],
)
def test_arguments_are_checked(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        rows_of(lambda: fn.readers.video(**{"sequence_length": 2, **arguments}))


def test_lines_of_a_list_are_checked(tmp_path: Path) -> None:
    for line in ("a.mp4", "a.mp4 x", "a.mp4 1 nan", "a.mp4 1 2 3 4"):
        (tmp_path / "list.txt").write_text(f"a.mp4 1\n{line}\n")
        with pytest.raises(ArgumentError, match="in line 2"):
            rows_of(lambda: fn.readers.video(file_list=str(tmp_path / "list.txt"), sequence_length=1))


def test_videos_without_a_clip(h264: str) -> None:
    with pytest.raises(ArgumentError, match=r"clips of 50 frames.*has 48 frames"):
        rows_of(lambda: fn.readers.video(filenames=h264, sequence_length=50))


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, h264: str) -> None:
    def absent(name: str, *rest: Any) -> Any:
        if name == "av":
            raise ImportError("No module named 'av'")
        return real(name, *rest)

    real = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(UnsupportedError, match="extra `video`"):
        index_video(h264)


def test_indexes_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_video(tmp_path / "large.mp4", "mpeg4", {"b": "8M"}, frames=90, gop=1)
    assert path.stat().st_size > 64 << 10
    os.utime(path, (1e9, 1e9))
    module = sys.modules["stoker.readers._video"]
    calls = []
    real = module.index_video
    monkeypatch.setattr(module, "index_video", lambda p: calls.append(p) or real(p))
    first, again = module.index_of(str(path)), module.index_of(str(path))
    assert len(calls) == 1
    for name, value in first.arrays().items():
        np.testing.assert_array_equal(value, again.arrays()[name])


def test_readers_are_joined(h264: str, second: str) -> None:
    def define() -> Any:
        parts = [fn.readers.video(filenames=[p], labels=[k], sequence_length=16) for k, p in enumerate((h264, second))]
        return fn.readers.concat(parts)

    rows = rows_of(define)
    assert [number_in(row[0][0]) for row in rows] == [0, 16, 32] * 2


def test_pictures_are_made_as_described() -> None:
    assert [number_in(picture(n)) for n in (0, 5, 255)] == [0, 5, 255]


def test_a_preview_has_a_strip_per_clip(h264: str, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    module = importlib.import_module("stoker.frontends.preview")
    draw = module.draw_cards
    monkeypatch.setattr(module, "draw_cards", lambda cards, *more: drawn.extend(cards) or draw(cards, *more))

    @pipeline_def(batch_size=2, num_threads=2)
    def pipe() -> Any:
        return fn.readers.video(filenames=h264, sequence_length=8, step=20)

    with pipe() as made:
        sheet = made.preview(2)
    assert [card.title for card in drawn] == ["h264/a.mp4"] * 2 and sheet.width > 6 * 100
    expected = fully_decoded(h264)
    for card, first in zip(drawn, (0, 20), strict=True):
        (strip,) = card.tiles
        for place, number in enumerate((0, 1, 3, 4, 6, 7)):
            frame = Image.fromarray(expected[first + number])
            frame.thumbnail((117, 117), Image.Resampling.LANCZOS)
            at = place * (frame.width + 4)
            np.testing.assert_array_equal(np.asarray(strip)[:, at : at + frame.width], np.asarray(frame))
