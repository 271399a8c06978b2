# SPDX-License-Identifier: Apache-2.0
"""Decoding at a reduced size: frames are those of FFmpeg's full decode with `lowres`, where the codec has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import KINDS, make_clip, plain_pixels, write_video

from stoker import eager, fn, pipeline_def
from stoker.contract.errors import ArgumentError, DataError

av = pytest.importorskip("av", reason="PyAV is not installed")
CLIPS = ("mpeg4", "mpeg4_avi", "mpeg2", "mjpeg")
OTHERS = {"mpeg1video": "a.mpg", "flv": "a.flv", "wmv1": "a.asf", "wmv2": "a.asf", "msmpeg4v2": "a.avi",
          "msmpeg4": "a.avi", "h263": "a.3gp"}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clips")


def reduced(path: Path, reduction: int) -> list[Any]:
    """Return all frames of FFmpeg's full decode, converted by the plain twin."""
    with av.open(str(path)) as file:
        stream = file.streams.video[0]
        stream.codec_context.options = {"lowres": str(reduction.bit_length() - 1)}
        return [plain_pixels(frame) for frame in file.decode(stream)]


@pytest.mark.parametrize("reduction", [2, 4, 8])
@pytest.mark.parametrize("kind", CLIPS)
def test_frames_are_those_of_the_full_decode(folder: Path, kind: str, reduction: int) -> None:
    path = folder / kind / KINDS[kind][0]
    if not path.exists():
        make_clip(folder, kind)
    expected = reduced(path, reduction)
    size = (96 // reduction, 160 // reduction, 3)
    assert expected[0].shape == size
    for source in (path, path.read_bytes()):
        with eager.video.open(source, reduction=reduction) as video:
            assert (video.metadata.height, video.metadata.width) == size[:2] and len(video) == len(expected)
            for number in (40, 3, 17, 47, 0):
                np.testing.assert_array_equal(video[number], expected[number])
            np.testing.assert_array_equal(video[:], np.stack(expected))
    clip = eager.decoders.video(np.fromfile(path, np.uint8), frames=[30, 0], reduction=reduction)
    np.testing.assert_array_equal(clip, np.stack([expected[30], expected[0]]))


def test_videos_that_are_fed(folder: Path, tmp_path: Path) -> None:
    path = folder / "mpeg4" / KINDS["mpeg4"][0]
    if not path.exists():
        make_clip(folder, "mpeg4")
    other = write_video(tmp_path / "a.mp4", "libx264", frames=2)

    @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
    def fed() -> Any:
        return fn.experimental.inputs.video(name="video", sequence_length=12, reduction=4)

    with fed() as pipe:
        for source in (other, path):
            pipe.feed_input("video", [np.fromfile(source, np.uint8)])
        with pytest.raises(DataError, match=r"expected a codec that decodes at a reduced size.*got h264"):
            pipe.run()
        got = [np.asarray(x) for _ in range(2) for x in pipe.run()[0]]
    np.testing.assert_array_equal(np.concatenate(got), np.stack(reduced(path, 4)))
    with pytest.raises(ArgumentError, match="1, 2, 4 or 8 as `reduction`, got 3"):
        pipeline_def(batch_size=1)(lambda: fn.experimental.inputs.video(sequence_length=1, reduction=3))()


def test_readers(folder: Path, tmp_path: Path) -> None:
    """Clips of readers, also resized, and frames that are turned."""
    path = folder / "mpeg4" / KINDS["mpeg4"][0]
    if not path.exists():
        make_clip(folder, "mpeg4")
    turned = write_video(tmp_path / "r.mp4", "mpeg4", {"b": "2M"}, rotation=90)

    @pipeline_def(batch_size=2, num_threads=2, seed=3)
    def clips() -> Any:
        common: dict[str, Any] = {"sequence_length": 4, "reduction": 2}
        files = [str(path), str(turned)]
        first = fn.readers.video(filenames=files, step=60, enable_frame_num="scalar", **common)
        second = fn.experimental.readers.video(filenames=files, step=60, **common)
        return (*first, second, fn.readers.video_resize(filenames=files, step=60, size=(20, 30), **common))

    with clips() as pipe:
        video, number, newer, small = pipe.run()
        assert [int(np.asarray(n)[0]) for n in number] == [0, 0]
        expected = [np.stack(reduced(path, 2)[:4]), np.rot90(np.stack(reduced(turned, 2)[:4]), 1, (1, 2))]
        for got, other, resized, want in zip(video, newer, small, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(got), want)
            np.testing.assert_array_equal(np.asarray(other), want)
            np.testing.assert_array_equal(np.asarray(resized), eager.resize(np.ascontiguousarray(want), size=(20, 30)))


@pytest.mark.parametrize("encoder", OTHERS)
def test_other_codecs(tmp_path: Path, encoder: str) -> None:
    """Every codec that is accepted is decoded at the reduced size."""
    size = (144, 176)
    path = write_video(tmp_path / OTHERS[encoder], encoder, {"b": "1M"}, frames=6, size=size)
    with eager.video.open(path, reduction=4) as video:
        np.testing.assert_array_equal(video[:], np.stack(reduced(path, 4)))
        assert video[0].shape == (36, 44, 3)


@pytest.mark.parametrize("kind", ["h264", "hevc", "vp9"])
def test_other_codecs_are_refused(folder: Path, kind: str) -> None:
    path = make_clip(folder, kind)
    with pytest.raises(DataError, match=f"got {kind}. Leave out `reduction`, and resize the frames"):
        eager.video.open(path, reduction=2)
    with pytest.raises(DataError, match=f"got {kind}. Leave out `reduction`"):
        eager.decoders.video(np.fromfile(path, np.uint8), reduction=2)

    @pipeline_def(batch_size=1)
    def clips() -> Any:
        return fn.readers.video(filenames=[str(path)], sequence_length=2, reduction=2)

    with clips() as pipe, pytest.raises(DataError, match=f"got {kind}. Leave out `reduction`"):
        pipe.run()


@pytest.mark.parametrize("reduction", [0, 3, 16, -2])
def test_arguments_are_checked(folder: Path, reduction: int) -> None:
    text = f"1, 2, 4 or 8 as `reduction`, got {reduction}"
    with pytest.raises(ArgumentError, match=text):
        eager.video.open(b"no video", reduction=reduction)
    with pytest.raises(ArgumentError, match=text):
        eager.decoders.video(np.zeros(9, np.uint8), reduction=reduction)
    with pytest.raises(ArgumentError, match=text):

        @pipeline_def(batch_size=1)
        def clips() -> Any:
            return fn.readers.video(filenames=["none.mp4"], sequence_length=2, reduction=reduction)

        clips().build()
