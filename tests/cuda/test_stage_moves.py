# SPDX-License-Identifier: Apache-2.0
"""Stages that only move elements: the elements that one loop over all axes moves, and no access beyond them."""

from __future__ import annotations

from pathlib import Path

from checked_programs import ADDRESSES, check_program

HERE = Path(__file__).resolve().parent


def test_moved_elements(tmp_path: Path) -> None:
    check_program(tmp_path, [HERE / "stage_moves.cpp"], *ADDRESSES, f"-I{HERE.parent / 'native'}")
