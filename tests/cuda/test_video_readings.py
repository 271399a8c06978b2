# SPDX-License-Identifier: Apache-2.0
"""Frames that the video engines' decoder reads without Python: those of Python's loop, from the same packets."""

from __future__ import annotations

import dataclasses
import threading
import warnings
from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest
from fake_nvcuvid import FakeEngines
from test_video_engines import FORMS, SIZE, clips_of, made, require_equal

from stoker import DataError, StateError, fn, pipeline_def
from stoker.device import video_engines
from stoker.native import _native
from stoker.readers._video import index_of
from stoker.video import engine_decoder
from stoker.video.clip import ClipPixels
from stoker.video.decoder import VideoDecoder
from stoker.video.disposable import DisposableRule
from stoker.video.engine_clips import ClipsOnEngines, in_host_memory
from stoker.video.engine_decoder import EngineDecoder, facts_of
from tests.clips import write_video
from tests.idle_clock import HANG_S


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that gets whether each request was read natively."""
    found: list[bool] = []
    read_by = VideoDecoder.read_by

    def noting(self: VideoDecoder, run: Any) -> bool:
        found.append(read_by(self, run))
        return found[-1]

    monkeypatch.setattr(VideoDecoder, "read_by", noting)
    return found


def position_of(decoder: EngineDecoder) -> tuple[Any, ...]:
    """Return the state that decides what a later read does."""
    video, packets = decoder.video, decoder._packets
    ahead = {p for p in packets.skipped if video._known.get(p, -1) > video._last}
    facts = packets.start, packets.next, video._last, packets.last_key, packets.is_drained, video._end
    return (*facts, ahead) if not packets.is_drained else (packets.is_drained, video._end)


@pytest.mark.parametrize("form", [f for f in FORMS if "ts" not in f.split()])
def test_python_reads_the_same(
    form: str, fake_video_engines: FakeEngines, folder: Path, read: list[bool], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:  # fmt: skip
    path = made(tmp_path, form)
    index = index_of(path)
    cpu = VideoDecoder(path, index)
    facts, engines = facts_of(cpu), video_engines.VideoEngines(emulated_stages.EmulatedGpu(folder))
    cpu.close()
    contents = Path(path).read_bytes()
    kind = index.codec_name, facts.bits
    decoders = [EngineDecoder(engines, source, index, facts, engines.decoder(*kind)) for source in (path, contents)]
    twin = EngineDecoder(engines, path, index, facts, engines.decoder(*kind))
    trials: list[int] = []
    starts = VideoDecoder._starts

    def counting(self: VideoDecoder, sync: int) -> Any:
        trials.append(sync)
        return starts(self, sync)

    monkeypatch.setattr(VideoDecoder, "_starts", counting)
    rng = np.random.default_rng(4)
    for step in range(10):
        clips = [np.sort(rng.integers(0, len(index), rng.integers(1, 6))) for _ in range(rng.integers(1, 4))]
        if step % 3 == 0:
            clips = [np.arange(3 * step % 20, 3 * step % 20 + 6)]
        if step % 4 == 1:
            clips[0] = np.append(clips[0], -1)
        pixels = ClipPixels(order=int(rng.integers(0, 3)), dtype=(np.uint8, np.uint16)[step % 2])
        monkeypatch.setattr(engine_decoder, "READS_NATIVELY", False)
        expected = [in_host_memory(x) for x in twin.decode(pixels, clips)]
        monkeypatch.setattr(engine_decoder, "READS_NATIVELY", True)
        failed = len(trials)
        trials.clear()
        for decoder in decoders:
            require_equal([in_host_memory(x) for x in decoder.decode(pixels, clips)], expected)
            assert position_of(decoder) == position_of(twin), step
            if index.is_contiguous:  # the native loop fails where Python's has to begin again
                assert read[-1] == (failed == 0), step
        trials.clear()
    assert bool(read) == index.is_contiguous and sum(read) >= len(read) * 3 // 4
    for decoder in (*decoders, twin):
        decoder.video.close()
        decoder.native.close()


@pytest.mark.parametrize(("size", "corner"), [((128, 132), (0, 0)), ((130, 133), (2, 6)), ((131, 134), (0, 4))])
def test_sizes_turns_and_layouts(
    size: tuple[int, int], corner: tuple[int, int], fake_video_engines: FakeEngines, folder: Path, tmp_path: Path
) -> None:  # fmt: skip
    """Threads take four pixels in aligned words, launches two pictures; rows may end earlier or begin elsewhere."""
    path = str(write_video(tmp_path / "a.webm", "libvpx-vp9", {"cpu-used": "8"}, frames=6, size=size))
    fake_video_engines.corner = corner
    index = index_of(path)
    cpu = VideoDecoder(path, index)
    facts, engines = facts_of(cpu), video_engines.VideoEngines(emulated_stages.EmulatedGpu(folder))
    cpu.close()
    native, clips = engines.decoder(index.codec_name, facts.bits), [np.arange(3), np.array([1, 2, 4, 5])]
    for turn in range(8):
        turned = dataclasses.replace(index, rotation=turn % 4 * 90)
        pixels = ClipPixels(order=turn % 3, dtype=(np.uint8, np.uint16)[turn // 4])
        cpu = VideoDecoder(path, turned)
        expected = pixels.decode(cpu, clips)
        cpu.close()
        decoder = EngineDecoder(engines, path, turned, facts, native)
        for planar in (False, True):
            found = [in_host_memory(one) for one in decoder.decode(pixels, clips, planar=planar)]
            require_equal([one.transpose(0, 2, 3, 1) if planar else one for one in found], list(expected))
        decoder.video.close()
    native.close()


def test_the_gil_is_not_taken_for_frames(fake_video_engines: FakeEngines, folder: Path, tmp_path: Path) -> None:
    path = made(tmp_path, "h264")
    index = index_of(path)
    cpu = VideoDecoder(path, index)
    facts, engines = facts_of(cpu), video_engines.VideoEngines(emulated_stages.EmulatedGpu(folder))
    cpu.close()
    decoder = EngineDecoder(engines, path, index, facts, engines.decoder(index.codec_name, facts.bits))
    counts = []
    for frames in (2, 2, 28):
        before = _native.gil_acquired()
        decoder.decode(ClipPixels(), [np.arange(frames)])
        counts.append(_native.gil_acquired() - before)
    assert counts[1] == counts[2]
    decoder.video.close()
    decoder.native.close()


def test_a_long_read_returns_to_python(
    fake_video_engines: FakeEngines, read: list[bool], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = made(tmp_path, "h264")
    arguments: dict[str, Any] = {"sequence_length": 7, "random_shuffle": True}
    expected = clips_of([path], "cpu", 2, **arguments)
    monkeypatch.setattr(engine_decoder, "_PACKETS_OF_A_CALL", 1)
    require_equal(clips_of([path], "gpu", 2, **arguments), expected)
    assert read and all(read)


def test_what_fails_is_left_to_python(
    fake_video_engines: FakeEngines, read: list[bool], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = made(tmp_path, "h264")
    content, index = bytearray(Path(path).read_bytes()), index_of(path)
    at, size = int(index.packet_pos[20]), int(index.packet_size[20])
    content[at : at + size] = bytes(size)
    Path(path).write_bytes(content)
    texts = []
    for where in ("cpu", "gpu"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(DataError) as failed:
                clips_of([path], where, 2, sequence_length=8)
        texts.append(str(failed.value))
    assert texts[0] == texts[1] and not all(read)


def test_a_pipeline_is_closed_with_clips_in_flight(fake_video_engines: FakeEngines, tmp_path: Path) -> None:
    paths = [str(write_video(tmp_path / f"{k}.mp4", "libx264", frames=24, size=SIZE, gop=8)) for k in range(3)]

    @pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=5, prefetch_queue_depth=3)
    def pipeline() -> Any:
        return fn.readers.video(filenames=paths, sequence_length=8, random_shuffle=True, device="gpu")

    expected = None
    for _ in range(3):
        with pipeline() as pipe:
            (out,) = pipe.run()  # later batches are in flight
            rows = [np.asarray(x) for x in out.as_cpu()]
        expected = expected or rows
        require_equal(rows, expected)
        with pytest.raises(StateError):
            pipe.run()


def test_threads_decode_at_once(fake_video_engines: FakeEngines, folder: Path, tmp_path: Path) -> None:
    """Readings of several threads, each with a decoder of its own, give the frames of one thread."""
    path = made(tmp_path, "h264")
    engines = ClipsOnEngines(emulated_stages.EmulatedGpu(folder))
    cpu = VideoDecoder(path, index_of(path))
    clips = [np.arange(k, k + 5) for k in (0, 20, 7, 14)]
    expected = ClipPixels().decode(cpu, clips)
    found: dict[int, Any] = {}
    barrier = threading.Barrier(len(clips))

    def work(number: int) -> None:
        own = VideoDecoder(path, index_of(path))
        barrier.wait(HANG_S)
        for _ in range(4):
            found[number] = in_host_memory(engines.decode_once(own, path, clips[number], ClipPixels()))
        own.close()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(clips))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    require_equal([found[k] for k in range(len(clips))], expected)
    cpu.close()
    engines.close()


def test_arguments_are_checked(fake_video_engines: FakeEngines) -> None:
    device = _native.gpu.open_null()
    clip = _native.gpu.ClipMemory(device, _native.gpu.MemoryQuota(1 << 30), 2).clip((2, 4, 6), False, False)
    decoder = _native.gpu.VideoDecoder(device, video_engines.LIBRARY, video_engines.CODECS["h264"], 8)
    function = device.load(b"").function("any")

    def packets(**more: Any) -> Any:
        facts = {
            "pos": np.array([0, 9]), "size": np.array([9, 5]), "flags": np.zeros(2, np.uint8), "order": np.array([1]),
            "sync": np.array([0]), "header": b"", "length_bytes": 4, "disposable": (0, 0, 0),
        }  # fmt: skip
        return _native.gpu.VideoPackets(**{**facts, **more})

    spoilt: tuple[dict[str, Any], ...] = (
        {"pos": np.array([0])}, {"flags": np.zeros(3, np.uint8)}, {"pos": np.array([-1, 0])}, {"order": np.array([2])},
        {"size": np.array([1, -1])}, {"size": np.array([1, 1 << 40])}, {"order": np.array([-1])}, {"length_bytes": 3},
        {"sync": np.array([2])}, {"sync": np.array([-1])}, {"sync": np.array([0, 0])}, {"disposable": (3, 0, 0)},
        {"disposable": (1, 5, 0)}, {"disposable": (2, 4, -1)},
    )  # fmt: skip
    for wrong in spoilt:
        with pytest.raises(ValueError, match="expected"):
            packets(**wrong)

    def reading(**more: Any) -> Any:
        facts = {
            "decoder": decoder, "packets": packets(), "memory": np.zeros(20, np.uint8), "descriptor": -1,
            "position": (0, 0, -1, -1, True, []), "from_start": False, "end": 0, "frames": [np.array([-1, 0])],
            "clips": [clip], "weights": (0,) * 7, "order": 0, "turns": 0, "words": False, "planar": False,
            "function": function, "size": (4, 6),
        }  # fmt: skip
        return _native.gpu.VideoReading(**{**facts, **more})

    assert (reading().position, reading().end) == ((0, 0, -1, -1, True, []), 1)
    assert reading(end=1, frames=[np.array([-1])]).end == reading(end=1, clips=[None]).end == 1  # no frames are read
    refused: tuple[dict[str, Any], ...] = (
        {"memory": None}, {"descriptor": 3}, {"position": (0, 3, -1, -1, True, [])}, {"size": (6, 4)}, {"order": 3},
        {"position": (1, 0, -1, -1, True, [])}, {"position": (0, 0, 1, -1, True, [])}, {"size": (0, 6)}, {"turns": 4},
        {"position": (0, 0, -1, -1, True, [2])}, {"frames": [np.array([1])]}, {"words": True}, {"frames": []},
        {"frames": [np.array([-2])]}, {"planar": True}, {"frames": [np.array([0, 0, 0])]}, {"end": 2}, {"end": -1},
        {"turns": 1},
    )  # fmt: skip
    for one in refused:
        with pytest.raises(ValueError, match="expected"):
            reading(**one)
    decoder.close()


def test_disposable_pictures() -> None:
    rng, found = np.random.default_rng(2), 0
    for _ in range(20_000):
        codec, length, layers = int(rng.integers(0, 3)), int(rng.choice([0, 1, 2, 4])), int(rng.integers(0, 8))
        packet = b""
        for _ in range(rng.integers(0, 4)):
            size = int(rng.integers(0, 6))
            unit = bytes([int(rng.choice([1, 0x21, 0x41, 5, 6, 9, 14, 0, 2, 40])), int(rng.integers(0, 10))])
            unit = (unit + rng.bytes(4))[:size]
            start = len(unit).to_bytes(length, "big") if length else bytes((0, 0, 1))
            packet += start + unit
        packet = packet[: len(packet) - int(rng.integers(0, 2))]
        rule = DisposableRule(codec, length, layers)
        expected = rule(packet)
        found += expected
        assert _native.gpu.is_disposable(rule, packet) == expected, (rule, packet)
    assert 500 < found < 19_500
    assert not DisposableRule()(b"\1\1")
