# SPDX-License-Identifier: Apache-2.0
"""``experimental.inputs.video``: batches of sequences of fed videos, their ends, damage, misuse."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import FRAMES, make_clip, number_in, write_video
from idle_clock import HANG_S

import stoker.dali
from stoker import fn, pipeline_def, types
from stoker.contract.errors import ArgumentError, DataError, StateError, StokerError
from stoker.video.indexing import index_video

av = pytest.importorskip("av", reason="PyAV is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clips")


def contents(path: Path) -> Any:
    return np.frombuffer(path.read_bytes(), np.uint8)


def shown(clip: Any) -> list[int]:
    return [number_in(x) if np.ptp(x) else -1 for x in clip]


def pipe_of(batch_size: int, **arguments: Any) -> Any:
    @pipeline_def(batch_size=batch_size, num_threads=1, prefetch_queue_depth=1)
    def pipe() -> Any:
        return fn.experimental.inputs.video(name="video", **arguments)

    return pipe()


def run(pipe: Any) -> list[list[int]]:
    (clips,) = pipe.run()
    return [shown(np.asarray(x)) for x in clips]


def sequences(frames: int, length: int, *, pads: bool = False) -> list[list[int]]:
    parts = [list(range(first, min(first + length, frames))) for first in range(0, frames, length)]
    parts[-1] += [-1] * (length - len(parts[-1])) if pads else []
    return parts


@pytest.mark.parametrize("policy", ["partial", "pad"])
@pytest.mark.parametrize(("batch_size", "length"), [(3, 5), (4, 12), (2, 48), (1, 50), (7, 1)])
def test_a_video_comes_in_batches(folder: Path, policy: str, batch_size: int, length: int) -> None:
    data = contents(make_clip(folder, "h264_open"))
    expected = sequences(FRAMES, length, pads=policy == "pad")
    with pipe_of(batch_size, sequence_length=length, last_sequence_policy=policy) as pipe:
        pipe.feed_input("video", [data])
        pipe.feed_input("video", data[None])
        for _ in range(2):
            for first in range(0, len(expected), batch_size):
                assert run(pipe) == expected[first : first + batch_size]
        with pytest.raises(StateError, match=r"`experimental\.inputs\.video`.*expected data, got none"):
            pipe.run()
        pipe.feed_input("video", [data])
        assert run(pipe) == expected[:batch_size]


def test_videos_of_other_sizes_and_operators_after_it(folder: Path, tmp_path: Path) -> None:
    small = contents(write_video(tmp_path / "s.mp4", "mpeg4", {"b": "2M"}, frames=3, size=(64, 160)))

    @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
    def define() -> Any:
        clip = fn.experimental.inputs.video(name="video", sequence_length=2, image_type=types.BGR)
        return clip, fn.resize(clip, size=(8, 9))

    with define() as pipe:
        for data in (small, contents(make_clip(folder, "one_frame"))):
            pipe.feed_input("video", [data])
        shapes = [[(x.shape, y.shape) for x, y in zip(*pipe.run(), strict=True)] for _ in range(2)]
    assert shapes == [
        [((2, 64, 160, 3), (2, 8, 9, 3)), ((1, 64, 160, 3), (1, 8, 9, 3))], [((1, 96, 160, 3), (1, 8, 9, 3))]
    ]  # fmt: skip


def test_damage_is_an_error_of_its_batch(folder: Path) -> None:
    data = contents(make_clip(folder, "h264")).copy()
    index = index_video(data.data)
    packet = int(index.sync[40])
    start, size = int(index.packet_pos[packet]), int(index.packet_size[packet])
    data[start : start + size] = 0
    good = contents(make_clip(folder, "vp9"))
    with pipe_of(2, sequence_length=12) as pipe:
        for one in (data, np.frombuffer(b"no video", np.uint8), good):
            pipe.feed_input("video", [one])
        assert run(pipe) == sequences(24, 12)
        with pytest.raises(DataError):
            pipe.run()
        with pytest.raises(DataError, match="cannot read"):
            pipe.run()
        assert run(pipe) == sequences(24, 12)


def test_a_run_waits_for_a_video(folder: Path) -> None:
    data = contents(make_clip(folder, "h264"))
    with pipe_of(1, sequence_length=2, blocking=True) as pipe:
        pipe.build()
        timer = threading.Timer(0.2, lambda: pipe.feed_input("video", [data]))
        timer.start()
        assert run(pipe) == [[0, 1]]
        timer.join(HANG_S)


def test_misuse(folder: Path) -> None:
    data = contents(make_clip(folder, "h264"))
    with pipe_of(4, sequence_length=2) as pipe:
        for wrong in ([data, data], [], data, np.stack([data, data])):
            with pytest.raises(StokerError, match="expected a batch of one video"):
                pipe.feed_input("video", wrong)
        with pytest.raises(DataError, match="expected uint8"):
            pipe.feed_input("video", [data.astype(np.int16)])
        pipe.feed_input("video", [data])
        pipe.run()
        with pytest.raises(StateError):
            pipe.get_state()
    for arguments, text in (
        ({"sequence_length": 0}, "as `sequence_length`"),
        ({"sequence_length": 2, "last_sequence_policy": "x"}, "partial"),
        ({"sequence_length": 2, "image_type": types.GRAY}, "RGB, BGR or YCbCr"), ({}, "`sequence_length`"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=text):
            pipe_of(1, **arguments)


def test_scripts_of_dali(folder: Path) -> None:
    data = contents(make_clip(folder, "h264"))

    @stoker.dali.pipeline_def(batch_size=3, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def define() -> Any:
        return stoker.dali.fn.experimental.inputs.video(name="in", sequence_length=20, last_sequence_policy="pad")

    pipe = define()
    pipe.build()
    pipe.feed_input("in", [data])
    (clips,) = pipe.run()
    assert [shown(np.asarray(x)) for x in clips] == sequences(FRAMES, 20, pads=True)
    pipe.close()
