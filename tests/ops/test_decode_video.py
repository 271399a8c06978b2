# SPDX-License-Identifier: Apache-2.0
"""``decoders.video`` and ``readers.video_resize``: chosen frames, completion, arguments per row, damage."""

from __future__ import annotations

import contextlib
import io
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import FRAMES, make_clip, number_in, write_video

import stoker.dali
from stoker import eager, fn, pipeline_def, types
from stoker.contract.errors import ArgumentError, DataError, StokerError
from stoker.video.colors import MATRICES, convert_plain
from stoker.video.sampling import padded

av = pytest.importorskip("av", reason="PyAV is not installed")
KINDS = ("h264_open", "h264_ts", "hevc_open", "vp9", "mpeg4_avi", "mjpeg", "one_frame")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clips")


@pytest.fixture(scope="module")
def h264(folder: Path) -> Any:
    return contents(make_clip(folder, "h264"))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))


def contents(path: Path) -> Any:
    return np.frombuffer(path.read_bytes(), np.uint8)


def numbers_of(clip: Any) -> list[int]:
    """Return the numbers that frames show; the negative value of frames of one value."""
    return [number_in(x) if np.ptp(x) else -int(x.max()) for x in clip]


def run(define: Any, batch_size: int, **options: Any) -> Any:
    @pipeline_def(batch_size=batch_size, num_threads=2, seed=3, **options)
    def pipe() -> Any:
        return define()

    with pipe() as made:
        return made.run()


@pytest.mark.parametrize("kind", KINDS)
def test_frames_are_those_of_the_full_decode(folder: Path, kind: str) -> None:
    data = contents(make_clip(folder, kind))
    whole = eager.decoders.video(data)
    count = 1 if kind == "one_frame" else FRAMES
    assert numbers_of(whole) == list(range(count))
    with av.open(io.BytesIO(data)) as file:
        for got, frame in zip(whole, file.decode(video=0), strict=True):
            assert np.abs(got.astype(int) - frame.to_ndarray(format="rgb24")).mean() < 12  # chroma is not smoothed
    listed = random.Random(2).choices(range(count), k=9)
    np.testing.assert_array_equal(eager.decoders.video(data, frames=listed), whole[listed])


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        ({"frames": [0, 10, 5, 10]}, [0, 10, 5, 10]),
        ({"frames": 7}, [7]),
        ({"frames": [47, 48, 50]}, [47, 0, 0]),
        ({"frames": [47, 48, 50], "pad_mode": "edge"}, [47, 47, 47]),
        ({"start_frame": 40}, list(range(40, 48))),
        ({"stride": 13}, [0, 13, 26, 39]),
        ({"end_frame": 10, "stride": 3}, [0, 3, 6, 9]),
        ({"start_frame": 2, "end_frame": 10, "stride": 4}, [2, 6]),
        ({"start_frame": 43, "sequence_length": 3, "stride": 2}, [43, 45, 47]),
        ({"start_frame": 44, "sequence_length": 3, "stride": 2, "fill_value": 9}, [44, 46, -9]),
        ({"start_frame": 44, "sequence_length": 3, "stride": 2, "pad_mode": "none"}, [44, 46]),
        ({"start_frame": 45, "end_frame": 52, "pad_mode": "none"}, [45, 46, 47]),
        ({"start_frame": 45, "end_frame": 52}, [45, 46, 47, 0, 0, 0, 0]),
        ({"start_frame": 46, "sequence_length": 5, "pad_mode": "edge"}, [46, 47, 47, 47, 47]),
        ({"start_frame": 46, "sequence_length": 5, "pad_mode": "repeat"}, [46, 47, 47, 47, 47]),
        ({"start_frame": 45, "sequence_length": 4, "stride": 2, "pad_mode": "edge"}, [45, 47, 47, 47]),
        ({"start_frame": 46, "sequence_length": 5, "pad_mode": "symmetric"}, [46, 47, 47, 46, 45]),
        ({"start_frame": 46, "sequence_length": 5, "pad_mode": "reflect"}, [46, 47, 46, 45, 44]),
    ],
)
def test_choice_of_frames(h264: Any, arguments: dict[str, Any], numbers: list[int]) -> None:
    assert numbers_of(eager.decoders.video(h264, **arguments)) == numbers


def test_padding_reaches_any_distance() -> None:
    for mode, period in (("reflect_1001", [3, 4, 5, 5, 4, 3]), ("reflect_101", [3, 4, 5, 4])):
        assert padded(np.arange(3, 40), 3, 6, mode).tolist() == [period[i % len(period)] for i in range(37)]
    assert padded(np.arange(3, 9), 3, 4, "reflect_101").tolist() == [3] * 6


def test_arguments_per_row(h264: Any) -> None:
    starts, strides = [3, 20, 41], [1, 5, 2]

    def define() -> Any:
        data = fn.external_source(lambda: [h264] * 3)
        start = fn.external_source(lambda: [np.int32(s) for s in starts])
        stride = fn.external_source(lambda: [np.array([s], np.int64) for s in strides])
        listed = fn.external_source(lambda: [np.arange(1 + i) * 4 for i in range(3)])
        clip = fn.decoders.video(data, start_frame=start, sequence_length=3, stride=stride)
        return clip, fn.decoders.video(data, frames=listed), fn.resize(clip, size=(8, 9))

    clips, chosen, small = run(define, 3)
    for i in range(3):
        assert numbers_of(np.asarray(clips[i])) == [starts[i] + strides[i] * k for k in range(3)]
        assert numbers_of(np.asarray(chosen[i])) == [4 * k for k in range(1 + i)]
    assert small.as_array().shape == (3, 3, 8, 9, 3)


def test_channels_and_rotation(tmp_path: Path, h264: Any) -> None:
    rgb, bgr = (eager.decoders.video(h264, frames=[5], image_type=t) for t in (types.RGB, types.BGR))
    np.testing.assert_array_equal(rgb, bgr[..., ::-1])
    data = contents(write_video(tmp_path / "r.mp4", "libx264", {"threads": "1"}, frames=2, rotation=90))
    stored = eager.decoders.video(data, adjust_orientation=False)
    np.testing.assert_array_equal(eager.decoders.video(data), np.rot90(stored, 1, (1, 2)))
    with contextlib.closing(stoker.dali.pipeline_def(batch_size=1, num_threads=1, device_id=None)(_dali)(data)) as pipe:
        pipe.build()
        for output in pipe.run():
            np.testing.assert_array_equal(np.asarray(output[0]), stored)


def _dali(data: Any) -> Any:
    source = stoker.dali.fn.external_source(lambda: [data])
    decoders = (stoker.dali.fn.decoders, stoker.dali.fn.experimental.decoders)
    return tuple(d.video(source, sequence_length=2, build_index=False) for d in decoders)


def test_frames_of_sixteen_bits(folder: Path) -> None:
    path = make_clip(folder, "hevc_10bit")
    with av.open(str(path)) as file:
        frame = next(file.decode(video=0))
        planes = [np.frombuffer(p, np.uint16).reshape(p.height, -1)[:, : p.width] for p in frame.planes]
        matrix = MATRICES[int(frame.colorspace)]
    expected = convert_plain(planes, (1, 1), 10, matrix, False, 0, np.uint16)
    data = contents(path)
    clip = eager.decoders.video(data, frames=[0, 60], dtype=types.UINT16, fill_value=[1, 300, 65535])
    assert clip.dtype == np.uint16 and len(np.unique(expected)) > 256
    np.testing.assert_array_equal(clip[0], expected)
    assert (clip[1] == [1, 300, 65535]).all()
    stored = eager.decoders.video(data, frames=[0], dtype=types.UINT16, image_type=types.YCbCr)[0]
    np.testing.assert_array_equal(stored[..., 0], planes[0] << 6)

    def define() -> Any:
        common: dict[str, Any] = {"filenames": str(path), "sequence_length": 2, "dtype": types.UINT16}
        return fn.readers.video(**common), fn.readers.video_resize(**common, size=(96, 160))

    for output in run(define, 1):
        np.testing.assert_array_equal(np.asarray(output[0])[0], expected)
    gif = eager.decoders.video(contents(make_clip(folder, "gif")), frames=[3], dtype=types.UINT16)
    np.testing.assert_array_equal(
        gif, eager.decoders.video(contents(make_clip(folder, "gif")), frames=[3]) * np.uint16(257)
    )


def test_a_bad_row_fails_alone(tmp_path: Path, h264: Any) -> None:
    with av.open(str(tmp_path / "sound.mp4"), "w") as file:
        stream = file.add_stream("aac", rate=8000, layout="mono")
        sound = av.AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), format="fltp", layout="mono")
        sound.sample_rate = 8000
        file.mux(stream.encode(sound))
        file.mux(stream.encode(None))
    short = contents(write_video(tmp_path / "short.mp4", "libx264", {"threads": "1"}, frames=3))
    rows = {
        "cannot read": np.frombuffer(b"no video at all", np.uint8), "got none": np.zeros(0, np.uint8),
        "expected a video stream.*got audio": contents(tmp_path / "sound.mp4"), "file of 3000 bytes": h264[:3000],
        "`start_frame` below 3": short,
    }  # fmt: skip
    for text, bad in rows.items():
        with pytest.raises(DataError, match=text):
            eager.decoders.video(bad, start_frame=10, sequence_length=2)

    def define() -> Any:
        data = fn.external_source(lambda: [h264, *rows.values()], batch=True)
        return fn.decoders.video(data, start_frame=10, sequence_length=2)

    (clips,) = run(define, 1 + len(rows), on_error="skip", error_limit=1.0)
    assert [numbers_of(np.asarray(clip)) for clip in clips] == [[10, 11]]


def test_damage_fails_the_frames_that_need_it(folder: Path) -> None:
    from stoker.video.indexing import index_video

    data = contents(make_clip(folder, "h264")).copy()
    index = index_video(memoryview(data))
    packet = int(index.sync[30])
    start, size = int(index.packet_pos[packet]), int(index.packet_size[packet])
    data[start : start + size] = 0
    with pytest.raises(DataError):
        eager.decoders.video(data, frames=[30])
    assert numbers_of(eager.decoders.video(data, frames=[2, 5])) == [2, 5]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"frames": [1], "stride": 2}, "`frames` without `stride`"),
        ({"frames": [1], "start_frame": 2, "end_frame": 3}, "`frames` without `start_frame`, `end_frame`, got both"),
        ({"sequence_length": 2, "end_frame": 3}, "one of `sequence_length` and `end_frame`"),
        ({"frames": [-1]}, "from 0 to 2\\*\\*31 as `frames`"),
        ({"frames": []}, "at least one frame"),
        ({"start_frame": -1}, "from 0 to 2\\*\\*31 as `start_frame`"),
        ({"sequence_length": 0}, "from 1 to 2\\*\\*31 as `sequence_length`"),
        ({"sequence_length": 1 << 21}, "at most 2\\*\\*20 frames"),
        ({"stride": 0}, "from 1 to 2\\*\\*31 as `stride`"),
        ({"start_frame": 9, "end_frame": 9}, "the end of the range after its first frame, 9, got 9"),
        ({"start_frame": 48}, "`start_frame` below 48"),
        ({"frames": [48], "pad_mode": "none"}, "`frames` below 48"),
        ({"pad_mode": "wrap"}, "expected one of"),
        ({"fill_value": 300}, "as `fill_value`"),
        ({"image_type": types.GRAY}, "RGB, BGR or YCbCr"),
        ({"dtype": types.FLOAT}, "UINT8 or UINT16"),
        ({"dtype": types.UINT16, "fill_value": 65536}, "from 0 to 65535 as `fill_value`"),
    ],
)
def test_arguments_are_checked(h264: Any, arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(StokerError, match=text):
        eager.decoders.video(h264, **arguments)


def test_the_input_is_checked() -> None:
    with pytest.raises(ArgumentError, match="the bytes of a file"):
        eager.decoders.video(np.zeros((2, 3), np.uint8))


# ---- readers.video_resize ----


def clips_of(path: Path, batch_size: int = 3) -> Iterator[Any]:
    def define() -> Any:
        common: dict[str, Any] = {"filenames": [str(path)], "labels": [7], "sequence_length": 4, "stride": 3}
        small, label = fn.readers.video_resize(**common, size=(32, 40), interp_type=types.INTERP_CUBIC)
        whole, _ = fn.readers.video(**common)
        exact, _ = fn.readers.video_resize(**common, resize_shorter=24, dtype=types.FLOAT)
        unit, _ = fn.readers.video_resize(**common, resize_shorter=24, dtype=types.FLOAT, normalized=True)
        expected = fn.resize(whole, size=(32, 40), interp_type=types.INTERP_CUBIC)
        return small, expected, label, exact, fn.resize(whole, resize_shorter=24, dtype=types.FLOAT), unit

    yield from zip(*run(define, batch_size), strict=True)


def test_resized_clips(folder: Path) -> None:
    for row in clips_of(make_clip(folder, "vp9")):
        small, expected, label, exact, wanted, unit = (np.asarray(x) for x in row)
        assert small.shape == (4, 32, 40, 3) and small.dtype == np.uint8 and label.tolist() == [7]
        np.testing.assert_array_equal(small, expected)
        assert exact.shape == (4, 24, 40, 3) and exact.dtype == np.float32
        np.testing.assert_array_equal(exact, wanted)
        np.testing.assert_array_equal(unit, exact * np.float32(1 / 255))


def test_sizes_per_row(folder: Path) -> None:
    path = str(make_clip(folder, "h264_mkv"))

    def define() -> Any:
        width = fn.random.uniform(range=(20, 40))
        return fn.readers.video_resize(filenames=path, sequence_length=2, resize_x=width), width

    clips, widths = run(define, 4)
    for clip, width in zip(clips, widths, strict=True):
        assert np.asarray(clip).shape[2] == int(np.floor(float(np.asarray(width)) + 0.5))


def test_arguments_of_the_resizing_reader(folder: Path) -> None:
    path = str(make_clip(folder, "h264_mkv"))
    for arguments, text in (
        ({}, "expected one of `size`"), ({"size": (2, 3), "resize_shorter": 3}, "expected one of `size`"),
        ({"size": (2, 3), "normalized": True}, "FLOAT with `normalized`"),
        ({"size": (2, 3), "dtype": types.INT16}, "UINT8, UINT16 or FLOAT"), ({"size": (2, 3, 4)}, "1 or 2 elements"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=text):
            run(lambda a=arguments: fn.readers.video_resize(filenames=path, sequence_length=2, **a), 1)
