# SPDX-License-Identifier: Apache-2.0
"""Videos with more than eight bits, also in the colors of HDR: every frame as bytes and with all bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import write_video

from stoker import eager, fn, pipeline_def, types
from stoker.video.colors import MATRICES, convert_plain

av = pytest.importorskip("av", reason="PyAV is not installed")
_BT2020, _LIMITED, _FULL = 9, 1, 2
FRAMES = 14
_X265 = {"preset": "ultrafast", "x265-params": "pools=1:frame-threads=1:log-level=none:keyint=6"}
# Encoder, container, pixel format, and the matrix and range that the stream states.
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "h264_10bit": (
        "a.mp4", "libx264", {"options": {"preset": "veryfast", "threads": "1"}, "pixels": "yuv420p10le"},
    ),
    "hevc_hdr": (
        "a.mp4", "libx265",
        {"options": {**_X265, "x265-params": f"{_X265['x265-params']}:colorprim=bt2020:transfer=smpte2084"},
         "pixels": "yuv420p10le", "color": (_BT2020, _LIMITED)},
    ),
    "hevc_hlg_full": (
        "a.mkv", "libx265",
        {"options": {**_X265, "x265-params": f"{_X265['x265-params']}:colorprim=bt2020:transfer=arib-std-b67"},
         "pixels": "yuv422p10le", "color": (_BT2020, _FULL)},
    ),
    "hevc_12bit": ("a.mp4", "libx265", {"options": _X265, "pixels": "yuv420p12le"}),
    "prores": ("a.mov", "prores_ks", {"pixels": "yuv422p10le"}),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))


def converted(path: Path, dtype: Any) -> list[Any]:
    """Return all frames that FFmpeg decodes, converted by the plain twin with the stream's matrix and range."""
    found = []
    with av.open(str(path)) as file:
        for frame in file.decode(video=0):
            name = frame.format.name
            bits = int(name[-4:-2])
            shifts = {"420": (1, 1), "422": (1, 0)}[name[3:6]]
            planes = [np.frombuffer(p, np.uint16).reshape(p.height, -1)[:, : p.width] for p in frame.planes]
            full = int(frame.color_range) == _FULL
            found.append(convert_plain(planes, shifts, bits, MATRICES[int(frame.colorspace)], full, 0, dtype))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_every_frame(tmp_path: Path, kind: str) -> None:
    name, codec, more = KINDS[kind]
    path = write_video(tmp_path / name, codec, frames=FRAMES, **more)
    deep, plain = converted(path, np.uint16), converted(path, np.uint8)
    assert len(deep) == FRAMES and (deep[0] % 257).any()  # more than eight bits
    with eager.video.open(path, dtype=types.UINT16) as video, eager.video.open(path) as small:
        for number in np.random.default_rng(2).permutation(FRAMES):
            np.testing.assert_array_equal(video[int(number)], deep[number])
            np.testing.assert_array_equal(small[int(number)], plain[number])
    data = np.fromfile(path, np.uint8)
    np.testing.assert_array_equal(eager.decoders.video(data, dtype=types.UINT16), np.stack(deep))
    np.testing.assert_array_equal(eager.decoders.video(data), np.stack(plain))

    @pipeline_def(batch_size=1, num_threads=2, seed=4)
    def clips() -> Any:
        arguments: dict[str, Any] = {"filenames": [str(path)], "sequence_length": 4, "random_shuffle": True}
        words, number = fn.readers.video(**arguments, dtype=types.UINT16, enable_frame_num="scalar", seed=1)
        values = fn.readers.video(**arguments, dtype=types.FLOAT, normalized=True, seed=1)
        return words, number, values

    with clips() as pipe:
        for _ in range(FRAMES // 4):
            words, number, values = (np.asarray(output[0]) for output in pipe.run())
            first = int(number[0])
            np.testing.assert_array_equal(words, np.stack(deep[first : first + 4]))
            np.testing.assert_array_equal(values, np.stack(plain[first : first + 4]) * np.float32(1 / 255))


def test_hdr_streams_state_their_colors(tmp_path: Path) -> None:
    """The made videos are those of HDR: otherwise the matrix of BT.2020 would not be tested."""
    for kind, transfer, wide in (("hevc_hdr", 16, _LIMITED), ("hevc_hlg_full", 18, _FULL)):
        name, codec, more = KINDS[kind]
        path = write_video(tmp_path / name, codec, frames=2, **more)
        with av.open(str(path)) as file:
            frame = next(file.decode(video=0))
            assert (int(frame.colorspace), int(frame.color_range)) == (_BT2020, wide)
            assert int(file.streams.video[0].codec_context.color_trc) == transfer
