# SPDX-License-Identifier: Apache-2.0
"""A process that is killed at any moment loses no row: the next process resumes with the same rows."""

from __future__ import annotations

from pathlib import Path

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
