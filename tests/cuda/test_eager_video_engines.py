# SPDX-License-Identifier: Apache-2.0
"""``eager.video`` on a GPU's video engines: the frames of the CPU in the GPU's memory.

Without a GPU the driver's library is a fake over FFmpeg, and kernels run on emulated threads.
"""

from __future__ import annotations

import gc
import pickle
import random
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest
from fake_nvcuvid import FakeEngines
from test_video_engines import FORMS, FRAMES, SIZE, made

from stoker import DataError, eager, types
from stoker.contract.errors import ArgumentError, DeviceError, ResourceError, StateError
from stoker.device.gpu import Gpu
from stoker.frontends import video_device
from stoker.native import _native
from stoker.settings import default_threads
from stoker.video.engine_clips import in_host_memory
from tests.clips import write_video


@pytest.fixture
def own_engines(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Let each test open the GPU itself."""
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))
    own = video_device._OpenEngines()
    monkeypatch.setattr(video_device, "_ENGINES", own)
    yield
    gc.collect()
    own.close()


@pytest.fixture
def fake(fake_video_engines: FakeEngines, own_engines: None) -> FakeEngines:
    """Return the fake engines, which are closed last."""
    return fake_video_engines


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)])
def device(request: pytest.FixtureRequest) -> Any:
    """Return the fake engines, or None for the real ones."""
    return request.getfixturevalue("fake" if request.param == "null" else "own_engines")


def on_gpu(source: Any, **arguments: Any) -> Any:
    return eager.video.open(source, device="gpu", **arguments)


def require_equal(found: Any, expected: Any) -> None:
    assert isinstance(found, _native.gpu.DeviceArray), "frames are in the GPU's memory"
    host = in_host_memory(found)
    assert host.shape == expected.shape and host.dtype == expected.dtype
    np.testing.assert_array_equal(host, expected)


@pytest.mark.parametrize("form", FORMS)
def test_frames_of_the_cpu(form: str, device: Any, tmp_path: Path) -> None:
    path = made(tmp_path, form)
    draws = random.Random(3)
    for arguments in (
        {}, {"dimension_order": "NCHW", "dtype": types.UINT16}, {"image_type": types.BGR, "dimension_order": "NCHW"},
        {"image_type": types.YCbCr, "adjust_orientation": False},
    ):  # fmt: skip
        with warnings.catch_warnings(), eager.video.open(path, **arguments) as cpu, on_gpu(path, **arguments) as gpu:
            warnings.simplefilter("error")
            assert len(gpu) == FRAMES and gpu.metadata == cpu.metadata
            for key in (slice(None), slice(3, 21, 4), slice(None, None, -7), draws.choices(range(-30, 30), k=9)):
                require_equal(gpu[key], cpu[key])
            for number in draws.sample(range(FRAMES), 6):
                require_equal(gpu[number], cpu[number])
            require_equal(gpu[5:5], cpu[5:5])
    if device is not None:
        assert device.converted > 4 * FRAMES, "the engines decode"


def test_calls_of_other_libraries(device: Any, tmp_path: Path) -> None:
    path = made(tmp_path, "h264")
    content = Path(path).read_bytes()
    with eager.video.open(path) as cpu, on_gpu(content) as gpu:
        for found, expected in (
            (gpu.get_frames_at([7, 2, 7]), cpu.get_frames_at([7, 2, 7])),
            (gpu.get_frames_in_range(3, 20, 5), cpu.get_frames_in_range(3, 20, 5)),
            (gpu.get_frames_played_at([0.5, 0.1]), cpu.get_frames_played_at([0.5, 0.1])),
            (gpu.get_frames_played_in_range(0.1, 0.6), cpu.get_frames_played_in_range(0.1, 0.6)),
            (gpu.get_frames_played_in_range(0.1, 0.6, fps=7), cpu.get_frames_played_in_range(0.1, 0.6, fps=7)),
        ):
            require_equal(found.data, expected.data)
            assert len(found) == len(expected) and found.pts_seconds.tolist() == expected.pts_seconds.tolist()
            require_equal(found[-1].data, expected[-1].data)
            with pytest.raises(IndexError):
                found[len(found)]
        require_equal(gpu.get_frame_at(-3).data, cpu[-3])
        require_equal(gpu.get_batch([1, 1, 29]), cpu[[1, 1, 29]])
        assert gpu.get_key_indices() == cpu.get_key_indices() and gpu.get_avg_fps() == cpu.get_avg_fps()
        gpu.seek_accurate(12)
        require_equal(gpu.next(), cpu[12])
        frames = list(gpu)
        assert len(frames) == FRAMES
        for found, expected in zip(frames, cpu, strict=True):
            require_equal(found, expected)


def test_decoders_go_from_video_to_video(device: Any, tmp_path: Path) -> None:
    paths = []
    for k in range(6):
        (tmp_path / str(k)).mkdir()
        paths.append(str(write_video(tmp_path / str(k) / "a.mp4", "libx264", frames=12, size=SIZE, gop=6)))
    for path in paths:
        with on_gpu(path) as gpu, eager.video.open(path) as cpu:
            require_equal(gpu[::3], cpu[::3])
    kept = [on_gpu(path) for path in paths]
    for _ in range(2):
        for path, gpu in zip(paths, kept, strict=True):
            with eager.video.open(path) as cpu:
                require_equal(gpu[[5, 1]], cpu[[5, 1]])
    del gpu, kept[:]
    gc.collect()
    with on_gpu(paths[0]) as gpu, eager.video.open(paths[0]) as cpu:
        require_equal(gpu[4], cpu[4])
    if device is not None:
        assert device.created <= default_threads(), "decoders of closed videos are used for others"


def test_threads_share_a_video(device: Any, tmp_path: Path) -> None:
    path = made(tmp_path, "h264 in mkv, open groups")
    with eager.video.open(path) as cpu:
        expected = cpu[:]
    with on_gpu(path) as gpu, ThreadPoolExecutor(4) as pool:
        draws = random.Random(9)
        wanted = [draws.choices(range(FRAMES), k=5) for _ in range(24)]
        for numbers, found in zip(wanted, pool.map(lambda n: gpu[n], wanted), strict=True):
            require_equal(found, expected[numbers])


def test_ends_of_a_video(device: Any, tmp_path: Path) -> None:
    path = made(tmp_path, "h264")
    gpu = on_gpu(path)
    first = gpu[3]
    copy = pickle.loads(pickle.dumps(gpu))
    gpu.close()
    gpu.close()
    with pytest.raises(StateError, match="is closed"):
        gpu[0]
    with eager.video.open(path) as cpu, copy:
        require_equal(first, cpu[3])  # frames outlive their video
        require_equal(copy[4], cpu[4])


def test_what_the_engines_leave(fake: FakeEngines, tmp_path: Path) -> None:
    path = str(write_video(tmp_path / "b.mp4", "mpeg4", frames=12, size=SIZE))
    for arguments in ({}, {"dimension_order": "NCHW", "dtype": types.UINT16}):
        with eager.video.open(path, **arguments) as cpu, on_gpu(path, **arguments) as gpu:
            if not arguments:
                with pytest.warns(RuntimeWarning, match="is decoded on the CPU.*the codec 'mpeg4'"):
                    require_equal(gpu[2:9:3], cpu[2:9:3])
            require_equal(gpu[5], cpu[5])
            require_equal(gpu[[]], cpu[[]])
    with eager.video.open(path, reduction=2) as cpu, on_gpu(path, reduction=2) as gpu:
        require_equal(gpu[2:9:3], cpu[2:9:3])
    assert not fake.converted
    fake.status = 9  # concealed
    other = made(tmp_path, "h264")
    failing = pytest.warns(RuntimeWarning, match="as the video engines fail: .*report a damaged picture")
    with eager.video.open(other) as cpu, on_gpu(other) as gpu, failing:
        require_equal(gpu[3:5], cpu[3:5])


def test_damage_is_the_error_of_the_cpu(fake: FakeEngines, tmp_path: Path) -> None:
    path = Path(made(tmp_path, "h264"))
    content = bytearray(path.read_bytes())
    at = content.index(b"mdat") + len(content) // 3
    content[at : at + 300] = bytes(300)
    path.write_bytes(content)
    outcomes: list[list[Any]] = []
    for opened in (eager.video.open, on_gpu):
        outcomes.append([])
        with warnings.catch_warnings(), opened(str(path)) as video:
            warnings.simplefilter("ignore")
            for number in range(FRAMES):
                try:
                    frame = video[number]
                    outcomes[-1].append(in_host_memory(frame).tobytes())
                except DataError as error:
                    outcomes[-1].append(str(error))
    assert outcomes[0] == outcomes[1]
    assert {type(x) for x in outcomes[0]} == {str, bytes}, "some frames are damaged, and others are not"


def test_a_gpu_without_memory(
    fake: FakeEngines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:  # fmt: skip
    path = made(tmp_path, "h264")
    with on_gpu(path) as gpu:
        fake.has_memory = False
        with pytest.warns(RuntimeWarning, match="as the video engines fail: the GPU has no memory left"):
            assert gpu[0].shape == (*SIZE, 3)

        def full(*_: Any, **__: Any) -> Any:
            raise MemoryError("the GPU is full")

        monkeypatch.setattr(video_device.ClipsOnEngines, "upload", full)
        with pytest.raises(ResourceError, match="the GPU is full"):
            gpu[0]


def test_arguments(fake: FakeEngines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = made(tmp_path, "h264")
    for arguments, text in (
        ({"device": "cuda:0"}, "expected cpu or gpu as `device`"),
        ({"device": None}, "expected cpu or gpu as `device`"),
        ({"device": "gpu", "device_id": -1}, "expected the number of a GPU as `device_id`"),
        ({"device": "gpu", "device_id": "0"}, "expected the number of a GPU as `device_id`"),
        ({"device_id": 0}, 'expected `device_id` with `device="gpu"`'),
    ):
        with pytest.raises(ArgumentError, match=text):
            eager.video.open(path, **arguments)
    opened: list[int] = []
    real = Gpu.open

    def counting(number: int, memory_limit: int | None = None) -> Any:
        opened.append(number)
        return real(number, memory_limit)

    monkeypatch.setattr(Gpu, "open", staticmethod(counting))
    for number in (3, 3, 0):
        on_gpu(path, device_id=number).close()
    on_gpu(path).close()
    assert opened == [3, 0], "a GPU is opened once"


def test_without_a_gpu(own_engines: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(number: int, memory_limit: int | None = None) -> Any:
        raise DeviceError(f"GPU {number} cannot be used: there is none")

    monkeypatch.setattr(Gpu, "open", staticmethod(refuse))
    path = made(tmp_path, "h264")
    with pytest.raises(DeviceError, match="GPU 0 cannot be used"):
        on_gpu(path)
