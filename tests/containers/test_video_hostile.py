# SPDX-License-Identifier: Apache-2.0
"""Hostile videos: files that vanish or change between build and run, streams without frames, cut files."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import FRAMES, make_clip, number_in
from idle_clock import at_most

from stoker import eager, fn, pipeline_def
from stoker.contract.errors import DataError, StokerError
from stoker.video.indexing import index_video

av = pytest.importorskip("av", reason="PyAV is not installed")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))


def built(paths: list[str], **arguments: Any) -> Any:
    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1)
    def pipe() -> Any:
        return fn.readers.video(filenames=paths, sequence_length=FRAMES, **arguments)

    made = pipe()
    made.build()
    return made


@pytest.mark.parametrize("random_crop", [False, True])
def test_a_file_that_vanishes_fails_its_rows_alone(tmp_path: Path, random_crop: bool) -> None:
    gone, stays = make_clip(tmp_path, "h264"), make_clip(tmp_path, "vp9")
    with built([str(gone), str(stays)], random_crop=random_crop) as pipe:
        os.unlink(gone)
        with pytest.raises(StokerError, match=r"No such file.*h264.a\.mp4|h264.a\.mp4.*No such file"):
            pipe.run()
        assert number_in(np.asarray(pipe.run()[0][0])[5]) == 5


def test_a_file_that_is_cut_after_the_build_fails_its_row(tmp_path: Path) -> None:
    path = make_clip(tmp_path, "h264_mkv")
    with built([str(path)]) as pipe:
        os.truncate(path, path.stat().st_size // 2)
        with pytest.raises(StokerError, match="changed after it was"):
            pipe.run()


def test_a_file_that_becomes_another_video_fails_its_row(tmp_path: Path) -> None:
    path = make_clip(tmp_path, "h264")
    with built([str(path)]) as pipe:
        path.write_bytes(make_clip(tmp_path, "hevc").read_bytes())
        with pytest.raises(StokerError, match="changed after it was"):
            pipe.run()


def test_a_stream_without_frames(tmp_path: Path) -> None:
    path = tmp_path / "none.mkv"
    with av.open(str(path), "w") as file:
        stream = file.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 160, 96, "yuv420p"
        stream.codec_context.open()
        file.start_encoding()
    with pytest.raises(DataError, match=r"expected frames in|cannot read"):
        eager.decoders.video(np.fromfile(path, np.uint8))


@pytest.mark.parametrize("kind", ["h264", "h264_ts", "hevc_open", "vp9", "mpeg4_avi", "mjpeg", "gif"])
def test_every_cut_gives_right_frames_or_an_error(tmp_path: Path, kind: str) -> None:
    data = np.fromfile(make_clip(tmp_path, kind), np.uint8)
    whole = eager.decoders.video(data)
    errors = 0
    for cut in np.linspace(0, len(data) - 1, 24).astype(int):
        try:
            clip = eager.decoders.video(data[:cut])
        except DataError:
            errors += 1
        else:
            index = index_video(data[:cut].data)
            kept = np.arange(len(clip)) != np.argmax(index.order)  # the last picture in the file may be cut unnoticed
            assert len(clip) <= len(whole)
            for frame in clip[kept]:  # pictures before the last ones may be missing, because they are stored later
                assert any(np.array_equal(frame, one) for one in whole)
    assert errors


@pytest.mark.parametrize("kind", ["gif", "mpeg4_avi", "h264_mkv", "h264_ts"])
def test_a_cut_that_the_container_shows_is_an_error(tmp_path: Path, kind: str) -> None:
    """The end of the container is checked, since decoders of some formats show half of a picture without an error."""
    data = np.fromfile(make_clip(tmp_path, kind), np.uint8)
    whole = eager.decoders.video(data)
    for cut in (len(data) - 2, len(data) * 3 // 4 | 1, len(data) // 2 | 1):
        part = data[:cut]
        with pytest.raises(DataError, match="the file is cut off"):
            eager.decoders.video(part)
        (tmp_path / "part").write_bytes(part.tobytes())
        index = index_video(str(tmp_path / "part"))
        assert "cut off" in index.damage and len(index) <= len(whole)
        np.testing.assert_array_equal(eager.decoders.video(part, frames=[0, 3]), whole[[0, 3]])


PLAYLISTS = {
    "concat": b"ffconcat version 1.0\nfile other.mp4\n",
    "host": b"ffconcat version 1.0\noption safe 0\nfile http://127.0.0.1:9/other.mp4\n",
    "sdp": b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\n"
    b"m=video 55004 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n",
    "hls": b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:1,\nother.mp4\n#EXT-X-ENDLIST\n",
}


@pytest.mark.parametrize("suffix", ["mp4", "m3u8", "sdp"])
@pytest.mark.parametrize("kind", PLAYLISTS)
def test_a_playlist_opens_nothing(kind: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(make_clip(tmp_path, "h264"), tmp_path / "other.mp4")
    monkeypatch.chdir(tmp_path)
    Path(f"list.{suffix}").write_bytes(PLAYLISTS[kind])
    with at_most(10):  # FFmpeg alone waits 20 s for packets of the network
        with pytest.raises(DataError, match=r"playlist|cannot read"):
            eager.decoders.video(np.frombuffer(PLAYLISTS[kind], np.uint8))
        with pytest.raises(StokerError, match=r"playlist|cannot read"), built([f"list.{suffix}"]) as pipe:
            pipe.run()


def test_ffmpeg_alone_reads_the_file_that_a_playlist_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted error: without the list of demuxers, another file is read."""
    shutil.copy(make_clip(tmp_path, "h264"), tmp_path / "other.mp4")
    monkeypatch.chdir(tmp_path)
    with av.open(io.BytesIO(PLAYLISTS["concat"])) as file:
        assert file.format.name == "concat" and next(file.decode(video=0)) is not None
