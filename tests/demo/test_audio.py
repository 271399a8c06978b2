# SPDX-License-Identifier: Apache-2.0
"""``stoker demo audio``: rates, equal bits, a picture; different bits fail it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker.demo import audio
from stoker.demo.run import main


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audio, "CLIPS", 6)
    monkeypatch.setattr(audio, "_SECONDS", 0.02)
    monkeypatch.setattr(audio, "_ROUNDS", 2)


def test_the_whole_demonstration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audio", "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "6 made clips" in printed
    assert "times as fast as the sound" in printed
    assert "NumPy" in printed or "SciPy" in printed
    assert "3 of 3 runs with 1 to 6 clips a batch" in printed
    assert "6 of 6 decoded clips equal the samples that were written" in printed
    assert "4 of 4 clips that arrive in chunks" in printed
    with Image.open(tmp_path / "out" / "audio.png") as sheet:
        assert sheet.width > 600


def test_the_front_end_in_numpy_is_the_same(tmp_path: Path) -> None:
    files, seconds = audio.make(tmp_path)
    assert len(files) == 6 and 18 < seconds < 48
    assert audio._largest_difference(files, audio.numpy_front_end(np.fft.rfft)) < 1e-3
    assert audio._largest_difference(files, lambda x: audio.numpy_front_end(np.fft.rfft)(x[::-1])) > 1


def test_different_bits_fail_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = audio._samples

    def changed(path: Path) -> Any:
        x = right(path)
        return x + np.float32(2.0**-15) if path.name == "clip003.wav" else x

    monkeypatch.setattr(audio, "_samples", changed)
    assert main(["audio", "--out", str(tmp_path)]) == 1
    assert "5 of 6 decoded clips" in capsys.readouterr().out


def test_a_different_sum_fails_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = audio._checksum
    monkeypatch.setattr(audio, "_checksum", lambda files, size, threads: right(files, size, threads) + (size == 1))
    assert main(["audio", "--out", str(tmp_path)]) == 1
    assert "1 of 3 runs" in capsys.readouterr().out


def test_a_folder_of_data_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audio", "--data", str(tmp_path)]) == 2
    assert "expected no --data with `audio`" in capsys.readouterr().err


def test_pictures_show_what_they_are_of() -> None:
    x = np.concatenate([np.zeros(500), np.ones(500)])
    shown = (audio.waveform(x) == audio._LINE).all(-1)
    assert shown[95:105, :90].any() and shown[:20, 110:].any() and not shown[:20, :90].any()
    bands = np.zeros((80, 50))
    bands[:10] = 1  # the low ones, at the bottom
    picture = audio.heat(bands)
    assert picture.shape == (200, 200, 3) and picture[190].mean() > 150 and picture[10].mean() < 20
