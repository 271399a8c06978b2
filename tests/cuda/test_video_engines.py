# SPDX-License-Identifier: Apache-2.0
"""Clips that a GPU's video engines decode: the frames of the CPU.

Without a GPU the driver's library is a fake over FFmpeg, and kernels run on emulated threads.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any, Literal

import emulated_stages
import numpy as np
import pytest
from fake_nvcuvid import FakeEngines

from stoker import DataError, StateError, fn, pipeline_def, types
from stoker.device import video_engines
from stoker.native import _native
from stoker.settings import default_threads
from stoker.video import engine_clips
from stoker.video.engine_decoder import headers_of
from tests.clips import write_video

# Encoder, its options, and what the container says. The engines decode no picture of less than 128 columns or rows.
SIZE = (144, 160)
FORMS: dict[str, tuple[str, str, dict[str, str], dict[str, Any]]] = {
    "h264": ("a.mp4", "libx264", {"x264-params": "bframes=3:b-pyramid=2"}, {"gop": 15}),
    "h264 in mkv, open groups": ("a.mkv", "libx264", {"x264-params": "bframes=3:open-gop=1"}, {}),
    "h264 in ts": ("a.ts", "libx264", {}, {}),
    "h264, full range, turned": ("a.mp4", "libx264", {}, {"color": (1, 2), "rotation": 90}),
    "h264, cropped, interlaced": ("a.mp4", "libx264", {"x264-params": "interlaced=1"}, {"size": (140, 150)}),
    "hevc": ("a.mkv", "libx265", {"x265-params": "bframes=3:log-level=none"}, {}),
    "hevc, ten bits": (
        "a.mp4", "libx265", {"x265-params": "log-level=none"}, {"pixels": "yuv420p10le", "color": (9, 1)}
    ),
    "vp9": ("a.webm", "libvpx-vp9", {"cpu-used": "8", "lag-in-frames": "8"}, {}),
    "vp8": ("a.webm", "libvpx", {"cpu-used": "8"}, {}),
}  # fmt: skip
FRAMES = 30


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)])
def device(request: pytest.FixtureRequest) -> Any:
    """Return the fake engines, or None for the real ones."""
    return request.getfixturevalue("fake_video_engines") if request.param == "null" else None


@pytest.fixture(autouse=True)
def _patient_close(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `close` wait longer: the fake engines decode on the processor, the clips of prefetched batches too."""
    monkeypatch.setattr("stoker.executor.run._CLOSE_S", 60.0)


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of clips of each request that the engines have decoded."""
    counts: list[int] = []
    decode = engine_clips.ClipsOnEngines.decode

    def counting(self: Any, file: Any, clips: Any, pixels: Any) -> Any:
        found = decode(self, file, clips, pixels)
        counts.append(len(found) - len(clips) or len(clips))
        return found

    monkeypatch.setattr(engine_clips.ClipsOnEngines, "decode", counting)
    return counts


def made(folder: Path, form: str) -> str:
    name, codec, options, more = FORMS[form]
    return str(write_video(folder / name, codec, options, frames=FRAMES, **{"size": SIZE, **more}))


def clips_of(paths: list[str], device: str, batches: int, *, mirrors: bool = False, **arguments: Any) -> list[Any]:
    """Return rows of a reader, or of its frames mirrored on its device."""

    @pipeline_def(batch_size=3, num_threads=2, device_id=0, seed=5)
    def pipeline() -> Any:
        video = fn.readers.video(filenames=paths, device=device, **arguments)
        return fn.flip(video) if mirrors else video

    rows: list[Any] = []
    with pipeline() as pipe:
        for _ in range(batches):
            (out,) = pipe.run()
            rows += [np.asarray(x) for x in (out.as_cpu() if device == "gpu" else out)]
    return rows


def require_equal(found: list[Any], expected: list[Any]) -> None:
    assert len(found) == len(expected)
    for i, (x, y) in enumerate(zip(found, expected, strict=True)):
        assert x.dtype == y.dtype and np.array_equal(x, y), i


@pytest.mark.parametrize("form", FORMS)
def test_frames_of_the_cpu(form: str, device: Any, decoded: list[int], tmp_path: Path) -> None:
    path = made(tmp_path, form)
    for arguments in (
        {"sequence_length": 7, "stride": 2, "step": 5, "random_shuffle": True},
        {"sequence_length": 8, "pad_mode": "edge", "dtype": types.UINT16},
        {"sequence_length": 20, "pad_sequences": True, "image_type": types.YCbCr, "step": 13},
    ):
        expected = clips_of([path], "cpu", 2, **arguments)
        decoded.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            require_equal(clips_of([path], "gpu", 2, **arguments), expected)
        assert decoded and min(decoded) > 0, "the engines decode every clip"


def test_decoders_go_from_file_to_file(device: Any, decoded: list[int], tmp_path: Path) -> None:
    paths = []
    for k in range(6):
        folder = tmp_path / str(k)
        folder.mkdir()
        size = (144, 160) if k % 2 else (176, 192)
        paths.append(str(write_video(folder / "a.mp4", "libx264", frames=12, size=size, gop=6)))
    arguments: dict[str, Any] = {"sequence_length": 4, "random_shuffle": True, "mirrors": True}
    expected = clips_of(paths, "cpu", 8, **arguments)
    require_equal(clips_of(paths, "gpu", 8, **arguments), expected)
    assert min(decoded) > 0
    if device is not None:
        assert device.created <= 2 * default_threads(), "decoders stay for the files of the other size"


def test_contents_of_files(device: Any, tmp_path: Path) -> None:
    contents = []
    for number, form in enumerate(("h264", "hevc, ten bits", "vp9", "h264 in mkv, open groups", "h264")):
        folder = tmp_path / str(number)
        folder.mkdir()
        contents.append(np.fromfile(made(folder, form), np.uint8))

    def rows(where: Literal["cpu", "mixed"]) -> list[Any]:
        @pipeline_def(batch_size=5, num_threads=2, device_id=0)
        def pipeline() -> Any:
            data = fn.external_source(source=lambda: contents, batch=True)
            return fn.decoders.video(data, device=where, start_frame=3, sequence_length=30, stride=2, pad_mode="edge")

        with pipeline() as pipe:
            out = [pipe.run()[0] for _ in range(2)][1]
            return [np.asarray(x) for x in (out.as_cpu() if where == "mixed" else out)]

    expected = rows("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_equal(rows("mixed"), expected)
    if device is not None:
        assert device.converted >= 2 * 5 * 14, "the engines decode every frame"


def fed(contents: list[Any], where: str, *, reads: str = "flip", **arguments: Any) -> list[Any]:
    """Return the sequences of videos that are fed one after the other, or the texts of failed batches."""

    @pipeline_def(batch_size=3, num_threads=2, device_id=0, prefetch_queue_depth=2, seed=5)
    def pipeline() -> Any:
        video = fn.experimental.inputs.video(name="video", device=where, **{"sequence_length": 4, **arguments})
        if reads == "flip":
            return fn.flip(video)
        if reads == "none":
            return video
        number = fn.random.uniform(range=(0.0, 1.0))
        return video, fn.python_function(number, function=lambda x: x + 1)  # its type is unknown

    found: list[Any] = []
    with pipeline() as pipe:
        for content in contents:
            pipe.feed_input("video", [content])
        while True:
            try:
                outputs = pipe.run()
            except StateError:  # nothing is left
                return found
            except DataError as error:
                found.append(str(error))
                continue
            for out in outputs:
                found += [np.asarray(x) for x in (out.as_cpu() if out.device == "gpu" else out)]


@pytest.mark.parametrize("where", ["gpu", "mixed"])
@pytest.mark.parametrize("arguments", [{}, {"last_sequence_policy": "pad", "image_type": types.BGR}])
def test_fed_videos(where: str, arguments: dict[str, Any], device: Any, tmp_path: Path) -> None:
    contents = []
    for number, form in enumerate(("h264", "hevc, ten bits", "h264, full range, turned", "h264 in ts", "vp9", "h264")):
        folder = tmp_path / str(number)
        folder.mkdir()
        contents.append(np.fromfile(made(folder, form), np.uint8))
    expected = fed(contents, "cpu", **arguments)
    assert len(expected) == 6 * 8 and len(expected[7]) == (4 if arguments else 2)
    for reads in ("flip", "none"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = fed(contents, where, reads=reads, **arguments)
        require_equal(found, expected if reads == "flip" else [x[:, :, ::-1] for x in expected])
    if device is not None:
        assert device.converted == 2 * 6 * FRAMES, "the engines decode every frame once"
        assert device.created <= 2 * 3, "a decoder goes from video to video of its kind"


def test_fed_videos_beside_a_function(device: Any, tmp_path: Path) -> None:
    contents = [np.fromfile(made(tmp_path, "h264"), np.uint8)]
    expected = fed(contents, "cpu", reads="function")
    require_equal(fed(contents, "gpu", reads="function"), expected)
    assert device is None or device.converted == FRAMES - 3 * 4, "after the batch that shows the function's types"


def test_fed_videos_that_the_engines_leave(fake_video_engines: FakeEngines, tmp_path: Path) -> None:
    data = [np.fromfile(made(tmp_path, "h264"), np.uint8)]
    expected = fed(data, "cpu")
    fake_video_engines.status = 9  # concealed
    with pytest.warns(RuntimeWarning, match="as the video engines fail: .*report a damaged picture"):
        require_equal(fed(data, "gpu"), expected)
    fake_video_engines.status, fake_video_engines.is_supported = 2, False
    with pytest.warns(RuntimeWarning, match="is decoded on the CPU"):
        require_equal(fed(data, "gpu"), expected)
    fake_video_engines.is_supported = True
    path = write_video(tmp_path / "b.mp4", "mpeg4", frames=12, size=SIZE)
    other, before = [np.fromfile(path, np.uint8)], fake_video_engines.converted
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_equal(fed(other, "gpu", reduction=2), fed(other, "cpu", reduction=2))
    assert fake_video_engines.converted == before, "the CPU decodes at a reduced size"


def test_fed_videos_with_damage_fail_as_on_the_cpu(fake_video_engines: FakeEngines, tmp_path: Path) -> None:
    content = np.fromfile(made(tmp_path, "h264"), np.uint8)
    spoilt = content.copy()
    at = content.tobytes().index(b"mdat") + len(content) // 3
    spoilt[at : at + 300] = 0
    expected = fed([spoilt, content], "cpu")
    assert any(isinstance(x, str) for x in expected) and not isinstance(expected[-1], str)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fed([spoilt, content], "gpu")
    assert len(found) == len(expected)
    for x, y in zip(found, expected, strict=True):
        assert x == y if isinstance(y, str) else np.array_equal(x, y)


def test_damage_that_the_engines_report(fake_video_engines: FakeEngines, tmp_path: Path) -> None:
    path = made(tmp_path, "h264")
    expected = clips_of([path], "cpu", 2, sequence_length=8)
    fake_video_engines.status = 9  # concealed
    with pytest.warns(RuntimeWarning, match="as the video engines fail: .*report a damaged picture"):
        require_equal(clips_of([path], "gpu", 2, sequence_length=8), expected)


def test_a_gpu_without_memory(fake_video_engines: FakeEngines, tmp_path: Path) -> None:
    path = made(tmp_path, "h264")
    expected = clips_of([path], "cpu", 2, sequence_length=8)
    fake_video_engines.has_memory = False
    with pytest.warns(RuntimeWarning, match="as the video engines fail: the GPU has no memory left"):
        require_equal(clips_of([path], "gpu", 2, sequence_length=8), expected)


def test_what_the_engines_do_not_decode(fake_video_engines: FakeEngines, tmp_path: Path) -> None:
    path = made(tmp_path, "h264")
    expected = clips_of([path], "cpu", 2, sequence_length=8)
    fake_video_engines.is_supported = False
    with pytest.warns(RuntimeWarning, match="is decoded on the CPU.*this GPU's video engines do not decode this codec"):
        require_equal(clips_of([path], "gpu", 2, sequence_length=8), expected)
    fake_video_engines.is_supported = True
    for name, codec, pixels, reason in (
        ("b.mp4", "mpeg4", "yuv420p", "the codec 'mpeg4'"), ("c.mp4", "libx264", "yuv444p", "'yuv444p'"),
    ):  # fmt: skip
        other = str(write_video(tmp_path / name, codec, frames=12, pixels=pixels, size=SIZE))
        expected = clips_of([other], "cpu", 1, sequence_length=4)
        with pytest.warns(RuntimeWarning, match=reason):
            require_equal(clips_of([other], "gpu", 1, sequence_length=4), expected)
    assert not fake_video_engines.converted


def test_without_the_library(emulated_gpu: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(video_engines, "LIBRARY", "libabsent.so.1")
    path = made(tmp_path, "h264")
    expected = clips_of([path], "cpu", 2, sequence_length=8)
    with pytest.warns(RuntimeWarning, match="the video decoder's library cannot be opened: libabsent.so.1"):
        require_equal(clips_of([path], "gpu", 2, sequence_length=8), expected)


def test_damaged_files_fail_as_on_the_cpu(fake_video_engines: FakeEngines, tmp_path: Path) -> None:
    path = made(tmp_path, "h264")
    content = bytearray(Path(path).read_bytes())
    at = content.index(b"mdat") + 1500
    content[at : at + 300] = bytes(300)
    Path(path).write_bytes(content)
    texts = []
    for where in ("cpu", "gpu"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(DataError) as failed:
                clips_of([path], where, 2, sequence_length=8)
        texts.append(str(failed.value))
    assert texts[0] == texts[1]


def test_units_of_a_packet(fake_video_engines: FakeEngines) -> None:
    contents: list[bytes] = []
    fake_video_engines.contents = contents
    decoder = _native.gpu.VideoDecoder(_native.gpu.open_null(), video_engines.LIBRARY, video_engines.CODECS["h264"], 8)
    with pytest.raises(RuntimeError, match="a beginning before a packet"):
        decoder.feed(b"x", 0, 0)
    start = b"\0\0\0\1"
    rng = np.random.default_rng(3)
    for size in (1, 2, 4):
        units = [bytes(rng.integers(0, 256, n, np.uint8)) for n in (3, 0, 200)]
        packet = b"".join(len(u).to_bytes(size, "big") + u for u in units)
        decoder.restart(b"header")
        assert decoder.feed(packet, 0, size) == []
        assert contents.pop() == b"header" + b"".join(start + u for u in units), "the header comes once"
        ends = {0, size + 3, 2 * size + 3, len(packet)}
        for end in range(len(packet) + 1):
            if end in ends:
                decoder.feed(packet[:end], 0, size)
                continue
            with pytest.raises(RuntimeError, match=r"ends within the length of a unit|is longer than its packet"):
                decoder.feed(packet[:end], 0, size)
    with pytest.raises(RuntimeError, match="is longer than its packet"):
        decoder.feed(b"\xff\xff\xff\xff\0", 0, 4)
    for refused in (3, 5, -1):
        with pytest.raises(ValueError, match="1, 2 or 4 bytes"):
            decoder.feed(b"", 0, refused)
    contents.clear()
    assert decoder.feed(packet, 0, 0) == [] and contents == [packet]


def units_of(packet: bytes, size: int) -> bytes | None:
    """Return a packet with start codes in the place of lengths, in plain Python; None: a length is wrong."""
    out, at = b"", 0
    while at < len(packet):
        begin = at + size
        if begin > len(packet):
            return None
        at = begin + int.from_bytes(packet[at:begin], "big")
        if at > len(packet):
            return None
        out += b"\0\0\0\1" + packet[begin:at]
    return out


def test_spoilt_lengths_of_units(fake_video_engines: FakeEngines) -> None:
    contents: list[bytes] = []
    fake_video_engines.contents = contents
    decoder = _native.gpu.VideoDecoder(_native.gpu.open_null(), video_engines.LIBRARY, video_engines.CODECS["hevc"], 8)
    rng, refused = np.random.default_rng(9), 0
    decoder.restart(b"")
    for _ in range(4000):
        size = int(rng.choice([1, 2, 4]))
        units = [rng.bytes(n) for n in rng.integers(0, 60, rng.integers(0, 6))]
        packet = bytearray(b"".join(len(u).to_bytes(size, "big") + u for u in units))
        for at in rng.integers(0, max(len(packet), 1), rng.integers(0, 3)):
            packet[at : at + 1] = rng.bytes(int(rng.integers(0, 3)))
        expected = units_of(bytes(packet), size)
        contents.clear()
        if expected is None:
            refused += 1
            with pytest.raises(RuntimeError, match=r"ends within the length of a unit|is longer than its packet"):
                decoder.feed(bytes(packet), 0, size)
            assert not contents
        else:
            decoder.feed(bytes(packet), 0, size)
            assert contents == [expected]
    assert 400 < refused < 3600
    decoder.close()


def test_pictures_and_clips_are_checked(fake_video_engines: FakeEngines) -> None:
    device, codecs = _native.gpu.open_null(), video_engines.CODECS
    quota = _native.gpu.MemoryQuota(1 << 30)
    memory = _native.gpu.ClipMemory(device, quota, 2)
    clip = memory.clip((2, 4, 6), False, False)
    assert memory.clip((2, 4, 6), True, True).shape == (2, 3, 4, 6)
    assert clip.shape == (2, 4, 6, 3) and quota.taken >= 2 * 4 * 6 * 3
    for extents in ((0, 4, 6), (2, -1, 6), (2, 4, 1 << 21)):
        with pytest.raises(ValueError, match="at least a frame"):
            memory.clip(extents, False, False)
    with pytest.raises(MemoryError):
        memory.clip((1 << 20, 1 << 20, 1 << 20), True, False)
    pixels = np.arange(4 * 6 * 3, dtype=np.uint8)
    _native.gpu.write_frame(clip, 1, pixels)
    assert np.frombuffer(clip.to_host(), np.uint8)[72:].tolist() == pixels.tolist()
    for frame, content in ((2, pixels), (-1, pixels), (0, pixels[1:])):
        with pytest.raises(ValueError, match="expected"):
            _native.gpu.write_frame(clip, frame, content)
    for codec, bits in ((0, 8), (7, 8), (12, 8), (4, 9), (4, 16)):
        with pytest.raises(ValueError, match="expected"):
            _native.gpu.VideoDecoder(device, video_engines.LIBRARY, codec, bits)
    decoder = _native.gpu.VideoDecoder(device, video_engines.LIBRARY, codecs["vp9"], 8)
    function = device.load(b"").function("any")
    with pytest.raises(ValueError, match="a picture that has come out"):
        decoder.convert(0, (0,) * 7, 0, 0, False, function, clip, 0)
    decoder.close()
    decoder.close()


def test_memory_of_clips_stays_for_the_next_ones(emulated_gpu: None) -> None:
    """A GPU's memory is freed when all of its streams have done their work, so that batches must not free any."""
    quota = _native.gpu.MemoryQuota(1 << 30)
    memory = _native.gpu.ClipMemory(_native.gpu.open_null(), quota, 2)
    extents = (2, 40, 60)
    clips = [memory.clip(extents, False, False) for _ in range(200)]
    allocations, taken = _native.allocations(), quota.taken
    assert taken >= 200 * 2 * 40 * 60 * 3
    for held in (200, 130, 200, 64, 200):  # some batches are released together
        clips.clear()
        clips = [memory.clip(extents, False, False) for _ in range(held)]
        assert (_native.allocations(), quota.taken) == (allocations, taken)
    clips.clear()
    for _ in range(14_000):  # consumers hold fewer clips
        clips = [*clips[-3:], memory.clip(extents, False, False)]
    assert quota.taken * 20 < taken
    assert _native.allocations() == allocations


def test_headers_that_are_cut_off() -> None:
    avc = bytes((1, 100, 0, 31, 0xFF, 0xE1, 0, 4, 0x67, 1, 2, 3, 1, 0, 2, 0x68, 5))
    assert headers_of("h264", avc) == (b"\0\0\0\1\x67\1\2\3\0\0\0\1\x68\5", 4)
    for size in range(1, len(avc)):
        with pytest.raises(DataError, match="cut off"):
            headers_of("h264", avc[:size])
    hevc = bytes((1, *[0] * 20, 0xFD, 1, 32, 0, 1, 0, 3, 0x40, 1, 2))
    assert headers_of("hevc", hevc) == (b"\0\0\0\1\x40\1\2", 2)
    for size in range(23, len(hevc)):
        with pytest.raises(DataError, match="cut off"):
            headers_of("hevc", hevc[:size])
    assert headers_of("h264", b"\0\0\0\1\x67") == (b"\0\0\0\1\x67", 0) and headers_of("vp9", b"abc") == (b"", 0)
    assert headers_of("av1", b"\x81\0\0\0config") == (b"config", 0)
