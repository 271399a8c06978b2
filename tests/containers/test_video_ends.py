# SPDX-License-Identifier: Apache-2.0
"""A short fuzz of the checks whether a container file is whole. `fuzz/ends.py` is the long one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stoker.video import video_ends

sys.path.insert(0, str(Path(__file__).parents[2] / "fuzz"))
import ends


def test_mutated_files(tmp_path: Path) -> None:
    counts = ends.run(1.5, 7, tmp_path)
    assert min(counts[name] for name in ("cut", "whole", "refused", "files")) > 0


def test_a_check_that_misses_a_cut_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted error: the last part of an AVI file is not looked at."""
    monkeypatch.setitem(video_ends._CUTS, "avi", lambda file, size: "")
    with pytest.raises(AssertionError, match="avi without its last 2 bytes"):
        ends.run(0.0, 7, tmp_path)
