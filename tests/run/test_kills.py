# SPDX-License-Identifier: Apache-2.0
"""A process that is killed at any moment loses no row: the next process resumes with the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clips import write_video
from tests.run.kills import kill_often
from tests.run.pipelines import files_of


def test_three_kills(jpegs: Path, tmp_path: Path) -> None:
    """`python -m tests.run.kills --times 100 FILES` kills more often."""
    files = files_of(jpegs)[:11]
    cut = tmp_path / "cut.jpg"
    cut.write_bytes(Path(files[0]).read_bytes()[:900])
    rows, grown = kill_often([*files, str(cut)], 3, seed=4)
    assert rows >= 3
    assert grown >= 2


def test_two_kills_among_clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clips of videos, of which one is damaged: each process goes on with the next clip."""
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))
    paths = [
        write_video(tmp_path / f"{i}.mp4", "libx264", {"threads": "1", "bf": "2"}, frames=40, size=(32, 160))
        for i in range(2)
    ]
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(paths[0].read_bytes()[:900])
    rows, grown = kill_often([*map(str, paths), str(cut)], 2, seed=1, videos=True)
    assert rows >= 2 and grown == 2
