# SPDX-License-Identifier: Apache-2.0
"""Videos that are cut and joined without encoding, and spoilt ones. ``make video-zoo`` has many more of both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("av", reason="PyAV is not installed")
from tests import video_zoo

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.filterwarnings("ignore:.*is damaged:RuntimeWarning")


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))


def test_edited_videos(capsys: pytest.CaptureFixture[str]) -> None:
    names = ("edit_list_libx264_", "edit_list_mpeg4_0.5", "joined_libx264", "cover.mp4", "two_streams", "wrapped.ts")
    assert video_zoo.main(names) == 0
    printed = capsys.readouterr().out
    assert printed.count("equal") == 12 and "left out" not in printed


def test_a_wrong_frame_is_a_fault(tmp_path: Path) -> None:
    path = video_zoo.videos()["mjpeg.avi"](tmp_path)
    expected = video_zoo.full_decode(path)
    assert not video_zoo.faults(path, expected)
    assert "expected, got 48" in video_zoo.faults(path, expected[:-1])[0]
    expected[7] = np.zeros_like(expected[7])
    assert video_zoo.faults(path, expected) == ["path: wrong frames [7]", "bytes: wrong frames [7]"]


def test_damage_that_is_not_reported_is_a_fault(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(video_zoo, "DAMAGED", {"mjpeg.avi": "made"})
    assert video_zoo.main(["mjpeg.avi"]) == 1
    assert "expected an error: made" in capsys.readouterr().out


def test_spoilt_videos() -> None:
    kinds = ("h264", "h264_mkv", "vp9", "mpeg4", "mjpeg")
    command = [sys.executable, "-m", "tests.video_fuzz", "--seconds", "4", "--seed", "5", *kinds]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=240, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "read: " in done.stdout and "DataError: " in done.stdout
