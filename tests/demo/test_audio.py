# SPDX-License-Identifier: Apache-2.0
"""``stoker demo audio``: rates, equal bits, a picture; different bits fail it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from stoker.demo import audio, audio_peers
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
    assert "NumPy" in printed
    assert "3 of 3 runs with 1 to 6 clips a batch" in printed
    assert "6 of 6 decoded clips equal the samples that were written" in printed
    assert "4 of 4 clips that arrive in chunks" in printed
    with Image.open(tmp_path / "out" / "audio.png") as sheet:
        assert sheet.width > 600


@pytest.mark.leaks("the libraries keep their threads")
@pytest.mark.parametrize("name", list(audio_peers._PEERS))
def test_every_library_has_the_same_values(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files, seconds = audio.make(tmp_path)
    assert len(files) == 6 and 18 < seconds < 48
    monkeypatch.setattr(audio_peers, "_PEERS", {name: audio_peers._PEERS[name]})
    with audio_peers.open_peers(files, audio.front_end_of_peers(), 1) as (peers, missing):
        if missing:
            pytest.skip(f"{name} is not installed")
        (peer,) = peers
        assert peer.name == name and peer.turn() >= 1
        assert audio._largest_difference(files, peer) < 1e-3
        shifted = audio_peers.Peer(name, "", peer.turn, lambda count: [np.roll(x, 1, 1) for x in peer.values(count)])
        assert audio._largest_difference(files, shifted) > 1


@contextlib.contextmanager
def _quick(files: Sequence[Path], front_end: audio_peers.FrontEnd, threads: int) -> Iterator[audio_peers.Peer]:
    compute = audio_peers.numpy_front_end(front_end, np.fft.rfft)

    def values(count: int) -> list[Any]:
        return [compute(audio_peers.read_samples(path)) for path in files[:count]]

    yield audio_peers.Peer("Quick", "without work", lambda: 1 << 40, values)


def _missing(files: Sequence[Path], front_end: audio_peers.FrontEnd, threads: int) -> Any:
    raise ImportError("none")


def test_the_best_library_is_compared_and_missing_ones_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"Absent": _missing, "NumPy": audio_peers._PEERS["NumPy"], "Quick": _quick}
    monkeypatch.setattr(audio_peers, "_PEERS", known)
    files, seconds = audio.make(tmp_path)
    audio._compare_rates(files, seconds, 1)
    lines = capsys.readouterr().out.splitlines()
    (best,) = [line for line in lines if line.startswith("Quick")]
    assert "clips/s for the same front end without work" in best
    assert any("the others: NumPy " in line and line.endswith("; not available: Absent") for line in lines)


def test_different_bits_fail_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = audio.read_samples

    def changed(path: Path) -> Any:
        x = right(path)
        return x + np.float32(2.0**-15) if path.name == "clip003.wav" else x

    monkeypatch.setattr(audio, "read_samples", changed)
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
