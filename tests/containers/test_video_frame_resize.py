# SPDX-License-Identifier: Apache-2.0
"""Frames that are resized while they are converted: the pixels of the conversion and of `resize` after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clips import make_clip, write_video

from stoker import DataError, fn, pipeline_def, types
from stoker.native import _native
from stoker.video import frame_resize
from stoker.video.colors import MATRICES, convert_plain
from stoker.video.frame_resize import FrameResize

BASE = {
    "interp_type": types.INTERP_LINEAR, "min_filter": None, "mag_filter": None, "antialias": True, "size": None,
    "resize_x": None, "resize_y": None, "resize_shorter": None, "resize_longer": None, "resize_z": None,
    "max_size": None, "mode": "default", "subpixel_scale": False, "roi_start": None, "roi_end": None,
    "roi_relative": False,
}  # fmt: skip


@pytest.fixture(params=_native.instruction_sets())
def _isa(request: pytest.FixtureRequest) -> Any:
    before = _native.get_isa()
    _native.set_isa(request.param)
    yield
    _native.set_isa(before)


def rows_of(define: Any) -> list[list[Any]]:
    @pipeline_def(batch_size=3, num_threads=2, seed=5)
    def pipe() -> Any:
        return define()

    with pipe() as made:
        return [[np.asarray(row) for row in made.run()[0]] for _ in range(2)]


@pytest.fixture
def converted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that gets an element for each frame that is resized while it is converted."""
    found: list[bool] = []
    native = _native.video.resize

    class Noting:
        convert = staticmethod(_native.video.convert)

        @staticmethod
        def resize(*arguments: Any) -> None:
            found.append(True)
            native(*arguments)

    class Native:
        video, resample = Noting, staticmethod(_native.resample)

    monkeypatch.setattr(frame_resize, "_native", Native)
    return found


@pytest.mark.usefixtures("_isa")
@pytest.mark.parametrize("bits", [8, 10])
def test_equal_to_conversion_and_resampling(bits: int) -> None:
    rng = np.random.default_rng(bits)
    for _ in range(60):
        height, width, to = (int(n) for n in rng.integers(1, 150, 3))
        shifts = ((1, 1), (1, 0), (0, 0), (2, 2))[rng.integers(0, 4)]
        small = (-(-height // (1 << shifts[1])), -(-width // (1 << shifts[0])))
        planes = [rng.integers(0, 1 << bits, shape) for shape in ((height, width), small, small)]
        own = [p.astype(np.uint8 if bits == 8 else np.uint16) for p in planes][: 1 if rng.integers(0, 4) == 0 else 3]
        shifts = shifts if len(own) == 3 else (0, 0)
        order, full, matrix = int(rng.integers(0, 3)), bool(rng.integers(0, 2)), MATRICES[9]
        size = to, int(rng.integers(1, 150))
        filters = int(rng.integers(0, 8)), int(rng.integers(0, 8))
        antialias = bool(rng.integers(0, 2))
        rows, columns = sorted(rng.uniform(0, height, 2)), sorted(rng.uniform(0, width, 2))
        y, x = ((0.0, height), (0.0, width)) if rng.integers(0, 2) else (rows, columns)
        y, x = (y[::-1] if rng.integers(0, 3) == 0 else y), (x[::-1] if rng.integers(0, 3) == 0 else x)
        image = convert_plain(own, shifts, bits, matrix, full, order)
        box = (x[0], y[0], x[1], y[1])
        expected = _native.resample(image, *size, box, *filters, antialias)
        out = np.full((*size, 3), 77, np.uint8)
        memory = [np.ascontiguousarray(p).reshape(-1).view(np.uint8) for p in own]
        pitches = [p.shape[1] * p.itemsize for p in own]
        _native.video.resize(
            memory, pitches, (height, width), shifts, bits, matrix, full, order, (*y, *x), filters, antialias, out
        )  # fmt: skip
        np.testing.assert_array_equal(out, expected, err_msg=f"{(height, width, size, filters, y, x, shifts)}")


def test_arguments_are_checked() -> None:
    facts: dict[str, Any] = {
        "planes": [np.zeros(24, np.uint8), np.zeros(6, np.uint8), np.zeros(6, np.uint8)], "pitches": [6, 3, 3],
        "size": (4, 6), "shifts": (1, 1), "bits": 8, "matrix": MATRICES[1], "full_range": False, "order": 0,
        "region": (0.0, 4.0, 0.0, 6.0), "filters": (1, 1), "antialias": True, "out": np.zeros((2, 3, 3), np.uint8),
    }  # fmt: skip
    _native.video.resize(**facts)
    assert facts["out"].any()  # zeros are green
    refused: tuple[dict[str, Any], ...] = (
        {"size": (5, 6)}, {"size": (4, 7)}, {"size": (0, 6)}, {"pitches": [5, 3, 3]}, {"pitches": [6, 3]}, {"bits": 7},
        {"bits": 10}, {"matrix": (0.0, 0.5)}, {"order": 3}, {"filters": (8, 1)}, {"filters": (1, -1)},
        {"region": (0.0, np.inf, 0.0, 6.0)}, {"region": (np.nan, 4.0, 0.0, 6.0)}, {"shifts": (3, 0)},
        {"out": np.zeros((2, 3, 4), np.uint8)},
    )  # fmt: skip
    for one in refused:
        with pytest.raises(ValueError, match=r"expected|cannot be done"):
            _native.video.resize(**{**facts, **one})


@pytest.mark.parametrize(
    ("arguments", "resize"),
    [
        ({"size": (20.0, 30.0)}, FrameResize((20, 30), 1, 1, antialias=True)),
        ({"size": (20.5,)}, FrameResize((21, 21), 1, 1, antialias=True)),
        ({"resize_x": 7.0, "resize_y": 0.2}, FrameResize((1, 7), 1, 1, antialias=True)),
        ({"size": (9.0, 9.0), "mode": "stretch", "min_filter": 6, "antialias": False},
         FrameResize((9, 9), 6, 1, antialias=False)),
        ({"size": (20.0, 0.0)}, None), ({"size": (20.0, -3.0)}, None), ({"size": (np.nan, 3.0)}, None), ({}, None),
        ({"size": (1.0, 2.0, 3.0)}, None), ({"resize_x": 7.0}, None), ({"size": (5.0,), "resize_x": 7.0}, None),
        ({"size": (9.0, 9.0), "mode": "not_larger"}, None), ({"size": (9.0,), "roi_start": (0.0, 1.0)}, None),
        ({"resize_shorter": 9.0}, None), ({"size": (9.0,), "max_size": (4.0,)}, None),
        ({"size": (9.0,), "subpixel_scale": True}, None), ({"size": (9.0,), "interp_type": 9}, None),
    ],
)  # fmt: skip
def test_which_arguments_have_one_size(arguments: dict[str, Any], resize: FrameResize | None) -> None:
    assert FrameResize.of({**BASE, **arguments}) == resize


@pytest.mark.parametrize(
    "kind", ["h264", "h264_odd", "h264_422", "hevc_10bit", "vp9", "mjpeg", "png", "turned", "gray"]
)
def test_a_reader_resizes_frames_while_it_converts_them(kind: str, tmp_path: Path, converted: list[bool]) -> None:
    if kind == "turned":
        path = write_video(tmp_path / "turned.mp4", "libx264", size=(48, 80), frames=12, rotation=90)
    elif kind == "gray":
        path = write_video(tmp_path / "gray.mkv", "libx264", size=(48, 80), frames=12, pixels="gray")
    else:
        path = make_clip(tmp_path, kind)
    reading: dict[str, Any] = {"filenames": [str(path)], "sequence_length": 5, "step": 4, "pad_mode": "constant"}
    reading["pad_sequences"] = True
    for size, interp in (((37, 61), "INTERP_LINEAR"), ((150, 20), "INTERP_CUBIC"), ((30, 200), "INTERP_LANCZOS3")):
        how = {"size": size, "interp_type": getattr(types, interp)}
        got = rows_of(lambda h=how: fn.readers.video_resize(**reading, **h))
        expected = rows_of(lambda h=how: fn.resize(fn.readers.video(**reading), **h))
        for one, other in zip(got, expected, strict=True):
            for row, twin in zip(one, other, strict=True):
                assert row.shape == (5, *size, 3)
                np.testing.assert_array_equal(row, twin)
    assert bool(converted) == (kind not in ("mjpeg", "png", "turned"))


OTHERS: tuple[dict[str, Any], ...] = (
    {"resize_shorter": 30}, {"size": (20, 30), "dtype": types.FLOAT},
    {"size": (20, 30), "roi_start": (2, 3), "roi_end": (40, 50)},
)  # fmt: skip


@pytest.mark.parametrize("how", OTHERS)
def test_other_sizes_are_a_step_of_their_own(how: dict[str, Any], tmp_path: Path, converted: list[bool]) -> None:
    reading: dict[str, Any] = {"filenames": [str(make_clip(tmp_path, "h264"))], "sequence_length": 3}
    got = rows_of(lambda: fn.readers.video_resize(**reading, **how))
    twin = rows_of(lambda: fn.resize(fn.readers.video(**reading), **how))
    for one, other in zip(got, twin, strict=True):
        for row, expected in zip(one, other, strict=True):
            np.testing.assert_array_equal(row, expected)
    assert not converted


def test_a_size_per_row(tmp_path: Path, converted: list[bool]) -> None:
    path = str(make_clip(tmp_path, "h264"))

    def define() -> Any:
        side = fn.random.uniform(range=(20, 40))
        return fn.readers.video_resize(filenames=[path], sequence_length=3, resize_x=side, resize_y=side)

    shapes = {row.shape for rows in rows_of(define) for row in rows}
    assert len(shapes) > 1 and not converted


def test_clips_requested_before_the_resize_are_resized(tmp_path: Path) -> None:
    from stoker.readers._video import ClipStorage

    path = str(make_clip(tmp_path, "h264"))
    before: list[Any] = []
    resize = ClipStorage.resize

    def late(self: ClipStorage, wanted: FrameResize | None) -> None:
        asked = self._ask([(k, 0.0) for k in range(3)])
        before.extend(future.result().shape for future in asked.values())
        self._ahead.append(asked)
        resize(self, wanted)

    expected = rows_of(lambda: fn.readers.video_resize(filenames=[path], sequence_length=3, size=(20, 30)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClipStorage, "resize", late)
        got = rows_of(lambda: fn.readers.video_resize(filenames=[path], sequence_length=3, size=(20, 30)))
    assert before and all(shape[1:3] != (20, 30) for shape in before)
    for one, other in zip(got, expected, strict=True):
        for row, twin in zip(one, other, strict=True):
            np.testing.assert_array_equal(row, twin)


def test_large_frames_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds for a clip of resized frames, and for one frame of the video."""
    path = str(write_video(tmp_path / "a.mp4", "libx264", frames=4, size=(720, 1280)))
    monkeypatch.setenv("STOKER_VIDEO_CLIP_MIB", "4")
    (row, *_), _ = rows_of(lambda: fn.readers.video_resize(filenames=[path], sequence_length=4, size=(8, 9)))
    assert row.shape == (4, 8, 9, 3)  # 11 MB before the resize
    with pytest.raises(DataError, match="MiB of frames"):
        rows_of(lambda: fn.readers.video_resize(filenames=[path], sequence_length=4, size=(900, 900)))
    monkeypatch.setenv("STOKER_VIDEO_CLIP_MIB", "1")
    with pytest.raises(DataError, match="MiB of frames"):
        rows_of(lambda: fn.readers.video_resize(filenames=[path], sequence_length=4, size=(8, 9)))
