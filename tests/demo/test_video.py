# SPDX-License-Identifier: Apache-2.0
"""``stoker demo video``: rates, barcodes, a strip; wrong frames fail it."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from stoker.demo import clips
from stoker.demo.run import main

pytest.importorskip("av", reason="PyAV is not installed")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(clips, "HEIGHT", 120)
    monkeypatch.setattr(clips, "WIDTH", 240)
    monkeypatch.setattr(clips, "FRAMES", 50)


def test_barcodes() -> None:
    assert [clips.number_in(clips.draw(number)) for number in (0, 1, 99, 170, 255)] == [0, 1, 99, 170, 255]


def test_the_whole_demonstration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["video", "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "4 made videos of 50 frames of 240 x 120" in printed
    for kind in clips.KINDS:
        assert printed.count(kind.title) == 2
    assert "Stoker" in printed and "PyAV" in printed
    assert "400 of 400 frames show the number that was asked for" in printed
    assert "128 of 128 frames of 8 shuffled clips" in printed
    with Image.open(tmp_path / "out" / "video.png") as sheet:
        assert sheet.width > 600


def test_a_wrong_frame_fails_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = clips.number_in
    monkeypatch.setattr(clips, "number_in", lambda pixels: min(right(pixels), 48))
    monkeypatch.setattr(clips, "KINDS", clips.KINDS[:1])
    assert main(["video", "--out", str(tmp_path)]) == 1
    assert "98 of 100 frames" in capsys.readouterr().out


def test_encoders_that_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = clips.Kind("other", "other.mp4", "no-such-encoder", ())
    monkeypatch.setattr(clips, "KINDS", (clips.KINDS[0], other))
    assert main(["video", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "1 made videos" in printed and "left out: FFmpeg has no encoder no-such-encoder here" in printed


def test_refusals(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["video", "--data", str(tmp_path)]) == 2
    assert "expected no --data with `video`" in capsys.readouterr().err

    def absent(name: str, *rest: Any) -> Any:
        if name == "av":
            raise ImportError("No module named 'av'")
        return real(name, *rest)

    real = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", absent)
    assert main(["video", "--out", str(tmp_path)]) == 1
    assert "the extra `video`" in capsys.readouterr().err
